/* gcn_sel_mem.c - what a kernel reads from outside itself and writes there:
 * parameters, who it is, memory, barriers. Other lanes: gcn_sel_warp.c.
 *
 * Parameters lie in the kernarg block as PTX lays them out; behind them come
 * the sizes of grid and group where the kernel asks, in the places that LLVM's
 * hidden arguments have (block counts at 0, group sizes at 12, 16 bits each; the launch's
 * shared memory at 20).
 * Shared memory is LDS from 0 on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower.h"
#include "cg/gcn/gcn_mir.h"

#include <stdio.h>
#include <string.h>

enum {
    HIDDEN_GROUP = 12,
    HIDDEN_DYNAMIC = 20,
    MSG_REALTIME = 131,
    REG_CYCLES = 29, /* hardware registers; from gfx12 on the low word */
    REG_CYCLES_HI = 30
};

static gm_op
tmp(gm_fn *g, char file, unsigned words)
{
    return gm_reg(gm_new(g, file, words), 0);
}

static gm_op
word(gm_op o, unsigned w)
{
    o.sub = (uint8_t)(o.sub + w);
    return o;
}

/* A result's words from those of a scalar or vector. */
static void
give(gm_fn *g, const br_kins *i, unsigned n, gm_op from, unsigned words)
{
    gm_op d = gm_res(g, i, n);
    bool v = g->vregs.at[d.v].file == 'V';

    for (unsigned w = 0; w < words; w++) {
        gm_ins *m = GM(g, v ? "v_mov_b32" : "s_mov_b32", word(d, w),
                       from.kind == GM_VREG ? word(from, w) : from);

        if (m)
            m->keep = w > 0;
    }
}

static unsigned
group_bits(int64_t bits)
{
    return bits == 1 ? 0 : bits == 2 ? 1 : bits == 4 ? 2 : bits == 8 ? 3 : 4;
}

/* Dwords from the kernarg block: 1, 2, 4. */
static gm_op
kernarg_to(gm_fn *g, gm_op t, uint32_t offset, unsigned words)
{
    char name[24];
    gm_ins *i;

    snprintf(name, sizeof name, "s_load_b%u", 32 * words);
    i = GM(g, name, t, gm_reg(g->kernarg, 0), gm_code(GM_NULL));
    gm_set(i, BR_GF_ioffset, offset);
    return t;
}

static gm_op
kernarg(gm_fn *g, uint32_t offset, unsigned words)
{
    return kernarg_to(g, tmp(g, 'S', words), offset, words);
}

static bool
in_scalar(const gm_fn *g, const br_kins *i, unsigned r)
{
    return g->vals[i->res + r].file == 'S';
}

bool
gm_literal(const gm_fn *g, const br_kins *i, unsigned n, uint64_t *v)
{
    const br_kval *k = &g->f->vals.at[g->f->args.at[i->arg + n]];

    *v = k->bits;
    return k->kind == BR_KV_CONST;
}

bool
gm_param_at(const gm_fn *g, const br_kins *i, uint64_t *at)
{
    if (br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_PARAM ||
        !gm_literal(g, i, 0, at))
        return false;
    *at += (uint64_t)i->imm;
    return *at < g->args_bytes;
}

static bool
load_param(gm_fn *g, const br_kins *i)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes, words = (bytes + 3) / 4;
    uint64_t at;

    if (!gm_param_at(g, i, &at))
        return false;
    for (unsigned r = 0; r < i->n_res; r++, at += bytes) {
        gm_op t;

        if (in_scalar(g, i, r)) {
            kernarg_to(g, gm_res(g, i, r), (uint32_t)at, words);
            continue;
        }
        t = kernarg(g, (uint32_t)at & ~3u, words);
        if (bytes >= 4) {
            give(g, i, r, t, words);
            continue;
        }
        GM(g, br_ktinfo_of[i->type].kind == 'S' ? "v_bfe_i32" : "v_bfe_u32",
           gm_res(g, i, r), t, gm_imm((uint32_t)at % 4 * 8), gm_imm(8 * bytes));
        if (i->type == BR_KT_S8 || i->type == BR_KT_S16)
            GM(g, "v_and_b32", gm_res(g, i, r), gm_imm(0xffff),
               gm_res(g, i, r));
    }
    return true;
}

/* ---- who --------------------------------------------------------------- */

