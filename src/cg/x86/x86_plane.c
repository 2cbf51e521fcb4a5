/* x86_plane.c - code for blocks in two dimensions: what grows evenly from warp to
 * warp is made for three warps of a block and known for all.
 *
 *   block of 16 x 16       warp 0   tid.y 0 0 1 1   first lanes of its quarters
 *                          warp 1         2 2 3 3   by = warp 1 - warp 0 = 2
 *                          warp 7       14 14 15 15 = warp 0 + 7 by? or bail out
 *
 *   for each region:  for each warp:      what is uniform in it alone
 *                     for three of them:  indices and addresses
 *                     once:               an index that is made wider: even?
 *                                         first and last warp's accesses: inside?
 *                     for each warp:      where its accesses are, by more than the
 *                                         last one's; its quarters
 *
 * Where a row of the block is a warp or a part of one, tid.x is the same in all
 * warps and tid.y grows evenly, so sums of them and products with what is the same
 * grow evenly, too, whatever overflows. Extensions to 64 bits are looked at. What
 * only such values and accesses read is made for the first warp, the second and
 * the last alone.
 *
 * Where that fails nothing has happened yet in the region: all warps get their
 * values, and code for blocks (x86_wide.c) goes on from there, as with lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#include <string.h>

enum { FAR = 1 << 24 }; /* displacements from an address */
enum { GROWS = X86_LINE, SAME = X86_LINE | X86_SAME };

/* ---- which values --------------------------------------------------------- */

static uint8_t
flags(const gen *g, uint32_t v)
{
    return is_const(g, v) ? SAME : g->fn->line[v] & SAME;
}

static bool
same(const gen *g, uint32_t v)
{
    return flags(g, v) == SAME;
}

static bool
whole_number(unsigned type)
{
    const br_ktinfo *t = &br_ktinfo_of[type];

    return t->kind != 'F' && t->lanes == 1 &&
           (t->cls == BR_KC_B32 || t->cls == BR_KC_B64);
}

/* Of arguments that all grow evenly, or are the same. */
static bool
linear(const gen *g, const br_kins *i)
{
    bool a = same(g, arg_of(g, i, 0));
    bool b = i->n_arg > 1 && same(g, arg_of(g, i, 1));

    if (i->op == BR_K_TOGEN || i->op == BR_K_FROMGEN)
        return ki_window(br_kmod(i->mods, BR_KF_SPACE)) == 0;
    if (i->mods || !whole_number(i->type))
        return false;
    switch (i->op) {
    case BR_K_ADD:
    case BR_K_SUB:
    case BR_K_NEG: return true;
    case BR_K_MUL: return a || b;
    case BR_K_MULWIDE: return (a || b) && cls_of(g, i->res) == BR_KC_B64;
    case BR_K_SHL: return b;
    case BR_K_CVT: return whole_number(i->type2);
    default: return false;
    }
}

static uint8_t
flags_of(const gen *g, const br_kins *i)
{
    uint8_t all = SAME;

    if (x86_is_preset(g->f, i)) {
        if (i->op != BR_K_SREG)
            return i->op == BR_K_FRAME ? 0 : SAME;
        return i->imm == BR_KS_TID_Y      ? GROWS
               : i->imm <= BR_KS_NCTAID_Z ? SAME
                                          : 0;
    }
    if (i->n_res != 1 || !is_once(g, i))
        return 0;
    for (unsigned a = 0; a < i->n_arg; a++)
        all &= flags(g, arg_of(g, i, a));
    if (i->op == BR_K_PHI) /* all warps come by one way */
        return all;
    if (!x86_select(g, i) ||
        (i->op != BR_K_LD && !(br_kopinfo_of[i->op].props & BR_KP_PURE)))
        return 0;
    return all == SAME ? SAME : all && linear(g, i) ? GROWS : 0;
}

static bool
is_access(const gen *g, const br_kins *i)
{
    return (i->op == BR_K_LD || i->op == BR_K_ST) && !is_once(g, i);
}

static bool
even_access(const gen *g, const br_kins *i)
{
    uint32_t v = arg_of(g, i, 0);
    unsigned bytes = x86_access(i);
    int64_t by;

    if (br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_LOCAL || is_const(g, v) ||
        !flags(g, v) || !(g->fn->uniform[v] || x86_even(g->fn, v)) ||
        i->imm < -FAR || i->imm > FAR || i->imm % (int64_t)bytes)
        return false;
    by = x86_step_by(g->fn, v);
    return by == 0 ? i->op == BR_K_LD && i->n_res == 1
                   : by == bytes || x86_strides(i, by);
}

