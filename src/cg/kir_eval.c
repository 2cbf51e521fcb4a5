/* kir_eval.c - what a pure operation computes on one lane.
 *
 * One function for interpreter and constant folding, so that they agree. Wide
 * types (f16x2, u8x4, ...) are split, computed by element and put together.
 * Where PTX leaves a result open, it is the one that an H200 gave.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"
#include "cg/softfp.h"

#include <string.h>

static uint64_t
low(uint64_t v, unsigned bits)
{
    return bits < 64 ? v & ((1ull << bits) - 1) : v;
}

static int64_t
sign_extend(uint64_t v, unsigned bits)
{
    return bits < 64 ? (int64_t)(v << (64 - bits)) >> (64 - bits) : (int64_t)v;
}

static unsigned
bits_of_type(unsigned t)
{
    return br_ktinfo_of[t].bytes * 8u;
}

static br_sf_fmt
format(unsigned t)
{
    switch (t) {
    case BR_KT_F16: return BR_SF_F16;
    case BR_KT_BF16: return BR_SF_BF16;
    case BR_KT_F64: return BR_SF_F64;
    case BR_KT_TF32: return BR_SF_TF32;
    case BR_KT_E4M3: return BR_SF_E4M3;
    case BR_KT_E5M2: return BR_SF_E5M2;
    default: return BR_SF_F32;
    }
}

static br_sf
soft(const br_kins *i, unsigned t)
{
    static const uint8_t of[] = {1, 1, 2, 3, 4, 5, 1, 2, 3, 4};
    br_sf s = {format(t), (br_sf_round)of[br_kmod(i->mods, BR_KF_RND)],
               br_kmod(i->mods, BR_KF_FTZ)};

    return s;
}

/* ---- floats ------------------------------------------------------------- */

static uint64_t
float_after(const br_kins *i, br_sf s, uint64_t v)
{
    uint64_t sign = br_sf_sign_bit(s.fmt), one = br_sf_one(s.fmt);

    if (br_kmod(i->mods, BR_KF_SAT) == BR_KM_SAT_SAT) {
        if (br_sf_is_nan(s.fmt, v) || (v & sign))
            return 0;
        return v > one ? one : v;
    }
    if (br_kmod(i->mods, BR_KF_RELU) && (v & sign) && !br_sf_is_nan(s.fmt, v))
        return 0;
    return v;
}

static uint64_t
float_minmax(const br_kins *i, br_sf s, uint64_t a, uint64_t b)
{
    uint64_t sign = br_sf_sign_bit(s.fmt), x = (a ^ b) & sign;
    bool na = br_sf_is_nan(s.fmt, a), nb = br_sf_is_nan(s.fmt, b), less;
    bool xabs = br_kmod(i->mods, BR_KF_XABS);

    if ((na && nb) || ((na || nb) && br_kmod(i->mods, BR_KF_NAN)))
        return br_sf_nan(s.fmt);
    a = br_sf_flush(s, xabs ? a & ~sign : a);
    b = br_sf_flush(s, xabs ? b & ~sign : b);
    if (na || nb) {
        a = na ? b : a;
    } else {
        int c = br_sf_cmp(s, a, b);

        less = c < 0 || (c == 0 && (a & sign) > (b & sign)); /* -0 < +0 */
        a = less == (i->op == BR_K_MIN) ? a : b;
    }
    return xabs ? (a & ~sign) | x : a;
}

static uint64_t
float_div(const br_kins *i, br_sf s, uint64_t a, uint64_t b)
{
    /* rcp of what is over 2^126 is flushed, and the product with it. */
    if (br_kmod(i->mods, BR_KF_APPROX) == BR_KM_APPROX_APPROX &&
        s.fmt == BR_SF_F32 && (b & 0x7fffffff) > 0x7e800000 &&
        (b & 0x7fffffff) < 0x7f800000)
        b = 0x7f800000 | (b & 0x80000000);
    return br_sf_div(s, a, b);
}

