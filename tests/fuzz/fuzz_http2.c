/* fuzz_http2.c - any bytes behind the preface of HTTP/2, over a real socket.
 *
 * The first byte says in which pieces they come. The app answers by the path:
 * at once, as a stream, never. Every request is answered or reported gone, and
 * nothing is left when the connection is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http2.h"

#include "base/thread.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct app {
    int open; /* requests that nobody has answered */
} app;

static void
request(void *ctx, br_http_conn *c)
{
    app *a = ctx;

    br_check(c->in.path.n && c->in.method.n);
    if (!c->ws && br_http_upgrade(c)) /* its messages come here, too */
        return;
    if (br_text_is(c->in.path, "/stream")) {
        br_http_stream(c, 200, "text/plain", "X-Request-Id: 1\r\n");
        br_http_put(c, "first", 5);
        br_http_put(c, br_str_z(&c->in.body), c->in.body.n);
        br_http_end(c);
    } else if (br_text_is(c->in.path, "/open")) {
        br_http_stream(c, 200, "text/plain", NULL);
        br_http_put(c, "first", 5);
        a->open++;
    } else if (br_text_is(c->in.path, "/never")) {
        a->open++;
    } else {
        br_http_answer(c, 200, "text/plain", "Retry-After: 1\r\n",
                       (br_text){br_str_z(&c->in.body), c->in.body.n});
    }
}

static void
gone(void *ctx, br_http_conn *c, bool too_slow)
{
    (void)c, (void)too_slow;
    br_check(--((app *)ctx)->open >= 0);
}

static void
refuse(void *ctx, br_http_conn *c, int status, const char *why)
{
    (void)ctx;
    br_check(status >= 400 && why);
    br_http_answer(c, status, NULL, NULL, br_text_z(why));
}

static void
nothing(void *ctx)
{
    (void)ctx;
}

static void
drained(void *ctx, br_http_conn *c)
{
    (void)ctx, (void)c;
}

static bool
tick(void *ctx, int64_t now, bool stopping)
{
    (void)ctx, (void)now, (void)stopping;
    return false;
}

/* Hands over n bytes and takes what comes back; false: it has closed. */
static bool
turn(br_http_loop *l, int fd, const char *p, size_t n)
{
    char back[8192];

    if (n && send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
        return false;
    for (int i = 0; i < 4 && l->first; i++) {
        br_http_conn_event(l->first, EPOLLIN | EPOLLOUT);
        br_http_conns_flush(l);
        while (recv(fd, back, sizeof back, MSG_DONTWAIT) > 0)
            ;
    }
    br_http_conns_bury(l);
    return l->first != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = BR_H2_PREFACE;
    app a = {0};
    const br_http_app calls = {&a,      request, gone,  nothing,
                               drained, tick,    refuse};
    br_http_limits limits = br_http_limits_default();
    size_t piece = size ? 1 + data[0] * 4u : 1;
    br_http_loop *l;
    int fds[2];

    if (size < 1 || size > 8192)
        return 0;
    limits.body_bytes = 1000;
    br_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0 &&
             br_http_loop_new(&l, &limits, &calls, NULL) == BR_OK &&
             br_http_conn_open(l, fds[1], true));
    if (turn(l, fds[0], preface, sizeof preface - 1))
        for (size_t i = 1; i < size; i += piece)
            if (!turn(l, fds[0], (const char *)data + i,
                      BR_MIN(piece, size - i)))
                break;
    if (l->first) { /* all that waits is late */
        br_http_conn_tick(l->first, br_now_ns() + limits.body_ns * 2, true);
        (void)turn(l, fds[0], NULL, 0);
    }
    br_http_loop_free(l);
    close(fds[0]);
    br_check(a.open == 0);
    return 0;
}
