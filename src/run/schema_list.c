/* schema_list.c - arrays and objects of a schema, see schema.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SET = 64 };

/* ---- lists --------------------------------------------------------------- */

/* min to max times what rule r says, commas between; after: others were
 * before. max negative: no end. */
static void
put_items(maker *k, br_str *to, uint32_t r, int64_t min, int64_t max,
          bool after)
{
    char most[24] = "";
    int64_t less = after ? 0 : 1;

    if (max == 0)
        return;
    if (max > 0)
        snprintf(most, sizeof most, "%lld", (long long)(max - less));
    if (!after)
        br_str_printf(to, min ? "%sr%u " : "(%sr%u ", k->prefix, r);
    br_str_printf(to, "(\",\" ws %sr%u){%lld,%s} ", k->prefix, r,
                  (long long)BR_MAX(min - less, 0), most);
    if (!after && !min)
        br_str_puts(to, ")? ");
}

static br_code
prefix_items(maker *k, json *list, br_str *to)
{
    if (list->kind != BR_J_ARR || !list->n)
        return br_schema_refuse(k, "prefixItems",
                                "must be a list that is not empty");
    for (json *v = list->child; v; v = v->next) {
        BR_TRY(br_schema_expr(k, v, to));
        br_str_puts(to, v->next ? " \",\" ws " : " ");
    }
    return BR_OK;
}

/* Those that "enum" lists and "type" allows, none twice; as texts tell all but
 * fractions apart, there are none of those. *out is NULL where it cannot be said. */
static br_code
values_of(maker *k, json *s, json **out)
{
    const unsigned known = BR_SG_ENUM | BR_SG_TYPE | BR_SG_NOTE | BR_SG_DEFS;
    json *items = br_json_get(s, "items"), *list;
    unsigned groups, types = 0;
    br_json *to;

    *out = NULL;
    items = items ? br_schema_resolved(k, items) : NULL;
    list = items ? br_json_get(items, "enum") : NULL;
    if (!list || br_json_get(s, "prefixItems") || list->kind != BR_J_ARR ||
        list->n > MAX_SET)
        return BR_OK;
    BR_TRY(br_schema_groups(k, items, &groups));
    if (groups & BR_SG_TYPE)
        BR_TRY(br_schema_types(k, items, &types));
    to = br_json_new(&k->arena, BR_J_ARR);
    for (json *v = list->child; v && to; v = v->next) {
        bool in = types && !br_schema_has_type(v, types);
        br_json *new;

        if ((groups & ~known) || v->kind == BR_J_FLOAT || v->kind > BR_J_STR)
            return BR_OK;
        for (json *w = to->child; w && !in; w = w->next)
            in = br_schema_same(k, v, w);
        if (in)
            continue;
        new = br_arena_dup(&k->arena, v, sizeof *v);
        if (new)
            new->next = NULL;
        if (!br_json_append(to, new))
            to = NULL;
    }
    *out = to;
    return to ? BR_OK : br_schema_oom(k);
}

/* What may come when those before v, the i-th, have been passed and c taken: may it
 * be taken, and passed? */
static void
put_set(const maker *k, br_str *to, uint32_t r, json *v, uint32_t i, int64_t c,
        bool take, bool pass)
{
    if (!v) {
        br_str_puts(to, "ws");
        return;
    }
    if (take) {
        br_str_puts(to, c ? "\",\" ws " : "");
        br_schema_put_json(to, v);
        br_str_printf(to, " %sr%u-%u-%lld", k->prefix, r, i + 1,
                      (long long)c + 1);
    }
    if (pass)
        br_str_printf(to, "%s%sr%u-%u-%lld", take ? " | " : "", k->prefix, r,
                      i + 1, (long long)c);
}

