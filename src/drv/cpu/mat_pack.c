/* mat_pack.c - tensors into panels. Layouts: mat_int.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"
#include "model/quant_int.h"

/* ---- four weights as the four bytes of a word ------------------------------
 *
 * Group g (k = 4 g..) of step s (32 k) of a block. Files keep k in the same
 * order inside a byte's worth of rows, so a group is always one aligned word,
 * shifted and masked: 1.5 weights a nanosecond and no table.               */

static MAT_INLINE uint32_t
low_bits(int type, const uint8_t *raw, int s, int g)
{
    const uint8_t *p = raw;
    int shift = g / 4 * 4, at = g % 4 * 4;

    switch (type) {
    case BR_Q_Q4_0:
    case BR_Q_IQ4_NL: p += 2; break;
    case BR_Q_MXFP4: p += 1; break;
    case BR_Q_Q4_1: p += 4; break;
    case BR_Q_Q5_0: p += 6; break;
    case BR_Q_Q5_1: p += 8; break;
    case BR_Q_Q6_K:
        shift = s % 4 / 2 * 4;
        at = s / 4 * 64 + s % 2 * 32 + 4 * g;
        break;
    default: /* Q4_K Q5_K */
        p += type == BR_Q_Q5_K ? 48 : 16;
        shift = s % 2 * 4;
        at = s / 2 * 32 + 4 * g;
    }
    return br_le32(p + at) >> shift & 0x0f0f0f0f;
}

static MAT_INLINE uint32_t
high_bits(int type, const uint8_t *raw, int s, int g)
{
    if (type == BR_Q_Q6_K)
        return br_le32(raw + 128 + s / 4 * 32 + 4 * g) >> s % 4 * 2 &
               0x03030303;
    if (type == BR_Q_Q5_K)
        return br_le32(raw + 16 + 4 * g) >> s & 0x01010101;
    /* Q5_0 Q5_1: four bits to four bytes. */
    return ((br_le32(raw + (type == BR_Q_Q5_1 ? 4 : 2)) >> 4 * g & 15) *
            0x00204081) &
           0x01010101;
}

/* ---- integer formats ----------------------------------------------------- */

static MAT_INLINE void
put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

/* Step s of a block, output o. */
static MAT_INLINE void
pack_step(int type, const uint8_t *raw, int s, int o, uint8_t *step)
{
    const mat_format *f = mat_format_of(type);
    uint32_t top[2] = {0, 0};

    step += 4 * o;
    if (f->low == 8) {
        for (int g = 0; g < 8; g++)
            memcpy(step + 64 * g, raw + 2 + 4 * g, 4);
        return;
    }
    MAT_UNROLL
    for (int c = 0; c < 4; c++)
        put32(step + 64 * c, low_bits(type, raw, s, 2 * c) |
                                 low_bits(type, raw, s, 2 * c + 1) << 4);
    if (f->high == 0)
        return;
    MAT_UNROLL
    for (int g = 0; g < 8; g++)
        top[f->high * g / 8] |= high_bits(type, raw, s, g) << f->high * g % 8;
    put32(step + 256, top[0]);
    if (f->high == 2)
        put32(step + 320, top[1]);
}

static void
pack_scales(int type, const uint8_t *raw, int o, uint8_t *p)
{
    int s[8], m[8];

    p += 4 * o;
    if (type == BR_Q_Q6_K) {
        for (int i = 0; i < 4; i++)
            memcpy(p + 64 * i, raw + 192 + 4 * i, 4);
        return;
    }
    for (int j = 0; j < 8; j++)
        br_k_scale(raw + 4, j, &s[j], &m[j]);
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)((s[i] & 15) | (s[4 + i] & 15) << 4);
        p[64 + i] = (uint8_t)((m[i] & 15) | (m[4 + i] & 15) << 4);
        p[128 + i] = (uint8_t)(s[i] >> 4 | s[4 + i] >> 4 << 2 | m[i] >> 4 << 4 |
                               m[4 + i] >> 4 << 6);
    }
}

