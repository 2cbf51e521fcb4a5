/* gen_prompt.c - what a request asks, as tokens: the messages through the
 * model's template, or texts and tokens as they came; what its headers say;
 * and the prompt again in the answer, where that is wanted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/hash.h"
#include "base/thread.h"

#include <string.h>

/* Tokens of a prompt in which the mark of a thought stands. */
enum { TAIL = 32 };

/* Texts that cannot fit are refused before they are read: megabytes of them
 * would keep the server's thread from everybody else for a second. Of what a template
 * made half may be marks. */
static br_code
check_bytes(const br_http *h, uint64_t n, bool marked, br_status *st)
{
    const br_http_model *m = &h->model->m;
    uint64_t most = (uint64_t)m->n_ctx * BR_MAX(br_tok_longest(m->tok), 16u);

    if (n > most << marked)
        return br_fail(st, BR_E_LIMIT,
                       "the prompt has %llu bytes; the context of %u tokens "
                       "holds at most %llu",
                       (unsigned long long)n, m->n_ctx,
                       (unsigned long long)most);
    return BR_OK;
}

/* What only may change the thought asks for nothing where it cannot. */
static br_code
set_effort(br_chat *chat, br_ask *a, br_status *st)
{
    bool none = a->effort && strcmp(a->effort, "none") == 0;
    br_status why = {0};
    br_code code;

    if (a->wish && !none && br_chat_effort(chat, a->wish, &why) == BR_OK)
        return BR_OK;
    if (!a->may_think) {
        code = br_chat_effort(chat, a->effort, st);
        if (code != BR_E_USAGE || !a->effort_from)
            return code;
        a->param = a->effort_from;
        return br_prefix(st, "%s", a->param);
    }
    if (br_chat_effort(chat, a->effort, &why) == BR_OK)
        return BR_OK;
    return br_chat_effort(chat, NULL, st);
}

/* What the template makes of the ask's messages. */
static br_code
chat_text(br_http *h, br_ask *a, br_str *text, br_status *st)
{
    const br_json *vars = a->vars ? a->vars->child : NULL;
    br_chat *chat = h->model->m.chat;
    br_status none = {0};
    uint64_t bytes = 0;
    br_code code;

    if (!chat)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "the model has no chat template; /v1/completions "
                       "continues a text");
    for (size_t i = 0; i < a->messages.n; i++)
        bytes += a->messages.at[i].content.n;
    BR_TRY(check_bytes(h, bytes, false, st));
    br_chat_cut(chat, 0);
    BR_TRY(br_chat_set(chat, "tools", a->tool_list, st));
    BR_TRY(set_effort(chat, a, st));
    for (size_t i = 0; i < a->messages.n; i++) {
        const br_ask_message *m = &a->messages.at[i];

        if (m->json)
            BR_TRY(br_chat_add_json(chat, m->json, st));
        else
            BR_TRY(br_chat_add(chat, m->role, m->content, st));
    }
    code = BR_OK;
    br_chat_open(chat, a->goes_on);
    for (const br_json *v = vars; v && code == BR_OK; v = v->next)
        code = br_chat_set(chat, v->key, v, st);
    if (code == BR_OK)
        code = br_chat_render(chat, text, st);
    br_chat_open(chat, false);
    for (const br_json *v = vars; v; v = v->next)
        if (br_chat_set(chat, v->key, NULL, &none) != BR_OK)
            code = br_fail(st, BR_E_OOM, "out of memory");
    return code;
}

br_code
br_gen_texts(br_gen *g, size_t *bytes, br_status *st)
{
    br_ask *a = &g->ask;

    if (!a->prompts.n)
        BR_TRY(chat_text(g->h, a, &g->text, st));
    if (!g->wire->prompt) /* tools, calls of them, thoughts */
        BR_TRY(check_bytes(g->h, g->text.n, true, st));
    *bytes = g->text.n;
    for (size_t i = 0; i < a->prompts.n; i++) {
        if (!g->wire->prompt)
            BR_TRY(check_bytes(g->h, a->prompts.at[i].text.n, false, st));
        *bytes += a->prompts.at[i].text.n;
    }
    return BR_OK;
}

/* Whether it ends within a thought. */
static br_code
look_for_thought(br_gen *g, br_status *st)
{
    const br_tok_ids *ids = &g->h->ids;
    size_t n = BR_MIN(ids->n, (size_t)TAIL);
    br_str tail = {0};
    br_code code;

    if (!g->think)
        return BR_OK;
    code = br_tok_decode(g->model->m.tok, ids->at + ids->n - n, n,
                         BR_TOK_SHOW_SPECIAL | BR_TOK_KEEP_SPACES, &tail, st);
    g->thinks = code == BR_OK &&
                br_think_open(g->think, (br_text){br_str_z(&tail), tail.n});
    br_str_fini(&tail);
    return code;
}

const char *
br_gen_prompt_field(const br_gen *g)
{
    if (g->ask.api == BR_API_RERANK) /* the query is the last of them */
        return g->n_begun == g->n_choices ? "query" : "documents";
    if (g->wire->embeds || g->ask.api == BR_API_RESPONSES)
        return "input";
    return g->ask.prompts.n ? "prompt" : "messages";
}

