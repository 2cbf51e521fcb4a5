/* half.h - the two 16-bit floats that weights are made of.
 *
 *   F16    s eeeee mmmmmmmmmm        IEEE binary16
 *   BF16   s eeeeeeee mmmmmmm        the upper half of an f32
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HALF_H
#define BR_HALF_H

#include "base/base.h"

float br_f16_to_f32(uint16_t h);
/* Nearest, ties to even; what is too large becomes infinity. A NaN stays one,
 * with its sign and the upper bits of its payload. */
uint16_t br_f32_to_f16(float f);
uint16_t br_f32_to_bf16(float f);

static inline float
br_bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)h << 16};

    return v.f;
}

#endif