static void
group_id(gm_fn *g, const br_kins *i, unsigned dim)
{
    const bool direct = in_scalar(g, i, 0);
    gm_op d = direct ? gm_res(g, i, 0) : tmp(g, 'S', 1);

    if (g->isa->cpu->gen == 11)
        GM(g, "s_mov_b32", d, gm_reg(g->group[dim], 0));
    else if (dim == 0)
        GM(g, "s_mov_b32", d, gm_code(GM_TTMP9));
    else if (dim == 1)
        GM(g, "s_and_b32", d, gm_code(GM_TTMP7), gm_imm(0xffff));
    else
        GM(g, "s_lshr_b32", d, gm_code(GM_TTMP7), gm_imm(16));
    if (!direct)
        give(g, i, 0, d, 1);
}

static gm_op
group_size(gm_fn *g, unsigned dim)
{
    gm_op t = kernarg(g, g->args_bytes + HIDDEN_GROUP + dim / 2 * 4, 1);
    gm_op d = tmp(g, 'S', 1);

    g->hidden = true;
    if (dim == 1)
        GM(g, "s_lshr_b32", d, t, gm_imm(16));
    else
        GM(g, "s_and_b32", d, t, gm_imm(0xffff));
    return d;
}

/* What the launch gives, and with what the kernel itself has. */
static void
shared_size(gm_fn *g, const br_kins *i)
{
    gm_op t = tmp(g, 'V', 1);

    GM(g, "v_mov_b32", t, kernarg(g, g->args_bytes + HIDDEN_DYNAMIC, 1));
    GM(g, "v_add_nc_u32", gm_res(g, i, 0),
       gm_imm(i->imm == BR_KS_TOTAL_SMEM ? g->lds_bytes : 0), t);
    g->hidden = g->dynamic = true;
}

static gm_op
thread_id(gm_fn *g, unsigned dim)
{
    gm_op d;

    /* Alone it fills the register. */
    if (g->one_id)
        return gm_reg(g->tid, 0);
    d = tmp(g, 'V', 1);
    GM(g, "v_bfe_u32", d, gm_reg(g->tid, 0), gm_imm(10 * dim), gm_imm(10));
    g->ids = (uint8_t)BR_MAX(g->ids, dim + 1);
    return d;
}

/* Of the warp. */
gm_op
gm_lane_id(gm_fn *g)
{
    gm_op d = tmp(g, 'V', 1), low = d, all;

    if (g->isa->wave64)
        low = tmp(g, 'V', 1);
    GM(g, "v_mbcnt_lo_u32_b32", low, gm_imm(~0u), gm_imm(0));
    if (g->isa->wave64) {
        all = tmp(g, 'V', 1);
        GM(g, "v_mbcnt_hi_u32_b32", all, gm_imm(~0u), low);
        GM(g, "v_and_b32", d, gm_imm(31), all);
    }
    return d;
}

static void
lane_mask(gm_fn *g, const br_kins *i)
{
    gm_op eq = tmp(g, 'V', 1), lt = tmp(g, 'V', 1), le = tmp(g, 'V', 1);
    gm_op d = gm_res(g, i, 0);

    GM(g, "v_lshlrev_b32", eq, gm_lane_id(g), gm_imm(1));
    GM(g, "v_add_nc_u32", lt, gm_imm(~0u), eq);
    GM(g, "v_or_b32", le, lt, eq);
    switch (i->imm) {
    case BR_KS_MASK_EQ: GM(g, "v_mov_b32", d, eq); break;
    case BR_KS_MASK_LT: GM(g, "v_mov_b32", d, lt); break;
    case BR_KS_MASK_LE: GM(g, "v_mov_b32", d, le); break;
    case BR_KS_MASK_GT: GM(g, "v_not_b32", d, le); break;
    default: GM(g, "v_not_b32", d, lt); break;
    }
}

/* The number of the thread in its group, by 32. */
static void
warp_id(gm_fn *g, const br_kins *i)
{
    gm_op t = tmp(g, 'V', 1), u = tmp(g, 'V', 1), v = tmp(g, 'V', 1),
          w = tmp(g, 'V', 1);

    GM(g, "v_mul_lo_u32", t, thread_id(g, 2), group_size(g, 1));
    GM(g, "v_add_nc_u32", u, t, thread_id(g, 1));
    GM(g, "v_mul_lo_u32", v, u, group_size(g, 0));
    GM(g, "v_add_nc_u32", w, v, thread_id(g, 0));
    GM(g, "v_lshrrev_b32", gm_res(g, i, 0), gm_imm(5), w);
}

