/* mat_pack.c - tensors into panels. Layouts: mat_int.h.
 *
 * Integer formats go through br_qint_block, whatever their bits look like in
 * the file: one way in for all of them, at 0.5 GB/s or so a thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"
#include "model/qint.h"
#include "model/quant_int.h"

/* The number kept for weight i: what br_qint_block made of it, back. */
static int
stored(const mat_format *f, const br_qint *b, int i)
{
    const int8_t *level = f->level == MAT_IQ4   ? br_iq4_levels
                          : f->level == MAT_FP4 ? br_fp4_levels
                                                : NULL;
    int at = 0;

    if (!level)
        return b->q[i] + f->off;
    while (level[at] != b->q[i])
        at++;
    return at;
}

/* Number v of k (0..31 of a step), output o. */
static void
put_weight(const mat_format *f, uint8_t *step, int o, int k, int v)
{
    int g = k / 4, at = 4 * o + k % 4;

    if (f->low == 8) {
        step[64 * g + at] = (uint8_t)v;
        return;
    }
    step[64 * (g / 2) + at] |= (uint8_t)((v & 15) << g % 2 * 4);
    if (f->high == 1)
        step[256 + at] |= (uint8_t)(v >> 4 << g);
    else if (f->high == 2)
        step[256 + 64 * (g / 4) + at] |= (uint8_t)(v >> 4 << 2 * (g % 4));
}

static void
put_scales(const mat_format *f, uint8_t *p, int o, const br_qint *b)
{
    p += 4 * o;
    if (f->sub == 16) {
        for (int j = 0; j < 16; j++)
            p[64 * (j / 4) + j % 4] = (uint8_t)b->scale[j];
        return;
    }
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)((b->scale[i] & 15) | (b->scale[4 + i] & 15) << 4);
        p[64 + i] = (uint8_t)((b->min[i] & 15) | (b->min[4 + i] & 15) << 4);
        p[128 + i] = (uint8_t)(b->scale[i] >> 4 | b->scale[4 + i] >> 4 << 2 |
                               b->min[i] >> 4 << 4 | b->min[4 + i] >> 4 << 6);
    }
}

/* Scales stay the bits of the file: where they stand in a block there. */
static void
put_head(const mat_format *f, int type, uint8_t *head, int at,
         const uint8_t *raw)
{
    size_t d = type == BR_Q_Q6_K ? 208 : 0;

    if (f->level == MAT_FP4) {
        head[at] = raw[0];
        return;
    }
    memcpy(head + 2 * at, raw + d, 2);
    if (f->min)
        memcpy(head + 128 + 2 * at, raw + d + 2, 2);
}

static void
pack_row(const br_mat *m, const mat_format *f, const uint8_t *raw, int o,
         uint8_t *panel)
{
    const br_qinfo *q = br_qinfo_of(m->type);
    uint32_t blocks = m->n_in / q->elems, size = mat_block_bytes(f);
    br_qint b;

    for (uint32_t i = 0; i < blocks; i++, raw += q->bytes) {
        int c = (int)(i % 4);
        uint8_t *group =
            panel + (uint64_t)(i / 4) * (mat_head_bytes(f) + 4 * size);
        uint8_t *block = group + mat_head_bytes(f) + c * size;
        uint8_t *step = block + mat_scale_bytes(f);

        br_qint_block(m->type, raw, &b);
        put_head(f, m->type, group, 16 * c + o, raw);
        if (f->class == MAT_K)
            put_scales(f, block, o, &b);
        for (int k = 0; k < b.n; k++)
            put_weight(f, step + k / 32 * mat_step_bytes(f), o, k % 32,
                       stored(f, &b, k));
    }
}

static void
pack_float(const br_mat *m, const uint8_t *raw, int o, uint8_t *panel)
{
    uint32_t size = br_qinfo_of(m->type)->bytes, row = m->n_in * size;
    uint32_t lines = (row + 63) / 64;
    uint8_t *to = panel + (uint64_t)(o / 4) * 256 * lines + o % 4 * 64;

    for (uint32_t i = 0; i < lines; i++, to += 256, raw += 64) {
        uint32_t n = BR_MIN(row - i * 64, 64);

        memcpy(to, raw, n);
        for (uint32_t b = n + size - 1; b < 64; b += size) /* -0 */
            to[b] = 0x80;
    }
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

        memset(panel, 0, m->panel_bytes);
        for (int o = 0; o < BR_MAT_PANEL; o++) {
            uint64_t n = (uint64_t)p * BR_MAT_PANEL + o;
            const uint8_t *from = raw + n * row;

            if (n >= m->n_out)
                break;
            if (f->class == MAT_FLOAT)
                pack_float(m, from, o, panel);
            else if (f->class == MAT_RAW)
                memcpy(panel + o * row, from, row);
            else
                pack_row(m, f, from, o, panel);
        }
    }
}
