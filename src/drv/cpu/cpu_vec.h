/* cpu_vec.h - sixteen lanes of f32, for cpu_ops_body.h.
 *
 * The file that includes it has chosen one of four by VEC_AVX512, VEC_AVX2,
 * VEC_NEON or none, and compiles for that target. Sixteen lanes everywhere, so that a
 * sum has one order on every machine (docs/arithmetic.md): one AVX-512
 * register, two of AVX2, four of NEON, or an array that the compiler may do with
 * what it likes. Each operation is one IEEE operation per lane.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_VEC_H
#define BR_CPU_VEC_H

#include "base/half.h"

#include <math.h>
#include <string.h>
#if defined VEC_AVX512 || defined VEC_AVX2
#    include <immintrin.h>
#elif defined VEC_NEON
#    include <arm_neon.h>
#endif

#if defined BR_ONE_COPY && \
    (defined VEC_AVX512 || defined VEC_AVX2 || defined VEC_NEON)
#    define V_INLINE static inline __attribute__((unused))
#elif defined BR_ONE_COPY
#    define V_INLINE static __attribute__((noinline, unused))
#else
#    define V_INLINE static inline __attribute__((always_inline, unused))
#endif
/* Loops that need all registers. */
#define V_APART static __attribute__((noinline, unused))
/* Long functions: without vectors, or for a sanitizer, copies of them take gcc
 * half a minute. */
#if !defined BR_ONE_COPY && \
    (defined VEC_AVX512 || defined VEC_AVX2 || defined VEC_NEON)
#    define V_LONG V_INLINE
#else
#    define V_LONG static __attribute__((noinline, unused))
#endif

/* Loops over vectors that have to be registers. */
#if !defined VEC_AVX512 && !defined VEC_AVX2 || defined BR_ONE_COPY || \
    defined BR_ONE_TILE || !defined __OPTIMIZE__
#    define V_UNROLL /* below -O2 gcc ignores it, with a warning */
#elif defined __clang__
#    define V_UNROLL _Pragma("clang loop unroll(full)")
#else
#    define V_UNROLL _Pragma("GCC unroll 16")
#endif

/* One row per operation: what it takes, and how it is done in one register
 * (AVX-512), in one of two (AVX2), in one of four (NEON), in one lane of an
 * array. */
#if defined VEC_AVX512
typedef struct vf {
    __m512 r[1];
} vf;
#    define V_REGS 1
#    define V_OP(name, params, z, y, n, c) \
        V_INLINE vf name params            \
        {                                  \
            vf o;                          \
                                           \
            o.r[0] = z;                    \
            return o;                      \
        }
#    define V_I 0
#elif defined VEC_AVX2
typedef struct vf {
    __m256 r[2];
} vf;
#    define V_OP(name, params, z, y, n, c) \
        V_INLINE vf name params            \
        {                                  \
            vf o;                          \
                                           \
            {                              \
                enum { V_I = 0 };          \
                o.r[V_I] = y;              \
            }                              \
            {                              \
                enum { V_I = 1 };          \
                o.r[V_I] = y;              \
            }                              \
            return o;                      \
        }
#elif defined VEC_NEON
typedef struct vf {
    float32x4_t r[4];
} vf;
#    define V_OP(name, params, z, y, n, c)    \
        V_INLINE vf name params               \
        {                                     \
            vf o;                             \
                                              \
            for (int V_I = 0; V_I < 4; V_I++) \
                o.r[V_I] = n;                 \
            return o;                         \
        }
#else
typedef struct vf {
    float r[16];
} vf;
#    define V_OP(name, params, z, y, n, c)     \
        V_INLINE vf name params                \
        {                                      \
            vf o;                              \
                                               \
            for (int V_I = 0; V_I < 16; V_I++) \
                o.r[V_I] = c;                  \
            return o;                          \
        }
#endif

/* clang-format off */
V_OP(v_set, (float f), _mm512_set1_ps(f), _mm256_set1_ps(f),
     vdupq_n_f32(f), f)
V_OP(v_load, (const float *p), _mm512_loadu_ps(p),
     _mm256_loadu_ps(p + 8 * V_I),
     vld1q_f32(p + 4 * V_I), p[V_I])
V_OP(v_add, (vf a, vf b), _mm512_add_ps(a.r[0], b.r[0]),
     _mm256_add_ps(a.r[V_I], b.r[V_I]),
     vaddq_f32(a.r[V_I], b.r[V_I]), a.r[V_I] + b.r[V_I])
