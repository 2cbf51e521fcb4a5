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
#include "cuda/drv_int.h"

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
 * are new ones. What is wider than those before it begins a run of its own, as the gap
 * in front of it need not be CUDA 12's. */
#define RUNS(X)                                              \
    X(name, maxGridSize)                                     \
    X(totalConstMem, texturePitchAlignment)                  \
    X(multiProcessorCount, multiProcessorCount)              \
    X(integrated, canMapHostMemory)                          \
    X(maxTexture1D, maxTexture1DMipmap)                      \
    X(maxTexture2D, maxSurfaceCubemapLayered)                \
    X(surfaceAlignment, unifiedAddressing)                   \
    X(memoryBusWidth, localL1CacheSupported)                 \
    X(sharedMemPerMultiprocessor, hostNativeAtomicSupported) \
    X(pageableMemoryAccess, cooperativeLaunch)               \
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

/* ---- pools by place: the device's alone ----------------------------------- */

static cudaError_t
pool_place(const cudaMemLocation *at, cudaMemAllocationType type)
{
    if (!at || type != cudaMemAllocationTypePinned)
        return at ? cudaErrorNotSupported : cudaErrorInvalidValue;
    return at->type != cudaMemLocationTypeDevice ? cudaErrorNotSupported
           : at->id                              ? cudaErrorInvalidDevice
                                                 : cudaSuccess;
}

API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool,
                                         cudaMemLocation *at,
                                         cudaMemAllocationType type);
cudaError_t
cudaMemGetDefaultMemPool(cudaMemPool_t *pool, cudaMemLocation *at,
                         cudaMemAllocationType type)
{
    cudaError_t e = pool_place(at, type);

    return e == cudaSuccess ? cudaDeviceGetDefaultMemPool(pool, 0) : bc_end(e);
}

API cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, cudaMemLocation *at,
                                  cudaMemAllocationType type);
cudaError_t
cudaMemGetMemPool(cudaMemPool_t *pool, cudaMemLocation *at,
                  cudaMemAllocationType type)
{
    cudaError_t e = pool_place(at, type);

    return e == cudaSuccess ? cudaDeviceGetMemPool(pool, 0) : bc_end(e);
}

API cudaError_t cudaMemSetMemPool(cudaMemLocation *at,
                                  cudaMemAllocationType type,
                                  cudaMemPool_t pool);
cudaError_t
cudaMemSetMemPool(cudaMemLocation *at, cudaMemAllocationType type,
                  cudaMemPool_t pool)
{
    cudaError_t e = pool_place(at, type);

    return e == cudaSuccess ? cudaDeviceSetMemPool(0, pool) : bc_end(e);
}

/* ---- batches: one after another -------------------------------------------- */

typedef struct from_when { /* cudaMemcpyAttributes */
    int order;             /* 1: as the stream comes to it, 2: now, 3: any */
    cudaMemLocation from, to;
    unsigned flags; /* a hint */
} from_when;
enum { ORDER_NOW = 2, ORDER_ANY };

/* Which of the entries is for copy k: their first copies are in `starts`. */
static bool
starts_ok(const size_t *starts, size_t n, size_t count)
{
    bool ok = starts && n && n <= count && starts[0] == 0;

    for (size_t k = 1; ok && k < n; k++)
        ok = starts[k] > starts[k - 1] && starts[k] < count;
    return ok;
}

/* A batch has a stream of its own: the legacy one is refused, as CUDA says. */
static cudaError_t
batch_stream(cudaStream_t h)
{
    const struct CUstream_st *s = bc_stream_of(h);

    return !s                 ? cudaErrorInvalidResourceHandle
           : s == &bc_rt.null ? cudaErrorInvalidValue
                              : cudaSuccess;
}

/* Sources that are read before the call returns. */
static cudaError_t
copies_done(cudaStream_t h, bool now)
{
    return now && !bc_stream_of(h)->capture ? bc_stream_sync(h) : cudaSuccess;
}

static cudaError_t
copy_batch(void *const *to, const void *const *from, const size_t *bytes,
           size_t count, const from_when *how, const size_t *starts, size_t n,
           cudaStream_t s)
{
    cudaError_t e = batch_stream(s);
    bool now = false;

    if (e == cudaSuccess && (!to || !from || !bytes || !count || !how ||
                             !starts_ok(starts, n, count)))
        e = cudaErrorInvalidValue;
    for (size_t k = 0; e == cudaSuccess && k < n; k++) {
        if (how[k].order < 1 || how[k].order > ORDER_ANY || how[k].flags > 1)
            e = cudaErrorInvalidValue;
        now |= how[k].order == ORDER_NOW;
    }
    for (size_t k = 0; e == cudaSuccess && k < count; k++)
        e = bytes[k] ? bc_copy_line(to[k], from[k], bytes[k], cudaMemcpyDefault,
                                    s, true)
                     : cudaErrorInvalidValue;
    return e == cudaSuccess ? copies_done(s, now) : e;
}

