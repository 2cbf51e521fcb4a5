/* test_http_streams.c - a thousand streams at once lose no token.
 *
 * A fake model makes a token for each of 1,000 streams every 50 ms: 20,000
 * tokens a second. Each stream has its own prompt, and its text has to be the
 * one that follows it. Prints what a token and a stream cost the server.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TOKENS = 60, BYTES = TOKENS * 320 + 4096 };

typedef struct stream {
    int fd;
    int32_t prompt[4];
    char *got; /* [BYTES] */
    size_t n;
    bool done;
} stream;

static double
rss_kb(void)
{
    char text[256];
    long pages = 0;

    br_os_read("/proc/self/statm", text, sizeof text);
    if (sscanf(text, "%*s %ld", &pages) != 1)
        return 0;
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void
begin(const sk *k, stream *s, uint32_t i)
{
    char *body, *request;

    for (uint32_t j = 0; j < 4; j++)
        s->prompt[j] = (int32_t)(300 + (i >> (3 * j) & 7) + 8 * j);
    body = t_printf("{\"prompt\":[%d,%d,%d,%d],\"max_tokens\":%d,\"stream\":"
                    "true,\"temperature\":0,\"ignore_eos\":true}",
                    s->prompt[0], s->prompt[1], s->prompt[2], s->prompt[3],
                    TOKENS);
    request = t_printf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    s->fd = sk_connect(k);
    sk_send(s->fd, request, strlen(request));
}

/* Reads until every stream has said that it is over. */
static void
read_all(stream *s, uint32_t n, void (*early)(void *ctx), void *ctx)
{
    int ep = epoll_create1(0);
    uint32_t left = n, begun = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};

        epoll_ctl(ep, EPOLL_CTL_ADD, s[i].fd, &e);
    }
    while (left) {
        struct epoll_event e[256];
        int got = epoll_wait(ep, e, 256, 15000);

        ck_assert_msg(got > 0, "%u streams hang", left);
        for (int i = 0; i < got; i++) {
            stream *t = &s[e[i].data.u32];
            ssize_t k = recv(t->fd, t->got + t->n, BYTES - 1 - t->n, 0);

            ck_assert_msg(k > 0, "stream %u is cut off", e[i].data.u32);
            begun += t->n == 0;
            if (begun == n && early) {
                early(ctx);
                early = NULL;
            }
            t->n += (size_t)k;
            t->got[t->n] = 0;
            t->done = t->n > 5 && strcmp(t->got + t->n - 5, "0\r\n\r\n") == 0;
            left -= t->done;
        }
    }
    close(ep);
}

/* The texts of all events, in order. */
static void
put_text(const stream *s, br_str *out)
{
    for (const char *p = s->got; (p = strstr(p, "data: {"));) {
        const char *end = strstr(p += 6, "\n\n");
        const br_json *text;
        br_status st = {0};
        br_json *v = NULL;
        br_arena a;

        br_arena_init(&a, 0);
        t_ok(br_json_parse(&v, &a, p, (size_t)(end - p), 0, &st), &st);
        text = br_json_get(br_json_at(br_json_get(v, "choices"), 0), "text");
        br_str_put(out, text->s, text->n);
        br_arena_fini(&a);
    }
}

static bool
is_right(const sk *k, const stream *s)
{
    int32_t tokens[4 + TOKENS];
    br_str want = {0}, got = {0};
    br_tok_stream t;
    bool same;

    memcpy(tokens, s->prompt, sizeof s->prompt);
    br_tok_stream_begin(&t, k->ek.tok, false);
    for (uint32_t i = 4; i < 4 + TOKENS; i++) {
        tokens[i] = br_lm_fake_next(k->ek.fake, tokens, i);
        br_tok_stream_put(&t, tokens[i], &want);
    }
    br_tok_stream_end(&t, &want);
    put_text(s, &got);
    same = got.n == want.n && memcmp(got.at, want.at, got.n) == 0;
    br_str_fini(&want);
    br_str_fini(&got);
    return same;
}

static void
note_rss(void *ctx)
{
    *(double *)ctx = rss_kb();
}

