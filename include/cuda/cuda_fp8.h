/* cuda_fp8.h - floats of eight bits: e4m3 (up to 448, no infinity) and e5m2 (up to
 * 57344, half's upper byte).
 *
 * Conversions are integer arithmetic on both sides: to nearest, ties to even,
 * rounded once from any type. A NaN becomes 0x7f.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_FP8_H
#define BRASS_CUDA_FP8_H
#include "brass_push.h"

#include "brass_narrow.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t {
    __NV_NOSAT, /* what is too large becomes an infinity, or e4m3's NaN */
    __NV_SATFINITE
} __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t {
    __NV_E4M3,
    __NV_E5M2
} __nv_fp8_interpretation_t;

#define BR_HD static __host__ __device__ __forceinline__

BR_HD __nv_fp8_storage_t
__nv_cvt_float_to_fp8(float f, __nv_saturation_t sat,
                      __nv_fp8_interpretation_t as)
{
    int bits = as == __NV_E4M3 ? 3 : 2, bias = as == __NV_E4M3 ? 7 : 15;
    unsigned most = as == __NV_E4M3 ? 0x7e : 0x7b, u, m, r, s;
    int e, drop;

    memcpy(&u, &f, 4);
    s = u >> 24 & 0x80;
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return 0x7f;
    e = (int)(u >> 23) - 127 + bias;
    m = (u & 0x7fffff) | 0x800000;
    drop = 23 - bits + (e < 1 ? 1 - e : 0);
    if (drop > 24) /* less than half of the smallest */
        return (__nv_fp8_storage_t)s;
    r = m >> drop;
    m &= (1u << drop) - 1;
    r += m > 1u << (drop - 1) || (m == 1u << (drop - 1) && (r & 1));
    r += e > 1 ? (unsigned)(e - 1) << bits : 0;
    if (r > most)
        r = sat == __NV_SATFINITE ? most : as == __NV_E4M3 ? 0x7f : 0x7c;
    return (__nv_fp8_storage_t)(s | r);
}
BR_HD float
brass_fp8_to_float(__nv_fp8_storage_t x, __nv_fp8_interpretation_t as)
{
    int bits = as == __NV_E4M3 ? 3 : 2, top = as == __NV_E4M3 ? 10 : 17;
    int e = (x & 0x7f) >> bits, m = x & ((1 << bits) - 1);
    unsigned scale = (unsigned)((e ? e : 1) - top + 127) << 23;
    float f;

    if (as == __NV_E4M3 ? (x & 0x7f) == 0x7f : (x & 0x7f) > 0x7c)
        return __builtin_nanf("");
    if (as == __NV_E5M2 && (x & 0x7f) == 0x7c)
        return x & 0x80 ? -__builtin_inff() : __builtin_inff();
    memcpy(&f, &scale, 4);
    f *= (float)(e ? m | 1 << bits : m);
    return x & 0x80 ? -f : f;
}
BR_HD __nv_fp8_storage_t
__nv_cvt_double_to_fp8(double d, __nv_saturation_t sat,
                       __nv_fp8_interpretation_t as)
{
    return __nv_cvt_float_to_fp8(brass_odd(d), sat, as);
}
BR_HD __nv_fp8_storage_t
__nv_cvt_halfraw_to_fp8(__half_raw h, __nv_saturation_t sat,
                        __nv_fp8_interpretation_t as)
{
    return __nv_cvt_float_to_fp8(brass_half_to_float(h.x), sat, as);
}
BR_HD __nv_fp8_storage_t
__nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw h, __nv_saturation_t sat,
                            __nv_fp8_interpretation_t as)
{
    return __nv_cvt_float_to_fp8(brass_bf16_to_float(h.x), sat, as);
}
#define BR_PAIR(name, T, one)                                     \
    BR_HD __nv_fp8x2_storage_t name(T v, __nv_saturation_t sat,   \
                                    __nv_fp8_interpretation_t as) \
    {                                                             \
        unsigned lo = one(v.x), hi = one(v.y);                    \
                                                                  \
        return (__nv_fp8x2_storage_t)(hi << 8 | lo);              \
    }
#define BR_OF_FLOAT(x)  __nv_cvt_float_to_fp8(x, sat, as)
#define BR_OF_DOUBLE(x) __nv_cvt_double_to_fp8(x, sat, as)
#define BR_OF_HALF(u)   __nv_cvt_halfraw_to_fp8(__half_raw{u}, sat, as)
#define BR_OF_BF16(u)   __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw{u}, sat, as)
BR_PAIR(__nv_cvt_float2_to_fp8x2, float2, BR_OF_FLOAT)
BR_PAIR(__nv_cvt_double2_to_fp8x2, double2, BR_OF_DOUBLE)
BR_PAIR(__nv_cvt_halfraw2_to_fp8x2, __half2_raw, BR_OF_HALF)
BR_PAIR(__nv_cvt_bfloat16raw2_to_fp8x2, __nv_bfloat162_raw, BR_OF_BF16)
BR_HD __half_raw
__nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t as)
{
    return {brass_float_to_half(brass_fp8_to_float(x, as))};
}
BR_HD __half2_raw
__nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t as)
{
    return {__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, as).x,
            __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), as).x};
}

/* The types: one, two, four. Constructors saturate; a name says how bits are
 * read. */
#define BR_CTOR(name, T, expr) \
    explicit __host__ __device__ name(T v) : __x(expr) {}
#define BR_TO(T, expr)                              \
    explicit __host__ __device__ operator T() const \
    {                                               \
        return expr;                                \
    }
