/* kit.c - see kit.h. SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double
read_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double
kit_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

double
kit_cpu_ms(void)
{
    return read_ms(CLOCK_PROCESS_CPUTIME_ID);
}

void
must(br_code code, const br_status *st)
{
    if (code == BR_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, st->msg);
    exit(1);
}

int
kit_cpu(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    int cores = 0;

    snprintf(name, size, "?");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');

        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        cores++;
        colon[strcspn(colon, "\n")] = 0;
        snprintf(name, size, "%s", colon + 2);
    }
    if (f)
        fclose(f);
    return cores;
}

static int
by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

double
kit_quantile_ms(int64_t *v, size_t n, double q)
{
    size_t rank = (size_t)ceil(q * (double)n);

    if (n == 0)
        return NAN;
    qsort(v, n, sizeof *v, by_value);
    return (double)v[BR_MAX(rank, (size_t)1) - 1] * 1e-6;
}
