/* cuda_fp16.h - half precision.
 *
 * The device converts with its own instructions, the host with integers.
 * Sums and products go through float, which rounds them as one operation
 * would: 24 bits are more than twice 11 and two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_FP16_H
#define BRASS_CUDA_FP16_H
#include "cuda_runtime.h"

#include <string.h>

struct __half_raw {
    unsigned short x;
};

/* To nearest, ties to even. */
static __host__ __device__ __forceinline__ unsigned short
brass_float_to_half(float f)
{
#ifdef __CUDA_ARCH__
    unsigned short h;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    unsigned u, s, m, e, r;

    memcpy(&u, &f, 4);
    s = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return 0x7fff;
    if (u >= 0x477ff000)
        return (unsigned short)(s | 0x7c00);
    if (u < 0x33000000)
        return (unsigned short)s;
    e = u >> 23;
    m = (u & 0x7fffff) | 0x800000;
    e = e < 113 ? 126 - e : 13; /* bits that go */
    r = m >> e;
    m &= (1u << e) - 1;
    r += m > 1u << (e - 1) || (m == 1u << (e - 1) && (r & 1));
    if (e == 13)
        r += ((u >> 23) - 113) << 10;
    return (unsigned short)(s | r);
#endif
}
static __host__ __device__ __forceinline__ float
brass_half_to_float(unsigned short h)
{
    float f;
#ifdef __CUDA_ARCH__
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
#else
    unsigned s = (unsigned)(h & 0x8000) << 16, u = h & 0x7fff;

    if (u >= 0x7c00) {
        u = s | 0x7f800000 | u << 13;
    } else if (u >= 0x400) {
        u = s | ((u << 13) + 0x38000000);
    } else {
        f = (float)u * 0x1p-24f;
        memcpy(&u, &f, 4);
        u |= s;
    }
    memcpy(&f, &u, 4);
#endif
    return f;
}

struct __half {
    unsigned short bits;
    __half() = default;
    __host__ __device__ __half(__half_raw r) : bits(r.x) {}
    __host__ __device__ __half(float f) : bits(brass_float_to_half(f)) {}
    __host__ __device__ __half(double f) : bits(brass_float_to_half((float)f))
    {
    }
    __host__ __device__ __half(int i) : bits(brass_float_to_half((float)i)) {}
    __host__ __device__ __half(unsigned i) : bits(brass_float_to_half((float)i))
    {
    }
    __host__ __device__ __half(long long i)
        : bits(brass_float_to_half((float)i))
    {
    }
    __host__ __device__ __half(const volatile __half &h) : bits(h.bits) {}
    __half(const __half &h) = default;
    __half &operator=(const __half &h) = default;
    __host__ __device__ __half &operator=(float f)
    {
        bits = brass_float_to_half(f);
        return *this;
    }
    __host__ __device__ operator float() const
    {
        return brass_half_to_float(bits);
    }
    __host__ __device__ operator __half_raw() const { return {bits}; }
};
struct __align__(4) __half2
{
    __half x, y;
    __half2() = default;
    __host__ __device__ __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

#define H          __half
#define H2         __half2
#define BR_UP(h)   brass_half_to_float((h).bits)
#define BR_DOWN(f) __half((float)(f))
#define BR_FMA(a, b, c) \
    __half((float)((double)BR_UP(a) * BR_UP(b) + (double)BR_UP(c)))
#define BR_NAME half
#include "brass_half.def"
#undef BR_NAME
#undef H
#undef H2
#undef BR_UP
#undef BR_DOWN
#undef BR_FMA

#define BR_HD static __host__ __device__ __forceinline__
BR_HD __half2
__low2half2(__half2 h)
{
    return __half2(h.x, h.x);
}
BR_HD __half2
__high2half2(__half2 h)
{
    return __half2(h.y, h.y);
}
BR_HD __half2
__lowhigh2highlow(__half2 h)
{
    return __half2(h.y, h.x);
}
BR_HD __half2
__lows2half2(__half2 a, __half2 b)
{
    return __half2(a.x, b.x);
}
BR_HD __half2
__highs2half2(__half2 a, __half2 b)
{
    return __half2(a.y, b.y);
}
BR_HD short
__half_as_short(__half h)
{
    return (short)h.bits;
}
BR_HD __half
__ushort_as_half(unsigned short u)
{
    return __half_raw{u};
}
BR_HD __half
__short_as_half(short u)
{
    return __half_raw{(unsigned short)u};
}
BR_HD __half
__int2half_rn(int i)
{
    return __half((float)i);
}
BR_HD __half
__uint2half_rn(unsigned i)
{
    return __half((float)i);
}
BR_HD __half
__ll2half_rn(long long i)
{
    return __half((float)i);
}
BR_HD int
__half2int_rn(__half h)
{
    return (int)__builtin_rintf((float)h);
}
BR_HD int
__half2int_rz(__half h)
{
    return (int)(float)h;
}
BR_HD int
__half2int_rd(__half h)
{
    return (int)__builtin_floorf((float)h);
}
BR_HD int
__half2int_ru(__half h)
{
    return (int)__builtin_ceilf((float)h);
}
BR_HD unsigned
__half2uint_rz(__half h)
{
    return (unsigned)(float)h;
}
#undef BR_HD
#endif
