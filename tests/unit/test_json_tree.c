/* test_json_tree.c - documents as trees: values, duplicate keys, limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static br_arena *
arena(void)
{
    static br_arena a;

    br_arena_init(&a, 0);
    return &a;
}

static br_json *
parse(br_arena *a, const char *doc)
{
    br_status st = {0};
    br_json *v;

    t_ok(br_json_parse(&v, a, doc, strlen(doc), BR_JSON_LAX, &st), &st);
    return v;
}

static const char *
write_tree(const br_json *v, int indent)
{
    br_json_writer w;
    br_str s = {0};
    const char *out;

    br_json_w_begin(&w, &s, indent);
    br_json_w_tree(&w, v);
    out = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return out;
}

/* ---- values -------------------------------------------------------------- */

TEST(json_tree_holds_every_kind)
{
    br_arena *a = arena();
    const br_json *v = parse(
        a, "[null, true, false, -5, 9223372036854775807, 9223372036854775808,"
           " 2.5, \"a\\u0000b\", [], {\"k\": 1}, NaN, -Infinity, 1e999]");
    static const br_json_kind want[] = {
        BR_J_NULL,   BR_J_BOOL,  BR_J_BOOL, BR_J_INT, BR_J_INT,
        BR_J_BIGINT, BR_J_FLOAT, BR_J_STR,  BR_J_ARR, BR_J_OBJ,
        BR_J_FLOAT,  BR_J_FLOAT, BR_J_FLOAT};

    ck_assert_int_eq(v->kind, BR_J_ARR);
    ck_assert_uint_eq(v->n, BR_COUNT(want));
    for (size_t i = 0; i < BR_COUNT(want); i++)
        ck_assert_int_eq(br_json_at(v, i)->kind, want[i]);
    ck_assert(br_json_at(v, 1)->b && !br_json_at(v, 2)->b);
    ck_assert_int_eq(br_json_at(v, 3)->i, -5);
    ck_assert_int_eq(br_json_at(v, 4)->i, INT64_MAX);
    ck_assert_str_eq(br_json_at(v, 5)->s, "9223372036854775808");
    ck_assert_uint_eq(br_json_at(v, 5)->n, 19);
    ck_assert(br_json_at(v, 6)->f == 2.5);
    ck_assert_uint_eq(br_json_at(v, 7)->n, 3);
    ck_assert_mem_eq(br_json_at(v, 7)->s, "a\0b", 4);
    ck_assert_ptr_null(br_json_at(v, 8)->child);
    ck_assert_int_eq(br_json_get(br_json_at(v, 9), "k")->i, 1);
    ck_assert(isnan(br_json_at(v, 10)->f) && isinf(br_json_at(v, 11)->f));
    ck_assert(isinf(br_json_at(v, 12)->f));
    ck_assert_ptr_null(br_json_at(v, 13));
    ck_assert_ptr_null(br_json_at(br_json_at(v, 9), 0));
    br_arena_fini(a);
}

TEST(json_integers_at_the_edges_of_64_bits)
{
    static const struct {
        const char *text;
        br_json_kind kind;
    } rows[] = {
        {"9223372036854775807", BR_J_INT},
        {"9223372036854775808", BR_J_BIGINT},
        {"-9223372036854775808", BR_J_INT},
        {"-9223372036854775809", BR_J_BIGINT},
        {"18446744073709551616", BR_J_BIGINT},
        {"10000000000000000000", BR_J_BIGINT},
        {"-123456789012345678901234567890", BR_J_BIGINT},
        {"1000000000000000000", BR_J_INT},
    };
    br_arena *a = arena();

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const br_json *v = parse(a, rows[i].text);

        ck_assert_int_eq(v->kind, rows[i].kind);
        ck_assert_str_eq(write_tree(v, 0), rows[i].text);
    }
    ck_assert_str_eq(write_tree(parse(a, "[-0, -0.0]"), 0), "[0, -0.0]");
    br_arena_fini(a);
}

/* A million digits cost a million steps, not their square. */
TEST(json_a_million_digits)
{
    size_t n = 1000000;
    char *p = t_keep(malloc(n + 5));
    br_status st = {0};
    br_arena a;
    br_json *v;

    memset(p, '7', n);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&v, &a, p, n, 0, &st), &st);
    ck_assert_int_eq(v->kind, BR_J_BIGINT);
    ck_assert_uint_eq(v->n, n);
    memcpy(p + n, ".5e1", 4);
    t_ok(br_json_parse(&v, &a, p, n + 4, BR_JSON_LAX, &st), &st);
    ck_assert_int_eq(v->kind, BR_J_FLOAT);
    ck_assert(isinf(v->f));
    br_arena_fini(&a);
}

