/* check_hb.c - happens-before, asked of counters.
 *
 * A task signals one counter and whoever waits for it waits for all of its
 * producers, so "task a happens before task b" is "the counter of a is
 * complete before b starts". Three answers, each dearer than the one before:
 *
 *   1. b waits for that counter itself.                         O(waits)
 *   2. A tree: each counter's parent is the latest counter that some producer
 *      of it waits for. An ancestor of a counter b waits for is complete
 *      before b. Intervals of a preorder answer in O(waits); a no means
 *      nothing. What completes after b in topological order is no ancestor.
 *      A counter that is off the trunk gets there in a few hops, each to the
 *      one with the most descendants that waits for it: a tile of a join, or
 *      the other side of a ladder.
 *   3. The rest waits in a list and is settled in blocks of 256 sources: one
 *      bit for each source, pushed through counters and tasks in topological
 *      order, from the first source to the last task of the block.
 *
 * Cost      3 takes O(sources / 256 * window), where the window of a block is
 *           at most the whole program: 100,000 sources that all span it are
 *           391 sweeps of ~1.5 ms. Sources are sorted by place, so that pairs
 *           that lie close together, as residual streams do, make short
 *           windows. Memory: 32 bytes per counter, 16 per open pair, of which
 *           a million are kept before they are settled.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_sound.h"

enum {
    MAX_OPEN = 1 << 20,
    MAX_BAD = 4096, /* failures told apart; the rest is counted */
    WORDS = 4,      /* of bits per counter in a sweep */
    MAX_HOPS = 4,
    BLOCK = WORDS * 64,
#ifndef PRICE
    PRICE = 4, /* visits of a sweep that cost as much as asking for a pair */
#endif
};

void
br_hb_fini(br_hb *h)
{
    br_vec_fini(&h->open);
    br_vec_fini(&h->bad);
}

bool
br_hb_full(const br_hb *h)
{
    return h->bad.n >= MAX_BAD;
}

bool
br_hb_no_memory(br_hb *h)
{
    h->k->oom = true;
    return false;
}

/* ---- the tree ----------------------------------------------------------- */

/* Counters in the order in which they complete, into done; how many. */
static uint32_t
completions(const br_hb *h, uint32_t *done)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_tasks; i++) {
        uint32_t c = h->ctr[h->order ? h->order[i] : i];

        if (h->cpos[c] == i)
            done[n++] = c;
    }
    return n;
}

static void
find_parents(const br_hb *h, uint32_t *parent)
{
    for (uint32_t t = 0; t < h->n_tasks; t++) {
        uint32_t *best = &parent[h->ctr[t]];

        for (uint32_t i = h->wait_off[t]; i < h->wait_off[t + 1]; i++)
            if (*best == BR_NONE || h->cpos[h->wait[i]] > h->cpos[*best])
                *best = h->wait[i];
    }
}

/* To each counter the one with the largest subtree that it is waited for by. */
static void
find_hops(br_hb *h)
{
    memset(h->hop, 0xff, h->n_counters * sizeof *h->hop);
    for (uint32_t t = 0; t < h->n_tasks; t++) {
        uint32_t to = h->ctr[t];

        for (uint32_t i = h->wait_off[t]; i < h->wait_off[t + 1]; i++) {
            uint32_t *best = &h->hop[h->wait[i]];

            if (*best == BR_NONE || h->size[to] > h->size[*best])
                *best = to;
        }
    }
}

static bool
build_tree(br_hb *h)
{
    uint32_t nc = h->n_counters, n, roots = 0;
    uint32_t *pre = br_chk_get(h->k, nc, 4), *size = br_chk_get(h->k, nc, 4);
    uint32_t *parent = br_chk_get(h->k, nc, 4), *done = br_chk_get(h->k, nc, 4);
    uint32_t *used = br_chk_zero(h->k, nc, 4);

    if (!pre || !size || !parent || !done || !used)
        return br_hb_no_memory(h);
    memset(parent, 0xff, nc * sizeof *parent);
    find_parents(h, parent);
    n = completions(h, done);
    for (uint32_t i = 0; i < n; i++)
        size[done[i]] = 1;
    for (uint32_t i = n; i-- > 0;)
        if (parent[done[i]] != BR_NONE)
            size[parent[done[i]]] += size[done[i]];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = done[i], up = parent[c];

        if (up == BR_NONE) {
            pre[c] = roots;
            roots += size[c];
        } else {
            pre[c] = pre[up] + 1 + used[up];
            used[up] += size[c];
        }
    }
    h->pre = pre;
    h->size = size;
    h->hop = parent; /* which is of no use any more */
    find_hops(h);
    return true;
}

