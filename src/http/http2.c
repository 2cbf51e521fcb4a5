/* http2.c - see http2.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http2.h"

#ifdef BR_HAVE_NGHTTP2
#    include "base/thread.h"
#    include "http/ws.h"

#    include <nghttp2/nghttp2.h>
#    include <stdio.h>
#    include <string.h>

const bool br_h2_here = true;

struct br_h2 {
    nghttp2_session *session;
    br_http_conn *conn;
    br_http_conn *streams;
    size_t body_bytes; /* of requests not yet complete, or being answered */
    uint32_t n_streams, n_resets, n_done;
};

/* ---- streams -------------------------------------------------------------- */

static br_http_conn *
stream_new(struct br_h2 *h, int32_t id)
{
    br_http_conn *s = br_try_calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->loop = h->conn->loop;
    s->fd = -1;
    s->local = h->conn->local;
    s->over = h->conn;
    s->stream = id;
    s->deadline_ns = br_http_now(s->loop) + s->loop->limits.body_ns;
    br_http_parser_init(&s->in, s->loop->limits.body_bytes);
    s->next = h->streams;
    if (s->next)
        s->next->prev = s;
    h->streams = s;
    h->n_streams++;
    h->conn->deadline_ns = 0;
    return s;
}

/* It is no more; the app hears of it if it was answering. */
static void
stream_gone(struct br_h2 *h, br_http_conn *s, bool too_slow)
{
    br_http_loop *l = s->loop;
    bool answering = s->state == BR_CONN_BUSY || s->state == BR_CONN_STREAMING;

    s->state = BR_CONN_DEAD;
    if (answering)
        l->app.gone(l->app.ctx, s, too_slow);
    h->body_bytes -= s->held;
    (void)br_http_holds(s, 0, 0);
    *(s->prev ? &s->prev->next : &h->streams) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->over = NULL;
    s->next = l->dead;
    l->dead = s;
    if (--h->n_streams == 0)
        h->conn->deadline_ns = br_http_now(l) + l->limits.idle_ns;
}

static void
request(br_http_conn *s)
{
    br_http_loop *l = s->loop;
    br_http_got got;
    size_t used;

    br_str_puts(&s->h2_head, "\r\n");
    got =
        br_http_parser_feed(&s->in, br_str_z(&s->h2_head), s->h2_head.n, &used);
    s->state = BR_CONN_BUSY;
    s->deadline_ns = 0;
    if (s->h2_head.oom || s->rest.oom)
        l->app.refuse(l->app.ctx, s, 503, "out of memory");
    else if (got != BR_HTTP_DONE)
        l->app.refuse(l->app.ctx, s, s->in.status ? s->in.status : 400,
                      s->in.why ? s->in.why : "the request is malformed");
    else {
        br_str_fini(&s->in.body);
        s->in.body = s->rest;
        s->rest = (br_str){0};
        l->app.request(l->app.ctx, s);
    }
}

/* Its bytes are held up to the end of the stream, or of the message. NULL: all is
 * well. */
static const char *
holds_too_much(struct br_h2 *h, br_http_conn *s, size_t n)
{
    h->body_bytes += n - s->held;
    if (!br_http_holds(s, n, h->body_bytes))
        return BR_HTTP_TOO_MUCH;
    return h->body_bytes <= s->loop->limits.body_bytes
               ? NULL
               : "the bodies on this connection are too large";
}

/* ---- what nghttp2 tells ---------------------------------------------------- */

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
    struct br_h2 *h = user;
    br_http_conn *s;

    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    s = stream_new(h, f->hd.stream_id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    (void)nghttp2_session_set_stream_user_data(session, f->hd.stream_id, s);
    return 0;
}

/* Pseudo headers come first, in any order: method and path wait for each
 * other. Texts are free of line ends: nghttp2 has looked. */
