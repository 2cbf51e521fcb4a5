/* sim_crowd.h - threads of the host that run a dispatch's work-groups.
 *
 *     dispatch --runs groups alone--> WAKE_AFTER instructions --> helpers wake
 *     each thread: the next group that nobody has, to its end
 *
 * Each has its own decoded code, registers and LDS; memory alone is shared, as
 * it is between compute units. Without check only: the clocks of waves that
 * checks keep are one history, which has one author.
 *
 * What a kernel without races leaves is the same with any number of threads;
 * where groups race by atomics, who is first is not, as on a card. What is
 * reported is the group of the least number that faults: groups before it run to
 * their end, those after it stop.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_CROWD_H
#define BR_SIM_CROWD_H

#include "base/thread.h"
#include "drv/sim/sim_int.h"

enum { SIM_MAX_THREADS = 64 };

/* What the threads of a dispatch tell each other. */
typedef struct sim_share {
    uint64_t groups;        /* of the dispatch */
    _Atomic uint64_t next;  /* the first that nobody has taken */
    _Atomic uint64_t bad;   /* the least that failed; UINT64_MAX: none */
    _Atomic int64_t late;   /* turns until groups before it end, too */
    _Atomic uint64_t steps; /* instructions of all, for max_steps */
    br_mutex lock;          /* guards what is behind */
    br_kfault fault;        /* of that group, as is the sentence */
    br_status st;
} sim_share;

void sim_share_begin(sim_share *h, uint64_t groups, uint64_t steps);
/* The next group; false: there is none to begin. */
bool sim_share_take(sim_share *h, uint64_t *nth);
/* A group failed; UINT64_MAX - 1: no one group. */
void sim_share_fail(sim_share *h, uint64_t nth, const br_status *st,
                    br_kfault fault);
/* Whether a group has to end since another failed. */
bool sim_share_ends(sim_share *h, uint64_t nth);

typedef struct sim_crowd sim_crowd;
/* n threads beside the caller's, asleep. NULL: no memory, or no threads. */
sim_crowd *sim_crowd_new(unsigned n);
/* Nobody runs. */
void sim_crowd_free(sim_crowd *c);
sim_share *sim_crowd_share(sim_crowd *c);
/* They begin to take groups of the packet; s stays as it is until they are
 * awaited. */
void sim_crowd_wake(sim_crowd *c, const br_sim *s, const br_aql_packet *p);
/* Until nobody runs; what they counted is s's from then on. */
void sim_crowd_await(sim_crowd *c, br_sim *s);

/* sim_run.c: groups of a dispatch that others take, too, until there are none. */
void sim_help(br_sim *s, const br_aql_packet *p, sim_share *h);

#endif
