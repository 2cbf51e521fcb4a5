/* test_schema_random.c - documents that random draws make under random schemas are
 * held against a checker that knows nothing of grammars.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grammar_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* ---- a checker of documents ---------------------------------------------- */

typedef const br_json json;

static double
num(json *v)
{
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static size_t
letters(json *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        n += ((uint8_t)v->s[i] & 0xC0) != 0x80;
    return n;
}

static bool
is_type(json *v, const char *t)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: return strcmp(t, "null") == 0;
    case BR_J_BOOL: return strcmp(t, "boolean") == 0;
    case BR_J_INT: return !strcmp(t, "integer") || !strcmp(t, "number");
    case BR_J_BIGINT:
    case BR_J_FLOAT: return strcmp(t, "number") == 0;
    case BR_J_STR: return strcmp(t, "string") == 0;
    case BR_J_ARR: return strcmp(t, "array") == 0;
    case BR_J_OBJ: return strcmp(t, "object") == 0;
    }
    return false;
}

static bool valid(json *root, json *s, json *v);

static bool
in_limits(json *s, json *v)
{
    json *x;

    if (v->kind == BR_J_STR) {
        if ((x = br_json_get(s, "minLength")) && letters(v) < (size_t)x->i)
            return false;
        if ((x = br_json_get(s, "maxLength")) && letters(v) > (size_t)x->i)
            return false;
    }
    if (v->kind == BR_J_INT || v->kind == BR_J_FLOAT) {
        if ((x = br_json_get(s, "minimum")) && num(v) < num(x))
            return false;
        if ((x = br_json_get(s, "maximum")) && num(v) > num(x))
            return false;
        if ((x = br_json_get(s, "exclusiveMinimum")) && num(v) <= num(x))
            return false;
        if ((x = br_json_get(s, "exclusiveMaximum")) && num(v) >= num(x))
            return false;
    }
    return true;
}

static bool
valid_array(json *root, json *s, json *v)
{
    json *x, *p = br_json_get(s, "prefixItems"), *i = br_json_get(s, "items");
    json *q = p ? p->child : NULL;

    if ((x = br_json_get(s, "minItems")) && v->n < (size_t)x->i)
        return false;
    if ((x = br_json_get(s, "maxItems")) && v->n > (size_t)x->i)
        return false;
    for (json *e = v->child; e; e = e->next) {
        if (q ? !valid(root, q, e) : i && !valid(root, i, e))
            return false;
        q = q ? q->next : NULL;
    }
    return true;
}

static bool
valid_object(json *root, json *s, json *v)
{
    json *p = br_json_get(s, "properties"), *r = br_json_get(s, "required");
    json *more = br_json_get(s, "additionalProperties");

    for (json *n = r ? r->child : NULL; n; n = n->next)
        if (!br_json_get(v, n->s))
            return false;
    for (json *m = v->child; m; m = m->next) {
        json *known = p ? br_json_get(p, m->key) : NULL;

        if (known ? !valid(root, known, m) : more && !valid(root, more, m))
            return false;
    }
    return true;
}

static bool
same_text(json *a, json *b)
{
    br_str x = {0}, y = {0};
    br_json_writer w;
    bool yes;

    br_json_w_begin(&w, &x, 0);
    br_json_w_tree(&w, a);
    br_json_w_begin(&w, &y, 0);
    br_json_w_tree(&w, b);
    yes = strcmp(br_str_z(&x), br_str_z(&y)) == 0;
    br_str_fini(&x);
    br_str_fini(&y);
    return yes;
}

static bool
valid_parts(json *root, json *s, json *v)
{
    json *any = br_json_get(s, "anyOf"), *one = br_json_get(s, "oneOf"),
         *all = br_json_get(s, "allOf");
    size_t n = 0;

    for (json *e = any ? any->child : NULL; e; e = e->next)
        n += valid(root, e, v);
    if (any && !n)
        return false;
    n = 0;
    for (json *e = one ? one->child : NULL; e; e = e->next)
        n += valid(root, e, v);
    if (one && n != 1)
        return false;
    for (json *e = all ? all->child : NULL; e; e = e->next)
        if (!valid(root, e, v))
            return false;
    return true;
}

static bool
valid(json *root, json *s, json *v)
{
    json *x;
    bool any = false;

    if (s->kind == BR_J_BOOL)
        return s->b;
    if ((x = br_json_get(s, "$ref")) &&
        !valid(root, br_json_get(br_json_get(root, "$defs"), x->s + 8), v))
        return false;
    if ((x = br_json_get(s, "enum"))) {
        for (json *e = x->child; e; e = e->next)
            any |= same_text(e, v);
        if (!any)
            return false;
    }
    if (!valid_parts(root, s, v))
        return false;
    any = false;
    if ((x = br_json_get(s, "type")) && x->kind == BR_J_STR &&
        !is_type(v, x->s))
        return false;
    for (json *t = x && x->kind == BR_J_ARR ? x->child : NULL; t; t = t->next)
        any |= is_type(v, t->s);
    if (x && x->kind == BR_J_ARR && !any)
        return false;
    return in_limits(s, v) &&
           (v->kind != BR_J_ARR || valid_array(root, s, v)) &&
           (v->kind != BR_J_OBJ || valid_object(root, s, v));
}