static double
metric(const sk *k, const char *name)
{
    const char *body = sk_ask(k, "GET /metrics", "", NULL).body;
    const char *at = strstr(body, t_printf("\n%s ", name));

    ck_assert_ptr_nonnull(at);
    return atof(at + strlen(name) + 2);
}

/* What this thread has paid outside the kernel, us. */
static double
paid(void)
{
    struct rusage u;

    getrusage(RUSAGE_THREAD, &u);
    return (double)u.ru_utime.tv_sec * 1e6 + (double)u.ru_utime.tv_usec;
}

/* What a thread pays outside the kernel, as its clock has it, to send an event and to
 * read one, us: nothing on bare metal, 1 to 3 where a call passes by a hypervisor. */
static double
calls_cost(void)
{
    enum { TIMES = 20000, EVENT = 300 };
    char event[EVENT] = "";
    int fd[2], whole = 0;
    double before, after;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    before = paid();
    for (int i = 0; i < TIMES; i++)
        whole += send(fd[0], event, EVENT, 0) == EVENT &&
                 recv(fd[1], event, EVENT, 0) == EVENT;
    after = paid();
    ck_assert_int_eq(whole, TIMES);
    close(fd[0]);
    close(fd[1]);
    return (after - before) / TIMES;
}

/* Streams side by side, each with its text; what a token cost above what calls cost
 * alone, of what it may: 3 us where to read it costs 0.65, and more where this costs
 * more, on a slower processor. */
static double
cost_of_streams(uint32_t n)
{
    static const char user[] = "brass_http_cpu_seconds_total{mode=\"user\"}";
    static const char kernel[] =
        "brass_http_cpu_seconds_total{mode=\"system\"}";
    stream *s = t_keep(calloc(n, sizeof *s));
    char *bytes = t_keep(malloc((size_t)n * BYTES));
    double before, during = 0, u, sys, calls, read;
    sk_config c = {.fake = {.n_slots = n,
                            .n_ctx = 128,
                            .chunk = n * 4,
                            .step_ns = 50000000},
                   .engine = {.queue_depth = n}};
    sk k;

    c.http = br_http_config_default();
    c.http.port = 0;
    c.http.limits.head_ns = c.http.limits.idle_ns = c.http.limits.write_ns =
        INT64_C(3600000000000); /* who is late here is this thread */
    br_mem_hook(NULL, NULL);    /* what memory costs without a test's fences */
    sk_open(&k, &c);
    memset(bytes, 1, (size_t)n * BYTES);
    before = rss_kb();
    u = metric(&k, user);
    sys = metric(&k, kernel);
    for (uint32_t i = 0; i < n; i++) {
        s[i].got = bytes + (size_t)i * BYTES;
        begin(&k, &s[i], i);
    }
    read_all(s, n, note_rss, &during);
    read = paid();
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(is_right(&k, &s[i]), "stream %u has another text", i);
        close(s[i].fd);
    }
    read = (paid() - read) / n / TOKENS;
    u = metric(&k, user) - u;
    sys = metric(&k, kernel) - sys;
    calls = calls_cost();
    printf("%u streams: %.2f us user (calls alone: %.2f, to read them: %.2f), "
           "%.2f us kernel a token, %.1f KB a stream\n",
           n, u * 1e6 / n / TOKENS, calls, read, sys * 1e6 / n / TOKENS,
           (during - before) / n);
    sk_close(&k);
    return (u * 1e6 / n / TOKENS - calls) / BR_MAX(3.0, 4.5 * read);
}

/* A core that somebody shares takes 3 us and more of what takes 1 to 1.5 alone, for
 * seconds: the least of three tries counts. */
TEST_WITHIN(http_streams_lose_nothing, 90)
{
    double cost = cost_of_streams(t_sanitized() ? 100 : 1000);

    for (int k = 1; k < 3 && !t_sanitized() && cost >= 1; k++)
        cost = cost_of_streams(1000);
    if (!t_sanitized())
        ck_assert_double_lt(cost, 1);
}
