/* schema.c - a JSON schema to the grammar of documents that it allows.
 *
 *   {"type":"object","properties":{"n":{"type":"integer","minimum":1}},
 *    "required":["n"]}
 *
 *   root ::= r0
 *   r0   ::= "{" ws "\"n\":" ws ([1-9] | [1-9] [0-9] | ...) r0-1 "}"
 *   r0-1 ::= ws
 *
 * Every keyword is enforced or refused. What comes out may be narrower than
 * the schema, never wider: members come in the schema's order and without
 * names that the schema does not list (unless it lists none), whole numbers
 * have at most 15 digits, and so on. Draft 2020-12, and `definitions`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_REFS = 1024,       /* schemas that $ref leads to */
    MAX_CHOICES = 64,      /* schemas in oneOf: each is held against each */
    MAX_JOINED = 32 << 20, /* bytes of schemas that were joined */
    MAX_PAIRS = 1 << 16,   /* of schemas, until they count as not apart */
    MAX_WORK = 1 << 24,    /* members looked at, 0.1 s of them */
};

static const struct keyword {
    const char *name;
    unsigned group;
} keywords[] = {
#define X(name, group) {name, BR_SG_##group},
#include "run/schema.def"
#undef X
};

static const struct named {
    const char *name, *text;
} named[] = {
#define X(name, text)     {name, text},
#define NAMED(name, text) {name, text},
#include "run/schema_rule.def"
#undef X
#undef NAMED
};

enum {
    T_OBJ = 1,
    T_ARR = 2,
    T_STR = 4,
    T_NUM = 8,
    T_INT = 16,
    T_BOOL = 32,
    T_NULL = 64,
    T_ALL = 111
};

static const char *const types[] = {"object",  "array",   "string", "number",
                                    "integer", "boolean", "null"};

/* ---- failing ------------------------------------------------------------- */

br_code
br_schema_oom(maker *k)
{
    return br_fail(k->st, BR_E_OOM, "schema: out of memory");
}

br_code
br_schema_refuse(maker *k, const char *keyword, const char *why)
{
    if (k->rules->oom || k->path.oom) /* it may be for want of that */
        return br_schema_oom(k);
    return br_fail(k->st, BR_E_UNSUPPORTED, "schema: '%.60s' at '#%.120s': %s",
                   keyword, br_str_z(&k->path), why);
}

br_code
br_schema_work(maker *k, const char *keyword, uint64_t n)
{
    k->n_work += n;
    return k->n_work <= MAX_WORK
               ? BR_OK
               : br_schema_refuse(k, keyword, "takes too much work");
}

/* ---- reading schemas ----------------------------------------------------- */

unsigned
br_schema_group(const char *keyword)
{
    for (size_t i = 0; i < BR_COUNT(keywords); i++)
        if (strcmp(keywords[i].name, keyword) == 0)
            return keywords[i].group;
    return strncmp(keyword, "x-", 2) == 0 ? BR_SG_NOTE : 0;
}

br_code
br_schema_groups(maker *k, json *s, unsigned *out)
{
    *out = 0;
    if (s->kind != BR_J_OBJ)
        return br_schema_refuse(k, br_json_kind_name(s->kind),
                                "a schema is an object");
    for (json *m = s->child; m; m = m->next) {
        unsigned group = br_schema_group(m->key);

        if (!group)
            return br_schema_refuse(k, m->key,
                                    "this keyword cannot be enforced");
        *out |= group;
    }
    return BR_OK;
}

static unsigned
type_named(json *v)
{
    for (size_t i = 0; i < BR_COUNT(types); i++)
        if (br_json_is(v, types[i]))
            return 1u << i;
    return 0;
}

