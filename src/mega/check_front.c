/* check_front.c - the last writer of every cell of a band, as a tree.
 *
 *                [0,8) mixed, top c9          A node stands for a run of cells:
 *               /                  \          - `task`: all were written
 *      [0,4) t3 (c3)        [4,8) mixed         on the counter of this task
 *                           /         \       - `top`: once this counter is
 *                        t5 (c5)   t9 (c9)      complete, so are all writers
 *
 * A question is "does task t come after every writer of [i, j)". It goes down
 * from the root and ends where the top is complete before t: for tiles that
 * are ordered among themselves, after O(log cells) nodes.
 *
 * Where the tiles are joined by something that is no writer (a tree of NOPs)
 * there is no top, and each leaf asks for a pair of its own, until a node has
 * an answer for all tasks bought (br_deal). That holds for what was written
 * below it until then: who comes after that goes on only to what was written
 * since.
 *
 * Cost      O(log cells) a write; a question costs that, and the pairs. Memory:
 *           48 bytes a cell, and for each deal a bit a task.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mega/check_sound.h"

#define MIXED (BR_NONE - 1) /* writers on several counters */

enum { MAX_BOUGHT = 64 << 20 }; /* bytes of deals for a buffer */

#ifndef MIN_CELLS
#    define MIN_CELLS 256 /* of a node that makes deals: what a sweep takes */
#endif

struct br_front_node {
    uint32_t task; /* NONE: nobody has written yet; or MIXED */
    uint32_t top;  /* a counter, or NONE */
    uint32_t when; /* the last write below */
    bool set;      /* the writer of all the cells; the children do not know */
    bool stale;    /* task, top and holes want another look */
    bool holes;
    br_deal *deal; /* NULL: none yet */
};

typedef struct br_front_node node;

bool
br_front_begin(br_front *f, uint32_t n_cells)
{
    static const node nobody = {.task = BR_NONE, .top = BR_NONE, .holes = true};

    f->n_cells = f->lo = n_cells;
    f->hi = f->now = 0;
    if (n_cells > f->room) {
        f->room = BR_MAX(n_cells, 2 * f->room);
        f->list = NULL;
        f->node = br_arena_get(f->arena, 2 * (size_t)f->room * sizeof *f->node);
        if (!f->node)
            return br_hb_no_memory(f->hb);
    }
    for (uint32_t k = 0; k < 2 * n_cells - 1; k++)
        f->node[k] = nobody;
    return true;
}

/* A node with its run of cells; the root is node 0, and a tree of n cells has
 * 2n - 1 nodes, in preorder. */
typedef struct at {
    uint32_t k, l, r;
} at;

static at
left(at p)
{
    return (at){p.k + 1, p.l, p.l + (p.r - p.l) / 2};
}

static at
right(at p)
{
    uint32_t half = (p.r - p.l) / 2;

    return (at){p.k + 2 * half, p.l + half, p.r};
}

static void
assign(node *n, uint32_t task, uint32_t counter, uint32_t when)
{
    n->task = task;
    n->top = counter;
    n->when = when;
    n->set = true;
    n->stale = n->holes = false;
}

static void
write_cells(br_front *f, at p, uint32_t task, uint32_t i, uint32_t j)
{
    uint32_t mid = p.l + (p.r - p.l) / 2;
    node *n = &f->node[p.k];

    if (i <= p.l && p.r <= j) {
        assign(n, task, f->hb->ctr[task], f->now);
        return;
    }
    if (n->set) {
        assign(&f->node[left(p).k], n->task, n->top, n->when);
        assign(&f->node[right(p).k], n->task, n->top, n->when);
        n->set = false;
    }
    n->stale = true;
    n->when = f->now;
    if (i < mid)
        write_cells(f, left(p), task, i, j);
    if (mid < j)
        write_cells(f, right(p), task, i, j);
}

void
br_front_write(br_front *f, uint32_t task, uint32_t i, uint32_t j)
{
    f->lo = BR_MIN(f->lo, i);
    f->hi = BR_MAX(f->hi, j);
    f->now++;
    write_cells(f, (at){0, 0, f->n_cells}, task, i, j);
}

