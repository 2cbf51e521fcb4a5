/* test_http_wait.c - requests for a model that is not there wait until it is, or
 * are told why it does not come.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static const char path[] = "/v1/chat/completions";

typedef struct resting {
    atomic_bool left;
    atomic_int asked; /* so often the model was wanted */
} resting;

static void
on_rest(void *ctx, const br_http_model *m)
{
    (void)m;
    atomic_store(&((resting *)ctx)->left, true);
}

static bool
on_wanted(void *ctx, const char *name, char *comes, size_t n)
{
    resting *r = ctx;

    if (name && strcmp(name, "fake") != 0)
        return false;
    (void)snprintf(comes, n, "fake");
    atomic_fetch_add(&r->asked, 1);
    return true;
}

static void
on_listed(void *ctx, void (*name)(void *to, const char *name, const char *why),
          void *to)
{
    (void)ctx;
    name(to, "fake", NULL);
    name(to, "fake", NULL); /* while one leaves another may come */
}

static char *
chat(int max_tokens, bool stream)
{
    return t_printf("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                    "\"temperature\":0,\"max_tokens\":%d,\"stream\":%s}",
                    max_tokens, stream ? "true" : "false");
}

/* A connection on which this was asked. */
static int
begin(const sk *k, const char *where, const char *more, const char *body)
{
    const char *text = t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                "%sContent-Length: %zu\r\n\r\n%s",
                                where, more, strlen(body), body);
    int fd = sk_connect(k);

    sk_send(fd, text, strlen(text));
    return fd;
}

static void
await(atomic_int *n, int least)
{
    int64_t end = br_now_ns() + 60000 * MS;

    while (atomic_load(n) < least) {
        ck_assert_msg(br_now_ns() < end, "%d of %d", atomic_load(n), least);
        br_sleep_ns(MS);
    }
}

/* A server whose model has left, and leaves no more when time goes by; of: NULL, as
 * one is where nobody says. */
static void
open_resting(sk *k, resting *r, const br_http_config *of)
{
    br_http_config c = of ? *of : br_http_config_default();

    *r = (resting){0};
    c.port = 0;
    c.left = on_rest;
    c.wanted = on_wanted;
    c.listed = on_listed;
    c.ctx = r;
    sk_open(k, &(sk_config){.http = c});
    br_http_leave_oldest(k->http);
    while (!atomic_load(&r->left))
        br_sleep_ns(MS);
    atomic_store(&r->left, false);
    ck_assert_int_eq(atomic_load(&r->asked), 0);
}

/* So many wait, as the server's figures have it; a client is gone, or has its place,
 * a moment later. */
static void
check_awaiting(const sk *k, int n)
{
    const char *state = t_printf(",\"awaiting\":%d,", n);
    const char *metric =
        t_printf("\n# TYPE brass_requests_awaiting_model gauge\n"
                 "brass_requests_awaiting_model{model_name=\"fake\"} %d\n",
                 n);
    int64_t by = br_now_ns() + 30000 * MS;
    sk_answer a = sk_ask(k, "GET /state", "", NULL);

    for (; !strstr(a.body, state); a = sk_ask(k, "GET /state", "", NULL)) {
        ck_assert_msg(br_now_ns() < by, "no %s in %s", state, a.body);
        br_sleep_ns(MS);
    }
    a = sk_ask(k, "GET /metrics", "", NULL);
    ck_assert_msg(strstr(a.body, metric), "no %s in %s", metric, a.body);
}

static sk_answer
end(int fd)
{
    sk_answer a = sk_read(fd, true);

    close(fd);
    return a;
}