/* Is c an ancestor of a counter that the task waits for? */
static bool
in_tree(const br_hb *h, uint32_t c, uint32_t t)
{
    for (uint32_t i = h->wait_off[t]; i < h->wait_off[t + 1]; i++)
        if (h->pre[h->wait[i]] - h->pre[c] < h->size[c])
            return true;
    return false;
}

br_answer
br_hb_quick(br_hb *h, uint32_t c, uint32_t t)
{
    uint32_t from = h->wait_off[t], to = h->wait_off[t + 1];

    for (uint32_t i = from; i < to; i++)
        if (h->wait[i] == c)
            return BR_YES;
    if (from == to || h->cpos[c] >= br_hb_rank(h, t))
        return BR_NO;
    if (!h->pre && !build_tree(h))
        return BR_UNKNOWN;
    for (int hops = 0; c != BR_NONE && hops <= MAX_HOPS; c = h->hop[c], hops++)
        if (in_tree(h, c, t))
            return BR_YES;
    return BR_UNKNOWN;
}

bool
br_hb_implies(br_hb *h, uint32_t b, uint32_t a)
{
    if (a == b)
        return true;
    if (h->cpos[a] > h->cpos[b] || (!h->pre && !build_tree(h)))
        return false;
    return h->pre[b] - h->pre[a] < h->size[a];
}

uint32_t
br_hb_latest(br_hb *h, uint32_t a, uint32_t b)
{
    if (a == BR_NONE || b == BR_NONE)
        return BR_NONE;
    if (br_hb_implies(h, b, a))
        return b;
    return br_hb_implies(h, a, b) ? a : BR_NONE;
}

/* ---- the sweep ---------------------------------------------------------- */

typedef struct query {
    uint32_t pos, pair; /* place of the source; index into open */
} query;

static int
by_pos(const void *x, const void *y)
{
    const query *a = x, *b = y;

    if (a->pos != b->pos)
        return a->pos < b->pos ? -1 : 1;
    return a->pair < b->pair ? -1 : a->pair > b->pair;
}

static void
gather(const br_hb *h, uint32_t t, uint64_t acc[WORDS])
{
    for (int w = 0; w < WORDS; w++)
        acc[w] = 0;
    for (uint32_t i = h->wait_off[t]; i < h->wait_off[t + 1]; i++) {
        const uint64_t *r = h->reach + (size_t)h->wait[i] * WORDS;

        for (int w = 0; w < WORDS; w++)
            acc[w] |= r[w];
    }
}

static uint32_t
task_at(const br_hb *h, uint32_t place)
{
    return h->order ? h->order[place] : place;
}

/* Pushes the bits of the block's sources through places (from, to]. */
static void
sweep(br_hb *h, uint32_t from, uint32_t to)
{
    uint64_t acc[WORDS];

    for (uint32_t i = from + 1; i <= to; i++) {
        uint32_t t = task_at(h, i);
        uint64_t *r = h->reach + (size_t)h->ctr[t] * WORDS;

        gather(h, t, acc);
        for (int w = 0; w < WORDS; w++)
            r[w] |= acc[w];
    }
}

static void
clear(br_hb *h, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++)
        memset(h->reach + (size_t)h->ctr[task_at(h, i)] * WORDS, 0,
               WORDS * sizeof *h->reach);
}

static bool
reach_ready(br_hb *h)
{
    if (!h->reach)
        h->reach = br_chk_zero(h->k, h->n_counters, WORDS * sizeof *h->reach);
    return h->reach || br_hb_no_memory(h);
}

/* As sweep; who has not met all the sources loses its bit. */
static void
sweep_all(br_hb *h, uint32_t from, uint32_t to, const uint64_t all[WORDS],
          uint64_t *after)
{
    uint64_t acc[WORDS], lack;

    for (uint32_t i = from + 1; i <= to; i++) {
        uint32_t t = task_at(h, i);
        uint64_t *r = h->reach + (size_t)h->ctr[t] * WORDS;

        gather(h, t, acc);
        lack = 0;
        for (int w = 0; w < WORDS; w++) {
            r[w] |= acc[w];
            lack |= all[w] & ~acc[w];
        }
        if (lack)
            after[i / 64] &= ~(1ull << i % 64);
    }
}

bool
br_hb_worth(const br_deal *d, uint32_t n)
{
    return d->pairs > (n / BLOCK + 1) * (uint64_t)(d->to - d->from) / PRICE;
}

