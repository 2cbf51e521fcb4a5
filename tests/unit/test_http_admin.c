/* test_http_admin.c - tenants over HTTP, and what the server did when.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/srv.h"
#include "run/books.h"
#include "run/tstore_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMIN "x-api-key: a-long-line-of-the-admin\r\n"

typedef struct admin {
    sk k;
    br_books *books;
} admin;

static void
open_admin_as(admin *s, const br_http_config *as)
{
    br_http_config c = *as;
    br_status st = {0};
    bool lost;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.db = t_printf("%s/t.db", t_tmpdir());
    c.admin = t_printf("%s/admin", t_tmpdir());
    t_write(c.admin, "a-long-line-of-the-admin\n", 25);
    sk_open(&s->k, &(sk_config){.http = c});
    t_ok(br_books_open(&s->books, c.db, NULL, &lost, &st), &st);
    t_ok(br_books_add(s->books, s->k.ek.e, "fake", NULL, &st), &st);
}

static void
open_admin(admin *s)
{
    br_http_config c = br_http_config_default();

    open_admin_as(s, &c);
}

static void
close_admin(admin *s)
{
    br_books_close(s->books);
    sk_close(&s->k);
}

static char *
bearer(const char *body)
{
    return t_printf("Authorization: Bearer %s\r\n",
                    sk_between(body, "\"key\":\"", "\""));
}

#define ASK \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":3}"

TEST(tenants_are_made_changed_and_given_new_keys)
{
    static const char *const nobody[] = {
        "GET /v1/tenants/me/usage", "GET /v1/tenants/me/requests",
        "GET /v1/tenants/0/requests", "GET /v1/tenants/9/requests",
        "GET /v1/tenants/9/usage"};
    admin s;
    sk_answer a;
    char *old, *key;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN,
               "{\"name\":\"al\",\"class\":\"interactive\",\"slots\":2}");
    ck_assert_msg(a.status == 200 &&
                      strstr(a.body, "\"id\":1,\"name\":\"al\"") &&
                      strstr(a.body, "\"class\":\"interactive\",\"slots\":2,"),
                  "%s", a.body);
    old = bearer(a.body); /* holds at once */
    ck_assert_int_eq(sk_ask(&s.k, "POST /v1/chat/completions", old, ASK).status,
                     200);
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN, "{\"context_tokens\":4}");
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"slots\":2,") &&
                      strstr(a.body, "\"context_tokens\":4,") &&
                      !strstr(a.body, "\"key\""),
                  "%s", a.body);
    a = sk_ask(&s.k, "POST /v1/chat/completions", old, ASK);
    ck_assert_int_eq(a.status, 400); /* so does that */
    a = sk_ask(&s.k, "POST /v1/tenants/%61l/rotate", ADMIN, "");
    key = bearer(a.body);
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/models", old, NULL).status, 401);
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/models", key, NULL).status, 200);
    a = sk_ask(&s.k, "GET /v1/tenants", ADMIN, NULL);
    ck_assert_msg(strstr(a.body, "{\"object\":\"list\",\"data\":[{\"id\":1,"),
                  "%s", a.body);
    ck_assert_ptr_null(strstr(a.body, "key"));
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/tenants/al", ADMIN, NULL).status,
                     200);
    ck_assert_int_eq(
        sk_ask(&s.k, "GET /v1/tenants/1/usage", ADMIN, NULL).status, 200);
    ck_assert_int_eq(
        sk_ask(&s.k, "GET /v1/tenants/al/usage", ADMIN, NULL).status, 200);
    ck_assert_int_eq(
        sk_ask(&s.k, "GET /v1/tenants/bo/usage", ADMIN, NULL).status, 404);
    for (size_t i = 0; i < BR_COUNT(nobody); i++) {
        a = sk_ask(&s.k, nobody[i], ADMIN, NULL);
        ck_assert_msg(a.status == 404 && strstr(a.body, "no such tenant") &&
                          strstr(a.body, "\"code\":null"),
                      "%s: %s", nobody[i], a.body);
    }
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/tenants/al/usage", key, NULL).status,
                     200);
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/tenants/bo/usage", key, NULL).status,
                     403);
    close_admin(&s);
}

/* A backup, say, or a shell; whose answers run waits for neither. A busy machine may
 * take as long by itself, but not each time. */
