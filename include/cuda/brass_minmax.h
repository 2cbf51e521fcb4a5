/* brass_minmax.h - min and max of the pairs of types that CUDA has them for.
 *
 * C++ would take the one for int where the right one is missing, and cut a
 * float's fraction off without a word. So each pair is here, on both sides: an
 * unsigned beside an int of its size makes the result unsigned, a double beside
 * a float a double, and a NaN beside a number gives the number, as fmax does.
 * The device's for two ints are clang's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_MINMAX_H
#define BRASS_MINMAX_H

#define BR_PAIR(SIDE, R, A, B)            \
    static inline SIDE R min(A a, B b)    \
    {                                     \
        return (R)a < (R)b ? (R)a : (R)b; \
    }                                     \
    static inline SIDE R max(A a, B b)    \
    {                                     \
        return (R)a > (R)b ? (R)a : (R)b; \
    }
#define BR_SIZE(T)                                          \
    BR_PAIR(__host__ __device__, unsigned T, unsigned T, T) \
    BR_PAIR(__host__ __device__, unsigned T, T, unsigned T) \
    BR_PAIR(__host__ __device__, unsigned T, unsigned T, unsigned T)
#define BR_REAL(R, A, B, f)                           \
    static inline __host__ __device__ R min(A a, B b) \
    {                                                 \
        return fmin##f(a, b);                         \
    }                                                 \
    static inline __host__ __device__ R max(A a, B b) \
    {                                                 \
        return fmax##f(a, b);                         \
    }
BR_PAIR(__host__, int, int, int)
BR_PAIR(__host__ __device__, long, long, long)
BR_PAIR(__host__ __device__, long long, long long, long long)
BR_SIZE(int)
BR_SIZE(long)
BR_SIZE(long long)
BR_REAL(float, float, float, f)
BR_REAL(double, double, double, )
BR_REAL(double, float, double, )
BR_REAL(double, double, float, )
#undef BR_PAIR
#undef BR_SIZE
#undef BR_REAL
#endif
