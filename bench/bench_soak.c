/* bench_soak.c - a server is abused for some time and must be as it was.
 *
 *   bench_soak SECONDS [SEED]
 *
 * Clients of three tenants ask for long and short things, the same and others,
 * leave in the middle, read nothing for seconds, speak no HTTP, come with
 * deadlines and with prompts that break a step of the (fake) model, on fewer
 * pages than all want. Every token of every answer that comes is compared. At
 * the end nothing runs, waits or holds a page, the server still answers, and
 * its memory has not grown: the slope is that over the second half.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "kit.h"
#include "serve_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 400, AT_ONCE = 40, BAD_TOKEN = 2000 };
#define SECOND INT64_C(1000000000)

typedef struct soak {
    load l;
    load_server s;
    br_rng g;
    uint64_t asked, left, slow, junk, refused, whole;
} soak;

static void
on_over(load *l, stream *s)
{
    soak *k = l->ctx;
    bool whole = s->done && !s->failed && s->status == 200;

    k->whole += whole;
    k->refused += !whole;
}

static void
ask(soak *k)
{
    uint32_t dice = br_rng_below(&k->g, 100);
    load_ask a = {.tenant = br_rng_below(&k->g, 3),
                  .n_prompt = 1 + br_rng_below(&k->g, 300),
                  .n_out = 1 + br_rng_below(&k->g, 120),
                  .seed = br_rng_below(&k->g, 30),
                  .may_fail = true,
                  .slow = dice < 4,
                  .first = dice == 5 ? BAD_TOKEN : 0,
                  .more = dice == 6 ? "X-Deadline-Ms: 30\r\n" : NULL};

    if (a.slow)
        a.n_out = 1500;
    if (dice == 7)
        a.n_prompt = 3000; /* more than there is room for */
    k->asked++;
    k->slow += a.slow;
    (void)load_begin(&k->l, &a);
}

static void
leave(soak *k)
{
    stream *s = &k->l.s[br_rng_below(&k->g, AT_ONCE)];

    if (s->fd < 0 || (s->ask.slow && br_rng_below(&k->g, 8)))
        return; /* slow ones are there for seconds: the server tires of some */
    if (s->ask.slow && br_rng_below(&k->g, 2)) {
        s->ask.slow = false;
        load_wake(&k->l, s);
        return;
    }
    k->left++;
    load_hang_up(&k->l, s);
}

static void
talk_nonsense(soak *k)
{
    static const char *const heads[] = {
        "",
        "GET ",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
        "POST /v1/messages HTTP/1.1\r\nContent-Length: 2000\r\n\r\n{\"model",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"};
    const char *head = heads[br_rng_below(&k->g, BR_COUNT(heads))];
    char buf[600];
    size_t n = strlen(head), more = br_rng_below(&k->g, 300);

    memcpy(buf, head, n);
    for (size_t i = 0; i < more; i++)
        buf[n++] = (char)br_rng_below(&k->g, 256);
    (void)load_say(&k->s, buf, n);
    k->junk++;
}

static void
abuse(soak *k, int64_t ns)
{
    int64_t end = br_now_ns() + ns;

    while (br_now_ns() < end) {
        uint32_t dice = br_rng_below(&k->g, 100);

        if (dice < 70 && k->l.n_open < AT_ONCE)
            ask(k);
        else if (dice < 90)
            leave(k);
        else if (dice < 93)
            talk_nonsense(k);
        if (k->l.n_open)
            load_run(&k->l, 5000000);
    }
}

/* Of the line through the second half, in KB a minute. */
static double
slope(const double *rss, int n, double minutes)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    int from = n / 2, m = n - from;

    for (int i = from; i < n; i++) {
        x += i;
        y += rss[i];
        xx += (double)i * i;
        xy += i * rss[i];
    }
    return (m * xy - x * y) / (m * xx - x * x) * n / minutes;
}

static void
is_as_before(soak *k)
{
    static const char *const none[] = {"running", "queued", "pages_private"};
    double all = load_state(&k->s, "pages"), sum;
    load_ask a = {.n_prompt = 100, .n_out = 50, .seed = 1};

    for (int i = 0; i < LOAD_STREAMS; i++)
        if (k->l.s[i].fd >= 0 && k->l.s[i].ask.slow)
            load_hang_up(&k->l, &k->l.s[i]);
    load_run(&k->l, -1);
    (void)load_begin(&k->l, &a); /* and every token of it is right */
    load_run(&k->l, -1);
    br_sleep_ns(SECOND / 5);
    for (size_t i = 0; i < BR_COUNT(none); i++)
        if (load_state(&k->s, none[i]) != 0)
            load_die("%s: %g at the end", none[i], load_state(&k->s, none[i]));
    sum = load_state(&k->s, "pages_free") + load_state(&k->s, "pages_prefix");
    if (sum != all)
        load_die("%g pages of %g are left", sum, all);
}

static void
serve(soak *k)
{
    load_spec spec = {.fake = {.n_slots = 8,
                               .n_ctx = 2048,
                               .n_pages = 200,
                               .chunk = 128,
                               .step_ns = 1000000,
                               .row_ns = 10000,
                               .window = 64,
                               .fail_token = BAD_TOKEN},
                      .queue = 34,
                      .n_tenants = 3};

    for (int i = 0; i < 3; i++) {
        spec.quota[i] = br_quota_defaults();
        spec.quota[i].qos = (br_qos)i;
        spec.quota[i].max_slots = 6;
        spec.quota[i].max_queued = 12;
    }
    spec.quota[2].reserved_kv_pages = 20;
    load_serve(&k->s, &spec);
    load_init(&k->l, &k->s);
    k->l.ctx = k;
    k->l.over = on_over;
}

int
main(int argc, char **argv)
{
    static soak k;
    static double rss[SAMPLES];
    int64_t ns = (argc > 1 ? atoi(argv[1]) : 20) * SECOND;
    double grows;

    br_rng_init(&k.g, argc > 2 ? strtoull(argv[2], NULL, 10) : 1, 3);
    serve(&k);
    for (int i = 0; i < SAMPLES; i++) {
        abuse(&k, ns / SAMPLES);
        rss[i] = load_rss_kb(&k.s);
    }
    is_as_before(&k);
    grows = slope(rss, SAMPLES, (double)ns / 60e9);
    printf("%llu asks in %lld s: %llu answered in whole, %llu left, %llu "
           "slow, %llu refused or failed; %llu of no use; %llu tokens, all "
           "right; %g preempted; memory %.0f KB, %+.1f KB a minute\n",
           (unsigned long long)k.asked, (long long)(ns / SECOND),
           (unsigned long long)k.whole, (unsigned long long)k.left,
           (unsigned long long)k.slow, (unsigned long long)k.refused,
           (unsigned long long)k.junk, (unsigned long long)k.l.n_tokens,
           load_state(&k.s, "preempted"), rss[SAMPLES - 1], grows);
    load_fini(&k.l);
    load_end(&k.s);
    return 0;
}