/* Of the group, the last one may be a part. */
static void
warp_count(gm_fn *g, const br_kins *i)
{
    gm_op xy = tmp(g, 'S', 1), all = tmp(g, 'S', 1), up = tmp(g, 'S', 1),
          n = tmp(g, 'S', 1);

    GM(g, "s_mul_i32", xy, group_size(g, 0), group_size(g, 1));
    GM(g, "s_mul_i32", all, xy, group_size(g, 2));
    GM(g, "s_add_u32", up, all, gm_imm(31));
    GM(g, "s_lshr_b32", n, up, gm_imm(5));
    give(g, i, 0, n, 1);
}

static void give2(gm_fn *g, const br_kins *i, gm_op low, gm_op high);

/* Nanoseconds of a clock that all of the processor share and that counts at 100 MHz
 * whatever the processor's own does. */
static gm_op
nanoseconds(gm_fn *g)
{
    gm_op ticks = tmp(g, 'S', 2), t = tmp(g, 'S', 2);
    gm_op over = tmp(g, 'S', 1), up = tmp(g, 'S', 1);
    gm_ins *m;

    GM(g, "s_sendmsg_rtn_b64", ticks, gm_imm(MSG_REALTIME));
    GM(g, "s_mul_hi_u32", over, word(ticks, 0), gm_imm(10));
    GM(g, "s_mul_i32", up, word(ticks, 1), gm_imm(10));
    GM(g, "s_mul_i32", t, word(ticks, 0), gm_imm(10));
    m = GM(g, "s_add_u32", word(t, 1), over, up);
    if (m)
        m->keep = true;
    return t;
}

static gm_op
hw_reg(gm_fn *g, unsigned id)
{
    gm_op t = tmp(g, 'S', 1);

    GM(g, "s_getreg_b32", t, gm_imm(id | 31 << 11)); /* 32 bits from 0 */
    return t;
}

/* Cycles of the compute unit. Where the high word changes between two looks, the low
 * one has just begun anew. */
static gm_op
cycles(gm_fn *g)
{
    gm_op t = tmp(g, 'S', 2), was = hw_reg(g, REG_CYCLES_HI),
          low = hw_reg(g, REG_CYCLES), high = hw_reg(g, REG_CYCLES_HI);
    gm_ins *m;

    GM(g, "s_cmp_eq_u32", was, high);
    GM(g, "s_cselect_b32", t, low, gm_imm(0));
    m = GM(g, "s_mov_b32", word(t, 1), high);
    if (m)
        m->keep = true;
    return t;
}

/* gfx11 counts cycles in 20 bits, less than a millisecond: there clocks are
 * nanoseconds, too. */
static void
clocks(gm_fn *g, const br_kins *i)
{
    bool time = i->imm >= BR_KS_GLOBALTIMER || g->isa->cpu->gen == 11;
    gm_op t = time ? nanoseconds(g) : cycles(g);

    if (i->imm == BR_KS_CLOCK64 || i->imm == BR_KS_GLOBALTIMER)
        give2(g, i, t, word(t, 1));
    else
        give(
            g, i, 0,
            word(t, i->imm == BR_KS_CLOCK_HI || i->imm == BR_KS_GLOBALTIMER_HI),
            1);
}

