/* rt_texture.c - the runtime API: arrays, textures, surfaces.
 *
 *   array:  [ bc_array, 256 bytes | rows of texels, planes or layers ]
 *   object: [ brass_tex, which kernels read (brass_texture.h) | what it is of ]
 *
 * Both are pieces of device memory of a kind of their own, so that a handle is
 * known by its address. A texture reference is a variable of its module.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx.h"
#include "cuda/cuda_int.h"

#include <string.h>

enum { HEAD = 256, ROW = 32, ARRAY_MAGIC = 0x41727279, MOST = 1 << 28 };

typedef struct bc_array {
    uint32_t magic, flags;
    cudaChannelFormatDesc desc;
    cudaExtent size; /* as it was asked for */
    brass_tex t;
} bc_array;

/* ---- formats ------------------------------------------------------------- */

cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f)
{
    return (cudaChannelFormatDesc){x, y, z, w, f};
}

/* Channels of 8, 16 or 32 bits, all alike. */
static cudaError_t
format(brass_tex *t, const cudaChannelFormatDesc *d)
{
    int bits[4];

    if (!d)
        return cudaErrorInvalidValue;
    bits[0] = d->x, bits[1] = d->y, bits[2] = d->z, bits[3] = d->w;
    t->channels = 1;
    while (t->channels < 4 && bits[t->channels])
        t->channels++;
    for (int k = 0; k < 4; k++)
        if (bits[k] != (k < t->channels ? bits[0] : 0))
            return cudaErrorInvalidChannelDescriptor;
    t->bytes = bits[0] / 8;
    t->kind = (unsigned char)d->f;
    if (bits[0] != 8 && bits[0] != 16 && bits[0] != 32)
        return cudaErrorInvalidChannelDescriptor;
    if ((unsigned)d->f > cudaChannelFormatKindFloat ||
        (d->f == cudaChannelFormatKindFloat && bits[0] == 8))
        return cudaErrorInvalidChannelDescriptor;
    return cudaSuccess;
}

/* ---- arrays -------------------------------------------------------------- */

static const bc_array *
array_of(cudaArray_const_t a)
{
    const bc_mem *m = bc_mem_find(a);
    const bc_array *r = (const bc_array *)(const void *)a;

    return m && m->kind == BC_MEM_ARRAY && m->bytes >= HEAD &&
                   m->addr == (uint64_t)(uintptr_t)a && r->magic == ARRAY_MAGIC
               ? r
               : NULL;
}

static cudaError_t
array_new(cudaArray_t *out, const cudaChannelFormatDesc *d, cudaExtent x,
          unsigned flags)
{
    bc_array head = {.magic = ARRAY_MAGIC, .flags = flags, .size = x};
    brass_tex *t = &head.t;
    size_t pitch, slice, bytes;
    cudaError_t e = format(t, d);
    void *p;

    if (e != cudaSuccess || !out || flags > 15)
        return e != cudaSuccess ? e : cudaErrorInvalidValue;
    *out = NULL;
    if (!x.width || x.width > MOST || x.height > MOST || x.depth > MOST)
        return cudaErrorInvalidValue;
    if ((flags & cudaArrayCubemap) && (x.width != x.height || x.depth % 6))
        return cudaErrorInvalidValue;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    head.desc = *d;
    t->width = (int)x.width;
    t->height = (int)BR_MAX(x.height, (size_t)1);
    t->depth = (int)BR_MAX(x.depth, (size_t)1);
    pitch = x.width * (size_t)(t->channels * t->bytes);
    pitch = (pitch + ROW - 1) / ROW * ROW;
    if (br_mul_overflows(pitch, (size_t)t->height, &slice) ||
        br_mul_overflows(slice, (size_t)t->depth, &bytes) ||
        bytes > SIZE_MAX - HEAD)
        return cudaErrorMemoryAllocation;
    t->pitch = pitch;
    t->slice = slice;
    e = bc_mem_get(&p, bytes + HEAD, 256, BC_MEM_ARRAY, flags);
    if (e != cudaSuccess)
        return e;
    t->base = (uint64_t)(uintptr_t)p + HEAD;
    memcpy(p, &head, sizeof head);
    *out = p;
    return cudaSuccess;
}

