/* mat_avx512.c - the kernels in AVX-512 (F BW DQ VL VNNI, BF16 where it is).
 *
 * A tile is 16 outputs, one register, times up to eight rows. vpdpbusd does it
 * all: 16 outputs x 4 k of unsigned weights times four signed activations
 * broadcast from memory, added to 32 bits. Weights that are signed, or kept
 * with an offset, are made unsigned by adding `bias`; blocks of 32 take it off
 * at once by starting from -bias * sum(q), blocks of 256 with the same trick
 * as minimums, by one vpdpwssd for two sub-blocks.
 *
 * Bounds on Zen 4, where a register of 64 bytes takes both multipliers for a
 * cycle: 8 vpdpbusd of a flat block come with 2 multiplications of floats, so
 * 80 % of the peak; 64 of a Q4_K block with 8 vpmulld and 4 vpdpwssd, 84 %.
 *
 * Floats (mat_floats.h): a lane of 16 outputs is one register, two of them times
 * eight rows. BF16 pairs likewise with vdpbf16ps, which is twice as fast,
 * flushes subnormals, and is left out where the exact bits are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"
#include "model/quant_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_floats.h"

#    include <immintrin.h>

enum { TILE_ROWS = 8 };

static MAT_INLINE __m512i
load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static MAT_INLINE __m512i
splat4(const void *p)
{
    int32_t v;

    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

/* ---- weights ------------------------------------------------------------- */

/* Bits of v's bytes from position `from` to 4 and up. */
static MAT_INLINE __m512i
high_bits(__m512i v, int from, int mask)
{
    v = from <= 4 ? _mm512_slli_epi16(v, (unsigned)(4 - from))
                  : _mm512_srli_epi16(v, (unsigned)(from - 4));
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}

static MAT_INLINE bool
is_signed(const mat_format *f)
{
    return f->low == 8 || f->level != MAT_PLAIN;
}

/* What is added to weights so that they are unsigned: a power of two, or 0. */
static MAT_INLINE int
bias_bits(const mat_format *f)
{
    return is_signed(f) ? 7 : f->off == 0 ? 0 : __builtin_ctz((unsigned)f->off);
}

static MAT_INLINE __m512i
levels(mat_level level)
{
    const int8_t *t = level == MAT_IQ4 ? br_iq4_levels : br_fp4_levels;

    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)t));
}

/* Weights of group g of a step, biased. */
static MAT_INLINE __m512i
load_group(const mat_format *f, const uint8_t *p, int g)
{
    const __m512i low = _mm512_set1_epi8(15);
    const __m512i top = _mm512_set1_epi8(-128);
    __m512i v;

    if (f->low == 8)
        return _mm512_xor_si512(load(p + 64 * g), top);
    v = load(p + 64 * (g / 2));
    v = _mm512_and_si512(g % 2 ? _mm512_srli_epi16(v, 4) : v, low);
    if (f->high == 1)
        v = _mm512_or_si512(v, high_bits(load(p + 256), g, 0x10));
    else if (f->high == 2)
        v = _mm512_or_si512(
            v, high_bits(load(p + 256 + 64 * (g / 4)), 2 * (g % 4), 0x30));
    if (f->level != MAT_PLAIN)
        v = _mm512_xor_si512(_mm512_shuffle_epi8(levels(f->level), v), top);
    return v;
}

/* acc[row] += groups g0..g1 of a step. q: its activations. */
static MAT_INLINE void
dot_groups(const mat_format *f, const uint8_t *p, int g0, int n,
           const int8_t *const *q, __m512i *acc)
{
    int g1 = g0 + (f->sub == 16 ? 4 : 8);

    MAT_UNROLL
    for (int g = g0; g < g1; g++) {
        __m512i w = load_group(f, p, g);

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            acc[r] = _mm512_dpbusd_epi32(acc[r], w, splat4(q[r] + 4 * g));
    }
}

/* ---- blocks of 32 -------------------------------------------------------- */

static MAT_INLINE __m512
halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

/* 2^(e - 128); the two smallest are subnormal. */
static MAT_INLINE __m512
mx_scales(const uint8_t *p)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
    __m512i big =
        _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __mmask16 small = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(2), e);

    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(big, small, tiny));
}

static MAT_INLINE void
store_sums(const mat_tile *t, int r0, int n,
           __m512 chain[MAT_CHAINS][TILE_ROWS])
{
    for (int r = 0; r < n; r++)
        _mm512_storeu_ps(
            t->out[r0 + r],
            _mm512_add_ps(_mm512_add_ps(chain[0][r], chain[1][r]),
                          _mm512_add_ps(chain[2][r], chain[3][r])));
}

