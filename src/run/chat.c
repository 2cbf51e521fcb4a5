/* chat.c - see chat.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/chat.h"

#include "base/thread.h"
#include "model/jinja.h"

#include <stdlib.h>
#include <string.h>

#define MARK    BR_JINJA_MARK /* a message spells a token */
#define ENDS    BR_JINJA_ENDS /* and has done so */
#define MARK_N  BR_JINJA_MARK_BYTES
#define INSTEAD "\xef\xbf\xbd" /* U+FFFD, as long as a mark */

typedef struct message {
    br_str role, content;
    br_str json; /* the whole of it, if it is more than these two */
} message;

typedef struct variable {
    br_str name, json;
} variable;

struct br_chat {
    const br_tok *tok;
    br_jinja *template;
    br_str source; /* of it */
    const br_tool_syntax *tools;
    const br_think *think;
    bool has_effort, has_switch; /* reasoning_effort, enable_thinking */
    BR_VEC(message) messages;
    BR_VEC(variable) vars;
    bool open;               /* the text ends within the last message */
    int64_t now;             /* 0: the clock's */
    BR_VEC(br_text) control; /* spellings of control tokens, sorted */
};

static void
variable_fini(variable *v)
{
    br_str_fini(&v->name);
    br_str_fini(&v->json);
}

/* ---- making one ---------------------------------------------------------- */

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "chat: out of memory");
}

static int
by_bytes(const void *a, const void *b)
{
    const br_text *x = a, *y = b;
    int d = memcmp(x->p, y->p, BR_MIN(x->n, y->n));

    return d ? d : (x->n > y->n) - (x->n < y->n);
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
    if (c->control.n)
        qsort(c->control.at, c->control.n, sizeof *c->control.at, by_bytes);
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
    c->tools = br_tool_syntax_of(source);
    c->think = br_think_of(source);
    c->has_effort = memmem(source.p, source.n, "reasoning_effort", 16);
    c->has_switch = memmem(source.p, source.n, "enable_thinking", 15);
    br_str_put(&c->source, source.p, source.n);
    code = br_jinja_compile(&c->template, source.p, source.n, st);
    if (code != BR_OK)
        (void)br_prefix(st, "chat template");
    else
        code = c->source.oom ? oom(st) : list_control(c, st);
    if (code != BR_OK)
        br_chat_free(c);
    else
        *out = c;
    return code;
}

br_text
br_chat_source(const br_chat *c)
{
    return (br_text){c->source.n ? c->source.at : "", c->source.n};
}

const br_tool_syntax *
br_chat_tools(const br_chat *c)
{
    return c->tools;
}

const br_think *
br_chat_think(const br_chat *c)
{
    return c->think;
}

