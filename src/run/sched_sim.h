/* sched_sim.h - the scheduler in virtual time, against a fake engine.
 *
 * Worlds of random size, one after another: tenants of all classes whose
 * quotas change, requests that share beginnings, cancellations, readers that
 * stop, pages that run out. After every step the books are audited, each
 * choice is made again by brute force from what the simulation itself has
 * seen, and every token is compared with the one that the request would get
 * alone: the fake model answers wrongly if a page or a state is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SCHED_SIM_H
#define BR_SCHED_SIM_H

#include "base/base.h"

typedef struct br_sim_report {
    uint64_t steps, worlds, rows, tokens, requests, cancelled, preempted;
    uint64_t parked, choices, hit_tokens;
    uint64_t seed; /* of the world that failed */
    uint64_t step; /* in it */
} br_sim_report;

/* About n_steps steps; the same seed makes the same worlds. INTERNAL: the
 * message says what was wrong, the report where. progress may be NULL. */
br_code br_sched_sim(uint64_t seed, uint64_t n_steps, br_sim_report *out,
                     void (*progress)(void *ctx, const br_sim_report *r),
                     void *ctx, br_status *st) BR_MUST_USE;

#endif