static uint64_t
float_op(const br_kins *i, unsigned t, const uint64_t *a)
{
    br_sf s = soft(i, t);
    uint64_t sign = br_sf_sign_bit(s.fmt);

    switch (i->op) {
    case BR_K_ADD: return br_sf_add(s, a[0], a[1]);
    case BR_K_SUB:
        return br_sf_add(s, a[0],
                         br_sf_is_nan(s.fmt, a[1]) ? a[1] : a[1] ^ sign);
    case BR_K_MUL: return br_sf_mul(s, a[0], a[1]);
    case BR_K_FMA: return br_sf_fma(s, a[0], a[1], a[2]);
    case BR_K_DIV: return float_div(i, s, a[0], a[1]);
    case BR_K_RCP: return br_sf_div(s, br_sf_one(s.fmt), a[0]);
    case BR_K_SQRT: return br_sf_sqrt(s, a[0]);
    case BR_K_NEG: return br_sf_flush(s, a[0] ^ sign);
    case BR_K_ABS: return br_sf_flush(s, a[0] & ~sign);
    case BR_K_MIN:
    case BR_K_MAX: return float_minmax(i, s, a[0], a[1]);
    case BR_K_COPYSIGN: return (a[0] & sign) | (a[1] & ~sign);
    case BR_K_EX2: return br_sf_approx(s, BR_SF_EX2, a[0]);
    case BR_K_LG2: return br_sf_approx(s, BR_SF_LG2, a[0]);
    case BR_K_SIN: return br_sf_approx(s, BR_SF_SIN, a[0]);
    case BR_K_COS: return br_sf_approx(s, BR_SF_COS, a[0]);
    case BR_K_TANH: return br_sf_approx(s, BR_SF_TANH, a[0]);
    case BR_K_RSQRT: return br_sf_approx(s, BR_SF_RSQRT, a[0]);
    default: br_unreachable("an operation of floats");
    }
}

/* ---- integers ----------------------------------------------------------- */

static uint64_t
int_saturate(int64_t v, unsigned t)
{
    unsigned bits = bits_of_type(t);
    bool s = br_ktinfo_of[t].kind == 'S';
    int64_t most = (int64_t)((1ull << (bits - s)) - 1);
    int64_t least = s ? -most - 1 : 0;

    return (uint64_t)(v > most ? most : v < least ? least : v);
}

static uint64_t
mul_high(uint64_t a, uint64_t b, unsigned bits, bool is_signed)
{
    __extension__ typedef __int128 i128;
    __extension__ typedef unsigned __int128 u128;

    if (is_signed)
        return (uint64_t)(((i128)sign_extend(a, bits) * sign_extend(b, bits)) >>
                          bits);
    return (uint64_t)(((u128)a * b) >> bits);
}

static uint64_t
int_div(uint64_t a, uint64_t b, unsigned bits, bool is_signed, bool rem)
{
    int64_t sa = sign_extend(a, bits), sb = sign_extend(b, bits);

    if (b == 0)
        return ~0ull;
    if (!is_signed)
        return rem ? a % b : a / b;
    if (is_signed && sb == -1) /* the most negative number has no opposite */
        return rem ? 0 : 0 - a;
    return (uint64_t)(rem ? sa % sb : sa / sb);
}

static uint64_t
int_shift_right(uint64_t a, uint64_t by, unsigned bits, bool is_signed)
{
    if (by >= bits)
        by = is_signed ? bits - 1 : 64;
    if (by == 64)
        return 0;
    return is_signed ? (uint64_t)(sign_extend(a, bits) >> by) : a >> by;
}

/* Places and lengths have eight bits, but 64-bit forms look at all of them. */
static unsigned
amount(uint64_t v, unsigned bits)
{
    return (unsigned)(bits == 64 ? BR_MIN(v, 255u) : v & 0xff);
}

static uint64_t
int_bfe(uint64_t a, unsigned pos, unsigned len, unsigned bits, bool is_signed)
{
    unsigned top = pos + len > bits ? bits - 1 : pos + len - 1;
    uint64_t sign;

    if (len == 0)
        return 0;
    sign = is_signed && (a >> top & 1) ? ~0ull : 0;
    if (pos >= bits)
        return sign;
    len = BR_MIN(len, bits - pos);
    a >>= pos;
    return len >= 64 ? a : (a & ((1ull << len) - 1)) | sign << len;
}

static uint64_t
int_bfi(uint64_t a, uint64_t b, unsigned pos, unsigned len, unsigned bits)
{
    uint64_t mask;

    if (pos >= bits || len == 0)
        return b;
    mask = len >= 64 ? ~0ull : (1ull << len) - 1;
    mask <<= pos;
    return (b & ~mask) | (a << pos & mask);
}

