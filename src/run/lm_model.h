/* lm_model.h - a model file at work on a tier of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_MODEL_H
#define BR_LM_MODEL_H

#include "model/model.h"
#include "run/lm.h"

typedef struct br_lm_model br_lm_model;

/* What the context is when nobody says: as many tokens as the model was
 * trained for, but no more than this. */
enum { BR_LM_CTX = 4096 };
/* Packed weights are kept from so many bytes on: about half a second of packing
 * on two cores. */
enum { BR_LM_CACHE_FROM = 256 << 20 };

/* Zero is the default of everything. */
typedef struct br_lm_config {
    const char *tier; /* "cpu", "ref", or br_nd_tier; NULL: cpu */
    const char *sim, *sim_opts, *mode; /* of br_nd_where; may be NULL */
    uint32_t n_ctx;                    /* tokens of a slot; 0: see above */
    uint32_t n_slots;                  /* 0: 1 */
    uint32_t prompt, answer; /* tokens that it is opened for; 0: not known */
    uint32_t threads;        /* 0: as many as processors */
    bool exact;              /* the bits of the reference tier */
    const char *kv;    /* f32, f16, q8_0 for keys and values; NULL: cpu has
                        * f16 and ref f32, as is what is exact */
    const char *cache; /* folder for packed weights of large models, or NULL */
    uint64_t cache_bytes;   /* of all that is there */
    bool untuned;           /* do without what brass tune left in that folder */
    uint64_t gpu_memory;    /* memory of br_cun_config */
    uint8_t gpu_dense;      /* dense of it */
    uint32_t gpu_timeout_s; /* until a GPU's step counts as hung; 0: its own */
    /* While weights are made ready; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    const _Atomic bool *stop; /* once true: CANCELLED, soon; may be NULL */
} br_lm_config;

/* The model outlives it. NO_DEVICE: no such tier in this build. */
br_code br_lm_model_open(br_lm_model **out, const br_model *m,
                         const br_lm_config *c, br_status *st) BR_MUST_USE;
void br_lm_model_close(br_lm_model *r);
const br_lm *br_lm_model_lm(const br_lm_model *r);
/* It would be another one, had it been opened for a prompt of so many tokens (config:
 * prompt, answer) that come now: one that reads them at once. */
bool br_lm_model_outgrown(const br_lm_model *r, uint32_t prompt,
                          uint32_t answer);

/* Tokens of a slot, when all is decided. */
uint32_t br_lm_ctx(const br_model *m, const br_lm_config *c);

#endif
