/* assign.c - which worker runs a task: round robin, or the least loaded.
 *
 * Ours goes level by level. A level is what can run at once: tasks whose
 * longest chain of dependencies has the same length. Within a level the
 * largest task comes first and takes the worker that has the least bytes of
 * this level, then the fewest of its tasks, then the one that has waited
 * longest since its last task, then the lowest id.
 *
 *    level 7:  2.0 MB  2.0 MB  1.9 MB  4 KB     heap: w3 w1 w0 w2 ...
 *
 * The reference's loader balances bytes of the whole program instead. Then a
 * worker that had nothing in a level of large tasks gets many of the next one
 * and everybody waits for it; and small tasks gather on the workers with the
 * least bytes, which no longer find time to fetch ahead. For Llama-3-8B on an
 * H200 our cost model says 4,538 us with bytes of the whole program, 4,039
 * with levels and ties by bytes, 3,659 with levels and ties by waiting.
 *
 * Cost  O(tasks log(tasks + workers)).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/assign.h"

#include <stdlib.h>
#include <string.h>

typedef struct load {
    int64_t bytes, flops, n; /* of the level, or of all: see balance */
    int64_t last;            /* when it got its last task; 0: never */
} load;

/* heap[i] is a worker, place[w] where in the heap it is. By levels, loads are
 * those of one level, and flops do not count; else they are of all tasks. */
typedef struct balance {
    load *of;
    uint32_t *heap, *place;
    uint32_t n;
    bool levels;
    int64_t clock;
    uint32_t *touched, n_touched; /* workers with load in this level */
} balance;

static bool
lighter(const balance *b, uint32_t x, uint32_t y)
{
    const load *p = &b->of[x], *q = &b->of[y];

    if (p->bytes != q->bytes)
        return p->bytes < q->bytes;
    if (!b->levels && p->flops != q->flops)
        return p->flops < q->flops;
    if (p->n != q->n)
        return p->n < q->n;
    if (b->levels && p->last != q->last)
        return p->last < q->last;
    return x < y;
}

static void
put(balance *b, uint32_t i, uint32_t worker)
{
    b->heap[i] = worker;
    b->place[worker] = i;
}

/* A worker got heavier: it sinks. */
static void
sink(balance *b, uint32_t worker)
{
    uint32_t i = b->place[worker], c;

    while ((c = 2 * i + 1) < b->n) {
        if (c + 1 < b->n && lighter(b, b->heap[c + 1], b->heap[c]))
            c++;
        if (!lighter(b, b->heap[c], worker))
            break;
        put(b, i, b->heap[c]);
        i = c;
    }
    put(b, i, worker);
}

/* A worker got lighter: it rises. */
static void
rise(balance *b, uint32_t worker)
{
    uint32_t i = b->place[worker];

    while (i > 0 && lighter(b, worker, b->heap[(i - 1) / 2])) {
        put(b, i, b->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(b, i, worker);
}

static int64_t
add_clamped(int64_t a, int64_t b)
{
    int64_t v;

    return __builtin_add_overflow(a, b, &v) ? INT64_MAX : v;
}

static void
add_load(balance *b, uint32_t worker, const load *l)
{
    load *to = &b->of[worker];

    if (b->levels && to->n == 0)
        b->touched[b->n_touched++] = worker;
    to->bytes = add_clamped(to->bytes, l->bytes);
    to->flops = add_clamped(to->flops, l->flops);
    to->n += l->n;
    to->last = ++b->clock;
    sink(b, worker);
}

static void
next_level(balance *b)
{
    while (b->n_touched) {
        uint32_t w = b->touched[--b->n_touched];

        b->of[w].bytes = b->of[w].n = 0;
        rise(b, w);
    }
}

static bool
balance_init(balance *b, br_arena *a, uint32_t workers)
{
    b->of = br_arena_new(a, load, workers);
    b->heap = br_arena_new(a, uint32_t, workers);
    b->place = br_arena_new(a, uint32_t, workers);
    b->touched = br_arena_new(a, uint32_t, workers);
    if (!b->of || !b->heap || !b->place || !b->touched)
        return false;
    b->n = workers;
    b->n_touched = 0;
    b->clock = 0;
    b->levels = false;
    for (uint32_t w = 0; w < workers; w++)
        put(b, w, w); /* equal loads, ascending ids: a heap */
    return true;
}

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "assignment: out of memory");
}

