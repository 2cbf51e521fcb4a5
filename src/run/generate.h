/* generate.h - a conversation with a model: tokens in, text out.
 *
 *   prompt --what is new of it--> prefill in chunks --> first token
 *   loop: sample -> text -> stop string? -> sink -> feed
 *
 * A session is one slot of a model and remembers which tokens the slot holds:
 * a prompt that begins like the last one and its answer costs only its new
 * part. Text leaves in whole characters of valid UTF-8, and what could yet be
 * the beginning of a stop string waits until it is known not to be.
 *
 * Everything is allocated before the first token. One thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GENERATE_H
#define BR_GENERATE_H

#include "model/tokenizer.h"
#include "run/lm.h"
#include "run/sample.h"

#include <stdatomic.h>

typedef enum br_gen_end {
    BR_GEN_EOG,       /* the model ended its answer */
    BR_GEN_STOP,      /* a stop string; it is not part of the text */
    BR_GEN_LENGTH,    /* max_tokens */
    BR_GEN_CONTEXT,   /* the context is full */
    BR_GEN_CANCELLED, /* *cancel became true */
    BR_GEN_SINK,      /* the sink has had enough */
    BR_GEN_END_COUNT
} br_gen_end;
const char *br_gen_end_name(br_gen_end e); /* "eog" "stop" "length" ... */

/* A token as it is chosen; logprobs as br_sampler_logprobs has them. */
typedef struct br_gen_token {
    int32_t id;
    const br_logprob *logprobs;
    size_t n_logprobs;
} br_gen_token;

typedef struct br_gen_params {
    br_sample_params sample;
    int64_t max_tokens; /* 0: none; negative: as many as fit */
    const char *const *stop;
    size_t n_stop;
    bool ignore_eog;   /* a token that ends the answer is one like others */
    bool show_special; /* control tokens are text */
    /* Either may be NULL; false ends the answer. text gets all pieces in
     * order, never empty; token comes before the text it completes. */
    bool (*text)(void *ctx, br_text piece);
    bool (*token)(void *ctx, const br_gen_token *t);
    void *ctx;
    br_logit_hook hook; /* constrains the answer; zero: nothing does */
    /* Looked at once a token, and where the tier can in a step; NULL: never. */
    const atomic_bool *cancel;
    /* Tokens of the prompt that were read; NULL: nobody watches. Who watches
     * gets short chunks at first, which changes no bit of the answer. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
} br_gen_params;

br_gen_params br_gen_defaults(void); /* 0.8, 40, ...; as many as fit */

typedef struct br_gen_stats {
    uint32_t n_prompt, n_reused; /* tokens; reused: already in the slot */
    uint32_t n_out;              /* tokens chosen, the ending one not counted */
    br_gen_end end;
    size_t stop; /* which stop string */
    /* prefill: of the new part; with the first token's draw where its last step
     * comes with that, 0 if none was drawn then; first: from the call to the
     * first token; decode: from the first token to the last */
    int64_t prefill_ns, first_ns, decode_ns;
} br_gen_stats;

double br_gen_prefill_rate(const br_gen_stats *s); /* tokens a second, or 0 */
double br_gen_decode_rate(const br_gen_stats *s);

typedef struct br_session br_session;

/* Both outlive it. The slot is emptied. */
br_code br_session_new(br_session **out, const br_lm *lm, const br_tok *tok,
                       uint32_t slot, br_status *st) BR_MUST_USE;
void br_session_free(br_session *s);
/* What the slot holds: the last prompt and its answer. */
const int32_t *br_session_tokens(const br_session *s, size_t *n);
/* How much of a prompt that is, from its beginning; never its last token. */
uint32_t br_session_known(const br_session *s, const int32_t *prompt, size_t n);
void br_session_reset(br_session *s);

/* Answers a prompt of n >= 1 tokens. LIMIT: it does not fit the context; the
 * message has both numbers. Where the model itself failed, the slot is empty
 * afterwards. */
br_code br_session_generate(br_session *s, const int32_t *prompt, size_t n,
                            const br_gen_params *p, br_gen_stats *stats,
                            br_status *st) BR_MUST_USE;

#endif