TEST(http_a_model_that_nobody_asks_leaves_but_not_in_an_answer)
{
    br_http_config c = br_http_config_default();
    static resting r;
    sk_answer a;
    sk k;

    c.port = 0;
    c.idle_ns = 1000 * MS; /* and the answer takes 2.4 s */
    c.left = on_rest;
    c.wanted = on_wanted;
    c.ctx = &r;
    sk_open(&k, &(sk_config){.http = c, .fake = {.step_ns = 20 * MS}});
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(120, false));
    ck_assert_msg(strstr(a.body, "\"completion_tokens\":120"), "%s", a.body);
    for (int64_t by = br_now_ns() + 30000 * MS; !atomic_load(&r.left);) {
        ck_assert_msg(br_now_ns() < by, "looking at it makes it stay");
        (void)sk_ask(&k, "GET /v1/models/fake", "", NULL);
        (void)sk_ask(&k, "GET /state?model=fake", "", NULL);
        br_sleep_ns(MS);
    }
    a = sk_ask(&k, "GET /health", "", NULL);
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_eq(a.body, "{\"status\":\"idle\"}");
    a = sk_ask(&k, "GET /state", "", NULL);
    ck_assert_msg(strstr(a.body, "\"comes\":true") &&
                      !strstr(a.body, "\"model\""),
                  "%s", a.body);
    a = sk_ask(&k, "GET /slots", "", NULL); /* to look is not to ask */
    ck_assert(a.status == 503 && strstr(a.body, "no model is loaded"));
    a = sk_ask(&k, "POST /v1/completions", "", "{\"prompt\":1.5}");
    ck_assert_int_eq(a.status, 400); /* nor is what cannot be answered */
    ck_assert_int_eq(atomic_load(&r.asked), 0);
    sk_close(&k);
}

TEST(http_who_asks_for_a_model_that_rests_waits_for_it)
{
    static resting r;
    sk_answer a;
    int fd[4];
    sk k;

    open_resting(&k, &r, NULL);
    fd[0] = begin(&k, path, "", chat(2, false));
    await(&r.asked, 1);
    fd[1] = begin(&k, path, "", chat(3, true));
    await(&r.asked, 2);
    fd[2] =
        begin(&k, "/tokenize", "", "{\"prompt\":\"Hi\",\"model\":\"fake\"}");
    fd[3] = begin(&k, "/detokenize", "", "{\"tokens\":[1]}");
    await(&r.asked, 4);
    check_awaiting(&k, 4);
    sk_ready(&k);
    a = end(fd[0]);
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"completion_tokens\":2"),
                  "%s", a.body);
    a = end(fd[1]);
    ck_assert_msg(a.status == 200 && strstr(a.body, "[DONE]"), "%s", a.body);
    a = end(fd[2]);
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"tokens\":["), "%s",
                  a.body);
    ck_assert_int_eq(end(fd[3]).status, 200);
    check_awaiting(&k, 0);
    a = sk_ask(&k, "GET /state", "", NULL);
    ck_assert_msg(!strstr(a.body, "comes") && strstr(a.body, "\"model\":"),
                  "%s", a.body);
    sk_close(&k);
}

/* It is there at once, and has to make room for another one before anybody could
 * ask it. */
static bool
come_and_leave(void *ctx, const char *name, char *comes, size_t n)
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
    br_http_leave_oldest(k->http);
    return true;
}

/* --memory: the only one that is there is told to leave for another one. It has an
 * answer to end first, and then there is none for a moment. */
TEST(http_who_asks_while_one_model_makes_room_for_another_waits)
{
    br_http_config c = br_http_config_default();
    static resting r;
    sk_answer a;
    int fd[3];
    sk k;

    c.port = 0;
    c.left = on_rest;
    c.wanted = on_wanted;
    c.ctx = &r;
    sk_open(&k, &(sk_config){.http = c, .fake = {.step_ns = 10 * MS}});
    fd[0] = begin(&k, path, "", chat(30, false));
    while (!strstr(sk_ask(&k, "GET /state", "", NULL).body, "\"decode\""))
        br_sleep_ns(MS);
    br_http_leave_oldest(k.http);
    fd[1] = begin(&k, path, "", chat(2, false));
    await(&r.asked, 1);
    ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    a = end(fd[0]);
    ck_assert_msg(strstr(a.body, "\"completion_tokens\":30"), "%s", a.body);
    while (!atomic_load(&r.left))
        br_sleep_ns(MS);
    fd[2] = begin(&k, "/tokenize", "", "{\"prompt\":\"Hi\"}");
    await(&r.asked, 2);
    ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    sk_ready(&k);
    a = end(fd[1]);
    ck_assert_msg(a.status == 200, "%s", a.body);
    ck_assert_int_eq(end(fd[2]).status, 200);
    sk_close(&k);
}

TEST(http_who_waits_for_a_model_that_is_to_leave_again_has_an_answer)
{
    br_http_config c = br_http_config_default();
    sk_answer a;
    sk k;

    c.port = 0;
    c.idle_ns = 100 * MS;
    c.wanted = come_and_leave;
    c.ctx = &k;
    sk_open(&k, &(sk_config){.http = c});
    while (!strstr(sk_ask(&k, "GET /health", "", NULL).body, "idle"))
        br_sleep_ns(MS);
    a = sk_ask(&k, "POST /v1/chat/completions", "X-Deadline-Ms: 5000\r\n",
               chat(2, false));
    ck_assert_msg(a.status == 200, "%s", a.body);
    sk_close(&k);
}

