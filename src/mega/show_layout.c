/* show_layout.c - when each task runs, in which lane, and the critical path.
 *
 *   target?  yes: br_mega_cost_of: start, end, worker, path in microseconds
 *            no:  one unit a task, placed in topological order as soon as its
 *                 producers and its lane allow
 *   workers in the file?  a lane per worker that has tasks
 *                    no:  the lowest lane that is free, so that a chain is one
 *                         line and the width of the picture is the parallelism
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FREE_LANES = 256 }; /* of a program without target */
#define NONE BR_SHOW_NONE

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "show: no memory");
}

static br_code
check_ids(const br_mega_prog *p, br_status *st)
{
    if (p->n_tasks >= NONE)
        return br_fail(st, BR_E_LIMIT, "show: %zu tasks", p->n_tasks);
    for (size_t i = 0; i < p->n_tasks; i++) {
        const br_mega_task *t = &p->tasks[i];
        bool fine =
            t->id == (int64_t)i && (uint64_t)t->out_counter < p->n_counters;
        for (uint32_t k = 0; k < t->n_waits; k++)
            fine = fine && (uint64_t)t->waits[k].counter < p->n_counters;
        if (!fine)
            return br_fail(st, BR_E_REJECTED,
                           "tasks[%zu]: an id that points nowhere (see prog "
                           "check)",
                           i);
    }
    return BR_OK;
}

/* ---- lanes ------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Lane = place of the task's worker among the workers that have tasks. */
static br_code
lanes_of_workers(br_show *s, const int64_t *sm, uint32_t *lane, br_status *st)
{
    int64_t *ids = br_arena_dup(&s->a, sm, s->n * sizeof *ids);
    uint32_t k = 0;

    if (!ids)
        return oom(st);
    qsort(ids, s->n, sizeof *ids, by_number);
    for (uint32_t i = 0; i < s->n; i++)
        if (!k || ids[k - 1] != ids[i])
            ids[k++] = ids[i];
    for (uint32_t t = 0; t < s->n; t++) {
        const int64_t *hit = bsearch(&sm[t], ids, k, sizeof *ids, by_number);
        lane[t] = (uint32_t)(hit - ids);
    }
    s->lane_sm = ids;
    s->n_lanes = k;
    return BR_OK;
}

/* The lowest lane that is free when the task starts, in order of start. A heap
 * of busy lanes by end, and one of free lanes by number. */
typedef struct heap {
    uint32_t *at, n;
    const double *key; /* by lane; NULL: the number itself */
} heap;

static bool
first(const heap *h, uint32_t a, uint32_t b)
{
    if (h->key && (h->key[a] < h->key[b] || h->key[a] > h->key[b]))
        return h->key[a] < h->key[b];
    return a < b;
}

static void
push(heap *h, uint32_t v)
{
    uint32_t i = h->n++;

    for (; i && first(h, v, h->at[(i - 1) / 2]); i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = v;
}

static uint32_t
pop(heap *h)
{
    uint32_t top = h->at[0], v = h->at[--h->n], i = 0, c;

    for (; (c = 2 * i + 1) < h->n; i = c) {
        c += c + 1 < h->n && first(h, h->at[c + 1], h->at[c]);
        if (!first(h, h->at[c], v))
            break;
        h->at[i] = h->at[c];
    }
    h->at[i] = v;
    return top;
}

static br_code
lanes_of_time(br_show *s, uint32_t *lane, br_status *st)
{
    double *until = br_arena_new(&s->a, double, s->n + 1);
    heap busy = {br_arena_new(&s->a, uint32_t, s->n + 1), 0, until};
    heap idle = {br_arena_new(&s->a, uint32_t, s->n + 1), 0, NULL};
    double eps = s->total * 1e-9;

    if (!until || !busy.at || !idle.at)
        return oom(st);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t t = s->by_time[i], l;
        while (busy.n && until[busy.at[0]] <= s->t0[t] + eps)
            push(&idle, pop(&busy));
        l = idle.n ? pop(&idle) : s->n_lanes++;
        lane[t] = l;
        until[l] = s->t1[t];
        push(&busy, l);
    }
    return BR_OK;
}

/* ---- order ------------------------------------------------------------- */

