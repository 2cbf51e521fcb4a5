/* lm.h - a model at work, as whoever talks with it sees it.
 *
 * Tokens go in at a position of a slot; logits come out. Which tier computes
 * them is the affair of whoever filled in the table; tests fill in their own.
 * One thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_H
#define BR_LM_H

#include "base/base.h"

typedef struct br_lm {
    void *ctx;
    int32_t n_vocab;
    uint32_t n_ctx;   /* tokens a slot can hold */
    uint32_t n_slots; /* sequences at once */
    uint32_t chunk;   /* most tokens of one feed */
    const char *tier; /* "ref" */
    /* Appends n tokens, which get positions from, from + 1, ... The slot holds
     * exactly `from` tokens before. logits: [n_vocab] after the last, or NULL.
     */
    br_code (*feed)(void *ctx, uint32_t slot, uint32_t from,
                    const int32_t *tokens, uint32_t n, float *logits,
                    br_status *st);
    /* The slot forgets all but its first n tokens. Returns how many it could
     * keep: n, or fewer where its state cannot be rewound. */
    uint32_t (*keep)(void *ctx, uint32_t slot, uint32_t n);
} br_lm;

#endif
