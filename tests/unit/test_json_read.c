/* test_json_read.c - the pull reader: what it takes, what it refuses and how
 * it says so.
 *
 * A document is shown as one line, a word a token: { } [ ] key(..) str(..)
 * int(..) float(..) true false null, then END or the error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* The bytes on a block of their own, so that ASan sees a read past the end. */
static char *
exact(br_text t)
{
    char *p = t_keep(malloc(t.n ? t.n : 1));

    memcpy(p, t.p, t.n);
    return p;
}

static void
show_token(br_str *s, br_json_tok tok, br_text t)
{
    static const char *const words[] = {
        "?",   "END", "{",     "}",    "[",     "]",    "key",
        "str", "int", "float", "true", "false", "null",
    };

    br_str_printf(s, "%s%s", s->n ? " " : "", words[tok]);
    if (tok >= BR_JSON_KEY && tok <= BR_JSON_FLOAT) {
        br_str_putc(s, '(');
        br_str_put(s, t.p, t.n);
        br_str_putc(s, ')');
    }
}

static const char *
show(br_text doc, int flags)
{
    br_status st = {0};
    br_json_reader r;
    br_str s = {0};
    br_json_tok tok;
    const char *out;

    br_json_open(&r, exact(doc), doc.n, flags, &st);
    while ((tok = br_json_next(&r)) > BR_JSON_END)
        show_token(&s, tok, r.text);
    if (tok == BR_JSON_END)
        show_token(&s, tok, r.text);
    else
        br_str_printf(&s, "%s%s: %s", s.n ? " " : "", br_code_name(st.code),
                      st.msg);
    ck_assert_int_eq(br_json_next(&r), tok); /* both ends are sticky */
    br_json_close(&r);
    out = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return out;
}

#define shows(doc, flags, want) \
    ck_assert_str_eq(show(br_text_z(doc), (flags)), (want))

/* ---- the grammar --------------------------------------------------------- */

TEST(json_reads_every_kind_of_token)
{
    shows("{\"a\": [1, -2.5, true, false, null, \"x\"], \"b\": {}}", 0,
          "{ key(a) [ int(1) float(-2.5) true false null str(x) ] key(b) { } } "
          "END");
    shows(" \t\r\n[ [ ] , [ ] ] \n", 0, "[ [ ] [ ] ] END");
    shows("7", 0, "int(7) END");
    shows("\"\"", 0, "str() END");
    shows("{\"\":0}", 0, "{ key() int(0) } END");
}

TEST(json_numbers_are_int_or_float_by_their_text)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"0", "int(0) END"},
        {"-0", "int(-0) END"},
        {"1234567890", "int(1234567890) END"},
        {"-1234567890123456789012345", "int(-1234567890123456789012345) END"},
        {"0.0", "float(0.0) END"},
        {"-0.0", "float(-0.0) END"},
        {"1e5", "float(1e5) END"},
        {"1E+5", "float(1E+5) END"},
        {"0e0", "float(0e0) END"},
        {"12.5e-07", "float(12.5e-07) END"},
        {"1e400", "float(1e400) END"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        shows(rows[i].text, 0, rows[i].want);
}