/* The types that "type" says; without it those that its keywords speak of. */
static br_code
types_of(maker *k, json *s, unsigned groups, unsigned *out)
{
    json *v = br_json_get(s, "type"), *null = br_json_get(s, "nullable");
    bool list = v && v->kind == BR_J_ARR && v->n;

    *out = 0;
    if (!v) {
        *out = (groups & BR_SG_OBJ ? T_OBJ : 0) |
               (groups & BR_SG_ARR ? T_ARR : 0) |
               (groups & BR_SG_STR ? T_STR : 0) |
               (groups & BR_SG_NUM ? T_NUM : 0);
        *out = *out ? *out : T_ALL;
        return BR_OK;
    }
    for (json *t = list ? v->child : v; t; t = list ? t->next : NULL) {
        unsigned one = type_named(t);

        if (!one)
            return br_schema_refuse(k, "type", "no such type");
        *out |= one;
    }
    if (*out & T_NUM)
        *out &= ~(unsigned)T_INT;
    if (null && null->kind == BR_J_BOOL && null->b)
        *out |= T_NULL;
    return BR_OK;
}

br_code
br_schema_types(maker *k, json *s, unsigned *out)
{
    return types_of(k, s, 0, out);
}

br_code
br_schema_type_list(maker *k, unsigned t, br_json **out)
{
    *out = br_json_new(&k->arena, BR_J_ARR);
    for (size_t i = 0; *out && i < BR_COUNT(types); i++)
        if ((t >> i & 1) &&
            !br_json_append(*out,
                            br_json_new_str(&k->arena, br_text_z(types[i]))))
            *out = NULL;
    return *out ? BR_OK : br_schema_oom(k);
}

/* Each whole number is a number. */
unsigned
br_schema_both_types(unsigned a, unsigned b)
{
    a |= a & T_NUM ? T_INT : 0;
    b |= b & T_NUM ? T_INT : 0;
    a &= b;
    return a & T_NUM ? a & ~(unsigned)T_INT : a;
}

/* A count; *out stays where the keyword is missing. */
br_code
br_schema_count(maker *k, json *s, const char *key, int64_t *out)
{
    json *v = br_json_get(s, key);

    if (!v)
        return BR_OK;
    if (v->kind != BR_J_INT || v->i < 0 || v->i > BR_GRAMMAR_MAX_REPEAT)
        return br_schema_refuse(k, key,
                                "must be a whole number from 0 to 65536");
    *out = v->i;
    return BR_OK;
}

/* A reference is part of a URI: generators write Pick<A> as Pick%3CA%3E. */
static bool
unescape(const char *s, char *out, size_t size)
{
    size_t n = 0;

    for (; *s && n + 1 < size; s++) {
        int high = *s == '%' ? br_hex_digit(s[1]) : -1;
        int low = high >= 0 ? br_hex_digit(s[2]) : -1;

        if (*s == '%' && (low < 0 || high + low == 0))
            return false;
        out[n++] = *s == '%' ? (char)(high << 4 | low) : *s;
        s += *s == '%' ? 2 : 0;
    }
    out[n] = 0;
    return !*s;
}

/* What a pointer such as #/$defs/item names; NULL: nothing. */
static json *
pointed(maker *k, const char *ref)
{
    char text[1024], *p = text;
    json *at = k->root;

    if (!unescape(ref, text, sizeof text) || *p++ != '#')
        return NULL;
    while (*p == '/' && at) {
        char key[256];
        size_t n = 0;

        for (p++; *p && *p != '/'; p++) {
            if (n + 1 == sizeof key ||
                (*p == '~' && p[1] != '0' && p[1] != '1'))
                return NULL;
            key[n++] = *p != '~' ? *p : *++p == '0' ? '~' : '/';
        }
        key[n] = 0;
        k->n_work += at->kind >= BR_J_ARR ? at->n : 0;
        if (at->kind == BR_J_OBJ) {
            at = br_json_get(at, key);
        } else if (at->kind == BR_J_ARR) {
            int64_t i;

            at = br_json_to_i64((br_text){key, n}, &i) && i >= 0
                     ? br_json_at(at, (size_t)i)
                     : NULL;
        } else {
            at = NULL;
        }
    }
    return *p ? NULL : at;
}

