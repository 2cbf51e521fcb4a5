/* bench_beside.c - streams of any server that speaks /v1/completions.
 *
 *   bench_beside PORT [-s STREAMS] [-n REQUESTS] [-p WORDS] [-o TOKENS]
 *                [-m MODEL] [-r SEED]
 *
 * As many streams as said at any time, until so many requests are answered. No
 * two prompts begin alike, so that no server knows any; each answer has as many
 * tokens as it was asked for, which its own `usage` has to say, or the run ends
 * with 1. One line: tokens a second, of answers and of prompts together; times
 * to the first text; gaps between texts. tools/beside runs it in turn on two
 * servers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "kit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAMS = 64, REQUESTS = 4096, GAPS = 1 << 20, LINE = 64 << 10 };

typedef struct stream {
    int fd; /* -1: free */
    int64_t begun_ns, last_ns;
    long out, in; /* tokens, by its usage; -1: it has not said */
    bool whole;
    size_t n;
    char line[LINE];
} stream;

static struct {
    int port, streams, requests, words, out;
    const char *model;
    uint64_t seed;
} opt = {0, 8, 32, 64, 32, "default", 1};

static stream streams[STREAMS];
static int64_t firsts[REQUESTS], gaps[GAPS];
static size_t n_first, n_gaps;
static long tokens_in, tokens_out;
static br_rng rng;

static BR_NORETURN void
die(const char *why, const char *more)
{
    fprintf(stderr, "bench_beside: %s%s\n", why, more);
    exit(1);
}

static void
begin(stream *s, int i)
{
    static const char *const words[] = {
        "fox",  "river", "stone", "lamp",  "seven", "green", "walks", "under",
        "tree", "house", "north", "bread", "small", "never", "opens", "light"};
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)opt.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    br_str body = {0}, text = {0};
    int n = opt.words / 2 + (int)br_rng_below(&rng, (uint32_t)opt.words);

    br_str_printf(&body,
                  "{\"model\":\"%s\",\"stream\":true,\"stream_options\":{"
                  "\"include_usage\":true},\"temperature\":0,\"ignore_eos\":"
                  "true,\"max_tokens\":%d,\"prompt\":\"%d %u",
                  opt.model, opt.out, i, br_rng_below(&rng, 1000000));
    for (int w = 0; w < n; w++)
        br_str_printf(&body, " %s", words[br_rng_below(&rng, 16)]);
    br_str_puts(&body, "\"}");
    br_str_printf(&text,
                  "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                  "Connection: close\r\nContent-Type: application/json\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  body.n, br_str_z(&body));
    *s = (stream){.begun_ns = br_now_ns(), .out = -1, .in = -1};
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s->fd, (struct sockaddr *)(void *)&a, sizeof a) != 0 ||
        send(s->fd, text.at, text.n, MSG_NOSIGNAL) != (ssize_t)text.n)
        die("no server listens there", "");
    br_str_fini(&body);
    br_str_fini(&text);
}

static long
number(const char *line, const char *key, long other)
{
    const char *at = strstr(line, key);

    return at ? strtol(at + strlen(key), NULL, 10) : other;
}

static bool
has_text(const char *line)
{
    static const char key[] = "\"text\":";
    const char *at = strstr(line, key);

    if (!at)
        return false;
    at += sizeof key - 1;
    at += *at == ' ';
    return at[0] == '"' && at[1] != '"';
}

static void
take_line(stream *s, int64_t now)
{
    if (strstr(s->line, "\"error\""))
        die("an answer failed: ", s->line);
    s->whole |= strncmp(s->line, "data: [DONE]", 12) == 0;
    s->out = number(s->line, "\"completion_tokens\":", s->out);
    s->in = number(s->line, "\"prompt_tokens\":", s->in);
    if (strncmp(s->line, "data: {", 7) != 0 || !has_text(s->line))
        return;
    if (!s->last_ns)
        firsts[n_first++] = now - s->begun_ns;
    else if (n_gaps < GAPS)
        gaps[n_gaps++] = now - s->last_ns;
    s->last_ns = now;
}

