/* test_http_slots.c - /props, /slots and /v1/rerank, as other servers have them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/books.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

TEST(props_say_what_clients_need)
{
    br_http_config c = br_http_config_default();
    sk_answer a;
    sk k;

    c.port = 0;
    c.sample.temperature = 0.5F;
    sk_open(&k, &(sk_config){.fake = {.n_ctx = 512, .n_slots = 3},
                             .http = c,
                             .template = "{{ \"<\" }}"});
    a = sk_ask(&k, "GET /props", "", NULL);
    ck_assert_int_eq(a.status, 200);
    ck_assert_msg(
        strstr(a.body, "{\"default_generation_settings\":{\"n_ctx\":512,"
                       "\"params\":{\"temperature\":0.5,\"top_k\":40,"
                       "\"top_p\":0.95,\"min_p\":0.05,") == a.body &&
            strstr(a.body, "\"total_slots\":3,\"model_alias\":\"fake\"") &&
            strstr(a.body, "\"modalities\":{\"vision\":false,") &&
            strstr(a.body, "\"chat_template\":\"{{ \\\"<\\\" }}\"") &&
            strstr(a.body, "\"bos_token\":\"") &&
            strstr(a.body, "\"eos_token\":\"<"),
        "%s", a.body);
    a = sk_ask(&k, "POST /props", "", "{}");
    ck_assert_int_eq(a.status, 405);
    sk_close(&k);
}

static void
on_listed(void *ctx, void (*name)(void *to, const char *name, const char *why),
          void *to)
{
    (void)ctx;
    name(to, "third", NULL);
}

/* As llama-server's router has it; one that is not loaded is not asked by a look. */
TEST(props_and_slots_are_of_the_model_that_is_named)
{
    br_http_config c = br_http_config_default();
    br_engine_config ec = {0};
    br_status st = {0};
    sk k;
    ek second;
    br_http_model m = {
        .name = "org/second", .tier = "fake", .n_ctx = 512, .owner = &second};
    static const struct {
        const char *ask;
        int status;
        const char *says;
    } rows[] = {
        {"GET /props", 200, "\"total_slots\":2,\"model_alias\":\"fake\""},
        {"GET /props?model=fake", 200, "\"model_alias\":\"fake\""},
        {"GET /props?model=org%2Fs%65cond", 200,
         "\"total_slots\":3,\"model_alias\":\"org/second\""},
        {"GET /props?model=fourth", 404, "'fourth' is not here"},
        {"GET /props?model=third", 503, "it is not loaded"},
        {"GET /slots?fail_on_no_slot=1&model=org/second", 200, "{\"id\":2,"},
        {"GET /slots?model=fake", 200, "{\"id\":1,\"n_ctx\":1024,"},
        {"GET /slots?model=fourth", 404, "'fourth' is not here"},
        {"GET /slots?model=third", 503, "it is not loaded"},
        /* clients that do not encode it: OpenAI's for Python */
        {"GET /v1/models/org/second", 200, "{\"id\":\"org/second\","},
        {"GET /v1/models/org%2Fsecond", 200, "{\"id\":\"org/second\","},
        {"GET /v1/models/org/fourth", 404, "'org/fourth' is not here"},
        {"GET /v1/models/org/second/x", 404, "no such path"},
    };

    c.port = 0;
    c.listed = on_listed;
    sk_open(&k, &(sk_config){.http = c, .fake = {.n_slots = 2}});
    ek_open(&second, (br_lm_fake_config){.n_slots = 3}, ec);
    m.engine = second.e;
    m.tok = second.tok;
    t_ok(br_http_ready(k.http, &m, &st), &st);
    while (!strstr(sk_ask(&k, "GET /v1/models", "", NULL).body, "second"))
        br_sleep_ns(MS);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a = sk_ask(&k, rows[i].ask, "", NULL);

        ck_assert_msg(a.status == rows[i].status &&
                          strstr(a.body, rows[i].says),
                      "%s: %d %s", rows[i].ask, a.status, a.body);
    }
    br_http_stop(k.http);
    br_thread_join(&k.thread);
    k.running = false;
    ek_close(&second);
    sk_close(&k);
}

/* ---- slots --------------------------------------------------------------- */

/* An answer that goes on until its connection is closed. */
static int
keep_busy(const sk *k, const char *more, const char *session)
{
    static const char body[] = "{\"prompt\":\"fox\",\"stream\":true,"
                               "\"max_tokens\":900,\"ignore_eos\":true}";
    const char *head =
        t_printf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                 "X-Session-Id: %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                 session, more, sizeof body - 1, body);
    int fd = sk_connect(k);
    char first[1];

    sk_send(fd, head, strlen(head));
    ck_assert_int_eq(read(fd, first, 1), 1);
    return fd;
}

