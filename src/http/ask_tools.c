/* ask_tools.c - tools of a request and which of them to call, see ask.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include <stdio.h>
#include <string.h>

br_code
br_ask_tool_name(const br_json *v, const char *place, br_status *st)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (!v || v->kind != BR_J_STR || !v->n || v->n > BR_TOOL_MAX_NAME ||
        strspn(v->s, ok) != v->n)
        return br_fail(st, BR_E_USAGE,
                       "%s.name: must be of 1 to %d letters, digits, - and _",
                       place, BR_TOOL_MAX_NAME);
    return BR_OK;
}

/* ---- other forms, made into that of chat completions --------------------- */

static bool
is_anthropic(const br_ask *a)
{
    return a->api & (BR_API_MESSAGES | BR_API_COUNT);
}

bool
br_ask_is_type(const br_json *v, const char *what)
{
    const br_json *type = v->kind == BR_J_OBJ ? br_json_get(v, "type") : NULL;

    return type && br_json_is(type, what);
}

bool
br_ask_share(br_ask *a, br_json *to, const char *key, const br_json *v)
{
    br_json *copy = v ? br_arena_dup(&a->arena, v, sizeof *v) : NULL;

    if (!v)
        return true;
    if (copy)
        copy->next = NULL;
    if (copy && !key)
        copy->key = NULL;
    return copy && (key ? br_json_put(&a->arena, to, key, copy)
                        : br_json_append(to, copy));
}

br_json *
br_ask_object(br_ask *a, br_json *to, const char *key, br_json_kind kind)
{
    br_json *o = br_json_new(&a->arena, kind);
    bool ok =
        o && to &&
        (key ? br_json_put(&a->arena, to, key, o) : br_json_append(to, o));

    return ok ? o : NULL;
}

bool
br_ask_word(br_ask *a, br_json *to, const char *key, const char *z)
{
    br_json *s = br_json_new_str(&a->arena, br_text_z(z));

    return s && br_json_put(&a->arena, to, key, s);
}

/* {"name":..,"description":..,"input_schema":{..}}, in responses "parameters" */
static const br_json *
as_function(br_ask *a, const br_json *v)
{
    const char *schema = is_anthropic(a) ? "input_schema" : "parameters";
    br_json *tool = br_json_new(&a->arena, BR_J_OBJ), *f;

    if (!tool || !br_ask_word(a, tool, "type", "function"))
        return NULL;
    f = br_ask_object(a, tool, "function", BR_J_OBJ);
    return f && br_ask_share(a, f, "name", br_json_get(v, "name")) &&
                   br_ask_share(a, f, "description",
                                br_json_get(v, "description")) &&
                   br_ask_share(a, f, "parameters", br_json_get(v, schema)) &&
                   br_ask_share(a, f, "strict", br_json_get(v, "strict"))
               ? tool
               : NULL;
}

static const br_json *
as_functions(br_ask *a, const br_json *list, const char *name, br_status *st)
{
    br_json *out = br_json_new(&a->arena, BR_J_ARR);

    for (const br_json *v = list->child; v && out; v = v->next) {
        const br_json *type = v->kind == BR_J_OBJ ? br_json_get(v, "type") : v;
        const br_json *f;

        if (is_anthropic(a) ? type && type->kind != BR_J_NULL &&
                                  !br_ask_is_type(v, "custom")
                            : !br_ask_is_type(v, "function")) {
            (void)br_fail(st, BR_E_USAGE,
                          "%s: only tools of the client can be called", name);
            return NULL;
        }
        f = as_function(a, v);
        if (!f || !br_ask_share(a, out, NULL, f))
            out = NULL;
    }
    if (!out)
        (void)br_fail(st, BR_E_OOM, "out of memory");
    return out;
}

/* ---- tools ---------------------------------------------------------------- */

