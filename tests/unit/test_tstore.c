/* test_tstore.c - tenants, keys and ledgers in a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/books.h"

#include "base/hash.h"
#include "base/thread.h"
#include "engine_kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void
digest_is(const void *p, size_t n, const char *want)
{
    uint8_t d[BR_BLAKE2B_BYTES];
    char text[2 * BR_BLAKE2B_BYTES + 1];

    br_blake2b(p, n, d);
    for (size_t i = 0; i < sizeof d; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", d[i]);
    ck_assert_str_eq(text, want);
}

TEST(blake2b_gives_the_values_of_others)
{
    uint8_t b[200];

    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)i;
    digest_is(
        "", 0,
        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    digest_is(
        "abc", 3,
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    digest_is(
        b, 128,
        "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1");
    digest_is(
        b, 200,
        "63c3d97a9f8894d5e043a707b0fee7f7ec4c049a23bbf1079df20b4165f9e22d");
    ck_assert(br_same_secret("abc", "abc", 3) &&
              !br_same_secret("abc", "abd", 3));
}

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
    uint32_t is;
    bool ok;

    t_ok(br_tstore_key(s, br_text_z(key), &is, &ok, &st), &st);
    ck_assert(!ok || is == tenant);
    return ok;
}

TEST(store_keeps_tenants_and_their_keys)
{
    const char *path = new_file();
    br_tstore *s = open_store(path);
    br_status st = {0};
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS], key2[BR_KEY_CHARS], wrong[BR_KEY_CHARS];
    uint32_t a, b;
    br_tenant t;
    struct stat file;

    q.qos = BR_QOS_BATCH;
    q.reserved_kv_pages = 7;
    t_ok(br_tstore_create(s, "alice", &q, &a, key, &st), &st);
    q.qos = BR_QOS_INTERACTIVE;
    t_ok(br_tstore_create(s, "bob@x.org", &q, &b, key2, &st), &st);
    ck_assert(a != b && a > 0);
    ck_assert_uint_eq(strlen(key), BR_KEY_CHARS - 1);
    br_tstore_close(s);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);
    s = open_store(path);
    t_ok(br_tstore_find(s, "alice", &t, &st), &st);
    ck_assert(t.id == a && t.quota.qos == BR_QOS_BATCH &&
              t.quota.reserved_kv_pages == 7 && t.created > 1700000000);
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

TEST(store_refuses_what_is_wrong)
{
    const char *path = new_file();
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
    ck_assert_int_eq(br_tstore_find(s, "b", &t, NULL), BR_E_NOT_FOUND);
    ck_assert_int_eq(br_tstore_set(s, "b", &q, NULL), BR_E_NOT_FOUND);
    ck_assert_int_eq(br_tstore_rotate(s, "b", key, NULL), BR_E_NOT_FOUND);
    q.max_slots = 0;
    ck_assert_int_eq(br_tstore_set(s, "a", &q, NULL), BR_E_USAGE);
    br_tstore_close(s);
    t_write(t_printf("%s/text", t_tmpdir()),
            "no database, but long enough "
            "to look at: ...........................................",
            70);
    ck_assert_int_eq(br_tstore_open(&s, t_printf("%s/text", t_tmpdir()), &st),
                     BR_E_FORMAT);
    ck_assert_int_eq(br_tstore_open(&s, "/nowhere/at/all.db", NULL), BR_E_IO);
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

TEST(store_loses_nothing_it_said_was_done_when_killed)
{
    const char *path = new_file();
    uint32_t n = 0;
    br_status st = {0};
    br_ledger l;

    for (int round = 0; round < 3; round++) {
        char key[BR_KEY_CHARS], last[BR_KEY_CHARS] = "";
        int fd[2], status;
        br_tstore *s;
        bool lost;
        pid_t child;

        path = t_printf("%s/%d.db", t_tmpdir(), round);
        ck_assert_int_eq(pipe(fd), 0);
        child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            busy_child(path, fd[1]);
        (void)close(fd[1]);
        for (n = 0; n < 5u + (uint32_t)round * 4; n++) {
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
        t_ok(br_tstore_begin_run(s, &lost, &st), &st);
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
}

/* ---- books --------------------------------------------------------------- */

TEST(books_carry_ledgers_to_the_file_and_tenants_to_the_engine)
{
    const char *path = new_file();
    br_tstore *s = open_store(path);
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    br_books *b;
    br_ledger l;
    bool lost;
    uint32_t id, late;
    br_status st = {0};
    static ek_req r[2];
    ek_req *all[] = {&r[0], &r[1]};
    br_request_desc d;
    ek k;

    ek_open(&k, (br_lm_fake_config){0}, (br_engine_config){0});
    t_ok(br_tstore_create(s, "early", &q, &id, key, &st), &st);
    t_ok(br_books_open(&b, path, &lost, &st), &st);
    t_ok(br_books_add(b, k.e, &st), &st);
    ck_assert(!lost);
    t_ok(br_tstore_create(s, "late", &q, &late, key, &st), &st);
    for (int i = 0; i < 300 && !br_engine_tenant_quota(k.e, late, &q); i++)
        br_sleep_ns(10000000);
    for (int i = 0; i < 2; i++) {
        ek_prompt(&r[i], 40, 1);
        d = ek_desc(&r[i], 25);
        d.tenant = i ? late : id;
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, 2);
    br_books_close(b);
    for (int i = 0; i < 2; i++) {
        t_ok(br_tstore_usage(s, i ? late : id, &l, &st), &st);
        ck_assert_uint_eq(l.tokens_generated, 25);
        ck_assert_uint_eq(l.tokens_prompted, 40);
        ck_assert(l.requests_done == 1 && l.p50_ttft_ms > 0);
    }
    br_tstore_close(s);
    ek_close(&k);
}
