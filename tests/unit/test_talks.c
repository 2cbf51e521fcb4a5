/* test_talks.c - responses that are kept in a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks.h"

#include "base/thread.h"
#include "run/talks_list.h"
#include "run/tstore.h"

#include "pg_kit.h"
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
                      .answer = br_text_z(t_printf("{\"id\":\"%s\"}", id)),
                      .cuts = br_text_z(t_printf("cuts %s", id))};

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
              br_text_is(k.answer, t_printf("{\"id\":\"%s\"}", id)) &&
              br_text_is(k.cuts, t_printf("cuts %s", id)));
    ck_assert_str_eq(k.id, id);
    return true;
}

/* From what waits, from the file, and after a restart. */
static void
keep_what_was_said(const char *path)
{
    br_talks *t = open_talks(path, 10);
    br_turn_kept k;
    br_status st = {0};

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
    ck_assert(!has(t, 1, "a' OR '1' = '1") && !has(t, 1, "\xff"));
    br_talks_close(t);
}

TEST(talks_keep_what_was_said)
{
    const char *path = a_file();
    struct stat file;

    keep_what_was_said(path);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);
}

static void
are_their_tenants_alone(const char *path)
{
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

TEST(talks_are_their_tenants_alone)
{
    are_their_tenants_alone(a_file());
}

static void
forget_what_is_dropped(const char *path)
{
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

TEST(talks_forget_what_is_dropped)
{
    forget_what_is_dropped(a_file());
}

static void
keep_so_many_for_so_long(const char *path)
{
    const int64_t day = 86400000;
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

TEST(talks_keep_so_many_for_so_long)
{
    keep_so_many_for_so_long(a_file());
}

/* What is told of a talk: "c<b<a", and of what ends it early. */
static br_code
tell(void *ctx, const br_turn_kept *k, br_status *st)
{
    br_str *s = ctx;

    ck_assert(br_text_is(k->input, t_printf("[\"in %s\"]", k->id)) &&
              br_text_is(k->output, t_printf("[\"out %s\"]", k->id)));
    if (s->n > 40)
        return br_fail(st, BR_E_LIMIT, "enough");
    br_str_printf(s, "%s%s%s", s->n ? "<" : "", k->id, k->alive_ms ? "!" : "");
    return BR_OK;
}

static void
walks(br_talks *t, uint32_t tenant, const char *id, br_code code,
      const char *want)
{
    br_str s = {0};
    br_status st = {0};

    ck_assert_msg(br_talks_walk(t, tenant, id, tell, &s, &st) == code, "%s: %s",
                  id, st.msg);
    ck_assert_str_eq(br_str_z(&s), want);
    br_str_fini(&s);
}

static void
walk_to_the_beginning(const char *path)
{
    br_talks *t = open_talks(path, 2000);

    for (int restart = 0; restart < 2; restart++) {
        if (!restart) {
            put(t, 1, "a", "", 0);
            put(t, 1, "b", "a", 0);
        } else { /* of the file and of what waits */
            br_talks_close(t);
            t = open_talks(path, 2000);
        }
        put(t, 1, restart ? "d" : "c", "b", 0);
        walks(t, 1, restart ? "d" : "c", BR_OK, restart ? "d<b<a" : "c<b<a");
        walks(t, 1, "a", BR_OK, "a");
        walks(t, 2, "c", BR_E_NOT_FOUND, "");
        walks(t, 1, "nobody", BR_E_NOT_FOUND, "");
        walks(t, 1, "x/y", BR_E_NOT_FOUND, "");
    }
    put(t, 1, "e", "gone", 0);
    walks(t, 1, "e", BR_E_NOT_FOUND, "e");
    put(t, 1, "loop", "loop", 0);
    walks(t, 1, "loop", BR_E_LIMIT,
          "loop<loop<loop<loop<loop<loop<loop<loop<loop");
    t_ok(br_talks_drop(t, 1, "b", &(br_status){0}), &(br_status){0});
    walks(t, 1, "d", BR_E_NOT_FOUND, "d");
    br_talks_close(t);
    t = open_talks(path, 2000);
    walks(t, 1, "d", BR_E_NOT_FOUND, "d");
    br_talks_close(t);
}

TEST(talks_walk_to_the_beginning)
{
    walk_to_the_beginning(a_file());
}

static br_code
count(void *ctx, const br_turn_kept *k, br_status *st)
{
    (void)k, (void)st;
    ++*(int *)ctx;
    return BR_OK;
}

static void
have_so_many_turns(const char *path)
{
    br_talks *t = open_talks(path, 5000);
    br_status st = {0};
    int n = 0;

    for (int i = 0; i <= BR_TALK_TURNS; i++)
        put(t, 1, t_printf("t%d", i), i ? t_printf("t%d", i - 1) : "", 0);
    br_talks_close(t);
    t = open_talks(path, 5000);
    t_ok(
        br_talks_walk(t, 1, t_printf("t%d", BR_TALK_TURNS - 1), count, &n, &st),
        &st);
    ck_assert_int_eq(n, BR_TALK_TURNS);
    ck_assert_int_eq(
        br_talks_walk(t, 1, t_printf("t%d", BR_TALK_TURNS), count, &n, &st),
        BR_E_USAGE);
    br_talks_close(t);
}

TEST(talks_have_so_many_turns)
{
    have_so_many_turns(a_file());
}

/* One that is being made, here or by another server, until it is over. */
static void
end_what_was_begun(const char *path)
{
    br_talks *t[2] = {open_talks(path, 10), NULL};
    br_turn_kept k = {.id = "a",
                      .tenant = 1,
                      .created_ms = br_wall_ns() / 1000000,
                      .alive_ms = 5,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[]"),
                      .answer = BR_TEXT("{\"is\":0}")},
                 is;
    br_status st = {0};

    ck_assert(br_talks_put(t[0], &k));
    t_ok(br_talks_get(t[0], 1, "a", &is, &st), &st);
    ck_assert_int_eq(is.alive_ms, 5);
    br_talks_beat(t[0], 1, "a");
    br_talks_beat(t[0], 2, "a"); /* not its tenant's */
    br_talks_close(t[0]);
    t[0] = open_talks(path, 10);
    t[1] = open_talks(path, 10);
    t_ok(br_talks_get(t[1], 1, "a", &is, &st), &st);
    ck_assert_int_ge(is.alive_ms, k.created_ms);
    k.answer = BR_TEXT("{\"is\":1}");
    ck_assert(br_talks_end(t[1], &k));
    t_ok(br_talks_get(t[1], 1, "a", &is, &st), &st);
    ck_assert(br_text_is(is.answer, "{\"is\":1}") && is.alive_ms == 0);
    br_talks_close(t[1]);
    k.answer = BR_TEXT("{\"is\":2}");
    ck_assert(br_talks_end(t[0], &k)); /* too late */
    br_talks_close(t[0]);
    t[0] = open_talks(path, 10);
    t_ok(br_talks_get(t[0], 1, "a", &is, &st), &st);
    ck_assert(br_text_is(is.answer, "{\"is\":1}") && is.alive_ms == 0);
    t_ok(br_talks_drop(t[0], 1, "a", &st), &st);
    ck_assert(br_talks_end(t[0], &k)); /* it stays away */
    br_talks_close(t[0]);
    t[0] = open_talks(path, 10);
    ck_assert(!has(t[0], 1, "a"));
    br_talks_close(t[0]);
}

TEST(talks_end_what_was_begun)
{
    end_what_was_begun(a_file());
}

static void
await(br_talks *t, uint32_t tenant, const char *id, br_turn_kept *is)
{
    for (int i = 0; br_talks_get(t, tenant, id, is, NULL) != BR_OK; i++) {
        ck_assert_int_lt(i, 2000);
        br_sleep_ns(10000000);
    }
}

/* As two servers have it, which both add to one list. */
static void
add_what_others_add_to(const char *path)
{
    br_talks *t[2] = {open_talks(path, 10), open_talks(path, 10)};
    br_turn_kept k = {.id = "list",
                      .created_ms = br_wall_ns() / 1000000,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[]"),
                      .answer = BR_TEXT("{}")};
    br_status st = {0};
    size_t n = 0;

    ck_assert(br_talks_put(t[0], &k));
    await(t[1], 0, "list", &k);
    for (int i = 0; i < 40; i++) {
        br_talks *mine = t[i % 2];
        const char *item = t_printf("{\"id\":\"i%d\"}", i);

        t_ok(br_talks_add(mine, 0, "list", br_text_z(t_printf("[%s]", item)),
                          &st),
             &st);
        t_ok(br_talks_get(mine, 0, "list", &k, &st), &st);
        ck_assert_msg(memmem(k.input.p, k.input.n, item, strlen(item)),
                      "%s: %.*s", item, (int)k.input.n, k.input.p);
    }
    t_ok(br_talks_cut(t[0], 0, "list", BR_TEXT("i0"), &st), &st);
    t_ok(br_talks_name(t[1], 0, "list", BR_TEXT("{\"is\":1}"), &st), &st);
    t_ok(br_talks_get(t[1], 0, "list", &k, &st), &st);
    ck_assert(br_text_is(k.answer, "{\"is\":1}"));
    t_ok(br_talks_add(t[0], 0, "gone", BR_TEXT("[{\"id\":1}]"), &st), &st);
    br_talks_close(t[0]);
    br_talks_close(t[1]);
    t[0] = open_talks(path, 10);
    t_ok(br_talks_get(t[0], 0, "list", &k, &st), &st);
    for (size_t i = 0; i < k.input.n; i++)
        n += k.input.p[i] == '{';
    ck_assert_msg(n == 39 && !memmem(k.input.p, k.input.n, "\"i0\"", 4), "%.*s",
                  (int)k.input.n, k.input.p);
    ck_assert(br_text_is(k.answer, "{\"is\":1}"));
    ck_assert_int_eq(br_talks_get(t[0], 0, "gone", &k, NULL), BR_E_NOT_FOUND);
    br_talks_close(t[0]);
}

/* A transaction may have to be done once more, and all of its changes. */
TEST(talks_change_a_list_once)
{
    br_str list = {0};
    br_status st = {0};

    br_str_puts(&list, "[]");
    for (int again = 0; again < 2; again++) {
        t_ok(br_talks_list_add(&list, BR_TEXT("[{\"id\":\"a\"}]"), &st), &st);
        t_ok(br_talks_list_add(&list, BR_TEXT("[]"), &st), &st);
        t_ok(br_talks_list_add(&list, BR_TEXT("[{\"id\":\"b\"},{\"id\":7}]"),
                               &st),
             &st);
        ck_assert_str_eq(br_str_z(&list),
                         "[{\"id\":\"a\"},{\"id\":\"b\"},{\"id\":7}]");
    }
    for (int again = 0; again < 2; again++) {
        t_ok(br_talks_list_cut(&list, BR_TEXT("a"), &st), &st);
        t_ok(br_talks_list_cut(&list, BR_TEXT("7"), &st), &st);
        ck_assert_str_eq(br_str_z(&list), "[{\"id\":\"b\"},{\"id\":7}]");
    }
    t_ok(br_talks_list_cut(&list, BR_TEXT("b"), &st), &st);
    ck_assert_str_eq(br_str_z(&list), "[{\"id\":7}]");
    br_str_clear(&list);
    br_str_puts(&list, "{}");
    ck_assert_int_eq(br_talks_list_add(&list, BR_TEXT("[1]"), NULL),
                     BR_E_FORMAT);
    ck_assert_int_eq(br_talks_list_cut(&list, BR_TEXT("b"), NULL), BR_E_FORMAT);
    br_str_fini(&list);
}

TEST(talks_add_what_others_add_to)
{
    add_what_others_add_to(a_file());
}

/* One that is put, looked at until its watcher hears that it is over. */
static void
hear_of_its_end(br_talks *mine, br_talks *other, const char *id, bool drop)
{
    br_turn_kept k = {.created_ms = br_wall_ns() / 1000000,
                      .alive_ms = br_wall_ns() / 1000000,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[]"),
                      .answer = BR_TEXT("{}")};
    br_status st = {0};

    strcpy(k.id, id);
    ck_assert(br_talks_put(mine, &k));
    t_ok(br_talks_watch(mine, id, &st), &st);
    for (int i = 0; i < 20; i++) {
        br_talks_look(mine);
        br_sleep_ns(2000000);
        ck_assert(!br_talks_is_over(mine, id));
    }
    await(other, 0, id, &k);
    if (drop)
        t_ok(br_talks_drop(other, 0, id, &st), &st);
    else
        ck_assert(br_talks_end(other, &k));
    for (int i = 0; !br_talks_is_over(mine, id); i++) {
        ck_assert_msg(i < 1000, "nothing is heard of the end of %s", id);
        br_talks_look(mine);
        br_sleep_ns(5000000);
    }
    br_talks_unwatch(mine, id);
    ck_assert(!br_talks_is_over(mine, id));
}

static void
hear_what_others_end(const char *path)
{
    br_talks *t[2] = {open_talks(path, 100), open_talks(path, 100)};
    br_status st = {0};

    for (int i = 0; i < 20; i++) /* more than are asked for at a time */
        t_ok(br_talks_watch(t[0], t_printf("none%d", i), &st), &st);
    hear_of_its_end(t[0], t[1], "ended", false);
    hear_of_its_end(t[0], t[1], "dropped", true);
    br_talks_close(t[0]);
    br_talks_close(t[1]);
}

TEST(talks_hear_what_others_end)
{
    hear_what_others_end(a_file());
}

/* Nobody asks for anything, and two connections come back by themselves. */
static void
is_tended(pg_server *p, br_talks *a, br_talks *b)
{
    static const char count[] =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
        "'brass'";

    for (int i = 0; strcmp(pg_sql(p, count), "2") != 0; i++) {
        ck_assert_msg(i < 100, "%s connections", pg_sql(p, count));
        br_talks_tend(a);
        br_talks_tend(b);
        br_sleep_ns(20000000);
    }
}

/* What two servers see of each other, texts of a megabyte among it, and a
 * database that goes and comes back. */
static void
share_a_database(pg_server *p)
{
    const char *url = pg_db(p);
    br_talks *a = open_talks(url, 10), *b = open_talks(url, 10);
    br_str big = {0};
    br_turn_kept k = {.id = "big",
                      .created_ms = br_wall_ns() / 1000000,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[\"\xc3\xa9\\u0000\"]"),
                      .answer = BR_TEXT("{}")},
                 is;
    br_status st = {0};

    br_str_puts(&big, "[\"");
    while (big.n < 1000000)
        br_str_puts(&big, "words ");
    br_str_puts(&big, "\"]");
    k.input = (br_text){big.at, big.n};
    ck_assert(br_talks_put(a, &k));
    await(b, 0, "big", &is);
    ck_assert_uint_eq(is.input.n, big.n);
    ck_assert_int_eq(memcmp(is.input.p, big.at, big.n), 0);
    ck_assert(br_text_is(is.output, "[\"\xc3\xa9\\u0000\"]"));
    br_str_fini(&big);
    ck_assert_str_eq(pg_sql(p, PG_CUT), "4");
    is_tended(p, a, b);
    t_ok(br_talks_get(b, 0, "big", &is, &st), &st);
    pg_stop(p);
    put(a, 1, "late", "", 0); /* waits */
    ck_assert(has(a, 1, "late"));
    ck_assert_int_eq(br_talks_get(b, 1, "late", &is, &st), BR_E_IO);
    ck_assert_msg(!strstr(st.msg, "s3cr3t"), "%s", st.msg);
    ck_assert_int_eq(pg_start(p), 0);
    await(b, 1, "late", &is);
    br_talks_close(a);
    br_talks_close(b);
}

TEST_WITHIN(talks_in_postgres_are_as_in_a_file, 60)
{
    pg_server p;

    pg_begin(&p);
    keep_what_was_said(pg_db(&p));
    are_their_tenants_alone(pg_db(&p));
    forget_what_is_dropped(pg_db(&p));
    keep_so_many_for_so_long(pg_db(&p));
    walk_to_the_beginning(pg_db(&p));
    have_so_many_turns(pg_db(&p));
    end_what_was_begun(pg_db(&p));
    add_what_others_add_to(pg_db(&p));
    hear_what_others_end(pg_db(&p));
    share_a_database(&p);
    pg_end(&p);
}

/* Files of programs before have no cuts, or no alive_ms either. */
TEST(talks_take_over_files_of_formats_before)
{
    static const char *const back[] = {
        "ALTER TABLE turn DROP COLUMN alive_ms; ALTER TABLE turn DROP COLUMN "
        "cuts; PRAGMA user_version = 0",
        "ALTER TABLE turn DROP COLUMN cuts; PRAGMA user_version = 1"};

    if (!t_have_program("sqlite3"))
        t_skip("no sqlite3 here");
    for (size_t i = 0; i < BR_COUNT(back); i++) {
        const char *path = t_printf("%s/%zu.db", t_tmpdir(), i);
        br_talks *t = open_talks(path, 10);
        t_proc r;

        put(t, 1, "a", "", 0);
        br_talks_close(t);
        t_exec(&r, (const char *[]){"sqlite3", path, back[i], NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s", r.err);
        t = open_talks(path, 10);
        put(t, 1, "b", "a", 0);
        walks(t, 1, "b", BR_OK, "b<a");
        br_talks_close(t);
    }
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
