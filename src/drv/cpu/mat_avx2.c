/* mat_avx2.c - the kernels in AVX2, FMA and F16C.
 *
 * A tile is 16 outputs (two registers of eight) times up to four rows. One
 * lane of 32 bits is four k of an output; the activations' four bytes are
 * broadcast to all lanes:
 *
 *   vpmaddubsw   u8 weights x s8 activations, pairs of k added, 16 bits
 *   vpaddw       up to 16 products pile up in a 16-bit lane
 *   vpmaddwd     times the sub-block's scale (or 1), pairs added, 32 bits
 *
 * Why 16 products fit: |w| <= 16 and 16 * 16 * 127 = 32512. Weights kept with
 * an offset are unsigned and larger, but lanes start from minus the offset
 * times the sum of the activations (act_view.npair) and wrap around: only the
 * end has to be in range. What does not fit that way (five bits without an
 * offset) widens after eight products. Eight-bit weights widen at once and
 * move their sign to the activations (vpsignb), for u8 x s8 would saturate.
 *
 * Bounds on Zen 2 to 4, per core and cycle: two multiplications of 32 bytes, so
 * 57 products where 16-bit lanes hold and 32 with eight-bit weights.
 *
 * Floats (mat_floats.h): a lane of 16 outputs is two registers, times six rows
 * twelve sums; eight loads for twelve multiplications.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX2__
#    include "drv/cpu/mat_avx2.h"
#    include "drv/cpu/mat_floats.h"

#    include <float.h>

static MAT_INLINE void
wide_step(const mat_format *f, const uint8_t *p, int n, const tile_rows *x,
          __m256i sum[TILE_ROWS][2])
{
    const __m256i one = _mm256_set1_epi16(1);

    MAT_UNROLL
    for (int g = 0; g < 8; g++) {
        __m256i w[2], size[2];

        load_group(f, p, g, w);
        size[0] = _mm256_abs_epi8(w[0]);
        size[1] = _mm256_abs_epi8(w[1]);
        MAT_UNROLL
        for (int i = 0; i < 2 * n; i++) {
            int r = i / 2, h = i % 2;
            __m256i a = splat4(x->q[r] + 4 * g);

            a = _mm256_maddubs_epi16(size[h], _mm256_sign_epi8(a, w[h]));
            sum[r][h] =
                pin(_mm256_add_epi32(sum[r][h], _mm256_madd_epi16(a, one)));
        }
    }
}

/* ---- blocks of 32 -------------------------------------------------------- */

static MAT_INLINE void
flat_block(const mat_format *f, mat_place at, int n, const act_view *a,
           __m256 chain[TILE_ROWS][2])
{
    __m256i sum[TILE_ROWS][2], one = _mm256_set1_epi16(1);
    __m256i ones[2][2] = {{one, one}, {one, one}};
    tile_rows x;

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
        x.q[r] = a[r].q + 32 * at.b;
        x.npair[r] = a[r].npair + 2 * at.b;
    }
    if (is_wide(f))
        wide_step(f, at.block, n, &x, sum);
    else
        narrow_step(f, false, at.block, n, &x, ones, sum);
    MAT_UNROLL
    for (int i = 0; i < 2 * n; i++) {
        int h = i / n, r = i % n;
        __m256 d = _mm256_set1_ps(a[r].d[at.b]);
        __m256 y =
            _mm256_mul_ps(f->level == MAT_FP4 ? mx_scales(at.head + 8 * h)
                                              : halves(at.head + 16 * h),
                          d);

        y = _mm256_mul_ps(y, _mm256_cvtepi32_ps(sum[r][h]));
        if (f->min)
            y = _mm256_fnmadd_ps(
                _mm256_mul_ps(halves(at.head + 128 + 16 * h), d),
                _mm256_set1_ps((float)a[r].nsum[at.b]), y);
        chain[r][h] = _mm256_add_ps(chain[r][h], y);
    }
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* low[row][half] += min * (sum of 32 activations), two sub-blocks at once. */
static MAT_INLINE void
add_mins(const scales *k, int n, const act_view *a, uint32_t b,
         __m256i low[TILE_ROWS][2])
{
    MAT_UNROLL
    for (int i = 0; i < 8; i++) {
        int j = i / 2, h = i % 2;
        __m256i min = spread(k->min[j / 2][h], 2 * (j % 2), 2 * (j % 2) + 1);

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            low[r][h] = _mm256_add_epi32(
                low[r][h],
                _mm256_madd_epi16(min, splat4(a[r].sum32 + 8 * b + 2 * j)));
    }
}

