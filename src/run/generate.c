/* generate.c - see generate.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/generate.h"

#include "base/thread.h"
#include "run/textout.h"

#include <string.h>

enum {
    WATCH_CHUNK = 64,     /* rows of the first chunk that somebody watches */
    WATCH_NS = 250000000, /* it grows while a chunk takes less */
};

struct br_session {
    const br_lm *lm;
    const br_tok *tok;
    uint32_t slot;
    int32_t *held; /* [n_ctx] what the slot has been fed */
    uint32_t n_held;
    float *logits; /* [n_vocab] */
};

/* One answer on its way. */
typedef struct answer {
    br_session *s;
    const br_gen_params *p;
    br_gen_stats *stats;
    br_sampler *sampler;
    br_textout text;
    bool on_tier; /* that draws; the logits do not come here */
    bool over;
} answer;

static const char *const end_names[BR_GEN_END_COUNT] = {
    [BR_GEN_EOG] = "eog",
    [BR_GEN_STOP] = "stop",
    [BR_GEN_LENGTH] = "length",
    [BR_GEN_CONTEXT] = "context",
    [BR_GEN_CANCELLED] = "cancelled",
    [BR_GEN_SINK] = "sink",
};

const char *
br_gen_end_name(br_gen_end e)
{
    return end_names[e];
}

br_gen_params
br_gen_defaults(void)
{
    return (br_gen_params){.sample = br_sample_defaults(), .max_tokens = -1};
}

static double
rate(int64_t tokens, int64_t ns)
{
    return tokens > 0 && ns > 0 ? (double)tokens * 1e9 / (double)ns : 0;
}

double
br_gen_prefill_rate(const br_gen_stats *s)
{
    return rate((int64_t)s->n_prompt - s->n_reused, s->prefill_ns);
}

double
br_gen_decode_rate(const br_gen_stats *s)
{
    /* from the first token on; the one that ends an answer is a step as well */
    return rate((int64_t)s->n_out - (s->end != BR_GEN_EOG), s->decode_ns);
}

/* ---- sessions ------------------------------------------------------------ */

br_code
br_session_new(br_session **out, const br_lm *lm, const br_tok *tok,
               uint32_t slot, br_status *st)
{
    br_session *s;

    *out = NULL;
    if (br_tok_count(tok) > lm->n_vocab)
        return br_fail(st, BR_E_FORMAT,
                       "the tokenizer has %d tokens, the model's logits %d",
                       br_tok_count(tok), lm->n_vocab);
    s = br_try_calloc(1, sizeof *s);
    if (s) {
        *s = (br_session){.lm = lm, .tok = tok, .slot = slot};
        s->held = br_try_calloc(lm->n_ctx, sizeof *s->held);
        s->logits = br_try_calloc((size_t)lm->n_vocab, sizeof *s->logits);
    }
    if (!s || !s->held || !s->logits) {
        br_session_free(s);
        return br_fail(st, BR_E_OOM, "session: out of memory");
    }
    br_session_reset(s);
    *out = s;
    return BR_OK;
}

void
br_session_free(br_session *s)
{
    if (!s)
        return;
    br_free(s->held);
    br_free(s->logits);
    br_free(s);
}

void
br_session_reset(br_session *s)
{
    uint32_t kept = s->lm->keep(s->lm->ctx, s->slot, 0);

    br_check(kept == 0);
    s->n_held = 0;
}

const int32_t *
br_session_tokens(const br_session *s, size_t *n)
{
    *n = s->n_held;
    return s->held;
}

uint32_t
br_session_known(const br_session *s, const int32_t *prompt, size_t n)
{
    uint32_t same = 0;

    while (same < s->n_held && same + 1 < n && s->held[same] == prompt[same])
        same++;
    return same;
}

static br_code
feed(br_session *s, const int32_t *tokens, uint32_t n, bool want, br_status *st)
{
    BR_TRY(s->lm->feed(s->lm->ctx, s->slot, s->n_held, tokens, n,
                       want ? s->logits : NULL, st));
    memcpy(s->held + s->n_held, tokens, n * sizeof *tokens);
    s->n_held += n;
    return BR_OK;
}