TEST_WITHIN(who_has_the_tenants_file_holds_the_server_up_only_briefly, 60)
{
    const int64_t most = INT64_C(4000000000);
    int64_t took = most;
    br_status st = {0};
    br_tstore *other;
    sk_answer a;
    admin s;

    open_admin(&s);
    t_ok(br_tstore_open(&other, t_printf("%s/t.db", t_tmpdir()), &st), &st);
    t_ok(br_tstore_begin(other, &st), &st);
    for (int i = 0; i < 5 && took >= most; i++) {
        took = -br_now_ns();
        a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
        took += br_now_ns();
        ck_assert_msg(a.status == 503 && strstr(a.body, "locked"), "%s",
                      a.body);
        ck_assert_ptr_nonnull(strstr(a.head, "\r\nRetry-After: "));
    }
    ck_assert_int_lt(took, most);
    t_ok(br_tstore_end(other, BR_OK, &st), &st);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    ck_assert_msg(a.status == 200, "%s", a.body);
    br_tstore_close(other);
    close_admin(&s);
}

/* ---- while the model rests ---------------------------------------------- */

/* It comes at once. */
static bool
on_wanted_again(void *ctx, const char *name, char *comes, size_t n)
{
    sk *k = ctx;
    const br_http_model m = {.name = "fake",
                             .engine = k->ek.e,
                             .tok = k->ek.tok,
                             .chat = k->chat,
                             .n_ctx = k->ek.c.lm->n_ctx,
                             .tier = "fake"};
    br_status st = {0};

    (void)name;
    (void)snprintf(comes, n, "fake");
    t_ok(br_http_ready(k->http, &m, &st), &st);
    return true;
}

static void
await_rest(const sk *k)
{
    while (!strstr(sk_ask(k, "GET /health", "", NULL).body, "idle"))
        br_sleep_ns(1000000);
}

TEST(tenants_are_looked_at_while_the_model_rests_and_changed_when_it_is_there)
{
    br_http_config c = br_http_config_default();
    sk_answer a;
    char *key;
    admin s;

    c.idle_ns = 100000000;
    c.wanted = on_wanted_again;
    c.ctx = &s.k;
    open_admin_as(&s, &c);
    await_rest(&s.k);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    ck_assert_msg(a.status == 200, "%s", a.body);
    key = bearer(a.body);
    await_rest(&s.k);
    a = sk_ask(&s.k, "GET /v1/tenants/me/usage", key, NULL);
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"tokens_prompted\":0"),
                  "%s", a.body);
    a = sk_ask(&s.k, "GET /v1/tenants/me/requests", key, NULL);
    ck_assert_msg(a.status == 200, "%s", a.body);
    ck_assert_str_eq(sk_ask(&s.k, "GET /health", "", NULL).body,
                     "{\"status\":\"idle\"}");
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN, "{\"slots\":1}");
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"slots\":1"), "%s",
                  a.body);
    close_admin(&s);
}

/* ---- a tenant's model --------------------------------------------------- */

typedef struct other {
    ek ek;
    atomic_bool wanted;
} other;

static bool
on_wanted(void *ctx, const char *name, char *comes, size_t n)
{
    other *o = ctx;
    bool is = strcmp(name, "third") == 0;

    if (is)
        atomic_store(&o->wanted, true);
    (void)snprintf(comes, n, "%s", name);
    return is;
}

static void
open_other(admin *s, other *o)
{
    br_http_model m = {
        .name = "other", .tier = "fake", .n_ctx = 1024, .owner = o};
    br_http_config c = br_http_config_default();
    br_status st = {0};

    c.wanted = on_wanted;
    c.ctx = o;
    open_admin_as(s, &c);
    ek_open(&o->ek, (br_lm_fake_config){0}, (br_engine_config){0});
    m.engine = o->ek.e;
    m.tok = o->ek.tok;
    m.chat = s->k.chat; /* one thread has them all */
    t_ok(br_books_add(s->books, o->ek.e, "other", NULL, &st), &st);
    t_ok(br_http_ready(s->k.http, &m, &st), &st);
    while (!strstr(sk_ask(&s->k, "GET /v1/models", ADMIN, NULL).body, "other"))
        br_sleep_ns(1000000);
}

static void
close_other(admin *s, other *o)
{
    br_books_drop(s->books, o->ek.e);
    close_admin(s);
    ek_close(&o->ek);
}

static const char *
ask_of(const char *model)
{
    return t_printf("{\"model\":\"%s\",\"messages\":[{\"role\":\"user\","
                    "\"content\":\"Hi\"}],\"max_tokens\":3}",
                    model);
}

