/* drv_texture.c - the driver API: arrays, textures, surfaces.
 *
 * They are the runtime's (rt_texture.c) under other names: a CUarray is a
 * cudaArray_t, objects are the same numbers. A reference is a variable of its
 * module; what is set before it is bound is kept here, one for each variable.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx.h"
#include "cuda/drv_int.h"

#include <string.h>

#define API __attribute__((visibility("default")))

/* ---- formats ------------------------------------------------------------- */

static bool
channels_of(cudaChannelFormatDesc *d, CUarray_format format, unsigned n)
{
    int bits = 0, of[4];

    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: bits = 8; break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: bits = 16; break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: bits = 32; break;
    }
    for (unsigned k = 0; k < 4; k++)
        of[k] = k < n ? bits : 0;
    *d = (cudaChannelFormatDesc){
        of[0], of[1], of[2], of[3],
        format >= CU_AD_FORMAT_HALF          ? cudaChannelFormatKindFloat
        : format >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned
                                             : cudaChannelFormatKindUnsigned};
    return bits && n >= 1 && n <= 4;
}

static CUarray_format
format_of(const cudaChannelFormatDesc *d, unsigned *n)
{
    static const CUarray_format f[3][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16,
         CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
         CU_AD_FORMAT_UNSIGNED_INT32},
        {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT}};

    *n = d->w ? 4 : d->z ? 3 : d->y ? 2 : 1;
    return f[d->f][d->x / 16];
}

/* ---- arrays -------------------------------------------------------------- */

/* The two handles are one. */
static cudaArray_t
rt(CUarray a)
{
    return (cudaArray_t)(void *)a;
}

CUresult
cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *w)
{
    CUresult e = bd_begin();
    cudaChannelFormatDesc d;
    cudaArray_t a = NULL;

    if (e != CUDA_SUCCESS)
        return e;
    if (!array || !w || !channels_of(&d, w->Format, w->NumChannels))
        return CUDA_ERROR_INVALID_VALUE;
    BD_QUIET(e, cudaMalloc3DArray(&a, &d,
                                  (cudaExtent){w->Width, w->Height, w->Depth},
                                  w->Flags));
    *array = (CUarray)(void *)a;
    return e;
}

CUresult
cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *w)
{
    CUDA_ARRAY3D_DESCRIPTOR three = {0};

    if (w)
        three = (CUDA_ARRAY3D_DESCRIPTOR){w->Width,  w->Height,      0,
                                          w->Format, w->NumChannels, 0};
    return cuArray3DCreate_v2(array, w ? &three : NULL);
}

CUresult
cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *w, CUarray array)
{
    cudaChannelFormatDesc d;
    CUresult e = bd_begin();
    cudaExtent x;
    unsigned flags;

    if (e != CUDA_SUCCESS || !w)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    BD_QUIET(e, cudaArrayGetInfo(&d, &x, &flags, rt(array)));
    if (e != CUDA_SUCCESS)
        return e;
    *w = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = x.width, .Height = x.height, .Depth = x.depth, .Flags = flags};
    w->Format = format_of(&d, &w->NumChannels);
    return CUDA_SUCCESS;
}

CUresult
cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *w, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR three;
    CUresult e = cuArray3DGetDescriptor_v2(&three, array);

    if (e != CUDA_SUCCESS || !w)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    *w = (CUDA_ARRAY_DESCRIPTOR){three.Width, three.Height, three.Format,
                                 three.NumChannels};
    return CUDA_SUCCESS;
}

CUresult
cuArrayDestroy(CUarray array)
{
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    BD_CALL(cudaFreeArray(rt(array)));
}

/* ---- copies of a line ---------------------------------------------------- */

CUresult
cuMemcpyHtoA_v2(CUarray dst, size_t at, const void *src, size_t n)
{
    BD_CALL(cudaMemcpyToArray(rt(dst), at, 0, src, n, cudaMemcpyHostToDevice));
}