/* Each value once: some of those listed, in that order. */
static br_code
set_of(maker *k, json *s, int64_t min, int64_t max, br_str *to)
{
    uint32_t r = k->n_rules++, i = 0;
    json *list, *v;

    BR_TRY(values_of(k, s, &list));
    if (!list)
        return br_schema_refuse(k, "uniqueItems",
                                "cannot be enforced but for at most 64 values, "
                                "no fractions, that 'enum' lists");
    max = max < 0 || max > list->n ? list->n : max;
    if (min > max)
        return br_schema_refuse(k, "minItems", "is over the number of values");
    for (v = list->child; i <= list->n; i++, v = v ? v->next : NULL)
        for (int64_t c = 0; c <= i && c <= max; c++) {
            br_str text = {0};
            char more[48];

            if (c + (list->n - i) < min)
                continue; /* too few are left */
            put_set(k, &text, r, v, i, c, c<max, c + (list->n - i)> min);
            snprintf(more, sizeof more, "-%u-%lld", i, (long long)c);
            br_schema_put_rule(k, r, more, &text);
        }
    br_str_printf(to, "\"[\" ws %sr%u-0-0 \"]\"", k->prefix, r);
    return BR_OK;
}

br_code
br_schema_array(maker *k, json *s, br_str *to)
{
    json *first = br_json_get(s, "prefixItems"),
         *rest = br_json_get(s, "items");
    json *unique = br_json_get(s, "uniqueItems");
    json any = {.kind = BR_J_BOOL, .b = true};
    int64_t min = 0, max = -1, n = 0;
    bool none = rest && rest->kind == BR_J_BOOL && !rest->b;
    uint32_t r = 0;
    size_t was;

    BR_TRY(br_schema_count(k, s, "minItems", &min));
    BR_TRY(br_schema_count(k, s, "maxItems", &max));
    if (unique && (unique->kind != BR_J_BOOL || unique->b) &&
        (max < 0 || max > 1))
        return set_of(k, s, min, max, to);
    br_str_puts(to, "\"[\" ws ");
    if (first) {
        was = br_schema_enter(k, "prefixItems", NULL);
        BR_TRY(prefix_items(k, first, to));
        br_schema_leave(k, was);
        n = first->n;
    }
    max = none ? n : max;
    if (max >= 0 && (max < min || max < n))
        return br_schema_refuse(k, "maxItems",
                                "is below the number that must be there");
    if (max != n) {
        was = br_schema_enter(k, "items", NULL);
        BR_TRY(br_schema_rule(k, rest ? rest : &any, &r));
        br_schema_leave(k, was);
        put_items(k, to, r, BR_MAX(min - n, 0), max < 0 ? -1 : max - n, n > 0);
    }
    br_str_puts(to, "ws \"]\"");
    return BR_OK;
}

/* ---- objects ------------------------------------------------------------- */

/* One member: its name and the rule of its value. */
typedef struct prop {
    br_text name;
    uint32_t rule;
    bool required;
} prop;

typedef BR_VEC(prop) props;

static void
put_member(maker *k, br_str *to, const prop *p)
{
    json name = {.kind = BR_J_STR, .s = p->name.p, .n = (uint32_t)p->name.n};

    br_schema_put_json(to, &name);
    br_str_printf(to, " \":\" ws %sr%u ", k->prefix, p->rule);
}

/* Members in their order; those that may be missing bring their own comma:
 * rule rN-i is what may follow when i members are behind us. */
static void
put_members(maker *k, uint32_t n, const props *all)
{
    br_str text = {0};
    char more[32];
    size_t i = 0;

    br_str_puts(&text, "\"{\" ws (");
    for (bool open = true; open && i < all->n; i++) {
        br_str_puts(&text, i ? "| " : "");
        put_member(k, &text, &all->at[i]);
        br_str_printf(&text, "%sr%u-%zu ", k->prefix, n, i + 1);
        open = !all->at[i].required;
        if (open && i + 1 == all->n)
            br_str_puts(&text, "| ws ");
    }
    br_str_puts(&text, ") \"}\"");
    br_schema_put_rule(k, n, "", &text);
    for (i = 1; i <= all->n; i++) {
        const prop *p = &all->at[i];

        if (i == all->n) {
            br_str_puts(&text, "ws");
        } else {
            br_str_puts(&text, "(\",\" ws ");
            put_member(k, &text, p);
            br_str_printf(&text, ")%s %sr%u-%zu", p->required ? "" : "?",
                          k->prefix, n, i + 1);
        }
        snprintf(more, sizeof more, "-%zu", i);
        br_schema_put_rule(k, n, more, &text);
    }
}

