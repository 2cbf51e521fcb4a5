/* test_http_background.c - responses that are made while nobody waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/tstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static const char *
file(void)
{
    return t_printf("%s/talks.db", t_tmpdir());
}

static void
open_server(sk *k, int64_t step_ns, bool resumes)
{
    br_http_config c = br_http_config_default();

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.talks = (br_talks_config){.path = file(), .days = 30, .most = 100};
    if (resumes)
        c.resume = t_printf("%s/requests.json", t_tmpdir());
    sk_open(k, &(sk_config){.http = c, .fake = {.step_ns = step_ns}});
}

static sk_answer
respond(const sk *k, int tokens, const char *more)
{
    return sk_ask(k, "POST /v1/responses", "",
                  t_printf("{\"temperature\":0,\"input\":\"Hi\",\"max_output_"
                           "tokens\":%d%s}",
                           tokens, more));
}

#define BEHIND ",\"background\":true"

static char *
id_of(sk_answer a)
{
    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return sk_between(a.body, "\"id\":\"", "\"");
}

static const char *
status_of(sk_answer a)
{
    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return sk_between(a.body, "\"status\":\"", "\"");
}

static sk_answer
get(const sk *k, const char *id)
{
    return sk_ask(k, t_printf("GET /v1/responses/%s", id), "", NULL);
}

static sk_answer
cancel(const sk *k, const char *id)
{
    return sk_ask(k, t_printf("POST /v1/responses/%s/cancel", id), "", "{}");
}

static sk_answer
await_end(const sk *k, const char *id)
{
    sk_answer a = get(k, id);
    const char *is = status_of(a);

    for (; strcmp(is, "queued") == 0 || strcmp(is, "in_progress") == 0;
         is = status_of(a)) {
        br_sleep_ns(2 * MS);
        a = get(k, id);
    }
    return a;
}

static void
await_idle(const sk *k)
{
    br_engine_stats s;

    do {
        br_sleep_ns(MS);
        br_engine_stats_get(k->ek.e, &s);
    } while (s.n_running || s.n_queued);
}

static void
await_tokens(const sk *k, uint64_t n)
{
    br_engine_stats s;

    do {
        br_sleep_ns(MS);
        br_engine_stats_get(k->ek.e, &s);
    } while (s.out_tokens < n);
}

static char *
text_of(sk_answer a)
{
    return sk_between(a.body,
                      "\"type\":\"output_text\",\"text\":", ",\"annotations\"");
}

TEST(http_makes_responses_in_background)
{
    sk_answer a, b;
    char *id;
    sk k;

    open_server(&k, 5 * MS, false);
    b = respond(&k, 20, "");
    ck_assert_ptr_nonnull(strstr(b.body, "\"background\":false"));
    a = respond(&k, 1000, BEHIND); /* 5 s: it is not over when we look */
    id = id_of(a);
    ck_assert_str_eq(status_of(a), "queued");
    ck_assert_ptr_nonnull(strstr(a.body, "\"background\":true"));
    ck_assert_ptr_nonnull(strstr(a.body, "\"output\":[]"));
    while (strcmp(status_of(get(&k, id)), "queued") == 0)
        br_sleep_ns(MS);
    ck_assert_str_eq(status_of(get(&k, id)), "in_progress");
    a = sk_ask(
        &k, "POST /v1/responses", "",
        t_printf("{\"input\":\"x\",\"previous_response_id\":\"%s\"}", id));
    ck_assert_msg(a.status == 400 && strstr(a.body, "is not over yet"), "%s",
                  a.body);
    (void)cancel(&k, id);
    id = id_of(respond(&k, 20, BEHIND));
    a = await_end(&k, id);
    ck_assert_str_eq(status_of(a), "incomplete"); /* max_output_tokens */
    ck_assert_str_eq(text_of(a), text_of(b));
    a = cancel(&k, id); /* too late: it is as it is */
    ck_assert_str_eq(status_of(a), "incomplete");
    a = cancel(&k, id_of(b));
    ck_assert_msg(a.status == 400 && strstr(a.body, "in background"), "%s",
                  a.body);
    a = sk_ask(&k, "POST /v1/responses", "",
               t_printf("{\"input\":\"x\",\"max_output_tokens\":2,\"previous_"
                        "response_id\":\"%s\"}",
                        id));
    ck_assert_int_eq(a.status, 200);
    sk_close(&k);
}

