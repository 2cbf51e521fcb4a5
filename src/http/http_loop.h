/* http_loop.h - connections: bytes in, requests out; answers in, bytes out.
 *
 *   listen --accept--> conn --parser--> app.request(conn)
 *                        ^                   |
 *   other threads --wake-+--> app.wake --> answer, or stream put put end
 *
 * One thread owns a loop and all its connections, and calls the app's
 * functions; only br_http_loop_wake and br_http_loop_stop may be called by
 * others (and by signal handlers). It knows nothing of models.
 *
 * A connection reads one request at a time: while it is being answered nothing
 * more is read, so a client that pipelines fills its own socket. What a client
 * can hold of ours is limited: bytes of a request, bytes of an answer that it
 * does not fetch, seconds for each, connections in all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP_LOOP_H
#define BR_HTTP_LOOP_H

#include "http/http_parse.h"

typedef struct br_http_loop br_http_loop;
typedef struct br_http_conn br_http_conn;

enum { BR_HTTP_MAX_LISTEN = 4 };

typedef struct br_http_limits {
    uint32_t conns;
    size_t body_bytes;
    size_t all_bytes; /* of all bodies; no body under 64 KiB is refused */
    /* of an answer, waiting to be fetched: over it the client is too slow */
    size_t pending_bytes;
    int64_t head_ns;  /* from the first byte of a request to its blank line */
    int64_t body_ns;  /* from there to its end */
    int64_t idle_ns;  /* between requests */
    int64_t write_ns; /* without a byte fetched */
} br_http_limits;
/* 4096 connections, 16 MiB, 1 GiB, 4 MiB; 10 s, 60 s, 75 s, 30 s */
br_http_limits br_http_limits_default(void);

typedef struct br_http_app {
    void *ctx;
    /* A complete request; c->in holds until the answer is complete. */
    void (*request)(void *ctx, br_http_conn *c);
    /* A connection that was being answered is gone: its client closed it, or
     * was too slow. Nothing may be sent to it any more. */
    void (*gone)(void *ctx, br_http_conn *c, bool too_slow);
    /* After br_http_loop_wake, once for many; while a watched file is readable
     */
    void (*wake)(void *ctx);
    /* All that was put has been sent. */
    void (*drained)(void *ctx, br_http_conn *c);
    /* About once a second. False: the loop may end (asked while stopping) */
    bool (*tick)(void *ctx, int64_t now_ns, bool stopping);
    /* A refused request, as a JSON body or whatever clients understand. */
    void (*refuse)(void *ctx, br_http_conn *c, int status, const char *why);
} br_http_app;

struct br_http_conn {
    br_http_loop *loop;
    int fd;        /* -1: a stream of HTTP/2 */
    uint8_t state; /* private */
    bool local;    /* a unix socket */
    bool closing;  /* private: too slow */
    bool keep;     /* the connection stays after this answer */
    bool chunked;  /* the answer's body is */
    bool listed;   /* private: in the list of those to be flushed */
    br_http_parser in;
    br_str rest; /* read, but behind the request at hand */
    br_str out;
    size_t out_at;       /* bytes of out that are sent */
    int64_t deadline_ns; /* 0: none */
    int64_t last_put_ns;
    size_t large_bytes; /* that came at once, since nothing waited */
    uint32_t events;
    int status;       /* of the answer at hand */
    uint32_t tenant;  /* the app's: who asks */
    int64_t asked_ns; /* the app's: when */
    /* the answer's X-Request-Id, if the app has one; "": any */
    char id[40];
    bool id_twice;  /* the app's: as Request-Id, too */
    char model[64]; /* the app's: all they may ask is of that; "": any */
    bool admin;     /* the app's: with the admin's key */
    void *job;      /* the app's */
    struct br_follower *tale; /* the app's */
    br_http_conn *prev, *next, *flush_next;
    /* private: what lies between it and the socket */
    struct br_tls_conn *tls;
    bool tls_in, tls_out; /* to send it must read; to receive, write */
    bool begun;           /* which protocol it is, is known */
    struct br_h2 *h2;
    br_http_conn *over; /* of a stream: the connection it is on */
    int32_t stream;
    br_str h2_head, h2_method, h2_path, h2_protocol;
    size_t held;      /* bytes of its body or message */
    struct br_ws *ws; /* WebSocket from now on: messages are requests */
};

br_code br_http_loop_new(br_http_loop **out, const br_http_limits *l,
                         const br_http_app *app, br_status *st) BR_MUST_USE;
void br_http_loop_free(br_http_loop *l);
/* host: a name or an address; port 0: any, and *port says which. */
br_code br_http_listen(br_http_loop *l, const char *host, uint16_t *port,
                       br_status *st) BR_MUST_USE;
/* A path; a socket nobody listens on any more is replaced. */
br_code br_http_listen_unix(br_http_loop *l, const char *path,
                            br_status *st) BR_MUST_USE;
/* TCP connections speak TLS from now on; PEM files. UNSUPPORTED: the build
 * cannot. */
br_code br_http_loop_tls(br_http_loop *l, const char *cert, const char *key,
                         br_status *st) BR_MUST_USE;
/* Calls app.wake while fd is readable. */
br_code br_http_loop_watch(br_http_loop *l, int fd, br_status *st) BR_MUST_USE;
void br_http_loop_unwatch(br_http_loop *l, int fd);
/* LIMIT: so many files are open that no connection may have one. */
br_code br_http_loop_room(const br_http_loop *l, br_status *st) BR_MUST_USE;
/* Until br_http_loop_stop and then until app.tick says so. */
void br_http_loop_run(br_http_loop *l);
void br_http_loop_wake(br_http_loop *l); /* any thread */
void br_http_loop_stop(br_http_loop *l); /* any thread, signal handlers */
uint32_t br_http_loop_conns(const br_http_loop *l);
/* *is: every address of that name is this machine's own. */
br_code br_http_is_loopback(const char *host, bool *is,
                            br_status *st) BR_MUST_USE;

/* ---- answers: one of the two, once per request ---------------------------- */

/* more: further header lines, each with CR LF, or NULL. */
void br_http_answer(br_http_conn *c, int status, const char *type,
                    const char *more, br_text body);
/* A body in pieces. With HEAD the pieces are not sent. */
void br_http_stream(br_http_conn *c, int status, const char *type,
                    const char *more);
/* Where more would wait than the limit allows, p is dropped and the connection
 * closed at the next tick, as too slow; 64 KiB and more at once do not count. */
void br_http_put(br_http_conn *c, const char *p, size_t n);
size_t br_http_pending(const br_http_conn *c); /* bytes that wait */
void br_http_end(br_http_conn *c);
/* Instead of an answer: from now on the connection is a WebSocket, and so is a
 * stream of HTTP/2 that CONNECTs as one (RFC 8441). Each
 * message is a request with that as its body, in c->in.body; an answer's body
 * is a text, what is put in a stream has to be frames (ws.h). False: the
 * request asks for no such thing, or wrongly; answer it. */
bool br_http_upgrade(br_http_conn *c);
const char *br_http_reason(int status); /* "Not Found" */

#endif
