/* lm_fake.h - no model: a stand-in whose next token tells on its server.
 *
 * Each position's number is a hash of the number before it and its token; it
 * lives in the pages, as keys and values do, and once more in the slot's own
 * state if recurrent. The token it wants next is a function of it. So a page
 * of somebody else, a stale one, a position fed twice or a state not put back
 * changes every token from there on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_FAKE_H
#define BR_LM_FAKE_H

#include "run/lm.h"

typedef struct br_lm_fake br_lm_fake;

/* Zero: the default. */
typedef struct br_lm_fake_config {
    int32_t n_vocab;      /* 256 */
    int32_t n_common;     /* tokens it wants are below; n_vocab */
    int32_t first_common; /* and not below this one */
    uint32_t n_ctx;       /* 1024 */
    uint32_t n_slots;     /* 8 */
    uint32_t n_pages;     /* enough for all slots */
    uint32_t chunk;       /* 512 */
    uint32_t window;      /* a second group with this window; 0: none */
    bool recurrent;
    br_pooling pooling;      /* 0: no embeddings */
    int64_t step_ns, row_ns; /* how long a step takes */
    uint32_t fail_token;     /* a step with this token fails; 0: none */
    bool logits_only; /* it draws no tokens, as processors' tiers do not */
} br_lm_fake_config;

br_code br_lm_fake_open(br_lm_fake **out, const br_lm_fake_config *c,
                        br_status *st) BR_MUST_USE;
void br_lm_fake_close(br_lm_fake *f);
const br_lm *br_lm_fake_lm(const br_lm_fake *f);
/* Its embeddings: of a position the numbers 1, the token, the position. */
enum { BR_LM_FAKE_EMBD = 3 };
/* What follows n tokens. */
int32_t br_lm_fake_next(const br_lm_fake *f, const int32_t *tokens, uint32_t n);

/* The same step by step, from 0: the number behind one more token, and what it
 * wants next. */
uint64_t br_lm_fake_mix(uint64_t before, int32_t token);
int32_t br_lm_fake_wants(const br_lm_fake *f, uint64_t number);

#endif