TEST(http_cancels_and_deletes_what_is_in_background)
{
    sk_answer a;
    char *id[2];
    sk k;

    open_server(&k, 5 * MS, false);
    id[0] = id_of(respond(&k, 1000, BEHIND));
    id[1] = id_of(respond(&k, 1000, BEHIND));
    await_tokens(&k, 6);
    ck_assert_str_eq(status_of(cancel(&k, id[0])), "cancelled");
    ck_assert_str_eq(status_of(cancel(&k, id[0])), "cancelled");
    a = sk_ask(&k, t_printf("DELETE /v1/responses/%s", id[1]), "", NULL);
    ck_assert_msg(strstr(a.body, "\"deleted\":true"), "%s", a.body);
    ck_assert_int_eq(get(&k, id[1]).status, 404);
    await_idle(&k);
    br_sleep_ns(20 * MS);
    a = get(&k, id[0]);
    ck_assert_str_eq(status_of(a), "cancelled");
    ck_assert_ptr_nonnull(text_of(a));
    ck_assert_int_eq(get(&k, id[1]).status, 404);
    ck_assert_int_eq(cancel(&k, "resp_none").status, 404);
    sk_close(&k);
    open_server(&k, 0, false);
    ck_assert_str_eq(status_of(get(&k, id[0])), "cancelled");
    ck_assert_int_eq(get(&k, id[1]).status, 404);
    sk_close(&k);
}

/* Begins one and leaves when some of its text is there; its id. */
static char *
leave_a_stream(const sk *k, int tokens)
{
    const char *body =
        t_printf("{\"temperature\":0,\"input\":\"Hi\",\"stream\":true,"
                 "\"background\":true,\"max_output_tokens\":%d}",
                 tokens);
    const char *text = t_printf("POST /v1/responses HTTP/1.1\r\nHost: localhost"
                                "\r\nContent-Length: %zu\r\n\r\n%s",
                                strlen(body), body);
    char got[4096];
    size_t n = 0;
    int fd = sk_connect(k);

    sk_send(fd, text, strlen(text));
    do {
        ssize_t r = read(fd, got + n, sizeof got - 1 - n);

        ck_assert_int_gt(r, 0);
        n += (size_t)r;
        got[n] = 0;
    } while (!strstr(got, "output_text.delta") && n < sizeof got - 1);
    (void)close(fd);
    return sk_between(got, "\"response\":{\"id\":\"", "\"");
}

TEST(http_goes_on_in_background_when_a_stream_is_left)
{
    sk_answer a, b;
    char *id;
    sk k;

    open_server(&k, 5 * MS, false);
    b = respond(&k, 40, "");
    id = leave_a_stream(&k, 40);
    a = await_end(&k, id);
    ck_assert_str_eq(status_of(a), "incomplete");
    ck_assert_str_eq(text_of(a), text_of(b));
    sk_close(&k);
}

static sk_answer
stream(const sk *k, const char *id, const char *more)
{
    return sk_ask(k, t_printf("GET /v1/responses/%s?stream=true%s", id, more),
                  "", NULL);
}

/* Numbers from `first` on, one after the other, up to the end. */
static void
are_numbered(sk_answer a, int first)
{
    const char *at = a.body;
    int n = first;

    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    for (; (at = strstr(at, "\ndata: {\"type\":\"response.")); n++, at++) {
        const char *is = sk_between(at, "\"sequence_number\":", ",");

        ck_assert_msg(atoi(is) == n, "%s is not %d", is, n);
    }
    ck_assert_int_gt(n, first);
    ck_assert_ptr_nonnull(strstr(a.body, "event: response.incomplete\n"));
}

