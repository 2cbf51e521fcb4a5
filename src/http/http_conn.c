/* http_conn.c - one connection: see http_loop.h and the head of http_loop.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http2.h"
#include "http/ws.h"

#include "base/log.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 << 10,
    KEEP_BYTES = 4 << 10,   /* of an empty output buffer */
    SMALL_BYTES = 64 << 10, /* of a body */
    /* Nobody is slow who has not fetched what came all at once: a prompt's logprobs,
     * say. Tokens are smaller. */
    LARGE_BYTES = 64 << 10,
    LINGER_NS = 2000000000,
};

const char *
br_http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
#define X(code, text) {code, text},
#include "http/status.def"
#undef X
    };

    for (size_t i = 0; i < BR_COUNT(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Status";
}

/* ---- life ---------------------------------------------------------------- */

/* Tells epoll what is of interest in the state at hand. */
static void
watch(br_http_conn *c)
{
    /* A client that has asked may close its side while it fetches the rest. */
    uint32_t want = c->state == BR_CONN_SENDING ? 0 : EPOLLRDHUP;
    struct epoll_event e;

    if (c->state == BR_CONN_READING || c->state == BR_CONN_LINGERING || c->ws ||
        c->tls_in)
        want |= EPOLLIN;
    if ((c->out.n > c->out_at && !c->tls_in) || c->tls_out)
        want |= EPOLLOUT;
    if (want == c->events)
        return;
    c->events = want;
    e = (struct epoll_event){.events = want, .data.ptr = c};
    epoll_ctl(c->loop->ep, EPOLL_CTL_MOD, c->fd, &e);
}

bool
br_http_conn_open(br_http_loop *l, int fd, bool local)
{
    br_http_conn *c = br_try_calloc(1, sizeof *c);
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};

    if (c && l->tls && !local)
        c->tls = br_tls_accept(l->tls, fd);
    if (!c || (l->tls && !local && !c->tls) ||
        epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &e) < 0) {
        if (c)
            br_tls_drop(c->tls);
        br_free(c);
        return false;
    }
    c->loop = l;
    c->local = local;
    c->fd = fd;
    c->events = e.events;
    br_http_parser_init(&c->in, l->limits.body_bytes);
    c->deadline_ns = br_http_now(l) + l->limits.head_ns;
    c->next = l->first;
    if (l->first)
        l->first->prev = c;
    l->first = c;
    l->n_conns++;
    return true;
}

void
br_http_conn_drop(br_http_conn *c, bool too_slow)
{
    br_http_loop *l = c->loop;
    bool answering = c->state == BR_CONN_BUSY || c->state == BR_CONN_STREAMING;

    if (c->state == BR_CONN_DEAD)
        return;
    c->state = BR_CONN_DEAD;
    if (answering)
        l->app.gone(l->app.ctx, c, too_slow);
    if (c->h2)
        br_h2_close(c);
    (void)br_http_holds(c, 0, 0);
    /* Not by close alone: a child that was forked may hold the socket too. */
    epoll_ctl(l->ep, EPOLL_CTL_DEL, c->fd, NULL);
    close(c->fd);
    c->fd = -1;
    *(c->prev ? &c->prev->next : &l->first) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    l->n_conns--;
    c->next = l->dead;
    l->dead = c;
}

void
br_http_conns_bury(br_http_loop *l)
{
    br_http_conn *next;

    for (br_http_conn *c = l->dead; c; c = next) {
        next = c->next;
        br_http_parser_fini(&c->in);
        br_str_fini(&c->rest);
        br_str_fini(&c->out);
        br_str_fini(&c->h2_head);
        br_str_fini(&c->h2_method);
        br_str_fini(&c->h2_path);
        br_str_fini(&c->h2_protocol);
        br_tls_drop(c->tls);
        if (c->ws)
            br_ws_fini(c->ws);
        br_free(c->ws);
        br_free(c);
    }
    l->dead = NULL;
}

