/* sim_wcheck.h - the shadows that checks keep of a wave and of its work-group.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_WCHECK_H
#define BR_SIM_WCHECK_H

#include "drv/sim/sim_int.h"

/* Counters of what is out; LDS and scalar loads share one on gfx11. */
enum { C_LOAD, C_STORE, C_DS, C_KM, N_COUNTERS };
enum { NOTE_WAIT, NOTE_UNDEF, NOTE_RACE, NOTE_BARRIER, NOTE_HAZARD };

typedef struct counts {
    uint32_t issued, done; /* numbers 1 to done have come back */
} counts;

typedef struct sim_wcheck {
    uint64_t v_def[256]; /* lanes that something wrote */
    bool s_def[SIM_SGPRS];
    /* By counter the number of the load that writes it last; 0: none. */
    uint32_t v_flight[256][N_COUNTERS], s_flight[SIM_SGPRS][N_COUNTERS];
    counts c[N_COUNTERS];
    uint64_t def, def_y; /* of the results of the instruction that runs */
    uint64_t barrier_pc;
    uint32_t ds_done; /* when it came to its last barrier */
    uint8_t *scratch; /* a byte for each: written */
    bool ended;
    /* hazards: how many came since the start, and the number of the one that
     * wrote or read last */
    uint32_t n_valu, n_trans, n_salu, settled;
    uint32_t trans_at[256], trans_no[256]; /* n_valu, n_trans at the write */
    bool mask_read[SIM_SGPRS], valu_read[SIM_SGPRS];
    uint32_t salu_wrote[SIM_SGPRS]; /* n_salu + 1; 0: not, or waited for */
    bool valu_wrote[SIM_SGPRS];
    const sim_op *last, *last_valu;
} sim_wcheck;

typedef struct lds_word {
    uint8_t w_wave, r_wave; /* its number plus one; 0: nobody */
    bool defined, w_atomic;
    unsigned w_phase, r_phase;
    uint32_t w_seq;
} lds_word;

typedef struct sim_check {
    lds_word *lds;
    sim_wcheck *waves;
    uint8_t *scratch;
    uint64_t said[BR_SIM_MAX_FINDINGS]; /* pc and kind */
    unsigned n_said;
} sim_check;

/* A finding at the instruction that runs. */
void sim_note(sim_wave *w, unsigned kind, const char *fmt, ...) BR_PRINTF(3, 4);
void sim_hazards(sim_wave *w, const sim_op *o); /* sim_hazard.c */

#endif
