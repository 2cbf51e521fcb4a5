/* sim_wcheck.h - the shadows that checks keep of a wave and of its work-group.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_WCHECK_H
#define BR_SIM_WCHECK_H

#include "drv/sim/sim_int.h"

/* Counters of what is out; LDS and scalar loads share one on gfx11. */
enum { C_LOAD, C_STORE, C_DS, C_KM, N_COUNTERS };
enum {
    NOTE_WAIT,
    NOTE_UNDEF,
    NOTE_RACE,
    NOTE_BARRIER,
    NOTE_HAZARD,
    NOTE_ORDER
};

typedef struct counts {
    uint32_t issued, done; /* numbers 1 to done have come back */
} counts;

typedef struct sim_wcheck {
    uint64_t v_def[256]; /* lanes that something wrote */
    bool s_def[SIM_SGPRS];
    bool v_busy[256], s_busy[SIM_SGPRS]; /* may be; what nobody waits for */
    counts c[N_COUNTERS];
    uint64_t def, def_y; /* of the results of the instruction that runs */
    uint64_t barrier_pc;
    uint32_t ds_done; /* when it came to its last barrier */
    bool ended;
    /* hazards: how many came since the start, and the number of the one that
     * wrote or read last */
    uint32_t n_valu, n_trans, n_salu, settled;
    bool mask_read[SIM_SGPRS], valu_read[SIM_SGPRS];
    uint32_t salu_wrote[SIM_SGPRS]; /* n_salu + 1; 0: not, or waited for */
    bool valu_wrote[SIM_SGPRS];
    const sim_op *last, *last_valu;
    uint32_t trans_at[256]; /* n_valu at the write; 0: none */
    /* From here on what says nothing before it is written, and is not cleared:
     * by counter the number of the load that writes it last, where busy; 0:
     * none. n_trans at the write, where trans_at. */
    uint32_t v_flight[256][N_COUNTERS], s_flight[SIM_SGPRS][N_COUNTERS];
    uint32_t trans_no[256];
    uint8_t *scratch; /* a byte for each: written */
} sim_wcheck;

typedef struct lds_word {
    uint8_t w_wave, r_wave; /* its number plus one; 0: nobody */
    bool defined, w_atomic;
    unsigned w_phase, r_phase;
    uint32_t w_seq, r_seq;
} lds_word;

typedef struct sim_check {
    lds_word *lds;
    sim_wcheck *waves;
    uint8_t *scratch;
    struct sim_said *said;
} sim_check;

/* A finding at the instruction that runs. */
void sim_note(sim_wave *w, unsigned kind, const char *fmt, ...) BR_PRINTF(3, 4);
void sim_hazards(sim_wave *w, const sim_op *o); /* sim_hazard.c */

#endif
