/* qint.c - blocks of quantised weights as integers; layouts: quant_k.c,
 * quant_block.c, quant_iq.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/qint.h"
#include "model/quant_int.h"

bool
br_qint_has(int type)
{
    switch (type) {
    case BR_Q_Q4_0:
    case BR_Q_Q4_1:
    case BR_Q_Q5_0:
    case BR_Q_Q5_1:
    case BR_Q_Q8_0:
    case BR_Q_Q2_K:
    case BR_Q_Q3_K:
    case BR_Q_Q4_K:
    case BR_Q_Q5_K:
    case BR_Q_Q6_K:
    case BR_Q_IQ4_NL:
    case BR_Q_IQ4_XS:
    case BR_Q_MXFP4: return true;
    default: return false;
    }
}

/* One scale for the whole block. */
static void
flat(br_qint *o, int n, float d)
{
    o->n = o->sub = n;
    o->d = d;
    o->scale[0] = 1;
}

/* Weight i in the low nibble of byte i, weight i + 16 in its high one. */
static int
nibble(const uint8_t *p, int i)
{
    return p[i % 16] >> i / 16 * 4 & 15;
}

static void
small_block(int type, const uint8_t *p, br_qint *o)
{
    bool min = type == BR_Q_Q4_1 || type == BR_Q_Q5_1;
    bool five = type == BR_Q_Q5_0 || type == BR_Q_Q5_1;
    const uint8_t *qs = p + 2 + 2 * min + 4 * five;
    uint32_t high = five ? br_le32(p + 2 + 2 * min) : 0;
    int shift = min ? 0 : five ? 16 : 8;

    flat(o, 32, br_half_at(p));
    if (min) {
        o->has_min = true;
        o->dmin = -br_half_at(p + 2);
        o->min[0] = 1;
    }
    for (int i = 0; i < 32; i++)
        o->q[i] =
            (int16_t)((nibble(qs, i) | (int)(high >> i & 1) << 4) - shift);
}

static void
q8_block(const uint8_t *p, br_qint *o)
{
    flat(o, 32, br_half_at(p));
    for (int i = 0; i < 32; i++)
        o->q[i] = (int8_t)p[2 + i];
}

static void
level_block(const uint8_t *qs, const int8_t *level, float d, br_qint *o)
{
    flat(o, 32, d);
    for (int i = 0; i < 32; i++)
        o->q[i] = level[nibble(qs, i)];
}

static void
q2_block(const uint8_t *p, br_qint *o)
{
    o->n = 256;
    o->sub = 16;
    o->d = br_half_at(p + 80);
    o->dmin = br_half_at(p + 82);
    o->has_min = true;
    for (int j = 0; j < 16; j++) {
        o->scale[j] = p[j] & 15;
        o->min[j] = p[j] >> 4;
    }
    for (int i = 0; i < 256; i++)
        o->q[i] = p[16 + i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3;
}

static void
q3_block(const uint8_t *p, br_qint *o)
{
    const uint8_t *s = p + 96;

    o->n = 256;
    o->sub = 16;
    o->d = br_half_at(p + 108);
    for (int j = 0; j < 16; j++)
        o->scale[j] = (int16_t)(((s[j % 8] >> j / 8 * 4 & 15) |
                                 (s[8 + j % 4] >> j / 4 * 2 & 3) << 4) -
                                32);
    for (int i = 0; i < 256; i++) {
        int bits = p[32 + i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3;

        o->q[i] = (int16_t)(bits + 4 * (p[i % 32] >> i / 32 & 1) - 4);
    }
}

static void
q45_block(int type, const uint8_t *p, br_qint *o)
{
    bool five = type == BR_Q_Q5_K;
    const uint8_t *high = p + 16, *qs = p + 16 + 32 * five;

    o->n = 256;
    o->sub = 32;
    o->d = br_half_at(p);
    o->dmin = br_half_at(p + 2);
    o->has_min = true;
    for (int j = 0; j < 8; j++) {
        int scale, min;

        br_k_scale(p + 4, j, &scale, &min);
        o->scale[j] = (int16_t)scale;
        o->min[j] = (int16_t)min;
        for (int i = 0; i < 32; i++) {
            int q = qs[j / 2 * 32 + i] >> j % 2 * 4 & 15;

            o->q[j * 32 + i] =
                (int16_t)(five ? q | (high[i] >> j & 1) << 4 : q);
        }
    }
}

static void
q6_block(const uint8_t *p, br_qint *o)
{
    o->n = 256;
    o->sub = 16;
    o->d = br_half_at(p + 208);
    for (int j = 0; j < 16; j++)
        o->scale[j] = (int8_t)p[192 + j];
    for (int i = 0; i < 256; i++) {
        int half = i / 128, row = i / 32 % 4, col = i % 32;
        int low = p[half * 64 + row % 2 * 32 + col] >> row / 2 * 4 & 15;
        int high = p[128 + half * 32 + col] >> 2 * row & 3;

        o->q[i] = (int16_t)((low | high << 4) - 32);
    }
}

static void
iq4_xs_block(const uint8_t *p, br_qint *o)
{
    uint16_t high = br_le16(p + 2);

    o->n = 256;
    o->sub = 32;
    o->d = br_half_at(p);
    for (int j = 0; j < 8; j++) {
        int low = p[4 + j / 2] >> j % 2 * 4 & 15;

        o->scale[j] = (int16_t)((low | (high >> 2 * j & 3) << 4) - 32);
        for (int i = 0; i < 32; i++)
            o->q[j * 32 + i] = br_iq4_levels[nibble(p + 8 + j * 16, i)];
    }
}

void
br_qint_block(int type, const uint8_t *p, br_qint *o)
{
    o->has_min = false;
    o->dmin = 0;
    switch (type) {
    case BR_Q_Q4_0:
    case BR_Q_Q4_1:
    case BR_Q_Q5_0:
    case BR_Q_Q5_1: small_block(type, p, o); return;
    case BR_Q_Q8_0: q8_block(p, o); return;
    case BR_Q_Q2_K: q2_block(p, o); return;
    case BR_Q_Q3_K: q3_block(p, o); return;
    case BR_Q_Q4_K:
    case BR_Q_Q5_K: q45_block(type, p, o); return;
    case BR_Q_Q6_K: q6_block(p, o); return;
    case BR_Q_IQ4_NL:
        level_block(p + 2, br_iq4_levels, br_half_at(p), o);
        return;
    case BR_Q_IQ4_XS: iq4_xs_block(p, o); return;
    case BR_Q_MXFP4:
        level_block(p + 1, br_fp4_levels, br_e8m0_half(p[0]), o);
        return;
    default: br_unreachable("ask br_qint_has first");
    }
}