typedef struct stamp {
    int64_t sm; /* 0 where it does not matter */
    double t;
    uint32_t task;
} stamp;

static int
by_stamp(const void *a, const void *b)
{
    const stamp *x = a, *y = b;

    if (x->sm != y->sm)
        return x->sm < y->sm ? -1 : 1;
    if (x->t < y->t || x->t > y->t)
        return x->t < y->t ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static br_code
sort_by_time(br_show *s, br_status *st)
{
    stamp *v = br_arena_new(&s->a, stamp, s->n + 1);
    uint32_t *order = br_arena_new(&s->a, uint32_t, s->n + 1);
    uint32_t *path = br_arena_new(&s->a, uint32_t, s->n + 1);

    if (!v || !order || !path)
        return oom(st);
    for (uint32_t t = 0; t < s->n; t++)
        v[t] = (stamp){0, s->t0[t], t};
    qsort(v, s->n, sizeof *v, by_stamp);
    for (uint32_t i = 0; i < s->n; i++)
        order[i] = v[i].task;
    for (uint32_t t = 0; t < s->n; t++) /* the path by end: see show_int.h */
        if (s->on_path[t])
            v[s->n_path++] = (stamp){0, s->t1[t], t};
    qsort(v, s->n_path, sizeof *v, by_stamp);
    for (uint32_t i = 0; i < s->n_path; i++)
        path[i] = v[i].task;
    s->by_time = order;
    s->path = path;
    return BR_OK;
}

/* ---- without a target: one unit a task --------------------------------- */

typedef struct units {
    double *t0, *t1;
    uint32_t *why;  /* the task that ended last before it, or NONE */
    double *free;   /* per lane */
    uint32_t *user; /* the lane's last task */
    double *done;   /* per counter: end of its last producer */
    uint32_t *last;
} units;

static uint32_t
free_lane(const units *u, uint32_t n_lanes, double at)
{
    uint32_t best = 0;

    for (uint32_t l = 0; l < n_lanes; l++) {
        if (u->free[l] <= at)
            return l;
        if (u->free[l] < u->free[best])
            best = l;
    }
    return best;
}

static void
place(br_show *s, units *u, uint32_t t, uint32_t l)
{
    const br_mega_task *x = &s->p->tasks[t];
    double at = 0;

    u->why[t] = NONE;
    for (uint32_t k = 0; k < x->n_waits; k++) {
        int64_t c = x->waits[k].counter;
        if (u->done[c] > at) {
            at = u->done[c];
            u->why[t] = u->last[c];
        }
    }
    if (l == NONE)
        l = free_lane(u, MAX_FREE_LANES, at);
    if (u->free[l] > at) {
        at = u->free[l];
        u->why[t] = u->user[l];
    }
    u->t0[t] = at;
    u->t1[t] = at + 1;
    u->free[l] = at + 1;
    u->user[l] = t;
    if (u->done[x->out_counter] < at + 1) {
        u->done[x->out_counter] = at + 1;
        u->last[x->out_counter] = t;
    }
}

static br_code
units_of(br_show *s, const uint32_t *lane, br_status *st)
{
    uint32_t n_lanes = BR_MAX(s->n_lanes, (uint32_t)MAX_FREE_LANES);
    bool *path = br_arena_new(&s->a, bool, s->n + 1);
    uint32_t end = NONE;
    units u = {
        .t0 = br_arena_new(&s->a, double, s->n + 1),
        .t1 = br_arena_new(&s->a, double, s->n + 1),
        .why = br_arena_new(&s->a, uint32_t, s->n + 1),
        .free = br_arena_new(&s->a, double, n_lanes),
        .user = br_arena_new(&s->a, uint32_t, n_lanes),
        .done = br_arena_new(&s->a, double, s->p->n_counters + 1),
        .last = br_arena_new(&s->a, uint32_t, s->p->n_counters + 1),
    };

    if (!path || !u.t0 || !u.t1 || !u.why || !u.free || !u.user || !u.done ||
        !u.last)
        return oom(st);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t t = s->g.topo[i];
        place(s, &u, t, lane ? lane[t] : NONE);
        if (u.t1[t] > s->total) {
            s->total = u.t1[t];
            end = t;
        }
    }
    for (; end != NONE; end = u.why[end])
        path[end] = true;
    s->t0 = u.t0;
    s->t1 = u.t1;
    s->on_path = path;
    return BR_OK;
}

