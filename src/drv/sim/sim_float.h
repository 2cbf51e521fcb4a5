/* sim_float.h - floats as AMD's vector units compute them, one at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_FLOAT_H
#define BR_SIM_FLOAT_H

#include "base/bits.h"
#include "base/half.h"

/* A NaN gives way to a number; -0 is less than 0. Here, so that loops over
 * lanes become vector code. */
static inline float
sim_min(float a, float b)
{
    uint32_t zeros = br_f32_bits(a) | br_f32_bits(b);
    float r = a < b ? a : b;

    r = a == b ? br_f32_of(a == 0 ? zeros : br_f32_bits(a)) : r;
    r = b != b ? a : r;
    return a != a ? b : r;
}

static inline float
sim_max(float a, float b)
{
    uint32_t zeros = br_f32_bits(a) & br_f32_bits(b);
    float r = a > b ? a : b;

    r = a == b ? br_f32_of(a == 0 ? zeros : br_f32_bits(a)) : r;
    r = b != b ? a : r;
    return a != a ? b : r;
}

static inline double
sim_min64(double a, double b)
{
    if (a != a || b != b)
        return a != a ? b : a;
    return a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;
}

static inline double
sim_max64(double a, double b)
{
    if (a != a || b != b)
        return a != a ? b : a;
    return a == b ? (__builtin_signbit(a) ? b : a) : a > b ? a : b;
}

/* A NaN wins. */
float sim_minimum(float a, float b);
float sim_maximum(float a, float b);
double sim_minimum64(double a, double b);
double sim_maximum64(double a, double b);
float sim_med3(float a, float b, float c);
/* Towards zero, saturating, a NaN is 0; no branches, so that lanes are vector
 * code. */
static inline int32_t
sim_to_i32(double v)
{
    v = v >= -2147483648.0 ? v : v != v ? 0 : -2147483648.0;
    return (int32_t)(v < 2147483647.0 ? v : 2147483647.0);
}

static inline uint32_t
sim_to_u32(double v)
{
    v = v > 0 ? v : 0;
    return (uint32_t)(v < 4294967295.0 ? v : 4294967295.0);
}
uint16_t sim_rtz16(float f);
/* One rounding. */
uint16_t sim_fma16(uint16_t a, uint16_t b, uint16_t c);
/* Correctly rounded, but for exp, log, sin and cos: see approx.c of cg. */
float sim_exp2(float a);
float sim_log2(float a);
float sim_sin(float turns);
float sim_cos(float turns);
double sim_rsq64(double a);
/* What rcp, rsq and sqrt of f64 are good for: 2^29 ULP. */
double sim_estimate(double a);
float sim_rsq(float a);
/* Bits of v_cmp_class. */
unsigned sim_class32(uint32_t a);
unsigned sim_class16(uint32_t a);
unsigned sim_class64(uint64_t a);
float sim_fract(float a);
float sim_f16(uint32_t h);
/* a * 2^e: a product of doubles is exact, and is rounded once. */
static inline uint32_t
sim_ldexp32(float a, int32_t e)
{
    int32_t by = e < -600 ? -600 : e > 600 ? 600 : e;

    return br_f32_bits(
        (float)((double)a * br_f64_of((uint64_t)(1023 + by) << 52)));
}

#endif
