/* test_api.c - the C library as a program outside sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "brass/brass.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what it exports ----------------------------------------------------- */

/* br_ words that a '(' follows, sorted, once each, one per line. */
static const char *
functions_of(const char *header)
{
    t_proc r;

    t_exec(&r,
           (const char *[]){"sh", "-c",
                            "sed 's/^ \\*.*//' \"$0\" | "
                            "grep -o '\\bbr_[a-z0-9_]*(' | tr -d '(' | sort -u",
                            header, NULL},
           NULL, 0);
    return r.out;
}

static const char *
listed(void)
{
    t_proc r;

    t_exec(&r,
           (const char *[]){"grep", "^br_", "include/brass/symbols.txt", NULL},
           NULL, 0);
    return r.out;
}

TEST(api_header_and_symbol_list_agree)
{
    ck_assert_str_eq(functions_of("include/brass/brass.h"), listed());
}

TEST(api_library_exports_what_is_listed)
{
    const char *so =
        t_printf("build/%s/libbrass.so.%d", t_conf(), BRASS_VERSION_MAJOR);
    t_proc r;

    if (t_sanitized())
        t_skip("a sanitizer build makes no shared library");
    t_exec(&r,
           (const char *[]){"sh", "-c",
                            "nm -D --defined-only \"$0\" | "
                            "sed -n 's/.* T \\(.*\\)@@BRASS_.*/\\1/p' | sort",
                            so, NULL},
           NULL, 0);
    ck_assert_str_eq(r.out, listed());
    t_exec(&r,
           (const char *[]){"sh", "-c",
                            "nm -D --defined-only \"$0\" | grep -v ' A ' | "
                            "grep -v ' T br_'",
                            so, NULL},
           NULL, 0);
    ck_assert_str_eq(r.out, "");
}

TEST(api_header_is_c99_and_cplusplus)
{
    static const char *const tries[][4] = {
        {"cc", "-xc", "-std=c99", "stdio.h"},
        {"c++", "-xc++", "-std=c++98", "cstdio"},
        {"clang++", "-xc++", "-std=c++20", "cstdio"},
    };
    const char *src = t_printf("%s/a.c", t_tmpdir());
    int tried = 0;
    t_proc r;

    for (size_t i = 0; i < BR_COUNT(tries); i++) {
        const char *const *w = tries[i];

        if (!t_have_program(w[0]))
            continue;
        tried++;
        t_write(src, "#include \"brass/brass.h\"\n", 25);
        t_exec(&r,
               (const char *[]){w[0], w[1], w[2], "-fsyntax-only", "-Wall",
                                "-Wextra", "-pedantic", "-Werror", "-Iinclude",
                                src, NULL},
               NULL, 0);
        ck_assert_msg(r.exit == 0, "%s %s: %s", w[0], w[2], r.err);
    }
    ck_assert_int_gt(tried, 0);
}

TEST(api_version_is_the_header_s)
{
    ck_assert_str_eq(br_version(), BRASS_VERSION_STRING);
    ck_assert_str_eq(br_version(),
                     t_printf("%d.%d.%d", BRASS_VERSION_MAJOR,
                              BRASS_VERSION_MINOR, BRASS_VERSION_PATCH));
}

/* ---- errors and programs ------------------------------------------------- */

static const char *
mlp(void)
{
    return t_repo("examples/mlp.json");
}

TEST(api_loads_counts_and_saves)
{
    br_error *e = br_error_new();
    br_program *p = br_program_load_file(mlp(), e);
    size_t n, m;
    char *s;

    ck_assert_msg(p != NULL, "%s", br_error_text(e));
    ck_assert_int_eq(br_error_code(e), BRASS_OK);
    ck_assert_uint_eq(br_program_tasks(p), 9);
    ck_assert_uint_eq(br_program_counters(p), 6);
    ck_assert_uint_eq(br_program_buffers(p), 11);
    ck_assert_uint_eq(br_program_pages(p), 0);
    ck_assert_int_eq(br_program_weight_bytes(p), 4 * (16 + 3 * 16 * 32));
    ck_assert_str_eq(br_program_task_op(p, 1), "GEMV_TILE");
    ck_assert_str_eq(br_program_task_label(p, 1), "gate[t0]");
    ck_assert_ptr_null(br_program_task_op(p, 9));
    s = br_program_save(p, &n, e);
    ck_assert_ptr_nonnull(s);
    ck_assert_str_eq(s, t_read(mlp(), &m));
    ck_assert_uint_eq(n, m);
    br_string_free(s);
    br_program_free(p);
    br_error_free(e);
}

TEST(api_says_what_is_wrong)
{
    br_error *e = br_error_new();

    ck_assert_ptr_null(br_program_load("{\"ir_version\"", 13, e));
    ck_assert_int_eq(br_error_code(e), BRASS_E_FORMAT);
    ck_assert_str_ne(br_error_text(e), "");
    ck_assert_ptr_null(br_program_load_file("no/such/file", e));
    ck_assert_int_eq(br_error_code(e), BRASS_E_NOT_FOUND);
    ck_assert_msg(strstr(br_error_text(e), "no/such/file"), "%s",
                  br_error_text(e));
    ck_assert_ptr_null(br_program_load("[]", 2, NULL));
    ck_assert_str_eq(br_code_word(BRASS_E_NOT_FOUND), "NOT_FOUND");
    /* a success empties what a failure left */
    br_program_free(br_program_load_file(mlp(), e));
    ck_assert_int_eq(br_error_code(e), BRASS_OK);
    ck_assert_str_eq(br_error_text(e), "");
    br_error_free(e);
}