static br_code
check_workers(int64_t workers, br_status *st)
{
    if (workers < 1 || workers > BR_ASSIGN_MAX_WORKERS)
        return br_fail(st, BR_E_FORMAT,
                       "assignment: %lld workers are not in 1..%d",
                       (long long)workers, BR_ASSIGN_MAX_WORKERS);
    return BR_OK;
}

static br_code
topology(br_mega_graph *g, const br_mega_prog *p, br_arena *a, br_status *st)
{
    BR_TRY(br_mega_graph_build(g, p, a, st));
    if (!g->topo)
        return br_fail(st, BR_E_FORMAT,
                       "assignment: the tasks depend on each other in a "
                       "circle");
    return BR_OK;
}

/* ---- ours ---------------------------------------------------------------- */

typedef struct assigner {
    const br_mega_prog *p;
    int64_t *sm;
    const br_mega_assign_opts *o;
    br_arena a;
    br_mega_graph g;
    balance b;
    load *unit;       /* sum of each unit */
    int64_t *unit_sm; /* -1: not placed yet */
    struct turn *order;
} assigner;

static load
load_of(const br_mega_task *t)
{
    return (load){.bytes = BR_MAX(t->est_bytes, 0),
                  .flops = BR_MAX(t->est_flops, 0),
                  .n = 1};
}

static int32_t
unit_of(const assigner *as, size_t task)
{
    int32_t u = as->o->unit ? as->o->unit[task] : -1;

    br_assert(u < as->o->n_units && "units are numbered below n_units");
    return u;
}

/* Sums of units, and where their pinned tasks already are. */
static br_code
scan(assigner *as, br_status *st)
{
    int32_t n = as->o->n_units;

    as->unit = br_arena_new(&as->a, load, (size_t)n + 1);
    as->unit_sm = br_arena_new(&as->a, int64_t, (size_t)n + 1);
    if (!as->unit || !as->unit_sm)
        return no_memory(st);
    for (int32_t u = 0; u < n; u++)
        as->unit_sm[u] = -1;
    for (size_t i = 0; i < as->p->n_tasks; i++) {
        int32_t u = unit_of(as, i);
        load l = load_of(&as->p->tasks[i]);

        if (as->sm[i] != BR_MEGA_SM_NONE &&
            (as->sm[i] < 0 || as->sm[i] >= as->o->workers))
            return br_fail(st, BR_E_FORMAT,
                           "assignment: task %zu is on worker %lld of %lld", i,
                           (long long)as->sm[i], (long long)as->o->workers);
        if (as->sm[i] != BR_MEGA_SM_NONE) {
            if (u >= 0 && as->unit_sm[u] < 0)
                as->unit_sm[u] = as->sm[i]; /* the rest follows it */
        } else if (u >= 0) {
            as->unit[u].bytes = add_clamped(as->unit[u].bytes, l.bytes);
            as->unit[u].flops = add_clamped(as->unit[u].flops, l.flops);
            as->unit[u].n++;
        }
    }
    return BR_OK;
}

/* The worker of a task that has none. */
static int64_t
choose(assigner *as, size_t task, size_t place)
{
    int32_t u = unit_of(as, task);
    load l = u >= 0 ? as->unit[u] : load_of(&as->p->tasks[task]);
    int64_t sm = u >= 0 ? as->unit_sm[u] : -1;

    if (sm >= 0 && as->unit[u].n == 0)
        return sm; /* its load is counted */
    if (sm < 0)
        sm = as->o->round_robin ? (int64_t)place % as->o->workers
                                : as->b.heap[0];
    add_load(&as->b, (uint32_t)sm, &l);
    if (u >= 0) {
        as->unit_sm[u] = sm;
        as->unit[u].n = 0;
    }
    return sm;
}

/* ---- levels -------------------------------------------------------------- */

typedef struct turn {
    uint32_t level, task;
    int64_t bytes;
} turn;

static int
by_turn(const void *x, const void *y)
{
    const turn *a = x, *b = y;

    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->task < b->task ? -1 : a->task > b->task;
}

/* The order in which tasks are placed: by level, then largest first; round
 * robin takes the topological order as it is. */
