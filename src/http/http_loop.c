/* http_loop.c - see http_loop.h: the loop, its sockets, time.
 *
 *   states    READING -> BUSY -> (STREAMING ->) SENDING -> READING
 *                  \______________________________/ \-> LINGERING -> gone
 *
 * Level-triggered epoll. Writes gather in conn->out and leave once per turn of
 * the loop: tokens that arrive together travel together. A connection that
 * ends in an error lingers until its client has read why: closing a socket
 * with unread input makes the kernel drop what was sent last.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http2.h"

#include "base/log.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define AWAY_NS INT64_C(1000000000) /* more than it wanted to wait */

br_http_limits
br_http_limits_default(void)
{
    const int64_t s = 1000000000;

    return (br_http_limits){
        .conns = 4096,
        .body_bytes = 16 << 20,
        .all_bytes = 1 << 30,
        .pending_bytes = 4 << 20,
        .head_ns = 10 * s,
        .body_ns = 60 * s,
        .idle_ns = 75 * s,
        .write_ns = 30 * s,
    };
}

/* ---- making one ---------------------------------------------------------- */

br_code
br_http_loop_new(br_http_loop **out, const br_http_limits *limits,
                 const br_http_app *app, br_status *st)
{
    br_http_loop *l = br_try_calloc(1, sizeof *l);
    struct epoll_event e = {.events = EPOLLIN};

    *out = NULL;
    if (!l)
        return br_fail(st, BR_E_OOM, "http: out of memory");
    l->limits = *limits;
    l->app = *app;
    l->ep = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e.data.ptr = &l->wake;
    if (l->ep < 0 || l->wake < 0 ||
        epoll_ctl(l->ep, EPOLL_CTL_ADD, l->wake, &e) < 0) {
        int err = errno;

        br_http_loop_free(l);
        return br_fail(st, BR_E_IO, "http: epoll: %s", strerror(err));
    }
    *out = l;
    return BR_OK;
}

void
br_http_loop_free(br_http_loop *l)
{
    if (!l)
        return;
    while (l->first)
        br_http_conn_drop(l->first, false);
    br_http_conns_bury(l);
    for (int i = 0; i < l->n_listen; i++)
        close(l->listen[i]);
    if (br_str_z(&l->unix_path)[0])
        unlink(l->unix_path.at);
    br_str_fini(&l->unix_path);
    br_tls_free(l->tls);
    if (l->wake > 0)
        close(l->wake);
    if (l->ep > 0)
        close(l->ep);
    br_free(l);
}

br_code
br_http_loop_tls(br_http_loop *l, const char *cert, const char *key,
                 br_status *st)
{
    return br_tls_new(&l->tls, cert, key, br_h2_here, st);
}

br_code
br_http_loop_watch(br_http_loop *l, int fd, br_status *st)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &l->wake};

    if (epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &e) < 0)
        return br_fail(st, BR_E_IO, "http: epoll: %s", strerror(errno));
    return BR_OK;
}

void
br_http_loop_unwatch(br_http_loop *l, int fd)
{
    (void)epoll_ctl(l->ep, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- listening ----------------------------------------------------------- */

static br_code
add_listener(br_http_loop *l, int fd, const char *name, br_status *st)
{
    struct epoll_event e = {.events = EPOLLIN,
                            .data.ptr = &l->listen[l->n_listen]};

    if (listen(fd, 4096) < 0 || epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &e) < 0) {
        int err = errno;

        close(fd);
        return br_fail(st, BR_E_IO, "%s: %s", name, strerror(err));
    }
    l->listen[l->n_listen++] = fd;
    return BR_OK;
}

static int
bind_one(const struct addrinfo *a)
{
    int one = 1;
    int fd =
        socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0) {
        int err = errno;

        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;

    if (getsockname(fd, (struct sockaddr *)(void *)&a, &n) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)(void *)&a)->sin6_port
                     : ((struct sockaddr_in *)(void *)&a)->sin_port);
}

static br_code
resolve(struct addrinfo **out, const char *host, uint16_t port, br_status *st)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    char text[8];
    int err;

    snprintf(text, sizeof text, "%u", port);
    err = getaddrinfo(host, text, &hints, out);
    if (err)
        return br_fail(st, BR_E_USAGE, "--host %s: %s", host,
                       gai_strerror(err));
    return BR_OK;
}

