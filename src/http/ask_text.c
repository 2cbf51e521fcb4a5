/* ask_text.c - messages and prompts of a request, see ask.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include <stdio.h>
#include <string.h>

enum { MAX_MESSAGES = 65536, PLACE = 64 };

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "out of memory");
}

/* ---- contents ------------------------------------------------------------ */

/* What cannot be read, and that it is not the request's fault. */
static br_code
no_text(const char *place, size_t i, const char *type, br_status *st)
{
    static const struct {
        const char *type, *what;
    } rows[] = {{"image", "images"},       {"image_url", "images"},
                {"input_image", "images"}, {"input_audio", "sound"},
                {"audio_url", "sound"},    {"video_url", "films"},
                {"file", "files"},         {"input_file", "files"},
                {"document", "documents"}};

    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (strcmp(type, rows[k].type) == 0)
            return br_fail(st, BR_E_USAGE,
                           "%s[%zu].type: '%s': this server reads text only, "
                           "it has no model of %s",
                           place, i, type, rows[k].what);
    return br_fail(st, BR_E_USAGE,
                   "%s[%zu].type: '%.40s' is not supported by this model",
                   place, i, type);
}

/* One of a list of parts: {"type":"text","text":"..."}. */
static br_code
part_text(const br_json *part, const char *place, size_t i, br_text *out,
          br_status *st)
{
    const br_json *type, *text;

    if (part->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s[%zu]: must be an object", place, i);
    type = br_json_get(part, "type");
    if (!type || type->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s[%zu].type: must be a string", place,
                       i);
    if (!br_json_is(type, "text") && !br_json_is(type, "input_text") &&
        !br_json_is(type, "output_text"))
        return no_text(place, i, type->s, st);
    for (const br_json *m = part->child; m; m = m->next)
        if (!br_json_key_is(m, "type") && !br_json_key_is(m, "text") &&
            !br_json_key_is(m, "cache_control") && /* a hint about speed */
            !br_json_key_is(m, "annotations") &&
            !br_json_key_is(m, "logprobs") && m->kind != BR_J_NULL)
            return br_fail(st, BR_E_USAGE, "%s[%zu].%.40s: not supported",
                           place, i, m->key);
    text = br_json_get(part, "text");
    if (!text || text->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s[%zu].text: must be a string", place,
                       i);
    *out = (br_text){text->s, text->n};
    return BR_OK;
}

br_code
br_ask_content(br_ask *a, const br_json *v, const char *place, br_text *out,
               br_status *st)
{
    size_t total = 0, i = 0;
    br_text t;
    char *to;

    if (v && v->kind == BR_J_STR) {
        *out = (br_text){v->s, v->n};
        return BR_OK;
    }
    if (!v || v->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE,
                       "%s: must be a string or a list of parts", place);
    for (const br_json *p = v->child; p; p = p->next) {
        BR_TRY(part_text(p, place, i++, &t, st));
        total += t.n;
    }
    to = br_arena_get(&a->arena, total + 1);
    if (!to)
        return oom(st);
    *out = (br_text){to, total};
    for (const br_json *p = v->child; p; p = p->next) {
        BR_TRY(part_text(p, place, 0, &t, st));
        memcpy(to, t.p, t.n);
        to += t.n;
    }
    return BR_OK;
}

/* ---- messages ------------------------------------------------------------ */

static br_code
add_message(br_ask *a, const char *role, br_text content, br_status *st)
{
    return br_vec_push(&a->messages,
                       ((br_ask_message){.role = role, .content = content}))
               ? BR_OK
               : oom(st);
}

static br_code
read_role(const br_ask *a, const br_json *v, const char *place,
          const char **out, br_status *st)
{
    static const char *const roles[] = {"user", "assistant", "system",
                                        "developer"};
    size_t n = a->api == BR_API_MESSAGES || a->api == BR_API_COUNT
                   ? 2
                   : BR_COUNT(roles);

    if (!v || v->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s.role: must be a string", place);
    for (size_t i = 0; i < n; i++)
        if (br_json_is(v, roles[i])) {
            *out = i == 3 ? "system" : roles[i];
            return BR_OK;
        }
    return br_fail(st, BR_E_USAGE,
                   "%s.role: '%.40s' is not supported by this model", place,
                   v->s);
}

bool
br_ask_says_nothing(const br_json *m)
{
    static const char *const names[] = {"id", "status", "type", "annotations"};

    if (m->kind == BR_J_NULL || (m->kind == BR_J_ARR && !m->n))
        return true;
    for (size_t i = 0; i < BR_COUNT(names); i++)
        if (br_json_key_is(m, names[i]))
            return true;
    return false;
}

static br_code
read_message(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    const char *role = NULL;
    br_text content = {0};
    bool is_call = false;
    char at[PLACE + 16];

    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", place);
    BR_TRY(br_ask_item(a, v, place, &is_call, st));
    if (!is_call)
        BR_TRY(br_ask_tool_message(a, v, place, &is_call, st));
    if (is_call)
        return BR_OK;
    BR_TRY(read_role(a, br_json_get(v, "role"), place, &role, st));
    snprintf(at, sizeof at, "%s.content", place);
    BR_TRY(br_ask_content(a, br_json_get(v, "content"), at, &content, st));
    for (const br_json *m = v->child; m; m = m->next)
        if (!br_json_key_is(m, "role") && !br_json_key_is(m, "content") &&
            !br_ask_says_nothing(m))
            return br_fail(st, BR_E_USAGE,
                           "%s.%.40s: not supported by this model", place,
                           m->key);
    BR_TRY(br_ask_turn_says(a, role, content, &is_call, st));
    if (is_call)
        return BR_OK;
    return add_message(a, role, content, st);
}

br_code
br_ask_messages(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    char place[PLACE];
    size_t i = 0;

    if (v->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE, "%s: must be a list", name);
    if (v->n > MAX_MESSAGES)
        return br_fail(st, BR_E_LIMIT, "%s: over %d messages", name,
                       MAX_MESSAGES);
    for (const br_json *m = v->child; m; m = m->next) {
        snprintf(place, sizeof place, "%s[%zu]", name, i++);
        BR_TRY(read_message(a, m, place, st));
    }
    return BR_OK;
}

/* A text, or a list of messages. */
br_code
br_ask_input(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind == BR_J_STR)
        return add_message(a, "user", (br_text){v->s, v->n}, st);
    if (v->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE, "%s: must be a text or a list of items",
                       name);
    return br_ask_messages(a, v, name, st);
}

/* Goes before all messages, whenever it is read. */
br_code
br_ask_system(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    br_text text;

    BR_TRY(br_ask_content(a, v, name, &text, st));
    if (!text.n)
        return BR_OK;
    BR_TRY(add_message(a, "system", text, st));
    memmove(a->messages.at + 1, a->messages.at,
            (a->messages.n - 1) * sizeof *a->messages.at);
    a->messages.at[0] = (br_ask_message){.role = "system", .content = text};
    return BR_OK;
}

/* ---- prompts ------------------------------------------------------------- */

static br_code
add_prompt(br_ask *a, const char *name, br_ask_prompt p, br_status *st)
{
    size_t most = a->api & (BR_API_EMBED | BR_API_RERANK) ? BR_ASK_MAX_INPUTS
                                                          : BR_ASK_MAX_PROMPTS;

    if (a->prompts.n == most)
        return br_fail(st, BR_E_USAGE, "%s: over %zu texts", name, most);
    /* What begins a text would have a vector, too, that says nothing. */
    if (a->api == BR_API_EMBED && p.text.p && !p.text.n)
        return br_fail(st, BR_E_USAGE, "%s: text %zu is empty", name,
                       a->prompts.n);
    return br_vec_push(&a->prompts, p) ? BR_OK : oom(st);
}

static br_code
add_tokens(br_ask *a, const char *name, const br_json *list, br_status *st)
{
    int32_t *ids = br_arena_new(&a->arena, int32_t, list->n + 1);
    size_t n = 0;

    if (!ids)
        return oom(st);
    for (const br_json *e = list->child; e; e = e->next) {
        if (e->kind != BR_J_INT || e->i < 0 || e->i > INT32_MAX)
            return br_fail(st, BR_E_USAGE, "%s: item %zu is not a token's id",
                           name, n);
        ids[n++] = (int32_t)e->i;
    }
    return add_prompt(a, name, (br_ask_prompt){.tokens = ids, .n_tokens = n},
                      st);
}

/* "text", ["text", ...], [1, 2, ...] or [[1, 2], ...] */
static br_ask_prompt
text_prompt(const br_json *v)
{
    return (br_ask_prompt){.text = {v->s, v->n}, .flags = BR_TOK_ADD_SPECIAL};
}

br_code
br_ask_prompts(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind == BR_J_STR)
        return add_prompt(a, name, text_prompt(v), st);
    if (v->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE,
                       "%s: must be a string, token ids, or a list of those",
                       name);
    if (v->child && v->child->kind == BR_J_INT)
        return add_tokens(a, name, v, st);
    for (const br_json *e = v->child; e; e = e->next) {
        if (e->kind == BR_J_STR)
            BR_TRY(add_prompt(a, name, text_prompt(e), st));
        else if (e->kind == BR_J_ARR)
            BR_TRY(add_tokens(a, name, e, st));
        else
            return br_fail(st, BR_E_USAGE, "%s: %s among prompts", name,
                           br_json_kind_name(e->kind));
    }
    return BR_OK;
}

