/* quant_float.c - numbers that are no blocks, to f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/quant_int.h"

void
br_dq_F32(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 4) {
        uint32_t u = br_le32(p);

        memcpy(y++, &u, sizeof u);
    }
}

void
br_dq_F16(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 2)
        *y++ = br_half_at(p);
}

void
br_dq_BF16(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 2)
        *y++ = br_bf16_to_f32(br_le16(p));
}

static uint64_t
le64(const uint8_t *p)
{
    return br_le32(p) | (uint64_t)br_le32(p + 4) << 32;
}

void
br_dq_F64(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 8)
        *y++ = (float)br_f64_of(le64(p));
}

void
br_dq_I8(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--)
        *y++ = (float)(int8_t)*p++;
}

void
br_dq_I16(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 2)
        *y++ = (float)(int16_t)br_le16(p);
}

void
br_dq_I32(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 4)
        *y++ = (float)(int32_t)br_le32(p);
}

void
br_dq_I64(const uint8_t *p, float *y, size_t n)
{
    for (; n; n--, p += 8)
        *y++ = (float)(int64_t)le64(p);
}
