/* test_log.c - levels, the sink, both shapes of a line, limits, threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/json.h"
#include "base/thread.h"

#include "t.h"

#include <stdio.h>
#include <string.h>

typedef struct kept {
    br_mutex mutex;
    int n;
    br_log_record last;
    char text[BR_LOG_TEXT];
} kept;

static void
keep(void *ctx, const br_log_record *r)
{
    kept *k = ctx;

    br_mutex_lock(&k->mutex);
    k->n++;
    k->last = *r;
    snprintf(k->text, sizeof k->text, "%s", r->text);
    br_mutex_unlock(&k->mutex);
}

static int evaluated;

static int
count_it(void)
{
    return ++evaluated;
}

TEST(log_drops_what_is_above_the_level)
{
    kept k = {.mutex = BR_MUTEX};
    br_log_sink warn = {keep, &k, BR_LOG_WARN};
    br_log_sink debug = {keep, &k, BR_LOG_DEBUG};

    br_log(BR_EV_env_unknown, "%d", count_it());
    ck_assert_int_eq(evaluated, 0);
    br_log_install(&warn);
    br_log(BR_EV_command_begins, "%d", count_it());
    ck_assert_int_eq(evaluated, 0);
    br_log(BR_EV_env_unknown, "a %d", count_it());
    ck_assert_int_eq(k.n, 1);
    ck_assert_str_eq(k.text, "a 1");
    ck_assert_int_eq(k.last.event, BR_EV_env_unknown);
    ck_assert_uint_eq(k.last.thread, br_os_thread_id());
    ck_assert_ptr_nonnull(strstr(k.last.file, "test_log.c"));
    br_log_install(&debug);
    br_log(BR_EV_command_begins, "b");
    ck_assert_int_eq(k.n, 2);
    br_log_install(NULL);
    br_log(BR_EV_env_unknown, "c");
    ck_assert_int_eq(k.n, 2);
}

TEST(log_takes_no_memory_and_cuts_long_texts)
{
    kept k = {.mutex = BR_MUTEX};
    br_log_sink sink = {keep, &k, BR_LOG_TRACE};
    char text[2000], line[BR_LOG_LINE];
    size_t before = t_mem_count();

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    br_log_install(&sink);
    br_log(BR_EV_env_unknown, "%s", text);
    br_log_install(NULL);
    ck_assert_uint_eq(strlen(k.text), BR_LOG_TEXT - 1);
    ck_assert_str_eq(k.text + BR_LOG_TEXT - 4, "...");
    k.last.text = k.text;
    ck_assert_uint_gt(br_log_line(line, &k.last, BR_LOG_JSON), BR_LOG_TEXT);
    ck_assert_uint_eq(t_mem_count(), before);
}

static br_log_record
record(const char *text)
{
    return (br_log_record){.event = BR_EV_env_unknown,
                           .file = "src/x.c",
                           .line = 12,
                           .thread = 7,
                           .wall_ns = 1764143101123456789,
                           .text = text};
}

TEST(log_lines_have_three_shapes)
{
    br_log_record r = record("tab\there \"x\" \\ \x7f \xc3\xa9 \xff");
    char line[BR_LOG_LINE];

    br_log_line(line, &r, BR_LOG_PLAIN);
    ck_assert_str_eq(line, "warn cli.env_unknown: tab\\x09here \"x\" \\ \\x7f "
                           "\xc3\xa9 \xff\n");
    r.text = "a";
    br_log_line(line, &r, BR_LOG_TIMED);
    ck_assert_str_eq(line,
                     "2025-11-26T07:45:01.123Z warn cli.env_unknown: a\n");
    r.left_out = 3;
    br_log_line(line, &r, BR_LOG_PLAIN);
    ck_assert_str_eq(line, "warn cli.env_unknown: a (and 3 before it)\n");
    br_log_line(line, &r, BR_LOG_JSON);
    ck_assert_str_eq(
        line, "{\"time\":\"2025-11-26T07:45:01.123Z\",\"level\":\"warn\","
              "\"event\":\"cli.env_unknown\",\"text\":\"a\",\"left_out\":3,"
              "\"thread\":7,\"at\":\"src/x.c:12\"}\n");
}

TEST(log_times_are_dates)
{
    static const struct {
        int64_t s;
        const char *want;
    } rows[] = {{0, "1970-01-01T00:00:00"},
                {951782399, "2000-02-28T23:59:59"},
                {951782400, "2000-02-29T00:00:00"},
                {951868800, "2000-03-01T00:00:00"},
                {1709164800, "2024-02-29T00:00:00"},
                {4107542400, "2100-03-01T00:00:00"},
                {1767225599, "2025-12-31T23:59:59"}};
    char line[BR_LOG_LINE];

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_log_record r = record("x");

        r.wall_ns = rows[i].s * 1000000000;
        br_log_line(line, &r, BR_LOG_TIMED);
        ck_assert_int_eq(strncmp(line, rows[i].want, 19), 0);
    }
}

/* Every byte sequence gives a line that a strict reader takes. */
TEST(log_json_is_json_whatever_the_text)
{
    uint64_t rand = 5;

    for (int i = 0; i < 3000; i++) {
        char text[BR_LOG_TEXT], line[BR_LOG_LINE];
        size_t n = t_rand(&rand) % (sizeof text - 1);
        br_log_record r = record(text);
        br_json *doc;
        br_status st = {0};
        br_arena a;

        for (size_t k = 0; k < n; k++)
            text[k] = (char)(t_rand(&rand) % (i % 2 ? 255 : 40) + 1);
        text[n] = 0;
        n = br_log_line(line, &r, BR_LOG_JSON);
        ck_assert_uint_lt(n, sizeof line);
        ck_assert_uint_eq(strlen(line), n);
        ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
        br_arena_init(&a, 0);
        t_ok(br_json_parse(&doc, &a, line, n, 0, &st), &st);
        ck_assert_int_eq(br_json_get(doc, "left_out")->i, 0);
        ck_assert_int_eq(br_json_get(doc, "thread")->i, 7);
        br_arena_fini(&a);
    }
}

