/* mini.c - floats of 8 and 16 bits from a double, those of 8 bits to f32.
 *
 * One encoder serves the four small floats. With m stored mantissa bits and
 * quantum 2^q (the spacing of the format near v):
 *
 *      r = rint(|v| / 2^q)            an integer in [0, 2^(m+1)]
 *      bits = (E - 1) << m  +  r      E = q + m + bias, the biased exponent
 *
 * r carries the hidden one, so it lands in the exponent field by addition; a
 * round up to the next binade carries there as well, and a subnormal is the
 * case E = 1 without a hidden one. Scaling by 2^q is exact in a double, so
 * rint is the only rounding.
 *
 * E5M2 is the upper half of an F16; E4M3 moved up by seven is an F16, too, 2^8 too small.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"

#include <math.h>

typedef struct mini {
    int mbits;     /* stored mantissa bits */
    int bias;      /* of the exponent */
    uint32_t sign; /* the sign bit */
    uint32_t max;  /* bits of the largest finite value */
    uint32_t over; /* bits of what lies above it */
    uint32_t nan;
} mini;

static const mini f16 = {10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00};
static const mini bf16 = {7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0};
static const mini e4m3 = {3, 7, 0x80, 0x7e, 0x7f, 0x7f};
static const mini e5m2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e};

static uint32_t
encode(const mini *f, double v)
{
    uint32_t sign = signbit(v) ? f->sign : 0, bits;
    double a = fabs(v);
    int e, q;

    if (isnan(v))
        return sign | f->nan;
    if (isinf(v))
        return sign | f->over;
    if (a == 0)
        return sign;
    (void)frexp(a, &e); /* a in [2^(e-1), 2^e) */
    q = BR_MAX(e - 1, 1 - f->bias) - f->mbits;
    if (e - 1 > f->bias + 1) /* far above: keep bits in 32 bits */
        return sign | f->over;
    bits = ((uint32_t)(q + f->mbits + f->bias - 1) << f->mbits) +
           (uint32_t)rint(ldexp(a, -q));
    return sign | (bits > f->max ? f->over : bits);
}

float
br_f8e4m3_to_f32(uint8_t bits)
{
    const uint32_t a = bits & 0x7f, sign = (uint32_t)(bits & 0x80) << 8;

    if (a == 0x7f)
        return br_f32_of(sign << 16 | 0x7fc00000);
    return 256 * br_f16_to_f32((uint16_t)(sign | a << 7));
}

float
br_f8e5m2_to_f32(uint8_t bits)
{
    if ((bits & 0x7f) > 0x7c) /* one NaN, with its sign */
        return br_f32_of((uint32_t)(bits & 0x80) << 24 | 0x7fc00000);
    return br_f16_to_f32((uint16_t)(bits << 8));
}

uint16_t
br_f64_to_f16(double v)
{
    return (uint16_t)encode(&f16, v);
}

uint16_t
br_f64_to_bf16(double v)
{
    return (uint16_t)encode(&bf16, v);
}

uint8_t
br_f64_to_f8e4m3(double v)
{
    return (uint8_t)encode(&e4m3, v);
}

uint8_t
br_f64_to_f8e5m2(double v)
{
    return (uint8_t)encode(&e5m2, v);
}
