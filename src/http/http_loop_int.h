/* http_loop_int.h - between http_loop.c (sockets, time) and http_conn.c (one
 * connection).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP_LOOP_INT_H
#define BR_HTTP_LOOP_INT_H

#include "http/http_loop.h"
#include "http/tls.h"

#include <stdatomic.h>

enum {
    BR_CONN_READING,
    BR_CONN_BUSY,      /* the app has the request */
    BR_CONN_STREAMING, /* and has begun to answer */
    BR_CONN_SENDING,   /* the answer is complete, not all sent */
    BR_CONN_LINGERING, /* all sent; the client has yet to close */
    BR_CONN_DEAD,
};
#define BR_HTTP_TOO_MUCH "the bodies of all connections are too large together"
/* For who is idle when the server stops. */
enum { BR_CONN_LAST_CALL_NS = 300000000 };

struct br_http_loop {
    br_http_limits limits;
    br_http_app app;
    int ep, wake, most_fd;
    int listen[BR_HTTP_MAX_LISTEN];
    int n_listen;
    br_str unix_path;
    br_tls *tls;         /* of TCP; NULL: none */
    br_http_conn *first; /* of the living */
    /* to be flushed at the end of the turn; last: where there are any */
    br_http_conn *dirty, *dirty_last;
    br_http_conn *dead; /* events of this turn may still name them */
    uint32_t n_conns;
    int64_t away_ns; /* see br_http_now */
    uint64_t held;   /* bytes of all their bodies and messages */
    int64_t date_s;  /* what date says, since 1970 */
    char date[32];
    _Atomic bool stop;
};

bool br_http_conn_open(br_http_loop *l, int fd, bool local);
void br_http_conn_event(br_http_conn *c, uint32_t events);
void br_http_conn_tick(br_http_conn *c, int64_t now, bool stopping);
/* Closes it; the app hears of it if it was answering. */
void br_http_conn_drop(br_http_conn *c, bool too_slow);
/* Bytes of a WebSocket's client; a reason to close it. */
void br_http_ws_take(br_http_conn *c, const char *p, size_t n);
void br_http_ws_close(br_http_conn *c, uint16_t code, const char *why);
/* Its body or message has n bytes now, all of its socket `of`. False: with all others'
 * that is too much. */
bool br_http_holds(br_http_conn *c, size_t n, size_t of);
/* For the head of an answer: what time it is, and how who writes to us about it
 * may call it ("req_..." where the app gave it no name). */
const char *br_http_date(br_http_loop *l);
const char *br_http_id(br_http_conn *c);
/* Time as deadlines of connections have it: it stands still where the loop was
 * away. */
int64_t br_http_now(const br_http_loop *l);
void br_http_conns_flush(br_http_loop *l);
void br_http_conns_bury(br_http_loop *l);

#endif
