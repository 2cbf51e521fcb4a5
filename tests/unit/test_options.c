/* test_options.c - flags, variables, defaults: every type, every message.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "option_rows.h"
#include "t.h"

#include <stdio.h>
#include <string.h>

typedef struct line {
    br_options o;
    br_status st;
    br_code code;
} line;

/* The words of a command line, separated by blanks, then of an environment. */
static void
read_line(line *l, const char *argv_text, const char *env_text)
{
    char *argv[32], *env[32];
    int n = 0, k = 0, at = 0;

    for (char *p = strtok(t_printf("%s", argv_text), " "); p && n < 31;
         p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n] = NULL;
    for (char *p = strtok(t_printf("%s", env_text), " "); p && k < 31;
         p = strtok(NULL, " "))
        env[k++] = p;
    env[k] = NULL;
    *l = (line){0};
    l->code = br_options_init(&l->o, rows, N, "BRASS_", &l->st);
    ck_assert_int_eq(l->code, BR_OK);
    for (size_t i = 0; i < N; i++)
        br_options_take(&l->o, i);
    l->code = br_options_argv(&l->o, n, argv, &at, false, &l->st);
    if (l->code == BR_OK)
        l->code = br_options_env(&l->o, env, &l->st);
    if (l->code == BR_OK)
        l->code = br_options_defaults(&l->o, &l->st);
}

static const br_option_value *
value(const line *l, int row)
{
    if (l->code != BR_OK)
        ck_abort_msg("%s", l->st.msg);
    return &l->o.values[row];
}

/* Reads a line of arguments and compares the one value that it sets. */
static void
gives(const char *argv, const char *env, int row, const char *want)
{
    const br_option_value *v;
    char got[300] = "unset";
    line l;

    read_line(&l, argv, env);
    v = value(&l, row);
    if (v->from != BR_FROM_NOWHERE) {
        switch (rows[row].type) {
        case BR_OPTION_BOOL: snprintf(got, sizeof got, "%d", v->b); break;
        case BR_OPTION_INT:
        case BR_OPTION_BYTES:
        case BR_OPTION_ENUM:
            snprintf(got, sizeof got, "%lld", (long long)v->i);
            break;
        case BR_OPTION_FLOAT: snprintf(got, sizeof got, "%g", v->f); break;
        case BR_OPTION_STR:
        case BR_OPTION_PATH: snprintf(got, sizeof got, "%s", v->s); break;
        case BR_OPTION_LIST:
            got[0] = 0;
            for (size_t i = 0; i < v->list.n; i++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "[%s]",
                         v->list.at[i]);
            break;
        }
    }
    ck_assert_str_eq(got, want);
    br_options_fini(&l.o);
}

TEST(options_read_every_form_of_a_flag)
{
    gives("--count=5", "", COUNT, "5");
    gives("--count 5", "", COUNT, "5");
    gives("-n5", "", COUNT, "5");
    gives("-n 5", "", COUNT, "5");
    gives("-jn5", "", COUNT, "5");
    gives("-jn5", "", JSON, "1");
    gives("-jn 5", "", COUNT, "5");
    gives("--json", "", JSON, "1");
    gives("--json=no", "", JSON, "0");
    gives("--json=on", "", JSON, "1");
    gives("--json --no-json", "", JSON, "0");
    gives("--no-quiet", "", QUIET, "0");
    gives("-n 1 -n 2 --count=3", "", COUNT, "3");
    gives("--name=", "", NAME, "");
    gives("--name=a=b", "", NAME, "a=b");
    gives("-o -", "", OUT, "-");
    gives("-o-", "", OUT, "-");
    gives("-Ia -I b --arg=c --arg d", "", ARG, "[a][b][c][d]");
    gives("--mode exact", "", MODE, "1");
    gives("", "", NAME, "unset");
    gives("", "", ARG, "unset");
}

TEST(options_read_numbers)
{
    gives("-n -5", "", COUNT, "-5");
    gives("--count=0x1F", "", COUNT, "31");
    gives("--count=007", "", COUNT, "7");
    gives("--cache-bytes=4096", "", CACHE, "4096");
    gives("--cache-bytes=64k", "", CACHE, "65536");
    gives("--cache-bytes=2M", "", CACHE, "2097152");
    gives("--cache-bytes=3g", "", CACHE, "3221225472");
    gives("--cache-bytes=1t", "", CACHE, "1099511627776");
    gives("--cache-bytes=9223372036854775807", "", CACHE,
          "9223372036854775807");
    gives("--cache-bytes=0x10", "", CACHE, "16");
    gives("--temp=1e-3", "", TEMP, "0.001");
    gives("--temp=2", "", TEMP, "2");
}

