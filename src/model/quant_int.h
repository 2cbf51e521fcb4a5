/* quant_int.h - what the files of the number formats share.
 *
 *   quant.c         the table of formats and its two entrances
 *   quant_float.c   F32 F16 BF16 F64 and the integers
 *   quant_block.c   small blocks with one scale (and one minimum)
 *   quant_k.c       256 weights in sub-blocks whose scales are integers
 *   quant_iq.c      256 weights out of codebooks (quant_grid.def)
 *   encode*.c       f32 to blocks
 *
 * Blocks are read and written byte by byte: a row of a file has no alignment,
 * and everything in it is little endian.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_QUANT_INT_H
#define BR_QUANT_INT_H

#include "model/quant.h"

#include <string.h>

/* br_dq_Q4_0(src, dst, blocks) and so on for each row of qtype.def. */
#define Q(name, code, elems, bytes, flags) \
    void br_dq_##name(const uint8_t *p, float *y, size_t blocks);
#include "model/qtype.def"
#undef Q

/* The 16 levels of E2M1, doubled so that they are integers, and of IQ4. */
extern const int8_t br_fp4_levels[16];
extern const int8_t br_iq4_levels[16];

static inline uint16_t
br_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t
br_le32(const uint8_t *p)
{
    return (uint32_t)br_le16(p) | (uint32_t)br_le16(p + 2) << 16;
}

static inline float
br_half_at(const uint8_t *p)
{
    return br_f16_to_f32(br_le16(p));
}

/* Scale (6 bits) and minimum (6 bits) of sub-block j of Q4_K and Q5_K:
 *
 *   byte 0..3    [s4..s7 high 2 | s0..s3]     byte 4..7   [m4..m7 high 2 | m0..]
 *   byte 8..11   [m4..m7 low 4  | s4..s7 low 4]                             */
static inline void
br_k_scale(const uint8_t *q, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = q[j] & 63;
        *min = q[j + 4] & 63;
    } else {
        *scale = (q[j + 4] & 15) | q[j - 4] >> 6 << 4;
        *min = q[j + 4] >> 4 | q[j] >> 6 << 4;
    }
}

#endif
