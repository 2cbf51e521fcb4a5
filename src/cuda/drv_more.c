/* drv_more.c - the driver API: what CUDA's header has and few programs call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include "cuda/cu_graph.h"

#include <string.h>

#define API __attribute__((visibility("default")))

/* ---- contexts ----------------------------------------------------------- */

/* How the host waits is one way here. */
API CUresult cuCtxSetFlags(unsigned flags);
CUresult
cuCtxSetFlags(unsigned flags)
{
    CUresult e = bd_begin();

    return e ? e : flags > 0xff ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static unsigned attached; /* under the lock: so often more than it was made */

API CUresult cuCtxAttach(CUcontext *ctx, unsigned flags);
CUresult
cuCtxAttach(CUcontext *ctx, unsigned flags)
{
    CUresult e = bd_begin();

    if (e || !ctx || flags)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    bc_lock();
    attached++;
    bc_unlock();
    return cuCtxGetCurrent(ctx);
}

/* Who made it lets it go by the last one. */
API CUresult cuCtxDetach(CUcontext ctx);
CUresult
cuCtxDetach(CUcontext ctx)
{
    CUcontext now = NULL;
    CUresult e = cuCtxGetCurrent(&now);
    bool last;

    if (e || !ctx || ctx != now)
        return e ? e : CUDA_ERROR_INVALID_CONTEXT;
    bc_lock();
    last = attached == 0;
    attached -= !last;
    bc_unlock();
    return last ? cuCtxDestroy(ctx) : CUDA_SUCCESS;
}

/* A context has the whole device. */
API CUresult cuDeviceGetExecAffinitySupport(int *is, int type, CUdevice device);
CUresult
cuDeviceGetExecAffinitySupport(int *is, int type, CUdevice device)
{
    if (device || !is || type)
        return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *is = 0;
    return CUDA_SUCCESS;
}

API CUresult cuCtxGetExecAffinity(void *out, int type);
CUresult
cuCtxGetExecAffinity(void *out, int type)
{
    enum { UNSUPPORTED_EXEC_AFFINITY = 224 };
    CUresult e = bd_begin();

    if (e || !out || type)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    return (CUresult)UNSUPPORTED_EXEC_AFFINITY;
}

typedef struct devprop { /* CUdevprop */
    int threads, block[3], grid[3], shared, constant, warp, pitch, registers,
        clock, texture_align;
} devprop;

API CUresult cuDeviceGetProperties(devprop *out, CUdevice device);
CUresult
cuDeviceGetProperties(devprop *out, CUdevice device)
{
    const cudaDeviceProp *p = bc_device();

    if (device || !out)
        return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *out = (devprop){.threads = p->maxThreadsPerBlock,
                     .shared = (int)p->sharedMemPerBlock,
                     .constant = (int)p->totalConstMem,
                     .warp = p->warpSize,
                     .pitch = (int)BR_MIN(p->memPitch, (size_t)INT32_MAX),
                     .registers = p->regsPerBlock,
                     .clock = p->clockRate,
                     .texture_align = (int)p->textureAlignment};
    memcpy(out->block, p->maxThreadsDim, sizeof out->block);
    memcpy(out->grid, p->maxGridSize, sizeof out->grid);
    return CUDA_SUCCESS;
}

/* ---- functions ---------------------------------------------------------- */

API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                                    CUdevice device);
CUresult
cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    return device ? CUDA_ERROR_INVALID_DEVICE
                  : cuFuncSetCacheConfig((CUfunction)kernel, config);
}

API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
    int *grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of,
    size_t shared, int limit, unsigned flags);
CUresult
cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                          CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit,
                                          unsigned flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE
                     : cuOccupancyMaxPotentialBlockSize(
                           grid, block, f, shared_of, shared, limit);
}

/* Who says neither of the two null streams means the one that he was compiled for. */
API CUresult cuGetProcAddress_v2_ptsz(const char *name, void **fn, int version,
                                      unsigned long long flags, int *status);
CUresult
cuGetProcAddress_v2_ptsz(const char *name, void **fn, int version,
                         unsigned long long flags, int *status)
{
    return cuGetProcAddress_v2(
        name, fn, version,
        flags ? flags : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
}

/* ---- copies in graphs ---------------------------------------------------- */

/* One side as the driver says it. Positions are in elements of the arrays, if there are
 * any, and bytes otherwise. */
static void
side_of(const cudaMemcpy3DParms *p, size_t element, bool to, CUDA_MEMCPY3D *c)
{
    cudaArray_t a = to ? p->dstArray : p->srcArray;
    const cudaPitchedPtr *q = to ? &p->dstPtr : &p->srcPtr;
    const cudaPos *at = to ? &p->dstPos : &p->srcPos;
    const CUmemorytype type = a ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
    const CUdeviceptr where = a ? 0 : (CUdeviceptr)(uintptr_t)q->ptr;

    if (to) {
        c->dstXInBytes = at->x * element, c->dstY = at->y, c->dstZ = at->z;
        c->dstMemoryType = type, c->dstArray = (CUarray)(void *)a;
        c->dstDevice = where;
        c->dstPitch = q->pitch, c->dstHeight = q->ysize;
    } else {
        c->srcXInBytes = at->x * element, c->srcY = at->y, c->srcZ = at->z;
        c->srcMemoryType = type, c->srcArray = (CUarray)(void *)a;
        c->srcDevice = where;
        c->srcPitch = q->pitch, c->srcHeight = q->ysize;
    }
}

static cudaError_t
copy_of(cudaGraphNode_t node, CUDA_MEMCPY3D *c)
{
    cudaMemcpy3DParms p;
    size_t element = 1;
    cudaError_t e;

    if (!bc_is_node(node) || node->type != cudaGraphNodeTypeMemcpy || !c)
        return cudaErrorInvalidValue;
    e = bc_copy_params(node->w->payload, &p);
    if (e != cudaSuccess)
        return e;
    if (p.srcArray || p.dstArray)
        element = bc_array_texel(p.srcArray ? p.srcArray : p.dstArray);
    memset(c, 0, sizeof *c);
    side_of(&p, element, true, c);
    side_of(&p, element, false, c);
    c->WidthInBytes = p.extent.width * element;
    c->Height = p.extent.height;
    c->Depth = p.extent.depth;
    return cudaSuccess;
}

API CUresult cuGraphMemcpyNodeGetParams(cudaGraphNode_t node, CUDA_MEMCPY3D *c);
CUresult
cuGraphMemcpyNodeGetParams(cudaGraphNode_t node, CUDA_MEMCPY3D *c)
{
    BD_API(copy_of(node, c));
}