TEST(a_tenant_has_a_model)
{
    static const char chat[] = "POST /v1/chat/completions";
    const char *key, *count = "{\"prompt\":\"Hi\",\"model\":\"fake\"}";
    static other o;
    sk_answer a;
    admin s;

    open_other(&s, &o);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN,
               "{\"name\":\"al\",\"model\":\"other\"}");
    ck_assert_msg(strstr(a.body, "\"model\":\"other\""), "%s", a.body);
    key = bearer(a.body);
    a = sk_ask(&s.k, chat, key, ASK); /* not the first one */
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"model\":\"other\""),
                  "%s", a.body);
    a = sk_ask(&s.k, chat, key, ask_of("other"));
    ck_assert_int_eq(a.status, 200);
    a = sk_ask(&s.k, chat, key, ask_of("fake"));
    ck_assert_msg(a.status == 404 && strstr(a.body, "is not for this key"),
                  "%s", a.body);
    a = sk_ask(&s.k, chat, key, ask_of("third")); /* nor does that come */
    ck_assert_int_eq(a.status, 404);
    ck_assert(!atomic_load(&o.wanted));
    ck_assert_int_eq(sk_ask(&s.k, "POST /tokenize", key, count).status, 404);
    a = sk_ask(&s.k, "GET /state", key, NULL);
    ck_assert_ptr_nonnull(strstr(a.body, "\"model\":\"other\""));
    a = sk_ask(&s.k, "GET /state?model=fake", key, NULL);
    ck_assert_msg(a.status == 404 && strstr(a.body, "is not for this key"),
                  "%s", a.body);
    a = sk_ask(&s.k, "GET /v1/models", key, NULL);
    ck_assert_msg(strstr(a.body, "\"other\"") &&
                      !strstr(a.body, "\"id\":\"fake\""),
                  "%s", a.body);
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/models/fake", key, NULL).status,
                     404);
    a = sk_ask(&s.k, "GET /v1/models", ADMIN, NULL);
    ck_assert(strstr(a.body, "\"other\"") && strstr(a.body, "\"id\":\"fake\""));
    /* One that is not here yet comes; ledgers do not wait for it. */
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN, "{\"model\":\"third\"}");
    ck_assert_int_eq(a.status, 200);
    ck_assert_int_eq(sk_ask(&s.k, "GET /v1/tenants/me/usage", key, NULL).status,
                     200);
    ck_assert(!atomic_load(&o.wanted));
    a = sk_ask(&s.k, "GET /slots", key, NULL); /* to look is not to ask */
    ck_assert_msg(a.status == 503 && !atomic_load(&o.wanted), "%s", a.body);
    a = sk_ask(&s.k, chat, t_printf("%sX-Deadline-Ms: 1\r\n", key), ASK);
    ck_assert_msg(a.status == 504, "%s", a.body); /* so long it waited for it */
    ck_assert(atomic_load(&o.wanted));
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN, "{\"model\":null}");
    ck_assert_ptr_null(strstr(a.body, "model"));
    a = sk_ask(&s.k, chat, key, ask_of("fake"));
    ck_assert_int_eq(a.status, 200);
    close_other(&s, &o);
}

/* What is kept for it on one engine cannot be lacking on another. */
TEST(pages_are_kept_where_a_tenants_model_is)
{
    br_engine_stats first, second;
    static other o;
    sk_answer a;
    admin s;

    open_other(&s, &o);
    br_engine_stats_get(s.k.ek.e, &first);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN,
               "{\"name\":\"al\",\"model\":\"other\","
               "\"reserved_kv_pages\":9}");
    ck_assert_msg(a.status == 200, "%s", a.body);
    do { /* as of the latest step */
        br_sleep_ns(1000000);
        br_engine_stats_get(o.ek.e, &second);
    } while (second.pages_reserved != 9);
    (void)sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"bo\"}");
    br_engine_stats_get(s.k.ek.e, &first);
    ck_assert_uint_eq(first.pages_reserved, 0);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN,
               t_printf("{\"name\":\"cy\",\"reserved_kv_pages\":%u,"
                        "\"kv_pages\":%u}",
                        second.n_pages - second.n_pages / 5 - 8,
                        second.n_pages)); /* a fifth is for prefixes */
    ck_assert_msg(a.status == 400 && strstr(a.body, "model other: "), "%s",
                  a.body);
    close_other(&s, &o);
}

/* As a server on the same database counts. */
static void
add_to_ledger(const br_ledger_delta *d)
{
    br_status st = {0};
    br_tstore *store;

    t_ok(br_tstore_open(&store, t_printf("%s/t.db", t_tmpdir()), &st), &st);
    t_ok(br_tstore_add(store, d, 1, &st), &st);
    br_tstore_close(store);
}

TEST(a_ledger_shows_every_token)
{
    br_ledger_delta d = {.tenant = 1,
                         .is.tokens_prompted = UINT64_C(9007199254740991),
                         .is.tokens_generated = 12345678901,
                         .is.kv_page_seconds = 123456789012.25};
    sk_answer a;
    admin s;

    open_admin(&s);
    (void)sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    add_to_ledger(&d);
    a = sk_ask(&s.k, "GET /v1/tenants/1/usage", ADMIN, NULL);
    ck_assert_msg(strstr(a.body, "{\"id\":1,"
                                 "\"tokens_prompted\":9007199254740991,") &&
                      strstr(a.body, "\"tokens_generated\":12345678901,") &&
                      strstr(a.body, "\"kv_page_seconds\":123456789012.25,"),
                  "%s", a.body);
    close_admin(&s);
}