/* ---- documents, and what to rank them by --------------------------------- */

/* "text", or an object that has it. */
br_code
br_ask_documents(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE, "%s: must be a list of texts", name);
    for (const br_json *e = v->child; e; e = e->next) {
        const br_json *text = e->kind == BR_J_OBJ ? br_json_get(e, "text") : e;

        if (!text || text->kind != BR_J_STR || !text->n)
            return br_fail(st, BR_E_USAGE, "%s[%zu]: must be a text", name,
                           a->prompts.n);
        BR_TRY(add_prompt(a, name, text_prompt(text), st));
    }
    return BR_OK;
}

br_code
br_ask_texts(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (a->prompts.n)
        return br_fail(st, BR_E_USAGE, "%s: not together with documents", name);
    a->bare = true;
    return br_ask_documents(a, v, name, st);
}

br_code
br_ask_query(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_STR || !v->n)
        return br_fail(st, BR_E_USAGE, "%s: must be a text", name);
    a->query = (br_text){v->s, v->n};
    return BR_OK;
}

br_code
br_ask_rank(br_ask *a, br_status *st)
{
    br_ask_prompt p = {.text = a->query, .flags = BR_TOK_ADD_SPECIAL};

    a->param = "query";
    if (!a->query.n)
        return br_fail(st, BR_E_USAGE, "query: missing");
    a->param = NULL;
    return br_vec_push(&a->prompts, p) ? BR_OK : oom(st);
}
