/* walk.c - counters, and the order of tasks.
 *
 * The reference sweeps over the task list until nothing moves. The same order
 * comes out of one heap without sweeping: a task that becomes ready when task
 * i fires belongs to this sweep when it lies behind i in the list, else to the
 * next, so its key is (sweep, index). The other orders differ only in the key.
 * O((tasks + waits) log tasks), whatever the list looks like.
 *
 *    fire task --> counter += 1 --> waits sorted by threshold: those now met
 *        ^                             |  a task whose last wait is met
 *        `------- heap pop <-----------'
 *
 * Invariant: counters only grow within a run, so a wait once met stays met.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/walk.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef struct wait { /* sorted by (counter, threshold, task) */
    int64_t threshold;
    uint32_t counter, task;
} wait;

typedef struct counter {
    int64_t value;
    uint32_t next, end; /* of its waits: next is the first not met */
} counter;

struct br_mega_walk {
    br_mega_runner runner;
    br_arena arena;
    const br_mega_prog *prog;
    wait *waits;
    counter *counters;
    uint32_t *open;   /* waits of a task not yet met */
    uint32_t *behind; /* a task's neighbour in the queue of its SM */
    uint64_t *heap;   /* ready tasks: key << 32 | index, least first */
    size_t n_waits, n_heap;
    br_mega_order kind;
    uint64_t seed;
    uint32_t sweep, current;
};

/* ---- what the program says ---------------------------------------------- */

static int
by_counter(const void *pa, const void *pb)
{
    const wait *a = pa, *b = pb;

    if (a->counter != b->counter)
        return a->counter < b->counter ? -1 : 1;
    if (a->threshold != b->threshold)
        return a->threshold < b->threshold ? -1 : 1;
    return (a->task > b->task) - (a->task < b->task);
}

static br_code
check_task(const br_mega_prog *p, size_t i, br_status *st)
{
    const br_mega_task *t = &p->tasks[i];

    if (t->id != (int64_t)i)
        return br_fail(st, BR_E_FORMAT,
                       "tasks[%zu] has id %lld: ids are not "
                       "0, 1, 2 ..",
                       i, (long long)t->id);
    if (t->out_counter < 0 || (uint64_t)t->out_counter >= p->n_counters)
        return br_fail(st, BR_E_FORMAT, "task %zu: no counter %lld", i,
                       (long long)t->out_counter);
    if (t->n_in > BR_MEGA_MAX_INPUTS || t->n_out > BR_MEGA_MAX_OUTPUTS)
        return br_fail(st, BR_E_FORMAT,
                       "task %zu: %u inputs and %u outputs, "
                       "at most %d and %d",
                       i, t->n_in, t->n_out, BR_MEGA_MAX_INPUTS,
                       BR_MEGA_MAX_OUTPUTS);
    for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
        int64_t b = k < t->n_in ? t->in[k] : t->out[k - t->n_in];

        if (b < 0 || (uint64_t)b >= p->n_buffers)
            return br_fail(st, BR_E_FORMAT, "task %zu: no buffer %lld", i,
                           (long long)b);
    }
    for (uint32_t k = 0; k < t->n_waits; k++)
        if (t->waits[k].counter < 0 ||
            (uint64_t)t->waits[k].counter >= p->n_counters)
            return br_fail(st, BR_E_FORMAT, "task %zu: no counter %lld", i,
                           (long long)t->waits[k].counter);
    return BR_OK;
}

static br_code
make_waits(br_mega_walk *w, br_status *st)
{
    const br_mega_prog *p = w->prog;
    size_t n = 0;

    for (size_t i = 0; i < p->n_counters; i++)
        if (p->counters[i].id != (int64_t)i || p->counters[i].init < 0 ||
            p->counters[i].init > UINT32_MAX)
            return br_fail(st, BR_E_FORMAT, "counters[%zu]: id %lld, init %lld",
                           i, (long long)p->counters[i].id,
                           (long long)p->counters[i].init);
    for (size_t i = 0; i < p->n_tasks; i++) {
        BR_TRY(check_task(p, i, st));
        n += p->tasks[i].n_waits;
    }
    if (n >= UINT32_MAX)
        return br_fail(st, BR_E_LIMIT, "%zu waits, at most 2^32", n);
    w->waits = br_arena_new(&w->arena, wait, n + 1);
    if (!w->waits)
        return br_fail(st, BR_E_OOM, "no memory for the program's waits");
    for (size_t i = 0; i < p->n_tasks; i++)
        for (uint32_t k = 0; k < p->tasks[i].n_waits; k++) {
            const br_mega_wait *x = &p->tasks[i].waits[k];

            w->waits[w->n_waits++] =
                (wait){x->threshold, (uint32_t)x->counter, (uint32_t)i};
        }
    qsort(w->waits, w->n_waits, sizeof *w->waits, by_counter);
    return BR_OK;
}