TEST(tokens_have_a_price)
{
    br_ledger_delta d = {.tenant = 1,
                         .is.tokens_prompted = 1000,
                         .is.tokens_cached = 400,
                         .is.tokens_generated = 50};
    sk_answer a;
    admin s;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN,
               "{\"name\":\"al\",\"price_prompt\":150,"
               "\"price_generated\":600}");
    ck_assert_msg(strstr(a.body, "\"price_prompt\":150,\"price_cached\":0,"
                                 "\"price_generated\":600,"),
                  "%s", a.body);
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN, "{\"price_cached\":15}");
    add_to_ledger(&d);
    a = sk_ask(&s.k, "GET /v1/tenants/1/usage", ADMIN, NULL);
    ck_assert_msg(strstr(a.body, "\"cost_nano\":126000,") &&
                      strstr(a.body, "\"price_prompt\":150,\"price_cached\":15,"
                                     "\"price_generated\":600}"),
                  "%s", a.body);
    a = sk_ask(&s.k, "PATCH /v1/tenants/al", ADMIN,
               "{\"price_cached\":1000001}");
    ck_assert_msg(a.status == 400 && strstr(a.body, "price of a cached token"),
                  "%s", a.body);
    ck_assert_int_eq(
        sk_ask(&s.k, "GET /v1/tenants/9/usage", ADMIN, NULL).status, 404);
    close_admin(&s);
}

TEST(only_the_admin_may)
{
    static const char *const paths[] = {"GET /v1/tenants",
                                        "POST /v1/tenants",
                                        "GET /v1/tenants/al",
                                        "PATCH /v1/tenants/al",
                                        "POST /v1/tenants/al/rotate",
                                        "POST /drain",
                                        "DELETE /drain"};
    admin s;
    sk_answer a;
    char *key;
    sk k;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    key = bearer(a.body);
    for (size_t i = 0; i < BR_COUNT(paths); i++) {
        const char *body = paths[i][0] == 'G' ? NULL : "{}";

        ck_assert_int_eq(sk_ask(&s.k, paths[i], "", body).status, 401);
        ck_assert_int_eq(sk_ask(&s.k, paths[i], key, body).status, 401);
        ck_assert_int_eq(sk_ask(&s.k, paths[i],
                                "x-api-key: a-long-line-of-the-admi\r\n", body)
                             .status,
                         401);
    }
    /* and makes no answers */
    ck_assert_int_eq(
        sk_ask(&s.k, "POST /v1/chat/completions", ADMIN, ASK).status, 401);
    ck_assert_int_eq(sk_ask(&s.k, "GET /metrics", ADMIN, NULL).status, 200);
    close_admin(&s);
    sk_open(&k, &(sk_config){0});
    a = sk_ask(&k, "GET /v1/tenants", ADMIN, NULL);
    ck_assert_msg(a.status == 403 && strstr(a.body, "--admin-key-file"), "%s",
                  a.body);
    sk_close(&k);
}

TEST(metrics_tell_the_admin_whose_tokens_they_were)
{
    admin s;
    sk_answer a;
    char *key;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    key = bearer(a.body);
    (void)sk_ask(&s.k, "POST /v1/chat/completions", key, ASK);
    a = sk_ask(&s.k, "GET /metrics", ADMIN, NULL);
    ck_assert_msg(
        strstr(a.body, "\nbrass_tenant_tokens_total{model_name=\"fake\","
                       "tenant=\"al\",kind=\"generated\"} 3\n") &&
            strstr(a.body, "\nbrass_tenant_requests_total{model_name=\"fake\","
                           "tenant=\"al\",result=\"done\"} 1\n"),
        "%s", a.body);
    a = sk_ask(&s.k, "GET /metrics", key, NULL);
    ck_assert(a.status == 200 && !strstr(a.body, "tenant="));
    close_admin(&s);
}

