/* test_cuda_gone.c - handles of graphs that are used when what they named is gone: an
 * error each time, and nothing of it is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda_int.h"

#include "cuda/cuda.h"

#define GONE(call) ck_assert_int_eq(call, cudaErrorInvalidValue)
#define FINE(call) ck_assert_int_eq(call, cudaSuccess)

static void
nothing(void *user)
{
    (void)user;
}

static const cudaHostNodeParams host = {nothing, NULL};

static void
reset(void)
{
    ck_assert_int_eq(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
}

/* What a program may ask of a graph. The other one is there, and was before that one
 * was gone: its memory is not had again meanwhile. */
static void
ask_graph(cudaGraph_t g, cudaGraph_t other)
{
    cudaGraphNode_t node, pair[2];
    cudaGraph_t copy;
    cudaGraphExec_t x;
    size_t n = 2;

    GONE(cudaGraphDestroy(g));
    GONE(cudaGraphGetNodes(g, NULL, &n));
    GONE(cudaGraphGetRootNodes(g, pair, &n));
    GONE(cudaGraphGetEdges(g, NULL, NULL, &n));
    GONE(cudaGraphClone(&copy, g));
    GONE(cudaGraphAddEmptyNode(&node, g, NULL, 0));
    GONE(cudaGraphAddHostNode(&node, g, NULL, 0, &host));
    GONE(cudaGraphAddChildGraphNode(&node, other, NULL, 0, g));
    GONE(cudaGraphAddDependencies(g, NULL, NULL, 0));
    GONE(cudaGraphRemoveDependencies(g, NULL, NULL, 0));
    GONE(cudaGraphInstantiate(&x, g, 0));
    GONE(cudaGraphNodeFindInClone(&node, (cudaGraphNode_t)g, g));
    GONE(cudaGraphDebugDotPrint(g, "/dev/null", 0));
}

static void
ask_node(cudaGraphNode_t node, cudaGraph_t g, cudaGraphNode_t other)
{
    cudaGraphNode_t added;
    cudaGraphNodeType type;
    cudaHostNodeParams p;
    size_t n = 0;

    GONE(cudaGraphDestroyNode(node));
    GONE(cudaGraphNodeGetType(node, &type));
    GONE(cudaGraphNodeGetDependencies(node, NULL, &n));
    GONE(cudaGraphNodeGetDependentNodes(node, NULL, &n));
    GONE(cudaGraphHostNodeGetParams(node, &p));
    GONE(cudaGraphHostNodeSetParams(node, &host));
    GONE(cudaGraphAddEmptyNode(&added, g, &node, 1));
    GONE(cudaGraphAddDependencies(g, &other, &node, 1));
    GONE(cudaGraphAddDependencies(g, &node, &other, 1));
    GONE(cudaGraphKernelNodeCopyAttributes(node, node));
}

TEST(cuda_graphs_that_were_destroyed_are_refused)
{
    cudaGraphNode_t nodes[2], there;
    cudaGraph_t g, other;

    FINE(cudaGraphCreate(&other, 0));
    FINE(cudaGraphAddEmptyNode(&there, other, NULL, 0));
    FINE(cudaGraphCreate(&g, 0));
    FINE(cudaGraphAddHostNode(&nodes[0], g, NULL, 0, &host));
    FINE(cudaGraphAddHostNode(&nodes[1], g, &nodes[0], 1, &host));
    FINE(cudaGraphDestroyNode(nodes[0]));
    ask_node(nodes[0], other, there);
    FINE(cudaGraphDestroy(g));
    ask_graph(g, other);
    ask_node(nodes[1], other, there);
    ask_graph(NULL, other);
    ask_node(NULL, other, there);
    FINE(cudaGraphDestroy(other));
    reset();
}

TEST(cuda_executables_that_were_destroyed_are_refused)
{
    cudaGraphExecUpdateResultInfo info;
    unsigned long long flags;
    cudaGraphNode_t node;
    cudaGraphExec_t x;
    cudaGraph_t g;
    unsigned on;

    FINE(cudaGraphCreate(&g, 0));
    FINE(cudaGraphAddHostNode(&node, g, NULL, 0, &host));
    FINE(cudaGraphInstantiate(&x, g, 0));
    FINE(cudaGraphLaunch(x, NULL));
    FINE(cudaGraphExecDestroy(x)); /* perhaps under way */
    GONE(cudaGraphLaunch(x, NULL));
    GONE(cudaGraphUpload(x, NULL));
    GONE(cudaGraphExecDestroy(x));
    GONE(cudaGraphExecGetFlags(x, &flags));
    GONE(cudaGraphExecUpdate(x, g, &info));
    GONE(cudaGraphExecHostNodeSetParams(x, node, &host));
    GONE(cudaGraphNodeGetEnabled(x, node, &on));
    FINE(cudaGraphInstantiate(&x, g, 0));
    FINE(cudaGraphDestroy(g));
    GONE(cudaGraphExecHostNodeSetParams(x, node, &host));
    GONE(cudaGraphExecUpdate(x, g, &info));
    FINE(cudaGraphLaunch(x, NULL));
    FINE(cudaGraphExecDestroy(x));
    reset();
}

