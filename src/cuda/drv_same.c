/* drv_same.c - the driver API: what is the runtime's under another name, what differs in
 * a few arguments, what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include "cuda/cu_graph.h"

#include <string.h>

#define API __attribute__((visibility("default")))

#define X(fn, params, call) \
    API CUresult fn params; \
    CUresult fn params      \
    {                       \
        BD_CALL(call);      \
    }
#include "cuda/drv_same.def"
#undef X

#define X(fn)                            \
    API CUresult fn(void);               \
    CUresult fn(void)                    \
    {                                    \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }
#include "cuda/drv_refused.def"
#undef X

/* Tables of functions that are not described. Of a program whose runtime, which nvcc put
 * inside, asks for this one nothing runs here, and its own words are "insufficient
 * driver" and "not supported". Libraries ask for others and do without (NVRTC). */
API CUresult cuGetExportTable(const void **table, const CUuuid *which);
CUresult
cuGetExportTable(const void **table, const CUuuid *which)
{
    static const uint8_t runtimes[] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4,
                                       0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39,
                                       0x12, 0xfd, 0x9d, 0xf9};
    static _Atomic bool told;

    if (table)
        *table = NULL;
    if (which && memcmp(which, runtimes, sizeof runtimes) == 0 &&
        !atomic_exchange(&told, true))
        bc_say("this program has CUDA's runtime inside, as nvcc links it; "
               "with nvcc -cudart shared it runs here");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- kernels in graphs: of CUDA 12, with a kernel and a context --------- */

typedef struct kernel_params {
    cudaKernelNodeParams p;
    CUkernel kernel; /* where p has none */
    CUcontext ctx;
} kernel_params;

static const cudaKernelNodeParams *
plain(const kernel_params *p, cudaKernelNodeParams *out)
{
    if (!p)
        return NULL;
    *out = p->p;
    if (!out->func)
        out->func = p->kernel;
    return out;
}

API CUresult cuGraphAddKernelNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *deps, size_t n,
                                     const kernel_params *p);
CUresult
cuGraphAddKernelNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                        const cudaGraphNode_t *deps, size_t n,
                        const kernel_params *p)
{
    cudaKernelNodeParams one;

    BD_CALL(cudaGraphAddKernelNode(node, graph, deps, n, plain(p, &one)));
}

API CUresult cuGraphKernelNodeSetParams_v2(cudaGraphNode_t node,
                                           const kernel_params *p);
CUresult
cuGraphKernelNodeSetParams_v2(cudaGraphNode_t node, const kernel_params *p)
{
    cudaKernelNodeParams one;

    BD_CALL(cudaGraphKernelNodeSetParams(node, plain(p, &one)));
}

API CUresult cuGraphExecKernelNodeSetParams_v2(cudaGraphExec_t x,
                                               cudaGraphNode_t node,
                                               const kernel_params *p);
CUresult
cuGraphExecKernelNodeSetParams_v2(cudaGraphExec_t x, cudaGraphNode_t node,
                                  const kernel_params *p)
{
    cudaKernelNodeParams one;

    BD_CALL(cudaGraphExecKernelNodeSetParams(x, node, plain(p, &one)));
}

API CUresult cuGraphKernelNodeGetParams_v2(cudaGraphNode_t node,
                                           kernel_params *p);
CUresult
cuGraphKernelNodeGetParams_v2(cudaGraphNode_t node, kernel_params *p)
{
    CUresult e =
        p ? cuGraphKernelNodeGetParams(node, &p->p) : CUDA_ERROR_INVALID_VALUE;

    if (!e) {
        p->kernel = NULL;
        (void)cuCtxGetCurrent(&p->ctx);
    }
    return e;
}

/* ---- copies in graphs --------------------------------------------------- */

static cudaError_t
copy_work(const CUDA_MEMCPY3D *p, bc_work **w)
{
    bc_rect r;
    cudaMemcpyKind kind;
    cudaError_t e = bd_rect(p, &r, &kind);
    void *payload;

    if (e == cudaSuccess && r.width && r.height && r.depth)
        e = bc_rect_check(&r, kind);
    if (e != cudaSuccess)
        return e;
    payload = bc_rect_op(&r, NULL);
    *w = payload ? bc_work_new(payload) : NULL;
    return *w ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t
add_copy(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *deps,
         size_t n, const CUDA_MEMCPY3D *p)
{
    bc_work *w;
    cudaError_t e = copy_work(p, &w);

    return e == cudaSuccess
               ? bc_node_draw(node, g, deps, n, w, cudaGraphNodeTypeMemcpy)
               : e;
}

static cudaError_t
set_copy(cudaGraphExec_t x, cudaGraphNode_t node, const CUDA_MEMCPY3D *p)
{
    bc_work *w;
    cudaError_t e;

    if (!bc_is_node(node) || node->type != cudaGraphNodeTypeMemcpy)
        return cudaErrorInvalidValue;
    e = copy_work(p, &w);
    if (e != cudaSuccess || x)
        return e != cudaSuccess
                   ? e
                   : bc_step_set(x, node, w, cudaGraphNodeTypeMemcpy);
    bc_work_drop(node->w);
    node->w = w;
    return cudaSuccess;
}

API CUresult cuGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *deps, size_t n,
                                  const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult
cuGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                     const cudaGraphNode_t *deps, size_t n,
                     const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    (void)ctx;
    BD_API(add_copy(node, graph, deps, n, p));
}