/* ---- text out ------------------------------------------------------------ */

static void
end(answer *a, br_gen_end why)
{
    if (!a->over)
        a->stats->end = why;
    a->over = true;
}

/* What can leave does; last: what was held back as well. */
static void
flush(answer *a, bool last)
{
    size_t which;
    br_text piece = br_textout_take(&a->text, last, &which);

    if (piece.n && a->p->text && !a->p->text(a->p->ctx, piece))
        end(a, BR_GEN_SINK);
    if (which < a->p->n_stop) {
        a->stats->stop = which;
        end(a, BR_GEN_STOP);
    }
}

/* ---- the loop ------------------------------------------------------------ */

/* A step that ended because of the cancel is no failure: what the slot still holds
 * stays for the next answer. */
static br_code
feed_or_end(answer *a, const int32_t *tokens, uint32_t n, bool want,
            br_status *st)
{
    br_session *s = a->s;
    br_status why = {0};

    if (feed(s, tokens, n, want, &why) == BR_OK)
        return BR_OK;
    if (why.code != BR_E_CANCELLED || !br_is_told(a->p->cancel)) {
        *st = why;
        return why.code;
    }
    s->n_held = s->lm->keep(s->lm->ctx, s->slot, s->n_held);
    end(a, BR_GEN_CANCELLED);
    return BR_OK;
}

static br_code
prefill(answer *a, const int32_t *prompt, uint32_t n, br_status *st)
{
    br_session *s = a->s;
    uint32_t same = br_session_known(s, prompt, n);
    uint32_t rows = 0, chunk = s->lm->chunk;
    int64_t begin = br_now_ns();

    s->n_held =
        same < s->n_held ? s->lm->keep(s->lm->ctx, s->slot, same) : s->n_held;
    br_check(s->n_held <= same);
    if (a->p->progress)
        chunk = BR_MIN(chunk, WATCH_CHUNK);
    a->stats->n_reused = s->n_held;
    while (s->n_held < n && !a->over && !br_is_told(a->p->cancel)) {
        int64_t now = br_now_ns();

        rows = BR_MIN(chunk, n - s->n_held);
        BR_TRY(feed_or_end(a, prompt + s->n_held, rows,
                           s->n_held + rows == n && !a->on_tier, st));
        if (br_now_ns() - now < WATCH_NS)
            chunk = BR_MIN(2 * chunk, s->lm->chunk);
        if (a->p->progress && !a->over)
            a->p->progress(a->p->progress_ctx, s->n_held, n);
    }
    if (s->n_held < n)
        end(a, BR_GEN_CANCELLED);
    /* A tier that draws may do one token's step with the draw: decode() sees
     * how long that took. */
    if (!a->on_tier || rows != 1)
        a->stats->prefill_ns = br_now_ns() - begin;
    return BR_OK;
}

/* Gives the token to the sinks. */
static br_code
emit(answer *a, int32_t id, br_status *st)
{
    br_gen_token t = {.id = id};

    t.logprobs = br_sampler_logprobs(a->sampler, &t.n_logprobs);
    a->stats->n_out++;
    if (a->p->token && !a->p->token(a->p->ctx, &t))
        end(a, BR_GEN_SINK);
    if (!br_textout_put(&a->text, id))
        return br_fail(st, BR_E_OOM, "answer: out of memory");
    flush(a, false);
    return BR_OK;
}

static br_code
pick(answer *a, int32_t *id, br_status *st)
{
    const br_logit_hook *h = &a->p->hook;
    br_session *s = a->s;

    if (a->on_tier)
        return s->lm->pick(s->lm->ctx, &a->p->sample, s->n_held, id, st);
    if (h->mask && !h->mask(h->ctx, s->logits, s->lm->n_vocab))
        return br_hook_fails(h, st);
    BR_TRY(br_sampler_pick(a->sampler, s->logits, s->n_held, id, st));
    if (h->accept && !br_tok_is_eog(s->tok, *id) && !h->accept(h->ctx, *id))
        return br_hook_fails(h, st);
    return BR_OK;
}

