/* http_get.h - one GET, by libcurl (http_curl.c) or, in a build without it,
 * not at all (http_none.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP_GET_H
#define BR_HTTP_GET_H

#include "base/base.h"

typedef struct br_http_head {
    long status;
    uint64_t first, total; /* of a part, of the whole; total 0: not told */
    char etag[128];        /* strong ones only; "" when there is none */
} br_http_head;

typedef struct br_http_get {
    const char *url;
    uint64_t from;        /* asks for what follows; 0: for all */
    const char *if_range; /* only if it is still this etag; or NULL */
    /* Called once before the first byte, then with the bytes. False ends the
     * transfer. A status of 300 and more has no bytes. */
    bool (*head)(void *ctx, const br_http_head *h);
    bool (*data)(void *ctx, const void *p, size_t n);
    void *ctx;
} br_http_get;

typedef enum br_http_end {
    BR_HTTP_DONE,    /* all came; *status says what it was */
    BR_HTTP_AGAIN,   /* broken off: it may go better the next time */
    BR_HTTP_STOPPED, /* a callback said so */
    BR_HTTP_NEVER,   /* no such host, a bad certificate, ... */
} br_http_end;

/* why: what went wrong, in words. */
br_http_end br_http_fetch(const br_http_get *g, long *status, char why[256]);
bool br_http_here(void); /* false: this build has no libcurl */

#endif
