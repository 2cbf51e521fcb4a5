/* graph.c - who precedes whom, without writing down a single edge.
 *
 *     t0 --.           .-- t3        3 producers and 2 waiters of counter 7
 *     t1 --+-- [c 7] --+             are 6 edges, but 5 entries here: the
 *     t2 --'           '-- t4        counter stands between them as a node.
 *
 * Kahn's walk goes through the counters too: a counter completes with its last
 * producer, and then each of its waiters has one wait less. A waiter becomes
 * ready at the very pop at which it would over the edges themselves, and the
 * waiters of a counter are listed ascending, so the order is the reference's.
 *
 * Cost      O(tasks + counters + waits), 4 bytes for each, five times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/graph.h"

#include <string.h>

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "no memory for the dependency graph");
}

static uint32_t *
words(br_arena *a, size_t n)
{
    size_t bytes;

    if (br_mul_overflows(BR_MAX(n, (size_t)1), sizeof(uint32_t), &bytes))
        return NULL;
    return br_arena_get(a, bytes);
}

br_code
br_mega_links_of(br_mega_links *l, const br_mega_prog *p, br_arena *a,
                 br_status *st)
{
    uint32_t n = (uint32_t)p->n_tasks, nc = (uint32_t)p->n_counters, at = 0;
    uint32_t *ctr = words(a, n), *off = words(a, (size_t)n + 1);
    uint32_t *seen = words(a, nc), *wait;
    uint64_t total = 0;

    for (uint32_t t = 0; t < n; t++)
        total += p->tasks[t].n_waits;
    if (total >= BR_NONE)
        return br_fail(st, BR_E_LIMIT, "%llu waits in all; the maximum is %u",
                       (unsigned long long)total, BR_NONE - 1);
    wait = words(a, (size_t)total);
    if (!ctr || !off || !seen || !wait)
        return no_memory(st);
    memset(seen, 0xff, nc * sizeof *seen);
    for (uint32_t t = 0; t < n; t++) {
        const br_mega_task *k = &p->tasks[t];

        ctr[t] = k->out_counter >= 0 && k->out_counter < nc
                     ? (uint32_t)k->out_counter
                     : BR_NONE;
        off[t] = at;
        for (uint32_t i = 0; i < k->n_waits; i++) {
            int64_t c = k->waits[i].counter;

            if (c < 0 || c >= nc || seen[c] == t)
                continue;
            seen[c] = t;
            wait[at++] = (uint32_t)c;
        }
    }
    off[n] = at;
    *l = (br_mega_links){n, nc, ctr, off, wait};
    return BR_OK;
}

/* off[c] = where the list of counter c begins, from counts in off[c + 1]. */
static void
prefix_sums(uint32_t *off, uint32_t n)
{
    for (uint32_t c = 0; c < n; c++)
        off[c + 1] += off[c];
}

/* After filling, off[c] has moved to the end of list c: move back. */
static void
rewind_offsets(uint32_t *off, uint32_t n)
{
    memmove(off + 1, off, n * sizeof *off);
    off[0] = 0;
}

static void
fill_lists(const br_mega_links *l, uint32_t *prod_off, uint32_t *prod,
           uint32_t *wait_off, uint32_t *waiter)
{
    uint32_t n = l->n_tasks, nc = l->n_counters;

    memset(prod_off, 0, ((size_t)nc + 1) * sizeof *prod_off);
    memset(wait_off, 0, ((size_t)nc + 1) * sizeof *wait_off);
    for (uint32_t t = 0; t < n; t++)
        if (l->ctr[t] != BR_NONE)
            prod_off[l->ctr[t] + 1]++;
    for (uint32_t i = 0; i < l->wait_off[n]; i++)
        wait_off[l->wait[i] + 1]++;
    prefix_sums(prod_off, nc);
    prefix_sums(wait_off, nc);
    for (uint32_t t = 0; t < n; t++) {
        if (l->ctr[t] != BR_NONE)
            prod[prod_off[l->ctr[t]]++] = t;
        for (uint32_t i = l->wait_off[t]; i < l->wait_off[t + 1]; i++)
            waiter[wait_off[l->wait[i]]++] = t;
    }
    rewind_offsets(prod_off, nc);
    rewind_offsets(wait_off, nc);
}

/* Fills topo as far as the walk gets and returns how far. A counter that
 * nobody increments holds nobody back: it makes no edge. */
static uint32_t
kahn(const br_mega_graph *g, const br_mega_links *l, uint32_t *topo,
     uint32_t *left, uint32_t *pending)
{
    uint32_t n = g->n_tasks, tail = 0;

    for (uint32_t c = 0; c < g->n_counters; c++)
        left[c] = g->prod_off[c + 1] - g->prod_off[c];
    for (uint32_t t = 0; t < n; t++) {
        pending[t] = 0;
        for (uint32_t i = l->wait_off[t]; i < l->wait_off[t + 1]; i++)
            pending[t] += left[l->wait[i]] != 0;
        if (pending[t] == 0)
            topo[tail++] = t;
    }
    for (uint32_t head = 0; head < tail; head++) {
        uint32_t c = l->ctr[topo[head]];

        if (c == BR_NONE || --left[c] != 0)
            continue;
        for (uint32_t i = g->wait_off[c]; i < g->wait_off[c + 1]; i++)
            if (--pending[g->waiter[i]] == 0)
                topo[tail++] = g->waiter[i];
    }
    return tail;
}

br_code
br_mega_graph_from(br_mega_graph *g, const br_mega_links *l, br_arena *a,
                   br_status *st)
{
    uint32_t n = l->n_tasks, nc = l->n_counters;
    uint32_t *prod_off = words(a, (size_t)nc + 1), *prod = words(a, n);
    uint32_t *wait_off = words(a, (size_t)nc + 1);
    uint32_t *waiter = words(a, l->wait_off[n]);
    uint32_t *topo = words(a, n), *rank = words(a, n), *left = words(a, nc);

    if (!prod_off || !prod || !wait_off || !waiter || !topo || !rank || !left)
        return no_memory(st);
    fill_lists(l, prod_off, prod, wait_off, waiter);
    *g = (br_mega_graph){.n_tasks = n,
                         .n_counters = nc,
                         .prod_off = prod_off,
                         .prod = prod,
                         .wait_off = wait_off,
                         .waiter = waiter};
    if (kahn(g, l, topo, left, rank) != n)
        return BR_OK; /* cyclic: topo stays NULL */
    for (uint32_t i = 0; i < n; i++)
        rank[topo[i]] = i;
    g->topo = topo;
    g->rank = rank;
    return BR_OK;
}

br_code
br_mega_graph_build(br_mega_graph *g, const br_mega_prog *p, br_arena *a,
                    br_status *st)
{
    br_mega_links l;

    BR_TRY(br_mega_links_of(&l, p, a, st));
    return br_mega_graph_from(g, &l, a, st);
}

int64_t
br_mega_graph_edges(const br_mega_graph *g)
{
    int64_t sum = 0;

    for (uint32_t c = 0; c < g->n_counters; c++)
        sum += (int64_t)(g->prod_off[c + 1] - g->prod_off[c]) *
               (g->wait_off[c + 1] - g->wait_off[c]);
    return sum;
}
