/* cuda_runtime.h - the CUDA runtime for C++, and with clang the device's words.
 *
 * brasscc includes it before every .cu file, as nvcc does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_RUNTIME_H
#define BRASS_CUDA_RUNTIME_H
#define __CUDA_RUNTIME_H__ /* as programs ask for it */
#include "brass_push.h"

#include "cuda_runtime_api.h"
#include "vector_functions.h"

#ifdef __cplusplus
template <class T>
static inline cudaError_t
cudaMalloc(T **p, size_t bytes)
{
    return cudaMalloc((void **)(void *)p, bytes);
}
template <class T>
static inline cudaError_t
cudaMallocHost(T **p, size_t bytes, unsigned int flags = 0)
{
    return cudaHostAlloc((void **)(void *)p, bytes, flags);
}
template <class T>
static inline cudaError_t
cudaHostAlloc(T **p, size_t bytes, unsigned int flags)
{
    return cudaHostAlloc((void **)(void *)p, bytes, flags);
}
template <class T>
static inline cudaError_t
cudaHostGetDevicePointer(T **dev, void *host, unsigned int flags)
{
    return cudaHostGetDevicePointer((void **)(void *)dev, host, flags);
}
template <class T>
static inline cudaError_t
cudaMallocManaged(T **p, size_t bytes, unsigned int flags = cudaMemAttachGlobal)
{
    return cudaMallocManaged((void **)(void *)p, bytes, flags);
}
template <class T>
static inline cudaError_t
cudaMallocPitch(T **p, size_t *pitch, size_t width, size_t height)
{
    return cudaMallocPitch((void **)(void *)p, pitch, width, height);
}
template <class T>
static inline cudaError_t
cudaMallocAsync(T **p, size_t bytes, cudaStream_t s)
{
    return cudaMallocAsync((void **)(void *)p, bytes, s);
}
template <class T>
static inline cudaError_t
cudaMallocFromPoolAsync(T **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s)
{
    return cudaMallocFromPoolAsync((void **)(void *)p, bytes, pool, s);
}
template <class T>
static inline cudaError_t
cudaMallocAsync(T **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s)
{
    return cudaMallocFromPoolAsync(p, bytes, pool, s);
}
template <class T>
static inline cudaError_t
cudaMemcpyToSymbol(const T &symbol, const void *src, size_t n,
                   size_t offset = 0,
                   cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return cudaMemcpyToSymbol((const void *)&symbol, src, n, offset, kind);
}
template <class T>
static inline cudaError_t
cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t n, size_t offset = 0,
                     cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return cudaMemcpyFromSymbol(dst, (const void *)&symbol, n, offset, kind);
}
template <class T>
static inline cudaError_t
cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t n,
                        size_t offset = 0,
                        cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                        cudaStream_t s = 0)
{
    return cudaMemcpyToSymbolAsync((const void *)&symbol, src, n, offset, kind,
                                   s);
}
template <class T>
static inline cudaError_t
cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t n,
                          size_t offset = 0,
                          cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                          cudaStream_t s = 0)
{
    return cudaMemcpyFromSymbolAsync(dst, (const void *)&symbol, n, offset,
                                     kind, s);
}
template <class T>
static inline cudaError_t
cudaGetSymbolAddress(void **p, const T &symbol)
{
    return cudaGetSymbolAddress(p, (const void *)&symbol);
}
template <class T>
static inline cudaError_t
cudaGetSymbolSize(size_t *n, const T &symbol)
{
    return cudaGetSymbolSize(n, (const void *)&symbol);
}
static inline cudaError_t
cudaEventCreate(cudaEvent_t *e, unsigned int flags)
{
    return cudaEventCreateWithFlags(e, flags);
}
template <class T>
static inline cudaError_t
cudaLaunchKernel(T *fn, dim3 grid, dim3 block, void **args, size_t shared = 0,
                 cudaStream_t s = 0)
{
    return cudaLaunchKernel((const void *)fn, grid, block, args, shared, s);
}
template <class T>
static inline cudaError_t
cudaLaunchCooperativeKernel(T *fn, dim3 grid, dim3 block, void **args,
                            size_t shared = 0, cudaStream_t s = 0)
{
    return cudaLaunchCooperativeKernel((const void *)fn, grid, block, args,
                                       shared, s);
}
template <class... P, class... A>
static inline cudaError_t
cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*fn)(P...), A &&...a)
{
    return [&](P... p) { /* arguments become what the kernel's are */
                         void *args[sizeof...(P) + 1] = {(void *)&p...};
                         return cudaLaunchKernelExC(c, (const void *)fn, args);
    }(static_cast<A &&>(a)...);
}
template <class T>
static inline cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *a, T *fn)
{
    return cudaFuncGetAttributes(a, (const void *)fn);
}
template <class T>
static inline cudaError_t
cudaFuncSetAttribute(T *fn, cudaFuncAttribute attr, int value)
{
    return cudaFuncSetAttribute((const void *)fn, attr, value);
}
template <class T>
static inline cudaError_t
cudaFuncSetCacheConfig(T *fn, cudaFuncCache config)
{
    return cudaFuncSetCacheConfig((const void *)fn, config);
}
template <class T>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T fn, int block_size,
                                              size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, (const void *)fn, block_size, shared);
}
template <class T>
static inline cudaError_t
cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T fn, int blocks,
                                          int block_size)
{
    return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, (const void *)fn,
                                                     blocks, block_size);
}
template <class T>
static inline cudaError_t
cudaOccupancyMaxActiveClusters(int *clusters, T *fn,
                               const cudaLaunchConfig_t *config)
{
    return cudaOccupancyMaxActiveClusters(clusters, (const void *)fn, config);
}
template <class T>
static inline cudaError_t
cudaOccupancyMaxPotentialClusterSize(int *size, T *fn,
                                     const cudaLaunchConfig_t *config)
{
    return cudaOccupancyMaxPotentialClusterSize(size, (const void *)fn, config);
}
/* The largest block that the kernel can have; of blocks, as many as there are
 * processors. */
