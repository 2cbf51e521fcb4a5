/* gcn_sel_mma.c - mma.sync m16n8k16 of halves with sums in f32 as v_wmma.
 *
 * One v_wmma makes 16 columns: two mma of one A, else half of it is thrown away. A row
 * of A and of D may be any of 16, so may a column: the order below is what brings PTX's
 * sums to their lanes by DPP alone. Lane bits are g2 g1 g0 t1 t0 in PTX; in v_wmma of
 * gfx12 k3 and a slot s3..s0 (k3: columns 8 to 15 of A), of gfx11 the slot twice.
 *
 *   A     words of four lanes t change places with registers j = r + 2 k3 (two steps of
 *         DPP), then lanes are permuted by ds_bpermute; B the same, j = tile + 2 k3
 *   D     register i2 i1 i0, of gfx12 row slot h i2 i1 i0, of gfx11 i2 i1 i0 h:
 *         row 8 i2 + 4 h + 2 i1 + i0. Column slot s3..s0: tile s3, column 4 s1 + 2 s0 + s2.
 *         So i1 and lane bit 3 change places, i0 and bit 2, and PTX's sums are there
 *
 * The sum's order and roundings are the card's own: only for processors named -wmma.
 * The simulator multiplies and adds for k from 0 on, rounding each time, as the code
 * without it does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower.h"
#include "cg/gcn/gcn_mir.h"

enum {
    A_WORDS = 4,
    B_WORDS = 2,
    SUMS = 4,
    HALF = 8
}; /* HALF: k3, a constant */

bool
gm_is_wmma(const br_kfn *f, const br_kins *i)
{
    return i->op == BR_K_MMA && i->type == BR_KT_F32 && !i->mods &&
           (i->type2 == BR_KT_F16 || i->type2 == BR_KT_BF16) &&
           (i->imm & 255) == 16 && (i->imm >> 8 & 255) == 8 &&
           (i->imm >> 16 & 255) == 16 && i->n_res == SUMS &&
           i->n_arg == A_WORDS + B_WORDS + SUMS && f->vals.n;
}

static gm_op
tmp(gm_fn *g, char file, unsigned words)
{
    return gm_reg(gm_new(g, file, words), 0);
}

/* So many registers one after another, which stay in registers. */
static void
tuple(gm_fn *g, gm_op *r, unsigned n)
{
    gm_op t = tmp(g, 'V', n);

    if (g->code == BR_OK)
        g->vregs.at[t.v].fixed = true;
    for (unsigned k = 0; k < n; k++) {
        r[k] = t;
        r[k].sub = (uint8_t)k;
    }
}

static void
keep(gm_ins *m, gm_op to)
{
    if (m)
        m->keep = to.sub > 0;
}

/* A bit of register numbers and one of lane numbers change places; into `to`, or new
 * ones. */
static void
exchange(gm_fn *g, gm_op *r, unsigned n, unsigned reg_bit, unsigned lane_bit,
         const gm_op *to)
{
    static const uint32_t set[] = {0xaaaaaaaa, 0xcccccccc, 0xf0f0f0f0,
                                   0xff00ff00};
    gm_op has = tmp(g, 'S', 1), lacks = tmp(g, 'S', 1), old[8];
    const unsigned q = 1u << reg_bit;
    gm_ins *m;

    GM(g, "s_mov_b32", has, gm_imm(set[lane_bit]));
    GM(g, "s_mov_b32", lacks, gm_imm(~set[lane_bit]));
    for (unsigned k = 0; k < n; k++) {
        old[k] = r[k];
        r[k] = to ? to[k] : tmp(g, 'V', 1);
    }
    for (unsigned k = 0; k < n; k++) {
        m = GM(g, "v_cndmask_b32", r[k], old[k ^ q], old[k],
               k & q ? has : lacks);
        keep(m, r[k]);
        if (m)
            m->dpp = (uint16_t)(GM_DPP | GM_DPP_XMASK | 1u << lane_bit);
    }
}

/* Four times the lane whose bits, from the fourth down, are these of ours; HALF: one
 * that is k3. */
static gm_op
lane_of(gm_fn *g, const uint8_t order[5], bool k3)
{
    gm_op lane = gm_lane_id(g), sum = gm_imm(0), t, u;

    for (int k = 0; k < 5; k++) {
        u = gm_imm(k3);
        if (order[k] != HALF) {
            u = tmp(g, 'V', 1);
            GM(g, "v_bfe_u32", u, lane, gm_imm(order[k]), gm_imm(1));
        }
        t = tmp(g, 'V', 1);
        if (k)
            GM(g, "v_lshl_or_b32", t, sum, gm_imm(1), u);
        else
            GM(g, "v_mov_b32", t, u);
        sum = t;
    }
    t = tmp(g, 'V', 1);
    GM(g, "v_lshlrev_b32", t, gm_imm(2), sum);
    return t;
}

