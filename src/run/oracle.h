/* oracle.h - logits of a token sequence, from one of the tiers.
 *
 * Everything that lies between a model and its logits in one object: graphs,
 * their executors, one state, pages. For `brass logits`, for tests, and for
 * whoever wants to know what the right answer is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ORACLE_H
#define BR_ORACLE_H

#include "drv/cpu/cpu.h"
#include "drv/cuda/cuda_nodes.h"
#include "drv/ref/ref.h"
#include "run/kv.h"

typedef struct br_oracle_config {
    br_ref_act act;
    uint32_t n_ctx;    /* tokens a slot can hold; 0: 256 */
    uint32_t n_tokens; /* tokens that all can hold; 0: each as many */
    uint32_t n_slots;  /* 0: 1 */
    uint32_t max_rows; /* of a step; 0: 64 */
    /* Not 0: the graphs are lowered for so many workers, in tiles of so many
     * columns (0: what fits), and their tasks run in the order drawn from
     * `order` (0: as listed). No bit of the logits changes. */
    uint32_t workers, tile;
    bool fused; /* the graphs pass through br_ir_fuse; no bit changes either */
    uint64_t order;
    uint32_t max_want; /* of them that want logits; 0: all */
    /* NULL: the reference tier. Else the CPU tier by these threads, whose act
     * is quantised. */
    br_cpu_pool *pool;
    br_nd_where gpu;             /* its tier, node by node; no pool then */
    uint64_t gpu_memory;         /* memory of br_cun_config */
    enum br_cun_dense gpu_dense; /* dense of it */
    uint32_t gpu_timeout_s;
    bool exact; /* the reference tier's bits */
    /* What keys and values are kept as, on either tier: BR_Q_F32, F16, Q8_0.
     * F16 and Q8_0 change bits, the same ones on both. */
    int kv;
    br_cpu_cache cache;
    /* Weights that are packed; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    const _Atomic bool *stop; /* as br_lm_config's */
} br_oracle_config;

typedef struct br_oracle {
    const br_model *model;
    br_oracle_config c;
    br_ir *graph[BR_IR_STAGE_COUNT];
    struct br_mega_prog *program[BR_IR_STAGE_COUNT];
    br_ref *ref[BR_IR_STAGE_COUNT];
    br_state *state;
    br_cpu *cpu;
    br_cun *cun; /* has a state of its own, on the device */
    br_kv *kv;
} br_oracle;

/* The model outlives it. */
br_code br_oracle_open(br_oracle *o, const br_model *m,
                       const br_oracle_config *c, br_status *st) BR_MUST_USE;
void br_oracle_close(br_oracle *o);
/* An empty sequence in the slot. */
void br_oracle_reset(br_oracle *o, uint32_t slot);
/* Appends n tokens, which get positions from, from + 1, ...: in steps of
 * `chunk` rows (0: as many as fit). logits: [n][n_vocab], or NULL. */
br_code br_oracle_feed(br_oracle *o, uint32_t slot, uint32_t from,
                       const int32_t *tokens, uint32_t n, uint32_t chunk,
                       float *logits, br_status *st) BR_MUST_USE;
/* A step of the caller's making; pages are found for it. logits: [rows that
 * want them][n_vocab], in the order of the rows. */
br_code br_oracle_step(br_oracle *o, br_step *step, br_ir_stage stage,
                       float *logits, br_status *st) BR_MUST_USE;
/* The same on tier cuda, with draws in place of logits (br_cun_next). */
br_code br_oracle_draw(br_oracle *o, br_step *step, const br_cun_pick *p,
                       uint32_t n, int32_t *out, br_status *st) BR_MUST_USE;
/* As br_oracle_step, and the pages are the caller's. */
br_code br_oracle_run(br_oracle *o, const br_step *step, br_ir_stage stage,
                      float *logits, br_status *st) BR_MUST_USE;
/* What the head read in the latest step, which was of that stage; NULL: st says
 * why. */
const float *br_oracle_hidden(const br_oracle *o, br_ir_stage stage,
                              br_status *st);
/* Shows the nodes of prefill steps; NULL: nobody looks. */
void br_oracle_watch(br_oracle *o, const br_watch *w);

#endif
