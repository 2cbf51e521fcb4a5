/* test_http_slow.c - who does not fetch an answer, or looks as if he had left, keeps
 * no slot from others, and who has asked in time is not late because the server was.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static br_engine_stats
stats(const sk *k)
{
    br_engine_stats s;

    br_engine_stats_get(k->ek.e, &s);
    return s;
}

/* 16 MB of a stream, more than any socket's buffers: nobody fetches it yet. */
static int
ask_and_sleep(const sk *k, int n_choices)
{
    const char *body =
        t_printf("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                 "\"temperature\":0,\"max_tokens\":%d,\"n\":%d,\"stream\":true,"
                 "\"logprobs\":true,\"top_logprobs\":20,\"ignore_eos\":true}",
                 8000 / BR_MIN(n_choices, 2), n_choices);
    const char *post =
        t_printf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 strlen(body), body);
    int fd = sk_connect(k);

    sk_send(fd, post, strlen(post));
    while (stats(k).n_held < 2 && stats(k).n_held < (uint32_t)n_choices)
        br_sleep_ns(MS);
    return fd;
}

static void
get_all(const sk *k, int n_choices)
{
    const char *end = "\"finish_reason\":\"length\"";
    int fd = ask_and_sleep(k, n_choices), n = 0;
    sk_answer a =
        sk_ask(k, "POST /v1/chat/completions", "",
               "{\"messages\":[{\"role\":\"user\",\"content\":\"A\"}],"
               "\"max_tokens\":50}");

    ck_assert_int_eq(a.status, 200);
    a = sk_read(fd, true); /* all of it, though it had no slot meanwhile */
    ck_assert_ptr_null(strstr(a.body, "client_too_slow"));
    ck_assert_ptr_nonnull(strstr(a.body, "data: [DONE]\n\n"));
    for (const char *at = a.body; (at = strstr(at, end)); at++)
        n++;
    ck_assert_int_eq(n, n_choices);
    ck_assert_uint_ge(stats(k).n_parked, 1);
    ck_assert_uint_eq(stats(k).n_preempted, 0);
    a = sk_ask(k, "GET /metrics", "", NULL);
    ck_assert_ptr_nonnull(
        strstr(a.body, "\nbrass_preemptions_total{model_name=\"fake\"} 0\n"));
    ck_assert_ptr_null(
        strstr(a.body, "\nbrass_parked_total{model_name=\"fake\"} 0\n"));
    close(fd);
}

TEST(http_gives_the_slot_of_a_slow_client_to_who_waits)
{
    br_http_config c = br_http_config_default();
    sk k;

    c.port = 0;
    for (int n = 1; n <= 6; n += 5) { /* with 6, four wait beside the two */
        sk_open(&k,
                &(sk_config){
                    .http = c,
                    .fake = {.n_ctx = 16384, .n_slots = n > 1 ? 2 : 1},
                    .engine = {.hold_ns = 600000 * MS, .park_ns = 50 * MS}});
        get_all(&k, n);
        sk_close(&k);
    }
}

/* ---- a client that has closed its side ------------------------------------ */

/* All that comes back until the server closes, kept. */
static char *
ask_and_close_a_side(const sk *k, const char *path, const char *body)
{
    const char *post = t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: %zu\r\n\r\n%s",
                                path, strlen(body), body);
    int fd = sk_connect(k);
    br_str got = {0};
    char buf[4096], *kept;
    ssize_t n;

    sk_send(fd, post, strlen(post));
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
        br_str_put(&got, buf, (size_t)n);
    ck_assert_int_eq(n, 0);
    close(fd);
    kept = t_printf("%s", br_str_z(&got));
    br_str_fini(&got);
    return kept;
}

/* A client that has left looks the same: nothing is made for nobody. */
TEST(http_who_closes_his_side_before_the_answer_has_left)
{
    static const char ask[] = "{\"prompt\":\"Hi\",\"ignore_eos\":true,"
                              "\"max_tokens\":900,\"stream\":%s}";
    char *got;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 100 * MS}});
    got = ask_and_close_a_side(&k, "/v1/completions", t_printf(ask, "false"));
    ck_assert_msg(strncmp(got, "HTTP/1.1 499 ", 13) == 0 &&
                      strstr(got, "the client closed its side"),
                  "%s", got);
    got = ask_and_close_a_side(&k, "/v1/completions", t_printf(ask, "true"));
    ck_assert_ptr_null(strstr(got, "[DONE]"));
    while (stats(&k).n_cancelled < 2)
        br_sleep_ns(MS);
    got = ask_and_close_a_side(&k, "/tokenize", "{\"prompt\":\"Hi\"}");
    ck_assert_msg(strncmp(got, "HTTP/1.1 200 ", 13) == 0, "%s", got);
    sk_close(&k);
}

/* ---- a server that was away ---------------------------------------------- */

typedef struct away {
    atomic_bool began, ends;
    int64_t began_ns;
} away;

/* In the loop's thread. */
static void
be_away(void *ctx, void (*name)(void *to, const char *name, const char *why),
        void *to)
{
    away *w = ctx;

    (void)name, (void)to;
    w->began_ns = br_now_ns();
    atomic_store(&w->began, true);
    while (!atomic_load(&w->ends))
        br_sleep_ns(MS);
}

static void
get(int fd, const char *path)
{
    const char *z =
        t_printf("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);

    sk_send(fd, z, strlen(z));
}

/* As long as a connection may be idle: what it asked meanwhile is answered. False:
 * it may have been idle for too long before. */
static bool
asks_one_who_is_away(const sk *k, away *w, int64_t idle_ns)
{
    int fd = sk_connect(k), other = sk_connect(k);
    int64_t asked_ns = br_now_ns(), idle_until;
    bool in_time;

    get(fd, "/health");
    ck_assert_int_eq(sk_read(fd, true).status, 200);
    idle_until = br_now_ns() + idle_ns;
    atomic_store(&w->began, false);
    atomic_store(&w->ends, false);
    get(other, "/v1/models");
    while (!atomic_load(&w->began))
        br_sleep_ns(MS);
    in_time = w->began_ns < asked_ns + idle_ns / 2;
    get(fd, "/health");
    while (in_time && br_now_ns() <= idle_until)
        br_sleep_ns(10 * MS);
    atomic_store(&w->ends, true);
    ck_assert_int_eq(sk_read(other, true).status, 200);
    if (in_time)
        ck_assert_int_eq(sk_read(fd, true).status, 200);
    close(fd);
    close(other);
    return in_time;
}

TEST(http_who_asked_in_time_is_not_late_because_the_server_was)
{
    br_http_config c = br_http_config_default();
    away w = {0};
    sk k;

    c.port = 0;
    c.limits.head_ns = 600000 * MS;
    c.limits.idle_ns = 3000 * MS;
    c.listed = be_away;
    c.ctx = &w;
    sk_open(&k, &(sk_config){.http = c});
    while (!asks_one_who_is_away(&k, &w, c.limits.idle_ns))
        ;
    sk_close(&k);
}
