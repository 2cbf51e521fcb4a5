/* solvers.cu - linear systems: elimination with many small launches, Cholesky in
 * one block, and conjugate gradients in one cooperative launch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

enum { N = 24 };

__global__ void
eliminate(double *a, int k) /* N rows of N + 1 */
{
    int r = k + 1 + blockIdx.x, c = k + threadIdx.x;
    double f = a[r * (N + 1) + k] / a[k * (N + 1) + k];

    __syncthreads();
    if (c <= N)
        a[r * (N + 1) + c] -= f * a[k * (N + 1) + c];
}
__global__ void
cholesky(double *a)
{
    for (int k = 0; k < N; k++) {
        if (threadIdx.x == 0)
            a[k * N + k] = sqrt(a[k * N + k]);
        __syncthreads();
        for (int r = k + 1 + threadIdx.x; r < N; r += blockDim.x)
            a[r * N + k] /= a[k * N + k];
        __syncthreads();
        for (int r = k + 1 + threadIdx.x; r < N; r += blockDim.x)
            for (int c = k + 1; c <= r; c++)
                a[r * N + c] -= a[r * N + k] * a[c * N + k];
        __syncthreads();
    }
}

/* sums[0]: residual, [1]: p A p, [2]: the next residual. */
__global__ void
gradients(const double *a, double *x, double *r, double *p, double *sums,
          int rounds)
{
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank();

    if (i < N)
        atomicAdd(&sums[0], r[i] * r[i]);
    grid.sync();
    for (int round = 0; round < rounds && sums[0] > 1e-24; round++) {
        double ap = 0, alpha;

        for (int k = 0; k < N && i < N; k++)
            ap += a[i * N + k] * p[k];
        if (i < N)
            atomicAdd(&sums[1], ap * p[i]);
        grid.sync();
        alpha = sums[0] / sums[1];
        if (i < N) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap;
            atomicAdd(&sums[2], r[i] * r[i]);
        }
        grid.sync();
        if (i < N)
            p[i] = r[i] + sums[2] / sums[0] * p[i];
        grid.sync();
        if (i == 0) {
            sums[0] = sums[2];
            sums[1] = sums[2] = 0;
        }
        grid.sync();
    }
}

int
main()
{
    std::vector<double> a(N * N), wide(N * (N + 1)), b(N, 0.0), want(N);

    for (int i = 0; i < N; i++) {
        want[i] = rnd();
        for (int j = 0; j <= i; j++)
            a[i * N + j] = a[j * N + i] = i == j ? N : rnd() - 0.5;
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            b[i] += a[i * N + j] * want[j];
            wide[i * (N + 1) + j] = a[i * N + j];
        }
        wide[i * (N + 1) + N] = b[i];
    }

    Dev<double> dw(wide), da(a), keep(a);
    for (int k = 0; k < N - 1; k++)
        eliminate<<<N - 1 - k, 32>>>(dw, k);
    std::vector<double> w = dw.get(), x(N);
    for (int i = N - 1; i >= 0; i--) {
        x[i] = w[i * (N + 1) + N];
        for (int j = i + 1; j < N; j++)
            x[i] -= w[i * (N + 1) + j] * x[j];
        x[i] /= w[i * (N + 1) + i];
        EXPECT(near(x[i], want[i], 1e-10));
    }

    cholesky<<<1, 32>>>(da);
    std::vector<double> l = da.get();
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;

            for (int k = 0; k <= j; k++)
                sum += l[i * N + k] * l[j * N + k];
            EXPECT(near(sum, a[i * N + j], 1e-10));
        }

    Dev<double> dx(std::vector<double>(N, 0.0)), dr(b), dp(b);
    Dev<double> sums(std::vector<double>(3, 0.0));
    const double *pa = keep;
    double *px = dx, *pr = dr, *pp = dp, *ps = sums;
    int rounds = 60;
    void *args[] = {&pa, &px, &pr, &pp, &ps, &rounds};
    CHECK(cudaLaunchCooperativeKernel(gradients, 3, 16, args));
    x = dx.get();
    for (int i = 0; i < N; i++)
        EXPECT(near(x[i], want[i], 1e-9));
    return done();
}
