/* x86_zmm.c - 16 lanes at a time: what AVX-512 does in another way than AVX2.
 *
 * Most instructions on 8 lanes have a twin on 16, which x86_reg.c writes in
 * their place. What differs is here: predicates are masks, so comparisons,
 * choices and all that the lanes decide; halves of 64-bit lanes are picked by
 * one permutation; any boolean function of three is an instruction, and so are
 * conversions of unsigned numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"
#include "cg/x86/x86_row.h"

#include <string.h>

static const uint16_t twins[BR_X_COUNT] = {
#define T(op) [BR_X_##op] = BR_X_Z##op
    T(MOVUPS_L),
    T(MOVUPS_S),
    T(MOVAPS),
    T(MOVUPS_LX),
    T(MOVQ_RX),
    T(MOVD_XR),
    T(MOVD_RX),
    T(MOVQ_XR),
    T(MOVHPS_L),
    T(MOVHPS_S),
    T(BCASTD),
    T(BCASTQ),
    T(PMOVZXDQ),
    T(PMOVSXDQ),
    T(PMOVZXWD),
    T(PMOVZXBD),
    T(PUNPCKLQDQ),
    T(PSHUFB),
    T(PADDD),
    T(PADDQ),
    T(PSUBD),
    T(PSUBQ),
    T(PMULLD),
    T(PMULUDQ),
    T(PMULDQ),
    T(PAND),
    T(PANDN),
    T(POR),
    T(PXOR),
    T(PMINSD),
    T(PMINUD),
    T(PMAXSD),
    T(PMAXUD),
    T(PMADDWD),
    T(PSLLVD),
    T(PSRLVD),
    T(PSRAVD),
    T(PSLLVQ),
    T(PSRLVQ),
    T(PABSD),
    T(PSLLD_I),
    T(PSRLD_I),
    T(PSRAD_I),
    T(PSLLQ_I),
    T(PSRLQ_I),
    T(PSLLW_I),
    T(PSRLW_I),
    T(PSRAW_I),
    T(ADDPS),
    T(ADDPD),
    T(SUBPS),
    T(SUBPD),
    T(MULPS),
    T(MULPD),
    T(DIVPS),
    T(DIVPD),
    T(MINPS),
    T(MINPD),
    T(MAXPS),
    T(MAXPD),
    T(FMADD231PS),
    T(FMADD231PD),
    T(FMADD213PS),
    T(SQRTPS),
    T(SQRTPD),
    T(CVTDQ2PS),
    T(CVTTPS2DQ),
    T(CVTPS2DQ),
    T(ROUNDPS),
    T(ROUNDPD),
    T(CVTDQ2PD),
    T(CVTPS2PD),
    T(CVTPD2PS),
    T(CVTPH2PS),
    T(CVTPS2PH),
#undef T
    /* the upper half */
    [BR_X_EXTRACT128] = BR_X_ZEXTRACT256,
    [BR_X_INSERT128] = BR_X_ZINSERT256,
};

/* Those on general registers stay. */
br_x86_op
x86_twin(br_x86_op op)
{
    br_assert((twins[op] || br_x86_rows[op].enc != BR_X_VEX ||
               !strchr(br_x86_rows[op].ops, 'y')) &&
              "8 lanes among 16");
    return twins[op] ? (br_x86_op)twins[op] : op;
}

static bool
is64(const br_kins *i)
{
    return br_ktinfo_of[i->type].cls == BR_KC_B64;
}

static unsigned
use(gen *g, const br_kins *i, unsigned n, unsigned part)
{
    return x86_use(g, arg_of(g, i, n), part);
}

static void
put4(gen *g, br_x86_op op, unsigned d, unsigned a, unsigned b, unsigned k)
{
    br_x86_put(g->a, op,
               (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a), br_x86_reg(b),
                              br_x86_reg(k)});
}

static unsigned
constant(gen *g, uint64_t bits, bool wide)
{
    unsigned t = x86_tmp(g);

    em(g, wide ? BR_X_BCASTQ : BR_X_BCASTD, t, x86_const(g, bits));
    return t;
}

/* A float argument; x86_sel.c's. */
static unsigned
float_arg(gen *g, const br_kins *i, unsigned n, unsigned part)
{
    unsigned r = use(g, i, n, part);

    return br_kmod(i->mods, BR_KF_FTZ) ? x86_z_flushed(g, r) : r;
}

/* The low (or high) halves of 64-bit lanes as 32-bit lanes. d is none of them. */
void
x86_z_narrow(gen *g, unsigned d, unsigned lo, unsigned hi, bool high)
{
    em(g, BR_X_MOVUPS_L, d,
       x86_ctx_at(high ? offsetof(x86_ctx, odds) : offsetof(x86_ctx, evens)));
    e3(g, BR_X_ZPERMI2D, d, lo, hi);
}

