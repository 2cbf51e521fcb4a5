/* rt_memory.c - the runtime API: memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

enum { PITCH = 512 };

static cudaError_t
take(void **p, size_t bytes, bc_kind kind, unsigned flags)
{
    if (!p)
        return cudaErrorInvalidValue;
    *p = NULL;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    return bytes ? bc_mem_get(p, bytes, 256, kind, flags) : cudaSuccess;
}

cudaError_t
cudaMalloc(void **p, size_t bytes)
{
    BC_API(take(p, bytes, BC_MEM_DEVICE, 0));
}

cudaError_t
cudaMallocManaged(void **p, size_t bytes, unsigned int flags)
{
    bool ok = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost;

    BC_API(ok && bytes ? take(p, bytes, BC_MEM_MANAGED, flags)
                       : cudaErrorInvalidValue);
}

cudaError_t
cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    BC_API(flags < 8 ? take(p, bytes, BC_MEM_HOST, flags)
                     : cudaErrorInvalidValue);
}

cudaError_t
cudaMallocHost(void **p, size_t bytes)
{
    return cudaHostAlloc(p, bytes, 0);
}

static cudaError_t
give(void *p, bc_kind kind, cudaError_t bad)
{
    cudaError_t e = bc_wait_all(); /* what is under way may use it */

    if (!p || e != cudaSuccess)
        return e;
    if (kind == BC_MEM_DEVICE && bc_graph_mem_find(p))
        return bc_graph_mem_turn(bc_graph_mem_find(p), false);
    return bc_mem_put(p, kind) == cudaSuccess ? cudaSuccess : bad;
}

cudaError_t
cudaFree(void *p)
{
    BC_API(give(p, BC_MEM_DEVICE, cudaErrorInvalidValue));
}

cudaError_t
cudaFreeHost(void *p)
{
    BC_API(give(p, BC_MEM_HOST, cudaErrorInvalidValue));
}

cudaError_t
cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
    BC_API(flags < 16 ? bc_mem_register(p, bytes, BC_MEM_REGISTERED, flags)
                      : cudaErrorInvalidValue);
}

cudaError_t
cudaHostUnregister(void *p)
{
    BC_API(give(p, BC_MEM_REGISTERED, cudaErrorHostMemoryNotRegistered));
}

static cudaError_t
host_device(void **dev, void *host)
{
    const bc_mem *m = bc_mem_find(host);

    if (!dev || !m || (m->kind != BC_MEM_HOST && m->kind != BC_MEM_REGISTERED))
        return cudaErrorInvalidValue;
    *dev = host;
    return cudaSuccess;
}

cudaError_t
cudaHostGetDevicePointer(void **dev, void *host, unsigned int flags)
{
    BC_API(flags ? cudaErrorInvalidValue : host_device(dev, host));
}

static cudaError_t
host_flags(unsigned *flags, void *host)
{
    void *dev;
    cudaError_t e = host_device(&dev, host);

    if (e == cudaSuccess && flags)
        *flags = bc_mem_find(host)->flags | cudaHostAllocMapped;
    return flags ? e : cudaErrorInvalidValue;
}

cudaError_t
cudaHostGetFlags(unsigned int *flags, void *host)
{
    BC_API(host_flags(flags, host));
}

static cudaError_t
pitched(void **p, size_t *pitch, size_t width, size_t rows)
{
    size_t bytes;

    if (!p || !pitch || width > INT32_MAX)
        return cudaErrorInvalidValue;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    if (br_mul_overflows(*pitch, rows, &bytes))
        return cudaErrorMemoryAllocation;
    return take(p, bytes, BC_MEM_DEVICE, 0);
}

cudaError_t
cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    BC_API(pitched(p, pitch, width, height));
}

static cudaError_t
malloc_3d(cudaPitchedPtr *p, cudaExtent x)
{
    size_t rows;

    if (!p || br_mul_overflows(x.height, x.depth, &rows))
        return cudaErrorInvalidValue;
    p->xsize = x.width;
    p->ysize = x.height;
    return pitched(&p->ptr, &p->pitch, x.width, rows);
}

