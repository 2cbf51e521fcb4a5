/* overloads.cu - one name for several types: what min and max of each pair give,
 * on both sides, and that a function of a float stays a float.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <limits.h>
#include <type_traits>

template <class R, class A, class B>
__host__ __device__ bool pair(A a, B b, R less, R more)
{
    static_assert(std::is_same<decltype(min(a, b)), R>::value, "min");
    static_assert(std::is_same<decltype(max(a, b)), R>::value, "max");
    return min(a, b) == less && max(a, b) == more;
}
/* A bit for each pair that is right. */
static __host__ __device__ unsigned pairs(int two, float half)
{
    float nan = half * 0.0f / 0.0f;
    const bool ok[] = {
        pair(-two, 1, -2, 1),
        pair(two, 0xfffffffeu, 2u, 0xfffffffeu),
        pair(-two, 3u, 3u, 0xfffffffeu),
        pair(3u, -two, 3u, 0xfffffffeu),
        pair((long)-two, 1L << 40, -2L, 1L << 40),
        pair(1UL << 63, (unsigned long)two, 2UL, 1UL << 63),
        pair((long)-two, 3UL, 3UL, ULONG_MAX - 1),
        pair(3UL, (long)-two, 3UL, ULONG_MAX - 1),
        pair((long long)-two, 1LL << 40, -2LL, 1LL << 40),
        pair(1ULL << 63, (unsigned long long)two, 2ULL, 1ULL << 63),
        pair((long long)-two, 3ULL, 3ULL, ULLONG_MAX - 1),
        pair(3ULL, (long long)-two, 3ULL, ULLONG_MAX - 1),
        pair(half, 0.25f, 0.25f, 0.5f),
        pair(half, nan, 0.5f, 0.5f),
        pair((double)half, 1e300, 0.5, 1e300),
        pair(half, 0.1, 0.1, 0.5),
        pair(0.1, half, 0.1, 0.5),
        pair((short)-two, (short)7, -2, 7),
        pair((unsigned char)two, (unsigned char)200, 2, 200),
    };
    unsigned r = 0;

    for (unsigned i = 0; i < sizeof(ok); i++)
        r |= (unsigned)ok[i] << i;
    return r;
}

#define SAME(call, R) \
    static_assert(std::is_same<decltype(call), R>::value, #call)
#define ONE(X)                                                               \
    X(abs) X(fabs) X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh)        \
    X(cbrt) X(ceil) X(cos) X(cosh) X(erf) X(erfc) X(exp) X(exp2) X(expm1)    \
    X(floor) X(lgamma) X(log) X(log10) X(log1p) X(log2) X(logb)              \
    X(nearbyint) X(rint) X(round) X(rsqrt) X(sin) X(sinh) X(sqrt) X(tan)     \
    X(tanh) X(tgamma) X(trunc)
#define DEVICE_ONE(X)                                                       \
    X(cospi) X(erfcinv) X(erfcx) X(erfinv) X(exp10) X(normcdf) X(normcdfinv) \
    X(rcbrt) X(sinpi)
#define TWO(X)                                                              \
    X(atan2) X(copysign) X(fdim) X(fmax) X(fmin) X(fmod) X(hypot)           \
    X(nextafter) X(pow) X(remainder)
#define F1(f) SAME(f(1.0f), float); SAME(f(1.0), double);
#define F2(f)                                                     \
    SAME(f(1.0f, 1.0f), float); SAME(f(1.0, 1.0), double);        \
    SAME(f(1.0f, 1.0), double); SAME(f(1.0, 1.0f), double);

static __host__ __device__ void types()
{
    ONE(F1)
    TWO(F2)
    SAME(fma(1.0f, 1.0f, 1.0f), float);
    SAME(ldexp(1.0f, 1), float);
    SAME(scalbn(1.0f, 1), float);
    SAME(abs(1LL), long long);
    SAME(abs(1L), long);
    SAME(sin(1), double);
}
static __device__ void device_types()
{
    DEVICE_ONE(F1)
}

__global__ void run(unsigned *r, float *f, int two, float half)
{
    types();
    device_types();
    r[0] = pairs(two, half);
    f[0] = abs(-half);
    f[1] = abs(-(float)two * half * half);
    f[2] = max(max(half, f[0]), 0.75f);
}

int main()
{
    const unsigned all = (1u << 19) - 1;
    Dev<unsigned> r(1);
    Dev<float> f(3);

    types();
    EXPECT(pairs(2, 0.5f) == all);
    run<<<1, 1>>>(r, f, 2, 0.5f);
    CHECK(cudaDeviceSynchronize());
    EXPECT(r.get()[0] == all);
    EXPECT(f.get() == std::vector<float>({0.5f, 0.5f, 0.75f}));
    return done();
}
