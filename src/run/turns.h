/* turns.h - engines of one process take turns on its processors.
 *
 *   engine A --take-- step --give(ns)-.          one step at a time;
 *   engine B --take.............. step --give     next: who had least time
 *
 * Two models that step at once share caches and memory bandwidth, and each
 * step takes as long as both: nothing is won, and every token comes late.
 * Start-time fair queueing: an engine that was idle does not make up for it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TURNS_H
#define BR_TURNS_H

#include "base/thread.h"

typedef struct br_turn {
    int64_t used_ns; /* the lock's */
    struct br_turn *next;
} br_turn;

/* Zero-initialise, but lock. Outlives the engines. */
typedef struct br_turns {
    br_mutex lock;
    br_event free;
    bool taken;
    int64_t now_ns; /* used_ns of the one whose turn was last */
    br_turn *list;  /* that wait */
} br_turns;

void br_turn_take(br_turns *t, br_turn *me);
void br_turn_give(br_turns *t, br_turn *me, int64_t ns);
/* Does nobody else have a turn, or wait for one? mine: it is the caller's. */
bool br_turn_alone(br_turns *t, bool mine);

#endif
