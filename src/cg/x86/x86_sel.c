/* x86_sel.c - vector instructions for pure operations.
 *
 * x86_select names the function that makes an instruction's code, or NULL where
 * C has to do it (a step). Narrow values are 32-bit lanes extended by zeros; of
 * 64-bit values part 0 has the lanes 0 to 3 of a quarter, part 1 the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

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

static unsigned
constant(gen *g, uint64_t bits, bool wide)
{
    unsigned t = x86_tmp(g);

    em(g, wide ? BR_X_BCASTQ : BR_X_BCASTD, t, x86_const(g, bits));
    return t;
}

static void
mask16(gen *g, unsigned r)
{
    unsigned c = constant(g, 0xffff, false);

    e3(g, BR_X_PAND, r, r, c);
    x86_drop(g, c);
}

/* Lanes of 8 or 16 bits extended to 32. */
static void
extend(gen *g, unsigned d, unsigned a, unsigned bits, bool is_signed)
{
    int by = 32 - (int)bits;

    e2i(g, BR_X_PSLLD_I, d, a, by);
    e2i(g, is_signed ? BR_X_PSRAD_I : BR_X_PSRLD_I, d, d, by);
}

/* The low (or high) halves of 64-bit lanes as 32-bit lanes. */
static void
narrow(gen *g, unsigned d, unsigned lo, unsigned hi, bool high)
{
    if (g->z) {
        x86_z_narrow(g, d, lo, hi, high);
        return;
    }
    e3i(g, BR_X_SHUFPS, d, lo, hi, high ? 0xdd : 0x88);
    e2i(g, BR_X_PERMQ, d, d, 0xd8);
}

/* Part of 32-bit lanes as 64-bit lanes. */
static void
widen(gen *g, unsigned d, unsigned a, unsigned part, bool is_signed)
{
    if (part)
        e2i(g, BR_X_EXTRACT128, d, a, 1);
    e2(g, is_signed ? BR_X_PMOVSXDQ : BR_X_PMOVZXDQ, d, part ? d : a);
}

/* Subnormals become zeros of their sign. */
unsigned
x86_flushed(gen *g, unsigned a)
{
    unsigned t, z;

    if (g->z)
        return x86_z_flushed(g, a);
    t = x86_tmp(g);
    z = x86_tmp(g);
    em(g, BR_X_BCASTD, t, x86_const(g, 0x7f800000));
    e3(g, BR_X_PAND, t, t, a);
    e3(g, BR_X_PXOR, z, z, z);
    e3(g, BR_X_PCMPEQD, t, t, z);
    e2i(g, BR_X_PSRLD_I, t, t, 1);
    e3(g, BR_X_PANDN, t, t, a);
    x86_drop(g, z);
    return t;
}

static unsigned
float_arg(gen *g, const br_kins *i, unsigned n, unsigned part)
{
    unsigned r = use(g, i, n, part);

    return br_kmod(i->mods, BR_KF_FTZ) ? x86_flushed(g, r) : r;
}

void
x86_float_end(gen *g, const br_kins *i, unsigned d)
{
    if (br_kmod(i->mods, BR_KF_FTZ)) {
        unsigned t = x86_flushed(g, d);

        e2(g, BR_X_MOVAPS, d, t);
        x86_drop(g, t);
    }
    if (br_kmod(i->mods, BR_KF_SAT)) {
        unsigned t = x86_tmp(g);
        bool wide = is64(i);

        e3(g, BR_X_PXOR, t, t, t); /* a NaN gives way to the second */
        e3(g, wide ? BR_X_MAXPD : BR_X_MAXPS, d, d, t);
        em(g, wide ? BR_X_BCASTQ : BR_X_BCASTD, t,
           x86_const(g, wide ? 0x3ff0000000000000 : 0x3f800000));
        e3(g, wide ? BR_X_MINPD : BR_X_MINPS, d, d, t);
        x86_drop(g, t);
    }
}

/* ---- one instruction an operation ----------------------------------------- */