/* Strict trees are written again as what JSON.parse reads. */
TEST(json_refuses_numbers_that_it_could_not_write)
{
    static const struct {
        const char *text, *says; /* NULL: it is read */
    } rows[] = {
        {"1.7976931348623157e308", NULL},
        {"-1e308", NULL},
        {"1e-400", NULL},
        {"[1,\n 1e400]", "line 2 column 2: a number beyond 1.8e308"},
        {"{\"a\":-2e308}", "line 1 column 6: a number beyond 1.8e308"},
    };
    br_arena *a = arena();

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *text = rows[i].text;
        br_status st = {0};
        br_json *v;
        br_code code = br_json_parse(&v, a, text, strlen(text), 0, &st);

        ck_assert_int_eq(code, rows[i].says ? BR_E_FORMAT : BR_OK);
        if (rows[i].says)
            ck_assert_str_eq(st.msg, rows[i].says);
        t_ok(br_json_parse(&v, a, text, strlen(text), BR_JSON_LAX, &st), &st);
    }
    br_arena_fini(a);
}

TEST(json_get_compares_whole_keys)
{
    br_arena *a = arena();
    const br_json *v = parse(a, "{\"ab\":1,\"a\":2,\"a\\u0000b\":3,\"\":4}");

    ck_assert_int_eq(br_json_get(v, "a")->i, 2);
    ck_assert_int_eq(br_json_get(v, "ab")->i, 1);
    ck_assert_int_eq(br_json_get(v, "")->i, 4);
    ck_assert_ptr_null(br_json_get(v, "b"));
    ck_assert_ptr_null(br_json_get(v->child, "a"));
    ck_assert_ptr_null(br_json_get(NULL, "a"));
    ck_assert_ptr_null(br_json_at(NULL, 0));
    br_arena_fini(a);
}

/* ---- duplicate keys ------------------------------------------------------ */

TEST(json_text_and_words_of_members)
{
    static const char text[] = "{\"a\": \"x\\u0000y\", \"b\": \"\", \"c\": 1}";
    br_status st = {0};
    br_arena mem;
    br_json *v;

    br_arena_init(&mem, 0);
    t_ok(br_json_parse(&v, &mem, text, sizeof text - 1, 0, &st), &st);
    ck_assert_uint_eq(br_json_get_text(v, "a").n, 3);
    ck_assert_ptr_null(br_json_get_word(v, "a").p);
    ck_assert_ptr_nonnull(br_json_get_text(v, "b").p);
    ck_assert_ptr_nonnull(br_json_get_word(v, "b").p);
    ck_assert_ptr_null(br_json_get_text(v, "c").p);
    ck_assert_ptr_null(br_json_get_text(v, "d").p);
    ck_assert_ptr_null(br_json_get_word(v->child, "a").p); /* no object */
    br_arena_fini(&mem);
}

TEST(json_duplicates_keep_first_place_and_last_value)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"a\":1,\"a\":2}", "{\"a\": 2}"},
        {"{\"a\":1,\"b\":2,\"a\":3,\"c\":4}", "{\"a\": 3, \"b\": 2, \"c\": 4}"},
        {"{\"a\":1,\"b\":2,\"c\":3,\"c\":[4]}",
         "{\"a\": 1, \"b\": 2, \"c\": [4]}"},
        {"{\"a\":{\"x\":1},\"a\":{}}", "{\"a\": {}}"},
        {"{\"a\":1,\"\\u0061\":{\"b\":1,\"b\":[]}}", "{\"a\": {\"b\": []}}"},
        {"{\"\":1,\"\":\"s\"}", "{\"\": \"s\"}"},
        /* equal first and last letters and lengths, but not equal */
        {"{\"axb\":1,\"ayb\":2,\"axb\":3}", "{\"axb\": 3, \"ayb\": 2}"},
        {"[{\"a\":1,\"a\":2},{\"a\":3}]", "[{\"a\": 2}, {\"a\": 3}]"},
    };
    br_arena *a = arena();

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        ck_assert_str_eq(write_tree(parse(a, rows[i].text), 0), rows[i].want);
    br_arena_fini(a);
}

