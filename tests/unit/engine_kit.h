/* engine_kit.h - an engine on the fake model, and requests that are watched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_KIT_H
#define ENGINE_KIT_H

#include "run/engine.h"
#include "run/lm_fake.h"

#include "t.h"

#include <stdatomic.h>
#include <string.h>

enum { EK_MAX_OUT = 4096 };

/* A request and what came of it. */
typedef struct ek_req {
    br_request_id id;
    int32_t prompt[2048], out[EK_MAX_OUT];
    uint32_t n_prompt, n_out, n_events, n_preempted;
    char text[8192];
    size_t n_text;
    bool over;
    br_logprob scores[1024][2];
    uint32_t n_scores;
    float embedding[1024];
    uint32_t n_embedding;
    br_output_fn then;
    br_usage usage;
    br_code code;
    char error[200];
} ek_req;

typedef struct ek {
    br_tok *tok;
    br_lm_fake *fake; /* NULL: it is another model */
    br_engine *e;
    br_engine_config c;
} ek;

/* Zero: defaults; n_vocab becomes the demo tokenizer's, whose end-of-answer
 * tokens never come. */
void ek_open(ek *k, br_lm_fake_config fc, br_engine_config ec);
/* On ec.lm; ek_close frees the tokenizer. */
void ek_open_on(ek *k, br_tok *tok, br_engine_config ec);
void ek_close(ek *k);
/* As a hook's mask: the engine's thread stays in a request's first row, which has begun
 * then, until ek_go: what the test has to do before is done, and found at once. */
extern atomic_bool ek_begun, ek_go;
bool ek_waits_to_go(void *ctx, float *logits, int32_t n_vocab);
/* A prompt of n tokens that depends on seed. */
void ek_prompt(ek_req *r, uint32_t n, uint64_t seed);
/* Greedy, max_tokens. */
br_request_desc ek_desc(ek_req *r, int64_t max_tokens);
void ek_submit(ek *k, ek_req *r, const br_request_desc *d);
/* Drains until all n are over; fails after 60 s. */
void ek_await(ek *k, ek_req *const *r, size_t n);
/* The answer is what the model wants. */
void ek_right(ek *k, const ek_req *r);

static inline void
ek_on_embedding(void *ctx, const br_output *o)
{
    ek_req *r = ctx;

    r->n_embedding = o->n_embedding;
    ck_assert_uint_le(o->n_embedding, BR_COUNT(r->embedding));
    if (o->embedding)
        memcpy(r->embedding, o->embedding, o->n_embedding * sizeof(float));
    r->then(ctx, o);
}

/* Asks for an embedding instead. */
static inline void
ek_embed(ek_req *r, br_request_desc *d)
{
    d->embed = true;
    r->then = d->output;
    d->output = ek_on_embedding;
}

static inline void
ek_on_scores(void *ctx, const br_output *o)
{
    ek_req *r = ctx;

    if (o->prompt) {
        ck_assert(o->row == 2 && o->n_prompt <= BR_COUNT(r->scores));
        ck_assert(r->n_scores == 0 && r->n_out == 0);
        memcpy(r->scores, o->prompt, o->n_prompt * sizeof r->scores[0]);
        r->n_scores = o->n_prompt;
    }
    r->then(ctx, o);
}

/* Asks for the prompt's logprobs, too, and the best one beside each. */
static inline void
ek_score(ek_req *r, br_request_desc *d)
{
    d->score = true;
    d->sample.n_logprobs = 1;
    r->then = d->output;
    d->output = ek_on_scores;
}

#endif
