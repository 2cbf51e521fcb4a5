/* test_mega_compat.c - the compatible check on odd programs: values of other
 * types, ids that are no places, several errors at once.
 *
 * tests/data/mega_compat.jsonl holds one program a line, with what the
 * reference's validate() said about it, or that it raised.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

#include "mega/check_int.h"
#include "mega/pyrepr.h"
#include "prog_text.h"

T_ONE_THREAD();

static br_json *
parse(br_arena *a, const char *text, size_t n)
{
    br_status st = {0};
    br_json *v;

    t_ok(br_json_parse(&v, a, text, n, BR_JSON_LAX, &st), &st);
    return v;
}

static void
check_line(const char *line, size_t n, int number)
{
    static const char *const keys[] = {"ok", "errors", "warnings", "stats"};
    br_status st = {0};
    br_mega_report r;
    br_mega_prog *p;
    br_str s = {0};
    const br_json *want, *got;
    const char *text;
    br_arena a;

    br_arena_init(&a, 0);
    want = parse(&a, line, n);
    text = pt_dump(br_json_get(want, "program"));
    t_ok(br_mega_load(&p, text, strlen(text), &st), &st);
    t_ok(br_mega_check(p, BR_MEGA_COMPAT_0_2, &r, &st), &st);
    if (br_json_get(want, "raises")) {
        ck_assert_msg(!r.ok, "line %d: accepted", number);
    } else {
        br_mega_report_json(p, &r, &s);
        got = parse(&a, s.at, s.n);
        for (size_t i = 0; i < BR_COUNT(keys); i++) {
            const char *x = pt_dump(br_json_get(got, keys[i]));
            const char *y = pt_dump(br_json_get(want, keys[i]));

            if (strcmp(x, y) != 0)
                ck_abort_msg("line %d: %s\n got  %s\n want %s", number, keys[i],
                             x, y);
        }
        br_str_fini(&s);
    }
    br_mega_report_fini(&r);
    br_mega_free(p);
    br_arena_fini(&a);
}

TEST(compat_judges_odd_programs_like_the_reference)
{
    size_t n;
    const char *at = t_read(t_repo("tests/data/mega_compat.jsonl"), &n);
    const char *end = at + n;
    int number = 0;

    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));

        ck_assert_ptr_nonnull(eol);
        check_line(at, (size_t)(eol - at), ++number);
        at = eol + 1;
    }
    ck_assert_int_gt(number, 100);
}

TEST(compat_prints_values_as_python)
{
    static const char *const rows[][2] = {
        {"null", "None"},
        {"[true,false]", "[True, False]"},
        {"{\"a\":1.0,\"b\":[]}", "{'a': 1.0, 'b': []}"},
        {"1e-06", "1e-06"},
        {"1e16", "1e+16"},
        {"-0.0", "-0.0"},
        {"NaN", "nan"},
        {"-Infinity", "-inf"},
        {"100000000000000000000", "100000000000000000000"},
        {"\"it's\"", "\"it's\""},
        {"\"it's \\\"so\\\"\"", "'it\\'s \"so\"'"},
        {"\"a\\\\b\\n\\t\\r\\u0001\\u007f\"", "'a\\\\b\\n\\t\\r\\x01\\x7f'"},
        {"\"\\u00e9\\u00a0\\u200b\"", "'\xc3\xa9\\xa0\\u200b'"},
        {"\"\\ud800\\u2028\"", "'\\ud800\\u2028'"},
        {"\"\\ud83d\\ude00\\udb40\\udc01\"", "'\xf0\x9f\x98\x80\\U000e0001'"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_str s = {0};
        br_arena a;

        br_arena_init(&a, 0);
        br_py_repr(&s, parse(&a, rows[i][0], strlen(rows[i][0])));
        ck_assert_str_eq(br_str_z(&s), rows[i][1]);
        br_str_fini(&s);
        br_arena_fini(&a);
    }
}