static br_code
add_prop(maker *k, props *all, br_text name, json *s, bool required)
{
    uint32_t rule;
    br_code code = BR_OK;
    size_t was = br_schema_enter(k, "properties", name.p);

    if (br_schema_never(s) && !required) /* must not be there */
        return br_schema_leave(k, was), BR_OK;
    code = br_schema_rule(k, s, &rule);
    br_schema_leave(k, was);
    if (code == BR_OK && !br_vec_push(all, ((prop){name, rule, required})))
        return br_schema_oom(k);
    return code;
}

/* need: the names that must be there; a value of 1: it is. */
static br_code
collect_all(maker *k, json *s, json *more, br_map *need, props *all)
{
    json *list = br_json_get(s, "properties");
    json any = {.kind = BR_J_BOOL, .b = true};
    br_map_entry *e;

    for (json *p = list ? list->child : NULL; p; p = p->next) {
        br_text name = {p->key, p->key_n};
        br_map_value *must = br_map_get(need, name);

        if (must)
            must->u = 1;
        BR_TRY(add_prop(k, all, name, p, must != NULL));
    }
    for (size_t i = 0; (e = br_map_next(need, &i));) {
        if (e->value.u)
            continue;
        if (more && br_schema_never(more))
            return br_schema_refuse(k, "required",
                                    "lists what must not be there");
        BR_TRY(add_prop(k, all, e->key.text, more ? more : &any, true));
    }
    return BR_OK;
}

static br_code
collect(maker *k, json *s, json *more, props *all)
{
    json *list = br_json_get(s, "properties"),
         *need = br_json_get(s, "required");
    br_map names = {0};
    br_code code;

    if (list && list->kind != BR_J_OBJ)
        return br_schema_refuse(k, "properties", "must be an object");
    if (need && need->kind != BR_J_ARR)
        return br_schema_refuse(k, "required", "must be a list");
    for (json *v = need ? need->child : NULL; v; v = v->next)
        if (v->kind != BR_J_STR)
            return br_schema_refuse(k, "required", "must list names");
    code = need ? br_schema_put_names(k, need, &names) : BR_OK;
    if (code == BR_OK)
        code = collect_all(k, s, more, &names, all);
    br_map_fini(&names);
    return code;
}

/* Which names there may be: a schema of texts, or a list of some. */
static br_code
names(maker *k, json *s, br_str *to)
{
    json *type, *list;
    size_t was = br_schema_enter(k, "propertyNames", NULL);

    if (!s || (s->kind == BR_J_BOOL && s->b)) {
        br_str_puts(to, "string");
    } else {
        bool texts;

        type = br_json_get(s, "type");
        list = br_json_get(s, "enum");
        texts = list && list->kind == BR_J_ARR;
        for (json *v = texts ? list->child : NULL; v; v = v->next)
            texts &= v->kind == BR_J_STR;
        if (!texts && !br_json_is(type, "string"))
            return br_schema_refuse(k, "propertyNames",
                                    "must have type string, or list texts");
        BR_TRY(br_schema_expr(k, s, to));
    }
    br_schema_leave(k, was);
    return BR_OK;
}

/* Where the members are listed: are they what names may be? */
static br_code
check_names(maker *k, json *s, const props *all)
{
    json *type = s ? br_json_get(s, "type") : NULL;
    json *list = s ? br_json_get(s, "enum") : NULL;
    br_map may = {0};
    br_code code;

    if (!s || (s->kind == BR_J_BOOL && s->b) ||
        (s->n == 1 && type && br_json_is(type, "string")))
        return BR_OK;
    code = list && list->kind == BR_J_ARR ? br_schema_put_names(k, list, &may)
                                          : BR_OK;
    for (size_t i = 0; code == BR_OK && i < all->n; i++)
        if (!br_map_get(&may, all->at[i].name))
            code = br_schema_refuse(k, "propertyNames",
                                    "does not list what 'properties' or "
                                    "'required' do");
    br_map_fini(&may);
    return code;
}