/* Who left comes back while it is made, others too, and after its end. */
TEST(http_streams_again_what_is_in_background)
{
    sk_answer all, rest, b;
    char *id;
    sk k;

    open_server(&k, 5 * MS, false);
    b = respond(&k, 60, "");
    id = leave_a_stream(&k, 60);
    rest = stream(&k, id, "&starting_after=5");
    are_numbered(rest, 6);
    all = stream(&k, id, "");
    are_numbered(all, 0);
    ck_assert_ptr_nonnull(strstr(all.body, "event: response.created\n"));
    ck_assert_ptr_nonnull(strstr(all.body, text_of(b)));
    ck_assert_str_eq(strstr(all.body, rest.body), rest.body);
    ck_assert_str_eq(stream(&k, id, "&starting_after=0").body,
                     strstr(all.body, "event: response.in_progress\n"));
    rest = stream(&k, id, "&starting_after=100000");
    ck_assert_int_eq(rest.status, 200);
    ck_assert_str_eq(rest.body, "");
    ck_assert_int_eq(stream(&k, id, "&starting_after=x").status, 400);
    ck_assert_int_eq(stream(&k, id, "&starting_after=-1").status, 400);
    ck_assert_int_eq(get(&k, t_printf("%s?stream=1", id)).status, 400);
    ck_assert_int_eq(get(&k, t_printf("%s?starting_after=1", id)).status, 400);
    ck_assert_str_eq(get(&k, t_printf("%s?stream=false", id)).body,
                     get(&k, id).body);
    ck_assert_int_eq(stream(&k, "resp_none", "").status, 404);
    b = sk_ask(&k, t_printf("DELETE /v1/responses/%s", id), "", NULL);
    ck_assert_int_eq(b.status, 200);
    ck_assert_int_eq(stream(&k, id, "").status, 404);
    sk_close(&k);
}

/* A follower is there when it is cancelled, and hears of it. */
TEST(http_ends_streams_of_what_is_cancelled)
{
    const char *ask;
    sk_answer a;
    char *id;
    sk k;
    int fd;

    open_server(&k, 5 * MS, false);
    id = leave_a_stream(&k, 1000);
    ask = t_printf("GET /v1/responses/%s?stream=true HTTP/1.1\r\nHost: "
                   "localhost\r\n\r\n",
                   id);
    fd = sk_connect(&k);
    sk_send(fd, ask, strlen(ask));
    ck_assert_str_eq(status_of(cancel(&k, id)), "cancelled");
    a = sk_read(fd, true);
    (void)close(fd);
    ck_assert_ptr_nonnull(strstr(a.body, "event: response.failed\n"));
    await_idle(&k);
    sk_close(&k);
}

TEST(http_refuses_background_where_nothing_is_kept)
{
    br_http_config c = br_http_config_default();
    sk_answer a;
    sk k;

    open_server(&k, 0, false);
    a = respond(&k, 2, BEHIND ",\"store\":false");
    ck_assert_msg(a.status == 400 && strstr(a.body, "is not stored"), "%s",
                  a.body);
    sk_close(&k);
    c.port = 0;
    sk_open(&k, &(sk_config){.http = c});
    a = respond(&k, 2, BEHIND);
    ck_assert_msg(a.status == 400 && strstr(a.body, "background: this server"),
                  "%s", a.body);
    sk_close(&k);
}

/* Of so many tokens an answer takes seconds at 10 ms a step: it is not over when a
 * restart breaks it off. The server that goes on with it takes less for a step. */
enum { LONG = 400 };

/* Broken off by a restart: without --keep it has failed, with it it goes on. */
TEST(http_background_over_a_restart)
{
    sk_answer a, b;
    char *id;
    sk k;

    open_server(&k, 0, false);
    b = respond(&k, LONG, "");
    sk_close(&k);
    for (int resumes = 0; resumes < 2; resumes++) {
        open_server(&k, 10 * MS, resumes);
        id = id_of(respond(&k, LONG, BEHIND ",\"store\":true"));
        await_tokens(&k, 10);
        br_http_stop(k.http);
        br_http_stop(k.http);
        br_thread_join(&k.thread);
        k.running = false;
        sk_close(&k);
        open_server(&k, 0, resumes);
        a = await_end(&k, id);
        ck_assert_str_eq(status_of(a), resumes ? "incomplete" : "failed");
        if (resumes)
            ck_assert_str_eq(text_of(a), text_of(b));
        else
            ck_assert_ptr_nonnull(
                strstr(a.body, "\"message\":\"the server is shutting down"));
        a = sk_ask(&k, t_printf("GET /v1/responses/%s/input_items", id), "",
                   NULL);
        ck_assert_msg(strstr(a.body, "\"text\":\"Hi\""), "%s", a.body);
        sk_close(&k);
    }
}