size_t
br_schema_enter(maker *k, const char *a, const char *b)
{
    size_t was = k->path.n;

    br_str_printf(&k->path, "/%s", a);
    if (b)
        br_str_printf(&k->path, "/%s", b);
    return was;
}

void
br_schema_leave(maker *k, size_t was)
{
    if (k->path.at && !k->path.oom) {
        k->path.n = was;
        k->path.at[was] = 0;
    }
}

/* ---- rules --------------------------------------------------------------- */

/* "name ::= text" for text that is complete, which is freed. */
void
br_schema_put_rule(maker *k, uint32_t n, const char *more, br_str *text)
{
    br_str_printf(k->rules, "%sr%u%s ::= ", k->prefix, n, more);
    br_str_put(k->rules, br_str_z(text), text->n);
    br_str_putc(k->rules, '\n');
    k->rules->oom |= text->oom;
    br_str_fini(text);
}

/* A schema in a rule of its own. */
br_code
br_schema_rule(maker *k, json *s, uint32_t *out)
{
    br_str text = {0};
    br_code code;

    *out = k->n_rules++;
    code = br_schema_expr(k, s, &text);
    if (code == BR_OK)
        br_schema_put_rule(k, *out, "", &text);
    br_str_fini(&text);
    return code;
}

void
br_grammar_quote(br_str *out, br_text t)
{
    br_str_putc(out, '"');
    for (size_t i = 0; i < t.n; i++) {
        uint8_t c = (uint8_t)t.p[i];

        if (c == '"' || c == '\\')
            br_str_putc(out, '\\');
        if (c < 0x20)
            br_str_printf(out, "\\x%02x", c);
        else
            br_str_putc(out, (char)c);
    }
    br_str_putc(out, '"');
}

void
br_schema_put_json(br_str *to, json *v)
{
    br_str text = {0};
    br_json_writer w;

    br_json_w_begin(&w, &text, 0);
    w.compact = true;
    w.utf8 = true;
    br_json_w_tree(&w, v);
    br_grammar_quote(to, (br_text){br_str_z(&text), text.n});
    to->oom |= text.oom;
    br_str_fini(&text);
}

/* ---- values listed ------------------------------------------------------- */

bool
br_schema_has_type(json *v, unsigned t)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: return t & T_NULL;
    case BR_J_BOOL: return t & T_BOOL;
    case BR_J_INT:
    case BR_J_BIGINT: return t & (T_NUM | T_INT);
    case BR_J_FLOAT: return (t & T_NUM) || ((t & T_INT) && v->f == floor(v->f));
    case BR_J_STR: return t & T_STR;
    case BR_J_ARR: return t & T_ARR;
    case BR_J_OBJ: return t & T_OBJ;
    }
    br_unreachable("no such kind");
}

/* Of the keywords that speak of such a value. */
static unsigned
group_of(json *v)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL:
    case BR_J_BOOL: return 0;
    case BR_J_INT:
    case BR_J_BIGINT:
    case BR_J_FLOAT: return BR_SG_NUM;
    case BR_J_STR: return BR_SG_STR;
    case BR_J_ARR: return BR_SG_ARR;
    case BR_J_OBJ: return BR_SG_OBJ;
    }
    br_unreachable("no such kind");
}

static br_code
too_long(maker *k)
{
    return br_fail(k->st, BR_E_LIMIT, "schema: its grammar is over %d bytes",
                   BR_GRAMMAR_MAX_TEXT);
}

