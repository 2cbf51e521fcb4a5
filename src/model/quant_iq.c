/* quant_iq.c - IQ formats: 256 weights as codebook vectors, signs and scales.
 *
 * A vector of 8 (or two of 4) magnitudes comes out of a codebook; a sign for
 * each comes from a byte, or from 7 bits, the eighth being their parity. s is
 * an integer scale of a group, d the F16 scale of the block.
 *
 *            bytes of a block, in order                         weight
 *   IQ2_XXS  d  8 * (4 index bytes, u32: s4 signs7 x4)      d (s+1/2)/4 * g
 *   IQ2_XS   d  32 * u16 (signs7 index9)  8 * (s4 s4)       d (s+1/2)/4 * g
 *   IQ2_S    d  32 index  32 signs  8 index high  8*(s4 s4) d (s+1/2)/4 * g
 *   IQ3_XXS  d  64 index  8 * u32 (s4 signs7 x4)            d (s+1/2)/2 * g
 *   IQ3_S    d  64 index  8 index high  32 signs  4*(s4 s4)    d (2s+1) * g
 *   IQ1_S    d  32 index  8 * u16 (shift s3 index high 3 x4)
 *                                                      d (2s+1) * (g +- 1/8)
 *   IQ1_M    32 index  16 * (shift index high 3, x2)  4 * u16 (d4 s3 x4)  same
 *   IQ4_XS   d  u16 s high 2 x8  4 * (s4 s4)  128*qq    d (s-32) * level[q]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "model/quant_int.h"

/* ---- codebooks ---------------------------------------------------------- */

static struct {
    int8_t iq2_xxs[256][8], iq2_xs[512][8], iq2_s[1024][8], iq1[2048][8];
    int8_t iq3_xxs[256][4], iq3_s[512][4];
} grid;

enum { SET_WORDS = 103 }; /* 64 bits each: 3^8 = 6561, 8^4 = 4096 */

#define GRID(name, n, ...)                          \
    static const uint64_t set_##name[SET_WORDS] = { \
        __VA_ARGS__,                                \
    };
#include "model/quant_grid.def"
#undef GRID

/* Writes the vectors of a set of numbers in base `base` with `digits` digits,
 * each digit by its level. Returns how many there were. */
static size_t
expand(int8_t *out, const uint64_t *set, const int8_t *level, int base,
       int digits)
{
    size_t n = 0;

    for (int i = 0; i < SET_WORDS * 64; i++) {
        if (!(set[i / 64] >> i % 64 & 1))
            continue;
        for (int k = 0, v = i; k < digits; k++, v /= base)
            *out++ = level[v % base];
        n++;
    }
    return n;
}

static void
expand_all(void)
{
    static const int8_t two[3] = {8, 25, 43}, one[3] = {-1, 0, 1};
    static const int8_t xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    static const int8_t odd[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    size_t n = 0;

    n += expand(grid.iq2_xxs[0], set_iq2_xxs, two, 3, 8);
    n += expand(grid.iq2_xs[0], set_iq2_xs, two, 3, 8);
    n += expand(grid.iq2_s[0], set_iq2_s, two, 3, 8);
    n += expand(grid.iq3_xxs[0], set_iq3_xxs, xxs, 8, 4);
    n += expand(grid.iq3_s[0], set_iq3_s, odd, 8, 4);
    n += expand(grid.iq1[0], set_iq1, one, 3, 8);
    br_check(n == 256 + 512 + 1024 + 256 + 512 + 2048 && "sets as stated");
}

static void
need_grids(void)
{
    static br_once once = BR_ONCE;

    br_once_run(&once, expand_all);
}

/* ---- signs -------------------------------------------------------------- */

/* The eighth sign makes the number of minus signs even. */
static unsigned
signs_of_7(uint32_t bits)
{
    bits &= 127;
    return bits | (unsigned)__builtin_parity(bits) << 7;
}

/* n magnitudes times d, minus where the sign's bit is set. */
static float *
put_signed(float *y, const int8_t *g, int n, unsigned signs, float d)
{
    for (int i = 0; i < n; i++) {
        float v = d * (float)g[i];

        *y++ = signs >> i & 1 ? -v : v;
    }
    return y;
}

/* ---- two bits ----------------------------------------------------------- */

static float
quarter(float d, int s)
{
    return d * (0.5f + (float)s) * 0.25f;
}

void
br_dq_IQ2_XXS(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 66)
        for (int j = 0; j < 8; j++) {
            const uint8_t *q = p + 2 + 8 * j;
            uint32_t w = br_le32(q + 4);
            float d = quarter(br_half_at(p), (int)(w >> 28));

            for (int k = 0; k < 4; k++)
                y = put_signed(y, grid.iq2_xxs[q[k]], 8, signs_of_7(w >> 7 * k),
                               d);
        }
}