CUresult
cuMemcpyHtoAAsync_v2(CUarray dst, size_t at, const void *src, size_t n,
                     CUstream s)
{
    BD_CALL(cudaMemcpyToArrayAsync(rt(dst), at, 0, src, n,
                                   cudaMemcpyHostToDevice, s));
}

CUresult
cuMemcpyDtoA_v2(CUarray dst, size_t at, CUdeviceptr src, size_t n)
{
    BD_CALL(cudaMemcpyToArray(rt(dst), at, 0, (const void *)(uintptr_t)src, n,
                              cudaMemcpyDeviceToDevice));
}

CUresult
cuMemcpyAtoH_v2(void *dst, CUarray src, size_t at, size_t n)
{
    BD_CALL(
        cudaMemcpyFromArray(dst, rt(src), at, 0, n, cudaMemcpyDeviceToHost));
}

CUresult
cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t at, size_t n, CUstream s)
{
    BD_CALL(cudaMemcpyFromArrayAsync(dst, rt(src), at, 0, n,
                                     cudaMemcpyDeviceToHost, s));
}

CUresult
cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t at, size_t n)
{
    BD_CALL(cudaMemcpyFromArray((void *)(uintptr_t)dst, rt(src), at, 0, n,
                                cudaMemcpyDeviceToDevice));
}

/* n bytes, from one array to another. */
API CUresult cuMemcpyAtoA_v2(CUarray dst, size_t at, CUarray src, size_t from,
                             size_t n);
CUresult
cuMemcpyAtoA_v2(CUarray dst, size_t at, CUarray src, size_t from, size_t n)
{
    BD_CALL(cudaMemcpyArrayToArray(rt(dst), at, 0, rt(src), from, 0, n,
                                   cudaMemcpyDeviceToDevice));
}

API CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *most,
                                                CUarray_format format,
                                                unsigned channels,
                                                CUdevice device);
CUresult
cuDeviceGetTexture1DLinearMaxWidth(size_t *most, CUarray_format format,
                                   unsigned channels, CUdevice device)
{
    cudaChannelFormatDesc c;
    CUresult e;

    if (!channels_of(&c, format, channels))
        return CUDA_ERROR_INVALID_VALUE;
    BD_QUIET(e, cudaDeviceGetTexture1DLinearMaxWidth(most, &c, device));
    return e;
}

/* ---- objects ------------------------------------------------------------- */

static bool
resource_of(cudaResourceDesc *out, const CUDA_RESOURCE_DESC *r)
{
    memset(out, 0, sizeof *out);
    out->resType = (cudaResourceType)r->resType;
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        out->res.array.array = rt(r->res.array.hArray);
        return true;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return true;
    case CU_RESOURCE_TYPE_LINEAR:
        out->res.linear.devPtr = (void *)(uintptr_t)r->res.linear.devPtr;
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        return channels_of(&out->res.linear.desc, r->res.linear.format,
                           r->res.linear.numChannels);
    case CU_RESOURCE_TYPE_PITCH2D:
        out->res.pitch2D.devPtr = (void *)(uintptr_t)r->res.pitch2D.devPtr;
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        return channels_of(&out->res.pitch2D.desc, r->res.pitch2D.format,
                           r->res.pitch2D.numChannels);
    }
    return false;
}

/* The driver's rule for integers: floats, unless they are to stay, or are of 32
 * bits. */
static cudaTextureReadMode
read_as(const cudaChannelFormatDesc *d, unsigned flags)
{
    return d->f == cudaChannelFormatKindFloat || d->x == 32 ||
                   (flags & CU_TRSF_READ_AS_INTEGER)
               ? cudaReadModeElementType
               : cudaReadModeNormalizedFloat;
}

static cudaError_t
channels_in(cudaChannelFormatDesc *d, const cudaResourceDesc *r)
{
    if (r->resType == cudaResourceTypeArray)
        return cudaGetChannelDesc(d, r->res.array.array);
    *d = r->resType == cudaResourceTypeLinear ? r->res.linear.desc
                                              : r->res.pitch2D.desc;
    return cudaSuccess;
}