static br_code
listed(maker *k, json *s, unsigned groups, br_str *to)
{
    json *one = br_json_get(s, "const"), *list = br_json_get(s, "enum");
    const char *key = one ? "const" : "enum";
    unsigned t = T_ALL;
    size_t n = 0;

    if (groups & BR_SG_TYPE)
        BR_TRY(types_of(k, s, groups, &t));
    if (!one && list->kind != BR_J_ARR)
        return br_schema_refuse(k, key, "must be a list");
    br_str_putc(to, '(');
    for (json *v = one ? one : list->child; v; v = one ? NULL : v->next)
        if (br_schema_has_type(v, t)) {
            if (groups & group_of(v))
                return br_schema_refuse(
                    k, key, "cannot be enforced beside other keywords");
            if (k->rules->n + to->n > BR_GRAMMAR_MAX_TEXT)
                return too_long(k);
            br_str_puts(to, n++ ? " | " : "");
            br_schema_put_json(to, v);
        }
    br_str_putc(to, ')');
    return n ? BR_OK : br_schema_refuse(k, key, "no value is left");
}

/* ---- one of several ------------------------------------------------------ */

/* Texts tell such values apart: not 1 and 1.0. */
static bool
is_exact(json *v)
{
    return v->kind <= BR_J_STR && v->kind != BR_J_FLOAT &&
           v->kind != BR_J_BIGINT;
}

static bool
same_exact(json *a, json *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == BR_J_STR
               ? br_text_eq((br_text){a->s, a->n}, (br_text){b->s, b->n})
           : a->kind == BR_J_INT  ? a->i == b->i
           : a->kind == BR_J_BOOL ? a->b == b->b
                                  : true;
}

bool
br_schema_same(maker *k, json *a, json *b)
{
    br_str x = {0}, y = {0};
    bool yes;

    if (is_exact(a) && is_exact(b))
        return same_exact(a, b);
    br_schema_put_json(&x, a);
    br_schema_put_json(&y, b);
    k->rules->oom |= x.oom || y.oom;
    k->n_work += (x.n + y.n) / 8;
    yes =
        x.oom || y.oom ||
        br_text_eq((br_text){br_str_z(&x), x.n}, (br_text){br_str_z(&y), y.n});
    br_str_fini(&x);
    br_str_fini(&y);
    return yes;
}

json *
br_schema_pointed(maker *k, json *ref)
{
    return ref->kind == BR_J_STR ? pointed(k, ref->s) : NULL;
}

/* false, or {"not":{}}. */
bool
br_schema_never(json *s)
{
    json *not = s->kind == BR_J_OBJ && s->n == 1 ? br_json_get(s, "not") : NULL;

    return s->kind == BR_J_BOOL
               ? !s->b
               : not &&(not ->kind == BR_J_BOOL
                            ? not ->b
                            : not ->kind == BR_J_OBJ && !not ->n);
}

json *
br_schema_resolved(maker *k, json *s)
{
    for (int i = 0; i < 16 && s->kind == BR_J_OBJ; i++) {
        json *ref = br_json_get(s, "$ref");
        json *to = ref ? br_schema_pointed(k, ref) : NULL;

        if (!to)
            break;
        s = to;
    }
    return s;
}

/* The scalars that "const" or "enum" list; NULL: it has neither, or more. */
static json *
choices(json *s, bool *one)
{
    json *c = br_json_get(s, "const"), *e = br_json_get(s, "enum");

    *one = c != NULL;
    if (c)
        return c->kind <= BR_J_STR ? c : NULL;
    if (!e || e->kind != BR_J_ARR)
        return NULL;
    for (json *v = e->child; v; v = v->next)
        if (v->kind > BR_J_STR)
            return NULL;
    return e->child;
}

bool
br_schema_requires(json *s, const char *key)
{
    json *list = br_json_get(s, "required");

    for (json *v = list && list->kind == BR_J_ARR ? list->child : NULL; v;
         v = v->next)
        if (br_json_is(v, key))
            return true;
    return false;
}

br_code
br_schema_put_names(maker *k, json *list, br_map *to)
{
    for (json *v = list->child; v; v = v->next)
        if (v->kind == BR_J_STR && !br_map_put(to, (br_text){v->s, v->n}, NULL))
            return br_schema_oom(k);
    return BR_OK;
}

