/* test_tstore.c - tenants, keys and ledgers in a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/books.h"
#include "run/talks.h"

#include "base/thread.h"
#include "engine_kit.h"
#include "pg_kit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *
new_file(void)
{
    if (!br_tstore_here())
        t_skip("built without SQLite");
    return t_printf("%s/brass.db", t_tmpdir());
}

static br_tstore *
open_store(const char *path)
{
    br_tstore *s;
    br_status st = {0};

    t_ok(br_tstore_open(&s, path, &st), &st);
    return s;
}

static bool
opens(br_tstore *s, const char *key, uint32_t tenant)
{
    br_status st = {0};
    br_key_owner is;
    bool ok;

    t_ok(br_tstore_key(s, br_text_z(key), &is, &ok, &st), &st);
    ck_assert(!ok || is.tenant == tenant);
    return ok;
}

static void
keeps_tenants_and_their_keys(const char *path)
{
    br_tstore *s = open_store(path);
    br_status st = {0};
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS], key2[BR_KEY_CHARS], wrong[BR_KEY_CHARS];
    br_key_owner who;
    uint32_t a, b;
    br_tenant t;
    bool ok;

    q.qos = BR_QOS_BATCH;
    q.reserved_kv_pages = 7;
    t_ok(br_tstore_create(s, "alice", &q, &a, key, &st), &st);
    q.qos = BR_QOS_INTERACTIVE;
    memcpy(q.model, "a-model", 8);
    t_ok(br_tstore_create(s, "bob@x.org", &q, &b, key2, &st), &st);
    ck_assert(a != b && a > 0);
    ck_assert_uint_eq(strlen(key), BR_KEY_CHARS - 1);
    br_tstore_close(s);
    s = open_store(path);
    t_ok(br_tstore_find(s, "alice", &t, &st), &st);
    ck_assert(t.id == a && t.quota.qos == BR_QOS_BATCH &&
              t.quota.reserved_kv_pages == 7 && t.created > 1700000000 &&
              !t.quota.model[0]);
    t_ok(br_tstore_find(s, "bob@x.org", &t, &st), &st);
    ck_assert_str_eq(t.quota.model, "a-model");
    t_ok(br_tstore_key(s, br_text_z(key2), &who, &ok, &st), &st);
    ck_assert(ok && who.tenant == b);
    ck_assert_str_eq(who.model, "a-model");
    ck_assert(opens(s, key, a) && opens(s, key2, b));
    for (size_t i = 0; i < sizeof key - 1; i++) { /* each character counts */
        memcpy(wrong, key, sizeof key);
        wrong[i] = wrong[i] == 'a' ? 'b' : 'a';
        ck_assert(!opens(s, wrong, 0));
    }
    ck_assert(!opens(s, "", 0) && !opens(s, "br_", 0));
    t_ok(br_tstore_rotate(s, "alice", wrong, &st), &st);
    ck_assert(!opens(s, key, 0) && opens(s, wrong, a) && opens(s, key2, b));
    q.max_slots = 9;
    t_ok(br_tstore_set(s, "alice", &q, &st), &st);
    t_ok(br_tstore_find(s, "alice", &t, &st), &st);
    ck_assert(t.id == a && t.quota.max_slots == 9);
    br_tstore_close(s);
}

TEST(store_keeps_tenants_and_their_keys)
{
    const char *path = new_file();
    struct stat file;

    keeps_tenants_and_their_keys(path);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);
}

static void
refuses_what_is_wrong(const char *path)
{
    br_tstore *s = open_store(path);
    br_status st = {0};
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    uint32_t id;
    br_tenant t;

    t_ok(br_tstore_create(s, "a", &q, &id, key, &st), &st);
    ck_assert_int_eq(br_tstore_create(s, "a", &q, &id, key, NULL), BR_E_USAGE);
    ck_assert_int_eq(br_tstore_create(s, "a b", &q, &id, key, NULL),
                     BR_E_USAGE);
    ck_assert_int_eq(br_tstore_create(s, "", &q, &id, key, NULL), BR_E_USAGE);
    ck_assert_int_eq(br_tstore_create(s, "7", &q, &id, key, NULL), BR_E_USAGE);
    ck_assert_int_eq(br_tstore_create(s, "me", &q, &id, key, NULL), BR_E_USAGE);
    ck_assert_int_eq(br_tstore_find(s, "b", &t, NULL), BR_E_NOT_FOUND);
    ck_assert_int_eq(br_tstore_set(s, "b", &q, NULL), BR_E_NOT_FOUND);
    ck_assert_int_eq(br_tstore_rotate(s, "b", key, NULL), BR_E_NOT_FOUND);
    q.max_slots = 0;
    ck_assert_int_eq(br_tstore_set(s, "a", &q, NULL), BR_E_USAGE);
    q.max_slots = 1;
    t_ok(br_tstore_create(s, "b", &q, &id, key, &st), &st);
    ck_assert_uint_eq(id, 2); /* refusals use up no numbers */
    br_tstore_close(s);
}

