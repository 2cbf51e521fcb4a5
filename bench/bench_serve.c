/* bench_serve.c - what a server promises its tenants, measured by clients.
 *
 *   bench_serve [-m MODEL] [-T TIER] [-t SECONDS] [-l LOG] [fake] [file]
 *               [streams] [ttft] [gaps] [many] [stays]
 *
 * MODEL: a file, or shape:llama-3.2-1b:Q8_0; TIER: of all but fake (cpu). Without
 * a part: all but gaps, which is the beginning of file alone: what a large model
 * takes minutes for, and many: 64 streams at once, for a tier on a GPU, and
 * stays: what of a step of 1, 16, 64 streams is not the device's, of tier cuda. Fairness
 * is measured on a fake model whose steps take what they are told to (so that
 * what is seen is the scheduler's doing), and on a file, where neighbours on the
 * machine are seen as well.
 * Prints one line for each promise and ends with 1 when one is not kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "kit.h"
#include "serve_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAPS = 1 << 16 };
#define SECOND INT64_C(1000000000)

static const char *model = "models/demo.gguf";
static const char *tier;
static const char *log_to;  /* what /trace says at the end of gaps */
static int64_t seconds = 2; /* of a measurement */
static int missed;
static int64_t gaps[GAPS];
/* How long threads of ours waited in that gap for a processor that was none of
 * ours': clients and the server's thread displace who computes, too. */
static int64_t waits[GAPS];

static void
report(const char *on, const char *what, double v, const char *unit,
       double goal)
{
    bool ok = v <= goal;

    printf("%-5s %-58s %9.2f %-8s", on, what, v, unit);
    if (goal < 1e30)
        printf(" <= %-6g %s", goal, ok ? "ok" : "MISSED");
    putchar('\n');
    fflush(stdout);
    missed += !ok;
}

#define NO_GOAL 1e30

static br_quota
tenant(br_qos qos)
{
    br_quota q = br_quota_defaults();

    q.qos = qos;
    q.max_slots = q.max_queued = 1024;
    q.max_kv_pages = q.decode_tokens_per_s = q.prefill_tokens_per_s = 1 << 30;
    return q;
}

/* ---- streams that go on and on ------------------------------------------- */

/* Tenant i always has n[i] asks under way. */
typedef struct crowd {
    uint32_t n[LOAD_TENANTS];
    uint32_t prompt, out; /* most; half of it at least */
    uint64_t tokens[LOAD_TENANTS];
    stream *watched;
    uint32_t n_gaps;
    load_times *times; /* of each gap, where it is wanted */
    br_rng g;
} crowd;

static void
ask_again(load *l, crowd *c, uint32_t t)
{
    load_ask a = {.tenant = t,
                  .n_prompt =
                      c->prompt / 2 + br_rng_below(&c->g, c->prompt / 2),
                  .n_out = c->out / 2 + br_rng_below(&c->g, c->out / 2),
                  .seed = br_rng_u64(&c->g)};

    (void)load_begin(l, &a);
}

static void
on_over(load *l, stream *s)
{
    crowd *c = l->ctx;

    if (s == c->watched)
        c->watched = NULL;
    else if (c->n[s->ask.tenant])
        ask_again(l, c, s->ask.tenant);
}

static int64_t
waited_for_others(const load_times *t)
{
    return load_times_waited(t) - load_times_ran(t, "client") -
           load_times_ran(t, "http");
}

static void
on_token(load *l, stream *s, int64_t gap)
{
    crowd *c = l->ctx;

    int64_t before;

    c->tokens[s->ask.tenant]++;
    if (s != c->watched || !gap || c->n_gaps == GAPS)
        return;
    if (c->times) {
        before = waited_for_others(c->times);
        load_times_read(c->times);
        waits[c->n_gaps] = waited_for_others(c->times) - before;
    }
    gaps[c->n_gaps++] = gap;
}

static void
begin(load *l, const load_server *s, crowd *c)
{
    load_init(l, s);
    l->ctx = c;
    l->token = on_token;
    l->over = on_over;
    br_rng_init(&c->g, 1, 2);
    for (uint32_t t = 0; t < LOAD_TENANTS; t++)
        for (uint32_t i = 0; i < c->n[t]; i++)
            ask_again(l, c, t);
}

