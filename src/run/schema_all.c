/* schema_all.c - several schemas that one value has to keep to, see schema.c.
 *
 *   {"allOf":[{"$ref":"#/$defs/pet"},
 *             {"properties":{"barks":{"type":"boolean"}}}],
 *    "required":["name"]}
 *
 * Requires a schema whose keywords are known. What allOf lists, $ref leads to and
 * stands beside them becomes one object of keywords: of two bounds the tighter one,
 * of two types what both allow, of two lists of values what is in both, a property
 * of both allOf its two schemas, which are joined when they are come to. What
 * cannot be said by one keyword is refused. anyOf and oneOf are multiplied out: each
 * of their schemas with all the rest; those that nothing is valid under fall away.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <string.h>

enum {
    MAX_ADDED = 1 << 13, /* schemas, in all: sums in sums multiply */
    MAX_EITHER = 8,      /* anyOf and oneOf of one value */
    MAX_BRANCHES = 256,  /* of one of them */
};

typedef struct either {
    const char *key;
    json *list;
} either;

typedef struct sum {
    maker *k;
    br_json *to; /* keywords, each once */
    either either[MAX_EITHER];
    uint32_t n_either;
    int depth;
    bool never; /* nothing is valid */
} sum;

/* ---- pieces of documents -------------------------------------------------- */

static br_code
work(maker *k, size_t n)
{
    return br_schema_work(k, "allOf", n);
}

static br_code
no_room(maker *k)
{
    return k->arena.used > k->arena.limit / 2
               ? br_schema_refuse(k, "allOf", "takes too much memory")
               : br_schema_oom(k);
}

static br_json *
copy(maker *k, json *v)
{
    br_json *to = br_arena_dup(&k->arena, v, sizeof *v);

    if (to)
        to->next = NULL;
    return to;
}

/* obj[key] becomes v. */
static br_code
set(maker *k, br_json *obj, const char *key, json *v)
{
    br_json *to = obj->child, *new = copy(k, v);

    BR_TRY(work(k, obj->n));
    while (to && !br_json_key_is(to, key))
        to = to->next;
    if (!new)
        return no_room(k);
    if (to) {
        new->key = to->key;
        new->key_n = to->key_n;
        new->next = to->next;
        *to = *new;
        return BR_OK;
    }
    return br_json_put(&k->arena, obj, key, new) ? BR_OK : no_room(k);
}

static br_code
append(maker *k, br_json *list, json *v)
{
    br_json *new = copy(k, v);

    if (new)
        new->key = NULL;
    return br_json_append(list, new) ? BR_OK : no_room(k);
}

static br_code
fresh(maker *k, br_json_kind kind, br_json **out)
{
    *out = br_json_new(&k->arena, kind);
    return *out ? BR_OK : no_room(k);
}

static br_code add(sum *x, json *s);

/* Has keywords alone that one object of them can have. */
static bool
is_plain(maker *k, json *s)
{
    unsigned groups = 0;

    s = br_schema_resolved(k, s);
    for (json *m = s->kind == BR_J_OBJ ? s->child : NULL; m; m = m->next)
        groups |= br_schema_group(m->key);
    return !(groups & BR_SG_JOINS);
}

/* true, or {}: any value is valid. */
static bool
says_nothing(json *s)
{
    return s->kind == BR_J_BOOL ? s->b : s->kind == BR_J_OBJ && !s->n;
}

/* Both of two schemas, as one: at once where that is plain, so that it can be
 * seen what is apart from it. */
static br_code
both(maker *k, json *a, json *b, json **out)
{
    static const br_json nothing = {.kind = BR_J_BOOL};
    br_json *all, *list;
    sum x = {.k = k};

    *out = b;
    if (says_nothing(a))
        return BR_OK;
    *out = a;
    if (says_nothing(b) || br_schema_same(k, a, b))
        return BR_OK;
    *out = &nothing;
    if (br_schema_never(a) || br_schema_never(b) || br_schema_apart(k, a, b))
        return BR_OK;
    if (is_plain(k, a) && is_plain(k, b)) {
        if (++k->depth > BR_SCHEMA_DEPTH)
            return br_schema_refuse(k, "allOf", "leads to too many schemas");
        BR_TRY(fresh(k, BR_J_OBJ, &x.to));
        BR_TRY(add(&x, a));
        BR_TRY(add(&x, b));
        k->depth--;
        *out = x.never ? &nothing : x.to;
        return BR_OK;
    }
    BR_TRY(fresh(k, BR_J_ARR, &list));
    BR_TRY(append(k, list, a));
    BR_TRY(append(k, list, b));
    BR_TRY(fresh(k, BR_J_OBJ, &all));
    BR_TRY(set(k, all, "allOf", list));
    *out = all;
    return BR_OK;
}