CUresult
cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *r,
                  const CUDA_TEXTURE_DESC *d,
                  const CUDA_RESOURCE_VIEW_DESC *view)
{
    CUresult e = bd_begin();
    cudaChannelFormatDesc c;
    cudaResourceDesc res;
    cudaTextureDesc tex = {0};

    if (e != CUDA_SUCCESS)
        return e;
    if (!object || !r || !d || !resource_of(&res, r))
        return CUDA_ERROR_INVALID_VALUE;
    if (view || r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    BD_QUIET(e, channels_in(&c, &res));
    if (e != CUDA_SUCCESS)
        return e;
    for (int k = 0; k < 3; k++)
        tex.addressMode[k] = (cudaTextureAddressMode)d->addressMode[k];
    tex.filterMode = (cudaTextureFilterMode)d->filterMode;
    tex.readMode = read_as(&c, d->flags);
    tex.sRGB = (d->flags & CU_TRSF_SRGB) != 0;
    tex.normalizedCoords = (d->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    memcpy(tex.borderColor, d->borderColor, sizeof tex.borderColor);
    BD_QUIET(e, cudaCreateTextureObject(object, &res, &tex, NULL));
    return e;
}

CUresult
cuTexObjectDestroy(CUtexObject object)
{
    BD_CALL(cudaDestroyTextureObject(object));
}

CUresult
cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *r)
{
    CUresult e = bd_begin();
    cudaResourceDesc res;

    if (e != CUDA_SUCCESS)
        return e;
    if (!object || !r || !resource_of(&res, r))
        return CUDA_ERROR_INVALID_VALUE;
    BD_QUIET(e, cudaCreateSurfaceObject(object, &res));
    return e;
}

CUresult
cuSurfObjectDestroy(CUsurfObject object)
{
    BD_CALL(cudaDestroySurfaceObject(object));
}

/* What it was made of. */
static void
resource_back(CUDA_RESOURCE_DESC *out, const cudaResourceDesc *r)
{
    memset(out, 0, sizeof *out);
    out->resType = (CUresourcetype)r->resType;
    switch (r->resType) {
    case cudaResourceTypeArray:
        out->res.array.hArray = (CUarray)(void *)r->res.array.array;
        break;
    case cudaResourceTypeMipmappedArray: break;
    case cudaResourceTypeLinear:
        out->res.linear.devPtr = (uintptr_t)r->res.linear.devPtr;
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        out->res.linear.format =
            format_of(&r->res.linear.desc, &out->res.linear.numChannels);
        break;
    case cudaResourceTypePitch2D:
        out->res.pitch2D.devPtr = (uintptr_t)r->res.pitch2D.devPtr;
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        out->res.pitch2D.format =
            format_of(&r->res.pitch2D.desc, &out->res.pitch2D.numChannels);
        break;
    }
}

#define GET_RESOURCE(fn, its)                                       \
    API CUresult fn(CUDA_RESOURCE_DESC *out, unsigned long long o); \
    CUresult fn(CUDA_RESOURCE_DESC *out, unsigned long long o)      \
    {                                                               \
        CUresult e = out ? bd_begin() : CUDA_ERROR_INVALID_VALUE;   \
        cudaResourceDesc r;                                         \
                                                                    \
        if (!e)                                                     \
            BD_QUIET(e, its(&r, o));                                \
        if (!e)                                                     \
            resource_back(out, &r);                                 \
        return e;                                                   \
    }
GET_RESOURCE(cuTexObjectGetResourceDesc, cudaGetTextureObjectResourceDesc)
GET_RESOURCE(cuSurfObjectGetResourceDesc, cudaGetSurfaceObjectResourceDesc)

API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject o);
CUresult
cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject o)
{
    CUresult e = out ? bd_begin() : CUDA_ERROR_INVALID_VALUE;
    cudaChannelFormatDesc c = {0};
    cudaResourceDesc r;
    cudaTextureDesc t;

    if (!e)
        BD_QUIET(e, cudaGetTextureObjectTextureDesc(&t, o));
    if (!e)
        BD_QUIET(e, cudaGetTextureObjectResourceDesc(&r, o));
    if (!e)
        BD_QUIET(e, channels_in(&c, &r));
    if (e)
        return e;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < 3; k++)
        out->addressMode[k] = (CUaddress_mode)t.addressMode[k];
    out->filterMode = (CUfilter_mode)t.filterMode;
    out->flags = (t.normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
                 (t.sRGB ? CU_TRSF_SRGB : 0) |
                 (t.readMode == cudaReadModeElementType &&
                          c.f != cudaChannelFormatKindFloat
                      ? CU_TRSF_READ_AS_INTEGER
                      : 0);
    memcpy(out->borderColor, t.borderColor, sizeof out->borderColor);
    return CUDA_SUCCESS;
}

