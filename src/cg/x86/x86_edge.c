/* x86_edge.c - lanes go from a block to one after it: its phis get their values.
 *
 * Rows are copied a quarter, or two, at a time, what is one number for the warp
 * after them. A phi that takes what another one of the block was before is read
 * before any is written. SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#define ANY UINT32_MAX

typedef struct edge {
    uint32_t to, nth; /* block, and which of its predecessors this is */
    const br_kblk *b;
    uint32_t n_phis;
} edge;

static edge
edge_of(const gen *g, uint32_t from, uint32_t e)
{
    edge x = {.to = g->f->blks.at[from].succ.at[e]};
    uint32_t seen = 0;

    x.b = &g->f->blks.at[x.to];
    for (uint32_t s = 0; s < e; s++)
        seen += g->f->blks.at[from].succ.at[s] == x.to;
    while (x.b->pred.at[x.nth] != from || seen-- > 0)
        x.nth++;
    while (x.n_phis < x.b->ins.n &&
           g->f->ins.at[x.b->ins.at[x.n_phis]].op == BR_K_PHI)
        x.n_phis++;
    return x;
}

static const br_kins *
phi_of(const gen *g, const edge *x, uint32_t k)
{
    return &g->f->ins.at[x->b->ins.at[k]];
}

static bool
skips(const gen *g, const br_kins *phi)
{
    return g->only != ONLY_ALL &&
           x86_first(g, phi->res) != (g->only == ONLY_FIRST);
}

/* Whether phi k takes what one before it was: it is read before any is written. */
static bool
waits(const gen *g, const edge *x, uint32_t k)
{
    uint32_t v = arg_of(g, phi_of(g, x, k), x->nth);

    for (uint32_t p = 0; p < k; p++)
        if (phi_of(g, x, p)->res == v)
            return true;
    return false;
}

static bool
crossing(const gen *g, const edge *x)
{
    for (uint32_t k = 0; k < x->n_phis; k++)
        if (waits(g, x, k))
            return true;
    return false;
}

/* A part of a value as it is in its row, in register to. */
static void
load_part(gen *g, uint32_t v, unsigned part, unsigned to)
{
    unsigned wide = cls_of(g, v) == BR_KC_B64;
    br_x86_op bcast = wide ? BR_X_BCASTQ : BR_X_BCASTD;

    if (is_const(g, v))
        em(g, bcast, to, x86_const(g, g->f->vals.at[v].bits));
    else if (g->fn->uniform[v])
        em(g, bcast, to, br_x86_mem(R12, (int32_t)g->fn->slot[v]));
    else if (x86_even(g->fn, v))
        x86_load_even(g, v, part, to);
    else
        em(g, BR_X_MOVUPS_L, to,
           br_x86_memx(R12, R14, wide ? 2 : 1,
                       (int32_t)g->fn->slot[v] + PART(g) * (int32_t)part));
}

/* to: the phi's row. ymm15 14 13, or k1 k1 k2: the edge's lanes, of 32 and 64
 * bits. */
static void
store_part(gen *g, uint32_t v, unsigned part, unsigned from)
{
    unsigned wide = cls_of(g, v) == BR_KC_B64;
    br_x86_arg at =
        br_x86_memx(R12, R14, wide ? 2 : 1,
                    (int32_t)g->fn->slot[v] + PART(g) * (int32_t)part);

    if (!g->wide && g->z) {
        br_x86_put(g->a, wide ? BR_X_ZMOVUPD_SK : BR_X_ZMOVUPS_SK,
                   (br_x86_arg[]){at, br_x86_reg(from),
                                  br_x86_reg(wide && part ? 2 : 1)});
        return;
    }
    if (!g->wide) {
        em(g, BR_X_MOVUPS_L, 12, at);
        e3i(g, wide ? BR_X_BLENDVPD : BR_X_BLENDVPS, 12, 12, from,
            wide ? 14 - (int)part : 15);
        from = 12;
    }
    es(g, BR_X_MOVUPS_S, at, from);
}

static bool
row_phi(const gen *g, const br_kins *i)
{
    return !is_once(g, i) && cls_of(g, i->res) != BR_KC_PRED;
}

