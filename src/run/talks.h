/* talks.h - responses that clients come back to, in a SQLite file or in
 * PostgreSQL, where several servers have the same.
 *
 *   put, end, beat, drop, --> what waits --> a thread of its own --> database
 *   add, cut, name
 *   get, walk <-- what waits, or the database by another connection
 *
 * One row is a turn: what was asked, what came, and the turn before it. A turn
 * is its tenant's alone; it goes after so many days, and the oldest go where a
 * tenant has more than it may. Nobody waits for the disk: what a kill -9 finds
 * unwritten, a moment's turns, is lost, and another server has a turn that
 * moment later.
 *
 * A turn may be put while its answer is made. The server that makes it says
 * every BR_TALK_BEAT_MS that it lives; BR_TALK_DEAD_MS after the last of that
 * the turn is nobody's any more. Clocks of servers are together within seconds.
 * Another server may end or drop such a turn: look asks once for all that are
 * watched, and is_over knows of it when that was answered.
 *
 * A turn's input may be a list that several servers change at one time: add, cut
 * and name are done to the row that is there when they are written, in one
 * transaction, and change nothing when they are done once more.
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
    BR_TALK_BEAT_MS = 10000,
    BR_TALK_DEAD_MS = 60000,
};

typedef struct br_talks br_talks;

typedef struct br_talks_config {
    const char *path;   /* or postgres://USER:PASSWORD@HOST:PORT/DATABASE */
    int64_t days, most; /* most: turns of a tenant */
} br_talks_config;

/* The texts of one that was got hold until the next call. */
typedef struct br_turn_kept {
    char id[BR_TALK_ID], previous[BR_TALK_ID]; /* previous: "", the first */
    uint32_t tenant;
    int64_t created_ms;
    int64_t alive_ms; /* it is being made, and was so then; 0: it is over */
    br_text input, output; /* JSON: lists of items, brackets and all */
    br_text answer;        /* JSON: the response as it was sent */
    br_text cuts; /* how its stream was cut into pieces (http/retell.h) */
} br_turn_kept;

/* Makes the file or the table where there is none. UNSUPPORTED: built without
 * what it needs. */
br_code br_talks_open(br_talks **out, const br_talks_config *c,
                      br_status *st) BR_MUST_USE;
/* Writes what waits. */
void br_talks_close(br_talks *t);
/* In place of what has its id, if anything. False: too much waits, or there is
 * no memory; it is not kept. */
bool br_talks_put(br_talks *t, const br_turn_kept *turn) BR_MUST_USE;
/* Its answer is made: likewise, if it is there still and not over. */
bool br_talks_end(br_talks *t, const br_turn_kept *turn) BR_MUST_USE;
/* It is being made. */
void br_talks_beat(br_talks *t, uint32_t tenant, const char *id);
/* Whether somebody else ends it; look: now is the time to ask. */
br_code br_talks_watch(br_talks *t, const char *id, br_status *st) BR_MUST_USE;
void br_talks_unwatch(br_talks *t, const char *id);
void br_talks_look(br_talks *t);
bool br_talks_is_over(br_talks *t, const char *id);
/* Behind its input, a list: items "[a,b]", one of which has an id of its own.
 * cut: the item of that id goes. name: another answer. BUSY: too much waits. */
br_code br_talks_add(br_talks *t, uint32_t tenant, const char *id,
                     br_text items, br_status *st) BR_MUST_USE;
br_code br_talks_cut(br_talks *t, uint32_t tenant, const char *id, br_text item,
                     br_status *st) BR_MUST_USE;
br_code br_talks_name(br_talks *t, uint32_t tenant, const char *id,
                      br_text answer, br_status *st) BR_MUST_USE;
/* A database that went away is looked for again, without waiting. */
void br_talks_tend(br_talks *t);
/* NOT_FOUND: the tenant has none of that id. */
br_code br_talks_get(br_talks *t, uint32_t tenant, const char *id,
                     br_turn_kept *out, br_status *st) BR_MUST_USE;
/* Likewise; from now on nobody gets it. BUSY: too much waits. */
br_code br_talks_drop(br_talks *t, uint32_t tenant, const char *id,
                      br_status *st) BR_MUST_USE;

enum { BR_TALK_TURNS = 1000 };

/* Tells of that turn, the one before it and so on to the first; without their
 * answers. NOT_FOUND names the one that is gone, USAGE: they are more than
 * BR_TALK_TURNS; each may end it by a failure, too. */
typedef br_code (*br_talks_each)(void *ctx, const br_turn_kept *turn,
                                 br_status *st);
br_code br_talks_walk(br_talks *t, uint32_t tenant, const char *id,
                      br_talks_each each, void *ctx, br_status *st) BR_MUST_USE;

#endif
