/* half.h - the small floats that weights are made of.
 *
 *   F16    s eeeee mmmmmmmmmm        IEEE binary16
 *   BF16   s eeeeeeee mmmmmmm        the upper half of an f32
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

/* 2^(e - 128): half of what E8M0 says, for levels that are doubled (MXFP4).
 * The lowest two are subnormal. */
static inline float
br_e8m0_half(uint8_t e)
{
    return br_f32_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

#endif
