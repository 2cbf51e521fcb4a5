/* test_json_write.c - the writer against exact bytes of Python's json.dumps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

typedef struct style {
    int indent;
    bool compact, utf8;
} style;

/* Parses doc and writes it again. */
static const char *
rewrite(const char *doc, style how)
{
    br_status st = {0};
    br_json_writer w;
    br_str s = {0};
    const char *out;
    br_arena a;
    br_json *v;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&v, &a, doc, strlen(doc), BR_JSON_LAX, &st), &st);
    br_json_w_begin(&w, &s, how.indent);
    w.compact = how.compact;
    w.utf8 = how.utf8;
    br_json_w_tree(&w, v);
    ck_assert(!s.oom && !w.replaced && w.depth == 0);
    out = t_printf("%s", s.at);
    br_str_fini(&s);
    br_arena_fini(&a);
    return out;
}

TEST(json_writes_the_layouts_of_dumps)
{
    const char *doc = "{\"a\":[1,[],{},[[2]]],\"b\":{\"c\":null},\"d\":true}";

    ck_assert_str_eq(rewrite(doc, (style){0}),
                     "{\"a\": [1, [], {}, [[2]]], \"b\": {\"c\": null}, \"d\": "
                     "true}");
    ck_assert_str_eq(rewrite(doc, (style){.compact = true}),
                     "{\"a\":[1,[],{},[[2]]],\"b\":{\"c\":null},\"d\":true}");
    ck_assert_str_eq(rewrite(doc, (style){.indent = 2}), "{\n"
                                                         "  \"a\": [\n"
                                                         "    1,\n"
                                                         "    [],\n"
                                                         "    {},\n"
                                                         "    [\n"
                                                         "      [\n"
                                                         "        2\n"
                                                         "      ]\n"
                                                         "    ]\n"
                                                         "  ],\n"
                                                         "  \"b\": {\n"
                                                         "    \"c\": null\n"
                                                         "  },\n"
                                                         "  \"d\": true\n"
                                                         "}");
    /* separators=(",", ":") with an indent */
    ck_assert_str_eq(rewrite("{\"a\":[1]}", (style){1, true, false}),
                     "{\n \"a\":[\n  1\n ]\n}");
    ck_assert_str_eq(rewrite("[]", (style){.indent = 2}), "[]");
    ck_assert_str_eq(rewrite("\"x\"", (style){.indent = 2}), "\"x\"");
}

TEST(json_indents_deeper_than_its_blanks)
{
    br_json_writer w;
    br_str s = {0};

    br_json_w_begin(&w, &s, 7);
    for (int i = 0; i < 40; i++)
        br_json_w_arr(&w);
    for (int i = 0; i < 40; i++)
        br_json_w_arr_end(&w);
    for (int i = 0, at = 0; i < 40; i++) {
        ck_assert_int_eq(s.at[at], '[');
        if (i == 39)
            break;
        ck_assert_int_eq(s.at[at + 1], '\n');
        ck_assert_int_eq((int)strspn(s.at + at + 2, " "), 7 * (i + 1));
        at += 2 + 7 * (i + 1);
    }
    br_str_fini(&s);
}

/* json.dumps of each, with ensure_ascii and without. */
TEST(json_escapes_as_dumps_does)
{
    static const struct {
        const char *doc, *ascii, *utf8;
    } rows[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"",
         "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\"\\u0001\\u000b\\u001f \"", "\"\\u0001\\u000b\\u001f \"",
         "\"\\u0001\\u000b\\u001f \""},
        {"\"~\x7F\"", "\"~\\u007f\"", "\"~\x7F\""},
        {"\"\\u0080\\u00e9\"", "\"\\u0080\\u00e9\"", "\"\xC2\x80\xC3\xA9\""},
        {"\"\\u2028\\uffff\"", "\"\\u2028\\uffff\"",
         "\"\xE2\x80\xA8\xEF\xBF\xBF\""},
        {"\"\\uD83D\\uDE00\\udbff\\udfff\"", "\"\\ud83d\\ude00\\udbff\\udfff\"",
         "\"\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF\""},
        {"\"a\\ud800b\\udfff\"", "\"a\\ud800b\\udfff\"",
         "\"a\\ud800b\\udfff\""}, /* a half cannot be UTF-8 */
        {"{\"k\\u00e9y\\n\":0}", "{\"k\\u00e9y\\n\": 0}",
         "{\"k\xC3\xA9y\\n\": 0}"},
        {"\"plain text\"", "\"plain text\"", "\"plain text\""},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        ck_assert_str_eq(rewrite(rows[i].doc, (style){0}), rows[i].ascii);
        ck_assert_str_eq(rewrite(rows[i].doc, (style){.utf8 = true}),
                         rows[i].utf8);
        /* both read back as what was read first */
        ck_assert_str_eq(rewrite(rows[i].utf8, (style){0}), rows[i].ascii);
    }
}

