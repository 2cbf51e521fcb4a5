/* pipelined.cu - a matrix product whose tiles are fetched one step ahead, with
 * 4 x 4 sums a thread in registers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_pipeline.h>

enum { TILE = 32, PER = 4 };

__global__ void __launch_bounds__(64)
    product(const float *a, const float *b, float *c, int n)
{
    __shared__ __align__(16) float as[2][TILE][TILE], bs[2][TILE][TILE];
    int tx = threadIdx.x % 8 * PER, ty = threadIdx.x / 8 * PER;
    int row = blockIdx.y * TILE, col = blockIdx.x * TILE;
    float sum[PER][PER] = {};
    auto fetch = [&](int stage, int k) {
        for (int i = threadIdx.x; i < TILE * TILE / 4; i += blockDim.x) {
            int y = i / (TILE / 4), x = i % (TILE / 4) * 4;

            __pipeline_memcpy_async(&as[stage][y][x], &a[(row + y) * n + k + x],
                                    16);
            __pipeline_memcpy_async(&bs[stage][y][x], &b[(k + y) * n + col + x],
                                    16);
        }
        __pipeline_commit();
    };

    fetch(0, 0);
    for (int k = 0, stage = 0; k < n; k += TILE, stage ^= 1) {
        if (k + TILE < n)
            fetch(stage ^ 1, k + TILE);
        __pipeline_wait_prior(k + TILE < n);
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < TILE; i++)
            for (int y = 0; y < PER; y++)
                for (int x = 0; x < PER; x++)
                    sum[y][x] += as[stage][ty + y][i] * bs[stage][i][tx + x];
        __syncthreads();
    }
    for (int y = 0; y < PER; y++)
        for (int x = 0; x < PER; x++)
            c[(row + ty + y) * n + col + tx + x] = sum[y][x];
}

int
main()
{
    const int n = 96;
    std::vector<float> a(n * n), b(n * n);

    for (int i = 0; i < n * n; i++) {
        a[i] = rnd() - 0.5f;
        b[i] = rnd() - 0.5f;
    }
    Dev<float> da(a), db(b), dc(n * n);

    product<<<dim3(n / TILE, n / TILE), 64>>>(da, db, dc, n);
    std::vector<float> c = dc.get();
    for (int i = 0; i < n * n; i += 37) {
        double want = 0;

        for (int k = 0; k < n; k++)
            want += (double)a[i / n * n + k] * b[k * n + i % n];
        EXPECT(near(c[i], want, 1e-5));
    }
    return done();
}
