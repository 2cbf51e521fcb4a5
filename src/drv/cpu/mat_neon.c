/* mat_neon.c - the kernels in NEON with sdot (Armv8.2 and later).
 *
 * A tile is 16 outputs (four registers of four) times up to four rows. One
 * lane of 32 bits is four k of an output, which is what sdot eats:
 *
 *   sdot v.4s, weights, activations[lane]   16 products, exact in 32 bits
 *
 * The activations' four bytes are a lane of a register of sixteen k, so four
 * rows need four registers for four groups; sums take 16 more and weights
 * four. K-quants multiply each sub-block's sum by its scale: sums twice, so
 * two rows at a time.
 *
 * Without sdot (Cortex-A72 and older) the C kernels serve.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"
#include "model/qint.h"
#include "model/quant_int.h"

#ifdef __ARM_FEATURE_DOTPROD
#    include "drv/cpu/mat_floats.h"

#    include <arm_neon.h>
#    include <float.h>

enum { TILE_ROWS = 4, K_ROWS = 2, Q = BR_MAT_PANEL / 4 };

/* ---- weights ------------------------------------------------------------- */

/* Bits of v's bytes from position `from` to 4 and up. */
static MAT_INLINE uint8x16_t
high_bits(uint8x16_t v, int from, int mask)
{
    v = vshlq_u8(v, vdupq_n_s8((int8_t)(4 - from)));
    return vandq_u8(v, vdupq_n_u8((uint8_t)mask));
}

/* Weights of group g: four outputs a register. */
static MAT_INLINE void
load_group(const mat_format *f, const uint8_t *p, int g, int8x16_t w[Q])
{
    MAT_UNROLL
    for (int h = 0; h < Q; h++) {
        uint8x16_t v;

        if (f->low == 8) {
            w[h] = vld1q_s8((const int8_t *)p + 64 * g + 16 * h);
            continue;
        }
        v = vld1q_u8(p + 64 * (g / 2) + 16 * h);
        v = g % 2 ? vshrq_n_u8(v, 4) : vandq_u8(v, vdupq_n_u8(15));
        if (f->high == 1)
            v = vorrq_u8(v, high_bits(vld1q_u8(p + 256 + 16 * h), g, 0x10));
        else if (f->high == 2)
            v = vorrq_u8(v, high_bits(vld1q_u8(p + 256 + 64 * (g / 4) + 16 * h),
                                      2 * (g % 4), 0x30));
        if (f->level == MAT_PLAIN)
            w[h] = vsubq_s8(vreinterpretq_s8_u8(v), vdupq_n_s8((int8_t)f->off));
        else
            w[h] = vqtbl1q_s8(
                vld1q_s8(f->level == MAT_IQ4 ? br_iq4_levels : br_fp4_levels),
                v);
    }
}

/* ---- products ------------------------------------------------------------ */

/* sdot wants its lane as a constant of the text. */
static MAT_INLINE int32x4_t
dot(int32x4_t sum, int8x16_t w, int8x16_t a, int lane)
{
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, a, 0);
    case 1: return vdotq_laneq_s32(sum, w, a, 1);
    case 2: return vdotq_laneq_s32(sum, w, a, 2);
    default: return vdotq_laneq_s32(sum, w, a, 3);
    }
}

/* Groups 4 part to 4 part + 3 of a step, so 16 k: sum[row][quarter] += dot.
 * q: each row's activations of the step. */