API cudaError_t br_cuda_13_batch(void *const *to, const void *const *from,
                                 const size_t *bytes, size_t count,
                                 const from_when *how, const size_t *starts,
                                 size_t n, cudaStream_t s);
OF_13(br_cuda_13_batch, cudaMemcpyBatchAsync);

cudaError_t
br_cuda_13_batch(void *const *to, const void *const *from, const size_t *bytes,
                 size_t count, const from_when *how, const size_t *starts,
                 size_t n, cudaStream_t s)
{
    BC_API(copy_batch(to, from, bytes, count, how, starts, n, s));
}

API cudaError_t br_cuda_13_own_batch(void *const *to, const void *const *from,
                                     const size_t *bytes, size_t count,
                                     const from_when *how, const size_t *starts,
                                     size_t n, cudaStream_t s);
OF_13(br_cuda_13_own_batch, cudaMemcpyBatchAsync_ptsz);

cudaError_t
br_cuda_13_own_batch(void *const *to, const void *const *from,
                     const size_t *bytes, size_t count, const from_when *how,
                     const size_t *starts, size_t n, cudaStream_t s)
{
    AS_OWN(br_cuda_13_batch(to, from, bytes, count, how, starts, n, s));
}

/* The driver's: addresses are numbers there. */
API CUresult cuMemcpyBatchAsync_v2(void *const *to, const void *const *from,
                                   const size_t *bytes, size_t count,
                                   const from_when *how, const size_t *starts,
                                   size_t n, CUstream s);
CUresult
cuMemcpyBatchAsync_v2(void *const *to, const void *const *from,
                      const size_t *bytes, size_t count, const from_when *how,
                      const size_t *starts, size_t n, CUstream s)
{
    BD_API(copy_batch(to, from, bytes, count, how, starts, n, s));
}

API CUresult cuMemcpyBatchAsync_v2_ptsz(
    void *const *to, const void *const *from, const size_t *bytes, size_t count,
    const from_when *how, const size_t *starts, size_t n, CUstream s);
CUresult
cuMemcpyBatchAsync_v2_ptsz(void *const *to, const void *const *from,
                           const size_t *bytes, size_t count,
                           const from_when *how, const size_t *starts, size_t n,
                           CUstream s)
{
    return cuMemcpyBatchAsync_v2(to, from, bytes, count, how, starts, n,
                                 s ? s : CU_STREAM_PER_THREAD);
}

typedef struct operand { /* cudaMemcpy3DOperand */
    int type;            /* 1: memory, 2: an array */
    union {
        struct {
            void *at;
            size_t row, rows; /* in elements; 0: close together */
            cudaMemLocation hint;
        } memory;
        struct {
            cudaArray_t array;
            cudaPos at;
        } array;
    };
} operand;
typedef struct box_copy { /* cudaMemcpy3DBatchOp */
    operand from, to;
    cudaExtent extent;
    int order;
    unsigned flags;
} box_copy;

/* texel: bytes of an element; those of memory beside memory are bytes. */
static bool
box_side(const operand *o, const cudaExtent *x, size_t texel,
         cudaArray_t *array, cudaPos *pos, cudaPitchedPtr *p)
{
    if (o->type == 2) {
        *array = o->array.array;
        *pos = o->array.at;
        return *array != NULL;
    }
    *p = (cudaPitchedPtr){
        o->memory.at, (o->memory.row ? o->memory.row : x->width) * texel,
        x->width * texel, o->memory.rows ? o->memory.rows : x->height};
    return o->type == 1 && o->memory.at;
}

static cudaError_t
box_batch(size_t count, const box_copy *ops, unsigned long long flags,
          cudaStream_t s)
{
    cudaError_t e = batch_stream(s);
    bool now = false;

    if (e == cudaSuccess && (!count || !ops || flags))
        e = cudaErrorInvalidValue;
    for (size_t k = 0; e == cudaSuccess && k < count; k++) {
        const box_copy *o = &ops[k];
        cudaArray_t a = o->from.type == 2 ? o->from.array.array
                        : o->to.type == 2 ? o->to.array.array
                                          : NULL;
        cudaMemcpy3DParms p = {.extent = o->extent, .kind = cudaMemcpyDefault};
        size_t texel = a ? bc_array_texel(a) : 1;
        bc_rect r;

        e = o->order >= 1 && o->order <= ORDER_ANY &&
                    box_side(&o->from, &o->extent, texel, &p.srcArray,
                             &p.srcPos, &p.srcPtr) &&
                    box_side(&o->to, &o->extent, texel, &p.dstArray, &p.dstPos,
                             &p.dstPtr)
                ? bc_rect_3d(&p, &r)
                : cudaErrorInvalidValue;
        if (e == cudaSuccess)
            e = bc_copy(&r, p.kind, s, true);
        now |= o->order == ORDER_NOW;
    }
    return e == cudaSuccess ? copies_done(s, now) : e;
}