/* Texts that no mode takes, and the whole message for each. */
TEST(json_errors_say_what_and_where)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "FORMAT: line 1 column 1: expected a value, found the end of the "
             "text"},
        {" \n\n  ", "FORMAT: line 3 column 3: expected a value, found the end "
                    "of the text"},
        {"]", "FORMAT: line 1 column 1: expected a value, found ']'"},
        {"[", "[ FORMAT: line 1 column 2: expected a value or ']', found the "
              "end of the text"},
        {"[1", "[ int(1) FORMAT: line 1 column 3: expected ',' or ']', found "
               "the end of the text"},
        {"[1,]", "[ int(1) FORMAT: line 1 column 4: expected a value after "
                 "',', found ']'"},
        {"[,1]", "[ FORMAT: line 1 column 2: expected a value or ']', found "
                 "','"},
        {"[1 2]", "[ int(1) FORMAT: line 1 column 4: expected ',' or ']', "
                  "found '2'"},
        {"[1}", "[ int(1) FORMAT: line 1 column 3: expected ',' or ']', found "
                "'}'"},
        {"{", "{ FORMAT: line 1 column 2: expected a key in double quotes or "
              "'}', found the end of the text"},
        {"{,}", "{ FORMAT: line 1 column 2: expected a key in double quotes or "
                "'}', found ','"},
        {"{a: 1}", "{ FORMAT: line 1 column 2: expected a key in double quotes "
                   "or '}', found 'a'"},
        {"{'a': 1}", "{ FORMAT: line 1 column 2: expected a key in double "
                     "quotes or '}', found '''"},
        {"{\"a\"}", "{ FORMAT: line 1 column 5: expected ':' after the key, "
                    "found '}'"},
        {"{\"a\" 1}", "{ FORMAT: line 1 column 6: expected ':' after the key, "
                      "found '1'"},
        {"{\"a\":}", "{ key(a) FORMAT: line 1 column 6: expected a value after "
                     "':', found '}'"},
        {"{\"a\":1,}", "{ key(a) int(1) FORMAT: line 1 column 8: expected a "
                       "key in double quotes after ',', found '}'"},
        {"{\"a\":1 \"b\":2}", "{ key(a) int(1) FORMAT: line 1 column 8: "
                              "expected ',' or '}', found '\"'"},
        {"{\"a\":1]", "{ key(a) int(1) FORMAT: line 1 column 7: expected ',' "
                      "or '}', found ']'"},
        {"{1:2}", "{ FORMAT: line 1 column 2: expected a key in double quotes "
                  "or '}', found '1'"},
        {"1 2", "int(1) FORMAT: line 1 column 3: expected nothing after the "
                "document, found '2'"},
        {"[]]", "[ ] FORMAT: line 1 column 3: expected nothing after the "
                "document, found ']'"},
        {"01", "FORMAT: line 1 column 1: a number has no leading zeros"},
        {"-012", "FORMAT: line 1 column 1: a number has no leading zeros"},
        {"-", "FORMAT: line 1 column 2: expected a digit after '-', found the "
              "end of the text"},
        {"-a", "FORMAT: line 1 column 2: expected a digit after '-', found "
               "'a'"},
        {"+1", "FORMAT: line 1 column 1: expected a value, found '+'"},
        {".5", "FORMAT: line 1 column 1: expected a value, found '.'"},
        {"1.", "FORMAT: line 1 column 3: expected a digit after '.', found the "
               "end of the text"},
        {"1.e5", "FORMAT: line 1 column 3: expected a digit after '.', found "
                 "'e'"},
        {"1e", "FORMAT: line 1 column 3: expected a digit in the exponent, "
               "found the end of the text"},
        {"1e+", "FORMAT: line 1 column 4: expected a digit in the exponent, "
                "found the end of the text"},
        {"[1ex]", "[ FORMAT: line 1 column 4: expected a digit in the "
                  "exponent, found 'x'"},
        {"0x10", "int(0) FORMAT: line 1 column 2: expected nothing after the "
                 "document, found 'x'"},
        {"1_000", "int(1) FORMAT: line 1 column 2: expected nothing after the "
                  "document, found '_'"},
        {"nul", "FORMAT: line 1 column 1: expected a value, found 'nul' (the "
                "words of JSON are true, false and null)"},
        {"[True]", "[ FORMAT: line 1 column 2: expected a value or ']', found "
                   "'True' (the words of JSON are true, false and null)"},
        {"nulls", "null FORMAT: line 1 column 5: expected nothing after the "
                  "document, found 's'"},
        {"// note\n1", "FORMAT: line 1 column 1: expected a value, found '/'"},
        {"[1] /* note */", "[ int(1) ] FORMAT: line 1 column 5: expected "
                           "nothing after the document, found '/'"},
        {"\xEF\xBB\xBF[]", "FORMAT: line 1 column 1: expected a value, found a "
                           "byte-order mark"},
        {"\xC2\xA0[]", "FORMAT: line 1 column 1: expected a value, found "
                       "U+00A0"},
        {"\f[]", "FORMAT: line 1 column 1: expected a value, found byte 0x0C"},
        {"\xFF", "FORMAT: line 1 column 1: expected a value, found byte 0xFF"},
        {"\"abc", "FORMAT: line 1 column 1: string without closing quote"},
        {"\"abc\\\"", "FORMAT: line 1 column 1: string without closing quote"},
        {"\"a\tb\"", "FORMAT: line 1 column 3: control character 0x09 in a "
                     "string: write \\u0009"},
        {"[\n \"a\nb\"]", "[ FORMAT: line 2 column 4: control character 0x0A "
                          "in a string: write \\u000a"},
        {"\"\\x41\"", "FORMAT: line 1 column 2: expected an escape (\\\" \\\\ "
                      "\\/ \\b \\f \\n \\r \\t \\uXXXX), found a backslash and "
                      "'x'"},
        {"\"\\", "FORMAT: line 1 column 2: expected an escape (\\\" \\\\ \\/ "
                 "\\b \\f \\n \\r \\t \\uXXXX), found a backslash and the end "
                 "of the text"},
        {"\"\\u12\"", "FORMAT: line 1 column 2: \\u needs four hexadecimal "
                      "digits"},
        {"\"\\u 123\"", "FORMAT: line 1 column 2: \\u needs four hexadecimal "
                        "digits"},
        {"\"\\u+123\"", "FORMAT: line 1 column 2: \\u needs four hexadecimal "
                        "digits"},
        {"\"\\u00g0\"", "FORMAT: line 1 column 2: \\u needs four hexadecimal "
                        "digits"},
        {"\"\\u123", "FORMAT: line 1 column 2: \\u needs four hexadecimal "
                     "digits"},
        /* A column counts characters; a letter of two bytes is one. */
        {"[\"\xC3\xA9\xE2\x82\xAC\", x]", "[ str(\xC3\xA9\xE2\x82\xAC) FORMAT: "
                                          "line 1 column 8: expected a value "
                                          "after ',', found 'x' (the words of "
                                          "JSON are true, false and null)"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        shows(rows[i].text, 0, rows[i].want);
        shows(rows[i].text, BR_JSON_LAX, rows[i].want);
    }
}

