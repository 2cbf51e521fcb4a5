/* cpu_pool.c - see cpu_pool.h.
 *
 * `job` and `phase` are plain memory. They are written only between the last
 * tile of a phase and the store of the next word, and read only by who holds a
 * tile; the word carries them over (release, acquire).
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_pool.h"

#include "base/thread.h"
#include "drv/cpu/cpu_probe.h"

#include <stdio.h>

enum {
    LINE = 64,
    PIECE = 1024, /* brought ahead between two looks: 30 ns, 60 at worst */
};

typedef struct worker {
    br_thread thread;
    br_cpu_pool *pool;
    uint32_t id;
    _Alignas(LINE) const char *soon; /* its own: nobody else looks */
    size_t soon_bytes;
    uint32_t soon_job;  /* what it named that in */
    uint32_t made;      /* tiles of this phase that are not in `done` yet */
    _Atomic bool looks; /* reads what it named */
} worker;

struct br_cpu_pool {
    _Alignas(LINE) _Atomic uint64_t word;
    _Alignas(LINE) _Atomic uint32_t done; /* tiles of this phase */
    _Atomic uint64_t own; /* which of the first ones have begun, a bit each */
    _Alignas(LINE) const br_cpu_job *job;
    uint32_t phase;
    _Atomic uint32_t running; /* number of the job that is not finished, or 0 */
    uint32_t n_jobs;
    _Atomic uint32_t quit;
    br_event moved; /* the word has a new epoch, or it is time to quit */
    br_event more;  /* n_used has grown, or it is time to quit */
    uint32_t n_threads, cpus;
    _Atomic uint32_t n_used; /* of them in this job: those below it */
    _Atomic int spins;
    br_cpu_nodes nodes;
    void *block; /* what was allocated; the pool lies aligned in it */
    worker workers[];
};

static uint64_t
word_of(uint64_t epoch, uint32_t tiles)
{
    return epoch << 40 | (uint64_t)tiles << 20;
}

static uint32_t
tiles_of(uint64_t word)
{
    return word >> 20 & 0xfffff;
}

static uint32_t
next_of(uint64_t word)
{
    return word & 0xfffff;
}

/* Opens the next phase that has work for several, doing what is before it.
 * The caller is the only one in the pool: it has finished the last tile. */
static void
advance(br_cpu_pool *p, uint32_t id)
{
    const br_cpu_job *job = p->job;
    /* relaxed: only who is here writes the epoch */
    uint64_t epoch = atomic_load_explicit(&p->word, memory_order_relaxed) >> 40;
    uint32_t tiles = 0;

    for (; p->phase < job->n_phases; p->phase++) {
        tiles = job->begin(job->ctx, p->phase);
        br_check(tiles <= BR_CPU_MAX_TILES);
        if (tiles > 1)
            break;
        if (tiles == 1)
            job->tile(job->ctx, p->phase, 0, id);
        tiles = 0;
    }
    /* relaxed: the store of the word publishes it */
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store_explicit(&p->own, 0, memory_order_relaxed);
    /* release: with the fetch_add of work() */
    atomic_store_explicit(&p->word, word_of(epoch + 1, tiles),
                          memory_order_release);
    /* After the word: from here on the caller may bring another job.
     * release: with moved() and br_cpu_pool_run(); seq_cst: see look_ahead() */
    if (tiles == 0)
        atomic_store(&p->running, 0);
    br_event_signal(&p->moved);
}

typedef struct waiting {
    br_cpu_pool *p;
    uint64_t epoch;
    bool caller; /* waits for the end of the job, too */
} waiting;

static bool
moved(void *arg)
{
    const waiting *w = arg;
    br_cpu_pool *p = w->p;

    /* acquire: with advance() and with br_cpu_pool_free() */
    if (w->caller && !atomic_load_explicit(&p->running, memory_order_acquire))
        return true;
    return atomic_load_explicit(&p->word, memory_order_acquire) >> 40 !=
               w->epoch ||
           atomic_load_explicit(&p->quit, memory_order_acquire);
}

/* relaxed: they change between jobs, and the word brings them */
static int
spins_of(br_cpu_pool *p)
{
    return atomic_load_explicit(&p->spins, memory_order_relaxed);
}

