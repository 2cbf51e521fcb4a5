/* api_llm.c - the C library: models, texts, talks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"
#include "run/chat.h"
#include "run/generate.h"

#include <string.h>

struct br_seq {
    br_llm *m;
    uint32_t slot;
    br_session *session;
    br_chat *chat; /* NULL until the talk begins */
    br_tok_ids prompt;
    br_gen_stats stats;
    atomic_bool cancel;
    /* of the answer under way */
    br_text_fn fn;
    void *ctx;
    br_str *reply;
};

/* ---- models -------------------------------------------------------------- */

static br_code
open_parts(br_llm *m, const char *path, uint32_t context, uint32_t sequences,
           br_status *st)
{
    br_lm_config c = {.n_ctx = context, .n_slots = sequences};

    if (sequences == 0 || sequences > 65536)
        return br_fail(st, BR_E_USAGE, "%u sequences; 1 to 65536", sequences);
    BR_TRY(br_model_open(&m->model, path, st));
    if (m->model->hp.n_ctx > 0 && context > m->model->hp.n_ctx)
        return br_fail(st, BR_E_USAGE,
                       "%s: context: %u; the model was made for %lld tokens",
                       path, context, (long long)m->model->hp.n_ctx);
    BR_TRY(br_tok_from_gguf(&m->tok, m->model->gguf, NULL, st));
    BR_TRY(br_lm_model_open(&m->lm, m->model, &c, st));
    m->work = br_tok_work_new();
    m->taken = br_try_calloc(sequences, sizeof *m->taken);
    if (!m->work || !m->taken)
        return br_fail(st, BR_E_OOM, "%s: out of memory", path);
    return BR_OK;
}

br_llm *
br_llm_open(const char *path, uint32_t context, uint32_t sequences, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_llm *m = br_api_handle(sizeof *m, st);

    if (m && open_parts(m, path, context, sequences, st) != BR_OK) {
        br_llm_close(m);
        m = NULL;
    }
    return m;
}

void
br_llm_close(br_llm *m)
{
    if (!m)
        return;
    br_lm_model_close(m->lm);
    br_tok_work_free(m->work);
    br_tok_free(m->tok);
    br_model_close(m->model);
    br_free(m->taken);
    br_free(m);
}

uint32_t
br_llm_context(const br_llm *m)
{
    return br_lm_model_lm(m->lm)->n_ctx;
}

int32_t
br_llm_vocabulary(const br_llm *m)
{
    return br_tok_count(m->tok);
}

_Static_assert((int)BRASS_ADD_SPECIAL == (int)BR_TOK_ADD_SPECIAL &&
                   (int)BRASS_PARSE_SPECIAL == (int)BR_TOK_PARSE_SPECIAL,
               "flags of brass.h are the tokenizer's");

size_t
br_llm_tokenize(br_llm *m, const char *text, size_t n, int flags, int32_t *ids,
                size_t most, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_tok_ids all = {0};
    size_t count = (size_t)-1;

    if (br_tok_encode(m->tok, m->work, (br_text){text, n}, flags, &all, st) ==
        BR_OK) {
        count = all.n;
        if (BR_MIN(count, most))
            memcpy(ids, all.at, BR_MIN(count, most) * sizeof *ids);
    }
    br_vec_fini(&all);
    return count;
}

char *
br_llm_detokenize(const br_llm *m, const int32_t *ids, size_t count, size_t *n,
                  br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_str out = {0};

    if (br_tok_decode(m->tok, ids, count, BR_TOK_SHOW_SPECIAL, &out, st) ==
        BR_OK)
        br_str_put(&out, "", 0); /* a NUL, were there no bytes */
    if (st->code == BR_OK && out.oom)
        br_fail(st, BR_E_OOM, "detokenize: out of memory");
    if (st->code != BR_OK) {
        br_str_fini(&out);
        return NULL;
    }
    if (n)
        *n = out.n;
    return out.at;
}

/* ---- sequences ----------------------------------------------------------- */

void
br_sampling_init(br_sampling *s)
{
    br_sample_params d = br_sample_defaults();

    *s = (br_sampling){.max_tokens = -1,
                       .temperature = d.temperature,
                       .top_p = d.top_p,
                       .min_p = d.min_p,
                       .typical = d.typical,
                       .repeat_penalty = d.repeat,
                       .top_k = d.top_k,
                       .penalty_last_n = d.penalty_last_n};
}

static br_code
take_slot(br_seq *s, br_status *st)
{
    uint32_t n = br_lm_model_lm(s->m->lm)->n_slots;

    while (s->slot < n && s->m->taken[s->slot])
        s->slot++;
    if (s->slot == n)
        return br_fail(st, BR_E_LIMIT, "all %u sequences are in use", n);
    BR_TRY(br_session_new(&s->session, br_lm_model_lm(s->m->lm), s->m->tok,
                          s->slot, st));
    s->m->taken[s->slot] = true;
    return BR_OK;
}

br_seq *
br_seq_new(br_llm *m, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_seq *s = br_api_handle(sizeof *s, st);

    if (!s)
        return NULL;
    s->m = m;
    if (take_slot(s, st) != BR_OK) {
        br_free(s);
        return NULL;
    }
    return s;
}

