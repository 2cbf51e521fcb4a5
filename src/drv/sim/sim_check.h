/* sim_check.h - the doors of sim_check.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_CHECK_H
#define BR_SIM_CHECK_H

#include "drv/sim/sim_int.h"

/* What a dispatch has reported: pc and kind. */
typedef struct sim_said {
    uint64_t key[BR_SIM_MAX_FINDINGS];
    unsigned n;
} sim_said;
/* Shadows of a work-group of up to n waves. */
br_code sim_check_new(sim_group *g, unsigned n, unsigned lanes, sim_said *said,
                      br_status *st) BR_MUST_USE;
void sim_check_free(sim_group *g);
void sim_check_group(sim_group *g); /* a new work-group begins */
/* A wave begins: n SGPRs are set up, of which those in set have a value, and so many
 * VGPRs are its own. */
void sim_check_start(sim_wave *w, unsigned n, uint64_t set, unsigned vgprs);
/* sim_quick.c: fills o->uses as it is decoded. */
void sim_uses_find(sim_op *o, const br_gcn_isa *isa);
/* True: nothing is wrong with an instruction, and what it writes is noted, but
 * for memory's. Else the two below have a look. */
bool sim_check_quick(sim_wave *w, const sim_op *o);
bool sim_check_before(sim_wave *w, const sim_op *o);
void sim_check_after(sim_wave *w, const sim_op *o);
void sim_check_end(sim_wave *w);
void sim_check_barrier(sim_group *g); /* all waves passed one */
/* Bytes of LDS or of a lane's scratch. */
typedef struct sim_touch {
    bool lds, write, atomic;
    unsigned lane, bytes;
    uint64_t at;
} sim_touch;
void sim_check_access(sim_wave *w, const sim_touch *t);
/* LDS, of each lane of exec; t's lane and place are changed. */
void sim_check_lanes(sim_wave *w, sim_touch *t, uint64_t exec,
                     const uint64_t *at);
/* Whole words of LDS, one after another. False: nothing is noted, and lane by lane
 * will tell why. */
bool sim_check_row(sim_wave *w, bool write, uint64_t at, uint64_t bytes);

#endif
