/* games.cu - chance: options priced by many walks, pi, and a shuffled deck, with
 * generators of curand_kernel.h and by hand; results within what theory allows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <curand_kernel.h>

enum { WALKS = 2048 };

__global__ void
prices(float s, float k, float rate, float vol, float years, float *sum)
{
    __shared__ float part[128];
    curandStatePhilox4_32_10_t st;
    float mine = 0;

    curand_init(7, blockIdx.x * blockDim.x + threadIdx.x, 0, &st);
    for (int w = 0; w < WALKS / 512; w++) {
        float4 z = curand_normal4(&st);
        float z4[] = {z.x, z.y, z.z, z.w};

        for (float one : z4)
            for (float side : {one, -one}) /* each with its mirror image */
                mine += fmaxf(s * expf((rate - vol * vol / 2) * years +
                                       vol * sqrtf(years) * side) -
                                  k,
                              0.0f);
    }
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int by = 64; by; by /= 2) {
        if (threadIdx.x < by)
            part[threadIdx.x] += part[threadIdx.x + by];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(sum, part[0] * expf(-rate * years) / (WALKS * 2));
}
__global__ void
darts(unsigned long long *in, int tries)
{
    unsigned long long x = 0x9e3779b97f4a7c15ull * (threadIdx.x + 1), mine = 0;

    for (int k = 0; k < tries; k++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        float a = (unsigned)(x >> 40) / 16777216.0f;
        float b = (unsigned)(x & 0xffffff) / 16777216.0f;

        mine += a * a + b * b < 1;
    }
    atomicAdd(in, mine);
}
__global__ void
deal(int *deck)
{
    curandState st;
    int *mine = deck + threadIdx.x * 52;

    curand_init(99, threadIdx.x, 0, &st);
    for (int k = 0; k < 52; k++)
        mine[k] = k;
    for (int k = 51; k > 0; k--) {
        int j = curand(&st) % (k + 1), t = mine[k];

        mine[k] = mine[j];
        mine[j] = t;
    }
}

int
main()
{
    Dev<float> sum(std::vector<float>(1, 0.0f));
    Dev<unsigned long long> in(std::vector<unsigned long long>(1, 0));
    Dev<int> deck(32 * 52);
    const double s = 100, k = 105, r = 0.03, v = 0.25, t = 0.5;
    double d1 = (log(s / k) + (r + v * v / 2) * t) / (v * sqrt(t));
    double d2 = d1 - v * sqrt(t);
    double want =
        s * erfc(-d1 / sqrt(2)) / 2 - k * exp(-r * t) * erfc(-d2 / sqrt(2)) / 2;
    int places = 0;

    prices<<<1, 128>>>(s, k, r, v, t, sum);
    EXPECT(fabs(sum.get()[0] - want) < 1.2); /* three deviations */
    darts<<<1, 64>>>(in, 500);
    EXPECT(fabs(in.get()[0] * 4.0 / (64 * 500) - M_PI) < 0.03);
    deal<<<1, 32>>>(deck);
    std::vector<int> d = deck.get();
    for (int h = 0; h < 32; h++) {
        unsigned long long seen = 0;

        for (int c = 0; c < 52; c++)
            seen |= 1ull << d[h * 52 + c];
        EXPECT(seen == (1ull << 52) - 1);
        places += d[h * 52] == 0;
    }
    EXPECT(places < 8);
    return done();
}
