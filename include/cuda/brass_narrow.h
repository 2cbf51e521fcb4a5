/* brass_narrow.h - rounding once on the way to half, bfloat16 and fp8.
 *
 * A float rounded to odd (towards zero, and the last bit says whether anything
 * was lost) may be rounded again to any type of two bits less, as if the number
 * itself had been: Boldo and Melquiond, "Emulation of FMA", 2008.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_NARROW_H
#define BRASS_NARROW_H
#include "cuda_runtime.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define BR_HD static __host__ __device__ __forceinline__

/* A sum as it is, whatever fast-math flags say. */
BR_HD double
brass_add(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dadd_rn(a, b);
#else
    volatile double s = a + b;

    return s;
#endif
}

/* d + e, |e| at most half a ULP of d. */
BR_HD float
brass_odd(double d, double e = 0)
{
    float f = (float)d;
    double over = brass_add((double)f, -d);
    unsigned u;

    memcpy(&u, &f, 4);
    if (over == 0)
        over = -e; /* f lies beyond, or e's sign tells */
    if ((u & 0x7fffffff) > 0x7f800000 || over == 0 || d - d != 0)
        return f;
    u -= (over > 0) == (f > 0) && f != 0; /* towards zero */
    u |= 1;
    memcpy(&f, &u, 4);
    return f;
}
BR_HD float
brass_odd_int(long long i, bool is_unsigned)
{
    unsigned long long u = (unsigned long long)i, m;
    bool neg = !is_unsigned && i < 0;
    double d;

    m = neg ? 0 - u : u;
    if (m >> 40) /* 52 bits are enough, the last one odd */
        m = (m & ~0xfffull) | ((m & 0xfff) ? 0x1000 : 0);
    d = (double)m;
    return brass_odd(neg ? -d : d);
}
/* As the device converts: to the end of the range, and a NaN to 0, or the top bit of
 * 64. */
template <class T>
BR_HD T
brass_to_int(float f, T lo, T hi)
{
    if (f != f)
        return sizeof(T) == 8 ? (T)(1ull << 63) : 0;
    return f <= (float)lo ? lo : f >= (float)hi ? hi : (T)f;
}
#undef BR_HD
#endif
