/* x86_cvt.c - vector code for conversions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

static unsigned
constant(gen *g, uint64_t bits)
{
    unsigned t = x86_tmp(g);

    em(g, BR_X_BCASTD, t, x86_const(g, bits));
    return t;
}

static unsigned
constant64(gen *g, uint64_t bits)
{
    unsigned t = x86_tmp(g);

    em(g, BR_X_BCASTQ, t, x86_const(g, bits));
    return t;
}

static void
narrow(gen *g, unsigned d, unsigned lo, unsigned hi)
{
    if (g->z) {
        x86_z_narrow(g, d, lo, hi, false);
        return;
    }
    e3i(g, BR_X_SHUFPS, d, lo, hi, 0x88);
    e2i(g, BR_X_PERMQ, d, d, 0xd8);
}

/* The source as 32-bit lanes: extended where it is narrower, cut where it is
 * wider. */
static unsigned
lanes32(gen *g, const br_kins *i)
{
    const br_ktinfo *from = &br_ktinfo_of[i->type2];
    uint32_t v = arg_of(g, i, 0);
    unsigned a = x86_use(g, v, 0), t;
    int by = 32 - 8 * from->bytes;

    if (from->bytes == 4)
        return a;
    t = x86_tmp(g);
    if (from->bytes == 8) {
        narrow(g, t, a, x86_use(g, v, 1));
        return t;
    }
    e2i(g, BR_X_PSLLD_I, t, a, by);
    e2i(g, from->kind == 'S' ? BR_X_PSRAD_I : BR_X_PSRLD_I, t, t, by);
    return t;
}

/* A float to convert. */
static unsigned
float_arg(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0);

    return br_kmod(i->mods, BR_KF_FTZ) ? x86_flushed(g, a) : a;
}

static void
sel_int(gen *g, const br_kins *i)
{
    const br_ktinfo *from = &br_ktinfo_of[i->type2];
    const br_ktinfo *to = &br_ktinfo_of[i->type];
    unsigned x, d;

    if (to->bytes == 8 && from->bytes == 8) {
        for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
            x = x86_use(g, arg_of(g, i, 0), p);
            e2(g, BR_X_MOVAPS, x86_def(g, i->res, p), x);
        }
        return;
    }
    x = lanes32(g, i);
    if (to->bytes == 8) {
        x86_no_wrap(g, i);
        for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
            d = x86_def(g, i->res, p);
            if (p)
                e2i(g, BR_X_EXTRACT128, d, x, 1);
            e2(g, from->kind == 'S' ? BR_X_PMOVSXDQ : BR_X_PMOVZXDQ, d,
               p ? d : x);
        }
        return;
    }
    d = x86_def(g, i->res, 0);
    if (to->bytes == 4) {
        e2(g, BR_X_MOVAPS, d, x);
        return;
    }
    e2i(g, BR_X_PSLLD_I, d, x, 32 - 8 * to->bytes);
    e2i(g, to->kind == 'S' ? BR_X_PSRAD_I : BR_X_PSRLD_I, d, d,
        32 - 8 * to->bytes);
    if (to->kind == 'S') { /* its class has 16 bits */
        e2i(g, BR_X_PSLLD_I, d, d, 16);
        e2i(g, BR_X_PSRLD_I, d, d, 16);
    }
}

/* Unsigned: two halves, put together by one rounding. */
static void
sel_to_f32(gen *g, const br_kins *i)
{
    unsigned x = lanes32(g, i), d = x86_def(g, i->res, 0), hi, k;

    if (br_ktinfo_of[i->type2].kind == 'S' ||
        br_ktinfo_of[i->type2].bytes < 4) {
        e2(g, BR_X_CVTDQ2PS, d, x);
        return;
    }
    hi = x86_tmp(g);
    k = constant(g, 0xffff);
    e3(g, BR_X_PAND, d, x, k);
    e2i(g, BR_X_PSRLD_I, hi, x, 16);
    e2(g, BR_X_CVTDQ2PS, d, d);
    e2(g, BR_X_CVTDQ2PS, hi, hi);
    em(g, BR_X_BCASTD, k, x86_const(g, 0x47800000)); /* 65536 */
    e3(g, BR_X_FMADD231PS, d, hi, k);
}

