/* cpu_probe.c - reads and multiplications that do nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_probe.h"
#include "drv/cpu/mat_int.h"

#include <string.h>
#include <time.h>

/* The time that this thread has run: others on the machine do not count. */
static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double
br_probe_read(const void *p, size_t n)
{
    int64_t t0 = now_ns();
    const uint8_t *at = p, *end = at + n;
    uint64_t sum = 0;

    /* Four words of each line are enough to have it brought in. */
    for (; at < end; at += 256) {
        uint64_t v[4];

        for (int i = 0; i < 4; i++)
            memcpy(&v[i], at + 64 * i, 8);
        sum += (v[0] ^ v[1]) + (v[2] ^ v[3]);
    }
    /* The sum has to be had before the clock is read again. */
    __asm__ volatile("" ::"r"(sum) : "memory");
    return (double)n / (double)(now_ns() - t0);
}

double
br_probe_mul(br_isa isa, br_form form)
{
    double best = 0;

    for (int i = 0; i < 3; i++) {
        int64_t t0 = now_ns();
        double ops = (double)mat_isas[isa].ops(form, 1 << 18);

        best = BR_MAX(best, ops / (double)(now_ns() - t0));
    }
    return best;
}
