/* more.cu - kernels with barriers and warps for `make bench-pocl`, beside those of
 * five.cu; all.cl has the same in OpenCL C.
 * SPDX-License-Identifier: Apache-2.0 */
#define THREADS 256
#define TILE 16

extern "C" __global__ void
transpose(const float *in, float *out, int n)
{
    __shared__ float s[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

    s[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = s[threadIdx.x][threadIdx.y];
}

/* A sum for each block. */
extern "C" __global__ void
reduce(const float *in, float *out)
{
    __shared__ float s[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS * 2 + t;

    s[t] = in[i] + in[i + THREADS];
    for (int h = THREADS / 2; h; h /= 2) {
        __syncthreads();
        if (t < h)
            s[t] += s[t + h];
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}

/* Sums so far within each block: Hillis and Steele. */
extern "C" __global__ void
scan(const float *in, float *out)
{
    __shared__ float s[2][THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t, at = 0;

    s[0][t] = in[i];
    __syncthreads();
    for (int d = 1; d < THREADS; d *= 2) {
        s[!at][t] = t >= d ? s[at][t] + s[at][t - d] : s[at][t];
        at = !at;
        __syncthreads();
    }
    out[i] = s[at][t];
}

/* The same by a tree, up and down: Blelloch; sums before each. */
extern "C" __global__ void
blelloch(const float *in, float *out)
{
    __shared__ float s[2 * THREADS];
    int t = threadIdx.x, base = blockIdx.x * THREADS * 2, by = 1;

    s[2 * t] = in[base + 2 * t];
    s[2 * t + 1] = in[base + 2 * t + 1];
    for (int d = THREADS; d; d /= 2) {
        __syncthreads();
        if (t < d)
            s[by * (2 * t + 2) - 1] += s[by * (2 * t + 1) - 1];
        by *= 2;
    }
    if (t == 0)
        s[2 * THREADS - 1] = 0;
    for (int d = 1; d < 2 * THREADS; d *= 2) {
        by /= 2;
        __syncthreads();
        if (t < d) {
            float x = s[by * (2 * t + 1) - 1];

            s[by * (2 * t + 1) - 1] = s[by * (2 * t + 2) - 1];
            s[by * (2 * t + 2) - 1] += x;
        }
    }
    __syncthreads();
    out[base + 2 * t] = s[2 * t];
    out[base + 2 * t + 1] = s[2 * t + 1];
}

/* How often each of 256 values comes, for each block, of 16 a thread. */
extern "C" __global__ void
histogram(const float *in, int *out)
{
    __shared__ int s[256];
    int t = threadIdx.x, base = blockIdx.x * THREADS * 16;

    s[t] = 0;
    __syncthreads();
    for (int k = 0; k < 16; k++)
        atomicAdd(&s[(int)(in[base + k * THREADS + t] * 255) & 255], 1);
    __syncthreads();
    out[blockIdx.x * 256 + t] = s[t];
}

/* 512 numbers of each block in order. */
extern "C" __global__ void
bitonic(const float *in, float *out)
{
    __shared__ float s[2 * THREADS];
    int t = threadIdx.x, base = blockIdx.x * THREADS * 2;

    s[t] = in[base + t];
    s[t + THREADS] = in[base + t + THREADS];
    for (int size = 2; size <= 2 * THREADS; size *= 2)
        for (int d = size / 2; d; d /= 2) {
            int a = 2 * t - (t & (d - 1)), b = a + d;
            bool up = (a & size) == 0;
            float x, y;

            __syncthreads();
            x = s[a];
            y = s[b];
            if ((x > y) == up) {
                s[a] = y;
                s[b] = x;
            }
        }
    __syncthreads();
    out[base + t] = s[t];
    out[base + t + THREADS] = s[t + THREADS];
}

/* Sums of nine neighbours, by a tile with its edges. */
extern "C" __global__ void
stencil(const float *in, float *out, int n)
{
    __shared__ float s[THREADS + 8];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float sum = 0;

    s[t + 4] = in[i];
    if (t < 4) {
        s[t] = i < 4 ? 0 : in[i - 4];
        s[t + THREADS + 4] = i + THREADS < n ? in[i + THREADS] : 0;
    }
    __syncthreads();
    for (int k = 0; k < 9; k++)
        sum += s[t + k];
    out[i] = sum;
}

/* ---- warps; in all.cl by shared memory, as pocl has no shuffles ----------- */

static __device__ float
warp_sum(float v)
{
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(0xffffffff, v, d);
    return v;
}

/* A sum for each block, by warps. */
extern "C" __global__ void
warpsum(const float *in, float *out)
{
    __shared__ float s[THREADS / 32];
    int t = threadIdx.x, i = blockIdx.x * THREADS * 2 + t;
    float v = warp_sum(in[i] + in[i + THREADS]);

    if (t % 32 == 0)
        s[t / 32] = v;
    __syncthreads();
    if (t < 32) {
        v = warp_sum(t < THREADS / 32 ? s[t] : 0);
        if (t == 0)
            out[blockIdx.x] = v;
    }
}

/* Sums so far within 32. */
extern "C" __global__ void
warpscan(const float *in, float *out)
{
    int i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % 32;
    float v = in[i];

    for (int d = 1; d < 32; d *= 2) {
        float x = __shfl_up_sync(0xffffffff, v, d);

        if (lane >= d)
            v += x;
    }
    out[i] = v;
}

/* Each row of 32 less its mean, over its deviation: a warp a row. */
extern "C" __global__ void
warpnorm(const float *in, float *out)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    float v = in[i], d = v - warp_sum(v) / 32;

    out[i] = d * rsqrtf(warp_sum(d * d) / 32 + 1e-5f);
}
