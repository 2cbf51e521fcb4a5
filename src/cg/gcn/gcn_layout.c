/* gcn_layout.c - nodes of words as one piece, branches with their distances.
 *
 * A branch to what follows anyway goes; one to a branch goes where that goes. A
 * branch reaches 32,767 words ahead; in code longer than that it goes by islands:
 *
 *        s_cbranch_scc1 ---.
 *        ...               |        an island, within straight code:
 *        s_branch -----.   |        who comes along goes over it
 *        s_branch --.  |<--'        a slot for each node that is far away
 *        ...  <-----|--'
 *        ...        v               the node, or a slot of the next island
 *
 * An island needs no register and changes no flag, wait or distance of a hazard,
 * so it is right wherever it stands (no s_clause is made). One each SPAN words is
 * enough, as long as its slots are fewer than what a branch reaches beyond that;
 * it costs whoever passes a branch in 16,384 words. Slots are only ever added,
 * until each branch has its way.
 *
 * Not       s_getpc, s_add and s_setpc: they want two registers and SCC, which
 *           may all be taken where a branch stands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kernel.h"

#include <string.h>

enum { SPAN = 1 << 14 };

typedef struct island {
    size_t node, line; /* it stands before this line, which is not the first */
    uint32_t at;       /* words before it */
    BR_VEC(uint32_t) to; /* a node by slot; none: the island is not there */
} island;

typedef struct layout {
    gcn_code *c;
    BR_VEC(island) isles; /* in order */
    bool grown;           /* a slot came to one */
} layout;

/* ---- fewer branches ---------------------------------------------------- */

/* Branches to where the wave goes next anyway. */
static void
drop_jumps(gcn_code *c)
{
    for (size_t n = c->n; n-- > 0;) {
        gcn_node *x = &c->node[n];

        while (x->code.n && x->code.at[x->code.n - 1].target > (int32_t)n) {
            int32_t to = x->code.at[x->code.n - 1].target;
            size_t next = n + 1;

            while (next < (size_t)to && !c->node[next].code.n)
                next++;
            if (next != (size_t)to)
                break;
            x->code.n--;
        }
    }
}

/* The first node from n on that has code. */
static size_t
with_code(const gcn_code *c, size_t n)
{
    while (n + 1 < c->n && !c->node[n].code.n)
        n++;
    return n;
}

/* Where a branch to a node ends up: nodes that only branch on are passed. */
static int32_t
end_of_way(const gcn_code *c, int32_t target)
{
    for (int steps = 0; steps < 64; steps++) {
        const gcn_node *x = &c->node[with_code(c, (size_t)target)];

        if (!x->code.n || !gcn_is(&x->code.at[0].in, "s_branch"))
            break;
        target = x->code.at[0].target;
    }
    return target;
}

/* Branches go where they end up; one over another is turned round. */
static void
straighten(gcn_code *c)
{
    static const char *const turned[][2] = {
        {"s_cbranch_scc0", "s_cbranch_scc1"},
        {"s_cbranch_scc1", "s_cbranch_scc0"},
        {"s_cbranch_execz", "s_cbranch_execnz"},
        {"s_cbranch_execnz", "s_cbranch_execz"}};

    for (size_t n = 0; n < c->n; n++) {
        gcn_node *x = &c->node[n];
        gcn_line *l = x->code.n ? &x->code.at[x->code.n - 1] : NULL;

        for (size_t k = 0; k < x->code.n; k++)
            if (x->code.at[k].target >= 0)
                x->code.at[k].target = end_of_way(c, x->code.at[k].target);
        if (x->code.n < 2 || !gcn_is(&l->in, "s_branch") || l[-1].target < 0 ||
            with_code(c, (size_t)l[-1].target) != with_code(c, n + 1))
            continue;
        for (size_t k = 0; k < BR_COUNT(turned); k++)
            if (strcmp(l[-1].in.row->name, turned[k][0]) == 0) {
                br_gcn_fresh(&l[-1].in, gcn_row_named(c->isa, turned[k][1]),
                             NULL, BR_EXT_NONE);
                l[-1].target = l->target;
                x->code.n--;
                break;
            }
    }
}

/* ---- islands ----------------------------------------------------------- */

static uint32_t
island_words(const island *x)
{
    return x->to.n ? (uint32_t)x->to.n + 1 : 0;
}

/* Addresses of nodes and islands; words of all. make: chooses places. */
static uint32_t
place(layout *l, bool make)
{
    uint32_t at = 0, next = SPAN;
    size_t k = 0;

    for (size_t n = 0; n < l->c->n; n++) {
        gcn_node *x = &l->c->node[n];

        x->at = at;
        for (size_t i = 0; i < x->code.n; at += x->code.at[i++].in.words) {
            if (make && i && at >= next) {
                island new = {.node = n, .line = i};

                l->c->oom |= !br_vec_push(&l->isles, new);
                next = at + SPAN;
            }
            if (k < l->isles.n && l->isles.at[k].node == n &&
                l->isles.at[k].line == i) {
                l->isles.at[k].at = at;
                at += island_words(&l->isles.at[k++]);
            }
        }
    }
    return at;
}