/* Of 32 bits, exactly: an unsigned one below 2^52 stands in its low bits. */
static void
sel_to_f64(gen *g, const br_kins *i)
{
    const br_ktinfo *from = &br_ktinfo_of[i->type2];
    unsigned x = lanes32(g, i);

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned d = x86_def(g, i->res, p), k;

        if (p)
            e2i(g, BR_X_EXTRACT128, d, x, 1);
        if (from->kind == 'S' || from->bytes < 4) {
            e2(g, BR_X_CVTDQ2PD, d, p ? d : x);
            continue;
        }
        e2(g, BR_X_PMOVZXDQ, d, p ? d : x);
        k = constant64(g, 0x4330000000000000); /* 2^52 */
        e3(g, BR_X_POR, d, d, k);
        e3(g, BR_X_SUBPD, d, d, k);
        x86_drop(g, k);
    }
}

/* Of 64 bits: both halves exactly, low ones above 2^52, high ones above 2^84, put
 * together by one rounding. A signed one is counted from -2^63 on. */
static void
sel_wide_to_f64(gen *g, const br_kins *i)
{
    bool is_signed = br_ktinfo_of[i->type2].kind == 'S';

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned x = x86_use(g, arg_of(g, i, 0), p);
        unsigned d = x86_def(g, i->res, p), lo = x86_tmp(g);
        unsigned k = constant64(g, 0xffffffff);

        e3(g, BR_X_PAND, lo, x, k);
        em(g, BR_X_BCASTQ, k, x86_const(g, 0x4330000000000000));
        e3(g, BR_X_POR, lo, lo, k);
        em(g, BR_X_BCASTQ, k, x86_const(g, 1ull << 63));
        if (is_signed)
            e3(g, BR_X_PXOR, d, x, k);
        e2i(g, BR_X_PSRLQ_I, d, is_signed ? d : x, 32);
        em(g, BR_X_BCASTQ, k, x86_const(g, 0x4530000000000000));
        e3(g, BR_X_POR, d, d, k);
        em(g, BR_X_BCASTQ, k,
           x86_const(g, is_signed ? 0x4530000080100000 : 0x4530000000100000));
        e3(g, BR_X_SUBPD, d, d, k);
        e3(g, BR_X_ADDPD, d, d, lo);
        x86_drop(g, lo);
        x86_drop(g, k);
    }
}

/* Too large and too small are the last there are, and a NaN is the smallest; with
 * 2^52 + 2^51 more it stands in the low bits. */
static void
sel_f64_to_s32(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    unsigned m = mode[br_kmod(i->mods, BR_KF_RND)], t[2] = {0, 0}, d;

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned a = x86_use(g, arg_of(g, i, 0), p);
        unsigned k = constant64(g, 0xc1e0000000000000); /* -2^31 */

        t[p] = x86_tmp(g);
        e2i(g, BR_X_ROUNDPD, t[p], a, (int)m);
        e3(g, BR_X_MAXPD, t[p], t[p], k);
        em(g, BR_X_BCASTQ, k, x86_const(g, 0x41dfffffffc00000));
        e3(g, BR_X_MINPD, t[p], t[p], k);
        em(g, BR_X_BCASTQ, k, x86_const(g, 0x4338000000000000));
        e3(g, BR_X_ADDPD, t[p], t[p], k);
        x86_drop(g, k);
    }
    d = x86_def(g, i->res, 0);
    narrow(g, d, t[0], g->uniform ? t[0] : t[1]);
    x86_drop(g, t[0]);
    if (!g->uniform)
        x86_drop(g, t[1]);
}

static void
sel_f32_to_s32(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    unsigned rnd = br_kmod(i->mods, BR_KF_RND);
    unsigned a = float_arg(g, i), d = x86_def(g, i->res, 0);
    unsigned t = x86_tmp(g), k = constant(g, 0x4f000000); /* 2^31 */

    e2i(g, BR_X_ROUNDPS, t, a, mode[rnd]);
    e2(g, BR_X_CVTTPS2DQ, d, t);
    e3i(g, BR_X_CMPPS, k, t, k, 0x1d); /* too large: 80000000, turned round */
    e3(g, BR_X_PXOR, d, d, k);
    e3i(g, BR_X_CMPPS, t, a, a, 7);
    e3(g, BR_X_PAND, d, d, t);
}

