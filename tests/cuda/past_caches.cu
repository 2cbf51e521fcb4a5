/* past_caches.cu - arrays larger than the caches, which what only stores to them
 * goes past: in lines, in planes, floats and doubles, aligned or not, and read by
 * the next kernel at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

__global__ void line(const float *in, float *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < n)
        out[i] = in[i] * 2 + 1;
}

__global__ void doubles(const float *in, double *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < n)
        out[i] = in[i] + 0.5;
}

/* Behind the line's end, and before it: no whole lines of a cache. */
__global__ void beside(const float *in, float *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < n)
        out[i + 3] = in[n - 1 - i];
}

__global__ void turned(const float *in, float *out, int width, int height)
{
    __shared__ float tile[16][17];
    int x = (int)(blockIdx.x * 16 + threadIdx.x);
    int y = (int)(blockIdx.y * 16 + threadIdx.y);

    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = (int)(blockIdx.y * 16 + threadIdx.x);
    y = (int)(blockIdx.x * 16 + threadIdx.y);
    out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

/* Written twice, and read by the block between. */
__global__ void again(float *out, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const float *seen = out;
    float was;

    if (i >= n)
        return;
    out[i] = (float)i;
    __syncthreads();
    was = seen[i ^ 1];
    __syncthreads();
    out[i] = was + 1;
}

template <class T, class F> static int wrong(const T *out, int n, F want)
{
    int bad = 0;

    for (int i = 0; i < n; i++)
        bad += out[i] != want(i);
    return bad;
}

int main()
{
    const char *on = getenv("BRASS_CUDA_ON");
    long cache = 0;
    int width = 4096, height = 1040, n;
    float *in, *out;
    double *wide;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");

    if (on)
        return 0; /* it takes long there, and has no caches */
    if (f && fscanf(f, "%ld", &cache) == 1)
        cache *= 1024;
    if (f)
        fclose(f);
    while ((long)width * height * 4 < cache / 2 + (1 << 20) && height < 16384)
        height += 1040;
    n = width * height;
    CHECK(cudaMallocManaged(&in, sizeof *in * n));
    CHECK(cudaMallocManaged(&out, sizeof *out * (n + 3)));
    CHECK(cudaMallocManaged(&wide, sizeof *wide * n));
    for (int i = 0; i < n; i++)
        in[i] = (float)(i % 1000003);

    line<<<(n + 255) / 256, 256>>>(in, out, n - 5);
    doubles<<<(n + 127) / 128, 128>>>(out, wide, n - 5);
    CHECK(cudaDeviceSynchronize());
    EXPECT(!wrong(out, n - 5, [=](int i) { return in[i] * 2 + 1; }));
    EXPECT(!wrong(wide, n - 5, [=](int i) { return out[i] + 0.5; }));
    beside<<<n / 256, 256>>>(in, out, n);
    CHECK(cudaDeviceSynchronize());
    EXPECT(!wrong(out + 3, n, [=](int i) { return in[n - 1 - i]; }));
    turned<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(in, out, width,
                                                           height);
    line<<<n / 256, 256>>>(out, (float *)wide, n);
    CHECK(cudaDeviceSynchronize());
    auto at = [=](int i) { return in[i % height * width + i / height]; };
    EXPECT(!wrong(out, n, at));
    EXPECT(!wrong((float *)wide, n, [=](int i) { return at(i) * 2 + 1; }));
    again<<<n / 256, 256>>>(out, n);
    CHECK(cudaDeviceSynchronize());
    EXPECT(!wrong(out, n, [](int i) { return (float)(i ^ 1) + 1; }));
    return done();
}