/* The lanes of ctx.edge, where store_part wants them. */
static void
edge_masks(gen *g)
{
    int32_t at = (int32_t)offsetof(x86_ctx, edge);

    if (g->z) {
        em(g, BR_X_KMOVW, 1, br_x86_memx(RBX, R15, 1, at));
        em(g, BR_X_KMOVB, 2, br_x86_memx(RBX, R15, 1, at + 1));
        return;
    }
    x86_mask_row(g, 15, offsetof(x86_ctx, edge));
    e2(g, BR_X_PMOVSXDQ, 14, 15);
    e2i(g, BR_X_EXTRACT128, 13, 15, 1);
    e2(g, BR_X_PMOVSXDQ, 13, 13);
}

/* Rows of the phis of an edge, a quarter at a time: those that wait are read by way
 * of spill places, then all written. */
static void
copy_rows(gen *g, const edge *x, bool wait)
{
    uint32_t top = br_x86_label(g->a), n = 0;

    g->uniform = false;
    e2(g, BR_X_XOR32, R15, R15);
    e2(g, BR_X_XOR32, R14, R14);
    br_x86_bind(g->a, top);
    g->z = g->zmm;
    if (!g->wide)
        edge_masks(g);
    for (int turn = wait ? 0 : 1; turn < 2; turn++, n = 0)
        for (uint32_t k = 0; k < x->n_phis; k++) {
            const br_kins *i = phi_of(g, x, k);
            unsigned wide = cls_of(g, i->res) == BR_KC_B64;
            bool late = wait && row_phi(g, i) && waits(g, x, k);

            for (unsigned p = 0; row_phi(g, i) && p <= wide; p++, n += late) {
                br_x86_arg at = br_x86_mem(R12, (int32_t)g->spill_at +
                                                    PART(g) * (int32_t)n);

                if (arg_of(g, i, x->nth) == i->res || (!turn && !late))
                    continue;
                if (turn && late)
                    em(g, BR_X_MOVUPS_L, 0, at);
                else
                    load_part(g, arg_of(g, i, x->nth), p, 0);
                if (turn)
                    store_part(g, i->res, p, 0);
                else
                    es(g, BR_X_MOVUPS_S, at, 0);
            }
            if (n > g->n_spills - 2)
                g->too_many |= wait;
        }
    ei(g, BR_X_ADD64_I, br_x86_reg(R15), LANES(g) / X86_LANES);
    ei(g, BR_X_ADD64_I, br_x86_reg(R14), LANES(g) * 4);
    g->z = false;
    ei(g, BR_X_CMP32_I, br_x86_reg(R14), X86_QUARTERS * X86_LANES * 4);
    ej(g, BR_X_JNE, top);
}

/* Predicates have 32 bits for all lanes, uniform values 64 for one. */
static void
load_small(gen *g, uint32_t v)
{
    bool pred = cls_of(g, v) == BR_KC_PRED;
    uint64_t bits = g->f->vals.at[v].bits;

    if (is_const(g, v))
        ei(g, BR_X_MOV64_I, br_x86_reg(RAX),
           pred ? -(int64_t)(bits & 1) : (int64_t)bits);
    else
        em(g, BR_X_MOV64, RAX, br_x86_mem(R12, (int32_t)g->fn->slot[v]));
}

static void
store_small(gen *g, uint32_t v)
{
    br_x86_arg at = br_x86_mem(R12, (int32_t)g->fn->slot[v]);

    if (g->fn->uniform[v] || g->wide) {
        es(g, g->fn->uniform[v] ? BR_X_MOV64_S : BR_X_MOV32_S, at, RAX);
        return;
    }
    em(g, BR_X_MOV32, RCX, at);
    e2(g, BR_X_XOR32, RAX, RCX);
    em(g, BR_X_AND32, RAX, x86_ctx_at(offsetof(x86_ctx, edge)));
    e2(g, BR_X_XOR32, RAX, RCX);
    es(g, BR_X_MOV32_S, at, RAX);
}