static bool
special(gm_fn *g, const br_kins *i)
{
    int64_t r = gm_of_one(i->imm);

    if (r >= BR_KS_TID_X && r <= BR_KS_TID_Z)
        GM(g, "v_mov_b32", gm_res(g, i, 0),
           thread_id(g, (unsigned)(r - BR_KS_TID_X)));
    else if (r >= BR_KS_NTID_X && r <= BR_KS_NTID_Z)
        give(g, i, 0, group_size(g, (unsigned)(r - BR_KS_NTID_X)), 1);
    else if (r >= BR_KS_CTAID_X && r <= BR_KS_CTAID_Z)
        group_id(g, i, (unsigned)(r - BR_KS_CTAID_X));
    else if (r >= BR_KS_NCTAID_X && r <= BR_KS_NCTAID_Z) {
        uint32_t at = g->args_bytes + 4 * (uint32_t)(r - BR_KS_NCTAID_X);

        g->hidden = true;
        give(g, i, 0, kernarg(g, at, 1), 1);
    } else if (r == BR_KS_LANEID)
        GM(g, "v_mov_b32", gm_res(g, i, 0), gm_lane_id(g));
    else if (r == BR_KS_WARPID)
        warp_id(g, i);
    else if (r >= BR_KS_MASK_EQ && r <= BR_KS_MASK_GT)
        lane_mask(g, i);
    else if (r == BR_KS_NWARPID)
        warp_count(g, i);
    else if (r == BR_KS_SMID || r == BR_KS_NSMID) /* one of one, as elsewhere */
        give(g, i, 0, gm_imm(r == BR_KS_NSMID), 1);
    else if (r == BR_KS_DYN_SMEM || r == BR_KS_TOTAL_SMEM)
        shared_size(g, i);
    else if (r == BR_KS_GRIDID) /* of a launch alone, as elsewhere here */
        give2(g, i, gm_imm(0), gm_imm(0));
    else if (r >= BR_KS_CLOCK && r <= BR_KS_GLOBALTIMER_HI)
        clocks(g, i);
    else
        return false;
    return true;
}

/* ---- addresses --------------------------------------------------------- */

typedef struct place {
    unsigned space; /* 0: generic */
    gm_op at;
    int64_t offset;
} place;

static const char *
space_name(unsigned space)
{
    return space == BR_KM_SPACE_SHARED  ? "ds"
           : space == BR_KM_SPACE_LOCAL ? "scratch"
           : space                      ? "global"
                                        : "flat";
}

/* Whether addresses have 32 bits. */
static bool
is_short(unsigned space)
{
    return space == BR_KM_SPACE_SHARED || space == BR_KM_SPACE_LOCAL;
}

/* The kernarg block's address plus an offset within the parameters. */
static gm_op
param_address(gm_fn *g, const br_kins *i)
{
    gm_op t = tmp(g, 'V', 2), c = gm_new_mask(g), a = gm_arg(g, i, 0, 0);
    gm_op base = gm_reg(g->kernarg, 0);
    gm_ins *m;

    GM(g, "v_add_co_u32", t, c, base, a);
    m = GM(g, "v_add_co_ci_u32", word(t, 1), gm_code(GM_NULL), gm_imm(0),
           word(base, 1), c);
    if (m)
        m->keep = true;
    return t;
}

/* Where a load or store goes; false: to a space that is not done here. */
static bool
where(gm_fn *g, const br_kins *i, uint32_t bytes, place *p)
{
    int64_t most = g->isa->cpu->gen == 11 ? 4095 : (1 << 23) - 1, least;

    p->space = br_kmod(i->mods, BR_KF_SPACE);
    p->offset = i->imm;
    if (p->space == BR_KM_SPACE_SHARED) {
        p->at = gm_arg_v(g, i, 0, 0);
        most = 65535 - (int64_t)bytes;
        least = 0;
    } else if (p->space == BR_KM_SPACE_LOCAL) {
        p->at = gm_arg_v(g, i, 0, 0);
        least = 0;
    } else if (p->space == BR_KM_SPACE_PARAM) {
        p->at = param_address(g, i);
        p->space = BR_KM_SPACE_GLOBAL;
        least = -most - 1;
    } else {
        p->at = gm_arg_v(g, i, 0, GM_NO);
        least = p->space ? -most - 1 : 0;
        if (p->space == BR_KM_SPACE_CONST)
            p->space = BR_KM_SPACE_GLOBAL;
    }
    if (p->offset < least || p->offset + (int64_t)bytes > most) {
        gm_op t = tmp(g, 'V', is_short(p->space) ? 1 : 2);
        gm_op c = gm_new_mask(g);

        if (is_short(p->space)) {
            GM(g, "v_add_nc_u32", t, gm_imm((uint32_t)p->offset), p->at);
        } else {
            gm_ins *m;

            GM(g, "v_add_co_u32", t, c, gm_imm((uint32_t)p->offset), p->at);
            m = GM(g, "v_add_co_ci_u32", word(t, 1), gm_code(GM_NULL),
                   gm_imm((uint32_t)((uint64_t)p->offset >> 32)),
                   word(p->at, 1), c);
            if (m)
                m->keep = true;
        }
        p->at = t;
        p->offset = 0;
    }
    return true;
}