static const char *
when_busy(const sk *k, const char *what, const char *more, const char *sign)
{
    for (;; br_sleep_ns(MS)) {
        sk_answer a = sk_ask(k, what, more, NULL);

        ck_assert_int_eq(a.status, 200);
        if (strstr(a.body, sign))
            return a.body;
    }
}

TEST(slots_as_llama_server_has_them)
{
    sk_answer a;
    sk k;
    int fd;

    sk_open(&k, &(sk_config){.fake = {.n_slots = 2, .step_ns = 10 * MS}});
    a = sk_ask(&k, "GET /slots?fail_on_no_slot=1", "", NULL);
    ck_assert_msg(
        a.status == 200 &&
            strcmp(a.body,
                   "[{\"id\":0,\"n_ctx\":1024,\"speculative\":false,"
                   "\"is_processing\":false},{\"id\":1,\"n_ctx\":1024,"
                   "\"speculative\":false,\"is_processing\":false}]") == 0,
        "%s", a.body);
    fd = keep_busy(&k, "", "a");
    (void)when_busy(&k, "GET /slots", "", "\"has_next_token\":true,\"n_dec");
    a = sk_ask(&k, "GET /slots?fail_on_no_slot=1", "", NULL);
    ck_assert_int_eq(a.status, 200);
    (void)close(fd);
    sk_close(&k);
    sk_open(&k, &(sk_config){.fake = {.n_slots = 1, .step_ns = 10 * MS}});
    fd = keep_busy(&k, "", "a");
    (void)when_busy(&k, "GET /slots", "", "\"is_processing\":true");
    a = sk_ask(&k, "GET /slots?fail_on_no_slot=1", "", NULL);
    ck_assert_msg(a.status == 503 && strstr(a.head, "Retry-After"), "%s",
                  a.body);
    (void)close(fd);
    sk_close(&k);
}

TEST(slots_of_other_tenants_are_not_told)
{
    br_http_config c = br_http_config_default();
    br_quota q = br_quota_defaults();
    char key[2][BR_KEY_CHARS];
    const char *bearer[2], *text;
    br_status st = {0};
    br_tstore *store;
    br_books *books;
    uint32_t id;
    bool lost;
    sk k;
    int fd;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.db = t_printf("%s/t.db", t_tmpdir());
    t_ok(br_tstore_open(&store, c.db, &st), &st);
    for (int i = 0; i < 2; i++) {
        t_ok(br_tstore_create(store, i ? "bo" : "al", &q, &id, key[i], &st),
             &st);
        bearer[i] = t_printf("Authorization: Bearer %s\r\n", key[i]);
    }
    br_tstore_close(store);
    sk_open(&k, &(sk_config){.fake = {.n_slots = 2, .step_ns = 10 * MS},
                             .http = c});
    t_ok(br_books_open(&books, c.db, NULL, &lost, &st), &st);
    t_ok(br_books_add(books, k.ek.e, "fake", NULL, &st), &st);
    fd = keep_busy(&k, bearer[0], "a");
    text = when_busy(&k, "GET /slots", bearer[0], "\"is_processing\":true");
    ck_assert_ptr_nonnull(strstr(text, "\"n_prompt_tokens\":"));
    text = when_busy(&k, "GET /slots", bearer[1], "\"is_processing\":true");
    ck_assert_msg(!strstr(text, "prompt") && !strstr(text, "n_decoded") &&
                      !strstr(text, "id_task"),
                  "%s", text);
    text = when_busy(&k, "GET /state", bearer[0], "\"state\":\"decode\"");
    ck_assert_ptr_nonnull(strstr(text, "\"decode\",\"tenant\":1,"));
    ck_assert_msg(strstr(text, "\"tenants\":[{\"id\":1,\"class\":\"standard\","
                               "\"running\":1,\"waiting\":0,\"pages\":") &&
                      strstr(text, "\"share\":{\"slots\":0.25,\"pages\":"),
                  "%s", text);
    text = when_busy(&k, "GET /state", bearer[1], "\"state\":\"decode\"");
    ck_assert_msg(strstr(text, "\"decode\",\"tenant\":0,\"session\":"
                               "\"0000000000000000\",\"prompt\":0,\"cached\":0,"
                               "\"out\":0,\"pages\":0") &&
                      strstr(text, "\"tenants\":[]"),
                  "%s", text);
    (void)close(fd);
    br_books_close(books);
    sk_close(&k);
}

/* ---- what a cache could tell ----------------------------------------------- */

typedef struct guess {
    uint64_t rows; /* of prompts that the engine read for it */
    int cached;
} guess;