static MAT_INLINE void
k_sums(const mat_format *f, mat_place at, int n, const act_view *a,
       __m256i sum[TILE_ROWS][2], __m256i low[TILE_ROWS][2])
{
    const uint8_t *p = at.block + mat_scale_bytes(f);
    scales k;
    tile_rows x;

    load_scales(f, at.block, &k);
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        sum[r][0] = sum[r][1] = low[r][0] = low[r][1] = _mm256_setzero_si256();
    if (f->min)
        add_mins(&k, n, a, at.b, low);
    /* Not unrolled: 1.5 KB of code a step. */
    for (int j = 0; j < 8; j++, p += mat_step_bytes(f)) {
        __m256i scale[2][2];

        MAT_UNROLL
        for (int h = 0; h < 2; h++) {
            if (f->sub == 16) {
                scale[0][h] = spread_signed(k.s[j / 2][h], 2 * (j % 2));
                scale[1][h] = spread_signed(k.s[j / 2][h], 2 * (j % 2) + 1);
            } else {
                scale[0][h] = spread(k.s[j / 4][h], j % 4, j % 4);
                scale[1][h] = scale[0][h];
            }
        }
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            x.q[r] = a[r].q + 256 * at.b + 32 * j;
            x.npair[r] = a[r].npair + 32 * at.b + 4 * j;
        }
        narrow_step(f, false, p, n, &x, scale, sum);
    }
}

static MAT_INLINE void
k_block(const mat_format *f, mat_place at, int n, const act_view *a,
        __m256 chain[TILE_ROWS][2])
{
    __m256i sum[TILE_ROWS][2], low[TILE_ROWS][2];

    k_sums(f, at, n, a, sum, low);
    MAT_UNROLL
    for (int i = 0; i < 2 * n; i++) {
        int h = i / n, r = i % n;
        __m256 d = _mm256_set1_ps(a[r].d[at.b]);
        __m256 y = _mm256_mul_ps(_mm256_mul_ps(halves(at.head + 16 * h), d),
                                 _mm256_cvtepi32_ps(sum[r][h]));

        if (f->min)
            y = _mm256_fnmadd_ps(
                _mm256_mul_ps(halves(at.head + 128 + 16 * h), d),
                _mm256_cvtepi32_ps(low[r][h]), y);
        chain[r][h] = _mm256_add_ps(chain[r][h], y);
    }
}

/* ---- a panel of blocks --------------------------------------------------- */

static MAT_INLINE void
store_sums(const mat_tile *t, int r0, int n,
           __m256 chain[MAT_CHAINS][TILE_ROWS][2])
{
    MAT_UNROLL
    for (int i = 0; i < 2 * n; i++) {
        int r = i / 2, h = i % 2;

        _mm256_storeu_ps(
            t->out[r0 + r] + 8 * h,
            _mm256_add_ps(_mm256_add_ps(chain[0][r][h], chain[1][r][h]),
                          _mm256_add_ps(chain[2][r][h], chain[3][r][h])));
    }
}

static MAT_INLINE void
blocks(const mat_tile *t, int type, int r0, int n)
{
    const mat_format *f = mat_format_of(type);
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    const uint8_t *head = t->panel;
    __m256 chain[MAT_CHAINS][TILE_ROWS][2];
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
    store_sums(t, r0, n, chain);
}

/* ---- floats -------------------------------------------------------------- */