/* Caches are passed over as far as the scope asks. */
static void
finish(gm_fn *g, const br_kins *i, const place *p, gm_ins *m, int64_t more,
       bool old)
{
    unsigned scope = br_kmod(i->mods, BR_KF_SCOPE);
    bool strong = br_kmod(i->mods, BR_KF_SEM) != 0;
    unsigned bits = m ? br_gcn_formats[m->row->fmt].f[BR_GF_ioffset].end -
                            br_gcn_formats[m->row->fmt].f[BR_GF_ioffset].lo
                      : 0;

    if (!m)
        return;
    if (p->space == BR_KM_SPACE_SHARED) {
        gm_set(m, BR_GF_offset, (uint32_t)(p->offset + more));
        return;
    }
    gm_set(m, BR_GF_ioffset,
           (uint32_t)(p->offset + more) & (uint32_t)((1ull << bits) - 1));
    if (p->space == BR_KM_SPACE_LOCAL) {
        gm_set(m, BR_GF_sve, 1);
        return;
    }
    if (g->isa->cpu->gen == 11) {
        if (old || (strong && scope != BR_KM_SCOPE_CTA && i->op == BR_K_LD))
            gm_set(m, BR_GF_glc, 1);
        return;
    }
    if (old)
        gm_set(m, BR_GF_th, 1);
    if (strong || i->op == BR_K_ATOM || i->op == BR_K_CAS)
        gm_set(m, BR_GF_scope,
               scope == BR_KM_SCOPE_CTA   ? 0
               : scope == BR_KM_SCOPE_GPU ? 2
                                          : 3);
}

static gm_ins *
access(gm_fn *g, const char *name, const place *p, gm_op data, bool load)
{
    gm_op off = gm_code(GM_NULL);
    gm_op ds[2] = {load ? data : p->at, load ? p->at : data};
    gm_op far[3] = {ds[0], ds[1], off};
    bool based =
        p->space == BR_KM_SPACE_GLOBAL || p->space == BR_KM_SPACE_LOCAL;

    return gm_emit(g, name, based ? far : ds, based ? 3 : 2);
}

/* ---- fences ------------------------------------------------------------ */

/* What a release asks for: everything before is done and, beyond the group, out
 * of the caches. */
static void
release(gm_fn *g, unsigned scope)
{
    if (g->isa->cpu->gen == 11) {
        GM(g, "s_waitcnt", gm_imm(7)); /* exp alone may be open */
        GM(g, "s_waitcnt_vscnt", gm_code(GM_NULL), gm_imm(0));
        return;
    }
    if (scope != BR_KM_SCOPE_CTA)
        gm_set(gm_emit(g, "global_wb", NULL, 0), BR_GF_scope,
               scope == BR_KM_SCOPE_GPU ? 2 : 3);
    GM(g, "s_wait_loadcnt", gm_imm(0));
    GM(g, "s_wait_storecnt", gm_imm(0));
    GM(g, "s_wait_dscnt", gm_imm(0));
}

/* What an acquire asks for: what was read is there, and caches forget. */
static void
acquire(gm_fn *g, unsigned scope)
{
    if (g->isa->cpu->gen == 11) {
        GM(g, "s_waitcnt", gm_imm(7));
        if (scope != BR_KM_SCOPE_CTA) {
            gm_emit(g, "buffer_gl1_inv", NULL, 0);
            gm_emit(g, "buffer_gl0_inv", NULL, 0);
        }
        return;
    }
    GM(g, "s_wait_loadcnt", gm_imm(0));
    GM(g, "s_wait_dscnt", gm_imm(0));
    if (scope != BR_KM_SCOPE_CTA) {
        gm_set(gm_emit(g, "global_inv", NULL, 0), BR_GF_scope,
               scope == BR_KM_SCOPE_GPU ? 2 : 3);
        GM(g, "s_wait_loadcnt", gm_imm(0));
    }
}

static void
fence(gm_fn *g, unsigned scope)
{
    release(g, scope);
    acquire(g, scope);
}

static void
order(gm_fn *g, const br_kins *i, bool before)
{
    unsigned sem = br_kmod(i->mods, BR_KF_SEM);
    unsigned scope = br_kmod(i->mods, BR_KF_SCOPE);

    if (sem == BR_KM_SEM_SC)
        fence(g, scope);
    else if (before && (sem == BR_KM_SEM_ACQ_REL || sem == BR_KM_SEM_RELEASE))
        release(g, scope);
    else if (!before && (sem == BR_KM_SEM_ACQ_REL || sem == BR_KM_SEM_ACQUIRE))
        acquire(g, scope);
}

