/* test_books.c - tenants that are changed while books tell an engine of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "base/log.h"
#include "base/thread.h"
#include "run/books.h"
#include "run/tstore_int.h"

#include <stdlib.h>
#include <string.h>

#define ADMIN "x-api-key: a-long-line-of-the-admin\r\n"

static const char *
file(void)
{
    if (!br_tstore_here())
        t_skip("built without SQLite");
    return t_printf("%s/t.db", t_tmpdir());
}

static uint32_t
tenant(br_tstore *s, const char *name, uint32_t slots, uint32_t pages)
{
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    br_status st = {0};
    uint32_t id;

    q.max_slots = slots;
    q.reserved_kv_pages = pages;
    t_ok(br_tstore_create(s, name, &q, &id, key, &st), &st);
    return id;
}

static uint32_t
slots_of(const ek *k, uint32_t id)
{
    br_quota q = {0};

    return br_engine_tenant_quota(k->e, id, &q) ? q.max_slots : 0;
}

/* The first of all is refused, which is logged: there another one is changed, whose row
 * was read by then. */
static void
change_another(void *ctx, const br_log_record *r)
{
    br_quota q = br_quota_defaults();
    br_status st = {0};

    if (r->event != BR_EV_tenant_refused)
        return;
    q.max_slots = 3;
    t_ok(br_tstore_set(ctx, "al", &q, &st), &st);
}

TEST(books_tell_what_was_changed_while_they_told)
{
    br_status st = {0};
    br_books *books;
    br_log_sink sink = {change_another, NULL, BR_LOG_WARN};
    br_tstore *s;
    uint32_t al;
    bool lost;
    ek k;

    t_ok(br_tstore_open(&s, file(), &st), &st);
    (void)tenant(s, "large", 2, 4096);
    al = tenant(s, "al", 2, 0);
    ek_open(&k, (br_lm_fake_config){0}, (br_engine_config){0});
    t_ok(br_books_open(&books, file(), NULL, &lost, &st), &st);
    sink.ctx = s;
    br_log_install(&sink);
    t_ok(br_books_add(books, k.e, "fake", NULL, &st), &st);
    br_log_install(NULL);
    ck_assert_uint_eq(slots_of(&k, al), 3);
    br_books_close(books);
    br_tstore_close(s);
    ek_close(&k);
}

typedef struct patch {
    sk *k;
    sk_answer a;
    br_thread thread;
} patch;

static void
ask_to_change(void *arg)
{
    patch *p = arg;

    p->a = sk_ask(p->k, "PATCH /v1/tenants/al", ADMIN, "{\"slots\":3}");
}

/* Somebody has the file while al is changed: the engine has the new quota, the file
 * the old one, and that is what books read. False: he had it for too long. */
static bool
changes_beside(sk *k, br_books *books, br_tstore *s, uint32_t al)
{
    patch *p = t_keep(calloc(1, sizeof *p));
    br_status st = {0};

    p->k = k;
    t_ok(br_tstore_begin(s, &st), &st);
    t_ok(br_thread_start(&p->thread, "patch", ask_to_change, p, &st), &st);
    while (slots_of(&k->ek, al) != 3)
        br_sleep_ns(100000);
    t_ok(br_books_add(books, k->ek.e, "fake", NULL, &st), &st);
    t_ok(br_tstore_end(s, BR_OK, &st), &st);
    br_thread_join(&p->thread);
    if (p->a.status == 200)
        ck_assert_uint_eq(slots_of(&k->ek, al), 3);
    br_books_drop(books, k->ek.e);
    return p->a.status == 200;
}

TEST_WITHIN(a_change_that_was_answered_holds_whatever_books_read, 60)
{
    br_http_config c = br_http_config_default();
    br_status st = {0};
    br_books *books;
    br_tstore *s;
    uint32_t al;
    bool lost;
    sk k;

    c.port = 0;
    c.db = file();
    c.admin = t_printf("%s/admin", t_tmpdir());
    t_write(c.admin, "a-long-line-of-the-admin\n", 25);
    t_ok(br_tstore_open(&s, c.db, &st), &st);
    al = tenant(s, "al", 2, 0);
    sk_open(&k, &(sk_config){.http = c});
    t_ok(br_books_open(&books, c.db, NULL, &lost, &st), &st);
    while (!changes_beside(&k, books, s, al))
        ;
    br_books_close(books);
    br_tstore_close(s);
    sk_close(&k);
}
