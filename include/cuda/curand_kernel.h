/* curand_kernel.h - random numbers inside kernels.
 *
 * Each thread has a state: curand_init(seed, subsequence, offset, &state) puts
 * it where nobody else's is. Normal numbers come in pairs, of which a state
 * keeps the second. MTGP32, scrambled Sobol and discrete distributions are not
 * there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CURAND_KERNEL_H
#define BRASS_CURAND_KERNEL_H
#include "brass_push.h"

#include "brass_rand.h"
#include "cuda_runtime.h"
#include "curand.h"

typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t,
    curandState;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
template <class T, int N> struct brass_sobol {
    T i, x, direction[N];
};
typedef brass_sobol<unsigned int, 32> curandStateSobol32, curandStateSobol32_t;
typedef brass_sobol<unsigned long long, 64> curandStateSobol64,
    curandStateSobol64_t;

#ifdef __CUDA__ /* a host's own compiler sees the states alone */
#    define BRASS_R static __device__ __forceinline__

/* ---- states ------------------------------------------------------------- */

BRASS_R void
skipahead(unsigned long long n, curandStateXORWOW_t *s)
{
    brass_xorwow_skip(s, n);
}
BRASS_R void
skipahead_sequence(unsigned long long n, curandStateXORWOW_t *s)
{
    brass_xorwow_jump(s, n, BRASS_XORWOW_SEQUENCE);
}
BRASS_R void
skipahead(unsigned long long n, curandStateMRG32k3a_t *s)
{
    brass_mrg_skip(s, n, 0);
}
BRASS_R void
skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t *s)
{
    brass_mrg_skip(s, n, 1);
}
BRASS_R void
skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t *s)
{
    brass_mrg_skip(s, n, 2);
}
BRASS_R void
skipahead(unsigned long long n, curandStatePhilox4_32_10_t *s)
{
    brass_philox_skip(s, n);
}
BRASS_R void
skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *s)
{
    brass_philox_add(s, 0, n);
}
BRASS_R void
curand_init(unsigned long long seed, unsigned long long subsequence,
            unsigned long long offset, curandStateXORWOW_t *s)
{
    brass_xorwow_seed(s, seed);
    skipahead_sequence(subsequence, s);
    skipahead(offset, s);
}
BRASS_R void
curand_init(unsigned long long seed, unsigned long long subsequence,
            unsigned long long offset, curandStateMRG32k3a_t *s)
{
    brass_mrg_seed(s, seed);
    skipahead_subsequence(subsequence, s);
    skipahead(offset, s);
}
BRASS_R void
curand_init(unsigned long long seed, unsigned long long subsequence,
            unsigned long long offset, curandStatePhilox4_32_10_t *s)
{
    brass_philox_seed(s, seed);
    skipahead_sequence(subsequence, s);
    skipahead(offset, s);
}
/* Point i is the sum of the directions that Gray code's i has. */
template <class T, int N>
BRASS_R void
skipahead(T n, brass_sobol<T, N> *s)
{
    T gray;

    s->i += n;
    s->x = 0;
    gray = s->i ^ s->i >> 1;
    for (int k = 0; k < N; k++)
        s->x ^= gray >> k & 1 ? s->direction[k] : 0;
}
template <class T, int N>
BRASS_R void
curand_init(T *direction, T offset, brass_sobol<T, N> *s)
{
    for (int k = 0; k < N; k++)
        s->direction[k] = direction[k];
    s->i = 0;
    skipahead<T, N>(offset, s);
}
BRASS_R void
curand_init(curandDirectionVectors32_t direction, unsigned int offset,
            curandStateSobol32_t *s)
{
    curand_init<unsigned int, 32>(direction, offset, s);
}
BRASS_R void
curand_init(curandDirectionVectors64_t direction, unsigned long long offset,
            curandStateSobol64_t *s)
{
    curand_init<unsigned long long, 64>(direction, offset, s);
}
BRASS_R void
skipahead(unsigned int n, curandStateSobol32_t *s)
{
    skipahead<unsigned int, 32>(n, s);
}
BRASS_R void
skipahead(unsigned long long n, curandStateSobol64_t *s)
{
    skipahead<unsigned long long, 64>(n, s);
}

/* ---- bits --------------------------------------------------------------- */

BRASS_R unsigned int
curand(curandStateXORWOW_t *s)
{
    return brass_xorwow(s);
}
BRASS_R unsigned int
curand(curandStateMRG32k3a_t *s)
{
    return brass_mrg(s);
}
BRASS_R unsigned int
curand(curandStatePhilox4_32_10_t *s)
{
    return brass_philox(s);
}
template <class T, int N>
BRASS_R T
curand(brass_sobol<T, N> *s)
{
    T x = s->x;
    int k = __ffsll((long long)~s->i) - 1;

    s->x ^= s->direction[k < 0 || k >= N ? N - 1 : k];
    s->i++;
    return x;
}
BRASS_R uint4
curand4(curandStatePhilox4_32_10_t *s)
{
    uint4 r;

    r.x = brass_philox(s);
    r.y = brass_philox(s);
    r.z = brass_philox(s);
    r.w = brass_philox(s);
    return r;
}
template <class S>
BRASS_R unsigned int
brass_next_of(void *s)
{
    return curand((S *)s);
}