/* ---- loads and stores -------------------------------------------------- */

static bool
load(gm_fn *g, const br_kins *i)
{
    static const char *const names[][5] = {
        {"global_load_u8", "global_load_u16", "global_load_b32",
         "global_load_b64", "global_load_b128"},
        {"ds_load_u8", "ds_load_u16", "ds_load_b32", "ds_load_b64",
         "ds_load_b128"},
        {"flat_load_u8", "flat_load_u16", "flat_load_b32", "flat_load_b64",
         "flat_load_b128"},
        {"scratch_load_u8", "scratch_load_u16", "scratch_load_b32",
         "scratch_load_b64", "scratch_load_b128"}};
    unsigned bytes = br_ktinfo_of[i->type].bytes, n = i->n_res, each = 1;
    unsigned words = (bytes + 3) / 4, kind;
    place p;

    if (load_param(g, i))
        return true;
    if (!where(g, i, bytes * n, &p))
        return false;
    kind = p.space == BR_KM_SPACE_SHARED  ? 1
           : p.space == BR_KM_SPACE_LOCAL ? 3
           : p.space                      ? 0
                                          : 2;
    if (bytes >= 4 && (bytes * n == 8 || bytes * n == 16))
        each = n;
    for (unsigned r = 0; r < n; r += each) {
        gm_op d = each > 1 ? tmp(g, 'V', words * each) : gm_res(g, i, r);
        gm_ins *m;

        m = access(g, names[kind][group_bits(bytes * each)], &p, d, true);
        finish(g, i, &p, m, r * bytes, false);
        for (unsigned k = 0; each > 1 && k < each; k++)
            give(g, i, r + k, word(d, words * k), words);
        if (i->type == BR_KT_S8) {
            GM(g, "v_bfe_i32", d, d, gm_imm(0), gm_imm(8));
            GM(g, "v_and_b32", d, gm_imm(0xffff), d);
        }
    }
    order(g, i, false);
    return true;
}

/* Arguments from the second on, in registers that follow each other. */
static gm_op
gather(gm_fn *g, const br_kins *i, unsigned from, unsigned n, unsigned words)
{
    gm_op t;

    if (n == 1)
        return gm_arg_v(g, i, from, words == 2 ? GM_NO : 0);
    t = tmp(g, 'V', n * words);
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; w < words; w++) {
            gm_ins *m = GM(g, "v_mov_b32", word(t, k * words + w),
                           gm_arg(g, i, from + k, (int)w));

            if (m)
                m->keep = k + w > 0;
        }
    return t;
}

static bool
store(gm_fn *g, const br_kins *i)
{
    static const char *const names[] = {"b8", "b16", "b32", "b64", "b128"};
    unsigned bytes = br_ktinfo_of[i->type].bytes, n = i->n_arg - 1u, each = 1;
    unsigned words = (bytes + 3) / 4;
    char name[32];
    place p;

    if (!where(g, i, bytes * n, &p))
        return false;
    order(g, i, true);
    if (bytes >= 4 && (bytes * n == 8 || bytes * n == 16))
        each = n;
    for (unsigned r = 0; r < n; r += each) {
        gm_op d = gather(g, i, 1 + r, each, words);

        snprintf(name, sizeof name, "%s_store_%s", space_name(p.space),
                 names[group_bits(bytes * each)]);
        finish(g, i, &p, access(g, name, &p, d, false), r * bytes, false);
    }
    return true;
}

/* ---- atomics ----------------------------------------------------------- */

static const char *
atom_name(const br_kins *i, bool shared)
{
    unsigned op = br_kmod(i->mods, BR_KF_SUB);
    bool s = br_ktinfo_of[i->type].kind == 'S';

    if (br_ktinfo_of[i->type].kind == 'F')
        return op == BR_KM_ATOM_ADD && i->type == BR_KT_F32 ? "add_f" : NULL;
    switch (op) {
    case BR_KM_ATOM_ADD: return "add_u";
    case BR_KM_ATOM_MIN: return s ? "min_i" : "min_u";
    case BR_KM_ATOM_MAX: return s ? "max_i" : "max_u";
    case BR_KM_ATOM_AND: return "and_b";
    case BR_KM_ATOM_OR: return "or_b";
    case BR_KM_ATOM_XOR: return "xor_b";
    case BR_KM_ATOM_EXCH: return shared ? "storexchg_rtn_b" : "swap_b";
    case BR_KM_ATOM_INC: return "inc_u";
    case BR_KM_ATOM_DEC: return "dec_u";
    default: return NULL;
    }
}