static br_x86_op
simple_op(const br_kins *i)
{
    bool q = is64(i), f = br_ktinfo_of[i->type].kind == 'F';

    switch (i->op) {
    case BR_K_ADD:
        return f ? (q ? BR_X_ADDPD : BR_X_ADDPS) : q ? BR_X_PADDQ : BR_X_PADDD;
    case BR_K_SUB:
        return f ? (q ? BR_X_SUBPD : BR_X_SUBPS) : q ? BR_X_PSUBQ : BR_X_PSUBD;
    case BR_K_MUL: return f ? (q ? BR_X_MULPD : BR_X_MULPS) : BR_X_PMULLD;
    case BR_K_DIV: return q ? BR_X_DIVPD : BR_X_DIVPS;
    case BR_K_AND: return BR_X_PAND;
    case BR_K_OR: return BR_X_POR;
    case BR_K_XOR: return BR_X_PXOR;
    case BR_K_MIN:
        return br_ktinfo_of[i->type].kind == 'S' ? BR_X_PMINSD : BR_X_PMINUD;
    default:
        return br_ktinfo_of[i->type].kind == 'S' ? BR_X_PMAXSD : BR_X_PMAXUD;
    }
}

static void
sel_simple(gen *g, const br_kins *i)
{
    unsigned cls = br_ktinfo_of[i->type].cls;
    bool f = br_ktinfo_of[i->type].kind == 'F';

    for (unsigned p = 0; p < parts_of(g, cls); p++) {
        unsigned a = f ? float_arg(g, i, 0, p) : use(g, i, 0, p);
        unsigned b = f ? float_arg(g, i, 1, p) : use(g, i, 1, p), d;

        d = x86_def(g, i->res, p);
        e3(g, simple_op(i), d, a, b);
        if (f)
            x86_float_end(g, i, d);
        else if (cls == BR_KC_B16 && i->op != BR_K_AND && i->op != BR_K_OR &&
                 i->op != BR_K_XOR)
            mask16(g, d);
    }
}

static void
sel_fma(gen *g, const br_kins *i)
{
    bool q = is64(i);

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), b = float_arg(g, i, 1, p);
        unsigned c = float_arg(g, i, 2, p), d = x86_def(g, i->res, p);

        e2(g, BR_X_MOVAPS, d, c);
        e3(g, q ? BR_X_FMADD231PD : BR_X_FMADD231PS, d, a, b);
        x86_float_end(g, i, d);
    }
}

/* rcp of what is over 2^126 is flushed, and with it the product. */
static unsigned
approximate_divisor(gen *g, unsigned b)
{
    unsigned t, m, inf;

    if (g->z)
        return x86_z_divisor(g, b);
    t = x86_tmp(g);
    m = x86_tmp(g);
    inf = constant(g, 0x7f800000, 0);
    em(g, BR_X_BCASTD, t, x86_const(g, 0x7fffffff));
    e3(g, BR_X_PAND, t, t, b);
    em(g, BR_X_BCASTD, m, x86_const(g, 0x7e800000));
    e3(g, BR_X_PCMPGTD, m, t, m);
    e3(g, BR_X_PCMPGTD, t, inf, t);
    e3(g, BR_X_PAND, m, m, t);
    e3(g, BR_X_PAND, t, m, inf);
    e3(g, BR_X_POR, t, t, b); /* exponent all ones: a NaN but for its bits */
    e2i(g, BR_X_PSRLD_I, m, m, 9); /* fraction, where it was replaced */
    e3(g, BR_X_PANDN, t, m, t);
    x86_drop(g, m);
    x86_drop(g, inf);
    return t;
}

static void
sel_div(gen *g, const br_kins *i)
{
    bool near = br_kmod(i->mods, BR_KF_APPROX) == BR_KM_APPROX_APPROX;

    if (!near || is64(i)) {
        sel_simple(g, i);
    } else {
        unsigned a = float_arg(g, i, 0, 0), b = float_arg(g, i, 1, 0);
        unsigned d = x86_def(g, i->res, 0);

        e3(g, BR_X_DIVPS, d, a, approximate_divisor(g, b));
        x86_float_end(g, i, d);
    }
}

