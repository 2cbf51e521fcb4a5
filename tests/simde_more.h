/* simde_more.h - the AVX-512 functions that Debian 12's SIMDe lacks, of those
 * that kernels use: each by two of AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SIMDE_MORE_H
#define SIMDE_MORE_H

#include <simde/x86/avx512.h>

#include "base/half.h"

typedef union simde_two {
    simde__m512i i;
    simde__m512 f;
    __m256i hi[2];
    __m256 hf[2];
    float x[16];
} simde_two;

static inline simde__m512
simde_mm512_cvtepi32_ps(simde__m512i a)
{
    simde_two t = {.i = a};

    for (int k = 0; k < 2; k++)
        t.hf[k] = _mm256_cvtepi32_ps(t.hi[k]);
    return t.f;
}

static inline simde__m512i
simde_mm512_cvtepu8_epi32(__m128i a)
{
    simde_two t;

    t.hi[0] = _mm256_cvtepu8_epi32(a);
    t.hi[1] = _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8));
    return t.i;
}

static inline simde__m512i
simde_mm512_cvtepi8_epi32(__m128i a)
{
    simde_two t;

    t.hi[0] = _mm256_cvtepi8_epi32(a);
    t.hi[1] = _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8));
    return t.i;
}

static inline simde__m512
simde_mm512_cvtph_ps(__m256i a)
{
    simde_two t;

    t.hf[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    t.hf[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    return t.f;
}

#define simde_mm512_cvtps_ph(a, how)                                    \
    _mm256_set_m128i(_mm256_cvtps_ph((simde_two){.f = (a)}.hf[1], how), \
                     _mm256_cvtps_ph((simde_two){.f = (a)}.hf[0], how))

static inline simde__m512
simde_mm512_maskz_loadu_ps(simde__mmask16 m, const float *p)
{
    simde_two t;

    for (int k = 0; k < 16; k++)
        t.x[k] = m >> k & 1 ? p[k] : 0;
    return t.f;
}

static inline simde__m512i
simde_mm512_srai_epi32(simde__m512i a, unsigned n)
{
    simde_two t = {.i = a};

    for (int k = 0; k < 2; k++)
        t.hi[k] = _mm256_srai_epi32(t.hi[k], (int)n);
    return t.i;
}

/* Subnormal numbers are zeros to the instruction. */
static inline __m256i
simde_mm512_cvtneps_pbh(simde__m512 a)
{
    simde_two t = {.f = a};
    uint16_t y[16];
    __m256i out;

    for (int k = 0; k < 16; k++)
        y[k] = br_f32_to_bf16(__builtin_isnormal(t.x[k]) ||
                                      !__builtin_isfinite(t.x[k])
                                  ? t.x[k]
                                  : __builtin_copysignf(0, t.x[k]));
    memcpy(&out, y, sizeof out);
    return out;
}

#endif
