/* bench_mega_lower.c - speed of the lowering and of the cost model.
 *
 *   bench_mega_lower [SHAPE...]       llama-3.2-1b and llama-3-8b without any
 *
 * Prints the best of REPEATS runs, in milliseconds of CPU time. `tasks` is the
 * lowering without workers and pages (style amk), `whole` ours with both.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"
#include "mega/cost.h"
#include "mega/lower.h"

enum { REPEATS = 10 };

static double
time_lower(const char *shape, br_mega_style style, br_mega_prog **out)
{
    double best = 1e30;

    for (int i = 0; i < REPEATS; i++) {
        br_status st = {0};
        double t = kit_cpu_ms();

        must(br_mega_lower_shape(out, shape, style, &st), &st);
        t = kit_cpu_ms() - t;
        best = BR_MIN(best, t);
        if (i + 1 < REPEATS)
            br_mega_free(*out);
    }
    return best;
}

static double
time_cost(const br_mega_prog *p)
{
    br_mega_cost_opts o = {.depth = -1};
    double best = 1e30;

    for (int i = 0; i < REPEATS; i++) {
        br_status st = {0};
        br_mega_cost c;
        double t = kit_cpu_ms();

        must(br_mega_cost_of(&c, p, &o, &st), &st);
        t = kit_cpu_ms() - t;
        best = BR_MIN(best, t);
        br_mega_cost_fini(&c);
    }
    return best;
}

int
main(int argc, char **argv)
{
    static const char *const usual[] = {"llama-3.2-1b", "llama-3-8b"};
    int n = argc > 1 ? argc - 1 : (int)BR_COUNT(usual);

    printf("%-16s %8s %8s %8s %8s %8s\n", "shape", "tasks", "ms", "whole", "ms",
           "cost ms");
    for (int i = 0; i < n; i++) {
        const char *shape = argc > 1 ? argv[i + 1] : usual[i];
        br_mega_prog *amk, *ours;
        double a = time_lower(shape, BR_LOWER_AMK, &amk);
        double b = time_lower(shape, BR_LOWER_HOUSE, &ours);

        printf("%-16s %8zu %8.2f %8zu %8.2f %8.2f\n", shape, amk->n_tasks, a,
               ours->n_tasks, b, time_cost(ours));
        br_mega_free(amk);
        br_mega_free(ours);
    }
    return 0;
}