static void
sel_rcp(gen *g, const br_kins *i)
{
    bool q = is64(i);

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), d = x86_def(g, i->res, p);
        unsigned one = constant(g, q ? 0x3ff0000000000000 : 0x3f800000, q);

        e3(g, q ? BR_X_DIVPD : BR_X_DIVPS, d, one, a);
        x86_float_end(g, i, d);
    }
}

static void
sel_sqrt(gen *g, const br_kins *i)
{
    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), d = x86_def(g, i->res, p);

        e2(g, is64(i) ? BR_X_SQRTPD : BR_X_SQRTPS, d, a);
        x86_float_end(g, i, d);
    }
}

/* 2^x = 2^n p(r), n whole, |r| <= 1/2: Taylor's polynomial of degree 7, whose
 * error is 2^-27, and 2^n in two factors, as it may be subnormal. */
static void
sel_ex2(gen *g, const br_kins *i)
{
    static const uint32_t p[] = {0x377fe5fe, 0x39218489, 0x3aaec3ff,
                                 0x3c1d955b, 0x3d635847, 0x3e75fdf0,
                                 0x3f317218, 0x3f800000};
    unsigned a = float_arg(g, i, 0, 0), d = x86_def(g, i->res, 0);
    unsigned n = x86_tmp(g), r = x86_tmp(g), c = constant(g, 0x43200000, 0);

    e3(g, BR_X_MINPS, r, c, a); /* 160; a NaN stays, as the second */
    em(g, BR_X_BCASTD, c, x86_const(g, 0xc3200000));
    e3(g, BR_X_MAXPS, r, c, r);
    e2i(g, BR_X_ROUNDPS, n, r, 0);
    e3(g, BR_X_SUBPS, r, r, n);
    e2(g, BR_X_CVTPS2DQ, n, n);
    em(g, BR_X_BCASTD, d, x86_const(g, p[0]));
    for (int k = 1; k < 8; k++) {
        if (g->z) {
            e3m(g, BR_X_ZFMADD213PS_B, d, r, x86_const(g, p[k]));
            continue;
        }
        em(g, BR_X_BCASTD, c, x86_const(g, p[k]));
        e3(g, BR_X_FMADD213PS, d, r, c);
    }
    em(g, BR_X_BCASTD, c, x86_const(g, 127));
    e2i(g, BR_X_PSRAD_I, r, n, 1);
    e3(g, BR_X_PSUBD, n, n, r);
    e3(g, BR_X_PADDD, r, r, c);
    e3(g, BR_X_PADDD, n, n, c);
    e2i(g, BR_X_PSLLD_I, r, r, 23);
    e2i(g, BR_X_PSLLD_I, n, n, 23);
    e3(g, BR_X_MULPS, d, d, r);
    e3(g, BR_X_MULPS, d, d, n);
    x86_float_end(g, i, d);
}

static void
sel_rsqrt(gen *g, const br_kins *i)
{
    unsigned a = float_arg(g, i, 0, 0), d = x86_def(g, i->res, 0);
    unsigned one = constant(g, 0x3f800000, false);

    e2(g, BR_X_SQRTPS, d, a);
    e3(g, BR_X_DIVPS, d, one, d);
    x86_float_end(g, i, d);
}

static void
sel_sign(gen *g, const br_kins *i)
{
    bool q = is64(i), neg = i->op == BR_K_NEG;
    uint64_t sign = q ? 1ull << 63 : 0x80000000;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), d = x86_def(g, i->res, p);
        unsigned s = constant(g, neg ? sign : sign - 1, q);

        e3(g, neg ? BR_X_PXOR : BR_X_PAND, d, a, s);
    }
}

/* A NaN loses, -0 is below +0: x86 gives the second of a pair of either. */
static void
sel_fminmax(gen *g, const br_kins *i)
{
    bool q = is64(i), min = i->op == BR_K_MIN;
    br_x86_op op =
        min ? (q ? BR_X_MINPD : BR_X_MINPS) : (q ? BR_X_MAXPD : BR_X_MAXPS);
    br_x86_op cmp = q ? BR_X_CMPPD : BR_X_CMPPS;
    br_x86_op blend = q ? BR_X_BLENDVPD : BR_X_BLENDVPS;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), b = float_arg(g, i, 1, p);
        unsigned d = x86_def(g, i->res, p), t = x86_tmp(g), e = x86_tmp(g);

        e3(g, op, d, a, b);
        e3i(g, cmp, t, b, b, 3);
        e3i(g, blend, d, d, a, (int)t);
        e3i(g, cmp, e, a, b, 0);
        e3(g, min ? BR_X_POR : BR_X_PAND, t, a, b);
        e3i(g, blend, d, d, t, (int)e);
        x86_drop(g, t);
        x86_drop(g, e);
    }
}

