/* footprint.h - what an opcode asks of its operands, and what it touches.
 *
 * A buffer is seen as a matrix, its view:
 *
 *     shape []            1 x 1          [n]          1 x n
 *     shape [r, c]        r x c          [a, b, c]    a*b x c
 *     shape [a, b, c, d]  a x b*c*d      (a batch of caches: the slots of one
 *                                         position are then a rectangle)
 *
 * and every access is a rectangle of it. Only tiles (GEMV, GEMM), caches
 * (KV_APPEND, ATTENTION_TILE) and the slices of weights and biases that belong
 * to a tile are parts; all else is the whole buffer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_FOOTPRINT_H
#define BR_MEGA_FOOTPRINT_H

#include "mega/mega.h"

typedef struct br_mega_rect { /* half-open */
    int64_t r0, r1, c0, c1;
} br_mega_rect;

/* An operand as the rules see it. */
typedef struct br_op_val {
    const int64_t *shape;
    int64_t numel, rows, cols; /* the view; numel = rows * cols */
    int64_t last;              /* last dimension; 1 for a scalar */
    uint32_t rank;
    uint8_t dtype; /* br_mega_dtype, or BR_DT_F64 in a recipe */
    uint8_t kind;
    bool ok; /* every dimension >= 1, rank <= 4, no overflow */
} br_op_val;

/* An op with its operands and parameters; br_op_check fills the rest. */
typedef struct br_op_call {
    int op;
    uint32_t n_in;
    const br_op_val *in[BR_MEGA_MAX_INPUTS];
    const br_op_val *out;              /* NULL for NOP */
    uint32_t mask;                     /* parameters present */
    int64_t i[BR_MP_COUNT];            /* valid where the mask says so */
    double f[BR_MP_COUNT - BR_MP_eps]; /* reals: index p - BR_MP_eps */
    /* results */
    uint32_t partial; /* bit k: input k is read in part (r[k]); bit 31: the
                         output is written in part (w) */
    uint32_t unread;  /* bit k: input k names a place and is not read */
    br_mega_rect w, r[BR_MEGA_MAX_INPUTS];
    char why[200]; /* the rule that is broken */
    /* STEP_ opcodes: their operands are named by ids, each output is a part */
    const struct br_ir *graph;
    const br_mega_task *task;
    const br_op_val *outs[BR_MEGA_MAX_OUTPUTS];
    br_mega_rect ws[BR_MEGA_MAX_OUTPUTS];
} br_op_call;
#define BR_OP_PART_OUT (1u << 31)

void br_op_val_of(br_op_val *v, const br_mega_buffer *b);
/* Takes parameter p from its value; false when that has another type. */
bool br_op_param(br_op_call *c, int p, const br_json *v);
/* Arity, required and typed parameters are settled before. False: c->why. */
bool br_op_check(br_op_call *c);
/* May input k lie on the bytes of the output? So for ops that read an element
 * only to write the same element, with equal shapes and element sizes. */
bool br_op_in_place(const br_op_call *c, uint32_t k);
/* The same, told by the opcode alone: shapes are the caller's concern. */
bool br_op_elementwise(int op);

/* The rectangle of operand `operand` (an input, or with `write` an output)
 * that a task touches. False when the operand is not touched, or the task
 * breaks its op's rules; ids must be in range. */
bool br_mega_footprint(const br_mega_prog *p, const br_mega_task *t,
                       uint32_t operand, bool write, br_mega_rect *out);
/* The same with br_op_val_of of every buffer at hand. */
bool br_op_footprint(const br_mega_prog *p, const br_mega_task *t,
                     const br_op_val *vals, uint32_t operand, bool write,
                     br_mega_rect *out);

#endif