TEST(options_end_at_two_dashes)
{
    line l;

    read_line(&l, "a -j b -- --json -x -- c", "");
    ck_assert_uint_eq(value(&l, JSON)->b, true);
    ck_assert_uint_eq(l.o.args.n, 6);
    ck_assert_str_eq(l.o.args.at[1], "b");
    ck_assert_str_eq(l.o.args.at[2], "--json");
    ck_assert_str_eq(l.o.args.at[4], "--");
    br_options_fini(&l.o);
}

TEST(options_prefer_flag_to_variable_to_default)
{
    gives("", "", COUNT, "7");
    gives("", "BRASS_COUNT=8", COUNT, "8");
    gives("-n9", "BRASS_COUNT=8", COUNT, "9");
    gives("", "BRASS_COUNT=", COUNT, "7");
    gives("", "BRASS_COUNT_=3 XBRASS_COUNT=4", COUNT, "7");
    gives("", "BRASS_CACHE_BYTES=1k", CACHE, "1024");
    gives("", "BRASS_JSON=yes", JSON, "1");
    gives("--no-json", "BRASS_JSON=yes", JSON, "0");
    gives("", "BRASS_QUIET=0", QUIET, "0");
    gives("", "BRASS_ARG=a;b:c;;d", ARG, "[a][b:c][d]");
    gives("-Ix", "BRASS_ARG=a;b", ARG, "[x]");
    gives("", "BRASS_MODE=exact", MODE, "1");
    /* A flag was given, so nobody asks the variable. */
    gives("-n9", "BRASS_COUNT=x", COUNT, "9");
    /* --help has no variable. */
    gives("", "BRASS_HELP=yes", HELP, "unset");
}