/* ---- keywords ------------------------------------------------------------- */

static br_code
twice(sum *x, const char *key)
{
    return br_schema_refuse(x->k, key, "cannot be enforced twice");
}

static br_code
join_schemas(sum *x, const char *key, json *b)
{
    json *a = br_json_get(x->to, key);

    if (a)
        BR_TRY(both(x->k, a, b, &b));
    return set(x->k, x->to, key, b);
}

static br_code
join_types(sum *x, json *s)
{
    unsigned a, b;
    br_json *list;

    BR_TRY(br_schema_types(x->k, s, &b));
    if (br_json_get(x->to, "type")) {
        BR_TRY(br_schema_types(x->k, x->to, &a));
        b = br_schema_both_types(a, b);
    }
    x->never |= !b;
    BR_TRY(br_schema_type_list(x->k, b, &list));
    return set(x->k, x->to, "type", list);
}

/* "const" is a list of one. */
static br_code
join_values(sum *x, json *m)
{
    bool one = br_json_key_is(m, "const");
    json *was = br_json_get(x->to, "enum");
    br_json *list;

    if (!one && m->kind != BR_J_ARR)
        return br_schema_refuse(x->k, "enum", "must be a list");
    BR_TRY(fresh(x->k, BR_J_ARR, &list));
    for (json *v = one ? m : m->child; v; v = one ? NULL : v->next) {
        bool in = !was;

        BR_TRY(work(x->k, was ? 16 * was->n : 0));
        for (json *w = was ? was->child : NULL; w && !in; w = w->next)
            in = br_schema_same(x->k, v, w);
        if (in)
            BR_TRY(append(x->k, list, v));
    }
    x->never |= !list->n;
    return set(x->k, x->to, "enum", list);
}

/* Those of one list that are not there yet. */
static br_code
add_required(maker *k, json *from, br_map *there, br_json *to)
{
    for (json *v = from->child; v; v = v->next) {
        bool new;

        if (v->kind != BR_J_STR)
            return br_schema_refuse(k, "required", "must list names");
        if (!br_map_put(there, (br_text){v->s, v->n}, &new))
            return br_schema_oom(k);
        if (new)
            BR_TRY(append(k, to, v));
    }
    return BR_OK;
}

static br_code
join_required(sum *x, json *m)
{
    json *was = br_json_get(x->to, "required");
    br_map there = {0};
    br_json *list;
    br_code code;

    if (m->kind != BR_J_ARR)
        return br_schema_refuse(x->k, "required", "must be a list");
    BR_TRY(fresh(x->k, BR_J_ARR, &list));
    code = was ? add_required(x->k, was, &there, list) : BR_OK;
    if (code == BR_OK)
        code = add_required(x->k, m, &there, list);
    br_map_fini(&there);
    return code == BR_OK ? set(x->k, x->to, "required", list) : code;
}

/* What a list of properties and an additionalProperties beside it make of the
 * properties of another list. */
static br_code
add_properties(sum *x, br_json *to, json *from, json *others, json *more)
{
    for (json *p = from ? from->child : NULL; p; p = p->next) {
        json *q = others ? br_json_get(others, p->key) : NULL, *v = p;

        BR_TRY(work(x->k, to->n + (others ? others->n : 0)));
        if (br_json_get(to, p->key))
            continue; /* of both: it is there */
        if (q || more)
            BR_TRY(both(x->k, p, q ? q : more, &v));
        BR_TRY(set(x->k, to, p->key, v));
    }
    return BR_OK;
}

static br_code
join_objects(sum *x, json *s)
{
    json *a = br_json_get(x->to, "properties"),
         *b = br_json_get(s, "properties");
    json *more_a = br_json_get(x->to, "additionalProperties"),
         *more_b = br_json_get(s, "additionalProperties");
    br_json *to;

    /* "additional" of one says nothing of what is a pattern's in it, but of what
     * is one's of the other. */
    if ((br_json_get(s, "patternProperties") && (a || more_a)) ||
        (br_json_get(x->to, "patternProperties") && (b || more_b)))
        return twice(x, "patternProperties");
    if (b && b->kind != BR_J_OBJ)
        return br_schema_refuse(x->k, "properties", "must be an object");
    if (a || b) {
        BR_TRY(fresh(x->k, BR_J_OBJ, &to));
        BR_TRY(add_properties(x, to, a, b, more_b));
        BR_TRY(add_properties(x, to, b, a, more_a));
        BR_TRY(set(x->k, x->to, "properties", to));
    }
    return more_b ? join_schemas(x, "additionalProperties", more_b) : BR_OK;
}