/* Lines of k at a time, as f32: 16 KB of weights, and 1 KB of each of six rows,
 * stay in the first cache. Up to three rows widen in registers instead. */
enum { LINES = 64, FEW_ROWS = 3, FLOAT_ROWS = 6 };

/* Lane l of a line, outputs 8 h... */
static MAT_INLINE __m256
widen(int type, const uint8_t *line, int l, int h)
{
    if (type == BR_Q_F32)
        return _mm256_loadu_ps((const float *)(const void *)line + 16 * l +
                               8 * h);
    if (type == BR_Q_F16)
        return halves(line + 32 * l + 16 * h);
    return _mm256_castsi256_ps(
        l == 0 ? _mm256_slli_epi32(load(line + 32 * h), 16)
               : _mm256_and_si256(load(line + 32 * h),
                                  _mm256_set1_epi32((int)0xffff0000)));
}

/* A piece times n <= FEW_ROWS rows. */
static MAT_INLINE void
few_rows(const mat_tile *t, int type, uint32_t piece, int n, two_lanes *sum)
{
    const uint8_t *p = piece_weights(t, type, piece);
    const float *x[FEW_ROWS];
    __m256 acc[FEW_ROWS][2][2];

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        x[r] = piece_row(t, piece, r);
        acc[r][0][0] = acc[r][0][1] = acc[r][1][0] = acc[r][1][1] =
            _mm256_setzero_ps();
    }
    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(type)) {
        MAT_UNROLL
        for (int l = 0; l < 2; l++) {
            __m256 u = widen(type, p, l, 0), v = widen(type, p, l, 1);

            MAT_UNROLL
            for (int r = 0; r < n; r++) {
                __m256 a = _mm256_broadcast_ss(x[r] + 2 * i + l);

                acc[r][l][0] = _mm256_fmadd_ps(a, u, acc[r][l][0]);
                acc[r][l][1] = _mm256_fmadd_ps(a, v, acc[r][l][1]);
            }
        }
    }
    MAT_UNROLL
    for (int i = 0; i < 4 * n; i++)
        _mm256_storeu_ps(sum[i / 4][i / 2 % 2] + 8 * (i % 2),
                         acc[i / 4][i / 2 % 2][i % 2]);
}

/* sum += n lines, as f32, times some rows. next: what will be read then. */
static MAT_INLINE void
float_lines(const float *w, uint32_t n, const float *const *x, int rows,
            two_lanes *sum, const uint8_t *next)
{
    const char *soon = (const char *)next;

    for (int l = 0; l < 2; l++) {
        __m256 acc[FLOAT_ROWS][2];

        MAT_UNROLL
        for (int i = 0; i < 2 * rows; i++)
            acc[i / 2][i % 2] = _mm256_loadu_ps(sum[i / 2][l] + 8 * (i % 2));
        for (uint32_t k = 0; k < n; k++) {
            __m256 u = _mm256_loadu_ps(w + 32 * k + 16 * l);
            __m256 v = _mm256_loadu_ps(w + 32 * k + 16 * l + 8);

            _mm_prefetch(soon + 64 * k, _MM_HINT_T0);
            MAT_UNROLL
            for (int r = 0; r < rows; r++) {
                __m256 a = _mm256_broadcast_ss(x[r] + 2 * k + l);

                acc[r][0] = _mm256_fmadd_ps(a, u, acc[r][0]);
                acc[r][1] = _mm256_fmadd_ps(a, v, acc[r][1]);
            }
        }
        MAT_UNROLL
        for (int i = 0; i < 2 * rows; i++)
            _mm256_storeu_ps(sum[i / 2][l] + 8 * (i % 2), acc[i / 2][i % 2]);
        soon += 64 * n;
    }
}

