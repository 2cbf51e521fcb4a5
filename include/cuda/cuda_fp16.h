/* cuda_fp16.h - half precision.
 *
 * The device converts with its own instructions, the host with integers.
 * Sums and products go through float, which rounds them as one operation
 * would: 24 bits are more than twice 11 and two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_FP16_H
#define BRASS_CUDA_FP16_H
#define __CUDA_FP16_H__ /* as programs ask for it */
#include "brass_push.h"

#include "brass_narrow.h"
#include "cuda_runtime.h"

#include <string.h>

struct __half_raw {
    unsigned short x;
};
struct __half2_raw {
    unsigned short x, y;
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
    __host__ __device__ __half(double f)
        : bits(brass_float_to_half(brass_odd(f)))
    {
    }
    __host__ __device__ __half(short i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(unsigned short i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(int i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(unsigned i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(long i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(unsigned long i)
        : bits(brass_float_to_half(brass_odd_int((long long)i, true)))
    {
    }
    __host__ __device__ __half(long long i)
        : bits(brass_float_to_half(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __half(unsigned long long i)
        : bits(brass_float_to_half(brass_odd_int((long long)i, true)))
    {
    }
    /* A template, since a copy constructor of ours would make every copy a
     * call, and printf refuse the type. */
    template <class T, class = decltype(((T *)0)->bits)>
    __host__ __device__ __half(const volatile T &h) : bits(h.bits)
    {
    }
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
    __host__ __device__ __half2(__half2_raw r)
        : x(__half_raw{r.x}), y(__half_raw{r.y})
    {
    }
    __host__ __device__ operator __half2_raw() const
    {
        return {x.bits, y.bits};
    }
};
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

#define H          __half
#define H2         __half2
#define BR_UP(h)   brass_half_to_float((h).bits)
#define BR_DOWN(f) __half((float)(f))
#define BR_NAME    half
#include "brass_half.def"
#undef BR_NAME
#undef H
#undef H2
#undef BR_UP
#undef BR_DOWN

#define CUDART_INF_FP16        __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16        __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_ZERO_FP16       __ushort_as_half(0x0000)
#define CUDART_ONE_FP16        __ushort_as_half(0x3c00)

#include "brass_pop.h"
#endif