TEST(log_limit_lets_a_burst_and_then_an_even_flow_pass)
{
    br_log_limit l = {.every_ns = 100, .burst = 3};
    uint32_t left_out = 9;
    int passed = 0;

    for (int i = 0; i < 10; i++)
        passed += br_log_may(&l, 1000, &left_out);
    ck_assert_int_eq(passed, 3);
    ck_assert_uint_eq(left_out, 0);
    ck_assert(!br_log_may(&l, 1099, &left_out));
    ck_assert(br_log_may(&l, 1100, &left_out));
    ck_assert_uint_eq(left_out, 8);
    ck_assert(!br_log_may(&l, 1101, &left_out));
    passed = 0;
    for (int64_t now = 2000; now < 12000; now++)
        passed += br_log_may(&l, now, &left_out);
    ck_assert_int_ge(passed, 100);
    ck_assert_int_le(passed, 103);
}

typedef struct shouter {
    br_log_limit *limit;
} shouter;

static void
shout(void *arg)
{
    shouter *s = arg;

    for (int i = 0; i < 2000; i++) {
        br_log(BR_EV_env_unknown, "%d", i);
        br_log_limited(s->limit, BR_EV_command_ends, "%d", i);
    }
}

TEST(log_of_many_threads_loses_nothing)
{
    br_log_limit limit = {.every_ns = 1000000000000, .burst = 5};
    kept k = {.mutex = BR_MUTEX};
    br_log_sink sink = {keep, &k, BR_LOG_TRACE};
    shouter s = {&limit};
    br_status st = {0};
    br_thread t[4];

    br_log_install(&sink);
    for (int i = 0; i < 4; i++)
        t_ok(br_thread_start(&t[i], "shout", shout, &s, &st), &st);
    for (int i = 0; i < 4; i++)
        br_thread_join(&t[i]);
    br_log_install(NULL);
    ck_assert_int_eq(k.n, 4 * 2000 + 5);
    ck_assert_uint_eq(atomic_load(&limit.held), 4 * 2000 - 5);
}
