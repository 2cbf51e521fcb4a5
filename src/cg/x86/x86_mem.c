/* x86_mem.c - vector code for loads and stores.
 *
 * The 8 addresses of a quarter are looked at when they are there: one after
 * another they are a load of 8 lanes, all the same a broadcast. Either way the
 * bytes have to lie in the region that this instruction found last (a window),
 * or in shared memory. Anything else, and lanes that do not run, is C's work
 * (x86_memory in x86_run.c), which reads and writes saved registers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

static unsigned
count(const br_kins *i)
{
    return i->op == BR_K_LD ? i->n_res : i->n_arg - 1u;
}

unsigned
x86_access(const br_kins *i)
{
    return count(i) * br_ktinfo_of[i->type].bytes;
}

static unsigned
log2_of(unsigned n)
{
    return (unsigned)__builtin_ctz(n);
}

/* rax: the first address. Leaves where it is in rcx, or goes to slow. */
static void
bounds(gen *g, const br_kins *i, uint32_t site, unsigned bytes, uint32_t slow)
{
    unsigned align = count(i) * br_ktinfo_of[i->type].bytes;

    if (i->imm)
        ei(g, BR_X_ADD64_I, br_x86_reg(RAX), i->imm);
    if (i->imm && br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED)
        e2(g, BR_X_MOV32, RAX, RAX); /* an address there has 32 bits */
    if (align > 1) {
        ei(g, BR_X_TEST32_I, br_x86_reg(RAX), align - 1);
        ej(g, BR_X_JNE, slow);
    }
    if (br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED) {
        em(g, BR_X_MOV64, RCX, x86_ctx_at(offsetof(x86_ctx, shared_bytes)));
        ei(g, BR_X_SUB64_I, br_x86_reg(RCX), bytes);
        ej(g, BR_X_JB, slow);
        e2(g, BR_X_CMP64, RAX, RCX);
        ej(g, BR_X_JA, slow);
        em(g, BR_X_MOV64, RCX, x86_ctx_at(offsetof(x86_ctx, shared)));
    } else {
        int32_t at = (int32_t)(site * sizeof(x86_window));

        em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
        e2(g, BR_X_MOV64, RCX, RAX);
        em(g, BR_X_SUB64, RCX, br_x86_mem(RDX, at));
        em(g, BR_X_CMP64, RCX, br_x86_mem(RDX, at + 8));
        ej(g, BR_X_JAE, slow);
        em(g, BR_X_MOV64, RCX, br_x86_mem(RDX, at + 16));
    }
    e2(g, BR_X_ADD64, RCX, RAX);
}

/* To other where the lanes' addresses are not a0, a0 + step, a0 + 2 step...;
 * step 0: not all the same. */
static void
check_row(gen *g, unsigned lo, unsigned hi, unsigned step, uint32_t other)
{
    unsigned x = x86_tmp(g), y = x86_tmp(g), b = x86_tmp(g);

    if (step) {
        int32_t at = (int32_t)(offsetof(x86_ctx, steps) +
                               8 * X86_MOST * (size_t)log2_of(step));

        e3m(g, BR_X_PSUBQ, x, lo, br_x86_mem(RBX, at));
        e3m(g, BR_X_PSUBQ, y, hi, br_x86_mem(RBX, at + PART(g)));
    }
    e2(g, BR_X_BCASTQ, b, lo);
    e3(g, BR_X_PXOR, x, step ? x : lo, b);
    e3(g, BR_X_PXOR, y, step ? y : hi, b);
    e3(g, BR_X_POR, x, x, y);
    if (g->z) {
        unsigned k = x86_ktmp(g);

        e3(g, BR_X_ZPTESTMQ, k, x, x);
        e2(g, BR_X_KORTESTW, k, k);
        x86_kdrop(g, k);
    } else {
        e2(g, BR_X_PTEST, x, x);
    }
    ej(g, BR_X_JNE, other);
    x86_drop(g, x);
    x86_drop(g, y);
    x86_drop(g, b);
}

/* Registers of the operands, for the slow path. */
static void
note_regs(gen *g, const br_kins *i, uint32_t site)
{
    x86_site *s = &g->fn->sites.at[site];
    unsigned n = 0, cls = br_ktinfo_of[i->type].cls;

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++)
        s->reg[n++] = (uint8_t)x86_use(g, arg_of(g, i, 0), p);
    for (unsigned k = 0; k < count(i); k++)
        for (unsigned p = 0; p < parts_of(g, cls); p++)
            s->reg[n++] = (uint8_t)(i->op == BR_K_LD
                                        ? x86_def(g, i->res + k, p)
                                        : x86_use(g, arg_of(g, i, k + 1), p));
}