/* Forgets what was counted, and counts for a while. */
static void
count(load *l, crowd *c, int64_t ns)
{
    memset(c->tokens, 0, sizeof c->tokens);
    c->n_gaps = 0;
    load_run(l, ns);
}

/* The same, for as long as the watched stream goes on. */
static void
count_watched(load *l, crowd *c, int64_t ns)
{
    int64_t end = br_now_ns() + ns;

    count(l, c, 0);
    while (c->watched && br_now_ns() < end)
        load_run(l, 10000000);
}

/* ---- fairness ------------------------------------------------------------ */

typedef struct ground { /* a model to be fair on */
    const char *name;
    load_spec spec;
    uint32_t long_prompt;
} ground;

static void
serve(load_server *s, const ground *g, uint32_t n_slots, br_qos first,
      br_qos others)
{
    load_spec spec = g->spec;

    spec.n_slots = spec.fake.n_slots = n_slots;
    spec.queue = 1024;
    spec.n_tenants = 2;
    spec.quota[0] = tenant(first);
    spec.quota[1] = tenant(others);
    load_serve(s, &spec);
}

/* Of the times in v the 99th of a hundred and the median. */
static void
report_tail(const ground *g, const char *what, int64_t *v, uint32_t n)
{
    double p50 = kit_quantile_ms(v, n, 0.5);
    char text[80];

    snprintf(text, sizeof text, "  %s, median %.2f ms: p99 / median", what,
             p50);
    report(g->name, text, kit_quantile_ms(v, n, 0.99) / p50, "", NO_GOAL);
}

static double
number_in(const char *at, const char *key)
{
    const char *v = strstr(at, key);

    return v ? strtod(v + strlen(key), NULL) : 0;
}

static void
keep_log(br_str *http)
{
    const char *body = strstr(br_str_z(http), "\r\n\r\n");
    FILE *f = log_to && body ? fopen(log_to, "w") : NULL;

    if (log_to && (!f || fputs(body + 4, f) < 0 || fclose(f) != 0))
        load_die("%s: no log", log_to);
}

/* Where gaps come from, by what the server says of itself: how long its steps
 * took, from the beginning of one to that of the next (planning, drawing and
 * waking up with it), and when its loop had the tokens of the first tenant. */
static void
report_steps(const ground *g, const load_server *s)
{
    static int64_t step[GAPS], apart[GAPS], seen[GAPS];
    uint32_t n = 0, n_apart = 0, n_seen = 0;
    double before = 0, token = 0, first = 0;
    br_str got = {0};

    load_get(s, "/trace", LOAD_ADMIN, &got);
    keep_log(&got);
    for (const char *at = br_str_z(&got); (at = strstr(at, "{\"name\":\""));
         at++) {
        double ts = number_in(at, "\"ts\":");

        if (strncmp(at + 9, "step", 4) == 0 && n < GAPS) {
            if (ts < first || ts > token) /* tokens stand before steps */
                continue;
            step[n++] = (int64_t)(number_in(at, "\"dur\":") * 1e3);
            if (before > 0)
                apart[n_apart++] = (int64_t)((ts - before) * 1e3);
            before = ts;
        } else if (strncmp(at + 9, "token", 5) == 0 && n_seen < GAPS &&
                   number_in(at, "\"pid\":") == 1) {
            if (token > 0)
                seen[n_seen++] = (int64_t)((ts - token) * 1e3);
            else
                first = ts;
            token = ts;
        }
    }
    br_str_fini(&got);
    report_tail(g, "steps", step, n);
    report_tail(g, "from step to step", apart, n_apart);
    report_tail(g, "gaps as the server's thread sees them", seen, n_seen);
}

static int64_t no_stranger[GAPS];

/* Into no_stranger those in which none of us waited for strangers. */
static uint32_t
own_gaps(const crowd *c)
{
    const int64_t nobody = 50000; /* ns: of wake-ups */
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_gaps; i++)
        if (waits[i] < nobody)
            no_stranger[n++] = gaps[i];
    return n;
}

/* What is the machine's and what is ours: such gaps, and whose processor time a
 * gap is. */