API CUresult cuGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                        const CUDA_MEMCPY3D *p);
CUresult
cuGraphMemcpyNodeSetParams(cudaGraphNode_t node, const CUDA_MEMCPY3D *p)
{
    BD_API(set_copy(NULL, node, p));
}

API CUresult cuGraphExecMemcpyNodeSetParams(cudaGraphExec_t x,
                                            cudaGraphNode_t node,
                                            const CUDA_MEMCPY3D *p,
                                            CUcontext ctx);
CUresult
cuGraphExecMemcpyNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                               const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    (void)ctx;
    BD_API(x ? set_copy(x, node, p) : cudaErrorInvalidValue);
}

/* ---- nodes of any kind: of copies the structure is the driver's --------- */

typedef struct copy_params {
    int flags, reserved;
    CUcontext ctx;
    CUDA_MEMCPY3D p;
} copy_params;

static CUresult
any_node(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *deps,
         size_t n, cudaGraphNodeParams *p)
{
    const kernel_params *k = (const void *)&p->kernel;
    cudaGraphNodeParams one = *p;

    if (p->type == cudaGraphNodeTypeMemcpy)
        BD_API(add_copy(node, g, deps, n,
                        &((const copy_params *)(const void *)&p->memcpy)->p));
    if (p->type != cudaGraphNodeTypeKernel)
        BD_CALL(cudaGraphAddNode(node, g, deps, n, p));
    (void)plain(k, &one.kernel);
    BD_CALL(cudaGraphAddNode(node, g, deps, n, &one));
}

API CUresult cuGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *deps, size_t n,
                            cudaGraphNodeParams *p);
CUresult
cuGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
               const cudaGraphNode_t *deps, size_t n, cudaGraphNodeParams *p)
{
    return p ? any_node(node, graph, deps, n, p) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
any_set(cudaGraphExec_t x, cudaGraphNode_t node, cudaGraphNodeParams *p)
{
    const kernel_params *k = (const void *)&p->kernel;
    cudaGraphNodeParams one = *p;

    if (p->type == cudaGraphNodeTypeMemcpy)
        BD_API(set_copy(x, node,
                        &((const copy_params *)(const void *)&p->memcpy)->p));
    if (p->type == cudaGraphNodeTypeKernel)
        (void)plain(k, &one.kernel);
    BD_CALL(x ? cudaGraphExecNodeSetParams(x, node, &one)
              : cudaGraphNodeSetParams(node, &one));
}

API CUresult cuGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *p);
CUresult
cuGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *p)
{
    return p ? any_set(NULL, node, p) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphExecNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                      cudaGraphNodeParams *p);
