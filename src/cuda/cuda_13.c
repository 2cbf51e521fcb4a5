/* cuda_13.c - what has the same name in CUDA 13 as in CUDA 12, and other arguments.
 *
 * A program that nvcc 13 linked asks for cudaGetDeviceProperties of libcudart.so.13, one
 * of nvcc 12 for that of libcudart.so.12. The linker knows which it was, so both are
 * here: those of the other files are CUDA 12's (exports.map), these carry the other
 * version. This file is in libbrasscuda.so alone.
 *
 * What brasscc links asks for no version and has CUDA 12's, as our headers do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

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

static bool
is_plain(const uint8_t *data, size_t edges)
{
    for (size_t k = 0; data && k < edges * EDGE_BYTES; k++)
        if (data[k])
            return false;
    return true;
}

static void
plain(uint8_t *data, const cudaGraphNode_t *listed, const size_t *n)
{
    if (data && listed)
        memset(data, 0, *n * EDGE_BYTES);
}

API cudaError_t br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                                 const cudaGraphNode_t *to, const uint8_t *data,
                                 size_t n);
OF_13(br_cuda_13_edges, cudaGraphAddDependencies);

cudaError_t
br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                 const cudaGraphNode_t *to, const uint8_t *data, size_t n)
{
    return is_plain(data, n) ? cudaGraphAddDependencies(graph, from, to, n)
                             : bc_end(cudaErrorNotSupported);
}

/* Only plain edges are there to be removed. */
API cudaError_t br_cuda_13_cut(cudaGraph_t graph, const cudaGraphNode_t *from,
                               const cudaGraphNode_t *to, const uint8_t *data,
                               size_t n);
OF_13(br_cuda_13_cut, cudaGraphRemoveDependencies);

cudaError_t
br_cuda_13_cut(cudaGraph_t graph, const cudaGraphNode_t *from,
               const cudaGraphNode_t *to, const uint8_t *data, size_t n)
{
    return is_plain(data, n) ? cudaGraphRemoveDependencies(graph, from, to, n)
                             : bc_end(cudaErrorInvalidValue);
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

    if (e == cudaSuccess)
        plain(data, from, n);
    return e;
}

API cudaError_t br_cuda_13_before(cudaGraphNode_t node, cudaGraphNode_t *deps,
                                  uint8_t *data, size_t *n);
OF_13(br_cuda_13_before, cudaGraphNodeGetDependencies);

cudaError_t
br_cuda_13_before(cudaGraphNode_t node, cudaGraphNode_t *deps, uint8_t *data,
                  size_t *n)
{
    cudaError_t e = cudaGraphNodeGetDependencies(node, deps, n);

    if (e == cudaSuccess)
        plain(data, deps, n);
    return e;
}

API cudaError_t br_cuda_13_behind(cudaGraphNode_t node, cudaGraphNode_t *deps,
                                  uint8_t *data, size_t *n);
OF_13(br_cuda_13_behind, cudaGraphNodeGetDependentNodes);

cudaError_t
br_cuda_13_behind(cudaGraphNode_t node, cudaGraphNode_t *deps, uint8_t *data,
                  size_t *n)
{
    cudaError_t e = cudaGraphNodeGetDependentNodes(node, deps, n);

    if (e == cudaSuccess)
        plain(data, deps, n);
    return e;
}

API cudaError_t br_cuda_13_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                const cudaGraphNode_t *deps,
                                const uint8_t *data, size_t n,
                                cudaGraphNodeParams *p);
OF_13(br_cuda_13_node, cudaGraphAddNode);

cudaError_t
br_cuda_13_node(cudaGraphNode_t *node, cudaGraph_t graph,
                const cudaGraphNode_t *deps, const uint8_t *data, size_t n,
                cudaGraphNodeParams *p)
{
    return is_plain(data, n) ? cudaGraphAddNode(node, graph, deps, n, p)
                             : bc_end(cudaErrorNotSupported);
}

/* ---- captures ------------------------------------------------------------- */