/* Asks alone, so that all rows are its own. */
static guess
ask_alone(const sk *k, const char *key, const char *prompt)
{
    br_engine_stats before, after;
    sk_answer a;
    guess g;

    br_engine_stats_get(k->ek.e, &before);
    a = sk_ask(k, "POST /v1/completions", key,
               t_printf("{\"prompt\":\"%s\",\"max_tokens\":2}", prompt));
    ck_assert_msg(a.status == 200, "%s", a.body);
    do { /* as of the latest step */
        br_sleep_ns(MS);
        br_engine_stats_get(k->ek.e, &after);
    } while (after.n_running || after.n_done == before.n_done);
    g.rows = after.rows_prefill - before.rows_prefill;
    g.cached = atoi(strstr(a.body, "\"cached_tokens\":") + 16);
    return g;
}

static const char *
secret(int i)
{
    br_str s = {0};
    const char *kept;

    br_str_printf(&s, "%c%d", 'a' + i, i);
    for (int k = 0; k < 60; k++)
        br_str_printf(&s, " %d", 7 * k + i);
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

/* Time is what a guess would be told by, and time is rows read: whether another
 * tenant has asked the same just now makes no row of difference. */
TEST(a_guess_at_anothers_prompt_costs_what_it_always_does)
{
    enum { AL, BO, CY, DI, N, SECRETS = 6 };
    br_http_config c = br_http_config_default();
    const char *key[N];
    br_status st = {0};
    br_tstore *store;
    br_books *books;
    bool lost;
    sk k;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.db = t_printf("%s/t.db", t_tmpdir());
    t_ok(br_tstore_open(&store, c.db, &st), &st);
    for (int i = 0; i < N; i++) {
        br_quota q = br_quota_defaults();
        char text[BR_KEY_CHARS];
        uint32_t id;

        q.isolation_group = i >= CY ? 9 : 0; /* those two share */
        t_ok(br_tstore_create(store, t_printf("t%d", i), &q, &id, text, &st),
             &st);
        key[i] = t_printf("Authorization: Bearer %s\r\n", text);
    }
    br_tstore_close(store);
    sk_open(&k, &(sk_config){.http = c});
    t_ok(br_books_open(&books, c.db, NULL, &lost, &st), &st);
    t_ok(br_books_add(books, k.ek.e, "fake", NULL, &st), &st);
    for (int i = 0; i < SECRETS; i++) {
        guess first = ask_alone(&k, key[AL], secret(i));
        guess own = ask_alone(&k, key[AL], secret(i));
        guess other = ask_alone(&k, key[BO], secret(i));
        guess group = ask_alone(&k, key[CY], secret(i));
        guess shared = ask_alone(&k, key[DI], secret(i));

        ck_assert(first.cached == 0 && first.rows > 60);
        ck_assert(own.cached > 0 && own.rows < first.rows);
        ck_assert_int_eq(other.cached, 0);
        ck_assert_uint_eq(other.rows, first.rows);
        ck_assert_int_eq(group.cached, 0);
        ck_assert_uint_eq(group.rows, first.rows);
        ck_assert(shared.cached > 0 && shared.rows < first.rows);
    }
    br_books_close(books);
    sk_close(&k);
}

/* ---- rerank -------------------------------------------------------------- */

static double
number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    ck_assert_msg(at != NULL, "no %s in %s", key, text);
    return strtod(at + strlen(key), NULL);
}

/* What /v1/embeddings says is the truth of it. */
static double
cosine(const sk *k, const char *a, const char *b)
{
    sk_answer e = sk_ask(k, "POST /v1/embeddings", "",
                         t_printf("{\"input\":[\"%s\",\"%s\"]}", a, b));
    const char *at = strstr(e.body, "\"embedding\":["), *to;
    double x[256], sum = 0;
    size_t n = 0;

    ck_assert_int_eq(e.status, 200);
    for (at += 13; n < BR_COUNT(x) && *at != ']'; n++) {
        char *end;

        x[n] = strtod(at, &end);
        at = end + (*end == ',');
    }
    to = strstr(at, "\"embedding\":[") + 13;
    for (size_t i = 0; i < n; i++) {
        char *end;

        sum += x[i] * strtod(to, &end);
        to = end + 1;
    }
    return sum;
}

#define BODY                                                  \
    "{\"query\":\"fox\",\"documents\":[\"a tree\",{\"text\":" \
    "\"the quick fox\"},\"fox\"]"

