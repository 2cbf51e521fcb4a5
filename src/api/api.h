/* api.h - what the files of the C library share.
 *
 * Thin on purpose: a handle wraps what a room made, and every function is a
 * few lines. What brass.h promises beyond that (NULL is accepted where it is
 * harmless, texts live as long as their handle) is kept here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_API_H
#define BR_API_H

#include "brass/brass.h"

#include "base/base.h"
#include "mega/mega.h"
#include "model/tokenizer.h"
#include "run/lm_model.h"
#include "run/sample.h"

struct br_error {
    br_status st;
};

struct br_llm {
    br_model *model;
    br_tok *tok;
    br_tok_work *work;
    br_lm_model *lm;
    bool *taken; /* [n_slots] */
};

struct br_program {
    br_mega_prog *mega;
};

/* The status to work with: the caller's, emptied, or a spare one. */
br_status *br_api_begin(br_error *e, br_status *spare);
/* A zeroed handle, or NULL with OOM in st. */
void *br_api_handle(size_t size, br_status *st) BR_MUST_USE;
/* What br_sampling says of drawing a token. */
br_sample_params br_api_sample(const br_sampling *how);

#endif
