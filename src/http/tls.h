/* tls.h - connections that nobody else can read. OpenSSL does it; a build
 * without it has the functions, and br_tls_new says UNSUPPORTED.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TLS_H
#define BR_TLS_H

#include "base/base.h"

#include <sys/types.h>

typedef struct br_tls br_tls; /* certificate and key */
typedef struct br_tls_conn br_tls_conn;

/* PEM files; the certificate's chain behind it. TLS 1.2 and 1.3. h2: HTTP/2 is
 * offered, too. */
br_code br_tls_new(br_tls **out, const char *cert, const char *key, bool h2,
                   br_status *st) BR_MUST_USE;
void br_tls_free(br_tls *t);

/* Of a socket that does not block; NULL: out of memory. */
br_tls_conn *br_tls_accept(br_tls *t, int fd);
/* As recv and send: 0 is the end, -1 with errno. A recv of at least 16 KiB
 * leaves nothing decrypted behind. *other: before it can go on, a recv must
 * write, or a send read. */
ssize_t br_tls_recv(br_tls_conn *c, void *p, size_t n, bool *other);
ssize_t br_tls_send(br_tls_conn *c, const void *p, size_t n, bool *other);
/* The other side began with an HTTP request as it is. */
bool br_tls_was_http(const br_tls_conn *c);
bool br_tls_chose_h2(const br_tls_conn *c); /* once there was a recv */
void br_tls_bye(br_tls_conn *c);            /* nothing more will be sent */
void br_tls_drop(br_tls_conn *c);

#endif