TEST(http_who_waits_for_a_model_is_told_why_it_does_not_come)
{
    const br_status none = {0};
    static resting r;
    br_status st = {0};
    sk_answer a;
    int fd;
    sk k;

    open_resting(&k, &r, NULL);
    fd = begin(&k, path, "", chat(2, false));
    await(&r.asked, 1);
    (void)br_fail(&st, BR_E_FORMAT, "x.gguf: no magic");
    br_http_failed(k.http, "another", &st);
    br_http_failed(k.http, "fake", &st);
    a = end(fd);
    ck_assert_msg(a.status == 500 &&
                      strstr(a.body, "model: 'fake' could not be loaded: "
                                     "x.gguf: no magic"),
                  "%s", a.body);
    fd = begin(&k, path, "", chat(2, false));
    await(&r.asked, 2);
    st = none;
    (void)br_fail(&st, BR_E_OOM, "out of memory");
    br_http_failed(k.http, "fake", &st);
    a = end(fd);
    ck_assert_msg(a.status == 503 && strstr(a.head, "Retry-After"), "%s",
                  a.body);
    /* Another one of its name is to come. */
    fd = begin(&k, path, "", chat(2, false));
    await(&r.asked, 3);
    br_http_failed(k.http, "fake", NULL);
    await(&r.asked, 4);
    sk_ready(&k);
    ck_assert_int_eq(end(fd).status, 200);
    sk_close(&k);
}

TEST(http_who_no_longer_waits_for_a_model_is_not_answered)
{
    static resting r;
    br_engine_stats s;
    sk_answer a;
    int fd[3];
    sk k;

    open_resting(&k, &r, NULL);
    for (int i = 0; i < 3; i++)
        fd[i] = begin(&k, path, i == 1 ? "X-Deadline-Ms: 1\r\n" : "",
                      chat(2, false));
    await(&r.asked, 3);
    close(fd[0]);
    a = end(fd[1]);
    ck_assert_msg(a.status == 504 && strstr(a.body, "deadline"), "%s", a.body);
    check_awaiting(&k, 1);
    sk_ready(&k);
    ck_assert_int_eq(end(fd[2]).status, 200);
    br_engine_stats_get(k.ek.e, &s);
    ck_assert_int_eq(s.n_done, 1);
    a = sk_ask(&k, "POST /v1/completions", "X-Deadline-Ms: 0\r\n",
               "{\"prompt\":\"Hi\"}");
    ck_assert_int_eq(a.status, 400);
    sk_close(&k);
}

TEST(http_so_many_wait_for_models_and_no_more)
{
    br_http_config c = br_http_config_default();
    static resting r;
    sk_answer a;
    int fd[3];
    sk k;

    ck_assert_int_eq(c.most_awaiting, 1024); /* docs/serve.md */
    c.most_awaiting = 3;
    open_resting(&k, &r, &c);
    for (int i = 0; i < 3; i++)
        fd[i] = begin(&k, path, "", chat(2 + i, false));
    check_awaiting(&k, 3);
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(2, true));
    ck_assert_msg(a.status == 503 && strstr(a.head, "Retry-After") &&
                      strstr(a.body, "the model is being loaded, and 3 "
                                     "requests are waiting already"),
                  "%s", a.body);
    close(fd[1]); /* there is room for one more */
    check_awaiting(&k, 2);
    fd[1] = begin(&k, path, "", chat(3, false));
    check_awaiting(&k, 3);
    sk_ready(&k);
    for (int i = 0; i < 3; i++) {
        a = end(fd[i]);
        ck_assert_msg(
            a.status == 200 &&
                strstr(a.body, t_printf("\"completion_tokens\":%d", 2 + i)),
            "%s", a.body);
    }
    sk_close(&k);
}

TEST(http_a_server_that_ends_sends_those_away_who_wait_for_a_model)
{
    static resting r;
    sk_answer a;
    int fd;
    sk k;

    open_resting(&k, &r, NULL);
    fd = begin(&k, path, "", chat(2, false));
    await(&r.asked, 1);
    br_http_stop(k.http);
    a = end(fd);
    ck_assert_msg(a.status == 503 && strstr(a.body, "shutting down"), "%s",
                  a.body);
    sk_close(&k);
}
