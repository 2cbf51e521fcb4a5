/* chat.c - see chat.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/chat.h"

#include "base/thread.h"
#include "model/jinja.h"

#include <string.h>

#define MARK    "\xef\xb7\x90" /* U+FDD0 */
#define MARK_N  3
#define INSTEAD "\xef\xbf\xbd" /* U+FFFD, as long as the mark */

typedef struct message {
    br_str role, content;
} message;

struct br_chat {
    const br_tok *tok;
    br_jinja *template;
    BR_VEC(message) messages;
    BR_VEC(br_text) control; /* spellings of control tokens */
};

/* ---- making one ---------------------------------------------------------- */

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "chat: out of memory");
}

static br_code
list_control(br_chat *c, br_status *st)
{
    for (int32_t id = 0; id < br_tok_count(c->tok); id++) {
        br_text t = br_tok_text(c->tok, id);

        if (br_tok_is_special(c->tok, id) && t.n &&
            !br_vec_push(&c->control, t))
            return oom(st);
    }
    return BR_OK;
}

br_code
br_chat_from_template(br_chat **out, br_text source, const br_tok *tok,
                      br_status *st)
{
    br_chat *c = br_try_calloc(1, sizeof *c);
    br_code code;

    *out = NULL;
    if (!c)
        return oom(st);
    c->tok = tok;
    code = br_jinja_compile(&c->template, source.p, source.n, st);
    if (code != BR_OK)
        (void)br_prefix(st, "chat template");
    else
        code = list_control(c, st);
    if (code != BR_OK)
        br_chat_free(c);
    else
        *out = c;
    return code;
}

br_code
br_chat_new(br_chat **out, const br_gguf *g, const br_tok *tok, br_status *st)
{
    const br_gguf_kv *kv = br_gguf_find(g, "tokenizer.chat_template");
    br_text source;

    *out = NULL;
    if (!kv || !br_gguf_str(kv, 0, &source))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "the file has no chat template, so the model was not "
                       "taught to chat; brass run without --chat continues a "
                       "text");
    return br_chat_from_template(out, source, tok, st);
}

void
br_chat_free(br_chat *c)
{
    if (!c)
        return;
    br_chat_cut(c, 0);
    br_jinja_free(c->template);
    br_vec_fini(&c->messages);
    br_vec_fini(&c->control);
    br_free(c);
}

/* ---- messages ------------------------------------------------------------ */

static void
message_fini(message *m)
{
    br_str_fini(&m->role);
    br_str_fini(&m->content);
}

static br_code
make(br_chat *c, message *m, const char *role, br_text content, br_status *st)
{
    br_tok_stream s;

    *m = (message){0};
    if (content.n > BR_CHAT_MAX_BYTES)
        return br_fail(st, BR_E_LIMIT, "chat: a message of over %d bytes",
                       BR_CHAT_MAX_BYTES);
    if (c->messages.n >= BR_CHAT_MAX_MESSAGES)
        return br_fail(st, BR_E_LIMIT, "chat: over %d messages",
                       BR_CHAT_MAX_MESSAGES);
    br_str_puts(&m->role, role);
    br_tok_stream_begin(&s, c->tok, false);
    br_tok_stream_bytes(&s, content, &m->content);
    br_tok_stream_end(&s, &m->content);
    if (!m->role.oom && !m->content.oom)
        return BR_OK;
    message_fini(m);
    return oom(st);
}

br_code
br_chat_add(br_chat *c, const char *role, br_text content, br_status *st)
{
    message m;

    BR_TRY(make(c, &m, role, content, st));
    if (br_vec_push(&c->messages, m))
        return BR_OK;
    message_fini(&m);
    return oom(st);
}

br_code
br_chat_system(br_chat *c, br_text content, br_status *st)
{
    bool has = c->messages.n && strcmp(br_chat_role(c, 0), "system") == 0;
    message m;

    if (content.n) {
        BR_TRY(make(c, &m, "system", content, st));
        if (!has && !br_vec_reserve(&c->messages, c->messages.n + 1)) {
            message_fini(&m);
            return oom(st);
        }
    }
    if (has)
        message_fini(&c->messages.at[0]);
    if (has != (content.n > 0)) {
        memmove(c->messages.at + !has, c->messages.at + has,
                (c->messages.n - has) * sizeof(message));
        c->messages.n += has ? (size_t)-1 : 1;
    }
    if (content.n)
        c->messages.at[0] = m;
    return BR_OK;
}

size_t
br_chat_count(const br_chat *c)
{
    return c->messages.n;
}

const char *
br_chat_role(const br_chat *c, size_t i)
{
    br_assert(i < c->messages.n);
    return c->messages.at[i].role.at;
}

br_text
br_chat_content(const br_chat *c, size_t i)
{
    const br_str *s = &c->messages.at[i].content;

    br_assert(i < c->messages.n);
    return (br_text){s->n ? s->at : "", s->n};
}

void
br_chat_cut(br_chat *c, size_t n)
{
    while (c->messages.n > n)
        message_fini(&c->messages.at[--c->messages.n]);
}

