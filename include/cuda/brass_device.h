/* brass_device.h - what a .cu file sees on the device, for clang.
 *
 * Clang brings the builtin variables and most intrinsics in headers of its own;
 * they expect an SDK around them, whose part this file and brass_libdevice.h
 * play. The order of the includes is theirs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DEVICE_H
#define BRASS_DEVICE_H

#define CUDA_VERSION 12000
#ifndef __CUDACC__
#    define __CUDACC__ 1
#endif
#ifndef __NVCC__ /* programs ask for it where they mean __CUDACC__ */
#    define __NVCC__ 1
#endif
#define __CUDACC_VER_MAJOR__       12
#define __CUDACC_VER_MINOR__       0
#define __CUDACC_VER_BUILD__       0
#define __CUDACC_EXTENDED_LAMBDA__ 1

/* The host's declarations first, then the device's of the same name, then what
 * calls them: clang's <new>. */
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BRASS_D static __device__ __forceinline__

extern "C" {
__device__ int vprintf(const char *, const char *);
__device__ void free(void *) __attribute__((nothrow));
__device__ void *malloc(size_t) __attribute__((nothrow, malloc));
__device__ int printf(const char *, ...);
__device__ void __assertfail(const char *what, const char *file, unsigned line,
                             const char *function, size_t char_size);
BRASS_D void
__assert_fail(const char *what, const char *file, unsigned line,
              const char *function)
{
    __assertfail(what, file, line, function, 1);
}
}

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>

typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t;

#include <__clang_cuda_builtin_vars.h>

BRASS_D unsigned int
__isGlobal(const void *p)
{
    return __nvvm_isspacep_global(p);
}
BRASS_D unsigned int
__isShared(const void *p)
{
    return __nvvm_isspacep_shared(p);
}
BRASS_D unsigned int
__isConstant(const void *p)
{
    return __nvvm_isspacep_const(p);
}
BRASS_D unsigned int
__isLocal(const void *p)
{
    return __nvvm_isspacep_local(p);
}
/* Addresses of one space, and those that say it themselves. Clang's header for
 * processors from 9.0 on calls one of them, on the host, too. */
#ifdef __CUDA_ARCH__
#    define BRASS_CVTA(space, n)                                              \
        BRASS_D size_t __cvta_generic_to_##space(const void *p)               \
        {                                                                     \
            return (size_t)(const void __attribute__((address_space(n))) *)p; \
        }                                                                     \
        BRASS_D void *__cvta_##space##_to_generic(size_t p)                   \
        {                                                                     \
            return (void *)(void __attribute__((address_space(n))) *)p;       \
        }
#else
#    define BRASS_CVTA(space, n)                                \
        BRASS_D size_t __cvta_generic_to_##space(const void *p) \
        {                                                       \
            return (size_t)p;                                   \
        }                                                       \
        BRASS_D void *__cvta_##space##_to_generic(size_t p)     \
        {                                                       \
            return (void *)p;                                   \
        }
#endif
BRASS_CVTA(global, 1)
BRASS_CVTA(shared, 3)
BRASS_CVTA(constant, 4)
BRASS_CVTA(local, 5)
#undef BRASS_CVTA

/* clang-format off */
#include <__clang_cuda_math_forward_declares.h>
#include <__clang_cuda_libdevice_declares.h>
#include "brass_libdevice.h"
#include <__clang_cuda_device_functions.h>
#include <__clang_cuda_math.h>
#include <__clang_cuda_cmath.h>
#include <__clang_cuda_complex_builtins.h>
#include <__clang_cuda_intrinsics.h>
/* clang-format on */

/* The same functions, so that programs with `using namespace std` have one choice. */
namespace std
{
using ::free;
using ::malloc;
using ::memcpy;
using ::memset;
} // namespace std

/* Overloads for float that clang declares and an SDK would define. */
#define BRASS_F(R, name)    \
    BRASS_D R name(float x) \
    {                       \
        return name##f(x);  \
    }
BRASS_F(float, acosh)
BRASS_F(float, asinh)
BRASS_F(float, atanh)
BRASS_F(float, cbrt)
BRASS_F(float, erf)
BRASS_F(float, erfc)
BRASS_F(float, exp2)
BRASS_F(float, expm1)
BRASS_F(int, ilogb)
BRASS_F(float, lgamma)
BRASS_F(long long, llrint)
BRASS_F(long long, llround)
BRASS_F(float, nearbyint)
BRASS_F(float, log1p)
BRASS_F(float, log2)
BRASS_F(float, logb)
BRASS_F(long, lrint)
BRASS_F(long, lround)
BRASS_F(float, rint)
BRASS_F(float, round)
BRASS_F(float, tgamma)
BRASS_F(float, trunc)
#undef BRASS_F
/* These CUDA has besides. */
#define BRASS_F(name)           \
    BRASS_D float name(float x) \
    {                           \
        return name##f(x);      \
    }
