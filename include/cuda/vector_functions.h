/* vector_functions.h - make_int2 and its like.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_VECTOR_FUNCTIONS_H
#define BRASS_VECTOR_FUNCTIONS_H
#define __VECTOR_FUNCTIONS_H__ /* as programs ask for it */
#include "brass_push.h"

#include "vector_types.h"

#define BRASS_MAKE(name, type)                                                \
    static __host__ __device__ __forceinline__ name##1 make_##name##1(type x) \
    {                                                                         \
        name##1 v = {x};                                                      \
        return v;                                                             \
    }                                                                         \
    static __host__ __device__ __forceinline__ name##2 make_##name##2(type x, \
                                                                      type y) \
    {                                                                         \
        name##2 v = {x, y};                                                   \
        return v;                                                             \
    }                                                                         \
    static __host__ __device__ __forceinline__ name##3 make_##name##3(        \
        type x, type y, type z)                                               \
    {                                                                         \
        name##3 v = {x, y, z};                                                \
        return v;                                                             \
    }                                                                         \
    static __host__ __device__ __forceinline__ name##4 make_##name##4(        \
        type x, type y, type z, type w)                                       \
    {                                                                         \
        name##4 v = {x, y, z, w};                                             \
        return v;                                                             \
    }
BRASS_MAKE(char, signed char)
BRASS_MAKE(uchar, unsigned char)
BRASS_MAKE(short, short)
BRASS_MAKE(ushort, unsigned short)
BRASS_MAKE(int, int)
BRASS_MAKE(uint, unsigned int)
BRASS_MAKE(long, long)
BRASS_MAKE(ulong, unsigned long)
BRASS_MAKE(longlong, long long)
BRASS_MAKE(ulonglong, unsigned long long)
BRASS_MAKE(float, float)
BRASS_MAKE(double, double)
#undef BRASS_MAKE

#include "brass_pop.h"
#endif