cudaError_t
cudaMalloc3D(cudaPitchedPtr *p, cudaExtent extent)
{
    BC_API(malloc_3d(p, extent));
}

static cudaError_t
do_free(void *payload)
{
    cudaError_t e;

    bc_lock();
    e = bc_mem_put(*(void **)payload, BC_MEM_DEVICE);
    bc_unlock();
    return e == cudaSuccess ? e : cudaErrorIllegalAddress;
}

/* A graph's memory is free for its next launch from now on; it stays until this op is
 * done. */
static cudaError_t
graph_free(bc_graph_mem *m, struct CUstream_st *s)
{
    cudaError_t e = bc_graph_mem_turn(m, false);
    void *payload = e == cudaSuccess ? bc_graph_mem_op(m, true) : NULL;

    if (e == cudaSuccess && !payload)
        e = cudaErrorMemoryAllocation;
    return e == cudaSuccess ? bc_issue(s, payload) : e;
}

static cudaError_t
free_async(void *p, cudaStream_t hs)
{
    struct CUstream_st *s = bc_stream_of(hs);
    const bc_mem *m = bc_mem_find(p);
    void **payload;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!p)
        return cudaSuccess;
    if (s->capture)
        return bc_graph_mem_given(s, p);
    if (bc_graph_mem_find(p))
        return graph_free(bc_graph_mem_find(p), s);
    if (!m || m->addr != (uint64_t)(uintptr_t)p || m->kind != BC_MEM_DEVICE)
        return cudaErrorInvalidValue;
    payload = bc_op_new(sizeof *payload, do_free);
    if (!payload)
        return cudaErrorMemoryAllocation;
    *payload = p;
    return bc_issue(s, payload);
}

cudaError_t
cudaFreeAsync(void *p, cudaStream_t stream)
{
    BC_API(free_async(p, stream));
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (!free_bytes || !total)
        return bc_end(cudaErrorInvalidValue);
    bc_lock();
    *total = (size_t)bc_mem_total();
    *free_bytes = *total - (size_t)bc_mem_used();
    bc_unlock();
    return cudaSuccess;
}

static cudaError_t
attributes(cudaPointerAttributes *a, const void *p)
{
    static const uint8_t types[] = {cudaMemoryTypeDevice,  /* DEVICE */
                                    cudaMemoryTypeManaged, /* MANAGED */
                                    cudaMemoryTypeHost,    /* HOST */
                                    cudaMemoryTypeHost,    /* REGISTERED */
                                    cudaMemoryTypeDevice,  /* VARIABLE */
                                    cudaMemoryTypeDevice,  /* HEAP */
                                    cudaMemoryTypeDevice}; /* ARRAY */
    const bc_mem *m = bc_mem_find(p);
    union { /* the interface gives back what it got */
        const void *c;
        void *p;
    } u = {p};

    if (!a)
        return cudaErrorInvalidValue;
    *a = (cudaPointerAttributes){.type = cudaMemoryTypeUnregistered,
                                 .device = m ? 0 : -2};
    a->hostPointer = u.p;
    if (!m)
        return cudaSuccess;
    a->type = (cudaMemoryType)types[m->kind];
    a->devicePointer = u.p;
    if (a->type == cudaMemoryTypeDevice)
        a->hostPointer = NULL;
    return cudaSuccess;
}

cudaError_t
cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p)
{
    BC_API(attributes(a, p));
}

/* ---- copies ------------------------------------------------------------- */

cudaError_t
cudaMemcpy(void *dst, const void *src, size_t n, cudaMemcpyKind kind)
{
    BC_API(bc_copy_line(dst, src, n, kind, 0, false));
}

cudaError_t
cudaMemcpyAsync(void *dst, const void *src, size_t n, cudaMemcpyKind kind,
                cudaStream_t stream)
{
    BC_API(bc_copy_line(dst, src, n, kind, stream, true));
}

