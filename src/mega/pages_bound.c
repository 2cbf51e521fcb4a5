/* pages_bound.c - how few bytes any sharing of pages could do with.
 *
 * 1. Antichain. Buffers that are pairwise unordered need pages of their own,
 *    so the heaviest antichain is a lower bound. By Dilworth's theorem with
 *    weights it equals the least flow that gives every buffer its weight, and
 *    that is sum(w) - maxflow of
 *
 *        S --w(a)--> L(a) --inf--> R(b) --w(b)--> T      a next before b
 *                     ^             |
 *                     '--L(b)<-inf--'                    and on, through b
 *
 *    where only covering pairs (no c between a and b) need an edge, because a
 *    page may pass a buffer by. The minimum cut names the antichain: the items
 *    with L on the side of S and R on the side of T.
 *
 * 2. Layers. A page table has at least width(s) pages of size >= s, where
 *    width(s) is the largest antichain among the buffers of size >= s. The sum
 *    of the page sizes is the integral of their number over s, so
 *
 *        bytes >= sum over sizes s1 > s2 > ..  (s_i - s_i+1) * width(s_i).
 *
 *    This is never less than bound 1 and, with one size, equal and attained.
 *    Between the two lies what mixed sizes cost: no page table can follow.
 *    One network serves all widths: a class of smaller buffers only adds
 *    capacity, and the flow found so far stays.
 *
 * Buffers with the same items before and the same items after them (the tiles
 * of one operation) are one node with their sum: a join of 100 tiles upon 100
 * tiles is one edge, not 10,000.
 *
 * Cost  Dinic on 2 nodes a class; docs/pages.md has times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/pages_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_COVERS = 4 << 20, /* edges of the network; 100 MB */
    LAYER_WORK = 1 << 26, /* edges looked at for the layers. Sizes beyond what
                             that allows are left out, which weakens the bound
                             but keeps it one */
};
#define NONE BR_PG_NONE
#define INF  (INT64_MAX / 4)

typedef struct edge {
    int64_t cap;
    uint32_t to, next; /* the reverse of edge e is e ^ 1 */
} edge;

enum { S, T, FIRST };

typedef struct net {
    BR_VEC(edge) e;
    uint32_t n;            /* nodes */
    uint32_t *head, *cur;  /* [n] */
    uint32_t *level, *que; /* [n] */
    uint32_t *path;        /* [n] edges of the path being built */
    bool oom;
} net;

typedef struct classes {
    uint32_t n;
    uint32_t *of;   /* item -> class; classes ascend by their first item */
    uint32_t *rep;  /* class -> first item */
    uint64_t *reps; /* bit set over items */
} classes;

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "pages: no memory");
}

/* ---- classes of equal place in the order ------------------------------- */

typedef struct class_key {
    uint64_t row;
    uint32_t end, item;
} class_key;

