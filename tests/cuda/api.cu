/* api.cu - the runtime API: properties, copies of all shapes, symbols,
 * attributes, occupancy, errors that stay.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

__constant__ int c_table[8] = {0, 1, 2, 3};
__device__ double d_value;
__global__ void __launch_bounds__(256) bounded(int *p) { p[threadIdx.x] = 1; }
__global__ void sum2d(const char *p, size_t pitch, int w, int h, int *out)
{
    int s = 0;

    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            s += ((const int *)(p + y * pitch))[x];
    *out = s;
}
__global__ void dynamic(int *out, int n)
{
    extern __shared__ int sh[];

    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sh[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = sh[n - 1];
}
__global__ void axpy(float *y, const float *x, float a)
{
    y[threadIdx.x] += a * x[threadIdx.x];
}
__global__ void poke(int *p) { *p = 1; }
__global__ void odd(char *p) { *(int *)(p + 1) = 1; }
__global__ void boom() { __trap(); }

static void properties()
{
    cudaDeviceProp p;
    int n = 0, v = 0;
    size_t a, b;

    CHECK(cudaGetDeviceCount(&n));
    EXPECT(n == 1);
    CHECK(cudaGetDeviceProperties(&p, 0));
    EXPECT(p.warpSize == 32 && p.major == 8 && strstr(p.name, "Brass"));
    EXPECT(p.maxThreadsPerBlock == 1024 && p.totalGlobalMem > 1 << 20);
    CHECK(cudaDeviceGetAttribute(&v, cudaDevAttrMaxTexture2DLayeredLayers, 0));
    EXPECT(v == p.maxTexture2DLayered[2] && v > 1);
    CHECK(cudaDeviceGetAttribute(&v, cudaDevAttrMaxSurface3DDepth, 0));
    EXPECT(v == p.maxSurface3D[2] && v > 1);
    CHECK(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 0));
    EXPECT(v == 32);
    CHECK(cudaMemGetInfo(&a, &b));
    EXPECT(a <= b && b == p.totalGlobalMem);
    EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
    EXPECT(cudaGetDeviceProperties(&p, 3) == cudaErrorInvalidDevice);
    EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorInvalidDevice);
    cudaGetLastError();
    CHECK(cudaSetDevice(0));
    CHECK(cudaDriverGetVersion(&v));
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 16));
    CHECK(cudaDeviceGetLimit(&a, cudaLimitPrintfFifoSize));
    EXPECT(a == 1 << 16);
}

static void copies()
{
    const int w = 13, h = 7;
    int host[h][w], back[h][20] = {}, got, want = 0;
    char *p;
    size_t pitch;
    Dev<int> out(1);

    for (int i = 0; i < w * h; i++)
        want += host[i / w][i % w] = i * i % 37;
    CHECK(cudaMallocPitch((void **)&p, &pitch, w * 4, h));
    EXPECT(pitch >= w * 4 && pitch % 32 == 0);
    CHECK(cudaMemset2D(p, pitch, 0xff, w * 4, h));
    CHECK(cudaMemcpy2D(p, pitch, host, w * 4, w * 4, h, cudaMemcpyHostToDevice));
    sum2d<<<1, 1>>>(p, pitch, w, h, out);
    EXPECT(out.get()[0] == want);
    CHECK(cudaMemcpy2D(back, sizeof back[0], p, pitch, w * 4, h,
                       cudaMemcpyDeviceToHost));
    EXPECT(back[6][12] == host[6][12] && back[3][13] == 0);
    EXPECT(cudaMemcpy2D(back, 8, p, pitch, w * 4, h, cudaMemcpyDeviceToHost) ==
           cudaErrorInvalidPitchValue);
    EXPECT(cudaMemcpy(p, host, (size_t)1 << 40, cudaMemcpyHostToDevice) ==
           cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(p, host, 4, (cudaMemcpyKind)9) ==
           cudaErrorInvalidMemcpyDirection);
    CHECK(cudaFree(p));

    cudaPitchedPtr cube;
    cudaExtent e = make_cudaExtent(16, 4, 3);
    unsigned char bytes[3][4][16], again[3][4][16] = {};
    for (int i = 0; i < 192; i++)
        (&bytes[0][0][0])[i] = (unsigned char)i;
    CHECK(cudaMalloc3D(&cube, e));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(bytes, 16, 16, 4);
    c.dstPtr = cube;
    c.extent = e;
    c.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&c));
    c.srcPtr = cube;
    c.dstPtr = make_cudaPitchedPtr(again, 16, 16, 4);
    c.kind = cudaMemcpyDeviceToHost;
    c.srcPos = make_cudaPos(4, 1, 1);
    c.extent = make_cudaExtent(8, 2, 2);
    CHECK(cudaMemcpy3D(&c));
    EXPECT(again[0][0][0] == bytes[1][1][4] && again[1][1][7] == bytes[2][2][11]);
    CHECK(cudaFree(cube.ptr));

    float *pin, *dev, x[8];
    CHECK(cudaHostAlloc(&pin, 32, cudaHostAllocMapped));
    for (int i = 0; i < 8; i++)
        pin[i] = 1, x[i] = (float)i;
    CHECK(cudaHostGetDevicePointer(&dev, pin, 0));
    CHECK(cudaHostRegister(x, sizeof x, cudaHostRegisterMapped));
    axpy<<<1, 4>>>(dev + 4, x + 2, 2); /* pointers into the middle */
    CHECK(cudaDeviceSynchronize());
    EXPECT(pin[3] == 1 && pin[4] == 5 && pin[7] == 11);
    CHECK(cudaHostUnregister(x));
    CHECK(cudaFreeHost(pin));
    CHECK(cudaMemcpyToSymbol(c_table, &want, 4, 4));
    CHECK(cudaMemcpyFromSymbol(&got, c_table, 4, 4));
    EXPECT(got == want);
    EXPECT(cudaMemcpyToSymbol(c_table, &want, 4, 32) == cudaErrorInvalidValue);
    size_t size;
    void *at;
    CHECK(cudaGetSymbolSize(&size, c_table));
    CHECK(cudaGetSymbolAddress(&at, d_value));
    EXPECT(size == 32 && at);
    EXPECT(cudaGetSymbolAddress(&at, got) == cudaErrorInvalidSymbol);
}