BRASS_F(rsqrt)
BRASS_F(rcbrt)
BRASS_F(sinpi)
BRASS_F(cospi)
BRASS_F(exp10)
BRASS_F(erfinv)
BRASS_F(erfcinv)
BRASS_F(erfcx)
BRASS_F(normcdf)
BRASS_F(normcdfinv)
#undef BRASS_F
BRASS_D float
fdim(float a, float b)
{
    return fdimf(a, b);
}
BRASS_D float
fmax(float a, float b)
{
    return fmaxf(a, b);
}
BRASS_D float
fmin(float a, float b)
{
    return fminf(a, b);
}
BRASS_D float
hypot(float a, float b)
{
    return hypotf(a, b);
}
BRASS_D float
fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
BRASS_D float
scalbn(float a, int n)
{
    return scalbnf(a, n);
}
BRASS_D float
copysign(float a, float b)
{
    return copysignf(a, b);
}
BRASS_D float
nextafter(float a, float b)
{
    return nextafterf(a, b);
}
BRASS_D float
remainder(float a, float b)
{
    return remainderf(a, b);
}
BRASS_D float
remquo(float a, float b, int *q)
{
    return remquof(a, b, q);
}
BRASS_D float
scalbln(float a, long n)
{
    return scalbnf(a, (int)n);
}
BRASS_D float
nanf(const char *)
{
    return __builtin_nanf("");
}
BRASS_D double
nan(const char *)
{
    return __builtin_nan("");
}
BRASS_D void
sincos(float x, float *s, float *c)
{
    sincosf(x, s, c);
}
BRASS_D void
sincospi(float x, float *s, float *c)
{
    sincospif(x, s, c);
}

__device__ inline __cuda_builtin_threadIdx_t::operator dim3() const
{
    return dim3(x, y, z);
}
__device__ inline __cuda_builtin_threadIdx_t::operator uint3() const
{
    return {x, y, z};
}
__device__ inline __cuda_builtin_blockIdx_t::operator dim3() const
{
    return dim3(x, y, z);
}
__device__ inline __cuda_builtin_blockIdx_t::operator uint3() const
{
    return {x, y, z};
}
__device__ inline __cuda_builtin_blockDim_t::operator dim3() const
{
    return dim3(x, y, z);
}
__device__ inline __cuda_builtin_blockDim_t::operator uint3() const
{
    return {x, y, z};
}
__device__ inline __cuda_builtin_gridDim_t::operator dim3() const
{
    return dim3(x, y, z);
}
__device__ inline __cuda_builtin_gridDim_t::operator uint3() const
{
    return {x, y, z};
}

/* ---- atomics: one order serves all scopes here -------------------------- */

#define BRASS_ATOMIC(name, type, call)                  \
    BRASS_D type atomic##name(type *p, type v)          \
    {                                                   \
        return call;                                    \
    }                                                   \
    BRASS_D type atomic##name##_block(type *p, type v)  \
    {                                                   \
        return call;                                    \
    }                                                   \
    BRASS_D type atomic##name##_system(type *p, type v) \
    {                                                   \
        return call;                                    \
    }
BRASS_ATOMIC(Add, int, __iAtomicAdd(p, v))
BRASS_ATOMIC(Add, unsigned int, __uAtomicAdd(p, v))
BRASS_ATOMIC(Add, unsigned long long, __ullAtomicAdd(p, v))
BRASS_ATOMIC(Add, float, __fAtomicAdd(p, v))
BRASS_ATOMIC(Add, double, __dAtomicAdd(p, v))
BRASS_ATOMIC(Sub, int, __iAtomicAdd(p, -v))
BRASS_ATOMIC(Sub, unsigned int, __uAtomicAdd(p, -v))
BRASS_ATOMIC(Exch, int, __iAtomicExch(p, v))
BRASS_ATOMIC(Exch, unsigned int, __uAtomicExch(p, v))
BRASS_ATOMIC(Exch, unsigned long long, __ullAtomicExch(p, v))
BRASS_ATOMIC(Exch, float, __fAtomicExch(p, v))
BRASS_ATOMIC(Min, int, __iAtomicMin(p, v))
BRASS_ATOMIC(Min, unsigned int, __uAtomicMin(p, v))
BRASS_ATOMIC(Min, long long, __illAtomicMin(p, v))
BRASS_ATOMIC(Min, unsigned long long, __ullAtomicMin(p, v))
BRASS_ATOMIC(Max, int, __iAtomicMax(p, v))
BRASS_ATOMIC(Max, unsigned int, __uAtomicMax(p, v))
BRASS_ATOMIC(Max, long long, __illAtomicMax(p, v))
BRASS_ATOMIC(Max, unsigned long long, __ullAtomicMax(p, v))
BRASS_ATOMIC(Inc, unsigned int, __uAtomicInc(p, v))
BRASS_ATOMIC(Dec, unsigned int, __uAtomicDec(p, v))
BRASS_ATOMIC(And, int, __iAtomicAnd(p, v))
BRASS_ATOMIC(And, unsigned int, __uAtomicAnd(p, v))
BRASS_ATOMIC(And, long long, __llAtomicAnd(p, v))
BRASS_ATOMIC(And, unsigned long long, __ullAtomicAnd(p, v))
BRASS_ATOMIC(Or, int, __iAtomicOr(p, v))
BRASS_ATOMIC(Or, unsigned int, __uAtomicOr(p, v))
BRASS_ATOMIC(Or, long long, __llAtomicOr(p, v))
BRASS_ATOMIC(Or, unsigned long long, __ullAtomicOr(p, v))
BRASS_ATOMIC(Xor, int, __iAtomicXor(p, v))
BRASS_ATOMIC(Xor, unsigned int, __uAtomicXor(p, v))
BRASS_ATOMIC(Xor, long long, __llAtomicXor(p, v))
BRASS_ATOMIC(Xor, unsigned long long, __ullAtomicXor(p, v))
#undef BRASS_ATOMIC