/* From 2^31 on less by that, as a signed one, which is negative where it is too
 * large; below zero, and a NaN, is 0. */
static void
sel_f32_to_u32(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    unsigned a = float_arg(g, i), d = x86_def(g, i->res, 0);
    unsigned t = x86_tmp(g), w = x86_tmp(g), s = x86_tmp(g);
    unsigned k = constant(g, 0x4f000000); /* 2^31 */

    e3(g, BR_X_PXOR, w, w, w);
    e2i(g, BR_X_ROUNDPS, t, a, mode[br_kmod(i->mods, BR_KF_RND)]);
    e3(g, BR_X_MAXPS, t, t, w);
    e3(g, BR_X_SUBPS, w, t, k);
    e2(g, BR_X_CVTTPS2DQ, d, t);
    e2(g, BR_X_CVTTPS2DQ, w, w);
    e3i(g, BR_X_CMPPS, t, t, k, 0x1d); /* at least */
    e2i(g, BR_X_PSRAD_I, s, w, 31);
    em(g, BR_X_BCASTD, k, x86_const(g, 0x80000000));
    e3(g, BR_X_PXOR, w, w, k);
    e3(g, BR_X_POR, w, w, s);
    e3i(g, BR_X_BLENDVPS, d, d, w, (int)t);
    x86_drop(g, t);
    x86_drop(g, w);
    x86_drop(g, s);
    x86_drop(g, k);
}

/* Of 8 and 16 bits: what is too large or too small is so as a float, too. A NaN
 * is 0: it gives way to the second of MAXPS and of MINPS. */
static void
sel_f32_to_narrow(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {3, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    /* 65535, 32767; 255, 127 */
    static const uint32_t most[2][2] = {{0x477fff00, 0x46fffe00},
                                        {0x437f0000, 0x42fe0000}};
    const br_ktinfo *to = &br_ktinfo_of[i->type];
    bool is_signed = to->kind == 'S', byte = to->bytes == 1;
    unsigned a = float_arg(g, i), d = x86_def(g, i->res, 0);
    unsigned t = x86_tmp(g), k = x86_tmp(g);

    e3(g, BR_X_PXOR, k, k, k);
    e3(g, BR_X_MAXPS, t, a, k);
    if (is_signed) {
        e3(g, BR_X_MINPS, k, a, k);
        e3(g, BR_X_ADDPS, t, t, k); /* one of them is 0 */
    }
    e2i(g, BR_X_ROUNDPS, t, t, mode[br_kmod(i->mods, BR_KF_RND)]);
    if (is_signed) { /* -128, -32768 */
        em(g, BR_X_BCASTD, k, x86_const(g, byte ? 0xc3000000u : 0xc7000000u));
        e3(g, BR_X_MAXPS, t, t, k);
    }
    em(g, BR_X_BCASTD, k, x86_const(g, most[byte][is_signed]));
    e3(g, BR_X_MINPS, t, t, k);
    e2(g, BR_X_CVTTPS2DQ, d, t);
    if (is_signed) { /* its class has 16 bits */
        e2i(g, BR_X_PSLLD_I, d, d, 16);
        e2i(g, BR_X_PSRLD_I, d, d, 16);
    }
    x86_drop(g, t);
    x86_drop(g, k);
}

static void
sel_round(gen *g, const br_kins *i)
{
    static const uint8_t mode[] = {0, 0, 3, 1, 2, 0, 0, 3, 1, 2};
    int m = mode[br_kmod(i->mods, BR_KF_RND)];
    bool q = i->type == BR_KT_F64;

    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = q ? x86_use(g, arg_of(g, i, 0), p) : float_arg(g, i);
        unsigned d = x86_def(g, i->res, p);

        e2i(g, q ? BR_X_ROUNDPD : BR_X_ROUNDPS, d, a, m);
        x86_float_end(g, i, d);
    }
}

/* cvt.sat.f32.f32, which is __saturatef, and cvt.ftz.f32.f32. */
static void
sel_same(gen *g, const br_kins *i)
{
    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = x86_use(g, arg_of(g, i, 0), p);
        unsigned d = x86_def(g, i->res, p);

        e2(g, BR_X_MOVAPS, d, a);
        x86_float_end(g, i, d);
    }
}