static int
on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
          size_t n, const uint8_t *value, size_t value_n, uint8_t flags,
          void *user)
{
    /* A browser's cookies come one by one (RFC 9113, 8.2.3), and are of all that its
     * host serves: nobody here reads them. */
    static const char *const dropped[] = {"host", "content-length", "te",
                                          "expect", "cookie"};
    br_http_conn *s =
        nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
    br_text key = {(const char *)name, n}, v = {(const char *)value, value_n};

    (void)flags, (void)user;
    if (!s || f->headers.cat != NGHTTP2_HCAT_REQUEST ||
        s->h2_head.n > BR_HTTP_MAX_HEAD) /* the parser says that it is long */
        return 0;
    if (br_text_is(key, ":method")) {
        br_str_put(&s->h2_method, v.p, v.n);
    } else if (br_text_is(key, ":protocol")) {
        br_str_put(&s->h2_protocol, v.p, v.n);
    } else if (br_text_is(key, ":path")) {
        br_str_put(&s->h2_path, v.p, v.n);
    } else if (br_text_is(key, ":authority")) {
        br_str_puts(&s->h2_head, "host: ");
        br_str_put(&s->h2_head, v.p, v.n);
        br_str_puts(&s->h2_head, "\r\n");
    } else if (n && name[0] != ':') {
        if (br_text_is(key, "expect"))
            s->in.wants_100 = br_http_same(v, "100-continue");
        for (size_t i = 0; i < BR_COUNT(dropped); i++)
            if (br_text_is(key, dropped[i]) &&
                (i || memmem(br_str_z(&s->h2_head), s->h2_head.n, "host: ", 6)))
                return 0;
        br_str_put(&s->h2_head, key.p, key.n);
        br_str_puts(&s->h2_head, ": ");
        br_str_put(&s->h2_head, v.p, v.n);
        br_str_puts(&s->h2_head, "\r\n");
    }
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id,
        const uint8_t *data, size_t n, void *user)
{
    br_http_conn *s = nghttp2_session_get_stream_user_data(session, id);
    struct br_h2 *h = user;
    const char *why;

    (void)flags;
    if (s && s->ws) {
        br_http_ws_take(s, (const char *)data, n);
        why = holds_too_much(h, s, BR_MAX(s->ws->message.n, s->in.body.n));
        if (why && s->keep)
            br_http_ws_close(s, 1009, why);
        return 0;
    }
    if (!s || s->state != BR_CONN_READING)
        return 0;
    why = holds_too_much(h, s, s->rest.n + n);
    if (why) {
        s->state = BR_CONN_BUSY;
        s->loop->app.refuse(s->loop->app.ctx, s,
                            strcmp(why, BR_HTTP_TOO_MUCH) == 0 ? 503 : 413,
                            why);
        br_str_fini(&s->rest);
        (void)holds_too_much(h, s, 0);
        return 0;
    }
    br_str_put(&s->rest, (const char *)data, n);
    return 0;
}

/* Some clients wait for that, however long, before they send a body. */
static void
tell_to_go_on(nghttp2_session *session, int32_t id)
{
    char name[] = ":status", value[] = "100";
    nghttp2_nv nv = {.name = (uint8_t *)name,
                     .namelen = sizeof name - 1,
                     .value = (uint8_t *)value,
                     .valuelen = sizeof value - 1};

    /* without memory for it they wait as long as they like */
    (void)nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, id, NULL, &nv, 1,
                                 NULL);
}