static uint32_t
used_of(br_cpu_pool *p)
{
    return atomic_load_explicit(&p->n_used, memory_order_relaxed);
}

/* Brings what the worker named until the wait is over: by reading it, as calls
 * that come faster than they are answered are forgotten. So it has to be there:
 * the job is the one it was named in, and br_cpu_pool_run() waits for who looks.
 * Either this sees that the job is over, or that sees `looks`: all four are
 * seq_cst. */
static void
look_ahead(br_cpu_pool *p, uint32_t id, waiting *wait)
{
    worker *w = &p->workers[id];

    if (spins_of(p) == 0 || w->soon_bytes < PIECE)
        return;
    atomic_store(&w->looks, true);
    if (atomic_load(&p->running) == w->soon_job)
        for (; w->soon_bytes >= PIECE && !moved(wait); w->soon_bytes -= PIECE) {
            br_probe_lines(w->soon, PIECE);
            w->soon += PIECE;
        }
    atomic_store_explicit(&w->looks, false, memory_order_release);
}

/* Who comes i-th takes the tile that has its number, for which it has looked
 * ahead, or one whose owner is late: of the first tiles, as many as threads. */
static uint32_t
own_tile(br_cpu_pool *p, uint32_t id, uint32_t i, uint32_t tiles)
{
    uint32_t n = BR_MIN(BR_MIN(used_of(p), tiles), 64u), k;

    if (i >= n)
        return i;
    /* As many come as there are bits, and none is cleared: one is free. */
    for (k = id < n ? id : 0;; k = k + 1 < n ? k + 1 : 0) {
        uint64_t bit = (uint64_t)1 << k;

        /* relaxed: nothing comes with it but the number */
        if (!(atomic_fetch_or_explicit(&p->own, bit, memory_order_relaxed) &
              bit))
            return k;
    }
}

/* There are no more tiles: says how many it has made. Whether it was the last
 * to say so, and has opened the next phase. */
static bool
settle(br_cpu_pool *p, uint32_t id, uint32_t tiles)
{
    uint32_t n = p->workers[id].made;

    p->workers[id].made = 0;
    /* acq_rel: with each other; the last sees what all have written */
    if (n == 0 ||
        atomic_fetch_add_explicit(&p->done, n, memory_order_acq_rel) + n !=
            tiles)
        return false;
    p->phase++;
    advance(p, id);
    return true;
}

/* Takes a tile and does it, or waits for the next phase. */
static void
work(br_cpu_pool *p, uint32_t id)
{
    /* acq_rel: with the store in advance() */
    uint64_t w = atomic_fetch_add_explicit(&p->word, 1, memory_order_acq_rel);
    waiting wait = {p, w >> 40, id == 0};

    if (next_of(w) < tiles_of(w)) {
        p->job->tile(p->job->ctx, p->phase,
                     own_tile(p, id, next_of(w), tiles_of(w)), id);
        p->workers[id].made++;
        if (next_of(w) + 1 < tiles_of(w))
            return;
    }
    if (!settle(p, id, tiles_of(w))) {
        look_ahead(p, id, &wait);
        br_event_await(&p->moved, moved, &wait, spins_of(p), -1);
    }
}

/* Is the worker one of those in use, or time to quit? */
static bool
wanted(void *arg)
{
    const worker *w = arg;

    return w->id < used_of(w->pool) ||
           /* acquire: with br_cpu_pool_free() */
           atomic_load_explicit(&w->pool->quit, memory_order_acquire);
}

static void
worker_main(void *arg)
{
    worker *w = arg;

    (void)br_cpu_nodes_go(&w->pool->nodes, w->id); /* else it stays free */
    /* acquire: with br_cpu_pool_free() */
    while (!atomic_load_explicit(&w->pool->quit, memory_order_acquire))
        if (wanted(w))
            work(w->pool, w->id);
        else
            br_event_await(&w->pool->more, wanted, w, 0, -1);
}

