/* mat_pack.c - tensors into panels. Layouts: mat_int.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_tight.h"
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

/* Rows from..: outputs of one panel, lines of one piece; where they end. */
static MAT_INLINE uint8_t *
pack_piece(const br_mat *m, int type, const uint8_t *raw, int n_out,
           uint32_t piece, uint8_t *to)
{
    uint32_t size = type == BR_Q_F32 ? 4 : 2, row = m->n_in * size;
    uint32_t apart = type == BR_Q_BF16 ? 2 : 1; /* of outputs */
    uint32_t lane = type == BR_Q_BF16 ? 1 : BR_MAT_PANEL;

    for (uint32_t k = mat_lane(piece); k < (m->n_in + 15) / 16 * 16; k += 16) {
        for (int o = 0; o < n_out; o++)
            for (uint32_t l = 0; l < 2; l++) {
                uint8_t *at = to + (o * apart + l * lane) * size;

                if (k + l < m->n_in)
                    memcpy(at, raw + o * (size_t)row + (k + l) * size, size);
                else
                    at[size - 1] = 0x80; /* -0 */
            }
        to += 32 * size;
    }
    return to;
}

static MAT_INLINE void
pack_lines(const br_mat *m, int type, const uint8_t *raw, int n_out,
           uint8_t *to)
{
    for (uint32_t i = 0; i < 8; i++)
        to = pack_piece(m, type, raw, n_out, i, to);
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

/* ---- BF16 in twelve bits: mat_tight.h ------------------------------------ */

enum { LOOK_AT = 4 /* of a row every so many */ };

/* The commonest high bytes. */
static void
choose_highs(const br_mat *m, const uint8_t *raw, int n_out, uint8_t *high)
{
    uint32_t count[256] = {0};
    size_t n = (size_t)n_out * m->n_in;

    for (size_t i = 0; i < n; i += LOOK_AT)
        count[raw[2 * i + 1]]++;
    count[0] += (uint32_t)(BR_MAT_PANEL - n_out) * m->n_in; /* that it lacks */
    for (int i = 0; i < 16; i++) {
        uint32_t best = 0;

        for (uint32_t b = 1; b < 256; b++)
            best = count[b] > count[best] ? b : best;
        high[i] = (uint8_t)best;
        count[best] = 0;
    }
}

/* Where n spares of a panel go; TIGHT_NO_ROOM: the matrix has too many. */
static uint32_t
take_spares(tight_pool *pool, uint32_t most, uint32_t n)
{
    /* relaxed: a place is taken, nothing else is told */
    uint32_t at = atomic_load_explicit(&pool->taken, memory_order_relaxed);

    do
        if (most - at < n)
            return TIGHT_NO_ROOM;
    while (!atomic_compare_exchange_weak_explicit(
        &pool->taken, &at, at + n, memory_order_relaxed, memory_order_relaxed));
    return at;
}

/* False: there are more spares than there is room for. */
static bool
tighten(const br_mat *m, const uint8_t *raw, int n_out, uint8_t *panel,
        tight_pool *pool)
{
    _Alignas(64) uint8_t lines[TIGHT_MOST * 4];
    uint8_t spare[TIGHT_PANEL_SPARES + 1][TIGHT_HIGHS];
    uint8_t *group = panel + tight_head_bytes(m->n_in);
    tight_head *h = (tight_head *)(void *)panel;
    uint32_t n = 0, groups = tight_groups(m->n_in);

    choose_highs(m, raw, n_out, h->high);
    memset(lines, 0, m->n_in * 4);
    for (uint32_t piece = 0; piece < 8; piece++) {
        h->first[piece] = (uint16_t)n;
        (void)pack_piece(m, BR_Q_BF16, raw, n_out, piece, lines);
        for (uint32_t g = 0; g < groups; g++, group += TIGHT_GROUP) {
            if (mat_isas[m->isa].tighten(lines + g * 64 * TIGHT_LINES, h->high,
                                         group, spare[n]))
                continue;
            if (n == tight_panel_spares(m->n_in))
                return false;
            h->at[n++] = (uint16_t)(piece * groups + g);
        }
    }
    h->first[8] = (uint16_t)n;
    h->at[n] = TIGHT_NOBODY;
    h->spare = take_spares(pool, tight_spares(m), n);
    if (h->spare == TIGHT_NO_ROOM)
        return false;
    memcpy(pool->spare[h->spare], spare, (size_t)n * TIGHT_HIGHS);
    return true;
}

static bool
pack_panel(const br_mat *m, const uint8_t *raw, int n_out, uint8_t *panel,
           tight_pool *pool)
{
    const mat_format *f = mat_format_of(m->type);
    uint32_t blocks = m->n_in / br_qinfo_of(m->type)->elems;
    size_t row = (size_t)blocks * br_qinfo_of(m->type)->bytes;

    memset(panel, 0, m->panel_bytes);
    if (m->tight)
        return tighten(m, raw, n_out, panel, pool);
    if (f->class == MAT_FLOAT)
        pack_floats(m, raw, n_out, panel);
    else if (f->class == MAT_RAW)
        memcpy(panel, raw, (size_t)n_out * row);
    for (int o = 0; f->class < MAT_FLOAT && o < n_out; o++)
        pack_integers(m->type, blocks, raw + o * row, o, panel);
    return true;
}

bool
br_mat_pack(const br_mat *m, const uint8_t *raw, uint8_t *dst, uint32_t p0,
            uint32_t p1)
{
    const br_qinfo *q = br_qinfo_of(m->type);
    uint64_t row = (uint64_t)(m->n_in / q->elems) * q->bytes;
    tight_pool *pool = (void *)(dst + br_mat_panels(m) * m->panel_bytes);
    bool fits = true;

    for (uint32_t p = p0; p < p1 && fits; p++)
        fits =
            pack_panel(m, raw + (uint64_t)p * BR_MAT_PANEL * row,
                       (int)BR_MIN(m->n_out - p * BR_MAT_PANEL, BR_MAT_PANEL),
                       dst + p * m->panel_bytes, pool);
    return fits;
}
