/* ask_tools.c - tools of a request and which of them to call, see ask.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include <stdio.h>
#include <string.h>

static br_code
check_name(const br_json *v, const char *place, br_status *st)
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

static br_code
read_tool(br_ask *a, const br_json *v, const char *place, br_status *st)
{
    const br_json *type = br_json_get(v, "type");
    const br_json *f = br_json_get(v, "function"), *strict;
    br_tool t = {0};

    if (v->kind != BR_J_OBJ || !type || type->kind != BR_J_STR ||
        strcmp(type->s, "function") != 0 || !f || f->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: only functions can be called",
                       place);
    BR_TRY(check_name(br_json_get(f, "name"), place, st));
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
    for (const br_json *t = v->child; t; t = t->next) {
        snprintf(place, sizeof place, "%s[%zu]", name, i++);
        BR_TRY(read_tool(a, t, place, st));
    }
    a->tool_list = v->n ? v : NULL;
    return BR_OK;
}

/* Of all tools one is left. */
static br_code
name_tool(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    const br_json *f = br_json_get(v, "function");
    const br_json *want = f ? br_json_get(f, "name") : NULL;

    for (size_t i = 0; want && want->kind == BR_J_STR && i < a->tools.n; i++)
        if (strcmp(want->s, a->tools.at[i].name) == 0) {
            a->tools.at[0] = a->tools.at[i];
            a->tools.n = 1;
            a->serial = true;
            return BR_OK;
        }
    return br_fail(st, BR_E_USAGE, "%s: names none of the tools", name);
}

br_code
br_ask_tool_choice(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const words[] = {"none", "auto", "required"};

    a->tool_choice_said = true;
    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(words); i++)
        if (strcmp(v->s, words[i]) == 0) {
            a->tool_choice = (br_tool_choice)i;
            return a->tools.n || i < 2
                       ? BR_OK
                       : br_fail(st, BR_E_USAGE, "%s: there are no tools",
                                 name);
        }
    a->tool_choice = BR_TOOL_REQUIRED;
    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE,
                       "%s: must be none, auto, required or a function", name);
    return name_tool(a, v, name, st);
}

br_code
br_ask_parallel(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_BOOL)
        return br_fail(st, BR_E_USAGE, "%s: must be true or false", name);
    a->serial = !v->b;
    return BR_OK;
}

/* {"role":"assistant","tool_calls":[...]} and {"role":"tool",...}: templates
 * see them as they are. */
br_code
br_ask_tool_message(br_ask *a, const br_json *v, const char *place,
                    bool *is_one, br_status *st)
{
    const br_json *role = br_json_get(v, "role");
    const br_json *calls = br_json_get(v, "tool_calls");
    bool says = role && role->kind == BR_J_STR;
    bool tool = says && strcmp(role->s, "tool") == 0;
    bool call = says && strcmp(role->s, "assistant") == 0 && calls &&
                calls->kind == BR_J_ARR && calls->n;
    static const char *const known[] = {"role", "content", "tool_calls",
                                        "tool_call_id", "name"};

    *is_one = (a->api & (BR_API_CHAT | BR_API_TEMPLATE)) && (tool || call);
    if (!*is_one)
        return BR_OK;
    for (const br_json *m = v->child; m; m = m->next) {
        size_t i = 0;

        while (i < BR_COUNT(known) && strcmp(known[i], m->key) != 0)
            i++;
        if (i == BR_COUNT(known) && m->kind != BR_J_NULL)
            return br_fail(st, BR_E_USAGE, "%s.%.40s: not supported", place,
                           m->key);
    }
    for (const br_json *c = call ? calls->child : NULL; c; c = c->next) {
        const br_json *f = br_json_get(c, "function");

        if (!f || f->kind != BR_J_OBJ)
            return br_fail(st, BR_E_USAGE,
                           "%s.tool_calls: each must have a function", place);
        BR_TRY(check_name(br_json_get(f, "name"), place, st));
    }
    return br_vec_push(&a->messages,
                       ((br_ask_message){.role = role->s, .json = v}))
               ? BR_OK
               : br_fail(st, BR_E_OOM, "out of memory");
}
