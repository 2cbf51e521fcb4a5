/* gcn_sel_warp.c - what lanes tell each other: votes, shuffles.
 *
 * A mask of lanes is a scalar; what lanes vote for is one already. Lanes that do not
 * run give 0, as an H200's do.
 *
 * A warp has 32 lanes; a wave of 64 is two of them, each a half. What a warp's lanes
 * tell each other is then not the wave's: each lane takes the half of a mask that it
 * is in. Rows of 16 lanes, and ds_bpermute, stay within a half by themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

static gm_op
tmp(gm_fn *g, char file, unsigned words)
{
    return gm_reg(gm_new(g, file, words), 0);
}

/* A number that is the same on all lanes that run, as a scalar. */
static gm_op
as_scalar(gm_fn *g, const br_kins *i, unsigned n)
{
    gm_op a = gm_arg(g, i, n, 0), t;

    if (a.kind != GM_VREG || g->vregs.at[a.v].file == 'S')
        return a;
    t = tmp(g, 'S', 1);
    GM(g, "v_readfirstlane_b32", t, a);
    return t;
}

/* What a mask says of the warp that a lane is in. */
static gm_op
of_warp(gm_fn *g, gm_op mask)
{
    gm_op high = mask, upper, low, d;

    if (!g->isa->wave64)
        return mask;
    if (mask.kind == GM_CODE)
        high.v++;
    else
        high.sub++;
    upper = gm_new_mask(g);
    low = tmp(g, 'V', 1);
    d = tmp(g, 'V', 1);
    GM(g, "s_bfm_b64", upper, gm_imm(32), gm_imm(32));
    GM(g, "v_mov_b32", low, mask);
    GM(g, "v_cndmask_b32", d, low, high, upper);
    return d;
}

/* The same where each lane has a mask of its own. */
static void
vote_by_lane(gm_fn *g, const br_kins *i)
{
    static const struct {
        uint8_t how;
        bool no;
        const char *cmp;
    } rows[] = {{BR_KM_VOTE_ANY, false, "v_cmp_ne_u32"},
                {BR_KM_VOTE_ALL, true, "v_cmp_eq_u32"},
                {BR_KM_VOTE_UNI, false, "v_cmp_eq_u32"},
                {BR_KM_VOTE_UNI, true, "v_cmp_eq_u32"}};
    gm_op mask = gm_arg_v(g, i, 1, 0), d = gm_res(g, i, 0), one[2];
    gm_op exec = gm_code(GM_EXEC);
    unsigned n = 0;

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        gm_op s = gm_new_mask(g), t = tmp(g, 'V', 1);

        if (i->op == BR_K_VOTE && rows[k].how != br_kmod(i->mods, BR_KF_SUB))
            continue;
        GM(g, rows[k].no ? "s_and_not1_bm" : "s_and_bm", s, exec,
           gm_arg(g, i, 0, 0));
        if (i->op == BR_K_BALLOT) {
            GM(g, "v_and_b32", d, of_warp(g, s), mask);
            return;
        }
        GM(g, "v_and_b32", t, of_warp(g, s), mask);
        one[n] = gm_new_mask(g);
        GM(g, rows[k].cmp, one[n++], gm_imm(0), t);
    }
    if (n == 2)
        GM(g, "s_or_bm", d, one[0], one[1]);
    else
        GM(g, "s_mov_bm", d, one[0]);
}

bool
gm_vote(gm_fn *g, const br_kins *i)
{
    unsigned how = br_kmod(i->mods, BR_KF_SUB);
    gm_op lanes = tmp(g, 'S', 1), yes = tmp(g, 'S', 1), no = tmp(g, 'S', 1);
    gm_op d = gm_res(g, i, 0), exec = gm_code(GM_EXEC), t;

    if (i->op == BR_K_ACTIVE) {
        GM(g, "v_mov_b32", d, of_warp(g, exec));
        return true;
    }
    if (g->isa->wave64 || !g->uniform[g->f->args.at[i->arg + 1]]) {
        vote_by_lane(g, i);
        return true;
    }
    GM(g, "s_and_b32", lanes, exec, as_scalar(g, i, 1));
    GM(g, "s_and_b32", yes, lanes, gm_arg(g, i, 0, 0));
    if (i->op == BR_K_BALLOT) {
        GM(g, "v_mov_b32", d, yes);
        return true;
    }
    GM(g, "s_and_not1_b32", no, lanes, yes);
    if (how == BR_KM_VOTE_ANY) {
        GM(g, "s_cmp_lg_u32", yes, gm_imm(0));
    } else if (how == BR_KM_VOTE_ALL) {
        GM(g, "s_cmp_eq_u32", no, gm_imm(0));
    } else {
        t = tmp(g, 'S', 1);
        GM(g, "s_cmp_lg_u32", yes, gm_imm(0));
        GM(g, "s_cselect_b32", t, no, gm_imm(0));
        GM(g, "s_cmp_eq_u32", t, gm_imm(0));
    }
    GM(g, "s_cselect_b32", d, gm_imm(~0u), gm_imm(0));
    return true;
}