void
br_seq_free(br_seq *s)
{
    if (!s)
        return;
    br_session_reset(s->session);
    s->m->taken[s->slot] = false;
    br_session_free(s->session);
    br_chat_free(s->chat);
    br_vec_fini(&s->prompt);
    br_free(s);
}

void
br_seq_reset(br_seq *s)
{
    br_session_reset(s->session);
    if (s->chat)
        br_chat_cut(s->chat, 0);
}

void
br_seq_cancel(br_seq *s)
{
    /* The loop looks once a token; nothing hangs on its order. */
    atomic_store_explicit(&s->cancel, true, memory_order_relaxed);
}

static bool
on_text(void *ctx, br_text piece)
{
    br_seq *s = ctx;

    if (s->reply)
        br_str_put(s->reply, piece.p, piece.n);
    return !s->fn || s->fn(s->ctx, piece.p, piece.n);
}

br_sample_params
br_api_sample(const br_sampling *how)
{
    br_sample_params p = br_sample_defaults();

    p.seed = how->seed;
    p.temperature = how->temperature;
    p.top_k = how->top_k;
    p.top_p = how->top_p;
    p.min_p = how->min_p;
    p.typical = how->typical;
    p.repeat = how->repeat_penalty;
    p.presence = how->presence_penalty;
    p.frequency = how->frequency_penalty;
    p.penalty_last_n = how->penalty_last_n;
    return p;
}

static br_gen_params
params_of(br_seq *s, const br_sampling *how)
{
    br_gen_params p = br_gen_defaults();
    br_sampling d;

    br_sampling_init(&d);
    how = how ? how : &d;
    p.sample = br_api_sample(how);
    p.max_tokens = how->max_tokens;
    p.stop = how->stop;
    p.n_stop = how->n_stop;
    p.text = on_text;
    p.ctx = s;
    p.cancel = &s->cancel;
    return p;
}

static br_code
generate(br_seq *s, const br_sampling *how, br_status *st)
{
    br_gen_params p = params_of(s, how);

    atomic_store_explicit(&s->cancel, false, memory_order_relaxed);
    return br_session_generate(s->session, s->prompt.at, s->prompt.n, &p,
                               &s->stats, st);
}

static br_code
need_text(const char *text, const char *what, br_status *st)
{
    return text ? BR_OK : br_fail(st, BR_E_USAGE, "%s: NULL, not a text", what);
}

brass_code
br_seq_continue(br_seq *s, const char *prompt, const br_sampling *how,
                br_text_fn fn, void *ctx, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_code code = need_text(prompt, "prompt", st);

    s->fn = fn;
    s->ctx = ctx;
    s->reply = NULL;
    s->prompt.n = 0;
    if (code == BR_OK)
        code = br_tok_encode(s->m->tok, s->m->work, br_text_z(prompt),
                             BR_TOK_ADD_SPECIAL, &s->prompt, st);
    if (code == BR_OK)
        code = generate(s, how, st);
    return (brass_code)code;
}

static br_code
need_chat(br_seq *s, br_status *st)
{
    return s->chat ? BR_OK
                   : br_chat_new(&s->chat, s->m->model->gguf, s->m->tok, st);
}

static br_code
reply(br_seq *s, const char *message, const br_sampling *how, br_status *st)
{
    BR_TRY(br_chat_add(s->chat, "user", br_text_z(message), st));
    s->prompt.n = 0;
    BR_TRY(br_chat_prompt(s->chat, s->m->work, &s->prompt, st));
    BR_TRY(generate(s, how, st));
    if (s->reply->oom)
        return br_fail(st, BR_E_OOM, "answer: out of memory");
    return br_chat_add(s->chat, "assistant",
                       (br_text){br_str_z(s->reply), s->reply->n}, st);
}

brass_code
br_seq_say(br_seq *s, const char *message, const br_sampling *how,
           br_text_fn fn, void *ctx, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_str text = {0};
    br_code code = need_text(message, "message", st);

    if (code == BR_OK)
        code = need_chat(s, st);
    if (code == BR_OK) {
        size_t before = br_chat_count(s->chat);

        s->fn = fn;
        s->ctx = ctx;
        s->reply = &text;
        code = reply(s, message, how, st);
        s->reply = NULL;
        if (code != BR_OK)
            br_chat_cut(s->chat, before);
    }
    br_str_fini(&text);
    return (brass_code)code;
}

brass_code
br_seq_system(br_seq *s, const char *text, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_code code = need_text(text, "system text", st);

    if (code == BR_OK)
        code = need_chat(s, st);
    if (code == BR_OK)
        code = br_chat_system(s->chat, br_text_z(text), st);
    return (brass_code)code;
}

const char *
br_seq_end(const br_seq *s)
{
    return br_gen_end_name(s->stats.end);
}

uint32_t
br_seq_tokens(const br_seq *s)
{
    return s->stats.n_out;
}

double
br_seq_rate(const br_seq *s)
{
    return br_gen_decode_rate(&s->stats);
}