/* n lines from i on times all rows, as many at a time as share evenly. */
static MAT_INLINE void
many_lines(const mat_tile *t, uint32_t piece, uint32_t i, uint32_t n,
           const float *w, const uint8_t *next, two_lanes *sum)
{
    int groups = (t->n_rows + FLOAT_ROWS - 1) / FLOAT_ROWS;

    for (int r = 0, rows; r < t->n_rows; r += rows, groups--) {
        const float *x[FLOAT_ROWS];

        rows = (t->n_rows - r + groups - 1) / groups;
        for (int j = 0; j < rows; j++)
            x[j] = (const float *)piece_row(t, piece, r + j) + 2 * i;
        if (rows == 6)
            float_lines(w, n, x, 6, sum + r, next);
        else if (rows == 5)
            float_lines(w, n, x, 5, sum + r, next);
        else if (rows == 4)
            float_lines(w, n, x, 4, sum + r, next);
        else
            float_lines(w, n, x, 3, sum + r, next);
    }
}

static MAT_INLINE void
float_piece(const mat_tile *t, int type, uint32_t piece, int panels,
            two_lanes *sum)
{
    uint32_t n_lines = mat_lines(t->m->n_in);
    const uint8_t *p = piece_weights(t, type, piece);
    _Alignas(32) float wide[LINES * 32];

    (void)panels;
    switch (t->n_rows) {
    case 1: few_rows(t, type, piece, 1, sum); return;
    case 2: few_rows(t, type, piece, 2, sum); return;
    case 3: few_rows(t, type, piece, 3, sum); return;
    default: memset(sum, 0, (size_t)t->n_rows * sizeof *sum);
    }
    for (uint32_t i = 0; i < n_lines; i += LINES) {
        uint32_t n = BR_MIN(n_lines - i, LINES);
        const float *w = wide;

        if (type == BR_Q_F32)
            w = (const float *)(const void *)p;
        for (uint32_t k = 0; k < n; k++, p += mat_line_bytes(type)) {
            MAT_UNROLL
            for (int j = 0; type != BR_Q_F32 && j < 4; j++)
                _mm256_store_ps(wide + 32 * k + 8 * j,
                                widen(type, p, j / 2, j % 2));
        }
        many_lines(t, piece, i, n, w, p, sum);
    }
}

/* ---- activations --------------------------------------------------------- */

static MAT_INLINE __m256
size_of(__m256 v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

/* The largest |x|; what is no number is smaller than all. */
static float
top_of(const float *x, int n)
{
    __m256 v = _mm256_setzero_ps();
    __m128 u;

    for (int i = 0; i < n; i += 8)
        v = _mm256_max_ps(size_of(_mm256_loadu_ps(x + i)), v);
    u = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    u = _mm_max_ps(u, _mm_movehl_ps(u, u));
    return _mm_cvtss_f32(_mm_max_ss(u, _mm_movehdup_ps(u)));
}

/* As ref_quantise: also what is not within 127 after the division is 0. */
static float
quantise(const float *x, int8_t *q, int n)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    float d = top_of(x, n) / 127.0f;
    __m256 dv = _mm256_set1_ps(d), most = _mm256_set1_ps(127.0f);

    if (d < FLT_MIN) {
        memset(q, 0, (size_t)n);
        return d;
    }
    for (int i = 0; i < n; i += 32) {
        __m256i v[4];

        MAT_UNROLL
        for (int j = 0; j < 4; j++) {
            __m256 y = _mm256_div_ps(_mm256_loadu_ps(x + i + 8 * j), dv);

            y = _mm256_round_ps(y,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            y = _mm256_and_ps(y, _mm256_cmp_ps(size_of(y), most, _CMP_LE_OQ));
            v[j] = _mm256_cvtps_epi32(y);
        }
        v[0] = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                                  _mm256_packs_epi32(v[2], v[3]));
        _mm256_storeu_si256((void *)(q + i),
                            _mm256_permutevar8x32_epi32(v[0], order));
    }
    return d;
}

/* Sums of pairs of k over a step, low and high half of 128 bits each: lane l
 * of 32 bits is (k mod 4 in 0 1, k mod 4 in 2 3), of 16 k per half. */
