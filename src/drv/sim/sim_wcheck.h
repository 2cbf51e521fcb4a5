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
    sim_bits s_def;  /* scalars that something wrote */
    sim_bits s_busy; /* may be; what nobody waits for */
    counts c[N_COUNTERS];
    uint64_t def, def_y; /* of the results of the instruction that runs */
    uint64_t barrier_pc;
    uint32_t ds_done; /* when it came to its last barrier */
    bool ended;
    /* hazards: how many came since the start, and the number of the one that
     * wrote or read last */
    uint32_t n_valu, n_trans, n_salu;
    uint32_t trans_last, trans_from; /* of trans_at: the last; what counts is
                                        greater than this */
    sim_bits s_seen; /* what VALU read, so that writes of it matter */
    sim_bits s_salu; /* of that, what SALU wrote since, at s_wrote */
    sim_bits s_valu; /* and what VALU wrote */
    const sim_op *last, *last_valu;
    /* From here on not all is cleared as a wave starts. */
    unsigned n_vgprs;    /* that it may use */
    uint64_t v_def[258]; /* lanes that something wrote; SIM_NO_READ */
    bool v_busy[258];
    /* What says nothing before it is written: n_valu at the write of a trans
     * plus 1, n_trans there; by counter the number of the load that writes it
     * last, where busy; 0: none. */
    uint32_t trans_at[256], trans_no[256];
    uint32_t v_flight[256][N_COUNTERS], s_flight[SIM_SGPRS][N_COUNTERS];
    uint32_t s_wrote[SIM_SGPRS]; /* n_salu + 1 */
    uint8_t *scratch;            /* a byte for each: written */
} sim_wcheck;

typedef struct lds_word {
    uint8_t w_wave, r_wave; /* its number plus one; 0: nobody */
    bool defined, w_atomic;
    unsigned w_phase, r_phase;
    uint32_t w_seq, r_seq;
    uint32_t meet; /* sim_meet.c; 0: no atomic was here */
} lds_word;

enum { SIM_MEET_WAVES = 64 };
typedef struct sim_known {
    uint32_t seen[SIM_MEET_WAVES]; /* of each wave, operations in LDS */
} sim_known;

/* sim_meet.c: waves that wait for each other by atomics in LDS. */
typedef struct sim_meet {
    unsigned n; /* waves */
    uint32_t seen[SIM_MEET_WAVES][SIM_MEET_WAVES];
    BR_VEC(sim_known) words;
} sim_meet;
void sim_meet_begin(sim_meet *m, unsigned n); /* a new work-group */
/* Operation seq of a wave is an atomic of a word, whose slot is 0 at first. */
void sim_meet_at(sim_meet *m, unsigned wave, uint32_t seq, uint32_t *slot);

typedef struct sim_check {
    lds_word *lds;
    sim_wcheck *waves;
    uint8_t *scratch;
    struct sim_said *said;
    sim_meet meet;
} sim_check;

static inline bool
sim_bits_has(const sim_bits *b, unsigned r)
{
    return b->b[r / 64] >> r % 64 & 1;
}

static inline void
sim_bits_put(sim_bits *b, unsigned r, bool on)
{
    b->b[r / 64] = (b->b[r / 64] & ~(1ull << r % 64)) | (uint64_t)on << r % 64;
}

/* Whether no load is out any more that writes the register: then it is free
 * from now on. sim_check.c */
bool sim_is_free(sim_wcheck *k, bool vector, unsigned reg);
/* A finding at the instruction that runs. */
void sim_note(sim_wave *w, unsigned kind, const char *fmt, ...) BR_PRINTF(3, 4);
void sim_hazards(sim_wave *w, const sim_op *o); /* sim_hazard.c */

#endif
