/* cost_sim.c - pass 1: the bytes of a program through one shared memory.
 *
 *   worker   engine:   [piece of 3][late of 2][piece of 4]...   one at a time
 *            tasks:     ...end 1]      [2 ready]   [end 2]
 *
 * All engines that transfer do so at one rate, min(share_x / workers, 1 / n) of
 * the bandwidth with n of them. So a single number, the bytes served to each
 * engine so far, tells when every transfer ends: it ends when the number has
 * grown by its bytes. A heap of those ends gives the next event.
 *
 * An engine that is free takes what the task at the head of its queue still
 * needs, once that is ready; else the next piece that may be fetched ahead. A
 * task ends when it is ready and all its bytes are there; it takes no other
 * time in this pass. Time is in bytes at full bandwidth.
 *
 * Cost  O(transfers log workers).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/cost_internal.h"

enum { IDLE, FETCHING_PIECE, FETCHING_LATE };

typedef struct engine {
    uint32_t head; /* place in the queue of the task that is due */
    uint32_t next; /* the next piece to fetch */
    uint32_t what; /* being fetched: a piece, or a task's late part */
    uint8_t state;
    bool late_done; /* of the task at the head */
    bool poked;     /* on the list of engines to look at */
    double ends_at; /* served bytes at which the transfer ends */
    double since;   /* time at which it began */
} engine;

typedef struct stream {
    br_cost_sim *s;
    engine *e;
    uint32_t *heap, n_heap; /* engines that transfer, by ends_at */
    uint32_t *poke, n_poke; /* engines to look at */
    uint32_t *missing;      /* task -> waits not yet satisfied */
    uint32_t *open;         /* counter -> producers that have not ended */
    uint32_t ended;
    double served, now;
} stream;

/* ---- the heap ------------------------------------------------------------ */

static bool
sooner(const stream *x, uint32_t a, uint32_t b)
{
    if (x->e[a].ends_at != x->e[b].ends_at)
        return x->e[a].ends_at < x->e[b].ends_at;
    return a < b;
}

