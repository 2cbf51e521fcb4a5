/* cost_internal.h - shared by cost.c, cost_work.c and cost_sim.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_COST_INTERNAL_H
#define BR_MEGA_COST_INTERNAL_H

#include "mega/cost.h"

/* What a task asks of the machine. */
typedef struct br_cost_work {
    double weight; /* bytes nobody writes: may be fetched ahead */
    double state;  /* other bytes from memory: caches */
    double local;  /* activations, through the cache that all share */
    double flops;
    double late; /* of weight + state: only fetched once the task is ready */
} br_cost_work;

/* A piece of a task's weights that its worker may fetch ahead, as soon as the
 * task at place `after` of the queue has ended. */
typedef struct br_cost_piece {
    uint32_t task;
    int64_t after; /* < 0: from the launch on */
    double bytes;
    double time; /* of pass 1, as multiples of 1 / bandwidth */
} br_cost_piece;

typedef struct br_cost_sim {
    const br_mega_prog *p;
    br_mega_target t;
    int64_t depth;
    double window; /* bytes that one worker can hold ahead */
    br_arena *a;
    br_status *st;
    br_mega_graph g;
    int64_t *sm; /* of every task */
    uint32_t n_tasks, n_workers;
    uint32_t *queue_off, *queue; /* worker -> its tasks, in list order */
    uint32_t *prev;              /* task -> the one before it on its worker */
    uint32_t *place;             /* task -> index in its queue */
    br_cost_work *work;
    uint8_t *region;       /* br_cost_region of every task */
    br_cost_piece *pieces; /* by worker, in queue order */
    uint32_t *piece_off;   /* worker -> its pieces */
    uint32_t *last_piece;  /* task -> its last one, or BR_COST_NONE */
    /* of pass 1: what happened, in order; times as in br_cost_piece */
    uint32_t *events;
    uint32_t n_events;
    double *late_time;
    double makespan;
} br_cost_sim;

#define BR_COST_NONE UINT32_MAX
/* An event is a number times BR_CE_KINDS plus one of these: of a piece, or of
 * a task. */
enum { BR_CE_PIECE, BR_CE_LATE, BR_CE_END, BR_CE_KINDS = 4 };

br_code br_cost_work_of(br_cost_sim *s); /* cost_work.c */
br_code br_cost_stream(br_cost_sim *s);  /* cost_sim.c: pass 1 */

#endif