static br_code
open_and_use(void *path, br_status *st)
{
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    br_tstore *s;
    br_code code;
    uint32_t id;
    bool lost;

    BR_TRY(br_tstore_open(&s, path, st));
    code = br_tstore_begin_run(s, &lost, st);
    if (code == BR_OK)
        code = br_tstore_rotate(s, "a", key, st);
    if (code == BR_OK && br_tstore_create(s, "a", &q, &id, key, NULL) == BR_OK)
        code = BR_E_INTERNAL;
    br_tstore_close(s);
    return code;
}

TEST(store_is_without_memory)
{
    const char *path = new_file();
    br_tstore *s = open_store(path);
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    br_status st = {0};
    uint32_t id;

    t_ok(br_tstore_create(s, "a", &q, &id, key, &st), &st);
    br_tstore_close(s);
    t_each_oom(open_and_use, t_printf("%s", path));
}

/* What somebody may try who wants no file, or mistypes a URL. */
TEST(store_says_what_is_no_file)
{
    static const struct {
        const char *where, *says;
    } rows[] = {
        {":memory:", ":memory: would be another database"},
        {"file:x?mode=memory", "no such kind of database"},
        {"mysql://me:secret@host/x", "no such kind of database"},
        {"postgres:/me:secret@host/x", "no such kind of database"},
        {"/dev/null", "/dev/null: is a device, no file"},
        {"/no/such/folder/x.db", "cannot be opened for writing: No such file"},
        {"/", "/: is a directory, no file"}};

    (void)new_file(); /* without SQLite there are none */
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_tstore *s;

        ck_assert_int_ne(br_tstore_open(&s, rows[i].where, &st), BR_OK);
        ck_assert_msg(strstr(st.msg, rows[i].says) && !strstr(st.msg, "secret"),
                      "%s: %s", rows[i].where, st.msg);
    }
    ck_assert_int_ne(access(":memory:", F_OK), 0);
    ck_assert_int_ne(access("file:x?mode=memory", F_OK), 0);
    br_tstore_close(open_store(t_printf("%s/postgres.db", t_tmpdir())));
}

TEST(store_refuses_what_is_wrong)
{
    const char *path = new_file();
    br_talks_config talks = {
        .path = t_printf("%s/talks.db", t_tmpdir()), .days = 1, .most = 1};
    br_status st = {0};
    br_talks *of_responses;
    br_tstore *s;

    refuses_what_is_wrong(path);
    t_write(t_printf("%s/text", t_tmpdir()),
            "no database, but long enough "
            "to look at: ...........................................",
            70);
    ck_assert_int_eq(br_tstore_open(&s, t_printf("%s/text", t_tmpdir()), &st),
                     BR_E_FORMAT);
    ck_assert_int_eq(br_tstore_open(&s, "/nowhere/at/all.db", NULL), BR_E_IO);
    st = (br_status){0};
    t_ok(br_talks_open(&of_responses, &talks, &st), &st);
    br_talks_close(of_responses);
    ck_assert_int_eq(br_tstore_open(&s, talks.path, &st), BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "a database, but not one of tenants"), "%s",
                  st.msg);
}

static void
copy_of_what_is(const char *to, const char *from, char journal)
{
    size_t n;
    char *p = t_read(from, &n);

    ck_assert_uint_gt(n, 20);
    if (journal) /* 1: of rollback, 2: WAL; 0: as it is */
        p[18] = p[19] = journal;
    t_write(to, p, n);
}