/* As where it is away: nobody knows then whether there is one. */
TEST(a_tenant_that_cannot_be_looked_up_is_none_that_is_not_there)
{
    br_status st = {0};
    br_tstore *second;
    sk_answer a;
    admin s;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    ck_assert_int_eq(a.status, 200);
    t_ok(br_tstore_open(&second, t_printf("%s/t.db", t_tmpdir()), &st), &st);
    t_ok(br_tstore_ask(
             second, &(br_db_query){.sql = "ALTER TABLE tenant RENAME TO gone"},
             &st),
         &st);
    a = sk_ask(&s.k, "GET /v1/tenants/al/usage", ADMIN, NULL);
    ck_assert_msg(a.status == 500 && strstr(a.body, "no such table"), "%s",
                  a.body);
    a = sk_ask(&s.k, "GET /v1/tenants/al/requests", ADMIN, NULL);
    ck_assert_msg(a.status == 500 && strstr(a.body, "no such table"), "%s",
                  a.body);
    t_ok(br_tstore_ask(
             second, &(br_db_query){.sql = "ALTER TABLE gone RENAME TO tenant"},
             &st),
         &st);
    a = sk_ask(&s.k, "GET /v1/tenants/bo/usage", ADMIN, NULL);
    ck_assert_int_eq(a.status, 404);
    a = sk_ask(&s.k, "GET /v1/tenants/9/usage", ADMIN, NULL);
    ck_assert_int_eq(a.status, 404);
    br_tstore_close(second);
    close_admin(&s);
}

/* It is away, say: what the server itself knows is not less true. */
TEST(metrics_do_without_what_the_database_does_not_say)
{
    br_status st = {0};
    br_tstore *second;
    sk_answer a;
    admin s;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    ck_assert_int_eq(a.status, 200);
    t_ok(br_tstore_open(&second, t_printf("%s/t.db", t_tmpdir()), &st), &st);
    t_ok(br_tstore_ask(
             second, &(br_db_query){.sql = "ALTER TABLE tenant RENAME TO gone"},
             &st),
         &st);
    a = sk_ask(&s.k, "GET /metrics", ADMIN, NULL);
    ck_assert_msg(a.status == 200 && strstr(a.body, "brass_requests_running") &&
                      !strstr(a.body, "brass_tenant_"),
                  "%d %s", a.status, a.body);
    t_ok(br_tstore_ask(
             second, &(br_db_query){.sql = "ALTER TABLE gone RENAME TO tenant"},
             &st),
         &st);
    a = sk_ask(&s.k, "GET /metrics", ADMIN, NULL);
    ck_assert(a.status == 200 && strstr(a.body, "brass_tenant_"));
    br_tstore_close(second);
    close_admin(&s);
}

/* What the cache of beginnings found for others says what they ask. */
TEST(a_tenants_metrics_count_its_own_tokens)
{
    static const char *const own[] = {
        "brass_prompt_tokens_total{model_name=\"fake\"} ",
        "brass_cached_tokens_total{model_name=\"fake\"} ",
        "brass_generation_tokens_total{model_name=\"fake\"} ",
        "brass_prefix_cache_queries_total{model_name=\"fake\"} ",
        "vllm:prefix_cache_hits_total{model_name=\"fake\"} "};
    char *one, *two;
    admin s;

    open_admin(&s);
    one = bearer(
        sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"a\"}").body);
    two = bearer(
        sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"b\"}").body);
    for (int i = 0; i < 2; i++) /* the second finds what the first has left */
        ck_assert_int_eq(sk_ask(&s.k, "POST /v1/completions", one,
                                "{\"prompt\":\"A fox ran over the hill and "
                                "through the wood to the sea, and there it "
                                "sat down and thought of the hen.\","
                                "\"max_tokens\":3}")
                             .status,
                         200);
    one = sk_ask(&s.k, "GET /metrics", one, NULL).body;
    for (size_t i = 0; i < BR_COUNT(own); i++) {
        char *n = sk_between(one, own[i], "\n");

        ck_assert_msg(n && strcmp(n, "0") != 0, "%s: %s", own[i], one);
        ck_assert_str_eq(
            sk_between(sk_ask(&s.k, "GET /metrics", two, NULL).body, own[i],
                       "\n"),
            "0");
    }
    two = sk_ask(&s.k, "GET /state", two, NULL).body;
    ck_assert_msg(strstr(two, "\"cached_tokens\":0,\"out_tokens\":0,"), "%s",
                  two);
    close_admin(&s);
}