static bool
reaches(uint32_t from, int64_t to)
{
    int64_t by = to - (int64_t)from - 1;

    return by == (int16_t)by;
}

/* The island nearest to `end` that a branch reaches on its way there, though one
 * more slot came to it; `self` is where the branch is itself. */
static island *
next_island(const layout *l, uint32_t from, uint32_t end, const island *self)
{
    island *best = NULL;

    for (size_t k = 0; k < l->isles.n; k++) {
        island *x = &l->isles.at[k];
        bool between = end > from ? x->at > from && x->at < end
                                  : x->at < from && x->at >= end;

        if (x == self || !between || !reaches(from, x->at) ||
            !reaches(from, (int64_t)x->at + island_words(x) + 2))
            continue;
        if (end > from || !best)
            best = x;
    }
    return best;
}

/* The word that a branch goes to for a node; a slot that lacks is made. */
static bool
way(layout *l, uint32_t from, uint32_t node, const island *self, uint32_t *to)
{
    uint32_t end = l->c->node[node].at;
    island *x;
    size_t k = 0;

    if (reaches(from, end)) {
        *to = end;
        return true;
    }
    x = next_island(l, from, end, self);
    if (!x)
        return false;
    while (k < x->to.n && x->to.at[k] != node)
        k++;
    if (k == x->to.n) {
        l->grown = true;
        if (!br_vec_push(&x->to, node)) {
            l->c->oom = true;
            return false;
        }
    }
    *to = x->at + 1 + (uint32_t)k;
    return true;
}

/* A way for each branch and slot, as addresses are now. */
static bool
ways(layout *l)
{
    uint32_t to, at;
    size_t k = 0;

    for (size_t n = 0; n < l->c->n; n++) {
        const gcn_node *x = &l->c->node[n];

        at = x->at;
        for (size_t i = 0; i < x->code.n; at += x->code.at[i++].in.words) {
            if (k < l->isles.n && l->isles.at[k].node == n &&
                l->isles.at[k].line == i)
                at = l->isles.at[k].at + island_words(&l->isles.at[k]), k++;
            if (x->code.at[i].target >= 0 &&
                !way(l, at, (uint32_t)x->code.at[i].target, NULL, &to))
                return false;
        }
    }
    for (k = 0; k < l->isles.n; k++)
        for (size_t s = 0; s < l->isles.at[k].to.n; s++) {
            const island *x = &l->isles.at[k];

            if (!way(l, x->at + 1 + (uint32_t)s, x->to.at[s], x, &to))
                return false;
        }
    return true;
}

/* ---- words ------------------------------------------------------------- */

static bool
branch(layout *l, gcn_words *out, uint32_t to)
{
    br_gcn_inst in;

    br_gcn_fresh(&in, gcn_row_named(l->c->isa, "s_branch"), NULL, BR_EXT_NONE);
    br_gcn_set(&in, BR_GF_simm16, (uint16_t)(to - (uint32_t)out->n - 1));
    return br_vec_push(out, in.w[0]);
}

static bool
put_island(layout *l, gcn_words *out, const island *x)
{
    bool ok = !x->to.n || branch(l, out, x->at + island_words(x));

    for (size_t s = 0; ok && s < x->to.n; s++) {
        uint32_t to = 0;

        ok =
            way(l, (uint32_t)out->n, x->to.at[s], x, &to) && branch(l, out, to);
    }
    return ok;
}

static bool
put(layout *l, gcn_words *out)
{
    bool ok = true;
    size_t k = 0;

    for (size_t n = 0; n < l->c->n; n++)
        for (size_t i = 0; ok && i < l->c->node[n].code.n; i++) {
            gcn_line *x = &l->c->node[n].code.at[i];
            uint32_t to = 0;

            if (k < l->isles.n && l->isles.at[k].node == n &&
                l->isles.at[k].line == i)
                ok = put_island(l, out, &l->isles.at[k++]);
            if (ok && x->target >= 0) {
                ok = way(l, (uint32_t)out->n, (uint32_t)x->target, NULL, &to);
                br_gcn_set(&x->in, BR_GF_simm16,
                           (uint16_t)(to - (uint32_t)out->n - 1));
            }
            for (unsigned w = 0; ok && w < x->in.words; w++)
                ok = br_vec_push(out, x->in.w[w]);
        }
    return ok;
}

br_code
gcn_layout(gcn_code *c, gcn_words *out, br_status *st)
{
    layout l = {.c = c};
    bool ok;

    straighten(c);
    drop_jumps(c);
    /* Most kernels are shorter than a branch reaches. */
    if (place(&l, false) > INT16_MAX)
        (void)place(&l, true);
    do {
        l.grown = false;
        ok = ways(&l);
        (void)place(&l, false);
    } while (ok && l.grown && !c->oom);
    if (ok && !c->oom)
        c->oom = !put(&l, out);
    for (size_t k = 0; k < l.isles.n; k++)
        br_vec_fini(&l.isles.at[k].to);
    br_vec_fini(&l.isles);
    if (c->oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    return ok ? BR_OK
              : br_fail(st, BR_E_LIMIT,
                        "a branch too far: more than %d places at once are far "
                        "away",
                        SPAN);
}
