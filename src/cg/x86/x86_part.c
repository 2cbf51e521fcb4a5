/* x86_part.c - in code for blocks, what some warps do and others do not.
 *
 *   branch            a warp's lanes differ, or warps do: each warp's lanes into
 *                     the targets' masks, as in code for one warp
 *   for each warp:    the blocks up to where all ways meet, once more, as code
 *                     for one warp: lowest block with lanes first
 *   join              all lanes of all warps are there: code for blocks goes on
 *
 * So `if (t < h) s[t] += s[t + h];` between two barriers does not end the code for
 * blocks. Blocks with barriers on the way, ends of threads, or too many of them
 * have no such code: there C goes on warp by warp (x86_wide.c).
 *
 * A warp whose values do not go evenly stops in the middle: those before it wait
 * at the join, those after it at the branch's targets, and code for rows goes on
 * with all of them (x86_run.c). SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#include <string.h>

enum { MAX_PART = 512 }; /* instructions of a part */

/* Blocks that a way from blk to where it ends may pass, in g->part by position;
 * false: not all of them can be here. They come before the join: else lanes that
 * are there would run ahead of the others. */
static bool
find_part(gen *g, uint32_t blk)
{
    uint32_t end = g->meet[blk], top = 0, size = 0, *todo = g->part_todo;

    memset(g->part, 0, g->n);
    if (end >= g->n || g->pos >= g->fn->place[end])
        return false;
    todo[top++] = blk;
    while (top) {
        const br_kblk *b = &g->f->blks.at[todo[--top]];

        for (size_t s = 0; s < b->succ.n; s++) {
            uint32_t to = b->succ.at[s], p = g->fn->place[to];

            if (to == end || g->part[p])
                continue;
            g->part[p] = 1;
            todo[top++] = to;
            size += (uint32_t)g->f->blks.at[to].ins.n;
        }
    }
    for (uint32_t p = 0; p < g->n; p++) {
        const br_kblk *b = &g->f->blks.at[g->fn->order[p]];

        if (g->part[p] && p >= g->fn->place[end])
            return false;
        for (size_t s = 0; g->part[p] && s < b->ins.n; s++)
            if (br_kopinfo_of[g->f->ins.at[b->ins.at[s]].op].props & BR_KP_BAR)
                return false;
    }
    return size <= MAX_PART;
}

/* Their accesses have other registers here than in code for blocks. */
static void
forget_sites(gen *g)
{
    for (uint32_t p = 0; p < g->n; p++) {
        const br_kblk *b = &g->f->blks.at[g->fn->order[p]];

        for (size_t s = 0; g->part[p] && s < b->ins.n; s++)
            g->site[b->ins.at[s]] = 0;
    }
}

/* Lanes to the branch's targets, of each warp. */
static void
branch(gen *g, uint32_t blk, const br_kins *i)
{
    uint32_t top = x86_seats(g);

    es(g, BR_X_MOV64_S, x86_ctx_at(offsetof(x86_ctx, seat)), RBP);
    em(g, BR_X_MOV64, RBP, br_x86_mem(RBP, offsetof(x86_seat, masks)));
    g->wide = false;
    x86_branch(g, blk, i);
    g->wide = true;
    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seat)));
    x86_seats_end(g, top);
}

/* Each warp from there to the join. */
static void
run(gen *g)
{
    uint32_t *start = g->start, end = br_x86_label(g->a), top, pos = g->pos;

    for (uint32_t p = g->n;
         p-- > 0;) /* of what is not in it: what comes next */
        g->part_start[p] = g->part[p]     ? br_x86_label(g->a)
                           : p + 1 < g->n ? g->part_start[p + 1]
                                          : end;
    forget_sites(g);
    top = x86_seats(g);
    es(g, BR_X_MOV64_S, x86_ctx_at(offsetof(x86_ctx, seat)), RBP);
    x86_wide_warp(g);
    em(g, BR_X_MOV64, RBP, br_x86_mem(RBP, offsetof(x86_seat, masks)));
    g->wide = false;
    g->parted = true;
    g->start = g->part_start;
    for (uint32_t p = 0; p < g->n; p++)
        if (g->part[p]) {
            g->pos = p;
            x86_block_code(g, g->fn->order[p]);
        }
    br_x86_bind(g->a, end);
    g->start = start;
    g->pos = pos;
    g->parted = false;
    g->wide = true;
    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seat)));
    x86_seats_end(g, top);
    forget_sites(g);
}

/* The branch at the end of blk, where warps part: true, all go on at the block
 * g->meet says, what its phis take is in place. */
bool
x86_part(gen *g, uint32_t blk, const br_kins *i)
{
    uint32_t join, top;

    branch(g, blk, i);
    if (!find_part(g, blk))
        return false;
    join = g->fn->place[g->meet[blk]];
    run(g);
    top = x86_seats(g);
    em(g, BR_X_MOV64, RAX, br_x86_mem(RBP, offsetof(x86_seat, masks)));
    ei(g, BR_X_MOVM32_I, br_x86_mem(RAX, (int32_t)(4 * join)), 0);
    x86_seats_end(g, top);
    ei(g, BR_X_MOV32_I, br_x86_reg(R13), -1);
    es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, exec)), R13);
    return true;
}
