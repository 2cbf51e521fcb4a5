/* chunks.cu - work cut into pieces over several streams: pinned memory, copies
 * both ways, events between streams, a callback when all is there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <atomic>

enum { STREAMS = 3, PIECE = 256, PIECES = 9 };

__global__ void
square(const int *in, int *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        in[blockIdx.x * blockDim.x + threadIdx.x] *
        in[blockIdx.x * blockDim.x + threadIdx.x];
}
__global__ void
total(const int *v, int n, unsigned long long *sum)
{
    unsigned long long mine = 0;

    for (int i = threadIdx.x; i < n; i += blockDim.x)
        mine += v[i];
    atomicAdd(sum, mine);
}
static void
arrived(cudaStream_t, cudaError_t e, void *p)
{
    *(std::atomic<int> *)p += e == cudaSuccess;
}

int
main()
{
    const int n = PIECE * PIECES;
    int *in, *out;
    unsigned long long *sum, want = 0;
    std::atomic<int> calls(0);
    cudaStream_t s[STREAMS], last;
    cudaEvent_t done_with[STREAMS], start, stop;
    float ms = -1;
    Dev<int> din(n), dout(n);

    CHECK(cudaMallocHost(&in, n * 4));
    CHECK(cudaHostAlloc(&out, n * 4, cudaHostAllocMapped));
    CHECK(cudaMallocManaged(&sum, 8));
    *sum = 0;
    for (int i = 0; i < n; i++) {
        in[i] = (int)(rnd() * 1000);
        want += (unsigned long long)in[i] * in[i];
    }
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaStreamCreateWithFlags(&last, cudaStreamNonBlocking));
    CHECK(cudaEventRecord(start));
    for (int k = 0; k < STREAMS; k++) {
        CHECK(cudaStreamCreate(&s[k]));
        CHECK(cudaEventCreateWithFlags(&done_with[k], cudaEventDisableTiming));
    }
    for (int k = 0; k < PIECES; k++) {
        cudaStream_t t = s[k % STREAMS];
        int at = k * PIECE;

        CHECK(cudaMemcpyAsync(din + at, in + at, PIECE * 4,
                              cudaMemcpyHostToDevice, t));
        square<<<2, PIECE / 2, 0, t>>>(din + at, dout + at);
        CHECK(cudaMemcpyAsync(out + at, dout + at, PIECE * 4,
                              cudaMemcpyDeviceToHost, t));
        CHECK(cudaStreamAddCallback(t, arrived, &calls, 0));
    }
    for (int k = 0; k < STREAMS; k++) {
        CHECK(cudaEventRecord(done_with[k], s[k]));
        CHECK(cudaStreamWaitEvent(last, done_with[k], 0));
    }
    total<<<1, 128, 0, last>>>(dout, n, sum);
    CHECK(cudaStreamSynchronize(last));
    EXPECT(*sum == want && calls == PIECES);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    EXPECT(ms >= 0 && ms < 60000);
    for (int i = 0; i < n; i++)
        EXPECT(out[i] == in[i] * in[i]);
    for (int k = 0; k < STREAMS; k++) {
        CHECK(cudaStreamDestroy(s[k]));
        CHECK(cudaEventDestroy(done_with[k]));
    }
    CHECK(cudaStreamDestroy(last));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    CHECK(cudaFree(sum));
    return done();
}