static MAT_INLINE void
half_step(const mat_format *f, const uint8_t *p, int part, int n,
          const int8_t *const *q, int32x4_t sum[TILE_ROWS][Q])
{
    int8x16_t a[TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        a[r] = vld1q_s8(q[r] + 16 * part);
    MAT_UNROLL
    for (int i = 0; i < 4; i++) {
        int8x16_t w[Q];

        load_group(f, p, 4 * part + i, w);
        MAT_UNROLL
        for (int j = 0; j < n * Q; j++)
            sum[j / Q][j % Q] = dot(sum[j / Q][j % Q], w[j % Q], a[j / Q], i);
    }
}

/* ---- blocks of 32 -------------------------------------------------------- */

static MAT_INLINE float32x4_t
halves(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

/* 2^(e - 128); the two smallest are subnormal. */
static MAT_INLINE float32x4_t
mx_scales(const uint8_t *p)
{
    uint32_t four;
    uint32x4_t e, big, tiny;

    memcpy(&four, p, 4);
    e = vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
    big = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(
        vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), tiny, big));
}

static MAT_INLINE void
flat_block(const mat_format *f, mat_place at, int n, const act_view *a,
           float32x4_t chain[TILE_ROWS][Q])
{
    int32x4_t sum[TILE_ROWS][Q];
    const int8_t *q[TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        q[r] = a[r].q + 32 * at.b;
        for (int h = 0; h < Q; h++)
            sum[r][h] = vdupq_n_s32(0);
    }
    half_step(f, at.block, 0, n, q, sum);
    half_step(f, at.block, 1, n, q, sum);
    MAT_UNROLL
    for (int i = 0; i < Q * n; i++) {
        int h = i / n, r = i % n;
        float d = a[r].d[at.b];
        float32x4_t y =
            vmulq_n_f32(f->level == MAT_FP4 ? mx_scales(at.head + 4 * h)
                                            : halves(at.head + 8 * h),
                        d);

        y = vmulq_f32(y, vcvtq_f32_s32(sum[r][h]));
        if (f->min)
            y = vfmsq_n_f32(y, vmulq_n_f32(halves(at.head + 128 + 8 * h), d),
                            (float)a[r].nsum[at.b]);
        chain[r][h] = vaddq_f32(chain[r][h], y);
    }
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* Scales as bytes: s[v][h] holds sub-blocks 4 v.. of four outputs. */
typedef struct scales {
    uint8x16_t s[4][Q], min[2][Q];
} scales;

/* Bits `from`.. of a byte's low six: four of v, two of top. */
static MAT_INLINE uint8x16_t
six_bits(uint8x16_t v, int from, uint8x16_t top, int top_from)
{
    v = vshlq_u8(v, vdupq_n_s8((int8_t)-from));
    return vorrq_u8(vandq_u8(v, vdupq_n_u8(15)),
                    high_bits(top, top_from, 0x30));
}

static MAT_INLINE void
load_scales(const mat_format *f, const uint8_t *p, scales *k)
{
    MAT_UNROLL
    for (int h = 0; h < Q; h++) {
        uint8x16_t s = vld1q_u8(p + 16 * h), m = vld1q_u8(p + 64 + 16 * h);
        uint8x16_t top = vld1q_u8(p + 128 + 16 * h);

        if (f->sub == 16) {
            k->s[0][h] = s;
            k->s[1][h] = m;
            k->s[2][h] = top;
            k->s[3][h] = vld1q_u8(p + 192 + 16 * h);
            continue;
        }
        k->s[0][h] = six_bits(s, 0, top, 0);
        k->s[1][h] = six_bits(s, 4, top, 2);
        k->min[0][h] = six_bits(m, 0, top, 4);
        k->min[1][h] = six_bits(m, 4, top, 6);
    }
}

/* Byte i of each output's four. */
static MAT_INLINE int32x4_t
pick(uint8x16_t v, int i)
{
    int32x4_t up = vshlq_s32(vreinterpretq_s32_u8(v), vdupq_n_s32(24 - 8 * i));

    return vshrq_n_s32(up, 24);
}

/* low[row][quarter] += min * (sum of 32 activations) of sub-block j. */
static MAT_INLINE void
add_mins(const scales *k, int j, int n, const act_view *a, uint32_t b,
         int32x4_t low[TILE_ROWS][Q])
{
    MAT_UNROLL
    for (int i = 0; i < n * Q; i++)
        low[i / Q][i % Q] =
            vmlaq_n_s32(low[i / Q][i % Q], pick(k->min[j / 4][i % Q], j % 4),
                        a[i / Q].sum32[8 * b + (uint32_t)j]);
}

static MAT_INLINE void
k_sums(const mat_format *f, mat_place at, int n, const act_view *a,
       int32x4_t sum[TILE_ROWS][Q], int32x4_t low[TILE_ROWS][Q])
{
    const uint8_t *p = at.block + mat_scale_bytes(f);
    const int8_t *q[TILE_ROWS];
    scales k;

    load_scales(f, at.block, &k);
    MAT_UNROLL
    for (int i = 0; i < n * Q; i++)
        sum[i / Q][i % Q] = low[i / Q][i % Q] = vdupq_n_s32(0);
    for (int j = 0; j < 8; j++, p += mat_step_bytes(f)) {
        for (int r = 0; r < n; r++)
            q[r] = a[r].q + 256 * at.b + 32 * j;
        MAT_UNROLL
        for (int part = 0; part < 32 / f->sub; part++) {
            int s = (32 / f->sub) * j + part;
            int32x4_t acc[TILE_ROWS][Q];

            MAT_UNROLL
            for (int i = 0; i < n * Q; i++)
                acc[i / Q][i % Q] = vdupq_n_s32(0);
            half_step(f, p, part, n, q, acc);
            if (f->sub == 32)
                half_step(f, p, 1, n, q, acc);
            MAT_UNROLL
            for (int i = 0; i < n * Q; i++)
                sum[i / Q][i % Q] =
                    vmlaq_s32(sum[i / Q][i % Q], acc[i / Q][i % Q],
                              pick(k.s[s / 4][i % Q], s % 4));
        }
        if (f->min)
            add_mins(&k, j, n, a, at.b, low);
    }
}

static MAT_INLINE void
k_block(const mat_format *f, mat_place at, int n, const act_view *a,
        float32x4_t chain[TILE_ROWS][Q])
{
    int32x4_t sum[TILE_ROWS][Q], low[TILE_ROWS][Q];

    k_sums(f, at, n, a, sum, low);
    MAT_UNROLL
    for (int i = 0; i < Q * n; i++) {
        int h = i / n, r = i % n;
        float d = a[r].d[at.b];
        float32x4_t y = vmulq_f32(vmulq_n_f32(halves(at.head + 8 * h), d),
                                  vcvtq_f32_s32(sum[r][h]));

        if (f->min)
            y = vfmsq_f32(y, vmulq_n_f32(halves(at.head + 128 + 8 * h), d),
                          vcvtq_f32_s32(low[r][h]));
        chain[r][h] = vaddq_f32(chain[r][h], y);
    }
}

/* ---- a panel of blocks --------------------------------------------------- */

static MAT_INLINE void
blocks(const mat_tile *t, int type, int r0, int n)
{
    const mat_format *f = mat_format_of(type);
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    const uint8_t *head = t->panel;
    float32x4_t chain[MAT_CHAINS][TILE_ROWS][Q];
    act_view a[TILE_ROWS];

    memset(chain, 0, sizeof chain);
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        a[r] = act_at(f->class == MAT_K ? BR_FORM_Q256 : BR_FORM_Q32,
                      t->m->n_in, t->row[r0 + r]);
    for (uint32_t b = 0; b < n_blocks;) {
        const uint8_t *p = head + mat_head_bytes(f);

        for (uint32_t c = 0; c < MAT_CHAINS && b < n_blocks; c++, b++) {
            mat_place at = {head + c * mat_scale_step(f), p, b};

            if (f->class == MAT_K)
                k_block(f, at, n, a, chain[c]);
            else
                flat_block(f, at, n, a, chain[c]);
            p += mat_block_bytes(f);
        }
        head = p;
    }
    MAT_UNROLL
    for (int i = 0; i < Q * n; i++) {
        int r = i / Q, h = i % Q;

        vst1q_f32(t->out[r0 + r] + 4 * h,
                  vaddq_f32(vaddq_f32(chain[0][r][h], chain[1][r][h]),
                            vaddq_f32(chain[2][r][h], chain[3][r][h])));
    }
}

/* ---- floats -------------------------------------------------------------- */

enum { FLOAT_ROWS = 3 };

/* Lane l of a line, outputs 4 h.. */
static MAT_INLINE float32x4_t
widen(int type, const uint8_t *line, int l, int h)
{
    uint32x4_t v;

    if (type == BR_Q_F32)
        return vreinterpretq_f32_u8(vld1q_u8(line + 64 * l + 16 * h));
    if (type == BR_Q_F16)
        return halves(line + 32 * l + 8 * h);
    v = vreinterpretq_u32_u8(vld1q_u8(line + 16 * h));
    return vreinterpretq_f32_u32(
        l == 0 ? vshlq_n_u32(v, 16) : vandq_u32(v, vdupq_n_u32(0xffff0000)));
}

/* A piece times n rows: 24 registers of sums for three. */
static MAT_INLINE void
float_rows(const mat_tile *t, int type, uint32_t piece, int r0, int n,
           two_lanes *sum)
{
    const uint8_t *p = piece_weights(t, type, piece);
    const float *x[FLOAT_ROWS];
    float32x4_t acc[FLOAT_ROWS][2][Q];

    memset(acc, 0, sizeof acc);
    for (int r = 0; r < n; r++)
        x[r] = piece_row(t, piece, r0 + r);
    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(type)) {
        MAT_UNROLL
        for (int j = 0; j < 2 * Q; j++) {
            float32x4_t w = widen(type, p, j / Q, j % Q);

            MAT_UNROLL
            for (int r = 0; r < n; r++)
                acc[r][j / Q][j % Q] =
                    vfmaq_n_f32(acc[r][j / Q][j % Q], w, x[r][2 * i + j / Q]);
        }
    }
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        for (int j = 0; j < 2 * Q; j++)
            vst1q_f32(sum[r0 + r][j / Q] + 4 * (j % Q), acc[r][j / Q][j % Q]);
}

