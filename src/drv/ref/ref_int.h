/* ref_int.h - how opcodes see their bindings in the reference tier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_REF_INT_H
#define BR_REF_INT_H

#include "drv/ref/ref.h"
#include "mega/step.h"

/* A binding as memory: rows of columns that stand together. Columns that do
 * not are gathered before the opcode runs and scattered after. */
typedef struct ref_view {
    union {
        float *f;
        int32_t *i;
    };
    size_t stride; /* numbers from a row to the next; 0: one row for all */
    int64_t cols;
    const br_ir_value *v;    /* NULL: binding left out */
    const br_gguf_tensor *t; /* a matrix of the model */
    const br_state_place *place;
} ref_view;

/* What an opcode runs on. */
typedef struct ref_call {
    const br_ir_node *n;
    int64_t c0, c1; /* of the node's columns (mega/step.h) */
    ref_view in[BR_IR_MAX_BINDINGS], out[BR_IR_MAX_BINDINGS];
    const br_step *step;
    br_state *state;
    br_ref_act act;
    struct ref_scratch *s;
    uint32_t worker;
} ref_call;

/* Memory that an opcode may use while it runs. */
typedef struct ref_scratch {
    float *row; /* a dequantised row of a matrix */
    /* with quantised activations: */
    struct br_qint *blocks; /* a row of a matrix */
    int8_t *xq;             /* rows of activations, */
    float *xd;              /* the scales of their blocks */
    float *att;             /* widest head, and 256 scores */
    float *wide[4];         /* [widest row] */
} ref_scratch;

typedef struct ref_worker {
    ref_scratch scratch;
    float *gather[BR_IR_MAX_BINDINGS];
} ref_worker;

struct br_ref {
    br_arena arena;
    br_ref_config c;
    br_values v;
    ref_worker *worker;       /* [c.workers] */
    const br_mega_prog *prog; /* NULL: node by node */
    struct ref_tile *tile;    /* of each task */
    br_mega_walk *walk;
    br_mega_runner *runner;
    uint64_t n_steps;
    br_watch watch;
};

/* A task: columns of a node. */
typedef struct ref_tile {
    const br_ir_node *n; /* NULL: joins counters */
    int64_t c0, c1;
} ref_tile;
/* A step at work, and a tile of it. */
typedef struct ref_round {
    br_ref *r;
    br_state *s;
    const br_step *step;
} ref_round;
void ref_run(const ref_round *x, ref_worker *w, const ref_tile *tile);
void *ref_get(br_ref *r, size_t n, size_t size); /* zeroed, or NULL */
br_code ref_no_memory(br_status *st);
/* ref_prog.c */
br_code ref_place_pages(br_ref *r, br_status *st) BR_MUST_USE;
br_code ref_prepare_program(br_ref *r, br_status *st) BR_MUST_USE;
br_code ref_run_program(ref_round *x, br_status *st) BR_MUST_USE;

static inline float *
ref_row(const ref_view *v, size_t t)
{
    return v->f + t * v->stride;
}

/* y[n] = dot(row n of matrix `slice` of w, x), from <= n < to, for rows of x. */
typedef struct ref_mat {
    const br_gguf_tensor *t;
    uint64_t n_out, n_in; /* rows and columns of a slice */
    uint64_t slice;
    uint64_t from, to; /* of its rows: all, unless the caller says less */
} ref_mat;
ref_mat ref_matrix(const ref_view *w, uint64_t slice);
void ref_matmul(ref_call *c, const ref_mat *m, const ref_view *x, size_t t0,
                size_t n_rows, const ref_view *y);
void ref_matmul_quantised(ref_call *c, const ref_mat *m, const ref_view *x,
                          size_t t0, size_t n_rows, const ref_view *y);
/* A block of activations (returns d), and its product with one of weights. */
float ref_quantise(const float *x, int8_t *q, size_t n);
float ref_block_dot(const struct br_qint *w, const int8_t *q, float d);
void ref_matrix_row(const ref_mat *m, uint64_t n, float *out);

/* ref_ops.c ref_att.c ref_moe.c ref_ssm.c */
void ref_rms_norm_row(const float *x, const float *w, float *y, int64_t n,
                      float eps);
void ref_norm(const ref_call *c, const ref_view *x, const ref_view *w,
              const ref_view *y);
void ref_op(ref_call *c);
/* What TEMP_SCALE multiplies the row of a position by. */
float ref_temperature(const br_ir_node *n, int32_t position);
void ref_op_attention(ref_call *c);
void ref_op_kv_write(ref_call *c);
/* Columns c0 to c1 - 1 of y: those of x as the state keeps them. */
void ref_kv_round(const br_state *s, const float *x, float *y, int64_t c0,
                  int64_t c1);
void ref_op_gate_topk(ref_call *c);
void ref_op_pick(ref_call *c); /* its end: the logits are there */
void ref_op_gate_up(ref_call *c);
void ref_op_moe_act(ref_call *c);
void ref_op_down_acc(ref_call *c);
void ref_op_shared(ref_call *c);
void ref_op_conv1d(ref_call *c);
void ref_op_delta(ref_call *c);
void ref_op_scan(ref_call *c);
void ref_op_gated_norm(ref_call *c);
float *ref_kv_row(ref_call *c, const ref_view *v, int32_t slot, int32_t pos);
float *ref_slot_state(const ref_call *c, const ref_view *v, size_t t);
/* The call's heads of row t, normed and turned, at their columns of y. */
void ref_norm_rope_row(const ref_call *c, size_t t, float *y);

#endif