br_code
br_http_listen(br_http_loop *l, const char *host, uint16_t *port, br_status *st)
{
    struct addrinfo *list;
    br_code code;
    int fd, err;

    br_check(l->n_listen < BR_HTTP_MAX_LISTEN);
    BR_TRY(resolve(&list, host, *port, st));
    fd = bind_one(list);
    err = errno;
    freeaddrinfo(list);
    if (fd < 0)
        return br_fail(st, BR_E_IO, "%s port %u: %s%s", host, *port,
                       strerror(err),
                       err == EADDRINUSE ? "; --port takes another" : "");
    code = add_listener(l, fd, host, st);
    if (code == BR_OK)
        *port = port_of(fd);
    return code;
}

br_code
br_http_is_loopback(const char *host, bool *is, br_status *st)
{
    struct addrinfo *list;
    bool all = true;

    BR_TRY(resolve(&list, host, 0, st));
    for (const struct addrinfo *a = list; a && all; a = a->ai_next) {
        const void *p = a->ai_addr;

        if (a->ai_family == AF_INET)
            all = (ntohl(((const struct sockaddr_in *)p)->sin_addr.s_addr) >>
                   24) == 127;
        else
            all = a->ai_family == AF_INET6 &&
                  IN6_IS_ADDR_LOOPBACK(
                      &((const struct sockaddr_in6 *)p)->sin6_addr);
    }
    freeaddrinfo(list);
    *is = all;
    return BR_OK;
}

br_code
br_http_listen_unix(br_http_loop *l, const char *path, br_status *st)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat s = {0};
    int fd;

    br_check(l->n_listen < BR_HTTP_MAX_LISTEN);
    if (strlen(path) >= sizeof a.sun_path)
        return br_fail(st, BR_E_USAGE, "%s: over %zu bytes", path,
                       sizeof a.sun_path - 1);
    memcpy(a.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return br_fail(st, BR_E_IO, "%s: %s", path, strerror(errno));
    if (lstat(path, &s) == 0 && S_ISSOCK(s.st_mode) &&
        connect(fd, (struct sockaddr *)(void *)&a, sizeof a) < 0 &&
        errno == ECONNREFUSED)
        unlink(path);
    close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&a, sizeof a) < 0) {
        int err = errno;

        if (fd >= 0)
            close(fd);
        if (err == EADDRINUSE && s.st_mode && !S_ISSOCK(s.st_mode))
            return br_fail(st, BR_E_USAGE, "--unix %s: it is there, no socket",
                           path);
        return br_fail(st, BR_E_IO, "%s: %s", path, strerror(err));
    }
    br_str_puts(&l->unix_path, path);
    return add_listener(l, fd, path, st);
}

/* The highest number that a connection's file may have: the last ones are for what
 * else opens files, models and databases, and else nobody could accept who comes
 * then: he would wait, and we go round without a rest. */
static int
most_fd_of(int limit)
{
    enum { OTHERS = 32 };

    return limit - BR_MIN(limit / 4, OTHERS) - 1;
}

static int
file_limit(void)
{
    struct rlimit r;

    return getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur > INT_MAX
               ? INT_MAX
               : (int)r.rlim_cur;
}

br_code
br_http_loop_room(const br_http_loop *l, br_status *st)
{
    int limit = file_limit(), need = limit;
    int fd =
        fcntl(l->wake, F_DUPFD_CLOEXEC, 0); /* as a connection's would be */

    if (fd >= 0)
        close(fd);
    else
        fd = limit;
    if (fd <= most_fd_of(limit))
        return BR_OK;
    while (fd > most_fd_of(need))
        need++;
    return br_fail(st, BR_E_LIMIT,
                   "no open file is left for a connection: %d are allowed "
                   "(ulimit -n), at least %d are needed",
                   limit, need);
}

static void
refuse(const br_http_loop *l, int fd)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    static const char busy[] =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n";

    br_log_limited(&limit, BR_EV_http_full, "%u connections: %s", l->n_conns,
                   l->n_conns >= l->limits.conns
                       ? "--max-conns allows no more"
                       : "the limit on open files allows no more (ulimit -Hn)");
    (void)!send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL);
    close(fd);
}

