/* sample.h - from logits to the next token.
 *
 *   logits -> bias -> penalties -> DRY -> / temperature -> weights
 *          -> top-k -> typical -> top-p -> min-p -> one of what is left
 *
 * Temperature comes first, so top-p and min-p speak of the distribution that
 * is drawn from (as OpenAI's API and Hugging Face have it). A weight is
 * exp((x - max) / T) as an integer in units of 2^-44: sums of them do not
 * depend on their order, and what lies below half a unit (24 nats under the
 * best token times T, and less likely than 3e-14) is never drawn. Equal
 * logits rank by lowest id. exp is our own: the same text on every machine.
 *
 * The draw is a function of (seed, position), so a text can be continued or
 * made again from any place. After br_sampler_new nothing is allocated. One
 * thread per sampler.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SAMPLE_H
#define BR_SAMPLE_H

#include "base/base.h"

enum {
    BR_SAMPLE_MAX_BIAS = 4096,    /* rows of logit bias */
    BR_SAMPLE_MAX_LOGPROBS = 100, /* alternatives reported */
    BR_SAMPLE_MAX_BREAKERS = 4096,
};
#define BR_SAMPLE_ONE (UINT64_C(1) << 44) /* the weight of the best token */

typedef struct br_logit_bias {
    int32_t id;
    float add; /* -INFINITY: never */
} br_logit_bias;

typedef struct br_sample_params {
    uint64_t seed;
    float temperature; /* 0: the best token, always */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off */
    float typical;     /* 1: off */
    /* Over the last penalty_last_n tokens, prompt included; 0: none, -1: all */
    int32_t penalty_last_n;
    float repeat;    /* 1: off; x / repeat if x > 0, else x * repeat */
    float presence;  /* 0: off; taken off once */
    float frequency; /* 0: off; taken off for each time */
    /* DRY: a token that would lengthen a repetition of n tokens to n + 1 loses
     * dry_multiplier * dry_base^(n - dry_allowed), from n = dry_allowed on. */
    float dry_multiplier; /* 0: off */
    float dry_base;
    int32_t dry_allowed;
    int32_t dry_last_n;          /* tokens looked back at; -1: all */
    const int32_t *dry_breakers; /* no repetition reaches across these */
    size_t n_dry_breakers;
    const br_logit_bias *bias;
    size_t n_bias;
    bool logprobs;      /* report the chosen token's */
    int32_t n_logprobs; /* and those of the best n */
} br_sample_params;

/* temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, the rest off */
br_sample_params br_sample_defaults(void);
/* Temperature, top-k, top-p and min-p alone: the draw is a function of logits,
 * seed and position. */
bool br_sample_plain(const br_sample_params *p);
/* USAGE names the knob and its range. n_vocab 0: ids are not looked at. */
br_code br_sample_params_check(const br_sample_params *p, int32_t n_vocab,
                               br_status *st) BR_MUST_USE;

typedef struct br_logprob {
    int32_t id;
    float logprob; /* of the model's own distribution: no knob changes it */
} br_logprob;

/* A token that can be drawn. */
typedef struct br_candidate {
    int32_t id;
    uint32_t rank; /* larger: more likely; an order only */
    uint64_t weight;
} br_candidate;

typedef struct br_sampler br_sampler;

/* Copies p, but not what it points to: bias and breakers outlive the sampler.
 * max_history: the most tokens it ever looks back at. */
br_code br_sampler_new(br_sampler **out, int32_t n_vocab, uint32_t max_history,
                       const br_sample_params *p, br_status *st) BR_MUST_USE;
void br_sampler_free(br_sampler *s);
/* From now on these n tokens never come; the ids outlive the sampler. */
void br_sampler_never(br_sampler *s, const int32_t *ids, size_t n);
/* As if new with p, which br_sample_params_check has seen; no memory is asked
 * for. */
void br_sampler_restart(br_sampler *s, const br_sample_params *p);
void br_sampler_reset(br_sampler *s); /* forgets the history */
/* A token of the text so far. An id outside the vocabulary is a bug. */
void br_sampler_accept(br_sampler *s, int32_t id);
/* The token at `position`; does not accept it. INTERNAL: a logit is no number;
 * REJECTED: the bias leaves no token. */
br_code br_sampler_pick(br_sampler *s, const float *logits, uint64_t position,
                        int32_t *out, br_status *st) BR_MUST_USE;
/* Of the latest pick: the chosen token first, then the best ones, best first.
 * 0 without params.logprobs. */
const br_logprob *br_sampler_logprobs(const br_sampler *s, size_t *n);
/* The same of any row: `chosen` first, then the best, `most` of them at most.
 * Returns how many; 0: a logit is no number, or none is more than -inf. */
size_t br_sample_logprobs(const float *logits, int32_t n_vocab, int32_t chosen,
                          size_t most, br_logprob *out);
/* What the latest pick drew from, by id; of greedy picks, that one. */
const br_candidate *br_sampler_candidates(const br_sampler *s, size_t *n);

/* Constrains sampling, in the thread that samples; must not block or wait.
 * mask sets what must not come to -INFINITY; accept is told the token that was
 * chosen. False: the request ends with FAILED, `error` as its text, *code as its
 * code (REJECTED where code is NULL). The object lives until END. A request that
 * lost its slot goes on where it was: nothing is said twice. */
typedef struct br_logit_hook {
    bool (*mask)(void *ctx, float *logits, int32_t n_vocab);
    bool (*accept)(void *ctx, int32_t token);
    void *ctx;
    const char *error;
    const br_code *code;
} br_logit_hook;

/* What ends a request whose hook said no. */
br_code br_hook_fails(const br_logit_hook *h, br_status *st);

#endif