V_OP(v_sub, (vf a, vf b), _mm512_sub_ps(a.r[0], b.r[0]),
     _mm256_sub_ps(a.r[V_I], b.r[V_I]),
     vsubq_f32(a.r[V_I], b.r[V_I]), a.r[V_I] - b.r[V_I])
V_OP(v_mul, (vf a, vf b), _mm512_mul_ps(a.r[0], b.r[0]),
     _mm256_mul_ps(a.r[V_I], b.r[V_I]),
     vmulq_f32(a.r[V_I], b.r[V_I]), a.r[V_I] * b.r[V_I])
V_OP(v_div, (vf a, vf b), _mm512_div_ps(a.r[0], b.r[0]),
     _mm256_div_ps(a.r[V_I], b.r[V_I]),
     vdivq_f32(a.r[V_I], b.r[V_I]), a.r[V_I] / b.r[V_I])
V_OP(v_fma, (vf a, vf b, vf c), _mm512_fmadd_ps(a.r[0], b.r[0], c.r[0]),
     _mm256_fmadd_ps(a.r[V_I], b.r[V_I], c.r[V_I]),
     vfmaq_f32(c.r[V_I], a.r[V_I], b.r[V_I]),
     fmaf(a.r[V_I], b.r[V_I], c.r[V_I]))
/* The second where either is a NaN. */
V_OP(v_max, (vf a, vf b), _mm512_max_ps(a.r[0], b.r[0]),
     _mm256_max_ps(a.r[V_I], b.r[V_I]),
     vbslq_f32(vcgtq_f32(a.r[V_I], b.r[V_I]), a.r[V_I], b.r[V_I]), a.r[V_I] > b.r[V_I] ? a.r[V_I] : b.r[V_I])
V_OP(v_min, (vf a, vf b), _mm512_min_ps(a.r[0], b.r[0]),
     _mm256_min_ps(a.r[V_I], b.r[V_I]),
     vbslq_f32(vcltq_f32(a.r[V_I], b.r[V_I]), a.r[V_I], b.r[V_I]), a.r[V_I] < b.r[V_I] ? a.r[V_I] : b.r[V_I])
V_OP(v_rint, (vf a), _mm512_roundscale_ps(a.r[0], 8),
     _mm256_round_ps(a.r[V_I], 8),
     vrndnq_f32(a.r[V_I]), rintf(a.r[V_I]))
V_OP(v_abs, (vf a), _mm512_abs_ps(a.r[0]),
     _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.r[V_I]),
     vabsq_f32(a.r[V_I]), fabsf(a.r[V_I]))
V_OP(v_neg, (vf a),
     _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.r[0]),
                                          _mm512_set1_epi32(INT32_MIN))),
     _mm256_xor_ps(_mm256_set1_ps(-0.0f), a.r[V_I]),
     vnegq_f32(a.r[V_I]), -a.r[V_I])
/* x < y ? a : b, false for NaNs. */
V_OP(v_less, (vf x, vf y, vf a, vf b),
     _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.r[0], y.r[0], _CMP_LT_OQ),
                          b.r[0], a.r[0]),
     _mm256_blendv_ps(b.r[V_I], a.r[V_I],
                      _mm256_cmp_ps(x.r[V_I], y.r[V_I], _CMP_LT_OQ)),
     vbslq_f32(vcltq_f32(x.r[V_I], y.r[V_I]), a.r[V_I], b.r[V_I]),
     x.r[V_I] < y.r[V_I] ? a.r[V_I] : b.r[V_I])
/* From sixteen F16. */
V_OP(v_load_f16, (const uint16_t *p),
     _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)),
     _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 8 * V_I))),
     vcvt_f32_f16(
         vreinterpret_f16_u16(vld1_u16(p + 4 * V_I))),
     br_f16_to_f32(p[V_I]))
#if defined VEC_NEON
V_INLINE float32x4_t
v_four_i8(const int8_t *p)
{
    int32_t four;

    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(
        vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
#endif
/* From sixteen signed bytes. */
V_OP(v_load_i8, (const int8_t *p),
     _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p))),
     _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
         _mm_loadl_epi64((const void *)(p + 8 * V_I)))),
     v_four_i8(p + 4 * V_I), (float)p[V_I])
#if defined VEC_AVX2
V_INLINE __m256
v_pow2(__m256i k)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23));
}

V_INLINE __m256
v_ldexp8(__m256 p, __m256 k)
{
    __m256i n = _mm256_cvtps_epi32(k);
    __m256i h = _mm256_srai_epi32(
        _mm256_add_epi32(n, _mm256_srli_epi32(n, 31)), 1);

    p = _mm256_mul_ps(p, v_pow2(h));
    return _mm256_mul_ps(p, v_pow2(_mm256_sub_epi32(n, h)));
}
#endif
#if defined VEC_NEON
V_INLINE float32x4_t
v_pow2(int32x4_t k)
{
    return vreinterpretq_f32_s32(
        vshlq_n_s32(vaddq_s32(k, vdupq_n_s32(127)), 23));
}