/* ---- integers ------------------------------------------------------------- */

static void
sel_neg(gen *g, const br_kins *i)
{
    bool q = is64(i);

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = use(g, i, 0, p), d = x86_def(g, i->res, p);
        unsigned z = x86_tmp(g);

        e3(g, BR_X_PXOR, z, z, z);
        e3(g, q ? BR_X_PSUBQ : BR_X_PSUBD, d, z, a);
    }
}

static void
sel_abs(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0);

    e2(g, BR_X_PABSD, x86_def(g, i->res, 0), a);
}

static void
sel_mul64(gen *g, const br_kins *i)
{
    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p);
        unsigned d = x86_def(g, i->res, p), t = x86_tmp(g), s = x86_tmp(g);

        e2i(g, BR_X_PSRLQ_I, t, a, 32);
        e3(g, BR_X_PMULUDQ, t, t, b);
        e2i(g, BR_X_PSRLQ_I, s, b, 32);
        e3(g, BR_X_PMULUDQ, s, s, a);
        e3(g, BR_X_PADDQ, t, t, s);
        e2i(g, BR_X_PSLLQ_I, t, t, 32);
        e3(g, BR_X_PMULUDQ, d, a, b);
        e3(g, BR_X_PADDQ, d, d, t);
        x86_drop(g, t);
        x86_drop(g, s);
    }
}

static void
sel_mulhi(gen *g, const br_kins *i)
{
    br_x86_op mul =
        br_ktinfo_of[i->type].kind == 'S' ? BR_X_PMULDQ : BR_X_PMULUDQ;
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0);
    unsigned d = x86_def(g, i->res, 0), t = x86_tmp(g), s = x86_tmp(g);

    e2i(g, BR_X_PSRLQ_I, t, a, 32);
    e2i(g, BR_X_PSRLQ_I, s, b, 32);
    e3(g, mul, t, t, s);
    e3(g, mul, d, a, b);
    e2i(g, BR_X_PSRLQ_I, d, d, 32);
    e3i(g, BR_X_PBLENDD, d, d, t, 0xaa);
}

static void
sel_mulwide(gen *g, const br_kins *i)
{
    bool s = br_ktinfo_of[i->type].kind == 'S';
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0);

    if (br_ktinfo_of[i->type].cls == BR_KC_B16) {
        unsigned d = x86_def(g, i->res, 0), t = x86_tmp(g);

        extend(g, d, a, 16, s);
        extend(g, t, b, 16, s);
        e3(g, BR_X_PMULLD, d, d, t);
        return;
    }
    x86_no_wrap(g, i);
    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned d = x86_def(g, i->res, p), t = x86_tmp(g);

        widen(g, d, a, p, false);
        widen(g, t, b, p, false);
        e3(g, s ? BR_X_PMULDQ : BR_X_PMULUDQ, d, d, t);
        x86_drop(g, t);
    }
}

/* ---- shifts --------------------------------------------------------------- */

static void
shift_right_signed64(gen *g, const br_kins *i, unsigned by)
{
    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p), d = x86_def(g, i->res, p);
        unsigned t = x86_tmp(g);

        e3(g, BR_X_PXOR, t, t, t);
        e3(g, BR_X_PCMPGTQ, t, t, a);
        e2i(g, BR_X_PSRLQ_I, d, a, (int)BR_MIN(by, 64u));
        e2i(g, BR_X_PSLLQ_I, t, t, by < 64 ? 64 - (int)by : 0);
        e3(g, BR_X_POR, d, d, t);
        x86_drop(g, t);
    }
}

