/* cu_copy.c - copies and fills: planes of rows of bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

static cudaError_t
do_rect(void *payload)
{
    const bc_rect *r = payload;

    for (uint64_t z = 0; z < r->depth; z++)
        for (uint64_t y = 0; y < r->height; y++) {
            uint8_t *to = (uint8_t *)r->dst + z * r->dslice + y * r->dpitch;

            if (r->src)
                memmove(to,
                        (const uint8_t *)r->src + z * r->sslice + y * r->spitch,
                        r->width);
            else if (r->element == 1)
                memset(to, (int)r->value, r->width);
            else
                for (uint64_t x = 0; x < r->width; x += r->element)
                    memcpy(to + x, &r->value, r->element);
        }
    return cudaSuccess;
}

typedef struct copy { /* a payload */
    bc_rect r;
    cudaMemcpy3DParms as;
    bool said; /* in that way */
} copy;

void *
bc_rect_op(const bc_rect *r, const cudaMemcpy3DParms *as)
{
    copy *p = bc_op_new(sizeof *p, do_rect);

    if (p) {
        p->r = *r;
        p->said = as != NULL;
        if (as)
            p->as = *as;
        bc_op_of(p)->type =
            r->src ? cudaGraphNodeTypeMemcpy : cudaGraphNodeTypeMemset;
    }
    return p;
}

static cudaPitchedPtr
side(void *p, uint64_t pitch, uint64_t slice, const bc_rect *r)
{
    const uint64_t row = pitch ? pitch : r->width;

    return (cudaPitchedPtr){p, row, r->width, slice ? slice / row : r->height};
}

/* Of a copy that was captured there is where it reads and writes, which is not enough
 * inside of an array. */
cudaError_t
bc_copy_params(const void *payload, cudaMemcpy3DParms *out)
{
    const copy *c = payload;
    const bc_rect *r = &c->r;
    const bc_mem *to = bc_mem_find(r->dst), *from = bc_mem_find(r->src);
    union { /* the interface gives back what it got */
        const void *c;
        void *p;
    } src = {r->src};

    if (c->said) {
        *out = c->as;
        return cudaSuccess;
    }
    if ((to && to->kind == BC_MEM_ARRAY) ||
        (from && from->kind == BC_MEM_ARRAY))
        return cudaErrorNotSupported;
    *out = (cudaMemcpy3DParms){.srcPtr = side(src.p, r->spitch, r->sslice, r),
                               .dstPtr = side(r->dst, r->dpitch, r->dslice, r),
                               .extent = {r->width, r->height, r->depth},
                               .kind = to     ? from ? cudaMemcpyDeviceToDevice
                                                     : cudaMemcpyHostToDevice
                                       : from ? cudaMemcpyDeviceToHost
                                              : cudaMemcpyHostToHost};
    return cudaSuccess;
}

void
bc_fill_params(const void *payload, cudaMemsetParams *out)
{
    const bc_rect *r = &((const copy *)payload)->r;

    *out = (cudaMemsetParams){.dst = r->dst,
                              .pitch = r->dpitch,
                              .value = r->value,
                              .elementSize = r->element,
                              .width = r->width / r->element,
                              .height = r->height * r->depth};
}

/* Bytes from the first to the last of a side; false: too many. */
static bool
extent(const bc_rect *r, uint64_t pitch, uint64_t slice, uint64_t *n)
{
    uint64_t rows, planes;

    if (r->width > pitch && r->height > 1)
        return false;
    return !__builtin_mul_overflow(r->height - 1, pitch, &rows) &&
           !__builtin_mul_overflow(r->depth - 1, slice, &planes) &&
           !__builtin_add_overflow(rows, planes, n) &&
           !__builtin_add_overflow(*n, r->width, n);
}

static bool
on_device(const void *p)
{
    const bc_mem *m = bc_mem_find(p);

    return m && (m->kind == BC_MEM_DEVICE || m->kind == BC_MEM_VARIABLE ||
                 m->kind == BC_MEM_ARRAY || m->kind == BC_MEM_MAPPED);
}

cudaError_t
bc_rect_check(const bc_rect *r, cudaMemcpyKind kind)
{
    bool to_device =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    uint64_t n;

    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (!r->dst || !extent(r, r->dpitch, r->dslice, &n))
        return cudaErrorInvalidValue;
    if (!bc_mem_fits(r->dst, n) || (to_device && !bc_mem_find(r->dst)))
        return cudaErrorInvalidValue;
    if (kind != cudaMemcpyDefault && !to_device && on_device(r->dst))
        return cudaErrorInvalidValue;
    if (!r->src)
        return cudaSuccess;
    if (!extent(r, r->spitch, r->sslice, &n) || !bc_mem_fits(r->src, n) ||
        (from_device && !bc_mem_find(r->src)))
        return cudaErrorInvalidValue;
    if (kind != cudaMemcpyDefault && !from_device && on_device(r->src))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

/* Whether the program sees a copy, or a fill, that is done when the call returns: what
 * it did not call async; and from memory that is not pinned, which has been read then.
 * Fills of device memory may be under way. But with nothing in front of them GPUs are
 * through before the next launch is there, and programs count on it that launch into
 * streams that do not wait for the null stream. */
static bool
is_awaited(const bc_rect *r, const struct CUstream_st *s, const void *op,
           bool async)
{
    if (s->capture)
        return false;
    if (async)
        return r->src && !bc_mem_find(r->src);
    return r->src || !on_device(r->dst) || bc_is_next(s, op);
}

cudaError_t
bc_copy(const bc_rect *r, cudaMemcpyKind kind, cudaStream_t hs, bool async)
{
    struct CUstream_st *s = bc_stream_of(hs);
    cudaError_t e;
    void *p;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    if (!r->width || !r->height || !r->depth)
        return cudaSuccess;
    e = bc_rect_check(r, kind);
    if (e != cudaSuccess)
        return e;
    if (!async && r->src && s->capture)
        return bc_graph_spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    p = bc_rect_op(r, NULL);
    if (!p)
        return cudaErrorMemoryAllocation;
    e = bc_issue(s, p);
    if (e == cudaSuccess && is_awaited(r, s, p, async))
        e = bc_wait_seq(s, s->issued);
    return e;
}

cudaError_t
bc_copy_line(void *dst, const void *src, size_t n, cudaMemcpyKind kind,
             cudaStream_t s, bool async)
{
    bc_rect r = {.dst = dst, .src = src, .width = n, .height = 1, .depth = 1};

    if (n && !src)
        return cudaErrorInvalidValue;
    return bc_copy(&r, kind, s, async);
}

cudaError_t
bc_fill(void *p, unsigned value, unsigned element, size_t n, cudaStream_t s,
        bool async)
{
    bc_rect r = {.dst = p, .width = n, .height = 1, .depth = 1};

    r.value = value;
    r.element = element;
    if (n && !bc_mem_find(p))
        return cudaErrorInvalidValue;
    return bc_copy(&r, cudaMemcpyDefault, s, async);
}
