/* serve_kit.c - see serve_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void
serve(void *arg)
{
    br_http_run(arg);
}

void
sk_open(sk *k, const sk_config *c)
{
    br_http_config config = c->http;
    br_status st = {0};

    *k = (sk){0};
    if (!config.host && !config.unix_path) {
        config = br_http_config_default();
        config.port = 0;
    }
    if (c->tok)
        ek_open_on(&k->ek, c->tok, c->engine);
    else
        ek_open(&k->ek, c->fake, c->engine);
    t_ok(br_gguf_open(&k->gguf, t_repo("models/demo.gguf"), &st), &st);
    if (c->template)
        t_ok(br_chat_from_template(&k->chat, br_text_z(c->template), k->ek.tok,
                                   &st),
             &st);
    else
        t_ok(br_chat_new(&k->chat, k->gguf, k->ek.tok, &st), &st);
    t_ok(br_http_new(&k->http, &config, &st), &st);
    t_ok(br_thread_start(&k->thread, "http", serve, k->http, &st), &st);
    k->running = true;
    k->tls = config.tls_cert != NULL;
    if (!c->loading)
        sk_ready(k);
}

void
sk_ready(sk *k)
{
    const br_http_model m = {.name = "fake",
                             .engine = k->ek.e,
                             .tok = k->ek.tok,
                             .chat = k->chat,
                             .n_ctx = k->ek.c.lm->n_ctx,
                             .tier = "fake"};

    br_status st = {0};

    t_ok(br_http_ready(k->http, &m, &st), &st);
    while (!k->tls && sk_ask(k, "GET /health", "", NULL).status != 200)
        br_sleep_ns(1000000);
}

void
sk_close(sk *k)
{
    if (k->running) {
        br_http_stop(k->http);
        br_thread_join(&k->thread);
    }
    br_http_free(k->http);
    br_chat_free(k->chat);
    br_gguf_close(k->gguf);
    ek_close(&k->ek);
}

/* ---- the client ---------------------------------------------------------- */

int
sk_connect(const sk *k)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(br_http_port(k->http)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wait = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&a, sizeof a), 0);
    return fd;
}

void
sk_send(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

        if (k <= 0) /* the server has closed: what it said tells why */
            return;
        p += k;
        n -= (size_t)k;
    }
}

static bool
read_byte(int fd, br_str *to)
{
    char c;

    if (recv(fd, &c, 1, 0) != 1)
        return false;
    br_str_putc(to, c);
    return true;
}

static void
read_n(int fd, br_str *to, size_t n)
{
    char buf[4096];

    while (n) {
        ssize_t k = recv(fd, buf, BR_MIN(n, sizeof buf), 0);

        ck_assert_msg(k > 0, "the answer ends %zu bytes early", n);
        br_str_put(to, buf, (size_t)k);
        n -= (size_t)k;
    }
}

static void
read_chunks(int fd, br_str *to)
{
    br_str line = {0}, end = {0};
    size_t n = 1;

    while (n) {
        br_str_clear(&line);
        while (line.n < 2 || line.at[line.n - 1] != '\n')
            ck_assert_msg(read_byte(fd, &line), "a chunk is cut off");
        n = strtoul(line.at, NULL, 16);
        read_n(fd, to, n);
        br_str_clear(&end);
        read_n(fd, &end, 2);
        ck_assert_str_eq(end.at, "\r\n");
    }
    br_str_fini(&line);
    br_str_fini(&end);
}

static char *
keep(br_str *s)
{
    char *copy = t_keep(malloc(s->n + 1));

    memcpy(copy, br_str_z(s), s->n);
    copy[s->n] = 0;
    br_str_fini(s);
    return copy;
}

sk_answer
sk_read(int fd, bool has_body)
{
    br_str head = {0}, body = {0};
    sk_answer a = {0};
    const char *length;

    while (head.n < 4 || memcmp(head.at + head.n - 4, "\r\n\r\n", 4) != 0)
        if (!read_byte(fd, &head))
            break;
    a.head = keep(&head);
    if (strncmp(a.head, "HTTP/1.1 ", 9) == 0)
        a.status = atoi(a.head + 9);
    length = strcasestr(a.head, "content-length:");
    if (!has_body)
        ;
    else if (strcasestr(a.head, "transfer-encoding: chunked"))
        read_chunks(fd, &body);
    else if (length)
        read_n(fd, &body, strtoul(length + 15, NULL, 10));
    else
        while (a.status && read_byte(fd, &body))
            ;
    a.n_body = body.n;
    a.body = keep(&body);
    return a;
}

sk_answer
sk_ask(const sk *k, const char *what, const char *more, const char *body)
{
    char *request =
        t_printf("%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Length: %zu\r\n%s\r\n%s",
                 what, body ? strlen(body) : 0, more, body ? body : "");
    int fd = sk_connect(k);
    sk_answer a;

    sk_send(fd, request, strlen(request));
    a = sk_read(fd, what[0] != 'H');
    close(fd);
    return a;
}

char *
sk_between(const char *in, const char *from, const char *to)
{
    const char *a = strstr(in, from), *b;

    if (!a)
        return NULL;
    a += strlen(from);
    b = strstr(a, to);
    return b ? t_printf("%.*s", (int)(b - a), a) : NULL;
}