/* Items behind a prefix are not those of a list without one. */
static br_code
join_lists(sum *x, json *s)
{
    static const char *const keys[] = {"prefixItems", "items"};
    bool was = br_json_get(x->to, keys[0]) || br_json_get(x->to, keys[1]);

    if (was && (br_json_get(x->to, keys[0]) || br_json_get(s, keys[0])) &&
        (br_json_get(s, keys[0]) || br_json_get(s, keys[1])))
        return twice(x, "prefixItems");
    for (size_t i = 0; i < BR_COUNT(keys); i++) {
        json *m = br_json_get(s, keys[i]);

        if (m)
            BR_TRY(join_schemas(x, keys[i], m));
    }
    return BR_OK;
}

/* -1, 0, 1 as a is below, at or above b; 2: who can tell. */
static int
compare(json *a, json *b)
{
    double x, y;

    if (a->kind == BR_J_INT && b->kind == BR_J_INT)
        return a->i < b->i ? -1 : a->i > b->i;
    if ((a->kind != BR_J_INT && a->kind != BR_J_FLOAT) ||
        (b->kind != BR_J_INT && b->kind != BR_J_FLOAT))
        return 2;
    x = a->kind == BR_J_INT ? (double)a->i : a->f;
    y = b->kind == BR_J_INT ? (double)b->i : b->f;
    return x < y ? -1 : x > y ? 1 : 2;
}

/* All others: one value, of which the tighter holds. */
static br_code
join_limits(sum *x, json *m)
{
    static const char *const least[] = {"minLength", "minItems",
                                        "minProperties", "minimum",
                                        "exclusiveMinimum"},
                             *const most[] = {"maxLength", "maxItems",
                                              "maxProperties", "maximum",
                                              "exclusiveMaximum"};
    json *was = br_json_get(x->to, m->key);
    int way = 0, how;
    br_json *text;

    if (!was)
        return set(x->k, x->to, m->key, m);
    if (br_schema_same(x->k, was, m))
        return BR_OK;
    for (size_t i = 0; i < BR_COUNT(least); i++)
        way += (strcmp(least[i], m->key) == 0) - (strcmp(most[i], m->key) == 0);
    how = compare(m, was);
    if (way && how != 2)
        return how == way ? set(x->k, x->to, m->key, m) : BR_OK;
    if (br_json_key_is(m, "uniqueItems") && m->kind == BR_J_BOOL)
        return m->b ? set(x->k, x->to, m->key, m) : BR_OK;
    if (!br_json_key_is(m, "pattern"))
        return twice(x, m->key);
    BR_TRY(br_schema_patterns(x->k, was, m, &text));
    return set(x->k, x->to, m->key, text);
}

/* ---- schemas -------------------------------------------------------------- */

static br_code
add_ref(sum *x, json *m)
{
    json *to = br_schema_pointed(x->k, m);

    return to ? add(x, to)
              : br_schema_refuse(x->k, "$ref",
                                 "leads to nothing in this schema");
}

static br_code
add_all(sum *x, json *list)
{
    BR_TRY(br_schema_check_list(x->k, list, "allOf"));
    for (json *v = list->child; v; v = v->next)
        BR_TRY(add(x, v));
    return BR_OK;
}

static br_code
add_either(sum *x, json *m)
{
    for (uint32_t i = 0; i < x->n_either; i++)
        if (strcmp(x->either[i].key, m->key) == 0 &&
            br_schema_same(x->k, x->either[i].list, m))
            return BR_OK;
    if (x->n_either == MAX_EITHER)
        return br_schema_refuse(x->k, m->key, "over 8 of them of one value");
    x->either[x->n_either++] = (either){m->key, m};
    return br_schema_check_list(x->k, m, m->key);
}

static br_code
add_keyword(sum *x, json *s, json *m)
{
    if (br_json_key_is(m, "unevaluatedProperties") && x->depth > 1)
        return br_schema_refuse(x->k, m->key, "cannot be enforced in here");
    switch (br_schema_group(m->key)) {
    case BR_SG_NOTE:
    case BR_SG_DEFS: return BR_OK;
    case BR_SG_REF: return add_ref(x, m);
    case BR_SG_ALLOF: return add_all(x, m);
    case BR_SG_ANYOF:
    case BR_SG_ONEOF: return add_either(x, m);
    case BR_SG_TYPE: return join_types(x, s);
    case BR_SG_ENUM:
    case BR_SG_CONST: return join_values(x, m);
    default: break;
    }
    if (br_json_key_is(m, "properties") ||
        br_json_key_is(m, "additionalProperties") ||
        br_json_key_is(m, "items") || br_json_key_is(m, "prefixItems"))
        return BR_OK; /* done together */
    if (br_json_key_is(m, "required"))
        return join_required(x, m);
    if (br_json_key_is(m, "propertyNames"))
        return join_schemas(x, m->key, m);
    return join_limits(x, m);
}