static int
by_key(const void *a, const void *b)
{
    const class_key *x = a, *y = b;

    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* The items before i as a number; rows of different length may be equal. */
static uint64_t
row_key(const br_pg_order *o, uint32_t i)
{
    uint64_t h = 0;

    for (uint32_t w = 0; w < br_pg_words(i); w++) {
        uint64_t x = o->row[i][w] * 0x9e3779b97f4a7c15u;
        if (x)
            h += (x ^ x >> 29) * (2 * (uint64_t)w + 0xbf58476d1ce4e5b9u);
    }
    return h;
}

static bool
same_row(const br_pg_order *o, uint32_t a, uint32_t b) /* a < b */
{
    uint32_t wa = br_pg_words(a), wb = br_pg_words(b);

    if (wa && memcmp(o->row[a], o->row[b], wa * sizeof *o->row[a]) != 0)
        return false;
    for (uint32_t w = wa; w < wb; w++)
        if (o->row[b][w])
            return false;
    return true;
}

static br_code
find_classes(const br_pg_order *o, classes *c, br_arena *a, br_status *st)
{
    class_key *k = br_arena_new(a, class_key, o->n + 1);

    c->n = 0;
    c->of = br_arena_new(a, uint32_t, o->n + 1);
    c->rep = br_arena_new(a, uint32_t, o->n + 1);
    c->reps = br_arena_new(a, uint64_t, br_pg_words(o->n) + 1);
    if (!k || !c->of || !c->rep || !c->reps)
        return oom(st);
    for (uint32_t i = 0; i < o->n; i++)
        k[i] = (class_key){row_key(o, i), o->ending[i], i};
    if (o->n)
        qsort(k, o->n, sizeof *k, by_key);
    for (uint32_t i = 0; i < o->n; i++) { /* of[]: first item of its class */
        bool same = i && k[i].end == k[i - 1].end && k[i].row == k[i - 1].row &&
                    same_row(o, k[i - 1].item, k[i].item);
        c->of[k[i].item] = same ? c->of[k[i - 1].item] : k[i].item;
    }
    for (uint32_t i = 0; i < o->n; i++) {
        bool first = c->of[i] == i;
        if (first) {
            c->reps[i / 64] |= 1ull << i % 64;
            c->rep[c->n] = i;
        }
        c->of[i] = first ? c->n++ : c->of[c->of[i]];
    }
    return BR_OK;
}

/* ---- maximum flow (Dinic) ---------------------------------------------- */

static void
put_edge(net *g, uint32_t from, uint32_t to, int64_t cap)
{
    g->oom = g->oom || !br_vec_push(&g->e, ((edge){cap, to, g->head[from]}));
    if (!g->oom)
        g->head[from] = (uint32_t)g->e.n - 1;
    g->oom = g->oom || !br_vec_push(&g->e, ((edge){0, from, g->head[to]}));
    if (!g->oom)
        g->head[to] = (uint32_t)g->e.n - 1;
}

static bool
set_levels(net *g)
{
    uint32_t n = 0;

    memset(g->level, 0xff, g->n * sizeof *g->level);
    g->level[S] = 0;
    g->que[n++] = S;
    for (uint32_t i = 0; i < n && g->level[T] == NONE; i++)
        for (uint32_t e = g->head[g->que[i]]; e != NONE; e = g->e.at[e].next) {
            uint32_t v = g->e.at[e].to;
            if (g->e.at[e].cap > 0 && g->level[v] == NONE) {
                g->level[v] = g->level[g->que[i]] + 1;
                g->que[n++] = v;
            }
        }
    return g->level[T] != NONE;
}

/* Pushes what the path of n edges bears; returns its edges up to the first
 * one that is full now, where the search goes on. */
static uint32_t
push_path(net *g, uint32_t n, int64_t *flow)
{
    int64_t least = INF;
    uint32_t keep = 0;

    for (uint32_t i = 0; i < n; i++)
        least = BR_MIN(least, g->e.at[g->path[i]].cap);
    for (uint32_t i = n; i-- > 0;) {
        g->e.at[g->path[i]].cap -= least;
        g->e.at[g->path[i] ^ 1].cap += least;
        if (g->e.at[g->path[i]].cap == 0)
            keep = i;
    }
    *flow += least;
    return keep;
}

static int64_t
max_flow(net *g)
{
    int64_t flow = 0;

    while (set_levels(g)) {
        uint32_t n = 0, u = S;
        memcpy(g->cur, g->head, g->n * sizeof *g->cur);
        for (;;) {
            uint32_t e;
            if (u == T) {
                n = push_path(g, n, &flow);
                u = g->e.at[g->path[n] ^ 1].to;
            }
            for (e = g->cur[u]; e != NONE; e = g->e.at[e].next)
                if (g->e.at[e].cap > 0 &&
                    g->level[g->e.at[e].to] == g->level[u] + 1)
                    break;
            g->cur[u] = e;
            if (e != NONE) {
                g->path[n++] = e;
                u = g->e.at[e].to;
            } else if (n) {
                g->level[u] = NONE;
                u = g->e.at[g->path[--n] ^ 1].to;
            } else {
                break;
            }
        }
    }
    return flow;
}

/* ---- the network ------------------------------------------------------- */

/* Edges of class i: S->L at 6i, R->T at 6i + 2, R->L at 6i + 4. */
static br_code
build_net(net *g, const br_pg_order *o, const classes *c, br_arena *a,
          br_status *st)
{
    uint64_t *rem = br_arena_new(a, uint64_t, br_pg_words(o->n) + 1);

    g->n = FIRST + 2 * c->n;
    g->head = br_arena_get(a, g->n * sizeof *g->head);
    g->cur = br_arena_new(a, uint32_t, g->n);
    g->level = br_arena_new(a, uint32_t, g->n);
    g->que = br_arena_new(a, uint32_t, g->n);
    g->path = br_arena_new(a, uint32_t, g->n);
    if (!rem || !g->head || !g->cur || !g->level || !g->que || !g->path)
        return oom(st);
    memset(g->head, 0xff, g->n * sizeof *g->head);
    for (uint32_t i = 0; i < c->n; i++) {
        put_edge(g, S, FIRST + 2 * i, 0);
        put_edge(g, FIRST + 2 * i + 1, T, 0);
        put_edge(g, FIRST + 2 * i + 1, FIRST + 2 * i, INF);
    }
    for (uint32_t i = 0; i < c->n && !g->oom; i++) {
        uint32_t b = c->rep[i], n = br_pg_words(b);
        for (uint32_t w = 0; w < n; w++)
            rem[w] = o->row[b][w] & c->reps[w];
        for (uint32_t w = n; w-- > 0;) {
            while (rem[w]) { /* the latest left is a cover */
                uint32_t p = w * 64 + 63 - (uint32_t)__builtin_clzll(rem[w]);
                rem[w] &= ~(1ull << p % 64);
                for (uint32_t k = 0; k < br_pg_words(p); k++)
                    rem[k] &= ~o->row[p][k];
                put_edge(g, FIRST + 2 * c->of[p], FIRST + 2 * i + 1, INF);
                if (g->e.n / 2 > MAX_COVERS + 3 * (size_t)c->n)
                    return BR_OK; /* the caller sees it */
            }
        }
    }
    return g->oom ? oom(st) : BR_OK;
}

static void
raise(net *g, uint32_t class, int64_t by)
{
    g->e.at[6 * class].cap += by;
    g->e.at[6 * class + 2].cap += by;
}

/* Sum over the sizes of (step down to the next size) * width. */
static br_code
layered(net *g, const br_pg_order *o, const classes *c, br_mega_pages_report *r,
        br_arena *a, br_status *st)
{
    br_pg_item **s = br_arena_new(a, br_pg_item *, o->n + 1);
    uint32_t n_sizes = 0, skip, seen = 0;
    int64_t flow = 0, sum = 0, width = 0;

    if (!s)
        return oom(st);
    for (uint32_t i = 0; i < o->n; i++)
        s[i] = &o->item[i];
    if (o->n)
        qsort(s, o->n, sizeof *s, br_pg_by_size);
    for (uint32_t i = 0; i < o->n; i++)
        n_sizes += !i || s[i]->size != s[i - 1]->size;
    skip = (uint32_t)(n_sizes * g->e.n / LAYER_WORK) + 1;
    r->exact = r->exact && skip == 1;
    for (uint32_t i = 0; i < o->n;) {
        int64_t size = s[i]->size;
        raise(g, c->of[s[i] - o->item], 1);
        if (++i < o->n && s[i]->size == size)
            continue;
        if (seen++ % skip == 0) { /* else the width of larger ones stands */
            flow += max_flow(g);
            width = (int64_t)i - flow;
        }
        sum += (size - (i < o->n ? s[i]->size : 0)) * width;
    }
    r->bound_bytes = sum;
    return BR_OK;
}

static br_code
heaviest(net *g, const br_pg_order *o, const classes *c,
         br_mega_pages_report *r, uint32_t *antichain)
{
    int64_t sum = 0;
    uint32_t n = 0;

    for (size_t e = 0; e < g->e.n; e += 2) { /* an empty network again */
        g->e.at[e].cap = e < 6 * (size_t)c->n && e % 6 < 4 ? 0 : INF;
        g->e.at[e + 1].cap = 0;
    }
    for (uint32_t i = 0; i < o->n; i++) {
        raise(g, c->of[i], o->item[i].size);
        sum += o->item[i].size;
    }
    r->antichain_bytes = sum - max_flow(g);
    set_levels(g); /* reached: the side of S */
    for (uint32_t i = 0; antichain && i < o->n; i++)
        if (g->level[FIRST + 2 * c->of[i]] != NONE &&
            g->level[FIRST + 2 * c->of[i] + 1] == NONE)
            antichain[n++] = i;
    if (antichain && n < o->n)
        antichain[n] = NONE;
    return BR_OK;
}

/* Too many covers for a network: some antichain, largest items first. */
static br_code
greedy(const br_pg_order *o, br_mega_pages_report *r, uint32_t *antichain,
       br_arena *a, br_status *st)
{
    br_pg_item **s = br_arena_new(a, br_pg_item *, o->n + 1);
    uint32_t *in = br_arena_new(a, uint32_t, o->n + 1), n = 0;

    if (!s || !in)
        return oom(st);
    for (uint32_t i = 0; i < o->n; i++)
        s[i] = &o->item[i];
    if (o->n)
        qsort(s, o->n, sizeof *s, br_pg_by_size);
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t v = (uint32_t)(s[i] - o->item), k = 0;
        while (k < n && !br_pg_before(o, in[k], v) &&
               !br_pg_before(o, v, in[k]))
            k++;
        if (k < n)
            continue;
        in[n++] = v;
        r->antichain_bytes += o->item[v].size;
    }
    r->bound_bytes = r->antichain_bytes;
    r->exact = false;
    if (antichain)
        memcpy(antichain, in, n * sizeof *in);
    if (antichain && n < o->n)
        antichain[n] = NONE;
    return BR_OK;
}

br_code
br_pg_bound(const br_pg_order *o, br_mega_pages_report *r, uint32_t *antichain,
            br_arena *a, br_status *st)
{
    net g = {0};
    classes c;
    br_code rc;

    r->exact = true;
    r->antichain_bytes = r->bound_bytes = 0;
    BR_TRY(find_classes(o, &c, a, st));
    rc = build_net(&g, o, &c, a, st);
    if (rc == BR_OK && g.e.n / 2 > MAX_COVERS + 3 * (size_t)c.n) {
        rc = greedy(o, r, antichain, a, st);
    } else if (rc == BR_OK) {
        rc = layered(&g, o, &c, r, a, st);
        if (rc == BR_OK)
            rc = heaviest(&g, o, &c, r, antichain);
        r->bound_bytes = BR_MAX(r->bound_bytes, r->antichain_bytes);
    }
    br_vec_fini(&g.e);
    return rc;
}