TEST(changes_that_brass_tenant_refuses)
{
    static const struct {
        const char *what, *body;
        int status;
        const char *says;
    } rows[] = {
        {"POST /v1/tenants", "{}", 400, "name: missing"},
        {"POST /v1/tenants", "[]", 400, "not a JSON object"},
        {"POST /v1/tenants", "{\"name\":\"a b\"}", 400, "letters, digits"},
        {"POST /v1/tenants", "{\"name\":\"al\"}", 400, "is there already"},
        {"POST /v1/tenants", "{\"name\":\"a\\u0000b\"}", 400, "a text"},
        {"POST /v1/tenants", "{\"name\":\"b\",\"slots\":0}", 400,
         "slots: 0 is"},
        {"POST /v1/tenants", "{\"name\":\"b\",\"slots\":-1}", 400,
         "slots: must be a whole number"},
        {"POST /v1/tenants", "{\"name\":\"b\",\"class\":\"x\"}", 400,
         "must be interactive"},
        {"POST /v1/tenants", "{\"name\":\"b\",\"prize\":1}", 400,
         "prize: no such field"},
        {"POST /v1/tenants",
         "{\"name\":\"b\",\"kv_pages\":900000,\"reserved_kv_pages\":900000}",
         400, "reserved KV pages"},
        {"PATCH /v1/tenants/al",
         "{\"kv_pages\":900000,\"reserved_kv_pages\":900000}", 400, "pages"},
        {"PATCH /v1/tenants/al", "{\"name\":\"x\"}", 400, "no such field"},
        {"PATCH /v1/tenants/al", "{\"model\":\"a b\"}", 400, "letters, digits"},
        {"PATCH /v1/tenants/al", "{\"model\":7}", 400, "must be a name"},
        {"PATCH /v1/tenants/bo", "{}", 404, "no tenant 'bo'"},
        {"PATCH /v1/tenants/al/usage", "{}", 405, "not for that method"},
        {"POST /v1/tenants/bo/rotate", "{}", 404, "no tenant 'bo'"},
    };
    admin s;
    sk_answer a;

    open_admin(&s);
    (void)sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = sk_ask(&s.k, rows[i].what, ADMIN, rows[i].body);
        ck_assert_msg(a.status == rows[i].status &&
                          strstr(a.body, rows[i].says),
                      "%zu: %d %s", i, a.status, a.body);
    }
    a = sk_ask(&s.k, "GET /v1/tenants", ADMIN, NULL);
    ck_assert_ptr_null(strstr(a.body, "\"id\":2"));
    close_admin(&s);
}

TEST(an_admin_key_that_is_none)
{
    static const char *const texts[] = {"", "short\n",
                                        "a-long-line-of-the\nx-x"};
    br_http_config c = br_http_config_default();
    br_http *h;

    c.port = 0;
    c.admin = t_printf("%s/admin", t_tmpdir());
    for (size_t i = 0; br_tstore_here() && i < BR_COUNT(texts); i++) {
        br_status st = {0};

        c.db = t_printf("%s/t.db", t_tmpdir());
        t_write(c.admin, texts[i], strlen(texts[i]));
        ck_assert_int_eq(br_http_new(&h, &c, &st), BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, "key"), "%s", st.msg);
    }
}

/* Without tenants the admin still says which models there are, and who has one of
 * the file's keys may ask. */
TEST(keys_without_tenants)
{
    static const char keys[] =
        "# of the house\n\nthe-key-of-the-cat\r\nthe-dogs-own-key!";
    br_http_config c = br_http_config_default();
    br_http *h;
    sk k;

    c.port = 0;
    c.admin = t_printf("%s/admin", t_tmpdir());
    c.keys = t_printf("%s/keys", t_tmpdir());
    t_write(c.admin, "a-long-line-of-the-admin\n", 25);
    t_write(c.keys, keys, strlen(keys));
    sk_open(&k, &(sk_config){.http = c});
#define STATUS(what, key, body) sk_ask(&k, what, key, body).status
    ck_assert_int_eq(STATUS("POST /v1/chat/completions", "", ASK), 401);
    ck_assert_int_eq(STATUS("POST /v1/chat/completions",
                            "x-api-key: the-key-of-the-cat\r\n", ASK),
                     200);
    ck_assert_int_eq(STATUS("POST /v1/chat/completions",
                            "Authorization: Bearer the-dogs-own-key!\r\n", ASK),
                     200);
    ck_assert_int_eq(STATUS("POST /v1/chat/completions",
                            "x-api-key: # of the house\r\n", ASK),
                     401);
    ck_assert_int_eq(STATUS("POST /v1/chat/completions", ADMIN, ASK), 401);
    ck_assert_int_eq(STATUS("GET /v1/tenants", ADMIN, NULL), 404);
    ck_assert_int_eq(STATUS("POST /drain", ADMIN, ""), 200);
    ck_assert_int_eq(
        STATUS("DELETE /drain", "x-api-key: the-key-of-the-cat\r\n", NULL),
        401);
    ck_assert_int_eq(STATUS("DELETE /drain", ADMIN, NULL), 200);
    ck_assert_ptr_null(strstr(
        sk_ask(&k, "GET /v1/tenants/5/usage", ADMIN, NULL).body, "model"));
    sk_close(&k);
    c.db = t_printf("%s/t.db", t_tmpdir());
    ck_assert_int_eq(br_http_new(&h, &c, NULL), BR_E_USAGE);
    c.db = NULL;
    t_write(c.keys, "too short\n", 10);
    ck_assert_int_eq(br_http_new(&h, &c, NULL), BR_E_FORMAT);
    t_write(c.keys, "# nothing\n", 10);
    ck_assert_int_eq(br_http_new(&h, &c, NULL), BR_E_FORMAT);
}

