/* ref.h - the reference tier: plain C, the oracle of every other.
 *
 * What each opcode computes, to the bit, is docs/arithmetic.md; this folder is
 * that document in C. Logits of a row depend on its sequence alone: not on
 * what else is in the step, how the prompt was cut, or which pages it got.
 *
 *     br_ref_prepare(&r, model, graph, &config, &st)    once
 *     br_state_new(&s, graph, BR_Q_F32, n_slots, n_pages, &st)
 *     br_ref_step(r, s, &step, logits, &st)             per step
 *
 * One thread, unless a runner brings more. SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_REF_H
#define BR_REF_H

#include "drv/state.h"
#include "drv/values.h"
#include "mega/walk.h"

typedef enum br_ref_act {
    BR_REF_F32,       /* activations stay f32: a model's mathematics */
    BR_REF_QUANTISED, /* the contract's: rounded where weights are integers */
} br_ref_act;

/* Who computes tiles in place of this folder: op(ctx, call) for each, by several
 * workers at once. */
struct ref_call;
typedef struct br_ref_bodies {
    void (*op)(void *ctx, struct ref_call *c);
    void *ctx;
} br_ref_bodies;

typedef struct br_ref_config {
    br_ref_act act;
    uint32_t max_rows; /* of a step; a program says it itself */
    /* Runs the tasks of this program, whose graph is the graph; it has passed
     * the sound check. NULL: node by node. The bits are the same. */
    const struct br_mega_prog *program;
    /* 0: tasks in list order; else in an order drawn anew from it for each
     * step, any that the counters allow */
    uint64_t order;
    const br_ref_bodies *bodies; /* NULL: this folder's */
    uint32_t workers;            /* of a runner, at most; 0: 1 */
    uint64_t max_bytes;          /* for values and scratch; 0: no limit */
} br_ref_config;

typedef struct br_ref br_ref;

/* Model and graph outlive it. */
br_code br_ref_prepare(br_ref **out, const br_model *m, const br_ir *g,
                       const br_ref_config *c, br_status *st) BR_MUST_USE;
void br_ref_free(br_ref *r);
/* logits: [rows that want them][n_vocab], in the order of the rows. */
br_code br_ref_step(br_ref *r, br_state *s, const br_step *step, float *logits,
                    br_status *st) BR_MUST_USE;
/* What the head read of each row of the latest step, [n_rows][n_embd]. */
const float *br_ref_hidden(const br_ref *r);
int64_t br_ref_n_vocab(const br_ref *r);
/* Who runs the program's tasks from now on, by at most the config's workers. */
void br_ref_run_by(br_ref *r, br_mega_runner *runner);
/* From now on; NULL: nobody. */
void br_ref_watch(br_ref *r, const br_watch *w);

/* The tier as an executor (drv.h); threads is 1 whatever is asked. */
extern const br_exec_ops br_ref_exec;

/* ---- arithmetic (ref_math.c, ref_dot.c): docs/arithmetic.md section 2 --- */

float br_ref_exp(float x);
float br_ref_log(float x);
float br_ref_log1p(float x); /* 0 <= x <= 1 */
float br_ref_tanh(float x);
/* sin and cos of n * f, the product exact. */
void br_ref_sincos(float n, float f, float *sin, float *cos);
float br_ref_rsqrt(float x);
float br_ref_sigmoid(float x);
float br_ref_softplus(float x);
float br_ref_silu(float x);
float br_ref_gelu(float x);          /* tanh form */
float br_ref_act1(int act, float x); /* br_act, one number */
float br_ref_glu1(int act, float gate, float up);
float br_ref_dot(const float *a, const float *b, size_t n);

#endif
