/* cpu.h - the CPU tier: every core, vectors, packed weights.
 *
 *     br_cpu_pool_new(&pool, 0, &st)                    threads
 *     br_cpu_prepare(&c, model, graph, &config, &st)    packs the weights
 *     br_state_new(&s, graph, kv, n_slots, n_pages, &st)
 *     br_cpu_step(c, s, &step, logits, &st)             per step; allocates
 *                                                       nothing
 *
 * One prefill graph serves any step, one row or many. Logits of a row depend
 * on its sequence alone: not on the other rows, the chunks of the prompt, the
 * slot, the pages, or how many threads there are. They are those of the ref
 * tier with quantised activations, bit for bit, but for three things: keys and
 * values in F16 where the other has F32; and unless `exact`, where the processor
 * has an instruction for it, BF16 weights, and beside weights in integers products
 * of keys and values in BF16. They cost up to 1e-3 of NMSE
 * (random models of the tests, median over positions: a rounding of activations
 * that falls the other way is most of it).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_H
#define BR_CPU_H

#include "drv/cpu/cpu_mat.h"
#include "drv/cpu/cpu_pool.h"
#include "drv/state.h"
#include "drv/values.h"

/* Where packed weights are kept for the next start, from so many bytes on, and
 * how many of all models together (0: none); folder NULL: nowhere. */
typedef struct br_cpu_cache {
    const char *folder;
    uint64_t from, most;
} br_cpu_cache;

typedef struct br_cpu_config {
    br_cpu_pool *pool; /* outlives the tier; may serve several */
    bool exact;
    int isa;           /* br_isa; -1: the best of this machine */
    uint32_t max_rows; /* of a step */
    uint32_t max_want; /* of them that want logits */
    br_cpu_cache cache;
    /* Called now and then while weights are packed; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    /* Once true packing ends, CANCELLED; may be NULL. */
    const _Atomic bool *stop;
} br_cpu_config;

typedef struct br_cpu br_cpu;

/* Model and graph outlive it. */
br_code br_cpu_prepare(br_cpu **out, const br_model *m, const br_ir *g,
                       const br_cpu_config *c, br_status *st) BR_MUST_USE;
void br_cpu_free(br_cpu *c);
/* logits: [rows that want some][n_vocab], in their order in the step. */
/* A page of the state's as bytes, as the other tiers have it: its values one
 * after another. Out of it, or (in) back. */
void br_cpu_page(const br_cpu *c, br_state *s, uint32_t group, uint32_t page,
                 void *bytes, bool in);
br_code br_cpu_step(br_cpu *c, br_state *s, const br_step *step, float *logits,
                    br_status *st) BR_MUST_USE;
/* What the head read of each row of the latest step, [n_rows][n_embd]: of rows
 * that want no logits only if the step asks for hidden. */
const float *br_cpu_hidden(const br_cpu *c);
int64_t br_cpu_n_vocab(const br_cpu *c);
/* From now on, by one thread after another; NULL: nobody. Values that come of
 * LM_HEAD have the rows that want logits. */
void br_cpu_watch(br_cpu *c, const br_watch *w);
uint64_t br_cpu_weight_bytes(const br_cpu *c); /* packed */
bool br_cpu_was_kept(const br_cpu *c);         /* they came from the cache */
const uint8_t *br_cpu_weights(const br_cpu *c, size_t *n);
br_isa br_cpu_isa(const br_cpu *c);

/* What all steps so far have read and multiplied. */
typedef struct br_cpu_work {
    uint64_t weight_bytes, kv_bytes;
    uint64_t products[BR_FORM_COUNT]; /* attention's: F32 or BF16 */
} br_cpu_work;
/* Whether it has the ref tier's bits, given a state in F32. */
bool br_cpu_is_exact(const br_cpu *c);
const br_cpu_work *br_cpu_work_of(const br_cpu *c);

#endif
