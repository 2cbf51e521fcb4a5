/* ask_items.c - items of a response's input that are no messages, and how much
 * to think; see ask.h.
 *
 *   message, reasoning, function_call, function_call  -> one message
 *   function_call_output                              -> a message of a tool
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include <stdio.h>
#include <string.h>

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "out of memory");
}

/* ---- items ---------------------------------------------------------------- */

static br_code
known_members(const br_json *v, const char *place, const char *const *names,
              size_t n, br_status *st)
{
    for (const br_json *m = v->child; m; m = m->next) {
        size_t i = 0;

        while (i < n && !br_json_key_is(m, names[i]))
            i++;
        if (i == n && m->kind != BR_J_NULL)
            return br_fail(st, BR_E_USAGE, "%s.%.40s: not supported", place,
                           m->key);
    }
    return BR_OK;
}

static bool
is_word(const br_json *v, const char *z)
{
    return br_json_is(v, z);
}

/* Turns begin with role and content. */
static br_code
say(br_ask *a, br_text t, br_status *st)
{
    br_json *text = br_json_new_str(&a->arena, t);

    if (!text)
        return oom(st);
    a->turn->child->next->s = text->s;
    a->turn->child->next->n = text->n;
    return BR_OK;
}

br_code
br_ask_turn_says(br_ask *a, const char *role, br_text content, bool *is_one,
                 br_status *st)
{
    size_t n = a->messages.n;

    *is_one = n && a->turn && a->messages.at[n - 1].json == a->turn &&
              br_json_key_is(a->turn->last, "reasoning_content") &&
              strcmp(role, "assistant") == 0;
    return *is_one ? say(a, content, st) : BR_OK;
}

/* The assistant's message that is being put together; *m NULL: no memory. What
 * it said as plain text just before belongs to it. */
static br_code
open_turn(br_ask *a, br_json **m, br_status *st)
{
    size_t n = a->messages.n;
    br_ask_message *last = n ? &a->messages.at[n - 1] : NULL;

    *m = last && last->json && last->json == a->turn ? a->turn : NULL;
    if (*m)
        return BR_OK;
    a->turn = br_json_new(&a->arena, BR_J_OBJ);
    if (!a->turn || !br_ask_word(a, a->turn, "role", "assistant") ||
        !br_ask_word(a, a->turn, "content", ""))
        return oom(st);
    if (last && !last->json && strcmp(last->role, "assistant") == 0) {
        BR_TRY(say(a, last->content, st));
        *last = (br_ask_message){.role = "assistant", .json = a->turn};
    } else if (!br_vec_push(
                   &a->messages,
                   ((br_ask_message){.role = "assistant", .json = a->turn}))) {
        return oom(st);
    }
    *m = a->turn;
    return BR_OK;
}

/* {"type":"function_call","call_id":..,"name":..,"arguments":"{..}"} */
static br_code
add_call(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    static const char *const names[] = {"type", "id",        "call_id",
                                        "name", "arguments", "status"};
    const br_json *id = br_json_get(v, "call_id");
    const br_json *args = br_json_get(v, "arguments");
    br_json *m, *calls, *call, *f;

    BR_TRY(known_members(v, place, names, BR_COUNT(names), st));
    BR_TRY(br_ask_tool_name(br_json_get(v, "name"), place, st));
    if (!id || id->kind != BR_J_STR || !args || args->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE,
                       "%s: a function_call has call_id and arguments", place);
    BR_TRY(open_turn(a, &m, st));
    calls = m->last;
    if (!br_json_key_is(calls, "tool_calls"))
        calls = br_ask_object(a, m, "tool_calls", BR_J_ARR);
    call = br_ask_object(a, calls, NULL, BR_J_OBJ);
    if (!call || !br_ask_share(a, call, "id", id) ||
        !br_ask_word(a, call, "type", "function"))
        return oom(st);
    f = br_ask_object(a, call, "function", BR_J_OBJ);
    return f && br_ask_share(a, f, "name", br_json_get(v, "name")) &&
                   br_ask_share(a, f, "arguments", args)
               ? BR_OK
               : oom(st);
}