/* Between two jobs: how many threads the next one has, and how they wait. */
static void
set_use(br_cpu_pool *p, const br_cpu_job *job)
{
    uint32_t n =
        job->threads ? BR_MIN(job->threads, p->n_threads) : p->n_threads;
    uint32_t was = used_of(p);
    uint32_t looks = job->looks ? job->looks : BR_CPU_SPINS;

    /* spinning would take a tile's core; relaxed: see spins_of() */
    atomic_store_explicit(&p->spins, n > p->cpus ? 0 : (int)looks,
                          memory_order_relaxed);
    if (n == was)
        return;
    atomic_store_explicit(&p->n_used, n, memory_order_relaxed);
    if (n > was)
        br_event_signal(&p->more);
}

void
br_cpu_pool_run(br_cpu_pool *p, const br_cpu_job *job)
{
    set_use(p, job);
    p->job = job;
    p->phase = 0;
    p->n_jobs += p->n_jobs + 1 == 0 ? 2 : 1;
    /* relaxed: advance() publishes it with the word */
    atomic_store_explicit(&p->running, p->n_jobs, memory_order_relaxed);
    advance(p, 0);
    /* acquire: with advance() */
    while (atomic_load_explicit(&p->running, memory_order_acquire))
        work(p, 0);
    for (uint32_t i = 1; i < p->n_threads; i++)
        while (atomic_load(&p->workers[i].looks))
            br_thread_yield(); /* some 50 ns, but whoever looks may be asleep */
}

br_code
br_cpu_pool_new(br_cpu_pool **out, uint32_t n_threads, br_status *st)
{
    return br_cpu_pool_on(out, n_threads, NULL, st);
}

br_code
br_cpu_pool_on(br_cpu_pool **out, uint32_t n_threads, const br_cpu_nodes *nodes,
               br_status *st)
{
    uint32_t cpus = (uint32_t)br_cpu_count();
    uint32_t n = n_threads ? n_threads : BR_MIN(cpus, BR_CPU_MAX_THREADS);
    br_cpu_pool *p;
    char *block;

    *out = NULL;
    if (n > BR_CPU_MAX_THREADS)
        return br_fail(st, BR_E_LIMIT, "%u threads; at most %d", n,
                       BR_CPU_MAX_THREADS);
    block = br_try_calloc(1, sizeof *p + n * sizeof(worker) + LINE);
    if (!block)
        return br_fail(st, BR_E_OOM, "threads: out of memory");
    p = (void *)(block + (LINE - (uintptr_t)block % LINE) % LINE);
    p->block = block;
    if (nodes)
        p->nodes = *nodes;
    else
        br_cpu_nodes_find(&p->nodes, BR_CPU_NODES_SYS);
    p->n_threads = 1;
    p->cpus = cpus;
    atomic_init(&p->n_used, n);
    atomic_init(&p->spins, n > cpus ? 0 : BR_CPU_SPINS);
    for (; p->n_threads < n; p->n_threads++) {
        worker *w = &p->workers[p->n_threads];
        char name[24];

        w->pool = p;
        w->id = p->n_threads;
        snprintf(name, sizeof name, "brass-cpu-%u", w->id);
        if (br_thread_start(&w->thread, name, worker_main, w, st) != BR_OK) {
            br_cpu_pool_free(p);
            return BR_E_OOM;
        }
    }
    *out = p;
    return BR_OK;
}

void
br_cpu_pool_free(br_cpu_pool *p)
{
    if (!p)
        return;
    /* release: with moved() and worker_main() */
    atomic_store_explicit(&p->quit, 1, memory_order_release);
    br_event_signal(&p->moved);
    br_event_signal(&p->more);
    for (uint32_t i = 1; i < p->n_threads; i++)
        br_thread_join(&p->workers[i].thread);
    br_free(p->block);
}

void
br_cpu_pool_spread(br_cpu_pool *p, void *at, size_t n)
{
    br_cpu_nodes_spread(&p->nodes, at, n);
}

void
br_cpu_pool_soon(br_cpu_pool *p, uint32_t id, const void *at, size_t n)
{
    worker *w = &p->workers[id];

    w->soon = at;
    w->soon_bytes = n;
    /* relaxed: it is in a tile of that job */
    w->soon_job = atomic_load_explicit(&p->running, memory_order_relaxed);
}

uint32_t
br_cpu_pool_threads(const br_cpu_pool *p)
{
    return p->n_threads;
}