br_code
br_gen_check_queue(br_gen *g, br_status *st)
{
    br_quota q;

    if (g->wire->embeds || g->resumed ||
        !br_engine_tenant_quota(g->model->m.engine, g->tenant, &q) ||
        g->n_choices <= q.max_queued)
        return BR_OK;
    g->ask.param = g->ask.n > 1 ? "n" : br_gen_prompt_field(g);
    return br_fail(st, BR_E_USAGE,
                   "%s: %u answers at once, of this tenant at most %u requests "
                   "may wait",
                   g->ask.param, g->n_choices, q.max_queued);
}

br_code
br_gen_which(const br_gen *g, br_code code, br_status *st)
{
    size_t i = (g->n_begun - 1) / (size_t)g->ask.n;
    const char *field = br_gen_prompt_field(g);

    if (code != BR_E_LIMIT || g->ask.prompts.n < 2)
        return code;
    return strcmp(field, "query") == 0 ? br_prefix(st, "query")
                                       : br_prefix(st, "%s[%zu]", field, i);
}

br_code
br_gen_encode(const br_gen *g, size_t i, br_tok_work *w, br_tok_ids *ids,
              br_status *st)
{
    const br_http_model *m = &g->model->m;
    const br_ask_prompt *p;

    if (!g->ask.prompts.n)
        return br_chat_encode(m->chat, w,
                              (br_text){g->text.n ? g->text.at : "", g->text.n},
                              ids, st);
    p = &g->ask.prompts.at[i];
    if (p->text.p)
        return br_tok_encode(m->tok, w, p->text, p->flags, ids, st);
    for (size_t k = 0; k < p->n_tokens; k++) {
        if (p->tokens[k] >= br_tok_count(m->tok))
            return br_fail(st, BR_E_USAGE, "%s: %d is no token",
                           br_gen_prompt_field(g), p->tokens[k]);
        if (!br_vec_push(ids, p->tokens[k]))
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    return BR_OK;
}

void
br_gen_swap_read(br_gen *g, size_t i)
{
    br_tok_ids ids = g->h->ids;

    if (!g->read)
        return;
    g->h->ids = g->read[i];
    g->read[i] = ids;
}

br_code
br_gen_prompt(br_gen *g, size_t i, br_status *st)
{
    br_http *h = g->h;

    h->ids.n = 0;
    if (g->read) {
        br_gen_swap_read(g, i);
    } else {
        g->ask.param = br_gen_prompt_field(g);
        BR_TRY(br_gen_encode(g, i, h->work, &h->ids, st));
        g->ask.param = NULL;
    }
    return g->ask.prompts.n ? BR_OK : look_for_thought(g, st);
}

/* ---- headers ------------------------------------------------------------- */

br_code
br_deadline_of(const br_http_conn *c, int64_t *ns, br_status *st)
{
    br_text t = br_http_header_of(&c->in, "x-deadline-ms");
    int64_t ms;

    *ns = 0;
    if (!t.p)
        return BR_OK;
    if (!br_json_to_i64(t, &ms) || ms < 1 || ms > INT64_C(86400000))
        return br_fail(st, BR_E_USAGE,
                       "X-Deadline-Ms: must be from 1 to 86400000");
    *ns = c->asked_ns + ms * 1000000;
    return BR_OK;
}

/* X-Session-Id, as proxies see it, too; 0: it has none. */
uint64_t
br_gen_session(const br_gen *g)
{
    br_text t = {0};

    if (g->c)
        t = br_http_header_of(&g->c->in, "x-session-id");
    return t.n ? br_siphash(br_hash_process_key(), t.p, t.n) : 0;
}

/* ---- in the answer ------------------------------------------------------- */

br_code
br_gen_echo(br_gen *g, br_choice *c, br_status *st)
{
    br_str text = {0};
    br_code code;

    /* logprobs come with them; choices that are vectors are no text */
    if (!g->ask.echo || g->ask.sample.logprobs || g->wire->embeds)
        return BR_OK;
    code = br_tok_decode(g->model->m.tok, g->h->ids.at, g->h->ids.n,
                         BR_TOK_STRIP_SPECIAL | BR_TOK_KEEP_SPACES, &text, st);
    if (code == BR_OK && text.n)
        br_gen_put_text(c, (br_text){text.at, text.n});
    br_str_fini(&text);
    return code;
}

/* A prompt that is echoed with what the model thinks of it. */
void
br_gen_put_prompt(br_choice *c, const br_output *o)
{
    br_gen *g = c->gen;
    br_status st = {0};
    br_str text = {0};
    bool ok = true;

    g->h->ids.n = 0;
    for (size_t i = 0; ok && i < (size_t)o->n_prompt * o->row; i++)
        ok = br_vec_push(&c->lp, o->prompt[i]) &&
             (i % o->row || br_vec_push(&g->h->ids, o->prompt[i].id));
    ok = ok && br_tok_decode(g->model->m.tok, g->h->ids.at, g->h->ids.n,
                             BR_TOK_STRIP_SPECIAL | BR_TOK_KEEP_SPACES, &text,
                             &st) == BR_OK;
    if (ok)
        br_gen_put_text(c, (br_text){br_str_z(&text), text.n});
    g->h->scratch.oom |= !ok;
    br_str_fini(&text);
}