/* {"type":"function_call_output","call_id":..,"output":text or parts} */
static br_code
add_output(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    static const char *const names[] = {"type", "id", "call_id", "output",
                                        "status"};
    const br_json *id = br_json_get(v, "call_id");
    const br_json *text = br_json_get(v, "output");
    br_json *m = br_json_new(&a->arena, BR_J_OBJ);
    char where[96];
    br_text all;

    BR_TRY(known_members(v, place, names, BR_COUNT(names), st));
    if (!id || id->kind != BR_J_STR || !text)
        return br_fail(st, BR_E_USAGE,
                       "%s: a function_call_output has call_id and output",
                       place);
    snprintf(where, sizeof where, "%s.output", place);
    BR_TRY(br_ask_content(a, text, where, &all, st));
    text = br_json_new_str(&a->arena, all);
    if (!m || !text || !br_ask_word(a, m, "role", "tool") ||
        !br_ask_share(a, m, "tool_call_id", id) ||
        !br_ask_share(a, m, "content", text) ||
        !br_vec_push(&a->messages,
                     ((br_ask_message){.role = "tool", .json = m})))
        return oom(st);
    return BR_OK;
}

/* {"type":"reasoning","content":[{"type":"reasoning_text","text":..}]}: what
 * was thought before the message or the calls that follow. */
static br_code
add_thought(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    static const char *const names[] = {
        "type", "id", "summary", "content", "status", "encrypted_content"};
    const br_json *parts = br_json_get(v, "content"), *text;
    br_json *m;

    BR_TRY(known_members(v, place, names, BR_COUNT(names), st));
    if (!parts || parts->kind != BR_J_ARR || !parts->n)
        return BR_OK; /* a summary alone is for people */
    text = br_json_get(parts->child, "text");
    if (parts->n > 1 || !br_ask_is_type(parts->child, "reasoning_text") ||
        !text || text->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s.content: must be one reasoning_text",
                       place);
    a->turn = NULL;
    BR_TRY(open_turn(a, &m, st));
    return br_ask_share(a, m, "reasoning_content", text) ? BR_OK : oom(st);
}

br_code
br_ask_item(br_ask *a, const br_json *v, const char *place, bool *is_one,
            br_status *st)
{
    br_text type = br_json_get_word(v, "type");

    *is_one = true;
    if (a->api == BR_API_RESPONSES && br_ask_is_type(v, "function_call"))
        return add_call(a, v, place, st);
    if (a->api == BR_API_RESPONSES && br_ask_is_type(v, "function_call_output"))
        return add_output(a, v, place, st);
    if (a->api == BR_API_RESPONSES && br_ask_is_type(v, "reasoning"))
        return add_thought(a, v, place, st);
    *is_one = false;
    if (a->api == BR_API_RESPONSES && !br_json_get(v, "role") && type.p &&
        !br_text_is(type, "message"))
        return br_fail(st, BR_E_USAGE,
                       "%s.type: '%.40s' is not known to this server%s", place,
                       type.p,
                       br_text_is(type, "item_reference")
                           ? "; previous_response_id says what was before"
                           : "");
    return BR_OK;
}

/* ---- thinking ------------------------------------------------------------- */

br_code
br_ask_effort(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const words[] = {"none", "minimal", "low", "medium",
                                        "high"};

    if (v->kind == BR_J_OBJ && a->api == BR_API_RESPONSES) {
        static const char *const names[] = {"effort", "summary"};
        const br_json *summary = br_json_get(v, "summary");

        /* "auto" is what there is, and that is none. */
        BR_TRY(known_members(v, name, names,
                             summary && is_word(summary, "auto") ? 2 : 1, st));
        v = br_json_get(v, "effort");
        if (!v || v->kind == BR_J_NULL)
            return BR_OK;
    }
    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(words); i++)
        if (br_json_is(v, words[i])) {
            a->effort = words[i];
            a->effort_from = name;
            return BR_OK;
        }
    return br_fail(st, BR_E_USAGE,
                   "%s: must be none, minimal, low, medium or high", name);
}

/* {"type":"enabled","budget_tokens":1024}, "adaptive" or "disabled": all but
 * the last say that it may think, not that it must. */