static bool
has_to_have(maker *k, json *s, const char *key)
{
    json *list = br_json_get(s, "required");

    k->n_work += list && list->kind == BR_J_ARR ? list->n : 0;
    return br_schema_requires(s, key);
}

/* Surely no value is valid under both. */
static bool
apart(maker *k, json *a, json *b, int depth)
{
    unsigned ta = T_ALL, tb = T_ALL;
    bool one_a, one_b;
    json *x, *y;

    a = br_schema_resolved(k, a);
    b = br_schema_resolved(k, b);
    if (a->kind != BR_J_OBJ || b->kind != BR_J_OBJ || depth > 4 ||
        ++k->n_pairs > MAX_PAIRS)
        return false;
    x = choices(a, &one_a);
    y = choices(b, &one_b);
    if (x && y) {
        for (json *v = x; v; v = one_a ? NULL : v->next)
            for (json *w = y; w; w = one_b ? NULL : w->next)
                if (++k->n_work > MAX_WORK || !is_exact(v) || !is_exact(w) ||
                    same_exact(v, w))
                    return false;
        return true;
    }
    if (br_json_get(a, "type") && br_json_get(b, "type")) {
        maker quiet = *k;

        quiet.st = NULL;
        if (types_of(&quiet, a, 0, &ta) != BR_OK ||
            types_of(&quiet, b, 0, &tb) != BR_OK)
            return false;
        if (!br_schema_both_types(ta, tb))
            return true;
    }
    x = br_json_get(a, "properties");
    y = br_json_get(b, "properties");
    if (ta != T_OBJ || tb != T_OBJ || !x || !y || x->kind != BR_J_OBJ ||
        y->kind != BR_J_OBJ)
        return false;
    for (json *p = x->child; p; p = p->next) {
        json *q = br_json_get(y, p->key);

        k->n_work += y->n;
        if (q && k->n_work <= MAX_WORK && has_to_have(k, a, p->key) &&
            has_to_have(k, b, p->key) && apart(k, p, q, depth + 1))
            return true;
        if (k->n_work > MAX_WORK)
            return false;
    }
    return false;
}

bool
br_schema_apart(maker *k, json *a, json *b)
{
    return apart(k, a, b, 0);
}

br_code
br_schema_overlap(maker *k)
{
    BR_TRY(br_schema_work(k, "oneOf", 0)); /* or it was not looked to the end */
    return br_schema_refuse(k, "oneOf",
                            "two of the schemas may allow the same value; "
                            "say anyOf, or tell them apart by a required "
                            "property with const");
}

br_code
br_schema_check_list(maker *k, json *list, const char *key)
{
    if (list->kind != BR_J_ARR || !list->n)
        return br_schema_refuse(k, key, "must be a list that is not empty");
    return strcmp(key, "oneOf") == 0 && list->n > MAX_CHOICES
               ? br_schema_refuse(k, key, "over 64 schemas")
               : BR_OK;
}

static bool
all_apart(maker *k, json *list)
{
    for (json *a = list->child; a; a = a->next)
        for (json *b = a->next; b; b = b->next)
            if (!apart(k, a, b, 0))
                return false;
    return true;
}

/* anyOf, oneOf or allOf with nothing beside it. */
static br_code
one_of(maker *k, json *s, const char *key, br_str *to)
{
    json *list = br_json_get(s, key);
    size_t was, i = 0;

    BR_TRY(br_schema_check_list(k, list, key));
    if (strcmp(key, "oneOf") == 0 && !all_apart(k, list)) {
        BR_TRY(br_schema_work(k, key, 0));
        return br_schema_all(k, s, to); /* they may be once they are joined */
    }
    br_str_putc(to, '(');
    for (json *v = list->child; v; v = v->next) {
        char index[24];

        snprintf(index, sizeof index, "%zu", i);
        br_str_puts(to, i++ ? " | " : "");
        was = br_schema_enter(k, key, index);
        BR_TRY(br_schema_expr(k, v, to));
        br_schema_leave(k, was);
    }
    br_str_putc(to, ')');
    return BR_OK;
}

