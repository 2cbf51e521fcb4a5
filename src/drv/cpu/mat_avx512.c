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
 * A block of Q8_0 for eight rows came to 110 to 130 cycles instead of 80: what
 * bounds it is how far the processor looks ahead (dot4) and what comes from the
 * second cache (spans); 95 to 115 now.
 *
 * Floats (mat_floats.h): a lane of 16 outputs is one register, two of them times
 * eight rows. BF16 pairs likewise with vdpbf16ps, which is twice as fast,
 * flushes subnormals, and is left out where the exact bits are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_avx512.h"
#    include "drv/cpu/mat_floats.h"

enum { TILE_ROWS = 8 };

/* ---- weights ------------------------------------------------------------- */

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

/* Weights of group g of a step, biased. */
static MAT_INLINE __m512i
load_group(const mat_format *f, const uint8_t *p, int g)
{
    __m512i v = load_number(f, p, g);

    return is_signed(f) ? _mm512_xor_si512(v, _mm512_set1_epi8(-128)) : v;
}

/* Rows of activations, and how far from a row's start its scales and its sums
 * are: one register a row, one for each of the three ways into it. */
typedef struct rows8 {
    const uint8_t *row[TILE_ROWS];
    size_t d, sum;
} rows8;

static MAT_INLINE rows8
rows_at(const mat_tile *t, const mat_format *f, int r0, int n)
{
    act_view a = act_at(t->m->form, t->m->n_in, t->row[r0]);
    const void *sum = f->class == MAT_FLAT ? (const void *)a.nsum
                      : f->sub == 16       ? a.sum16
                                           : a.sum32;
    rows8 x = {.d = (size_t)((const uint8_t *)a.d - t->row[r0]),
               .sum = (size_t)((const uint8_t *)sum - t->row[r0])};

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        x.row[r] = t->row[r0 + r];
    return x;
}

/* acc[row] += groups g0..g1 of a step. at: its activations in each row. */
static MAT_INLINE void
dot_groups(const mat_format *f, const uint8_t *p, int g0, int n,
           const uint8_t *const *row, size_t at, __m512i *acc)
{
    int g1 = g0 + (f->sub == 16 ? 4 : 8);

    MAT_UNROLL
    for (int g = g0; g < g1; g++) {
        __m512i w = load_group(f, p, g);

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            acc[r] = dot4(acc[r], w, row[r] + at + 4 * g);
    }
}

/* ---- blocks of 32 -------------------------------------------------------- */

static MAT_INLINE void
flat_block(const mat_format *f, mat_place at, int n, const rows8 *x,
           __m512 *chain)
{
    __m512 d = f->level == MAT_FP4 ? mx_scales(at.head) : halves(at.head);
    size_t to_d = x->d + 4 * (size_t)at.b, to_sum = x->sum + 4 * (size_t)at.b;
    __m512i acc[TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        acc[r] = bias_bits(f) == 0
                     ? _mm512_setzero_si512()
                     : _mm512_slli_epi32(splat4(x->row[r] + to_sum),
                                         (unsigned)bias_bits(f));
    dot_groups(f, at.block, 0, n, x->row, 32 * (size_t)at.b, acc);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512 dx = _mm512_castsi512_ps(splat4(x->row[r] + to_d));
        __m512 y =
            _mm512_mul_ps(_mm512_mul_ps(d, dx), _mm512_cvtepi32_ps(acc[r]));

        if (f->min)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(halves(at.head + 128), dx),
                                 _mm512_cvtepi32_ps(splat4(x->row[r] + to_sum)),
                                 y);
        chain[r] = _mm512_add_ps(chain[r], y);
    }
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* low[row] += what goes with sums times the sums, two sub-blocks at once. */
static MAT_INLINE void
add_low(const mat_format *f, const scales *k, uint32_t b, int n, const rows8 *x,
        __m512i *low)
{
    size_t at = x->sum + (f->sub == 16 ? 32 : 16) * (size_t)b;

    MAT_UNROLL
    for (int i = 0; i < 128 / f->sub; i++) {
        __m512i v = spread_pair(f, k->low[i / 2], 2 * (i % 2));

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            low[r] = dot2(low[r], v, x->row[r] + at + 4 * i);
    }
}

static MAT_INLINE void
k_sums(const mat_format *f, mat_place at, int n, const rows8 *x, __m512i *sum,
       __m512i *low)
{
    const uint8_t *p = at.block + mat_scale_bytes(f);
    size_t q = 256 * (size_t)at.b;
    int step = f->sub == 16 ? 4 : 8;
    scales k;

    load_scales(f, at.block, &k);
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        sum[r] = low[r] = _mm512_setzero_si512();
    add_low(f, &k, at.b, n, x, low);
    /* Not unrolled: 64 or 72 multiplications are enough code. */
    for (int j = 0; j < 8; j++, p += mat_step_bytes(f), q += 32) {
        MAT_UNROLL
        for (int g = 0; g < 8; g += step) {
            int i = (8 * j + g) / step;
            __m512i scale = spread(f, k.s[i / 4], i % 4);
            __m512i acc[TILE_ROWS];

            MAT_UNROLL
            for (int r = 0; r < n; r++)
                acc[r] = _mm512_setzero_si512();
            dot_groups(f, p, g, n, x->row, q, acc);
            MAT_UNROLL
            for (int r = 0; r < n; r++)
                sum[r] =
                    _mm512_add_epi32(sum[r], _mm512_mullo_epi32(acc[r], scale));
        }
    }
}