/* A stream that becomes a WebSocket has no end; to the parser it is a GET. */
static int
on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user)
{
    br_http_conn *s =
        nghttp2_session_get_stream_user_data(session, f->hd.stream_id);
    bool last = f->hd.flags & NGHTTP2_FLAG_END_STREAM, tunnel, ws;
    br_str line = {0};

    (void)user;
    if (!s || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
        return 0;
    if (s->ws && last && s->keep) /* as a socket that is shut */
        br_http_ws_close(s, 1000, "");
    if (s->ws || s->state != BR_CONN_READING)
        return 0;
    tunnel = br_text_is((br_text){s->h2_method.at, s->h2_method.n}, "CONNECT");
    ws = tunnel && br_text_is((br_text){s->h2_protocol.at, s->h2_protocol.n},
                              "websocket");
    if (tunnel && !ws) {
        s->state = BR_CONN_BUSY;
        s->loop->app.refuse(s->loop->app.ctx, s, 501,
                            "CONNECT is for WebSockets alone");
        return 0;
    }
    if (!last && !ws) {
        if (s->in.wants_100)
            tell_to_go_on(session, f->hd.stream_id);
        s->in.wants_100 = false;
        return 0;
    }
    if (ws)
        br_str_puts(&line, "GET");
    else
        br_str_put(&line, br_str_z(&s->h2_method), s->h2_method.n);
    br_str_puts(&line, " ");
    br_str_put(&line, br_str_z(&s->h2_path), s->h2_path.n);
    br_str_puts(&line, " HTTP/1.1\r\n");
    br_str_put(&line, br_str_z(&s->h2_head), s->h2_head.n);
    line.oom |= s->h2_head.oom || s->h2_method.oom || s->h2_path.oom;
    br_str_fini(&s->h2_head);
    s->h2_head = line;
    request(s);
    return 0;
}

static int
on_close(nghttp2_session *session, int32_t id, uint32_t why, void *user)
{
    br_http_conn *s = nghttp2_session_get_stream_user_data(session, id);
    struct br_h2 *h = user;

    if (!s)
        return 0;
    if (why == NGHTTP2_NO_ERROR)
        h->n_done++;
    else
        h->n_resets++;
    stream_gone(h, s, false);
    return 0;
}

/* Bytes of the answer, as many as fit. */
static ssize_t
read_answer(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    br_http_conn *s = source->ptr;
    size_t n = BR_MIN(br_http_pending(s), room);

    (void)session, (void)id, (void)user;
    if (n)
        memcpy(to, s->out.at + s->out_at, n);
    s->out_at += n;
    s->deadline_ns = 0;
    if (s->out_at < s->out.n)
        return (ssize_t)n;
    s->out.n = s->out_at = 0;
    if (s->ws && s->keep && s->state == BR_CONN_SENDING) {
        s->state = BR_CONN_READING; /* the next message */
        s->deadline_ns = br_http_now(s->loop) + s->loop->limits.idle_ns;
    } else if (s->state == BR_CONN_SENDING) {
        s->deadline_ns = br_http_now(s->loop) + s->loop->limits.write_ns;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)n;
    }
    s->loop->app.drained(s->loop->app.ctx, s);
    return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

/* ---- life ------------------------------------------------------------------ */

bool
br_h2_open(br_http_conn *c)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, BR_H2_STREAMS},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, BR_HTTP_MAX_HEAD},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}};
    nghttp2_session_callbacks *cb = NULL;
    struct br_h2 *h = br_try_calloc(1, sizeof *h);
    bool ok = h && nghttp2_session_callbacks_new(&cb) == 0;

    if (ok) {
        h->conn = c;
        nghttp2_session_callbacks_set_on_begin_headers_callback(
            cb, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
        ok = nghttp2_session_server_new(&h->session, cb, h) == 0 &&
             nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
                                     BR_COUNT(settings)) == 0;
    }
    nghttp2_session_callbacks_del(cb);
    if (!ok && h) {
        nghttp2_session_del(h->session);
        br_free(h);
        return false;
    }
    c->h2 = h;
    c->deadline_ns = br_http_now(c->loop) + c->loop->limits.idle_ns;
    return ok;
}

void
br_h2_close(br_http_conn *c)
{
    struct br_h2 *h = c->h2;

    c->h2 = NULL;
    while (h->streams)
        stream_gone(h, h->streams, false);
    nghttp2_session_del(h->session);
    br_free(h);
}

bool
br_h2_feed(br_http_conn *c, const char *p, size_t n)
{
    ssize_t used =
        nghttp2_session_mem_recv(c->h2->session, (const uint8_t *)p, n);

    if (c->h2->n_resets > BR_H2_RESETS + c->h2->n_done)
        return false; /* asks and never waits */
    return used == (ssize_t)n;
}

bool
br_h2_pump(br_http_conn *c)
{
    nghttp2_session *s = c->h2->session;

    while (c->out.n - c->out_at < BR_H2_BACKLOG) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(s, &p);

        if (n < 0)
            return false;
        if (n == 0)
            break;
        br_str_put(&c->out, (const char *)p, (size_t)n);
    }
    return c->out.n > c->out_at || nghttp2_session_want_read(s) ||
           nghttp2_session_want_write(s);
}