static br_code
make_order(assigner *as, br_status *st)
{
    const br_mega_prog *p = as->p;
    uint32_t *done = br_arena_new(&as->a, uint32_t, (size_t)p->n_counters + 1);

    as->order = br_arena_new(&as->a, turn, p->n_tasks + 1);
    if (!done || !as->order)
        return no_memory(st);
    for (size_t i = 0; i < p->n_tasks; i++) {
        uint32_t task = as->g.topo[i], level = 0;
        const br_mega_task *t = &p->tasks[task];

        for (uint32_t k = 0; k < t->n_waits; k++)
            if ((uint64_t)t->waits[k].counter < p->n_counters)
                level = BR_MAX(level, done[t->waits[k].counter]);
        as->order[i] = (turn){level, task, load_of(t).bytes};
        if ((uint64_t)t->out_counter < p->n_counters)
            done[t->out_counter] = BR_MAX(done[t->out_counter], level + 1);
    }
    if (p->n_tasks && !as->o->round_robin)
        qsort(as->order, p->n_tasks, sizeof *as->order, by_turn);
    return BR_OK;
}

static br_code
assign(assigner *as, br_status *st)
{
    BR_TRY(topology(&as->g, as->p, &as->a, st));
    BR_TRY(scan(as, st));
    BR_TRY(make_order(as, st));
    if (!balance_init(&as->b, &as->a, (uint32_t)as->o->workers))
        return no_memory(st);
    as->b.levels = true;
    for (size_t i = 0; i < as->p->n_tasks; i++) {
        const turn *now = &as->order[i];
        load l = load_of(&as->p->tasks[now->task]);

        if (i > 0 && now->level != now[-1].level)
            next_level(&as->b);
        if (as->sm[now->task] != BR_MEGA_SM_NONE)
            add_load(&as->b, (uint32_t)as->sm[now->task], &l);
        else
            as->sm[now->task] = choose(as, now->task, i);
    }
    return BR_OK;
}

br_code
br_mega_assign_to(const br_mega_prog *p, const br_mega_assign_opts *o,
                  int64_t *sm, br_status *st)
{
    assigner as = {.p = p, .o = o, .sm = sm};
    br_code code;

    BR_TRY(check_workers(o->workers, st));
    br_arena_init(&as.a, 0);
    code = assign(&as, st);
    br_arena_fini(&as.a);
    return code;
}

br_code
br_mega_assign(br_mega_prog *p, const br_mega_assign_opts *o, br_status *st)
{
    int64_t *sm = br_try_calloc(p->n_tasks + 1, sizeof *sm);
    br_code code;

    if (!sm)
        return no_memory(st);
    for (size_t i = 0; i < p->n_tasks; i++)
        sm[i] = p->tasks[i].sm;
    code = br_mega_assign_to(p, o, sm, st);
    for (size_t i = 0; i < p->n_tasks && code == BR_OK; i++)
        p->tasks[i].sm = sm[i];
    br_free(sm);
    return code;
}

/* ---- the reference loader's ---------------------------------------------- */

/* True when the loader keeps what tasks say, whoever says nothing. */
static bool
keeps_given(const br_mega_prog *p, int64_t workers)
{
    bool any = false;

    for (size_t i = 0; i < p->n_tasks; i++) {
        int64_t sm = p->tasks[i].sm;

        if (sm != BR_MEGA_SM_NONE && (sm < 0 || sm >= workers))
            return false;
        any |= sm != BR_MEGA_SM_NONE;
    }
    return any;
}

static br_code
assign_amk(const br_mega_prog *p, int64_t workers, bool round_robin,
           int64_t *sm_of, br_arena *a, br_status *st)
{
    br_mega_graph g;
    balance b;

    BR_TRY(topology(&g, p, a, st));
    if (!balance_init(&b, a, (uint32_t)workers))
        return no_memory(st);
    for (size_t i = 0; i < p->n_tasks; i++) {
        size_t task = g.topo[i];
        /* The loader does not clamp; estimates below zero are no program of
         * the lowering's, and we treat them as none. */
        load l = load_of(&p->tasks[task]);

        sm_of[task] = round_robin ? (int64_t)(i % (size_t)workers) : b.heap[0];
        add_load(&b, (uint32_t)sm_of[task], &l);
    }
    return BR_OK;
}

br_code
br_mega_assign_amk(const br_mega_prog *p, int64_t workers, bool round_robin,
                   int64_t *sm_of, br_status *st)
{
    br_arena a;
    br_code code;

    BR_TRY(check_workers(workers, st));
    if (keeps_given(p, workers)) {
        for (size_t i = 0; i < p->n_tasks; i++)
            sm_of[i] = p->tasks[i].sm == BR_MEGA_SM_NONE ? 0 : p->tasks[i].sm;
        return BR_OK;
    }
    br_arena_init(&a, 0);
    code = assign_amk(p, workers, round_robin, sm_of, &a, st);
    br_arena_fini(&a);
    return code;
}
