/* sim_order.h - the doors of sim_order.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_ORDER_H
#define BR_SIM_ORDER_H

#include "drv/sim/sim_int.h"

/* Of a dispatch: up to `groups` work-groups at once of `waves` waves. *out is
 * NULL or that of a dispatch before, whose memory is used again. */
br_code sim_order_new(sim_order **out, unsigned groups, unsigned waves,
                      bool shared_l0, br_status *st) BR_MUST_USE;
void sim_order_free(sim_order *r);
void sim_order_start(sim_wave *w); /* a wave begins */
void sim_order_end(sim_wave *w);

/* Bytes of memory that lanes read or write. */
typedef struct sim_reach {
    uint64_t at;
    unsigned bytes;
    bool write, atomic, scalar;
} sim_reach;
void sim_order_access(sim_wave *w, const sim_op *o, const sim_reach *t);
/* The same of each lane of exec, off[lane] behind t->at. */
void sim_order_lanes(sim_wave *w, const sim_op *o, const sim_reach *t,
                     uint64_t exec, const uint64_t *off);
/* Invalidations and write-backs, when they are issued. */
void sim_order_cache(sim_wave *w, const sim_op *o);
void sim_order_waited(sim_wave *w);   /* after a wait */
void sim_order_arrive(sim_wave *w);   /* at a barrier */
void sim_order_barrier(sim_group *g); /* all have arrived */

#endif