br_code
br_ask_thinking(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const names[] = {"type", "display", "budget_tokens"};
    const br_json *most = br_json_get(v, names[2]);
    const br_json *display = br_json_get(v, names[1]);
    bool enabled = br_ask_is_type(v, "enabled");

    if (br_ask_is_type(v, "disabled") && v->n == 1) {
        a->effort = "none";
        a->effort_from = name;
        return BR_OK;
    }
    if (!enabled && !br_ask_is_type(v, "adaptive"))
        return br_fail(st, BR_E_USAGE,
                       "%s: must be of type enabled, adaptive or disabled",
                       name);
    BR_TRY(known_members(v, name, names, enabled ? 3 : 2, st));
    if (enabled && (!most || most->kind != BR_J_INT || most->i < 1))
        return br_fail(st, BR_E_USAGE,
                       "%s.budget_tokens: must be a whole number from 1", name);
    a->hide_thoughts = display && is_word(display, "omitted");
    if (display && !a->hide_thoughts && !is_word(display, "summarized"))
        return br_fail(st, BR_E_USAGE,
                       "%s.display: must be summarized or omitted", name);
    a->effort = "medium";
    a->may_think = true;
    if (enabled)
        a->think_most = most->i;
    return BR_OK;
}

/* {"effort":"high","format":{"type":"json_schema","schema":{...}}} */
br_code
br_ask_output(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const names[] = {"effort", "format"};
    static const char *const words[] = {"low", "medium", "high", "xhigh",
                                        "max"};
    const br_json *effort, *format;
    size_t i = 0;

    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", name);
    BR_TRY(known_members(v, name, names, BR_COUNT(names), st));
    effort = br_json_get(v, "effort");
    format = br_json_get(v, "format");
    if (effort && effort->kind != BR_J_NULL) {
        while (i < BR_COUNT(words) && !is_word(effort, words[i]))
            i++;
        if (i == BR_COUNT(words))
            return br_fail(st, BR_E_USAGE,
                           "%s.effort: must be low, medium, high, xhigh or max",
                           name);
        a->wish = words[BR_MIN(i, (size_t)2)];
    }
    return format && format->kind != BR_J_NULL
               ? br_ask_format(a, format, "output_config.format", st)
               : BR_OK;
}

/* What a server may take out of a prompt by itself; here nothing is. */
br_code
br_ask_edits(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const names[] = {"type", "keep"};
    const br_json *edits = br_json_get(v, "edits"), *keep;

    (void)a;
    if (v->kind != BR_J_OBJ || v->n > 1 || (v->n && !edits) ||
        (edits && edits->kind != BR_J_ARR))
        return br_fail(st, BR_E_USAGE, "%s: must be {\"edits\":[...]}", name);
    for (const br_json *e = edits ? edits->child : NULL; e; e = e->next) {
        keep = br_json_get(e, "keep");
        if (!br_ask_is_type(e, "clear_thinking_20251015") || !keep ||
            !is_word(keep, "all"))
            return br_fail(st, BR_E_USAGE,
                           "%s.edits: only clear_thinking_20251015 that keeps "
                           "\"all\" is supported",
                           name);
        BR_TRY(known_members(e, name, names, BR_COUNT(names), st));
    }
    return BR_OK;
}

/* {"enable_thinking":false,...}: what a template asks for. */
br_code
br_ask_vars(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const ours[] = {"messages", "tools", "bos_token",
                                       "eos_token", "add_generation_prompt"};

    if (v->kind != BR_J_OBJ || v->n > BR_ASK_MAX_VARS)
        return br_fail(st, BR_E_USAGE, "%s: must be an object of at most %d",
                       name, BR_ASK_MAX_VARS);
    for (const br_json *m = v->child; m; m = m->next) {
        if (!m->key_n || strlen(m->key) != m->key_n)
            return br_fail(st, BR_E_USAGE, "%s: not the name of a variable",
                           name);
        for (size_t i = 0; i < BR_COUNT(ours); i++)
            if (br_json_key_is(m, ours[i]))
                return br_fail(st, BR_E_USAGE, "%s.%s: the server's own", name,
                               m->key);
    }
    a->vars = v;
    return BR_OK;
}