static br_code
read_tool(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    const br_json *type = br_json_get(v, "type");
    const br_json *f = br_json_get(v, "function"), *strict;
    br_tool t = {0};

    if (v->kind != BR_J_OBJ || !type || !br_json_is(type, "function"))
        return br_fail(st, BR_E_USAGE,
                       "%s: only functions can be called: type must be "
                       "'function'",
                       place);
    if (!f || f->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s.function: must be an object", place);
    BR_TRY(br_ask_tool_name(br_json_get(f, "name"), place, st));
    t.name = br_json_get(f, "name")->s;
    for (size_t i = 0; i < a->tools.n; i++)
        if (strcmp(a->tools.at[i].name, t.name) == 0)
            return br_fail(st, BR_E_USAGE, "%s.name: '%s' comes twice", place,
                           t.name);
    t.schema = br_json_get(f, "parameters");
    if (t.schema && t.schema->kind != BR_J_OBJ && t.schema->kind != BR_J_NULL)
        return br_fail(st, BR_E_USAGE, "%s.parameters: must be a schema",
                       place);
    strict = br_json_get(f, "strict");
    t.strict = strict && strict->kind == BR_J_BOOL && strict->b;
    return br_vec_push(&a->tools, t) ? BR_OK
                                     : br_fail(st, BR_E_OOM, "out of memory");
}

br_code
br_ask_tools(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    char place[64];
    size_t i = 0;

    if (v->kind != BR_J_ARR || v->n > BR_TOOL_MAX)
        return br_fail(st, BR_E_USAGE, "%s: must be a list of at most %d", name,
                       BR_TOOL_MAX);
    if (is_anthropic(a) || a->api == BR_API_RESPONSES) {
        v = as_functions(a, v, name, st);
        BR_TRY(st->code);
    }
    for (const br_json *t = v->child; t; t = t->next) {
        snprintf(place, sizeof place, "%s[%zu]", name, i++);
        BR_TRY(read_tool(a, t, place, st));
    }
    a->tool_list = v->n ? v : NULL;
    return BR_OK;
}

/* The place among the tools of the one that v names; tools.n: of none. */
static size_t
tool_named(const br_ask *a, const br_json *v)
{
    bool flat = is_anthropic(a) || a->api == BR_API_RESPONSES;
    const br_json *f =
        flat || v->kind != BR_J_OBJ ? v : br_json_get(v, "function");
    const br_json *want =
        f && f->kind == BR_J_OBJ ? br_json_get(f, "name") : NULL;
    size_t i = 0;

    if (!want || want->kind != BR_J_STR)
        return a->tools.n;
    while (i < a->tools.n && !br_json_is(want, a->tools.at[i].name))
        i++;
    return i;
}

/* Of all tools one is left. */
static br_code
name_tool(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    size_t i = tool_named(a, v);

    if (i == a->tools.n)
        return br_fail(st, BR_E_USAGE, "%s: names none of the tools", name);
    a->tools.at[0] = a->tools.at[i];
    a->tools.n = 1;
    a->serial = true;
    return BR_OK;
}

/* {"mode":"auto" or "required","tools":[..]}: some are left; what the prompt says
 * of tools stays, so that it is found as a prefix. */
static br_code
allow_tools(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    const br_json *all =
        a->api == BR_API_RESPONSES ? v : br_json_get(v, "allowed_tools");
    const br_json *mode =
        all && all->kind == BR_J_OBJ ? br_json_get(all, "mode") : NULL;
    const br_json *list = mode ? br_json_get(all, "tools") : NULL;
    size_t n = 0;

    if (!mode || mode->kind != BR_J_STR ||
        (!br_json_is(mode, "auto") && !br_json_is(mode, "required")))
        return br_fail(st, BR_E_USAGE, "%s.mode: must be auto or required",
                       name);
    if (!list || list->kind != BR_J_ARR || !list->n)
        return br_fail(st, BR_E_USAGE,
                       "%s.tools: must be a list that is not empty", name);
    a->tool_choice = *mode->s == 'a' ? BR_TOOL_AUTO : BR_TOOL_REQUIRED;
    for (const br_json *t = list->child; t; t = t->next) {
        size_t i = tool_named(a, t);
        br_tool one;

        if (i == a->tools.n)
            return br_fail(st, BR_E_USAGE, "%s.tools: names none of the tools",
                           name);
        if (i < n)
            continue; /* named before */
        one = a->tools.at[i];
        a->tools.at[i] = a->tools.at[n];
        a->tools.at[n++] = one;
    }
    a->tools.n = n;
    return BR_OK;
}

br_code
br_ask_tool_choice(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const openai[] = {"none", "auto", "required"};
    static const char *const anthropic[] = {"none", "auto", "any"};
    const char *const *words = is_anthropic(a) ? anthropic : openai;
    const br_json *whole = v;

    a->tool_choice_said = true;
    if (is_anthropic(a) && v->kind == BR_J_OBJ) {
        const br_json *one = br_json_get(v, "disable_parallel_tool_use");

        a->serial = one && one->kind == BR_J_BOOL && one->b;
        v = br_json_get(v, "type");
        if (!v)
            return br_fail(st, BR_E_USAGE, "%s.type: missing", name);
    }
    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(openai); i++)
        if (br_json_is(v, words[i])) {
            a->tool_choice = (br_tool_choice)i;
            return a->tools.n || i < 2
                       ? BR_OK
                       : br_fail(st, BR_E_USAGE, "%s: there are no tools",
                                 name);
        }
    a->tool_choice_as = whole->kind == BR_J_OBJ ? whole : NULL;
    if (!is_anthropic(a) && br_ask_is_type(whole, "allowed_tools"))
        return allow_tools(a, whole, name, st);
    a->tool_choice = BR_TOOL_REQUIRED;
    if (whole->kind != BR_J_OBJ ||
        (is_anthropic(a) && !br_ask_is_type(whole, "tool")))
        return br_fail(st, BR_E_USAGE, "%s: must be none, auto, %s or a tool",
                       name, words[2]);
    return name_tool(a, whole, name, st);
}

