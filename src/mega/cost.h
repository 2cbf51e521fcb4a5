/* cost.h - how long a task program takes on a machine that is not here.
 *
 * Two passes (docs/decisions/0012-cost-model.md):
 *   1. bytes only: an event simulation in which all that streams at a moment
 *      shares the memory bandwidth evenly, one worker never drawing more than
 *      share_x fair shares. It gives every transfer its share of the bandwidth
 *      and the order of events, neither of which depends on how fast the
 *      machine is.
 *   2. the same order again with the shares fixed, and now with the fixed cost
 *      of every task, its reads of activations and its flops.
 *
 * Hence, provably: the time is never below bytes / bandwidth nor flops / peak;
 * more bandwidth, more flops or cheaper tasks never make it longer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_COST_H
#define BR_MEGA_COST_H

#include "mega/target.h"

typedef enum br_cost_region {
    BR_CR_ATTENTION,
    BR_CR_MLP,
    BR_CR_HEAD,
    BR_CR_OTHER,
    BR_CR_COUNT
} br_cost_region;

/* Where the microseconds of the critical path go. */
typedef struct br_cost_share {
    double stream_us;   /* bytes on their way from memory */
    double compute_us;  /* flops, and activations read through the cache */
    double overhead_us; /* fetch, wait, signal */
} br_cost_share;

typedef struct br_cost_row {
    size_t tasks;
    double bytes, flops;
    double busy_us; /* sum over tasks, of all workers */
    br_cost_share critical;
} br_cost_row;

typedef struct br_mega_cost {
    double us;        /* from launch to the last task's end */
    double floor_us;  /* max(bytes / peak bandwidth, flops / peak flops) */
    double reach_us;  /* the same with the bandwidth that can be reached */
    double stream_us; /* of pass 1: what the shape of the program allows */
    int64_t bytes, flops;
    size_t tasks, workers; /* workers with at least one task */
    br_cost_row op[BR_MOP_LIMIT], region[BR_CR_COUNT];
    br_cost_share critical; /* sums to us */
    size_t critical_tasks;
    /* per task, in microseconds; in the arena */
    const double *start, *end;
    const bool *on_path; /* of the critical path */
    const int64_t *sm; /* as simulated: assigned here when the file does not */
    br_arena arena;
} br_mega_cost;

typedef struct br_mega_cost_opts {
    const br_mega_target *target; /* NULL: the program's */
    int64_t depth;                /* pipelining_depth; < 0: the program's */
} br_mega_cost_opts;

/* Queues are walked in task-list order. Fails with FORMAT without a target or
 * with ids out of range, REJECTED when tasks wait for each other for ever. */
br_code br_mega_cost_of(br_mega_cost *c, const br_mega_prog *p,
                        const br_mega_cost_opts *o, br_status *st) BR_MUST_USE;
void br_mega_cost_fini(br_mega_cost *c);

const char *br_cost_region_name(br_cost_region r);
br_cost_region br_cost_region_of(const br_mega_task *t);
/* One JSON object; what `brass prog cost --json` prints. */
void br_mega_cost_json(const br_mega_cost *c, br_str *out);

#endif
