/* gcn_random.h - random kernels on a simulated AMD processor, beside the
 * interpreter. SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_RANDOM_H
#define BR_GCN_RANDOM_H

#define PR_MORE
#include "ptx_kit.h"
#include "ptx_random.h"

#include "drv/sim/sim.h"

#include <string.h>

/* Loops and branches that lanes take at random, with the interpreter's memory
 * in the end. Barriers that a part of a wave reaches are another matter. NULL:
 * the same; else what differs. text: the kernel, for who tells it. */
static inline const char *
gcn_random(br_str *text, uint64_t seed, const char *cpu)
{
    br_status st = {0};
    const char *err;
    br_ktarget t;
    br_kir *m;

    (seed % 4 ? ptx_random : ptx_straight)(text, seed);
    for (char *p = text->at; (p = strstr(p, "bar.sync 0;"));)
        memset(p, ' ', strlen("bar.sync 0;"));
    m = ptx_load(text->at);
    if (seed % 2)
        t_ok(br_kir_optimise(m, NULL, &st), &st);
    ck_assert(br_sim_target(&t, cpu));
    err = pr_compare(m, &t);
    br_kir_free(m);
    return err;
}

#endif