template <class F, class T>
static inline cudaError_t
cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *min_grid, int *block_size,
                                               T fn, F shared_of, int limit = 0)
{
    cudaFuncAttributes a;
    cudaError_t e = cudaFuncGetAttributes(&a, (const void *)fn);
    int most = a.maxThreadsPerBlock, best = 0, active = 0, sms = 0;

    if (e != cudaSuccess)
        return e;
    if (limit > 0 && limit < most)
        most = limit;
    for (int n = most; n > 0; n = n > 32 ? (n - 1) / 32 * 32 : 0) {
        int b;

        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &b, (const void *)fn, n, (size_t)shared_of(n));
        if (e != cudaSuccess)
            return e;
        if (b * n > active) {
            active = b * n;
            best = n;
        }
    }
    e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    *block_size = best;
    *min_grid = best ? active / best * sms : 0;
    return e;
}
template <class T>
static inline cudaError_t
cudaOccupancyMaxPotentialBlockSize(int *min_grid, int *block_size, T fn,
                                   size_t shared = 0, int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        min_grid, block_size, fn, [shared](int) { return shared; }, limit);
}
/* The forms of CUDA 12.2 and 13: where memory is to be is a place. */
static inline int
brass_place(cudaMemLocation at)
{
    return at.type == cudaMemLocationTypeDevice ? at.id : cudaCpuDeviceId;
}
static inline cudaError_t
cudaMemPrefetchAsync(const void *p, size_t n, cudaMemLocation at,
                     unsigned int flags, cudaStream_t s = 0)
{
    return flags ? cudaErrorInvalidValue
                 : cudaMemPrefetchAsync(p, n, brass_place(at), s);
}
static inline cudaError_t
cudaMemAdvise(const void *p, size_t n, cudaMemoryAdvise advice,
              cudaMemLocation at)
{
    return cudaMemAdvise(p, n, advice, brass_place(at));
}
#    define cudaMemPrefetchAsync_v2 cudaMemPrefetchAsync
#    define cudaMemAdvise_v2        cudaMemAdvise
/* The forms of CUDA 11. */
static inline cudaError_t
cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                    cudaGraphNode_t *node, cudaGraphExecUpdateResult *result)
{
    cudaGraphExecUpdateResultInfo info = {};
    cudaError_t e = cudaGraphExecUpdate(exec, graph, &info);

    if (node)
        *node = info.errorNode;
    if (result)
        *result = info.result;
    return e;
}
static inline cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                     cudaGraphNode_t *, char *, size_t)
{
    return cudaGraphInstantiateWithFlags(exec, graph, 0);
}
#endif

static inline struct cudaPitchedPtr
make_cudaPitchedPtr(void *p, size_t pitch, size_t xsize, size_t ysize)
{
    struct cudaPitchedPtr r = {p, pitch, xsize, ysize};
    return r;
}
static inline struct cudaExtent
make_cudaExtent(size_t width, size_t height, size_t depth)
{
    struct cudaExtent r = {width, height, depth};
    return r;
}
static inline struct cudaPos
make_cudaPos(size_t x, size_t y, size_t z)
{
    struct cudaPos r = {x, y, z};
    return r;
}

#ifdef __cplusplus
#    ifdef __CUDA__
#        include "brass_device.h"
#        include "brass_dpx.h"
#        include "brass_nv_atomic.h"
/* clang-format off */
/* What kernels may call of the runtime. */
#define BRASS_ERR_R(name, text) case name: return text;
#define BRASS_ERR_B(name, text) case name: return text;
#define BRASS_ERR_D(name, text)
static inline __device__ const char *
cudaGetErrorString(cudaError_t e)
{
    switch ((int)e) {
#define X(kind, name, driver, value, text) BRASS_ERR_##kind(name, text)
#include "brass_errors.def"
#undef X
    }
    return "unrecognized error code";
}
static inline __device__ const char *
cudaGetErrorName(cudaError_t e)
{
    switch ((int)e) {
#define X(kind, name, driver, value, text) BRASS_ERR_##kind(name, #name)
#include "brass_errors.def"
#undef X
    }
    return "unrecognized error code";
}
#undef BRASS_ERR_R
#undef BRASS_ERR_B
#undef BRASS_ERR_D
/* clang-format on */
#    endif
#    include "brass_texture.h"
#endif
#if defined(__cplusplus) && defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) && \
    !defined(__CUDA_ARCH__)
static const int brass_per_thread = (__brassPerThreadDefaultStream(), 0);
#endif

#include "brass_pop.h"
#endif