cudaError_t
cudaMalloc3DArray(cudaArray_t *a, const cudaChannelFormatDesc *d,
                  cudaExtent extent, unsigned int flags)
{
    BC_API(array_new(a, d, extent, flags));
}

cudaError_t
cudaMallocArray(cudaArray_t *a, const cudaChannelFormatDesc *d, size_t width,
                size_t height, unsigned int flags)
{
    cudaExtent x = {width, height, 0};

    return cudaMalloc3DArray(a, d, x, flags);
}

static cudaError_t
array_free(cudaArray_t a)
{
    cudaError_t e = bc_wait_all();

    if (e != cudaSuccess || !a)
        return e;
    return array_of(a) ? bc_mem_put(a, BC_MEM_ARRAY)
                       : cudaErrorInvalidResourceHandle;
}

cudaError_t
cudaFreeArray(cudaArray_t a)
{
    BC_API(array_free(a));
}

static cudaError_t
array_info(cudaChannelFormatDesc *d, cudaExtent *x, unsigned *flags,
           cudaArray_const_t h)
{
    const bc_array *a = array_of(h);

    if (!a)
        return cudaErrorInvalidResourceHandle;
    if (d)
        *d = a->desc;
    if (x)
        *x = a->size;
    if (flags)
        *flags = a->flags;
    return cudaSuccess;
}

cudaError_t
cudaArrayGetInfo(cudaChannelFormatDesc *d, cudaExtent *extent,
                 unsigned int *flags, cudaArray_t a)
{
    BC_API(array_info(d, extent, flags, a));
}

cudaError_t
cudaGetChannelDesc(cudaChannelFormatDesc *d, cudaArray_const_t a)
{
    BC_API(d ? array_info(d, NULL, NULL, a) : cudaErrorInvalidValue);
}

/* ---- copies -------------------------------------------------------------- */

cudaError_t
bc_array_box(const bc_box *b, cudaArray_const_t h, const bc_rect *r, void **at,
             uint64_t *pitch, uint64_t *slice)
{
    const bc_array *a = array_of(h);
    const brass_tex *t;
    uint64_t row;

    if (!a)
        return cudaErrorInvalidResourceHandle;
    t = &a->t;
    row = (uint64_t)t->width * (uint64_t)(t->channels * t->bytes);
    if (b->x > row || r->width > row - b->x || b->y > (uint64_t)t->height ||
        r->height > (uint64_t)t->height - b->y || b->z > (uint64_t)t->depth ||
        r->depth > (uint64_t)t->depth - b->z)
        return cudaErrorInvalidValue;
    *at =
        (void *)(uintptr_t)(t->base + b->z * t->slice + b->y * t->pitch + b->x);
    *pitch = t->pitch;
    *slice = t->slice;
    return cudaSuccess;
}

unsigned
bc_array_texel(cudaArray_const_t h)
{
    const bc_array *a = array_of(h);

    return a ? (unsigned)(a->t.channels * a->t.bytes) : 0;
}

typedef struct rows { /* to or from an array; the other side is memory */
    cudaArray_const_t array;
    size_t x, y;
    bool to;
} rows;

static cudaError_t
copy_rows(const rows *w, bc_rect r, cudaMemcpyKind kind, cudaStream_t s,
          bool async)
{
    bc_box b = {w->x, w->y, 0};
    uint64_t pitch, slice;
    cudaError_t e;
    void *at;

    r.depth = 1;
    if (!r.width || !r.height)
        return cudaSuccess;
    if ((w->to && !r.src) || (!w->to && !r.dst))
        return cudaErrorInvalidValue;
    if (r.height > 1 && (w->to ? r.spitch : r.dpitch) < r.width)
        return cudaErrorInvalidPitchValue;
    e = bc_array_box(&b, w->array, &r, &at, &pitch, &slice);
    if (e != cudaSuccess)
        return e;
    if (w->to) {
        r.dst = at;
        r.dpitch = pitch;
    } else {
        r.src = at;
        r.spitch = pitch;
    }
    return bc_copy(&r, kind, s, async);
}