/* ---- references ---------------------------------------------------------- */

/* What is set holds from the binding on, or at once when something is bound. */
struct CUtexref_st {
    struct CUtexref_st *next;
    CUmodule mod;
    char *name;
    cudaResourceDesc r;
    cudaTextureDesc d;
    cudaChannelFormatDesc c; /* of memory: arrays know theirs */
    unsigned anisotropy;
    bool bound;
};
static struct CUtexref_st *refs; /* under the lock; as many as were asked for */

static cudaError_t
ref_at(CUmodule mod, const char *name, void **at)
{
    CUdeviceptr p = 0;
    size_t n = 0;
    cudaError_t e = bd_global(&p, &n, mod, name);

    *at = (void *)(uintptr_t)p;
    return e == cudaSuccess && n != BR_PTX_REF_BYTES ? cudaErrorInvalidSymbol
                                                     : e;
}

static cudaError_t
ref_find(CUtexref *out, CUmodule mod, const char *name)
{
    struct CUtexref_st *r;
    cudaError_t e;
    void *at;

    if (!out || !name)
        return cudaErrorInvalidValue;
    *out = NULL;
    e = ref_at(mod, name, &at);
    if (e != cudaSuccess)
        return e;
    for (r = refs; r && (r->mod != mod || strcmp(r->name, name) != 0);)
        r = r->next;
    if (!r) {
        size_t n = strlen(name) + 1;

        r = br_try_calloc(1, sizeof *r + n);
        if (!r)
            return cudaErrorMemoryAllocation;
        r->name = (char *)(r + 1);
        memcpy(r->name, name, n);
        r->mod = mod;
        r->next = refs;
        refs = r;
    }
    *out = r;
    return cudaSuccess;
}

/* Another module may be where this one was. */
void
bc_refs_forget(const bc_module *mod)
{
    struct CUtexref_st **at = &refs;

    while (*at) {
        struct CUtexref_st *r = *at;

        if ((const void *)r->mod == (const void *)mod) {
            *at = r->next;
            br_free(r);
        } else {
            at = &r->next;
        }
    }
}

/* What is bound, as it is to be read now. */
static cudaError_t
ref_bind(CUtexref r)
{
    void *at;
    cudaError_t e = ref_at(r->mod, r->name, &at);

    return e == cudaSuccess ? bc_texture_bind(at, &r->r, &r->d) : e;
}

/* The body of a function that does something with a reference; then its result. */
#define REF_DO(ok, what, result)             \
    do {                                     \
        CUresult e_ = bd_begin();            \
                                             \
        if (e_ != CUDA_SUCCESS)              \
            return e_;                       \
        if (!ref || !(ok))                   \
            return CUDA_ERROR_INVALID_VALUE; \
        bc_lock();                           \
        what;                                \
        e_ = (result);                       \
        bc_unlock();                         \
        return e_;                           \
    } while (0)
/* One that sets something: what is bound sees it. */
#define REF_SET(ok, set) \
    REF_DO(ok, set, ref->bound ? bd_error(ref_bind(ref)) : CUDA_SUCCESS)