/* ---- with a target: the cost model's times ----------------------------- */

/* The model starts a task when it is ready; its worker may still be busy with
 * the one before. Here it starts when the worker is free. */
static br_code
starts(br_show *s, br_status *st)
{
    stamp *v = br_arena_new(&s->a, stamp, s->n + 1);
    double *t0 = br_arena_new(&s->a, double, s->n + 1), free_at = 0;

    if (!v || !t0)
        return oom(st);
    for (uint32_t t = 0; t < s->n; t++)
        v[t] = (stamp){s->cost.sm[t], s->t1[t], t};
    qsort(v, s->n, sizeof *v, by_stamp);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t t = v[i].task;
        if (!i || v[i].sm != v[i - 1].sm)
            free_at = 0;
        t0[t] = BR_MIN(BR_MAX(s->cost.start[t], free_at), s->t1[t]);
        free_at = s->t1[t];
    }
    s->t0 = t0;
    return BR_OK;
}

/* ---- all of it --------------------------------------------------------- */

static br_code
time_tasks(br_show *s, const br_mega_target *target, uint32_t *lane,
           br_status *st)
{
    int64_t *sm = br_arena_new(&s->a, int64_t, s->n + 1);
    bool all = true;

    if (!sm)
        return oom(st);
    for (uint32_t t = 0; t < s->n; t++) {
        sm[t] = s->p->tasks[t].sm;
        all = all && sm[t] != BR_MEGA_SM_NONE;
    }
    s->assigned = all && s->n;
    if (target || s->p->target) {
        if (target)
            s->target = *target;
        else
            BR_TRY(br_mega_target_of(s->p, &s->target, st));
        BR_TRY(br_mega_cost_of(
            &s->cost, s->p,
            &(br_mega_cost_opts){.target = &s->target, .depth = -1}, st));
        s->timed = true;
        s->t1 = s->cost.end;
        s->total = s->cost.us;
        s->on_path = s->cost.on_path;
        BR_TRY(starts(s, st));
    }
    if (s->assigned)
        BR_TRY(lanes_of_workers(s, sm, lane, st));
    if (!s->timed)
        BR_TRY(units_of(s, s->assigned ? lane : NULL, st));
    BR_TRY(sort_by_time(s, st));
    return s->assigned ? BR_OK : lanes_of_time(s, lane, st);
}

static br_code
layout(br_show *s, const br_mega_target *target, br_status *st)
{
    uint32_t *lane;

    BR_TRY(check_ids(s->p, st));
    s->n = (uint32_t)s->p->n_tasks;
    BR_TRY(br_mega_graph_build(&s->g, s->p, &s->a, st));
    if (!s->g.topo)
        return br_fail(st, BR_E_REJECTED,
                       "tasks wait for each other in a circle (see prog "
                       "check)");
    lane = br_arena_new(&s->a, uint32_t, s->n + 1);
    if (!lane)
        return oom(st);
    s->lane = lane;
    return time_tasks(s, target, lane, st);
}

br_code
br_show_layout(br_show *s, const br_mega_prog *p, const br_mega_target *target,
               br_status *st)
{
    *s = (br_show){.p = p};
    br_arena_init(&s->a, 0);
    return layout(s, target, st);
}

void
br_show_fini(br_show *s)
{
    br_mega_cost_fini(&s->cost);
    br_arena_fini(&s->a);
}

br_code
br_mega_show(const br_mega_prog *p, const br_mega_show_opts *o, br_str *out,
             br_status *st)
{
    br_show s;
    br_code rc = br_show_layout(&s, p, o->target, st);

    if (rc == BR_OK) {
        switch (o->format) {
        case BR_SHOW_TEXT: rc = br_show_text(&s, out, st); break;
        case BR_SHOW_DOT: rc = br_show_dot(&s, out, st); break;
        case BR_SHOW_SVG: rc = br_show_svg(&s, out, st); break;
        }
    }
    if (rc == BR_OK && out->oom)
        rc = oom(st);
    br_show_fini(&s);
    return rc;
}