/* So many bytes from a place on, row by row. */
static cudaError_t
copy_line(const rows *w, bc_rect r, cudaMemcpyKind kind, cudaStream_t s,
          bool async)
{
    const bc_array *a = array_of(w->array);
    size_t n = r.width, row, part;
    cudaError_t e = a ? cudaSuccess : cudaErrorInvalidResourceHandle;
    rows at = *w;

    row = a ? (size_t)a->t.width * (size_t)(a->t.channels * a->t.bytes) : 0;
    while (e == cudaSuccess && n) {
        if (at.x >= row)
            return cudaErrorInvalidValue;
        part = BR_MIN(n, row - at.x);
        r.width = part;
        r.height = 1;
        if (part == row) { /* whole rows at once */
            r.height = n / row;
            r.spitch = r.dpitch = row;
            part *= r.height;
        }
        e = copy_rows(&at, r, kind, s, async);
        n -= part;
        at.x = 0;
        at.y += r.height;
        if (w->to)
            r.src = (const char *)r.src + part;
        else
            r.dst = (char *)r.dst + part;
    }
    return e;
}

cudaError_t
cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                       size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
    rows w = {dst, x, y, true};
    bc_rect r = {.src = src, .width = n};

    BC_API(copy_line(&w, r, kind, stream, true));
}

cudaError_t
cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src,
                  size_t n, cudaMemcpyKind kind)
{
    rows w = {dst, x, y, true};
    bc_rect r = {.src = src, .width = n};

    BC_API(copy_line(&w, r, kind, 0, false));
}

cudaError_t
cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y,
                         size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
    rows w = {src, x, y, false};
    bc_rect r = {.dst = dst, .width = n};

    BC_API(copy_line(&w, r, kind, stream, true));
}

cudaError_t
cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y,
                    size_t n, cudaMemcpyKind kind)
{
    rows w = {src, x, y, false};
    bc_rect r = {.dst = dst, .width = n};

    BC_API(copy_line(&w, r, kind, 0, false));
}

cudaError_t
cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                         size_t spitch, size_t width, size_t height,
                         cudaMemcpyKind kind, cudaStream_t stream)
{
    rows w = {dst, x, y, true};
    bc_rect r = {.src = src, .width = width, .height = height};

    r.spitch = spitch;
    BC_API(copy_rows(&w, r, kind, stream, true));
}

cudaError_t
cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src,
                    size_t spitch, size_t width, size_t height,
                    cudaMemcpyKind kind)
{
    rows w = {dst, x, y, true};
    bc_rect r = {.src = src, .width = width, .height = height};

    r.spitch = spitch;
    BC_API(copy_rows(&w, r, kind, 0, false));
}

cudaError_t
cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                           size_t x, size_t y, size_t width, size_t height,
                           cudaMemcpyKind kind, cudaStream_t stream)
{
    rows w = {src, x, y, false};
    bc_rect r = {.dst = dst, .width = width, .height = height};

    r.dpitch = dpitch;
    BC_API(copy_rows(&w, r, kind, stream, true));
}

cudaError_t
cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
                      size_t y, size_t width, size_t height,
                      cudaMemcpyKind kind)
{
    rows w = {src, x, y, false};
    bc_rect r = {.dst = dst, .width = width, .height = height};

    r.dpitch = dpitch;
    BC_API(copy_rows(&w, r, kind, 0, false));
}