/* The example with one word changed: every `from` becomes `to`. */
static br_program *
changed(const char *from, const char *to, br_error *e)
{
    char *s = t_read(mlp(), NULL), *at;
    const char *all = "";

    ck_assert(strstr(s, from));
    for (; (at = strstr(s, from)); s = at + strlen(from))
        all = t_printf("%s%.*s%s", all, (int)(at - s), s, to);
    all = t_printf("%s%s", all, s);
    return br_program_load(all, strlen(all), e);
}

TEST(api_checks)
{
    br_program *p = br_program_load_file(mlp(), NULL);
    br_report *r = br_program_check(p, BRASS_CHECK_SOUND, NULL);

    br_program_free(p); /* a report stands alone */
    ck_assert_int_eq(br_report_ok(r), 1);
    ck_assert_uint_eq(br_report_errors(r), 0);
    ck_assert_uint_eq(br_report_warnings(r), 0);
    ck_assert_ptr_null(br_report_error(r, 0));
    ck_assert_ptr_null(br_report_warning(r, 0));
    ck_assert(strstr(br_report_json(r), "\"ok\": true"));
    br_report_free(r);
}

TEST(api_check_refuses_and_says_why)
{
    br_program *p = changed("\"threshold\": 2", "\"threshold\": 1", NULL);
    br_report *r;

    for (int mode = BRASS_CHECK_SOUND; mode <= BRASS_CHECK_COMPAT_0_2; mode++) {
        r = br_program_check(p, (brass_check)mode, NULL);
        ck_assert_int_eq(br_report_ok(r), 0);
        ck_assert_uint_eq(br_report_errors(r), 3);
        ck_assert_msg(strstr(br_report_error(r, 0), "task 5 (act)"), "%s",
                      br_report_error(r, 0));
        ck_assert(strstr(br_report_json(r), "\"ok\": false"));
        br_report_free(r);
    }
    br_program_free(p);
}

TEST(api_check_modes_differ_where_the_reference_has_a_hole)
{
    /* a counter that starts at 1 lets its waiters in too early */
    br_error *e = br_error_new();
    br_program *p = changed("\"init\": 0", "\"init\": 1", e);
    br_report *sound = br_program_check(p, BRASS_CHECK_SOUND, e);
    br_report *compat = br_program_check(p, BRASS_CHECK_COMPAT_0_2, e);

    ck_assert_int_eq(br_report_ok(sound), 0);
    ck_assert_int_eq(br_report_ok(compat), 1);
    br_report_free(sound);
    br_report_free(compat);
    ck_assert_ptr_null(br_program_check(p, (brass_check)7, e));
    ck_assert_int_eq(br_error_code(e), BRASS_E_USAGE);
    br_program_free(p);
    br_error_free(e);
}

TEST(api_walks)
{
    br_program *p = br_program_load_file(mlp(), NULL);
    br_walk *w = br_program_walk(p, 16, NULL);

    ck_assert_uint_eq(br_walk_tasks(w), 9);
    ck_assert_uint_eq(br_walk_task(w, 0), 0);
    ck_assert_uint_eq(br_walk_task(w, 8), 8);
    ck_assert_uint_eq(br_walk_task(w, 9), (size_t)-1);
    ck_assert_uint_eq(br_walk_stuck(w), 0);
    ck_assert_uint_eq(br_walk_violations(w), 0);
    ck_assert_ptr_null(br_walk_violation(w, 0));
    br_walk_free(w);
    br_program_free(p);
}

TEST(api_walk_finds_what_is_stuck)
{
    br_error *e = br_error_new();
    br_program *p = changed("\"threshold\": 2", "\"threshold\": 3", e);
    br_walk *w = br_program_walk(p, 0, e);

    ck_assert_uint_eq(br_walk_tasks(w), 5);
    ck_assert_uint_eq(br_walk_stuck(w), 4);
    ck_assert_uint_eq(br_walk_stuck_task(w, 0), 5);
    ck_assert_uint_eq(br_walk_stuck_task(w, 4), (size_t)-1);
    br_walk_free(w);
    ck_assert_ptr_null(br_program_walk(p, -1, e));
    ck_assert_int_eq(br_error_code(e), BRASS_E_USAGE);
    br_program_free(p);
    br_error_free(e);
}

TEST(api_walk_finds_a_read_before_the_write)
{
    br_program *p = changed("\"threshold\": 2", "\"threshold\": 0", NULL);
    br_walk *w = br_program_walk(p, 16, NULL);

    ck_assert_uint_gt(br_walk_violations(w), 0);
    ck_assert(strstr(br_walk_violation(w, 0), "before any producer wrote it"));
    br_walk_free(w);
    br_program_free(p);
}

TEST(api_takes_null_where_it_is_harmless)
{
    br_error_free(NULL);
    br_program_free(NULL);
    br_string_free(NULL);
    br_report_free(NULL);
    br_walk_free(NULL);
}

static br_code
use_all(void *arg, br_status *st)
{
    br_error *e = br_error_new();
    br_program *p = NULL;
    br_report *r = NULL;
    br_walk *w = NULL;
    char *s = NULL;

    if (!e)
        return br_fail(st, BR_E_OOM, "no error handle");
    p = br_program_load_file(arg, e);
    if (p)
        r = br_program_check(p, BRASS_CHECK_SOUND, e);
    if (r)
        w = br_program_walk(p, 2, e);
    if (w)
        s = br_program_save(p, NULL, e);
    if (!s)
        br_fail(st, (br_code)br_error_code(e), "%s", br_error_text(e));
    br_string_free(s);
    br_report_free(r);
    br_walk_free(w);
    br_program_free(p);
    br_error_free(e);
    return st->code;
}

TEST(api_gives_memory_back_when_short)
{
    t_each_oom(use_all, t_printf("%s", mlp()));
}