API cudaError_t br_cuda_13_boxes(size_t count, const box_copy *ops,
                                 unsigned long long flags, cudaStream_t s);
OF_13(br_cuda_13_boxes, cudaMemcpy3DBatchAsync);

cudaError_t
br_cuda_13_boxes(size_t count, const box_copy *ops, unsigned long long flags,
                 cudaStream_t s)
{
    BC_API(box_batch(count, ops, flags, s));
}

API cudaError_t br_cuda_13_own_boxes(size_t count, const box_copy *ops,
                                     unsigned long long flags, cudaStream_t s);
OF_13(br_cuda_13_own_boxes, cudaMemcpy3DBatchAsync_ptsz);

cudaError_t
br_cuda_13_own_boxes(size_t count, const box_copy *ops,
                     unsigned long long flags, cudaStream_t s)
{
    AS_OWN(br_cuda_13_boxes(count, ops, flags, s));
}

/* What is thrown away may stay as it was; where it lies is one place. */
static cudaError_t
discard(void *const *at, const size_t *bytes, size_t count,
        unsigned long long flags, cudaStream_t s)
{
    cudaError_t e = batch_stream(s);

    if (e == cudaSuccess && (!at || !bytes || !count || flags))
        e = cudaErrorInvalidValue;
    for (size_t k = 0; e == cudaSuccess && k < count; k++) {
        const bc_mem *m = bc_mem_find(at[k]);

        if (!m || m->kind != BC_MEM_MANAGED || !bc_mem_fits(at[k], bytes[k]))
            e = cudaErrorInvalidValue;
    }
    return e;
}

API cudaError_t cudaMemDiscardBatchAsync(void **at, size_t *bytes, size_t count,
                                         unsigned long long flags,
                                         cudaStream_t s);
cudaError_t
cudaMemDiscardBatchAsync(void **at, size_t *bytes, size_t count,
                         unsigned long long flags, cudaStream_t s)
{
    BC_API(discard(at, bytes, count, flags, s));
}

API cudaError_t cudaMemDiscardBatchAsync_ptsz(void **at, size_t *bytes,
                                              size_t count,
                                              unsigned long long flags,
                                              cudaStream_t s);
cudaError_t
cudaMemDiscardBatchAsync_ptsz(void **at, size_t *bytes, size_t count,
                              unsigned long long flags, cudaStream_t s)
{
    AS_OWN(cudaMemDiscardBatchAsync(at, bytes, count, flags, s));
}

static cudaError_t
bring(void *const *at, const size_t *bytes, size_t count,
      const cudaMemLocation *to, const size_t *starts, size_t n,
      unsigned long long flags, cudaStream_t s)
{
    cudaError_t e = discard(at, bytes, count, flags, s);

    if (e == cudaSuccess && (!to || !starts_ok(starts, n, count)))
        e = cudaErrorInvalidValue;
    for (size_t k = 0; e == cudaSuccess && k < n; k++)
        if (place(to[k]) != 0 && place(to[k]) != cudaCpuDeviceId)
            e = cudaErrorInvalidDevice;
    return e;
}

#define BRING(fn)                                                     \
    API cudaError_t fn(void **at, size_t *bytes, size_t count,        \
                       cudaMemLocation *to, size_t *starts, size_t n, \
                       unsigned long long flags, cudaStream_t s);     \
    cudaError_t fn(void **at, size_t *bytes, size_t count,            \
                   cudaMemLocation *to, size_t *starts, size_t n,     \
                   unsigned long long flags, cudaStream_t s)

BRING(cudaMemPrefetchBatchAsync)
{
    BC_API(bring(at, bytes, count, to, starts, n, flags, s));
}

BRING(cudaMemPrefetchBatchAsync_ptsz)
{
    AS_OWN(
        cudaMemPrefetchBatchAsync(at, bytes, count, to, starts, n, flags, s));
}

BRING(cudaMemDiscardAndPrefetchBatchAsync)
{
    BC_API(bring(at, bytes, count, to, starts, n, flags, s));
}

BRING(cudaMemDiscardAndPrefetchBatchAsync_ptsz)
{
    AS_OWN(
        cudaMemPrefetchBatchAsync(at, bytes, count, to, starts, n, flags, s));
}