static cudaError_t
between(const rows *to, const rows *from, bc_rect r)
{
    bc_box b = {from->x, from->y, 0};
    cudaError_t e;
    void *at;

    r.depth = 1;
    e = bc_array_box(&b, from->array, &r, &at, &r.spitch, &r.sslice);
    r.src = at;
    return e != cudaSuccess
               ? e
               : copy_rows(to, r, cudaMemcpyDeviceToDevice, 0, false);
}

cudaError_t
cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dx, size_t dy,
                         cudaArray_const_t src, size_t sx, size_t sy,
                         size_t width, size_t height, cudaMemcpyKind kind)
{
    rows to = {dst, dx, dy, true}, from = {src, sx, sy, false};
    bc_rect r = {.width = width, .height = height};

    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return bc_end(cudaErrorInvalidMemcpyDirection);
    BC_API(between(&to, &from, r));
}

/* Bytes that go on in the next row, as long as both arrays have them. */
static cudaError_t
lines_between(rows to, rows from, size_t n)
{
    const bc_array *a = array_of(to.array), *b = array_of(from.array);
    cudaError_t e = a && b ? cudaSuccess : cudaErrorInvalidValue;
    size_t w[2];

    for (int k = 0; e == cudaSuccess && k < 2; k++)
        w[k] = (size_t)(k ? b : a)->t.width *
               (size_t)((k ? b : a)->t.channels * (k ? b : a)->t.bytes);
    if (e == cudaSuccess && (to.x >= w[0] || from.x >= w[1]))
        e = n ? cudaErrorInvalidValue : e;
    while (e == cudaSuccess && n) {
        bc_rect r = {.width = BR_MIN(BR_MIN(w[0] - to.x, w[1] - from.x), n),
                     .height = 1};

        e = between(&to, &from, r);
        n -= r.width;
        to.x += r.width;
        from.x += r.width;
        to.y += to.x / w[0];
        from.y += from.x / w[1];
        to.x %= w[0];
        from.x %= w[1];
    }
    return e;
}

cudaError_t
cudaMemcpyArrayToArray(cudaArray_t dst, size_t dx, size_t dy,
                       cudaArray_const_t src, size_t sx, size_t sy, size_t n,
                       cudaMemcpyKind kind)
{
    rows to = {dst, dx, dy, true}, from = {src, sx, sy, false};

    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return bc_end(cudaErrorInvalidMemcpyDirection);
    BC_API(lines_between(to, from, n));
}

/* ---- objects ------------------------------------------------------------- */

/* Memory of the program's as rows of texels. */
static cudaError_t
memory(brass_tex *t, const void *p, const cudaChannelFormatDesc *d,
       const cudaExtent *x, size_t pitch)
{
    cudaError_t e = format(t, d);
    uint64_t texel = (uint64_t)(t->channels * t->bytes), bytes, last;

    if (e != cudaSuccess)
        return e;
    if (!p || (uintptr_t)p % texel || !x->width || x->width > MOST ||
        !x->height || x->height > MOST || pitch % texel ||
        (x->height > 1 && pitch < x->width * texel))
        return cudaErrorInvalidValue;
    last = x->width * texel;
    if (br_mul_overflows((uint64_t)pitch, x->height - 1, &bytes) ||
        bytes > UINT64_MAX - last || !bc_mem_find(p) ||
        !bc_mem_fits(p, bytes + last))
        return cudaErrorInvalidValue;
    t->base = (uint64_t)(uintptr_t)p;
    t->width = (int)x->width;
    t->height = (int)x->height;
    t->depth = 1;
    t->pitch = pitch;
    return cudaSuccess;
}