/* Random objects of up to 200 members against a plain list. */
TEST(json_duplicates_agree_with_a_plain_list)
{
    uint64_t seed = 1;

    for (int round = 0; round < 600; round++) {
        int n = (int)(t_rand(&seed) % (round % 2 ? 20 : 200)), m = 0;
        unsigned space = 1 + (unsigned)(t_rand(&seed) % 300);
        unsigned keys[200];
        int values[200];
        br_str doc = {0}, want = {0};
        br_arena *a = arena();
        br_json *v;

        for (int i = 0; i < n; i++) {
            unsigned key = (unsigned)(t_rand(&seed) % space);
            int j = 0;

            br_str_printf(&doc, "%s\"key %u\":%d", i ? "," : "{", key, i);
            while (j < m && keys[j] != key)
                j++;
            keys[j] = key;
            values[j] = i;
            m += j == m;
        }
        br_str_puts(&doc, n ? "}" : "{}");
        for (int j = 0; j < m; j++)
            br_str_printf(&want, "%s\"key %u\": %d", j ? ", " : "{", keys[j],
                          values[j]);
        br_str_puts(&want, m ? "}" : "{}");
        v = parse(a, doc.at);
        ck_assert_uint_eq(v->n, (unsigned)m);
        ck_assert_str_eq(write_tree(v, 0), want.at);
        if (m > 0) /* the list ends where it says */
            ck_assert_ptr_eq(v->last,
                             br_json_get(v, t_printf("key %u", keys[m - 1])));
        br_str_fini(&doc);
        br_str_fini(&want);
        br_arena_fini(a);
    }
}

/* 300,000 keys compared pairwise would be 45 billion comparisons. */
TEST(json_huge_objects_are_not_quadratic)
{
    enum { N = 300000 };
    br_str doc = {0};
    br_arena *a = arena();
    br_json *v;

    for (int i = 0; i < N; i++)
        br_str_printf(&doc, "%s\"k%d\":%d", i ? "," : "{", i, i);
    br_str_puts(&doc, ",\"k5\":[]}");
    v = parse(a, doc.at);
    ck_assert_uint_eq(v->n, N);
    ck_assert_int_eq(br_json_get(v, "k5")->kind, BR_J_ARR);
    ck_assert_int_eq(v->last->i, N - 1);
    br_str_clear(&doc);
    for (int i = 0; i < N; i++)
        br_str_printf(&doc, "%s\"k\":%d", i ? "," : "{", i);
    br_str_puts(&doc, "}");
    v = parse(a, doc.at);
    ck_assert_uint_eq(v->n, 1);
    ck_assert_int_eq(v->child->i, N - 1);
    ck_assert_ptr_eq(v->last, v->child);
    br_str_fini(&doc);
    br_arena_fini(a);
}

/* ---- errors and limits --------------------------------------------------- */

TEST(json_parse_wants_the_whole_text)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"[1] 2", "line 1 column 5: expected nothing after the document, "
                  "found '2'"},
        {"[1, 2", "line 1 column 6: expected ',' or ']', found the end of the "
                  "text"},
        {"", "line 1 column 1: expected a value, found the end of the text"},
        {"{\"a\":[}", "line 1 column 7: expected a value or ']', found '}'"},
        {"{\"a\":1,\"a", "line 1 column 8: string without closing quote"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_arena *a = arena();
        br_status st = {0};
        br_json *v = (br_json *)a;

        ck_assert_int_eq(
            br_json_parse(&v, a, rows[i].text, strlen(rows[i].text), 0, &st),
            BR_E_FORMAT);
        ck_assert_ptr_null(v);
        ck_assert_str_eq(st.msg, rows[i].want);
        ck_assert_int_eq(
            br_json_parse(&v, a, rows[i].text, strlen(rows[i].text), 0, NULL),
            BR_E_FORMAT);
        br_arena_fini(a);
    }
}

TEST(json_tree_stays_in_its_arenas_limit)
{
    br_str doc = {0};

    for (int i = 0; i < 2000; i++)
        br_str_puts(&doc, i ? ",\"some text\"" : "[{\"key\":1}");
    br_str_puts(&doc, "]");
    for (size_t limit = 1; limit < 60000; limit = limit * 3 / 2 + 1) {
        br_status st = {0};
        br_arena a;
        br_json *v;

        br_arena_init(&a, limit);
        ck_assert_int_eq(br_json_parse(&v, &a, doc.at, doc.n, 0, &st),
                         BR_E_LIMIT);
        ck_assert_str_eq(
            st.msg,
            t_printf("the document needs more than the %zu bytes allowed",
                     limit));
        br_arena_fini(&a);
    }
    br_str_fini(&doc);
}