static MAT_INLINE void
float_piece(const mat_tile *t, int type, uint32_t piece, int panels,
            two_lanes *sum)
{
    (void)panels;
    for (int r = 0; r < t->n_rows; r += FLOAT_ROWS) {
        if (t->n_rows - r >= 3)
            float_rows(t, type, piece, r, 3, sum);
        else if (t->n_rows - r == 2)
            float_rows(t, type, piece, r, 2, sum);
        else
            float_rows(t, type, piece, r, 1, sum);
    }
}

/* ---- activations --------------------------------------------------------- */

/* The largest |x|; what is no number is smaller than all. */
static float
top_of(const float *x, int n)
{
    float32x4_t v = vdupq_n_f32(0);

    for (int i = 0; i < n; i += 4) {
        float32x4_t a = vabsq_f32(vld1q_f32(x + i));

        v = vbslq_f32(vcgtq_f32(a, v), a, v);
    }
    return vmaxvq_f32(v);
}

/* As ref_quantise: also what is not within 127 after the division is 0. */
static float
quantise(const float *x, int8_t *q, int n)
{
    float d = top_of(x, n) / 127.0f;
    float32x4_t dv = vdupq_n_f32(d), most = vdupq_n_f32(127.0f);

    if (d < FLT_MIN) {
        memset(q, 0, (size_t)n);
        return d;
    }
    for (int i = 0; i < n; i += 8) {
        int32x4_t v[2];

        for (int j = 0; j < 2; j++) {
            float32x4_t y = vrndnq_f32(vdivq_f32(vld1q_f32(x + i + 4 * j), dv));

            v[j] = vandq_s32(vcvtq_s32_f32(y),
                             vreinterpretq_s32_u32(vcaleq_f32(y, most)));
        }
        vst1_s8(q + i,
                vmovn_s16(vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]))));
    }
    return d;
}