#define BRASS_CAS(type, call)                              \
    BRASS_D type atomicCAS(type *p, type c, type v)        \
    {                                                      \
        return call;                                       \
    }                                                      \
    BRASS_D type atomicCAS_block(type *p, type c, type v)  \
    {                                                      \
        return call;                                       \
    }                                                      \
    BRASS_D type atomicCAS_system(type *p, type c, type v) \
    {                                                      \
        return call;                                       \
    }
BRASS_CAS(int, __iAtomicCAS(p, c, v))
BRASS_CAS(unsigned int, __uAtomicCAS(p, c, v))
BRASS_CAS(unsigned long long, __ullAtomicCAS(p, c, v))
#undef BRASS_CAS
BRASS_D unsigned short
atomicCAS(unsigned short *p, unsigned short c, unsigned short v)
{
    unsigned short old;

    asm volatile("atom.cas.b16 %0, [%1], %2, %3;"
                 : "=h"(old)
                 : "l"(p), "h"(c), "h"(v)
                 : "memory");
    return old;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 /* else clang has them */
BRASS_D float2
atomicAdd(float2 *p, float2 v)
{
    return make_float2(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y));
}
BRASS_D float4
atomicAdd(float4 *p, float4 v)
{
    return make_float4(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y),
                       atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w));
}
#endif

/* ---- lanes -------------------------------------------------------------- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700 /* else clang has them */
#    define BRASS_MATCH_ANY(bits, T, R)                                       \
        BRASS_D unsigned int __match##bits##_any_sync(unsigned int mask, T v) \
        {                                                                     \
            unsigned int r;                                                   \
                                                                              \
            asm volatile("match.any.sync.b" #bits " %0, %1, %2;"              \
                         : "=r"(r)                                            \
                         : R(v), "r"(mask)                                    \
                         : "memory");                                         \
            return r;                                                         \
        }
#    define BRASS_MATCH_ALL(bits, T, R)                                       \
        BRASS_D unsigned int __match##bits##_all_sync(unsigned int mask, T v, \
                                                      int *pred)              \
        {                                                                     \
            unsigned int r;                                                   \
            int all;                                                          \
                                                                              \
            asm volatile("{.reg .pred p;\n\t"                                 \
                         "match.all.sync.b" #bits " %0|p, %2, %3;\n\t"        \
                         "selp.s32 %1, 1, 0, p;}"                             \
                         : "=r"(r), "=r"(all)                                 \
                         : R(v), "r"(mask)                                    \
                         : "memory");                                         \
            *pred = all;                                                      \
            return r;                                                         \
        }
BRASS_MATCH_ANY(32, unsigned int, "r")
BRASS_MATCH_ANY(64, unsigned long long, "l")
BRASS_MATCH_ALL(32, unsigned int, "r")
BRASS_MATCH_ALL(64, unsigned long long, "l")
#    undef BRASS_MATCH_ANY
#    undef BRASS_MATCH_ALL
#endif

