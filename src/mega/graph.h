/* graph.h - the dependency graph from plain arrays, for those who have already
 * read the tasks once (the check walks 100,000 of them in milliseconds and
 * must not chase the records twice). Others call br_mega_graph_build.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_GRAPH_H
#define BR_MEGA_GRAPH_H

#include "mega/mega.h"

#define BR_NONE UINT32_MAX

typedef struct br_mega_links {
    uint32_t n_tasks, n_counters;
    const uint32_t *ctr;      /* task -> its out_counter; BR_NONE: none such */
    const uint32_t *wait_off; /* [n_tasks + 1] */
    const uint32_t *wait;     /* counters; none twice within a task */
} br_mega_links;

br_code br_mega_links_of(br_mega_links *l, const br_mega_prog *p, br_arena *a,
                         br_status *st) BR_MUST_USE;
br_code br_mega_graph_from(br_mega_graph *g, const br_mega_links *l,
                           br_arena *a, br_status *st) BR_MUST_USE;

#endif