static void
report_times(const ground *g, const crowd *c, const load_times *from)
{
    static const char *const names[] = {"client", "http", "engine",
                                        "brass-cpu"};
    double n = (double)c->n_gaps;
    uint32_t n_own = own_gaps(c);
    char what[80];

    snprintf(what, sizeof what, "  the %.0f %% of gaps that no stranger was in",
             100 * n_own / n);
    if (n_own)
        report_tail(g, what, no_stranger, n_own);
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        snprintf(what, sizeof what, "  a gap's processor time of: %s",
                 names[i]);
        report(g->name, what,
               (double)(load_times_ran(c->times, names[i]) -
                        load_times_ran(from, names[i])) *
                   1e-6 / n,
               "ms", NO_GOAL);
    }
}

/* others 0: what the machine itself does to the gaps. */
static void
one_among(const ground *g, uint32_t others)
{
    crowd c = {.n = {0, others}, .prompt = 64, .out = 64};
    char what[80];
    load_ask a = {.n_prompt = 32, .n_out = 1900, .seed = 1};
    load_times times, from;
    load_server s;
    load l;
    double p50;

    serve(&s, g, 16, BR_QOS_INTERACTIVE, BR_QOS_BATCH);
    begin(&l, &s, &c);
    load_run(&l, SECOND);
    load_times_open(&times, &s);
    load_times_read(&times);
    from = times;
    c.times = &times;
    c.watched = load_begin(&l, &a);
    count_watched(&l, &c, 2 * seconds * SECOND);
    load_times_read(&times);
    report_times(g, &c, &from);
    load_times_close(&times);
    p50 = kit_quantile_ms(gaps, c.n_gaps, 0.5);
    snprintf(what, sizeof what, "interactive beside %u batch: median gap",
             others);
    report(g->name, what, p50, "ms", NO_GOAL);
    report(g->name, "  p99 / median",
           kit_quantile_ms(gaps, c.n_gaps, 0.99) / p50, "",
           others ? 1.3 : NO_GOAL);
    report_steps(g, &s);
    load_fini(&l);
    load_end(&s);
}

static void
queues_of_15_and_60(const ground *g)
{
    crowd c = {.n = {15, 60}, .prompt = 32, .out = 48};
    load_server s;
    load l;
    double a, b;

    serve(&s, g, 8, BR_QOS_STANDARD, BR_QOS_STANDARD);
    begin(&l, &s, &c);
    load_run(&l, SECOND);
    count(&l, &c, 3 * seconds * SECOND);
    a = (double)c.tokens[0];
    b = (double)c.tokens[1];
    report(g->name, "15 and 60 queued on 8 slots: tokens, off equal",
           100 * (BR_MAX(a, b) / ((a + b) / 2) - 1), "%", 5);
    load_fini(&l);
    load_end(&s);
}

static double
rate_of_one(const ground *g, uint32_t own, uint32_t others)
{
    crowd c = {.n = {own, others}, .prompt = 32, .out = 48};
    load_server s;
    load l;

    serve(&s, g, 16, BR_QOS_STANDARD, BR_QOS_STANDARD);
    begin(&l, &s, &c);
    load_run(&l, SECOND);
    count(&l, &c, 2 * seconds * SECOND);
    load_fini(&l);
    load_end(&s);
    return (double)c.tokens[0] / own / (double)(2 * seconds);
}

static void
on_first(load *l, stream *s, int64_t gap)
{
    on_token(l, s, gap);
    if (s->ask.seed == 7 && s->n_out == 1)
        ((crowd *)l->ctx)->n[2] = 1; /* the long prompt was read */
}

/* A stream that decodes while another tenant's long prompt is read: how much
 * longer a token takes. */
