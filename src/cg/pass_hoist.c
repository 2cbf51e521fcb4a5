/* pass_hoist.c - what is the same in every round of a loop is computed before.
 *
 *   b1: ...                            b1: ...
 *   b2: %4 = phi ...                       %6 = mul.f32 %1 %2
 *       %6 = mul.f32 %1 %2        ->   b2: %4 = phi ...
 *       cbr %9 b2 b3                       cbr %9 b2 b3
 *
 * Requires  br_kir_verify.
 * Changes   places of PURE instructions: of the blocks between where the last
 *           argument is made and where the instruction stands, along dominators,
 *           the last one with the fewest loops around it. They have no effect
 *           and never fault, so no loop has to be entered for them.
 * Cost      a walk over each loop; a function where that comes to MAX_WALK stays
 *           as it is. Irreducible loops are none here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum { MAX_WALK = 1 << 22 };

typedef struct hoister {
    br_kfn *f;
    uint32_t *rpo, *place, *idom, *depth, *seen, *stack; /* by block */
    uint32_t *blk;                                       /* by instruction */
    uint32_t n, walked;
    bool moved;
} hoister;

/* One more loop around the blocks that lead back to h. */
static void
deepen(hoister *s, uint32_t h)
{
    const br_kblk *k = &s->f->blks.at[h];
    uint32_t top = 0;

    for (size_t p = 0; p < k->pred.n; p++)
        if (br_kdominates(s->idom, s->place, h, k->pred.at[p]) &&
            s->seen[k->pred.at[p]] != h + 1) {
            s->seen[k->pred.at[p]] = h + 1;
            s->stack[top++] = k->pred.at[p];
        }
    if (!top)
        return;
    if (s->seen[h] != h + 1)
        s->depth[h]++;
    s->seen[h] = h + 1;
    while (top && s->walked < MAX_WALK) {
        uint32_t b = s->stack[--top];

        s->walked++;
        s->depth[b]++;
        for (size_t p = 0; b != h && p < s->f->blks.at[b].pred.n; p++) {
            uint32_t to = s->f->blks.at[b].pred.at[p];

            if (s->seen[to] != h + 1) {
                s->seen[to] = h + 1;
                s->stack[top++] = to;
            }
        }
    }
}

/* Where a block takes more: before its barrier and its terminator. */
static size_t
room_at(const br_kfn *f, const br_kblk *b)
{
    size_t n = b->ins.n;

    return n > 1 && (br_kopinfo_of[f->ins.at[b->ins.at[n - 2]].op].props &
                     BR_KP_BAR)
               ? n - 2
               : n - 1;
}

/* Whether the arguments are there when a block takes more. */
static bool
takes(const hoister *s, uint32_t b, const br_kins *i)
{
    const br_kblk *k = &s->f->blks.at[b];
    uint32_t last = k->ins.at[room_at(s->f, k)];

    for (unsigned a = 0; a < i->n_arg; a++) {
        const br_kval *v = &s->f->vals.at[br_kargs(s->f, i)[a]];

        if (v->kind == BR_KV_INS && v->def == last)
            return false;
    }
    return true;
}

static uint32_t
best_block(const hoister *s, uint32_t b, const br_kins *i)
{
    uint32_t early = 0, best = b;

    for (unsigned a = 0; a < i->n_arg; a++) {
        const br_kval *v = &s->f->vals.at[br_kargs(s->f, i)[a]];

        if (v->kind == BR_KV_INS && s->place[s->blk[v->def]] > s->place[early])
            early = s->blk[v->def]; /* all dominate b: the last is below */
    }
    for (uint32_t d = b; d != early;) {
        d = s->idom[d];
        if (s->depth[d] < s->depth[best] && takes(s, d, i))
            best = d;
    }
    return best;
}

static bool
may_move(const br_kins *i)
{
    return (br_kopinfo_of[i->op].props & BR_KP_PURE) && i->n_arg &&
           i->op != BR_K_ADDR && i->op != BR_K_FRAME;
}

static bool
append(br_kfn *f, br_kblk *b, uint32_t id)
{
    size_t at = room_at(f, b);

    if (!br_vec_reserve(&b->ins, b->ins.n + 1))
        return false;
    memmove(&b->ins.at[at + 1], &b->ins.at[at],
            (b->ins.n - at) * sizeof *b->ins.at);
    b->ins.at[at] = id;
    b->ins.n++;
    return true;
}

static bool
walk(hoister *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        br_kblk *b = &s->f->blks.at[s->rpo[k]];
        size_t n = 0;

        for (size_t at = 0; at < b->ins.n; at++) {
            uint32_t id = b->ins.at[at], to = s->rpo[k];
            const br_kins *i = &s->f->ins.at[id];

            if (s->depth[to] && may_move(i))
                to = best_block(s, to, i);
            s->blk[id] = to;
            s->moved |= to != s->rpo[k];
            if (to == s->rpo[k])
                b->ins.at[n++] = id;
            else if (!append(s->f, &s->f->blks.at[to], id))
                return false;
        }
        b->ins.n = n;
    }
    return true;
}

bool
br_kpass_hoist(br_kir *m, br_kfn *f)
{
    size_t nb = f->blks.n;
    uint32_t *mem = br_try_calloc(6 * nb + f->ins.n + 1, sizeof *mem);
    hoister s = {.f = f, .rpo = mem};

    if (!mem) {
        m->oom = true;
        return true;
    }
    s.place = mem + nb;
    s.idom = mem + 2 * nb;
    s.depth = mem + 3 * nb;
    s.seen = mem + 4 * nb;
    s.stack = mem + 5 * nb;
    s.blk = mem + 6 * nb;
    s.n = br_kfn_rpo(f, s.rpo, s.place);
    br_kfn_idom(f, s.rpo, s.n, s.place, s.idom);
    for (uint32_t k = 0; k < s.n; k++)
        deepen(&s, s.rpo[k]);
    if (s.walked < MAX_WALK && !walk(&s))
        m->oom = true;
    br_free(mem);
    return s.moved;
}