#define REF_GET(ok, get) REF_DO(ok, get, CUDA_SUCCESS)

CUresult
cuModuleGetTexRef(CUtexref *ref, CUmodule mod, const char *name)
{
    BD_API(ref_find(ref, mod, name));
}

CUresult
cuTexRefSetFormat(CUtexref ref, CUarray_format format, int channels)
{
    cudaChannelFormatDesc c;

    REF_SET(channels_of(&c, format, (unsigned)channels), ref->c = c);
}

CUresult
cuTexRefSetFlags(CUtexref ref, unsigned int flags)
{
    REF_SET(!(flags & CU_TRSF_SRGB),
            ref->d.normalizedCoords =
                (flags & CU_TRSF_NORMALIZED_COORDINATES) != 0);
}

CUresult
cuTexRefSetAddressMode(CUtexref ref, int dim, CUaddress_mode mode)
{
    REF_SET(dim >= 0 && dim < 3 && (unsigned)mode <= CU_TR_ADDRESS_MODE_BORDER,
            ref->d.addressMode[dim] = (cudaTextureAddressMode)mode);
}

CUresult
cuTexRefSetFilterMode(CUtexref ref, CUfilter_mode mode)
{
    REF_SET((unsigned)mode <= CU_TR_FILTER_MODE_LINEAR,
            ref->d.filterMode = (cudaTextureFilterMode)mode);
}

/* Binds, or leaves what was bound. With the lock held. */
static cudaError_t
ref_put(CUtexref ref, const cudaResourceDesc *r)
{
    cudaResourceDesc before;
    cudaError_t e;

    if (!ref)
        return cudaErrorInvalidValue;
    before = ref->r;
    ref->r = *r;
    e = ref_bind(ref);
    if (e != cudaSuccess)
        ref->r = before;
    else
        ref->bound = true;
    return e;
}

CUresult
cuTexRefSetArray(CUtexref ref, CUarray array, unsigned int flags)
{
    cudaResourceDesc r = {.resType = cudaResourceTypeArray};

    (void)flags; /* the format is the array's */
    r.res.array.array = rt(array);
    BD_API(ref_put(ref, &r));
}

CUresult
cuTexRefSetAddress_v2(size_t *offset, CUtexref ref, CUdeviceptr p, size_t bytes)
{
    cudaResourceDesc r = {.resType = cudaResourceTypeLinear};

    if (offset)
        *offset = 0;
    r.res.linear.devPtr = (void *)(uintptr_t)p;
    r.res.linear.sizeInBytes = bytes;
    if (ref)
        r.res.linear.desc = ref->c;
    BD_API(ref_put(ref, &r));
}

CUresult
cuTexRefSetAddress2D_v3(CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *w,
                        CUdeviceptr p, size_t pitch)
{
    cudaResourceDesc r = {.resType = cudaResourceTypePitch2D};

    if (!w || !channels_of(&r.res.pitch2D.desc, w->Format, w->NumChannels))
        return CUDA_ERROR_INVALID_VALUE;
    r.res.pitch2D.devPtr = (void *)(uintptr_t)p;
    r.res.pitch2D.width = w->Width;
    r.res.pitch2D.height = w->Height;
    r.res.pitch2D.pitchInBytes = pitch;
    BD_API(ref_put(ref, &r));
}

CUresult
cuParamSetTexRef(CUfunction f, int unit, CUtexref ref)
{
    (void)f;
    return ref && unit == CU_PARAM_TR_DEFAULT ? CUDA_SUCCESS
                                              : CUDA_ERROR_INVALID_VALUE;
}

/* A surface reference is bound the same way, and has nothing to set. */
CUresult
cuModuleGetSurfRef(CUsurfref *ref, CUmodule mod, const char *name)
{
    BD_API(ref_find((CUtexref *)(void *)ref, mod, name));
}

CUresult
cuSurfRefSetArray(CUsurfref ref, CUarray array, unsigned int flags)
{
    (void)flags;
    return cuTexRefSetArray((CUtexref)(void *)ref, array, 0);
}