static void
sel_f32_to_f64(gen *g, const br_kins *i)
{
    unsigned a = float_arg(g, i);

    for (unsigned p = 0; p < parts_of(g, BR_KC_B64); p++) {
        unsigned d = x86_def(g, i->res, p);

        if (p)
            e2i(g, BR_X_EXTRACT128, d, a, 1);
        e2(g, BR_X_CVTPS2PD, d, p ? d : a);
    }
}

static void
sel_f64_to_f32(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0);
    unsigned b = x86_use(g, arg_of(g, i, 0), 1);
    unsigned d = x86_def(g, i->res, 0), t = x86_tmp(g);

    e2(g, BR_X_CVTPD2PS, d, a);
    e2(g, BR_X_CVTPD2PS, t, b);
    e3i(g, BR_X_INSERT128, d, d, t, 1);
    x86_drop(g, t);
    x86_float_end(g, i, d);
}

static void
sel_f16_to_f32(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0), d = x86_def(g, i->res, 0);

    e3(g, BR_X_PACKUSDW, d, a, a); /* 0-3 0-3 | 4-7 4-7 */
    e2i(g, BR_X_PERMQ, d, d, 0x08);
    e2(g, BR_X_CVTPH2PS, d, d);
}

static void
sel_f32_to_f16(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0), d = x86_def(g, i->res, 0);

    e2i(g, BR_X_CVTPS2PH, d, a, 0);
    e2(g, BR_X_PMOVZXWD, d, d);
}

static x86_sel
select_floats(const br_kins *i, unsigned rnd)
{
    bool end = i->type == BR_KT_F32 || i->type == BR_KT_F64;

    if (br_kmod(i->mods, BR_KF_SAT) && !end)
        return NULL;
    if (i->type == i->type2 && end)
        return rnd >= BR_KM_RND_RNI ? sel_round : sel_same;
    if (i->type == BR_KT_F32 && i->type2 == BR_KT_F64)
        return rnd == BR_KM_RND_RN ? sel_f64_to_f32 : NULL;
    if (br_kmod(i->mods, BR_KF_SAT))
        return NULL;
    if (i->type == BR_KT_F64 && i->type2 == BR_KT_F32)
        return sel_f32_to_f64;
    if (i->type == BR_KT_F32 && i->type2 == BR_KT_F16)
        return sel_f16_to_f32;
    return i->type == BR_KT_F16 && i->type2 == BR_KT_F32 && rnd == BR_KM_RND_RN
               ? sel_f32_to_f16
               : NULL;
}

x86_sel
x86_select_cvt(const br_kins *i)
{
    const br_ktinfo *from = &br_ktinfo_of[i->type2];
    const br_ktinfo *to = &br_ktinfo_of[i->type];
    unsigned rnd = br_kmod(i->mods, BR_KF_RND);

    if (br_kmod(i->mods, BR_KF_RELU) || from->lanes != 1 || to->lanes != 1)
        return NULL;
    if (from->kind == 'F' && to->kind == 'F')
        return select_floats(i, rnd);
    if (br_kmod(i->mods, BR_KF_SAT))
        return NULL;
    if (from->kind != 'F' && to->kind != 'F')
        return sel_int;
    if (i->type == BR_KT_F32)
        return from->bytes <= 4 && rnd <= BR_KM_RND_RN ? sel_to_f32 : NULL;
    if (i->type == BR_KT_F64)
        return rnd > BR_KM_RND_RN ? NULL
               : from->bytes == 8 ? sel_wide_to_f64
                                  : sel_to_f64;
    if (rnd < BR_KM_RND_RNI)
        return NULL;
    if (i->type2 == BR_KT_F64)
        return i->type == BR_KT_S32 ? sel_f64_to_s32 : NULL;
    if (i->type2 != BR_KT_F32)
        return NULL;
    return i->type == BR_KT_S32   ? sel_f32_to_s32
           : i->type == BR_KT_U32 ? sel_f32_to_u32
           : to->bytes <= 2       ? sel_f32_to_narrow
                                  : NULL;
}
