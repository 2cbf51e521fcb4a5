/* vector_types.h - char1 to double4, dim3: C structs with CUDA's alignment.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_VECTOR_TYPES_H
#define BRASS_VECTOR_TYPES_H
#define __VECTOR_TYPES_H__ /* as programs ask for it */
#include "brass_push.h"

#include "host_defines.h"

/* Two and four elements are aligned as a whole, at most to 16 bytes, so that
 * one load of the device takes them. */
#define BRASS_VEC(name, type, a2, a4)    \
    typedef struct name##1               \
    {                                    \
        type x;                          \
    }                                    \
    name##1;                             \
    typedef struct __align__(a2) name##2 \
    {                                    \
        type x, y;                       \
    }                                    \
    name##2;                             \
    typedef struct name##3               \
    {                                    \
        type x, y, z;                    \
    }                                    \
    name##3;                             \
    typedef struct __align__(a4) name##4 \
    {                                    \
        type x, y, z, w;                 \
    }                                    \
    name##4;
BRASS_VEC(char, signed char, 2, 4)
BRASS_VEC(uchar, unsigned char, 2, 4)
BRASS_VEC(short, short, 4, 8)
BRASS_VEC(ushort, unsigned short, 4, 8)
BRASS_VEC(int, int, 8, 16)
BRASS_VEC(uint, unsigned int, 8, 16)
BRASS_VEC(long, long, 16, 16)
BRASS_VEC(ulong, unsigned long, 16, 16)
BRASS_VEC(longlong, long long, 16, 16)
BRASS_VEC(ulonglong, unsigned long long, 16, 16)
BRASS_VEC(float, float, 8, 16)
BRASS_VEC(double, double, 16, 16)
#undef BRASS_VEC

typedef struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    __host__ __device__ constexpr dim3(unsigned int a = 1, unsigned int b = 1,
                                       unsigned int c = 1)
        : x(a), y(b), z(c)
    {
    }
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
#endif
} dim3;

#include "brass_pop.h"
#endif
