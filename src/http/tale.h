/* tale.h - the stream of a response in background, for clients that come back.
 *
 *   gen --events--> tale --from any event on--> followers: connections
 *
 * Nobody's slowness holds the response up: a follower gets its next bytes when
 * it has fetched those before. A tale stays for some minutes after its end; one
 * that is told again, from what is kept (come_back.c), goes with its followers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TALE_H
#define BR_TALE_H

#include "http/srv.h"

enum {
    BR_TALE_BYTES = 32 << 20, /* of one: 150,000 tokens and more */
    BR_TALES_BYTES = 256 << 20,
};
#define BR_TALE_KEEP_NS INT64_C(600000000000) /* after its end */

typedef struct br_tale br_tale;

/* NULL: out of memory. */
br_tale *br_tale_new(br_http *h, uint32_t tenant, const char *id);
/* Whole events of a server's stream; those without a name, comments, are not
 * counted. False: it is too long, and broken. */
bool br_tale_put(br_tale *t, const char *p, size_t n) BR_MUST_USE;
void br_tale_end(br_tale *t); /* no more comes */
#define BR_TALE_HOLES "the stream could not be kept whole: ask for the response"
/* It is gone, and who follows it hears why. */
void br_tale_break(br_tale *t, const char *why);
void br_tale_drop(br_tale *t); /* nobody may come to it any more */
/* It can be told again. fails: it has failed, and has fewer events than some
 * were told: who has had them all hears the last one. */
void br_tale_again(br_tale *t, bool fails);
bool br_tale_is_followed(const br_tale *t);
/* NULL: none, or not any more. */
br_tale *br_tale_of(const br_http *h, uint32_t tenant, br_text id);
/* The answer to c's request is what follows event `after`; -1: all of it. */
void br_tale_follow(br_tale *t, br_http_conn *c, int64_t after);

/* From the loop, for connections that follow one. */
void br_tale_gone(br_http_conn *c);
void br_tale_drained(br_http_conn *c);
void br_tales_tick(br_http *h, int64_t now_ns);
void br_tales_free(br_http *h);

#endif
