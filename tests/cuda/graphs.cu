/* graphs.cu - graphs drawn by hand: edges, clones, children, what is changed in
 * an executable, and a whole one updated by a capture.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { N = 64 };

__global__ void
fill(int *p, int v)
{
    p[threadIdx.x] = v;
}
__global__ void
scale(int *p, int v)
{
    p[threadIdx.x] *= v;
}
__global__ void
shift(int *p, int v)
{
    p[threadIdx.x] += v;
}

typedef void kernel(int *, int);
static cudaGraphNode_t
node(cudaGraph_t g, kernel *f, int *p, int v,
     std::vector<cudaGraphNode_t> after)
{
    void *args[] = {&p, &v};
    cudaKernelNodeParams k = {};
    cudaGraphNode_t n;

    k.func = (void *)f;
    k.gridDim = dim3(1);
    k.blockDim = dim3(N);
    k.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&n, g, after.data(), after.size(), &k));
    return n;
}
static int
first(int *p)
{
    int v;

    CHECK(cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost));
    return v;
}

int
main()
{
    Dev<int> d(N), e(N);
    int *p = d, seven = 7;
    cudaGraph_t g, copy, outer, taken;
    cudaGraphExec_t x, y;
    cudaGraphNode_t a, b, c, m, found, back;
    cudaStream_t s;
    size_t n = 0;
    cudaGraphNodeType type;

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaGraphCreate(&g, 0));
    /* Added in the wrong order: the edges say what is right. */
    c = node(g, shift, p, 1, {});
    b = node(g, scale, p, 5, {});
    a = node(g, fill, p, 2, {});
    CHECK(cudaGraphAddDependencies(g, &a, &b, 1));
    CHECK(cudaGraphAddDependencies(g, &b, &c, 1));
    cudaMemcpy3DParms copy3 = {};
    copy3.srcPtr = make_cudaPitchedPtr(p, N * 4, N, 1);
    copy3.dstPtr = make_cudaPitchedPtr(e, N * 4, N, 1);
    copy3.extent = make_cudaExtent(N * 4, 1, 1);
    copy3.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaGraphAddMemcpyNode(&m, g, &c, 1, &copy3));
    CHECK(cudaGraphGetRootNodes(g, NULL, &n));
    EXPECT(n == 1);
    CHECK(cudaGraphGetRootNodes(g, &found, &n));
    EXPECT(found == a);
    CHECK(cudaGraphGetEdges(g, NULL, NULL, &n));
    EXPECT(n == 3);
    CHECK(cudaGraphNodeGetType(m, &type));
    EXPECT(type == cudaGraphNodeTypeMemcpy);
    CHECK(cudaGraphInstantiate(&x, g, NULL, NULL, 0));
    CHECK(cudaGraphClone(&copy, g));
    CHECK(cudaGraphNodeFindInClone(&back, b, copy));
    CHECK(cudaGraphLaunch(x, s));
    CHECK(cudaStreamSynchronize(s));
    EXPECT(first(e) == 11);

    /* The executable's step, not the graph's. */
    void *args[] = {&p, &seven};
    cudaKernelNodeParams k = {};
    k.func = (void *)scale;
    k.gridDim = dim3(1);
    k.blockDim = dim3(N);
    k.kernelParams = args;
    CHECK(cudaGraphExecKernelNodeSetParams(x, b, &k));
    CHECK(cudaGraphLaunch(x, s));
    EXPECT((cudaStreamSynchronize(s), first(e)) == 15);
    EXPECT(cudaGraphExecKernelNodeSetParams(x, m, &k) != cudaSuccess);
    cudaGetLastError();

    /* The clone kept the old one; as a child twice: 2 * 5 + 1, and again. */
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaGraphCreate(&outer, 0));
    CHECK(cudaGraphAddChildGraphNode(&a, outer, NULL, 0, copy));
    b = node(outer, shift, p, 100, {a});
    CHECK(cudaGraphInstantiate(&y, outer, 0));
    CHECK(cudaGraphLaunch(y, s));
    EXPECT((cudaStreamSynchronize(s), first(p)) == 111 && first(e) == 11);

    /* A capture of the same shape takes the place of what was. */
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    fill<<<1, N, 0, s>>>(p, 3);
    scale<<<1, N, 0, s>>>(p, 3);
    shift<<<1, N, 0, s>>>(p, 3);
    CHECK(cudaMemcpyAsync(e, p, N * 4, cudaMemcpyDeviceToDevice, s));
    CHECK(cudaStreamEndCapture(s, &taken));
    cudaGraphExecUpdateResult r;
    CHECK(cudaGraphExecUpdate(x, taken, NULL, &r));
    CHECK(cudaGraphLaunch(x, s));
    EXPECT((cudaStreamSynchronize(s), first(e)) == 12);
    EXPECT(cudaGraphExecUpdate(x, outer, NULL, &r) ==
               cudaErrorGraphExecUpdateFailure &&
           r == cudaGraphExecUpdateErrorTopologyChanged);
    cudaGetLastError();
    CHECK(cudaGraphLaunch(x, s));
    EXPECT((cudaStreamSynchronize(s), first(e)) == 12);
    CHECK(cudaGraphExecDestroy(x));
    CHECK(cudaGraphExecDestroy(y));
    CHECK(cudaGraphDestroy(copy));
    CHECK(cudaGraphDestroy(outer));
    CHECK(cudaGraphDestroy(taken));
    CHECK(cudaStreamDestroy(s));
    return done();
}
