/* test_cuda_stay_served.c - clients of a server beside a launch that stays on the
 * emulated CUDA device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"
#include "shape_kit.h"

#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

enum { LONG = 40 };

static double
metric(const sk *k, const char *name)
{
    const sk_answer a = sk_ask(k, "GET /metrics", "", NULL);
    const char *at = strstr(a.body, t_printf("\n%s{", name));

    ck_assert_msg(at != NULL, "%s", name);
    return strtod(strchr(at, '}') + 1, NULL);
}

static const char *
stream_of(const sk *k, const char *prompt, int n)
{
    const char *body =
        t_printf("{\"prompt\":\"%s\",\"max_tokens\":%d,\"temperature\":0,"
                 "\"ignore_eos\":true}",
                 prompt, n);
    const sk_answer a = sk_ask(k, "POST /v1/completions", "", body);

    ck_assert_msg(a.status == 200, "%s", a.body);
    return sk_between(a.body, "\"text\":\"", "\"finish_reason\"");
}

/* A client that goes away after the first bytes of its answer. */
static void
goes_away(const sk *k)
{
    static const char body[] = "{\"prompt\":\"w3\",\"max_tokens\":100,"
                               "\"stream\":true,\"ignore_eos\":true}";
    char ask[256], some[256];
    const int n = snprintf(ask, sizeof ask,
                           "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                           "Content-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           sizeof body - 1, body);
    const int fd = sk_connect(k);

    sk_send(fd, ask, (size_t)n);
    ck_assert_int_gt(read(fd, some, sizeof some), 0);
    close(fd);
}

static void
coming_and_going(void *arg)
{
    const sk *k = arg;

    for (int i = 0; i < 3; i++)
        goes_away(k);
}

TEST_WITHIN(cuda_a_server_stays_while_clients_come_and_go, 240)
{
    const br_lm_config c = {.tier = "cuda", .n_ctx = 128, .n_slots = 3};
    br_thread others;
    br_status st = {0};
    sk k;

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    sk_open(&k, &(sk_config){.tok = shape_words(), .engine = {.lm = on.lm}});
    const char *want = stream_of(&k, "w1 w7 w9", LONG);
    const double stayed = metric(&k, "brass_gpu_resident_steps_total");
    ck_assert(stayed >= LONG - 8);
    t_ok(br_thread_start(&others, "others", coming_and_going, &k, &st), &st);
    ck_assert_str_eq(stream_of(&k, "w1 w7 w9", LONG), want);
    br_thread_join(&others);
    ck_assert_str_eq(stream_of(&k, "w1 w7 w9", LONG), want);
    ck_assert(metric(&k, "brass_gpu_resident_steps_total") >=
              stayed + LONG - 8);
    ck_assert(metric(&k, "brass_gpu_resident_exits_total") > 0);
    ck_assert(metric(&k, "brass_gpu_resident_ahead_total") > LONG);
    sk_close(&k);
    close_shape(&on);
    t_emulate_end();
}
