/* quant_block.c - blocks of 32 to 256 weights with a scale of their own.
 *
 *            bytes of a block                     weight
 *   Q4_0     d 16*qq                              d * (q - 8)
 *   Q4_1     d m 16*qq                            d * q + m
 *   Q5_0     d hhhh 16*qq                         d * (q - 16)
 *   Q5_1     d m hhhh 16*qq                       d * q + m
 *   Q8_0     d 32*q                               d * q, q signed
 *   IQ4_NL   d 16*qq                              d * level[q]
 *   MXFP4    e 16*qq                              2^(e-128) * level[q]
 *   NVFP4    4*e 32*qq                            a scale for 16 weights
 *   Q1_0     d 16*bits                            d or -d
 *   Q2_0     d 16*qqqq                            d * (q - 1)
 *   TQ1_0    48*t 4*t d                           d * (t - 1), 5 digits a byte
 *   TQ2_0    64*qqqq d                            d * (q - 1)
 *
 * d, m are F16. A byte qq holds weight i in its low nibble and weight i + half
 * a block in its high one; hhhh is 32 bits, the fifth bit of weight i in bit i.
 * The expressions round as they stand here: one product, one sum.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/quant_int.h"

const int8_t br_fp4_levels[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                  0, -1, -2, -3, -4, -6, -8, -12};
const int8_t br_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

/* ---- 32 weights --------------------------------------------------------- */

void
br_dq_Q4_0(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 18, y += 32) {
        float d = br_half_at(p);

        for (int i = 0; i < 16; i++) {
            y[i] = (float)((p[2 + i] & 15) - 8) * d;
            y[i + 16] = (float)((p[2 + i] >> 4) - 8) * d;
        }
    }
}

void
br_dq_Q4_1(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 20, y += 32) {
        float d = br_half_at(p), m = br_half_at(p + 2);

        for (int i = 0; i < 16; i++) {
            y[i] = (float)(p[4 + i] & 15) * d + m;
            y[i + 16] = (float)(p[4 + i] >> 4) * d + m;
        }
    }
}

/* Weight i of 32 whose low bits are nibbles and whose fifth bits are h. */
static int
five_bits(const uint8_t *nibbles, uint32_t h, int i)
{
    int q = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;

    return q | (int)(h >> i & 1) << 4;
}

void
br_dq_Q5_0(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 22, y += 32) {
        float d = br_half_at(p);
        uint32_t h = br_le32(p + 2);

        for (int i = 0; i < 32; i++)
            y[i] = (float)(five_bits(p + 6, h, i) - 16) * d;
    }
}

void
br_dq_Q5_1(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 24, y += 32) {
        float d = br_half_at(p), m = br_half_at(p + 2);
        uint32_t h = br_le32(p + 4);

        for (int i = 0; i < 32; i++)
            y[i] = (float)five_bits(p + 8, h, i) * d + m;
    }
}

void
br_dq_Q8_0(const uint8_t *restrict p, float *restrict y, size_t blocks)
{
    for (; blocks; blocks--, p += 34, y += 32) {
        float d = br_half_at(p);

        for (int i = 0; i < 32; i++)
            y[i] = (float)(int8_t)p[2 + i] * d;
    }
}

/* n bytes of nibbles that name levels. */
static void
levels(const uint8_t *p, const int8_t *level, float d, float *y, int n)
{
    for (int i = 0; i < n; i++) {
        y[i] = (float)level[p[i] & 15] * d;
        y[i + n] = (float)level[p[i] >> 4] * d;
    }
}

void
br_dq_IQ4_NL(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 18, y += 32)
        levels(p + 2, br_iq4_levels, br_half_at(p), y, 16);
}

void
br_dq_MXFP4(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 17, y += 32)
        levels(p + 1, br_fp4_levels, br_e8m0_half(p[0]), y, 16);
}

/* Half of an E4M3 number whose sign bit counts as nothing. 0x7f, which would
 * be NaN, is 0 by definition. */
static float
half_ue4m3(uint8_t x)
{
    int e = x >> 3 & 15, m = x & 7;

    if (x == 0x7f)
        return 0;
    if (e == 0)
        return (float)m * 0x1p-10f;
    return (float)(8 + m) * 0x1p-11f * (float)(1 << e);
}

void
br_dq_NVFP4(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 36, y += 64)
        for (int k = 0; k < 4; k++)
            levels(p + 4 + 8 * k, br_fp4_levels, half_ue4m3(p[k]), y + 16 * k,
                   8);
}

/* ---- one and two bits --------------------------------------------------- */

void
br_dq_Q1_0(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 18, y += 128) {
        float d = br_half_at(p);

        for (int i = 0; i < 128; i++)
            y[i] = p[2 + i / 8] >> i % 8 & 1 ? d : -d;
    }
}

void
br_dq_Q2_0(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 18, y += 64) {
        float d = br_half_at(p);

        for (int i = 0; i < 64; i++)
            y[i] = (float)((p[2 + i / 4] >> i % 4 * 2 & 3) - 1) * d;
    }
}

/* Digit k of a byte that is a fraction in base 3: five of them are packed as
 * ceil(number * 256 / 243), so multiplying by 3^k and by 3 brings digit k
 * above the byte. */
static float
ternary(uint8_t byte, int k)
{
    static const uint8_t pow3[5] = {1, 3, 9, 27, 81};
    uint8_t frac = (uint8_t)(byte * pow3[k]);

    return (float)((frac * 3 >> 8) - 1);
}

void
br_dq_TQ1_0(const uint8_t *p, float *y, size_t blocks)
{
    /* bytes from, how many, digits in each: 32 and 16 fives, 4 fours */
    static const struct {
        int from, n, digits;
    } parts[] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};

    for (; blocks; blocks--, p += 54) {
        float d = br_half_at(p + 52);

        for (size_t k = 0; k < BR_COUNT(parts); k++)
            for (int digit = 0; digit < parts[k].digits; digit++)
                for (int i = 0; i < parts[k].n; i++)
                    *y++ = ternary(p[parts[k].from + i], digit) * d;
    }
}

void
br_dq_TQ2_0(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 66) {
        float d = br_half_at(p + 64);

        for (int i = 0; i < 256; i++) {
            int half = i / 128, row = i / 32 % 4, col = i % 32;

            *y++ = (float)((p[half * 32 + col] >> 2 * row & 3) - 1) * d;
        }
    }
}

/* ---- eight bits of a float under a scale --------------------------------- */

static void
f8(const uint8_t *p, float *y, size_t n, float (*number)(uint8_t))
{
    for (; n; n--, p += 68, y += 64) {
        const float scale = br_f32_of(br_le32(p));

        for (int i = 0; i < 64; i++)
            y[i] = scale * number(p[4 + i]);
    }
}

void
br_dq_F8_E4M3(const uint8_t *p, float *y, size_t n)
{
    f8(p, y, n, br_f8e4m3_to_f32);
}

void
br_dq_F8_E5M2(const uint8_t *p, float *y, size_t n)
{
    f8(p, y, n, br_f8e5m2_to_f32);
}