/* Looks again at what writes have changed below. */
static node *
fresh(br_front *f, at p)
{
    const uint32_t *ctr = f->hb->ctr;
    node *n = &f->node[p.k];
    const node *a, *b;

    if (!n->stale)
        return n;
    a = fresh(f, left(p));
    b = fresh(f, right(p));
    n->stale = false;
    n->holes = a->holes || b->holes;
    if (a->task == BR_NONE || b->task == BR_NONE) {
        n->task = a->task == BR_NONE ? b->task : a->task;
        n->top = a->task == BR_NONE ? b->top : a->top;
        return n;
    }
    n->task =
        a->task != MIXED && b->task != MIXED && ctr[a->task] == ctr[b->task]
            ? a->task
            : MIXED;
    n->top = a->top == b->top ? a->top : br_hb_latest(f->hb, a->top, b->top);
    return n;
}

/* ---- questions ---------------------------------------------------------- */

static bool
covers(uint32_t i, uint32_t j, at p)
{
    return i <= p.l && p.r <= j;
}

static uint32_t
hole(br_front *f, at p, uint32_t i, uint32_t j)
{
    uint32_t mid = p.l + (p.r - p.l) / 2, c = j;
    node *n = &f->node[p.k];

    if (covers(i, j, p))
        fresh(f, p);
    if (!n->stale && !n->holes)
        return j;
    if (!n->stale && n->task == BR_NONE)
        return BR_MAX(i, p.l);
    if (i < mid)
        c = hole(f, left(p), i, j);
    return c < j || j <= mid ? c : hole(f, right(p), i, j);
}

uint32_t
br_front_hole(br_front *f, uint32_t i, uint32_t j)
{
    return hole(f, (at){0, 0, f->n_cells}, i, j);
}

/* The writers below a node, each counter once where its cells are neighbours.
 */
static uint32_t
list(br_front *f, at p, uint32_t *out, uint32_t n)
{
    uint32_t task = fresh(f, p)->task;

    if (task == MIXED)
        return list(f, right(p), out, list(f, left(p), out, n));
    if (task != BR_NONE &&
        (n == 0 || f->hb->ctr[out[n - 1]] != f->hb->ctr[task]))
        out[n++] = task;
    return n;
}

static bool
buy(br_front *f, at p)
{
    br_deal *d = f->node[p.k].deal;

    if (!d->after)
        f->bought += f->to / 8;
    if (f->bought > MAX_BOUGHT)
        return true; /* then it is pairs */
    if (!f->list)
        f->list = br_arena_get(f->arena, f->room * sizeof *f->list);
    d->mark = f->now;
    return f->list
               ? br_hb_buy(f->hb, d, f->arena, f->list, list(f, p, f->list, 0))
               : br_hb_no_memory(f->hb);
}

/* Counts the pairs that a question to the node has led to. */
static bool
count(br_front *f, at p, uint32_t pairs)
{
    node *n = &f->node[p.k];

    if (!n->deal) {
        n->deal = br_arena_new(f->arena, br_deal, 1);
        if (!n->deal)
            return br_hb_no_memory(f->hb);
        n->deal->from = f->from;
        n->deal->to = f->to;
    }
    n->deal->pairs += pairs;
    return !br_hb_worth(n->deal, p.r - p.l) || buy(f, p);
}

typedef struct question {
    uint32_t task, i, j;
    br_clash kind;
} question;

/* no: a top that was asked for in vain. since: the task comes after
 * all that was written until then. */
static bool
ask(br_front *f, at p, const question *q, uint32_t no, uint32_t since)
{
    uint32_t mid = p.l + (p.r - p.l) / 2, pairs = f->pairs;
    bool whole = covers(q->i, q->j, p);
    node *n = whole ? fresh(f, p) : &f->node[p.k];

    if (n->when <= since)
        return true;
    if (!n->stale) {
        if (n->top != BR_NONE && n->top != no &&
            br_hb_quick(f->hb, n->top, q->task) == BR_YES)
            return true;
        no = n->top;
    }
    f->pairs++;
    if (n->set || (whole && n->task != MIXED))
        return br_hb_require(f->hb, n->task, q->task, f->buffer, q->kind);
    if (whole && n->deal && br_hb_bought(f->hb, n->deal, q->task))
        since = BR_MAX(since, n->deal->mark);
    if ((q->i < mid && !ask(f, left(p), q, no, since)) ||
        (mid < q->j && !ask(f, right(p), q, no, since)))
        return false;
    return !whole || p.r - p.l < MIN_CELLS || count(f, p, f->pairs - pairs);
}

bool
br_front_after(br_front *f, uint32_t task, uint32_t i, uint32_t j,
               br_clash kind)
{
    question q = {task, i, j, kind};

    if (j <= f->lo || f->hi <= i)
        return true; /* tiles in order: nothing is there yet */
    return ask(f, (at){0, 0, f->n_cells}, &q, BR_NONE, 0);
}