TEST(documents_are_ranked)
{
    static const char *const docs[] = {"a tree", "the quick fox", "fox"};
    sk_answer a;
    double before = 2;
    const char *at;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.pooling = BR_POOLING_MEAN}});
    a = sk_ask(&k, "POST /v1/rerank", "", BODY "}");
    ck_assert_msg(a.status == 200 &&
                      strstr(a.body, "\"results\":[{\"index\":2,") &&
                      strstr(a.body, "\"model\":\"fake\"") &&
                      number_behind(a.body, "\"prompt_tokens\":") > 3,
                  "%s", a.body);
    at = a.body;
    for (int i = 0; i < 3; i++) {
        double index, score;

        at = strstr(at, "{\"index\":");
        ck_assert_msg(at != NULL, "%s", a.body);
        index = number_behind(at, "{\"index\":");
        score = number_behind(at, "\"relevance_score\":");
        ck_assert(score <= before);
        ck_assert_double_eq_tol(score, cosine(&k, docs[(int)index], "fox"),
                                1e-5);
        before = score;
        at++;
    }
    a = sk_ask(&k, "POST /rerank", "",
               BODY ",\"top_n\":1,\"return_documents\":true}");
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"text\":\"fox\"}}]") &&
                      !strstr(a.body, "tree"),
                  "%s", a.body);
    sk_close(&k);
}

/* Clients check that no score is above 1. */
TEST(what_is_asked_for_has_rank_1)
{
    static const char *const words[] = {"fox", "tree", "a quick fox", "brown",
                                        "x",   "12",   "the fox",     "jumps"};
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.pooling = BR_POOLING_MEAN}});
    for (size_t i = 0; i < BR_COUNT(words); i++) {
        a = sk_ask(&k, "POST /v1/rerank", "",
                   t_printf("{\"query\":\"%s\",\"documents\":[\"%s\"]}",
                            words[i], words[i]));
        ck_assert_msg(strstr(a.body, "\"relevance_score\":1}"), "%s", a.body);
    }
    sk_close(&k);
}

/* As clients of TEI ask and want to be answered. */
TEST(texts_are_ranked)
{
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.pooling = BR_POOLING_MEAN}});
    a = sk_ask(&k, "POST /rerank", "",
               "{\"query\":\"fox\",\"texts\":[\"a tree\",\"fox\"],"
               "\"raw_scores\":false,\"truncate\":false,\"return_text\":true}");
    ck_assert_msg(a.status == 200 &&
                      strncmp(a.body, "[{\"index\":1,\"score\":", 20) == 0 &&
                      strstr(a.body, ",\"text\":\"fox\"},{\"index\":0,") &&
                      strcmp(a.body + a.n_body - 2, "}]") == 0,
                  "%s", a.body);
    ck_assert_double_eq_tol(number_behind(a.body, "\"score\":"), 1, 1e-5);
    a = sk_ask(&k, "POST /rerank", "",
               "{\"query\":\"fox\",\"texts\":[\"a\",\"fox\"],\"top_n\":1}");
    ck_assert_msg(strstr(a.body, "}]") && !strstr(a.body, "text") &&
                      !strstr(a.body, "},{"),
                  "%s", a.body);
    sk_close(&k);
}

TEST(what_cannot_be_ranked)
{
    static const char *const rows[][2] = {
        {"{\"documents\":[\"a\"]}", "query: missing"},
        {"{\"query\":\"a\"}", "documents: missing or empty"},
        {"{\"query\":\"a\",\"documents\":[]}", "documents: missing or empty"},
        {"{\"query\":\"a\",\"documents\":[\"b\",7]}", "documents[1]: must be"},
        {"{\"query\":\"a\",\"documents\":[\"\"]}", "documents[0]: must be"},
        {"{\"query\":\"\",\"documents\":[\"b\"]}", "query: must be a text"},
        {"{\"query\":\"a\",\"documents\":[\"b\"],\"top_n\":0}", "top_n"},
        {"{\"query\":\"a\",\"texts\":[\"b\"],\"documents\":[\"c\"]}",
         "together"},
        {"{\"query\":\"a\",\"texts\":[\"b\"],\"truncate\":true}", "truncate"},
        {"{\"query\":\"a\",\"documents\":[\"b\"],\"rank_fields\":[]}",
         "does not know"},
    };
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.pooling = BR_POOLING_MEAN}});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = sk_ask(&k, "POST /v1/rerank", "", rows[i][0]);
        ck_assert_msg(a.status == 400 && strstr(a.body, rows[i][1]), "%s: %s",
                      rows[i][0], a.body);
    }
    sk_close(&k);
    sk_open(&k, &(sk_config){0}); /* makes no embeddings */
    a = sk_ask(&k, "POST /v1/rerank", "",
               "{\"query\":\"a\",\"documents\":[\"b\"]}");
    ck_assert_msg(a.status == 400 && strstr(a.body, "no embeddings"), "%s",
                  a.body);
    sk_close(&k);
}
