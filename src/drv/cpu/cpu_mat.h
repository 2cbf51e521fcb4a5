/* cpu_mat.h - the CPU tier's matrices: packed weights times activations.
 *
 *   br_mat_plan   type and shape -> sizes, and what activations have to be
 *   br_mat_pack   a tensor's bytes -> panels of 16 outputs, k interleaved
 *   br_act_row    one row of f32 activations -> the form that m.form names
 *   br_mat_mul    any rows times any outputs o0..o1, one thread's share
 *
 *   plan once, pack once per tensor (or map packed bytes that somebody kept:
 *   BR_MAT_LAYOUT names the layout, panel_bytes and `tight` differ by
 *   instruction set);
 *   per step one br_act_row per row and form, shared by every matrix that
 *   reads the row; then each worker multiplies its own range of outputs.
 *
 * The bits of an output depend on its weights and its row alone: not on the
 * other rows, how outputs are split, or the thread. Beside quantised weights
 * with a form in integers (model/qint.h) they are those of docs/arithmetic.md
 * section 3 on every instruction set, and so those of the ref tier with
 * --act quantised; beside other weights those of the float dot. One exception,
 * off with `exact`: BF16 where an instruction multiplies it and that is faster.
 *
 * Nothing here allocates, locks or keeps state: call from any thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_MAT_H
#define BR_CPU_MAT_H

#include "model/quant.h"

enum {
    BR_MAT_PANEL = 16, /* outputs that are packed together; split work there */
    BR_MAT_ALIGN = 64, /* of packed weights and of rows of activations */
    BR_MAT_LAYOUT = 3, /* changes when packed bytes do */
    BR_MAT_MAX_IN = 1 << 20, /* columns of a matrix */
};

/* Instruction sets, worst first. */
typedef enum br_isa {
    BR_ISA_C,
    BR_ISA_AVX2,   /* and FMA, F16C */
    BR_ISA_AVX512, /* F, BW, DQ, VL, VNNI; BF16 where it is there */
    BR_ISA_AMX,    /* AVX512, and tiles of bytes */
    BR_ISA_NEON,   /* and sdot: Armv8.2 */
    BR_ISA_COUNT
} br_isa;

const char *br_isa_name(br_isa isa); /* "avx2" */
bool br_isa_here(br_isa isa);        /* does this machine have it? */
br_isa br_isa_best(void);
/* Does it multiply pairs of BF16? And faster than f32? */
bool br_isa_pairs(br_isa isa);
bool br_isa_pairs_pay(br_isa isa);
/* Does a call for a line wait for a place in the first cache, that is, is none
 * forgotten? */
bool br_calls_stay(void);

/* Forms of activations. */
typedef enum br_form {
    BR_FORM_F32,
    BR_FORM_Q32,  /* integers, a scale for 32 */
    BR_FORM_Q256, /* integers, a scale for 256 */
    BR_FORM_BF16,
    BR_FORM_COUNT
} br_form;

typedef struct br_mat {
    int type; /* br_qtype */
    br_isa isa;
    br_form form;
    uint32_t n_in, n_out;
    uint32_t near_bytes;  /* the first cache, which kernels share out */
    uint32_t ahead;       /* of one or two rows: how far a stream is called */
    uint32_t pages;       /* and its pages; 0: they are not */
    uint32_t slow_rows;   /* so many: lines go to the second cache */
    uint32_t rows_bytes;  /* of rows that go through a panel together */
    bool tight;           /* BF16 in twelve bits, without loss: mat_tight.h */
    uint64_t panel_bytes; /* 16 outputs */
    uint64_t bytes;       /* all panels; the last one is padded; spares */
    const uint8_t *data;  /* packed; the caller sets it, 64-aligned */
} br_mat;

typedef struct br_mat_desc {
    int type;
    uint64_t n_in, n_out; /* a tensor of n_out rows of n_in */
    br_isa isa;
    bool exact; /* the bits of the ref tier for BF16 too */
    bool loose; /* BF16 as it is: it does not fit twelve bits, or may not */
    bool pairs; /* BF16 by its instruction even where f32 is faster */
} br_mat_desc;

/* Sizes of a matrix; data is left NULL. FORMAT: a type that is no weight, or
 * rows that are no whole blocks; LIMIT: too large. */
br_code br_mat_plan(br_mat *m, const br_mat_desc *d, br_status *st) BR_MUST_USE;

/* As if it had been planned as `loose`. */
void br_mat_loosen(br_mat *m);

/* near_bytes to rows_bytes as this machine is taken for: for speed alone. */
void br_mat_speeds(br_mat *m);

/* Packs panels p0..p1 (panel p: outputs 16 p ..) of the tensor at raw, as it
 * lies in a file, into dst, m->bytes for the whole matrix, zero before if it is
 * tight. False: it is, and does not fit; it has to be planned as `loose`. */
bool br_mat_pack(const br_mat *m, const uint8_t *raw, uint8_t *dst, uint32_t p0,
                 uint32_t p1) BR_MUST_USE;
static inline uint32_t
br_mat_panels(const br_mat *m)
{
    return (m->n_out + BR_MAT_PANEL - 1) / BR_MAT_PANEL;
}

/* Bytes of one row of activations in a form, a multiple of 64. */
size_t br_act_bytes(br_form form, uint32_t n_in);
/* x: n_in numbers; row: 64-aligned. */
void br_act_row(br_isa isa, br_form form, const float *x, uint32_t n_in,
                uint8_t *row);

typedef struct br_mul {
    const br_mat *m;
    const uint8_t *act; /* rows br_act_bytes(m->form, m->n_in) apart */
    uint32_t n_rows;
    const uint32_t *row;     /* rows of act and out to take; NULL: 0.. */
    const uint32_t *out_row; /* NULL: the same as row */
    uint32_t o0, o1;         /* outputs; best at multiples of 16 */
    float *out;              /* output o of row r: out[r * out_stride + o] */
    size_t out_stride;
    /* Room for panels of a tight matrix as they were, 64-aligned and
     * br_mat_loose_bytes at least: 5 % of hundreds of rows. NULL: none. */
    uint8_t *loose;
    size_t loose_bytes;
} br_mul;

size_t br_mat_loose_bytes(const br_mat *m);

void br_mat_mul(const br_mul *job);

#endif