bool
br_hb_buy(br_hb *h, br_deal *d, br_arena *a, const uint32_t *task, uint32_t n)
{
    size_t bytes = (d->to / 64 + 1) * sizeof *d->after;

    if (!d->after)
        d->after = br_arena_get(a, bytes);
    if (!d->after || !reach_ready(h))
        return br_hb_no_memory(h);
    memset(d->after, 0xff, bytes);
    d->pairs = 0;
    for (uint32_t at = 0; at < n; at += BLOCK) {
        uint32_t end = BR_MIN(n, at + BLOCK), from = d->to;
        uint64_t all[WORDS] = {0};

        for (uint32_t i = at; i < end; i++) {
            uint32_t c = h->ctr[task[i]], bit = i - at;

            from = BR_MIN(from, h->cpos[c]);
            all[bit / 64] |= 1ull << bit % 64;
            h->reach[(size_t)c * WORDS + bit / 64] |= 1ull << bit % 64;
        }
        for (uint32_t i = 0; i <= from; i++)
            d->after[i / 64] &= ~(1ull << i % 64);
        sweep_all(h, from, d->to, all, d->after);
        clear(h, from, d->to);
        for (uint32_t i = at; i < end; i++) /* may complete after all that */
            memset(h->reach + (size_t)h->ctr[task[i]] * WORDS, 0,
                   WORDS * sizeof *h->reach);
    }
    return true;
}

static bool
add_bad(br_hb *h, br_pair pair)
{
    if (br_hb_full(h)) {
        h->more_bad++;
        return true;
    }
    return br_vec_push(&h->bad, pair) || br_hb_no_memory(h);
}

/* One block: queries q[0..n) have at most BLOCK distinct sources. */
static bool
settle_block(br_hb *h, const query *q, size_t n)
{
    uint32_t from = q[0].pos, to = from, bit = 0;
    uint64_t acc[WORDS];

    for (size_t i = 0; i < n; i++) {
        const br_pair *p = &h->open.at[q[i].pair];

        if (i == 0 || q[i].pos != q[i - 1].pos) {
            uint64_t *r = h->reach + (size_t)h->ctr[p->a] * WORDS;

            r[bit / 64] |= 1ull << bit % 64;
            bit++;
        }
        to = BR_MAX(to, br_hb_rank(h, p->b));
    }
    sweep(h, from, to);
    bit = 0;
    for (size_t i = 0; i < n; i++) {
        const br_pair *p = &h->open.at[q[i].pair];

        bit += i != 0 && q[i].pos != q[i - 1].pos;
        gather(h, p->b, acc);
        if (!(acc[bit / 64] >> bit % 64 & 1) && !add_bad(h, *p))
            return false;
    }
    clear(h, from, to);
    return true;
}

bool
br_hb_settle(br_hb *h)
{
    size_t n = h->open.n, at = 0;
    query *q;
    bool ok = true, sorted = true;

    if (n == 0)
        return true;
    q = br_try_alloc(n * sizeof *q);
    if (!q || !reach_ready(h)) {
        br_free(q);
        return br_hb_no_memory(h);
    }
    for (size_t i = 0; i < n; i++) {
        q[i] = (query){h->cpos[h->ctr[h->open.at[i].a]], (uint32_t)i};
        sorted &= i == 0 || q[i - 1].pos <= q[i].pos;
    }
    if (!sorted)
        qsort(q, n, sizeof *q, by_pos);
    while (ok && at < n) {
        uint32_t sources = 1;
        size_t end = at + 1;

        for (; end < n; end++)
            if (q[end].pos != q[end - 1].pos && sources++ == BLOCK)
                break;
        ok = settle_block(h, q + at, end - at);
        at = end;
    }
    br_free(q);
    h->open.n = 0;
    return ok;
}

bool
br_hb_require(br_hb *h, uint32_t a, uint32_t b, uint32_t buffer, br_clash kind)
{
    br_pair pair = {a, b, buffer, kind};

    switch (br_hb_quick(h, h->ctr[a], b)) {
    case BR_YES: return true;
    case BR_NO: return add_bad(h, pair);
    case BR_UNKNOWN: break;
    }
    if (h->k->oom || !br_vec_push(&h->open, pair))
        return br_hb_no_memory(h);
    return h->open.n < MAX_OPEN || br_hb_settle(h);
}

bool
br_hb_refuse(br_hb *h, uint32_t a, uint32_t b, uint32_t buffer, br_clash kind)
{
    return add_bad(h, (br_pair){a, b, buffer, kind});
}