/* Subnormals become zeros of their sign. */
unsigned
x86_z_flushed(gen *g, unsigned a)
{
    unsigned t = constant(g, 0x80000000, false), k = x86_ktmp(g);

    e3m(g, BR_X_ZPTESTNMD_B, k, a, x86_const(g, 0x7f800000));
    e3(g, BR_X_PAND, t, t, a);
    put4(g, BR_X_ZBLENDD, t, a, t, k);
    x86_kdrop(g, k);
    return t;
}

/* As x86_sel.c has it: over 2^126 it is infinite. */
unsigned
x86_z_divisor(gen *g, unsigned b)
{
    unsigned t = constant(g, 0x7fffffff, false), m = x86_tmp(g);
    unsigned k = x86_ktmp(g), c = x86_ktmp(g);

    e3(g, BR_X_PAND, t, t, b);
    em(g, BR_X_BCASTD, m, x86_const(g, 0x7e800000));
    e3i(g, BR_X_ZPCMPUD, k, t, m, 6);
    em(g, BR_X_BCASTD, m, x86_const(g, 0x7f800000));
    e3i(g, BR_X_ZPCMPUD, c, t, m, 1);
    e3(g, BR_X_KANDW, k, k, c);
    e3(g, BR_X_POR, t, b, m);
    em(g, BR_X_BCASTD, m, x86_const(g, 0xff800000));
    e3(g, BR_X_PAND, t, t, m);
    put4(g, BR_X_ZBLENDD, t, b, t, k);
    x86_drop(g, m);
    x86_kdrop(g, k);
    x86_kdrop(g, c);
    return t;
}

/* ---- predicates ----------------------------------------------------------- */

static void
z_logic(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0);

    e3(g,
       i->op == BR_K_AND  ? BR_X_KANDW
       : i->op == BR_K_OR ? BR_X_KORW
                          : BR_X_KXORW,
       x86_def(g, i->res, 0), a, b);
}

/* Masks of 8 lanes each, part 1 in k[1]. */
static void
end_compare(gen *g, const br_kins *i, const unsigned *k)
{
    if (is64(i)) {
        e3(g, BR_X_KUNPCKBW, k[2], k[1], k[0]);
        x86_kdrop(g, k[0]);
        x86_kdrop(g, k[1]);
    }
}

static void
z_fsetp(gen *g, const br_kins *i)
{
    static const uint8_t of[] = {0,    0x00, 0x0c, 0x11, 0x12, 0x1e, 0x1d, 0x08,
                                 0x04, 0x19, 0x1a, 0x16, 0x15, 0x07, 0x03};
    int cmp = of[br_kmod(i->mods, BR_KF_CMP)];
    bool q = is64(i);
    unsigned k[3] = {0, 0, x86_def(g, i->res, 0)};

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), b = float_arg(g, i, 1, p);

        k[p] = q ? x86_ktmp(g) : k[2];
        e3i(g, q ? BR_X_ZCMPPD : BR_X_ZCMPPS, k[p], a, b, cmp);
    }
    end_compare(g, i, k);
}

static int
compare_imm(unsigned cmp)
{
    switch (cmp) {
    case BR_KM_CMP_EQ: return 0;
    case BR_KM_CMP_NE: return 4;
    case BR_KM_CMP_LT: return 1;
    case BR_KM_CMP_LE: return 2;
    case BR_KM_CMP_GT: return 6;
    default: return 5;
    }
}

static void
z_setp(gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    int imm = compare_imm(br_kmod(i->mods, BR_KF_CMP));
    bool q = is64(i), s = t->kind == 'S', shift = s && t->cls == BR_KC_B16;
    unsigned k[3] = {0, 0, x86_def(g, i->res, 0)};
    br_x86_op op =
        s ? (q ? BR_X_ZPCMPQ : BR_X_ZPCMPD) : (q ? BR_X_ZPCMPUQ : BR_X_ZPCMPUD);

    for (unsigned p = 0; p < parts_of(g, t->cls); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p), x = a, y = b;

        if (shift) {
            x = x86_tmp(g);
            y = x86_tmp(g);
            e2i(g, BR_X_PSLLD_I, x, a, 16);
            e2i(g, BR_X_PSLLD_I, y, b, 16);
        }
        k[p] = q ? x86_ktmp(g) : k[2];
        e3i(g, op, k[p], x, y, imm);
    }
    end_compare(g, i, k);
}