TEST(a_server_is_left_out_and_comes_back)
{
    admin s;
    sk_answer a;
    char *key;

    open_admin(&s);
    a = sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"al\"}");
    key = bearer(a.body);
    a = sk_ask(&s.k, "POST /drain", ADMIN, ""); /* as it was asked */
    ck_assert_msg(a.status == 200 && strstr(a.body, "draining"), "%s", a.body);
    a = sk_ask(&s.k, "GET /health", "", NULL);
    ck_assert_msg(a.status == 503 && strstr(a.body, "draining"), "%s", a.body);
    ck_assert_int_eq(sk_ask(&s.k, "POST /v1/chat/completions", key, ASK).status,
                     200); /* whoever did not know yet */
    ck_assert_int_eq(sk_ask(&s.k, "DELETE /drain", ADMIN, NULL).status, 200);
    ck_assert_int_eq(sk_ask(&s.k, "GET /health", "", NULL).status, 200);
    close_admin(&s);
}

/* ---- timelines ---------------------------------------------------------- */

static int
count(const char *in, const char *what)
{
    int n = 0;

    while ((in = strstr(in, what))) {
        in++;
        n++;
    }
    return n;
}

/* One after the other, with all rows that there were. */
static void
shows_steps(const char *body)
{
    double at = 0, rows = 0, decode = 0;
    int n = 0;

    ck_assert_msg(strstr(body, "\"args\":{\"name\":\"fake\"}"), "%s", body);
    for (; (body = strstr(body, "\"name\":\"step\"")); body++, n++) {
        double ts = strtod(strstr(body, "\"ts\":") + 5, NULL);
        double dur = strtod(strstr(body, "\"dur\":") + 6, NULL);

        ck_assert_msg(ts >= at && dur >= 0, "%g after %g", ts, at);
        at = ts + dur;
        rows += strtod(strstr(body, "\"rows\":") + 7, NULL);
        decode += strtod(strstr(body, "\"decode\":") + 9, NULL);
    }
    ck_assert_int_ge(n, 4);
    ck_assert(decode >= 3 && rows > decode);
}

TEST(a_request_has_a_timeline)
{
    sk k;
    sk_answer a;
    char *id;

    sk_open(&k, &(sk_config){0});
    a = sk_ask(&k, "POST /v1/chat/completions", "", ASK);
    id = sk_between(a.body, "\"id\":\"", "\"");
    a = sk_ask(&k, t_printf("GET /v1/requests/%s/trace", id), "", NULL);
    ck_assert_msg(a.status == 200 && count(a.body, "\"name\":\"token\"") == 3 &&
                      count(a.body, "\"name\":\"request\"") == 1 &&
                      count(a.body, "\"name\":\"decode\",\"ph\":\"X\"") == 1 &&
                      strstr(a.body, "\"end\":\"length\"") &&
                      strstr(a.body, "\"marks_left_out\":0}") &&
                      strstr(a.body, "\"completion_tokens\":3"),
                  "%s", a.body);
    /* no token before the prompt was read */
    ck_assert(
        strtod(sk_between(strstr(a.body, "\"name\":\"token\""), "\"ts\":", ","),
               NULL) >=
        strtod(
            sk_between(strstr(a.body, "\"name\":\"prefill\""), "\"ts\":", ","),
            NULL));
    (void)sk_ask(&k, "POST /v1/completions", "",
                 "{\"prompt\":\"Hi\",\"n\":2,\"max_tokens\":2}");
    a = sk_ask(&k, "GET /trace", "", NULL);
    ck_assert_int_eq(count(a.body, "\"name\":\"request\""), 3);
    ck_assert_int_eq(count(a.body, "\"name\":\"token\""), 7);
    shows_steps(a.body);
    a = sk_ask(&k, "GET /v1/requests/chatcmpl-0/trace", "", NULL);
    ck_assert_int_eq(a.status, 404);
    sk_close(&k);
}

/* One that is over: of so many tokens, and it lost its slot once before them. */
static void
keep_timeline(br_http *h, uint32_t n_tokens)
{
    br_timeline t = {.begun_ns = 1};

    ck_assert_int_eq(br_timeline_mark(&t, true), 0);
    for (uint32_t i = 0; i < n_tokens; i++) {
        (void)br_timeline_mark(&t, false);
        ck_assert_int_le(t.mark.cap, BR_TIMELINE_MARKS);
        ck_assert_int_eq(t.mark.n + t.left_out, i + 2);
        ck_assert_int_eq(t.mark.at[0] & 1, 1); /* whatever goes, this stays */
    }
    br_timeline_keep(h, &t);
    ck_assert(!t.begun_ns && !t.mark.at); /* not to be drawn twice */
}

