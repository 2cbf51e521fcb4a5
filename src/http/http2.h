/* http2.h - HTTP/2 over a connection: nghttp2 has the frames, we the requests.
 *
 *   conn (the socket) --bytes--> session --> stream: a br_http_conn of its own
 *                     <--bytes--         <-- whose answer goes in its out
 *
 * To the app a stream is a connection with one request. Its head is written as
 * HTTP/1.1 would have it and read by the parser that reads those, so that both
 * have the same rules and limits. A build without nghttp2 has br_h2_here false.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP2_H
#define BR_HTTP2_H

#include "http/http_loop_int.h"

enum {
    BR_H2_STREAMS = 256, /* at once, of a connection */
    BR_H2_RESETS = 1000, /* by the client, more than requests it let finish */
    BR_H2_BACKLOG = 256 << 10, /* bytes framed and not yet sent */
};
/* Bodies of all streams of a connection together: limits.body_bytes. */

extern const bool br_h2_here;
/* What clients that know it is HTTP/2 begin with. */
#define BR_H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

bool br_h2_open(br_http_conn *c) BR_MUST_USE; /* false: out of memory */
void br_h2_close(br_http_conn *c);            /* the app hears of it */
/* False: the connection is of no more use. */
bool br_h2_feed(br_http_conn *c, const char *p, size_t n) BR_MUST_USE;
bool br_h2_pump(br_http_conn *c) BR_MUST_USE; /* frames into c->out */
void br_h2_tick(br_http_conn *c, int64_t now_ns, bool stopping);

/* Of a stream: the head of its answer; there is more in its out. */
void br_h2_head(br_http_conn *s, int status, const char *type, const char *more,
                const size_t *length);
void br_h2_resume(br_http_conn *s);

#endif
