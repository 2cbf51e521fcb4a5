/* cpu_walk.h - the tasks of a program by threads, each with a queue.
 *
 *   SM 0  t0 t3 t5   \   thread 0:  t0 t2 t3 t5     waits for a task's counters,
 *   SM 1  t1 t4       >                             does it, adds 1 to its own
 *   SM 2  t2         /   thread 1:  t1 t4
 *
 * Thread n of N walks the queues of SMs n, n + N, ..., merged in an order in
 * which every wait and every queue points backwards; so whatever the number of
 * threads, the first task of that order that is not done can always run. Tasks
 * without an SM go round.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_WALK_H
#define BR_CPU_WALK_H

#include "drv/cpu/cpu_pool.h"
#include "mega/walk.h"

typedef struct br_cpu_walk br_cpu_walk;

/* Program and pool outlive it; the program has passed the sound check.
 * REJECTED: no such order exists. */
br_code br_cpu_walk_new(br_cpu_walk **out, const br_mega_prog *p,
                        br_cpu_pool *pool, br_status *st) BR_MUST_USE;
void br_cpu_walk_free(br_cpu_walk *w);
/* Its workers are the pool's threads. One run at a time. */
br_mega_runner *br_cpu_walk_runner(br_cpu_walk *w);

#endif
