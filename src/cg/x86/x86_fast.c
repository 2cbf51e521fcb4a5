/* x86_fast.c - regions whose accesses are looked at once for the warp.
 *
 *   base of each group's quarters -> in its memory, aligned? -> where it is
 *   lanes of each quarter all on or all off?
 *   no: the region as it always works       yes: the same, without a look
 *
 * A group is what a region loads and stores at even addresses of one value and
 * space: lanes one after another, or all the same in a quarter. The four first
 * addresses of a group are one ymm register. What is outside, or has never been
 * looked for, goes the slow way, which finds it or says the fault.
 *
 * Of a comparison of what goes evenly, as in `i < n`, first and last lane of each
 * quarter are compared; where they agree, so do those between.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

enum { FAR = 1 << 24 }; /* displacements from a group's address */

/* ---- groups --------------------------------------------------------------- */

static bool
groupable(const gen *g, const br_kins *i)
{
    uint32_t v;
    unsigned bytes;
    int64_t by;

    if ((i->op != BR_K_LD && i->op != BR_K_ST) || is_once(g, i) ||
        br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_LOCAL)
        return false;
    v = arg_of(g, i, 0);
    bytes = x86_access(i);
    if (is_const(g, v) || !(g->fn->uniform[v] || x86_even(g->fn, v)) ||
        i->imm < -FAR || i->imm > FAR || i->imm % (int64_t)bytes)
        return false;
    by = x86_step_by(g->fn, v);
    return by == 0 ? i->op == BR_K_LD && i->n_res == 1
                   : by == bytes || x86_strides(i, by);
}

static void
join(gen *g, const br_kins *i, size_t ins)
{
    uint32_t v = arg_of(g, i, 0), bytes = x86_access(i);
    bool shared = br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED;
    int32_t reach = (int32_t)(X86_LANES - 1) * (int32_t)x86_step_by(g->fn, v);
    int32_t from = (int32_t)i->imm + BR_MIN(reach, 0);
    int32_t to = (int32_t)(i->imm + bytes) + BR_MAX(reach, 0);
    unsigned k = 0;

    while (k < g->n_groups &&
           (g->group[k].addr != v || g->group[k].shared != shared))
        k++;
    if (k == X86_GROUPS)
        return;
    if (k == g->n_groups) {
        g->n_groups++;
        g->group[k].addr = v;
        g->group[k].span = 0;
        g->group[k].shared = shared;
        g->group[k].align = 0;
        g->group[k].from = from;
        g->group[k].to = to;
    }
    if (!g->group[k].span || i->op == BR_K_ST) { /* may write, too */
        g->group[k].site = x86_site_of(g, i);
        /* as `remember` has it */
        g->group[k].span = bytes * (g->zmm ? X86_MOST : X86_LANES);
    }
    g->group[k].align = BR_MAX(g->group[k].align, bytes);
    g->group[k].from = BR_MIN(g->group[k].from, from);
    g->group[k].to = BR_MAX(g->group[k].to, to);
    g->group_of[ins] = (uint8_t)(k + 1);
}

/* ---- the look ------------------------------------------------------------- */

/* To 64-bit lanes; ymm7. */
void
x86_add_constant(gen *g, unsigned r, int64_t n)
{
    if (n == 0)
        return;
    em(g, BR_X_BCASTQ, 7, x86_const(g, (uint64_t)n));
    e3(g, BR_X_PADDQ, r, r, 7);
}

/* r0: where quarters begin. ymm1: from the memory's start, ymm2: up to its
 * end; either below zero, it is outside. ymm6 and ymm5 collect that and the
 * addresses of all groups. */