static void
long_prompt(const ground *g, br_qos qos, double budget_ms)
{
    load_ask a = {.n_prompt = 32, .n_out = 6000, .seed = 6, .may_fail = true};
    load_ask b = {
        .tenant = 1, .n_prompt = g->long_prompt, .n_out = 2, .seed = 7};
    crowd c = {0};
    char what[80];
    double p50, first;
    load_times times;
    load_server s;
    uint32_t n_own;
    load l;

    serve(&s, g, 4, qos, BR_QOS_STANDARD);
    begin(&l, &s, &c);
    load_times_open(&times, &s);
    load_times_read(&times);
    c.times = &times;
    l.token = on_first;
    c.watched = load_begin(&l, &a);
    count(&l, &c, SECOND / 4);
    count(&l, &c, SECOND / 2); /* more is left of it than the prompt takes */
    p50 = kit_quantile_ms(gaps, c.n_gaps, 0.5);
    c.n_gaps = 0;
    first = kit_ms();
    (void)load_begin(&l, &b);
    while (!c.n[2] && c.watched)
        load_run(&l, 10000000);
    first = kit_ms() - first;
    if (!c.n[2])
        load_die("the long prompt was not read in time");
    snprintf(what, sizeof what, "%s beside a prompt of %u: gap before",
             br_qos_name(qos), g->long_prompt);
    report(g->name, what, p50, "ms", NO_GOAL);
    n_own = own_gaps(&c); /* before quantiles sort gaps */
    report(g->name, "  p99 while it is read, longer by",
           kit_quantile_ms(gaps, c.n_gaps, 0.99) - p50, "ms", budget_ms);
    snprintf(what, sizeof what,
             "  of the %.0f %% no stranger was in, longer by",
             100.0 * n_own / c.n_gaps);
    if (n_own)
        report(g->name, what, kit_quantile_ms(no_stranger, n_own, 0.99) - p50,
               "ms", NO_GOAL);
    report(g->name, "  the longest, longer by",
           kit_quantile_ms(gaps, c.n_gaps, 1) - p50, "ms", NO_GOAL);
    report(g->name, "  its first token after", first, "ms", NO_GOAL);
    load_times_close(&times);
    load_fini(&l);
    load_end(&s);
}

static void
fairness(const ground *g)
{
    double one;

    one_among(g, 0);
    one_among(g, 15);
    queues_of_15_and_60(g);
    one = rate_of_one(g, 1, 15) / rate_of_one(g, 16, 0);
    report(g->name, "1 stream beside 15: lost of its rate among 16 own",
           100 * (1 - one), "%", 10);
    long_prompt(g, BR_QOS_INTERACTIVE, 30);
    long_prompt(g, BR_QOS_STANDARD, 100);
}

static void
on_fake(void)
{
    fairness(&(ground){"fake",
                       {.fake = {.n_ctx = 36864,
                                 .n_pages = 16384,
                                 .step_ns = 8000000,
                                 .row_ns = 50000}},
                       32768});
}

static void
on_file(void)
{
    fairness(
        &(ground){"file", {.model = model, .tier = tier, .n_ctx = 8704}, 8192});
}

static void
on_gaps(void)
{
    const ground g = {"file", {.model = model, .tier = tier, .n_ctx = 2048}, 0};

    one_among(&g, 0);
    one_among(&g, 15);
}

/* ---- a thousand streams -------------------------------------------------- */

/* While all of them run: from the first token of the last one to the last token
 * of the first. */
typedef struct all_run {
    uint32_t n, n_begun;
    int64_t from, to; /* ns; 0: not yet */
    uint64_t tokens;
    bool keep; /* gaps of all of them, in between, into gaps */
    uint32_t n_gaps;
} all_run;

static void
on_all_token(load *l, stream *s, int64_t gap)
{
    all_run *a = l->ctx;
    bool counts = a->from && !a->to;

    a->tokens += counts;
    if (counts && a->keep && gap && a->n_gaps < GAPS)
        gaps[a->n_gaps++] = gap;
    a->n_begun += s->n_out == 1;
    if (!a->from && a->n_begun == a->n)
        a->from = l->now;
    if (!a->to && s->n_out == s->ask.n_out)
        a->to = l->now;
}

/* What the server has when it has had so many streams and slots at once: those
 * that come on top of them are streams alone. */
static double
warm_kb(load *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        (void)load_begin(
            l, &(load_ask){.n_prompt = 4, .n_out = 32, .seed = i % 16});
    load_run(l, -1);
    return load_rss_kb(l->to);
}

