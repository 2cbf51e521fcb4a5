/* drv_copy.c - the driver API: copies and fills of rows and planes.
 *
 * Either side says what its memory is, where the box starts in it, and how far
 * rows and planes lie apart; an array knows that itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

typedef struct side {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;
} side;

/* Where the box starts, and how far rows and planes lie apart. */
static cudaError_t
locate(side *s, const bc_rect *r, uint64_t *start, uint64_t *slice)
{
    bc_box b = {s->x, s->y, s->z};
    uint64_t plane, row, base, pitch;
    cudaError_t e;
    void *at;

    if (s->type == CU_MEMORYTYPE_ARRAY) {
        e = bc_array_box(&b, (cudaArray_t)(void *)s->array, r, &at, &pitch,
                         slice);
        if (e == cudaSuccess) {
            *start = (uint64_t)(uintptr_t)at;
            s->pitch = pitch;
        }
        return e;
    }
    if (s->type < CU_MEMORYTYPE_HOST || s->type > CU_MEMORYTYPE_UNIFIED)
        return cudaErrorInvalidValue;
    base = s->type == CU_MEMORYTYPE_HOST ? (uintptr_t)s->host : s->device;
    if (r->height > 1 && (s->pitch < r->width || s->pitch - r->width < s->x))
        return cudaErrorInvalidValue;
    if (r->depth > 1 && (s->height < r->height || s->height - r->height < s->y))
        return cudaErrorInvalidValue;
    if (!base || __builtin_mul_overflow(s->pitch, s->height, slice) ||
        __builtin_mul_overflow(s->z, *slice, &plane) ||
        __builtin_mul_overflow(s->y, s->pitch, &row) ||
        __builtin_add_overflow(base, plane, start) ||
        __builtin_add_overflow(*start, row, start) ||
        __builtin_add_overflow(*start, s->x, start))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

static cudaError_t
box(side *to, side *from, bc_rect *r, cudaMemcpyKind *kind)
{
    static const cudaMemcpyKind kinds[2][2] = {
        {cudaMemcpyHostToHost, cudaMemcpyHostToDevice},
        {cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice}};
    bool unified = to->type == CU_MEMORYTYPE_UNIFIED ||
                   from->type == CU_MEMORYTYPE_UNIFIED;
    uint64_t dst, src;
    cudaError_t e;

    *kind = unified ? cudaMemcpyDefault
                    : kinds[from->type != CU_MEMORYTYPE_HOST]
                           [to->type != CU_MEMORYTYPE_HOST];
    if (!r->width || !r->height || !r->depth)
        return cudaSuccess;
    e = locate(to, r, &dst, &r->dslice);
    if (e == cudaSuccess)
        e = locate(from, r, &src, &r->sslice);
    if (e != cudaSuccess)
        return e;
    r->dst = (void *)(uintptr_t)dst;
    r->src = (const void *)(uintptr_t)src;
    r->dpitch = to->pitch;
    r->spitch = from->pitch;
    return cudaSuccess;
}

static cudaError_t
copy_2d(const CUDA_MEMCPY2D *c, CUstream s, bool async)
{
    side to, from;
    bc_rect r = {.depth = 1};
    cudaMemcpyKind kind;
    cudaError_t e;

    if (!c)
        return cudaErrorInvalidValue;
    to = (side){c->dstMemoryType,
                c->dstHost,
                c->dstDevice,
                c->dstArray,
                c->dstXInBytes,
                c->dstY,
                0,
                c->dstPitch,
                0};
    from = (side){c->srcMemoryType,
                  c->srcHost,
                  c->srcDevice,
                  c->srcArray,
                  c->srcXInBytes,
                  c->srcY,
                  0,
                  c->srcPitch,
                  0};
    r.width = c->WidthInBytes;
    r.height = c->Height;
    e = box(&to, &from, &r, &kind);
    return e == cudaSuccess ? bc_copy(&r, kind, s, async) : e;
}

CUresult
cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
    BD_API(copy_2d(c, 0, false));
}

CUresult
cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
    BD_API(copy_2d(c, 0, false));
}

CUresult
cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream s)
{
    BD_API(copy_2d(c, s, true));
}