static uint32_t
slow_path(gen *g, uint32_t site, uint32_t back)
{
    uint32_t slow = br_x86_label(g->a);

    if (!br_vec_push(&g->slow, slow) ||
        !br_vec_push(&g->slow, site | (g->parted ? PARTED : 0)) ||
        !br_vec_push(&g->slow, back))
        g->a->oom = true;
    return slow;
}

static void
load_one(gen *g, const br_kins *i, unsigned d, br_x86_arg at)
{
    unsigned size = br_ktinfo_of[i->type].bytes;

    if (size >= 4) {
        em(g, size == 8 ? BR_X_BCASTQ : BR_X_BCASTD, d, at);
        return;
    }
    em(g,
       size == 2             ? BR_X_MOVZX16
       : i->type == BR_KT_S8 ? BR_X_MOVSX8
                             : BR_X_MOVZX8,
       RAX, at);
    if (i->type == BR_KT_S8) /* its class has 16 bits */
        ei(g, BR_X_AND32_I, br_x86_reg(RAX), 0xffff);
    e2(g, BR_X_MOVD_XR, d, RAX);
    e2(g, BR_X_BCASTD, d, d);
}

/* ---- instructions --------------------------------------------------------- */

static void
sel_uniform_load(gen *g, const br_kins *i)
{
    uint32_t site = x86_site_of(g, i), back = br_x86_label(g->a);
    uint32_t slow = slow_path(g, site, back);
    const x86_site *s = &g->fn->sites.at[site];
    unsigned bytes = count(i) * br_ktinfo_of[i->type].bytes;

    note_regs(g, i, site);
    es(g, BR_X_MOVQ_RX, br_x86_reg(RAX), s->reg[0]);
    bounds(g, i, site, bytes, slow);
    for (unsigned k = 0; k < i->n_res; k++)
        load_one(g, i, s->reg[1 + k],
                 br_x86_mem(RCX, (int32_t)(k * br_ktinfo_of[i->type].bytes)));
    br_x86_bind(g->a, back);
}

/* Makes n registers free now: what has to give way is stored on every way
 * through the code that follows, not on one of them. */
static void
reserve(gen *g, unsigned n)
{
    unsigned t[8];

    for (unsigned k = 0; k < n; k++)
        t[k] = x86_tmp(g);
    for (unsigned k = 0; k < n; k++)
        x86_drop(g, t[k]);
}

static void
sel_row(gen *g, const br_kins *i)
{
    br_x86_arg exec =
        br_x86_memx(RBX, R15, 1, (int32_t)offsetof(x86_ctx, exec));
    uint32_t site = x86_site_of(g, i), back = br_x86_label(g->a);
    uint32_t slow = slow_path(g, site, back), same = br_x86_label(g->a);
    unsigned step = count(i) * br_ktinfo_of[i->type].bytes;
    const x86_site *s = &g->fn->sites.at[site];
    bool load = i->op == BR_K_LD, both = load && i->n_res == 1;
    bool each = g->z && x86_gathers(i);
    uint32_t any = each ? br_x86_label(g->a) : slow;

    note_regs(g, i, site);
    reserve(g, count(i) > 1 ? 6 : 3);
    if (each || (g->z && count(i) > 1))
        x86_gather_begin(g);
    if (!g->wide && g->z) {
        em(g, BR_X_MOVZX16, RAX, exec);
        ei(g, BR_X_CMP32_I, br_x86_reg(RAX), 0xffff);
        ej(g, BR_X_JNE, any);
    } else if (!g->wide) {
        ei(g, BR_X_CMP8_I, exec, 0xff);
        ej(g, BR_X_JNE, slow);
    }
    check_row(g, s->reg[0], s->reg[1], step, both ? same : any);
    es(g, BR_X_MOVQ_RX, br_x86_reg(RAX), s->reg[0]);
    bounds(g, i, site, (unsigned)LANES(g) * step, slow);
    if (load)
        x86_load_row(g, i, s->reg + 2, br_x86_mem(RCX, 0));
    else
        x86_store_row(g, i, s->reg + 2, br_x86_mem(RCX, 0));
    if (both) {
        ej(g, BR_X_JMP, back);
        br_x86_bind(g->a, same);
        check_row(g, s->reg[0], s->reg[1], 0, any);
        es(g, BR_X_MOVQ_RX, br_x86_reg(RAX), s->reg[0]);
        bounds(g, i, site, (unsigned)LANES(g) * step, any);
        load_one(g, i, s->reg[2], br_x86_mem(RCX, 0));
        if (step == 8)
            e2(g, BR_X_MOVAPS, s->reg[3], s->reg[2]);
    }
    if (each) {
        ej(g, BR_X_JMP, back);
        br_x86_bind(g->a, any);
        x86_gather(g, i, site, slow);
    }
    br_x86_bind(g->a, back);
}