/* ---- the same of the driver: addresses are numbers there ----------------- */

#define OF_DRIVER(fn, params, args, its) \
    API CUresult fn params;              \
    CUresult fn params                   \
    {                                    \
        BD_CALL(its args);               \
    }
/* And where a null stream is each thread's own. */
#define OF_STREAM(fn, params, args, its) \
    OF_DRIVER(fn, params, args, its)     \
    OF_DRIVER(fn##_ptsz, params, args, its##_ptsz)

OF_DRIVER(cuMemGetDefaultMemPool,
          (cudaMemPool_t * pool, cudaMemLocation *at, cudaMemAllocationType t),
          (pool, at, t), cudaMemGetDefaultMemPool)
OF_DRIVER(cuMemGetMemPool,
          (cudaMemPool_t * pool, cudaMemLocation *at, cudaMemAllocationType t),
          (pool, at, t), cudaMemGetMemPool)
OF_DRIVER(cuMemSetMemPool,
          (cudaMemLocation * at, cudaMemAllocationType t, cudaMemPool_t pool),
          (at, t, pool), cudaMemSetMemPool)
OF_STREAM(cuMemDiscardBatchAsync,
          (void **at, size_t *bytes, size_t count, unsigned long long flags,
           CUstream s),
          (at, bytes, count, flags, s), cudaMemDiscardBatchAsync)
OF_STREAM(cuMemPrefetchBatchAsync,
          (void **at, size_t *bytes, size_t count, cudaMemLocation *to,
           size_t *starts, size_t n, unsigned long long flags, CUstream s),
          (at, bytes, count, to, starts, n, flags, s),
          cudaMemPrefetchBatchAsync)
OF_STREAM(cuMemDiscardAndPrefetchBatchAsync,
          (void **at, size_t *bytes, size_t count, cudaMemLocation *to,
           size_t *starts, size_t n, unsigned long long flags, CUstream s),
          (at, bytes, count, to, starts, n, flags, s),
          cudaMemDiscardAndPrefetchBatchAsync)
OF_DRIVER(cuMemcpy3DBatchAsync_v2,
          (size_t count, const box_copy *ops, unsigned long long flags,
           CUstream s),
          (count, ops, flags, s), br_cuda_13_boxes)
OF_DRIVER(cuMemcpy3DBatchAsync_v2_ptsz,
          (size_t count, const box_copy *ops, unsigned long long flags,
           CUstream s),
          (count, ops, flags, s), br_cuda_13_own_boxes)

/* ---- graphs: edges may say more about themselves ------------------------ */

API cudaError_t br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                                 const cudaGraphNode_t *to, const uint8_t *data,
                                 size_t n);
OF_13(br_cuda_13_edges, cudaGraphAddDependencies);

cudaError_t
br_cuda_13_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
                 const cudaGraphNode_t *to, const uint8_t *data, size_t n)
{
    return bc_plain_edges(data, n)
               ? cudaGraphAddDependencies(graph, from, to, n)
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
    return bc_plain_edges(data, n)
               ? cudaGraphRemoveDependencies(graph, from, to, n)
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
        bc_tell_plain(data, from, n);
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
        bc_tell_plain(data, deps, n);
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
        bc_tell_plain(data, deps, n);
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
    return bc_plain_edges(data, n) ? cudaGraphAddNode(node, graph, deps, n, p)
                                   : bc_end(cudaErrorNotSupported);
}

/* ---- captures ------------------------------------------------------------- */

typedef const cudaGraphNode_t *nodes; /* a list of them */

API cudaError_t br_cuda_13_capture(cudaStream_t stream,
                                   cudaStreamCaptureStatus *status,
                                   unsigned long long *id, cudaGraph_t *graph,
                                   nodes *at, const uint8_t **data, size_t *n);
OF_13(br_cuda_13_capture, cudaStreamGetCaptureInfo);

cudaError_t
br_cuda_13_capture(cudaStream_t stream, cudaStreamCaptureStatus *status,
                   unsigned long long *id, cudaGraph_t *graph, nodes *at,
                   const uint8_t **data, size_t *n)
{
    size_t found = 0;
    cudaError_t e =
        cudaStreamGetCaptureInfo_v2(stream, status, id, graph, at, &found);

    if (e != cudaSuccess || *status == cudaStreamCaptureStatusNone)
        return e;
    e = bc_tell_capture(found, data, n);
    return e == cudaSuccess ? e : bc_end(e);
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
    return bc_plain_edges(data, n)
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
    BC_API(bc_plain_edges(data, n) ? bc_capture_into(stream, graph, at, n, mode)
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
