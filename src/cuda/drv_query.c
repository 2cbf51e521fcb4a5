/* drv_query.c - the driver API: questions, hints, libraries, graphs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- device and context ------------------------------------------------- */

CUresult
cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    int n;
    CUresult e = cuDeviceGetCount(&n);

    if (e || device || !uuid)
        return e        ? e
               : device ? CUDA_ERROR_INVALID_DEVICE
                        : CUDA_ERROR_INVALID_VALUE;
    *uuid = bc_device()->uuid;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult
cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult e;

    BD_QUIET(e, cudaDeviceCanAccessPeer(can, device, peer));
    return e;
}

CUresult
cuDeviceGetPCIBusId(char *id, int n, CUdevice device)
{
    CUresult e;

    BD_QUIET(e, cudaDeviceGetPCIBusId(id, n, device));
    return e;
}

CUresult
cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    CUresult e;

    BD_QUIET(e, cudaDeviceGetByPCIBusId(device, id));
    return e;
}

CUresult
cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (device || !flags || !active)
        return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *flags = 0;
    *active = bd_begin() == CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

/* How the host waits is one way here. */
CUresult
cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    (void)flags;
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult
cuCtxGetFlags(unsigned int *flags)
{
    CUresult e = bd_begin();

    if (e || !flags)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    *flags = CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

CUresult
cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    CUcontext now = NULL;
    CUresult e = cuCtxGetCurrent(&now);

    if (e || !now || (ctx && ctx != now) || !version)
        return version ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult
cuCtxGetLimit(size_t *value, CUlimit limit)
{
    BD_API(bc_limit_get(value, (cudaLimit)limit));
}

CUresult
cuCtxSetLimit(CUlimit limit, size_t value)
{
    BD_API(bc_limit_set((cudaLimit)limit, value));
}

CUresult
cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BD_CALL(cudaDeviceGetStreamPriorityRange(least, greatest));
}

CUresult
cuCtxGetCacheConfig(CUfunc_cache *config)
{
    BD_CALL(cudaDeviceGetCacheConfig((cudaFuncCache *)config));
}

CUresult
cuCtxSetCacheConfig(CUfunc_cache config)
{
    BD_CALL(cudaDeviceSetCacheConfig((cudaFuncCache)config));
}

CUresult
cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    (void)peer, (void)flags;
    BD_API(cudaErrorPeerAccessUnsupported);
}

CUresult
cuCtxDisablePeerAccess(CUcontext peer)
{
    (void)peer;
    BD_API(cudaErrorPeerAccessNotEnabled);
}

CUresult
cuProfilerStart(void)
{
    BD_API(cudaSuccess);
}

CUresult
cuProfilerStop(void)
{
    BD_API(cudaSuccess);
}

/* ---- functions and libraries -------------------------------------------- */

static cudaError_t
known(CUfunction f)
{
    return bc_kernel_of(f, &f);
}

CUresult
cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    BD_API((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? cudaErrorInvalidValue
                                                         : known(f));
}

CUresult
cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
    BD_API((unsigned)config > 2 ? cudaErrorInvalidValue : known(f));
}

static cudaError_t
of_function(CUfunction f, CUmodule *mod, const char **name)
{
    cudaError_t e = bc_kernel_of(f, &f);

    if (e != cudaSuccess)
        return e;
    if (mod)
        *mod = (CUmodule)(void *)f->mod;
    if (name)
        *name = f->name;
    return mod || name ? cudaSuccess : cudaErrorInvalidValue;
}

CUresult
cuFuncGetModule(CUmodule *mod, CUfunction f)
{
    BD_API(of_function(f, mod, NULL));
}

CUresult
cuFuncGetName(const char **name, CUfunction f)
{
    BD_API(of_function(f, NULL, name));
}

/* A library is a module, a kernel of it a function. */
CUresult
cuLibraryLoadData(CUlibrary *library, const void *code, void *options,
                  void **values, unsigned int n, void *library_options,
                  void **library_values, unsigned int m)
{
    (void)options, (void)values, (void)n; /* hints for another compiler */
    (void)library_options, (void)library_values, (void)m;
    return cuModuleLoadData((CUmodule *)library, code);
}

CUresult
cuLibraryLoadFromFile(CUlibrary *library, const char *path, void *options,
                      void **values, unsigned int n, void *library_options,
                      void **library_values, unsigned int m)
{
    (void)options, (void)values, (void)n;
    (void)library_options, (void)library_values, (void)m;
    return cuModuleLoad((CUmodule *)library, path);
}

CUresult
cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload((CUmodule)library);
}

CUresult
cuLibraryGetModule(CUmodule *mod, CUlibrary library)
{
    if (!mod)
        return CUDA_ERROR_INVALID_VALUE;
    *mod = (CUmodule)library;
    return CUDA_SUCCESS;
}

CUresult
cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult
cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                   const char *name)
{
    return cuModuleGetGlobal_v2(p, bytes, (CUmodule)library, name);
}

