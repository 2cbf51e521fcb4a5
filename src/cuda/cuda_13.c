/* cuda_13.c - what has the same name in CUDA 13 as in CUDA 12, and other arguments.
 *
 * A program that nvcc 13 linked asks for cudaGetDeviceProperties of libcudart.so.13, one
 * of nvcc 12 for that of libcudart.so.12. The linker knows which it was, so both are
 * here: those of the other files are CUDA 12's (exports.map), these carry the other
 * version. This file is in libbrasscuda.so alone.
 *
 * What brasscc links asks for no version and has CUDA 12's, as our headers do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#include <string.h>

#define API            __attribute__((visibility("default")))
#define OF_13(fn, its) __asm__(".symver " #fn "," #its "@libcudart.so.13")

/* The null stream is the thread's own, as in rt_per_thread.c. */
#define AS_OWN(call)                   \
    do {                               \
        const bool was_ = bc_own_null; \
        cudaError_t e_;                \
                                       \
        bc_own_null = true;            \
        e_ = (call);                   \
        bc_own_null = was_;            \
        return e_;                     \
    } while (0)

/* ---- properties --------------------------------------------------------- */

/* Runs of fields that stayed: first and last. Between them some went, behind the last
 * are new ones. */
#define RUNS(X)                                  \
    X(name, maxGridSize)                         \
    X(totalConstMem, texturePitchAlignment)      \
    X(multiProcessorCount, multiProcessorCount)  \
    X(integrated, canMapHostMemory)              \
    X(maxTexture1D, maxTexture1DMipmap)          \
    X(maxTexture2D, unifiedAddressing)           \
    X(memoryBusWidth, hostNativeAtomicSupported) \
    X(pageableMemoryAccess, cooperativeLaunch)   \
    X(sharedMemPerBlockOptin, unifiedFunctionPointers)

enum { BYTES_13 = 1008 }; /* of its cudaDeviceProp */

API cudaError_t br_cuda_13_props(void *prop, int device);
OF_13(br_cuda_13_props, cudaGetDeviceProperties);