static MAT_INLINE __m256i
pair_sums(const int8_t *q)
{
    __m256i v = _mm256_maddubs_epi16(_mm256_set1_epi8(1), load(q));

    v = _mm256_add_epi16(v, _mm256_shuffle_epi32(v, 0x4e));
    return _mm256_add_epi16(v, _mm256_shuffle_epi32(v, 0xb1));
}

static int
both(uint32_t pair)
{
    return (int16_t)pair + (int16_t)(pair >> 16);
}

static void
act_q32(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q32, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        __m256i s;
        __m128i u;
        uint32_t pair;

        a.d[b] = quantise(x + 32 * b, a.q + 32 * b, 32);
        s = pair_sums(a.q + 32 * b);
        u = _mm_add_epi16(_mm256_castsi256_si128(s),
                          _mm256_extracti128_si256(s, 1));
        pair =
            (uint32_t)_mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), u));
        memcpy(a.npair + 2 * b, &pair, 4);
        a.nsum[b] = both(pair);
    }
}

static void
act_q256(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q256, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        a.d[b] = quantise(x + 256 * b, a.q + 256 * b, 256);
        for (uint32_t j = 8 * b; j < 8 * b + 8; j++) {
            __m256i s = _mm256_sub_epi16(_mm256_setzero_si256(),
                                         pair_sums(a.q + 32 * j));
            uint32_t low = (uint32_t)_mm256_extract_epi32(s, 0);
            uint32_t high = (uint32_t)_mm256_extract_epi32(s, 4);

            memcpy(a.npair + 4 * j, &low, 4);
            memcpy(a.npair + 4 * j + 2, &high, 4);
            a.sum16[2 * j] = (int16_t)-both(low);
            a.sum16[2 * j + 1] = (int16_t)-both(high);
            a.sum32[j] = (int16_t) - (both(low) + both(high));
        }
    }
}

void
mat_avx2_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    if (form == BR_FORM_Q32)
        act_q32(x, n_in, row);
    else if (form == BR_FORM_Q256)
        act_q256(x, n_in, row);
    else
        mat_c_act(form, x, n_in, row);
}

/* ---- the machine's bound ------------------------------------------------- */

/* vpmaddubsw and vpaddw are the most it can do with integers. Ten chains hide
 * the latency. */
uint64_t
mat_avx2_ops(br_form form, uint32_t rounds)
{
    __m256i acc[10], a = _mm256_set1_epi8(1);

    MAT_UNROLL
    for (int j = 0; j < 10; j++)
        acc[j] = pin(_mm256_setzero_si256());
    for (uint32_t i = 0; i < rounds; i++) {
        MAT_UNROLL
        for (int j = 0; j < 10; j++)
            acc[j] = pin(form == BR_FORM_F32
                             ? (__m256i)_mm256_fmadd_ps((__m256)a, (__m256)a,
                                                        (__m256)acc[j])
                             : _mm256_add_epi16(
                                   acc[j], _mm256_maddubs_epi16(a, pin(a))));
    }
    MAT_UNROLL
    for (int j = 0; j < 10; j++)
        pin(acc[j]);
    return (uint64_t)rounds * 10 * (form == BR_FORM_F32 ? 16 : 64);
}

/* ---- which ------------------------------------------------------------- */

/* One function per format: four rows at a time, then two, then one. */
static MAT_TILE void
tile(const mat_tile *t, int type)
{
    int r = 0;

    if (mat_format_of(type)->class == MAT_FLOAT) {
        floats(t, type, 1);
        return;
    }
    if (!is_wide(mat_format_of(type)) && t->n_rows >= MANY) {
        mat_avx2_many(t);
        return;
    }
    for (; t->n_rows - r >= 4; r += 4)
        blocks(t, type, r, 4);
    if (t->n_rows - r >= 2) {
        blocks(t, type, r, 2);
        r += 2;
    }
    if (t->n_rows - r >= 1)
        blocks(t, type, r, 1);
}

#    define MAT_TILES mat_avx2
#    define MAT_REST  mat_c
#    include "drv/cpu/mat_tiles.h"

#endif
