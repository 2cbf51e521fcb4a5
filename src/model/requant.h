/* requant.h - a model file into another mixture of number formats.
 *
 *   source row --dequantise--> f32 --check--> encode --> destination
 *
 * Rows are independent, so threads share them out; the result does not depend
 * on how many there are. Tensors that keep their format are copied. Memory:
 * 16 MB of f32 and what it encodes to, whatever the model's size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_REQUANT_H
#define BR_REQUANT_H

#include "model/gguf.h"
#include "model/imatrix.h"
#include "model/qmix.h"

typedef struct br_requant_desc {
    const br_qmix *mix;
    const br_imatrix *imatrix; /* or NULL */
    int threads;               /* 0: as many as processors */
    /* Called now and then with source bytes done; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} br_requant_desc;

typedef struct br_requant_stats {
    size_t tensors;   /* all */
    size_t encoded;   /* got another format */
    size_t fell_back; /* of these, not the mixture's, which did not fit */
    size_t again;     /* of these, were blocks already: their loss adds up */
    size_t weighed;   /* of these, had importances */
    uint64_t weights, bytes_in, bytes_out;
} br_requant_stats;

/* Refuses to write over a file that g was read from. */
br_code br_requant(const br_gguf *g, const char *path, const br_requant_desc *d,
                   br_requant_stats *stats, br_status *st) BR_MUST_USE;

#endif