CUresult
cuGraphExecNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                         cudaGraphNodeParams *p)
{
    return x && p ? any_set(x, node, p) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- clusters ----------------------------------------------------------- */

static cudaLaunchConfig_t
as_runtime(const CUlaunchConfig *c)
{
    return (cudaLaunchConfig_t){
        .gridDim = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .blockDim = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .dynamicSmemBytes = c->sharedMemBytes,
        .stream = c->hStream,
        .attrs = (cudaLaunchAttribute *)(void *)c->attrs,
        .numAttrs = c->numAttrs};
}

#define CLUSTERS(fn, its)                                           \
    API CUresult fn(int *n, CUfunction f, const CUlaunchConfig *c); \
    CUresult fn(int *n, CUfunction f, const CUlaunchConfig *c)      \
    {                                                               \
        cudaLaunchConfig_t one;                                     \
                                                                    \
        if (!c)                                                     \
            return CUDA_ERROR_INVALID_VALUE;                        \
        one = as_runtime(c);                                        \
        BD_CALL(its(n, (const void *)f, &one));                     \
    }
CLUSTERS(cuOccupancyMaxActiveClusters, cudaOccupancyMaxActiveClusters)
CLUSTERS(cuOccupancyMaxPotentialClusterSize,
         cudaOccupancyMaxPotentialClusterSize)

/* ---- edges that say more about themselves ------------------------------- */

static cudaError_t
told_plain(cudaError_t e, uint8_t *data, const cudaGraphNode_t *listed,
           const size_t *n)
{
    if (e == cudaSuccess)
        bc_tell_plain(data, listed, n);
    return e;
}

#define EDGES(fn, params, data, n, call)                                   \
    API CUresult fn params;                                                \
    CUresult fn params                                                     \
    {                                                                      \
        BD_CALL(bc_plain_edges(data, n) ? (call) : cudaErrorNotSupported); \
    }
EDGES(cuGraphAddDependencies_v2,
      (cudaGraph_t g, const cudaGraphNode_t *f, const cudaGraphNode_t *t,
       const uint8_t *d, size_t n),
      d, n, cudaGraphAddDependencies(g, f, t, n))
EDGES(cuGraphRemoveDependencies_v2,
      (cudaGraph_t g, const cudaGraphNode_t *f, const cudaGraphNode_t *t,
       const uint8_t *d, size_t n),
      d, n, cudaGraphRemoveDependencies(g, f, t, n))
EDGES(cuStreamUpdateCaptureDependencies_v2,
      (CUstream s, cudaGraphNode_t *a, const uint8_t *d, size_t n, unsigned f),
      d, n, cudaStreamUpdateCaptureDependencies(s, a, n, f))
EDGES(cuGraphAddNode_v2,
      (cudaGraphNode_t * o, cudaGraph_t g, const cudaGraphNode_t *a,
       const uint8_t *d, size_t n, cudaGraphNodeParams *p),
      d, n, (cudaError_t)cuGraphAddNode(o, g, a, n, p))
EDGES(cuGraphGetEdges_v2,
      (cudaGraph_t g, cudaGraphNode_t *f, cudaGraphNode_t *t, uint8_t *d,
       size_t *n),
      NULL, 0, told_plain(cudaGraphGetEdges(g, f, t, n), d, f, n))
EDGES(cuGraphNodeGetDependencies_v2,
      (cudaGraphNode_t o, cudaGraphNode_t *a, uint8_t *d, size_t *n), NULL, 0,
      told_plain(cudaGraphNodeGetDependencies(o, a, n), d, a, n))
EDGES(cuGraphNodeGetDependentNodes_v2,
      (cudaGraphNode_t o, cudaGraphNode_t *a, uint8_t *d, size_t *n), NULL, 0,
      told_plain(cudaGraphNodeGetDependentNodes(o, a, n), d, a, n))

API CUresult cuStreamBeginCaptureToGraph(CUstream s, cudaGraph_t g,
                                         const cudaGraphNode_t *at,
                                         const uint8_t *data, size_t n,
                                         cudaStreamCaptureMode mode);
CUresult
cuStreamBeginCaptureToGraph(CUstream s, cudaGraph_t g,
                            const cudaGraphNode_t *at, const uint8_t *data,
                            size_t n, cudaStreamCaptureMode mode)
{
    BD_API(bc_plain_edges(data, n) ? bc_capture_into(s, g, at, n, mode)
                                   : cudaErrorNotSupported);
}

static cudaError_t
capture(CUstream s, cudaStreamCaptureStatus *status, unsigned long long *id,
        cudaGraph_t *graph, const cudaGraphNode_t **at, const uint8_t **data,
        size_t *n)
{
    size_t found = 0;
    cudaError_t e = bc_capture_info(s, status, id, graph, at, &found);

    return e != cudaSuccess || *status == cudaStreamCaptureStatusNone
               ? e
               : bc_tell_capture(found, data, n);
}

API CUresult cuStreamGetCaptureInfo_v3(CUstream s,
                                       cudaStreamCaptureStatus *status,
                                       unsigned long long *id,
                                       cudaGraph_t *graph,
                                       const cudaGraphNode_t **at,
                                       const uint8_t **data, size_t *n);
CUresult
cuStreamGetCaptureInfo_v3(CUstream s, cudaStreamCaptureStatus *status,
                          unsigned long long *id, cudaGraph_t *graph,
                          const cudaGraphNode_t **at, const uint8_t **data,
                          size_t *n)
{
    BD_API(capture(s, status, id, graph, at, data, n));
}

/* ---- kernels of libraries ----------------------------------------------- */

API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr,
                                  CUkernel kernel, CUdevice device);
CUresult
cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel kernel,
                     CUdevice device)
{
    return device ? CUDA_ERROR_INVALID_DEVICE
                  : cuFuncGetAttribute(value, attr, (CUfunction)kernel);
}

API CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value,
                                  CUkernel kernel, CUdevice device);
CUresult
cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel kernel,
                     CUdevice device)
{
    return device ? CUDA_ERROR_INVALID_DEVICE
                  : cuFuncSetAttribute((CUfunction)kernel, attr, value);
}

API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel);
CUresult
cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    return cuFuncGetModule((CUmodule *)library, (CUfunction)kernel);
}