TEST(options_tell_what_is_wrong)
{
    static const struct {
        const char *argv, *env, *want;
    } bad[] = {
        {"--jsno", "", "unknown option '--jsno'; did you mean '--json'?"},
        {"--coutn=3", "", "unknown option '--coutn'; did you mean '--count'?"},
        {"--cac", "", "unknown option '--cac'; did you mean '--cache-bytes'?"},
        {"--zebra", "", "unknown option '--zebra'"},
        {"--no-count", "", "unknown option '--no-count'"},
        {"--no-", "", "unknown option '--no-'"},
        {"--=x", "", "unknown option '--'"},
        {"-x", "", "unknown option '-x'"},
        {"-jx", "", "unknown option '-x' in '-jx'"},
        {"-mode", "", "unknown option '-m' in '-mode'; did you mean '--mode'?"},
        {"--no-json=1", "", "--no-json takes no value"},
        {"--json=maybe", "", "--json: 'maybe' is not yes or no"},
        {"--count", "", "--count needs a value: N"},
        {"-n", "", "-n needs a value: N"},
        {"-o --json", "",
         "-o needs a value: FILE, but '--json' follows (if that is the value: "
         "--output=--json)"},
        {"-o -j", "",
         "-o needs a value: FILE, but '-j' follows (if that is the value: "
         "--output=-j)"},
        {"--count=", "", "--count: '' is not an integer"},
        {"--count=5x", "", "--count: '5x' is not an integer"},
        {"--count=0x", "", "--count: '0x' is not an integer"},
        {"--count=5k", "", "--count: '5k' is not an integer"},
        {"--count=101", "", "--count: 101 is not in -5..100"},
        {"-n-6", "", "-n: -6 is not in -5..100"},
        {"--count=9223372036854775808", "",
         "--count: 9223372036854775808 is not in -5..100"},
        {"--count=-99999999999999999999", "",
         "--count: -99999999999999999999 is not in -5..100"},
        {"--cache-bytes=8388608t", "",
         "--cache-bytes: 8388608t is not in 1..9223372036854775807"},
        {"--cache-bytes=1kb", "",
         "--cache-bytes: '1kb' is not a number of bytes (such as 4096, 64k, "
         "2m, 1g)"},
        {"--cache-bytes=0", "", "--cache-bytes: 0 is less than 1"},
        {"--temp=nan", "", "--temp: 'nan' is not a finite number"},
        {"--temp=1e999", "", "--temp: '1e999' is not a finite number"},
        {"--temp=1.5.", "", "--temp: '1.5.' is not a finite number"},
        {"--temp=\t1", "", "--temp: '\t1' is not a finite number"},
        {"--temp=2.01", "", "--temp: 2.01 is not in 0..2"},
        {"--mode=exakt", "",
         "--mode: 'exakt' is not one of fast|exact; did you mean 'exact'?"},
        {"--output=", "", "--output: empty file name"},
        {"", "BRASS_COUNT=many", "BRASS_COUNT: 'many' is not an integer"},
        {"", "BRASS_JSON=2", "BRASS_JSON: '2' is not yes or no"},
        {"", "BRASS_LOG_LEVEL=hihg",
         "BRASS_LOG_LEVEL: 'hihg' is not one of low|high; did you mean "
         "'high'?"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        line l;

        read_line(&l, bad[i].argv, bad[i].env);
        ck_assert_str_eq(l.st.msg, bad[i].want);
        ck_assert_int_eq(l.code, BR_E_USAGE);
        ck_assert_int_eq(br_code_exit(l.st.code), 2);
        br_options_fini(&l.o);
    }
}

/* A text a page long is cut in the message, not in the middle of memory. */
TEST(options_cut_long_texts_in_messages)
{
    static char arg[5000] = "--";
    char *argv[] = {arg};
    br_status st = {0};
    br_options o;
    int at = 0;

    memset(arg + 2, 'x', sizeof arg - 3);
    t_ok(br_options_init(&o, rows, N, "BRASS_", &st), &st);
    ck_assert_int_eq(br_options_argv(&o, 1, argv, &at, false, &st), BR_E_USAGE);
    ck_assert_uint_lt(strlen(st.msg), 100);
    br_options_fini(&o);
}

TEST(options_stop_at_help)
{
    line l;

    read_line(&l, "-j --help --zebra", "");
    ck_assert(l.o.stopped);
    ck_assert(value(&l, JSON)->b);
    br_options_fini(&l.o);
    read_line(&l, "-jhn", "");
    ck_assert_int_eq(l.code, BR_OK);
    ck_assert(l.o.stopped);
    br_options_fini(&l.o);
}

TEST(options_leading_ones_stop_at_a_word)
{
    char *argv[] = {(char[]){"--log-level"}, (char[]){"high"}, (char[]){"word"},
                    (char[]){"--json"}};
    br_status st = {0};
    br_options o;
    int at = 0;

    t_ok(br_options_init(&o, rows, N, "BRASS_", &st), &st);
    t_ok(br_options_argv(&o, 4, argv, &at, true, &st), &st);
    ck_assert_int_eq(at, 2);
    ck_assert_int_eq(o.values[LEVEL].i, 1);
    /* --json is not taken by this command */
    ck_assert_int_eq(br_options_argv(&o, 4, argv, &at, false, &st), BR_E_USAGE);
    br_options_fini(&o);
}

TEST(options_find_typos_in_the_environment)
{
    static const char *const texts[] = {
        "BRASS_COUNT=1",   "BRASS_COUTN=1", "PATH=x",
        "BRASS_LOG_LEVLE", "BRASS_ZEBRA=1", "BRASS=1",
        "BRASS_",          "BRASS_HELP=1",  NULL};
    static const char *const want[] = {
        "BRASS_COUTN is no variable of this program; did you mean "
        "'BRASS_COUNT'?",
        "BRASS_LOG_LEVLE is no variable of this program; did you mean "
        "'BRASS_LOG_LEVEL'?",
        "BRASS_ZEBRA is no variable of this program",
        "BRASS_ is no variable of this program",
        "BRASS_HELP is no variable of this program",
    };
    char *env[BR_COUNT(texts)], out[200];
    br_status st = {0};
    br_options o;
    size_t at = 0;

    for (size_t i = 0; i < BR_COUNT(texts); i++)
        env[i] = texts[i] ? t_printf("%s", texts[i]) : NULL;
    t_ok(br_options_init(&o, rows, N, "BRASS_", &st), &st);
    for (size_t i = 0; i < BR_COUNT(want); i++) {
        ck_assert(br_options_env_typo(&o, env, &at, out, sizeof out));
        ck_assert_str_eq(out, want[i]);
    }
    ck_assert(!br_options_env_typo(&o, env, &at, out, sizeof out));
    br_options_fini(&o);
}

static br_code
with_little_memory(void *arg, br_status *st)
{
    char *argv[] = {(char[]){"-Ia"}, (char[]){"b"}, (char[]){"-Ic"}};
    char *env[] = {(char[]){"BRASS_NAME=x"}, (char[]){"BRASS_ARG=p;q"}, NULL};
    br_options o;
    br_code code;
    int at = 0;

    code = br_options_init(&o, rows, N, "BRASS_", st);
    if (code != BR_OK)
        return code;
    for (size_t i = 0; i < N; i++)
        br_options_take(&o, i);
    code = br_options_argv(&o, *(int *)arg, argv, &at, false, st);
    if (code == BR_OK)
        code = br_options_env(&o, env, st);
    if (code == BR_OK)
        code = br_options_defaults(&o, st);
    br_options_fini(&o);
    return code;
}

TEST(options_survive_every_failed_allocation)
{
    int with_args = 3, without = 0;

    t_each_oom(with_little_memory, &with_args);
    t_each_oom(with_little_memory, &without);
}

TEST(options_help_is_wrapped_and_aligned)
{
    br_status st = {0};
    br_str out = {0};
    br_options o;

    t_ok(br_options_init(&o, rows, N, "BRASS_", &st), &st);
    for (size_t i = 0; i < N; i++)
        br_options_take(&o, i);
    br_options_help(&o, false, &out);
    br_options_help(&o, true, &out);
    br_options_man(&o, false, &out);
    t_golden("tests/golden/base/options.txt", br_str_z(&out));
    br_str_fini(&out);
    br_options_fini(&o);
}

TEST(edit_distance_counts_edits)
{
    static const struct {
        const char *a, *b;
        int d;
    } rows_[] = {{"", "", 0},         {"", "abc", 3},
                 {"abc", "abc", 0},   {"abc", "acb", 1},
                 {"abc", "abd", 1},   {"abc", "ab", 1},
                 {"abc", "xabc", 1},  {"ca", "abc", 3},
                 {"json", "jsno", 1}, {"kitten", "sitting", 3}};
    char text[80];

    for (size_t i = 0; i < BR_COUNT(rows_); i++) {
        br_text a = br_text_z(rows_[i].a), b = br_text_z(rows_[i].b);

        ck_assert_int_eq(br_edit_distance(a, b), rows_[i].d);
        ck_assert_int_eq(br_edit_distance(b, a), rows_[i].d);
    }
    memset(text, 'x', sizeof text);
    ck_assert_int_gt(br_edit_distance((br_text){text, 65}, BR_TEXT("x")), 64);
    ck_assert_int_eq(br_edit_distance((br_text){text, 64}, BR_TEXT("x")), 63);
}

TEST(a_name_that_is_near_is_suggested)
{
    static const char *const rows_[][3] = {
        {"jsno", "json", "; did you mean 'json'?"},
        {"gpu", "cpu", ""},
        {"cup", "cpu", "; did you mean 'cpu'?"},
        {"cpi", "cpu", "; did you mean 'cpu'?"},
        {"cu", "cuda", "; did you mean 'cuda'?"},
        {"temperature", "temp", "; did you mean 'temp'?"},
        {"", "cpu", ""}};
    char said[80];
    br_suggest s;

    for (size_t i = 0; i < BR_COUNT(rows_); i++) {
        br_suggest_begin(&s, br_text_z(rows_[i][0]));
        br_suggest_offer(&s, br_text_z(rows_[i][1]));
        br_suggest_text(&s, "", said, sizeof said);
        ck_assert_str_eq(said, rows_[i][2]);
    }
}

TEST(text_wrap_keeps_to_the_columns)
{
    static const char words[] =
        "one two three four five six seven eight nine ten eleven twelve "
        "thirteen fourteen  fifteen "
        "averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryveryvery"
        "verylongword end";
    br_str out = {0};

    br_text_wrap(&out, words, 10, 4);
    ck_assert_str_eq(
        br_str_z(&out),
        "one two three four five six seven eight nine ten eleven twelve\n"
        "    thirteen fourteen fifteen\n"
        "    "
        "averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryveryvery"
        "verylongword\n"
        "    end\n");
    br_str_clear(&out);
    br_text_wrap(&out, "", 0, 4);
    ck_assert_str_eq(br_str_z(&out), "\n");
    br_str_fini(&out);
}