static void
stays(const char *path, const char *as)
{
    size_t n, n_as;
    char *is = t_read(path, &n), *was = t_read(as, &n_as);

    ck_assert_msg(n == n_as && memcmp(is, was, n) == 0, "%s is another", path);
}

TEST(the_file_of_another_program_stays_as_it_was)
{
    const char *ours = new_file();
    const char *was = t_printf("%s/was.db", t_tmpdir());
    const char *was_log = t_printf("%s/was.log", t_tmpdir());
    const char *is = t_printf("%s/is.db", t_tmpdir());
    const char *log = t_printf("%s/is.db-wal", t_tmpdir());
    br_talks_config talks = {.path = is, .days = 1, .most = 1};
    br_tstore *s = open_store(ours);
    br_quota q = br_quota_defaults();
    br_status st = {0};
    char key[BR_KEY_CHARS];
    br_talks *t;
    uint32_t id;

    t_ok(br_tstore_create(s, "a", &q, &id, key, &st), &st);
    /* as a kill leaves it: a part is in the log alone */
    copy_of_what_is(was, ours, 0);
    copy_of_what_is(was_log, t_printf("%s-wal", ours), 0);
    copy_of_what_is(is, was, 0);
    copy_of_what_is(log, was_log, 0);
    ck_assert_int_eq(br_talks_open(&t, &talks, NULL), BR_E_FORMAT);
    stays(is, was);
    stays(log, was_log);
    (void)unlink(log);
    br_tstore_close(s);
    copy_of_what_is(was, ours, 1);
    copy_of_what_is(is, was, 0);
    ck_assert_int_eq(br_talks_open(&t, &talks, NULL), BR_E_FORMAT);
    stays(is, was);
    br_tstore_close(open_store(is)); /* but ours have a log */
    ck_assert_int_eq(t_read(is, &(size_t){0})[18], 2);
}

/* A file that is closed takes its process's locks with it, and whoever then
 * thinks he is the last one to have the database open removes its log. */
TEST(what_others_do_with_the_file_takes_nothing_away)
{
    const char *path = new_file();
    br_tstore *s = open_store(path), *second = open_store(path);
    br_quota q = br_quota_defaults();
    br_status st = {0};
    char key[BR_KEY_CHARS];
    uint32_t id;
    t_proc r;

    t_ok(br_tstore_create(s, "early", &q, &id, key, &st), &st);
    t_run(&r, "tenant", "list", "--db", path);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "early"), "%s", r.err);
    t_ok(br_tstore_create(s, "late", &q, &id, key, &st), &st);
    t_run(&r, "tenant", "list", "--db", path);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "late"), "%s%s", r.out, r.err);
    br_tstore_close(second);
    br_tstore_close(s);
}