/* Modules are loaded when they are first used, and whole. */
API CUresult cuFuncIsLoaded(int *state, CUfunction f);
CUresult
cuFuncIsLoaded(int *state, CUfunction f)
{
    CUmodule mod;
    CUresult e = cuFuncGetModule(&mod, f);

    if (!e && state)
        *state = 1;
    return e || state ? e : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuFuncLoad(CUfunction f);
CUresult
cuFuncLoad(CUfunction f)
{
    CUmodule mod;

    return cuFuncGetModule(&mod, f);
}

API CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attrs,
                                    void **data, CUdeviceptr p);
/* Of memory that is not CUDA's each is 0, as the driver has it. */
CUresult
cuPointerGetAttributes(unsigned n, CUpointer_attribute *attrs, void **data,
                       CUdeviceptr p)
{
    CUresult e = bd_begin();
    bool known;

    if (e || !n || !attrs || !data)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    bc_lock();
    known = bc_mem_find((const void *)(uintptr_t)p) != NULL;
    bc_unlock();
    for (unsigned k = 0; k < n && !e; k++)
        if (known)
            e = cuPointerGetAttribute(data[k], attrs[k], p);
        else
            memset(data[k], 0,
                   attrs[k] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                           attrs[k] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                           attrs[k] == CU_POINTER_ATTRIBUTE_HOST_POINTER
                       ? sizeof(void *)
                       : sizeof(unsigned));
    return e;
}

API CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id);
CUresult
cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    CUcontext now = NULL;
    CUresult e = cuCtxGetCurrent(&now);

    if (e || !now || (ctx && ctx != now) || !id)
        return e     ? e
               : !id ? CUDA_ERROR_INVALID_VALUE
                     : CUDA_ERROR_INVALID_CONTEXT;
    *id = 1;
    return CUDA_SUCCESS;
}

/* ---- words that streams write and wait for ------------------------------ */

typedef struct word {
    void *at;
    uint64_t value;
    unsigned flags; /* how it is compared */
    bool wide;
} word;
enum { GEQ, EQ, AND, NOR };

static cudaError_t
do_write(void *payload)
{
    const word *w = payload;

    if (w->wide)
        __atomic_store_n((uint64_t *)w->at, w->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)w->at, (uint32_t)w->value,
                         __ATOMIC_RELEASE);
    return cudaSuccess;
}

static bool
holds(const word *w)
{
    uint64_t v =
        w->wide ? __atomic_load_n((const uint64_t *)w->at, __ATOMIC_ACQUIRE)
                : __atomic_load_n((const uint32_t *)w->at, __ATOMIC_ACQUIRE);

    switch (w->flags) {
    case GEQ: /* the difference counts, so that numbers may go round */
        return w->wide ? (int64_t)(v - w->value) >= 0
                       : (int32_t)(uint32_t)(v - w->value) >= 0;
    case EQ: return v == w->value;
    case AND: return (v & w->value) != 0;
    default: break;
    }
    return ~(v | w->value) << (w->wide ? 0 : 32) != 0;
}

/* In the stream's thread, which has nothing else to do: whoever writes the word is in
 * another one. */
static cudaError_t
do_wait(void *payload)
{
    while (!holds(payload))
        br_sleep_ns(50000);
    return cudaSuccess;
}

static cudaError_t
issue_word(CUstream h, word w, cudaError_t (*run)(void *))
{
    struct CUstream_st *s = bc_stream_of(h);
    const size_t bytes = w.wide ? 8 : 4;
    word *p;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!bc_mem_find(w.at) || !bc_mem_fits(w.at, bytes) ||
        (uintptr_t)w.at % bytes)
        return cudaErrorInvalidValue;
    if (s->capture) /* no kind of node of the runtime's */
        return cudaErrorNotSupported;
    p = bc_op_new(sizeof *p, run);
    if (!p)
        return cudaErrorMemoryAllocation;
    *p = w;
    return bc_issue(s, p);
}

#define WORD(fn, type, wide, most, run)                                      \
    API CUresult fn(CUstream s, CUdeviceptr at, type value, unsigned flags); \
    CUresult fn(CUstream s, CUdeviceptr at, type value, unsigned flags)      \
    {                                                                        \
        word w = {(void *)(uintptr_t)at, value, flags, wide};                \
                                                                             \
        BD_API(flags > (most) ? cudaErrorNotSupported                        \
                              : issue_word(s, w, run));                      \
    }
WORD(cuStreamWriteValue32_v2, uint32_t, false, 1, do_write)
WORD(cuStreamWriteValue64_v2, uint64_t, true, 1, do_write)
WORD(cuStreamWaitValue32_v2, uint32_t, false, NOR, do_wait)
WORD(cuStreamWaitValue64_v2, uint64_t, true, NOR, do_wait)
