/* think_cap.c - see think_cap.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/think_cap.h"

#include <math.h>
#include <stdio.h>

struct br_think_cap {
    br_think_cap_config of;
    br_think_reader reader;
    br_tok_stream stream;
    br_tok_ids close; /* what ends a thought */
    br_str text;      /* of a token */
    size_t at;        /* of close: said so far, while it is being said */
    uint32_t n;
    br_status why; /* the form's, or ours */
};

static bool
form_failed(br_think_cap *c)
{
    (void)br_hook_fails(&c->of.form, &c->why);
    return false;
}

static bool
is_due(const br_think_cap *c)
{
    return c->at || (c->n >= c->of.most && br_think_now(&c->reader));
}

static bool
mask(void *ctx, float *logits, int32_t n_vocab)
{
    br_think_cap *c = ctx;
    int32_t only = c->close.at[c->at];
    float x;

    if (c->of.form.mask && !c->of.form.mask(c->of.form.ctx, logits, n_vocab))
        return form_failed(c);
    if (!is_due(c) || only >= n_vocab || logits[only] == -INFINITY)
        return true;
    x = logits[only];
    for (int32_t i = 0; i < n_vocab; i++)
        logits[i] = -INFINITY;
    logits[only] = x;
    return true;
}

static void
ignore(void *ctx, bool thought, br_text piece)
{
    (void)ctx;
    (void)thought;
    (void)piece;
}

static bool
accept(void *ctx, int32_t token)
{
    br_think_cap *c = ctx;

    if (c->of.form.accept && !c->of.form.accept(c->of.form.ctx, token))
        return form_failed(c);
    c->at = is_due(c) && token == c->close.at[c->at] ? c->at + 1 : 0;
    if (c->at == c->close.n)
        c->at = 0;
    c->n += br_think_now(&c->reader);
    br_str_clear(&c->text);
    br_tok_stream_put(&c->stream, token, &c->text);
    if (c->text.oom ||
        !br_think_read(&c->reader, (br_text){br_str_z(&c->text), c->text.n},
                       false, ignore, NULL))
        return br_fail(&c->why, BR_E_OOM, "a thought: out of memory") == BR_OK;
    return true;
}

static br_code
list_close(br_think_cap *c, br_status *st)
{
    br_tok_work *w = br_tok_work_new();
    br_code code =
        w ? br_tok_encode(c->of.tok, w, br_text_z(br_think_close(c->of.t)),
                          BR_TOK_PARSE_SPECIAL, &c->close, st)
          : br_fail(st, BR_E_OOM, "a thought: out of memory");

    br_tok_work_free(w);
    if (code == BR_OK && !c->close.n)
        code = br_fail(st, BR_E_UNSUPPORTED,
                       "the model has no tokens that end a thought");
    return code;
}

br_code
br_think_cap_new(br_think_cap **out, const br_think_cap_config *config,
                 br_status *st)
{
    br_think_cap *c = br_try_calloc(1, sizeof *c);
    br_code code;

    *out = NULL;
    if (!c)
        return br_fail(st, BR_E_OOM, "a thought: out of memory");
    c->of = *config;
    br_think_begin_in(&c->reader, config->t, config->open);
    br_tok_stream_begin(&c->stream, config->tok, true);
    code = list_close(c, st);
    if (code != BR_OK)
        br_think_cap_free(c);
    else
        *out = c;
    return code;
}

void
br_think_cap_free(br_think_cap *c)
{
    if (!c)
        return;
    br_think_reader_fini(&c->reader);
    br_vec_fini(&c->close);
    br_str_fini(&c->text);
    br_free(c);
}

br_logit_hook
br_think_cap_hook(br_think_cap *c)
{
    return (br_logit_hook){mask, accept, c, c->why.msg, &c->why.code};
}
