/* sim_wcheck.h - the shadows that checks keep of a wave and of its work-group.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_WCHECK_H
#define BR_SIM_WCHECK_H

#include "drv/sim/sim_check.h"

/* Counters of what is out; LDS and scalar loads share one on gfx11. */
enum { C_LOAD, C_STORE, C_DS, C_KM, N_COUNTERS };
enum {
    NOTE_WAIT,
    NOTE_UNDEF,
    NOTE_RACE,
    NOTE_BARRIER,
    NOTE_HAZARD,
    NOTE_ORDER,
    NOTE_START
};

typedef struct counts {
    uint32_t issued, done; /* numbers 1 to done have come back */
} counts;

enum { SIM_ROW_WORDS = SIM_NO_WRITE / 64 + 1 };

typedef struct sim_wcheck {
    sim_bits s_def;  /* scalars that something wrote */
    sim_bits s_busy; /* may be; what nobody waits for */
    counts c[N_COUNTERS];
    uint64_t def, def_y; /* of the results of the instruction that runs */
    uint64_t barrier_pc;
    bool ended;
    /* hazards: how many came since the start, and the number of the one that
     * wrote or read last */
    uint32_t n_valu, n_trans, n_salu;
    uint32_t trans_last, trans_from;  /* of trans_at: the last; what counts is
                                        greater than this */
    uint32_t n_fwd, n_exec, fwd_from; /* of v_fwd: VALU, SALU that write EXEC */
    sim_bits s_seen; /* what VALU read, so that writes of it matter */
    sim_bits s_salu; /* of that, what SALU wrote since, at s_wrote */
    sim_bits s_valu; /* and what VALU wrote */
    const sim_op *last, *last_valu;
    /* By vector register a bit: a load may be out; all of `lanes` are in v_def. */
    uint64_t v_busy[SIM_ROW_WORDS], v_full[SIM_ROW_WORDS];
    uint64_t lanes; /* a bit for each of the wave's */
    /* From here on not all is cleared as a wave starts. */
    unsigned n_vgprs;    /* that it may use */
    uint64_t v_def[258]; /* lanes that something wrote; SIM_NO_READ */
    /* What says nothing before it is written: n_valu at the write of a trans
     * plus 1, n_trans there; by counter the number of the load that writes it
     * last, where busy; 0: none. */
    uint32_t trans_at[256], trans_no[256];
    uint32_t v_fwd[256],
        v_exec[256]; /* n_fwd at a VALU's write plus 1; n_exec */
    uint32_t v_flight[256][N_COUNTERS], s_flight[SIM_SGPRS][N_COUNTERS];
    uint32_t s_wrote[SIM_SGPRS]; /* n_salu + 1 */
    uint8_t *scratch;            /* a byte for each: written */
} sim_wcheck;

/* Who wrote and read it last: a wave's number plus one, 0: nobody, and which of
 * that wave's operations it was. */
typedef struct lds_word {
    uint32_t w_seq, r_seq;
    uint32_t meet; /* sim_meet.c; 0: no atomic was here */
    uint8_t w_wave, r_wave;
    bool defined, w_atomic;
} lds_word;

enum { SIM_GROUP_WAVES = 32 }; /* 1024 items of waves of 32 */

/* sim_meet.c: waves that wait for each other by atomics in LDS. */
typedef struct sim_meet {
    unsigned n;     /* waves */
    size_t n_words; /* that have had atomics */
    uint32_t waves[SIM_GROUP_WAVES][SIM_GROUP_WAVES];
    BR_VEC(uint32_t) seen; /* n of each word */
} sim_meet;
void sim_meet_begin(sim_meet *m, unsigned n); /* a new work-group */
/* Operation seq of a wave is an atomic of a word, whose slot is 0 at first. */
void sim_meet_at(sim_meet *m, unsigned wave, uint32_t seq, uint32_t *slot);

/* Of a wave's operations in LDS, which are numbered from 1. */
typedef struct lds_past {
    uint32_t before; /* the last that came before the last barrier */
    uint32_t done;   /* that it had waited for when it came to its last one */
} lds_past;

typedef struct sim_check {
    lds_word *lds;
    lds_past past[SIM_GROUP_WAVES];
    /* By number plus one, the less of both: what is behind a barrier for sure. */
    uint32_t safe[SIM_GROUP_WAVES + 1];
    sim_wcheck *waves;
    uint8_t *scratch;
    struct sim_said *said;
    sim_meet meet;
} sim_check;

/* sim_lds.c: a group begins; a wave comes to a barrier, all go on; a lane's access. */
void sim_lds_begin(sim_group *g);
void sim_lds_arrive(sim_wave *w);
void sim_lds_barrier(sim_group *g);
void sim_check_lds(sim_wave *w, const sim_touch *t);

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

static inline bool
sim_row_has(const uint64_t *b, unsigned r)
{
    return b[r / 64] >> r % 64 & 1;
}

static inline void
sim_row_put(uint64_t *b, unsigned r, bool on)
{
    b[r / 64] = (b[r / 64] & ~(1ull << r % 64)) | (uint64_t)on << r % 64;
}

/* The lanes of exec that def has are defined from now on, its others not. */
static inline void
sim_define(sim_wcheck *k, unsigned r, uint64_t exec, uint64_t def)
{
    k->v_def[r] = (k->v_def[r] & ~exec) | (def & exec);
    sim_row_put(k->v_full, r, !(k->lanes & ~k->v_def[r]));
}

/* Whether no load is out any more that writes the register: then it is free
 * from now on. sim_check.c */
bool sim_is_free(sim_wcheck *k, bool vector, unsigned reg);
/* A finding at the instruction that runs. */
void sim_note(sim_wave *w, unsigned kind, const char *fmt, ...) BR_PRINTF(3, 4);
void sim_hazards(sim_wave *w, const sim_op *o); /* sim_hazard.c */
/* What a wait says: of results of VALU and SALU, of memory. */
void sim_waited_alu(sim_wcheck *k, unsigned imm); /* sim_hazard.c */
void sim_waited(sim_wave *w, const sim_op *o);    /* sim_check.c */

#endif