static uint64_t
int_bfind(const br_kins *i, uint64_t a)
{
    unsigned bits = bits_of_type(i->type);
    uint64_t v = a;
    int at;

    if (br_ktinfo_of[i->type].kind == 'S' && (a >> (bits - 1) & 1))
        v = low(~a, bits);
    if (!v)
        return 0xffffffff;
    at = 63 - __builtin_clzll(v);
    return br_kmod(i->mods, BR_KF_SUB) ? (uint64_t)((int)bits - 1 - at)
                                       : (uint64_t)at;
}

static uint64_t
int_reverse(uint64_t a, unsigned bits)
{
    uint64_t r = 0;

    for (unsigned b = 0; b < bits; b++)
        r |= (a >> b & 1) << (bits - 1 - b);
    return r;
}

static uint64_t
int_szext(const br_kins *i, uint64_t a, uint64_t n)
{
    bool wrap = br_kmod(i->mods, BR_KF_SUB) == BR_KM_WRAP_WRAP;
    bool s = br_ktinfo_of[i->type].kind == 'S';

    n = wrap ? n & 31 : BR_MIN(n, 32);
    if (n == 0)
        return 0;
    return s ? (uint64_t)sign_extend(a, (unsigned)n) : low(a, (unsigned)n);
}

static uint64_t
int_op(const br_kins *i, unsigned t, const uint64_t *a)
{
    unsigned bits = bits_of_type(t);
    bool s = br_ktinfo_of[t].kind == 'S';
    int64_t sa = sign_extend(a[0], bits), sb;

    switch (i->op) {
    case BR_K_NEG: return 0 - a[0];
    case BR_K_ABS: return (uint64_t)(s && sa < 0 ? 0 - (uint64_t)sa : a[0]);
    case BR_K_SHL: return a[1] >= bits ? 0 : a[0] << a[1];
    case BR_K_SHR: return int_shift_right(a[0], a[1], bits, s);
    case BR_K_POPC: return (uint64_t)__builtin_popcountll(a[0]);
    case BR_K_CLZ:
        return a[0] ? (uint64_t)__builtin_clzll(a[0]) - (64 - bits) : bits;
    case BR_K_BREV: return int_reverse(a[0], bits);
    case BR_K_BFIND: return int_bfind(i, a[0]);
    case BR_K_BFE:
        return int_bfe(a[0], amount(a[1], bits), amount(a[2], bits), bits, s);
    case BR_K_BFI:
        return int_bfi(a[0], a[1], amount(a[2], bits), amount(a[3], bits),
                       bits);
    case BR_K_SZEXT: return int_szext(i, a[0], a[1]);
    default: break;
    }
    sb = sign_extend(a[1], bits);
    switch (i->op) {
    case BR_K_ADD:
        if (br_kmod(i->mods, BR_KF_SAT))
            return int_saturate(s ? sa + sb : (int64_t)(a[0] + a[1]), t);
        return a[0] + a[1];
    case BR_K_SUB:
        if (br_kmod(i->mods, BR_KF_SAT))
            return int_saturate(s ? sa - sb : (int64_t)(a[0] - a[1]), t);
        return a[0] - a[1];
    case BR_K_MUL: return a[0] * a[1];
    case BR_K_MULHI: return mul_high(a[0], a[1], bits, s);
    case BR_K_MULWIDE: return s ? (uint64_t)(sa * sb) : a[0] * a[1];
    case BR_K_DIV:
    case BR_K_REM: return int_div(a[0], a[1], bits, s, i->op == BR_K_REM);
    case BR_K_MIN:
    case BR_K_MAX:
        return (s ? sa < sb : a[0] < a[1]) == (i->op == BR_K_MIN) ? a[0] : a[1];
    case BR_K_ABSDIFF: {
        int64_t d = s ? sa - sb : (int64_t)(a[0] - a[1]);

        d = d < 0 ? -d : d;
        return br_kmod(i->mods, BR_KF_SAT) ? int_saturate(d, t) : (uint64_t)d;
    }
    case BR_K_AND: return a[0] & a[1];
    case BR_K_OR: return a[0] | a[1];
    case BR_K_XOR: return a[0] ^ a[1];
    default: br_unreachable("an operation of integers");
    }
}

/* ---- 32 bits ------------------------------------------------------------ */

