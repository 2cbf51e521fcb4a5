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

#include "drv/values.h"

typedef struct br_cun_config {
    bool exact;
    uint32_t n_slots, n_ctx; /* positions of a slot */
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    uint32_t max_rows; /* of a step */
    uint32_t max_want; /* of them that want logits */
    /* Called now and then while weights are sent; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} br_cun_config;

typedef struct br_cun br_cun;

/* Model and graph outlive it. NO_DEVICE; UNSUPPORTED: an opcode that the tier
 * lacks. */
br_code br_cun_open(br_cun **out, const br_model *m, const br_ir *g,
                    const br_cun_config *c, br_status *st) BR_MUST_USE;
void br_cun_close(br_cun *x);
/* logits: [rows that want them][n_vocab], in the order of the rows. */
br_code br_cun_step(br_cun *x, const br_step *step, float *logits,
                    br_status *st) BR_MUST_USE;
/* What the head read of each row of the latest step, [n_rows][n_embd]; NULL:
 * the device does not answer. */
const float *br_cun_hidden(br_cun *x);
/* From now on; NULL: nobody. */
void br_cun_watch(br_cun *x, const br_watch *w);
uint64_t br_cun_weight_bytes(const br_cun *x); /* that a step reads */
/* What all steps so far have read at least. */
void br_cun_work(const br_cun *x, uint64_t *weight_bytes, uint64_t *kv_bytes);
/* What the device's memory does when it is copied, GB/s read and written; 0:
 * it does not answer. */
double br_cun_probe(br_cun *x);
const char *br_cun_device(const br_cun *x);

#endif
