/* walk.h - the tasks of a program, one after another or at once.
 *
 *   runner->run(fire)      every task once, when its waits are met
 *        ^
 *        |-- br_mega_walk  one thread, in an order of the caller's choice
 *        '-- br_cpu_walk   threads, each with tasks of its own (drv/cpu)
 *
 * What a task does is `fire`'s affair: an op on tensors (interp.h), a tile of a
 * graph's node (drv/ref).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_WALK_H
#define BR_MEGA_WALK_H

#include "mega/mega.h"

/* Does a task. worker: below the runner's number, and nobody else has it now.
 * A failure ends the run. */
typedef br_code br_mega_fire(void *ctx, uint32_t worker, uint32_t task,
                             br_status *st);

typedef struct br_mega_runner {
    br_code (*run)(struct br_mega_runner *r, br_mega_fire *fire, void *ctx,
                   br_status *st);
    uint32_t workers;
    uint32_t *order; /* the tasks as they began in the last run */
    size_t n_order;
    size_t sweeps; /* over the list that took; 0 unless in SWEEP order */
} br_mega_runner;

/* Which of the ready tasks goes next. Every one of these is an order that the
 * counters allow, so the results must not differ by a bit. */
typedef enum br_mega_order {
    BR_MEGA_ORDER_SWEEP, /* over the list until nothing moves: the reference */
    BR_MEGA_ORDER_REVERSE, /* always the last of the list */
    BR_MEGA_ORDER_RANDOM,  /* drawn by (seed, task) */
    /* the first of the list, and nobody before those in front of it in the
     * queue of its SM */
    BR_MEGA_ORDER_QUEUES,
} br_mega_order;

typedef struct br_mega_walk br_mega_walk;

/* The program outlives it; checked or not, but ids have to be 0, 1, 2 .. */
br_code br_mega_walk_new(br_mega_walk **out, const br_mega_prog *p,
                         br_status *st) BR_MUST_USE;
void br_mega_walk_free(br_mega_walk *w);
/* For the next runs. A new walk sweeps. */
void br_mega_walk_by(br_mega_walk *w, br_mega_order order, uint64_t seed);
/* A run that gets stuck is REJECTED, and names who waits. */
br_mega_runner *br_mega_walk_runner(br_mega_walk *w);

#endif