/* ---- answers ------------------------------------------------------------- */

/* In the order of their first bytes: an engine brings the tokens of the most
 * urgent first. */
static void
list_dirty(br_http_conn *c)
{
    br_http_loop *l = c->loop;

    if (c->listed)
        return;
    c->listed = true;
    c->flush_next = NULL;
    *(l->dirty ? &l->dirty_last->flush_next : &l->dirty) = c;
    l->dirty_last = c;
}

const char *
br_http_date(br_http_loop *l)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now = br_wall_ns() / 1000000000;
    time_t t = (time_t)now;
    struct tm d;

    if (now != l->date_s && gmtime_r(&t, &d)) {
        l->date_s = now;
        (void)snprintf(
            l->date, sizeof l->date, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
            days + (size_t)d.tm_wday * 3, d.tm_mday,
            months + (size_t)d.tm_mon * 3, (d.tm_year + 1900) % 10000,
            d.tm_hour, d.tm_min, d.tm_sec);
    }
    return l->date;
}

const char *
br_http_id(br_http_conn *c)
{
    uint8_t r[12];

    if (!c->id[0]) {
        br_os_random(r, sizeof r);
        memcpy(c->id, "req_", 4);
        br_hex(r, sizeof r, c->id + 4);
    }
    return c->id;
}

static void
put_head(br_http_conn *c, int status, const char *type, const char *more)
{
    c->status = status;
    c->keep = c->in.keep_alive && status != 408 &&
              !atomic_load_explicit(&c->loop->stop, memory_order_relaxed);
    br_str_printf(&c->out, "HTTP/1.1 %d %s\r\n", status,
                  br_http_reason(status));
    if (type)
        br_str_printf(&c->out, "Content-Type: %s\r\n", type);
    br_str_printf(&c->out,
                  "Date: %s\r\nX-Content-Type-Options: nosniff\r\n"
                  "X-Request-Id: %s\r\n",
                  br_http_date(c->loop), br_http_id(c));
    if (c->id_twice)
        br_str_printf(&c->out, "Request-Id: %s\r\n", c->id);
    if (more)
        br_str_puts(&c->out, more);
    if (!c->keep)
        br_str_puts(&c->out, "Connection: close\r\n");
    else if (c->in.minor == 0)
        br_str_puts(&c->out, "Connection: keep-alive\r\n");
    list_dirty(c);
}

static bool
is_head(const br_http_conn *c)
{
    return br_text_is(c->in.method, "HEAD");
}

void
br_http_answer(br_http_conn *c, int status, const char *type, const char *more,
               br_text body)
{
    br_check(c->state == BR_CONN_BUSY || c->state == BR_CONN_READING);
    c->state = BR_CONN_SENDING;
    c->status = status;
    list_dirty(c);
    if (c->ws) {
        br_ws_put(&c->out, BR_WS_TEXT, body.p, body.n);
        return;
    }
    if (c->over) {
        br_h2_head(c, status, type, more, &body.n);
        if (!is_head(c))
            br_str_put(&c->out, body.p, body.n);
        return;
    }
    put_head(c, status, type, more);
    br_str_printf(&c->out, "Content-Length: %zu\r\n\r\n", body.n);
    if (!is_head(c))
        br_str_put(&c->out, body.p, body.n);
}