static MAT_INLINE void
flat_block(const mat_format *f, mat_place at, int n, const act_view *a,
           __m512 *chain)
{
    __m512 d = f->level == MAT_FP4 ? mx_scales(at.head) : halves(at.head);
    __m512i acc[TILE_ROWS];
    const int8_t *q[TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        q[r] = a[r].q + 32 * at.b;
        acc[r] = bias_bits(f) == 0 ? _mm512_setzero_si512()
                                   : _mm512_slli_epi32(splat4(a[r].nsum + at.b),
                                                       (unsigned)bias_bits(f));
    }
    dot_groups(f, at.block, 0, n, q, acc);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512 dx = _mm512_set1_ps(a[r].d[at.b]);
        __m512 y =
            _mm512_mul_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(acc[r]));

        if (f->min)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(halves(at.head + 128), dx),
                                 _mm512_set1_ps((float)a[r].nsum[at.b]), y);
        chain[r] = _mm512_add_ps(chain[r], y);
    }
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* Byte i of each output's four as a number of 32 bits, or bytes i and i + 1 as
 * two of 16. At the top first, where a sign is to come down. */
static MAT_INLINE __m512i
spread(const mat_format *f, __m512i v, int i)
{
    const __m512i base = _mm512_broadcast_i32x4(
        f->sub == 16
            ? _mm_setr_epi8(-128, -128, -128, 0, -128, -128, -128, 4, -128,
                            -128, -128, 8, -128, -128, -128, 12)
            : _mm_setr_epi8(0, -128, -128, -128, 4, -128, -128, -128, 8, -128,
                            -128, -128, 12, -128, -128, -128));

    if (f->sub == 16)
        return _mm512_srai_epi32(
            _mm512_shuffle_epi8(
                v, _mm512_add_epi8(base, _mm512_set1_epi32(i << 24))),
            24);
    return _mm512_shuffle_epi8(v, _mm512_add_epi8(base, _mm512_set1_epi32(i)));
}

static MAT_INLINE __m512i
spread_pair(const mat_format *f, __m512i v, int i)
{
    const __m512i base = _mm512_broadcast_i32x4(
        f->sub == 16 ? _mm_setr_epi8(-128, 0, -128, 1, -128, 4, -128, 5, -128,
                                     8, -128, 9, -128, 12, -128, 13)
                     : _mm_setr_epi8(0, -128, 1, -128, 4, -128, 5, -128, 8,
                                     -128, 9, -128, 12, -128, 13, -128));

    if (f->sub == 16)
        return _mm512_srai_epi16(
            _mm512_shuffle_epi8(
                v, _mm512_add_epi8(base, _mm512_set1_epi16((int16_t)(i << 8)))),
            8);
    return _mm512_shuffle_epi8(
        v, _mm512_add_epi8(base, _mm512_set1_epi16((int16_t)i)));
}

/* Scales as bytes, four sub-blocks to a register; what goes with the sums of
 * activations: minimums, or scales where the bias is to be taken off. */
typedef struct scales {
    __m512i s[4], low[4];
} scales;

static MAT_INLINE void
load_scales(const mat_format *f, const uint8_t *p, scales *k)
{
    const __m512i four = _mm512_set1_epi8(15), two = _mm512_set1_epi8(0x30);
    __m512i s = load(p), m = load(p + 64), top = load(p + 128);

    if (f->sub == 16) {
        k->s[0] = k->low[0] = s;
        k->s[1] = k->low[1] = m;
        k->s[2] = k->low[2] = top;
        k->s[3] = k->low[3] = load(p + 192);
        return;
    }
    k->s[0] = _mm512_or_si512(_mm512_and_si512(s, four),
                              _mm512_and_si512(_mm512_slli_epi16(top, 4), two));
    k->s[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(s, 4), four),
                              _mm512_and_si512(_mm512_slli_epi16(top, 2), two));
    k->low[0] =
        _mm512_or_si512(_mm512_and_si512(m, four), _mm512_and_si512(top, two));
    k->low[1] =
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(m, 4), four),
                        _mm512_and_si512(_mm512_srli_epi16(top, 2), two));
}

/* low[row] += what goes with sums times the sums, two sub-blocks at once. */
static MAT_INLINE void
add_low(const mat_format *f, const scales *k, uint32_t b, int n,
        const act_view *a, __m512i *low)
{
    MAT_UNROLL
    for (int i = 0; i < 128 / f->sub; i++) {
        __m512i v = spread_pair(f, k->low[i / 2], 2 * (i % 2));

        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            const int16_t *sum =
                f->sub == 16 ? a[r].sum16 + 16 * b : a[r].sum32 + 8 * b;

            low[r] = _mm512_dpwssd_epi32(low[r], v, splat4(sum + 2 * i));
        }
    }
}