static void
look(gen *g, unsigned k, uint32_t slow)
{
    bool common = g->group[k].align == g->group[0].align;
    uint32_t v = g->group[k].addr;
    int32_t at = (int32_t)(g->group[k].site * sizeof(x86_window));
    int64_t room = (int64_t)g->group[k].span - 1 - g->group[k].to;
    br_x86_arg slot = br_x86_mem(R12, (int32_t)g->fn->slot[v]);
    unsigned r0 = g->regs[v * 2];

    if (r0 == NO_REG || r0 < 8) {
        em(g, g->fn->uniform[v] ? BR_X_BCASTQ : BR_X_MOVUPS_L, 0, slot);
        r0 = 0;
    }
    if (common) {
        e3(g, BR_X_POR, 5, k ? 5 : r0, r0);
    } else if (g->group[k].align > 1) {
        em(g, BR_X_BCASTQ, 7, x86_const(g, g->group[k].align - 1));
        e2(g, BR_X_PTEST, r0, 7);
        ej(g, BR_X_JNE, slow);
    }
    if (g->group[k].shared) {
        e2(g, BR_X_MOVAPS, 1, r0);
        em(g, BR_X_BCASTQ, 2, x86_ctx_at(offsetof(x86_ctx, shared_bytes)));
        em(g, BR_X_BCASTQ, 3, x86_ctx_at(offsetof(x86_ctx, shared)));
        room = -(int64_t)g->group[k].to;
    } else {
        em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
        em(g, BR_X_BCASTQ, 1, br_x86_mem(RDX, at));
        e3(g, BR_X_PSUBQ, 1, r0, 1);
        em(g, BR_X_BCASTQ, 2, br_x86_mem(RDX, at + 8));
        em(g, BR_X_BCASTQ, 3, br_x86_mem(RDX, at + 16));
    }
    e3(g, BR_X_PSUBQ, 2, 2, 1);
    e3(g, BR_X_POR, 6, k ? 6 : 2, 2); /* before room makes it run over */
    x86_add_constant(g, 2, room);
    if (g->group[k].from < 0) /* else the start itself may lie before */
        e3(g, BR_X_POR, 2, 2, 1);
    x86_add_constant(g, 1, g->group[k].from);
    e3(g, BR_X_POR, 2, 2, 1);
    e3(g, BR_X_POR, 6, 6, 2);
    e3(g, BR_X_PADDQ, 3, 3, r0);
    es(g, BR_X_MOVUPS_S, br_x86_mem(R12, (int32_t)(g->hosts_at + 32 * k)), 3);
}

static void
looked(gen *g, uint32_t slow)
{
    if (g->group[0].align > 1) {
        em(g, BR_X_BCASTQ, 7, x86_const(g, g->group[0].align - 1));
        e2(g, BR_X_PTEST, 5, 7);
        ej(g, BR_X_JNE, slow);
    }
    e2(g, BR_X_MOVMSKPD, RAX, 6);
    e2(g, BR_X_TEST32, RAX, RAX);
    ej(g, BR_X_JNE, slow);
}

/* ---- comparisons ---------------------------------------------------------- */

static bool
steps(const gen *g, uint32_t v)
{
    return !is_const(g, v) && x86_even(g->fn, v) && x86_step_by(g->fn, v) > 0;
}

static bool
same(const gen *g, uint32_t v)
{
    return is_const(g, v) || g->fn->uniform[v] ||
           (x86_even(g->fn, v) && g->fn->step[v] == 0);
}

static bool
even_setp(const gen *g, const br_kins *i)
{
    unsigned cmp = br_kmod(i->mods, BR_KF_CMP);
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    uint32_t a, b;

    if (!g->wide || i->op != BR_K_SETP || t->cls != BR_KC_B32 ||
        t->kind == 'F' || t->lanes != 1 || is_once(g, i) ||
        g->fn->slot[i->res] == X86_NO_SLOT ||
        (cmp != BR_KM_CMP_LT && cmp != BR_KM_CMP_LE && cmp != BR_KM_CMP_GT &&
         cmp != BR_KM_CMP_GE))
        return false;
    a = arg_of(g, i, 0);
    b = arg_of(g, i, 1);
    return (steps(g, a) && same(g, b)) || (same(g, a) && steps(g, b));
}

static void
firsts(gen *g, uint32_t v, unsigned to)
{
    if (!is_const(g, v) && x86_even(g->fn, v))
        em(g, BR_X_MOVUPS_LX, to, br_x86_mem(R12, (int32_t)g->fn->slot[v]));
    else
        em(g, BR_X_BCASTD, to,
           is_const(g, v) ? x86_const(g, g->f->vals.at[v].bits)
                          : br_x86_mem(R12, (int32_t)g->fn->slot[v]));
}