static cudaError_t
resource(brass_tex *t, const cudaResourceDesc *r)
{
    const bc_array *a;
    cudaExtent x = {0, 1, 1};
    cudaError_t e;

    switch (r->resType) {
    case cudaResourceTypeArray:
        a = array_of(r->res.array.array);
        if (!a)
            return cudaErrorInvalidResourceHandle;
        *t = a->t;
        return cudaSuccess;
    case cudaResourceTypeLinear:
        e = format(t, &r->res.linear.desc);
        if (e != cudaSuccess)
            return e;
        x.width = r->res.linear.sizeInBytes / (size_t)(t->channels * t->bytes);
        return memory(t, r->res.linear.devPtr, &r->res.linear.desc, &x, 0);
    case cudaResourceTypePitch2D:
        x.width = r->res.pitch2D.width;
        x.height = r->res.pitch2D.height;
        return memory(t, r->res.pitch2D.devPtr, &r->res.pitch2D.desc, &x,
                      r->res.pitch2D.pitchInBytes);
    case cudaResourceTypeMipmappedArray: return cudaErrorNotSupported;
    }
    return cudaErrorInvalidValue;
}

/* How it is read. Only normalised coordinates wrap; integers are not mixed. */
static cudaError_t
sampler(brass_tex *t, const cudaTextureDesc *d)
{
    bool as_float = t->kind == cudaChannelFormatKindFloat ||
                    d->readMode == cudaReadModeNormalizedFloat;

    if ((unsigned)d->filterMode > 1 || (unsigned)d->readMode > 1)
        return cudaErrorInvalidValue;
    if ((d->filterMode == cudaFilterModeLinear && !as_float) ||
        (d->readMode == cudaReadModeNormalizedFloat && t->bytes == 4 &&
         t->kind != cudaChannelFormatKindFloat))
        return cudaErrorInvalidValue;
    if (d->sRGB)
        return cudaErrorNotSupported;
    t->linear = d->filterMode == cudaFilterModeLinear;
    t->normalized = d->normalizedCoords != 0;
    for (int k = 0; k < 3; k++) {
        cudaTextureAddressMode m = d->addressMode[k];

        if ((unsigned)m > cudaAddressModeBorder)
            return cudaErrorInvalidValue;
        if (!t->normalized && m != cudaAddressModeBorder)
            m = cudaAddressModeClamp;
        t->address[k] = (unsigned char)m;
    }
    memcpy(t->border, d->borderColor, sizeof t->border);
    return cudaSuccess;
}

/* A texture or surface object: what kernels read, then what it was made of. */
typedef struct object {
    brass_tex t;
    cudaResourceDesc r;
    cudaTextureDesc d;
} object;

static cudaError_t
object_new(unsigned long long *out, const object *o)
{
    cudaError_t e;
    void *p;

    *out = 0;
    e = bc_mem_get(&p, sizeof *o, 64, BC_MEM_ARRAY, 0);
    if (e != cudaSuccess)
        return e;
    memcpy(p, o, sizeof *o);
    *out = (unsigned long long)(uintptr_t)p;
    return cudaSuccess;
}

/* NULL, where there is none at that address. */
static object *
object_at(unsigned long long o)
{
    void *p = (void *)(uintptr_t)o;
    const bc_mem *m = bc_mem_find(p);

    return m && m->kind == BC_MEM_ARRAY && m->bytes == sizeof(object) &&
                   m->addr == o
               ? p
               : NULL;
}

static cudaError_t
object_free(unsigned long long o)
{
    cudaError_t e;

    if (!object_at(o))
        return cudaErrorInvalidResourceHandle;
    e = bc_wait_all();
    return e == cudaSuccess ? bc_mem_put((void *)(uintptr_t)o, BC_MEM_ARRAY)
                            : e;
}

/* What an object of that kind was made of. */
static cudaError_t
object_tell(unsigned long long at, bool surface, cudaResourceDesc *r,
            cudaTextureDesc *d)
{
    const object *o = object_at(at);

    if (!r && !d)
        return cudaErrorInvalidValue;
    if (!o || o->t.surface != surface)
        return cudaErrorInvalidResourceHandle;
    if (r)
        *r = o->r;
    if (d)
        *d = o->d;
    return cudaSuccess;
}

