/* random.cu - random numbers in kernels and from generators: pi, an option, a
 * random walk, and that both interfaces are the same sequences.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <curand.h>
#include <curand_kernel.h>

#define RAND(call) EXPECT((call) == CURAND_STATUS_SUCCESS)

/* Each thread its own subsequence, as simulations set up their states. */
template <class S>
__global__ void
setup(S *states, unsigned long long seed)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;

    curand_init(seed, id, 0, &states[id]);
}

template <class S>
__global__ void
estimate_pi(S *states, unsigned *hits, int tries)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    S local = states[id];
    unsigned n = 0;

    for (int k = 0; k < tries; k++) {
        float x = curand_uniform(&local), y = curand_uniform(&local);

        n += x * x + y * y <= 1.0f;
    }
    states[id] = local;
    atomicAdd(hits, n);
}

template <class S>
static void
pi(double tol)
{
    const int threads = 512, tries = 256;
    Dev<S> states(threads);
    Dev<unsigned> hits(std::vector<unsigned>(1, 0));

    setup<<<threads / 128, 128>>>(states.p, 1234ULL);
    for (int k = 0; k < 2; k++)
        estimate_pi<<<threads / 128, 128>>>(states.p, hits.p, tries);
    CHECK(cudaDeviceSynchronize());
    EXPECT(near(4.0 * hits.get()[0] / (2.0 * threads * tries), 3.14159265,
                tol));
}

/* A European call by normal steps, beside Black and Scholes. */
__global__ void
option(float *sum, int paths)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t s;
    const float spot = 100, strike = 105, rate = 0.03f, vol = 0.2f, t = 1;
    float mine = 0;

    curand_init(42, id, 0, &s);
    for (int k = 0; k < paths; k += 4) {
        float4 z = curand_normal4(&s);
        float each[4] = {z.x, z.y, z.z, z.w};

        for (int j = 0; j < 4; j++) {
            float at = spot * expf((rate - 0.5f * vol * vol) * t +
                                   vol * sqrtf(t) * each[j]);

            mine += fmaxf(at - strike, 0.f);
        }
    }
    atomicAdd(sum, mine * expf(-rate * t) / paths);
}

/* Everything that a state can be asked for, for averages on the host. */
template <class S>
__global__ void
moments(S *states, double *out, int n)
{
    int id = threadIdx.x;
    S s = states[id];
    double m[6] = {0, 0, 0, 0, 0, 0};

    for (int k = 0; k < n; k++) {
        double a = curand_normal(&s), b = curand_normal_double(&s);

        m[0] += a;
        m[1] += a * a;
        m[2] += b * b * b * b;
        m[3] += curand_log_normal(&s, 0.f, 0.5f);
        m[4] += curand_poisson(&s, 3.5);
        m[5] += curand_uniform_double(&s);
    }
    for (int k = 0; k < 6; k++)
        atomicAdd(&out[k], m[k] / n / blockDim.x);
}

template <class S>
static void
check_moments()
{
    Dev<S> states(128);
    Dev<double> out(std::vector<double>(6, 0.0));
    std::vector<double> m;

    setup<<<1, 128>>>(states.p, 7ULL);
    moments<<<1, 128>>>(states.p, out.p, 200);
    m = out.get();
    EXPECT(fabs(m[0]) < 0.03);
    EXPECT(near(m[1], 1, 0.03));
    EXPECT(near(m[2], 3, 0.1));
    EXPECT(near(m[3], 1.1331, 0.02)); /* exp(1/8) */
    EXPECT(near(m[4], 3.5, 0.02));
    EXPECT(near(m[5], 0.5, 0.01));
}

/* skipahead is the same as drawing; subsequences are not each other. */
template <class S>
__global__ void
skips(int *bad)
{
    S a, b, c;

    curand_init(5, 3, 10, &a);
    curand_init(5, 3, 0, &b);
    curand_init(5, 4, 0, &c);
    for (int k = 0; k < 10; k++)
        curand(&b);
    *bad += curand(&a) != curand(&b);
    skipahead(1000ULL, &a);
    for (int k = 0; k < 1000; k++)
        curand(&b);
    *bad += curand(&a) != curand(&b);
    *bad += curand(&a) == curand(&c);
}

__global__ void
sobol(curandDirectionVectors32_t *v, unsigned *out, int n)
{
    curandStateSobol32_t s;

    curand_init(v[threadIdx.x], 5u, &s);
    for (int k = 0; k < n; k++)
        out[threadIdx.x * n + k] = curand(&s);
}

__global__ void
philox_words(unsigned *out)
{
    for (int k = 0; k < 4; k++) { /* a subsequence each, four numbers */
        curandStatePhilox4_32_10_t s;
        uint4 v;

        curand_init(77, k, 0, &s);
        v = curand4(&s);
        out[4 * k] = v.x, out[4 * k + 1] = v.y;
        out[4 * k + 2] = v.z, out[4 * k + 3] = v.w;
    }
}

static void
against_generators()
{
    curandGenerator_t g;
    curandDirectionVectors32_t *v;
    Dev<unsigned> a(16), b(16), c(3 * 100), d(3 * 100);
    Dev<unsigned> rows(3 * 32);
    Dev<int> bad(std::vector<int>(1, 0));

    RAND(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    RAND(curandSetPseudoRandomGeneratorSeed(g, 77ULL));
    RAND(curandGenerate(g, a, 16));
    RAND(curandDestroyGenerator(g));
    philox_words<<<1, 1>>>(b.p);
    EXPECT(a.get() == b.get());

    RAND(curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32));
    RAND(curandSetQuasiRandomGeneratorDimensions(g, 3));
    RAND(curandSetGeneratorOffset(g, 5));
    RAND(curandGenerate(g, c, 300));
    RAND(curandDestroyGenerator(g));
    RAND(curandGetDirectionVectors32(&v, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
    CHECK(cudaMemcpy(rows, v, 3 * 32 * 4, cudaMemcpyHostToDevice));
    sobol<<<1, 3>>>((curandDirectionVectors32_t *)rows.p, d.p, 100);
    EXPECT(c.get() == d.get());

    skips<curandState><<<1, 1>>>(bad.p);
    skips<curandStateMRG32k3a_t><<<1, 1>>>(bad.p);
    skips<curandStatePhilox4_32_10_t><<<1, 1>>>(bad.p);
    EXPECT(bad.get()[0] == 0);
}

int
main()
{
    Dev<float> sum(std::vector<float>(1, 0.f));

    pi<curandState>(0.004);
    pi<curandStateMRG32k3a_t>(0.004);
    pi<curandStatePhilox4_32_10_t>(0.004);
    option<<<2, 128>>>(sum.p, 512);
    EXPECT(near(sum.get()[0] / 256, 7.1281, 0.02));
    check_moments<curandState>();
    check_moments<curandStatePhilox4_32_10_t>();
    against_generators();
    return done();
}