#define BR_SAT __NV_SATFINITE
#define BR_INT(name, AS, T)                                               \
    BR_CTOR(name, T,                                                      \
            __nv_cvt_float_to_fp8(                                        \
                brass_odd_int((long long)v, sizeof(T) == 8 && (T)-1 > 0), \
                BR_SAT, AS))                                              \
    BR_TO(T, brass_to_int<T>(                                             \
                 __builtin_truncf(brass_fp8_to_float(__x, AS)),           \
                 (T)((T)-1 < 0 ? (T)1 << (8 * sizeof(T) - 1) : 0),        \
                 (T)((T)-1 < 0 ? ~((T)1 << (8 * sizeof(T) - 1)) : (T)-1)))
#define BR_FP8(name, AS)                                                     \
    struct __nv_##name {                                                     \
        __nv_fp8_storage_t __x;                                              \
        __nv_##name() = default;                                             \
        BR_CTOR(__nv_##name, float, __nv_cvt_float_to_fp8(v, BR_SAT, AS))    \
        BR_CTOR(__nv_##name, double, __nv_cvt_double_to_fp8(v, BR_SAT, AS))  \
        BR_CTOR(__nv_##name, __half, __nv_cvt_halfraw_to_fp8(v, BR_SAT, AS)) \
        BR_CTOR(__nv_##name, __nv_bfloat16,                                  \
                __nv_cvt_bfloat16raw_to_fp8(v, BR_SAT, AS))                  \
        BR_INT(__nv_##name, AS, int)                                         \
        BR_INT(__nv_##name, AS, unsigned)                                    \
        BR_INT(__nv_##name, AS, long long)                                   \
        BR_INT(__nv_##name, AS, unsigned long long)                          \
        BR_TO(float, brass_fp8_to_float(__x, AS))                            \
        BR_TO(double, (double)brass_fp8_to_float(__x, AS))                   \
        BR_TO(__half, __half(brass_fp8_to_float(__x, AS)))                   \
        BR_TO(__nv_bfloat16, __nv_bfloat16(brass_fp8_to_float(__x, AS)))     \
        BR_TO(bool, (__x & 0x7f) != 0)                                       \
    }
#define BR_FP8X2(name, AS)                                                    \
    struct __align__(2) __nv_##name                                           \
    {                                                                         \
        __nv_fp8x2_storage_t __x;                                             \
        __nv_##name() = default;                                              \
        BR_CTOR(__nv_##name, float2, __nv_cvt_float2_to_fp8x2(v, BR_SAT, AS)) \
        BR_CTOR(__nv_##name, double2,                                         \
                __nv_cvt_double2_to_fp8x2(v, BR_SAT, AS))                     \
        BR_CTOR(__nv_##name, __half2,                                         \
                __nv_cvt_halfraw2_to_fp8x2(v, BR_SAT, AS))                    \
        BR_CTOR(__nv_##name, __nv_bfloat162,                                  \
                __nv_cvt_bfloat16raw2_to_fp8x2(v, BR_SAT, AS))                \
        BR_TO(__half2, __nv_cvt_fp8x2_to_halfraw2(__x, AS))                   \
        BR_TO(float2,                                                         \
              make_float2(                                                    \
                  brass_fp8_to_float((__nv_fp8_storage_t)__x, AS),            \
                  brass_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), AS)))    \
    }
#define BR_FP8X4(name, x2)                                                  \
    struct __align__(4) __nv_##name                                         \
    {                                                                       \
        __nv_fp8x4_storage_t __x;                                           \
        __nv_##name() = default;                                            \
        BR_CTOR(__nv_##name, float4,                                        \
                __nv_##x2(make_float2(v.x, v.y)).__x |                      \
                    (unsigned)__nv_##x2(make_float2(v.z, v.w)).__x << 16)   \
        BR_CTOR(__nv_##name, double4,                                       \
                __nv_##x2(make_double2(v.x, v.y)).__x |                     \
                    (unsigned)__nv_##x2(make_double2(v.z, v.w)).__x << 16)  \
        explicit __host__ __device__ __nv_##name(__half2 lo, __half2 hi)    \
            : __x(__nv_##x2(lo).__x | (unsigned)__nv_##x2(hi).__x << 16)    \
        {                                                                   \
        }                                                                   \
        explicit __host__ __device__ __nv_##name(__nv_bfloat162 lo,         \
                                                 __nv_bfloat162 hi)         \
            : __x(__nv_##x2(lo).__x | (unsigned)__nv_##x2(hi).__x << 16)    \
        {                                                                   \
        }                                                                   \
        explicit __host__ __device__ operator float4() const                \
        {                                                                   \
            __nv_##x2 l, h;                                                 \
                                                                            \
            l.__x = (__nv_fp8x2_storage_t)__x;                              \
            h.__x = (__nv_fp8x2_storage_t)(__x >> 16);                      \
            return make_float4(((float2)l).x, ((float2)l).y, ((float2)h).x, \
                               ((float2)h).y);                              \
        }                                                                   \
    }
BR_FP8(fp8_e4m3, __NV_E4M3);
BR_FP8(fp8_e5m2, __NV_E5M2);
BR_FP8X2(fp8x2_e4m3, __NV_E4M3);
BR_FP8X2(fp8x2_e5m2, __NV_E5M2);
BR_FP8X4(fp8x4_e4m3, fp8x2_e4m3);
BR_FP8X4(fp8x4_e5m2, fp8x2_e5m2);

#undef BR_HD
#undef BR_PAIR
#undef BR_OF_FLOAT
#undef BR_OF_DOUBLE
#undef BR_OF_HALF
#undef BR_OF_BF16
#undef BR_CTOR
#undef BR_TO
#undef BR_SAT
#undef BR_INT
#undef BR_FP8
#undef BR_FP8X2
#undef BR_FP8X4

#include "brass_pop.h"
#endif