TEST(json_writes_nul_bytes)
{
    br_json_writer w;
    br_str s = {0};

    br_json_w_begin(&w, &s, 0);
    br_json_w_str(&w, (br_text){"a\0b", 3});
    ck_assert_str_eq(s.at, "\"a\\u0000b\"");
    br_str_fini(&s);
}

/* Bytes that are no text become U+FFFD, one each, and the writer says so. */
TEST(json_marks_text_it_had_to_replace)
{
    static const struct {
        const char *text, *ascii, *utf8;
    } rows[] = {
        {"a\xFF", "\"a\\ufffd\"", "\"a\xEF\xBF\xBD\""},
        {"\x80z", "\"\\ufffdz\"", "\"\xEF\xBF\xBDz\""},
        {"\xC3", "\"\\ufffd\"", "\"\xEF\xBF\xBD\""},
        {"\xC3(", "\"\\ufffd(\"", "\"\xEF\xBF\xBD(\""},
        {"\xC0\x80", "\"\\ufffd\\ufffd\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"",
         "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };

    for (size_t i = 0; i < 2 * BR_COUNT(rows); i++) {
        br_json_writer w;
        br_str s = {0};

        br_json_w_begin(&w, &s, 0);
        w.utf8 = i % 2;
        br_json_w_strz(&w, rows[i / 2].text);
        ck_assert(w.replaced);
        ck_assert_str_eq(s.at, i % 2 ? rows[i / 2].utf8 : rows[i / 2].ascii);
        br_str_fini(&s);
    }
}

TEST(json_writes_numbers_as_dumps_does)
{
    br_json_writer w;
    br_str s = {0};

    br_json_w_begin(&w, &s, 0);
    br_json_w_arr(&w);
    br_json_w_i64(&w, 0);
    br_json_w_i64(&w, INT64_MIN);
    br_json_w_i64(&w, INT64_MAX);
    br_json_w_u64(&w, UINT64_MAX);
    br_json_w_f64(&w, 1);
    br_json_w_f64(&w, -0.0);
    br_json_w_f64(&w, 1e16);
    br_json_w_f64(&w, (double)NAN);
    br_json_w_f64(&w, -(double)NAN);
    br_json_w_f64(&w, (double)INFINITY);
    br_json_w_f64(&w, -(double)INFINITY);
    br_json_w_bool(&w, true);
    br_json_w_bool(&w, false);
    br_json_w_null(&w);
    br_json_w_raw(&w, BR_TEXT("[7]"));
    br_json_w_arr_end(&w);
    ck_assert_str_eq(
        s.at, "[0, -9223372036854775808, 9223372036854775807, "
              "18446744073709551615, 1.0, -0.0, 1e+16, NaN, NaN, Infinity, "
              "-Infinity, true, false, null, [7]]");
    br_str_fini(&s);
}

TEST(json_a_parsed_tree_of_full_depth_is_written)
{
    char doc[2 * BR_JSON_MAX_DEPTH + 1];

    memset(doc, '[', BR_JSON_MAX_DEPTH);
    memset(doc + BR_JSON_MAX_DEPTH, ']', BR_JSON_MAX_DEPTH);
    doc[sizeof doc - 1] = 0;
    ck_assert_str_eq(rewrite(doc, (style){.compact = true}), doc);
}

/* What the reference wrote is read and written back byte for byte. */
TEST(json_programs_of_the_reference_come_back_equal)
{
    const char *dir = t_vectors("amk/valid");
    char **names;

    if (!dir)
        t_skip("no ../shared/vectors here");
    names = t_ls(dir, ".json");
    ck_assert_ptr_nonnull(names[0]);
    for (; *names; names++) {
        const char *text = t_read(t_printf("%s/%s", dir, *names), NULL);

        ck_assert_str_eq(rewrite(text, (style){.indent = 2}), text);
    }
}

static br_code
write_some(void *arg, br_status *st)
{
    br_json_writer w;
    br_str s = {0};
    bool oom;

    (void)arg;
    br_json_w_begin(&w, &s, 2);
    br_json_w_obj(&w);
    for (int i = 0; i < 50; i++) {
        br_json_w_key(&w, "key \xC3\xA9");
        br_json_w_f64(&w, 0.1);
    }
    br_json_w_obj_end(&w);
    oom = s.oom;
    br_str_fini(&s);
    return oom ? br_fail(st, BR_E_OOM, "the text") : BR_OK;
}

TEST(json_writer_survives_every_failed_allocation)
{
    t_each_oom(write_some, NULL);
}