static void
sel_shift64(gen *g, const br_kins *i)
{
    bool left = i->op == BR_K_SHL;
    uint32_t n = arg_of(g, i, 1);

    if (is_const(g, n) && !left && br_ktinfo_of[i->type].kind == 'S') {
        shift_right_signed64(g, i,
                             (unsigned)BR_MIN(g->f->vals.at[n].bits, 64u));
        return;
    }
    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p);

        if (is_const(g, n)) {
            e2i(g, left ? BR_X_PSLLQ_I : BR_X_PSRLQ_I, x86_def(g, i->res, p), a,
                (int)BR_MIN(g->f->vals.at[n].bits, 64u));
        } else {
            unsigned c = use(g, i, 1, 0), t = x86_tmp(g);

            widen(g, t, c, p, false);
            e3(g, left ? BR_X_PSLLVQ : BR_X_PSRLVQ, x86_def(g, i->res, p), a,
               t);
            x86_drop(g, t);
        }
    }
}

static void
sel_shift(gen *g, const br_kins *i)
{
    bool left = i->op == BR_K_SHL,
         s = br_ktinfo_of[i->type].kind == 'S' && !left;
    bool narrow16 = br_ktinfo_of[i->type].cls == BR_KC_B16;
    uint32_t n = arg_of(g, i, 1);
    unsigned a = use(g, i, 0, 0), d;

    if (is_const(g, n)) {
        d = x86_def(g, i->res, 0);
        if (narrow16 && s)
            extend(g, d, a, 16, true);
        e2i(g,
            left ? BR_X_PSLLD_I
            : s  ? BR_X_PSRAD_I
                 : BR_X_PSRLD_I,
            d, narrow16 && s ? d : a, (int)BR_MIN(g->f->vals.at[n].bits, 32u));
    } else {
        unsigned c = use(g, i, 1, 0);

        d = x86_def(g, i->res, 0);
        if (narrow16 && s)
            extend(g, d, a, 16, true);
        e3(g,
           left ? BR_X_PSLLVD
           : s  ? BR_X_PSRAVD
                : BR_X_PSRLVD,
           d, narrow16 && s ? d : a, c);
    }
    if (narrow16)
        mask16(g, d);
}

/* Counts of 32 shift everything out, which is what both forms want. */
static void
sel_funnel(gen *g, const br_kins *i)
{
    bool wrap = br_kmod(i->mods, BR_KF_SUB) == BR_KM_WRAP_WRAP;
    bool left = i->op == BR_K_FSHL;
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), c = use(g, i, 2, 0);
    unsigned d = x86_def(g, i->res, 0), n = constant(g, wrap ? 31 : 32, false);
    unsigned back = constant(g, 32, false);

    e3(g, wrap ? BR_X_PAND : BR_X_PMINUD, n, n, c);
    e3(g, BR_X_PSUBD, back, back, n);
    e3(g, BR_X_PSLLVD, d, b, left ? n : back);
    e3(g, BR_X_PSRLVD, n, a, left ? back : n);
    e3(g, BR_X_POR, d, d, n);
}

/* ---- bits ----------------------------------------------------------------- */

/* t: the result for ab = 00 01 10 11, from bit 0. */
static void
boolean2(gen *g, unsigned d, unsigned t, unsigned a, unsigned b)
{
    unsigned ones;

    switch (t) {
    case 0x0: e3(g, BR_X_PXOR, d, d, d); return;
    case 0x8: e3(g, BR_X_PAND, d, a, b); return;
    case 0x4: e3(g, BR_X_PANDN, d, b, a); return;
    case 0x2: e3(g, BR_X_PANDN, d, a, b); return;
    case 0xe: e3(g, BR_X_POR, d, a, b); return;
    case 0x6: e3(g, BR_X_PXOR, d, a, b); return;
    case 0xc: e2(g, BR_X_MOVAPS, d, a); return;
    case 0xa: e2(g, BR_X_MOVAPS, d, b); return;
    default: break;
    }
    boolean2(g, d, ~t & 15, a, b);
    ones = x86_tmp(g);
    e3(g, BR_X_PCMPEQD, ones, ones, ones);
    e3(g, BR_X_PXOR, d, d, ones);
    x86_drop(g, ones);
}