static void
z_select_mask(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), c = use(g, i, 2, 0);
    unsigned d = x86_def(g, i->res, 0), t = x86_ktmp(g);

    e3(g, BR_X_KANDW, t, c, a);
    e3(g, BR_X_KANDNW, d, c, b);
    e3(g, BR_X_KORW, d, d, t);
    x86_kdrop(g, t);
}

static void
z_select(gen *g, const br_kins *i)
{
    unsigned c = use(g, i, 2, 0), cls = br_ktinfo_of[i->type].cls;

    for (unsigned p = 0; p < parts_of(g, cls); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p);
        unsigned d = x86_def(g, i->res, p), k = c;

        if (p) {
            k = x86_ktmp(g);
            e2i(g, BR_X_KSHIFTRW, k, c, 8);
        }
        put4(g, cls == BR_KC_B64 ? BR_X_ZBLENDQ : BR_X_ZBLENDD, d, b, a, k);
    }
}

/* ---- floats --------------------------------------------------------------- */

/* A NaN loses, -0 is below +0. */
static void
z_fminmax(gen *g, const br_kins *i)
{
    bool q = is64(i), min = i->op == BR_K_MIN;
    br_x86_op op =
        min ? (q ? BR_X_MINPD : BR_X_MINPS) : (q ? BR_X_MAXPD : BR_X_MAXPS);
    br_x86_op cmp = q ? BR_X_ZCMPPD : BR_X_ZCMPPS;
    br_x86_op blend = q ? BR_X_ZBLENDQ : BR_X_ZBLENDD;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), b = float_arg(g, i, 1, p);
        unsigned d = x86_def(g, i->res, p), t = x86_tmp(g), k = x86_ktmp(g);

        e3(g, op, d, a, b);
        e3i(g, cmp, k, b, b, 3);
        put4(g, blend, d, d, a, k);
        e3i(g, cmp, k, a, b, 0);
        e3(g, min ? BR_X_POR : BR_X_PAND, t, a, b);
        put4(g, blend, d, d, t, k);
        x86_drop(g, t);
        x86_kdrop(g, k);
    }
}

/* ---- whole numbers -------------------------------------------------------- */

static void
z_mul64(gen *g, const br_kins *i)
{
    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p);

        e3(g, BR_X_ZPMULLQ, x86_def(g, i->res, p), a, b);
    }
}

static void
z_mulhi(gen *g, const br_kins *i)
{
    br_x86_op mul =
        br_ktinfo_of[i->type].kind == 'S' ? BR_X_PMULDQ : BR_X_PMULUDQ;
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0);
    unsigned d = x86_def(g, i->res, 0), t = x86_tmp(g), s = x86_tmp(g);
    unsigned k = x86_ktmp(g);

    e2i(g, BR_X_PSRLQ_I, t, a, 32);
    e2i(g, BR_X_PSRLQ_I, s, b, 32);
    e3(g, mul, t, t, s);
    e3(g, mul, d, a, b);
    e2i(g, BR_X_PSRLQ_I, d, d, 32);
    em(g, BR_X_KMOVW, k, x86_const(g, 0xaaaa));
    put4(g, BR_X_ZBLENDD, d, d, t, k);
}

static void
z_shift_right64(gen *g, const br_kins *i)
{
    uint64_t by = g->f->vals.at[arg_of(g, i, 1)].bits;

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p);

        e2i(g, BR_X_ZPSRAQ_I, x86_def(g, i->res, p), a,
            (int)BR_MIN(by, (uint64_t)63));
    }
}

static void
z_lop3(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), c = use(g, i, 2, 0);
    unsigned d = x86_def(g, i->res, 0);

    e2(g, BR_X_MOVAPS, d, a);
    e3i(g, BR_X_ZPTERNLOGD, d, b, c, (int)(i->imm & 0xff));
}

/* By doubles, as in x86_sel.c; of what does not fit the low bits are those. */
static void
z_idiv(gen *g, const br_kins *i)
{
    bool s = br_ktinfo_of[i->type].kind == 'S';
    br_x86_op to = s ? BR_X_ZCVTDQ2PD : BR_X_ZCVTUDQ2PD;
    br_x86_op back = s ? BR_X_ZCVTTPD2DQ : BR_X_ZCVTTPD2UDQ;
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), d, k, q[2], t;

    for (unsigned p = 0; p < 2; p++) {
        q[p] = x86_tmp(g);
        t = x86_tmp(g);
        if (p) {
            e2i(g, BR_X_ZEXTRACT256, q[p], a, 1);
            e2i(g, BR_X_ZEXTRACT256, t, b, 1);
        }
        e2(g, to, q[p], p ? q[p] : a);
        e2(g, to, t, p ? t : b);
        e3(g, BR_X_DIVPD, q[p], q[p], t);
        e2(g, back, q[p], q[p]);
        x86_drop(g, t);
    }
    d = x86_def(g, i->res, 0);
    t = x86_tmp(g);
    k = x86_ktmp(g);
    e3i(g, BR_X_ZINSERT256, d, q[0], q[1], 1);
    if (i->op == BR_K_REM) {
        e3(g, BR_X_PMULLD, t, d, b);
        e3(g, BR_X_PSUBD, d, a, t);
    }
    x86_ones(g, t);
    e3(g, BR_X_ZPTESTNMD, k, b, b);
    put4(g, BR_X_ZBLENDD, d, d, t, k);
}

