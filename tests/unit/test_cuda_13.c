/* test_cuda_13.c - programs that nvcc 13 linked ask libbrasscuda.so for names of
 * libcudart.so.13, some of which have other arguments than CUDA 12's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda_runtime_api.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void *lib;

static void *
in_13(const char *name)
{
    void *fn = dlvsym(lib, name, "libcudart.so.13");

    ck_assert_msg(fn != NULL, "%s: %s", name, dlerror());
    return fn;
}

static void
open_lib(void)
{
    const char *at = t_repo(t_printf("build/%s/libbrasscuda.so", t_conf()));

    if (t_sanitized())
        t_skip("the library is not loaded beside a sanitizer's");
    lib = dlopen(at, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
}

/* Places of the fields as nvcc 13's header has them. */
TEST(cuda_13_has_properties_of_its_own)
{
    cudaError_t (*props)(void *, int);
    cudaError_t (*version)(int *);
    unsigned char p[1008 + 8];
    int v, mps, attribute;
    cudaError_t (*get)(int *, cudaDeviceAttr, int);

    open_lib();
    *(void **)&props = in_13("cudaGetDeviceProperties");
    *(void **)&version = in_13("cudaRuntimeGetVersion");
    *(void **)&get = dlsym(lib, "cudaDeviceGetAttribute");
    memset(p, 0xa5, sizeof p);
    ck_assert_int_eq(props(p, 0), cudaSuccess);
    ck_assert_int_eq(props(p, 1), cudaErrorInvalidDevice);
    ck_assert_int_eq(props(NULL, 0), cudaErrorInvalidValue);
    memcpy(&v, p + 308, 4); /* warpSize */
    ck_assert_int_eq(v, 32);
    memcpy(&mps, p + 384, 4);
    ck_assert_int_eq(get(&attribute, cudaDevAttrMultiProcessorCount, 0),
                     cudaSuccess);
    ck_assert_int_eq(mps, attribute);
    memcpy(&v, p + 752, 4); /* unifiedFunctionPointers */
    ck_assert_int_eq(v, 1);
    ck_assert_int_eq(p[1007], 0);
    ck_assert_int_eq(p[1008], 0xa5);
    ck_assert_int_eq(version(&v), cudaSuccess);
    ck_assert_int_eq(v, 13000);
    *(void **)&version = dlsym(lib, "cudaRuntimeGetVersion");
    ck_assert_int_eq(version(&v), cudaSuccess);
    ck_assert_int_eq(v, 12000);
}

TEST(cuda_13_takes_places_of_memory)
{
    cudaError_t (*prefetch)(const void *, size_t, cudaMemLocation, unsigned,
                            cudaStream_t);
    cudaError_t (*advise)(const void *, size_t, cudaMemoryAdvise,
                          cudaMemLocation);
    cudaError_t (*get)(void **, size_t, unsigned);
    const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    const cudaMemLocation other = {cudaMemLocationTypeDevice, 7};
    void *p;

    open_lib();
    *(void **)&prefetch = in_13("cudaMemPrefetchAsync");
    *(void **)&advise = in_13("cudaMemAdvise");
    *(void **)&get = dlsym(lib, "cudaMallocManaged");
    ck_assert_int_eq(get(&p, 4096, cudaMemAttachGlobal), cudaSuccess);
    ck_assert_int_eq(prefetch(p, 4096, device, 0, NULL), cudaSuccess);
    ck_assert_int_eq(prefetch(p, 4096, host, 0, NULL), cudaSuccess);
    ck_assert_int_eq(prefetch(p, 4096, other, 0, NULL), cudaErrorInvalidDevice);
    ck_assert_int_eq(prefetch(p, 4096, device, 1, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(advise(p, 4096, cudaMemAdviseSetReadMostly, device),
                     cudaSuccess);
    ck_assert_int_eq(advise(p, 4096, cudaMemAdviseSetReadMostly, other),
                     cudaErrorInvalidDevice);
}

/* The number of edges is another argument: it was taken for 0, in silence. */
TEST(cuda_13_draws_edges_of_graphs)
{
    cudaError_t (*edges)(cudaGraph_t, const cudaGraphNode_t *,
                         const cudaGraphNode_t *, const void *, size_t);
    cudaError_t (*list)(cudaGraph_t, cudaGraphNode_t *, cudaGraphNode_t *,
                        void *, size_t *);
    cudaError_t (*create)(cudaGraph_t *, unsigned);
    cudaError_t (*empty)(cudaGraphNode_t *, cudaGraph_t,
                         const cudaGraphNode_t *, size_t);
    cudaError_t (*capture)(cudaStream_t, cudaStreamCaptureStatus *,
                           unsigned long long *, void *, void *, void *,
                           size_t *);
    cudaGraphNode_t a, b, from, to;
    unsigned char data[8] = {1};
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    cudaGraph_t g;
    size_t n = 0;

    open_lib();
    *(void **)&edges = in_13("cudaGraphAddDependencies");
    *(void **)&list = in_13("cudaGraphGetEdges");
    *(void **)&capture = in_13("cudaStreamGetCaptureInfo");
    *(void **)&create = dlsym(lib, "cudaGraphCreate");
    *(void **)&empty = dlsym(lib, "cudaGraphAddEmptyNode");
    ck_assert_int_eq(create(&g, 0), cudaSuccess);
    ck_assert_int_eq(empty(&a, g, NULL, 0), cudaSuccess);
    ck_assert_int_eq(empty(&b, g, NULL, 0), cudaSuccess);
    ck_assert_int_eq(edges(g, &a, &b, data, 1), cudaErrorNotSupported);
    ck_assert_int_eq(edges(g, &a, &b, NULL, 1), cudaSuccess);
    ck_assert_int_eq(list(g, NULL, NULL, NULL, &n), cudaSuccess);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(list(g, &from, &to, data, &n), cudaSuccess);
    ck_assert(n == 1 && from == a && to == b && data[0] == 0);
    ck_assert_int_eq(capture(NULL, &status, NULL, &g, NULL, NULL, &n),
                     cudaSuccess);
    ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
}

/* ---- programs that nvcc linked ------------------------------------------- */

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
nvcc_runs(const char *flag, const char *source)
{
    const char *nvcc =
        t_have_program("nvcc") ? "nvcc" : "/usr/local/cuda/bin/nvcc";
    const char *dir = t_tmpdir(), *cu = t_printf("%s/p.cu", dir);
    const char *lib_at = t_repo(t_printf("build/%s/libbrasscuda.so", t_conf()));
    t_proc r;

    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    t_exec(&r, (const char *[]){nvcc, "--version", NULL}, NULL, 0);
    if (r.exit || !strstr(r.out, "release 13."))
        t_skip("no nvcc 13");
    t_write(cu, source, strlen(source));
    t_exec(&r,
           (const char *[]){nvcc, "-w", "-cudart", "shared", "-gencode",
                            "arch=compute_90,code=compute_90", flag, cu, "-o",
                            t_printf("%s/p", dir), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    ck_assert_int_eq(symlink(lib_at, t_printf("%s/libcudart.so.13", dir)), 0);
    t_exec(&r,
           (const char *[]){"env", t_printf("LD_LIBRARY_PATH=%s", dir),
                            t_printf("%s/p", dir), NULL},
           NULL, 0);
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
        "IS(cudaStreamIsCapturing(cudaStreamLegacy, &st) == cudaSuccess && "
        "st == 0);\n"
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