/* Nobody's in background: what is to be kept is, when it is over, and stands in its
 * conversation. */
TEST(http_keeps_responses_that_a_restart_broke_off)
{
    static const char path[] = "/v1/responses";
    const char *conv, *first, *id, *body[2];
    sk_answer a, b;
    int fd[2];
    sk k;

    open_server(&k, 10 * MS, true);
    first = id_of(respond(&k, 2, ""));
    conv = id_of(sk_ask(&k, "POST /v1/conversations", "", "{}"));
    body[0] =
        t_printf("{\"input\":\"Go\",\"temperature\":0,\"max_output_tokens\":"
                 "%d,\"stream\":true,\"previous_response_id\":\"%s\"}",
                 LONG, first);
    body[1] =
        t_printf("{\"input\":\"Go\",\"temperature\":0,\"max_output_tokens\":"
                 "%d,\"store\":false,\"conversation\":\"%s\"}",
                 LONG, conv);
    for (int i = 0; i < 2; i++) {
        const char *text = t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                    "Content-Length: %zu\r\n\r\n%s",
                                    path, strlen(body[i]), body[i]);

        fd[i] = sk_connect(&k);
        sk_send(fd[i], text, strlen(text));
    }
    await_tokens(&k, 20);
    for (int again = 0; again < 2; again++) {
        br_http_stop(k.http);
        br_http_stop(k.http);
        if (!again) {
            a = sk_read(fd[0], true);
            b = sk_read(fd[1], true);
            close(fd[0]);
            close(fd[1]);
        }
        br_thread_join(&k.thread);
        k.running = false;
        sk_close(&k);
        open_server(&k, again ? 0 : 10 * MS, true);
        if (!again)
            await_tokens(&k, 10);
    }
    id = sk_between(a.body, "GET /v1/requests/", " has it");
    do {
        br_sleep_ns(MS);
        a = sk_ask(&k, t_printf("GET /v1/requests/%s", id), "", NULL);
    } while (a.status == 202);
    ck_assert_msg(strstr(a.body, "\"store\":true") && strstr(a.body, first),
                  "%s", a.body);
    ck_assert_str_eq(get(&k, id).body, a.body);
    a = sk_ask(&k, t_printf("GET /v1/responses/%s/input_items", id), "", NULL);
    ck_assert_msg(strstr(a.body, "\"text\":\"Go\"") &&
                      !strstr(a.body, "\"text\":\"Hi\""),
                  "%s", a.body);
    id = sk_between(b.body, "GET /v1/requests/", " has it");
    do {
        br_sleep_ns(MS);
        b = sk_ask(&k, t_printf("GET /v1/requests/%s", id), "", NULL);
    } while (b.status == 202);
    ck_assert_int_eq(get(&k, id).status, 404);
    a = sk_ask(&k, t_printf("GET /v1/conversations/%s/items", conv), "", NULL);
    ck_assert_msg(strstr(a.body, "\"text\":\"Go\"") &&
                      strstr(a.body, text_of(b)),
                  "%s", a.body);
    sk_close(&k);
}

/* A stream that a restart broke off: told again it has the numbers it had, both
 * while it goes on and when it is over. */
TEST(http_streams_again_what_a_restart_broke_off)
{
    sk_answer all, rest;
    char *id;
    sk k;

    open_server(&k, 10 * MS, true);
    id = leave_a_stream(&k, LONG);
    await_tokens(&k, 20);
    br_http_stop(k.http);
    br_http_stop(k.http);
    br_thread_join(&k.thread);
    k.running = false;
    sk_close(&k);
    open_server(&k, MS, true);
    all = stream(&k, id, "");
    are_numbered(all, 0);
    rest = stream(&k, id, "&starting_after=9");
    are_numbered(rest, 10);
    ck_assert_str_eq(strstr(all.body, rest.body), rest.body);
    ck_assert_ptr_nonnull(strstr(all.body, text_of(respond(&k, LONG, ""))));
    /* those before the restart are single tokens, the rest is one piece */
    ck_assert_ptr_nonnull(
        strstr(all.body, "output_text.delta\",\"sequence_number\":20,"));
    sk_close(&k);
}