/* ---- the prompt ---------------------------------------------------------- */

/* The longest spelling of a control token that begins here. */
static size_t
control_at(const br_chat *c, br_text t, size_t at)
{
    size_t best = 0;

    for (size_t i = 0; i < c->control.n; i++) {
        br_text s = c->control.at[i];

        if (s.n > best && s.n <= t.n - at && t.p[at] == s.p[0] &&
            memcmp(t.p + at, s.p, s.n) == 0)
            best = s.n;
    }
    return best;
}

/* Where one could begin: all begin with few different bytes. */
static void
mark_control(const br_chat *c, br_text t, br_str *out)
{
    bool begins[256] = {false};

    for (size_t i = 0; i < c->control.n; i++)
        begins[(uint8_t)c->control.at[i].p[0]] = true;
    for (size_t at = 0; at < t.n;) {
        size_t n = begins[(uint8_t)t.p[at]] ? control_at(c, t, at) : 0;

        if (n) {
            br_str_puts(out, MARK);
            br_str_put(out, t.p + at, n);
            br_str_puts(out, MARK);
            at += n;
        } else if (t.n - at >= MARK_N && memcmp(t.p + at, MARK, MARK_N) == 0) {
            br_str_puts(out, INSTEAD);
            at += MARK_N;
        } else {
            br_str_putc(out, t.p[at++]);
        }
    }
}

static bool
put_text(br_arena *a, br_json *obj, const char *key, br_text t)
{
    br_json *v = br_json_new_str(a, t);

    return v && br_json_put(a, obj, key, v);
}

static bool
put_message(const br_chat *c, br_arena *a, br_json *list, size_t i)
{
    br_json *m = br_json_new(a, BR_J_OBJ);
    br_str marked = {0};
    bool ok;

    mark_control(c, br_chat_content(c, i), &marked);
    ok = m && !marked.oom &&
         put_text(a, m, "role", br_text_z(br_chat_role(c, i))) &&
         put_text(a, m, "content", (br_text){br_str_z(&marked), marked.n}) &&
         br_json_append(list, m);
    br_str_fini(&marked);
    return ok;
}

static br_text
role_text(const br_chat *c, br_tok_role role)
{
    int32_t id = br_tok_role_id(c->tok, role);

    return id < 0 ? (br_text){"", 0} : br_tok_text(c->tok, id);
}

static br_json *
context_of(const br_chat *c, br_arena *a)
{
    br_json *obj = br_json_new(a, BR_J_OBJ), *yes = br_json_new(a, BR_J_BOOL);
    br_json *list = br_json_new(a, BR_J_ARR);

    if (!obj || !yes || !list)
        return NULL;
    yes->b = true;
    for (size_t i = 0; i < c->messages.n; i++)
        if (!put_message(c, a, list, i))
            return NULL;
    return br_json_put(a, obj, "messages", list) &&
                   br_json_put(a, obj, "add_generation_prompt", yes) &&
                   put_text(a, obj, "bos_token", role_text(c, BR_TOK_BOS)) &&
                   put_text(a, obj, "eos_token", role_text(c, BR_TOK_EOS))
               ? obj
               : NULL;
}

/* Every second piece between marks is what a message said. */
static br_code
encode(const br_chat *c, br_tok_work *w, br_text t, br_tok_ids *ids,
       br_status *st)
{
    br_text bos = role_text(c, BR_TOK_BOS);
    int flags = BR_TOK_PARSE_SPECIAL;

    if (br_tok_adds_bos(c->tok) && bos.n &&
        (t.n < bos.n || memcmp(t.p, bos.p, bos.n) != 0) &&
        !br_vec_push(ids, br_tok_role_id(c->tok, BR_TOK_BOS)))
        return oom(st);
    for (;;) {
        const char *mark = memmem(t.p, t.n, MARK, MARK_N);
        size_t n = mark ? (size_t)(mark - t.p) : t.n;

        BR_TRY(br_tok_encode(c->tok, w, (br_text){t.p, n}, flags, ids, st));
        if (!mark)
            return BR_OK;
        t = (br_text){mark + MARK_N, t.n - n - MARK_N};
        flags ^= BR_TOK_PARSE_SPECIAL;
    }
}

br_code
br_chat_prompt(const br_chat *c, br_tok_work *w, br_tok_ids *ids, br_status *st)
{
    size_t before = ids->n;
    br_str text = {0};
    br_arena a;
    const br_json *context;
    br_code code;

    br_arena_init(&a, 0);
    context = context_of(c, &a);
    code = context ? br_jinja_render(c->template, context,
                                     br_wall_ns() / 1000000000, &text, st)
                   : oom(st);
    if (code != BR_OK)
        (void)br_prefix(st, "chat template");
    else
        code = encode(c, w, (br_text){br_str_z(&text), text.n}, ids, st);
    if (code != BR_OK)
        ids->n = before;
    br_str_fini(&text);
    br_arena_fini(&a);
    return code;
}
