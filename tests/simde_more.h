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
    int32_t n[16];
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

/* The part after the point; only what is left of the next lower integer. */
static inline simde__m512
simde_mm512_reduce_ps(simde__m512 a, int how)
{
    simde_two t = {.f = a};

    br_assert(how == 1);
    for (int k = 0; k < 16; k++)
        t.x[k] -= __builtin_floorf(t.x[k]);
    return t.f;
}

static inline float
simde_mm512_reduce_max_ps(simde__m512 a)
{
    simde_two t = {.f = a};
    float most = t.x[0];

    for (int k = 1; k < 16; k++)
        most = t.x[k] > most ? t.x[k] : most;
    return most;
}

#define simde_mm512_extractf32x8_ps(a, k) ((simde_two){.f = (a)}.hf[k])

#define simde_mm512_mask_cmp_ps_mask(m, a, b, how) \
    ((m)&simde_mm512_cmp_ps_mask(a, b, how))

static inline simde__m512i
simde_mm512_maskz_cvtps_epi32(simde__mmask16 m, simde__m512 a)
{
    simde_two t = {.f = a};

    for (int k = 0; k < 2; k++)
        t.hi[k] = _mm256_cvtps_epi32(t.hf[k]);
    for (int k = 0; k < 16; k++)
        t.n[k] = m >> k & 1 ? t.n[k] : 0;
    return t.i;
}

/* The lowest bytes. */
static inline __m128i
simde_mm512_cvtepi32_epi8(simde__m512i a)
{
    simde_two t = {.i = a};
    int8_t y[16];
    __m128i out;

    for (int k = 0; k < 16; k++)
        y[k] = (int8_t)t.n[k];
    memcpy(&out, y, sizeof out);
    return out;
}

/* Those of AVX-512 for half a register and a quarter, not by the sed script. */
static inline void
more_store_some(int32_t *p, unsigned m, const void *from, int n)
{
    for (int k = 0; k < n; k++)
        if (m >> k & 1)
            memcpy(p + k, (const int32_t *)from + k, 4);
}

static inline void
more_store_8(void *p, unsigned m, __m256i a)
{
    more_store_some(p, m, &a, 8);
}

static inline void
more_store_4(void *p, unsigned m, __m128i a)
{
    more_store_some(p, m, &a, 4);
}

static inline void
more_store_4f(void *p, unsigned m, __m128 a)
{
    more_store_some(p, m, &a, 4);
}

#define _mm256_mask_storeu_epi32 more_store_8
#define _mm_mask_storeu_epi32    more_store_4
#define _mm_mask_storeu_ps       more_store_4f

#endif