/* What the requests of a day leave is as much as those of a minute. */
TEST(timelines_have_a_size_of_their_own)
{
    br_http *h = br_try_calloc(1, sizeof *h);
    const br_timeline *t = h->timeline;
    uint64_t first;

    keep_timeline(h, 100);
    ck_assert_int_eq(br_timeline_kept(h, t, &first), 101);
    keep_timeline(h, 5000); /* each eighth */
    ck_assert_int_eq(t[1].thin, 3);
    ck_assert_int_eq(br_timeline_kept(h, t + 1, &first), 1 + 5000 / 8);
    ck_assert_int_eq(t[1].left_out, 5000 - 5000 / 8);
    while (h->n_marks + BR_TIMELINE_MARKS < BR_TIMELINE_RING)
        keep_timeline(h, BR_TIMELINE_MARKS - 1);
    keep_timeline(h, (uint32_t)(BR_TIMELINE_RING - h->n_marks) + 2);
    ck_assert_int_eq(br_timeline_kept(h, t, &first), 98);
    keep_timeline(h, 199);
    ck_assert_int_eq(br_timeline_kept(h, t, &first), 0);
    ck_assert_int_eq(br_timeline_kept(h, t + 1, &first), 727 - 203);
    ck_assert_int_eq(first, 203); /* its last ones */
    br_free(h);
}

TEST(a_tenant_sees_its_own_timelines)
{
    admin s;
    sk_answer a;
    char *one, *two, *id;

    open_admin(&s);
    one = bearer(
        sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"a\"}").body);
    two = bearer(
        sk_ask(&s.k, "POST /v1/tenants", ADMIN, "{\"name\":\"b\"}").body);
    a = sk_ask(&s.k, "POST /v1/chat/completions", one, ASK);
    id = sk_between(a.body, "\"id\":\"", "\"");
    id = t_printf("GET /v1/requests/%s/trace", id);
    ck_assert_int_eq(sk_ask(&s.k, id, one, NULL).status, 200);
    ck_assert_int_eq(sk_ask(&s.k, id, two, NULL).status, 404);
    ck_assert_int_eq(sk_ask(&s.k, id, ADMIN, NULL).status, 200);
    ck_assert_int_eq(sk_ask(&s.k, id, "", NULL).status, 401);
    a = sk_ask(&s.k, "GET /trace", two, NULL);
    ck_assert_int_eq(count(a.body, "\"name\""), 0);
    a = sk_ask(&s.k, "GET /trace", ADMIN, NULL);
    ck_assert_int_eq(count(a.body, "\"name\":\"request\""), 1);
    ck_assert_int_ge(count(a.body, "\"name\":\"step\""), 3);
    close_admin(&s);
}

/* ---- the dashboard ------------------------------------------------------ */

static int
check_exprs(const br_json *v, const char *metrics)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    int n = 0;

    if (v->kind == BR_J_STR && v->key && strcmp(v->key, "expr") == 0)
        for (const char *at = v->s; (at = strstr(at, "brass_")); n++) {
            size_t k = strspn(at, letters);

            ck_assert_msg(strstr(metrics, t_printf("\n%.*s{", (int)k, at)) ||
                              strstr(metrics, t_printf("\n%.*s ", (int)k, at)),
                          "no %.*s in /metrics", (int)k, at);
            at += k;
        }
    for (const br_json *m =
             v->kind == BR_J_OBJ || v->kind == BR_J_ARR ? v->child : NULL;
         m; m = m->next)
        n += check_exprs(m, metrics);
    return n;
}

TEST(the_dashboard_asks_for_metrics_that_are_there)
{
    size_t n;
    char *text = t_read(t_repo("docs/grafana.json"), &n), *metrics;
    br_status st = {0};
    br_json *tree;
    br_arena a;
    sk k;

    sk_open(&k, &(sk_config){0});
    (void)sk_ask(&k, "POST /v1/chat/completions", "", ASK);
    metrics = sk_ask(&k, "GET /metrics", "", NULL).body;
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&tree, &a, text, n, 0, &st), &st);
    ck_assert_int_ge(check_exprs(tree, metrics), 25);
    ck_assert_ptr_nonnull(
        strstr(metrics, "vllm:request_success_total{model_name=\"fake\","
                        "finished_reason=\"length\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(metrics, "vllm:request_generation_tokens_sum{model_name=\"fake\""
                        "} 3\n"));
    ck_assert_ptr_nonnull(strstr(
        metrics, "brass_request_params_max_tokens_bucket{model_name=\"fake\","
                 "le=\"2\"} 0\n"));
    br_arena_fini(&a);
    sk_close(&k);
}