static void
thousand(const char *on, const load_spec *spec, uint32_t n_out, double least)
{
    enum { N = 1000, WARM = 256 };
    static const char *const threads[] = {"http", "engine"};
    double rss, during, cpu[2][2], rate;
    all_run all = {.n = N};
    int64_t begun;
    bool at_once = spec->fake.n_slots >= N;
    load_server s;
    load l;

    load_serve(&s, spec);
    load_init(&l, &s);
    l.nap_ns = 1000000;
    rss = warm_kb(&l, WARM);
    l.n_tokens = 0;
    l.ctx = &all;
    l.token = on_all_token;
    for (int i = 0; i < 4; i++)
        cpu[i / 2][i % 2] = load_cpu(&s, threads[i / 2], i % 2);
    begun = br_now_ns();
    for (uint32_t i = 0; i < N; i++)
        (void)load_begin(&l, &(load_ask){.n_prompt = 4,
                                         .n_out = n_out,
                                         .seed = spec->model ? i % 16 : i});
    load_run(&l, SECOND);
    during = load_rss_kb(&s);
    load_run(&l, -1);
    rate = (double)l.n_tokens * 1e9 / (double)(br_now_ns() - begun);
    for (int i = 0; i < 4; i++)
        cpu[i / 2][i % 2] =
            (load_cpu(&s, threads[i / 2], i % 2) - cpu[i / 2][i % 2]) * 1e6 /
            (double)l.n_tokens;
    report(on, "1,000 streams, every token right: tokens a second", rate, "",
           NO_GOAL);
    if (at_once) {
        if (!all.from || all.to < all.from)
            load_die("they never ran all at once");
        report(on, "  until all had a token", (double)(all.from - begun) * 1e-6,
               "ms", NO_GOAL);
        rate = (double)all.tokens * 1e9 / (double)(all.to - all.from);
        report(on, "  tokens a second while all run", rate, "", NO_GOAL);
    }
    if (rate < least) {
        printf("      fewer than %g MISSED\n", least);
        missed++;
    }
    report(on, "  user time of the server's thread for a token", cpu[0][1],
           "us", 3);
    report(on, "  kernel's", cpu[0][0], "us", NO_GOAL);
    report(on, "  user time of the engine's thread, the model with it",
           cpu[1][1], "us", NO_GOAL);
    report(on, "  memory of a stream", (during - rss) / (N - WARM), "KB", 64);
    load_fini(&l);
    load_end(&s);
}

/* The fake model takes 40 ms a step; drawing a thousand tokens comes after it,
 * 4 to 6 ms, as behind any model. */
static void
streams(void)
{
    const load_spec fake = {.fake = {.n_slots = 1000,
                                     .n_ctx = 256,
                                     .chunk = 4000,
                                     .step_ns = 40000000}},
                    file = {.model = model,
                            .tier = tier,
                            .n_slots = 256,
                            .n_ctx = 512};

    thousand("fake", &fake, 60 + 40 * (uint32_t)seconds, 20000);
    thousand("file", &file, 32, 0);
}

/* ---- the first token ----------------------------------------------------- */

static double
first_token(const load_server *s, uint32_t t, uint64_t seed, uint32_t busy)
{
    enum { N = 15 };
    crowd c = {.n = {0, 0, 0, busy}, .prompt = 64, .out = 96};
    load l;

    begin(&l, s, &c);
    l.token = NULL;
    if (busy)
        load_run(&l, SECOND / 2);
    for (uint32_t i = 0; i < N; i++) {
        load_ask a = {.tenant = t,
                      .n_prompt = 128,
                      .n_out = 2,
                      .seed = seed ? seed : 1000 * (busy + 1) + 100 * t + i};
        stream *w = c.watched = load_begin(&l, &a);

        while (c.watched)
            load_run(&l, 1000000);
        gaps[i] = w->first_ns - w->begun_ns;
    }
    load_fini(&l);
    return kit_quantile_ms(gaps, N, 0.5);
}

/* Seconds of a thread of the server's, the kernel's with them. */
static double
busy(const load_server *s, const char *thread)
{
    return load_cpu(s, thread, true) + load_cpu(s, thread, false);
}

