/* approx.c - exp2, log2, sin, cos, tanh and rsqrt for the f16 and f32 formats.
 *
 * Computed in f64 by IEEE operations alone, so that every machine gives the
 * same bits, then rounded to the format: the nearest value but for one case in
 * some 10^6, where the f64 error of about 2^-50 crosses the middle. Hardware is
 * further off: NVIDIA states 2 ULP for ex2, 2^-22.6 absolute for lg2 near 1,
 * 2^-20.9 absolute for sin and cos.
 *
 *   ex2   2^n * p(r), |r| <= 1/2, Taylor to r^13      relative 2^-52
 *   lg2   n + 2/ln2 * atanh(s), s = (m-1)/(m+1)       series to s^21
 *   sin   x - n pi/2 in three parts, Taylor to x^17
 *   tanh  1 - 2 / (e^2x + 1), Taylor for |x| < 2^-4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/softfp.h"

#include <math.h>
#include <string.h>

static double
f64_of(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t
bits_of(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* 2^n, n in the range of normal numbers. */
static double
two_to(int n)
{
    return f64_of((uint64_t)(n + 1023) << 52);
}

/* Quotients of a series' terms; as products, each rounded once more. */
static const double by_k[] = {0,        1.0,      1.0 / 2,  1.0 / 3, 1.0 / 4,
                              1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8, 1.0 / 9,
                              1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13};
static const double odd[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                             1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
static const double sine[] = {1.0 / (17 * 16), 1.0 / (15 * 14), 1.0 / (13 * 12),
                              1.0 / (11 * 10), 1.0 / (9 * 8),   1.0 / (7 * 6),
                              1.0 / (5 * 4),   1.0 / (3 * 2)};
static const double cosine[] = {
    1.0 / (18 * 17), 1.0 / (16 * 15), 1.0 / (14 * 13),
    1.0 / (12 * 11), 1.0 / (10 * 9),  1.0 / (8 * 7),
    1.0 / (6 * 5),   1.0 / (4 * 3),   1.0 / (2 * 1)};

static double
exp2_of(double x)
{
    double n, r, sum = 0;

    if (x > 1023)
        return HUGE_VAL;
    if (x < -1021)
        return two_to(-1022); /* far below any format asked for */
    n = floor(x + 0.5);
    r = (x - n) * 0x1.62e42fefa39efp-1;
    for (int k = 13; k > 0; k--)
        sum = (sum + 1) * (r * by_k[k]);
    return (1 + sum) * two_to((int)n);
}

/* x > 0 and finite. */
static double
log2_of(double x)
{
    uint64_t bits = bits_of(x);
    int n = (int)(bits >> 52) - 1023;
    double m = f64_of((bits & 0xfffffffffffffull) | 1023ull << 52), s, q;
    double sum = 0;

    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        n++;
    }
    s = (m - 1) / (m + 1);
    q = s * s;
    for (size_t k = 0; k < BR_COUNT(odd); k++)
        sum = (sum + odd[k]) * q;
    return n + (s + s * sum) * 0x1.71547652b82fep+1;
}

/* The f32 arguments reach 2^128: past 2^30 the quotient is not known to a
 * quarter turn any more, and hardware gives noise there, too. */
static double
sin_of(double x, int quarter)
{
    double n = floor(x * 0x1.45f306dc9c883p-1 + 0.5), r, q, sum = 0, term = 1;
    int64_t k;

    if (!(fabs(x) < 0x1p31))
        return 0;
    k = (int64_t)n + quarter;
    /* pi/2 in parts of 33 bits: the products are exact. */
    r = x - n * 0x1.921fb544p+0;
    r = r - n * 0x1.0b4611a6p-34;
    r = r - n * 0x1.3198a2e037073p-69;
    q = r * r;
    if (k & 1) {
        for (size_t i = 0; i < BR_COUNT(cosine); i++)
            sum = (1 + sum) * (-q * cosine[i]);
        term = 1 + sum;
    } else {
        for (size_t i = 0; i < BR_COUNT(sine); i++)
            sum = (1 + sum) * (-q * sine[i]);
        term = r + r * sum;
    }
    return k & 2 ? -term : term;
}

static double
tanh_of(double x)
{
    double q = x * x, e;

    if (fabs(x) < 0x1p-4)
        return x *
               (1 - q * (1.0 / 3 -
                         q * (2.0 / 15 -
                              q * (17.0 / 315 - q * (62.0 / 2835 -
                                                     q * (1382.0 / 155925))))));
    if (fabs(x) > 20)
        return x < 0 ? -1 : 1;
    e = exp2_of(x * 0x1.71547652b82fep+1);
    return 1 - 2 / (e + 1);
}

static double
value(br_sf_fn fn, double x)
{
    switch (fn) {
    case BR_SF_EX2: return exp2_of(x);
    case BR_SF_LG2: return log2_of(x);
    case BR_SF_SIN: return sin_of(x, 0);
    case BR_SF_COS: return sin_of(x, 1);
    case BR_SF_TANH: return tanh_of(x);
    case BR_SF_RSQRT: return 1 / sqrt(x);
    }
    br_unreachable("closed list of functions");
}

uint64_t
br_sf_approx(br_sf s, br_sf_fn fn, uint64_t a)
{
    br_sf wide = {BR_SF_F64, BR_SF_RN, s.ftz};
    bool sign = a & br_sf_sign_bit(s.fmt), zero = br_sf_is_zero(s, a);
    double x = f64_of(br_sf_cvt(s, BR_SF_F64, false, a)), y;

    if (s.fmt == BR_SF_F64) /* a subnormal stays one on its way here */
        x = f64_of(a);
    if (br_sf_is_nan(s.fmt, a))
        return br_sf_nan(s.fmt);
    if (zero)
        x = sign ? -0.0 : 0.0;
    if ((fn == BR_SF_LG2 || fn == BR_SF_RSQRT) && (zero || sign)) {
        if (!zero)
            return br_sf_nan(s.fmt);
        y = fn == BR_SF_RSQRT && !sign ? HUGE_VAL : -HUGE_VAL;
    } else if (isinf(x)) {
        y = fn == BR_SF_EX2     ? (sign ? 0 : x)
            : fn == BR_SF_LG2   ? x
            : fn == BR_SF_TANH  ? (sign ? -1.0 : 1.0)
            : fn == BR_SF_RSQRT ? 0
                                : (double)NAN;
    } else if (zero && fn != BR_SF_EX2 && fn != BR_SF_COS) {
        y = x;
    } else {
        y = value(fn, x);
    }
    wide.ftz = s.ftz;
    return br_sf_cvt((br_sf){BR_SF_F64, BR_SF_RN, wide.ftz}, s.fmt, false,
                     bits_of(y));
}

/* The same of one format, without a look at what every float is: machine code
 * asks for 32 at a time. Subnormals, infinities and NaNs go the long way. */
uint32_t
br_sf_approx_f32(br_sf_fn fn, bool ftz, uint32_t a)
{
    br_sf s = {BR_SF_F32, BR_SF_RN, ftz};
    uint32_t exp = a >> 23 & 255, bits;
    float x, y;

    if (exp == 0 || exp == 255 || (a >> 31 && fn == BR_SF_LG2))
        return (uint32_t)br_sf_approx(s, fn, a);
    memcpy(&x, &a, sizeof x);
    y = (float)value(fn, (double)x);
    memcpy(&bits, &y, sizeof bits);
    return bits & 0x7f800000 ? bits : (uint32_t)br_sf_approx(s, fn, a);
}