static void
sel_lop3(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), c = use(g, i, 2, 0);
    unsigned d = x86_def(g, i->res, 0), t, no = 0, yes = 0;

    for (unsigned k = 0; k < 4; k++) {
        no |= (unsigned)(i->imm >> (2 * k) & 1) << k;
        yes |= (unsigned)(i->imm >> (2 * k + 1) & 1) << k;
    }
    boolean2(g, d, no, a, b);
    if (yes == no)
        return;
    t = x86_tmp(g);
    boolean2(g, t, yes ^ no, a, b);
    e3(g, BR_X_PAND, t, t, c);
    e3(g, BR_X_PXOR, d, d, t);
}

static void
sel_pack(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0);
    bool q = is64(i);

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned d = x86_def(g, i->res, p), t = x86_tmp(g);

        if (q) {
            widen(g, d, a, p, false);
            widen(g, t, b, p, false);
            e2i(g, BR_X_PSLLQ_I, t, t, 32);
            e3(g, BR_X_POR, d, d, t);
        } else {
            e2i(g, BR_X_PSLLD_I, t, b, 16);
            e3(g, BR_X_POR, d, a, t);
        }
        x86_drop(g, t);
    }
}

static void
sel_unpack(gen *g, const br_kins *i)
{
    unsigned a = use(g, i, 0, 0);
    unsigned lo, hi;

    if (is64(i)) {
        unsigned b = use(g, i, 0, 1);

        lo = x86_def(g, i->res, 0);
        hi = x86_def(g, i->res + 1, 0);
        narrow(g, lo, a, b, false);
        narrow(g, hi, a, b, true);
        return;
    }
    lo = x86_def(g, i->res, 0);
    hi = x86_def(g, i->res + 1, 0);
    e2i(g, BR_X_PSRLD_I, hi, a, 16);
    e2(g, BR_X_MOVAPS, lo, a);
    mask16(g, lo);
}

/* ---- choices -------------------------------------------------------------- */

static void
sel_select(gen *g, const br_kins *i)
{
    unsigned c = use(g, i, 2, 0), cls = br_ktinfo_of[i->type].cls;

    for (unsigned p = 0; p < parts_of(g, cls); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p);
        unsigned d = x86_def(g, i->res, p), m = c;

        if (cls == BR_KC_B64) {
            m = x86_tmp(g);
            widen(g, m, c, p, true);
            e3i(g, BR_X_BLENDVPD, d, b, a, (int)m);
            x86_drop(g, m);
        } else {
            e3i(g, BR_X_BLENDVPS, d, b, a, (int)m);
        }
    }
}

static void
sel_fsetp(gen *g, const br_kins *i)
{
    static const uint8_t of[] = {0,    0x00, 0x0c, 0x11, 0x12, 0x1e, 0x1d, 0x08,
                                 0x04, 0x19, 0x1a, 0x16, 0x15, 0x07, 0x03};
    int cmp = of[br_kmod(i->mods, BR_KF_CMP)];
    bool q = is64(i);
    unsigned t[2] = {0, 0}, d;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = float_arg(g, i, 0, p), b = float_arg(g, i, 1, p);

        t[p] = x86_tmp(g);
        e3i(g, q ? BR_X_CMPPD : BR_X_CMPPS, t[p], a, b, cmp);
    }
    d = x86_def(g, i->res, 0);
    if (q)
        narrow(g, d, t[0], g->uniform ? t[0] : t[1], false);
    else
        e2(g, BR_X_MOVAPS, d, t[0]);
}