/* group_of says of a block's accesses whether all of their region are even: else
 * each warp's are looked at (x86_fast.c). */
static void
sort_accesses(gen *g, const br_kblk *b)
{
    uint32_t here = NEVER;
    size_t from = 0;
    bool ok = true;

    for (size_t s = 0; s < b->ins.n; s++) {
        uint32_t id = b->ins.at[s];
        const br_kins *i = &g->f->ins.at[id];

        if (!is_access(g, i))
            continue;
        if (here != g->region[id]) {
            here = g->region[id];
            from = s;
            ok = x86_select(g, i) != NULL;
        }
        ok = ok && even_access(g, i);
        g->group_of[id] = ok;
        for (; !ok && from < s; from++)
            g->group_of[b->ins.at[from]] = 0;
    }
}

/* Whether argument a has to be there for three warps alone. */
static bool
asks_first(const gen *g, const br_kins *i, unsigned a)
{
    uint32_t v = arg_of(g, i, a);

    return x86_is_preset(g->f, i) || (i->op == BR_K_CBR && same(g, v)) ||
           (i->n_res == 1 && g->fn->line[i->res] & X86_FIRST) ||
           (a == 0 && is_access(g, i) && g->group_of[i - g->f->ins.at]);
}

static bool
look_at(gen *g, const br_kins *i)
{
    uint8_t *line = g->fn->line, keep = 0;
    bool change = false;

    if (i->n_res)
        keep = flags_of(g, i);
    if (keep)
        keep |= X86_FIRST;
    for (unsigned r = 0; r < i->n_res; r++) {
        change |= (line[i->res + r] & ~keep) != 0;
        line[i->res + r] &= keep;
    }
    return x86_take_firsts(g, i, asks_first) || change;
}

void
x86_plane_find(gen *g)
{
    x86_find(g, SAME, sort_accesses, look_at);
}

/* ---- three warps ---------------------------------------------------------- */

/* The first, the second, the last: as x86_seats. */
static void
three_end(gen *g, uint32_t top)
{
    uint32_t out = br_x86_label(g->a);

    em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, last_seat)));
    e2(g, BR_X_CMP64, RBP, RAX);
    ej(g, BR_X_JE, out);
    e2(g, BR_X_MOV64, RCX, RBP);
    ei(g, BR_X_ADD64_I, br_x86_reg(RBP), sizeof(x86_seat));
    em(g, BR_X_CMP64, RCX, x86_ctx_at(offsetof(x86_ctx, seats)));
    ej(g, BR_X_JE, top);
    e2(g, BR_X_MOV64, RBP, RAX);
    ej(g, BR_X_JMP, top);
    br_x86_bind(g->a, out);
}

/* Their rows: r12, r15, r14. */
static void
three_rows(gen *g)
{
    int32_t rows = offsetof(x86_seat, rows);

    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seats)));
    em(g, BR_X_MOV64, R12, br_x86_mem(RBP, rows));
    em(g, BR_X_MOV64, R15, br_x86_mem(RBP, (int32_t)sizeof(x86_seat) + rows));
    em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, last_seat)));
    em(g, BR_X_MOV64, R14, br_x86_mem(RAX, rows));
}

/* ---- an index made wider --------------------------------------------------- */

static void
extended(gen *g, bool is_signed, unsigned to, unsigned rows, int32_t at)
{
    em(g, is_signed ? BR_X_MOVSXD : BR_X_MOV32, to, br_x86_mem(rows, at));
}

/* Of each quarter the last warp's is the first's and so many steps, as numbers,
 * not modulo 2^32: then it is so of all between. */
static void
grows(gen *g, uint32_t v, bool is_signed, uint32_t bail)
{
    unsigned n = g->fn->uniform[v] ? 1 : X86_QUARTERS;

    for (unsigned q = 0; q < n; q++) {
        int32_t at = (int32_t)(g->fn->slot[v] + 4 * q);

        extended(g, is_signed, RAX, R12, at);
        extended(g, is_signed, RCX, R15, at);
        extended(g, is_signed, RDX, R14, at);
        e2(g, BR_X_SUB64, RCX, RAX);
        em(g, BR_X_IMUL64, RCX, x86_ctx_at(offsetof(x86_ctx, warp_steps)));
        e2(g, BR_X_ADD64, RCX, RAX);
        e2(g, BR_X_CMP64, RCX, RDX);
        ej(g, BR_X_JNE, bail);
    }
}

