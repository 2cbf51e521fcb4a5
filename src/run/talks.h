/* talks.h - responses that clients come back to, in a SQLite file.
 *
 *   put, drop --> what waits --> a thread of its own --> the file
 *   get <-- what waits, or the file by another connection
 *
 * One row is a turn: what was asked, what came, and the turn before it. A turn
 * is its tenant's alone; it goes after so many days, and the oldest go where a
 * tenant has more than it may. Nobody waits for the disk: what a kill -9 finds
 * unwritten, a moment's turns, is lost.
 *
 * br_talks_open and br_talks_close apart, all of it belongs to one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TALKS_H
#define BR_TALKS_H

#include "base/base.h"

enum {
    BR_TALK_ID = 64,               /* bytes of an id with its NUL */
    BR_TALKS_WAITING = 64 << 20,   /* bytes that may wait for the disk */
    BR_TALKS_WRITE_NS = 100000000, /* and until they are tried again */
};

typedef struct br_talks br_talks;

typedef struct br_talks_config {
    const char *path;
    int64_t days, most; /* most: turns of a tenant */
} br_talks_config;

/* The texts of one that was got hold until the next call. */
typedef struct br_turn_kept {
    char id[BR_TALK_ID], previous[BR_TALK_ID]; /* previous: "", the first */
    uint32_t tenant;
    int64_t created_ms;
    br_text input, output; /* JSON: lists of items, brackets and all */
    br_text answer;        /* JSON: the response as it was sent */
} br_turn_kept;

/* Makes the file where there is none. UNSUPPORTED: built without SQLite. */
br_code br_talks_open(br_talks **out, const br_talks_config *c,
                      br_status *st) BR_MUST_USE;
/* Writes what waits. */
void br_talks_close(br_talks *t);
/* False: too much waits, or there is no memory; it is not kept. */
bool br_talks_put(br_talks *t, const br_turn_kept *turn) BR_MUST_USE;
/* NOT_FOUND: the tenant has none of that id. */
br_code br_talks_get(br_talks *t, uint32_t tenant, const char *id,
                     br_turn_kept *out, br_status *st) BR_MUST_USE;
/* Likewise; from now on nobody gets it. BUSY: too much waits. */
br_code br_talks_drop(br_talks *t, uint32_t tenant, const char *id,
                      br_status *st) BR_MUST_USE;

#endif