/* xmm0, 1: the stepping one's first and last lanes, xmm2 the other; xmm3: it
 * runs over between. Four bits become four bytes. */
static void
compare_even(gen *g, const br_kins *i, uint32_t slow)
{
    unsigned cmp = br_kmod(i->mods, BR_KF_CMP);
    bool second = !steps(g, arg_of(g, i, 0));
    bool below = (cmp == BR_KM_CMP_LT || cmp == BR_KM_CMP_GE) != second;
    uint32_t v = arg_of(g, i, second);
    br_x86_arg eax = br_x86_reg(RAX);

    firsts(g, v, 0);
    firsts(g, arg_of(g, i, !second), 2);
    em(g, BR_X_BCASTD, 7, x86_const(g, 7 * (uint64_t)x86_step_by(g->fn, v)));
    e3(g, BR_X_PADDD, 1, 0, 7);
    if (br_ktinfo_of[i->type].kind != 'S') {
        em(g, BR_X_BCASTD, 7, x86_const(g, 0x80000000));
        for (unsigned r = 0; r < 3; r++)
            e3(g, BR_X_PXOR, r, r, 7);
    }
    e3(g, BR_X_PCMPGTD, 3, 0, 1);
    for (unsigned r = 0; r < 2; r++)
        e3(g, BR_X_PCMPGTD, r, below ? 2 : r, below ? r : 2);
    e3(g, BR_X_PXOR, 1, 1, 0);
    e3(g, BR_X_POR, 1, 1, 3);
    e2(g, BR_X_MOVMSKPS, RAX, 1);
    ei(g, BR_X_TEST32_I, eax, 15);
    ej(g, BR_X_JNE, slow);
    e2(g, BR_X_MOVMSKPS, RAX, 0);
    ei(g, BR_X_AND32_I, eax, 15);
    br_x86_put(g->a, BR_X_IMUL32_I,
               (br_x86_arg[]){eax, eax, br_x86_imm(0x204081)});
    ei(g, BR_X_AND32_I, eax, 0x01010101);
    br_x86_put(g->a, BR_X_IMUL32_I, (br_x86_arg[]){eax, eax, br_x86_imm(255)});
    if (cmp == BR_KM_CMP_LE || cmp == BR_KM_CMP_GE)
        br_x86_put(g->a, BR_X_NOT32, (br_x86_arg[]){eax});
    es(g, BR_X_MOV32_S, br_x86_mem(R12, (int32_t)g->fn->slot[i->res]), RAX);
}

/* Lanes of a quarter, or two, all on or all off: bit 0 times 255 is the byte. */
static void
whole_quarters(gen *g, uint32_t slow)
{
    br_x86_arg eax = br_x86_reg(RAX);

    e2(g, BR_X_MOV32, RAX, R13);
    ei(g, BR_X_AND32_I, eax, g->zmm ? 0x00010001 : 0x01010101);
    br_x86_put(g->a, BR_X_IMUL32_I,
               (br_x86_arg[]){eax, eax, br_x86_imm(g->zmm ? 65535 : 255)});
    e2(g, BR_X_CMP32, RAX, R13);
    ej(g, BR_X_JNE, slow);
}

/* The look before a region; false: there is nothing to gain. What is left of
 * it is in g->rest. */
bool
x86_fast(gen *g, const uint32_t *list, size_t n, uint32_t slow)
{
    bool gain = false, rows = g->fn->own->kind == X86_KEEP_ROWS;

    g->n_groups = 0;
    g->rest.n = 0;
    g->kept = true;
    for (size_t k = 0; k < n; k++) {
        const br_kins *i = &g->f->ins.at[list[k]];

        g->group_of[list[k]] = 0;
        if (even_setp(g, i))
            gain = true;
        else if (!br_vec_push(&g->rest, list[k]))
            g->a->oom = true;
        if (!rows && groupable(g, i))
            join(g, i, list[k]);
        if (i->op == BR_K_LD || i->op == BR_K_ST)
            g->kept &= g->group_of[list[k]] != 0;
        for (unsigned r = 0; r < i->n_res; r++)
            gain |= !g->wide && g->masked[i->res + r] &&
                    g->fn->slot[i->res + r] != X86_NO_SLOT;
    }
    if ((!gain && !g->n_groups) || rows)
        return false;
    if (!g->wide)
        whole_quarters(g, slow);
    for (unsigned k = 0; k < g->n_groups; k++)
        look(g, k, slow);
    if (g->n_groups)
        looked(g, slow);
    for (size_t k = 0; k < n; k++)
        if (even_setp(g, &g->f->ins.at[list[k]]))
            compare_even(g, &g->f->ins.at[list[k]], slow);
    return true;
}

