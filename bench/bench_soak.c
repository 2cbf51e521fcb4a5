/* bench_soak.c - a server is abused for some time and must be as it was.
 *
 *   bench_soak SECONDS [SEED]
 *
 * Clients of three tenants ask for long and short things, the same and others,
 * leave in the middle, read nothing for seconds, speak no HTTP, come with
 * deadlines and with prompts that break a step of the (fake) model, on fewer
 * pages than all want. Every token of every answer that comes is compared. At
 * the end nothing runs, waits or holds a page, the server still answers, and
 * its memory has not grown.
 *
 * Two things say so. Ten times clients pause until nothing runs: what is then
 * allocated and not freed is no more than it was half-way (what is kept for a
 * while, as the last requests, is full by then). And the line through what the
 * process has of memory in the second half is level within twice its standard
 * error, which is that of the line through ten means: neighbours in time are
 * alike, and fragments come and go. SQLite's cache of pages is left out of both:
 * it fills with 125 bytes of the log and the ledger for each request, up to 2 MB.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "kit.h"
#include "serve_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 400, RESTS = 10, AT_ONCE = 40, BAD_TOKEN = 2000 };
/* KB that a heap at rest may differ by: what threads have freed and malloc keeps
 * for them counts as allocated, 15 KB more in 900 s. Of 30,000 requests in the
 * second half of 1,800 s each may leave 2 bytes. */
enum { PLAY_KB = 64 };
/* Seconds; until then the allocator finds its places (arenas, pieces between):
 * 500 KB a minute of memory while what is allocated stays as it is. */
enum { LEAST = 600 };
#define SECOND INT64_C(1000000000)

typedef struct soak {
    load l;
    load_server s;
    br_rng g;
    uint64_t asked, left, slow, junk, refused, whole;
    double heap[RESTS], sqlite[RESTS]; /* KB at rest; without the other */
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

typedef struct line {
    double slope, error; /* of y for each step of x; twice its standard error */
} line;

static line
line_of(const double *y, int n)
{
    double mean_x = (n - 1) / 2.0, mean = 0, xx = 0, xy = 0, off = 0;
    line l;

    for (int i = 0; i < n; i++)
        mean += y[i] / n;
    for (int i = 0; i < n; i++) {
        xx += (i - mean_x) * (i - mean_x);
        xy += (i - mean_x) * (y[i] - mean);
    }
    l.slope = xy / xx;
    for (int i = 0; i < n; i++) {
        double d = y[i] - mean - l.slope * (i - mean_x);

        off += d * d;
    }
    l.error = 2 * sqrt(off / (n - 2) / xx);
    return l;
}

/* Of the second half of n samples, in KB a minute. */
static line
growth(const double *rss, int n, double minutes)
{
    enum { MEANS = 10 };
    double mean[MEANS] = {0};
    int each = n / 2 / MEANS;
    line l;

    for (int i = 0; i < MEANS * each; i++)
        mean[i / each] += rss[n - MEANS * each + i] / each;
    l = line_of(mean, MEANS);
    l.slope *= n / (each * minutes);
    l.error *= n / (each * minutes);
    return l;
}

/* Until nothing runs. */
static void
let_rest(soak *k)
{
    for (int i = 0; i < LOAD_STREAMS; i++)
        if (k->l.s[i].fd >= 0 && k->l.s[i].ask.slow)
            load_hang_up(&k->l, &k->l.s[i]);
    load_run(&k->l, -1);
    br_sleep_ns(SECOND / 4);
}

static void
rest(soak *k, int i)
{
    let_rest(k);
    k->heap[i] = load_heap_kb(&k->s, &k->sqlite[i]);
    k->heap[i] -= k->sqlite[i];
}

static void
is_as_before(soak *k)
{
    static const char *const none[] = {"running", "queued", "pages_private"};
    double all = load_state(&k->s, "pages"), sum;
    load_ask a = {.n_prompt = 100, .n_out = 50, .seed = 1};

    let_rest(k);
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
                      .heap = true,
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

/* The last against the least of those from half-way on. */
static bool
report_heap(const soak *k)
{
    double least = k->heap[RESTS / 2 - 1];
    bool level;

    for (int i = RESTS / 2; i < RESTS - 1; i++)
        least = BR_MIN(least, k->heap[i]);
    level = k->heap[RESTS - 1] - least <= PLAY_KB;
    printf("heap at rest, KB:");
    for (int i = 0; i < RESTS; i++)
        printf(" %.0f", k->heap[i]);
    printf(": %s, and SQLite's:", level ? "level" : "GROWS");
    for (int i = 0; i < RESTS; i++)
        printf(" %.0f", k->sqlite[i]);
    putchar('\n');
    return level;
}

static bool
report_rss(const double *rss, int64_t ns)
{
    line l = growth(rss, SAMPLES, (double)ns / 60e9);
    bool level = l.slope <= l.error, whole = ns >= LEAST * SECOND;

    printf("memory but SQLite's: %.0f KB, %+.1f KB a minute, +-%.1f: %s\n",
           rss[SAMPLES - 1], l.slope, l.error,
           level   ? "level"
           : whole ? "GROWS"
                   : "grows, as it does before it is used");
    return level || !whole;
}

int
main(int argc, char **argv)
{
    static soak k;
    static double rss[SAMPLES];
    double sqlite;
    int64_t ns = (argc > 1 ? atoi(argv[1]) : 20) * SECOND;
    bool level;

    br_rng_init(&k.g, argc > 2 ? strtoull(argv[2], NULL, 10) : 1, 3);
    serve(&k);
    for (int i = 0; i < SAMPLES; i++) {
        abuse(&k, ns / SAMPLES);
        (void)load_heap_kb(&k.s, &sqlite);
        rss[i] = load_rss_kb(&k.s) - sqlite;
        if ((i + 1) % (SAMPLES / RESTS) == 0) {
            rest(&k, i / (SAMPLES / RESTS));
        }
    }
    is_as_before(&k);
    printf("%llu asks in %lld s: %llu answered in whole, %llu left, %llu "
           "slow, %llu refused or failed; %llu of no use; %llu tokens, all "
           "right; %g preempted\n",
           (unsigned long long)k.asked, (long long)(ns / SECOND),
           (unsigned long long)k.whole, (unsigned long long)k.left,
           (unsigned long long)k.slow, (unsigned long long)k.refused,
           (unsigned long long)k.junk, (unsigned long long)k.l.n_tokens,
           load_state(&k.s, "preempted"));
    level = report_heap(&k);
    level &= report_rss(rss, ns);
    load_fini(&k.l);
    load_end(&k.s);
    return !level;
}
