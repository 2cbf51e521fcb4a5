/* order.cu - streams, events, callbacks, the null stream, graphs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <atomic>
#include <thread>

__global__ void step(int *p, int expect)
{
    if (*p == expect)
        *p = expect + 1;
}
__global__ void slow(int *p, int turns)
{
    int v = *p;

    for (int i = 0; i < turns; i++)
        v = v * 1664525 + 1013904223;
    if (v == 12345)
        *p = v;
}
__global__ void add(int *p, int n) { atomicAdd(p, n); }

static std::atomic<int> seen;
static void note(void *user) { seen += *(int *)user; }
static void CUDART_CB heard(cudaStream_t, cudaError_t status, void *user)
{
    seen += status == cudaSuccess ? *(int *)user : 1000000;
}

static void chains()
{
    cudaStream_t s[3];
    cudaEvent_t e[3], start, stop;
    float ms;
    Dev<int> p(std::vector<int>(3, 0));

    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming));
    }
    CHECK(cudaEventRecord(start, s[0]));
    for (int k = 0; k < 12; k++) { /* round and round, each after the other */
        int i = k % 3;
        if (k)
            CHECK(cudaStreamWaitEvent(s[i], e[(k + 2) % 3]));
        slow<<<1, 1, 0, s[i]>>>(p, k % 2 ? 10 : 3000);
        step<<<1, 1, 0, s[i]>>>(p, k);
        CHECK(cudaEventRecord(e[i], s[i]));
    }
    CHECK(cudaEventRecord(stop, s[2]));
    EXPECT(cudaEventSynchronize(stop) == cudaSuccess);
    EXPECT(p.get()[0] == 12);
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    EXPECT(ms > 0 && ms < 60000);
    EXPECT(cudaEventElapsedTime(&ms, e[0], stop) ==
           cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    for (int i = 0; i < 3; i++) {
        CHECK(cudaStreamDestroy(s[i]));
        CHECK(cudaEventDestroy(e[i]));
    }
    EXPECT(cudaStreamSynchronize(s[0]) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
}

/* The null stream waits for the blocking streams, and they for it. */
static void null_stream()
{
    cudaStream_t a, b;
    Dev<int> p(std::vector<int>(1, 0));

    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreate(&b));
    for (int k = 0; k < 6; k += 3) {
        slow<<<1, 1, 0, a>>>(p, 3000);
        step<<<1, 1, 0, a>>>(p, k);
        step<<<1, 1>>>(p, k + 1);
        step<<<1, 1, 0, b>>>(p, k + 2);
        step<<<1, 1>>>(p, -5);
    }
    EXPECT(p.get()[0] == 6);
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(b));
}

static void callbacks()
{
    static int one = 1, ten = 10;
    cudaStream_t s;
    int *p, *h;

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaMallocAsync(&p, 400, s));
    CHECK(cudaMallocHost(&h, 400));
    CHECK(cudaMemsetAsync(p, 0, 400, s));
    add<<<2, 50, 0, s>>>(p, 3);
    CHECK(cudaMemcpyAsync(h, p, 400, cudaMemcpyDeviceToHost, s));
    CHECK(cudaLaunchHostFunc(s, note, &one));
    CHECK(cudaStreamAddCallback(s, heard, &ten, 0));
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(h[0] == 300 && seen == 11);
    EXPECT(cudaStreamQuery(s) == cudaSuccess);
    CHECK(cudaFreeHost(h));
    CHECK(cudaStreamDestroy(s));
}

static void threads()
{
    int total[2] = {0, 0};
    auto work = [&](int k) {
        Dev<int> p(std::vector<int>(1, 0));
        for (int i = 0; i < 20; i++)
            add<<<1, 32, 0, cudaStreamPerThread>>>(p, k);
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        total[k - 1] = p.get()[0];
        EXPECT(cudaSetDevice(7) == cudaErrorInvalidDevice);
        if (k == 1) /* the other's error is not this one's */
            cudaGetLastError();
    };
    std::thread a(work, 1), b(work, 2);
    a.join();
    b.join();
    EXPECT(total[0] == 640 && total[1] == 1280);
    EXPECT(cudaGetLastError() == cudaSuccess);
}

static void graphs()
{
    cudaStream_t s, t;
    cudaEvent_t fork, join;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t n[3];
    size_t count = 0;
    Dev<int> p(std::vector<int>(1, 5));

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 4, 0, s>>>(p, 1);
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork));
    add<<<1, 2, 0, t>>>(p, 10);
    CHECK(cudaEventRecord(join, t));
    CHECK(cudaStreamWaitEvent(s, join));
    add<<<1, 1, 0, s>>>(p, 100);
    CHECK(cudaStreamEndCapture(s, &g));
    EXPECT(p.get()[0] == 5); /* nothing has run */
    CHECK(cudaGraphGetNodes(g, nullptr, &count));
    EXPECT(count == 3);
    CHECK(cudaGraphInstantiate(&x, g, nullptr, nullptr, 0));
    CHECK(cudaGraphDestroy(g));
    for (int k = 0; k < 3; k++)
        CHECK(cudaGraphLaunch(x, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(p.get()[0] == 5 + 3 * 124);
    CHECK(cudaGraphExecDestroy(x));

    int one = 1, value = 3;
    int *at = p;
    void *args[] = {&at, &value};
    cudaKernelNodeParams k = {};
    cudaMemsetParams m = {};
    cudaHostNodeParams h = {note, &one};
    k.func = (void *)add;
    k.gridDim = k.blockDim = dim3(2);
    k.kernelParams = args;
    m.dst = p;
    m.elementSize = 4;
    m.value = 70;
    m.width = m.height = 1;
    seen = 0;
    CHECK(cudaGraphCreate(&g, 0));
    CHECK(cudaGraphAddKernelNode(&n[0], g, nullptr, 0, &k));
    CHECK(cudaGraphAddMemsetNode(&n[1], g, nullptr, 0, &m));
    CHECK(cudaGraphAddHostNode(&n[2], g, &n[0], 1, &h));
    CHECK(cudaGraphAddDependencies(g, &n[1], &n[0], 1));
    value = 0; /* they were copied */
    CHECK(cudaGraphInstantiate(&x, g, 0));
    CHECK(cudaGraphLaunch(x, 0));
    CHECK(cudaDeviceSynchronize());
    EXPECT(p.get()[0] == 82 && seen == 1);
    CHECK(cudaGraphAddDependencies(g, &n[2], &n[1], 1));
    EXPECT(cudaGraphInstantiate(&x, g, 0) == cudaErrorInvalidValue);
    CHECK(cudaGraphDestroy(g));
}

int main()
{
    chains();
    null_stream();
    callbacks();
    threads();
    graphs();
    return done();
}
