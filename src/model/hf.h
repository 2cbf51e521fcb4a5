/* hf.h - a Hugging Face folder into one GGUF file.
 *
 *   config.json                     --> metadata
 *   tokenizer.json, *_config.json   --> tokenizer.ggml.*, chat template
 *   model*.safetensors              --> tensors: renamed, q and k permuted,
 *                                       experts stacked; F16, BF16, F32 kept, F8
 *                                       in memory; in a file it is BF16
 *
 * Which models and tensors: hf_arch.def, hf_config.def, hf_tensor.def. What is
 * not understood is an error that names it: an unknown class, a scaling of
 * rotations, a tensor without a place. Nothing is left out in silence.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HF_H
#define BR_HF_H

#include "base/base.h"

enum { BR_HF_MAX_CONFIG = 64 << 20 }; /* bytes of a JSON file */

typedef struct br_hf_desc {
    /* Called now and then with bytes read; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    /* Ends it with CANCELLED as soon as it is true; or NULL. Any thread. */
    const _Atomic bool *stop;
    /* Whether the file is what is wanted, before it has its name; or NULL. */
    br_code (*check)(const void *file, size_t n, br_status *st);
} br_hf_desc;

typedef struct br_hf_stats {
    const char *arch;
    size_t tensors;
    uint64_t weights, bytes;
    uint32_t padded; /* tokens added so that there is one for each row */
    int64_t window;  /* the context was cut to this; 0: it was not */
} br_hf_stats;

br_code br_hf_convert(const char *folder, const char *path, const br_hf_desc *d,
                      br_hf_stats *stats,
                      br_status *st) BR_MUST_USE; /* d may be NULL */

/* The same into memory, for this program alone: weights of eight bits stay so. */
br_code br_hf_load(const char *folder, br_str *out, const br_hf_desc *d,
                   br_status *st) BR_MUST_USE;

#endif
