/* turns.c - see turns.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/turns.h"

typedef struct waiter {
    br_turns *t;
    br_turn *me;
} waiter;

static bool
is_mine(void *arg)
{
    waiter *w = arg;
    bool mine;

    br_mutex_lock(&w->t->lock);
    mine = !w->t->taken;
    for (const br_turn *o = w->t->list; o && mine; o = o->next)
        mine = o->used_ns >= w->me->used_ns;
    if (mine) {
        br_turn **at = &w->t->list;

        while (*at != w->me)
            at = &(*at)->next;
        *at = w->me->next;
        w->t->taken = true;
        w->t->now_ns = w->me->used_ns;
    }
    br_mutex_unlock(&w->t->lock);
    return mine;
}

void
br_turn_take(br_turns *t, br_turn *me)
{
    waiter w = {t, me};
    br_turn **end;

    br_mutex_lock(&t->lock);
    me->used_ns = BR_MAX(me->used_ns, t->now_ns);
    me->next = NULL;
    for (end = &t->list; *end; end = &(*end)->next)
        ;
    *end = me;
    br_mutex_unlock(&t->lock);
    (void)br_event_await(&t->free, is_mine, &w, 0, -1);
}

void
br_turn_give(br_turns *t, br_turn *me, int64_t ns)
{
    br_mutex_lock(&t->lock);
    me->used_ns += ns;
    t->taken = false;
    br_mutex_unlock(&t->lock);
    br_event_signal(&t->free);
}

bool
br_turn_alone(br_turns *t, bool mine)
{
    bool alone;

    br_mutex_lock(&t->lock);
    alone = (mine || !t->taken) && !t->list;
    br_mutex_unlock(&t->lock);
    return alone;
}
