/* test_http_slow.c - who does not fetch an answer keeps no slot from others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <string.h>
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