cudaError_t
cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
               size_t n)
{
    BC_API(dst_device || src_device
               ? cudaErrorInvalidDevice
               : bc_copy_line(dst, src, n, cudaMemcpyDefault, 0, false));
}

cudaError_t
cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                    size_t n, cudaStream_t stream)
{
    BC_API(dst_device || src_device
               ? cudaErrorInvalidDevice
               : bc_copy_line(dst, src, n, cudaMemcpyDefault, stream, true));
}

static cudaError_t
copy_2d(bc_rect r, cudaMemcpyKind kind, cudaStream_t s, bool async)
{
    r.depth = 1;
    if (r.width && r.height &&
        (!r.src || r.width > r.dpitch || r.width > r.spitch))
        return r.src ? cudaErrorInvalidPitchValue : cudaErrorInvalidValue;
    return bc_copy(&r, kind, s, async);
}

cudaError_t
cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
             size_t width, size_t height, cudaMemcpyKind kind)
{
    bc_rect r = {.dst = dst, .src = src, .width = width, .height = height};

    r.dpitch = dpitch;
    r.spitch = spitch;
    BC_API(copy_2d(r, kind, 0, false));
}

cudaError_t
cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                  size_t width, size_t height, cudaMemcpyKind kind,
                  cudaStream_t stream)
{
    bc_rect r = {.dst = dst, .src = src, .width = width, .height = height};

    r.dpitch = dpitch;
    r.spitch = spitch;
    BC_API(copy_2d(r, kind, stream, true));
}

typedef struct bc_3d {
    void *at;
    uint64_t pitch, slice;
} bc_3d;

/* One side of a copy: in memory, or in an array, whose positions count texels. */
static cudaError_t
side_3d(const bc_rect *r, cudaArray_const_t a, const cudaPitchedPtr *p,
        const cudaPos *pos, bc_3d *out)
{
    bc_box b = {0, pos->y, pos->z};

    if (a && br_mul_overflows(pos->x, bc_array_texel(a), &b.x))
        return cudaErrorInvalidValue;
    if (a)
        return bc_array_box(&b, a, r, &out->at, &out->pitch, &out->slice);
    out->pitch = p->pitch;
    if (!p->ptr || br_mul_overflows(p->pitch, p->ysize, &out->slice))
        return cudaErrorInvalidValue;
    out->at = (char *)p->ptr + pos->z * out->slice + pos->y * p->pitch + pos->x;
    return cudaSuccess;
}

/* With an array in it, the width counts its texels. */
cudaError_t
bc_rect_3d(const cudaMemcpy3DParms *p, bc_rect *out)
{
    bc_rect r = {0};
    cudaArray_const_t a = p ? p->srcArray ? p->srcArray : p->dstArray : NULL;
    bc_3d to, from;
    cudaError_t e;

    if (!p ||
        br_mul_overflows(p->extent.width, a ? bc_array_texel(a) : 1u, &r.width))
        return cudaErrorInvalidValue;
    r.height = p->extent.height;
    r.depth = p->extent.depth;
    e = side_3d(&r, p->dstArray, &p->dstPtr, &p->dstPos, &to);
    if (e == cudaSuccess)
        e = side_3d(&r, p->srcArray, &p->srcPtr, &p->srcPos, &from);
    if (e != cudaSuccess)
        return e;
    r.dst = to.at;
    r.dpitch = to.pitch;
    r.dslice = to.slice;
    r.src = from.at;
    r.spitch = from.pitch;
    r.sslice = from.slice;
    *out = r;
    return cudaSuccess;
}

static cudaError_t
copy_3d(const cudaMemcpy3DParms *p, cudaStream_t s, bool async)
{
    bc_rect r;
    cudaError_t e = bc_rect_3d(p, &r);

    return e == cudaSuccess ? bc_copy(&r, p->kind, s, async) : e;
}

cudaError_t
cudaMemcpy3D(const cudaMemcpy3DParms *p)
{
    BC_API(copy_3d(p, 0, false));
}