typedef struct placed {
    int64_t sm;
    uint32_t task;
} placed;

static int
by_sm(const void *pa, const void *pb)
{
    const placed *a = pa, *b = pb;

    if (a->sm != b->sm)
        return a->sm < b->sm ? -1 : 1;
    return a->task < b->task ? -1 : a->task > b->task;
}

static br_code
make_queues(br_mega_walk *w, br_status *st)
{
    const br_mega_prog *p = w->prog;
    placed *all = br_try_calloc(p->n_tasks + 1, sizeof *all);
    size_t n = 0;

    if (!all)
        return br_fail(st, BR_E_OOM, "no memory for the program's queues");
    for (size_t i = 0; i < p->n_tasks; i++) {
        w->behind[i] = NONE;
        if (p->tasks[i].sm != BR_MEGA_SM_NONE)
            all[n++] = (placed){p->tasks[i].sm, (uint32_t)i};
    }
    qsort(all, n, sizeof *all, by_sm);
    for (size_t i = 1; i < n; i++)
        if (all[i].sm == all[i - 1].sm)
            w->behind[all[i - 1].task] = all[i].task;
    br_free(all);
    return BR_OK;
}

/* ---- the heap --------------------------------------------------------- */

/* splitmix64: a counter in, a random word out. */
static uint64_t
mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Least first; the low half is the task. current: the task that fired, or
 * UINT32_MAX before the first. */
static uint64_t
key_of(const br_mega_walk *w, uint32_t task)
{
    uint64_t hi = 0;

    switch (w->kind) {
    case BR_MEGA_ORDER_SWEEP:
        hi = w->sweep + (w->current != UINT32_MAX && task < w->current);
        break;
    case BR_MEGA_ORDER_QUEUES: break;
    case BR_MEGA_ORDER_REVERSE: hi = UINT32_MAX - task; break;
    case BR_MEGA_ORDER_RANDOM: hi = mix(mix(w->seed) ^ task) >> 32; break;
    }
    return hi << 32 | task;
}