V_INLINE float32x4_t
v_ldexp4(float32x4_t p, float32x4_t k)
{
    int32x4_t n = vcvtnq_s32_f32(k);
    int32x4_t h = vhaddq_s32(
        n, vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(n), 31)));

    p = vmulq_f32(p, v_pow2(h));
    return vmulq_f32(p, v_pow2(vsubq_s32(n, h)));
}
#endif
/* p * 2^k for whole k of -151 to 128, rounded once; others: anything. */
V_OP(v_ldexp, (vf p, vf k), _mm512_scalef_ps(p.r[0], k.r[0]),
     v_ldexp8(p.r[V_I], k.r[V_I]),
     v_ldexp4(p.r[V_I], k.r[V_I]),
     k.r[V_I] > -160 && k.r[V_I] < 130 ? ldexpf(p.r[V_I], (int)k.r[V_I]) : 0)
/* clang-format on */

/* *x * y + z. AVX-512 takes *x as an operand in memory each time: spread over a
 * register it would be kept by the compiler, and cost a cycle of its own. */
V_INLINE vf
v_fma_at(const float *x, vf y, vf z)
{
#if defined VEC_AVX512 && !defined MAT_BY_FUNCTIONS
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0"
            : "+v"(z.r[0])
            : "v"(y.r[0]), "m"(*x));
    return z;
#else
    return v_fma(v_set(*x), y, z);
#endif
}

V_INLINE void
v_store(float *p, vf a)
{
#if defined VEC_AVX512
    _mm512_storeu_ps(p, a.r[0]);
#elif defined VEC_AVX2
    _mm256_storeu_ps(p, a.r[0]);
    _mm256_storeu_ps(p + 8, a.r[1]);
#elif defined VEC_NEON
    for (int i = 0; i < 4; i++)
        vst1q_f32(p + 4 * i, a.r[i]);
#else
    memcpy(p, a.r, sizeof a.r);
#endif
}

V_INLINE void
v_store_f16(uint16_t *p, vf a)
{
#if defined VEC_AVX512
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(a.r[0], 8));
#elif defined VEC_AVX2
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(a.r[0], 8));
    _mm_storeu_si128((void *)(p + 8), _mm256_cvtps_ph(a.r[1], 8));
#elif defined VEC_NEON
    for (int i = 0; i < 4; i++)
        vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.r[i])));
#else
    for (int i = 0; i < 16; i++)
        p[i] = br_f32_to_f16(a.r[i]);
#endif
}

/* lane[l] + lane[l + 8], then 4, 2, 1. */
V_INLINE float
v_sum(vf a)
{
    float lane[16];

#if defined VEC_AVX512
    __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(a.r[0]),
                               _mm512_extractf32x8_ps(a.r[0], 1));

    _mm_storeu_ps(lane, _mm_add_ps(_mm256_castps256_ps128(by8),
                                   _mm256_extractf128_ps(by8, 1)));
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
#elif defined VEC_AVX2
    _mm256_storeu_ps(lane, _mm256_add_ps(a.r[0], a.r[1]));
    _mm_storeu_ps(lane, _mm_add_ps(_mm_loadu_ps(lane), _mm_loadu_ps(lane + 4)));
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
#elif defined VEC_NEON
    vst1q_f32(lane,
              vaddq_f32(vaddq_f32(a.r[0], a.r[2]), vaddq_f32(a.r[1], a.r[3])));
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
#else
    v_store(lane, a);
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
#endif
}

/* The highest lane; none is a NaN. */
V_INLINE float
v_top(vf a)
{
#if defined VEC_AVX512
    return _mm512_reduce_max_ps(a.r[0]);
#else
    float lane[16], top;

    v_store(lane, a);
    top = lane[0];
    for (int l = 1; l < 16; l++)
        top = lane[l] > top ? lane[l] : top;
    return top;
#endif
}

/* The first n of sixteen; what is loaded besides is 0. */
V_INLINE vf
v_load_n(const float *p, size_t n)
{
    float lane[16] = {0};

    memcpy(lane, p, n * sizeof *p);
    return v_load(lane);
}

V_INLINE void
v_store_n(float *p, vf a, size_t n)
{
    float lane[16];

    v_store(lane, a);
    memcpy(p, lane, n * sizeof *p);
}

#endif