/* pair: minus the sums of the k that mat_int.h names, of 16; all of them. */
static MAT_INLINE int
sums_of_16(const int8_t *q, int16_t pair[2])
{
    int16x8_t v = vpaddlq_s8(vld1q_s8(q));
    int16x4_t u = vadd_s16(vget_low_s16(v), vget_high_s16(v));

    pair[0] = (int16_t) - (vget_lane_s16(u, 0) + vget_lane_s16(u, 2));
    pair[1] = (int16_t) - (vget_lane_s16(u, 1) + vget_lane_s16(u, 3));
    return -(pair[0] + pair[1]);
}

static void
act_q32(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q32, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        int16_t lo[2], hi[2];

        a.d[b] = quantise(x + 32 * b, a.q + 32 * b, 32);
        a.nsum[b] = -sums_of_16(a.q + 32 * b, lo);
        a.nsum[b] -= sums_of_16(a.q + 32 * b + 16, hi);
        a.npair[2 * b] = (int16_t)(lo[0] + hi[0]);
        a.npair[2 * b + 1] = (int16_t)(lo[1] + hi[1]);
    }
}

static void
act_q256(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q256, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        a.d[b] = quantise(x + 256 * b, a.q + 256 * b, 256);
        for (uint32_t j = 16 * b; j < 16 * b + 16; j++)
            a.sum16[j] = (int16_t)sums_of_16(a.q + 16 * j, a.npair + 2 * j);
        for (uint32_t j = 8 * b; j < 8 * b + 8; j++)
            a.sum32[j] = (int16_t)(a.sum16[2 * j] + a.sum16[2 * j + 1]);
    }
}