TEST(json_nul_bytes_are_refused_everywhere)
{
    static const br_text docs[] = {
        {"\0", 1},       {"[\0]", 3},     {"[1\0]", 4},       {"1\0", 2},
        {"\"a\0b\"", 5}, {"\"\\\0\"", 4}, {"{\"a\"\0:1}", 8}, {"-\0", 2},
        {"1.\0", 3},     {"1e\0", 3},     {"nul\0", 4},       {"\"\\u00\0", 6},
    };

    for (size_t i = 0; i < BR_COUNT(docs); i++)
        ck_assert_ptr_nonnull(strstr(show(docs[i], BR_JSON_LAX), "FORMAT: "));
}

TEST(json_lax_adds_pythons_extras_and_strict_names_them)
{
    static const struct {
        const char *text, *lax, *strict;
    } rows[] = {
        {"NaN", "float(NaN) END",
         "FORMAT: line 1 column 1: expected a value, found 'NaN' (the words of "
         "JSON are true, false and null)"},
        {"Infinity", "float(Infinity) END",
         "FORMAT: line 1 column 1: expected a value, found 'Infinity' (the "
         "words of JSON are true, false and null)"},
        {"-Infinity", "float(-Infinity) END",
         "FORMAT: line 1 column 2: expected a digit after '-', found 'I'"},
        {"\"\\ud800\"", "str(\xED\xA0\x80) END",
         "FORMAT: line 1 column 2: \\ud800 is half of a surrogate pair without "
         "the other half"},
        {"\"\\uDFFFx\"", "str(\xED\xBF\xBFx) END",
         "FORMAT: line 1 column 2: \\udfff is half of a surrogate pair without "
         "the other half"},
        {"\"\\ud83dx\\ude00\"", "str(\xED\xA0\xBDx\xED\xB8\x80) END",
         "FORMAT: line 1 column 2: \\ud83d is half of a surrogate pair without "
         "the other half"},
        {"\"a\\ud800\\u0041\"",
         "str(a\xED\xA0\x80"
         "A) END",
         "FORMAT: line 1 column 3: \\ud800 is half of a surrogate pair without "
         "the other half"},
        {"\"\\ud800\\ud83d\\ude00\"", "str(\xED\xA0\x80\xF0\x9F\x98\x80) END",
         "FORMAT: line 1 column 2: \\ud800 is half of a surrogate pair without "
         "the other half"},
        {"\"\\ud800\\u12x4\"",
         "FORMAT: line 1 column 8: \\u needs four hexadecimal digits",
         "FORMAT: line 1 column 2: \\ud800 is half of a surrogate pair without "
         "the other half"},
        {"-Infinit",
         "FORMAT: line 1 column 1: expected a number or -Infinity, "
         "found '-'",
         "FORMAT: line 1 column 2: expected a digit after '-', found 'I'"},
        {"Nan",
         "FORMAT: line 1 column 1: expected a value, found 'Nan' (the words of "
         "JSON are true, false and null)",
         "FORMAT: line 1 column 1: expected a value, found 'Nan' (the words of "
         "JSON are true, false and null)"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        shows(rows[i].text, BR_JSON_LAX, rows[i].lax);
        shows(rows[i].text, 0, rows[i].strict);
    }
    shows("-NaN", BR_JSON_LAX,
          "FORMAT: line 1 column 2: expected a digit after '-', found 'N'");
}

/* ---- strings ------------------------------------------------------------- */

TEST(json_decodes_escapes)
{
    shows("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 0, "str(\"\\/\b\f\n\r\t) END");
    shows("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", 0,
          "str(A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80) END");
    shows("{\"a\\u0062c\":0}", 0, "{ key(abc) int(0) } END");
    shows("\"\x7F\"", 0, "str(\x7F) END");
}

TEST(json_plain_strings_are_not_copied)
{
    const char doc[] = "[\"plain \xC3\xA9\", \"esc\\n\"]";
    br_json_reader r;

    br_json_open(&r, doc, sizeof doc - 1, 0, NULL);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_ARR_OPEN);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_STRING);
    ck_assert_ptr_eq(r.text.p, doc + 2);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_STRING);
    ck_assert_ptr_eq(r.text.p, r.scratch.at);
    ck_assert(br_text_is(r.text, "esc\n"));
    br_json_close(&r);
}