static bool
atomic(gm_fn *g, const br_kins *i)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes, words = bytes / 4;
    bool cas = i->op == BR_K_CAS, shared;
    gm_op data, d, op[4];
    const char *what;
    char name[48];
    unsigned n = 0;
    gm_ins *m;
    place p;

    if (bytes < 4 || !where(g, i, bytes, &p))
        return false;
    shared = p.space == BR_KM_SPACE_SHARED;
    what = cas ? shared ? "cmpstore_rtn_b" : "cmpswap_b" : atom_name(i, shared);
    if (!what)
        return false;
    order(g, i, true);
    d = gm_res(g, i, 0);
    if (shared && !strstr(what, "_rtn_"))
        snprintf(name, sizeof name, "ds_%.3s_rtn_%s%u", what,
                 what + strcspn(what, "_") + 1, 8 * bytes);
    else
        snprintf(name, sizeof name, "%s%s%s%u", space_name(p.space),
                 shared ? "_" : "_atomic_", what, 8 * bytes);
    if (strncmp(what, "or_", 3) == 0 && shared)
        snprintf(name, sizeof name, "ds_or_rtn_b%u", 8 * bytes);
    if (cas && !shared) {
        data = tmp(g, 'V', 2 * words); /* the new value, then the old one */
        for (unsigned w = 0; w < 2 * words; w++) {
            m = GM(g, "v_mov_b32", word(data, w),
                   gm_arg(g, i, w < words ? 2 : 1, (int)(w % words)));
            if (m)
                m->keep = w > 0;
        }
    } else {
        data = gm_arg_v(g, i, cas ? 2 : 1, words == 2 ? GM_NO : 0);
    }
    op[n++] = d;
    op[n++] = p.at;
    op[n++] = data;
    if (cas && shared)
        op[n++] = gm_arg_v(g, i, 1, words == 2 ? GM_NO : 0);
    if (p.space == BR_KM_SPACE_GLOBAL)
        op[n++] = gm_code(GM_NULL);
    m = gm_emit(g, name, op, n);
    finish(g, i, &p, m, 0, true);
    order(g, i, false);
    return true;
}

/* ---- all of it --------------------------------------------------------- */

/* Of all threads: gm_has_code. It counts waves, so the two warps of a wave have to
 * come together. */
static bool
barrier(gm_fn *g)
{
    if (g->isa->wave64)
        gm_flow_gather(g, g->node / GM_NODES);
    if (g->isa->cpu->gen == 11) {
        gm_emit(g, "s_barrier", NULL, 0);
    } else {
        GM(g, "s_barrier_signal", gm_imm(~0u));
        GM(g, "s_barrier_wait", gm_imm(0xffff));
    }
    return true;
}

/* A result of 64 bits from two words. */
static void
give2(gm_fn *g, const br_kins *i, gm_op low, gm_op high)
{
    gm_op d = gm_res(g, i, 0);
    gm_ins *m;

    give(g, i, 0, low, 1);
    m = GM(g, g->vregs.at[d.v].file == 'V' ? "v_mov_b32" : "s_mov_b32",
           word(d, 1), high);
    if (m)
        m->keep = true;
}

/* Addresses of other variables come with the launch, behind the hidden
 * arguments, in the order in which the kernel names them first. */
static void
far_address(gm_fn *g, const br_kins *i)
{
    gm_op t = tmp(g, 'S', 2), d = gm_res(g, i, 0), c = gm_new_mask(g);
    uint32_t n = 0, at;
    gm_ins *m;

    while (n < g->vars.n && g->vars.at[n] != i->sym)
        n++;
    if (n == g->vars.n && !br_vec_push(&g->vars, i->sym))
        gm_oom(g);
    g->hidden = true;
    at = g->args_bytes + GM_HIDDEN_BYTES + 8 * n;
    kernarg_to(g, t, at, 2);
    if (g->vregs.at[d.v].file == 'S') {
        GM(g, "s_add_u32", d, t, gm_imm((uint32_t)i->imm));
        m = GM(g, "s_addc_u32", word(d, 1), word(t, 1),
               gm_imm((uint32_t)((uint64_t)i->imm >> 32)));
    } else {
        GM(g, "v_add_co_u32", d, c, gm_imm((uint32_t)i->imm), t);
        m = GM(g, "v_add_co_ci_u32", word(d, 1), gm_code(GM_NULL),
               gm_imm((uint32_t)((uint64_t)i->imm >> 32)), word(t, 1), c);
    }
    if (m)
        m->keep = true;
}

