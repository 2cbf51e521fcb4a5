/* cpu_walk.c - see cpu_walk.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_walk.h"

#include "base/thread.h"

struct br_cpu_walk {
    br_mega_runner runner;
    br_arena arena;
    const br_mega_prog *prog;
    br_cpu_pool *pool;
    uint32_t *first; /* [threads + 1]: where a thread's tasks begin in list */
    uint32_t *list;
    _Atomic int64_t *count; /* of each counter */
    br_event moved;         /* a counter, or the end */
    int spins;
    /* of the run in hand */
    br_mega_fire *fire;
    void *ctx;
    _Atomic size_t n_begun;
    _Atomic bool failed;
    br_mutex lock;
    br_status failure; /* the first, under the lock */
};

/* ---- whose is which ----------------------------------------------------- */

static br_code
nothing(void *ctx, uint32_t worker, uint32_t task, br_status *st)
{
    (void)ctx, (void)worker, (void)task, (void)st;
    return BR_OK;
}

static uint32_t
thread_of(const br_cpu_walk *w, uint32_t task)
{
    int64_t sm = w->prog->tasks[task].sm;

    return (uint32_t)((sm == BR_MEGA_SM_NONE ? task : (uint64_t)sm) %
                      w->runner.workers);
}

static void
deal(br_cpu_walk *w, const br_mega_runner *order)
{
    uint32_t n = w->runner.workers, at = 0;

    for (uint32_t t = 0; t < n; t++) {
        w->first[t] = at;
        for (size_t i = 0; i < order->n_order; i++)
            if (thread_of(w, order->order[i]) == t)
                w->list[at++] = order->order[i];
    }
    w->first[n] = at;
}

static br_code
plan(br_cpu_walk *w, br_status *st)
{
    size_t n = w->prog->n_tasks + 1;
    br_mega_walk *one;
    br_code code;

    w->first = br_arena_new(&w->arena, uint32_t, w->runner.workers + 1);
    w->list = br_arena_new(&w->arena, uint32_t, n);
    w->runner.order = br_arena_new(&w->arena, uint32_t, n);
    w->count =
        br_arena_new(&w->arena, _Atomic int64_t, w->prog->n_counters + 1);
    if (!w->first || !w->list || !w->runner.order || !w->count)
        return br_fail(st, BR_E_OOM, "no memory for the program's tasks");
    BR_TRY(br_mega_walk_new(&one, w->prog, st));
    br_mega_walk_by(one, BR_MEGA_ORDER_QUEUES, 0);
    code = br_mega_walk_runner(one)->run(br_mega_walk_runner(one), nothing,
                                         NULL, st);
    if (code == BR_OK)
        deal(w, br_mega_walk_runner(one));
    br_mega_walk_free(one);
    return code;
}

/* ---- a run -------------------------------------------------------------- */

typedef struct waiting {
    br_cpu_walk *w;
    const br_mega_wait *for_;
} waiting;

static bool
met(void *arg)
{
    const waiting *x = arg;

    /* acquire: with the addition in walk() and the store in fail() */
    return atomic_load_explicit(&x->w->count[x->for_->counter],
                                memory_order_acquire) >= x->for_->threshold ||
           atomic_load_explicit(&x->w->failed, memory_order_acquire);
}

static void
fail(br_cpu_walk *w, const br_status *st)
{
    br_mutex_lock(&w->lock);
    if (w->failure.code == BR_OK)
        w->failure = *st;
    br_mutex_unlock(&w->lock);
    /* release: with met() and walk() */
    atomic_store_explicit(&w->failed, true, memory_order_release);
    br_event_signal(&w->moved);
}

static void
walk(void *ctx, uint32_t phase, uint32_t queue, uint32_t thread)
{
    br_cpu_walk *w = ctx;
    br_status st = {0};

    (void)phase, (void)thread;
    for (uint32_t i = w->first[queue]; i < w->first[queue + 1]; i++) {
        const br_mega_task *t = &w->prog->tasks[w->list[i]];
        size_t at;

        for (uint32_t k = 0; k < t->n_waits; k++)
            br_event_await(&w->moved, met, &(waiting){w, &t->waits[k]},
                           w->spins, -1);
        /* acquire: with fail() */
        if (atomic_load_explicit(&w->failed, memory_order_acquire))
            return;
        /* relaxed: who waited for another begins after it, and adds later */
        at = atomic_fetch_add_explicit(&w->n_begun, 1, memory_order_relaxed);
        w->runner.order[at] = w->list[i];
        if (w->fire(w->ctx, queue, w->list[i], &st) != BR_OK) {
            fail(w, &st);
            return;
        }
        /* release: with met() */
        atomic_fetch_add_explicit(&w->count[t->out_counter], 1,
                                  memory_order_release);
        br_event_signal(&w->moved);
    }
}

static uint32_t
begin(void *ctx, uint32_t phase)
{
    const br_cpu_walk *w = ctx;

    (void)phase;
    return w->runner.workers;
}

/* Whoever takes a queue keeps it to its end, and there is a thread for each. */
static br_code
run(br_mega_runner *r, br_mega_fire *fire, void *ctx, br_status *st)
{
    br_cpu_walk *w = (br_cpu_walk *)r;
    br_cpu_job job = {.ctx = w, .n_phases = 1, .begin = begin, .tile = walk};

    /* relaxed: the pool publishes what is written before its run */
    for (size_t i = 0; i < w->prog->n_counters; i++)
        atomic_store_explicit(&w->count[i], w->prog->counters[i].init,
                              memory_order_relaxed);
    atomic_store_explicit(&w->n_begun, 0, memory_order_relaxed);
    atomic_store_explicit(&w->failed, false, memory_order_relaxed);
    w->failure = (br_status){0};
    w->fire = fire;
    w->ctx = ctx;
    br_cpu_pool_run(w->pool, &job);
    r->n_order = atomic_load_explicit(&w->n_begun, memory_order_relaxed);
    if (w->failure.code != BR_OK)
        *st = w->failure;
    return w->failure.code;
}

/* ---- life --------------------------------------------------------------- */

br_code
br_cpu_walk_new(br_cpu_walk **out, const br_mega_prog *p, br_cpu_pool *pool,
                br_status *st)
{
    br_cpu_walk *w = br_try_calloc(1, sizeof *w);
    br_code code;

    *out = NULL;
    if (!w)
        return br_fail(st, BR_E_OOM, "no memory for the program's tasks");
    br_arena_init(&w->arena, 0); /* the program is in memory: this is less */
    w->runner =
        (br_mega_runner){.run = run, .workers = br_cpu_pool_threads(pool)};
    w->prog = p;
    w->pool = pool;
    w->lock = (br_mutex)BR_MUTEX;
    w->spins = (int)w->runner.workers > br_cpu_count() ? 0 : BR_CPU_SPINS;
    code = plan(w, st);
    if (code != BR_OK) {
        br_cpu_walk_free(w);
        return code;
    }
    *out = w;
    return BR_OK;
}

void
br_cpu_walk_free(br_cpu_walk *w)
{
    if (!w)
        return;
    br_arena_fini(&w->arena);
    br_free(w);
}

br_mega_runner *
br_cpu_walk_runner(br_cpu_walk *w)
{
    return &w->runner;
}