/* Whoever mistypes its name should not be told that there are no tenants. */
TEST(looking_into_a_store_makes_none)
{
    static const char *const looks[] = {"list", "log", "set", "rotate",
                                        "usage"};
    const char *path = new_file();
    t_proc r;

    for (size_t i = 0; i < BR_COUNT(looks); i++) {
        t_run(&r, "tenant", looks[i], "--db", path, i > 1 ? "al" : NULL);
        ck_assert_msg(r.exit == 3 && strstr(r.err, "no such file"), "%s: %s",
                      looks[i], r.err);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
}

/* ---- kill -9 ------------------------------------------------------------- */

/* Makes tenants and counts tokens until it is killed; says what is done. */
static void
busy_child(const char *path, int out)
{
    br_tstore *s;
    br_status st = {0};
    br_quota q = br_quota_defaults();
    bool lost;

    if (br_tstore_open(&s, path, &st) || br_tstore_begin_run(s, &lost, &st))
        _exit(1);
    for (uint32_t i = 1;; i++) {
        char key[BR_KEY_CHARS];
        uint32_t id;
        br_ledger_delta d = {.tenant = 1};

        d.is.tokens_generated = 10;
        if (br_tstore_create(s, t_printf("t%u", i), &q, &id, key, &st) ||
            br_tstore_add(s, &d, 1, &st) ||
            write(out, key, sizeof key) != sizeof key)
            _exit(1);
    }
}

/* At a round's own moment. */
static void
loses_nothing_when_killed(const char *path, uint32_t round)
{
    char key[BR_KEY_CHARS], last[BR_KEY_CHARS] = "";
    uint32_t n = 0;
    br_status st = {0};
    int fd[2], status;
    br_tstore *s;
    br_ledger l;
    bool lost;
    pid_t child;

    ck_assert_int_eq(pipe(fd), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        busy_child(path, fd[1]);
    (void)close(fd[1]);
    for (n = 0; n < 5u + round * 4; n++) {
        ck_assert_int_eq(read(fd[0], key, sizeof key), sizeof key);
        memcpy(last, key, sizeof key);
    }
    (void)kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    while (read(fd[0], key, sizeof key) == (ssize_t)sizeof key) {
        memcpy(last, key, sizeof key);
        n++;
    }
    (void)close(fd[0]);
    s = open_store(path);
    ck_assert(opens(s, last, n));
    /* PostgreSQL hears of it within milliseconds */
    for (int i = 0; i < 3000; i++) {
        t_ok(br_tstore_begin_run(s, &lost, &st), &st);
        if (lost)
            break;
        t_ok(br_tstore_end_run(s, &st), &st);
        br_sleep_ns(20000000);
    }
    ck_assert(lost);
    t_ok(br_tstore_usage(s, 1, &l, &st), &st);
    /* one more may have been written before the kill, unsaid */
    ck_assert(l.tokens_generated == 10 * (uint64_t)n ||
              l.tokens_generated == 10 * (uint64_t)(n + 1));
    t_ok(br_tstore_end_run(s, &st), &st);
    t_ok(br_tstore_begin_run(s, &lost, &st), &st);
    ck_assert(!lost);
    br_tstore_close(s);
}

TEST(store_loses_nothing_it_said_was_done_when_killed)
{
    (void)new_file();
    for (uint32_t round = 0; round < 3; round++)
        loses_nothing_when_killed(t_printf("%s/%u.db", t_tmpdir(), round),
                                  round);
}

/* Each is told of those that died, and of no other. */
static void
servers_share(const char *path)
{
    br_tstore *a = open_store(path), *b = open_store(path);
    br_quota q = br_quota_defaults();
    br_ledger_delta d = {.is.tokens_generated = 7, .is.kv_pages_peak = 5};
    char key[BR_KEY_CHARS], key2[BR_KEY_CHARS];
    br_status st = {0};
    br_ledger l;
    bool lost;
    int64_t v[2];

    t_ok(br_tstore_begin_run(a, &lost, &st), &st);
    ck_assert(!lost);
    t_ok(br_tstore_begin_run(b, &lost, &st), &st);
    ck_assert(!lost);
    t_ok(br_tstore_version(b, &v[0], &st), &st);
    t_ok(br_tstore_create(a, "both", &q, &d.tenant, key, &st), &st);
    t_ok(br_tstore_version(b, &v[1], &st), &st);
    ck_assert(v[1] > v[0] && opens(b, key, d.tenant));
    t_ok(br_tstore_rotate(a, "both", key2, &st), &st);
    for (int i = 0; i < 6000 && opens(b, key, d.tenant); i++)
        br_sleep_ns(10000000);
    ck_assert(!opens(b, key, 0) && opens(b, key2, d.tenant));
    t_ok(br_tstore_add(a, &d, 1, &st), &st);
    d.is.kv_pages_peak = 3;
    d.is.kv_page_seconds = 0.1;
    t_ok(br_tstore_add(b, &d, 1, &st), &st);
    t_ok(br_tstore_usage(a, d.tenant, &l, &st), &st);
    ck_assert(l.tokens_generated == 14 && l.kv_pages_peak == 5);
    ck_assert(l.kv_page_seconds == 0.1); /* every bit */
    t_ok(br_tstore_end_run(a, &st), &st);
    t_ok(br_tstore_begin_run(a, &lost, &st), &st);
    ck_assert(!lost);
    br_tstore_close(b); /* without end_run: as if it had died */
    for (int i = 0; i < 3000 && !lost; i++) {
        t_ok(br_tstore_end_run(a, &st), &st);
        t_ok(br_tstore_begin_run(a, &lost, &st), &st);
        br_sleep_ns(lost ? 0 : 20000000);
    }
    ck_assert(lost);
    t_ok(br_tstore_end_run(a, &st), &st);
    br_tstore_close(a);
}

static void
on_logged(void *ctx, const br_logged *r)
{
    *(br_logged *)ctx = *r;
}

/* Once, however often it comes; not for ever. */
static void
logs_requests(const char *path)
{
    br_tstore *s = open_store(path);
    int64_t now = br_wall_ns() / 1000000, day = 86400000;
    br_logged r[] = {{.id = "new",
                      .model = "m",
                      .finish = "stop",
                      .tenant = 3,
                      .ended_ms = now,
                      .prompt_tokens = 5000000000,
                      .queue_ms = 0.1},
                     {.id = "old",
                      .model = "m",
                      .finish = "stop",
                      .tenant = 3,
                      .ended_ms = now - (BR_LOG_DAYS - 1) * day,
                      .prompt_tokens = 2},
                     {.id = "older",
                      .model = "m",
                      .finish = "stop",
                      .tenant = 4,
                      .ended_ms = now - (BR_LOG_DAYS + 1) * day}};
    br_status st = {0};
    br_logged last = {0};

    t_ok(br_tstore_log(s, r, 3, &st), &st);
    r[0].prompt_tokens = 1;
    t_ok(br_tstore_log(s, r, 1, &st), &st);
    t_ok(br_tstore_requests(s, &(br_log_query){.tenant = 3, .most = 1},
                            on_logged, &last, &st),
         &st);
    ck_assert_str_eq(last.id, "new");
    ck_assert_str_eq(last.finish, "stop");
    ck_assert(last.prompt_tokens == 5000000000 && last.queue_ms == 0.1 &&
              last.tenant == 3 && last.ended_ms == now);
    t_ok(br_tstore_requests(s, &(br_log_query){.tenant = 3, .most = 9},
                            on_logged, &last, &st),
         &st);
    ck_assert_str_eq(last.id, "old");
    last = (br_logged){0};
    t_ok(br_tstore_requests(s, &(br_log_query){.tenant = 4, .most = 9},
                            on_logged, &last, &st),
         &st);
    ck_assert_str_eq(last.id, "");
    br_tstore_close(s);
}

TEST(requests_are_logged)
{
    logs_requests(new_file());
}

static const char *
log_says(const char *path, const char *a, const char *b, const char *c)
{
    t_proc r;

    t_run(&r, "tenant", "log", "--db", path, a, b, c);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    return r.out;
}

TEST(the_log_of_requests_is_read_back)
{
    const char *path = new_file(), *out;
    br_tstore *s = open_store(path);
    br_quota q = br_quota_defaults();
    int64_t now = br_wall_ns() / 1000000, hour = 3600000;
    br_logged r[] = {{.id = "first",
                      .model = "m",
                      .finish = "failed",
                      .tenant = 1,
                      .ended_ms = now - 3 * hour},
                     {.id = "second",
                      .model = "m",
                      .finish = "eog",
                      .tenant = 2,
                      .ended_ms = now - 2 * hour},
                     {.id = "third",
                      .model = "n",
                      .finish = "eog",
                      .tenant = 1,
                      .ended_ms = now,
                      .decode_ms = 1.5}};
    char key[BR_KEY_CHARS];
    br_status st = {0};
    uint32_t id;
    t_proc bad;

    t_ok(br_tstore_create(s, "alice", &q, &id, key, &st), &st);
    t_ok(br_tstore_create(s, "bob", &q, &id, key, &st), &st);
    t_ok(br_tstore_log(s, r, 3, &st), &st);
    br_tstore_close(s);
    out = log_says(path, NULL, NULL, NULL);
    ck_assert_msg(strstr(out, "ended (UTC)") && strstr(out, " bob ") &&
                      strstr(out, "third") < strstr(out, "second") &&
                      strstr(out, "second") < strstr(out, "first"),
                  "%s", out);
    out = log_says(path, "--json", "alice", "--last=1");
    ck_assert_msg(strncmp(out, "{\"ended\":\"20", 12) == 0 &&
                      strstr(out, "\"tenant\":\"alice\",\"id\":\"third\"") &&
                      strstr(out, "\"decode_ms\":1.5,") &&
                      strchr(out, '\n') == out + strlen(out) - 1,
                  "%s", out);
    out = log_says(path, "--since=150m", "--until=1h", NULL);
    ck_assert_msg(strstr(out, "second") && !strstr(out, "first") &&
                      !strstr(out, "third"),
                  "%s", out);
    out = log_says(path, "--finish=eog", "--of-model=m", "--since=2020-01-01");
    ck_assert_msg(strstr(out, "second") && !strstr(out, "first") &&
                      !strstr(out, "third"),
                  "%s", out);
    ck_assert_str_eq(
        log_says(path, "--json", "--finish=failed", "--last=1") +
            sizeof "{\"ended\":\"2026-11-22T02:30:00\"" - 1,
        strstr(log_says(path, "--json", "--since=4h", "--until=150m"),
               ",\"tenant\""));
    ck_assert_str_eq(log_says(path, "--json", "--of-model=none", NULL), "");
    t_run(&bad, "tenant", "log", "--db", path, "--since=soon");
    ck_assert_msg(bad.exit == 2 && strstr(bad.err, "'soon' is no time"), "%s",
                  bad.err);
    t_run(&bad, "tenant", "log", "--db", path, "carol");
    ck_assert_msg(bad.exit != 0 && strstr(bad.err, "no tenant 'carol'"), "%s",
                  bad.err);
}

/* ---- prices -------------------------------------------------------------- */

static uint64_t
cost_of(br_tstore *s, uint32_t tenant)
{
    br_status st = {0};
    br_ledger l;

    t_ok(br_tstore_usage(s, tenant, &l, &st), &st);
    return l.cost_nano;
}

/* Each token at the price of when it was counted. */
static void
tokens_have_a_price(const char *path)
{
    br_tstore *s = open_store(path);
    br_quota q = br_quota_defaults();
    br_ledger_delta d = {.is.tokens_prompted = 100,
                         .is.tokens_cached = 40,
                         .is.tokens_generated = 7};
    char key[BR_KEY_CHARS];
    br_status st = {0};

    q.price_prompt = 150;
    q.price_cached = 15;
    q.price_generated = BR_MAX_PRICE;
    t_ok(br_tstore_create(s, "payer", &q, &d.tenant, key, &st), &st);
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    ck_assert_uint_eq(cost_of(s, d.tenant), 60 * 150 + 40 * 15 + 7000000);
    q.price_prompt = q.price_cached = 0;
    q.price_generated = 1;
    t_ok(br_tstore_set(s, "payer", &q, &st), &st);
    d.was = d.is;
    d.is.tokens_prompted += 5;
    d.is.tokens_generated += 2;
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    ck_assert_uint_eq(cost_of(s, d.tenant), 60 * 150 + 40 * 15 + 7000002);
    q.price_generated = BR_MAX_PRICE + 1;
    ck_assert_int_eq(br_tstore_set(s, "payer", &q, NULL), BR_E_USAGE);
    /* the model's is for those who have none of their own */
    d.was = d.is;
    d.is.tokens_generated += 1;
    d.model = (br_prices){7, 7, 500};
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    ck_assert_uint_eq(cost_of(s, d.tenant), 60 * 150 + 40 * 15 + 7000003);
    q.price_generated = 0;
    t_ok(br_tstore_set(s, "payer", &q, &st), &st);
    d.was = d.is;
    d.is.tokens_generated += 1;
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    ck_assert_uint_eq(cost_of(s, d.tenant), 60 * 150 + 40 * 15 + 7000503);
    br_tstore_close(s);
}

TEST(prices_of_a_model)
{
    static const char *const bad[] = {
        "",       "1",       "1/2", "1/2/3/4", "1/2/x",      "1/-2/3",
        "1/2/3 ", "1.5/2/3", "//",  "1/2/",    "1/2/1000001"};
    br_status st = {0};
    br_prices p;

    t_ok(br_prices_read(&p, "150/0/1000000", &st), &st);
    ck_assert(p.prompt == 150 && p.cached == 0 && p.generated == 1000000);
    for (size_t i = 0; i < BR_COUNT(bad); i++)
        ck_assert_msg(br_prices_read(&p, bad[i], NULL) == BR_E_USAGE, "%s",
                      bad[i]);
}

TEST(tokens_cost_what_they_cost_when_they_were_counted)
{
    tokens_have_a_price(new_file());
}

TEST(servers_share_a_store)
{
    servers_share(new_file());
}

/* ---- books --------------------------------------------------------------- */

static void
books_carry(const char *path)
{
    br_tstore *s = open_store(path);
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    br_books *b;
    br_ledger l;
    bool lost;
    uint32_t id, late;
    br_logged last = {0};
    br_status st = {0};
    static ek_req r[2];
    ek_req *all[] = {&r[0], &r[1]};
    br_request_desc d;
    ek k;

    ek_open(&k, (br_lm_fake_config){0}, (br_engine_config){0});
    t_ok(br_tstore_create(s, "early", &q, &id, key, &st), &st);
    t_ok(br_books_open(&b, path, NULL, &lost, &st), &st);
    t_ok(br_books_add(b, k.e, "fake", NULL, &st), &st);
    ck_assert(!lost);
    t_ok(br_tstore_create(s, "late", &q, &late, key, &st), &st);
    for (int i = 0; i < 6000 && !br_engine_tenant_quota(k.e, late, &q); i++)
        br_sleep_ns(10000000);
    for (int i = 0; i < 2; i++) {
        ek_prompt(&r[i], 40, 1);
        d = ek_desc(&r[i], 25);
        d.tenant = i ? late : id;
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, 2);
    br_books_log(b, &(br_logged){.id = "a.0",
                                 .model = "m",
                                 .finish = "length",
                                 .tenant = late,
                                 .ended_ms = br_wall_ns() / 1000000});
    br_books_close(b);
    t_ok(br_tstore_requests(s, &(br_log_query){.tenant = late, .most = 9},
                            on_logged, &last, &st),
         &st);
    ck_assert_str_eq(last.id, "a.0");
    for (int i = 0; i < 2; i++) {
        t_ok(br_tstore_usage(s, i ? late : id, &l, &st), &st);
        ck_assert_uint_eq(l.tokens_generated, 25);
        ck_assert_uint_eq(l.tokens_prompted, 40);
        ck_assert(l.requests_done == 1 && l.p50_ttft_ms > 0);
    }
    br_tstore_close(s);
    ek_close(&k);
}

TEST(books_carry_ledgers_to_the_file_and_tenants_to_the_engine)
{
    books_carry(new_file());
}

/* ---- PostgreSQL ---------------------------------------------------------- */

static void
refuses_without_telling(const pg_server *p)
{
    static const char *const bad[] = {
        "postgres://brass:pa/ss@127.0.0.1/x", "postgres://brass:pa@ss@127.1/x",
        "postgres://brass:pa%zz@127.0.0.1/x", "postgres://brass:pa:ss"};
    br_status st = {0};
    br_tstore *s;
    t_proc r;

    t_run(&r, "tenant", "list", "--db", pg_url(p, "wrong-pass", "postgres"));
    ck_assert_int_eq(r.exit, 1);
    ck_assert_msg(strstr(r.err, "password authentication failed") &&
                      strstr(r.err, "postgres://brass@127.0.0.1:") &&
                      !strstr(r.err, "wrong-pass"),
                  "%s", r.err);
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        st = (br_status){0};
        ck_assert_int_ne(br_tstore_open(&s, bad[i], &st), BR_OK);
        ck_assert_msg(!strstr(st.msg, "pa") || strstr(st.msg, "user:password"),
                      "%s: %s", bad[i], st.msg);
        ck_assert_msg(!strstr(st.msg, "ss@"), "%s", st.msg);
    }
    st = (br_status){0};
    ck_assert_int_eq(
        br_tstore_open(&s, pg_url(p, "s3cr3t%20word", "nowhere"), &st),
        BR_E_IO);
    ck_assert_msg(strstr(st.msg, "\"nowhere\" does not exist"), "%s", st.msg);
}

/* Whose server takes connections and says nothing is not waited for by who ends. */
TEST(tstore_waits_for_no_database_when_it_is_to_stop)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const _Atomic bool stop = true;
    int64_t begin = br_now_ns();
    br_status st = {0};
    br_tstore *s;

    ck_assert(fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0 &&
              listen(fd, 8) == 0 && getsockname(fd, (void *)&a, &len) == 0);
    if (br_tstore_open_until(
            &s, t_printf("postgres://u@127.0.0.1:%d/d", ntohs(a.sin_port)),
            &stop, &st) == BR_E_UNSUPPORTED)
        t_skip("built without libpq");
    ck_assert_msg(st.code == BR_E_CANCELLED, "%s", st.msg);
    ck_assert_int_lt(br_now_ns() - begin, INT64_C(8000000000));
    close(fd);
}

