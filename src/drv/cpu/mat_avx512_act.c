/* mat_avx512_act.c - what comes before the products of mat_avx512.c, and what
 * bounds them.
 *
 * Activations become pairs of BF16, or integers. Blocks of 32 go by fours: what
 * one of them needs waits for itself (its top, a division, divisions by that),
 * and by ones as on AVX2 it took 170 cycles where its divisions take 20, 3.5 %
 * of a prompt's time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_avx512.h"

#    include <float.h>

/* ---- activations --------------------------------------------------------- */

/* 16 numbers as BF16: eight pairs, of lanes 0 and 1, 2 and 3.. */
static MAT_INLINE __m256i
pairs(const float *x)
{
    return (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x));
}

/* 4 x 4 numbers of 32 bits in each quarter of the registers change places. */
static MAT_INLINE void
turn_quarters(__m512i v[4])
{
    __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
    __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
    __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
    __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);

    v[0] = _mm512_unpacklo_epi64(a, c);
    v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d);
    v[3] = _mm512_unpackhi_epi64(b, d);
}

/* 256 numbers: 16 pairs of each piece, a register. Pair by pair it is 1.6 % of
 * a prompt's time in BF16. at: of the first pair of piece 0; step: to the next
 * piece. */
static MAT_INLINE void
pairs_of_256(const float *x, uint8_t *at, size_t step)
{
    const __m512i low = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 16, 24, 17,
                                          25, 18, 26, 19, 27);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
    __m512i v[2][4];

    /* Lines 2 j and 2 j + 1 side by side; their pairs 0 to 3 are quarters 0 and
     * 2. Turned, v[.][i] has pair i of eight lines in those, and i + 4. */
    MAT_UNROLL
    for (int j = 0; j < 8; j++)
        v[j / 4][j % 4] =
            _mm512_inserti64x4(_mm512_castsi256_si512(pairs(x + 32 * j)),
                               pairs(x + 32 * j + 16), 1);
    turn_quarters(v[0]);
    turn_quarters(v[1]);
    MAT_UNROLL
    for (uint32_t piece = 0; piece < 8; piece++) {
        uint32_t i = mat_lane(piece) / 2;

        _mm512_storeu_si512(at + piece * step,
                            _mm512_permutex2var_epi32(
                                v[0][i % 4], i < 4 ? low : high, v[1][i % 4]));
    }
}

/* The 16 numbers, or fewer, from k on. */
static void
pairs_of_16(const float *x, uint32_t n_in, uint32_t k, uint8_t *row)
{
    __mmask16 m = (__mmask16)(n_in - k < 16 ? (1u << (n_in - k)) - 1 : ~0u);
    uint32_t pair[8];

    _mm256_storeu_si256((void *)pair, (__m256i)_mm512_cvtneps_pbh(
                                          _mm512_maskz_loadu_ps(m, x + k)));
    for (uint32_t i = 0; i < 8; i++)
        memcpy(row + 4 * (i * mat_lines(n_in) + k / 16), &pair[mat_lane(i) / 2],
               4);
}

/* The largest |x| of each of four; what is no number is smaller than all. */
static MAT_INLINE __m128
tops(const __m512 v[4])
{
    __m512 a = _mm512_max_ps(_mm512_unpacklo_ps(v[0], v[1]),
                             _mm512_unpackhi_ps(v[0], v[1]));
    __m512 b = _mm512_max_ps(_mm512_unpacklo_ps(v[2], v[3]),
                             _mm512_unpackhi_ps(v[2], v[3]));
    __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
    __m512 top = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)),
                               _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(top),
                                _mm512_extractf32x8_ps(top, 1));

    return _mm_max_ps(_mm256_castps256_ps128(half),
                      _mm256_extractf128_ps(half, 1));
}

static MAT_INLINE __m512
top_of_32(__m512 a, __m512 b)
{
    return _mm512_max_ps(_mm512_abs_ps(b),
                         _mm512_max_ps(_mm512_abs_ps(a), _mm512_setzero_ps()));
}

/* As ref_quantise: also what is not within 127 after the division is 0. */
static MAT_INLINE __m512i
quantised(__m512 x, __m512 d)
{
    __m512 y = _mm512_div_ps(x, d);
    __mmask16 in = _mm512_cmp_ps_mask(d, _mm512_set1_ps(FLT_MIN), _CMP_GE_OQ);

    in = _mm512_mask_cmp_ps_mask(in, _mm512_abs_ps(y), _mm512_set1_ps(127.5f),
                                 _CMP_LT_OQ);
    return _mm512_maskz_cvtps_epi32(in, y);
}

/* Of four times 16: minus the sum of those whose k mod 4 is 0 or 1, and of the
 * others, of each: npair of mat_int.h. */