br_code
br_ask_parallel(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_BOOL)
        return br_fail(st, BR_E_USAGE, "%s: must be true or false", name);
    a->serial = !v->b;
    return BR_OK;
}

/* ---- messages -------------------------------------------------------------- */

static br_code
push(br_ask *a, const char *role, const br_json *v, br_status *st)
{
    return v && br_vec_push(&a->messages,
                            ((br_ask_message){.role = role, .json = v}))
               ? BR_OK
               : br_fail(st, BR_E_OOM, "out of memory");
}

/* Messages with calls go to the template as they are: what it cannot read is told
 * here, with its place. */
static br_code
check_content(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    char where[96];
    br_text text;

    if (!v || v->kind != BR_J_ARR)
        return BR_OK;
    snprintf(where, sizeof where, "%s.content", place);
    return br_ask_content(a, v, where, &text, st);
}

/* {"type":"tool_result","tool_use_id":..,"content":..} */
static br_code
add_result(br_ask *a, const br_json *part, const char *place, br_status *st)
{
    const br_json *id = br_json_get(part, "tool_use_id");
    const br_json *content = br_json_get(part, "content");
    br_json *m = br_json_new(&a->arena, BR_J_OBJ);

    if (!id || id->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s: a tool_result without tool_use_id",
                       place);
    BR_TRY(check_content(a, content, place, st));
    if (!m || !br_ask_word(a, m, "role", "tool") ||
        !br_ask_share(a, m, "tool_call_id", id) ||
        !(content ? br_ask_share(a, m, "content", content)
                  : br_ask_word(a, m, "content", "")))
        return br_fail(st, BR_E_OOM, "out of memory");
    return push(a, "tool", m, st);
}