/* False: it is over. */
static bool
take(stream *s)
{
    char buf[16 << 10];
    ssize_t n = recv(s->fd, buf, sizeof buf, 0);
    int64_t now = br_now_ns();

    for (ssize_t i = 0; i < n; i++) {
        if (buf[i] != '\n' && s->n < sizeof s->line - 1) {
            s->line[s->n++] = buf[i];
            continue;
        }
        s->line[s->n] = 0;
        s->n = 0;
        take_line(s, now);
    }
    if (n > 0)
        return true;
    (void)close(s->fd);
    s->fd = -1;
    if (!s->whole && s->out < 0)
        die("an answer ended early", "");
    if (s->out != opt.out)
        die("an answer has another number of tokens", "");
    tokens_out += s->out;
    tokens_in += BR_MAX(s->in, 0L);
    return false;
}

static void
read_options(int argc, char **argv)
{
    struct {
        char letter;
        int *to, most;
    } rows[] = {{'s', &opt.streams, STREAMS},
                {'n', &opt.requests, REQUESTS},
                {'p', &opt.words, 4096},
                {'o', &opt.out, 4096}};

    opt.port = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i + 1 < argc; i += 2) {
        size_t k = 0;

        while (k < BR_COUNT(rows) && rows[k].letter != argv[i][1])
            k++;
        if (argv[i][1] == 'm')
            opt.model = argv[i + 1];
        else if (argv[i][1] == 'r')
            opt.seed = strtoull(argv[i + 1], NULL, 10);
        else if (k == BR_COUNT(rows))
            die("unknown option ", argv[i]);
        else
            *rows[k].to = BR_MAX(1, BR_MIN(atoi(argv[i + 1]), rows[k].most));
    }
    if (opt.port < 1 || opt.port > 65535 || argc % 2)
        die("usage: bench_beside PORT [-s STREAMS] [-n REQUESTS] [-p WORDS] "
            "[-o TOKENS] [-m MODEL] [-r SEED]",
            "");
}

/* Waits for what comes, and takes it; how many ended. */
static int
take_some(void)
{
    struct pollfd p[STREAMS];
    int over = 0;

    for (int i = 0; i < STREAMS; i++)
        p[i] = (struct pollfd){.fd = streams[i].fd, .events = POLLIN};
    if (poll(p, STREAMS, -1) < 0)
        die("poll", "");
    for (int i = 0; i < STREAMS; i++)
        if (p[i].fd >= 0 && p[i].revents)
            over += !take(&streams[i]);
    return over;
}

int
main(int argc, char **argv)
{
    int64_t begun_ns;
    double seconds;
    int begun = 0, over = 0;

    read_options(argc, argv);
    br_rng_init(&rng, opt.seed, 1);
    (void)br_os_thread_soon(); /* what it sees is when texts came */
    for (int i = 0; i < STREAMS; i++)
        streams[i].fd = -1;
    begun_ns = br_now_ns();
    while (over < opt.requests) {
        for (int i = 0; i < opt.streams && begun < opt.requests; i++)
            if (streams[i].fd < 0)
                begin(&streams[i], begun++);
        over += take_some();
    }
    seconds = (double)(br_now_ns() - begun_ns) * 1e-9;
    printf("%d streams: %.1f tokens a second, %.1f with the prompts'; first "
           "text %.0f ms, 99th %.0f; gap %.1f ms, 99th %.1f\n",
           opt.streams, (double)tokens_out / seconds,
           (double)(tokens_out + tokens_in) / seconds,
           kit_quantile_ms(firsts, n_first, 0.5),
           kit_quantile_ms(firsts, n_first, 0.99),
           kit_quantile_ms(gaps, n_gaps, 0.5),
           kit_quantile_ms(gaps, n_gaps, 0.99));
    return 0;
}