/* a > b or a == b, then turned round: le is not gt. */
static void
compare_part(gen *g, const br_kins *i, unsigned t, unsigned a, unsigned b)
{
    unsigned cmp = br_kmod(i->mods, BR_KF_CMP), bits = 0;
    const br_ktinfo *ty = &br_ktinfo_of[i->type];
    bool q = is64(i), eq = cmp == BR_KM_CMP_EQ || cmp == BR_KM_CMP_NE;
    bool swap = cmp == BR_KM_CMP_LT || cmp == BR_KM_CMP_GE;
    bool not =
        cmp == BR_KM_CMP_NE || cmp == BR_KM_CMP_LE || cmp == BR_KM_CMP_GE;
    bool turn = !eq && ty->kind != 'S' && ty->cls != BR_KC_B16;
    unsigned x = a, y = b;

    if (turn)
        bits = constant(g, q ? 1ull << 63 : 0x80000000, q);
    if (turn || (ty->cls == BR_KC_B16 && ty->kind == 'S')) {
        x = x86_tmp(g);
        y = x86_tmp(g);
        if (turn) {
            e3(g, BR_X_PXOR, x, a, bits);
            e3(g, BR_X_PXOR, y, b, bits);
        } else {
            e2i(g, BR_X_PSLLD_I, x, a, 16);
            e2i(g, BR_X_PSLLD_I, y, b, 16);
        }
    }
    e3(g,
       eq  ? (q ? BR_X_PCMPEQQ : BR_X_PCMPEQD)
       : q ? BR_X_PCMPGTQ
           : BR_X_PCMPGTD,
       t, swap ? y : x, swap ? x : y);
    if (x != a) {
        x86_drop(g, x);
        x86_drop(g, y);
    }
    if (turn)
        x86_drop(g, bits);
    if (not ) {
        x = x86_tmp(g);
        e3(g, BR_X_PCMPEQD, x, x, x);
        e3(g, BR_X_PXOR, t, t, x);
        x86_drop(g, x);
    }
}

static void
sel_setp(gen *g, const br_kins *i)
{
    unsigned t[2] = {0, 0}, d;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = use(g, i, 0, p), b = use(g, i, 1, p);

        t[p] = x86_tmp(g);
        compare_part(g, i, t[p], a, b);
    }
    d = x86_def(g, i->res, 0);
    if (is64(i))
        narrow(g, d, t[0], g->uniform ? t[0] : t[1], false);
    else
        e2(g, BR_X_MOVAPS, d, t[0]);
}

/* Four of the lanes as doubles, exactly: an unsigned one below 2^52. */
static unsigned
doubles(gen *g, unsigned a, unsigned part, bool is_signed)
{
    unsigned t = x86_tmp(g), k;

    if (is_signed) {
        if (part)
            e2i(g, BR_X_EXTRACT128, t, a, 1);
        e2(g, BR_X_CVTDQ2PD, t, part ? t : a);
        return t;
    }
    widen(g, t, a, part, false);
    k = constant(g, 0x4330000000000000, true); /* 2^52 */
    e3(g, BR_X_POR, t, t, k);
    e3(g, BR_X_SUBPD, t, t, k);
    x86_drop(g, k);
    return t;
}

/* By doubles: a quotient of 32-bit numbers that is no whole one is further from
 * the next than a rounding. 2^52 (2^52 + 2^51) more, and it stands in the low
 * bits. By zero both are all ones. */
static void
sel_idiv(gen *g, const br_kins *i)
{
    bool is_signed = br_ktinfo_of[i->type].kind == 'S';
    unsigned a = use(g, i, 0, 0), b = use(g, i, 1, 0), q[2], d, t;

    for (unsigned p = 0; p < 2; p++) {
        q[p] = doubles(g, a, p, is_signed);
        t = doubles(g, b, p, is_signed);
        e3(g, BR_X_DIVPD, q[p], q[p], t);
        e2i(g, BR_X_ROUNDPD, q[p], q[p], 3);
        em(g, BR_X_BCASTQ, t,
           x86_const(g, is_signed ? 0x4338000000000000 : 0x4330000000000000));
        e3(g, BR_X_ADDPD, q[p], q[p], t);
        x86_drop(g, t);
    }
    d = x86_def(g, i->res, 0);
    narrow(g, d, q[0], q[1], false);
    t = x86_tmp(g);
    if (i->op == BR_K_REM) {
        e3(g, BR_X_PMULLD, t, d, b);
        e3(g, BR_X_PSUBD, d, a, t);
    }
    e3(g, BR_X_PXOR, t, t, t);
    e3(g, BR_X_PCMPEQD, t, t, b);
    e3(g, BR_X_POR, d, d, t);
}

/* ---- addresses ------------------------------------------------------------ */

