/* sim_float.c - see sim_float.h.
 *
 * Where hardware only approximates (exp, log, sin, cos) the value nearest to
 * the true one is taken, as cg/approx.c gives it; rcp, sqrt and rsq are
 * rounded correctly. AMD states 1 ULP for these.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"

#include "cg/softfp.h"

#include <math.h>

/* min and max drop a NaN, minimum and maximum keep it; -0 is below 0. */
#define EXTREMES(T, n)                                         \
    T sim_minimum##n(T a, T b)                                 \
    {                                                          \
        return isnan(a) ? a : isnan(b) ? b : sim_min##n(a, b); \
    }                                                          \
    T sim_maximum##n(T a, T b)                                 \
    {                                                          \
        return isnan(a) ? a : isnan(b) ? b : sim_max##n(a, b); \
    }
EXTREMES(float, )
EXTREMES(double, 64)

float
sim_med3(float a, float b, float c)
{
    float most;

    if (isnan(a) || isnan(b) || isnan(c))
        return sim_min(sim_min(a, b), c);
    most = sim_max(sim_max(a, b), c);
    if (most == a)
        return sim_max(b, c);
    return most == b ? sim_max(a, c) : sim_max(a, b);
}

static const br_sf f16 = {BR_SF_F16, BR_SF_RN, false};
static const br_sf f32 = {BR_SF_F32, BR_SF_RN, false};
static const br_sf f64 = {BR_SF_F64, BR_SF_RN, false};

uint16_t
sim_rtz16(float f)
{
    br_sf s = {BR_SF_F32, BR_SF_RZ, false};

    return (uint16_t)br_sf_cvt(s, BR_SF_F16, false, br_f32_bits(f));
}

uint16_t
sim_fma16(uint16_t a, uint16_t b, uint16_t c)
{
    return (uint16_t)br_sf_fma(f16, a, b, c);
}

static float
approx(br_sf_fn fn, float a)
{
    return br_f32_of((uint32_t)br_sf_approx(f32, fn, br_f32_bits(a)));
}

float
sim_exp2(float a)
{
    return approx(BR_SF_EX2, a);
}

float
sim_log2(float a)
{
    return approx(BR_SF_LG2, a);
}

/* Turns to radians in f64: the whole turns fall away exactly first. */
float
sim_sin(float turns)
{
    double t = (double)turns;

    return (float)sin((t - rint(t)) * 6.283185307179586);
}

float
sim_cos(float turns)
{
    double t = (double)turns;

    return (float)cos((t - rint(t)) * 6.283185307179586);
}

float
sim_rsq(float a)
{
    return approx(BR_SF_RSQRT, a);
}

double
sim_rsq64(double a)
{
    uint64_t r = br_sf_sqrt(f64, br_f64_bits(a));

    return sim_estimate(br_f64_of(br_sf_div(f64, br_f64_bits(1), r)));
}

double
sim_estimate(double a)
{
    uint64_t bits = br_f64_bits(a);

    return isfinite(a) ? br_f64_of(bits & ~((1ull << 29) - 1)) : a;
}

/* 0 signalling 1 quiet NaN 2 -inf 3 -normal 4 -subnormal 5 -0 6 +0 7 +subnormal
 * 8 +normal 9 +inf */
static unsigned
class_of(bool sign, uint64_t e, uint64_t top, uint64_t m, bool quiet)
{
    if (e == top)
        return m ? 1u << quiet : sign ? 1u << 2 : 1u << 9;
    if (e)
        return sign ? 1u << 3 : 1u << 8;
    if (m)
        return sign ? 1u << 4 : 1u << 7;
    return sign ? 1u << 5 : 1u << 6;
}

unsigned
sim_class32(uint32_t a)
{
    return class_of(a >> 31, a >> 23 & 255, 255, a & 0x7fffff, a >> 22 & 1);
}

unsigned
sim_class16(uint32_t a)
{
    return class_of(a >> 15 & 1, a >> 10 & 31, 31, a & 0x3ff, a >> 9 & 1);
}

unsigned
sim_class64(uint64_t a)
{
    return class_of(a >> 63, a >> 52 & 2047, 2047, a & ((1ull << 52) - 1),
                    a >> 51 & 1);
}

float
sim_fract(float a)
{
    float r = a - floorf(a);

    return r >= 1 ? 0x1.fffffep-1f : r;
}

float
sim_f16(uint32_t h)
{
    return br_f16_to_f32((uint16_t)h);
}