TEST(json_value_reads_from_the_middle)
{
    const char *doc = "{\"a\":[1,2],\"b\":{\"c\":3}}";
    br_arena *a = arena();
    br_status st = {0};
    br_json_reader r;
    br_json *v;

    br_json_open(&r, doc, strlen(doc), 0, &st);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_OBJ_OPEN);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_KEY);
    t_ok(br_json_value(&v, a, &r, BR_JSON_ERROR), &st);
    ck_assert_str_eq(write_tree(v, 0), "[1, 2]");
    ck_assert_int_eq(br_json_next(&r), BR_JSON_KEY);
    t_ok(br_json_value(&v, a, &r, br_json_next(&r)), &st);
    ck_assert_str_eq(write_tree(v, 0), "{\"c\": 3}");
    /* where no value begins, that is the caller's mistake */
    ck_assert_int_eq(br_json_value(&v, a, &r, BR_JSON_ERROR), BR_E_INTERNAL);
    ck_assert_ptr_null(v);
    br_json_close(&r);
    br_arena_fini(a);
}

static br_code
parse_all(void *arg, br_status *st)
{
    br_arena a;
    br_json *v;
    br_code code;

    br_arena_init(&a, 0);
    code = br_json_parse(&v, &a, arg, strlen(arg), BR_JSON_LAX, st);
    br_arena_fini(&a);
    return code;
}

TEST(json_tree_survives_every_failed_allocation)
{
    br_str doc = {0};
    char *text;

    /* sorts: more than 16 members, one of them twice; then chunks */
    for (int i = 0; i < 40; i++)
        br_str_printf(&doc, "%s\"k%d\":1234567890123456789012", i ? "," : "[{",
                      i % 39);
    br_str_puts(&doc, "}");
    for (int i = 0; i < 1500; i++)
        br_str_puts(&doc, ",{\"a\":[1.5,\"a\\nb\"]}");
    br_str_puts(&doc, "]");
    text = t_printf("%s", doc.at);
    br_str_fini(&doc);
    t_each_oom(parse_all, text);
}

/* ---- built trees --------------------------------------------------------- */

TEST(json_trees_can_be_built)
{
    br_arena *a = arena();
    br_json *o = br_json_new(a, BR_J_OBJ), *l = br_json_new(a, BR_J_ARR);

    ck_assert(br_json_append(l, br_json_new_i64(a, -3)));
    ck_assert(br_json_append(l, br_json_new_f64(a, 0.5)));
    ck_assert(br_json_append(l, br_json_new(a, BR_J_NULL)));
    ck_assert(br_json_put(a, o, "list", l));
    ck_assert(br_json_put(a, o, "s", br_json_new_str(a, BR_TEXT("x\"y"))));
    ck_assert(br_json_put(a, o, "e", br_json_new(a, BR_J_ARR)));
    ck_assert_str_eq(write_tree(o, 0), "{\"list\": [-3, 0.5, null], "
                                       "\"s\": \"x\\\"y\", \"e\": []}");
    ck_assert_uint_eq(o->n, 3);
    ck_assert(!br_json_append(l, NULL)); /* a NULL of a builder passes on */
    ck_assert(!br_json_put(a, o, "k", NULL));
    ck_assert_uint_eq(o->n, 3);
    br_arena_fini(a);
}

static br_code
build_some(void *arg, br_status *st)
{
    br_json *o, *l;
    br_arena a;
    bool ok;

    (void)arg;
    br_arena_init(&a, 0);
    o = br_json_new(&a, BR_J_OBJ);
    l = br_json_new(&a, BR_J_ARR);
    ok = o && l && br_json_put(&a, o, "list", l);
    for (int i = 0; ok && i < 1000; i++)
        ok = br_json_append(l, br_json_new_str(&a, BR_TEXT("some text"))) &&
             br_json_put(&a, o, "member", br_json_new_i64(&a, i));
    br_arena_fini(&a);
    return ok ? BR_OK : br_fail(st, BR_E_OOM, "builder");
}

TEST(json_builders_survive_every_failed_allocation)
{
    t_each_oom(build_some, NULL);
}

TEST(json_kinds_have_names)
{
    for (int k = BR_J_NULL; k <= BR_J_OBJ; k++)
        ck_assert_int_gt((int)strlen(br_json_kind_name((br_json_kind)k)), 3);
    ck_assert_str_eq(br_json_kind_name(BR_J_OBJ), "an object");
    ck_assert_str_eq(br_json_kind_name(BR_J_STR), "a string");
}