/* Every place of a special byte against the 16-byte steps, and every length
 * of text after it. */
TEST(json_strings_of_every_length)
{
    for (size_t n = 0; n < 70; n++)
        for (size_t at = 0; at <= n; at++) {
            char in[80], want[100];
            size_t m = 0;

            memset(in, 'a', sizeof in);
            in[m++] = '"';
            m += at;
            if (at < n) {
                memcpy(in + m, "\\n", 2);
                m += 2 + n - at - 1;
            }
            in[m++] = '"';
            snprintf(
                want, sizeof want, "str(%.*s%s%.*s) END", (int)at, in + 1,
                at < n ? "\n" : "", (int)(at < n ? n - at - 1 : 0),
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaa");
            ck_assert_str_eq(show((br_text){in, m}, 0), want);
            /* and with the closing quote missing */
            in[m - 1] = 'a';
            ck_assert_ptr_nonnull(
                strstr(show((br_text){in, m}, 0), "without closing quote"));
        }
}

TEST(json_blanks_of_every_length)
{
    static const char blanks[] = " \n\t\r";

    for (size_t n = 0; n < 70; n++) {
        char in[80];

        for (size_t i = 0; i < n; i++)
            in[i] = blanks[(i * 7 + n) % 4];
        in[n] = '1';
        ck_assert_str_eq(show((br_text){in, n + 1}, 0), "int(1) END");
        in[n] = 0x0B; /* not a blank, though below the space */
        ck_assert_ptr_nonnull(
            strstr(show((br_text){in, n + 1}, 0), "found byte 0x0B"));
    }
}

static size_t
encode(char *p, unsigned cp)
{
    if (cp < 0x80) {
        p[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        p[0] = (char)(0xC0 | cp >> 6);
        p[1] = (char)(0x80 | (cp & 63));
        return 2;
    }
    if (cp < 0x10000) {
        p[0] = (char)(0xE0 | cp >> 12);
        p[1] = (char)(0x80 | (cp >> 6 & 63));
        p[2] = (char)(0x80 | (cp & 63));
        return 3;
    }
    p[0] = (char)(0xF0 | cp >> 18);
    p[1] = (char)(0x80 | (cp >> 12 & 63));
    p[2] = (char)(0x80 | (cp >> 6 & 63));
    p[3] = (char)(0x80 | (cp & 63));
    return 4;
}

/* One string, read strictly: its bytes, or n = SIZE_MAX when refused. */
static br_text
one_string(br_json_reader *r, const char *p, size_t n, int flags)
{
    br_json_open(r, p, n, flags, NULL);
    if (br_json_next(r) != BR_JSON_STRING || r->p != r->end)
        return (br_text){NULL, SIZE_MAX};
    return r->text;
}

/* (An assertion of check costs a write to a pipe, hence the ifs.) */
TEST(json_takes_every_code_point_raw_and_escaped)
{
    br_json_reader r;

    for (unsigned cp = 0x20; cp <= 0x10FFFF; cp++) {
        bool half = cp >= 0xD800 && cp < 0xE000;
        char raw[8] = "\"", esc[20];
        size_t n = encode(raw + 1, cp);
        br_text got, want = {raw + 1, n};

        raw[1 + n] = '"';
        if (cp != '"' && cp != '\\') {
            got = one_string(&r, raw, n + 2, BR_JSON_LAX);
            if (half ? got.n != SIZE_MAX : !br_text_eq(got, want))
                ck_abort_msg("U+%04X as it is", cp);
            br_json_close(&r);
        }
        if (cp >= 0x10000 && (cp - 0x10000) % 67 && cp != 0x10FFFF)
            continue; /* pairs: a sample, the first and the last */
        if (cp < 0x10000)
            snprintf(esc, sizeof esc, "\"\\u%04X\"", cp);
        else
            snprintf(esc, sizeof esc, "\"\\u%04x\\u%04x\"",
                     0xD800 + ((cp - 0x10000) >> 10),
                     0xDC00 + ((cp - 0x10000) & 0x3FF));
        got = one_string(&r, esc, strlen(esc), BR_JSON_LAX);
        if (!br_text_eq(got, want))
            ck_abort_msg("%s", esc);
        br_json_close(&r);
        got = one_string(&r, esc, strlen(esc), 0);
        if (half != (got.n == SIZE_MAX))
            ck_abort_msg("%s, strictly", esc);
        br_json_close(&r);
    }
}

TEST(json_refuses_what_is_not_utf8)
{
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC2",
        "\xC2\x20",
        "\xC2\xC2",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xE1\x80",
        "\xE1\x80\x7F",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xEF\xBF",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xF0\x90\x80",
        "\xF1\x80\x80\x7F",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80\x80",
        "\xFE",
        "\xFF",
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        const char *doc = t_printf("\"a%s\"", bad[i]);

        shows(doc, BR_JSON_LAX,
              t_printf("FORMAT: line 1 column 3: byte 0x%02X is not UTF-8",
                       (unsigned char)bad[i][0]));
        /* cut off at the end of the text */
        ck_assert_ptr_nonnull(strstr(
            show((br_text){doc, strlen(doc) - 1}, BR_JSON_LAX), "not UTF-8"));
    }
}

/* ---- depth, places, skipping --------------------------------------------- */

static char *
nest(int depth, bool objects)
{
    br_str s = {0};
    char *out;

    for (int i = 0; i < depth; i++)
        br_str_puts(&s, objects && i % 2 ? "{\"k\":" : "[");
    br_str_puts(&s, "1");
    for (int i = depth; i-- > 0;)
        br_str_putc(&s, objects && i % 2 ? '}' : ']');
    out = t_printf("%s", s.at);
    br_str_fini(&s);
    return out;
}

TEST(json_depth_ends_at_the_limit)
{
    for (int objects = 0; objects < 2; objects++) {
        const char *deep = nest(BR_JSON_MAX_DEPTH, objects);
        const char *deeper = nest(BR_JSON_MAX_DEPTH + 1, objects);

        ck_assert_ptr_nonnull(strstr(show(br_text_z(deep), 0), " END"));
        ck_assert_ptr_nonnull(
            strstr(show(br_text_z(deeper), 0), "LIMIT: line 1 column "));
        ck_assert_ptr_nonnull(
            strstr(show(br_text_z(deeper), 0),
                   ": arrays and objects nest deeper than 256 levels"));
    }
}

TEST(json_where_is_the_latest_token)
{
    const char *doc = "{\n  \"a\": 12,\n  \"\xC3\xA9\": [true]\n}";
    static const int want[][2] = {{1, 1}, {2, 3},  {2, 8}, {3, 3}, {3, 8},
                                  {3, 9}, {3, 13}, {4, 1}, {4, 2}};
    br_json_reader r;
    int line, column;

    br_json_open(&r, doc, strlen(doc), 0, NULL);
    for (size_t i = 0; i < BR_COUNT(want); i++) {
        ck_assert_int_ne(br_json_next(&r), BR_JSON_ERROR);
        br_json_where(&r, &line, &column);
        ck_assert_int_eq(line, want[i][0]);
        ck_assert_int_eq(column, want[i][1]);
    }
    br_json_close(&r);
}

TEST(json_skip_passes_exactly_one_value)
{
    const char *doc = "{\"a\":[1,{\"b\":[[],{}]}],\"c\":\"x\",\"d\":2}";
    br_status st = {0};
    br_json_reader r;

    br_json_open(&r, doc, strlen(doc), 0, &st);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_OBJ_OPEN);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(br_json_next(&r), BR_JSON_KEY);
        t_ok(br_json_skip(&r), &st);
    }
    ck_assert_int_eq(br_json_next(&r), BR_JSON_OBJ_CLOSE);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_END);
    ck_assert_int_eq(br_json_skip(&r), BR_E_INTERNAL); /* nothing to skip */
    br_json_close(&r);
}