static MAT_INLINE void
k_sums(const mat_format *f, mat_place at, int n, const act_view *a,
       __m512i *sum, __m512i *low)
{
    const uint8_t *p = at.block + mat_scale_bytes(f);
    const int8_t *q[TILE_ROWS];
    int step = f->sub == 16 ? 4 : 8;
    scales k;

    load_scales(f, at.block, &k);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        sum[r] = low[r] = _mm512_setzero_si512();
        q[r] = a[r].q + 256 * at.b;
    }
    add_low(f, &k, at.b, n, a, low);
    /* Not unrolled: 64 or 72 multiplications are enough code. */
    for (int j = 0; j < 8; j++, p += mat_step_bytes(f)) {
        MAT_UNROLL
        for (int g = 0; g < 8; g += step) {
            int i = (8 * j + g) / step;
            __m512i scale = spread(f, k.s[i / 4], i % 4);
            __m512i acc[TILE_ROWS];

            MAT_UNROLL
            for (int r = 0; r < n; r++)
                acc[r] = _mm512_setzero_si512();
            dot_groups(f, p, g, n, q, acc);
            MAT_UNROLL
            for (int r = 0; r < n; r++)
                sum[r] =
                    _mm512_add_epi32(sum[r], _mm512_mullo_epi32(acc[r], scale));
        }
        MAT_UNROLL
        for (int r = 0; r < n; r++)
            q[r] += 32;
    }
}

static MAT_INLINE void
k_block(const mat_format *f, mat_place at, int n, const act_view *a,
        __m512 *chain)
{
    __m512i sum[TILE_ROWS], low[TILE_ROWS];
    __m512 dw = halves(at.head);

    k_sums(f, at, n, a, sum, low);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512 d = _mm512_set1_ps(a[r].d[at.b]), y;

        if (!f->min)
            sum[r] = _mm512_sub_epi32(
                sum[r], _mm512_slli_epi32(low[r], (unsigned)bias_bits(f)));
        y = _mm512_mul_ps(_mm512_mul_ps(dw, d), _mm512_cvtepi32_ps(sum[r]));
        if (f->min)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(halves(at.head + 128), d),
                                 _mm512_cvtepi32_ps(low[r]), y);
        chain[r] = _mm512_add_ps(chain[r], y);
    }
}

/* ---- a panel of blocks --------------------------------------------------- */

static MAT_INLINE void
blocks(const mat_tile *t, int type, int r0, int n)
{
    const mat_format *f = mat_format_of(type);
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    const uint8_t *head = t->panel;
    __m512 chain[MAT_CHAINS][TILE_ROWS];
    act_view a[TILE_ROWS];

    for (int c = 0; c < MAT_CHAINS; c++)
        for (int r = 0; r < n; r++)
            chain[c][r] = _mm512_setzero_ps();
    for (int r = 0; r < n; r++)
        a[r] = act_at(t->m->form, t->m->n_in, t->row[r0 + r]);
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
    store_sums(t, r0, n, chain);
}

/* ---- floats -------------------------------------------------------------- */

enum { FLOAT_ROWS = 8, PAIRS = -1 };

/* Lane l of a line. */
static MAT_INLINE __m512
widen(int type, const uint8_t *line, int l)
{
    if (type == BR_Q_F32)
        return _mm512_loadu_ps(line + 64 * l);
    if (type == BR_Q_F16)
        return _mm512_cvtph_ps(
            _mm256_loadu_si256((const void *)(line + 32 * l)));
    return _mm512_castsi512_ps(
        l == 0
            ? _mm512_slli_epi32(load(line), 16)
            : _mm512_and_si512(load(line), _mm512_set1_epi32((int)0xffff0000)));
}

/* A piece times some rows. type PAIRS: BF16 as it is, times BF16; both lanes
 * are one sum then. */