static br_code
reference(maker *k, json *s, br_str *to)
{
    json *v = br_json_get(s, "$ref");
    json *to_what = br_schema_pointed(k, v);
    size_t i = 0;

    if (!to_what)
        return br_schema_refuse(k, "$ref", "leads to nothing in this schema");
    while (i < k->refs.n && k->refs.at[i].schema != to_what)
        i++;
    if (i == MAX_REFS)
        return br_schema_refuse(k, "$ref", "over 1024 schemas are referred to");
    if (i == k->refs.n && !br_vec_push(&k->refs, ((target){to_what, v->s})))
        return br_schema_oom(k);
    br_str_printf(to, "%sref%zu", k->prefix, i);
    return BR_OK;
}

/* ---- a schema ------------------------------------------------------------ */

static br_code
typed(maker *k, json *s, unsigned groups, br_str *to)
{
    static const struct {
        unsigned type, group;
        const char *rule;
    } rows[] = {{T_OBJ, BR_SG_OBJ, "object"},
                {T_ARR, BR_SG_ARR, "array"},
                {T_STR, BR_SG_STR, "string"},
                {T_NUM, BR_SG_NUM, "number"},
                {T_INT, BR_SG_NUM, "integer"},
                {T_BOOL, 0, "boolean"},
                {T_NULL, 0, "null"}};
    const char *bar = "(";
    int64_t lo, hi;
    unsigned t;

    BR_TRY(types_of(k, s, groups, &t));
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        if (!(t & rows[i].type))
            continue;
        br_str_puts(to, bar);
        bar = " | ";
        if (!(groups & rows[i].group) &&
            (rows[i].type != T_INT || !br_schema_width(s, &lo, &hi)))
            br_str_puts(to, rows[i].rule);
        else if (rows[i].type == T_OBJ)
            BR_TRY(br_schema_object(k, s, to));
        else if (rows[i].type == T_ARR)
            BR_TRY(br_schema_array(k, s, to));
        else if (rows[i].type == T_STR)
            BR_TRY(br_schema_string(k, s, to));
        else
            BR_TRY(br_schema_number(k, s, rows[i].type == T_NUM, to));
    }
    br_str_putc(to, ')');
    return BR_OK;
}

br_code
br_schema_plain(maker *k, json *s, br_str *to)
{
    unsigned groups;

    BR_TRY(br_schema_groups(k, s, &groups));
    if (groups & (BR_SG_ENUM | BR_SG_CONST))
        return listed(k, s, groups, to);
    if (groups & ~(unsigned)(BR_SG_NOTE | BR_SG_DEFS))
        return typed(k, s, groups, to);
    br_str_puts(to, "value");
    return BR_OK;
}

/* One keyword of these alone is as it is; beside others it is joined to them. */
static br_code
schema(maker *k, json *s, br_str *to)
{
    unsigned groups = 0;
    json *all;

    if (s->kind == BR_J_BOOL && s->b) {
        br_str_puts(to, "value");
        return BR_OK;
    }
    if (br_schema_never(s))
        return br_schema_refuse(k, s->kind == BR_J_BOOL ? "false" : "not",
                                "no value is left");
    BR_TRY(br_schema_groups(k, s, &groups));
    groups &= ~(unsigned)(BR_SG_NOTE | BR_SG_DEFS);
    all = br_json_get(s, "allOf");
    if (groups == BR_SG_REF)
        return reference(k, s, to);
    if (groups == BR_SG_ANYOF)
        return one_of(k, s, "anyOf", to);
    if (groups == BR_SG_ONEOF)
        return one_of(k, s, "oneOf", to);
    if (groups == BR_SG_ALLOF && all->kind == BR_J_ARR && all->n == 1)
        return one_of(k, s, "allOf", to);
    if (groups & BR_SG_JOINS ||
        (groups & (BR_SG_ENUM | BR_SG_CONST)) == (BR_SG_ENUM | BR_SG_CONST))
        return br_schema_all(k, s, to);
    return br_schema_plain(k, s, to);
}