CUresult
cuKernelGetFunction(CUfunction *f, CUkernel kernel)
{
    if (!f)
        return CUDA_ERROR_INVALID_VALUE;
    *f = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult
cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
                                                     int block, size_t shared,
                                                     unsigned int flags)
{
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block,
                                                       shared);
}

/* The largest block with which most threads are at work. */
CUresult
cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                 CUoccupancyB2DSize shared_of, size_t shared,
                                 int limit)
{
    int most = 0, best = 0, active = 0, sms = 0;
    CUresult e =
        cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);

    if (e || !grid || !block)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    if (limit > 0)
        most = BR_MIN(most, limit);
    for (int n = most; n > 0; n = n > 32 ? (n - 1) / 32 * 32 : 0) {
        int b;

        e = cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &b, f, n, shared_of ? shared_of(n) : shared);
        if (e)
            return e;
        if (b * n > active) {
            active = b * n;
            best = n;
        }
    }
    e = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    *block = best;
    *grid = best ? active / best * sms : 0;
    return e;
}

/* ---- memory ------------------------------------------------------------- */

CUresult
cuMemHostGetFlags(unsigned int *flags, void *p)
{
    BD_CALL(cudaHostGetFlags(flags, p));
}

CUresult
cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream s)
{
    BD_CALL(cudaMallocAsync((void **)p, bytes, s));
}

CUresult
cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    BD_CALL(cudaFreeAsync((void *)(uintptr_t)p, s));
}

CUresult
cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice device, CUstream s)
{
    BD_CALL(cudaMemPrefetchAsync((const void *)(uintptr_t)p, n, device, s));
}

CUresult
cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice device)
{
    BD_CALL(cudaMemAdvise((const void *)(uintptr_t)p, n,
                          (cudaMemoryAdvise)advice, device));
}

/* Of CUDA 12.2: places, as the runtime's of CUDA 13 have them. */
static cudaError_t
place(CUmemLocation at, CUdevice *device)
{
    switch (at.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: *device = at.id; return cudaSuccess;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        *device = CU_DEVICE_CPU;
        return cudaSuccess;
    case CU_MEM_LOCATION_TYPE_INVALID: break;
    }
    return cudaErrorInvalidValue;
}

CUresult
cuMemPrefetchAsync_v2(CUdeviceptr p, size_t n, CUmemLocation at,
                      unsigned int flags, CUstream s)
{
    CUdevice device;

    if (flags || place(at, &device))
        return CUDA_ERROR_INVALID_VALUE;
    return cuMemPrefetchAsync(p, n, device, s);
}

CUresult
cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation at)
{
    CUdevice device = 0;

    /* those that take something back need no place */
    if (place(at, &device) && (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                               advice == CU_MEM_ADVISE_SET_ACCESSED_BY))
        return CUDA_ERROR_INVALID_VALUE;
    return cuMemAdvise(p, n, advice, device);
}

static cudaError_t
pointer(void *value, CUpointer_attribute attr, CUdeviceptr p)
{
    const bc_mem *m = bc_mem_find((const void *)(uintptr_t)p);
    bool host;

    if (!value || !m)
        return cudaErrorInvalidValue;
    host = m->kind == BC_MEM_HOST || m->kind == BC_MEM_REGISTERED;
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return (cudaError_t)cuCtxGetCurrent(value);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)value =
            host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (attr == CU_POINTER_ATTRIBUTE_HOST_POINTER && !host &&
            m->kind != BC_MEM_MANAGED)
            return cudaErrorInvalidValue;
        *(CUdeviceptr *)value = p;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = m->kind == BC_MEM_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = m->addr;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = (size_t)m->bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)value = 1; break;
    default: return cudaErrorNotSupported;
    }
    return cudaSuccess;
}

CUresult
cuPointerGetAttribute(void *value, CUpointer_attribute attr, CUdeviceptr p)
{
    BD_API(pointer(value, attr, p));
}

/* ---- streams and graphs ------------------------------------------------- */

CUresult
cuStreamGetFlags(CUstream s, unsigned int *flags)
{
    BD_CALL(cudaStreamGetFlags(s, flags));
}

CUresult
cuStreamGetPriority(CUstream s, int *priority)
{
    BD_CALL(cudaStreamGetPriority(s, priority));
}

static cudaError_t
stream_context(CUstream s, CUcontext *ctx)
{
    if (!ctx)
        return cudaErrorInvalidValue;
    return bc_stream_of(s) ? (cudaError_t)cuCtxGetCurrent(ctx)
                           : cudaErrorInvalidResourceHandle;
}

CUresult
cuStreamGetCtx(CUstream s, CUcontext *ctx)
{
    BD_API(stream_context(s, ctx));
}