static void
heap_push(stream *x, uint32_t w)
{
    uint32_t i = x->n_heap++;

    while (i > 0 && sooner(x, w, x->heap[(i - 1) / 2])) {
        x->heap[i] = x->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    x->heap[i] = w;
}

static uint32_t
heap_pop(stream *x)
{
    uint32_t top = x->heap[0], w = x->heap[--x->n_heap], i = 0, c;

    while ((c = 2 * i + 1) < x->n_heap) {
        if (c + 1 < x->n_heap && sooner(x, x->heap[c + 1], x->heap[c]))
            c++;
        if (!sooner(x, x->heap[c], w))
            break;
        x->heap[i] = x->heap[c];
        i = c;
    }
    x->heap[i] = w;
    return top;
}

/* ---- one worker ---------------------------------------------------------- */

static void
poke(stream *x, uint32_t w)
{
    if (x->e[w].poked)
        return;
    x->e[w].poked = true;
    x->poke[x->n_poke++] = w;
}

static void
event(stream *x, uint32_t what, uint32_t kind)
{
    x->s->events[x->s->n_events++] = what * BR_CE_KINDS + kind;
}

static void
start(stream *x, uint32_t w, uint32_t what, bool late)
{
    engine *e = &x->e[w];

    e->what = what;
    e->state = late ? FETCHING_LATE : FETCHING_PIECE;
    e->since = x->now;
    e->ends_at =
        x->served + (late ? x->s->work[what].late : x->s->pieces[what].bytes);
    event(x, what, late ? BR_CE_LATE : BR_CE_PIECE);
    heap_push(x, w);
}

/* All pieces of a task are there. */
static bool
pieces_done(const stream *x, uint32_t w, uint32_t task)
{
    const engine *e = &x->e[w];
    uint32_t last = x->s->last_piece[task];

    return last == BR_COST_NONE ||
           (e->next > last && !(e->state == FETCHING_PIECE && e->what == last));
}

static void
end_task(stream *x, uint32_t w, uint32_t task)
{
    const br_mega_graph *g = &x->s->g;
    int64_t c = x->s->p->tasks[task].out_counter;

    event(x, task, BR_CE_END);
    x->e[w].head++;
    x->e[w].late_done = false;
    x->ended++;
    if (--x->open[c] > 0)
        return;
    for (uint32_t i = g->wait_off[c]; i < g->wait_off[c + 1]; i++)
        if (--x->missing[g->waiter[i]] == 0)
            poke(x, (uint32_t)x->s->sm[g->waiter[i]]);
}

/* Does what can be done at once on a worker; true when a task ended. */
static bool
step(stream *x, uint32_t w)
{
    const br_cost_sim *s = x->s;
    engine *e = &x->e[w];
    uint32_t task;

    if (s->queue_off[w] + e->head >= s->queue_off[w + 1])
        return false;
    task = s->queue[s->queue_off[w] + e->head];
    if (x->missing[task] == 0 && pieces_done(x, w, task)) {
        if (s->work[task].late <= 0 || e->late_done) {
            end_task(x, w, task);
            return true;
        }
        if (e->state == IDLE)
            start(x, w, task, true);
        return false;
    }
    if (e->state == IDLE && e->next < s->piece_off[w + 1] &&
        s->pieces[e->next].after < (int64_t)e->head)
        start(x, w, e->next++, false);
    return false;
}

/* ---- time ---------------------------------------------------------------- */

static double
rate(const stream *x)
{
    double cap = x->s->t.share_x / (double)x->s->n_workers;

    return BR_MIN(cap, 1.0 / (double)x->n_heap);
}

static void
finish_transfer(stream *x, uint32_t w)
{
    engine *e = &x->e[w];
    double took = x->now - e->since;

    if (e->state == FETCHING_LATE) {
        x->s->late_time[e->what] = took;
        e->late_done = true;
    } else {
        x->s->pieces[e->what].time = took;
    }
    e->state = IDLE;
    poke(x, w);
}

static void
settle(stream *x)
{
    while (x->n_poke) {
        uint32_t w = x->poke[--x->n_poke];

        x->e[w].poked = false;
        while (step(x, w))
            ;
    }
}

static void
run(stream *x)
{
    for (uint32_t w = 0; w < x->s->n_workers; w++) {
        x->e[w].next = x->s->piece_off[w];
        poke(x, w);
    }
    settle(x);
    while (x->n_heap) {
        double r = rate(x);
        uint32_t w = heap_pop(x);

        x->now += BR_MAX(x->e[w].ends_at - x->served, 0) / r;
        x->served = BR_MAX(x->served, x->e[w].ends_at);
        finish_transfer(x, w);
        while (x->n_heap && x->e[x->heap[0]].ends_at <= x->served)
            finish_transfer(x, heap_pop(x));
        settle(x);
    }
}

static br_code
prepare(stream *x)
{
    br_cost_sim *s = x->s;
    const br_mega_graph *g = &s->g;
    size_t n = (size_t)s->n_tasks + 1;

    x->e = br_arena_new(s->a, engine, s->n_workers);
    x->heap = br_arena_new(s->a, uint32_t, s->n_workers);
    x->poke = br_arena_new(s->a, uint32_t, s->n_workers);
    x->missing = br_arena_new(s->a, uint32_t, n);
    x->open = br_arena_new(s->a, uint32_t, (size_t)g->n_counters + 1);
    s->events = br_arena_new(s->a, uint32_t, 4 * n);
    s->late_time = br_arena_new(s->a, double, n);
    if (!x->e || !x->heap || !x->poke || !x->missing || !x->open ||
        !s->events || !s->late_time)
        return br_fail(s->st, BR_E_OOM, "cost: out of memory");
    for (uint32_t c = 0; c < g->n_counters; c++) {
        x->open[c] = g->prod_off[c + 1] - g->prod_off[c];
        for (uint32_t i = g->wait_off[c]; i < g->wait_off[c + 1]; i++)
            x->missing[g->waiter[i]]++;
    }
    return BR_OK;
}

br_code
br_cost_stream(br_cost_sim *s)
{
    stream x = {.s = s};

    BR_TRY(prepare(&x));
    run(&x);
    s->makespan = x.now;
    if (x.ended < s->n_tasks)
        return br_fail(s->st, BR_E_REJECTED,
                       "cost: %u of %u tasks wait for ever; see brass prog "
                       "check",
                       s->n_tasks - x.ended, s->n_tasks);
    return BR_OK;
}
