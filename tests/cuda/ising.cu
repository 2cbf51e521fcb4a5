/* ising.cu - Monte Carlo: a magnet below its critical temperature (checkerboard
 * updates, Philox), beside Onsager's and Yang's exact magnetisation; and a random
 * walk whose steps come from a generator in the stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <curand.h>
#include <curand_kernel.h>

const int N = 64;

__global__ void
sweep(signed char *spin, float beta, int colour, unsigned step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int y = i / (N / 2), x = 2 * (i % (N / 2)) + ((y + colour) & 1);
    int up = (y + N - 1) % N * N + x, down = (y + 1) % N * N + x;
    int left = y * N + (x + N - 1) % N, right = y * N + (x + 1) % N;
    int field = spin[up] + spin[down] + spin[left] + spin[right];
    curandStatePhilox4_32_10_t s;

    curand_init(2026, i, step, &s); /* no state to keep */
    if (curand_uniform(&s) < expf(-2 * beta * spin[y * N + x] * field))
        spin[y * N + x] = -spin[y * N + x];
}
__global__ void
total(const signed char *spin, int *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    atomicAdd(sum, (int)spin[i]);
}

static void
magnet()
{
    const float beta = 0.5f;
    Dev<signed char> spin(std::vector<signed char>(N * N, 1));
    Dev<int> sum(std::vector<int>(1, 0));
    unsigned step = 0;
    int measured = 0;

    for (int k = 0; k < 120; k++) {
        for (int colour = 0; colour < 2; colour++)
            sweep<<<N * N / 2 / 128, 128>>>(spin.p, beta, colour, step++);
        if (k >= 40) {
            total<<<N * N / 128, 128>>>(spin.p, sum.p);
            measured++;
        }
    }
    double m = (double)sum.get()[0] / measured / N / N;
    double exact = pow(1 - pow(sinh(2 * beta), -4), 0.125); /* 0.9113 */

    EXPECT(fabs(m - exact) < 0.012);
}

__global__ void
walk(const float *step, float *at, int walkers, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    for (int k = 0; k < steps && i < walkers; k++)
        at[i] += step[k * walkers + i];
}
static void
diffusion()
{
    const int walkers = 2000, steps = 50;
    Dev<float> at(std::vector<float>(walkers, 0.f)), step(walkers * steps);
    curandGenerator_t g;
    cudaStream_t s;

    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    EXPECT(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_MRG32K3A) == 0);
    EXPECT(curandSetStream(g, s) == 0);
    EXPECT(curandSetPseudoRandomGeneratorSeed(g, 5) == 0);
    for (int k = 0; k < 2; k++) { /* the second time other numbers */
        EXPECT(curandGenerateNormal(g, step, walkers * steps, 0, 2) == 0);
        walk<<<(walkers + 127) / 128, 128, 0, s>>>(step.p, at.p, walkers, steps);
    }
    CHECK(cudaStreamSynchronize(s));
    EXPECT(curandDestroyGenerator(g) == 0);
    CHECK(cudaStreamDestroy(s));
    double mean = 0, var = 0;
    for (float x : at.get())
        mean += x / walkers, var += (double)x * x / walkers;
    EXPECT(fabs(mean) < 4 * sqrt(400.0 / walkers));
    EXPECT(near(var, 2 * steps * 4, 0.13));
}

int
main()
{
    magnet();
    diffusion();
    return done();
}