/* Parts of a device are not there, so it is of none. */
CUresult
cuStreamGetCtx_v2(CUstream s, CUcontext *ctx, CUgreenCtx *part)
{
    CUresult e = cuStreamGetCtx(s, ctx);

    if (!e && part)
        *part = NULL;
    return e;
}

CUresult
cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
    BD_CALL(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)mode));
}

CUresult
cuStreamEndCapture(CUstream s, CUgraph *graph)
{
    BD_CALL(cudaStreamEndCapture(s, graph));
}

CUresult
cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
    BD_CALL(cudaStreamIsCapturing(s, (cudaStreamCaptureStatus *)status));
}

CUresult
cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                            unsigned long long flags)
{
    BD_CALL(cudaGraphInstantiateWithFlags(exec, graph, flags));
}

CUresult
cuGraphLaunch(CUgraphExec exec, CUstream s)
{
    BD_CALL(cudaGraphLaunch(exec, s));
}

CUresult
cuGraphExecDestroy(CUgraphExec exec)
{
    BD_CALL(cudaGraphExecDestroy(exec));
}

CUresult
cuGraphDestroy(CUgraph graph)
{
    BD_CALL(cudaGraphDestroy(graph));
}

/* ---- entry points by name ----------------------------------------------- */

/* What has other arguments since a version of CUDA. */
static const struct {
    const char *name;
    int since;
    const char *end, *before;
} changed[] = {{"cuCtxCreate", 12050, "_v4", "_v2"},
               {"cuCtxGetDevice", 13000, "_v2", ""},
               {"cuCtxSynchronize", 13000, "_v2", ""},
               {"cuMemAdvise", 12020, "_v2", ""},
               {"cuMemPrefetchAsync", 12020, "_v2", ""},
               {"cuMemcpyBatchAsync", 13000, "_v2", ""}, /* "": not there */
               {"cuMemcpy3DBatchAsync", 13000, "_v2", ""},
               {"cuStreamGetCtx", 12050, "_v2", ""},
               {"cuStreamGetCaptureInfo", 12030, "_v3", "_v2"},
               {"cuStreamUpdateCaptureDependencies", 12030, "_v2", ""},
               {"cuGraphAddDependencies", 12030, "_v2", ""},
               {"cuGraphRemoveDependencies", 12030, "_v2", ""},
               {"cuGraphGetEdges", 12030, "_v2", ""},
               {"cuGraphNodeGetDependencies", 12030, "_v2", ""},
               {"cuGraphNodeGetDependentNodes", 12030, "_v2", ""},
               {"cuGraphAddNode", 12030, "_v2", ""},
               {"cuGraphAddKernelNode", 12000, "_v2", ""},
               {"cuGraphKernelNodeGetParams", 12000, "_v2", ""},
               {"cuGraphKernelNodeSetParams", 12000, "_v2", ""},
               {"cuGraphExecKernelNodeSetParams", 12000, "_v2", ""},
               /* the one of before CUDA 12 is not there */
               {"cuGraphExecUpdate", 12000, "_v2", "_v1"}};

/* own: the one whose null stream is each thread's own, where there is one. */
static void *
in_lib(void *lib, const char *name, const char *version, bool own)
{
    static const char *const ends[] = {"_ptsz", "_ptds", ""};
    char buf[100];
    void *p = NULL;

    for (size_t k = own ? 0 : 2; !p && k < BR_COUNT(ends); k++) {
        int n = snprintf(buf, sizeof buf, "%s%s%s", name, version, ends[k]);

        if (n > 0 && (size_t)n < sizeof buf)
            p = dlsym(lib, buf);
    }
    return p;
}

/* Of this library alone, the newest version first. */
static void *
find(const char *name, int version, bool own)
{
    const char *ends[] = {"_v3", "_v2", ""};
    Dl_info here;
    void *lib, *p = NULL;

    if (!dladdr((void *)(uintptr_t)&find, &here))
        return NULL;
    for (size_t k = 0; k < BR_COUNT(changed); k++)
        if (strcmp(changed[k].name, name) == 0)
            ends[0] = ends[1] = ends[2] = version >= changed[k].since
                                              ? changed[k].end
                                              : changed[k].before;
    lib = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t k = 0; lib && !p && k < BR_COUNT(ends); k++)
        p = in_lib(lib, name, ends[k], own);
    if (lib)
        dlclose(lib); /* it stays: this is it */
    return p;
}

CUresult
cuGetProcAddress_v2(const char *name, void **fn, int version,
                    unsigned long long flags, int *status)
{
    bool own = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

    if (!name || !fn)
        return CUDA_ERROR_INVALID_VALUE;
    *fn = strncmp(name, "cu", 2) == 0 ? find(name, version, own) : NULL;
    if (status)
        *status = *fn ? CU_GET_PROC_ADDRESS_SUCCESS
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult
cuGetProcAddress(const char *name, void **fn, int version,
                 unsigned long long flags)
{
    return cuGetProcAddress_v2(name, fn, version, flags, NULL);
}