cudaError_t
cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream)
{
    BC_API(copy_3d(p, stream, true));
}

static cudaError_t
peer_3d(const cudaMemcpy3DPeerParms *p, cudaStream_t s, bool async)
{
    cudaMemcpy3DParms one;

    if (!p || p->srcDevice || p->dstDevice)
        return p ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    one = (cudaMemcpy3DParms){p->srcArray, p->srcPos,        p->srcPtr,
                              p->dstArray, p->dstPos,        p->dstPtr,
                              p->extent,   cudaMemcpyDefault};
    return copy_3d(&one, s, async);
}

cudaError_t
cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *p)
{
    BC_API(peer_3d(p, 0, false));
}

cudaError_t
cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    BC_API(peer_3d(p, stream, true));
}

/* ---- fills -------------------------------------------------------------- */

cudaError_t
cudaMemset(void *p, int value, size_t n)
{
    BC_API(bc_fill(p, (unsigned char)value, 1, n, 0, false));
}

cudaError_t
cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream)
{
    BC_API(bc_fill(p, (unsigned char)value, 1, n, stream, true));
}

static cudaError_t
fill_3d(cudaPitchedPtr p, int value, cudaExtent x, cudaStream_t s, bool async)
{
    bc_rect r = {.dst = p.ptr, .width = x.width, .height = x.height};

    r.depth = x.depth;
    r.dpitch = p.pitch;
    r.value = (unsigned char)value;
    r.element = 1;
    if (!bc_mem_find(p.ptr) || br_mul_overflows(p.pitch, p.ysize, &r.dslice))
        return cudaErrorInvalidValue;
    return bc_copy(&r, cudaMemcpyDefault, s, async);
}

cudaError_t
cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent extent,
                  cudaStream_t stream)
{
    BC_API(fill_3d(p, value, extent, stream, true));
}

cudaError_t
cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent extent)
{
    BC_API(fill_3d(p, value, extent, 0, false));
}

cudaError_t
cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                  cudaStream_t stream)
{
    cudaPitchedPtr at = {p, pitch, width, height};
    cudaExtent x = {width, height, 1};

    return cudaMemset3DAsync(at, value, x, stream);
}

cudaError_t
cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height)
{
    cudaPitchedPtr at = {p, pitch, width, height};
    cudaExtent x = {width, height, 1};

    return cudaMemset3D(at, value, x);
}

/* All memory is everywhere already: what is said about it is told again when the program
 * asks. */
static cudaError_t
hinted(const void *p, size_t n, bc_hint_kind kind, int value)
{
    if (!bc_mem_find(p) || !bc_mem_fits(p, n))
        return cudaErrorInvalidValue;
    bc_hint(p, n, kind, value);
    return cudaSuccess;
}

cudaError_t
cudaMemPrefetchAsync(const void *p, size_t n, int device, cudaStream_t stream)
{
    BC_API(device != 0 && device != cudaCpuDeviceId ? cudaErrorInvalidDevice
           : !bc_stream_of(stream) ? cudaErrorInvalidResourceHandle
                                   : hinted(p, n, BC_HINT_FETCHED, device));
}

static cudaError_t
advise(const void *p, size_t n, cudaMemoryAdvise advice, int device)
{
    const bc_hint_kind reads =
        device == cudaCpuDeviceId ? BC_HINT_HOST_READS : BC_HINT_DEVICE_READS;

    if (device > 0 || device < -1)
        return cudaErrorInvalidDevice;
    switch (advice) {
    case cudaMemAdviseSetReadMostly:
        return hinted(p, n, BC_HINT_READ_MOSTLY, 1);
    case cudaMemAdviseUnsetReadMostly:
        return hinted(p, n, BC_HINT_READ_MOSTLY, 0);
    case cudaMemAdviseSetPreferredLocation:
        return hinted(p, n, BC_HINT_PREFERRED, device);
    case cudaMemAdviseUnsetPreferredLocation:
        return hinted(p, n, BC_HINT_PREFERRED, cudaInvalidDeviceId);
    case cudaMemAdviseSetAccessedBy: return hinted(p, n, reads, 1);
    case cudaMemAdviseUnsetAccessedBy: return hinted(p, n, reads, 0);
    }
    return cudaErrorInvalidValue;
}