/* As another server has put it, which lives or has died. */
static void
put(const char *id, int64_t age_ms)
{
    const int64_t now = br_wall_ns() / 1000000;
    br_talks_config c = {.path = file(), .days = 30, .most = 100};
    br_turn_kept k = {
        .tenant = 0,
        .created_ms = now,
        .alive_ms = now - age_ms,
        .input = BR_TEXT("[]"),
        .output = BR_TEXT("[]"),
        .answer = br_text_z(t_printf("{\"id\":\"%s\",\"status\":\"queued\","
                                     "\"error\":null,\"background\":true}",
                                     id))};
    br_status st = {0};
    br_talks *t;

    t_ok(br_talks_open(&t, &c, &st), &st);
    strcpy(k.id, id);
    ck_assert(br_talks_put(t, &k));
    br_talks_close(t);
}

TEST(http_tells_of_responses_that_others_make)
{
    sk_answer a;
    sk k;

    open_server(&k, 0, false);
    put("resp_lives", 1000);
    put("resp_died", 100000);
    ck_assert_str_eq(status_of(get(&k, "resp_lives")), "queued");
    a = get(&k, "resp_died");
    ck_assert_str_eq(status_of(a), "failed");
    ck_assert_ptr_nonnull(
        strstr(a.body, "\"error\":{\"code\":\"server_error\""));
    ck_assert_str_eq(status_of(cancel(&k, "resp_lives")), "cancelled");
    ck_assert_str_eq(status_of(get(&k, "resp_lives")), "cancelled");
    sk_close(&k);
}

static bool
any_is_wanted(void *ctx, const char *name, char *comes, size_t n)
{
    (void)ctx;
    (void)snprintf(comes, n, "%s", name);
    return true;
}

/* A model that takes longer to come than a server is silent that has died. */
TEST(http_tells_of_responses_that_wait_for_their_model)
{
    const char *line =
        "{\"id\":\"resp_a\",\"path\":\"/v1/responses\",\"model\":\"large\","
        "\"tenant\":0,\"created\":1,\"seed_high\":1,\"seed_low\":2,"
        "\"choices\":[[]],\"body\":\"{}\"}\n";
    br_http_config c = br_http_config_default();
    int64_t by = br_now_ns() + 30000 * MS;
    sk k;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.talks = (br_talks_config){.path = file(), .days = 30, .most = 100};
    c.resume = t_printf("%s/requests.json", t_tmpdir());
    c.wanted = any_is_wanted;
    t_write(c.resume, line, strlen(line));
    put("resp_a", 100000);
    sk_open(&k, &(sk_config){.http = c});
    while (strcmp(status_of(get(&k, "resp_a")), "queued") != 0) {
        ck_assert_msg(br_now_ns() < by, "it has failed");
        br_sleep_ns(MS);
    }
    sk_close(&k);
}

/* Another server has the same file, and ends what this one makes. */
TEST(http_ends_what_others_cancel)
{
    sk_answer a;
    char *id;
    sk k[2];

    for (int drop = 0; drop < 2; drop++) {
        br_engine_stats s;

        open_server(&k[0], 20 * MS, false); /* 20 s, were it to go on */
        open_server(&k[1], 0, false);
        id = id_of(respond(&k[0], 1000, BEHIND));
        await_tokens(&k[0], 3);
        while (get(&k[1], id).status == 404)
            br_sleep_ns(MS);
        if (drop)
            a = sk_ask(&k[1], t_printf("DELETE /v1/responses/%s", id), "",
                       NULL);
        else
            a = cancel(&k[1], id);
        ck_assert_msg(a.status == 200, "%s", a.body);
        await_idle(&k[0]);
        br_engine_stats_get(k[0].ek.e, &s);
        ck_assert_uint_lt(s.out_tokens, 600);
        while (!drop && strcmp(status_of(get(&k[0], id)), "cancelled") != 0)
            br_sleep_ns(MS);
        while (drop && get(&k[0], id).status != 404)
            br_sleep_ns(MS);
        sk_close(&k[1]);
        sk_close(&k[0]);
    }
}
