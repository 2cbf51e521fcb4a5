/* ask_shape.c - the form that an answer has to have, see ask.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include "run/grammar.h"

#include <string.h>

/* A schema's grammar; NULL: any JSON object. What cannot be enforced is a bad
 * request that names the keyword. */
static br_code
add_schema(br_ask *a, const br_json *schema, const char *name, br_status *st)
{
    br_status why = {0};

    if (a->grammar.n)
        return br_fail(st, BR_E_USAGE, "%s: the answer has another form", name);
    if (br_schema_grammar(schema, &a->grammar, &why) == BR_OK)
        return BR_OK;
    return br_fail(st, why.code == BR_E_OOM ? BR_E_OOM : BR_E_USAGE, "%s: %s",
                   name, why.msg);
}

br_code
br_ask_schema(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    return add_schema(a, v, name, st);
}

br_code
br_ask_grammar(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_STR || !v->n)
        return br_fail(st, BR_E_USAGE, "%s: must be a grammar's text", name);
    if (a->grammar.n)
        return br_fail(st, BR_E_USAGE, "%s: the answer has another form", name);
    br_str_put(&a->grammar, v->s, v->n);
    return a->grammar.oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

/* {"name":..., "schema":{...}, "strict":...}: enforced whether strict or not */
static br_code
read_schema(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const char *const known[] = {"name", "schema", "strict",
                                        "description", "type"};
    const br_json *schema = br_json_get(v, "schema");

    for (const br_json *m = v->child; m; m = m->next) {
        size_t i = 0;

        while (i < BR_COUNT(known) && !br_json_key_is(m, known[i]))
            i++;
        if (i == BR_COUNT(known))
            return br_fail(st, BR_E_USAGE, "%s.%.60s: not known", name, m->key);
    }
    if (!schema)
        return br_fail(st, BR_E_USAGE, "%s.schema: missing", name);
    return add_schema(a, schema, name, st);
}

static br_code
read_format(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    const br_json *type = v->kind == BR_J_OBJ ? br_json_get(v, "type") : NULL;
    const br_json *inner, *text;
    bool flat = a->api & (BR_API_RESPONSES | BR_API_MESSAGES | BR_API_COUNT);

    if (v->kind == BR_J_OBJ && !v->n)
        return BR_OK;
    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", name);
    if (!type || type->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s.type: must be a string", name);
    if (br_json_is(type, "text"))
        return BR_OK;
    if (br_json_is(type, "json_object")) {
        inner = br_json_get(v, "schema"); /* as llama-server has it */
        if (v->n > (inner ? 2u : 1u))
            return br_fail(st, BR_E_USAGE, "%s: more than type and schema",
                           name);
        return add_schema(a, inner, name, st);
    }
    text = br_json_get(v, "grammar");
    if (br_json_is(type, "grammar") && text)
        return br_ask_grammar(a, text, name, st);
    if (!br_json_is(type, "json_schema"))
        return br_fail(st, BR_E_USAGE,
                       "%s.type: must be text, json_object, json_schema or "
                       "grammar",
                       name);
    inner = flat ? v : br_json_get(v, "json_schema");
    if (!inner || inner->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s.json_schema: must be an object",
                       name);
    return read_schema(a, inner, name, st);
}

br_code
br_ask_format(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    return read_format(a, v, name, st);
}

/* {"format":{...},"verbosity":"medium"} */
br_code
br_ask_text_format(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    const br_json *format = NULL;

    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", name);
    for (const br_json *m = v->child; m; m = m->next) {
        bool usual = m->kind == BR_J_NULL || br_json_is(m, "medium");

        if (br_json_key_is(m, "format"))
            format = m;
        else if (!br_json_key_is(m, "verbosity") || !usual)
            return br_fail(st, BR_E_USAGE, "%s.%.60s: not supported", name,
                           m->key);
    }
    return format && format->kind != BR_J_NULL
               ? read_format(a, format, "text.format", st)
               : BR_OK;
}

/* ["yes","no"]: one of them. */
br_code
br_ask_choice(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_ARR || !v->n)
        return br_fail(st, BR_E_USAGE, "%s: must be a list of texts", name);
    if (a->grammar.n)
        return br_fail(st, BR_E_USAGE, "%s: the answer has another form", name);
    for (const br_json *e = v->child; e; e = e->next) {
        if (e->kind != BR_J_STR || !e->n)
            return br_fail(st, BR_E_USAGE, "%s: must be a list of texts", name);
        br_str_puts(&a->grammar, e == v->child ? "root ::= " : " | ");
        br_grammar_quote(&a->grammar, (br_text){e->s, e->n});
    }
    return a->grammar.oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_ask_regex(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    br_status why = {0};

    if (v->kind != BR_J_STR || !v->n)
        return br_fail(st, BR_E_USAGE, "%s: must be a regular expression",
                       name);
    if (a->grammar.n)
        return br_fail(st, BR_E_USAGE, "%s: the answer has another form", name);
    if (br_regex_grammar((br_text){v->s, v->n}, &a->grammar, &why) == BR_OK)
        return BR_OK;
    return br_fail(st, why.code == BR_E_OOM ? BR_E_OOM : BR_E_USAGE, "%s: %s",
                   name, why.msg);
}

/* {"json":{...}}, {"choice":[...]}, {"regex":"..."}, {"grammar":"..."} or
 * {"json_object":true} */
br_code
br_ask_structured(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    static const struct {
        const char *name;
        br_ask_fn fn;
    } rows[] = {{"json", br_ask_schema},
                {"choice", br_ask_choice},
                {"regex", br_ask_regex},
                {"grammar", br_ask_grammar}};

    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", name);
    for (const br_json *m = v->child; m; m = m->next) {
        size_t i = 0;

        while (i < BR_COUNT(rows) && !br_json_key_is(m, rows[i].name))
            i++;
        if (m->kind == BR_J_NULL)
            continue;
        if (i < BR_COUNT(rows))
            BR_TRY(rows[i].fn(a, m, name, st));
        else if (br_json_key_is(m, "json_object") && m->kind == BR_J_BOOL &&
                 m->b)
            BR_TRY(add_schema(a, NULL, name, st));
        else
            return br_fail(st, BR_E_USAGE, "%s.%.60s: not supported", name,
                           m->key);
    }
    return BR_OK;
}