/* Connecting again takes a few milliseconds, or a second after a failure. */
static void
add_at_last(br_tstore *s, const br_ledger_delta *d)
{
    for (int i = 0; i < 6000; i++) {
        if (br_tstore_add(s, d, 1, NULL) == BR_OK)
            return;
        br_sleep_ns(10000000);
    }
    ck_abort_msg("the database does not come back");
}

/* The connection goes, then the database, and both come back. */
static void
outlives_the_database(pg_server *p)
{
    const char *url = pg_db(p);
    br_tstore *s = open_store(url);
    br_quota q = br_quota_defaults();
    br_ledger_delta d = {.is.tokens_generated = 5};
    char key[BR_KEY_CHARS], key2[BR_KEY_CHARS];
    br_status st = {0};
    br_ledger l;
    br_key_owner who;
    uint32_t t;
    bool lost, ok;

    t_ok(br_tstore_begin_run(s, &lost, &st), &st);
    t_ok(br_tstore_create(s, "a", &q, &d.tenant, key, &st), &st);
    t_ok(br_tstore_create(s, "b", &q, &t, key2, &st), &st);
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    ck_assert(opens(s, key, d.tenant));
    ck_assert_str_eq(pg_sql(p, PG_CUT), "1");
    add_at_last(s, &d);
    pg_stop(p);
    ck_assert(opens(s, key, d.tenant)); /* it was used before */
    ck_assert_int_ne(br_tstore_key(s, br_text_z(key2), &who, &ok, &st), BR_OK);
    ck_assert(!ok);
    st = (br_status){0};
    ck_assert_int_ne(br_tstore_add(s, &d, 1, &st), BR_OK);
    ck_assert_msg(!strstr(st.msg, "s3cr3t"), "%s", st.msg);
    ck_assert_int_eq(pg_start(p), 0);
    add_at_last(s, &d);
    ck_assert(opens(s, key2, 2));
    t_ok(br_tstore_usage(s, d.tenant, &l, &st), &st);
    ck_assert_uint_eq(l.tokens_generated, 15);
    /* Counted, but the answer to COMMIT was lost: not counted again. */
    (void)pg_sql(p, "UPDATE brass.run SET seq = seq + 1");
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    t_ok(br_tstore_usage(s, d.tenant, &l, &st), &st);
    ck_assert_uint_eq(l.tokens_generated, 15);
    /* Taken for dead meanwhile: the next batch counts all the same. */
    (void)pg_sql(p, "DELETE FROM brass.run");
    t_ok(br_tstore_add(s, &d, 1, &st), &st);
    t_ok(br_tstore_usage(s, d.tenant, &l, &st), &st);
    ck_assert_uint_eq(l.tokens_generated, 20);
    t_ok(br_tstore_end_run(s, &st), &st);
    ck_assert_str_eq(pg_sql(p, "SELECT count(*) FROM brass.run"), "0");
    br_tstore_close(s);
}