/* A graph that a node has is the node's, one that a stream captures the capture's. */
TEST(cuda_graphs_of_others_cannot_be_destroyed)
{
    cudaStreamCaptureStatus status;
    cudaGraph_t outer, inner, had, other;
    unsigned long long id;
    cudaGraphNode_t node;
    cudaStream_t s;

    FINE(cudaGraphCreate(&other, 0));
    FINE(cudaGraphCreate(&inner, 0));
    FINE(cudaGraphCreate(&outer, 0));
    FINE(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
    FINE(cudaGraphChildGraphNodeGetGraph(node, &had));
    GONE(cudaGraphDestroy(had));
    FINE(cudaGraphDestroy(inner));
    FINE(cudaGraphDestroy(outer));
    ask_graph(had, other);
    FINE(cudaGraphDestroy(other));
    FINE(cudaStreamCreate(&s));
    FINE(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    FINE(cudaStreamGetCaptureInfo_v2(s, &status, &id, &had, NULL, NULL));
    GONE(cudaGraphDestroy(had));
    FINE(cudaLaunchHostFunc(s, nothing, NULL));
    FINE(cudaStreamEndCapture(s, &inner));
    ck_assert_ptr_eq(inner, had);
    FINE(cudaGraphDestroy(inner));
    reset();
}

TEST(cuda_user_objects_that_are_gone_are_refused)
{
    cudaUserObject_t o;
    cudaGraph_t g, other;

    FINE(cudaGraphCreate(&g, 0));
    FINE(cudaGraphCreate(&other, 0));
    FINE(cudaUserObjectCreate(&o, NULL, nothing, 1,
                              cudaUserObjectNoDestructorSync));
    FINE(cudaGraphRetainUserObject(g, o, 1, cudaGraphUserObjectMove));
    FINE(cudaUserObjectRetain(o, 1));
    FINE(cudaGraphDestroy(g));
    GONE(cudaGraphReleaseUserObject(g, o, 1));
    FINE(cudaUserObjectRelease(o, 1));
    GONE(cudaUserObjectRelease(o, 1));
    GONE(cudaUserObjectRetain(o, 1));
    GONE(cudaGraphRetainUserObject(other, o, 1, 0));
    FINE(cudaGraphDestroy(other));
    reset();
}

/* A graph's kernels are a module's, which may go before it, by itself or with all. */
static void
kernels_go(bool with_all)
{
    CUdeviceptr p;
    cudaGraphExec_t x;
    cudaKernelNodeParams k = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};
    cudaGraphNode_t node;
    CUfunction f;
    cudaGraph_t g;
    CUmodule mod;
    CUcontext ctx;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxCreate(&ctx, 0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(
        cuModuleLoadData(&mod,
                         ".version 8.0\n.target sm_80\n.address_size 64\n"
                         ".visible .entry k(.param .u64 p) { .reg .b64 %d; "
                         "ld.param.u64 %d,[p]; st.global.u32 [%d],7; ret; }\n"),
        CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleGetFunction(&f, mod, "k"), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    k.func = f;
    k.kernelParams = (void *[]){&p};
    FINE(cudaGraphCreate(&g, 0));
    FINE(cudaGraphAddKernelNode(&node, g, NULL, 0, &k));
    FINE(cudaGraphInstantiate(&x, g, 0));
    FINE(cudaGraphLaunch(x, NULL));
    if (with_all) {
        reset();
        ck_assert_int_eq(cuCtxCreate(&ctx, 0, 0), CUDA_SUCCESS);
    } else {
        ck_assert_int_eq(cuModuleUnload(mod), CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuModuleUnload(mod), CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cudaGraphLaunch(x, NULL), cudaErrorInvalidResourceHandle);
    FINE(cudaGraphKernelNodeGetParams(node, &k));
    ck_assert_int_ne(cudaGraphKernelNodeSetParams(node, &k), cudaSuccess);
    FINE(cudaGraphNodeSetEnabled(x, node, 0));
    FINE(cudaGraphLaunch(x, NULL));
    FINE(cudaGraphExecDestroy(x));
    FINE(cudaGraphDestroy(g));
    reset();
}

TEST(cuda_graphs_of_kernels_that_are_gone_are_refused)
{
    kernels_go(false);
    kernels_go(true);
}

TEST(cuda_graphs_have_many_nodes)
{
    enum { N = 1000 };
    cudaGraphNode_t nodes[N];
    cudaGraphExec_t x;
    cudaGraph_t g, copy;
    size_t n = 0;

    FINE(cudaGraphCreate(&g, 0));
    for (int k = 0; k < N; k++)
        FINE(cudaGraphAddEmptyNode(&nodes[k], g, k ? &nodes[k - 1] : NULL,
                                   k != 0));
    FINE(cudaGraphClone(&copy, g));
    FINE(cudaGraphGetEdges(copy, NULL, NULL, &n));
    ck_assert_uint_eq(n, N - 1);
    FINE(cudaGraphInstantiate(&x, copy, 0));
    FINE(cudaGraphLaunch(x, NULL));
    for (int k = 0; k < N; k += 2)
        FINE(cudaGraphDestroyNode(nodes[k]));
    FINE(cudaGraphGetNodes(g, NULL, &n));
    ck_assert_uint_eq(n, N / 2);
    FINE(cudaGraphExecDestroy(x));
    FINE(cudaGraphDestroy(g));
    FINE(cudaGraphDestroy(copy));
    reset();
}
