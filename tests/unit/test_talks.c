/* test_talks.c - responses that are kept in a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks.h"

#include "base/thread.h"
#include "run/tstore.h"

#include "t.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static br_talks *
open_talks(const char *path, int64_t most)
{
    br_talks_config c = {.path = path, .days = 30, .most = most};
    br_status st = {0};
    br_talks *t;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    t_ok(br_talks_open(&t, &c, &st), &st);
    return t;
}

static const char *
a_file(void)
{
    return t_printf("%s/talks.db", t_tmpdir());
}

static void
put(br_talks *t, uint32_t tenant, const char *id, const char *previous,
    int64_t age_ms)
{
    br_turn_kept k = {.tenant = tenant,
                      .created_ms = br_wall_ns() / 1000000 - age_ms,
                      .input = br_text_z(t_printf("[\"in %s\"]", id)),
                      .output = br_text_z(t_printf("[\"out %s\"]", id)),
                      .answer = br_text_z(t_printf("{\"id\":\"%s\"}", id))};

    strcpy(k.id, id);
    strcpy(k.previous, previous);
    ck_assert(br_talks_put(t, &k));
}

static bool
has(br_talks *t, uint32_t tenant, const char *id)
{
    br_turn_kept k;
    br_status st = {0};
    br_code code = br_talks_get(t, tenant, id, &k, &st);

    ck_assert_msg(code == BR_OK || code == BR_E_NOT_FOUND, "%s", st.msg);
    if (code != BR_OK)
        return false;
    ck_assert(br_text_is(k.input, t_printf("[\"in %s\"]", id)) &&
              br_text_is(k.output, t_printf("[\"out %s\"]", id)) &&
              br_text_is(k.answer, t_printf("{\"id\":\"%s\"}", id)));
    ck_assert_str_eq(k.id, id);
    return true;
}

/* From what waits, from the file, and after a restart. */
TEST(talks_keep_what_was_said)
{
    const char *path = a_file();
    br_talks *t = open_talks(path, 10);
    br_turn_kept k;
    br_status st = {0};
    struct stat file;

    put(t, 1, "a", "", 0);
    put(t, 1, "b", "a", 0);
    ck_assert(has(t, 1, "a") && has(t, 1, "b") && !has(t, 1, "c"));
    br_sleep_ns(300000000); /* written meanwhile, or not: it is the same */
    ck_assert(has(t, 1, "a") && has(t, 1, "b"));
    br_talks_close(t);
    t = open_talks(path, 10);
    ck_assert(has(t, 1, "a"));
    t_ok(br_talks_get(t, 1, "b", &k, &st), &st);
    ck_assert_str_eq(k.previous, "a");
    ck_assert(!has(t, 1, t_printf("%0100d", 1)) && !has(t, 1, ""));
    br_talks_close(t);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);
}

TEST(talks_are_their_tenants_alone)
{
    const char *path = a_file();
    br_talks *t = open_talks(path, 10);

    for (int restart = 0; restart < 2; restart++) {
        put(t, 1, restart ? "c" : "a", "", 0);
        ck_assert(has(t, 1, "a") && !has(t, 2, "a") && !has(t, 0, "a"));
        ck_assert_int_eq(br_talks_drop(t, 2, "a", NULL), BR_E_NOT_FOUND);
        ck_assert(has(t, 1, "a"));
        br_talks_close(t);
        t = open_talks(path, 10);
    }
    br_talks_close(t);
}

TEST(talks_forget_what_is_dropped)
{
    const char *path = a_file();
    br_talks *t = open_talks(path, 10);
    br_status st = {0};

    put(t, 1, "a", "", 0);
    put(t, 1, "b", "a", 0);
    t_ok(br_talks_drop(t, 1, "a", &st), &st); /* it may wait still */
    ck_assert(!has(t, 1, "a") && has(t, 1, "b"));
    ck_assert_int_eq(br_talks_drop(t, 1, "a", NULL), BR_E_NOT_FOUND);
    br_talks_close(t);
    t = open_talks(path, 10);
    ck_assert(!has(t, 1, "a"));
    t_ok(br_talks_drop(t, 1, "b", &st), &st); /* it is in the file */
    ck_assert(!has(t, 1, "b"));
    br_talks_close(t);
    t = open_talks(path, 10);
    ck_assert(!has(t, 1, "b"));
    br_talks_close(t);
}

TEST(talks_keep_so_many_for_so_long)
{
    const int64_t day = 86400000;
    const char *path = a_file();
    br_talks *t = open_talks(path, 3);

    put(t, 2, "other", "", 0);
    for (int i = 0; i < 5; i++)
        put(t, 1, t_printf("t%d", i), "", 10 - i);
    br_talks_close(t);
    t = open_talks(path, 3);
    ck_assert(!has(t, 1, "t0") && !has(t, 1, "t1"));
    ck_assert(has(t, 1, "t2") && has(t, 1, "t3") && has(t, 1, "t4"));
    ck_assert(has(t, 2, "other"));
    put(t, 2, "young", "", 29 * day);
    put(t, 2, "old", "", 31 * day);
    br_talks_close(t);
    t = open_talks(path, 3);
    ck_assert(has(t, 2, "young") && !has(t, 2, "old"));
    br_talks_close(t);
}

TEST(talks_refuse_another_file)
{
    br_talks_config c = {.days = 1, .most = 1};
    br_status st = {0};
    br_tstore *s;
    br_talks *t;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.path = t_printf("%s/tenants.db", t_tmpdir());
    t_ok(br_tstore_open(&s, c.path, &st), &st);
    br_tstore_close(s);
    ck_assert_int_eq(br_talks_open(&t, &c, &st), BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "not one of responses"), "%s", st.msg);
    ck_assert_ptr_null(t);
    c.path = ":memory:";
    st = (br_status){0};
    ck_assert_int_eq(br_talks_open(&t, &c, &st), BR_E_USAGE);
}

static br_code
keep_one(void *ctx, br_status *st)
{
    br_talks_config c = {.path = ctx, .days = 1, .most = 1};
    br_turn_kept k = {.id = "a",
                      .created_ms = br_wall_ns() / 1000000,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[]"),
                      .answer = BR_TEXT("{}")};
    br_talks *t;
    br_code code;

    BR_TRY(br_talks_open(&t, &c, st));
    code = br_talks_put(t, &k) ? br_talks_get(t, 0, "a", &k, st)
                               : br_fail(st, BR_E_OOM, "no room");
    if (code == BR_OK)
        code = br_talks_drop(t, 0, "a", st);
    br_talks_close(t);
    return code;
}

TEST(talks_are_without_memory)
{
    br_talks_close(open_talks(a_file(), 1));
    t_each_oom(keep_one, t_printf("%s", a_file()));
}
