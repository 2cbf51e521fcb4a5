/* assign.h - which worker runs which task.
 *
 * A queue is the tasks of one worker in the order in which it runs them. Both
 * orders in use (task list, topological order) are linear extensions of the
 * dependencies here, so no assignment can deadlock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_ASSIGN_H
#define BR_MEGA_ASSIGN_H

#include "mega/mega.h"

enum { BR_ASSIGN_MAX_WORKERS = 1 << 20 };

typedef struct br_mega_assign_opts {
    int64_t workers;  /* 1..BR_ASSIGN_MAX_WORKERS */
    bool round_robin; /* else greedy balance, see assign.c */
    /* Tasks of one unit go to one worker, chosen when its first task comes,
     * by the cost of them all. NULL: every task alone; an entry < 0: alone. */
    const int32_t *unit;
    int32_t n_units;
} br_mega_assign_opts;

/* Sets Task.sm of every task that has none; the others stay and count as load
 * of their worker. FORMAT when a task is on a worker that is not there, or the
 * program has no topological order. */
br_code br_mega_assign(br_mega_prog *p, const br_mega_assign_opts *o,
                       br_status *st) BR_MUST_USE;
/* The same into an array: sm[n_tasks] comes with what is fixed (else
 * BR_MEGA_SM_NONE) and goes with a worker for every task. */
br_code br_mega_assign_to(const br_mega_prog *p, const br_mega_assign_opts *o,
                          int64_t *sm, br_status *st) BR_MUST_USE;

/* The reference loader's own rule, into sm_of[n_tasks], for export to its
 * device tables: as above without units - but when any task has a worker and
 * all of those are below `workers`, tasks without one go to worker 0. (A
 * split attention puts 26 of 27 tasks there: br_mega_assign never does so.) */
br_code br_mega_assign_amk(const br_mega_prog *p, int64_t workers,
                           bool round_robin, int64_t *sm_of,
                           br_status *st) BR_MUST_USE;

#endif