typedef const cudaGraphNode_t *nodes; /* a list of them */

API cudaError_t br_cuda_13_capture(cudaStream_t stream,
                                   cudaStreamCaptureStatus *status,
                                   unsigned long long *id, cudaGraph_t *graph,
                                   nodes *at, const uint8_t **data, size_t *n);
OF_13(br_cuda_13_capture, cudaStreamGetCaptureInfo);

/* Edges from so many nodes can be told of: all are plain. */
cudaError_t
br_cuda_13_capture(cudaStream_t stream, cudaStreamCaptureStatus *status,
                   unsigned long long *id, cudaGraph_t *graph, nodes *at,
                   const uint8_t **data, size_t *n)
{
    static const uint8_t zeros[1024 * EDGE_BYTES];
    size_t found = 0;
    cudaError_t e =
        cudaStreamGetCaptureInfo_v2(stream, status, id, graph, at, &found);

    if (e != cudaSuccess)
        return e;
    if (data && found > sizeof zeros / EDGE_BYTES)
        return bc_end(cudaErrorNotSupported);
    if (*status == cudaStreamCaptureStatusNone)
        return e;
    if (data)
        *data = zeros;
    if (n)
        *n = found;
    return e;
}

API cudaError_t br_cuda_13_own_capture(cudaStream_t stream,
                                       cudaStreamCaptureStatus *status,
                                       unsigned long long *id,
                                       cudaGraph_t *graph, nodes *at,
                                       const uint8_t **data, size_t *n);
OF_13(br_cuda_13_own_capture, cudaStreamGetCaptureInfo_ptsz);

cudaError_t
br_cuda_13_own_capture(cudaStream_t stream, cudaStreamCaptureStatus *status,
                       unsigned long long *id, cudaGraph_t *graph, nodes *at,
                       const uint8_t **data, size_t *n)
{
    AS_OWN(br_cuda_13_capture(stream, status, id, graph, at, data, n));
}

API cudaError_t br_cuda_13_after(cudaStream_t stream, cudaGraphNode_t *at,
                                 const uint8_t *data, size_t n, unsigned flags);
OF_13(br_cuda_13_after, cudaStreamUpdateCaptureDependencies);

cudaError_t
br_cuda_13_after(cudaStream_t stream, cudaGraphNode_t *at, const uint8_t *data,
                 size_t n, unsigned flags)
{
    return is_plain(data, n)
               ? cudaStreamUpdateCaptureDependencies(stream, at, n, flags)
               : bc_end(cudaErrorNotSupported);
}

API cudaError_t br_cuda_13_own_after(cudaStream_t stream, cudaGraphNode_t *at,
                                     const uint8_t *data, size_t n,
                                     unsigned flags);
OF_13(br_cuda_13_own_after, cudaStreamUpdateCaptureDependencies_ptsz);

cudaError_t
br_cuda_13_own_after(cudaStream_t stream, cudaGraphNode_t *at,
                     const uint8_t *data, size_t n, unsigned flags)
{
    AS_OWN(br_cuda_13_after(stream, at, data, n, flags));
}

/* Of CUDA 12.3 and later, in whose headers ours are not. */
API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream,
                                              cudaGraph_t graph, nodes at,
                                              const uint8_t *data, size_t n,
                                              cudaStreamCaptureMode mode);
cudaError_t
cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, nodes at,
                              const uint8_t *data, size_t n,
                              cudaStreamCaptureMode mode)
{
    BC_API(is_plain(data, n) ? bc_capture_into(stream, graph, at, n, mode)
                             : cudaErrorNotSupported);
}

API cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream,
                                                   cudaGraph_t graph, nodes at,
                                                   const uint8_t *data,
                                                   size_t n,
                                                   cudaStreamCaptureMode mode);
cudaError_t
cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                   nodes at, const uint8_t *data, size_t n,
                                   cudaStreamCaptureMode mode)
{
    AS_OWN(cudaStreamBeginCaptureToGraph(stream, graph, at, data, n, mode));
}