static MAT_INLINE void
float_rows(const mat_tile *t, int type, uint32_t piece, int r0, int n,
           two_lanes *sum)
{
    int bf16 = type == PAIRS ? BR_Q_BF16 : type;
    const uint8_t *p = piece_weights(t, bf16, piece), *x[FLOAT_ROWS];
    __m512 acc[FLOAT_ROWS][2];

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        x[r] = piece_row(t, piece, r0 + r);
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    }
    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(bf16)) {
        if (type == PAIRS) {
            MAT_UNROLL
            for (int r = 0; r < n; r++)
                acc[r][0] =
                    _mm512_dpbf16_ps(acc[r][0], (__m512bh)splat4(x[r] + 4 * i),
                                     (__m512bh)load(p));
            continue;
        }
        MAT_UNROLL
        for (int l = 0; l < 2; l++) {
            __m512 w = widen(type, p, l);

            MAT_UNROLL
            for (int r = 0; r < n; r++)
                acc[r][l] = _mm512_fmadd_ps(
                    _mm512_castsi512_ps(splat4(x[r] + 8 * i + 4 * l)), w,
                    acc[r][l]);
        }
    }
    MAT_UNROLL
    for (int i = 0; i < 2 * n; i++)
        _mm512_storeu_ps(sum[r0 + i / 2][i % 2], acc[i / 2][i % 2]);
}

static MAT_INLINE void
float_piece(const mat_tile *t, int type, uint32_t piece, two_lanes *sum)
{
    int r = 0, n = t->n_rows;

    for (; n - r >= 8; r += 8)
        float_rows(t, type, piece, r, 8, sum);
    if (n - r >= 4) {
        float_rows(t, type, piece, r, 4, sum);
        r += 4;
    }
    if (n - r >= 2) {
        float_rows(t, type, piece, r, 2, sum);
        r += 2;
    }
    if (n - r >= 1)
        float_rows(t, type, piece, r, 1, sum);
}

/* ---- which --------------------------------------------------------------- */

/* One function per format: eight rows at a time, then four, two, one. */
static MAT_INLINE void
tile(const mat_tile *t, int type)
{
    int r = 0, n = t->n_rows;

    if (mat_format_of(type)->class == MAT_FLOAT) {
        if (type == BR_Q_BF16 && t->m->form == BR_FORM_BF16)
            floats(t, PAIRS);
        else
            floats(t, type);
        return;
    }
    for (; n - r >= 8; r += 8)
        blocks(t, type, r, 8);
    if (n - r >= 4) {
        blocks(t, type, r, 4);
        r += 4;
    }
    if (n - r >= 2) {
        blocks(t, type, r, 2);
        r += 2;
    }
    if (n - r >= 1)
        blocks(t, type, r, 1);
}

#    define MAT_TILES mat_avx512
#    define MAT_REST  mat_c
#    include "drv/cpu/mat_tiles.h"

/* ---- activations --------------------------------------------------------- */

void
mat_avx512_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    uint32_t k = 0;

    if (form != BR_FORM_BF16) {
        mat_avx2_act(form, x, n_in, row);
        return;
    }
    for (; k < n_in; k += 16) {
        __mmask16 m = (__mmask16)(n_in - k < 16 ? (1u << (n_in - k)) - 1 : ~0u);
        __m512 v = _mm512_maskz_loadu_ps(m, x + k);
        uint32_t pair[8];

        _mm256_storeu_si256((void *)pair, (__m256i)_mm512_cvtneps_pbh(v));
        for (uint32_t i = 0; i < 8; i++)
            memcpy(row + 4 * (i * mat_lines(n_in) + k / 16),
                   &pair[mat_lane(i) / 2], 4);
    }
}

/* ---- the machine's bound ------------------------------------------------- */

static MAT_INLINE __m512i
pin(__m512i v)
{
    __asm__ volatile("" : "+v"(v));
    return v;
}

/* Twelve chains hide the latency. */
uint64_t
mat_avx512_ops(br_form form, uint32_t rounds)
{
    __m512i acc[12], a = _mm512_set1_epi8(1);

    MAT_UNROLL
    for (int j = 0; j < 12; j++)
        acc[j] = pin(_mm512_setzero_si512());
    for (uint32_t i = 0; i < rounds; i++) {
        MAT_UNROLL
        for (int j = 0; j < 12; j++) {
            if (form == BR_FORM_F32)
                acc[j] = (__m512i)_mm512_fmadd_ps((__m512)a, (__m512)a,
                                                  (__m512)acc[j]);
            else if (form == BR_FORM_BF16)
                acc[j] = (__m512i)_mm512_dpbf16_ps((__m512)acc[j], (__m512bh)a,
                                                   (__m512bh)a);
            else
                acc[j] = _mm512_dpbusd_epi32(acc[j], a, a);
            acc[j] = pin(acc[j]);
        }
    }
    MAT_UNROLL
    for (int j = 0; j < 12; j++)
        pin(acc[j]);
    return (uint64_t)rounds * 12 *
           (form == BR_FORM_F32    ? 32
            : form == BR_FORM_BF16 ? 64
                                   : 128);
}

#endif
