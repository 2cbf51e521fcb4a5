/* half.h - the small floats that weights are made of.
 *
 *   F16    s eeeee mmmmmmmmmm        IEEE binary16
 *   BF16   s eeeeeeee mmmmmmm        the upper half of an f32
 *   E5M2   s eeeee mm                the upper half of an F16
 *   E4M3   s eeee mmm                no infinity, one NaN
 *   E8M0     eeeeeeee                a power of two, the scale of MXFP4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HALF_H
#define BR_HALF_H

#include "base/base.h"
#include "base/bits.h"

float br_f16_to_f32(uint16_t h);
/* Nearest, ties to even; what is too large becomes infinity. A NaN stays one,
 * with its sign and the upper bits of its payload. */
uint16_t br_f32_to_f16(float f);
uint16_t br_f32_to_bf16(float f);

static inline float
br_bf16_to_f32(uint16_t h)
{
    return br_f32_of((uint32_t)h << 16);
}

/* ---- mini.c ---- */
float br_f8e4m3_to_f32(uint8_t bits); /* no infinity; 0x7f, 0xff are NaN */
float br_f8e5m2_to_f32(uint8_t bits);
/* Overflow gives infinity, or NaN in E4M3. A NaN keeps its sign. */
uint16_t br_f64_to_f16(double v);
uint16_t br_f64_to_bf16(double v);
uint8_t br_f64_to_f8e4m3(double v);
uint8_t br_f64_to_f8e5m2(double v);

/* 2^(e - 128): half of what E8M0 says, for levels that are doubled (MXFP4).
 * The lowest two are subnormal. */
static inline float
br_e8m0_half(uint8_t e)
{
    return br_f32_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

#endif
