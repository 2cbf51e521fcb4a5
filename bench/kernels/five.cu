/* five.cu - the kernels of `make bench-kernels`; loops.c has the same in C.
 * SPDX-License-Identifier: Apache-2.0 */
extern "C" __global__ void
vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void
saxpy(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = a * x[i] + y[i];
}

#define TILE 16
extern "C" __global__ void
sgemm(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;

    for (int t = 0; t < n; t += TILE) {
        as[ty][tx] = a[row * n + t + tx];
        bs[ty][tx] = b[(t + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

#define THREADS 256
static __device__ float
fold(float *s, float v, bool max)
{
    int t = threadIdx.x;

    __syncthreads();
    s[t] = v;
    for (int h = THREADS / 2; h; h /= 2) {
        __syncthreads();
        if (t < h)
            s[t] = max ? fmaxf(s[t], s[t + h]) : s[t] + s[t + h];
    }
    __syncthreads();
    return s[0];
}

/* A block a row. */
extern "C" __global__ void
softmax(const float *x, float *y, int cols)
{
    __shared__ float s[THREADS];
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols, m = -1e30f, sum = 0;

    for (int i = threadIdx.x; i < cols; i += THREADS)
        m = fmaxf(m, in[i]);
    m = fold(s, m, true);
    for (int i = threadIdx.x; i < cols; i += THREADS) {
        float e = __expf(in[i] - m);

        out[i] = e;
        sum += e;
    }
    sum = 1 / fold(s, sum, false);
    for (int i = threadIdx.x; i < cols; i += THREADS)
        out[i] *= sum;
}

/* Accelerations of n bodies x y z mass, a tile of them at a time. */
extern "C" __global__ void
nbody(const float4 *p, float4 *acc, int n)
{
    __shared__ float4 s[THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = p[i];
    float ax = 0, ay = 0, az = 0;

    for (int t = 0; t < n; t += THREADS) {
        s[threadIdx.x] = p[t + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < THREADS; k++) {
            float dx = s[k].x - me.x, dy = s[k].y - me.y, dz = s[k].z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f;
            float r = rsqrtf(d), f = s[k].w * r * r * r;

            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0);
}