template <class T>
BRASS_D unsigned int
__match_any_sync(unsigned int mask, T v)
{
    if constexpr (sizeof(T) == 8) {
        unsigned long long b;

        memcpy(&b, &v, 8);
        return __match64_any_sync(mask, b);
    } else if constexpr (sizeof(T) < 4) { /* as an int */
        static_assert(__is_integral(T), "32 or 64 bits");
        return __match32_any_sync(mask, (unsigned int)(int)v);
    } else {
        unsigned int b;

        static_assert(sizeof(T) == 4, "32 or 64 bits");
        memcpy(&b, &v, 4);
        return __match32_any_sync(mask, b);
    }
}
template <class T>
BRASS_D unsigned int
__match_all_sync(unsigned int mask, T v, int *pred)
{
    if constexpr (sizeof(T) == 8) {
        unsigned long long b;

        memcpy(&b, &v, 8);
        return __match64_all_sync(mask, b, pred);
    } else if constexpr (sizeof(T) < 4) { /* as an int */
        static_assert(__is_integral(T), "32 or 64 bits");
        return __match32_all_sync(mask, (unsigned int)(int)v, pred);
    } else {
        unsigned int b;

        static_assert(sizeof(T) == 4, "32 or 64 bits");
        memcpy(&b, &v, 4);
        return __match32_all_sync(mask, b, pred);
    }
}
/* Clang up to 19 hands its builtins mask and value the wrong way round. */
#define BRASS_REDUX(name, op, T)                      \
    BRASS_D T brass_reduce_##name(unsigned mask, T v) \
    {                                                 \
        T r;                                          \
                                                      \
        asm volatile("redux.sync." op " %0, %1, %2;"  \
                     : "=r"(r)                        \
                     : "r"(v), "r"(mask)              \
                     : "memory");                     \
        return r;                                     \
    }
BRASS_REDUX(add, "add.s32", int)
BRASS_REDUX(add, "add.u32", unsigned)
BRASS_REDUX(min, "min.s32", int)
BRASS_REDUX(min, "min.u32", unsigned)
BRASS_REDUX(max, "max.s32", int)
BRASS_REDUX(max, "max.u32", unsigned)
BRASS_REDUX(and, "and.b32", unsigned)
BRASS_REDUX(or, "or.b32", unsigned)
BRASS_REDUX(xor, "xor.b32", unsigned)
#undef BRASS_REDUX
#define __reduce_add_sync(m, v) brass_reduce_add((m), (v))
#define __reduce_min_sync(m, v) brass_reduce_min((m), (v))
#define __reduce_max_sync(m, v) brass_reduce_max((m), (v))
#define __reduce_and_sync(m, v) brass_reduce_and((m), (v))
#define __reduce_or_sync(m, v)  brass_reduce_or((m), (v))
#define __reduce_xor_sync(m, v) brass_reduce_xor((m), (v))

/* ---- dot products of bytes ---------------------------------------------- */

#define BRASS_DOT(name, op, R, A, B)                                   \
    BRASS_D R name(A a, B b, R c)                                      \
    {                                                                  \
        R d;                                                           \
                                                                       \
        asm(op " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
        return d;                                                      \
    }
BRASS_DOT(__dp4a, "dp4a.s32.s32", int, int, int)
BRASS_DOT(__dp4a, "dp4a.u32.u32", unsigned int, unsigned int, unsigned int)
BRASS_DOT(__dp2a_lo, "dp2a.lo.s32.s32", int, int, int)
BRASS_DOT(__dp2a_lo, "dp2a.lo.u32.u32", unsigned int, unsigned int,
          unsigned int)
BRASS_DOT(__dp2a_hi, "dp2a.hi.s32.s32", int, int, int)
BRASS_DOT(__dp2a_hi, "dp2a.hi.u32.u32", unsigned int, unsigned int,
          unsigned int)
#undef BRASS_DOT
BRASS_D int
__dp4a(char4 a, char4 b, int c)
{
    int x, y;

    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return __dp4a(x, y, c);
}

/* ---- loads and stores with hints: the hint is all that differs ---------- */

#define BRASS_LOAD(name)                          \
    template <class T> BRASS_D T name(const T *p) \
    {                                             \
        return *p;                                \
    }
BRASS_LOAD(__ldca)
BRASS_LOAD(__ldcg)
BRASS_LOAD(__ldcs)
BRASS_LOAD(__ldlu)
BRASS_LOAD(__ldcv)
#undef BRASS_LOAD
#define BRASS_STORE(name)                           \
    template <class T> BRASS_D void name(T *p, T v) \
    {                                               \
        *p = v;                                     \
    }
BRASS_STORE(__stwb)
BRASS_STORE(__stcg)
BRASS_STORE(__stcs)
BRASS_STORE(__stwt)
#undef BRASS_STORE

BRASS_D void
__nanosleep(unsigned int ns)
{
    asm volatile("nanosleep.u32 %0;" ::"r"(ns));
}
#include "brass_minmax.h"
/* CUDA has these for both sides. */
static inline __host__ float
rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline __host__ double
rsqrt(double x)
{
    return 1 / sqrt(x);
}
static inline __host__ float
rsqrt(float x)
{
    return rsqrtf(x);
}
#endif