TEST(json_skip_reports_what_is_malformed)
{
    const char *doc = "[[1, [2, }]]]";
    br_status st = {0};
    br_json_reader r;

    br_json_open(&r, doc, strlen(doc), 0, &st);
    ck_assert_int_eq(br_json_skip(&r), BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "line 1 column 10: expected a value after ',', "
                             "found '}'");
    ck_assert_int_eq(br_json_skip(&r), BR_E_FORMAT);
    br_json_close(&r);
    br_json_open(&r, doc, strlen(doc), 0, NULL);
    ck_assert_int_eq(br_json_skip(&r), BR_E_FORMAT);
    br_json_close(&r);
}

/* Cut anywhere, a document is malformed, and never read past its end. */
TEST(json_every_prefix_is_refused)
{
    const char *doc = "{\"a\": [1.5e-3, -7, true, false, null, NaN, -Infinity],"
                      " \"\\u00e9\\ud83d\\ude00\": {\"b\": \"\xE2\x82\xAC\"}}";
    size_t n = strlen(doc);

    for (size_t i = 0; i < n; i++)
        ck_assert_ptr_nonnull(
            strstr(show((br_text){doc, i}, BR_JSON_LAX), "FORMAT: line 1 "));
    ck_assert_ptr_nonnull(strstr(show((br_text){doc, n}, BR_JSON_LAX), " END"));
}

TEST(json_empty_input_may_have_no_address)
{
    br_status st = {0};
    br_json_reader r;

    br_json_open(&r, NULL, 0, 0, &st);
    ck_assert_int_eq(br_json_next(&r), BR_JSON_ERROR);
    ck_assert_int_eq(st.code, BR_E_FORMAT);
    br_json_close(&r);
}

static br_code
read_escapes(void *arg, br_status *st)
{
    static const char doc[] =
        "[\"0123456789012345678901234567890123456789\\n0123456789012345678901"
        "234567890123456789\", \"\\u0041\", \"\\ud83d\\ude00 \xC3\xA9\"]";
    br_json_reader r;
    br_json_tok tok;

    (void)arg;
    br_json_open(&r, doc, sizeof doc - 1, 0, st);
    while ((tok = br_json_next(&r)) > BR_JSON_END)
        ;
    br_json_close(&r);
    return tok == BR_JSON_END ? BR_OK : st->code;
}

TEST(json_reader_survives_every_failed_allocation)
{
    t_each_oom(read_escapes, NULL);
}