/* A, or B of two tiles. */
static gm_op
fragment(gm_fn *g, gm_op w[A_WORDS], bool is_b)
{
    static const uint8_t orders[2][2][5] = {
        {{0, 2, 1, HALF, 3}, {1, 0, 2, HALF, 3}},
        {{3, 1, 0, 4, 2}, {1, 0, 2, 4, 3}}};
    const bool twelve = g->isa->cpu->gen == 12;
    gm_op out[2 * A_WORDS];
    unsigned n = twelve ? A_WORDS : 2 * A_WORDS;

    exchange(g, w, A_WORDS, 0, 0, NULL);
    exchange(g, w, A_WORDS, 1, 1, NULL);
    tuple(g, out, n);
    for (unsigned k = 0; k < n; k += A_WORDS) {
        gm_op at = lane_of(g, orders[twelve][is_b], k > 0);

        for (unsigned x = 0; x < A_WORDS; x++)
            keep(GM(g, "ds_bpermute_b32", out[k + x], at, w[x]), out[k + x]);
    }
    return out[0];
}

static uint32_t
arg(const gm_fn *g, const br_kins *i, unsigned n)
{
    return g->f->args.at[i->arg + n];
}

/* Whether what y reads is there before x. */
static bool
before(const gm_fn *g, const br_kblk *b, size_t at, const br_kins *y)
{
    for (unsigned n = 0; n < y->n_arg; n++)
        for (size_t k = at; k < b->ins.n; k++) {
            const br_kins *z = &g->f->ins.at[b->ins.at[k]];

            if (arg(g, y, n) - z->res < z->n_res)
                return false;
        }
    return true;
}

static bool
is_joined(const gm_fn *g, const br_kins *i)
{
    for (size_t k = 0; k < g->joined.n; k++)
        if (g->joined.at[k] == i->res)
            return true;
    return false;
}

/* A later one of the block with the same A; NULL: none. */
static const br_kins *
partner(gm_fn *g, const br_kins *x)
{
    const br_kblk *b = &g->f->blks.at[g->vals[x->res].blk];
    size_t at = 0;

    while (&g->f->ins.at[b->ins.at[at]] != x)
        at++;
    for (size_t k = at + 1; k < b->ins.n; k++) {
        const br_kins *y = &g->f->ins.at[b->ins.at[k]];
        bool same =
            gm_is_wmma(g->f, y) && y->type2 == x->type2 && !is_joined(g, y);

        for (unsigned n = 0; same && n < A_WORDS; n++)
            same = arg(g, x, n) == arg(g, y, n);
        if (!same || !before(g, b, at, y))
            continue;
        if (!br_vec_push(&g->joined, y->res))
            gm_oom(g);
        return y;
    }
    return NULL;
}

static gm_op
word_of(gm_fn *g, const br_kins *i, unsigned n)
{
    gm_op t;

    if (i)
        return gm_arg_v(g, i, n, 0);
    t = tmp(g, 'V', 1);
    GM(g, "v_mov_b32", t, gm_imm(0));
    return t;
}

bool
gm_wmma(gm_fn *g, const br_kins *i)
{
    const br_kins *two[2] = {i, NULL};
    gm_op a[A_WORDS], b[A_WORDS], c[8], d[8], to[8], out[8];
    gm_ins *m;

    if (is_joined(g, i))
        return true;
    two[1] = partner(g, i);
    for (unsigned k = 0; k < A_WORDS; k++) {
        a[k] = gm_arg_v(g, i, k, 0);
        b[k] = word_of(g, two[k & 1], A_WORDS + k / 2);
    }
    for (unsigned k = 0; k < 8; k++) { /* r, tile, column */
        unsigned n = 2 * (k >> 2) + (k & 1);

        c[k] = word_of(g, two[k >> 1 & 1], A_WORDS + B_WORDS + n);
        out[k] =
            two[k >> 1 & 1] ? gm_res(g, two[k >> 1 & 1], n) : tmp(g, 'V', 1);
    }
    tuple(g, to, 8);
    tuple(g, d, 8);
    exchange(g, c, 8, 1, 3, NULL);
    exchange(g, c, 8, 0, 2, to);
    a[0] = fragment(g, a, false);
    b[0] = fragment(g, b, true);
    m = GM(g,
           i->type2 == BR_KT_F16 ? "v_wmma_f32_16x16x16_f16"
                                 : "v_wmma_f32_16x16x16_bf16",
           d[0], a[0], b[0], to[0]);
    if (m)
        m->early = true;
    exchange(g, d, 8, 1, 3, NULL);
    exchange(g, d, 8, 0, 2, out);
    return true;
}