static cudaError_t
texture_new(cudaTextureObject_t *out, const cudaResourceDesc *r,
            const cudaTextureDesc *d, const cudaResourceViewDesc *view)
{
    object o;
    cudaError_t e;

    memset(&o, 0, sizeof o);
    if (!out || !r || !d)
        return cudaErrorInvalidValue;
    if (view)
        return cudaErrorNotSupported;
    e = resource(&o.t, r);
    if (e == cudaSuccess)
        e = sampler(&o.t, d);
    if (r->resType == cudaResourceTypeLinear) /* outside are zeros */
        memset(o.t.border, 0, sizeof o.t.border);
    o.r = *r;
    o.d = *d;
    return e == cudaSuccess ? object_new(out, &o) : e;
}

cudaError_t
cudaCreateTextureObject(cudaTextureObject_t *t, const cudaResourceDesc *r,
                        const cudaTextureDesc *d,
                        const cudaResourceViewDesc *view)
{
    BC_API(texture_new(t, r, d, view));
}

cudaError_t
cudaDestroyTextureObject(cudaTextureObject_t t)
{
    BC_API(t ? object_free(t) : cudaSuccess);
}

cudaError_t
cudaGetTextureObjectResourceDesc(cudaResourceDesc *r, cudaTextureObject_t t)
{
    BC_API(object_tell(t, false, r, NULL));
}

cudaError_t
cudaGetTextureObjectTextureDesc(cudaTextureDesc *d, cudaTextureObject_t t)
{
    BC_API(object_tell(t, false, NULL, d));
}

static cudaError_t
surface_new(cudaSurfaceObject_t *out, const cudaResourceDesc *r)
{
    object o;
    cudaError_t e;

    memset(&o, 0, sizeof o);
    if (!out || !r || r->resType != cudaResourceTypeArray)
        return cudaErrorInvalidValue;
    e = resource(&o.t, r);
    o.t.surface = 1;
    o.r = *r;
    return e == cudaSuccess ? object_new(out, &o) : e;
}

cudaError_t
cudaCreateSurfaceObject(cudaSurfaceObject_t *s, const cudaResourceDesc *r)
{
    BC_API(surface_new(s, r));
}

cudaError_t
cudaDestroySurfaceObject(cudaSurfaceObject_t s)
{
    BC_API(s ? object_free(s) : cudaSuccess);
}

cudaError_t
cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *r, cudaSurfaceObject_t s)
{
    BC_API(object_tell(s, true, r, NULL));
}

/* ---- references ---------------------------------------------------------- */

/* Into the variable that kernels know the reference by, when those before are
 * done with it. NULL: nothing is bound. */
static cudaError_t
put(void *at, const brass_tex *t)
{
    static const brass_tex none;
    cudaError_t e = bc_wait_all();

    _Static_assert(sizeof *t <= BR_PTX_REF_BYTES, "a reference holds it");
    if (e == cudaSuccess)
        memcpy(at, t ? t : &none, sizeof *t);
    return e;
}

static cudaError_t
variable(const void *ref, void **at)
{
    size_t n;

    return bc_symbol(ref, at, &n) == cudaSuccess && n == BR_PTX_REF_BYTES
               ? cudaSuccess
               : cudaErrorInvalidTexture;
}

static cudaError_t
bind(const void *ref, const brass_tex *t)
{
    void *at;
    cudaError_t e = variable(ref, &at);

    return e == cudaSuccess ? put(at, t) : e;
}

cudaError_t
bc_texture_bind(void *at, const cudaResourceDesc *r, const cudaTextureDesc *how)
{
    cudaTextureDesc d = *how;
    brass_tex t = {0};
    cudaError_t e = resource(&t, r);

    if (e != cudaSuccess)
        return e;
    /* Whether integers are read as floats, only the reference's type knows. */
    d.readMode =
        t.bytes < 4 ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    e = sampler(&t, &d);
    return e == cudaSuccess ? put(at, &t) : e;
}