/* As many as a batch of a GPU has rows: prompts of 128 at once, twice. */
static void
many(void)
{
    enum { N = 64, OUT = 256 };
    const ground g = {
        "many", {.model = model, .tier = tier, .n_slots = N, .n_ctx = 512}, 0};
    all_run all = {.n = N, .keep = true};
    double engine, http, rate;
    int64_t begun = 0, last = 0;
    load_server s;
    load l;

    load_serve(&s, &g.spec);
    load_init(&l, &s);
    for (int round = 0; round < 2; round++) {
        l.ctx = round ? &all : NULL;
        l.token = round ? on_all_token : NULL;
        l.n_tokens = 0;
        engine = busy(&s, "engine");
        http = busy(&s, "http");
        begun = br_now_ns();
        for (uint32_t i = 0; i < N; i++)
            (void)load_begin(&l, &(load_ask){.n_prompt = 128,
                                             .n_out = OUT,
                                             .seed = N * (uint32_t)round + i});
        load_run(&l, -1);
        last = br_now_ns();
    }
    if (!all.from || all.to < all.from)
        load_die("they never ran all at once");
    engine = busy(&s, "engine") - engine;
    http = busy(&s, "http") - http;
    rate = (double)all.tokens * 1e9 / (double)(all.to - all.from);
    report(g.name, "64 streams: tokens a second, prompts and all",
           (double)l.n_tokens * 1e9 / (double)(last - begun), "", NO_GOAL);
    report(g.name, "  until all had a token", (double)(all.from - begun) * 1e-6,
           "ms", NO_GOAL);
    report(g.name, "  tokens a second while all run", rate, "", NO_GOAL);
    report(g.name, "  that is a step each", N * 1e3 / rate, "ms", NO_GOAL);
    report_tail(&g, "  gaps of a stream", gaps, all.n_gaps);
    report(g.name, "  the engine's thread, a step of 64",
           engine * 1e6 * N / (double)l.n_tokens, "us", NO_GOAL);
    report(g.name, "  the server's thread, a token",
           http * 1e6 / (double)l.n_tokens, "us", NO_GOAL);
    load_fini(&l);
    load_end(&s);
}

/* What /metrics says of steps on a GPU. */
typedef struct gpu_steps {
    double steps, submit_s, stayed, stayed_s, entered, exited, ahead, vain;
} gpu_steps;

static gpu_steps
gpu_steps_of(const load_server *s)
{
    return (gpu_steps){load_metric(s, "steps_total"),
                       load_metric(s, "gpu_submit_seconds_total"),
                       load_metric(s, "gpu_resident_steps_total"),
                       load_metric(s, "gpu_resident_seconds_total"),
                       load_metric(s, "gpu_resident_launches_total"),
                       load_metric(s, "gpu_resident_exits_total"),
                       load_metric(s, "gpu_resident_ahead_total"),
                       load_metric(s, "gpu_resident_vain_total")};
}

/* n streams that begin together, after as many that made the launches. */
static void
stays_with(const load_server *s, uint32_t n)
{
    enum { OUT = 350 };
    all_run all = {.n = n};
    gpu_steps was = {0}, is;
    char on[24];
    double step;
    load l;

    snprintf(on, sizeof on, "%u", n);
    load_init(&l, s);
    for (uint64_t round = 0; round < 2; round++) {
        l.ctx = round ? &all : NULL;
        l.token = round ? on_all_token : NULL;
        for (uint32_t i = 0; i < n; i++)
            (void)load_begin(&l, &(load_ask){.n_prompt = 128,
                                             .n_out = OUT,
                                             .seed = n * 2 * round + i});
        while (round && !all.from)
            load_run(&l, 1000000);
        was = gpu_steps_of(s);
        load_run(&l, -1);
    }
    is = gpu_steps_of(s);
    if (!all.from || all.to < all.from)
        load_die("they never ran all at once");
    step = (double)(all.to - all.from) * n / (double)all.tokens * 1e-3;
    report(on, "a step of all streams, from one to the next", step, "us",
           NO_GOAL);
    report(on, "  of them on the device",
           (is.stayed_s - was.stayed_s) * 1e6 / (is.stayed - was.stayed), "us",
           NO_GOAL);
    report(on, "  the rest",
           step - (is.stayed_s - was.stayed_s) * 1e6 / (is.stayed - was.stayed),
           "us", n == 1 ? 20 : NO_GOAL);
    report(on, "  processor time to submit, while all run",
           (is.submit_s - was.submit_s) * 1e6 / (is.steps - was.steps), "us",
           NO_GOAL);
    report(on, "  steps by a launch that stays",
           (is.stayed - was.stayed) * 100 / (is.steps - was.steps), "%",
           NO_GOAL);
    report(on, "  such launches", is.entered - was.entered, "", NO_GOAL);
    report(on, "  of them ended by other steps", is.exited - was.exited, "",
           NO_GOAL);
    report(on, "  steps told while the one before ran", is.ahead - was.ahead,
           "", NO_GOAL);
    report(on, "  others that were for nothing", is.vain - was.vain, "",
           NO_GOAL);
    load_fini(&l);
}