/* ---- what was set -------------------------------------------------------- */

API CUresult cuTexRefSetBorderColor(CUtexref ref, const float *color);
CUresult
cuTexRefSetBorderColor(CUtexref ref, const float *color)
{
    REF_SET(color, memcpy(ref->d.borderColor, color, 4 * sizeof *color));
}

/* For mipmaps alone, so nothing changes by it. */
API CUresult cuTexRefSetMaxAnisotropy(CUtexref ref, unsigned most);
CUresult
cuTexRefSetMaxAnisotropy(CUtexref ref, unsigned most)
{
    REF_SET(most <= 16, ref->anisotropy = most);
}

static bool
is_bound(CUtexref ref, cudaResourceType type)
{
    return ref && ref->bound && ref->r.resType == type;
}

API CUresult cuTexRefGetAddress_v2(CUdeviceptr *p, CUtexref ref);
CUresult
cuTexRefGetAddress_v2(CUdeviceptr *p, CUtexref ref)
{
    const bool line = is_bound(ref, cudaResourceTypeLinear);

    REF_GET(p && (line || is_bound(ref, cudaResourceTypePitch2D)),
            *p = (uintptr_t)(line ? ref->r.res.linear.devPtr
                                  : ref->r.res.pitch2D.devPtr));
}

API CUresult cuTexRefGetArray(CUarray *array, CUtexref ref);
CUresult
cuTexRefGetArray(CUarray *array, CUtexref ref)
{
    REF_GET(array && is_bound(ref, cudaResourceTypeArray),
            *array = (CUarray)(void *)ref->r.res.array.array);
}

API CUresult cuSurfRefGetArray(CUarray *array, CUsurfref ref);
CUresult
cuSurfRefGetArray(CUarray *array, CUsurfref ref)
{
    return cuTexRefGetArray(array, (CUtexref)(void *)ref);
}

API CUresult cuTexRefGetAddressMode(CUaddress_mode *m, CUtexref ref, int dim);
CUresult
cuTexRefGetAddressMode(CUaddress_mode *m, CUtexref ref, int dim)
{
    REF_GET(m && dim >= 0 && dim < 3,
            *m = (CUaddress_mode)ref->d.addressMode[dim]);
}

API CUresult cuTexRefGetFilterMode(CUfilter_mode *m, CUtexref ref);
CUresult
cuTexRefGetFilterMode(CUfilter_mode *m, CUtexref ref)
{
    REF_GET(m, *m = (CUfilter_mode)ref->d.filterMode);
}

API CUresult cuTexRefGetFormat(CUarray_format *f, int *n, CUtexref ref);
CUresult
cuTexRefGetFormat(CUarray_format *f, int *n, CUtexref ref)
{
    unsigned channels = 0;
    cudaChannelFormatDesc c = {0};

    if (is_bound(ref, cudaResourceTypeArray))
        (void)channels_in(&c, &ref->r);
    else if (ref)
        c = ref->c;
    REF_GET(f && n && c.x, (*f = format_of(&c, &channels), *n = (int)channels));
}

API CUresult cuTexRefGetMaxAnisotropy(int *most, CUtexref ref);
CUresult
cuTexRefGetMaxAnisotropy(int *most, CUtexref ref)
{
    REF_GET(most, *most = (int)ref->anisotropy);
}

API CUresult cuTexRefGetBorderColor(float *color, CUtexref ref);
CUresult
cuTexRefGetBorderColor(float *color, CUtexref ref)
{
    REF_GET(color, memcpy(color, ref->d.borderColor, 4 * sizeof *color));
}

API CUresult cuTexRefGetFlags(unsigned *flags, CUtexref ref);
CUresult
cuTexRefGetFlags(unsigned *flags, CUtexref ref)
{
    REF_GET(flags, *flags = ref->d.normalizedCoords
                                ? CU_TRSF_NORMALIZED_COORDINATES
                                : 0);
}