/* Each schema is one more, wherever it comes from: what leads to itself ends. */
static br_code
add(sum *x, json *s)
{
    unsigned groups;

    if (br_schema_never(s)) {
        x->never = true;
        return BR_OK;
    }
    if (s->kind == BR_J_BOOL)
        return BR_OK;
    BR_TRY(br_schema_groups(x->k, s, &groups));
    if (++x->k->n_added > MAX_ADDED || ++x->depth > BR_SCHEMA_DEPTH)
        return br_schema_refuse(x->k, "allOf",
                                "leads to too many schemas of one value");
    if (groups & BR_SG_NOT)
        return br_schema_refuse(x->k, "not", "cannot be enforced");
    BR_TRY(join_objects(x, s));
    BR_TRY(join_lists(x, s));
    for (json *m = s->child; m; m = m->next)
        BR_TRY(add_keyword(x, s, m));
    x->depth--;
    return BR_OK;
}

/* A property that must be there and that nothing is valid for. */
static bool
lacks(maker *k, json *s)
{
    json *need = br_json_get(s, "required"),
         *list = br_json_get(s, "properties"),
         *more = br_json_get(s, "additionalProperties");
    bool object = br_json_get(s, "properties") != NULL;

    for (json *v = need && object ? need->child : NULL; v; v = v->next) {
        json *p = br_json_get(list, v->s);

        p = p ? p : more;
        if (work(k, list->n) != BR_OK)
            return false; /* the next to work says so */
        if (p && br_schema_never(p))
            return true;
    }
    return false;
}

/* ---- one of several ------------------------------------------------------- */

/* x with v instead of its first anyOf or oneOf; NULL: nothing is left. */
static br_code
branch(const sum *x, json *v, br_json **out)
{
    sum y = *x;
    br_json *list;

    *out = NULL;
    y.depth = 1;
    y.n_either--;
    memmove(y.either, y.either + 1, y.n_either * sizeof *y.either);
    BR_TRY(fresh(y.k, BR_J_OBJ, &y.to));
    for (json *m = x->to->child; m; m = m->next)
        BR_TRY(set(y.k, y.to, m->key, m));
    BR_TRY(add(&y, v));
    if (y.never || lacks(y.k, y.to))
        return BR_OK;
    BR_TRY(work(y.k, 0));
    if (y.n_either)
        BR_TRY(fresh(y.k, BR_J_ARR, &list));
    for (uint32_t i = 0; i < y.n_either; i++) {
        br_json *one;

        BR_TRY(fresh(y.k, BR_J_OBJ, &one));
        BR_TRY(set(y.k, one, y.either[i].key, y.either[i].list));
        BR_TRY(append(y.k, list, one));
    }
    if (y.n_either)
        BR_TRY(set(y.k, y.to, "allOf", list));
    *out = y.to;
    return BR_OK;
}

static br_code
branches(sum *x, br_str *to)
{
    bool one = strcmp(x->either[0].key, "oneOf") == 0;
    json *all[MAX_BRANCHES];
    size_t n = 0;

    for (json *v = x->either[0].list->child; v; v = v->next) {
        br_json *b;

        BR_TRY(branch(x, v, &b));
        if (b && n == MAX_BRANCHES)
            return br_schema_refuse(x->k, x->either[0].key, "over 256 schemas");
        if (b)
            all[n++] = b;
    }
    if (!n)
        return br_schema_refuse(x->k, x->either[0].key, "no value is left");
    for (size_t i = 0; one && i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (!br_schema_apart(x->k, all[i], all[j]))
                return br_schema_overlap(x->k);
    for (size_t i = 0; i < n; i++) {
        br_str_puts(to, i ? " | " : "(");
        BR_TRY(br_schema_expr(x->k, all[i], to));
    }
    br_str_putc(to, ')');
    return BR_OK;
}

br_code
br_schema_all(maker *k, json *s, br_str *to)
{
    sum x = {.k = k};

    BR_TRY(fresh(k, BR_J_OBJ, &x.to));
    BR_TRY(add(&x, s));
    if (x.never || lacks(k, x.to))
        return br_schema_refuse(k, "allOf", "no value is left");
    BR_TRY(work(k, 0));
    return x.n_either ? branches(&x, to) : br_schema_plain(k, x.to, to);
}