cudaError_t
br_cuda_13_props(void *prop, int device)
{
    static const struct {
        size_t first, end, align;
    } runs[] = {
#define X(a, b)                                                    \
    {offsetof(cudaDeviceProp, a),                                  \
     offsetof(cudaDeviceProp, b) + sizeof((cudaDeviceProp *)0)->b, \
     _Alignof(__typeof__(((cudaDeviceProp *)0)->a))},
        RUNS(X)
#undef X
    };
    uint8_t *to = prop;
    size_t at = 0;

    if (!prop || device)
        return bc_end(prop ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    memset(to, 0, BYTES_13);
    for (size_t k = 0; k < BR_COUNT(runs); k++) {
        const size_t n = runs[k].end - runs[k].first;

        at = (at + runs[k].align - 1) & ~(runs[k].align - 1);
        memcpy(to + at, (const uint8_t *)bc_device() + runs[k].first, n);
        at += n;
    }
    return cudaSuccess;
}

API cudaError_t br_cuda_13_version(int *version);
OF_13(br_cuda_13_version, cudaRuntimeGetVersion);
OF_13(br_cuda_13_version, cudaDriverGetVersion);

cudaError_t
br_cuda_13_version(int *version)
{
    if (version)
        *version = 13000;
    return bc_end(version ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- memory ------------------------------------------------------------- */

/* The host, or one of its nodes, is one place. */
static int
place(cudaMemLocation at)
{
    return at.type == cudaMemLocationTypeDevice ? at.id : cudaCpuDeviceId;
}

API cudaError_t br_cuda_13_prefetch(const void *p, size_t n, cudaMemLocation at,
                                    unsigned flags, cudaStream_t stream);
OF_13(br_cuda_13_prefetch, cudaMemPrefetchAsync);

cudaError_t
br_cuda_13_prefetch(const void *p, size_t n, cudaMemLocation at, unsigned flags,
                    cudaStream_t stream)
{
    return flags ? bc_end(cudaErrorInvalidValue)
                 : cudaMemPrefetchAsync(p, n, place(at), stream);
}

API cudaError_t br_cuda_13_own_prefetch(const void *p, size_t n,
                                        cudaMemLocation at, unsigned flags,
                                        cudaStream_t stream);
OF_13(br_cuda_13_own_prefetch, cudaMemPrefetchAsync_ptsz);

cudaError_t
br_cuda_13_own_prefetch(const void *p, size_t n, cudaMemLocation at,
                        unsigned flags, cudaStream_t stream)
{
    AS_OWN(br_cuda_13_prefetch(p, n, at, flags, stream));
}

API cudaError_t br_cuda_13_advise(const void *p, size_t n,
                                  cudaMemoryAdvise advice, cudaMemLocation at);
OF_13(br_cuda_13_advise, cudaMemAdvise);

cudaError_t
br_cuda_13_advise(const void *p, size_t n, cudaMemoryAdvise advice,
                  cudaMemLocation at)
{
    return cudaMemAdvise(p, n, advice, place(at));
}

/* ---- graphs: edges may say more about themselves ------------------------ */

/* cudaGraphEdgeData: two ports, a type and room. What is not zero asks for a launch
 * before the other kernel's end. */
enum { EDGE_BYTES = 8 };

API cudaError_t br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                                 const cudaGraphNode_t *to, const uint8_t *data,
                                 size_t n);
OF_13(br_cuda_13_edges, cudaGraphAddDependencies);

cudaError_t
br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                 const cudaGraphNode_t *to, const uint8_t *data, size_t n)
{
    for (size_t k = 0; data && k < n * EDGE_BYTES; k++)
        if (data[k])
            return bc_end(cudaErrorNotSupported);
    return cudaGraphAddDependencies(graph, from, to, n);
}

API cudaError_t br_cuda_13_get_edges(cudaGraph_t graph, cudaGraphNode_t *from,
                                     cudaGraphNode_t *to, uint8_t *data,
                                     size_t *n);
OF_13(br_cuda_13_get_edges, cudaGraphGetEdges);

cudaError_t
br_cuda_13_get_edges(cudaGraph_t graph, cudaGraphNode_t *from,
                     cudaGraphNode_t *to, uint8_t *data, size_t *n)
{
    cudaError_t e = cudaGraphGetEdges(graph, from, to, n);

    if (e == cudaSuccess && data && from)
        memset(data, 0, *n * EDGE_BYTES);
    return e;
}

API cudaError_t br_cuda_13_capture(cudaStream_t stream,
                                   cudaStreamCaptureStatus *status,
                                   unsigned long long *id, void *graph,
                                   void *nodes, void *data, size_t *n);
OF_13(br_cuda_13_capture, cudaStreamGetCaptureInfo);

cudaError_t
br_cuda_13_capture(cudaStream_t stream, cudaStreamCaptureStatus *status,
                   unsigned long long *id, void *graph, void *nodes, void *data,
                   size_t *n)
{
    cudaError_t e = cudaStreamGetCaptureInfo(stream, status, id);

    if (e == cudaSuccess && *status == cudaStreamCaptureStatusActive &&
        (graph || nodes || data || n))
        return bc_end(cudaErrorNotSupported);
    return e;
}

API cudaError_t br_cuda_13_own_capture(cudaStream_t stream,
                                       cudaStreamCaptureStatus *status,
                                       unsigned long long *id, void *graph,
                                       void *nodes, void *data, size_t *n);
OF_13(br_cuda_13_own_capture, cudaStreamGetCaptureInfo_ptsz);

cudaError_t
br_cuda_13_own_capture(cudaStream_t stream, cudaStreamCaptureStatus *status,
                       unsigned long long *id, void *graph, void *nodes,
                       void *data, size_t *n)
{
    AS_OWN(br_cuda_13_capture(stream, status, id, graph, nodes, data, n));
}
