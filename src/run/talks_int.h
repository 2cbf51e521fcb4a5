/* talks_int.h - the halves of talks: what their owner asks (talks.c), and the
 * thread that writes (talks_write.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TALKS_INT_H
#define BR_TALKS_INT_H

#include "base/thread.h"
#include "run/talks.h"
#include "run/tstore_int.h"

/* A change that waits. Its texts stand behind it: of ADD the items, of CUT the
 * item's id are the input. */
typedef enum br_talk_kind { PUT, END, BEAT, DROP, ADD, CUT, NAME } br_talk_kind;
typedef struct br_talk_change {
    struct br_talk_change *next;
    br_talk_kind what;
    br_turn_kept t;
} br_talk_change;

/* A turn that is made here, and may be ended elsewhere. */
typedef struct br_talk_watched {
    char id[BR_TALK_ID];
    bool over, lives; /* lives: scratch of a look */
} br_talk_watched;

struct br_talks {
    const br_db_kind *kind;
    br_talks_config c;
    br_db *mine, *its; /* of the owner, of the thread */
    br_str text[4];    /* of the turn that was got */
    br_thread thread;
    bool started;
    br_talk_change **upto; /* the thread's: behind the last it is writing */
    BR_VEC(br_talk_watched) looked; /* the thread's: those it asks for */
    br_event wake;
    atomic_bool stop;
    br_mutex walk; /* what waits stays while a walk reads; taken before lock */
    br_mutex lock; /* of what follows */
    br_talk_change *first, **end;
    size_t waiting; /* bytes */
    BR_VEC(br_talk_watched) watched;
    bool looks;
};

br_code br_talks_make(br_talks *t, br_status *st) BR_MUST_USE; /* the tables */
void br_talks_write(void *arg); /* the thread, until t->stop */
/* Those up to `end` are in the database. */
void br_talks_forget(br_talks *t, br_talk_change **end);
/* Turns that began before are kept no longer. */
int64_t br_talks_oldest(const br_talks *t);
size_t br_talks_bytes(const br_talk_change *c);
/* ADD, CUT: to a list. */
br_code br_talks_change(const br_talk_change *c, br_str *list,
                        br_status *st) BR_MUST_USE;

#endif
