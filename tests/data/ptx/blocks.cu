/* blocks.cu - kernels for tests: blocks.clang.ptx and blocks.nvcc.ptx are made
 * of it by
 *
 *   clang-19 -x cuda --cuda-device-only --cuda-path=/nonexistent -nocudainc \
 *       -nocudalib --cuda-gpu-arch=sm_80 --cuda-feature=+ptx78 -O2 -S blocks.cu
 *   nvcc -arch=compute_80 -O2 -ptx blocks.cu
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifdef __clang__
#include "cuda_words.h"
#endif

/* out[b] = sum of 256 numbers: shuffles in a warp, shared memory across. */
extern "C" __global__ void
reduce(const float *in, float *out)
{
    __shared__ float part[8];
    float v = in[blockIdx.x * blockDim.x + threadIdx.x];

    for (int d = 16; d; d >>= 1)
        v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        v = 0;
        for (int k = 0; k < blockDim.x / 32; k++)
            v += part[k];
        out[blockIdx.x] = v;
    }
}

/* C = A B, n x n, tiles of 16 x 16. */
extern "C" __global__ void
matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;

    for (int k = 0; k < n; k += 16) {
        ta[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        tb[y][x] = col < n && k + y < n ? b[(k + y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

/* Counts of bytes; the bins of a block in shared memory first. */
extern "C" __global__ void
histogram(const unsigned char *in, unsigned n, unsigned *bins)
{
    extern __shared__ unsigned local[];

    for (unsigned k = threadIdx.x; k < 256; k += blockDim.x)
        local[k] = 0;
    __syncthreads();
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < n;
         k += gridDim.x * blockDim.x)
        atomicAdd(&local[in[k]], 1);
    __syncthreads();
    for (unsigned k = threadIdx.x; k < 256; k += blockDim.x)
        if (local[k])
            atomicAdd(&bins[k], local[k]);
}

struct pair {
    int low, high;
    long long sum;
};

/* A structure by value, a call that is not inlined, a switch. */
__device__ __noinline__ int
twist(int op, struct pair p)
{
    switch (op) {
    case 0: return p.low;
    case 1: return p.high * 3;
    case 2: return p.low ^ p.high;
    case 3: return (int)p.sum;
    case 4: return p.low / (p.high | 1);
    case 5: return -p.low;
    default: return op;
    }
}

extern "C" __global__ void
structs(struct pair p, int *out)
{
    int t = threadIdx.x;

    p.low += t;
    p.sum -= t;
    out[t] = twist(t % 8, p);
}