static void
accept_some(br_http_loop *l, int fd)
{
    struct sockaddr_storage from;
    /* Not for ever: others wait, too. */
    for (int i = 0; i < 64; i++) {
        socklen_t n = sizeof from;
        int got = accept4(fd, (struct sockaddr *)(void *)&from, &n,
                          SOCK_NONBLOCK | SOCK_CLOEXEC);
        int one = 1;

        if (got < 0)
            return;
        if (l->n_conns >= l->limits.conns || got > l->most_fd) {
            refuse(l, got);
            continue;
        }
        setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!br_http_conn_open(l, got, from.ss_family == AF_UNIX))
            close(got);
    }
}

/* ---- turns --------------------------------------------------------------- */

void
br_http_loop_wake(br_http_loop *l)
{
    uint64_t one = 1;

    /* Full means that a wake-up is waiting already. */
    (void)!write(l->wake, &one, sizeof one);
}

void
br_http_loop_stop(br_http_loop *l)
{
    /* Release: pairs with nothing but the eventfd; the flag is all there is. */
    atomic_store_explicit(&l->stop, true, memory_order_relaxed);
    br_http_loop_wake(l);
}

uint32_t
br_http_loop_conns(const br_http_loop *l)
{
    return l->n_conns;
}

static void
handle(br_http_loop *l, const struct epoll_event *e)
{
    uint64_t n;

    if (e->data.ptr == &l->wake) {
        (void)!read(l->wake, &n, sizeof n);
        l->app.wake(l->app.ctx);
        return;
    }
    for (int i = 0; i < l->n_listen; i++)
        if (e->data.ptr == &l->listen[i]) {
            accept_some(l, l->listen[i]);
            return;
        }
    br_http_conn_event(e->data.ptr, e->events);
}

/* Tokens wait for nobody's request: one takes 0.1 ms to be read, and a hundred
 * may come at once. So they go first, and again when requests have taken a
 * while. */
static void
handle_all(br_http_loop *l, const struct epoll_event *e, int n)
{
    const int64_t a_while = 200000;
    int64_t heard;

    for (int i = 0; i < n; i++)
        if (e[i].data.ptr == &l->wake)
            handle(l, &e[i]);
    br_http_conns_flush(l);
    heard = br_now_ns();
    for (int i = 0; i < n; i++) {
        if (e[i].data.ptr == &l->wake)
            continue;
        handle(l, &e[i]);
        if (br_now_ns() - heard < a_while)
            continue;
        l->app.wake(l->app.ctx);
        br_http_conns_flush(l);
        heard = br_now_ns();
    }
    br_http_conns_flush(l);
}

int64_t
br_http_now(const br_http_loop *l)
{
    return br_now_ns() - l->away_ns;
}

/* The process was stopped, its machine paused or overrun: what came meanwhile has
 * not been looked at, and is not late. All of it: who had a moment left when it
 * began has that moment still. */
static void
note_away(br_http_loop *l, int64_t since, int64_t wait)
{
    int64_t took = br_now_ns() - since;

    if (took > BR_MAX(wait, 0) + AWAY_NS)
        l->away_ns += took;
}

static bool
tick(br_http_loop *l, int64_t now)
{
    bool stopping = atomic_load_explicit(&l->stop, memory_order_relaxed);
    br_http_conn *next;

    for (br_http_conn *c = l->first; c; c = next) {
        next = c->next;
        br_http_conn_tick(c, br_http_now(l), stopping);
    }
    return l->app.tick(l->app.ctx, now, stopping) || !stopping;
}

void
br_http_loop_run(br_http_loop *l)
{
    const int64_t second = 1000000000;
    int64_t next = br_now_ns() + second;
    bool goes_on = true;

    l->most_fd = most_fd_of(file_limit());
    while (goes_on) {
        struct epoll_event e[256];
        int64_t since = br_now_ns(), wait = next - since;
        bool stopping = atomic_load_explicit(&l->stop, memory_order_relaxed);
        int n;

        if (stopping && wait > second / 50)
            wait = second / 50;
        n = epoll_wait(l->ep, e, BR_COUNT(e),
                       wait > 0 ? (int)(wait / 1000000) + 1 : 0);
        note_away(l, since, wait);
        since = br_now_ns();
        handle_all(l, e, n);
        note_away(l, since, 0);
        if (stopping || br_now_ns() >= next) {
            next = br_now_ns() + second;
            goes_on = tick(l, br_now_ns());
            br_http_conns_flush(l);
        }
        br_http_conns_bury(l);
    }
}