/* ---- random schemas ------------------------------------------------------ */

static void
put_number_schema(br_str *s, uint64_t *seed)
{
    int64_t a = (int64_t)(t_rand(seed) % 4001) - 2000;
    int64_t b = a + 1 + (int64_t)(t_rand(seed) % 3000);

    br_str_printf(s, "{\"type\":\"%s\"",
                  t_rand(seed) % 2 ? "integer" : "number");
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"%s\":%lld",
                      t_rand(seed) % 2 ? "minimum" : "exclusiveMinimum",
                      (long long)a);
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"%s\":%lld",
                      t_rand(seed) % 2 ? "maximum" : "exclusiveMaximum",
                      (long long)b + 1);
    br_str_puts(s, "}");
}

static void put_schema(br_str *s, uint64_t *seed, int depth);

static void
put_object_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t n = t_rand(seed) % 5, need = t_rand(seed);

    br_str_puts(s, "{\"type\":\"object\",\"properties\":{");
    for (uint64_t i = 0; i < n; i++) {
        br_str_printf(s, "%s\"p%llu\\\"\":", i ? "," : "",
                      (unsigned long long)i);
        put_schema(s, seed, depth - 1);
    }
    br_str_puts(s, "},\"required\":[");
    for (uint64_t i = 0, k = 0; i < n; i++)
        if (need >> i & 1)
            br_str_printf(s, "%s\"p%llu\\\"\"", k++ ? "," : "",
                          (unsigned long long)i);
    br_str_puts(s, "]");
    if (t_rand(seed) % 2) {
        br_str_puts(s, ",\"additionalProperties\":");
        if (n || t_rand(seed) % 2)
            br_str_puts(s, "false");
        else
            put_schema(s, seed, depth - 1);
    }
    br_str_puts(s, "}");
}

static void
put_array_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t min = t_rand(seed) % 3, n = t_rand(seed) % 3;

    br_str_puts(s, "{\"type\":\"array\"");
    if (n) {
        br_str_puts(s, ",\"prefixItems\":[");
        for (uint64_t i = 0; i < n; i++) {
            br_str_puts(s, i ? "," : "");
            put_schema(s, seed, depth - 1);
        }
        br_str_puts(s, "]");
    }
    if (t_rand(seed) % 2) {
        br_str_puts(s, ",\"items\":");
        put_schema(s, seed, depth - 1);
    }
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"minItems\":%llu", (unsigned long long)min);
    if (t_rand(seed) % 2)
        br_str_printf(s, ",\"maxItems\":%llu",
                      (unsigned long long)(min + n + t_rand(seed) % 3));
    br_str_puts(s, "}");
}

static void
put_schema(br_str *s, uint64_t *seed, int depth)
{
    uint64_t what = t_rand(seed) % (depth > 0 ? 9 : 5);
    uint64_t n = t_rand(seed) % 4;

    switch (what) {
    case 0: put_number_schema(s, seed); break;
    case 1:
        br_str_printf(s,
                      "{\"type\":\"string\",\"minLength\":%llu,\"maxLength\":"
                      "%llu}",
                      (unsigned long long)n,
                      (unsigned long long)(n + t_rand(seed) % 20));
        break;
    case 2:
        br_str_puts(s, "{\"type\":[\"string\",\"null\",\"boolean\"]}");
        break;
    case 3:
        br_str_puts(s,
                    "{\"enum\":[\"a\\\"b\",1,null,{\"k\":[true]},\"é\\n\"]}");
        break;
    case 4: br_str_puts(s, n ? "{\"$ref\":\"#/$defs/d\"}" : "true"); break;
    case 5: put_array_schema(s, seed, depth); break;
    case 6:
        br_str_puts(s, "{\"anyOf\":[");
        put_schema(s, seed, depth - 1);
        br_str_puts(s, ",");
        put_schema(s, seed, depth - 1);
        br_str_puts(s, "]}");
        break;
    default: put_object_schema(s, seed, depth); break;
    }
}

static void
check_document(const char *schema, const br_str *doc)
{
    br_json *s, *v;
    br_status st = {0};
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&s, &a, schema, strlen(schema), 0, &st), &st);
    if (br_json_parse(&v, &a, doc->at ? doc->at : "", doc->n, 0, &st) != BR_OK)
        ck_abort_msg("%s\nmade no JSON: %s\n%s", schema, doc->at, st.msg);
    ck_assert_msg(valid(s, s, v), "%s\nmade %s", schema, doc->at);
    br_arena_fini(&a);
}