cudaError_t
bd_rect(const CUDA_MEMCPY3D *c, bc_rect *r, cudaMemcpyKind *kind)
{
    side to, from;

    if (!c || c->srcLOD || c->dstLOD)
        return cudaErrorInvalidValue;
    to = (side){c->dstMemoryType, c->dstHost,     c->dstDevice,
                c->dstArray,      c->dstXInBytes, c->dstY,
                c->dstZ,          c->dstPitch,    c->dstHeight};
    from = (side){c->srcMemoryType, c->srcHost,     c->srcDevice,
                  c->srcArray,      c->srcXInBytes, c->srcY,
                  c->srcZ,          c->srcPitch,    c->srcHeight};
    *r = (bc_rect){
        .width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    return box(&to, &from, r, kind);
}

static cudaError_t
copy_3d(const CUDA_MEMCPY3D *c, CUstream s, bool async)
{
    bc_rect r;
    cudaMemcpyKind kind;
    cudaError_t e = bd_rect(c, &r, &kind);

    return e == cudaSuccess ? bc_copy(&r, kind, s, async) : e;
}

CUresult
cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
    BD_API(copy_3d(c, 0, false));
}

CUresult
cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream s)
{
    BD_API(copy_3d(c, s, true));
}

/* It has contexts where the other has room. There is one: both are it, or not looked at,
 * as an array has its own. */
_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D) &&
                   offsetof(CUDA_MEMCPY3D_PEER, dstContext) ==
                       offsetof(CUDA_MEMCPY3D, reserved1),
               "copies between peers");

static CUresult
peers(const CUDA_MEMCPY3D_PEER *p)
{
    CUcontext ours = NULL;

    (void)cuCtxGetCurrent(&ours);
    return !p ? CUDA_ERROR_INVALID_VALUE
           : (p->srcMemoryType != CU_MEMORYTYPE_ARRAY &&
              p->srcContext != ours) ||
                   (p->dstMemoryType != CU_MEMORYTYPE_ARRAY &&
                    p->dstContext != ours)
               ? CUDA_ERROR_INVALID_CONTEXT
               : CUDA_SUCCESS;
}

CUresult
cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p)
{
    CUresult e = peers(p);

    return e ? e : cuMemcpy3D_v2((const CUDA_MEMCPY3D *)(const void *)p);
}

CUresult
cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream s)
{
    CUresult e = peers(p);

    return e ? e
             : cuMemcpy3DAsync_v2((const CUDA_MEMCPY3D *)(const void *)p, s);
}

/* There is one context, so both are it or an error. */
CUresult
cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
             size_t n)
{
    if (!to || to != from)
        return CUDA_ERROR_INVALID_CONTEXT;
    return cuMemcpyDtoD_v2(dst, src, n);
}

CUresult
cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src,
                  CUcontext from, size_t n, CUstream s)
{
    if (!to || to != from)
        return CUDA_ERROR_INVALID_CONTEXT;
    return cuMemcpyDtoDAsync_v2(dst, src, n, s);
}

/* ---- fills -------------------------------------------------------------- */

typedef struct rows {
    CUdeviceptr p;
    size_t pitch, width, height;
    unsigned value, element;
} rows;

static cudaError_t
fill(const rows *f, CUstream s, bool async)
{
    void *p = (void *)(uintptr_t)f->p;
    bc_rect r = {.dst = p, .height = f->height, .depth = 1};

    if (f->p % f->element || (f->height > 1 && f->pitch % f->element) ||
        __builtin_mul_overflow(f->width, f->element, &r.width))
        return cudaErrorInvalidValue;
    if (r.width && r.height && !bc_mem_find(p))
        return cudaErrorInvalidValue;
    r.dpitch = f->pitch;
    r.value = f->value;
    r.element = f->element;
    return bc_copy(&r, cudaMemcpyDefault, s, async);
}

#define FILL(bits, type)                                                       \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr p, size_t pitch, type value,   \
                                    size_t width, size_t height)               \
    {                                                                          \
        BD_API(fill(&(rows){p, pitch, width, height, value, bits / 8}, 0,      \
                    false));                                                   \
    }                                                                          \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr p, size_t pitch, type value, \
                                      size_t width, size_t height, CUstream s) \
    {                                                                          \
        BD_API(                                                                \
            fill(&(rows){p, pitch, width, height, value, bits / 8}, s, true)); \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)

CUresult
cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t n, CUstream s)
{
    BD_API(fill(&(rows){p, 0, n, 1, value, 2}, s, true));
}