/* Names of one pattern, with values of one schema: all that come. */
static br_code
name_pattern(maker *k, json *s, json **name, json **more)
{
    json *p = br_json_get(s, "patternProperties");
    br_json *text, *type;

    if (!p)
        return BR_OK;
    if (p->kind != BR_J_OBJ || p->n != 1 || br_json_get(s, "propertyNames"))
        return br_schema_refuse(k, "patternProperties",
                                "cannot be enforced but for one pattern, and "
                                "without propertyNames");
    *more = p->child;
    text = br_json_new(&k->arena, BR_J_OBJ);
    type = br_json_new_str(&k->arena, br_text_z("string"));
    *name = text;
    return text && br_json_put(&k->arena, text, "type", type) &&
                   br_json_put(
                       &k->arena, text, "pattern",
                       br_json_new_str(&k->arena, (br_text){p->child->key,
                                                            p->child->key_n}))
               ? BR_OK
               : br_schema_oom(k);
}

/* Any names, each with a value of one schema. */
static br_code
dictionary(maker *k, json *s, json *more, int64_t min, int64_t max, br_str *to)
{
    json any = {.kind = BR_J_BOOL, .b = true};
    json *like = br_json_get(s, "propertyNames");
    uint32_t r = k->n_rules++, v = 0;
    br_str name = {0};
    br_code code = BR_OK;
    size_t was;
    bool none;

    BR_TRY(name_pattern(k, s, &like, &more));
    none = more && br_schema_never(more);
    if (min > (none ? 0 : 1))
        return br_schema_refuse(k, "minProperties",
                                "cannot be enforced: a name may "
                                "come twice");
    br_str_puts(to, "\"{\" ws ");
    if (!none) {
        was = br_schema_enter(k, "additionalProperties", NULL);
        code = br_schema_rule(k, more ? more : &any, &v);
        br_schema_leave(k, was);
        if (code == BR_OK)
            code = names(k, like, &name);
        br_str_printf(k->rules, "%sr%u ::= %s \":\" ws %sr%u\n", k->prefix, r,
                      br_str_z(&name), k->prefix, v);
        k->rules->oom |= name.oom;
        br_str_fini(&name);
        put_items(k, to, r, min, max, false);
    }
    br_str_puts(to, "ws \"}\"");
    return code;
}

br_code
br_schema_object(maker *k, json *s, br_str *to)
{
    static const br_json none = {.kind = BR_J_BOOL};
    json *more = br_json_get(s, "additionalProperties"),
         *listed = br_json_get(s, "properties");
    int64_t min = 0, max = -1, needed = 0;
    props all = {0};
    br_code code;

    if (!more)
        more = br_json_get(s, "unevaluatedProperties");

    BR_TRY(br_schema_count(k, s, "minProperties", &min));
    BR_TRY(br_schema_count(k, s, "maxProperties", &max));
    code = collect(k, s, more, &all);
    if (code == BR_OK && all.n == 0) /* or those listed must not be there */
        return dictionary(k, s, listed && listed->n ? &none : more, min, max,
                          to);
    if (code == BR_OK && br_json_get(s, "patternProperties"))
        code = br_schema_refuse(k, "patternProperties",
                                "cannot be enforced beside properties");
    if (code == BR_OK)
        code = check_names(k, br_json_get(s, "propertyNames"), &all);
    for (size_t i = 0; i < all.n; i++)
        needed += all.at[i].required;
    if (code == BR_OK && needed < min)
        code =
            br_schema_refuse(k, "minProperties", "is over the number required");
    if (code == BR_OK && max >= 0 && max < (int64_t)all.n)
        code = br_schema_refuse(k, "maxProperties",
                                "is below the number of properties");
    if (code == BR_OK) {
        uint32_t n = k->n_rules++;

        put_members(k, n, &all);
        br_str_printf(to, "%sr%u", k->prefix, n);
    }
    br_vec_fini(&all);
    return code;
}
