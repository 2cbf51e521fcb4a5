/* x86_launch.c - a grid of blocks on threads.
 *
 * Each thread takes the next blocks until there are none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, SMALL_LAUNCH = 4096 };
enum { MAX_BATCH = 1024 };
enum { SOME_CACHE = 32 << 20, MAX_CACHE = 1 << 30 }; /* where nobody says */
enum { BRIEF_NS = 100000 }; /* a thread starts in 35 us, and ends */

static void
fill_tables(x86_ctx *c)
{
    for (unsigned q = 0; q < X86_QUARTERS; q++)
        for (unsigned k = 0; k < X86_LANES; k++) {
            c->lanes[q][k] = q * X86_LANES + k;
            c->bits[q][k] = 1u << (q * X86_LANES + k);
        }
    for (unsigned s = 0; s < X86_STEPS; s++)
        for (unsigned k = 0; k < X86_MOST; k++)
            c->steps[s][k] = c->steps32[s][k] = k << s;
    for (unsigned k = 0; k < X86_MOST; k++) {
        c->evens[k] = 2 * k;
        c->odds[k] = 2 * k + 1;
    }
}

/* A thread of a launch: a run of its own on blocks that all share. */
typedef struct worker {
    br_thread thread;
    br_klaunch l;
    ki_run run;
    br_status st;
    br_code code;
    x86_ctx *ctx;
} worker;

static br_code
worker_init(worker *k, const struct br_x86 *x, const x86_fn *wide)
{
    size_t n = x->m->fns.n + 1;

    k->run.l = &k->l;
    k->run.m = x->m;
    k->run.st = &k->st;
    k->run.native = x;
    k->run.wide = wide;
    k->run.rows = br_try_calloc(n, sizeof *k->run.rows);
    k->run.ctx = k->ctx = br_try_calloc(1, sizeof *k->ctx);
    if (k->ctx)
        k->ctx->tables = br_try_calloc(X86_KINDS * n, sizeof *k->ctx->tables);
    if (k->ctx)
        k->ctx->seats =
            br_try_calloc(BR_KMAX_BLOCK / KI_LANES, sizeof *k->ctx->seats);
    if (!k->run.rows || !k->ctx || !k->ctx->tables || !k->ctx->seats)
        return br_fail(&k->st, BR_E_OOM, "kernel: out of memory");
    fill_tables(k->ctx);
    k->ctx->end = 2ull * k->l.block[0];
    for (unsigned s = 1; s <= X86_STEPS; s++)
        k->ctx->reach[s] = (uint64_t)(k->l.block[0] - 1) << (s - 1);
    for (unsigned s = 0; wide && s < wide->odd.n; s++)
        k->ctx->reach[X86_STEPS + 1 + s] =
            (uint64_t)((k->l.block[0] - 1) * (int64_t)wide->odd.by[s]);
    x86_calls(k->ctx);
    k->ctx->run = &k->run;
    k->ctx->params = k->l.params;
    return ki_run_init(&k->run);
}

static void
worker_fini(worker *k)
{
    size_t fns = k->l.image->m->fns.n;

    for (size_t n = 0; n < X86_KINDS * fns; n++) {
        if (k->run.rows && n < fns)
            br_free(k->run.rows[n]);
        if (k->ctx && k->ctx->tables)
            br_free(k->ctx->tables[n]);
    }
    if (k->ctx) {
        br_free(k->ctx->tables);
        br_free(k->ctx->seats);
    }
    br_free(k->run.rows);
    br_free(k->ctx);
    ki_run_fini(&k->run);
}

static void
work(void *arg)
{
    worker *k = arg;

    k->code = ki_run_grid(&k->run);
    /* Stores past the caches are there, for whoever hears of the end. */
    atomic_thread_fence(memory_order_seq_cst);
    if (k->code == BR_E_OOM)
        br_fail(&k->st, k->code, "kernel: out of memory");
    if (k->code != BR_OK)
        atomic_store_explicit(k->run.stop, true, memory_order_relaxed);
}

/* What several threads ask of the launch's owner: one at a time. */
typedef struct owner {
    br_mutex lock;
    const br_klaunch *l;
} owner;

static void
print_locked(void *arg, const char *text, size_t n)
{
    owner *p = arg;

    br_mutex_lock(&p->lock);
    p->l->print(p->l->arg, text, n);
    br_mutex_unlock(&p->lock);
}