static MAT_INLINE __m128i
minus_pairs(const __m512i q[4])
{
    const __m512i one = _mm512_set1_epi16(1);
    __m512i v = _mm512_packs_epi32(
        _mm512_madd_epi16(_mm512_packs_epi32(q[0], q[1]), one),
        _mm512_madd_epi16(_mm512_packs_epi32(q[2], q[3]), one));
    __m256i half = _mm256_add_epi16(_mm512_castsi512_si256(v),
                                    _mm512_extracti64x4_epi64(v, 1));

    return _mm_sub_epi16(_mm_setzero_si128(),
                         _mm_add_epi16(_mm256_castsi256_si128(half),
                                       _mm256_extracti128_si256(half, 1)));
}

static MAT_INLINE __m128i
both(__m128i pairs)
{
    return _mm_madd_epi16(pairs, _mm_set1_epi16(1));
}

/* n blocks of 32 from b on, at most four. */
static MAT_INLINE void
quantise_32(const float *x, act_view a, uint32_t b, uint32_t n)
{
    __mmask8 here = (__mmask8)((1u << n) - 1);
    __m512 v[8], top[4];
    __m512i q[4];
    __m128i minus;
    __m128 d;

    MAT_UNROLL
    for (uint32_t i = 0; i < 8; i++)
        v[i] = i / 2 < n ? _mm512_loadu_ps(x + 16 * i) : _mm512_setzero_ps();
    MAT_UNROLL
    for (int i = 0; i < 4; i++)
        top[i] = top_of_32(v[2 * i], v[2 * i + 1]);
    d = _mm_div_ps(tops(top), _mm_set1_ps(127.0f));
    _mm_mask_storeu_ps(a.d + b, here, d);
    MAT_UNROLL
    for (int i = 0; i < 4; i++) {
        __m512 by = _mm512_permutexvar_ps(_mm512_set1_epi32(i),
                                          _mm512_castps128_ps512(d));
        __m512i low = quantised(v[2 * i], by);
        __m512i high = quantised(v[2 * i + 1], by);

        q[i] = _mm512_add_epi32(low, high);
        _mm256_mask_storeu_epi32(a.q + 32 * (b + (uint32_t)i),
                                 here >> i & 1 ? 255 : 0,
                                 _mm256_set_m128i(_mm512_cvtepi32_epi8(high),
                                                  _mm512_cvtepi32_epi8(low)));
    }
    minus = minus_pairs(q);
    _mm_mask_storeu_epi32(a.npair + 2 * b, here, minus);
    _mm_mask_storeu_epi32(a.nsum + b, here, both(minus));
}

static MAT_INLINE void
quantise_256(const float *x, act_view a, uint32_t b)
{
    __m512 v[16], top[4], d;
    __m128 all;

    MAT_UNROLL
    for (int i = 0; i < 16; i++)
        v[i] = _mm512_loadu_ps(x + 16 * i);
    MAT_UNROLL
    for (int i = 0; i < 4; i++)
        top[i] = _mm512_max_ps(top_of_32(v[4 * i], v[4 * i + 1]),
                               top_of_32(v[4 * i + 2], v[4 * i + 3]));
    all = tops(top);
    all = _mm_max_ps(all, _mm_movehl_ps(all, all));
    all = _mm_max_ss(all, _mm_movehdup_ps(all));
    all = _mm_div_ss(all, _mm_set_ss(127.0f));
    _mm_store_ss(a.d + b, all);
    d = _mm512_broadcastss_ps(all);
    MAT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at = 16 * b + 4 * i; /* in units of 16 k */
        __m512i q[4];
        __m128i p, sums;

        MAT_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            q[j] = quantised(v[4 * i + j], d);
            _mm_storeu_si128((void *)(a.q + 16 * (at + j)),
                             _mm512_cvtepi32_epi8(q[j]));
        }
        p = minus_pairs(q);
        sums = _mm_sub_epi32(_mm_setzero_si128(), both(p));
        sums = _mm_packs_epi32(sums, both(_mm_packs_epi32(sums, sums)));
        _mm_storeu_si128((void *)(a.npair + 2 * at), p);
        _mm_storel_epi64((void *)(a.sum16 + at), sums);
        _mm_storeu_si32(a.sum32 + at / 2, _mm_bsrli_si128(sums, 8));
    }
}

static void
integers(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(form, n_in, row);
    uint32_t b = 0;

    if (form == BR_FORM_Q256) {
        for (; b < a.n; b++)
            quantise_256(x + 256 * b, a, b);
        return;
    }
    for (; a.n - b >= 4; b += 4)
        quantise_32(x + 32 * b, a, b, 4);
    if (b < a.n)
        quantise_32(x + 32 * b, a, b, a.n - b);
}

void
mat_avx512_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    uint32_t k = 0;

    if (form == BR_FORM_Q32 || form == BR_FORM_Q256) {
        integers(form, x, n_in, row);
        return;
    }
    if (form != BR_FORM_BF16) {
        mat_c_act(form, x, n_in, row);
        return;
    }
    for (; n_in - k >= 256; k += 256)
        pairs_of_256(x + k, row + k / 4, 4 * (size_t)mat_lines(n_in));
    for (; k < n_in; k += 16)
        pairs_of_16(x, n_in, k, row);
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