static bool
address(gm_fn *g, const br_kins *i)
{
    if (g->m->vars.at[i->sym].space == BR_KM_SPACE_SHARED)
        give2(g, i, gm_imm((uint32_t)(g->lds[i->sym] + (uint64_t)i->imm)),
              gm_imm(0));
    else
        far_address(g, i);
    return true;
}

/* The high word of generic addresses of a space. */
static gm_op
aperture(gm_fn *g, unsigned space)
{
    gm_op t = tmp(g, 'S', 2);

    GM(g, "s_mov_b64", t,
       gm_code(space == BR_KM_SPACE_SHARED ? GM_SHARED_BASE : GM_PRIVATE_BASE));
    return word(t, 1);
}

static bool
generic(gm_fn *g, const br_kins *i)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    gm_op d = gm_res(g, i, 0), a, b;

    if (i->op == BR_K_FROMGEN) {
        give2(g, i, gm_arg(g, i, 0, 0),
              is_short(space) ? gm_imm(0) : gm_arg(g, i, 0, 1));
    } else if (i->op == BR_K_TOGEN && space == BR_KM_SPACE_PARAM) {
        gm_op t = param_address(g, i);

        give2(g, i, t, word(t, 1));
    } else if (i->op == BR_K_TOGEN) {
        give2(g, i, gm_arg(g, i, 0, 0),
              is_short(space) ? aperture(g, space) : gm_arg(g, i, 0, 1));
    } else if (is_short(space)) {
        GM(g, "v_cmp_eq_u32", d, aperture(g, space), gm_arg_v(g, i, 0, 1));
    } else {
        a = gm_new_mask(g);
        b = gm_new_mask(g);
        GM(g, "v_cmp_ne_u32", a, aperture(g, BR_KM_SPACE_SHARED),
           gm_arg_v(g, i, 0, 1));
        GM(g, "v_cmp_ne_u32", b, aperture(g, BR_KM_SPACE_LOCAL),
           gm_arg_v(g, i, 0, 1));
        GM(g, "s_and_bm", d, a, b);
    }
    return true;
}

void
gm_trap(gm_fn *g, uint32_t why)
{
    for (uint32_t k = BR_GCN_TRAPS; why && why <= g->m->notes.n; k++) {
        const char *text = br_gcn_trap_text(k);

        if (!*text)
            break;
        if (br_text_is(g->m->notes.at[why - 1].text, text))
            why = k;
    }
    if (why)
        GM(g, "s_mov_b32", gm_code(GM_M0), gm_imm(why));
    GM(g, "s_trap", gm_imm(2));
}

bool
gm_select_mem(gm_fn *g, const br_kins *i)
{
    switch (i->op) {
    case BR_K_SREG: return special(g, i);
    case BR_K_LD: return load(g, i);
    case BR_K_ST: return store(g, i);
    case BR_K_ATOM:
    case BR_K_CAS: return atomic(g, i);
    case BR_K_FENCE: fence(g, br_kmod(i->mods, BR_KF_SCOPE)); return true;
    case BR_K_BAR: return barrier(g);
    case BR_K_ADDR: return address(g, i);
    case BR_K_FRAME:
        give2(g, i, gm_imm((uint32_t)i->imm), gm_imm(0));
        return true;
    case BR_K_TOGEN:
    case BR_K_FROMGEN:
    case BR_K_ISSPACE: return generic(g, i);
    case BR_K_MMA: return gm_is_wmma(g->f, i) && gm_wmma(g, i);
    case BR_K_SHFL: return gm_shuffle(g, i);
    case BR_K_VOTE:
    case BR_K_BALLOT:
    case BR_K_ACTIVE: return gm_vote(g, i);
    case BR_K_TRAP: gm_trap(g, (uint32_t)i->imm); return true;
    case BR_K_CPWAIT:               /* copies are done at once */
    case BR_K_WARPBAR: return true; /* lanes of a wave are in step */
    default: return false;
    }
}