static void
sel_window(gen *g, const br_kins *i)
{
    uint64_t w = ki_window(br_kmod(i->mods, BR_KF_SPACE));

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = use(g, i, 0, p), d = x86_def(g, i->res, p), t;

        if (w == 0) {
            e2(g, BR_X_MOVAPS, d, a);
            continue;
        }
        t = constant(g, w, true);
        e3(g, i->op == BR_K_TOGEN ? BR_X_PADDQ : BR_X_PSUBQ, d, a, t);
        x86_drop(g, t);
    }
}

/* ---- the choice ----------------------------------------------------------- */

static x86_sel
select_float(const br_kins *i)
{
    unsigned rnd = br_kmod(i->mods, BR_KF_RND);
    unsigned near = br_kmod(i->mods, BR_KF_APPROX);
    bool f32 = i->type == BR_KT_F32;

    if ((!f32 && i->type != BR_KT_F64) || rnd > BR_KM_RND_RN ||
        br_kmod(i->mods, BR_KF_RELU) || br_kmod(i->mods, BR_KF_NAN) ||
        br_kmod(i->mods, BR_KF_XABS) ||
        (!f32 && (near || br_kmod(i->mods, BR_KF_FTZ))))
        return NULL;
    switch (i->op) {
    case BR_K_ADD:
    case BR_K_SUB:
    case BR_K_MUL: return sel_simple;
    case BR_K_FMA: return sel_fma;
    case BR_K_DIV: return sel_div;
    case BR_K_RCP: return sel_rcp;
    case BR_K_SQRT: return sel_sqrt;
    case BR_K_RSQRT: return f32 ? sel_rsqrt : NULL;
    case BR_K_EX2: return f32 ? sel_ex2 : NULL;
    case BR_K_NEG:
    case BR_K_ABS: return sel_sign;
    case BR_K_MIN:
    case BR_K_MAX: return sel_fminmax;
    case BR_K_SETP: return sel_fsetp;
    default: return NULL;
    }
}

static x86_sel
select_int(const gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    bool q = t->cls == BR_KC_B64, h = t->cls == BR_KC_B16;

    if (br_kmod(i->mods, BR_KF_SAT) || t->lanes != 1 || t->bytes == 1)
        return NULL;
    switch (i->op) {
    case BR_K_ADD:
    case BR_K_SUB: return sel_simple;
    case BR_K_MUL: return q ? sel_mul64 : sel_simple;
    case BR_K_MULHI: return q || h ? NULL : sel_mulhi;
    case BR_K_DIV:
    case BR_K_REM: return q || h ? NULL : sel_idiv;
    case BR_K_MULWIDE: return sel_mulwide;
    case BR_K_MIN:
    case BR_K_MAX: return q || (h && t->kind == 'S') ? NULL : sel_simple;
    case BR_K_NEG: return h ? NULL : sel_neg;
    case BR_K_ABS: return q || h || t->kind != 'S' ? NULL : sel_abs;
    case BR_K_SHL: return q ? sel_shift64 : sel_shift;
    case BR_K_SHR:
        if (!q)
            return sel_shift;
        return t->kind == 'S' && !is_const(g, arg_of(g, i, 1)) ? NULL
                                                               : sel_shift64;
    case BR_K_SETP: return sel_setp;
    default: return NULL;
    }
}

x86_sel
x86_select(const gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];

    switch (i->op) {
    case BR_K_AND:
    case BR_K_OR:
    case BR_K_XOR: return sel_simple;
    case BR_K_SELECT: return sel_select;
    case BR_K_LOP3: return sel_lop3;
    case BR_K_FSHL:
    case BR_K_FSHR: return sel_funnel;
    case BR_K_PACK: return sel_pack;
    case BR_K_UNPACK: return sel_unpack;
    case BR_K_CVT: return x86_select_cvt(i);
    case BR_K_BFE:
    case BR_K_POPC:
    case BR_K_DP4A:
    case BR_K_PRMT: return x86_select_bytes(g, i);
    case BR_K_TOGEN:
    case BR_K_FROMGEN: return sel_window;
    case BR_K_LD:
    case BR_K_ST: return x86_select_mem(g, i);
    default: break;
    }
    if (!br_kevals((br_kop)i->op))
        return NULL;
    return t->kind == 'F' ? select_float(i) : select_int(g, i);
}
