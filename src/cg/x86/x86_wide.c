/* x86_wide.c - code for all warps of a block at once.
 *
 *   for each region:  for each warp (seat) of the block:  its uniform part, its
 *                     quarters, as in code for one warp, without masks
 *   branch            all warps one way: go there
 *                     else every warp's lanes into the targets' masks; each goes
 *                     on to where they meet (x86_part.c), or C goes on warp by
 *                     warp, with the same frames
 *
 * So a barrier is nothing: all have come. A block of full warps starts here
 * (x86_block in x86_run.c); most kernels stay to the end, and C is not asked
 * between. Kernels that could hear of another order of their warps, by what
 * atomics return, mbarriers or counted barriers, or call functions, have no such
 * code.
 *
 * References: Stratton, Stone, Hwu: MCUDA, 2008 (loops over threads between
 * barriers).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

static bool
zero(const br_kfn *f, const br_kins *i, unsigned a)
{
    const br_kval *v = &f->vals.at[f->args.at[i->arg + a]];

    return v->kind == BR_KV_CONST && v->bits == 0;
}

static bool
is_read(const br_kfn *f, uint32_t v)
{
    for (size_t k = 0; k < f->args.n; k++)
        if (f->args.at[k] == v)
            return true;
    return false;
}

/* Whether nobody can hear in which order it was done. */
static bool
any_order(const br_kfn *f, const br_kins *i)
{
    unsigned op = br_kmod(i->mods, BR_KF_SUB);

    return br_ktinfo_of[i->type].kind != 'F' && !is_read(f, i->res) &&
           (op == BR_KM_ATOM_ADD || op == BR_KM_ATOM_AND ||
            op == BR_KM_ATOM_OR || op == BR_KM_ATOM_XOR ||
            op == BR_KM_ATOM_MIN || op == BR_KM_ATOM_MAX);
}

static bool
ins_able(const br_kfn *f, const br_kins *i)
{
    switch (i->op) {
    case BR_K_PHI:
    case BR_K_SREG:
    case BR_K_LD:
    case BR_K_ST:
    case BR_K_FENCE:
    case BR_K_SHFL:
    case BR_K_VOTE:
    case BR_K_BALLOT:
    case BR_K_MATCHANY:
    case BR_K_MATCHALL:
    case BR_K_REDUX:
    case BR_K_ACTIVE:
    case BR_K_ELECT:
    case BR_K_WARPBAR:
    case BR_K_MMA:
    case BR_K_LDMATRIX:
    case BR_K_STMATRIX:
    case BR_K_MOVMATRIX:
    case BR_K_CPASYNC:
    case BR_K_CPWAIT:
    case BR_K_BR:
    case BR_K_CBR:
    case BR_K_RET:
    case BR_K_EXIT:
    case BR_K_TRAP: return true;
    case BR_K_ATOM: return any_order(f, i);
    case BR_K_BAR: return zero(f, i, 0) && zero(f, i, 1);
    default: return (br_kopinfo_of[i->op].props & BR_KP_PURE) != 0;
    }
}

bool
x86_wide_able(const br_kfn *f)
{
    bool ok = f->entry && f->blks.n;

    for (size_t b = 0; ok && b < f->blks.n; b++)
        for (size_t s = 0; ok && s < f->blks.at[b].ins.n; s++)
            ok = ins_able(f, &f->ins.at[f->blks.at[b].ins.at[s]]);
    return ok;
}

/* ---- seats: rbp, its rows in r12 ------------------------------------------ */

uint32_t
x86_seats(gen *g)
{
    uint32_t top = 0;

    if (!g->wide)
        return 0;
    top = br_x86_label(g->a);
    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seats)));
    br_x86_bind(g->a, top);
    em(g, BR_X_MOV64, R12, br_x86_mem(RBP, offsetof(x86_seat, rows)));
    return top;
}