/* ---- uniform numbers, in (0, 1] ----------------------------------------- */

template <class S>
BRASS_R float
curand_uniform(S *s)
{
    return brass_uniform(curand(s));
}
BRASS_R float
curand_uniform(curandStateSobol64_t *s)
{
    return brass_uniform((unsigned int)(curand(s) >> 32));
}
template <class S>
BRASS_R double
curand_uniform_double(S *s)
{
    unsigned int x = curand(s);

    return brass_uniform_double(x, curand(s));
}
/* A point has as many bits as its sequence. */
BRASS_R double
curand_uniform_double(curandStateSobol32_t *s)
{
    return curand(s) * 0x1p-32 + 0x1p-33;
}
BRASS_R double
curand_uniform_double(curandStateSobol64_t *s)
{
    unsigned long long x = curand(s);

    return brass_uniform_double((unsigned int)x, (unsigned int)(x >> 32));
}

/* ---- normal and log-normal ---------------------------------------------- */

template <class S>
BRASS_R float2
curand_normal2(S *s)
{
    unsigned int x = curand(s), y = curand(s);
    float2 r;

    brass_normals(x, y, &r.x, &r.y);
    return r;
}
template <class S>
BRASS_R double2
curand_normal2_double(S *s)
{
    double u = curand_uniform_double(s), v = curand_uniform_double(s);
    double2 r;

    brass_normals_double(u, v, &r.x, &r.y);
    return r;
}
template <class S>
BRASS_R float
curand_normal(S *s)
{
    if (!s->spare.has_f) {
        float2 r = curand_normal2(s);

        s->spare.f = r.y;
        s->spare.has_f = 1;
        return r.x;
    }
    s->spare.has_f = 0;
    return s->spare.f;
}
template <class S>
BRASS_R double
curand_normal_double(S *s)
{
    if (!s->spare.has_d) {
        double2 r = curand_normal2_double(s);

        s->spare.d = r.y;
        s->spare.has_d = 1;
        return r.x;
    }
    s->spare.has_d = 0;
    return s->spare.d;
}
/* One point, one number. */
template <class T, int N>
BRASS_R double
curand_normal_double(brass_sobol<T, N> *s)
{
    return brass_quantile(curand_uniform_double(s));
}
template <class T, int N>
BRASS_R float
curand_normal(brass_sobol<T, N> *s)
{
    return (float)brass_quantile(curand_uniform_double(s));
}
template <class S>
BRASS_R float
curand_log_normal(S *s, float mean, float stddev)
{
    return expf(mean + stddev * curand_normal(s));
}
template <class S>
BRASS_R double
curand_log_normal_double(S *s, double mean, double stddev)
{
    return exp(mean + stddev * curand_normal_double(s));
}
template <class S>
BRASS_R float2
curand_log_normal2(S *s, float mean, float stddev)
{
    float2 r = curand_normal2(s);

    return make_float2(expf(mean + stddev * r.x), expf(mean + stddev * r.y));
}
template <class S>
BRASS_R double2
curand_log_normal2_double(S *s, double mean, double stddev)
{
    double2 r = curand_normal2_double(s);

    return make_double2(exp(mean + stddev * r.x), exp(mean + stddev * r.y));
}
template <class S>
BRASS_R unsigned int
curand_poisson(S *s, double lambda)
{
    return brass_poisson(brass_next_of<S>, s, lambda);
}

/* ---- Philox gives four at once ------------------------------------------ */

typedef curandStatePhilox4_32_10_t brass_four;
BRASS_R float4
curand_uniform4(brass_four *s)
{
    uint4 x = curand4(s);

    return make_float4(brass_uniform(x.x), brass_uniform(x.y),
                       brass_uniform(x.z), brass_uniform(x.w));
}
BRASS_R double2
curand_uniform2_double(brass_four *s)
{
    uint4 x = curand4(s);

    return make_double2(brass_uniform_double(x.x, x.y),
                        brass_uniform_double(x.z, x.w));
}
BRASS_R double4
curand_uniform4_double(brass_four *s)
{
    double2 a = curand_uniform2_double(s), b = curand_uniform2_double(s);

    return make_double4(a.x, a.y, b.x, b.y);
}
BRASS_R float4
curand_normal4(brass_four *s)
{
    float2 a = curand_normal2(s), b = curand_normal2(s);

    return make_float4(a.x, a.y, b.x, b.y);
}
BRASS_R double4
curand_normal4_double(brass_four *s)
{
    double2 a = curand_normal2_double(s), b = curand_normal2_double(s);

    return make_double4(a.x, a.y, b.x, b.y);
}
BRASS_R float4
curand_log_normal4(brass_four *s, float mean, float stddev)
{
    float2 a = curand_log_normal2(s, mean, stddev);
    float2 b = curand_log_normal2(s, mean, stddev);

    return make_float4(a.x, a.y, b.x, b.y);
}
BRASS_R uint4
curand_poisson4(brass_four *s, double lambda)
{
    uint4 r;

    r.x = curand_poisson(s, lambda);
    r.y = curand_poisson(s, lambda);
    r.z = curand_poisson(s, lambda);
    r.w = curand_poisson(s, lambda);
    return r;
}
#    undef BRASS_R
#endif

#include "brass_pop.h"
#endif