/* One answer; false: it was too long, and says nothing. */
static bool
answer(br_grammar *g, const char *schema, uint64_t *seed)
{
    br_matcher *m = gk_matcher(g);
    float *logits = malloc((size_t)br_tok_count(gk_tok) * sizeof *logits);
    br_str doc = {0};
    bool over = false;

    for (size_t i = 0; i < 400 && !over; i++) {
        int32_t id;
        br_text t;

        memset(logits, 0, (size_t)br_tok_count(gk_tok) * sizeof *logits);
        ck_assert(br_matcher_mask(m, logits, br_tok_count(gk_tok)));
        id = gk_draw(logits, seed, i);
        over = br_tok_is_eog(gk_tok, id);
        if (over)
            break;
        ck_assert(br_matcher_accept(m, id));
        t = br_tok_bytes(gk_tok, id);
        br_str_put(&doc, t.p, t.n);
    }
    if (over)
        check_document(schema, &doc);
    br_str_fini(&doc);
    free(logits);
    br_matcher_free(m);
    return over;
}

/* BRASS_TEST_LONG has it run for longer. */
TEST(documents_are_valid_under_their_schema)
{
    size_t rounds = t_sanitized() ? 15 : 120, whole = 0, all = 0;
    uint64_t seed = 42;

    if (getenv("BRASS_TEST_LONG"))
        rounds = 2000;
    gk_open();
    for (size_t i = 0; i < rounds; i++) {
        br_str s = {0};
        br_status st = {0};
        br_grammar *g;

        br_str_puts(&s, "{\"anyOf\":[");
        put_schema(&s, &seed, 3);
        /* null, for an object that must have itself as a member has no end */
        br_str_puts(&s, "],\"$defs\":{\"d\":{\"anyOf\":[{\"type\":\"null\"},");
        put_object_schema(&s, &seed, 1);
        br_str_puts(&s, "]}}}");
        g = gk_grammar(gk_schema(s.at, BR_OK, &st));
        for (int k = 0; k < 3; k++, all++)
            whole += answer(g, s.at, &seed);
        br_grammar_free(g);
        br_str_fini(&s);
    }
    ck_assert_msg(whole * 10 > all * 7, "only %zu of %zu ended", whole, all);
    gk_close();
}

/* Two schemas of much the same, in one of the ways that documents may have to
 * keep to both. */
static void
put_joined(br_str *s, uint64_t *seed)
{
    static const char *const ways[][3] = {
        {"{\"allOf\":[", ",", "]"},
        {"{\"$ref\":\"#/$defs/d\",\"allOf\":[", ",", "]"},
        {"{\"anyOf\":[", ",{\"type\":[\"null\",\"object\"]}],\"allOf\":[", "]"},
        {"{\"oneOf\":[", ",{\"type\":\"null\"}],\"allOf\":[", "]"}};
    const char *const *way = ways[t_rand(seed) % BR_COUNT(ways)];
    uint64_t kind = t_rand(seed) % 4;

    for (int i = 0; i < 2; i++) {
        br_str_puts(s, way[i]);
        if (kind == 0)
            put_number_schema(s, seed);
        else if (kind == 1)
            put_schema(s, seed, 1);
        else
            put_object_schema(s, seed, 2);
    }
    br_str_puts(s, way[2]);
    br_str_puts(s, ",\"$defs\":{\"d\":{\"anyOf\":[{\"type\":\"null\"},");
    put_object_schema(s, seed, 1);
    br_str_puts(s, "]}}}");
}

TEST(documents_are_valid_under_all_schemas_that_are_joined)
{
    size_t rounds = t_sanitized() ? 60 : 500, made = 0;
    uint64_t seed = 7;

    if (getenv("BRASS_TEST_LONG"))
        rounds = 10000;
    gk_open();
    for (size_t i = 0; i < rounds; i++) {
        br_str s = {0}, rules = {0};
        br_status st = {0};
        br_grammar *g;
        br_json *tree;
        br_arena a;

        put_joined(&s, &seed);
        br_arena_init(&a, 0);
        t_ok(br_json_parse(&tree, &a, s.at, s.n, 0, &st), &st);
        if (br_schema_grammar(tree, &rules, &st) == BR_OK) {
            g = gk_grammar(br_str_z(&rules));
            for (int k = 0; k < 3; k++)
                made += answer(g, s.at, &seed);
            br_grammar_free(g);
        } else {
            ck_assert_int_eq(st.code, BR_E_UNSUPPORTED);
        }
        br_arena_fini(&a);
        br_str_fini(&rules);
        br_str_fini(&s);
    }
    ck_assert_msg(made * 2 > rounds, "only %zu of %zu", made, rounds);
    gk_close();
}
