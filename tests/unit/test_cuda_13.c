/* test_cuda_13.c - programs that nvcc 13 linked ask libbrasscuda.so for names of
 * libcudart.so.13, some of which have other arguments than CUDA 12's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda.h"
#include "cuda/cuda_runtime_api.h"

#include <dlfcn.h>
#include <string.h>

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

/* What is behind a field of 8 bytes was 4 beside its place, or 4 bytes of another. */
TEST(cuda_13_properties_are_the_attributes)
{
    static const struct {
        int at;
        cudaDeviceAttr attr;
    } same[] = {
        {544, cudaDevAttrMaxSurfaceCubemapLayeredWidth},
        {552, cudaDevAttrSurfaceAlignment},
        {584, cudaDevAttrAsyncEngineCount},
        {588, cudaDevAttrUnifiedAddressing},
        {592, cudaDevAttrGlobalMemoryBusWidth},
        {604, cudaDevAttrMaxThreadsPerMultiProcessor},
        {608, cudaDevAttrStreamPrioritiesSupported},
        {624, cudaDevAttrMaxSharedMemoryPerMultiprocessor},
        {632, cudaDevAttrMaxRegistersPerMultiprocessor},
        {636, cudaDevAttrManagedMemory},
        {656, cudaDevAttrConcurrentManagedAccess},
        {664, cudaDevAttrCanUseHostPointerForRegisteredMem},
        {668, cudaDevAttrCooperativeLaunch},
        {672, cudaDevAttrMaxSharedMemoryPerBlockOptin},
        {720, cudaDevAttrMemoryPoolsSupported},
    };
    cudaError_t (*props)(void *, int);
    cudaError_t (*get)(int *, cudaDeviceAttr, int);
    unsigned char p[1008];
    int v, attribute;

    open_lib();
    *(void **)&props = in_13("cudaGetDeviceProperties");
    *(void **)&get = dlsym(lib, "cudaDeviceGetAttribute");
    ck_assert_int_eq(props(p, 0), cudaSuccess);
    for (size_t k = 0; k < BR_COUNT(same); k++) {
        memcpy(&v, p + same[k].at, 4);
        ck_assert_int_eq(get(&attribute, same[k].attr, 0), cudaSuccess);
        ck_assert_msg(v == attribute && v, "%zu: %d, not %d", k, v, attribute);
    }
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

/* By its names, or by that which a program asks for, the null stream of the driver is the
 * thread's own, so it may be captured; what has no stream has one name. */
TEST(cuda_13_null_stream_of_each_thread_of_the_driver)
{
    enum { OWN = 2 };
    CUresult (*address)(const char *, void **, int, uint64_t, int *);
    CUresult (*init)(unsigned), (*context)(CUcontext *, unsigned, CUdevice);
    CUresult (*begin)(CUstream, CUstreamCaptureMode);
    CUresult (*fill)(CUdeviceptr, unsigned, size_t, CUstream);
    CUresult (*end)(CUstream, CUgraph *);
    CUresult (*take)(CUdeviceptr *, size_t);
    void *own, *plain;
    CUcontext ctx;
    CUgraph graph;
    CUdeviceptr p;

    open_lib();
    *(void **)&address = dlsym(lib, "cuGetProcAddress_v2");
    *(void **)&init = dlsym(lib, "cuInit");
    *(void **)&context = dlsym(lib, "cuCtxCreate_v2");
    *(void **)&take = dlsym(lib, "cuMemAlloc_v2");
    *(void **)&begin = dlsym(lib, "cuStreamBeginCapture_v2");
    *(void **)&fill = dlsym(lib, "cuMemsetD32Async_ptsz");
    *(void **)&end = dlsym(lib, "cuStreamEndCapture_ptsz");
    ck_assert(fill && end);
    ck_assert_int_eq(init(0), CUDA_SUCCESS);
    ck_assert_int_eq(context(&ctx, 0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(take(&p, 400), CUDA_SUCCESS);
    ck_assert_int_ne(begin(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ck_assert_int_eq(
        address("cuStreamBeginCapture", (void **)&begin, 13000, OWN, NULL),
        CUDA_SUCCESS);
    ck_assert_int_eq(begin(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ck_assert_int_eq(fill(p, 5, 100, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(end(NULL, &graph), CUDA_SUCCESS);
    ck_assert_ptr_nonnull(graph);
    ck_assert_int_eq(address("cuMemcpyHtoD", &own, 13000, OWN, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(address("cuMemcpyHtoD", &plain, 13000, 0, NULL),
                     CUDA_SUCCESS);
    ck_assert_ptr_ne(own, plain);
    ck_assert_ptr_eq(own, dlsym(lib, "cuMemcpyHtoD_v2_ptds"));
    ck_assert_int_eq(address("cuGraphCreate", &own, 13000, OWN, NULL),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(own, dlsym(lib, "cuGraphCreate"));
}

/* The driver's of CUDA 13, and who says neither null stream means his own. */
TEST(cuda_13_driver_has_pools_of_places)
{
    CUresult (*pool_at)(void **, cudaMemLocation *, int);
    CUresult (*pool_to)(cudaMemLocation *, int, void *);
    CUresult (*drop)(void **, size_t *, size_t, unsigned long long, CUstream);
    CUresult (*first)(void **, int);
    CUresult (*alloc)(CUdeviceptr *, size_t, unsigned);
    CUresult (*init)(unsigned), (*retain)(CUcontext *, int);
    CUresult (*set)(CUcontext);
    CUresult (*find)(const char *, void **, int, unsigned long long, int *);
    cudaMemLocation at = {cudaMemLocationTypeDevice, 0};
    void *pool, *same, *fn;
    CUcontext ctx;
    size_t n = 64;
    CUdeviceptr p;

    open_lib();
    *(void **)&init = dlsym(lib, "cuInit");
    *(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
    *(void **)&set = dlsym(lib, "cuCtxSetCurrent");
    *(void **)&first = dlsym(lib, "cuDeviceGetDefaultMemPool");
    *(void **)&alloc = dlsym(lib, "cuMemAllocManaged");
    *(void **)&pool_at = dlsym(lib, "cuMemGetDefaultMemPool");
    *(void **)&pool_to = dlsym(lib, "cuMemSetMemPool");
    *(void **)&drop = dlsym(lib, "cuMemDiscardBatchAsync_ptsz");
    *(void **)&find = dlsym(lib, "cuGetProcAddress_v2_ptsz");
    ck_assert(pool_at && pool_to && drop && find);
    ck_assert_int_eq(init(0), CUDA_SUCCESS);
    ck_assert_int_eq(retain(&ctx, 0), CUDA_SUCCESS);
    ck_assert_int_eq(set(ctx), CUDA_SUCCESS);
    ck_assert_int_eq(first(&pool, 0), CUDA_SUCCESS);
    ck_assert_int_eq(pool_at(&same, &at, cudaMemAllocationTypePinned),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(pool, same);
    ck_assert_int_eq(pool_to(&at, cudaMemAllocationTypePinned, pool),
                     CUDA_SUCCESS);
    ck_assert_int_eq(alloc(&p, 64, 1), CUDA_SUCCESS);
    ck_assert_int_eq(drop((void *[]){(void *)(uintptr_t)p}, &n, 1, 0, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(find("cuMemcpyHtoD", &fn, 13000, 0, NULL), CUDA_SUCCESS);
    ck_assert_ptr_eq(fn, dlsym(lib, "cuMemcpyHtoD_v2_ptds"));
    ck_assert_int_eq(find("cuMemcpyHtoD", &fn, 13000, 1, NULL), CUDA_SUCCESS);
    ck_assert_ptr_eq(fn, dlsym(lib, "cuMemcpyHtoD_v2"));
}