void
br_dq_IQ2_XS(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 74)
        for (int j = 0; j < 32; j++) {
            unsigned w = br_le16(p + 2 + 2 * j);
            int s = p[66 + j / 4] >> j / 2 % 2 * 4 & 15;

            y = put_signed(y, grid.iq2_xs[w & 511], 8, signs_of_7(w >> 9),
                           quarter(br_half_at(p), s));
        }
}

void
br_dq_IQ2_S(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 82)
        for (int j = 0; j < 32; j++) {
            int at = p[2 + j] | (p[66 + j / 4] >> j % 4 * 2 & 3) << 8;
            int s = p[74 + j / 4] >> j / 2 % 2 * 4 & 15;

            y = put_signed(y, grid.iq2_s[at], 8, p[34 + j],
                           quarter(br_half_at(p), s));
        }
}

/* ---- three bits --------------------------------------------------------- */

void
br_dq_IQ3_XXS(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 98)
        for (int j = 0; j < 8; j++) {
            const uint8_t *q = p + 2 + 8 * j;
            uint32_t w = br_le32(p + 66 + 4 * j);
            float d = br_half_at(p) * (0.5f + (float)(w >> 28)) * 0.5f;

            for (int k = 0; k < 4; k++) {
                unsigned signs = signs_of_7(w >> 7 * k);

                y = put_signed(y, grid.iq3_xxs[q[2 * k]], 4, signs, d);
                y = put_signed(y, grid.iq3_xxs[q[2 * k + 1]], 4, signs >> 4, d);
            }
        }
}

void
br_dq_IQ3_S(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 110)
        for (int j = 0; j < 64; j++) {
            int at = p[2 + j] | (p[66 + j / 8] >> j % 8 & 1) << 8;
            int s = p[106 + j / 16] >> j / 8 % 2 * 4 & 15;

            y = put_signed(y, grid.iq3_s[at], 4,
                           (unsigned)p[74 + j / 2] >> j % 2 * 4,
                           br_half_at(p) * (float)(1 + 2 * s));
        }
}

/* ---- one bit ------------------------------------------------------------ */

static float *
put_shifted(float *y, const int8_t *g, bool down, float d)
{
    for (int i = 0; i < 8; i++)
        *y++ = d * ((float)g[i] + (down ? -0.125f : 0.125f));
    return y;
}

void
br_dq_IQ1_S(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 50)
        for (int j = 0; j < 32; j++) {
            int h = br_le16(p + 34 + j / 4 * 2);
            int at = p[2 + j] | (h >> 3 * (j % 4) & 7) << 8;
            float d = br_half_at(p) * (float)(2 * (h >> 12 & 7) + 1);

            y = put_shifted(y, grid.iq1[at], h & 0x8000, d);
        }
}

/* The scale of the block lies in the top nibbles of the four words. */
static float
iq1_m_scale(const uint8_t *s)
{
    unsigned u = 0;

    for (int i = 0; i < 4; i++)
        u |= (unsigned)br_le16(s + 2 * i) >> 12 << 4 * i;
    return br_f16_to_f32((uint16_t)u);
}

void
br_dq_IQ1_M(const uint8_t *p, float *y, size_t blocks)
{
    need_grids();
    for (; blocks; blocks--, p += 56) {
        float all = iq1_m_scale(p + 48);

        for (int j = 0; j < 32; j++) {
            int h = p[32 + j / 2] >> j % 2 * 4;
            int at = p[j] | (h & 7) << 8;
            int s = br_le16(p + 48 + j / 8 * 2) >> j / 2 % 4 * 3 & 7;

            y = put_shifted(y, grid.iq1[at], h & 8, all * (float)(2 * s + 1));
        }
    }
}

/* ---- four bits ---------------------------------------------------------- */

void
br_dq_IQ4_XS(const uint8_t *p, float *y, size_t blocks)
{
    for (; blocks; blocks--, p += 136)
        for (int j = 0; j < 8; j++, y += 32) {
            const uint8_t *q = p + 8 + 16 * j;
            int low = p[4 + j / 2] >> j % 2 * 4 & 15;
            int high = br_le16(p + 2) >> 2 * j & 3;
            float d = br_half_at(p) * (float)((low | high << 4) - 32);

            for (int i = 0; i < 16; i++) {
                y[i] = d * (float)br_iq4_levels[q[i] & 15];
                y[i + 16] = d * (float)br_iq4_levels[q[i] >> 4];
            }
        }
}
