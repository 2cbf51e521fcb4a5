/* cpu_ops.h - what the CPU tier computes beside matrices, one table for each
 * instruction set.
 *
 * Every function but attend_pairs yields the bits that docs/arithmetic.md
 * fixes, so those of the ref tier, on every instruction set: sixteen lanes are
 * enough for vectors to be as fast as caches feed them, and nothing is left to
 * trade for speed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_OPS_H
#define BR_CPU_OPS_H

#include "drv/cpu/cpu_mat.h"
#include "drv/state.h"

enum {
    BR_CPU_BLOCK = 256,    /* keys of a block of attention */
    BR_CPU_LINES = 64,     /* heads of queries that go through keys together */
    BR_CPU_LINES_F32 = 32, /* as many as are good for attend() */
    BR_CPU_HEADS = 4,      /* heads of keys that are read side by side */
};

/* A head of queries of a row. */
typedef struct br_cpu_line {
    const float *q;    /* [head_k] */
    float *y;          /* [head_v] */
    const float *sink; /* or NULL */
    int32_t lo, pos;   /* keys seen: lo..pos */
} br_cpu_line;

/* Lines that share a head of keys, of one slot, or as many of each of some heads
 * that lie beside each other. A head's part of a page:
 *
 *   k [head_k][16 tokens]   16 keys are a vector: no sum across lanes
 *   v [16 tokens][head_v]
 *
 * Without v, values are the first columns of keys, and keys lie as values do:
 * such heads are wide, and one row of keys serves many of them.
 *
 * Q8_0: the signed bytes in that order, then their scales in F16, one for each
 * 32 columns, in the same order: [head_k / 32][16 tokens], [16][head_v / 32].
 *
 * Several tiles can share the lines: with `kept`, attend() goes through blocks
 * b0 to b1 - 1 alone and leaves what each comes to, or as_one, as block b1 - 1,
 * what all of them do; fold() makes y of what is kept. */
typedef struct br_cpu_att {
    br_cpu_line line[BR_CPU_LINES];
    uint32_t n;
    uint32_t heads;        /* n / heads lines each; 0: one. br_cpu_att_fit */
    const uint32_t *pages; /* of the slot and group */
    const uint8_t *pool;
    size_t page_bytes, k_at, v_at; /* in bytes; of the first head in a page */
    int kv; /* BR_Q_F32, F16 or Q8_0; the latter: heads of whole blocks */
    bool has_v, sheets; /* pages lie in sheets (state.h) */
    bool once;          /* br_calls_stay; for speed alone */
    bool as_one;        /* b0 is the first that a line sees */
    uint32_t head_k, head_v;
    float scale, cap; /* cap 0: none */
    float *s;         /* scratch of br_cpu_att_floats */
    float *kept;      /* [n][n_kept blocks from kept_from on][head_v + 2]: all
                       * that is to fold() */
    uint32_t n_kept;
    int32_t kept_from, b0, b1;
} br_cpu_att;

/* From a line's scratch to the next one's: an odd number of cache lines, so
 * that 32 of them do not meet in an eighth of the first cache's sets. Of scores
 * it is a constant, which needs no register. */
enum { BR_CPU_SCORES = BR_CPU_BLOCK + 16 };

static inline size_t
br_cpu_att_line(size_t head_v)
{
    return (((2 * head_v + 15) / 16) | 1) * 16;
}

static inline size_t
br_cpu_att_floats(size_t head_k, size_t head_v)
{
    return BR_CPU_LINES * (BR_CPU_SCORES + br_cpu_att_line(head_v) + head_k) +
           BR_CPU_BLOCK / 2 * (head_k + BR_MAX(head_k, head_v)) + 16;
}

/* Does the scratch have room for so many lines of each of so many heads? */
static inline bool
br_cpu_att_fit(size_t heads, size_t lines)
{
    return heads <= BR_CPU_HEADS &&
           heads * ((lines + 3) / 4 * 4) <= BR_CPU_LINES;
}

/* Heads that attend_pairs() multiplies in BF16, if they have values. */
static inline bool
br_cpu_att_pairs(int kv, uint32_t head_k, uint32_t head_v)
{
    return kv == BR_Q_F16 && head_k % 16 == 0 && head_v % 16 == 0;
}

/* One head of one row, one step of the delta rule. */
typedef struct br_cpu_delta {
    float *s; /* [n keys][n values] */
    const float *q, *k, *v;
    float decay, beta;
    float *d, *y; /* [n] */
    size_t n;
} br_cpu_delta;

typedef enum br_cpu_two { BR_CPU_ADD, BR_CPU_MUL } br_cpu_two;

typedef struct br_cpu_ops {
    float (*dot)(const float *a, const float *b, size_t n);
    void (*norm)(const float *x, const float *w, float *y, size_t n, float eps);
    /* br_act of x, times up where it is given; OAI needs it. */
    void (*act)(int act, const float *x, const float *up, float *y, size_t n);
    void (*softcap)(const float *x, float *y, size_t n, float cap);
    void (*two)(br_cpu_two op, const float *a, const float *b, float *y,
                size_t n);
    void (*scale)(const float *x, float *y, size_t n, float by);
    /* y = x * by + y, one rounding */
    void (*axpy)(const float *x, float by, float *y, size_t n);
    /* pairs of u and v: y = x turned by (c, s) */
    void (*turn)(const float *u, const float *v, const float *c, const float *s,
                 float *yu, float *yv, size_t n);
    /* the same of neighbours: x[2 i] and x[2 i + 1] */
    void (*turn_pairs)(const float *x, const float *c, const float *s, float *y,
                       size_t n);
    void (*to_f16)(const float *x, uint16_t *y, size_t n);
    void (*attend)(const br_cpu_att *a);
    /* With products in BF16 where br_cpu_att_pairs says so; br_isa_pairs. */
    void (*attend_pairs)(const br_cpu_att *a);
    void (*fold)(const br_cpu_att *a); /* pages are not looked at */
    void (*delta)(const br_cpu_delta *d);
    /* row = b * xd + row * decay */
    void (*scan)(float *row, const float *b, float xd, float decay, size_t n);
} br_cpu_ops;

extern const br_cpu_ops br_cpu_ops_c;
#if defined __x86_64__
extern const br_cpu_ops br_cpu_ops_avx2, br_cpu_ops_avx512;
#elif defined __aarch64__
extern const br_cpu_ops br_cpu_ops_neon;
#endif
/* An instruction set that is here. */
const br_cpu_ops *br_cpu_ops_of(br_isa isa);

#endif