static uint64_t
funnel(const br_kins *i, const uint64_t *a)
{
    uint64_t both = a[1] << 32 | a[0];
    unsigned by = (unsigned)a[2] & 31;

    if (br_kmod(i->mods, BR_KF_SUB) == BR_KM_WRAP_CLAMP)
        by = (unsigned)BR_MIN(a[2], 32);
    if (i->op == BR_K_FSHL)
        return by == 32 ? a[0] : both << by >> 32;
    return both >> by;
}

static uint64_t
permute(const br_kins *i, uint64_t a, uint64_t b, uint64_t c)
{
    static const uint8_t pick[7][4][4] = {
        [BR_KM_PRMT_F4E] = {{0, 1, 2, 3},
                            {1, 2, 3, 4},
                            {2, 3, 4, 5},
                            {3, 4, 5, 6}},
        [BR_KM_PRMT_B4E] = {{0, 7, 6, 5},
                            {1, 0, 7, 6},
                            {2, 1, 0, 7},
                            {3, 2, 1, 0}},
        [BR_KM_PRMT_RC8] = {{0, 0, 0, 0},
                            {1, 1, 1, 1},
                            {2, 2, 2, 2},
                            {3, 3, 3, 3}},
        [BR_KM_PRMT_ECL] = {{0, 1, 2, 3},
                            {1, 1, 2, 3},
                            {2, 2, 2, 3},
                            {3, 3, 3, 3}},
        [BR_KM_PRMT_ECR] = {{0, 0, 0, 0},
                            {0, 1, 1, 1},
                            {0, 1, 2, 2},
                            {0, 1, 2, 3}},
        [BR_KM_PRMT_RC16] = {{0, 1, 0, 1},
                             {2, 3, 2, 3},
                             {0, 1, 0, 1},
                             {2, 3, 2, 3}},
    };
    unsigned mode = br_kmod(i->mods, BR_KF_SUB);
    uint64_t both = b << 32 | a, r = 0;

    for (unsigned k = 0; k < 4; k++) {
        unsigned sel =
            mode ? pick[mode][c & 3][k] : (unsigned)(c >> (4 * k) & 15);
        uint64_t byte = both >> (8 * (sel & 7)) & 0xff;

        if (sel & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * k);
    }
    return r;
}