/* ---- conversions ---------------------------------------------------------- */

static void
z_u32_to_f32(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0);

    e2(g, BR_X_ZCVTUDQ2PS, x86_def(g, i->res, 0), a);
}

/* Too large is 7fffffff, a NaN 0. */
static void
z_f32_to_s32(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    unsigned rnd = br_kmod(i->mods, BR_KF_RND), k = x86_ktmp(g);
    unsigned a = float_arg(g, i, 0, 0), d = x86_def(g, i->res, 0);
    unsigned t = x86_tmp(g), c = constant(g, 0x4f000000, false); /* 2^31 */

    e2i(g, BR_X_ROUNDPS, t, a, mode[rnd]);
    e2(g, BR_X_CVTTPS2DQ, d, t);
    e3i(g, BR_X_ZCMPPS, k, t, c, 0x1d);
    em(g, BR_X_BCASTD, c, x86_const(g, 0x7fffffff));
    put4(g, BR_X_ZBLENDD, d, d, c, k);
    e3i(g, BR_X_ZCMPPS, k, a, a, 7);
    br_x86_put(g->a, BR_X_ZMOVAPS_Z,
               (br_x86_arg[]){br_x86_reg(d), br_x86_reg(d), br_x86_reg(k)});
}

/* What is below zero, or a NaN, is 0; too large, all ones. */
static void
z_f32_to_u32(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    unsigned a = float_arg(g, i, 0, 0), d = x86_def(g, i->res, 0);
    unsigned t = x86_tmp(g), zero = x86_tmp(g);

    e3(g, BR_X_PXOR, zero, zero, zero);
    e2i(g, BR_X_ROUNDPS, t, a, mode[br_kmod(i->mods, BR_KF_RND)]);
    e3(g, BR_X_MAXPS, t, t, zero);
    e2(g, BR_X_ZCVTTPS2UDQ, d, t);
    x86_drop(g, t);
    x86_drop(g, zero);
}

static void
z_f16_to_f32(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), d = x86_def(g, i->res, 0);

    e2(g, BR_X_ZPMOVDW, d, a);
    e2(g, BR_X_CVTPH2PS, d, d);
}

static x86_sel
select_cvt(const br_kins *i)
{
    const br_ktinfo *from = &br_ktinfo_of[i->type2];

    if (i->type == BR_KT_F32 && i->type2 == BR_KT_F16)
        return z_f16_to_f32;
    if (i->type == BR_KT_F32 && from->kind != 'F')
        return from->kind != 'S' && from->bytes == 4 ? z_u32_to_f32 : NULL;
    if (i->type2 != BR_KT_F32)
        return NULL;
    return i->type == BR_KT_S32   ? z_f32_to_s32
           : i->type == BR_KT_U32 ? z_f32_to_u32
                                  : NULL;
}

/* ---- the choice ----------------------------------------------------------- */

x86_sel
x86_select_z(const gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    bool f = t->kind == 'F', q = t->cls == BR_KC_B64;

    switch (i->op) {
    case BR_K_AND:
    case BR_K_OR:
    case BR_K_XOR: return t->cls == BR_KC_PRED ? z_logic : NULL;
    case BR_K_SELECT: return t->cls == BR_KC_PRED ? z_select_mask : z_select;
    case BR_K_SETP: return f ? z_fsetp : z_setp;
    case BR_K_MIN:
    case BR_K_MAX: return f ? z_fminmax : NULL;
    case BR_K_MUL: return !f && q ? z_mul64 : NULL;
    case BR_K_MULHI: return z_mulhi;
    case BR_K_DIV:
    case BR_K_REM: return f ? NULL : z_idiv;
    case BR_K_SHR:
        return q && t->kind == 'S' && is_const(g, arg_of(g, i, 1))
                   ? z_shift_right64
                   : NULL;
    case BR_K_LOP3: return z_lop3;
    case BR_K_CVT: return select_cvt(i);
    default: return NULL;
    }
}