static void *
get_locked(void *arg, uint64_t bytes)
{
    owner *p = arg;
    void *at;

    br_mutex_lock(&p->lock);
    at = p->l->heap_get(p->l->arg, bytes);
    br_mutex_unlock(&p->lock);
    return at;
}

static bool
put_locked(void *arg, void *at)
{
    owner *p = arg;
    bool ok;

    br_mutex_lock(&p->lock);
    ok = p->l->heap_put(p->l->arg, at);
    br_mutex_unlock(&p->lock);
    return ok;
}

/* Processors, counted by the module's first launch that wants several: asking the
 * system takes 40 us, which is ten small launches. */
static unsigned
processors(const struct br_x86 *x)
{
    unsigned n;

    br_mutex_lock(&x->more->lock);
    if (!x->more->processors)
        x->more->processors = (unsigned)br_cpu_count();
    n = x->more->processors;
    br_mutex_unlock(&x->more->lock);
    return n;
}

static uint64_t
blocks_of(const br_klaunch *l)
{
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

/* As Linux has it: "32768K". What processors say themselves is at times the sum
 * of all that there are in the machine: 320 MB where 32 are this one's. */
static uint64_t
ask_cache(void)
{
    char text[32], *end;
    unsigned long n;

    if (!br_os_read("/sys/devices/system/cpu/cpu0/cache/index3/size", text,
                    sizeof text))
        return SOME_CACHE;
    n = strtoul(text, &end, 10);
    if (*end == 'M')
        n *= 1024;
    return n && n < MAX_CACHE / 1024 ? n * 1024 : SOME_CACHE;
}

/* Of the last cache before memory, likewise. */
static uint64_t
cache_bytes(const struct br_x86 *x)
{
    uint64_t n;

    br_mutex_lock(&x->more->lock);
    if (!x->more->cache_bytes)
        x->more->cache_bytes = ask_cache();
    n = x->more->cache_bytes;
    br_mutex_unlock(&x->more->lock);
    return n;
}

/* To start a thread takes longer than all of a small launch: what the kernel's
 * last one took for a block says whether this is one. */
static bool
brief(const struct br_x86 *x, const br_klaunch *l)
{
    uint64_t each, blocks = blocks_of(l);

    br_mutex_lock(&x->more->lock);
    each = x->more->block_ns[l->fn];
    br_mutex_unlock(&x->more->lock);
    return each && blocks < BRIEF_NS && each * blocks < BRIEF_NS;
}

static void
took(const struct br_x86 *x, const br_klaunch *l, unsigned threads, int64_t ns)
{
    uint64_t each = (uint64_t)BR_MAX(ns, 1) * threads / blocks_of(l) + 1;

    br_mutex_lock(&x->more->lock);
    x->more->block_ns[l->fn] = BR_MIN(each, (uint64_t)BRIEF_NS);
    br_mutex_unlock(&x->more->lock);
}

static unsigned
threads_for(const struct br_x86 *x, const br_klaunch *l)
{
    uint64_t blocks = blocks_of(l);
    uint64_t lanes = blocks * l->block[0] * l->block[1] * l->block[2];
    unsigned n;

    if (x->alone || l->check ||
        (!l->threads && (lanes < SMALL_LAUNCH || brief(x, l))))
        return 1;
    n = l->threads ? l->threads : processors(x);
    return (unsigned)BR_MIN(BR_MIN(n, blocks), (unsigned)MAX_THREADS);
}

/* Blocks that a thread takes at a time: one counter for all costs each of them
 * as much as a small block does. */
static uint32_t
batch_for(const br_klaunch *l, unsigned threads)
{
    return (uint32_t)BR_MIN(blocks_of(l) / threads / 16 + 1,
                            (uint64_t)MAX_BATCH);
}

/* Stores go past the caches where a launch writes half of the last one, to memory
 * of that size: of what it writes little would be left there. */
static void
choose_streams(const struct br_x86 *x, const br_klaunch *l, x86_ctx *c)
{
    uint64_t lanes = blocks_of(l) * l->block[0] * l->block[1] * l->block[2];

    if (lanes < SMALL_LAUNCH || !x->zmm)
        return;
    c->stream_from = cache_bytes(x) / 2;
    c->streams = lanes >= c->stream_from / 4;
}

static br_code
run_workers(worker *w, unsigned n, br_klaunch *l, br_status *st)
{
    unsigned started = 1;
    br_code code = BR_OK;

    while (started < n && br_thread_start(&w[started].thread, "kernel", work,
                                          &w[started], NULL) == BR_OK)
        started++; /* with fewer threads it takes longer, no more */
    work(&w[0]);
    for (unsigned k = 1; k < started; k++)
        br_thread_join(&w[k].thread);
    for (unsigned k = 0; k < started; k++) {
        l->steps += w[k].l.steps;
        l->findings += w[k].l.findings;
        if (!l->outside[0])
            memcpy(l->outside, w[k].l.outside, sizeof l->outside);
        if (w[k].code != BR_OK && code == BR_OK) {
            code = w[k].code;
            l->fault = w[k].l.fault;
            if (st)
                *st = w[k].st;
        }
    }
    return code;
}

/* Whether n lanes from a multiple of n on lie in one row of a block. */
static bool
rows_of(const br_klaunch *l, unsigned n)
{
    return l->block[0] % n == 0 || (l->block[1] == 1 && l->block[2] == 1);
}

static bool
full_warps(const br_klaunch *l)
{
    return (uint64_t)l->block[0] * l->block[1] * l->block[2] % KI_LANES == 0;
}

/* Whether all warps have the same tid.x, and tid.y grows by the same from each to
 * the next; with less than four, all would be made anyway. */
static bool
in_plane(const br_klaunch *l)
{
    return l->block[2] == 1 && KI_LANES % l->block[0] == 0 &&
           l->block[0] * l->block[1] >= 4 * KI_LANES;
}

br_code
x86_launch(br_kcode *code, br_klaunch *l, br_status *st)
{
    const struct br_x86 *x = (const struct br_x86 *)(void *)code;
    _Atomic uint64_t next = 0;
    _Atomic bool stop = false;
    owner p = {BR_MUTEX, l};
    br_code c = BR_OK;
    const x86_fn *wide = NULL;
    unsigned n, made = 0;
    uint32_t cluster[3];
    const bool several = br_kcluster(l, cluster) > 1;
    worker *w;

    l->steps = l->findings = 0;
    l->fault = BR_KFAULT_OTHER;
    BR_TRY(ki_check_launch(l, st));
    if (l->check)
        return br_fail(st, BR_E_USAGE,
                       "--check is what the interpreter does: --on interp");
    if (x->zmm && rows_of(l, X86_LANES) && !rows_of(l, X86_MOST)) {
        BR_TRY(x86_narrow_code(x, st));
        x = x->more->narrow;
    }
    if (!rows_of(l, X86_LANES)) {
        BR_TRY(x86_rows_code(x, st));
        x = x->more->rows;
    } else if (full_warps(l)) {
        if (l->block[1] == 1 && l->block[2] == 1)
            BR_TRY(x86_wide_code(x, X86_LINES, l->fn, &wide, st));
        else if (in_plane(l))
            BR_TRY(x86_wide_code(x, X86_PLANES, l->fn, &wide, st));
        if (!wide)
            BR_TRY(x86_wide_code(x, X86_BLOCKS, l->fn, &wide, st));
    }
    if (several)
        wide = NULL; /* of whole blocks, by themselves */
    n = threads_for(x, l);
    w = br_try_calloc(n, sizeof *w);
    if (!w)
        return br_fail(st, BR_E_OOM, "kernel: out of memory");
    for (; made < n && c == BR_OK; made++) {
        w[made].l = *l;
        w[made].run.next = &next;
        w[made].run.stop = &stop;
        w[made].run.batch = several ? 1 : batch_for(l, n);
        w[made].l.print = l->print ? print_locked : NULL;
        w[made].l.heap_get = l->heap_get ? get_locked : NULL;
        w[made].l.heap_put = l->heap_put ? put_locked : NULL;
        w[made].l.arg = &p;
        c = worker_init(&w[made], x, wide);
        if (c == BR_OK)
            choose_streams(x, l, w[made].ctx);
        else if (st)
            *st = w[made].st;
    }
    if (c == BR_OK) {
        int64_t from = br_now_ns();

        c = run_workers(w, n, l, st);
        took(x, l, n, br_now_ns() - from);
    }
    while (made)
        worker_fini(&w[--made]);
    br_free(w);
    return c;
}
