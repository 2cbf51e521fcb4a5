/* softmax.cu - rows of any length three ways: three passes, one pass with a
 * running maximum, and a warp a row with vector loads; in float and half.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_fp16.h>

struct Run { /* the largest so far, and the sum of powers relative to it */
    float max, sum;
};
__device__ Run
join(Run a, Run b)
{
    float m = fmaxf(a.max, b.max);

    if (m == -INFINITY)
        return a;
    return {m, a.sum * expf(a.max - m) + b.sum * expf(b.max - m)};
}
__global__ void
passes(const float *in, float *out, int n)
{
    extern __shared__ float part[];
    float m = -INFINITY, sum = 0;

    in += blockIdx.x * n, out += blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        m = fmaxf(m, in[i]);
    part[threadIdx.x] = m;
    __syncthreads();
    for (int k = 0; k < blockDim.x; k++)
        m = fmaxf(m, part[k]);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += out[i] = expf(in[i] - m);
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < blockDim.x; k++)
        sum += part[k];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] /= sum;
}
__global__ void
online(const float *in, float *out, int n)
{
    __shared__ Run part[32];
    Run r = {-INFINITY, 0};
    int warps = blockDim.x / 32;

    in += blockIdx.x * n, out += blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        r = join(r, {in[i], 1});
    for (int by = 16; by; by /= 2)
        r = join(r, {__shfl_xor_sync(~0u, r.max, by),
                     __shfl_xor_sync(~0u, r.sum, by)});
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = r;
    __syncthreads();
    r = part[0];
    for (int k = 1; k < warps; k++)
        r = join(r, part[k]);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = expf(in[i] - r.max) / r.sum;
}
__global__ void
halves(const __half2 *in, __half2 *out, int n2)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    float m = -INFINITY, sum = 0;

    in += row * n2, out += row * n2;
    for (int i = threadIdx.x; i < n2; i += 32) {
        float2 f = __half22float2(in[i]);

        m = fmaxf(m, fmaxf(f.x, f.y));
    }
    for (int by = 16; by; by /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, by));
    for (int i = threadIdx.x; i < n2; i += 32) {
        float2 f = __half22float2(in[i]);

        sum += expf(f.x - m) + expf(f.y - m);
    }
    for (int by = 16; by; by /= 2)
        sum += __shfl_xor_sync(~0u, sum, by);
    for (int i = threadIdx.x; i < n2; i += 32) {
        float2 f = __half22float2(in[i]);

        out[i] = __floats2half2_rn(expf(f.x - m) / sum, expf(f.y - m) / sum);
    }
}

int
main()
{
    const int rows = 4;

    for (int n : {1, 31, 130, 500}) {
        std::vector<float> v(rows * n);

        for (float &f : v)
            f = rnd() * 20 - 10;
        Dev<float> in(v), a(rows * n), b(rows * n);
        passes<<<rows, 64, 64 * sizeof(float)>>>(in, a, n);
        online<<<rows, 96>>>(in, b, n);
        std::vector<float> x = a.get(), y = b.get();
        for (int r = 0; r < rows; r++) {
            double sum = 0;

            for (int i = 0; i < n; i++)
                sum += exp(v[r * n + i]);
            for (int i = 0; i < n; i++) {
                double want = exp(v[r * n + i]) / sum;

                EXPECT(near(x[r * n + i], want, 1e-6));
                EXPECT(near(y[r * n + i], want, 1e-6));
            }
        }
        if (n % 2)
            continue;
        std::vector<__half> h(rows * n);
        for (int i = 0; i < rows * n; i++)
            h[i] = __float2half(v[i]);
        Dev<__half> hi(h), ho(rows * n);
        halves<<<rows / 2, dim3(32, 2)>>>((const __half2 *)(__half *)hi,
                                          (__half2 *)(__half *)ho, n / 2);
        h = ho.get();
        for (int i = 0; i < rows * n; i++)
            EXPECT(fabs(__half2float(h[i]) - x[i]) < 0.02f);
    }
    return done();
}