void
br_h2_tick(br_http_conn *c, int64_t now_ns, bool stopping)
{
    struct br_h2 *h = c->h2;
    br_http_conn *next;

    for (br_http_conn *s = h->streams; s; s = next) {
        bool late;

        next = s->next;
        if (s->state != BR_CONN_READING && br_http_pending(s) &&
            !s->deadline_ns)
            s->deadline_ns = now_ns + s->loop->limits.write_ns;
        if (stopping && s->ws && s->state == BR_CONN_READING)
            s->deadline_ns =
                BR_MIN(s->deadline_ns, now_ns + BR_CONN_LAST_CALL_NS);
        late = s->closing || (s->deadline_ns && now_ns > s->deadline_ns);
        if (!late)
            continue;
        (void)nghttp2_session_set_stream_user_data(h->session, s->stream, NULL);
        (void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE,
                                        s->stream, NGHTTP2_CANCEL);
        stream_gone(h, s, s->state != BR_CONN_READING);
    }
    if (stopping && !h->n_streams)
        (void)nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
}

/* ---- answers --------------------------------------------------------------- */

static void
add(nghttp2_nv *list, size_t *n, br_text name, br_text value)
{
    list[(*n)++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
                                .namelen = name.n,
                                .value = (uint8_t *)(uintptr_t)value.p,
                                .valuelen = value.n,
                                .flags = NGHTTP2_NV_FLAG_NONE};
}

void
br_h2_head(br_http_conn *s, int status, const char *type, const char *more,
           const size_t *length)
{
    enum { MOST = 16 };
    bool none = br_text_is(s->in.method, "HEAD");
    nghttp2_data_provider data = {.source.ptr = s,
                                  .read_callback = read_answer};
    nghttp2_nv list[MOST];
    char code[16], size[24], names[512];
    size_t n = 0, used = 0;

    (void)snprintf(code, sizeof code, "%03d", status);
    add(list, &n, BR_TEXT(":status"), br_text_z(code));
    if (type)
        add(list, &n, BR_TEXT("content-type"), br_text_z(type));
    add(list, &n, BR_TEXT("date"), br_text_z(br_http_date(s->loop)));
    add(list, &n, BR_TEXT("x-content-type-options"), BR_TEXT("nosniff"));
    add(list, &n, BR_TEXT("x-request-id"), br_text_z(br_http_id(s)));
    if (s->id_twice)
        add(list, &n, BR_TEXT("request-id"), br_text_z(br_http_id(s)));
    if (length) {
        (void)snprintf(size, sizeof size, "%zu", *length);
        add(list, &n, BR_TEXT("content-length"), br_text_z(size));
    }
    /* "Name: value\r\n"...; names are of small letters here */
    while (more && *more && n < MOST) {
        const char *colon = strstr(more, ": "), *end = strstr(more, "\r\n");
        size_t k;

        br_check(colon && end && colon < end);
        k = (size_t)(colon - more);
        br_check(used + k <= sizeof names);
        for (size_t i = 0; i < k; i++)
            names[used + i] =
                (char)(more[i] >= 'A' && more[i] <= 'Z' ? more[i] | 0x20
                                                        : more[i]);
        add(list, &n, (br_text){names + used, k},
            (br_text){colon + 2, (size_t)(end - colon) - 2});
        used += k;
        more = end + 2;
    }
    if (nghttp2_submit_response(s->over->h2->session, s->stream, list, n,
                                none ? NULL : &data) != 0)
        s->closing = true; /* no memory: its client hears of a reset */
}

void
br_h2_resume(br_http_conn *s)
{
    (void)nghttp2_session_resume_data(s->over->h2->session, s->stream);
}

#else

const bool br_h2_here = false;

bool
br_h2_open(br_http_conn *c)
{
    (void)c;
    return false;
}

void
br_h2_close(br_http_conn *c)
{
    (void)c;
}

bool
br_h2_feed(br_http_conn *c, const char *p, size_t n)
{
    (void)c, (void)p, (void)n;
    return false;
}

bool
br_h2_pump(br_http_conn *c)
{
    (void)c;
    return false;
}

void
br_h2_tick(br_http_conn *c, int64_t now_ns, bool stopping)
{
    (void)c, (void)now_ns, (void)stopping;
}

void
br_h2_head(br_http_conn *s, int status, const char *type, const char *more,
           const size_t *length)
{
    (void)s, (void)status, (void)type, (void)more, (void)length;
}

void
br_h2_resume(br_http_conn *s)
{
    (void)s;
}
#endif