br_code
br_chat_effort(br_chat *c, const char *effort, br_status *st)
{
    br_json text = {.kind = BR_J_STR}, on = {.kind = BR_J_BOOL};
    bool none = effort && strcmp(effort, "none") == 0;

    if (effort) {
        text.s = effort;
        text.n = (uint32_t)strlen(effort);
        on.b = !none;
    }
    BR_TRY(br_chat_set(c, "reasoning_effort",
                       effort && c->has_effort ? &text : NULL, st));
    BR_TRY(br_chat_set(c, "enable_thinking",
                       effort && c->has_switch ? &on : NULL, st));
    if (!effort ||
        (none ? c->has_switch || !c->think
              : c->has_effort || (c->has_switch && !strcmp(effort, "medium"))))
        return BR_OK;
    return br_fail(st, BR_E_USAGE,
                   "the model's chat template has no reasoning effort '%s'",
                   effort);
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
    for (size_t i = 0; i < c->vars.n; i++)
        variable_fini(&c->vars.at[i]);
    br_vec_fini(&c->vars);
    br_jinja_free(c->template);
    br_str_fini(&c->source);
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
    br_str_fini(&m->json);
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

/* ---- messages and variables as JSON -------------------------------------- */

/* One text of a list of parts. */
static br_code
join_parts(const br_json *list, br_str *out, br_status *st)
{
    int i = 0;

    for (const br_json *p = list->child; p; p = p->next, i++) {
        const br_json *type = br_json_get(p, "type");
        const br_json *text = br_json_get(p, "text");

        if (p->kind != BR_J_OBJ || !type || type->kind != BR_J_STR)
            return br_fail(st, BR_E_FORMAT,
                           "content[%d]: expected an object with a type", i);
        if (!br_json_is(type, "text") && !br_json_is(type, "input_text") &&
            !br_json_is(type, "output_text")) /* of responses */
            return br_fail(st, BR_E_UNSUPPORTED,
                           "content[%d]: of type '%.40s'; only text is read", i,
                           type->s);
        if (!text || text->kind != BR_J_STR)
            return br_fail(st, BR_E_FORMAT, "content[%d].text: expected a text",
                           i);
        br_str_put(out, text->s, text->n);
    }
    return BR_OK;
}

/* Requests carry the arguments of a call as a text; templates were written for
 * objects. */
static void
write_arguments(br_json_writer *w, const br_json *v)
{
    br_status none = {0};
    br_json *args;
    br_arena a;
    br_code code = BR_E_FORMAT;

    br_arena_init(&a, 0);
    if (v->kind == BR_J_STR)
        code = br_json_parse(&args, &a, v->s, v->n, 0, &none);
    if (code == BR_OK && args->kind == BR_J_OBJ)
        br_json_w_tree(w, args);
    else
        br_json_w_tree(w, v);
    w->out->oom |= code == BR_E_OOM;
    br_arena_fini(&a);
}

/* Of a call, and of the function in it. */
static void
write_call(br_json_writer *w, const br_json *call, bool outer)
{
    if (call->kind != BR_J_OBJ) {
        br_json_w_tree(w, call);
        return;
    }
    br_json_w_obj(w);
    for (const br_json *m = call->child; m; m = m->next) {
        br_json_w_key_n(w, (br_text){m->key, m->key_n});
        if (outer && br_json_key_is(m, "function"))
            write_call(w, m, false);
        else if (br_json_key_is(m, "arguments"))
            write_arguments(w, m);
        else
            br_json_w_tree(w, m);
    }
    br_json_w_obj_end(w);
}

static void
write_message(br_json_writer *w, const br_json *j, br_text content)
{
    br_json_w_obj(w);
    for (const br_json *m = j->child; m; m = m->next) {
        br_json_w_key_n(w, (br_text){m->key, m->key_n});
        if (br_json_key_is(m, "content") && m->kind != BR_J_NULL) {
            br_json_w_str(w, content);
        } else if (br_json_key_is(m, "tool_calls") && m->kind == BR_J_ARR) {
            br_json_w_arr(w);
            for (const br_json *call = m->child; call; call = call->next)
                write_call(w, call, true);
            br_json_w_arr_end(w);
        } else {
            br_json_w_tree(w, m);
        }
    }
    br_json_w_obj_end(w);
}

static void
begin_json(br_json_writer *w, br_str *out)
{
    br_json_w_begin(w, out, 0);
    w->compact = true;
    w->utf8 = true;
}

/* That it can be read back: arguments that were a text may be as deep as a
 * document, and now lie deeper. */
static br_code
check_json(const br_str *json, const char *what, br_status *st)
{
    br_json *v;
    br_arena a;
    br_code code;

    if (json->oom)
        return oom(st);
    if (json->n > BR_CHAT_MAX_BYTES)
        return br_fail(st, BR_E_LIMIT, "chat: %.40s: over %d bytes", what,
                       BR_CHAT_MAX_BYTES);
    br_arena_init(&a, 0);
    code = br_json_parse(&v, &a, json->at, json->n, BR_JSON_LAX, st);
    br_arena_fini(&a);
    return code == BR_OK ? code : br_prefix(st, "chat: %.40s", what);
}

br_code
br_chat_add_json(br_chat *c, const br_json *j, br_status *st)
{
    const br_json *role = br_json_get(j, "role");
    const br_json *content = br_json_get(j, "content");
    br_str text = {0};
    br_json_writer w;
    br_code code = BR_OK;
    message *m;

    if (j->kind != BR_J_OBJ || !role || role->kind != BR_J_STR || !role->n)
        return br_fail(st, BR_E_FORMAT, "role: expected a text");
    if (content && content->kind == BR_J_ARR)
        code = join_parts(content, &text, st);
    else if (content && content->kind == BR_J_STR)
        br_str_put(&text, content->s, content->n);
    else if (content && content->kind != BR_J_NULL)
        code = br_fail(st, BR_E_FORMAT,
                       "content: expected a text or a list of parts");
    if (code == BR_OK && text.oom)
        code = oom(st);
    if (code == BR_OK)
        code = br_chat_add(c, role->s, (br_text){br_str_z(&text), text.n}, st);
    br_str_fini(&text);
    BR_TRY(code);
    m = &c->messages.at[c->messages.n - 1];
    begin_json(&w, &m->json);
    write_message(&w, j, br_chat_content(c, c->messages.n - 1));
    code = check_json(&m->json, role->s, st);
    if (code != BR_OK)
        br_chat_cut(c, c->messages.n - 1);
    return code;
}

br_code
br_chat_set(br_chat *c, const char *name, const br_json *value, br_status *st)
{
    variable v = {0};
    br_json_writer w;
    br_code code = BR_OK;
    size_t i = 0;

    while (i < c->vars.n && strcmp(c->vars.at[i].name.at, name) != 0)
        i++;
    br_str_puts(&v.name, name);
    begin_json(&w, &v.json);
    if (value && value->kind != BR_J_NULL)
        br_json_w_tree(&w, value);
    if (i == BR_CHAT_MAX_VARS)
        code = br_fail(st, BR_E_LIMIT, "chat: over %d variables",
                       BR_CHAT_MAX_VARS);
    else if (v.json.n || v.json.oom)
        code = check_json(&v.json, name, st);
    if (code == BR_OK && (v.name.oom || !br_vec_reserve(&c->vars, i + 1)))
        code = oom(st);
    if (code != BR_OK) {
        variable_fini(&v);
        return code;
    }
    if (i < c->vars.n)
        variable_fini(&c->vars.at[i]);
    else
        c->vars.n++;
    c->vars.at[i] = v;
    return BR_OK;
}

void
br_chat_set_now(br_chat *c, int64_t now)
{
    c->now = now;
}

/* ---- messages, again ------------------------------------------------------ */

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

/* The first of [lo, hi), which are alike up to byte k, whose byte k is b or
 * comes behind it; what ends there comes before all. */
static size_t
first_from(const br_chat *c, size_t lo, size_t hi, size_t k, int b)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        br_text s = c->control.at[mid];

        if ((s.n > k ? (uint8_t)s.p[k] : -1) < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest spelling of a control token that begins here: some models have
 * thousands of them, and texts may try them all at every byte. */
static size_t
control_at(const br_chat *c, br_text t, size_t at)
{
    size_t best = 0, lo = 0, hi = c->control.n;

    for (size_t k = 0; lo < hi && at + k < t.n; k++) {
        uint8_t b = (uint8_t)t.p[at + k];

        lo = first_from(c, lo, hi, k, b);
        hi = first_from(c, lo, hi, k, b + 1);
        if (lo < hi && c->control.at[lo].n == k + 1)
            best = k + 1;
    }
    return best;
}

/* Nothing between marks, as no text of somebody's can hold it: where a message
 * that goes on ends. */
#define OPEN MARK ENDS

static bool
is_mark(br_text t, size_t at, const char *mark)
{
    return t.n - at >= MARK_N && memcmp(t.p + at, mark, MARK_N) == 0;
}

static void
mark_control(const br_chat *c, br_text t, br_str *out)
{
    bool begins[256] = {false};

    begins[(uint8_t)MARK[0]] = true;
    for (size_t i = 0; i < c->control.n; i++)
        begins[(uint8_t)c->control.at[i].p[0]] = true;
    for (size_t at = 0, n; at < t.n; at += n) {
        for (n = 0; at + n < t.n && !begins[(uint8_t)t.p[at + n]]; n++)
            ;
        br_str_put(out, t.p + at, n);
        at += n;
        n = control_at(c, t, at);
        if (n) {
            br_str_puts(out, MARK);
            br_str_put(out, t.p + at, n);
            br_str_puts(out, ENDS);
        } else if (is_mark(t, at, MARK) || is_mark(t, at, ENDS)) {
            br_str_puts(out, INSTEAD);
            n = MARK_N;
        } else if (at < t.n) {
            br_str_putc(out, t.p[at]);
            n = 1;
        }
    }
}

static bool
put_text(br_arena *a, br_json *obj, const char *key, br_text t)
{
    br_json *v = br_json_new_str(a, t);

    return v && br_json_put(a, obj, key, v);
}

/* A text of somebody else's, marked; NULL: out of memory. */
static const char *
marked(const br_chat *c, br_arena *a, br_text t, bool open, uint32_t *n)
{
    br_str s = {0};
    const char *p;

    mark_control(c, t, &s);
    br_str_puts(&s, open ? OPEN : "");
    p = s.oom ? NULL : br_arena_str(a, br_str_z(&s), s.n);
    *n = (uint32_t)s.n;
    br_str_fini(&s);
    return p;
}

/* Every text of a tree; br_json_parse has seen to its depth. */
static bool
mark_tree(const br_chat *c, br_arena *a, br_json *v)
{
    if (v->kind == BR_J_STR)
        return (v->s = marked(c, a, (br_text){v->s, v->n}, false, &v->n)) !=
               NULL;
    if (v->kind != BR_J_ARR && v->kind != BR_J_OBJ)
        return true;
    for (br_json *m = v->child; m; m = m->next) {
        if (v->kind == BR_J_OBJ &&
            !(m->key =
                  marked(c, a, (br_text){m->key, m->key_n}, false, &m->key_n)))
            return false;
        if (!mark_tree(c, a, m))
            return false;
    }
    return true;
}

/* NULL: out of memory; the text has been read before. */
static br_json *
tree_of(const br_chat *c, br_arena *a, const br_str *json)
{
    br_status none = {0};
    br_json *v;

    if (br_json_parse(&v, a, json->at, json->n, BR_JSON_LAX, &none) != BR_OK)
        return NULL;
    return mark_tree(c, a, v) ? v : NULL;
}

static bool
put_message(const br_chat *c, br_arena *a, br_json *list, size_t i)
{
    const br_str *json = &c->messages.at[i].json;
    br_json *m;
    uint32_t n;
    const char *p;

    if (json->n) {
        m = tree_of(c, a, json);
        return m && br_json_append(list, m);
    }
    m = br_json_new(a, BR_J_OBJ);
    p = marked(c, a, br_chat_content(c, i), c->open && i + 1 == c->messages.n,
               &n);
    return m && p && put_text(a, m, "role", br_text_z(br_chat_role(c, i))) &&
           put_text(a, m, "content", (br_text){p, n}) &&
           br_json_append(list, m);
}

static br_text
role_text(const br_chat *c, br_tok_role role)
{
    int32_t id = br_tok_role_id(c->tok, role);

    return id < 0 ? (br_text){"", 0} : br_tok_text(c->tok, id);
}

static bool
put_vars(const br_chat *c, br_arena *a, br_json *obj)
{
    for (size_t i = 0; i < c->vars.n; i++) {
        const variable *var = &c->vars.at[i];
        br_json *v;

        if (var->json.n && (!(v = tree_of(c, a, &var->json)) ||
                            !br_json_put(a, obj, var->name.at, v)))
            return false;
    }
    return true;
}

static br_json *
context_of(const br_chat *c, br_arena *a)
{
    br_json *obj = br_json_new(a, BR_J_OBJ), *yes = br_json_new(a, BR_J_BOOL);
    br_json *list = br_json_new(a, BR_J_ARR);

    if (!obj || !yes || !list || !put_vars(c, a, obj))
        return NULL;
    yes->b = !c->open;
    for (size_t i = 0; i < c->messages.n; i++)
        if (!put_message(c, a, list, i))
            return NULL;
    if (!br_json_put(a, obj, "messages", list))
        return NULL;
    return (br_json_get(obj, "add_generation_prompt") ||
            br_json_put(a, obj, "add_generation_prompt", yes)) &&
                   (br_json_get(obj, "bos_token") ||
                    put_text(a, obj, "bos_token", role_text(c, BR_TOK_BOS))) &&
                   (br_json_get(obj, "eos_token") ||
                    put_text(a, obj, "eos_token", role_text(c, BR_TOK_EOS)))
               ? obj
               : NULL;
}

/* Bytes up to the first mark, or all. */
static size_t
before_mark(br_text t)
{
    const char *p = t.p, *end = t.p + t.n;

    while ((p = memchr(p, MARK[0], (size_t)(end - p))) &&
           !is_mark(t, (size_t)(p - t.p), MARK) &&
           !is_mark(t, (size_t)(p - t.p), ENDS))
        p++;
    return p ? (size_t)(p - t.p) : t.n;
}

/* A spelling between its marks is what a message said. Of one that the template
 * has cut through (content.split('</think>')) a mark is left, which says nothing:
 * what is behind it is the template's, or another message's. */
br_code
br_chat_encode(const br_chat *c, br_tok_work *w, br_text t, br_tok_ids *ids,
               br_status *st)
{
    br_text bos = role_text(c, BR_TOK_BOS);
    int flags = BR_TOK_PARSE_SPECIAL;

    if (br_tok_adds_bos(c->tok) && bos.n &&
        (t.n < bos.n || memcmp(t.p, bos.p, bos.n) != 0) &&
        !br_vec_push(ids, br_tok_role_id(c->tok, BR_TOK_BOS)))
        return oom(st);
    for (;;) {
        size_t n = before_mark(t);
        bool said;

        BR_TRY(br_tok_encode(c->tok, w, (br_text){t.p, n}, flags, ids, st));
        if (n == t.n)
            return BR_OK;
        said = is_mark(t, n, MARK);
        t = (br_text){t.p + n + MARK_N, t.n - n - MARK_N};
        said = said && is_mark(t, control_at(c, t, 0), ENDS);
        flags = BR_TOK_GOES_ON | (said ? 0 : BR_TOK_PARSE_SPECIAL);
    }
}

void
br_chat_open(br_chat *c, bool open)
{
    c->open = open;
}

static br_code
leave_open(br_str *text, br_status *st)
{
    const char *end = br_str_z(text) + text->n, *last = NULL;

    for (const char *at = br_str_z(text);
         (at = memmem(at, (size_t)(end - at), OPEN, 2 * MARK_N)); at += MARK_N)
        last = at;
    if (!last)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "the last message cannot go on: there is none of it");
    text->n = (size_t)(last - text->at);
    return BR_OK;
}

br_code
br_chat_render(const br_chat *c, br_str *text, br_status *st)
{
    const br_json *context;
    br_code code;
    br_arena a;

    br_arena_init(&a, 0);
    context = context_of(c, &a);
    code = context
               ? br_jinja_render(c->template, context,
                                 c->now ? c->now : br_wall_ns() / 1000000000,
                                 text, st)
               : oom(st);
    br_arena_fini(&a);
    if (code == BR_OK && c->open)
        code = leave_open(text, st);
    return code == BR_OK ? code : br_prefix(st, "chat template");
}

br_code
br_chat_prompt(const br_chat *c, br_tok_work *w, br_tok_ids *ids, br_status *st)
{
    size_t before = ids->n;
    br_str text = {0};
    br_code code = br_chat_render(c, &text, st);

    if (code == BR_OK)
        code =
            br_chat_encode(c, w, (br_text){br_str_z(&text), text.n}, ids, st);
    if (code != BR_OK)
        ids->n = before;
    br_str_fini(&text);
    return code;
}
