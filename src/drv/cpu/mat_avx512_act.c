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