void
x86_seats_end(gen *g, uint32_t top)
{
    if (!g->wide)
        return;
    ei(g, BR_X_ADD64_I, br_x86_reg(RBP), sizeof(x86_seat));
    em(g, BR_X_CMP64, RBP, x86_ctx_at(offsetof(x86_ctx, seats_end)));
    ej(g, BR_X_JNE, top);
}

void
x86_wide_warp(gen *g)
{
    if (!g->wide)
        return;
    em(g, BR_X_MOV64, RAX, br_x86_mem(RBP, offsetof(x86_seat, warp)));
    es(g, BR_X_MOV64_S, x86_ctx_at(offsetof(x86_ctx, warp)), RAX);
}

/* ---- where to go ---------------------------------------------------------- */

static void
say(gen *g, int what)
{
    ei(g, BR_X_MOV32_I, br_x86_reg(RAX), what);
    ej(g, BR_X_JMP, 0); /* label 0: the way out */
}

/* To position p; other blocks of the grid want a turn, too. */
static void
jump(gen *g, uint32_t p)
{
    uint32_t left = 0;

    if (p <= g->pos) {
        left = br_x86_label(g->a);
        ei(g, BR_X_SUB32_I, x86_ctx_at(offsetof(x86_ctx, fuel)), 1);
        ej(g, BR_X_JS, left);
    }
    ej(g, BR_X_JMP, g->start[p]);
    if (p > g->pos)
        return;
    br_x86_bind(g->a, left);
    ei(g, BR_X_MOVM32_I, x86_ctx_at(offsetof(x86_ctx, result)), p);
    say(g, X86_LEFT);
}

/* By one edge. */
static void
go(gen *g, uint32_t blk, uint32_t e)
{
    uint32_t to = g->f->blks.at[blk].succ.at[e], top;

    if (g->f->ins.at[g->f->blks.at[to].ins.at[0]].op == BR_K_PHI) {
        if (g->line)
            x86_line_edge(g, blk, e);
        if (g->plane)
            x86_plane_edge(g, blk, e);
        top = x86_seats(g);
        x86_take_edge(g, blk, e);
        x86_seats_end(g, top);
    }
    jump(g, g->fn->place[to]);
}

/* eax: lanes of all warps that hold, ecx: of any. */
static void
fold(gen *g, uint32_t c)
{
    uint32_t top;
    br_x86_arg at = br_x86_mem(R12, (int32_t)g->fn->slot[c]);

    if (x86_line_holds(g, c) || x86_plane_holds(g, c))
        return;
    ei(g, BR_X_MOV32_I, br_x86_reg(RAX), -1);
    e2(g, BR_X_XOR32, RCX, RCX);
    top = x86_seats(g);
    em(g, BR_X_AND32, RAX, at);
    em(g, BR_X_OR32, RCX, at);
    x86_seats_end(g, top);
}

void
x86_wide_end(gen *g, uint32_t blk, const br_kins *i)
{
    uint32_t c, none, some;

    if (i->op == BR_K_BR) {
        go(g, blk, 0);
        return;
    }
    if (i->op != BR_K_CBR) {
        if (g->line)
            x86_line_end(g);
        say(g, X86_ENDED);
        return;
    }
    c = arg_of(g, i, 0);
    if (is_const(g, c)) {
        go(g, blk, !(g->f->vals.at[c].bits & 1));
        return;
    }
    none = br_x86_label(g->a);
    some = br_x86_label(g->a);
    fold(g, c);
    e2(g, BR_X_TEST32, RCX, RCX);
    ej(g, BR_X_JE, none);
    ei(g, BR_X_CMP32_I, br_x86_reg(RAX), -1);
    ej(g, BR_X_JNE, some);
    go(g, blk, 0);
    br_x86_bind(g->a, none);
    go(g, blk, 1);
    if (g->line || g->plane) {
        x86_line_bail(g, some);
        return;
    }
    br_x86_bind(g->a, some);
    if (x86_part(g, blk, i))
        jump(g, g->fn->place[g->meet[blk]]);
    else
        say(g, X86_ON);
}