void
br_http_stream(br_http_conn *c, int status, const char *type, const char *more)
{
    br_check(c->state == BR_CONN_BUSY);
    c->chunked = c->in.minor == 1 && !c->over && !c->ws;
    c->last_put_ns = br_now_ns();
    c->large_bytes = 0;
    c->state = BR_CONN_STREAMING;
    if (c->ws)
        return;
    if (c->over) {
        c->status = status;
        br_h2_head(c, status, type, more, NULL);
        list_dirty(c);
        return;
    }
    if (!c->chunked)
        c->in.keep_alive = false; /* its end is the connection's */
    put_head(c, status, type, more);
    br_str_puts(&c->out,
                c->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

size_t
br_http_pending(const br_http_conn *c)
{
    return c->out.n - c->out_at;
}

void
br_http_put(br_http_conn *c, const char *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char size[20], *s = size + sizeof size;

    br_check(c->state == BR_CONN_STREAMING);
    if (!n || is_head(c) || c->closing)
        return;
    c->last_put_ns = br_now_ns();
    if (!br_http_pending(c))
        c->large_bytes = 0;
    c->large_bytes += n > LARGE_BYTES ? n : 0;
    if (br_http_pending(c) + n >
        c->loop->limits.pending_bytes + c->large_bytes) {
        c->closing = true;
        return;
    }
    if (c->chunked) {
        *--s = '\n';
        *--s = '\r';
        for (size_t v = n; v; v >>= 4)
            *--s = digits[v & 15];
        br_str_put(&c->out, s, (size_t)(size + sizeof size - s));
    }
    br_str_put(&c->out, p, n);
    if (c->chunked)
        br_str_put(&c->out, "\r\n", 2);
    list_dirty(c);
}

void
br_http_end(br_http_conn *c)
{
    br_check(c->state == BR_CONN_STREAMING);
    if (c->chunked && !is_head(c))
        br_str_puts(&c->out, "0\r\n\r\n");
    c->state = BR_CONN_SENDING;
    list_dirty(c);
}

/* ---- requests ------------------------------------------------------------ */

/* Who may ask is known when all of it is there: nobody has to have a key to send
 * bodies on as many connections as there may be. */
bool
br_http_holds(br_http_conn *c, size_t n, size_t of)
{
    br_http_loop *l = c->loop;

    l->held += (uint64_t)n - c->held;
    c->held = n;
    return of <= SMALL_BYTES || l->held <= l->limits.all_bytes;
}

/* A request that cannot be answered as it stands: says why, then closes. */
static void
refuse(br_http_conn *c, int status, const char *why)
{
    c->in.keep_alive = false;
    c->state = BR_CONN_BUSY;
    c->id[0] = 0;
    c->id_twice = false;
    c->loop->app.refuse(c->loop->app.ctx, c, status, why);
    br_check(c->state == BR_CONN_SENDING && "refuse answers at once");
    br_str_fini(&c->in.body);
    (void)br_http_holds(c, 0, 0);
}

static void
begin_request(br_http_conn *c)
{
    c->state = BR_CONN_BUSY;
    c->deadline_ns = 0;
    c->job = NULL;
    c->tale = NULL;
    c->id[0] = 0;
    c->id_twice = false;
    c->loop->app.request(c->loop->app.ctx, c);
}

/* ---- WebSocket ------------------------------------------------------------ */

/* What HTTP/1.1 says for it; a stream's CONNECT has said it all. */
static bool
asks_upgrade(const br_http_conn *c, br_text key)
{
    if (c->over)
        return c->h2_protocol.n > 0;
    return c->in.minor == 1 && key.n == 24 &&
           br_http_list_has(br_http_header_of(&c->in, "upgrade"),
                            "websocket") &&
           br_http_list_has(br_http_header_of(&c->in, "connection"), "upgrade");
}

bool
br_http_upgrade(br_http_conn *c)
{
    br_text key = br_http_header_of(&c->in, "sec-websocket-key");
    br_text version = br_http_header_of(&c->in, "sec-websocket-version");

    if (!br_text_is(version, "13") || !asks_upgrade(c, key))
        return false;
    c->ws = br_try_calloc(1, sizeof *c->ws);
    if (!c->ws)
        return false;
    c->ws->max_message = c->loop->limits.body_bytes;
    c->status = c->over ? 200 : 101;
    if (c->over) {
        br_h2_head(c, c->status, NULL, NULL, NULL);
    } else {
        br_str_puts(&c->out, "HTTP/1.1 101 Switching Protocols\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Accept: ");
        br_ws_accept(key, &c->out);
        br_str_puts(&c->out, "\r\n\r\n");
    }
    c->keep = true;
    c->state = BR_CONN_SENDING;
    list_dirty(c);
    return true;
}

/* Says why, and that this was all. */
void
br_http_ws_close(br_http_conn *c, uint16_t code, const char *why)
{
    if (c->state == BR_CONN_BUSY || c->state == BR_CONN_STREAMING)
        c->loop->app.gone(c->loop->app.ctx, c, false);
    br_ws_put_close(&c->out, code, why);
    c->keep = false;
    c->state = BR_CONN_SENDING;
    list_dirty(c);
}

void
br_http_ws_take(br_http_conn *c, const char *p, size_t n)
{
    br_ws *w = c->ws;

    while (n && c->keep) {
        size_t used;
        br_ws_got got = br_ws_feed(w, p, n, &used);

        p += used;
        n -= used;
        if (got == BR_WS_ASKED) {
            if (br_http_pending(c) > c->loop->limits.pending_bytes)
                c->closing = true; /* asks and does not listen */
            else
                br_ws_put(&c->out, BR_WS_PONG, w->control, w->n_control);
            list_dirty(c);
        } else if (got == BR_WS_BAD) {
            br_http_ws_close(c, w->code, w->why);
        } else if (got == BR_WS_OVER) {
            br_http_ws_close(c, 1000, "");
        } else if (got == BR_WS_MESSAGE && c->state != BR_CONN_READING) {
            br_http_ws_close(c, 1008,
                             "a request before the answer to the last one");
        } else if (got == BR_WS_MESSAGE) {
            br_str_clear(&c->in.body);
            br_str_put(&c->in.body, br_str_z(&w->message), w->message.n);
            begin_request(c);
        }
    }
}

/* ---- bytes in -------------------------------------------------------------- */

/* https:// where it is http://, or the other way round: who runs the client sees
 * an error of his library, who runs the server should see more than nothing. */
static void
refuse_other(br_http_conn *c, const char *why)
{
    static br_log_limit lim = {.every_ns = INT64_C(10000000000), .burst = 3};

    br_log_limited(&lim, BR_EV_http_tls, "%s", why);
    refuse(c, 400, why);
}

/* The first bytes say which protocol it is; true: they are used up. */
static bool
begin(br_http_conn *c, const char *p, size_t n)
{
    static const char preface[] = BR_H2_PREFACE;
    size_t have;

    if (*p == 22 && !c->rest.n) { /* a handshake; no method begins so */
        refuse_other(c, "this port speaks HTTP without TLS: "
                        "http://, not https://");
        return true;
    }
    br_str_put(&c->rest, p, n);
    have = BR_MIN(c->rest.n, sizeof preface - 1);
    if (br_h2_here && !c->rest.oom && memcmp(c->rest.at, preface, have) == 0) {
        if (have < sizeof preface - 1)
            return true; /* it may become one */
        c->begun = true;
        if (!br_h2_open(c) || !br_h2_feed(c, c->rest.at, c->rest.n))
            c->closing = true;
        br_str_fini(&c->rest);
        list_dirty(c);
        return true;
    }
    c->begun = true;
    return false;
}

/* Of HTTP/1: those behind a complete request wait in c->rest. */
static void
take_1(br_http_conn *c, const char *p, size_t n)
{
    bool head_done = c->in.head_done, busy = br_http_parser_busy(&c->in);
    br_http_got got;
    size_t used;

    got = br_http_parser_feed(&c->in, p, n, &used);
    if (got == BR_HTTP_BAD) {
        refuse(c, c->in.status, c->in.why);
        return;
    }
    if (!br_http_holds(c, c->in.body.n, c->in.body.n) && got == BR_HTTP_MORE) {
        refuse(c, 503, BR_HTTP_TOO_MUCH);
        return;
    }
    br_str_put(&c->rest, p + used, n - used);
    if (got == BR_HTTP_DONE) {
        begin_request(c);
        return;
    }
    if (!busy)
        c->deadline_ns = br_http_now(c->loop) + c->loop->limits.head_ns;
    if (!head_done && c->in.head_done) {
        c->deadline_ns = br_http_now(c->loop) + c->loop->limits.body_ns;
        if (c->in.wants_100 && !c->in.body.n) {
            br_str_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
            list_dirty(c);
        }
    }
}

static void
take(br_http_conn *c, const char *p, size_t n)
{
    br_str first = {0};

    if (c->ws) {
        br_http_ws_take(c, p, n);
        n = BR_MAX(c->ws->message.n, c->in.body.n);
        if (!br_http_holds(c, n, n) && c->keep)
            br_http_ws_close(c, 1013, BR_HTTP_TOO_MUCH);
    } else if (c->h2) {
        if (!br_h2_feed(c, p, n))
            c->closing = true;
        list_dirty(c);
    } else if (c->state != BR_CONN_READING) {
        return; /* lingering: nobody listens */
    } else if (c->begun) {
        take_1(c, p, n);
    } else if (!begin(c, p, n)) {
        first = c->rest;
        c->rest = (br_str){0};
        take_1(c, br_str_z(&first), first.n);
        br_str_fini(&first);
    }
}

static void
on_readable(br_http_conn *c)
{
    char buf[READ_BYTES];
    ssize_t n = c->tls ? br_tls_recv(c->tls, buf, sizeof buf, &c->tls_out)
                       : recv(c->fd, buf, sizeof buf, 0);

    if (n < 0 && c->tls && br_tls_was_http(c->tls)) {
        br_tls_drop(c->tls);
        c->tls = NULL;
        refuse_other(c, "this port speaks TLS: https://, not http://");
    } else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        br_http_conn_drop(c, false);
    else if (n > 0)
        take(c, buf, (size_t)n);
}

/* The answer is on its way: what comes next on this connection. */
static void
after_answer(br_http_conn *c)
{
    br_str rest = c->rest;

    if (!c->keep) {
        if (c->tls)
            br_tls_bye(c->tls);
        shutdown(c->fd, SHUT_WR);
        c->state = BR_CONN_LINGERING;
        c->deadline_ns = br_http_now(c->loop) + LINGER_NS;
        return;
    }
    c->rest = (br_str){0};
    if (!c->ws) {
        br_http_parser_reset(&c->in);
        (void)br_http_holds(c, 0, 0);
    }
    c->state = BR_CONN_READING;
    c->deadline_ns = br_http_now(c->loop) + c->loop->limits.idle_ns;
    if (rest.n)
        take(c, rest.at, rest.n);
    br_str_fini(&rest);
}

/* ---- bytes out ----------------------------------------------------------- */

static ssize_t
send_some(br_http_conn *c)
{
    const char *p = c->out.at + c->out_at;
    size_t n = c->out.n - c->out_at;

    return c->tls ? br_tls_send(c->tls, p, n, &c->tls_in)
                  : send(c->fd, p, n, MSG_NOSIGNAL);
}

/* False: the connection is gone. */
static bool
send_all(br_http_conn *c)
{
    while (c->out_at < c->out.n) {
        ssize_t n = send_some(c);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            br_http_conn_drop(c, false);
            return false;
        }
        c->out_at += (size_t)n;
        if (c->state != BR_CONN_READING)
            c->deadline_ns = 0;
        if (c->h2 && c->out_at == c->out.n) {
            c->out.n = c->out_at = 0;
            if (!br_h2_pump(c)) {
                br_http_conn_drop(c, false);
                return false;
            }
        }
    }
    return true;
}

/* True: nothing of it can be sent by itself, or any more. */
static bool
flush_other(br_http_conn *c)
{
    if (c->over) {
        br_h2_resume(c);
        list_dirty(c->over);
        return true;
    }
    if (!c->out.oom && !c->rest.oom &&
        !(c->h2 && (c->closing || !br_h2_pump(c))))
        return false;
    br_http_conn_drop(c, false);
    return true;
}

static void
flush(br_http_conn *c)
{
    br_http_loop *l = c->loop;

    if (flush_other(c) || !send_all(c))
        return;
    if (c->out_at < c->out.n) {
        if (!c->deadline_ns)
            c->deadline_ns = br_http_now(l) + l->limits.write_ns;
    } else {
        c->out.n = c->out_at = 0;
        if (c->out.cap > KEEP_BYTES)
            br_str_fini(&c->out);
        if (c->state == BR_CONN_SENDING)
            after_answer(c);
        else if (c->state == BR_CONN_STREAMING)
            l->app.drained(l->app.ctx, c);
    }
    watch(c);
}

void
br_http_conns_flush(br_http_loop *l)
{
    while (l->dirty) {
        br_http_conn *c = l->dirty;

        l->dirty = c->flush_next;
        c->listed = false;
        if (c->state != BR_CONN_DEAD)
            flush(c);
    }
}

/* ---- events -------------------------------------------------------------- */

/* Its client has closed its side before it had its answer. One that is gone looks
 * just so, and nothing is made for nobody; one that only has no more to ask
 * (`nc -N`) is still there to be told. */
static void
on_half_closed(br_http_conn *c)
{
    br_http_loop *l = c->loop;

    if (c->state != BR_CONN_BUSY || c->ws || c->h2) {
        br_http_conn_drop(c, false);
        return;
    }
    l->app.gone(l->app.ctx, c, false);
    refuse(c, 499,
           "the client closed its side of the connection before the answer "
           "was there, as one does that leaves: keep it open");
}

void
br_http_conn_event(br_http_conn *c, uint32_t events)
{
    bool answering = c->state == BR_CONN_BUSY || c->state == BR_CONN_STREAMING;

    if (c->state == BR_CONN_DEAD)
        return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        br_http_conn_drop(c, false);
        return;
    }
    if ((events & EPOLLRDHUP) && answering) {
        on_half_closed(c);
        return;
    }
    if (c->tls_out
            ? events & (EPOLLIN | EPOLLOUT)
            : (events & EPOLLIN) && (c->state == BR_CONN_READING ||
                                     c->state == BR_CONN_LINGERING || c->ws))
        on_readable(c);
    if (c->state != BR_CONN_DEAD && c->ws && c->closing)
        br_http_conn_drop(c, true);
    else if (c->state != BR_CONN_DEAD)
        list_dirty(c);
}

void
br_http_conn_tick(br_http_conn *c, int64_t now, bool stopping)
{
    if (c->h2) {
        br_h2_tick(c, now, stopping);
        list_dirty(c);
    }
    /* Who is idle when the server stops has a moment to say what it came for:
     * probes ask how it is. */
    if (stopping && c->state == BR_CONN_READING &&
        (c->ws || !br_http_parser_busy(&c->in)))
        c->deadline_ns = BR_MIN(c->deadline_ns, now + BR_CONN_LAST_CALL_NS);
    if (!c->closing && (!c->deadline_ns || now < c->deadline_ns))
        return;
    if (c->state == BR_CONN_READING && c->ws && !c->closing) {
        c->deadline_ns = 0;
        br_http_ws_close(c, 1001, "no message for too long");
        return;
    }
    if (c->state == BR_CONN_READING && br_http_parser_busy(&c->in)) {
        refuse(c, 408,
               c->in.head_done ? "the body took too long"
                               : "the headers took too long");
        return;
    }
    br_http_conn_drop(c, c->out_at < c->out.n);
}
