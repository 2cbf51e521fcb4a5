/* test_cuda_13_nvcc.c - programs that nvcc 13 compiled and linked, with libbrasscuda.so for
 * libcudart.so.13 and libcuda.so.1: what CUDA's documentation says of each call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda_runtime_api.h"

#include <string.h>
#include <unistd.h>

/* A program's source, between these lines; what IS false names itself. */
#define HEAD                                                                \
    "#include <cstdio>\n#include <cstring>\n#include <cuda_runtime.h>\n"    \
    "static int bad;\n"                                                     \
    "#define IS(x) do { if (!(x)) bad = 1, printf(\"%d: %s (%s)\\n\", "     \
    "__LINE__, #x, cudaGetErrorName(cudaPeekAtLastError())); } while (0)\n" \
    "#define OK(x) IS((x) == cudaSuccess)\n"                                \
    "__global__ void add(int *p, int n, int by) { int i = blockIdx.x * "    \
    "blockDim.x + threadIdx.x; if (i < n) p[i] += by; }\n"

/* nvcc 13 links it, and it runs with our library as CUDA's. */
static void
nvcc_makes(const char *cudart, const char *flag, const char *source,
           t_proc *out)
{
    const char *nvcc =
        t_have_program("nvcc") ? "nvcc" : "/usr/local/cuda/bin/nvcc";
    const char *dir = t_tmpdir(), *cu = t_printf("%s/p.cu", dir);
    const char *lib_at = t_repo(t_printf("build/%s/libbrasscuda.so", t_conf()));
    t_proc r;

    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program(nvcc))
        t_skip("no nvcc");
    t_exec(&r, (const char *[]){nvcc, "--version", NULL}, NULL, 0);
    if (r.exit || !strstr(r.out, "release 13."))
        t_skip("no nvcc 13");
    t_write(cu, source, strlen(source));
    t_exec(&r,
           (const char *[]){nvcc, "-w", "-cudart", cudart, "-gencode",
                            "arch=compute_90,code=compute_90", flag, cu, "-o",
                            t_printf("%s/p", dir), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    ck_assert_int_eq(symlink(lib_at, t_printf("%s/libcudart.so.13", dir)), 0);
    ck_assert_int_eq(symlink(lib_at, t_printf("%s/libcuda.so.1", dir)), 0);
    t_exec(out,
           (const char *[]){
               "env", t_printf("LD_LIBRARY_PATH=%s:/usr/local/cuda/lib64", dir),
               t_printf("%s/p", dir), NULL},
           NULL, 0);
}

static void
nvcc_runs(const char *flag, const char *source)
{
    t_proc r;

    nvcc_makes("shared", flag, source, &r);
    ck_assert_msg(r.exit == 0, "%.1000s%.1000s", r.out, r.err);
}

/* Where the null stream is each thread's own, it may be captured, and calls have other
 * names: all were undefined but the launch. */
TEST_WITHIN(cuda_13_null_stream_of_each_thread, 120)
{
    nvcc_runs(
        "-default-stream=per-thread", HEAD
        "__device__ int word;\n"
        "int main() {\n"
        "int *p, h[1000], n = sizeof h, v = 5; cudaEvent_t e; cudaGraph_t g;\n"
        "cudaStreamCaptureStatus st; cudaGraphExec_t x;\n"
        "OK(cudaMalloc(&p, n)); OK(cudaMemset(p, 0, n));\n"
        "add<<<4, 256>>>(p, 1000, 1);\n"
        "OK(cudaMemcpy(h, p, n, cudaMemcpyDeviceToHost));\n"
        "IS(h[0] == 1 && h[999] == 1);\n"
        "OK(cudaEventCreate(&e)); OK(cudaEventRecord(e));\n"
        "OK(cudaStreamSynchronize(0)); OK(cudaEventQuery(e));\n"
        "OK(cudaMemcpyToSymbol(word, &v, 4)); v = 0;\n"
        "OK(cudaMemcpyFromSymbol(&v, word, 4)); IS(v == 5);\n"
        "OK(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));\n"
        "OK(cudaStreamIsCapturing(0, &st)); IS(st == 1);\n"
        "IS(cudaStreamIsCapturing(cudaStreamLegacy, &st) == "
        "cudaErrorStreamCaptureImplicit);\n"
        "add<<<4, 256>>>(p, 1000, 2);\n"
        "OK(cudaMemcpyAsync(h, p, n, cudaMemcpyDeviceToHost));\n"
        "OK(cudaStreamEndCapture(0, &g)); OK(cudaGraphInstantiate(&x, g, 0));\n"
        "OK(cudaGraphLaunch(x, 0)); OK(cudaStreamSynchronize(0));\n"
        "IS(h[0] == 3 && h[999] == 3);\n"
        "return bad; }\n");
}

/* A capture that forks and joins has the edges that its events mean: there were none,
 * and what was put in between by hand came last. */
TEST_WITHIN(cuda_13_captures_with_edges, 120)
{
    nvcc_runs(
        "-w", HEAD
        "int main() {\n"
        "int *p, *q, h = 0, one = 1, five = 5; size_t n, m; cudaStream_t a, "
        "b;\n"
        "cudaEvent_t e, f; cudaGraph_t g, in; cudaGraphExec_t x;\n"
        "cudaGraphNode_t all[9], from[9], to[9], mine; const cudaGraphNode_t "
        "*at;\n"
        "cudaStreamCaptureStatus st; unsigned long long id, id2;\n"
        "OK(cudaMalloc(&p, 4)); OK(cudaMalloc(&q, 4));\n"
        "OK(cudaStreamCreate(&a)); OK(cudaStreamCreate(&b));\n"
        "OK(cudaEventCreate(&e)); OK(cudaEventCreate(&f));\n"
        /* one before, one in each stream, one behind both */
        "OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));\n"
        "OK(cudaStreamGetCaptureInfo(a, &st, &id, &in, &at, NULL, &n));\n"
        "IS(st == 1 && n == 0);\n"
        "OK(cudaMemsetAsync(p, 0, 4, a));\n"
        "OK(cudaEventRecord(e, a)); OK(cudaStreamWaitEvent(b, e, 0));\n"
        "add<<<1, 1, 0, a>>>(p, 1, 1);\n"
        "OK(cudaMemsetAsync(q, 0, 4, b));\n"
        "OK(cudaEventRecord(f, b)); OK(cudaStreamWaitEvent(a, f, 0));\n"
        "OK(cudaStreamGetCaptureInfo(a, &st, &id2, &in, &at, NULL, &n));\n"
        "IS(n == 2 && id == id2);\n"
        /* a node by hand, which what is captured next comes after */
        "void *args[] = {&p, &one, &five}; cudaKernelNodeParams k = {};\n"
        "k.func = (void *)add; k.gridDim = k.blockDim = dim3(1);\n"
        "k.kernelParams = args;\n"
        "OK(cudaGraphAddKernelNode(&mine, in, at, n, &k));\n"
        "OK(cudaStreamUpdateCaptureDependencies(a, &mine, NULL, 1, "
        "cudaStreamSetCaptureDependencies));\n"
        "OK(cudaMemcpyAsync(q, p, 4, cudaMemcpyDeviceToDevice, a));\n"
        "OK(cudaStreamEndCapture(a, &g)); IS(g == in);\n"
        "n = 9; OK(cudaGraphGetNodes(g, all, &n)); IS(n == 5);\n"
        "m = 9; OK(cudaGraphGetEdges(g, from, to, NULL, &m)); IS(m == 5);\n"
        "m = 0; OK(cudaGraphNodeGetDependencies(mine, NULL, NULL, &m));\n"
        "IS(m == 2);\n"
        "m = 9; OK(cudaGraphNodeGetDependentNodes(all[0], to, NULL, &m));\n"
        "IS(m == 2 && to[0] == all[1] && to[1] == all[2] && !to[2]);\n"
        "OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, a));\n"
        "OK(cudaStreamSynchronize(a)); OK(cudaMemcpy(&h, q, 4, "
        "cudaMemcpyDefault));\n"
        "IS(h == 6);\n"
        "IS(cudaGraphAddDependencies(g, all, all + 1, NULL, 1) == "
        "cudaErrorInvalidValue);\n"
        "OK(cudaGraphRemoveDependencies(g, all, all + 1, NULL, 1));\n"
        "IS(cudaGraphRemoveDependencies(g, all, all + 1, NULL, 1) == "
        "cudaErrorInvalidValue);\n"
        "OK(cudaGraphDestroyNode(all[1]));\n"
        "OK(cudaGraphGetNodes(g, NULL, &n)); IS(n == 4);\n"
        "OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, a));\n"
        "OK(cudaStreamSynchronize(a)); OK(cudaMemcpy(&h, q, 4, "
        "cudaMemcpyDefault));\n"
        "IS(h == 5);\n"
        /* what is left in another stream is not joined */
        "OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));\n"
        "OK(cudaMemsetAsync(p, 0, 4, a)); OK(cudaEventRecord(e, a));\n"
        "OK(cudaStreamWaitEvent(b, e, 0)); OK(cudaMemsetAsync(q, 0, 4, b));\n"
        "IS(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureUnjoined && "
        "!g);\n"
        "cudaGetLastError(); OK(cudaStreamIsCapturing(b, &st)); IS(st == 0);\n"
        /* into a graph that is there */
        "OK(cudaGraphCreate(&g, 0));\n"
        "OK(cudaGraphAddEmptyNode(&mine, g, NULL, 0));\n"
        "OK(cudaStreamBeginCaptureToGraph(a, g, &mine, NULL, 1, "
        "cudaStreamCaptureModeGlobal));\n"
        "OK(cudaMemsetAsync(p, 3, 4, a)); OK(cudaStreamEndCapture(a, &in));\n"
        "IS(in == g); OK(cudaGraphNodeGetDependentNodes(mine, NULL, NULL, "
        "&n));\n"
        "IS(n == 1);\n"
        "cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;\n"
        "OK(cudaThreadExchangeStreamCaptureMode(&mode)); IS(mode == 0);\n"
        "OK(cudaThreadExchangeStreamCaptureMode(&mode)); IS(mode == 2);\n"
        "return bad; }\n");
}

/* Nodes tell what they do, drawn or captured, and take something else to do: all of this
 * was undefined. */
TEST_WITHIN(cuda_13_nodes_of_graphs, 120)
{
    nvcc_runs(
        "-w", HEAD
        "static int called;\n"
        "static void call(void *n) { called += *(int *)n; }\n"
        "int main() {\n"
        "int *p, *q, h[64], one = 1, n = 64, by = 3, w = 40; cudaStream_t s;\n"
        "cudaGraph_t g, in, two; cudaGraphExec_t x; cudaGraphNode_t k, m, c, "
        "o, "
        "y, all[9]; size_t count = 9;\n"
        "OK(cudaMalloc(&p, 256)); OK(cudaMalloc(&q, 256));\n"
        "OK(cudaStreamCreate(&s));\n"
        /* captured */
        "OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));\n"
        "OK(cudaMemsetAsync(p, 0, 256, s)); add<<<2, 32, 0, s>>>(p, n, by);\n"
        "OK(cudaMemcpyAsync(q, p, 256, cudaMemcpyDeviceToDevice, s));\n"
        "OK(cudaLaunchHostFunc(s, call, &one));\n"
        "OK(cudaStreamEndCapture(s, &g));\n"
        "OK(cudaGraphGetNodes(g, all, &count)); IS(count == 4);\n"
        "cudaKernelNodeParams kp = {}; cudaMemcpy3DParms cp = {};\n"
        "cudaMemsetParams mp = {}; cudaHostNodeParams hp = {};\n"
        "OK(cudaGraphMemsetNodeGetParams(all[0], &mp));\n"
        "IS(mp.dst == p && mp.value == 0 && mp.width == 256 && mp.elementSize "
        "== "
        "1);\n"
        "OK(cudaGraphKernelNodeGetParams(all[1], &kp));\n"
        "IS(kp.func == (void *)add && kp.gridDim.x == 2 && kp.blockDim.x == "
        "32);\n"
        "IS(*(int **)kp.kernelParams[0] == p && *(int *)kp.kernelParams[2] == "
        "3);\n"
        "OK(cudaGraphMemcpyNodeGetParams(all[2], &cp));\n"
        "IS(cp.srcPtr.ptr == p && cp.dstPtr.ptr == q && cp.extent.width == "
        "256);\n"
        "OK(cudaGraphHostNodeGetParams(all[3], &hp));\n"
        "IS(hp.fn == call && hp.userData == &one);\n"
        "IS(cudaGraphMemsetNodeGetParams(all[1], &mp) == "
        "cudaErrorInvalidValue);\n"
        "cudaGetLastError();\n"
        /* another argument, in the executable alone; a step left out */
        "OK(cudaGraphInstantiate(&x, g, 0)); by = 5;\n"
        "void *args[] = {&p, &n, &by}; kp.kernelParams = args;\n"
        "OK(cudaGraphExecKernelNodeSetParams(x, all[1], &kp));\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaMemcpy(h, q, 256, cudaMemcpyDefault));\n"
        "IS(h[0] == 5 && h[63] == 5 && called == 1);\n"
        "unsigned on = 7; OK(cudaGraphNodeGetEnabled(x, all[0], &on)); IS(on "
        "== "
        "1);\n"
        "OK(cudaGraphNodeSetEnabled(x, all[0], 0));\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaMemcpy(h, q, 256, cudaMemcpyDefault)); IS(h[5] == 10);\n"
        "OK(cudaGraphNodeSetEnabled(x, all[0], 1));\n"
        "IS(cudaGraphNodeSetEnabled(x, all[3], 0) == cudaErrorInvalidValue);\n"
        "cudaGetLastError();\n"
        "mp.value = 1; OK(cudaGraphExecMemsetNodeSetParams(x, all[0], &mp));\n"
        "hp.userData = &w; OK(cudaGraphExecHostNodeSetParams(x, all[3], "
        "&hp));\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaMemcpy(h, q, 256, cudaMemcpyDefault));\n"
        "IS(h[0] == 0x01010106 && called == 42);\n"
        "return bad; }\n");
}

/* A variable, a child, nodes of any kind. */
TEST_WITHIN(cuda_13_nodes_that_are_drawn, 120)
{
    nvcc_runs(
        "-w", HEAD
        "__device__ int word;\n"
        "int main() {\n"
        "int *q, h[64], n = 64, by = 5, w = 40; cudaStream_t s;\n"
        "cudaGraph_t in, two; cudaGraphExec_t x; cudaGraphNode_t k, m, c, o, "
        "y, all[9]; size_t count;\n"
        "OK(cudaMalloc(&q, 256)); OK(cudaMemset(q, 0, 256));\n"
        "OK(cudaStreamCreate(&s));\n"
        "OK(cudaGraphCreate(&in, 0)); OK(cudaGraphCreate(&two, 0));\n"
        "OK(cudaGraphAddMemcpyNodeToSymbol(&m, in, NULL, 0, word, &w, 4, 0, "
        "cudaMemcpyHostToDevice));\n"
        "OK(cudaGraphAddMemcpyNodeFromSymbol(&c, in, &m, 1, q, word, 4, 0, "
        "cudaMemcpyDeviceToDevice));\n"
        "OK(cudaGraphAddChildGraphNode(&k, two, NULL, 0, in));\n"
        "cudaGraphNodeParams any = {}; any.type = cudaGraphNodeTypeKernel;\n"
        "any.kernel.func = (void *)add; any.kernel.gridDim = dim3(1);\n"
        "any.kernel.blockDim = dim3(64); void *args2[] = {&q, &n, &by};\n"
        "any.kernel.kernelParams = args2;\n"
        "OK(cudaGraphAddNode(&o, two, &k, NULL, 1, &any));\n"
        "cudaGraphInstantiateParams ip = {};\n"
        "OK(cudaGraphInstantiateWithParams(&x, two, &ip));\n"
        "IS(ip.result_out == cudaGraphInstantiateSuccess);\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaMemcpy(h, q, 256, cudaMemcpyDefault)); IS(h[0] == 45);\n"
        /* the child's own graph, and a step in it */
        "cudaGraph_t own; count = 9; OK(cudaGraphChildGraphNodeGetGraph(k, "
        "&own));\n"
        "OK(cudaGraphGetNodes(own, all, &count)); IS(count == 2 && all[0] != "
        "m);\n"
        "OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(x, all[0], word, &by, 4, "
        "0, "
        "cudaMemcpyHostToDevice));\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaMemcpy(h, q, 4, cudaMemcpyDefault)); IS(h[0] == 10);\n"
        "any.type = cudaGraphNodeTypeConditional;\n"
        "IS(cudaGraphAddNode(&y, two, NULL, NULL, 0, &any) == "
        "cudaErrorNotSupported);\n"
        "cudaKernelNodeAttrValue v = {}; v.cooperative = 1;\n"
        "OK(cudaGraphKernelNodeSetAttribute(o, cudaLaunchAttributeCooperative, "
        "&v));\n"
        "v.cooperative = 0; OK(cudaGraphKernelNodeGetAttribute(o, "
        "cudaLaunchAttributeCooperative, &v)); IS(v.cooperative == 1);\n"
        "FILE *f = tmpfile(); char at[64]; sprintf(at, \"/proc/self/fd/%d\", "
        "fileno(f));\n"
        "OK(cudaGraphDebugDotPrint(two, at, 0));\n"
        "char dot[400] = {}; rewind(f); fread(dot, 1, 399, f);\n"
        "IS(strstr(dot, \"digraph\") && strstr(dot, \"\\\"node_0\\\" -> "
        "\\\"node_1\\\"\"));\n"
        "return bad; }\n");
}

/* Memory of a graph has one address, and is had again with each launch; what was captured
 * of cudaMallocAsync and cudaFreeAsync was freed twice with the second. */
TEST_WITHIN(cuda_13_memory_of_graphs, 120)
{
    nvcc_runs(
        "-w", HEAD
        "int main() {\n"
        "int *p, *q, h = 0; cudaStream_t s, t; cudaGraph_t g; cudaGraphExec_t "
        "x;\n"
        "cudaGraphNode_t a, b, c, f, all[9]; size_t n = 9; unsigned long long "
        "used;\n"
        "OK(cudaStreamCreate(&s)); OK(cudaStreamCreate(&t));\n"
        "OK(cudaMalloc(&q, 4));\n"
        "OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));\n"
        "OK(cudaMallocAsync(&p, 400, s)); OK(cudaMemsetAsync(p, 0, 400, s));\n"
        "add<<<1, 100, 0, s>>>(p, 100, 7);\n"
        "OK(cudaMemcpyAsync(q, p + 99, 4, cudaMemcpyDeviceToDevice, s));\n"
        "OK(cudaFreeAsync(p, s)); OK(cudaStreamEndCapture(s, &g));\n"
        "OK(cudaGraphGetNodes(g, all, &n)); IS(n == 5);\n"
        "cudaGraphNodeType type; OK(cudaGraphNodeGetType(all[0], &type));\n"
        "IS(type == cudaGraphNodeTypeMemAlloc);\n"
        "void *freed; OK(cudaGraphMemFreeNodeGetParams(all[4], &freed));\n"
        "IS(freed == p);\n"
        "OK(cudaGraphInstantiate(&x, g, 0));\n"
        "for (int k = 0; k < 3; k++) { OK(cudaGraphLaunch(x, s)); "
        "OK(cudaStreamSynchronize(s)); }\n"
        "OK(cudaMemcpy(&h, q, 4, cudaMemcpyDefault)); IS(h == 7);\n"
        "IS(cudaGraphClone(&g, g) == cudaErrorNotSupported);\n"
        "cudaGetLastError();\n"
        /* drawn, not freed: not twice, until the program frees it */
        "cudaMemAllocNodeParams ap = {}; ap.bytesize = 4;\n"
        "ap.poolProps.allocType = cudaMemAllocationTypePinned;\n"
        "ap.poolProps.location.type = cudaMemLocationTypeDevice;\n"
        "OK(cudaGraphCreate(&g, 0));\n"
        "OK(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &ap)); IS(ap.dptr);\n"
        "cudaMemsetParams mp = {}; mp.dst = ap.dptr; mp.elementSize = 4;\n"
        "mp.value = 9; mp.width = mp.height = 1;\n"
        "OK(cudaGraphAddMemsetNode(&b, g, &a, 1, &mp));\n"
        "OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, s));\n"
        "IS(cudaGraphLaunch(x, s) == cudaErrorInvalidValue); "
        "cudaGetLastError();\n"
        "OK(cudaMemcpyAsync(&h, ap.dptr, 4, cudaMemcpyDefault, s));\n"
        "OK(cudaStreamSynchronize(s)); IS(h == 9);\n"
        "OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, "
        "&used)); IS(used == 4);\n"
        "OK(cudaFreeAsync(ap.dptr, s)); OK(cudaGraphLaunch(x, s));\n"
        "OK(cudaFree(ap.dptr)); IS(cudaFree(ap.dptr) == "
        "cudaErrorInvalidValue);\n"
        "cudaGetLastError(); OK(cudaGraphLaunch(x, s));\n"
        "OK(cudaGraphExecDestroy(x));\n"
        "OK(cudaGraphInstantiate(&x, g, "
        "cudaGraphInstantiateFlagAutoFreeOnLaunch));\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaGraphLaunch(x, s));\n"
        "OK(cudaGraphAddMemFreeNode(&f, g, &b, 1, ap.dptr));\n"
        "IS(cudaGraphAddMemFreeNode(&c, g, &b, 1, ap.dptr) == "
        "cudaErrorInvalidValue);\n"
        "IS(cudaGraphAddMemFreeNode(&c, g, &b, 1, q) == "
        "cudaErrorInvalidValue);\n"
        "cudaGetLastError();\n"
        /* it outlives its graph */
        "OK(cudaGraphDestroy(g)); OK(cudaStreamSynchronize(s));\n"
        "OK(cudaGraphExecDestroy(x)); h = 0;\n"
        "OK(cudaMemcpy(&h, ap.dptr, 4, cudaMemcpyDefault)); IS(h == 9);\n"
        "OK(cudaFree(ap.dptr));\n"
        "return bad; }\n");
}

/* Events as nodes, and what a graph keeps alive. */
TEST_WITHIN(cuda_13_events_and_objects_of_graphs, 120)
{
    nvcc_runs(
        "-w", HEAD
        "#include <atomic>\n#include <unistd.h>\n"
        "static std::atomic<int> gone;\n"
        "static void end(void *p) { gone = *(int *)p; }\n"
        "static std::atomic<int> gate; static void wait(void *) { while "
        "(!gate) "
        "usleep(100); }\n"
        "int main() {\n"
        "int *p, *q, h = 0, six = 6; cudaStream_t s, t; cudaGraph_t g;\n"
        "cudaGraphExec_t x; cudaGraphNode_t a, r, w; cudaEvent_t e, f, got;\n"
        "OK(cudaStreamCreate(&s));\n"
        "OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));\n"
        "OK(cudaEventCreate(&e)); OK(cudaEventCreate(&f));\n"
        "OK(cudaMalloc(&p, 4)); OK(cudaMemset(p, 0, 4));\n"
        /* waits for f, fills, records e */
        "OK(cudaGraphCreate(&g, 0));\n"
        "OK(cudaGraphAddEventWaitNode(&w, g, NULL, 0, f));\n"
        "cudaMemsetParams mp = {}; mp.dst = p; mp.elementSize = 4;\n"
        "mp.value = 9; mp.width = mp.height = 1;\n"
        "OK(cudaGraphAddMemsetNode(&a, g, &w, 1, &mp));\n"
        "OK(cudaGraphAddEventRecordNode(&r, g, &a, 1, e));\n"
        "OK(cudaGraphEventRecordNodeGetEvent(r, &got)); IS(got == e);\n"
        "OK(cudaGraphInstantiate(&x, g, 0));\n"
        "OK(cudaLaunchHostFunc(t, wait, NULL)); OK(cudaEventRecord(f, t));\n"
        "OK(cudaGraphLaunch(x, s));\n"
        "IS(cudaEventQuery(e) == cudaErrorNotReady); "
        "IS(cudaStreamQuery(s) == cudaErrorNotReady);\n"
        "cudaGetLastError(); gate = 1; OK(cudaEventSynchronize(e));\n"
        "OK(cudaMemcpy(&h, p, 4, cudaMemcpyDefault)); IS(h == 9);\n"
        "OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s));\n"
        /* captured as such */
        "cudaGraph_t k; size_t n; cudaGraphNodeType type;\n"
        "OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));\n"
        "OK(cudaStreamWaitEvent(s, f, cudaEventWaitExternal));\n"
        "OK(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal));\n"
        "OK(cudaStreamEndCapture(s, &k)); cudaGraphNode_t two[2]; n = 2;\n"
        "OK(cudaGraphGetNodes(k, two, &n)); IS(n == 2);\n"
        "OK(cudaGraphNodeGetType(two[1], &type));\n"
        "IS(type == cudaGraphNodeTypeEventRecord);\n"
        /* the last of a graph and its executable lets go */
        "cudaUserObject_t o; OK(cudaUserObjectCreate(&o, &six, end, 1, "
        "cudaUserObjectNoDestructorSync));\n"
        "OK(cudaGraphRetainUserObject(g, o, 1, cudaGraphUserObjectMove));\n"
        "OK(cudaGraphExecDestroy(x)); OK(cudaGraphInstantiate(&x, g, 0));\n"
        "OK(cudaGraphDestroy(g)); OK(cudaDeviceSynchronize()); IS(gone == 0);\n"
        "OK(cudaGraphExecDestroy(x)); while (!gone) usleep(100);\n"
        "IS(gone == 6);\n"
        "return bad; }\n");
}

/* Every name that a program can ask libcudart.so.13 for, but for three that NVIDIA does
 * not describe: what is not there says so. */
TEST_WITHIN(cuda_13_has_every_name, 120)
{
    nvcc_runs(
        "-w", HEAD
        "#include <dlfcn.h>\n"
        "int main() {\n"
        "const char *none[] = {\"cudaImportExternalMemory\", "
        "\"cudaGraphicsMapResources\", \"cudaMallocMipmappedArray\", "
        "\"cudaMemPoolExportPointer\", \"cudaLogsCurrent\", "
        "\"cudaGraphConditionalHandleCreate\", \"cudaGetExportTable\"};\n"
        "for (int k = 0; k < 7; k++) {\n"
        "cudaError_t (*f)(void *, void *, void *, void *);\n"
        "*(void **)&f = dlsym(RTLD_DEFAULT, none[k]); IS(f);\n"
        "IS(f && f(0, 0, 0, 0) == cudaErrorNotSupported);\n"
        "IS(cudaGetLastError() == cudaErrorNotSupported); }\n"
        "cudaStream_t s, t; unsigned long long a, b, c; int device = 7;\n"
        "OK(cudaStreamCreate(&s)); OK(cudaStreamCreate(&t));\n"
        "OK(cudaStreamGetId(s, &a)); OK(cudaStreamGetId(t, &b));\n"
        "OK(cudaStreamGetId(0, &c)); IS(a != b && a != c && c == 1);\n"
        "OK(cudaStreamGetDevice(s, &device)); IS(device == 0);\n"
        "const char *name; size_t at, n;\n"
        "OK(cudaFuncGetName(&name, (void *)add)); IS(!strcmp(name, "
        "\"_Z3addPiii\"));\n"
        "OK(cudaFuncGetParamInfo((void *)add, 1, &at, &n));\n"
        "IS(at == 8 && n == 4);\n"
        "IS(cudaFuncGetParamInfo((void *)add, 3, &at, &n) == "
        "cudaErrorInvalidValue);\n"
        "cudaGetLastError();\n"
        /* rows of arrays go on in the next one */
        "cudaChannelFormatDesc d = cudaCreateChannelDesc<float>();\n"
        "cudaArray_t x, y; float in[12], out[12] = {};\n"
        "OK(cudaMallocArray(&x, &d, 4, 3)); OK(cudaMallocArray(&y, &d, 3, "
        "4));\n"
        "for (int k = 0; k < 12; k++) in[k] = k;\n"
        "OK(cudaMemcpy2DToArray(x, 0, 0, in, 16, 16, 3, "
        "cudaMemcpyHostToDevice));\n"
        "OK(cudaMemcpyArrayToArray(y, 0, 0, x, 0, 0, 48, "
        "cudaMemcpyDeviceToDevice));\n"
        "OK(cudaMemcpy2DFromArray(out, 12, y, 0, 0, 12, 4, "
        "cudaMemcpyDeviceToHost));\n"
        "IS(!memcmp(in, out, sizeof in));\n"
        "int *m, v[4], got; OK(cudaMallocManaged(&m, 4096));\n"
        "cudaMemLocation dev = {cudaMemLocationTypeDevice, 0};\n"
        "OK(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, dev));\n"
        "OK(cudaMemAdvise(m, 2048, cudaMemAdviseSetPreferredLocation, dev));\n"
        "OK(cudaMemPrefetchAsync(m, 4096, dev, 0));\n"
        "OK(cudaMemRangeGetAttribute(&got, 4, cudaMemRangeAttributeReadMostly, "
        "m, 100)); IS(got == 1);\n"
        "OK(cudaMemRangeGetAttribute(&got, 4, "
        "cudaMemRangeAttributePreferredLocation, m, 2048)); IS(got == 0);\n"
        "OK(cudaMemRangeGetAttribute(&got, 4, "
        "cudaMemRangeAttributePreferredLocation, m, 2049)); IS(got == -2);\n"
        "OK(cudaMemAdvise(m, 4096, cudaMemAdviseSetAccessedBy, dev));\n"
        "OK(cudaMemRangeGetAttribute(v, 16, cudaMemRangeAttributeAccessedBy, "
        "m, "
        "4096)); IS(v[0] == 0 && v[1] == -2 && v[3] == -2);\n"
        "int type; void *to[2] = {&got, &type}; size_t sizes[2] = {4, 4};\n"
        "cudaMemRangeAttribute ask[2] = "
        "{cudaMemRangeAttributeLastPrefetchLocation, "
        "cudaMemRangeAttributeLastPrefetchLocationType};\n"
        "OK(cudaMemRangeGetAttributes(to, sizes, ask, 2, m, 4096));\n"
        "IS(got == 0 && type == cudaMemLocationTypeDevice);\n"
        "cudaMemPool_t p, q; OK(cudaMemGetDefaultMemPool(&p, &dev, "
        "cudaMemAllocationTypePinned));\n"
        "OK(cudaDeviceGetDefaultMemPool(&q, 0)); IS(p == q);\n"
        "return bad; }\n");
}

TEST_WITHIN(cuda_13_copies_batches, 120)
{
    nvcc_runs(
        "-w", HEAD
        "int main() {\n"
        "int *p, h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, o[8] = {}; cudaStream_t s;\n"
        "OK(cudaMalloc(&p, 32)); OK(cudaStreamCreate(&s));\n"
        "void *to[2] = {p + 4, p}; const void *from[2] = {h, h + 4};\n"
        "size_t n[2] = {16, 16}, starts[1] = {0}; cudaMemcpyAttributes a = "
        "{};\n"
        "a.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;\n"
        "OK(cudaMemcpyBatchAsync(to, from, n, 2, &a, starts, 1, s));\n"
        "memset(h, 0, sizeof h);\n"
        "OK(cudaMemcpyAsync(o, p, 32, cudaMemcpyDefault, s));\n"
        "OK(cudaStreamSynchronize(s)); IS(o[0] == 5 && o[4] == 1 && o[7] == "
        "4);\n"
        "a.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;\n"
        "IS(cudaMemcpyBatchAsync(to, from, n, 2, &a, starts, 1, s) == "
        "cudaErrorInvalidValue);\n"
        "a.srcAccessOrder = cudaMemcpySrcAccessOrderStream;\n"
        "IS(cudaMemcpyBatchAsync(to, from, n, 2, &a, starts, 1, "
        "cudaStreamLegacy) == cudaErrorInvalidValue);\n"
        "cudaGetLastError();\n"
        /* the right half of two rows of four, to two rows close together */
        "int q[4] = {}; cudaMemcpy3DBatchOp b = {};\n"
        "b.src.type = b.dst.type = cudaMemcpyOperandTypePointer;\n"
        "b.src.op.ptr.ptr = p + 2; b.src.op.ptr.rowLength = 16;\n"
        "b.dst.op.ptr.ptr = q; b.extent = make_cudaExtent(8, 2, 1);\n"
        "b.srcAccessOrder = cudaMemcpySrcAccessOrderStream;\n"
        "OK(cudaMemcpy3DBatchAsync(1, &b, 0, s)); "
        "OK(cudaStreamSynchronize(s));\n"
        "IS(q[0] == 7 && q[1] == 8 && q[2] == 3 && q[3] == 4);\n"
        "cudaMemcpy3DPeerParms pp = {}; pp.srcPtr = make_cudaPitchedPtr(p, 16, "
        "4, "
        "2);\n"
        "pp.dstPtr = make_cudaPitchedPtr(q, 8, 2, 2);\n"
        "pp.extent = make_cudaExtent(8, 2, 1); OK(cudaMemcpy3DPeer(&pp));\n"
        "IS(q[0] == 5 && q[3] == 2); pp.srcDevice = 1;\n"
        "IS(cudaMemcpy3DPeer(&pp) == cudaErrorInvalidDevice);\n"
        "return bad; }\n");
}

/* Libraries of kernels, and the driver's functions as the version has them that was
 * asked for: of cuCtxCreate there was one of CUDA 3.2, whatever it was. */
TEST_WITHIN(cuda_13_libraries_and_entry_points, 120)
{
    nvcc_runs(
        "-w", HEAD
        "#include <cuda.h>\n#include <cudaTypedefs.h>\n"
        "static const char ptx[] = \".version 7.0\\n.target sm_70\\n"
        ".address_size 64\\n.visible .global .u32 count = 5;\\n"
        ".visible .entry up(.param .u64 p) { .reg .u64 a; .reg .u32 b;\\n"
        "ld.param.u64 a, [p]; ld.global.u32 b, [a]; add.u32 b, b, 3;\\n"
        "st.global.u32 [a], b; ret; }\\n.visible .entry none() { ret; }\\n\";\n"
        "int main() {\n"
        "cudaLibrary_t l; cudaKernel_t k, both[4]; unsigned n; void *at; "
        "size_t "
        "bytes; int v = 0;\n"
        "OK(cudaLibraryLoadData(&l, ptx, 0, 0, 0, 0, 0, 0));\n"
        "OK(cudaLibraryGetKernelCount(&n, l)); IS(n == 2);\n"
        "OK(cudaLibraryEnumerateKernels(both, 4, l));\n"
        "OK(cudaLibraryGetKernel(&k, l, \"up\"));\n"
        "IS(k == both[0] || k == both[1]);\n"
        "IS(cudaLibraryGetKernel(&k, l, \"down\") == "
        "cudaErrorSymbolNotFound);\n"
        "cudaGetLastError(); OK(cudaLibraryGetGlobal(&at, &bytes, l, "
        "\"count\"));\n"
        "IS(bytes == 4); void *args[] = {&at};\n"
        "OK(cudaLaunchKernel((void *)k, dim3(1), dim3(1), args, 0, 0));\n"
        "OK(cudaMemcpy(&v, at, 4, cudaMemcpyDefault)); IS(v == 8);\n"
        "OK(cudaGetKernel(&k, (void *)add));\n"
        "OK(cudaKernelSetAttributeForDevice(k, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, 65536, 0));\n"
        "OK(cudaLibraryUnload(l));\n"
        "cudaDriverEntryPointQueryResult r; void *f, *g; CUcontext ctx = 0, "
        "now;\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuCtxCreate\", &f, 13000, "
        "cudaEnableDefault, &r)); IS(r == cudaDriverEntryPointSuccess);\n"
        "CUctxCreateParams none = {};\n"
        "IS(((PFN_cuCtxCreate_v12050)f)(&ctx, &none, 0, 0) == CUDA_SUCCESS);\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuCtxCreate\", &g, 12000, "
        "cudaEnableDefault, &r)); IS(f != g);\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuCtxGetDevice\", &f, 13000, "
        "cudaEnableDefault, &r)); CUdevice d = 5;\n"
        "IS(((PFN_cuCtxGetDevice_v13000)f)(&d, ctx) == CUDA_SUCCESS && d == "
        "0);\n"
        "IS(((PFN_cuCtxGetDevice_v13000)f)(&d, (CUcontext)&d) == "
        "CUDA_ERROR_INVALID_CONTEXT);\n"
        "int *m; OK(cudaMallocManaged(&m, 64));\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuMemPrefetchAsync\", &f, "
        "12020, "
        "cudaEnableDefault, &r)); CUmemLocation host = "
        "{CU_MEM_LOCATION_TYPE_HOST};\n"
        "IS(((PFN_cuMemPrefetchAsync_v12020)f)((CUdeviceptr)m, 64, host, 0, 0) "
        "== CUDA_SUCCESS);\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuNothing\", &f, 13000, "
        "cudaEnableDefault, &r));\n"
        "IS(!f && r == cudaDriverEntryPointSymbolNotFound);\n"
        /* that of each thread's null stream is another one */
        "OK(cudaGetDriverEntryPointByVersion(\"cuStreamSynchronize\", &f, "
        "13000, cudaEnablePerThreadDefaultStream, &r));\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuStreamSynchronize\", &g, "
        "13000, cudaEnableDefault, &r)); IS(f && g && f != g);\n"
        "OK(cudaGetDriverEntryPointByVersion(\"cuDeviceGet\", &f, 13000, "
        "cudaEnablePerThreadDefaultStream, &r)); IS(f);\n"
        "return bad; }\n");
}

/* Of sm_90: what 128 bits hold is counted by all threads of several blocks. */
TEST_WITHIN(cuda_13_atomics_of_16_bytes, 120)
{
    nvcc_runs(
        "-w", HEAD
        "struct alignas(16) pair { unsigned long long a, b; };\n"
        "__global__ void count(unsigned __int128 *p) {\n"
        "unsigned __int128 old = *p, was;\n"
        "do { was = old; old = atomicCAS(p, was, was + "
        "((unsigned __int128)1 << 63) + 1); } while (old != was); }\n"
        "__global__ void put(pair *p, pair *o) { *o = atomicExch(p, "
        "pair{3, 4}); }\n"
        "int main() {\n"
        "unsigned __int128 *p; pair *q; OK(cudaMallocManaged(&p, 16));\n"
        "OK(cudaMallocManaged(&q, 16)); *p = 0;\n"
        "count<<<10, 64>>>(p); OK(cudaDeviceSynchronize());\n"
        "IS((unsigned long long)*p == 640 && (unsigned long long)(*p >> 64) "
        "== 320);\n"
        "put<<<1, 1>>>((pair *)p, q); OK(cudaDeviceSynchronize());\n"
        "IS(q->a == 640 && q->b == 320 && (unsigned long long)*p == 3);\n"
        "return bad; }\n");
}

/* Calls of the driver that no other test has: programs that were linked with them did
 * not start. */
TEST_WITHIN(cuda_13_driver_of_batches_and_clusters, 120)
{
    nvcc_runs(
        "-lcuda", HEAD
        "#include <cuda.h>\n"
        "#define DO(x) IS((x) == CUDA_SUCCESS)\nint main() {\n"
        "CUcontext ctx; CUdeviceptr p, q; CUgraph g; CUgraphNode a, c; "
        "CUgraphExec x; CUstream s; CUfunction f; int v[4] = {1, 2, 3, 4}, "
        "w[4] = {}, n = 0, by = 5, four = 4;\n"
        "DO(cuInit(0)); DO(cuDevicePrimaryCtxRetain(&ctx, 0)); "
        "DO(cuCtxSetCurrent(ctx)); DO(cuMemAlloc(&p, 16)); "
        "DO(cuMemAlloc(&q, 16)); DO(cuStreamCreate(&s, 0));\n"
        "OK(cudaGetFuncBySymbol((cudaFunction_t *)&f, (void *)add));\n"
        /* copies: of peers that are one, of a batch */
        "CUDA_MEMCPY3D_PEER m = {}; m.srcMemoryType = CU_MEMORYTYPE_HOST; "
        "m.srcHost = v; m.dstMemoryType = CU_MEMORYTYPE_DEVICE; m.dstDevice = "
        "p; m.srcContext = m.dstContext = ctx; m.WidthInBytes = 16; m.Height = "
        "m.Depth = 1;\n"
        "DO(cuMemcpy3DPeer(&m)); DO(cuMemcpy3DPeerAsync(&m, s));\n"
        "m.dstContext = nullptr; IS(cuMemcpy3DPeer(&m) == "
        "CUDA_ERROR_INVALID_CONTEXT);\n"
        "CUmemcpyAttributes how = {}; how.srcAccessOrder = "
        "CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; CUdeviceptr to[2] = {q, q + 8}, "
        "from[2] = {p + 8, p}; size_t sizes[2] = {8, 8}, first = 0;\n"
        "DO(cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, s)); "
        "DO(cuStreamSynchronize(s)); DO(cuMemcpyDtoH(w, q, 16)); IS(w[0] == 3 "
        "&& w[1] == 4 && w[2] == 1 && w[3] == 2);\n"
        /* nodes that change, in the graph and in what was made of it */
        "CUgraphNodeParams k = {}; k.type = CU_GRAPH_NODE_TYPE_KERNEL; void "
        "*args[] = {&p, &four, &by}; k.kernel.func = f; k.kernel.gridDimX = "
        "k.kernel.gridDimY = k.kernel.gridDimZ = k.kernel.blockDimY = "
        "k.kernel.blockDimZ = 1; k.kernel.blockDimX = 32; "
        "k.kernel.kernelParams = args;\n"
        "DO(cuGraphCreate(&g, 0)); DO(cuGraphAddNode(&a, g, 0, 0, 0, &k)); by "
        "= 10; DO(cuGraphNodeSetParams(a, &k));\n"
        "CUgraphNodeParams y = {}; y.type = CU_GRAPH_NODE_TYPE_MEMCPY; "
        "y.memcpy.copyCtx = ctx; y.memcpy.copyParams.srcMemoryType = "
        "CU_MEMORYTYPE_DEVICE; y.memcpy.copyParams.srcDevice = q; "
        "y.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_HOST; "
        "y.memcpy.copyParams.dstHost = w; y.memcpy.copyParams.WidthInBytes = "
        "16; y.memcpy.copyParams.Height = y.memcpy.copyParams.Depth = 1;\n"
        "DO(cuGraphAddNode(&c, g, &a, 0, 1, &y)); "
        "y.memcpy.copyParams.srcDevice = p; DO(cuGraphNodeSetParams(c, &y)); "
        "DO(cuGraphInstantiate(&x, g, 0)); DO(cuGraphLaunch(x, s)); "
        "DO(cuStreamSynchronize(s)); IS(w[0] == 11 && w[3] == 14);\n"
        "by = 100; DO(cuGraphExecNodeSetParams(x, a, &k)); "
        "DO(cuGraphLaunch(x, s)); DO(cuStreamSynchronize(s)); IS(w[0] == 111 "
        "&& w[3] == 114); IS(cuGraphExecNodeSetParams(x, a, &y) == "
        "CUDA_ERROR_INVALID_VALUE); IS(cuGraphNodeSetParams(a, nullptr) == "
        "CUDA_ERROR_INVALID_VALUE);\n"
        /* clusters */
        "CUlaunchConfig l = {}; l.gridDimX = 8; l.gridDimY = l.gridDimZ = "
        "l.blockDimY = l.blockDimZ = 1; l.blockDimX = 128; "
        "DO(cuOccupancyMaxActiveClusters(&n, f, &l)); int one = n; IS(n > "
        "1);\n"
        "CUlaunchAttribute at = {}; at.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_"
        "DIMENSION; at.value.clusterDim.x = 2; at.value.clusterDim.y = "
        "at.value.clusterDim.z = 1; l.attrs = &at; l.numAttrs = 1; "
        "DO(cuOccupancyMaxActiveClusters(&n, f, &l)); IS(n == one / 2); "
        "DO(cuOccupancyMaxPotentialClusterSize(&n, f, &l)); IS(n == 8);\n"
        "return bad; }\n");
}

/* The driver's graphs, pools and words, linked by -lcuda. */
TEST_WITHIN(cuda_13_driver_of_graphs_and_pools, 120)
{
    nvcc_runs(
        "-lcuda", HEAD
        "#include <cuda.h>\n#include <thread>\n#include <unistd.h>\n"
        "static const char ptx[] = \".version 7.0\\n.target sm_70\\n"
        ".address_size 64\\n.visible .entry up(.param .u64 p, .param .u32 n) "
        "{\\n"
        ".reg .u64 a; .reg .u32 b, c; ld.param.u64 a, [p]; ld.param.u32 c, [n];"
        "\\nld.global.u32 b, [a]; add.u32 b, b, c; st.global.u32 [a], b; ret; "
        "}\\n\";\n"
        "#define DO(x) IS((x) == CUDA_SUCCESS)\n"
        "int main() {\n"
        "CUcontext ctx; CUmodule mod; CUfunction f; CUdeviceptr p, q; CUgraph "
        "g;\n"
        "CUgraphNode a, b, c, list[9]; CUgraphExec x; CUstream s; int v = 0; "
        "unsigned n = 5; size_t k;\n"
        "DO(cuInit(0)); DO(cuDevicePrimaryCtxRetain(&ctx, 0)); "
        "DO(cuCtxSetCurrent(ctx));\n"
        "DO(cuModuleLoadData(&mod, ptx)); DO(cuModuleGetFunction(&f, mod, "
        "\"up\"));\n"
        "DO(cuModuleGetFunctionCount(&n, mod)); IS(n == 1);\n"
        "DO(cuMemAlloc(&p, 8)); DO(cuMemAlloc(&q, 8)); "
        "DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));\n"
        "DO(cuGraphCreate(&g, 0)); CUDA_MEMSET_NODE_PARAMS m = {};\n"
        "m.dst = p; m.elementSize = 4; m.value = 30; m.width = m.height = 1;\n"
        "DO(cuGraphAddMemsetNode(&a, g, 0, 0, &m, ctx)); n = 5;\n"
        "void *args[] = {&p, &n}; CUDA_KERNEL_NODE_PARAMS kp = {};\n"
        "kp.func = f; kp.gridDimX = kp.gridDimY = kp.gridDimZ = 1;\n"
        "kp.blockDimX = kp.blockDimY = kp.blockDimZ = 1; kp.kernelParams = "
        "args;\n"
        "DO(cuGraphAddKernelNode(&b, g, &a, 1, &kp)); CUDA_MEMCPY3D cp = {};\n"
        "cp.srcMemoryType = cp.dstMemoryType = CU_MEMORYTYPE_DEVICE;\n"
        "cp.srcDevice = p; cp.dstDevice = q; cp.WidthInBytes = 4;\n"
        "cp.Height = cp.Depth = 1; CUgraphNodeParams any = {};\n"
        "any.type = CU_GRAPH_NODE_TYPE_MEMCPY; any.memcpy.copyParams = cp;\n"
        "DO(cuGraphAddNode(&c, g, &b, NULL, 1, &any));\n"
        "k = 9; DO(cuGraphNodeGetDependencies(c, list, NULL, &k)); IS(k == 1 "
        "&& "
        "list[0] == b);\n"
        "DO(cuGraphInstantiate(&x, g, 0)); DO(cuGraphLaunch(x, s));\n"
        "DO(cuStreamSynchronize(s)); DO(cuMemcpyDtoH(&v, q, 4)); IS(v == 35);\n"
        "n = 7; CUDA_KERNEL_NODE_PARAMS was = {};\n"
        "DO(cuGraphKernelNodeGetParams(b, &was)); IS(was.blockDimX == 1 && "
        "*(unsigned *)was.kernelParams[1] == 5);\n"
        "DO(cuGraphExecKernelNodeSetParams(x, b, &kp)); DO(cuGraphLaunch(x, "
        "s));\n"
        "DO(cuStreamSynchronize(s)); DO(cuMemcpyDtoH(&v, q, 4)); IS(v == 37);\n"
        "CUgraphExecUpdateResultInfo info; DO(cuGraphExecUpdate(x, g, "
        "&info));\n"
        /* pools */
        "CUmemoryPool pool; CUmemPoolProps pp = {}; CUdeviceptr r; cuuint64_t "
        "used;\n"
        "pp.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;\n"
        "pp.location.type = CU_MEM_LOCATION_TYPE_DEVICE;\n"
        "DO(cuMemPoolCreate(&pool, &pp)); DO(cuMemAllocFromPoolAsync(&r, 64, "
        "pool, s));\n"
        "DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, "
        "&used)); IS(used == 64);\n"
        "DO(cuMemFreeAsync(r, s)); DO(cuMemPoolDestroy(pool));\n"
        /* a stream waits for a word, which the host writes */
        "int *w; OK(cudaMallocManaged(&w, 8)); w[0] = w[1] = 0;\n"
        "DO(cuStreamWaitValue32(s, (CUdeviceptr)w, 3, "
        "CU_STREAM_WAIT_VALUE_GEQ));"
        "\nDO(cuStreamWriteValue32(s, (CUdeviceptr)(w + 1), 8, 0));\n"
        "IS(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);\n"
        "*(volatile int *)w = 4; DO(cuStreamSynchronize(s)); IS(w[1] == 8);\n"
        "IS(cuStreamWaitValue32(s, (CUdeviceptr)w + 2, 3, 0) == "
        "CUDA_ERROR_INVALID_VALUE);\n"
        "CUtensorMap map; IS(cuTensorMapEncodeTiled(&map, "
        "CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, 0, 0, 0, 0, 0, "
        "CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, "
        "CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) "
        "== "
        "CUDA_ERROR_NOT_SUPPORTED);\n"
        "return bad; }\n");
}

/* A program with NVIDIA's runtime inside is told what to do; its own words are of a driver
 * that is too old. */
TEST_WITHIN(cuda_13_runtime_that_is_inside, 120)
{
    t_proc r;

    nvcc_makes("static", "-w",
               HEAD "int main() { int *p; return cudaMalloc(&p, 4); }\n", &r);
    ck_assert_int_eq(r.exit, cudaErrorNotSupported % 256);
    ck_assert_msg(strstr(r.err, "-cudart shared") != NULL, "%s", r.err);
}

/* What nvcc has linked from -rdc=true has lost its PTX, whatever -gencode says. */
TEST_WITHIN(cuda_13_kernels_that_nvcc_links, 120)
{
    t_proc r;

    nvcc_makes("shared", "-rdc=true",
               HEAD "int main() { add<<<1, 1>>>(NULL, 0, 0);\n"
                    "IS(cudaGetLastError() == "
                    "cudaErrorNoKernelImageForDevice);\nreturn bad; }\n",
               &r);
    ck_assert_msg(r.exit == 0, "%.1000s", r.out);
    ck_assert_msg(strstr(r.err, "without -rdc=true") != NULL, "%s", r.err);
}

/* NVRTC asks the driver for a table of its own, and does without: nothing is said. */
TEST_WITHIN(cuda_13_compiler_that_is_inside, 120)
{
    t_proc r;

    if (access("/usr/local/cuda/lib64/libnvrtc.so", R_OK))
        t_skip("no NVRTC");
    nvcc_makes("shared", "-lnvrtc",
               HEAD "#include <nvrtc.h>\nint main() { nvrtcProgram p;\n"
                    "IS(!nvrtcCreateProgram(&p, \"extern \\\"C\\\" __global__ "
                    "void k(int *p) { *p = 3; }\", 0, 0, 0, 0));\n"
                    "IS(!nvrtcCompileProgram(p, 0, 0)); return bad; }\n",
               &r);
    ck_assert_msg(r.exit == 0 && !r.n_err, "%.1000s%.1000s", r.out, r.err);
}

/* Counters in the shared memory of a whole cluster, which the launch makes. */
TEST_WITHIN(cuda_13_clusters_share_memory, 120)
{
    nvcc_runs(
        "-std=c++17", HEAD
        "#include <cooperative_groups.h>\n"
        "namespace cg = cooperative_groups;\n"
        "__global__ void hist(int *bins, int nbins, int per, const int *in,"
        " int n){ extern __shared__ int s[]; auto c = cg::this_cluster(); i"
        "nt r = c.block_rank(), size = c.num_blocks();\n"
        " for (int i = threadIdx.x; i < per; i += blockDim.x) s[i] = 0; c.s"
        "ync();\n"
        " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += g"
        "ridDim.x * blockDim.x){ int b = in[i] % nbins; int *to = c.map_sha"
        "red_rank(s, b / per); atomicAdd(to + b % per, 1);} c.sync();\n"
        " for (int i = threadIdx.x; i < per && r * per + i < nbins; i += bl"
        "ockDim.x) atomicAdd(bins + r * per + i, s[i]); }\n"
        "template <typename... A> cudaError_t go(void (*f)(A...), dim3 g, d"
        "im3 b, int sh, dim3 cl, A... a){ cudaLaunchConfig_t c = {}; cudaLa"
        "unchAttribute at[1]; c.gridDim = g; c.blockDim = b; c.dynamicSmemB"
        "ytes = sh; at[0].id = cudaLaunchAttributeClusterDimension; at[0].v"
        "al.clusterDim.x = cl.x; at[0].val.clusterDim.y = cl.y; at[0].val.c"
        "lusterDim.z = cl.z; c.attrs = at; c.numAttrs = 1; return cudaLaunc"
        "hKernelEx(&c, f, a...); }\n"
        "int main(){\n"
        " const int N = 20000, B = 200; int *in, *bins, *o; OK(cudaMallocMa"
        "naged(&in, N * 4)); OK(cudaMallocManaged(&bins, B * 4)); OK(cudaMa"
        "llocManaged(&o, 4096));\n"
        " int want[B] = {}; for (int i = 0; i < N; i++) { in[i] = i * 7919 "
        "% 1013; want[in[i] % B]++; }\n"
        " for (int cl : {1, 2, 4, 8}) for (int blk : {32, 96, 200}) { memse"
        "t(bins, 0, B * 4); int per = (B + cl - 1) / cl; OK(go(hist, dim3(1"
        "6), dim3(blk), per * 4, dim3(cl), bins, B, per, (const int *)in, N"
        ")); OK(cudaDeviceSynchronize()); IS(!memcmp(bins, want, sizeof wan"
        "t)); }\n"
        " int n = 0; cudaLaunchConfig_t c = {}; c.gridDim = dim3(8); c.bloc"
        "kDim = dim3(64); OK(cudaOccupancyMaxPotentialClusterSize(&n, (void"
        " *)hist, &c)); IS(n == 8);\n"
        " return bad; }\n");
}

/* Where a block is in its cluster; threads that leave; sizes that are none. */
TEST_WITHIN(cuda_13_clusters_have_places, 120)
{
    nvcc_runs(
        "-std=c++17", HEAD
        "#include <cooperative_groups.h>\n"
        "namespace cg = cooperative_groups;\n"
        "__global__ void __cluster_dims__(2,2,1) where(int *o){ auto c = cg"
        "::this_cluster(); dim3 b = c.block_index(), d = c.dim_blocks(); un"
        "signed x, y, nx, ny; asm(\"mov.u32 %0, %%clusterid.x;\" : \"=r\"(x"
        ")); asm(\"mov.u32 %0, %%clusterid.y;\" : \"=r\"(y)); asm(\"mov.u32"
        " %0, %%nclusterid.x;\" : \"=r\"(nx)); asm(\"mov.u32 %0, %%ncluster"
        "id.y;\" : \"=r\"(ny));\n"
        " __shared__ int v[64]; v[threadIdx.x] = c.block_rank() * 100 + thr"
        "eadIdx.x; c.sync(); int sum = 0; for (int r = 0; r < c.num_blocks("
        "); r++) sum += c.map_shared_rank(v, r)[threadIdx.x]; int q = c.que"
        "ry_shared_rank(c.map_shared_rank(v, 3)); c.sync();\n"
        " if (threadIdx.x == 5) { int *p = o + 8 * (blockIdx.y * gridDim.x "
        "+ blockIdx.x); p[0] = c.block_rank(); p[1] = b.x + 10 * b.y; p[2] "
        "= d.x + 10 * d.y; p[3] = x + 10 * y; p[4] = nx + 10 * ny; p[5] = s"
        "um; p[6] = q; } }\n"
        "__global__ void leaves(int *o){ auto c = cg::this_cluster(); if (t"
        "hreadIdx.x >= 40) return; if (c.block_rank() == 1 && threadIdx.x >"
        "= 8) return; c.sync(); o[blockIdx.x] = 1; }\n"
        "__global__ void gone(int *o){ __shared__ int s[4]; auto c = cg::th"
        "is_cluster(); s[0] = 1; if (c.block_rank() == 0) return; for (vola"
        "tile int k = 0; k < 100000; k++); *o = *c.map_shared_rank(s, 0); }\n"
        "template <typename... A> cudaError_t go(void (*f)(A...), dim3 g, d"
        "im3 b, int sh, dim3 cl, A... a){ cudaLaunchConfig_t c = {}; cudaLa"
        "unchAttribute at[1]; c.gridDim = g; c.blockDim = b; c.dynamicSmemB"
        "ytes = sh; at[0].id = cudaLaunchAttributeClusterDimension; at[0].v"
        "al.clusterDim.x = cl.x; at[0].val.clusterDim.y = cl.y; at[0].val.c"
        "lusterDim.z = cl.z; c.attrs = at; c.numAttrs = 1; return cudaLaunc"
        "hKernelEx(&c, f, a...); }\n"
        "int main(){\n"
        " int *o; OK(cudaMallocManaged(&o, 4096));\n"
        " where<<<dim3(4, 6), 64>>>(o); OK(cudaDeviceSynchronize());\n"
        " for (int y = 0; y < 6; y++) for (int x = 0; x < 4; x++) { int *p "
        "= o + 8 * (y * 4 + x); IS(p[0] == x % 2 + y % 2 * 2); IS(p[1] == x"
        " % 2 + y % 2 * 10); IS(p[2] == 22); IS(p[3] == x / 2 + y / 2 * 10)"
        "; IS(p[4] == 32); IS(p[5] == 600 + 20); IS(p[6] == 3); }\n"
        " memset(o, 0, 64); OK(go(leaves, dim3(8), dim3(64), 0, dim3(4), o)"
        "); OK(cudaDeviceSynchronize()); IS(o[0] == 1 && o[7] == 1);\n"
        " IS(go(leaves, dim3(8), dim3(64), 0, dim3(3), o) == cudaErrorInval"
        "idClusterSize); IS(go(leaves, dim3(16), dim3(64), 0, dim3(16), o) "
        "== cudaErrorInvalidClusterSize); cudaGetLastError();\n"
        " OK(cudaFuncSetAttribute((void *)leaves, cudaFuncAttributeNonPorta"
        "bleClusterSizeAllowed, 1)); OK(go(leaves, dim3(16), dim3(64), 0, d"
        "im3(16), o)); OK(cudaDeviceSynchronize());\n"
        " IS(go(where, dim3(4, 6), dim3(64), 0, dim3(4), o) == cudaErrorInv"
        "alidClusterSize); cudaGetLastError();\n"
        " OK(go(gone, dim3(2), dim3(1), 0, dim3(2), o)); IS(cudaDeviceSynch"
        "ronize() == cudaErrorIllegalAddress);\n"
        " return bad; }\n");
}