/* PTX: from which lane, within a segment; the last lane that may be read. */
static gm_op
shuffle_end(gm_fn *g, const br_kins *i, gm_op lane, gm_op *seg, gm_op *low)
{
    gm_op c = gm_arg_v(g, i, 2, 0), keep = tmp(g, 'V', 1);
    gm_op most = tmp(g, 'V', 1);

    *seg = tmp(g, 'V', 1);
    *low = tmp(g, 'V', 1);
    GM(g, "v_bfe_u32", *seg, c, gm_imm(8), gm_imm(5));
    GM(g, "v_and_b32", *low, lane, *seg);
    GM(g, "v_and_b32", keep, gm_imm(31), c);
    GM(g, "v_bfi_b32", most, *seg, lane, keep);
    return most;
}

/* From the lane whose number differs in some bits: within 16 lanes DPP, else a
 * permutation of the other 16. Lanes that do not run give 0, as by memory. */
static void
butterfly(gm_fn *g, const br_kins *i, uint32_t bits)
{
    gm_op d = gm_res(g, i, 0), a = gm_arg_v(g, i, 0, 0);
    uint32_t sel[2] = {0, 0};

    if (bits < 16) {
        gm_ins *m = GM(g, "v_mov_b32_e32", d, a);

        if (m)
            m->dpp = (uint16_t)(GM_DPP | GM_DPP_XMASK | bits);
    } else {
        for (unsigned k = 0; k < 16; k++)
            sel[k / 8] |= ((k ^ bits) & 15) << 4 * (k % 8);
        gm_set(GM(g, "v_permlanex16_b32", d, a, gm_imm(sel[0]), gm_imm(sel[1])),
               BR_GF_opsel, 2);
    }
    GM(g, "s_mov_bm", gm_res(g, i, 1), gm_code(GM_EXEC));
}

bool
gm_shuffle(gm_fn *g, const br_kins *i)
{
    unsigned how = br_kmod(i->mods, BR_KF_SUB);
    gm_op lane = gm_lane_id(g), seg, low, most, by, from, at = tmp(g, 'V', 1);
    gm_op ok = gm_res(g, i, 1), j = tmp(g, 'V', 1);
    uint64_t c, b;
    /* One segment: all lanes. */
    bool one = gm_literal(g, i, 2, &c) && !(c >> 8 & 31);
    bool inside = one && (c & 31) == 31;

    if (i->type != BR_KT_B32 || br_ktinfo_of[i->type].bytes != 4)
        return false;
    if (inside && how == BR_KM_SHFL_BFLY && gm_literal(g, i, 1, &b) && b & 31) {
        butterfly(g, i, b & 31);
        return true;
    }
    most = one ? gm_imm(c & 31) : shuffle_end(g, i, lane, &seg, &low);
    if (gm_literal(g, i, 1, &b)) {
        by = gm_imm(b & 31);
    } else {
        by = tmp(g, 'V', 1);
        GM(g, "v_and_b32", by, gm_imm(31), gm_arg(g, i, 1, 0));
    }
    if (how == BR_KM_SHFL_UP)
        GM(g, "v_sub_nc_u32", j, lane, by);
    else if (how == BR_KM_SHFL_DOWN)
        GM(g, "v_add_nc_u32", j, lane, by);
    else if (how == BR_KM_SHFL_BFLY)
        GM(g, "v_xor_b32", j, lane, by);
    else if (one)
        GM(g, "v_mov_b32", j, by);
    else
        GM(g, "v_bfi_b32", j, seg, low, by);
    from = j;
    if (inside && (how == BR_KM_SHFL_BFLY || how == BR_KM_SHFL_IDX)) {
        GM(g, "s_mov_bm", ok, gm_code(GM_EXEC));
    } else {
        from = tmp(g, 'V', 1);
        GM(g, how == BR_KM_SHFL_UP ? "v_cmp_ge_i32" : "v_cmp_le_i32", ok, j,
           most);
        GM(g, "v_cndmask_b32", from, lane, j, ok);
    }
    GM(g, "v_lshlrev_b32", at, gm_imm(2), from);
    GM(g, "ds_bpermute_b32", gm_res(g, i, 0), at, gm_arg_v(g, i, 0, 0));
    return true;
}