static void launches()
{
    cudaFuncAttributes a;
    int n, grid, block, big;
    Dev<int> out(512);

    /* more than a block has without asking, less than there is */
    CHECK(cudaDeviceGetAttribute(
        &n, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(n >= 60000);
    big = n / 4 - 1000;
    CHECK(cudaFuncGetAttributes(&a, bounded));
    EXPECT(a.maxThreadsPerBlock == 256);
    bounded<<<1, 512>>>(out);
    EXPECT(cudaGetLastError() != cudaSuccess);
    bounded<<<0, 32>>>(out);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    bounded<<<1, 2048>>>(out);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);
    dynamic<<<1, 64, 4000>>>(out, 1000);
    EXPECT(out.get()[0] == 999);
    dynamic<<<1, 64, big * 4>>>(out, big);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(dynamic,
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               big * 4));
    dynamic<<<1, 64, big * 4>>>(out, big);
    EXPECT(out.get()[0] == big - 1);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, bounded, 128, 0));
    EXPECT(n == 16);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded));
    EXPECT(block == 256 && grid >= 8);
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(1);
    c.blockDim = dim3(32);
    CHECK(cudaLaunchKernelEx(&c, bounded, out.p));
    cudaLaunchAttribute unknown = {};
    unknown.id = (cudaLaunchAttributeID)99;
    c.attrs = &unknown;
    c.numAttrs = 1;
    EXPECT(cudaLaunchKernelEx(&c, bounded, out.p) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    void *args[] = {&out.p};
    CHECK(cudaLaunchKernel(bounded, dim3(1), dim3(8), args));
    CHECK(cudaDeviceSynchronize());
    cudaPointerAttributes pa;
    CHECK(cudaPointerGetAttributes(&pa, out + 3));
    EXPECT(pa.type == cudaMemoryTypeDevice && pa.devicePointer == out + 3);
    CHECK(cudaPointerGetAttributes(&pa, &pa));
    EXPECT(pa.type == cudaMemoryTypeUnregistered);
}

static bool on_gfx()
{
    const char *on = getenv("BRASS_CUDA_ON");

    return on && strncmp(on, "gfx", 3) == 0;
}

/* Where memory is to be, as CUDA 12 and as 13 say it. */
static void hints()
{
    cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    cudaMemLocation dev = {cudaMemLocationTypeDevice, 0};
    cudaMemLocation none = {cudaMemLocationTypeDevice, 7};
    cudaStream_t s;
    int *p;

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaMallocManaged(&p, 4096));
    CHECK(cudaMemPrefetchAsync(p, 4096, 0));
    CHECK(cudaMemPrefetchAsync(p, 4096, cudaCpuDeviceId, s));
    CHECK(cudaMemPrefetchAsync(p, 4096, dev, 0, s));
    CHECK(cudaMemPrefetchAsync(p, 4096, host, 0));
    CHECK(cudaMemAdvise(p, 4096, cudaMemAdviseSetReadMostly, 0));
    CHECK(cudaMemAdvise(p, 4096, cudaMemAdviseSetPreferredLocation, host));
    EXPECT(cudaMemPrefetchAsync(p, 4096, none, 0) == cudaErrorInvalidDevice);
    CHECK(cudaFree(p));
    CHECK(cudaStreamDestroy(s));
    cudaGetLastError();
}

/* What a kernel did wrong stays until the device is reset. */
static void faults()
{
    int *p, host;

    CHECK(cudaMalloc(&p, 4));
    /* Behind what is let through; an AMD processor's memory ends at a page. */
    poke<<<1, 1>>>(p + (on_gfx() ? 1 << 28 : 1025));
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&p, 4) == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset());
    poke<<<1, 1>>>(&host); /* the stack is none of its business */
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&p, 64));
    odd<<<1, 1>>>((char *)p);
    /* AMD processors take any address but for atomics. */
    EXPECT(cudaDeviceSynchronize() ==
           (on_gfx() ? cudaSuccess : cudaErrorMisalignedAddress));
    CHECK(cudaDeviceReset());
    boom<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&p, 4));
    poke<<<1, 1>>>(p);
    CHECK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(host == 1);
}

int main()
{
    properties();
    copies();
    launches();
    hints();
    faults();
    return done();
}