/* As the last program of format 3 left it. */
static void
takes_the_format_before(const pg_server *p)
{
    const char *url = pg_db(p);

    br_tstore_close(open_store(url));
    (void)pg_sql(p, "ALTER TABLE brass.tenant DROP price_prompt, "
                    "DROP price_cached, DROP price_generated, "
                    "DROP model");
    (void)pg_sql(p, "ALTER TABLE brass.ledger DROP cost_nano");
    (void)pg_sql(p, "UPDATE brass.state SET value = 3 WHERE name = 'format'");
    tokens_have_a_price(url);
    ck_assert_str_eq(pg_sql(p, "SELECT value FROM brass.state WHERE name = "
                               "'format'"),
                     "5");
}

/* One database server for all: starting it takes two seconds. */
TEST_WITHIN(postgres_does_what_a_file_does, 60)
{
    pg_server p;

    pg_begin(&p);
    keeps_tenants_and_their_keys(pg_db(&p));
    refuses_what_is_wrong(pg_db(&p));
    loses_nothing_when_killed(pg_db(&p), 2);
    servers_share(pg_db(&p));
    books_carry(pg_db(&p));
    logs_requests(pg_db(&p));
    takes_the_format_before(&p);
    refuses_without_telling(&p);
    outlives_the_database(&p);
    pg_end(&p);
}