static br_code
decode(answer *a, int64_t called, br_status *st)
{
    br_session *s = a->s;
    int64_t first = 0;

    while (!a->over) {
        int32_t id;

        if (br_is_told(a->p->cancel))
            end(a, BR_GEN_CANCELLED);
        else if (a->p->max_tokens >= 0 &&
                 a->stats->n_out >= (uint64_t)a->p->max_tokens)
            end(a, BR_GEN_LENGTH);
        if (a->over)
            break;
        BR_TRY(pick(a, &id, st));
        if (!first) {
            first = br_now_ns();
            a->stats->first_ns = first - called;
            if (!a->stats->prefill_ns)
                a->stats->prefill_ns = a->stats->first_ns;
        }
        a->stats->decode_ns = br_now_ns() - first;
        if (!a->p->ignore_eog && br_tok_is_eog(s->tok, id)) {
            end(a, BR_GEN_EOG);
            break;
        }
        br_sampler_accept(a->sampler, id);
        BR_TRY(emit(a, id, st));
        if (s->n_held == s->lm->n_ctx)
            end(a, BR_GEN_CONTEXT);
        /* The last token is fed too where it fits: the next prompt of a
         * conversation begins with it. */
        else if (!a->over)
            BR_TRY(feed_or_end(a, &id, 1, !a->on_tier, st));
    }
    return BR_OK;
}

static br_code
check_prompt(const br_session *s, const int32_t *prompt, size_t n,
             br_status *st)
{
    if (n == 0)
        return br_fail(st, BR_E_USAGE, "the prompt is empty");
    if (n >= s->lm->n_ctx)
        return br_fail(st, BR_E_LIMIT,
                       "the prompt has %zu tokens; the context holds %u, the "
                       "answer included",
                       n, s->lm->n_ctx);
    for (size_t i = 0; i < n; i++)
        if (prompt[i] < 0 || prompt[i] >= s->lm->n_vocab)
            return br_fail(st, BR_E_USAGE,
                           "prompt token %zu: %d is not below %d", i, prompt[i],
                           s->lm->n_vocab);
    return BR_OK;
}

static br_code
run(answer *a, const int32_t *prompt, uint32_t n, br_status *st)
{
    int64_t called = br_now_ns();

    BR_TRY(prefill(a, prompt, n, st));
    if (a->over)
        return BR_OK;
    for (uint32_t i = 0; i < n; i++)
        br_sampler_accept(a->sampler, prompt[i]);
    BR_TRY(decode(a, called, st));
    if (!br_textout_end(&a->text))
        return br_fail(st, BR_E_OOM, "answer: out of memory");
    if (a->stats->end != BR_GEN_STOP && a->stats->end != BR_GEN_SINK) {
        br_gen_end why = a->stats->end;

        a->over = false; /* what was held back may complete a stop string */
        flush(a, true);
        end(a, why);
    }
    return BR_OK;
}

br_code
br_session_generate(br_session *s, const int32_t *prompt, size_t n,
                    const br_gen_params *p, br_gen_stats *stats, br_status *st)
{
    answer a = {.s = s,
                .p = p,
                .stats = stats,
                .on_tier = s->lm->pick && !p->hook.mask && !p->hook.accept &&
                           br_sample_plain(&p->sample)};
    br_code code;

    *stats = (br_gen_stats){.n_prompt = (uint32_t)n};
    BR_TRY(br_stops_check(p->stop, p->n_stop, st));
    BR_TRY(check_prompt(s, prompt, n, st));
    BR_TRY(br_sampler_new(&a.sampler, s->lm->n_vocab, s->lm->n_ctx, &p->sample,
                          st));
    br_sampler_never(a.sampler, s->lm->never, s->lm->n_never);
    if (s->lm->until)
        s->lm->until(s->lm->ctx, p->cancel);
    if (!br_textout_init(&a.text, s->tok, p->stop, p->n_stop, p->show_special))
        code = br_fail(st, BR_E_OOM, "answer: out of memory");
    else
        code = run(&a, prompt, (uint32_t)n, st);
    if (s->lm->until)
        s->lm->until(s->lm->ctx, NULL);
    if (code != BR_OK)
        br_session_reset(s);
    br_textout_fini(&a.text);
    br_sampler_free(a.sampler);
    return code;
}