void
mat_neon_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    if (form == BR_FORM_Q32)
        act_q32(x, n_in, row);
    else if (form == BR_FORM_Q256)
        act_q256(x, n_in, row);
    else
        mat_c_act(form, x, n_in, row);
}

/* ---- the machine's bound ------------------------------------------------- */

/* Sixteen chains hide the latency of four pipes. */
uint64_t
mat_neon_ops(br_form form, uint32_t rounds)
{
    enum { CHAINS = 16 };
    int32x4_t acc[CHAINS];
    int8x16_t a = vdupq_n_s8(1);

    memset(acc, 0, sizeof acc);
    for (uint32_t i = 0; i < rounds; i++) {
        MAT_UNROLL
        for (int j = 0; j < CHAINS; j++) {
            if (form == BR_FORM_F32)
                acc[j] = vreinterpretq_s32_f32(vfmaq_f32(
                    vreinterpretq_f32_s32(acc[j]), vreinterpretq_f32_s8(a),
                    vreinterpretq_f32_s8(a)));
            else
                acc[j] = vdotq_s32(acc[j], a, a);
            __asm__ volatile("" : "+w"(acc[j]));
        }
    }
    return (uint64_t)rounds * CHAINS * (form == BR_FORM_F32 ? 8 : 32);
}

/* ---- which ------------------------------------------------------------- */

/* One function per format: as many rows at a time as registers hold. */
static MAT_TILE void
tile(const mat_tile *t, int type)
{
    int r = 0, most = mat_format_of(type)->class == MAT_K ? K_ROWS : TILE_ROWS;

    if (mat_format_of(type)->class == MAT_FLOAT) {
        floats(t, type, 1);
        return;
    }
    for (; most == 4 && t->n_rows - r >= 4; r += 4)
        blocks(t, type, r, 4);
    for (; t->n_rows - r >= 2; r += 2)
        blocks(t, type, r, 2);
    if (t->n_rows - r >= 1)
        blocks(t, type, r, 1);
}

#    define MAT_TILES mat_neon
#    define MAT_REST  mat_c
#    include "drv/cpu/mat_tiles.h"

#endif