/* First lanes: all four, from what may be one for all. */
static void
load_first(gen *g, uint32_t v, bool wide)
{
    if (!is_const(g, v) && x86_even(g->fn, v))
        em(g, wide ? BR_X_MOVUPS_L : BR_X_MOVUPS_LX, 0,
           br_x86_mem(R12, (int32_t)g->fn->slot[v]));
    else
        em(g, wide ? BR_X_BCASTQ : BR_X_BCASTD, 0,
           is_const(g, v) ? x86_const(g, g->f->vals.at[v].bits)
                          : br_x86_mem(R12, (int32_t)g->fn->slot[v]));
}

static void
copy_first(gen *g, const br_kins *i, uint32_t from, br_x86_arg tmp, int turn)
{
    bool wide = cls_of(g, i->res) == BR_KC_B64;
    br_x86_arg at = br_x86_mem(R12, (int32_t)g->fn->slot[i->res]);

    if (turn == 2)
        em(g, BR_X_MOVUPS_L, 0, tmp);
    else
        load_first(g, from, wide);
    es(g, wide || turn == 0 ? BR_X_MOVUPS_S : BR_X_MOVUPS_SX, turn ? at : tmp,
       0);
}

static void
copy_small(gen *g, const edge *x, bool wait)
{
    uint32_t n = 0;

    for (int turn = wait ? 0 : 1; turn < 2; turn++, n = 0)
        for (uint32_t k = 0; k < x->n_phis; k++) {
            const br_kins *i = phi_of(g, x, k);
            br_x86_arg at = br_x86_mem(R12, (int32_t)(g->spill_at + 8 * n));

            if (row_phi(g, i) || skips(g, i))
                continue;
            if (x86_even(g->fn, i->res)) {
                copy_first(g, i, arg_of(g, i, x->nth), at, turn + wait * turn);
                n += 3;
            } else if (turn && wait)
                em(g, BR_X_MOV64, RAX, at);
            else
                load_small(g, arg_of(g, i, x->nth));
            if (x86_even(g->fn, i->res))
                ;
            else if (turn)
                store_small(g, i->res);
            else
                es(g, BR_X_MOV64_S, at, RAX);
            if (++n > 4 * g->n_spills - 4)
                g->too_many |= wait;
        }
}

/* Whether block b has v, or any value, as a phi that is one for the warp. */
static bool
one_phi(const gen *g, uint32_t b, uint32_t v)
{
    const br_kblk *blk = &g->f->blks.at[b];

    for (uint32_t k = 0; k < blk->ins.n; k++) {
        const br_kins *i = &g->f->ins.at[blk->ins.at[k]];

        if (i->op != BR_K_PHI)
            return false;
        if (is_once(g, i) && (v == i->res || v == ANY))
            return true;
    }
    return false;
}

/* Whether lanes that take edge e write what those of edge other read, which go after
 * them: a phi that is one number for the warp. Lanes that leave a loop want that of
 * their round, not the next one. */
bool
x86_edge_spoils(const gen *g, uint32_t from, uint32_t e, uint32_t other)
{
    const br_kblk *b = &g->f->blks.at[from];
    edge y;

    if (b->succ.at[e] == b->succ.at[other] || !one_phi(g, b->succ.at[e], ANY))
        return false;
    y = edge_of(g, from, other);
    for (uint32_t k = 0; k < y.n_phis; k++) {
        uint32_t v = arg_of(g, phi_of(g, &y, k), y.nth);

        if (one_phi(g, b->succ.at[e], v))
            return true;
    }
    return false;
}

/* Lanes of ctx.edge, any, go to a block. Rows first: they may read what is
 * uniform, never the other way round. */
void
x86_take_edge(gen *g, uint32_t from, uint32_t e)
{
    edge x = edge_of(g, from, e);
    bool rows = false, small = false, wait = crossing(g, &x);

    for (uint32_t k = 0; k < x.n_phis; k++) {
        bool row = row_phi(g, phi_of(g, &x, k));

        rows |= row && g->only != ONLY_FIRST;
        small |= !row && !skips(g, phi_of(g, &x, k));
    }
    if (rows)
        copy_rows(g, &x, wait);
    if (small)
        copy_small(g, &x, wait);
    if (g->wide)
        return;
    em(g, BR_X_MOV32, RAX, x86_ctx_at(offsetof(x86_ctx, edge)));
    es(g, BR_X_OR32_S, br_x86_mem(RBP, (int32_t)(4 * g->fn->place[x.to])), RAX);
}