static br_code
add_use(br_ask *a, const br_json *part, br_json *calls, const char *place,
        br_status *st)
{
    br_json *c = br_ask_object(a, calls, NULL, BR_J_OBJ), *f;
    const br_json *input = br_json_get(part, "input");

    BR_TRY(br_ask_tool_name(br_json_get(part, "name"), place, st));
    if (!input || input->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: a tool_use without input", place);
    if (!c || !br_ask_share(a, c, "id", br_json_get(part, "id")) ||
        !br_ask_word(a, c, "type", "function"))
        return br_fail(st, BR_E_OOM, "out of memory");
    f = br_ask_object(a, c, "function", BR_J_OBJ);
    return f && br_ask_share(a, f, "name", br_json_get(part, "name")) &&
                   br_ask_share(a, f, "arguments", input)
               ? BR_OK
               : br_fail(st, BR_E_OOM, "out of memory");
}

/* A message of parts among which are calls or what came of them: results
 * become messages of their own, before what else was said. */
static br_code
add_parts(br_ask *a, const char *role, const br_json *parts, const char *place,
          br_status *st)
{
    br_json *m = br_json_new(&a->arena, BR_J_OBJ), *text, *calls;

    if (!m || !br_ask_word(a, m, "role", role))
        return br_fail(st, BR_E_OOM, "out of memory");
    text = br_ask_object(a, m, "content", BR_J_ARR);
    calls = br_json_new(&a->arena, BR_J_ARR);
    if (!text || !calls)
        return br_fail(st, BR_E_OOM, "out of memory");
    for (const br_json *p = parts->child; p; p = p->next) {
        if (br_ask_is_type(p, "tool_result"))
            BR_TRY(add_result(a, p, place, st));
        else if (br_ask_is_type(p, "tool_use"))
            BR_TRY(add_use(a, p, calls, place, st));
        else if (br_ask_is_type(p, "thinking")) {
            const br_json *t = br_json_get(p, "thinking");

            if (!t || t->kind != BR_J_STR)
                return br_fail(st, BR_E_USAGE,
                               "%s.content: thinking must be a text", place);
            if (!br_ask_share(a, m, "reasoning_content", t))
                return br_fail(st, BR_E_OOM, "out of memory");
        } else if (!br_ask_is_type(p, "text"))
            return br_fail(st, BR_E_USAGE,
                           "%s.content: a part that this model "
                           "cannot read",
                           place);
        else if (!br_ask_share(a, text, NULL, p))
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    if (calls->n && !br_json_put(&a->arena, m, "tool_calls", calls))
        return br_fail(st, BR_E_OOM, "out of memory");
    return calls->n || text->n ? push(a, role, m, st) : BR_OK;
}

static br_code
anthropic_message(br_ask *a, const br_json *v, const char *place, bool *is_one,
                  br_status *st)
{
    const br_json *role = br_json_get(v, "role");
    const br_json *parts = br_json_get(v, "content");

    for (const br_json *p = parts && parts->kind == BR_J_ARR ? parts->child
                                                             : NULL;
         p; p = p->next)
        *is_one |= br_ask_is_type(p, "tool_use") ||
                   br_ask_is_type(p, "tool_result") ||
                   br_ask_is_type(p, "thinking");
    if (!*is_one)
        return BR_OK;
    if (!role || role->kind != BR_J_STR ||
        (!br_json_is(role, "user") && !br_json_is(role, "assistant")))
        return br_fail(st, BR_E_USAGE, "%s.role: must be user or assistant",
                       place);
    return add_parts(a, role->s, parts, place, st);
}

static const br_json *
thought_of(const br_json *v)
{
    const br_json *t = br_json_get(v, "reasoning_content");

    return t && t->kind != BR_J_NULL ? t : br_json_get(v, "reasoning");
}

/* The message with its thought by the name that templates know: vLLM calls it
 * `reasoning`. NULL: out of memory. */
static const br_json *
by_known_names(br_ask *a, const br_json *v, const br_json *thought)
{
    static const char name[] = "reasoning_content";
    br_json *m;

    if (!thought || br_json_key_is(thought, name))
        return v;
    m = br_json_new(&a->arena, BR_J_OBJ);
    for (const br_json *o = v->child; m && o; o = o->next)
        if (!br_json_key_is(o, name) &&
            !br_ask_share(a, m, o == thought ? name : o->key, o))
            m = NULL;
    return m;
}

/* {"role":"assistant","tool_calls":[...]} and {"role":"tool",...}: templates
 * see them as they are. */
br_code
br_ask_tool_message(br_ask *a, const br_json *v, const char *place,
                    bool *is_one, br_status *st)
{
    const br_json *role = br_json_get(v, "role");
    const br_json *calls = br_json_get(v, "tool_calls");
    const br_json *thought = thought_of(v);
    bool says = role && role->kind == BR_J_STR;
    bool tool = says && br_json_is(role, "tool");
    bool call = says && br_json_is(role, "assistant") && calls &&
                calls->kind == BR_J_ARR && calls->n;
    bool thinks = says && br_json_is(role, "assistant") && thought &&
                  thought->kind == BR_J_STR;
    const br_json *name = br_json_get(v, "name"); /* of who says it */
    bool named = says && name && name->kind == BR_J_STR &&
                 (br_json_is(role, "user") || br_json_is(role, "assistant") ||
                  br_json_is(role, "system"));
    static const char *const known[] = {
        "role", "content", "tool_calls",        "tool_call_id",
        "name", "refusal", "reasoning_content", "reasoning"};

    if (is_anthropic(a))
        return anthropic_message(a, v, place, is_one, st);
    *is_one = (a->api & (BR_API_CHAT | BR_API_TEMPLATE)) &&
              (tool || call || thinks || named);
    if (!*is_one)
        return BR_OK;
    for (const br_json *m = v->child; m; m = m->next) {
        size_t i = 0;

        while (i < BR_COUNT(known) && !br_json_key_is(m, known[i]))
            i++;
        if (i == BR_COUNT(known) && !br_ask_says_nothing(m))
            return br_fail(st, BR_E_USAGE, "%s.%.40s: not supported", place,
                           m->key);
    }
    for (const br_json *c = call ? calls->child : NULL; c; c = c->next) {
        const br_json *f = br_json_get(c, "function");

        if (!f || f->kind != BR_J_OBJ)
            return br_fail(st, BR_E_USAGE,
                           "%s.tool_calls: each must have a function", place);
        BR_TRY(br_ask_tool_name(br_json_get(f, "name"), place, st));
    }
    BR_TRY(check_content(a, br_json_get(v, "content"), place, st));
    return push(a, role->s, by_known_names(a, v, thinks ? thought : NULL), st);
}