/* Of one stream and of many, how much of a step is not the device's. */
static void
stays(void)
{
    const load_spec spec = {
        .model = model, .tier = tier, .n_slots = 64, .n_ctx = 512};
    load_server s;

    load_serve(&s, &spec);
    stays_with(&s, 1);
    stays_with(&s, 16);
    stays_with(&s, 64);
    load_end(&s);
}

static void
ttft(void)
{
    static const double goal[BR_QOS_COUNT] = {100, 500, NO_GOAL};
    load_spec spec = {.model = model,
                      .tier = tier,
                      .n_slots = 8,
                      .n_ctx = 512,
                      .n_tenants = 4,
                      .quota = {tenant(BR_QOS_INTERACTIVE),
                                tenant(BR_QOS_STANDARD), tenant(BR_QOS_BATCH),
                                tenant(BR_QOS_BATCH)}};
    double ms[2][BR_QOS_COUNT][2];
    char what[80];
    load_server s;

    load_serve(&s, &spec);
    for (uint32_t busy = 0; busy <= 16; busy += 16)
        for (uint32_t t = 0; t < BR_QOS_COUNT; t++)
            for (uint64_t warm = 0; warm < 2; warm++) {
                snprintf(what, sizeof what, "first token of 128, %s, %s%s",
                         br_qos_name((br_qos)t), warm ? "warm" : "cold",
                         busy ? ", 16 batch streams on 8 slots" : "");
                if (warm)
                    (void)first_token(&s, t, 50 + t, 0);
                ms[busy / 16][t][warm] =
                    first_token(&s, t, warm * (50 + t), busy);
                report("file", what, ms[busy / 16][t][warm], "ms", goal[t]);
            }
    load_end(&s);
    printf(
        "\n| first token of 128, ms | cold | warm | cold, 16 batch streams on "
        "8 slots | warm |\n|---|---|---|---|---|\n");
    for (uint32_t t = 0; t < BR_QOS_COUNT; t++)
        printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", br_qos_name((br_qos)t),
               ms[0][t][0], ms[0][t][1], ms[1][t][0], ms[1][t][1]);
}

/* ---- main ---------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
    bool only; /* where it is named */
} parts[] = {{"fake", on_fake, false},    {"file", on_file, false},
             {"streams", streams, false}, {"ttft", ttft, false},
             {"gaps", on_gaps, true},     {"many", many, true},
             {"stays", stays, true}};

static bool
is_part(const char *name)
{
    for (size_t p = 0; p < BR_COUNT(parts); p++)
        if (strcmp(name, parts[p].name) == 0)
            return true;
    return false;
}

/* Options; how many parts are named. */
static int
read_args(int argc, char **argv)
{
    int named = 0;

    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "-m") == 0)
            model = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "-T") == 0)
            tier = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "-t") == 0)
            seconds = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "-l") == 0)
            log_to = argv[++i];
        else if (is_part(argv[i]))
            named++;
        else {
            fprintf(stderr,
                    "usage: bench_serve [-m MODEL] [-T TIER] [-t SECONDS] "
                    "[-l LOG] [fake] [file] [streams] [ttft] [gaps] [many] "
                    "[stays]\n");
            exit(2);
        }
    return named;
}

int
main(int argc, char **argv)
{
    char cpu[200];
    int cores = kit_cpu(cpu, sizeof cpu), named = read_args(argc, argv);

    printf("machine: %d cores of %s; commit %s; model %s\ncommand:", cores, cpu,
           BR_COMMIT, model);
    for (int i = 0; i < argc; i++)
        printf(" %s", argv[i]);
    putchar('\n');
    for (size_t p = 0; p < BR_COUNT(parts); p++) {
        bool wanted = named == 0 && !parts[p].only;

        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], parts[p].name) == 0;
        if (wanted)
            parts[p].run();
    }
    return missed != 0;
}