static void
push(br_mega_walk *w, uint32_t task)
{
    uint64_t key = key_of(w, task);
    size_t i = w->n_heap++;

    for (; i && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = key;
}

static uint64_t
pop(br_mega_walk *w)
{
    uint64_t top = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0, kid;

    while ((kid = 2 * i + 1) < w->n_heap) {
        if (kid + 1 < w->n_heap && w->heap[kid + 1] < w->heap[kid])
            kid++;
        if (w->heap[kid] >= last)
            break;
        w->heap[i] = w->heap[kid];
        i = kid;
    }
    w->heap[i] = last;
    return top;
}

/* ---- a run ------------------------------------------------------------ */

/* The waits on counter c that its value now meets. */
static void
meet(br_mega_walk *w, counter *c)
{
    while (c->next < c->end && w->waits[c->next].threshold <= c->value) {
        uint32_t task = w->waits[c->next++].task;

        if (--w->open[task] == 0)
            push(w, task);
    }
}

static void
start(br_mega_walk *w)
{
    const br_mega_prog *p = w->prog;
    size_t at = 0;

    w->runner.n_order = w->runner.sweeps = 0;
    w->n_heap = 0;
    w->sweep = 0;
    w->current = UINT32_MAX;
    for (size_t i = 0; i < p->n_tasks; i++)
        w->open[i] = p->tasks[i].n_waits;
    for (size_t i = 0; w->kind == BR_MEGA_ORDER_QUEUES && i < p->n_tasks; i++)
        if (w->behind[i] != NONE)
            w->open[w->behind[i]]++;
    for (size_t i = 0; i < p->n_tasks; i++)
        if (w->open[i] == 0)
            push(w, (uint32_t)i);
    for (size_t i = 0; i < p->n_counters; i++) {
        counter *c = &w->counters[i];

        c->value = p->counters[i].init;
        c->next = (uint32_t)at;
        while (at < w->n_waits && w->waits[at].counter == i)
            at++;
        c->end = (uint32_t)at;
        meet(w, c);
    }
}

/* Everybody who still waits, and for what. */
static br_code
stuck(const br_mega_walk *w, br_status *st)
{
    const br_mega_prog *p = w->prog;
    br_str s = {0};
    size_t shown = 0, left = p->n_tasks - w->runner.n_order;

    for (size_t i = 0; i < p->n_tasks && shown < 6; i++) {
        const br_mega_task *t = &p->tasks[i];

        if (w->open[i] == 0)
            continue;
        for (uint32_t k = 0; k < t->n_waits; k++) {
            const br_mega_wait *x = &t->waits[k];
            int64_t has = w->counters[x->counter].value;

            if (has >= x->threshold)
                continue;
            br_str_printf(&s, "%s task %zu (counter %lld is %lld, needs %lld)",
                          shown ? "," : "", i, (long long)x->counter,
                          (long long)has, (long long)x->threshold);
            break;
        }
        shown++;
    }
    br_fail(st, BR_E_REJECTED, "stuck: %zu of %zu tasks wait for ever:%s%s",
            left, p->n_tasks, br_str_z(&s), left > shown ? ", .." : "");
    br_str_fini(&s);
    return BR_E_REJECTED;
}

static br_code
run(br_mega_runner *r, br_mega_fire *fire, void *ctx, br_status *st)
{
    br_mega_walk *w = (br_mega_walk *)r;

    start(w);
    while (w->n_heap) {
        uint64_t top = pop(w);
        uint32_t i = (uint32_t)top;
        counter *c = &w->counters[w->prog->tasks[i].out_counter];

        if (w->kind == BR_MEGA_ORDER_SWEEP) {
            w->sweep = (uint32_t)(top >> 32);
            r->sweeps = w->sweep + (size_t)1;
        }
        w->current = i;
        r->order[r->n_order++] = i;
        BR_TRY(fire(ctx, 0, i, st));
        c->value++;
        meet(w, c);
        if (w->kind == BR_MEGA_ORDER_QUEUES && w->behind[i] != NONE &&
            --w->open[w->behind[i]] == 0)
            push(w, w->behind[i]);
    }
    return r->n_order == w->prog->n_tasks ? BR_OK : stuck(w, st);
}

/* ---- life --------------------------------------------------------------- */

static br_code
make(br_mega_walk *w, br_status *st)
{
    size_t n = w->prog->n_tasks + 1;

    w->counters = br_arena_new(&w->arena, counter, w->prog->n_counters + 1);
    w->open = br_arena_new(&w->arena, uint32_t, n);
    w->behind = br_arena_new(&w->arena, uint32_t, n);
    w->heap = br_arena_new(&w->arena, uint64_t, n);
    w->runner.order = br_arena_new(&w->arena, uint32_t, n);
    if (!w->counters || !w->open || !w->behind || !w->heap || !w->runner.order)
        return br_fail(st, BR_E_OOM, "no memory for the program's tasks");
    BR_TRY(make_waits(w, st));
    return make_queues(w, st);
}

br_code
br_mega_walk_new(br_mega_walk **out, const br_mega_prog *p, br_status *st)
{
    br_mega_walk *w = br_try_calloc(1, sizeof *w);
    br_code code;

    *out = NULL;
    if (!w)
        return br_fail(st, BR_E_OOM, "no memory for the program's tasks");
    br_arena_init(&w->arena,
                  0); /* the program is in memory, and this is less */
    w->runner = (br_mega_runner){.run = run, .workers = 1};
    w->prog = p;
    code = make(w, st);
    if (code != BR_OK) {
        br_mega_walk_free(w);
        return code;
    }
    *out = w;
    return BR_OK;
}

void
br_mega_walk_free(br_mega_walk *w)
{
    if (!w)
        return;
    br_arena_fini(&w->arena);
    br_free(w);
}

void
br_mega_walk_by(br_mega_walk *w, br_mega_order order, uint64_t seed)
{
    w->kind = order;
    w->seed = seed;
}

br_mega_runner *
br_mega_walk_runner(br_mega_walk *w)
{
    return &w->runner;
}