/* Where it is was looked at before the region. */
static void
sel_checked(gen *g, const br_kins *i, unsigned group)
{
    br_x86_arg at = g->lined ? x86_line_at(g, group)
                             : br_x86_mem(x86_fast_base(g, group), 0);
    unsigned parts = br_ktinfo_of[i->type].bytes == 8 ? 2 : 1, n = 0;
    int64_t by = x86_step_by(g->fn, arg_of(g, i, 0));
    uint8_t r[8];

    at.disp += (int32_t)i->imm;
    for (unsigned k = 0; k < count(i); k++)
        for (unsigned p = 0; p < parts; p++)
            r[n++] = (uint8_t)(i->op == BR_K_LD
                                   ? x86_def(g, i->res + k, p)
                                   : x86_use(g, arg_of(g, i, k + 1), p));
    if (by && by != x86_access(i)) {
        x86_strided(g, i, r, at, (int32_t)by);
    } else if (i->op == BR_K_ST) {
        if (!x86_stream(g, i, r, at, g->group[group].site))
            x86_store_row(g, i, r, at);
    } else if (g->fn->step[arg_of(g, i, 0)] == 0) {
        load_one(g, i, r[0], at);
        if (parts == 2)
            e2(g, BR_X_MOVAPS, r[1], r[0]);
    } else {
        x86_load_row(g, i, r, at);
    }
}

/* Memory of each lane's own: no two lanes' are neighbours. */
static void
sel_local(gen *g, const br_kins *i)
{
    uint32_t site = x86_site_of(g, i), back = br_x86_label(g->a);
    uint32_t slow = slow_path(g, site, back);

    note_regs(g, i, site);
    reserve(g, 5);
    x86_gather_begin(g);
    x86_gather_local(g, i, site, slow);
    br_x86_bind(g->a, back);
}

/* A store of all lanes to one place, of one number. */
static bool
is_one_store(const gen *g, const br_kins *i)
{
    for (unsigned a = 0; a < i->n_arg; a++)
        if (!is_const(g, arg_of(g, i, a)) && !g->fn->uniform[arg_of(g, i, a)])
            return false;
    return i->op == BR_K_ST && br_ktinfo_of[i->type].bytes != 2;
}

/* Any lane's is as good as the last one's: no group comes here without lanes. */
static void
sel_one_store(gen *g, const br_kins *i)
{
    uint32_t site = x86_site_of(g, i), back = br_x86_label(g->a);
    uint32_t slow = slow_path(g, site, back);
    const x86_site *s = &g->fn->sites.at[site];
    unsigned size = br_ktinfo_of[i->type].bytes;
    unsigned parts = parts_of(g, br_ktinfo_of[i->type].cls);
    br_x86_op op = size == 1   ? BR_X_MOV8_S
                   : size == 4 ? BR_X_MOV32_S
                               : BR_X_MOV64_S;

    note_regs(g, i, site);
    es(g, BR_X_MOVQ_RX, br_x86_reg(RAX), s->reg[0]);
    bounds(g, i, site, x86_access(i), slow);
    for (unsigned k = 0; k < count(i); k++) {
        unsigned from = s->reg[parts_of(g, BR_KC_B64) + k * parts];

        es(g, BR_X_MOVQ_RX, br_x86_reg(RAX), from);
        es(g, op, br_x86_mem(RCX, (int32_t)(k * size)), RAX);
    }
    br_x86_bind(g->a, back);
}

static void
sel_memory(gen *g, const br_kins *i)
{
    unsigned group = g->group_of[i - g->f->ins.at];

    if (g->fast && group)
        sel_checked(g, i, group - 1);
    else if (g->uniform)
        sel_uniform_load(g, i);
    else if (is_one_store(g, i))
        sel_one_store(g, i);
    else
        sel_row(g, i);
}

x86_sel
x86_select_mem(const gen *g, const br_kins *i)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE), bytes = x86_access(i);

    if (space == BR_KM_SPACE_PARAM || i->imm != (int32_t)i->imm)
        return NULL;
    if (space == BR_KM_SPACE_LOCAL)
        return g->zmm && x86_gathers(i) ? sel_local : NULL;
    return bytes <= 16 && !(bytes & (bytes - 1)) ? sel_memory : NULL;
}