/* Scales of blocks stay the bits of the file, from where they stand there. */
static void
pack_head(const mat_format *f, int type, const uint8_t *raw, int at,
          uint8_t *head)
{
    if (f->level == MAT_FP4) {
        head[at] = raw[0];
        return;
    }
    memcpy(head + 2 * at, raw + (type == BR_Q_Q6_K ? 208 : 0), 2);
    if (f->min)
        memcpy(head + 128 + 2 * at, raw + 2, 2);
}

static MAT_INLINE void
pack_row(int type, uint32_t blocks, const uint8_t *raw, int o, uint8_t *panel)
{
    const mat_format *f = mat_format_of(type);
    uint32_t bytes = br_qinfo_of(type)->bytes, size = mat_block_bytes(f);
    uint8_t *head = panel, *p = panel;

    for (uint32_t i = 0; i < blocks; i++, raw += bytes, p += size) {
        if (i % 4 == 0) {
            head = p;
            p += mat_head_bytes(f);
        }
        pack_head(f, type, raw, 16 * (int)(i % 4) + o, head);
        if (f->class == MAT_K)
            pack_scales(type, raw, o, p);
        for (int s = 0; s < (f->class == MAT_K ? 8 : 1); s++)
            pack_step(type, raw, s, o,
                      p + mat_scale_bytes(f) + (uint32_t)s * mat_step_bytes(f));
    }
}

/* A copy of pack_row for each format. */
static void
pack_integers(int type, uint32_t blocks, const uint8_t *raw, int o,
              uint8_t *panel)
{
    switch (type) {
#define F(name, ...)                                  \
    case BR_Q_##name:                                 \
        pack_row(BR_Q_##name, blocks, raw, o, panel); \
        return;
#include "drv/cpu/mat_format.def"
#undef F
    default: br_unreachable("a format of blocks");
    }
}

/* ---- floats, and what stays as it is ------------------------------------- */

/* Rows from..: outputs of one panel. */
static MAT_INLINE void
pack_lines(const br_mat *m, int type, const uint8_t *raw, int n_out,
           uint8_t *to)
{
    uint32_t size = type == BR_Q_F32 ? 4 : 2, row = m->n_in * size;
    uint32_t apart = type == BR_Q_BF16 ? 2 : 1; /* of outputs */
    uint32_t lane = type == BR_Q_BF16 ? 1 : BR_MAT_PANEL;

    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = mat_lane(i); k < (m->n_in + 15) / 16 * 16; k += 16) {
            for (int o = 0; o < n_out; o++)
                for (uint32_t l = 0; l < 2; l++) {
                    uint8_t *at = to + (o * apart + l * lane) * size;

                    if (k + l < m->n_in)
                        memcpy(at, raw + o * (size_t)row + (k + l) * size,
                               size);
                    else
                        at[size - 1] = 0x80; /* -0 */
                }
            to += 32 * size;
        }
}

static void
pack_floats(const br_mat *m, const uint8_t *raw, int n_out, uint8_t *to)
{
    if (m->type == BR_Q_F32)
        pack_lines(m, BR_Q_F32, raw, n_out, to);
    else if (m->type == BR_Q_F16)
        pack_lines(m, BR_Q_F16, raw, n_out, to);
    else
        pack_lines(m, BR_Q_BF16, raw, n_out, to);
}

void
br_mat_pack(const br_mat *m, const uint8_t *raw, uint8_t *dst, uint32_t p0,
            uint32_t p1)
{
    const mat_format *f = mat_format_of(m->type);
    const br_qinfo *q = br_qinfo_of(m->type);
    uint64_t row = (uint64_t)(m->n_in / q->elems) * q->bytes;

    for (uint32_t p = p0; p < p1; p++) {
        uint8_t *panel = dst + p * m->panel_bytes;
        const uint8_t *from = raw + (uint64_t)p * BR_MAT_PANEL * row;
        int n = (int)BR_MIN(m->n_out - p * BR_MAT_PANEL, BR_MAT_PANEL);

        memset(panel, 0, m->panel_bytes);
        if (f->class == MAT_FLOAT)
            pack_floats(m, from, n, panel);
        else if (f->class == MAT_RAW)
            memcpy(panel, from, (size_t)n * row);
        for (int o = 0; f->class < MAT_FLOAT && o < n; o++)
            pack_integers(m->type, m->n_in / q->elems, from + o * row, o,
                          panel);
    }
}