static uint64_t
lop3(uint64_t a, uint64_t b, uint64_t c, int64_t table)
{
    uint64_t r = 0;

    for (unsigned k = 0; k < 8; k++)
        if (table >> k & 1)
            r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

static uint64_t
dot(const br_kins *i, const uint64_t *a)
{
    bool two = i->op == BR_K_DP2A;
    unsigned wa = two ? 16 : 8, n = two ? 2 : 4;
    unsigned skip =
        two && br_kmod(i->mods, BR_KF_SUB) == BR_KM_HALF_HI ? 16 : 0;
    int64_t sum = (int64_t)a[2];

    for (unsigned k = 0; k < n; k++) {
        uint64_t x = low(a[0] >> (k * wa), wa),
                 y = low(a[1] >> (skip + k * 8), 8);

        sum += (br_ktinfo_of[i->type].kind == 'S' ? sign_extend(x, wa)
                                                  : (int64_t)x) *
               (br_ktinfo_of[i->type2].kind == 'S' ? sign_extend(y, 8)
                                                   : (int64_t)y);
    }
    return (uint64_t)sum;
}

static uint64_t
find_nth(uint64_t mask, uint64_t base, int32_t nth)
{
    int pos = (int)base, step = nth > 0 ? 1 : -1;
    int64_t count = nth < 0 ? -(int64_t)nth : nth;

    if (nth == INT32_MIN) /* its magnitude is no number: an H200 gives up */
        return 0;
    if (base > 31)
        return 0xffffffff;
    if (nth == 0)
        return mask >> pos & 1 ? base : 0xffffffff;
    for (; pos >= 0 && pos < 32; pos += step)
        if ((mask >> pos & 1) && --count == 0)
            return (uint64_t)pos;
    return 0xffffffff;
}

static uint64_t
bit_mask(const br_kins *i, uint64_t a, uint64_t b)
{
    bool wrap = br_kmod(i->mods, BR_KF_SUB) == BR_KM_WRAP_WRAP;

    a = wrap ? a & 31 : BR_MIN(a, 32);
    b = wrap ? b & 31 : BR_MIN(b, 32);
    return ((1ull << b) - 1) << a;
}

static uint64_t
cvt_pack(const br_kins *i, const uint64_t *a)
{
    unsigned bits = bits_of_type(i->type), from = bits_of_type(i->type2);
    bool s = br_ktinfo_of[i->type2].kind == 'S';
    uint64_t v[2];

    for (int k = 0; k < 2; k++) {
        int64_t x = s ? sign_extend(a[k], from) : (int64_t)a[k];

        v[k] = low(br_kmod(i->mods, BR_KF_SAT) ? int_saturate(x, i->type)
                                               : (uint64_t)x,
                   bits);
    }
    return a[2] << (2 * bits) | v[0] << bits | v[1];
}

/* ---- conversions and comparisons ---------------------------------------- */

static uint64_t
convert(const br_kins *i, uint64_t a)
{
    const br_ktinfo *to = &br_ktinfo_of[i->type];
    const br_ktinfo *from = &br_ktinfo_of[i->type2];
    unsigned bits = from->bytes * 8u;
    br_sf s = soft(i, i->type2);
    bool sat = br_kmod(i->mods, BR_KF_SAT) == BR_KM_SAT_SATFINITE;
    uint64_t v = low(a, bits);

    if (from->kind == 'F' && to->kind == 'F') {
        /* It is of floats: subnormal halves stay what they are. */
        if (s.ftz && i->type2 == BR_KT_F32)
            v = br_sf_flush(s, v);
        s.ftz = s.ftz && i->type == BR_KT_F32 && i->type2 != BR_KT_F16;
        if (i->type == i->type2 && br_kmod(i->mods, BR_KF_RND) >= BR_KM_RND_RNI)
            v = br_sf_rint(s, v);
        else if (i->type == BR_KT_TF32 && br_sf_is_nan(s.fmt, v))
            v &= ~0x1fffull; /* cut, even if that leaves an infinity */
        else
            v = br_sf_cvt(s, format(i->type), sat, v);
        s.fmt = format(i->type);
        return float_after(i, s, v);
    }
    if (from->kind == 'F')
        return (uint64_t)sign_extend(
            br_sf_to_int(s, v, to->bytes * 8u, to->kind == 'S'),
            to->kind == 'S' ? to->bytes * 8u : 64);
    if (from->kind == 'S')
        v = (uint64_t)sign_extend(v, bits);
    if (to->kind == 'F') {
        s.fmt = format(i->type);
        return float_after(i, s, br_sf_from_int(s, v, from->kind == 'S'));
    }
    if (br_kmod(i->mods, BR_KF_SAT)) {
        if (from->kind != 'S' && v >> 63)
            v = to->bytes == 8 && to->kind == 'U' ? v : (uint64_t)INT64_MAX;
        if (to->bytes < 8)
            v = int_saturate((int64_t)v, i->type);
        else if (to->kind == 'U' && from->kind == 'S' && v >> 63)
            v = 0;
    }
    v = low(v, to->bytes * 8u);
    return to->kind == 'S' ? (uint64_t)sign_extend(v, to->bytes * 8u) : v;
}

static uint64_t
compare(const br_kins *i, uint64_t a, uint64_t b)
{
    unsigned op = br_kmod(i->mods, BR_KF_CMP), t = i->type;
    unsigned bits = bits_of_type(t);
    int c;

    a = low(a, bits);
    b = low(b, bits);
    if (br_ktinfo_of[t].kind == 'F')
        c = br_sf_cmp(soft(i, t), a, b);
    else if (br_ktinfo_of[t].kind == 'S')
        c = (sign_extend(a, bits) > sign_extend(b, bits)) -
            (sign_extend(a, bits) < sign_extend(b, bits));
    else
        c = (a > b) - (a < b);
    if (op == BR_KM_CMP_NUM || op == BR_KM_CMP_ISNAN)
        return (c == 2) == (op == BR_KM_CMP_ISNAN);
    if (c == 2)
        return op >= BR_KM_CMP_EQU;
    switch (op >= BR_KM_CMP_EQU ? op - 6 : op) {
    case BR_KM_CMP_EQ: return c == 0;
    case BR_KM_CMP_NE: return c != 0;
    case BR_KM_CMP_LT: return c < 0;
    case BR_KM_CMP_LE: return c <= 0;
    case BR_KM_CMP_GT: return c > 0;
    default: return c >= 0;
    }
}

/* ---- the whole ---------------------------------------------------------- */

/* Element by element where the type has several. */
static uint64_t
arithmetic(const br_kins *i, const uint64_t *a)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    unsigned bits = t->bytes * 8u / t->lanes;
    uint64_t r = 0, x[4] = {0};

    for (unsigned k = 0; k < t->lanes; k++) {
        uint64_t v;

        for (unsigned n = 0; n < i->n_arg && n < 4; n++)
            x[n] = t->lanes > 1 ? low(a[n] >> (k * bits), bits) : a[n];
        if (t->kind == 'F') {
            v = float_op(i, t->elem, x);
            v = float_after(i, soft(i, t->elem), v);
        } else {
            v = int_op(i, t->elem, x);
        }
        r |= t->lanes > 1 ? low(v, bits) << (k * bits) : v;
    }
    return r;
}

