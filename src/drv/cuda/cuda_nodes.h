/* cuda_nodes.h - any graph on a CUDA device, a launch or a few a node.
 *
 * Packets mode of the tier: rows of any slots in a step, prompts in chunks,
 * the caller's pages. Its bits are those of docs/arithmetic.md but for what
 * `exact` forbids; they do not depend on the other rows, the chunks of a
 * prompt, slots or pages.
 *
 * One thread at a time owns it; which one may change between calls.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_NODES_H
#define BR_CUDA_NODES_H

#include "drv/nodes/node_dev.h"
#include "drv/values.h"

typedef struct br_cun_costs { /* of NVIDIA's */
    /* Of all steps: what the calling thread computed until all was submitted. */
    uint64_t steps, submit_ns;
    /* Of them: by a launch that stays; such launches, and how many were ended because
     * something else was asked of the device; of those steps, the device's own time. */
    uint64_t stayed, entered, exited, device_ns;
    /* Of those steps: told while the one before ran; and others, told so, that were for
     * nothing. */
    uint64_t ahead, vain;
    uint64_t load_bytes, load_ns; /* of the model's matrices */
    /* Bytes of the device's memory: matrices; pages of keys and values; states of
     * slots; values between nodes, scratch and the step itself. */
    uint64_t weights, pages, states, rest;
    uint64_t graphs; /* of steps: what the driver took for them so far */
    uint32_t weight_allocations; /* one a class: matrices, experts, dense */
    uint64_t dense;              /* of the weights */
    /* Experts that are tiles: bytes among the weights; of those in the host's memory,
     * which the device reads there. */
    uint64_t experts, host;
    uint32_t host_ops; /* whose experts those are */
    uint64_t left;     /* that was for experts on the device, of all memory */
    uint64_t all;      /* of the device's memory now */
    /* Of rest: what one more row of a step takes, so what a slot that makes a token
     * does; its logits apart. */
    uint64_t row;
} br_cun_costs;

/* BF16 matrices in 12 bits a weight as well, for steps of few rows, where three quarters
 * of all memory have room for them. No bit changes. */
enum br_cun_dense {
    BR_CUN_DENSE_AUTO,
    BR_CUN_DENSE_YES, /* and a word where it is not so */
    BR_CUN_DENSE_NO
};

typedef struct br_cun_config {
    /* Another GPU, from now on its own whatever open returns; NULL: NVIDIA's.
     * It runs the kernels that need no tensor cores, and draws no tokens. */
    br_nd_dev *dev;
    bool exact;
    uint32_t n_slots, n_ctx; /* positions of a slot */
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    uint32_t max_rows; /* of a step */
    uint32_t max_want; /* of them that want logits */
    /* Bytes of the device's memory to do with (beside what the driver takes for
     * itself); experts that do not fit stay in the host's. 0: what is free but a
     * reserve. OOM: all else does not fit. */
    uint64_t memory;
    enum br_cun_dense dense;
    uint32_t timeout_s; /* of br_cuda; 0: its own */
    br_cun_costs *plan; /* NULL, or: what is known before weights are sent */
    /* Called now and then while weights are sent; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    const _Atomic bool *stop; /* as br_lm_config's */
} br_cun_config;

typedef struct br_cun br_cun;

/* Model and graph outlive it. NO_DEVICE; UNSUPPORTED: an opcode that the tier
 * lacks. */
br_code br_cun_open(br_cun **out, const br_model *m, const br_ir *g,
                    const br_cun_config *c, br_status *st) BR_MUST_USE;
void br_cun_close(br_cun *x);
/* logits: [rows that want them][n_vocab], in the order of the rows; NULL: they
 * stay on the device, for br_cun_draw, which waits for them. */
br_code br_cun_step(br_cun *x, const br_step *step, float *logits,
                    br_status *st) BR_MUST_USE;

typedef struct br_cun_pick { /* as in run/sample.h */
    uint64_t seed;
    float temperature, top_p, min_p;
    int32_t top_k;
    uint32_t position; /* of the token that is drawn */
} br_cun_pick;
/* A token after each row of the latest step that wanted logits, n of them: what
 * the host's sampler draws. BR_CUN_NO_NUMBER: a logit is none; BR_CUN_NONE: all
 * are -inf. */
enum { BR_CUN_NO_NUMBER = -1, BR_CUN_NONE = -2 };
bool br_cun_draws(const br_cun *x); /* can it? Not before sm_90. */
br_code br_cun_draw(br_cun *x, const br_cun_pick *p, uint32_t n, int32_t *out,
                    br_status *st) BR_MUST_USE;
/* A step and its draws in one: where steps of as many rows follow each other the
 * device stays in one launch and nothing is submitted. */
br_code br_cun_next(br_cun *x, const br_step *step, const br_cun_pick *p,
                    uint32_t n, int32_t *out, br_status *st) BR_MUST_USE;
/* Each of those calls fn(arg), once, when the device has the step and before its tokens
 * are waited for. NULL: none does. */
void br_cun_meanwhile(br_cun *x, void (*fn)(void *arg), void *arg);
/* Late in a step of a launch that stays fn(arg) is asked, once, whether the next call is
 * of the same rows, each a token on, which is the one that is drawn, and drawn alike.
 * Then the device goes on with that step; what is not asked for is lost, and costs its
 * time. NULL: nobody is asked. */
void br_cun_ahead(br_cun *x, bool (*fn)(void *arg), void *arg);
/* What the head read of each row of the latest step, [n_rows][n_embd]; NULL:
 * st says why. */
const float *br_cun_hidden(br_cun *x, br_status *st);
/* What a slot has beside its pages (plan.slot_elems numbers): zeroed, fetched,
 * put back. The next step fails if the device did not. */
void br_cun_slot_reset(br_cun *x, uint32_t slot);
void br_cun_slot_save(br_cun *x, uint32_t slot, float *out);
void br_cun_slot_restore(br_cun *x, uint32_t slot, const float *from);
/* From now on; NULL: nobody. */
void br_cun_watch(br_cun *x, const br_watch *w);
uint64_t br_cun_weight_bytes(const br_cun *x); /* that a step reads */
/* What all steps so far have read at least. */
void br_cun_work(const br_cun *x, uint64_t *weight_bytes, uint64_t *kv_bytes);
/* What the device's memory does when it is copied, GB/s read and written; 0:
 * it does not answer. */
double br_cun_probe(br_cun *x);
const char *br_cun_device(const br_cun *x);
const br_nd_dev *br_cun_dev(const br_cun *x); /* of the configuration */
/* With a dev: since it was opened. */
br_nd_stats br_cun_stats(const br_cun *x);

br_cun_costs br_cun_costs_of(const br_cun *x);

#endif
