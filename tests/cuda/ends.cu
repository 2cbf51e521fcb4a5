/* ends.cu - what lies around memory: a GPU's pages go on, so one element too
 * many, or a row too early, is let through, and changes nothing of anybody's;
 * more is an error, as all of it is with BRASS_CUDA_STRICT.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Neighbours: the last thread reads one element too many. */
__global__ void sums(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] + in[i + 1];
}

__global__ void at_places(const float4 *in, const int *at, float4 *out)
{
    out[threadIdx.x] = in[at[threadIdx.x]];
}

__global__ void count(int *p, int by) { atomicAdd(p + threadIdx.x * by, 1); }

/* No block looks whether its threads are too many. */
__global__ void fill(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 7; }

/* A stencil: the first row reads one in front of it, and does not use it. */
__global__ void rows(const int *in, int *out, int width)
{
    int i = blockIdx.x * width + threadIdx.x;
    int above = *(volatile const int *)(in + i - width);

    out[i] = blockIdx.x ? above + in[i] : in[i];
}

__global__ void fill_front(int *p) { p[-1 - (int)threadIdx.x] = 9; }

/* The first memory that the program has, and some between others. */
static void front()
{
    std::vector<int> v(128 * 4, 5);
    Dev<int> first(v), second(v), third(v);

    rows<<<4, 128>>>(first, second, 128);
    CHECK(cudaDeviceSynchronize());
    EXPECT(second.get()[0] == 5 && second.get()[128] == 10);
    rows<<<4, 128>>>(third, second, 128);
    fill_front<<<1, 1024>>>(first);
    fill_front<<<1, 1024>>>(third);
    CHECK(cudaDeviceSynchronize());
    EXPECT(second.get()[0] == 5 && second.get()[511] == 10);
    EXPECT(first.get() == v && third.get() == v);
}

/* Sizes that end with a block, a warp, in between, and as GPUs round. */
static void reads()
{
    for (int n : {1, 31, 97, 256, 1000, 1024, 4096, 5000}) {
        std::vector<int> v(n);

        for (int i = 0; i < n; i++)
            v[i] = 3 * i + 1;
        Dev<int> in(v), out(n);
        sums<<<(n + 255) / 256, 256>>>(in, out, n);
        CHECK(cudaDeviceSynchronize());
        std::vector<int> got = out.get();
        for (int i = 0; i + 1 < n; i++)
            EXPECT(got[i] == v[i] + v[i + 1]);
    }
}

static void places()
{
    std::vector<float4> v(100, make_float4(1, 2, 3, 4));
    std::vector<int> where(32);

    for (int i = 0; i < 32; i++)
        where[i] = i == 9 ? 100 : i * 37 % 100;
    Dev<float4> in(v), out(32);
    Dev<int> at(where);
    at_places<<<1, 32>>>(in, at, out);
    CHECK(cudaDeviceSynchronize());
    EXPECT(out.get()[8].w == 4 && out.get()[10].x == 1);
}

static void writes()
{
    std::vector<int> zeros(1000, 0);
    Dev<int> a(zeros), b(zeros), c(zeros);

    fill<<<4, 256>>>(b);
    CHECK(cudaDeviceSynchronize());
    count<<<1, 2>>>(b, 1000);
    CHECK(cudaDeviceSynchronize());
    EXPECT(a.get() == zeros && c.get() == zeros);
    EXPECT(b.get()[0] == 8 && b.get()[999] == 7);
    /* What copies is told, as by CUDA. */
    EXPECT(cudaMemcpy(b, zeros.data(), 4004, cudaMemcpyHostToDevice) ==
           cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

static void far()
{
    Dev<int> p(1000);

    fill<<<7, 256>>>(p);
    CHECK(cudaDeviceSynchronize());
    fill<<<8, 256>>>(p); /* 4192 bytes behind */
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

static int far_in_front()
{
    Dev<int> in(2048), out(2048);

    rows<<<1, 1024>>>(in, out, 1025); /* 4100 bytes */
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return done();
}

static int strictly()
{
    setenv("BRASS_CUDA_STRICT", "1", 1);
    Dev<int> in(64), out(64);
    sums<<<1, 64>>>(in, out, 63);
    CHECK(cudaDeviceSynchronize());
    sums<<<1, 64>>>(in, out, 64);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return done();
}

static int strictly_in_front()
{
    setenv("BRASS_CUDA_STRICT", "1", 1);
    Dev<int> in(64), out(64);
    rows<<<1, 32>>>(in, out, 1);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return done();
}

/* In a process of its own. */
static void apart(int (*run)())
{
    int status = 1;
    pid_t child = fork();

    if (child == 0)
        _exit(run());
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main()
{
    const char *on = getenv("BRASS_CUDA_ON");

    if (on && strncmp(on, "gfx", 3) == 0)
        return 0; /* a simulated GPU has pages, as others do */
    apart(strictly);
    apart(strictly_in_front);
    apart(far_in_front);
    front();
    reads();
    places();
    writes();
    far();
    return done();
}