static void
carry(const br_kins *i, const uint64_t *a, uint64_t *res)
{
    unsigned bits = bits_of_type(i->type);
    __extension__ typedef unsigned __int128 u128;
    u128 v = (u128)a[0] + a[1] + a[2];

    res[0] = (uint64_t)v;
    res[1] = (uint64_t)(v >> bits) & 1;
}

static uint64_t
eval_one(const br_kins *i, const uint64_t *a)
{
    switch (i->op) {
    case BR_K_CVT: return convert(i, a[0]);
    case BR_K_SETP: return compare(i, a[0], a[1]);
    case BR_K_SELECT: return a[2] ? a[0] : a[1];
    case BR_K_FSHL:
    case BR_K_FSHR: return funnel(i, a);
    case BR_K_PRMT: return permute(i, a[0], a[1], a[2]);
    case BR_K_LOP3: return lop3(a[0], a[1], a[2], i->imm);
    case BR_K_DP4A:
    case BR_K_DP2A: return dot(i, a);
    case BR_K_CVTPACK: return cvt_pack(i, a);
    case BR_K_FNS: return find_nth(a[0], a[1], (int32_t)a[2]);
    case BR_K_BMSK: return bit_mask(i, a[0], a[1]);
    case BR_K_PACK: return a[0] | a[1] << (br_ktinfo_of[i->type].bytes * 4u);
    default: return arithmetic(i, a);
    }
}

void
br_keval(const br_kins *i, const uint64_t *a, uint64_t *res)
{
    br_kclass c;

    if (i->op == BR_K_UNPACK) {
        unsigned half = br_ktinfo_of[i->type].bytes * 4u;

        res[0] = low(a[0], half);
        res[1] = a[0] >> half;
        return;
    }
    if (i->op == BR_K_ADDC)
        carry(i, a, res);
    else
        res[0] = eval_one(i, a);
    c = br_kclass_of(br_kopinfo_of[i->op].sig[0], i);
    res[0] = low(res[0], br_kclass_bits(c));
}

bool
br_kevals(br_kop op)
{
    return (br_kopinfo_of[op].props & BR_KP_PURE) && op != BR_K_ADDR &&
           op != BR_K_FRAME && op != BR_K_TOGEN && op != BR_K_FROMGEN &&
           op != BR_K_ISSPACE;
}

uint64_t
br_keval_atom(unsigned op, br_ktype t, uint64_t a, uint64_t b)
{
    static const uint8_t of[] = {
        [BR_KM_ATOM_ADD] = BR_K_ADD, [BR_KM_ATOM_MIN] = BR_K_MIN,
        [BR_KM_ATOM_MAX] = BR_K_MAX, [BR_KM_ATOM_AND] = BR_K_AND,
        [BR_KM_ATOM_OR] = BR_K_OR,   [BR_KM_ATOM_XOR] = BR_K_XOR};
    br_kins i = {.type = (uint8_t)t, .n_arg = 2};
    uint64_t args[4] = {a, b}, r[2];

    switch (op) {
    case BR_KM_ATOM_EXCH: return b;
    case BR_KM_ATOM_INC: return a >= b ? 0 : a + 1;
    case BR_KM_ATOM_DEC: return a == 0 || a > b ? b : a - 1;
    default: i.op = of[op]; break;
    }
    br_keval(&i, args, r);
    return r[0];
}