/* ---- in the region -------------------------------------------------------- */

static const uint8_t keepers[] = {RSI, RDI, R8, R9, R10, R11};

void
x86_fast_top(gen *g)
{
    for (unsigned k = 0; g->kept && k < BR_MIN(g->n_groups, 6u); k++)
        em(g, BR_X_MOV64, keepers[k],
           br_x86_memx(R12, R15, 8, (int32_t)(g->hosts_at + 32 * k)));
}

unsigned
x86_fast_base(gen *g, unsigned group)
{
    if (g->kept && group < BR_COUNT(keepers))
        return keepers[group];
    em(g, BR_X_MOV64, RCX,
       br_x86_memx(R12, R15, 8, (int32_t)(g->hosts_at + 32 * group)));
    return RCX;
}

/* ---- steps ---------------------------------------------------------------- */

/* Numbers of threads in a block end far from where numbers do. */
bool
x86_small(const gen *g, uint32_t v)
{
    const br_kins *i;

    if (is_const(g, v))
        return false;
    i = &g->f->ins.at[g->f->vals.at[v].def];
    return i->op == BR_K_SREG && i->imm <= BR_KS_NTID_Z;
}

/* A value of 32 bits goes evenly, and now becomes one of 64: not if its lanes
 * run over. Then code for rows goes on, from this region's start. */
void
x86_no_wrap(gen *g, const br_kins *i)
{
    uint8_t type = i->op == BR_K_CVT ? i->type2 : i->type;
    unsigned a, t, m;
    uint32_t label, v = arg_of(g, i, 0);
    int64_t by;

    if (!g->uniform || !x86_even(g->fn, i->res) || !g->fn->step[i->res])
        return;
    if (is_const(g, v) || g->fn->step[v] == 0)
        v = arg_of(g, i, 1);
    if (x86_small(g, v))
        return;
    a = x86_use(g, v, 0);
    by = x86_step_by(g->fn, v);
    label = br_x86_label(g->a);
    if (!br_vec_push(&g->rows, label) ||
        !br_vec_push(&g->rows, g->here | (g->parted ? PARTED : 0)))
        g->a->oom = true;
    t = x86_tmp(g);
    m = x86_tmp(g);
    if (g->line && g->fn->line[i->res] & X86_LINE)
        em(g, BR_X_BCASTD, m,
           x86_ctx_at(offsetof(x86_ctx, reach) + 8 * (size_t)g->fn->step[v]));
    else
        em(g, BR_X_BCASTD, m, x86_const(g, (uint32_t)((g->zmm ? 15 : 7) * by)));
    e3(g, BR_X_PADDD, t, a, m);
    if (br_ktinfo_of[type].kind == 'S') {
        e3(g, BR_X_PCMPGTD, t, by > 0 ? a : t, by > 0 ? t : a);
    } else {
        e3(g, BR_X_PMINUD, m, a, t);
        e3(g, BR_X_PXOR, t, m, by > 0 ? a : t); /* zero: that is the smaller */
        e3(g, BR_X_PXOR, m, m, m);
        e3(g, BR_X_PCMPEQD, t, t, m);
        e3(g, BR_X_PCMPEQD, m, m, m);
        e3(g, BR_X_PXOR, t, t, m);
    }
    e2(g, BR_X_MOVMSKPS, RAX, t);
    ei(g, BR_X_TEST32_I, br_x86_reg(RAX), 15);
    ej(g, BR_X_JNE, label);
    x86_drop(g, t);
    x86_drop(g, m);
}