cudaError_t
cudaMemAdvise(const void *p, size_t n, cudaMemoryAdvise advice, int device)
{
    BC_API(advise(p, n, advice, device));
}

/* ---- symbols ------------------------------------------------------------ */

static cudaError_t
symbol_part(const void *symbol, size_t n, size_t offset, char **p)
{
    size_t size;
    void *at;
    cudaError_t e = bc_symbol(symbol, &at, &size);

    if (e != cudaSuccess)
        return e;
    if (offset > size || n > size - offset)
        return cudaErrorInvalidValue;
    *p = (char *)at + offset;
    return cudaSuccess;
}

static cudaError_t
to_symbol(bc_rect r, const void *symbol, size_t offset, cudaMemcpyKind kind,
          cudaStream_t s, bool async)
{
    char *at;
    cudaError_t e = symbol_part(symbol, r.width, offset, &at);
    bool in = r.src != NULL;

    if (e != cudaSuccess)
        return e;
    if (kind == (in ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice) ||
        kind == cudaMemcpyHostToHost)
        return cudaErrorInvalidMemcpyDirection;
    return in ? bc_copy_line(at, r.src, r.width, kind, s, async)
              : bc_copy_line(r.dst, at, r.width, kind, s, async);
}

cudaError_t
cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t n,
                        size_t offset, cudaMemcpyKind kind, cudaStream_t stream)
{
    bc_rect r = {.src = src, .width = n};

    BC_API(src ? to_symbol(r, symbol, offset, kind, stream, true)
               : cudaErrorInvalidValue);
}

cudaError_t
cudaMemcpyToSymbol(const void *symbol, const void *src, size_t n, size_t offset,
                   cudaMemcpyKind kind)
{
    bc_rect r = {.src = src, .width = n};

    BC_API(src ? to_symbol(r, symbol, offset, kind, 0, false)
               : cudaErrorInvalidValue);
}

cudaError_t
cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t n,
                          size_t offset, cudaMemcpyKind kind,
                          cudaStream_t stream)
{
    bc_rect r = {.dst = dst, .width = n};

    BC_API(to_symbol(r, symbol, offset, kind, stream, true));
}

cudaError_t
cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t n, size_t offset,
                     cudaMemcpyKind kind)
{
    bc_rect r = {.dst = dst, .width = n};

    BC_API(to_symbol(r, symbol, offset, kind, 0, false));
}

cudaError_t
cudaGetSymbolAddress(void **p, const void *symbol)
{
    size_t n;

    BC_API(p ? bc_symbol(symbol, p, &n) : cudaErrorInvalidValue);
}

cudaError_t
cudaGetSymbolSize(size_t *n, const void *symbol)
{
    void *p;

    BC_API(n ? bc_symbol(symbol, &p, n) : cudaErrorInvalidValue);
}

/* ---- not between processes ---------------------------------------------- */

cudaError_t
cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *p)
{
    (void)h, (void)p;
    return bc_end(cudaErrorNotSupported);
}

cudaError_t
cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t h, unsigned int flags)
{
    (void)p, (void)h, (void)flags;
    return bc_end(cudaErrorNotSupported);
}

cudaError_t
cudaIpcGetEventHandle(cudaIpcEventHandle_t *h, cudaEvent_t e)
{
    (void)h, (void)e;
    return bc_end(cudaErrorNotSupported);
}

cudaError_t
cudaIpcOpenEventHandle(cudaEvent_t *e, cudaIpcEventHandle_t h)
{
    (void)e, (void)h;
    return bc_end(cudaErrorNotSupported);
}

cudaError_t
cudaIpcCloseMemHandle(void *p)
{
    (void)p;
    return bc_end(cudaErrorNotSupported);
}
