/* quant_k.c - K-quants: 256 weights, sub-blocks with integer scales.
 *
 *          bytes of a block, in order                              weight
 *   Q2_K   16*(min4 scale4)  64*qqqq  d dmin       d*scale * q - dmin*min
 *   Q3_K   32*high 64*qqqq 12*scales6 d            d*(scale - 32) * (q - 4)
 *   Q4_K   d dmin 12*(scales6, mins6) 128*qq       d*scale * q - dmin*min
 *   Q5_K   d dmin 12*(scales6, mins6) 32*high 128*qq         the same
 *   Q6_K   128*qq 64*high 16*scale8 d              d*scale * (q - 32)
 *
 * Sub-blocks are 16 weights (Q2, Q3, Q6) or 32 (Q4, Q5). Two-bit fields lie in
 * rows: the 32 bytes of a half hold weights 0..31 in bits 0-1, 32..63 in bits
 * 2-3 and so on; nibbles of Q4 and Q5 in rows of 32 as well. Products are taken
 * from the left: (d * scale) * q.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/quant_int.h"

void
br_dq_Q2_K(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 84) {
        const uint8_t *q = p + 16;
        float d = br_half_at(p + 80), dmin = br_half_at(p + 82);

        for (int i = 0; i < 256; i++) {
            int half = i / 128, row = i / 32 % 4, scale = p[i / 16];
            int bits = q[half * 32 + i % 32] >> 2 * row & 3;

            *y++ = d * (float)(scale & 15) * (float)bits -
                   dmin * (float)(scale >> 4);
        }
    }
}

/* Scale j of 16: low nibbles in 8 bytes, first eight in the low halves, then
 * two high bits each in 4 bytes. */
static int
q3_scale(const uint8_t *s, int j)
{
    int low = s[j % 8] >> j / 8 * 4 & 15;
    int high = s[8 + j % 4] >> j / 4 * 2 & 3;

    return (low | high << 4) - 32;
}

void
br_dq_Q3_K(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 110) {
        const uint8_t *q = p + 32;
        float d = br_half_at(p + 108);

        for (int i = 0; i < 256; i++) {
            int half = i / 128, row = i / 32 % 4;
            int bits = q[half * 32 + i % 32] >> 2 * row & 3;
            int high = p[i % 32] >> i / 32 & 1;

            *y++ = d * (float)q3_scale(p + 96, i / 16) *
                   (float)(bits + 4 * high - 4);
        }
    }
}

void
br_dq_Q4_K(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 144) {
        float d = br_half_at(p), dmin = br_half_at(p + 2);

        for (int j = 0; j < 8; j++) {
            const uint8_t *q = p + 16 + j / 2 * 32;
            int scale, min;
            float ds, ms;

            br_k_scale(p + 4, j, &scale, &min);
            ds = d * (float)scale;
            ms = dmin * (float)min;
            for (int i = 0; i < 32; i++)
                *y++ = ds * (float)(q[i] >> j % 2 * 4 & 15) - ms;
        }
    }
}

void
br_dq_Q5_K(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 176) {
        const uint8_t *high = p + 16;
        float d = br_half_at(p), dmin = br_half_at(p + 2);

        for (int j = 0; j < 8; j++) {
            const uint8_t *q = p + 48 + j / 2 * 32;
            int scale, min;
            float ds, ms;

            br_k_scale(p + 4, j, &scale, &min);
            ds = d * (float)scale;
            ms = dmin * (float)min;
            for (int i = 0; i < 32; i++)
                *y++ = ds * (float)((q[i] >> j % 2 * 4 & 15) |
                                    (high[i] >> j & 1) << 4) -
                       ms;
        }
    }
}

void
br_dq_Q6_K(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 210) {
        float d = br_half_at(p + 208);

        for (int i = 0; i < 256; i++) {
            int half = i / 128, row = i / 32 % 4, col = i % 32;
            int low = p[half * 64 + row % 2 * 32 + col] >> row / 2 * 4 & 15;
            int high = p[128 + half * 32 + col] >> 2 * row & 3;
            int scale = (int8_t)p[192 + i / 16];

            *y++ = d * (float)scale * (float)((low | high << 4) - 32);
        }
    }
}