/* Of the region's instructions those that extend what grows. */
static void
look_at_wider(gen *g, const uint32_t *list, size_t n, uint32_t bail)
{
    for (size_t k = 0; k < n; k++) {
        const br_kins *i = &g->f->ins.at[list[k]];
        unsigned type = i->op == BR_K_CVT ? i->type2 : i->type;

        if ((i->op != BR_K_CVT && i->op != BR_K_MULWIDE) ||
            flags(g, i->res) != GROWS || br_ktinfo_of[type].cls != BR_KC_B32 ||
            cls_of(g, i->res) != BR_KC_B64)
            continue;
        for (unsigned a = 0; a < i->n_arg; a++) {
            uint32_t v = arg_of(g, i, a);

            if (!same(g, v) && !x86_small(g, v))
                grows(g, v, br_ktinfo_of[type].kind == 'S', bail);
        }
    }
}

/* ---- accesses ------------------------------------------------------------- */

static br_x86_arg
host_at(unsigned k)
{
    return x86_ctx_at(offsetof(x86_ctx, plane_host) + 32 * (size_t)k);
}

static br_x86_arg
by_at(unsigned k)
{
    return x86_ctx_at(offsetof(x86_ctx, plane_by) + 32 * (size_t)k);
}

static void
firsts(gen *g, uint32_t v, unsigned to, unsigned rows)
{
    em(g, g->fn->uniform[v] ? BR_X_BCASTQ : BR_X_MOVUPS_L, to,
       br_x86_mem(rows, (int32_t)g->fn->slot[v]));
}

/* ymm4, from the memory's start: below zero in ymm6 where the bytes are not all
 * in it. ymm5: how long it is. */
static void
inside(gen *g, unsigned k, bool first)
{
    e3(g, BR_X_PSUBQ, 3, 5, 4);
    e3(g, BR_X_POR, 6, first ? 3 : 6, 3); /* before it may run over */
    x86_add_constant(g, 3, -(int64_t)g->group[k].to);
    e3(g, BR_X_POR, 6, 6, 3);
    if (g->group[k].from < 0)
        e3(g, BR_X_POR, 6, 6, 4);
    x86_add_constant(g, 4, g->group[k].from);
    e3(g, BR_X_POR, 6, 6, 4);
}

/* ymm0, 1, 2: where quarters begin in the first warp, the second, the last. */
static void
look(gen *g, unsigned k, uint32_t miss, uint32_t bail)
{
    uint32_t v = g->group[k].addr;
    int32_t at = (int32_t)(g->group[k].site * sizeof(x86_window));
    bool shared = g->group[k].shared;

    firsts(g, v, 0, R12);
    firsts(g, v, 1, R15);
    firsts(g, v, 2, R14);
    if (g->group[k].align > 1) {
        e3(g, BR_X_POR, 3, 0, 1);
        em(g, BR_X_BCASTQ, 7, x86_const(g, g->group[k].align - 1));
        e2(g, BR_X_PTEST, 3, 7);
        ej(g, BR_X_JNE, bail);
    }
    e3(g, BR_X_PSUBQ, 1, 1, 0);
    es(g, BR_X_MOVUPS_S, by_at(k), 1);
    if (!shared)
        em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
    em(g, BR_X_BCASTQ, 5,
       shared ? x86_ctx_at(offsetof(x86_ctx, shared_bytes))
              : br_x86_mem(RDX, at + 8));
    if (shared) {
        e2(g, BR_X_MOVAPS, 4, 0);
    } else {
        em(g, BR_X_BCASTQ, 1, br_x86_mem(RDX, at));
        e3(g, BR_X_PSUBQ, 4, 0, 1);
        e3(g, BR_X_PSUBQ, 2, 2, 1);
    }
    inside(g, k, true);
    e2(g, BR_X_MOVAPS, 4, 2);
    inside(g, k, false);
    e2(g, BR_X_MOVMSKPD, RAX, 6);
    e2(g, BR_X_TEST32, RAX, RAX);
    ej(g, BR_X_JNE, shared ? bail : miss);
    em(g, BR_X_BCASTQ, 1,
       shared ? x86_ctx_at(offsetof(x86_ctx, shared))
              : br_x86_mem(RDX, at + 16));
    e3(g, BR_X_PADDQ, 0, 0, 1);
    es(g, BR_X_MOVUPS_S, host_at(k), 0);
}

/* ---- regions -------------------------------------------------------------- */

