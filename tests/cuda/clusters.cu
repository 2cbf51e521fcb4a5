/* clusters.cu - k means in managed memory: centres in constant memory, sums in
 * shared memory, and what __managed__ variables say between launches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { K = 5, DIM = 2 };

__constant__ float2 centre[K];
__managed__ int moved;
struct Sums {
    float x[K], y[K];
    int n[K];
};

__global__ void
assign(const float2 *p, int *of, int n, Sums *all)
{
    __shared__ Sums mine;

    for (int k = threadIdx.x; k < K; k += blockDim.x) {
        mine.x[k] = mine.y[k] = 0;
        mine.n[k] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x) {
        float best = INFINITY;
        int to = 0;

        for (int k = 0; k < K; k++) {
            float dx = p[i].x - centre[k].x, dy = p[i].y - centre[k].y;
            float d = dx * dx + dy * dy;

            if (d < best) {
                best = d;
                to = k;
            }
        }
        if (of[i] != to)
            atomicAdd(&moved, 1);
        of[i] = to;
        atomicAdd(&mine.x[to], p[i].x);
        atomicAdd(&mine.y[to], p[i].y);
        atomicAdd(&mine.n[to], 1);
    }
    __syncthreads();
    if (threadIdx.x < K) {
        atomicAdd(&all->x[threadIdx.x], mine.x[threadIdx.x]);
        atomicAdd(&all->y[threadIdx.x], mine.y[threadIdx.x]);
        atomicAdd(&all->n[threadIdx.x], mine.n[threadIdx.x]);
    }
}

int
main()
{
    const int n = 1500;
    float2 *p, c[K];
    int *of, rounds = 0;
    Sums *sums;

    CHECK(cudaMallocManaged(&p, n * sizeof *p));
    CHECK(cudaMallocManaged(&of, n * sizeof *of));
    CHECK(cudaMallocManaged(&sums, sizeof *sums));
    for (int i = 0; i < n; i++) {
        p[i] = make_float2((float)(i % K) * 10 + rnd(),
                           (float)(i % K % 3) + rnd());
        of[i] = -1;
    }
    for (int k = 0; k < K; k++)
        c[k] = p[k];
    do {
        moved = 0;
        *sums = Sums();
        CHECK(cudaMemcpyToSymbol(centre, c, sizeof c));
        assign<<<3, 96>>>(p, of, n, sums);
        CHECK(cudaDeviceSynchronize());
        for (int k = 0; k < K; k++)
            if (sums->n[k])
                c[k] = make_float2(sums->x[k] / sums->n[k],
                                   sums->y[k] / sums->n[k]);
    } while (moved && ++rounds < 20);
    EXPECT(rounds < 20);
    for (int i = 0; i < n; i++)
        EXPECT(of[i] == i % K);
    for (int k = 0; k < K; k++)
        EXPECT(sums->n[k] == n / K && fabs(c[k].x - (k * 10 + 0.5)) < 0.1);
    CHECK(cudaFree(p));
    CHECK(cudaFree(of));
    CHECK(cudaFree(sums));
    return done();
}
