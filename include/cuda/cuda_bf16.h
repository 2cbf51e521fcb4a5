/* cuda_bf16.h - bfloat16: the upper half of a float.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_BF16_H
#define BRASS_CUDA_BF16_H
#define __CUDA_BF16_H__ /* as programs ask for it */
#include "brass_push.h"

#include "brass_narrow.h"
#include "cuda_runtime.h"

#include <string.h>

struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat162_raw {
    unsigned short x, y;
};

static __host__ __device__ __forceinline__ unsigned short
brass_float_to_bf16(float f)
{
    unsigned u;

    memcpy(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static __host__ __device__ __forceinline__ float
brass_bf16_to_float(unsigned short h)
{
    unsigned u = (unsigned)h << 16;
    float f;

    memcpy(&f, &u, 4);
    return f;
}

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __host__ __device__ __nv_bfloat16(__nv_bfloat16_raw r) : bits(r.x) {}
    __host__ __device__ __nv_bfloat16(float f) : bits(brass_float_to_bf16(f)) {}
    __host__ __device__ __nv_bfloat16(double f)
        : bits(brass_float_to_bf16(brass_odd(f)))
    {
    }
    __host__ __device__ __nv_bfloat16(short i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(unsigned short i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(int i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(unsigned i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(long i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(unsigned long i)
        : bits(brass_float_to_bf16(brass_odd_int((long long)i, true)))
    {
    }
    __host__ __device__ __nv_bfloat16(long long i)
        : bits(brass_float_to_bf16(brass_odd_int(i, false)))
    {
    }
    __host__ __device__ __nv_bfloat16(unsigned long long i)
        : bits(brass_float_to_bf16(brass_odd_int((long long)i, true)))
    {
    }
    template <class T, class = decltype(((T *)0)->bits)>
    __host__ __device__ __nv_bfloat16(const volatile T &h) : bits(h.bits)
    {
    }
    __nv_bfloat16(const __nv_bfloat16 &h) = default;
    __nv_bfloat16 &operator=(const __nv_bfloat16 &h) = default;
    __host__ __device__ __nv_bfloat16 &operator=(float f)
    {
        bits = brass_float_to_bf16(f);
        return *this;
    }
    __host__ __device__ operator float() const
    {
        return brass_bf16_to_float(bits);
    }
    __host__ __device__ operator __nv_bfloat16_raw() const { return {bits}; }
};
struct __align__(4) __nv_bfloat162
{
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __host__ __device__ __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
        : x(a), y(b)
    {
    }
    __host__ __device__ __nv_bfloat162(__nv_bfloat162_raw r)
        : x(__nv_bfloat16_raw{r.x}), y(__nv_bfloat16_raw{r.y})
    {
    }
    __host__ __device__ operator __nv_bfloat162_raw() const
    {
        return {x.bits, y.bits};
    }
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define H          __nv_bfloat16
#define H2         __nv_bfloat162
#define BR_UP(h)   brass_bf16_to_float((h).bits)
#define BR_DOWN(f) __nv_bfloat16((float)(f))
#define BR_NAME    bfloat16
#include "brass_half.def"
#undef BR_NAME
#undef H
#undef H2
#undef BR_UP
#undef BR_DOWN

#define CUDART_INF_BF16        __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16        __ushort_as_bfloat16(0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_ZERO_BF16       __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16        __ushort_as_bfloat16(0x3f80)

#include "brass_pop.h"
#endif
