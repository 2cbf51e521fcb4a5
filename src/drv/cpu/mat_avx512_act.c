/* mat_avx512_act.c - what comes before the products of mat_avx512.c, and what
 * bounds them.
 *
 * Activations become pairs of BF16 here; integers are made as on AVX2, of which
 * they are less than a hundredth of a prompt's time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_avx512.h"

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

void
mat_avx512_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    uint32_t k = 0;

    if (form != BR_FORM_BF16) {
        mat_avx2_act(form, x, n_in, row);
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