/* Its groups, if all its accesses are even. */
static void
sort(gen *g)
{
    bool ok = true;

    g->n_groups = 0;
    for (size_t k = 0; k < g->list.n; k++) {
        const br_kins *i = &g->f->ins.at[g->list.at[k]];

        g->group_of[g->list.at[k]] = 0;
        ok &= !is_access(g, i) || even_access(g, i);
    }
    for (size_t k = 0; ok && k < g->list.n; k++)
        if (is_access(g, &g->f->ins.at[g->list.at[k]]))
            x86_line_join(
                g, g->list.at[k],
                (X86_LANES - 1) *
                    (int32_t)x86_step_by(
                        g->fn, arg_of(g, &g->f->ins.at[g->list.at[k]], 0)));
}

/* Where its accesses are goes into each warp's frame, as x86_fast.c has it; for all
 * of them first, in registers: what one waits for is no other's last store. */
static void
place_hosts(gen *g)
{
    uint32_t top;

    for (unsigned k = 0; k < g->n_groups; k++)
        em(g, BR_X_MOVUPS_L, k, host_at(k));
    top = x86_seats(g);
    for (unsigned k = 0; k < g->n_groups; k++) {
        es(g, BR_X_MOVUPS_S, br_x86_mem(R12, (int32_t)(g->hosts_at + 32 * k)),
           k);
        e3m(g, BR_X_PADDQ, k, k, by_at(k));
    }
    x86_seats_end(g, top);
}

static void
each_warp(gen *g)
{
    uint32_t top;

    if (g->n_groups)
        place_hosts(g);
    top = x86_seats(g);
    if (!g->n_groups) {
        x86_region(g, g->list.at, g->list.n, false);
    } else {
        g->fast = g->kept = true;
        g->uniform = false;
        x86_quarters(g, g->list.at, g->list.n);
        g->fast = false;
    }
    x86_forget(g);
    x86_seats_end(g, top);
}

void
x86_plane_region(gen *g)
{
    uint32_t top, bail = x86_line_bail_out(g, g->here);

    if (g->uni.n) {
        top = x86_seats(g);
        x86_region(g, g->uni.at, g->uni.n, true);
        x86_forget(g);
        x86_seats_end(g, top);
    }
    if (g->ones.n) {
        top = x86_seats(g);
        x86_region(g, g->ones.at, g->ones.n, true);
        x86_forget(g);
        three_end(g, top);
    }
    sort(g);
    three_rows(g);
    look_at_wider(g, g->uni.at, g->uni.n, bail);
    look_at_wider(g, g->ones.at, g->ones.n, bail);
    if (g->n_groups)
        x86_looks(g, look, bail);
    if (g->list.n)
        each_warp(g);
}

/* eax, ecx: the condition, if it is one for the block. */
bool
x86_plane_holds(gen *g, uint32_t c)
{
    if (!g->plane || !same(g, c))
        return false;
    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seats)));
    em(g, BR_X_MOV64, R12, br_x86_mem(RBP, offsetof(x86_seat, rows)));
    em(g, BR_X_MOV32, RAX, br_x86_mem(R12, (int32_t)g->fn->slot[c]));
    e2(g, BR_X_MOV32, RCX, RAX);
    return true;
}

/* Phis that are made for three warps, before those that each has. */
void
x86_plane_edge(gen *g, uint32_t blk, uint32_t e)
{
    uint32_t top = x86_seats(g);

    g->only = ONLY_FIRST;
    x86_take_edge(g, blk, e);
    three_end(g, top);
    g->only = ONLY_WARPS;
}

/* ---- at work -------------------------------------------------------------- */

static void
spread_value(const x86_fn *fn, uint32_t v, const x86_seat *seats, uint32_t n)
{
    unsigned bytes = fn->f->vals.at[v].cls == BR_KC_B64 ? 8 : 4;
    unsigned lanes = fn->uniform[v] ? 1 : X86_QUARTERS;
    uint32_t slot = fn->slot[v];

    for (unsigned q = 0; q < lanes; q++) {
        uint64_t a = 0, b = 0;

        memcpy(&a, seats[0].rows + slot + bytes * q, bytes);
        memcpy(&b, seats[1].rows + slot + bytes * q, bytes);
        b -= a;
        for (uint32_t k = 2; k + 1 < n; k++) {
            uint64_t x = a + k * b;

            memcpy(seats[k].rows + slot + bytes * q, &x, bytes);
        }
    }
}

/* What three warps have, to those between. */
void
x86_plane_spread(const x86_fn *fn, const x86_seat *seats, uint32_t n)
{
    for (uint32_t v = 0; v < fn->f->vals.n; v++)
        if (fn->f->vals.at[v].kind == BR_KV_INS && fn->line[v] & X86_FIRST &&
            fn->slot[v] != X86_NO_SLOT)
            spread_value(fn, v, seats, n);
}