static cudaError_t
bind_texture(const textureReference *ref, const cudaResourceDesc *r,
             size_t *offset)
{
    cudaTextureDesc d = {.filterMode = ref->filterMode, .sRGB = ref->sRGB};
    cudaError_t e;
    void *at;

    if (offset)
        *offset = 0;
    d.normalizedCoords = ref->normalized;
    memcpy(d.addressMode, ref->addressMode, sizeof d.addressMode);
    e = variable(ref, &at);
    return e == cudaSuccess ? bc_texture_bind(at, r, &d) : e;
}

/* What is said to be longer than it is ends where its memory ends. */
static cudaError_t
bind_line(size_t *offset, const textureReference *ref, const void *p,
          const cudaChannelFormatDesc *d, size_t n)
{
    const bc_mem *m = bc_mem_find(p);
    union { /* it is read only */
        const void *c;
        void *p;
    } u = {p};
    cudaResourceDesc r = {.resType = cudaResourceTypeLinear};

    if (!ref || !d || !m)
        return cudaErrorInvalidValue;
    r.res.linear.devPtr = u.p;
    r.res.linear.desc = *d;
    r.res.linear.sizeInBytes =
        BR_MIN(n, (size_t)(m->addr + m->bytes - (uint64_t)(uintptr_t)p));
    return bind_texture(ref, &r, offset);
}

cudaError_t
cudaBindTexture(size_t *offset, const textureReference *t, const void *p,
                const cudaChannelFormatDesc *d, size_t n)
{
    BC_API(bind_line(offset, t, p, d, n));
}

cudaError_t
cudaBindTexture2D(size_t *offset, const textureReference *t, const void *p,
                  const cudaChannelFormatDesc *d, size_t width, size_t height,
                  size_t pitch)
{
    cudaResourceDesc r = {.resType = cudaResourceTypePitch2D};
    union {
        const void *c;
        void *p;
    } u = {p};

    if (!t || !d)
        return bc_end(cudaErrorInvalidValue);
    r.res.pitch2D.devPtr = u.p;
    r.res.pitch2D.desc = *d;
    r.res.pitch2D.width = width;
    r.res.pitch2D.height = height;
    r.res.pitch2D.pitchInBytes = pitch;
    BC_API(bind_texture(t, &r, offset));
}

cudaError_t
cudaBindTextureToArray(const textureReference *t, cudaArray_const_t a,
                       const cudaChannelFormatDesc *d)
{
    cudaResourceDesc r = {.resType = cudaResourceTypeArray};
    union {
        cudaArray_const_t c;
        cudaArray_t a;
    } u = {a};

    r.res.array.array = u.a;
    BC_API(t && d ? bind_texture(t, &r, NULL) : cudaErrorInvalidValue);
}

static cudaError_t
bind_surface(const surfaceReference *s, cudaArray_const_t h)
{
    const bc_array *a = array_of(h);

    return a ? bind(s, &a->t) : cudaErrorInvalidResourceHandle;
}

cudaError_t
cudaBindSurfaceToArray(const surfaceReference *s, cudaArray_const_t a,
                       const cudaChannelFormatDesc *d)
{
    (void)d; /* the array's */
    BC_API(s ? bind_surface(s, a) : cudaErrorInvalidValue);
}

cudaError_t
cudaUnbindTexture(const textureReference *t)
{
    BC_API(t ? bind(t, NULL) : cudaErrorInvalidTexture);
}

cudaError_t
cudaGetTextureAlignmentOffset(size_t *offset, const textureReference *t)
{
    if (!offset || !t)
        return bc_end(cudaErrorInvalidValue);
    *offset = 0;
    return bc_end(cudaSuccess);
}

static cudaError_t
reference_of(const textureReference **t, const void *symbol)
{
    size_t n;
    void *at;

    if (!t || bc_symbol(symbol, &at, &n) != cudaSuccess)
        return t ? cudaErrorInvalidTexture : cudaErrorInvalidValue;
    *t = symbol;
    return cudaSuccess;
}

cudaError_t
cudaGetTextureReference(const textureReference **t, const void *symbol)
{
    BC_API(reference_of(t, symbol));
}