br_code
br_schema_expr(maker *k, json *s, br_str *to)
{
    br_code code;

    if (++k->depth > BR_SCHEMA_DEPTH)
        return br_fail(k->st, BR_E_LIMIT,
                       "schema: over %d schemas in each "
                       "other",
                       BR_SCHEMA_DEPTH);
    if (k->rules->n + to->n > BR_GRAMMAR_MAX_TEXT)
        return too_long(k);
    BR_TRY(br_schema_work(k, "$ref", 0)); /* where it led to was looked for */
    code = schema(k, s, to);
    k->depth--;
    return code;
}

static br_code
make(maker *k)
{
    br_str root = {0};
    br_code code = br_schema_expr(k, k->root, &root);

    br_str_printf(k->rules, "%sroot ::= %s\n", k->prefix, br_str_z(&root));
    k->rules->oom |= root.oom;
    br_str_fini(&root);
    for (size_t i = 0; code == BR_OK && i < k->refs.n; i++) {
        br_str text = {0};

        k->rules->oom |= k->path.oom;
        br_str_clear(&k->path);
        br_str_puts(&k->path, k->refs.at[i].pointer + 1);
        code = br_schema_expr(k, k->refs.at[i].schema, &text);
        br_str_printf(k->rules, "%sref%zu ::= %s\n", k->prefix, i,
                      br_str_z(&text));
        k->rules->oom |= text.oom;
        br_str_fini(&text);
    }
    return code;
}

/* Names are compared as C has texts: a NUL in one would hide what follows it,
 * "type\0x" be taken for "type" and not be enforced. */
static br_code
without_nul(maker *k, json *v, const char *under)
{
    bool name = strcmp(under, "required") == 0 || strcmp(under, "$ref") == 0;

    BR_TRY(
        br_schema_work(k, "$defs", 1)); /* once for each argument of a tool */
    if (name && v->kind == BR_J_STR && memchr(v->s, 0, v->n))
        return br_schema_refuse(k, under, "holds a NUL");
    if (v->kind != BR_J_OBJ && v->kind != BR_J_ARR)
        return BR_OK;
    for (json *m = v->child; m; m = m->next) {
        if (v->kind == BR_J_OBJ && memchr(m->key, 0, m->key_n))
            return br_schema_refuse(k, m->key, "holds a NUL");
        BR_TRY(without_nul(k, m, v->kind == BR_J_OBJ ? m->key : under));
    }
    return BR_OK;
}

br_code
br_schema_rules(const br_json *schema_, const char *prefix,
                br_schema_spent *spent, br_str *out, br_status *st)
{
    maker k = {.root = schema_,
               .prefix = prefix,
               .rules = out,
               .st = st,
               .n_work = spent->work,
               .n_steps = spent->steps};
    br_code code;

    br_arena_init(&k.arena, MAX_JOINED);
    code = without_nul(&k, schema_, "");
    if (code == BR_OK)
        code = make(&k);
    if (code == BR_OK && (out->oom || k.path.oom))
        code = br_schema_oom(&k);
    spent->work = k.n_work;
    spent->steps = k.n_steps;
    br_str_fini(&k.path);
    br_vec_fini(&k.refs);
    br_arena_fini(&k.arena);
    return code;
}

void
br_schema_common(br_str *out)
{
    for (size_t i = 0; i < BR_COUNT(named); i++)
        br_str_printf(out, "%s ::= %s\n", named[i].name, named[i].text);
}

br_code
br_schema_grammar(const br_json *schema_, br_str *out, br_status *st)
{
    br_schema_spent none = {0};

    if (schema_)
        BR_TRY(br_schema_rules(schema_, "", &none, out, st));
    else
        br_str_puts(out, "root ::= object\n");
    br_schema_common(out);
    return out->oom ? br_fail(st, BR_E_OOM, "schema: out of memory") : BR_OK;
}
