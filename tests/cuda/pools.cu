/* pools.cu - memory that comes and goes in the order of streams: pools, what
 * they say of themselves, and a chain of buffers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

__global__ void
add(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = (in ? in[i] : 0.0f) + (float)i;
}

static unsigned long long
used(cudaMemPool_t p, cudaMemPoolAttr a)
{
    unsigned long long n = ~0ull;

    CHECK(cudaMemPoolGetAttribute(p, a, &n));
    return n;
}

int
main()
{
    const int n = 1000;
    cudaMemPool_t own, mine, now;
    cudaMemPoolProps props = {};
    cudaMemAccessDesc access = {};
    cudaMemAccessFlags flags;
    cudaStream_t s;
    float *last = NULL, *p;
    unsigned long long keep = ~0ull;
    std::vector<float> got(n);

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaDeviceGetDefaultMemPool(&own, 0));
    CHECK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &keep));
    EXPECT(used(own, cudaMemPoolAttrReleaseThreshold) == keep);
    EXPECT(used(own, cudaMemPoolAttrUsedMemCurrent) == 0);
    for (int k = 0; k < 10; k++) {
        CHECK(cudaMallocAsync(&p, n * sizeof *p, s));
        add<<<8, 128, 0, s>>>(last, p, n);
        if (last)
            CHECK(cudaFreeAsync(last, s));
        last = p;
    }
    CHECK(cudaMemcpyAsync(got.data(), last, n * sizeof *p,
                          cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(used(own, cudaMemPoolAttrUsedMemCurrent) == n * sizeof *p);
    EXPECT(used(own, cudaMemPoolAttrUsedMemHigh) >= 2 * n * sizeof *p);
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == 10.0f * i);
    CHECK(cudaFreeAsync(last, s));

    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&mine, &props));
    access.location = props.location;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CHECK(cudaMemPoolSetAccess(mine, &access, 1));
    CHECK(cudaMemPoolGetAccess(&flags, mine, &access.location));
    EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
    CHECK(cudaMallocFromPoolAsync(&p, 4096, mine, s));
    CHECK(cudaMallocAsync(&last, 4096, mine, s));
    EXPECT(used(mine, cudaMemPoolAttrUsedMemCurrent) == 8192);
    CHECK(cudaDeviceSetMemPool(0, mine));
    CHECK(cudaDeviceGetMemPool(&now, 0));
    EXPECT(now == mine);
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaFreeAsync(last, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(used(mine, cudaMemPoolAttrUsedMemCurrent) == 0);
    CHECK(cudaMemPoolTrimTo(mine, 0));
    CHECK(cudaMemPoolDestroy(mine));
    EXPECT(cudaMemPoolTrimTo(mine, 0) == cudaErrorInvalidValue);
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    EXPECT(cudaMemPoolCreate(&mine, &props) == cudaErrorNotSupported);
    cudaGetLastError();
    CHECK(cudaDeviceGetMemPool(&now, 0));
    EXPECT(now == own);
    CHECK(cudaStreamDestroy(s));
    return done();
}
