/* sim_crowd.c - see sim_crowd.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_crowd.h"

#include <stdio.h>
#include <string.h>

enum {
    LATE = 1 << 12, /* turns of 4096 instructions */
    SPINS = 1000,
};

/* ---- groups ----------------------------------------------------------- */

void
sim_share_begin(sim_share *h, uint64_t groups, uint64_t steps)
{
    /* Relaxed: nobody else runs; br_event_signal brings it to who wakes. */
    h->groups = groups;
    atomic_store_explicit(&h->next, 0, memory_order_relaxed);
    atomic_store_explicit(&h->bad, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&h->late, LATE, memory_order_relaxed);
    atomic_store_explicit(&h->steps, steps, memory_order_relaxed);
    h->st = (br_status){0};
}

bool
sim_share_take(sim_share *h, uint64_t *nth)
{
    /* Relaxed: a number and nothing behind it. */
    if (atomic_load_explicit(&h->bad, memory_order_relaxed) != UINT64_MAX)
        return false;
    *nth = atomic_fetch_add_explicit(&h->next, 1, memory_order_relaxed);
    return *nth < h->groups;
}

void
sim_share_fail(sim_share *h, uint64_t nth, const br_status *st, br_kfault fault)
{
    br_mutex_lock(&h->lock);
    if (nth < atomic_load_explicit(&h->bad, memory_order_relaxed)) {
        h->st = *st;
        h->fault = fault;
        /* Relaxed: who sees it late runs longer. */
        atomic_store_explicit(&h->bad, nth, memory_order_relaxed);
    }
    br_mutex_unlock(&h->lock);
}

/* A group before the one that failed may wait for one that will not come. */
bool
sim_share_ends(sim_share *h, uint64_t nth)
{
    uint64_t bad = atomic_load_explicit(&h->bad, memory_order_relaxed);

    return bad != UINT64_MAX &&
           (bad < nth ||
            atomic_fetch_sub_explicit(&h->late, 1, memory_order_relaxed) <= 0);
}

/* ---- threads ---------------------------------------------------------- */

typedef struct helper {
    sim_crowd *crowd;
    br_thread thread;
    br_sim view; /* regions are the dispatch's, code and the rest its own */
    bool ready;  /* it has code to run */
} helper;

struct sim_crowd {
    unsigned n;
    const br_aql_packet *packet;
    sim_share share;
    br_event go, done;
    _Atomic uint32_t round; /* dispatches; partner: main_of */
    _Atomic uint32_t busy;  /* helpers that run; partner: sim_crowd_await */
    _Atomic bool ends;      /* partner: main_of */
    helper at[];
};

typedef struct look {
    sim_crowd *c;
    uint32_t seen;
} look;

static bool
called(void *arg)
{
    const look *l = arg;

    /* acquire: partner is sim_crowd_wake, sim_crowd_free */
    return atomic_load_explicit(&l->c->round, memory_order_acquire) !=
               l->seen ||
           atomic_load_explicit(&l->c->ends, memory_order_acquire);
}

static void
main_of(void *arg)
{
    helper *h = arg;
    sim_crowd *c = h->crowd;
    look l = {c, 0};

    for (;; l.seen++) {
        br_event_await(&c->go, called, &l, 0, -1);
        /* acquire: partner is sim_crowd_free */
        if (atomic_load_explicit(&c->ends, memory_order_acquire))
            return;
        if (h->ready)
            sim_help(&h->view, c->packet, &c->share);
        /* release: partner is idle, which reads what it counted */
        if (atomic_fetch_sub_explicit(&c->busy, 1, memory_order_release) == 1)
            br_event_signal(&c->done);
    }
}

sim_crowd *
sim_crowd_new(unsigned n)
{
    sim_crowd *c = br_try_calloc(1, sizeof *c + n * sizeof *c->at);

    if (!c)
        return NULL;
    c->share.lock = (br_mutex)BR_MUTEX;
    for (; c->n < n; c->n++) {
        helper *h = &c->at[c->n];

        h->crowd = c;
        if (br_thread_start(&h->thread, "sim-groups", main_of, h, NULL) !=
            BR_OK)
            break;
    }
    if (c->n)
        return c;
    br_free(c);
    return NULL;
}

/* A view has no memory of its own but code, and its dispatch's. */
static void
view_fini(br_sim *v)
{
    memset(&v->regions, 0, sizeof v->regions);
    br_sim_fini(v);
}

void
sim_crowd_free(sim_crowd *c)
{
    if (!c)
        return;
    /* release: partner is main_of */
    atomic_store_explicit(&c->ends, true, memory_order_release);
    br_event_signal(&c->go);
    for (unsigned k = 0; k < c->n; k++) {
        br_thread_join(&c->at[k].thread);
        view_fini(&c->at[k].view);
    }
    br_free(c);
}

sim_share *
sim_crowd_share(sim_crowd *c)
{
    return &c->share;
}

/* ---- what a helper sees ----------------------------------------------- */

static bool
same_code(const sim_code *a, const sim_code *b)
{
    while (a && b && a->made == b->made) {
        a = a->next;
        b = b->next;
    }
    return !a && !b;
}

static bool
copy_code(br_sim *v, const br_sim *s)
{
    sim_code **end = &v->code;

    for (const sim_code *c = s->code; c; c = c->next) {
        sim_code *n = br_try_calloc(1, sizeof *n);

        if (n)
            n->ops = br_try_calloc(c->bytes / 4 + 1, sizeof *n->ops);
        if (!n || !n->ops) {
            br_free(n);
            return false;
        }
        n->at = c->at;
        n->bytes = c->bytes;
        n->words = c->words;
        n->isa = c->isa;
        n->made = c->made;
        br_arena_init(&n->arena, 0);
        *end = n;
        end = &n->next;
    }
    return true;
}

/* What it decoded is kept where code is what it was. */
static bool
see(br_sim *v, const br_sim *s)
{
    struct sim_code *code = v->code;
    struct sim_job *job = v->job;

    if (!same_code(code, s->code)) {
        view_fini(v);
        code = NULL;
        job = NULL;
    }
    *v = (br_sim){.cpu = s->cpu,
                  .max_steps = s->max_steps,
                  .stop = s->stop,
                  .code = code,
                  .job = job};
    memcpy(&v->regions, &s->regions, sizeof v->regions);
    return code || copy_code(v, s);
}

void
sim_crowd_wake(sim_crowd *c, const br_sim *s, const br_aql_packet *p)
{
    c->packet = p;
    for (unsigned k = 0; k < c->n; k++)
        c->at[k].ready = see(&c->at[k].view, s);
    atomic_store_explicit(&c->busy, c->n, memory_order_relaxed);
    /* release: partner is called, which brings all that to a helper */
    atomic_fetch_add_explicit(&c->round, 1, memory_order_release);
    br_event_signal(&c->go);
}

static bool
idle(void *arg)
{
    sim_crowd *c = arg;

    /* acquire: partner is main_of */
    return !atomic_load_explicit(&c->busy, memory_order_acquire);
}

void
sim_crowd_await(sim_crowd *c, br_sim *s)
{
    br_event_await(&c->done, idle, c, SPINS, -1);
    for (unsigned k = 0; k < c->n; k++) {
        br_sim *v = &c->at[k].view;

        s->steps += v->steps;
        s->hints += v->hints;
        v->steps = v->hints = 0;
    }
}