static MAT_INLINE void
k_block(const mat_format *f, mat_place at, int n, const rows8 *x, __m512 *chain)
{
    __m512i sum[TILE_ROWS], low[TILE_ROWS];
    __m512 dw = halves(at.head);

    k_sums(f, at, n, x, sum, low);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512 d = _mm512_castsi512_ps(
                   splat4(x->row[r] + x->d + 4 * (size_t)at.b)),
               y;

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

/* ---- a panel of blocks ---------------------------------------------------
 *
 * Sums of all rows wait in memory, eight rows of a chain together, while a span
 * of the panel, small enough for the first cache beside them, goes past one
 * handful of rows after the other. What comes next is called for meanwhile. */

enum { SPAN_BYTES = 10 << 10, GROUPS = MAT_MAX_ROWS / TILE_ROWS };

typedef struct sums {
    __m512 of[GROUPS][MAT_CHAINS][TILE_ROWS];
} sums;

static MAT_INLINE void
rows_of_span(const mat_tile *t, int type, const span *k, int r0, int n, sums *s)
{
    const mat_format *f = mat_format_of(type);
    const uint8_t *head = k->head;
    rows8 x = rows_at(t, f, r0, n);

    for (uint32_t b = k->b0; b < k->b1;) {
        const uint8_t *p = head + mat_head_bytes(f);

        for (uint32_t c = 0; c < MAT_CHAINS && b < k->b1; c++, b++) {
            mat_place at = {head + c * mat_scale_step(f), p, b};
            __m512 *chain = s->of[r0 / TILE_ROWS][c] + r0 % TILE_ROWS;

            if (f->class == MAT_K)
                k_block(f, at, n, &x, chain);
            else
                flat_block(f, at, n, &x, chain);
            p += mat_block_bytes(f);
        }
        head = p;
    }
}

/* 1/n of the span after this one, from its part i on. */
static MAT_INLINE void
call_for(const span *k, int i, int n)
{
    const uint8_t *p = k->head + k->bytes;
    size_t each = k->bytes / (size_t)n + 63;

    for (size_t at = 0; at < each; at += 64)
        _mm_prefetch((const void *)(p + (size_t)i * each + at), _MM_HINT_T1);
}

/* Eight rows at a time, then four, two, one. */
static MAT_INLINE void
blocks(const mat_tile *t, int type)
{
    const mat_format *f = mat_format_of(type);
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    size_t four = mat_head_bytes(f) + MAT_CHAINS * mat_block_bytes(f);
    uint32_t most = t->n_rows <= TILE_ROWS ? n_blocks
                    : four < SPAN_BYTES
                        ? (uint32_t)(SPAN_BYTES / four * MAT_CHAINS)
                        : MAT_CHAINS;
    span k = {.head = t->panel};
    sums s;

    clear_sums(&s.of[0][0][0], (t->n_rows + TILE_ROWS - 1) / TILE_ROWS *
                                   MAT_CHAINS * TILE_ROWS);
    for (int r = 0; r < t->n_rows; r++)
        __builtin_prefetch(t->out[r], 1);
    for (; k.b0 < n_blocks; k.b0 = k.b1, k.head += k.bytes) {
        int r = 0, n = t->n_rows;

        k.b1 = BR_MIN(k.b0 + most, n_blocks);
        k.bytes = (k.b1 - k.b0 + MAT_CHAINS - 1) / MAT_CHAINS * four;
        for (; n - r >= 8; r += 8) {
            rows_of_span(t, type, &k, r, 8, &s);
            if (n > 8)
                call_for(&k, r / 8, n / 8);
        }
        if (n - r >= 4) {
            rows_of_span(t, type, &k, r, 4, &s);
            r += 4;
        }
        if (n - r >= 2) {
            rows_of_span(t, type, &k, r, 2, &s);
            r += 2;
        }
        if (n - r >= 1)
            rows_of_span(t, type, &k, r, 1, &s);
    }
    store_sums(t, &s.of[0][0][0], TILE_ROWS);
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

static MAT_INLINE __m512
dot_pairs(__m512 acc, __m512i w, const uint8_t *p)
{
    DOT("vdpbf16ps", acc, w, p,
        _mm512_dpbf16_ps(acc, (__m512bh)splat4(p), (__m512bh)w));
    return acc;
}

/* One line of a piece times some rows, into one of the two lanes. */
static MAT_INLINE void
pair_line(const uint8_t *p, int n, const uint8_t *const *x, uint32_t i,
          __m512 (*acc)[2], int lane)
{
    __m512i w = load(p);

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        acc[r][lane] = dot_pairs(acc[r][lane], w, x[r] + 4 * i);
}

/* BF16 as it is, times BF16: a sum has both lanes, and lines take turns at two
 * sums, since vdpbf16ps takes six cycles: of eight on their way, any hiccup
 * shows. */
static MAT_INLINE void
pair_lines(const mat_tile *t, const uint8_t *p, int n, const uint8_t *const *x,
           __m512 (*acc)[2])
{
    uint32_t lines = mat_lines(t->m->n_in), i = 0;

    for (; i + 2 <= lines; i += 2, p += 128) {
        pair_line(p, n, x, i, acc, 0);
        pair_line(p + 64, n, x, i + 1, acc, 1);
    }
    if (i < lines)
        pair_line(p, n, x, i, acc, 0);
}

static MAT_INLINE void
float_lines(const mat_tile *t, int type, const uint8_t *p, int n,
            const uint8_t *const *x, __m512 (*acc)[2])
{
    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(type)) {
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
}

/* A piece times some rows. */
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
    if (type == PAIRS)
        pair_lines(t, p, n, x, acc);
    else
        float_lines(t, type, p, n, x, acc);
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

/* One function per format. */
static MAT_INLINE void
tile(const mat_tile *t, int type)
{
    if (mat_format_of(type)->class != MAT_FLOAT)
        blocks(t, type);
    else if (type == BR_Q_BF16 && t->m->form == BR_FORM_BF16)
        floats(t, PAIRS);
    else
        floats(t, type);
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
