/* brass_texture.h - what a texture unit does, as code of the kernel.
 *
 *   tex2D<float>(t, x, y) -> texels around (x, y), by address mode -> filtered
 *
 * An object, and a reference in PTX, is the address of a brass_tex. A filter's
 * weights have 8 bits behind the point, as those of GPUs have. Formats, modes
 * and sizes are looked up where a kernel runs, and are uniform there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_TEXTURE_H
#define BRASS_TEXTURE_H

/* ---- on both sides: descriptors, references ------------------------------ */

template <class T> struct brass_texel; /* S: scalar, N: channels */
#define BRASS_TEXEL1(T)                 \
    template <> struct brass_texel<T> { \
        typedef T S;                    \
        enum { N = 1 };                 \
    };
#define BRASS_TEXEL(name, T)                  \
    BRASS_TEXEL1(T)                           \
    template <> struct brass_texel<name##1> { \
        typedef T S;                          \
        enum { N = 1 };                       \
    };                                        \
    template <> struct brass_texel<name##2> { \
        typedef T S;                          \
        enum { N = 2 };                       \
    };                                        \
    template <> struct brass_texel<name##3> { \
        typedef T S;                          \
        enum { N = 3 };                       \
    };                                        \
    template <> struct brass_texel<name##4> { \
        typedef T S;                          \
        enum { N = 4 };                       \
    };
BRASS_TEXEL1(char)
BRASS_TEXEL(char, signed char)
BRASS_TEXEL(uchar, unsigned char)
BRASS_TEXEL(short, short)
BRASS_TEXEL(ushort, unsigned short)
BRASS_TEXEL(int, int)
BRASS_TEXEL(uint, unsigned int)
BRASS_TEXEL(float, float)
BRASS_TEXEL1(long long) /* surfaces have them, as two channels */
BRASS_TEXEL1(unsigned long long)
BRASS_TEXEL1(double)
#undef BRASS_TEXEL
#undef BRASS_TEXEL1

template <class S> struct brass_is_float {
    enum { value = 0 };
};
template <> struct brass_is_float<float> {
    enum { value = 1 };
};

template <class T>
static inline cudaChannelFormatDesc
cudaCreateChannelDesc()
{
    typedef typename brass_texel<T>::S S;
    const int n = brass_texel<T>::N, bits = 8 * (int)sizeof(S);

    return cudaCreateChannelDesc(
        bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
        brass_is_float<S>::value ? cudaChannelFormatKindFloat
        : (S)-1 < (S)0           ? cudaChannelFormatKindSigned
                                 : cudaChannelFormatKindUnsigned);
}
static inline cudaChannelFormatDesc
cudaCreateChannelDescHalf()
{
    return cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
}

#ifdef __CUDA__
#    define cudaTextureType1D             0x01
#    define cudaTextureType2D             0x02
#    define cudaTextureType3D             0x03
#    define cudaTextureTypeCubemap        0x0c
#    define cudaTextureType1DLayered      0xf1
#    define cudaTextureType2DLayered      0xf2
#    define cudaTextureTypeCubemapLayered 0xfc
#    define cudaSurfaceType1D             0x01
#    define cudaSurfaceType2D             0x02
#    define cudaSurfaceType3D             0x03
#    define cudaSurfaceType1DLayered      0xf1
#    define cudaSurfaceType2DLayered      0xf2

/* Clang makes a handle of it on the device and registers it on the host. */
template <class T, int dim = 1,
          cudaTextureReadMode mode = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture
    : public textureReference {
    explicit texture(int norm = 0,
                     cudaTextureFilterMode filter = cudaFilterModePoint,
                     cudaTextureAddressMode address = cudaAddressModeClamp)
        : texture(norm, filter, address, cudaCreateChannelDesc<T>())
    {
    }
    texture(int norm, cudaTextureFilterMode filter,
            cudaTextureAddressMode address, cudaChannelFormatDesc desc)
        : textureReference()
    {
        normalized = norm;
        filterMode = filter;
        addressMode[0] = addressMode[1] = addressMode[2] = address;
        channelDesc = desc;
    }
};
template <class T, int dim = 1>
struct __attribute__((device_builtin_surface_type)) surface
    : public surfaceReference {
    surface() : surfaceReference() {}
};
template <int dim>
struct __attribute__((device_builtin_surface_type))
surface<void, dim> : public surfaceReference {
    surface() : surfaceReference() {}
};

template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTexture(size_t *offset, const texture<T, D, M> &t, const void *p,
                const cudaChannelFormatDesc &d, size_t n = 0xffffffffu)
{
    return cudaBindTexture(offset, (const textureReference *)&t, p, &d, n);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTexture(size_t *offset, const texture<T, D, M> &t, const void *p,
                size_t n = 0xffffffffu)
{
    return cudaBindTexture(offset, t, p, t.channelDesc, n);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTexture2D(size_t *offset, const texture<T, D, M> &t, const void *p,
                  const cudaChannelFormatDesc &d, size_t width, size_t height,
                  size_t pitch)
{
    return cudaBindTexture2D(offset, (const textureReference *)&t, p, &d, width,
                             height, pitch);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTexture2D(size_t *offset, const texture<T, D, M> &t, const void *p,
                  size_t width, size_t height, size_t pitch)
{
    return cudaBindTexture2D(offset, t, p, t.channelDesc, width, height, pitch);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTextureToArray(const texture<T, D, M> &t, cudaArray_const_t a,
                       const cudaChannelFormatDesc &d)
{
    return cudaBindTextureToArray((const textureReference *)&t, a, &d);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaBindTextureToArray(const texture<T, D, M> &t, cudaArray_const_t a)
{
    return cudaBindTextureToArray(t, a, t.channelDesc);
}
template <class T, int D>
static inline cudaError_t
cudaBindSurfaceToArray(const surface<T, D> &s, cudaArray_const_t a)
{
    return cudaBindSurfaceToArray((const surfaceReference *)&s, a, NULL);
}
template <class T, int D>
static inline cudaError_t
cudaBindSurfaceToArray(const surface<T, D> &s, cudaArray_const_t a,
                       const cudaChannelFormatDesc &)
{
    return cudaBindSurfaceToArray(s, a);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaUnbindTexture(const texture<T, D, M> &t)
{
    return cudaUnbindTexture((const textureReference *)&t);
}
template <class T, int D, cudaTextureReadMode M>
static inline cudaError_t
cudaGetTextureAlignmentOffset(size_t *offset, const texture<T, D, M> &t)
{
    return cudaGetTextureAlignmentOffset(offset, (const textureReference *)&t);
}

/* ---- texels -------------------------------------------------------------- */

/* A channel as the kernel wants it: its bits, extended; as float: a float, a
 * half, or what [0, 1] or [-1, 1] the integer stands for. */
template <class S>
BRASS_D S
brass_channel(const brass_tex *t, const char *p)
{
    if constexpr (brass_is_float<S>::value) {
        if (t->bytes == 4)
            return *(const float *)p;
        if (t->kind == cudaChannelFormatKindFloat) {
            float f = 0;

            asm("cvt.f32.f16 %0, %1;"
                : "=f"(f)
                : "h"(*(const unsigned short *)p));
            return f;
        }
        if (t->kind == cudaChannelFormatKindUnsigned)
            return t->bytes == 1
                       ? (float)*(const unsigned char *)p * (1 / 255.0f)
                       : (float)*(const unsigned short *)p * (1 / 65535.0f);
        return fmaxf(t->bytes == 1
                         ? (float)*(const signed char *)p * (1 / 127.0f)
                         : (float)*(const short *)p * (1 / 32767.0f),
                     -1.0f);
    } else {
        if (t->bytes == (int)sizeof(S))
            return *(const S *)p;
        if (t->kind == cudaChannelFormatKindSigned)
            return (S)(t->bytes == 1   ? *(const signed char *)p
                       : t->bytes == 2 ? *(const short *)p
                                       : *(const int *)p);
        return (S)(t->bytes == 1   ? *(const unsigned char *)p
                   : t->bytes == 2 ? *(const unsigned short *)p
                                   : *(const unsigned int *)p);
    }
}

/* Where coordinate i of n lies by the address mode; -1: in the border. */
BRASS_D int
brass_place(int i, int n, int mode)
{
    if (mode == cudaAddressModeClamp)
        return i < 0 ? 0 : i < n ? i : n - 1;
    if (mode == cudaAddressModeBorder)
        return i >= 0 && i < n ? i : -1;
    if (mode == cudaAddressModeWrap) {
        i %= n;
        return i < 0 ? i + n : i;
    }
    i %= 2 * n;
    i = i < 0 ? i + 2 * n : i;
    return i < n ? i : 2 * n - 1 - i;
}

/* The texel at whole coordinates. An empty texture has zeros. */
template <class T>
BRASS_D T
brass_texel_at(const brass_tex *t, int x, int y, int z)
{
    typedef typename brass_texel<T>::S S;
    const char *p = (const char *)t->base +
                    (long long)(z * (long long)t->slice) +
                    (long long)(y * (long long)t->pitch);
    T r = {};
    S *to = (S *)&r;

    if (!t->base)
        return r;
    if ((x | y | z) < 0) {
        if constexpr (brass_is_float<S>::value)
#    pragma unroll
            for (int c = 0; c < brass_texel<T>::N; c++)
                to[c] = t->border[c];
        return r;
    }
    if (t->bytes == (int)sizeof(S) && t->channels == brass_texel<T>::N)
        return ((const T *)p)[x];
    p += (long long)x * (t->channels * t->bytes);
#    pragma unroll
    for (int c = 0; c < brass_texel<T>::N; c++)
        if (c < t->channels)
            to[c] = brass_channel<S>(t, p + c * t->bytes);
    return r;
}

/* D coordinates are places in texels; layer: which one, 0 if there are none. */
template <class T, int D>
BRASS_D T
brass_point(const brass_tex *t, int x, int y, int z)
{
    x = brass_place(x, t->width, t->address[0]);
    if (D > 1)
        y = brass_place(y, t->height, t->address[1]);
    if (D > 2)
        z = brass_place(z, t->depth, t->address[2]);
    return brass_texel_at<T>(t, x, y, z);
}

template <class T, int D>
BRASS_D T
brass_sample(const brass_tex *t, float x, float y, float z, int layer)
{
    typedef typename brass_texel<T>::S S;
    enum { N = brass_texel<T>::N };

    if (t->normalized) {
        x *= (float)t->width;
        y *= (float)t->height;
        z *= (float)t->depth;
    }
    if (D < 3)
        layer = layer < 0 ? 0 : layer < t->depth ? layer : t->depth - 1;
    if constexpr (brass_is_float<S>::value) {
        if (t->linear) {
            float at[3] = {x - 0.5f, y - 0.5f, z - 0.5f}, part[3] = {};
            int i[3] = {0, 0, layer};
            T r = {};
            S *to = (S *)&r;

#    pragma unroll
            for (int d = 0; d < D; d++) {
                float whole = floorf(at[d]);

                i[d] = (int)whole;
                part[d] = rintf((at[d] - whole) * 256.0f) * (1 / 256.0f);
            }
#    pragma unroll
            for (int k = 0; k < 1 << D; k++) {
                T v = brass_point<T, D>(t, i[0] + (k & 1),
                                        i[1] + (D > 1 ? k >> 1 & 1 : 0),
                                        i[2] + (D > 2 ? k >> 2 & 1 : 0));
                const S *from = (const S *)&v;
                float w = k & 1 ? part[0] : 1 - part[0];

                if (D > 1)
                    w *= k & 2 ? part[1] : 1 - part[1];
                if (D > 2)
                    w *= k & 4 ? part[2] : 1 - part[2];
#    pragma unroll
                for (int c = 0; c < N; c++)
                    to[c] += w * from[c];
            }
            return r;
        }
    }
    return brass_point<T, D>(t, (int)floorf(x), (int)floorf(y),
                             D > 2 ? (int)floorf(z) : layer);
}

/* The face that a direction leads to, and where on it; z: the face. */
template <class T>
BRASS_D T
brass_cube(const brass_tex *t, float x, float y, float z, int layer)
{
    float ax = fabsf(x), ay = fabsf(y), az = fabsf(z), m, u, v;
    int face;
    brass_tex flat = *t;

    if (ax >= ay && ax >= az) {
        m = ax, u = x >= 0 ? -z : z, v = -y, face = x >= 0 ? 0 : 1;
    } else if (ay >= az) {
        m = ay, u = x, v = y >= 0 ? z : -z, face = y >= 0 ? 2 : 3;
    } else {
        m = az, u = z >= 0 ? x : -x, v = -y, face = z >= 0 ? 4 : 5;
    }
    u = (u / m + 1) * 0.5f;
    v = (v / m + 1) * 0.5f;
    flat.normalized = 1;
    flat.address[0] = flat.address[1] = cudaAddressModeClamp;
    return brass_sample<T, 2>(&flat, u, v, 0, layer * 6 + face);
}

/* Channel c of the four texels that a filter would mix, from the lower left
 * one counterclockwise. */
template <class T>
BRASS_D T
brass_gather(const brass_tex *t, float x, float y, int c)
{
    typedef typename brass_texel<T>::S S;
    T r = {}, v[4];
    S *to = (S *)&r;
    int i, j;

    if (t->normalized) {
        x *= (float)t->width;
        y *= (float)t->height;
    }
    i = (int)floorf(x - 0.5f);
    j = (int)floorf(y - 0.5f);
    v[0] = brass_point<T, 2>(t, i, j + 1, 0);
    v[1] = brass_point<T, 2>(t, i + 1, j + 1, 0);
    v[2] = brass_point<T, 2>(t, i + 1, j, 0);
    v[3] = brass_point<T, 2>(t, i, j, 0);
#    pragma unroll
    for (int k = 0; k < 4; k++)
        to[k] = ((const S *)&v[k])[c & 3];
    return r;
}

/* Memory that is read as a row: zero outside. */
template <class T>
BRASS_D T
brass_fetch(const brass_tex *t, int i)
{
    return brass_texel_at<T>(t, i >= 0 && i < t->width ? i : -1, 0, 0);
}

/* ---- the functions, of objects and of references ------------------------- */

#    define BRASS_TEX_OF(o) ((const brass_tex *)(o))
/* What a reference gives: its type, or floats of as many channels. */
template <class T, cudaTextureReadMode M> struct brass_reads {
    typedef T R;
};
template <int N> struct brass_floats {
    typedef float R;
};
template <> struct brass_floats<2> {
    typedef float2 R;
};
template <> struct brass_floats<3> {
    typedef float3 R;
};
template <> struct brass_floats<4> {
    typedef float4 R;
};
template <class T> struct brass_reads<T, cudaReadModeNormalizedFloat> {
    typedef typename brass_floats<brass_texel<T>::N>::R R;
};
template <class T, int D, cudaTextureReadMode M>
BRASS_D const brass_tex *
brass_tex_of(texture<T, D, M> t)
{
    return (const brass_tex *)*(const unsigned long long *)&t;
}

#    define BRASS_ARGS(...) __VA_ARGS__
/* name, its parameters, what they are called, dimension of references, call */
#    define BRASS_TEX(name, params, names, dim, call)                      \
        template <class T>                                                 \
        BRASS_D T name(cudaTextureObject_t o, BRASS_ARGS params)           \
        {                                                                  \
            const brass_tex *t = BRASS_TEX_OF(o);                          \
                                                                           \
            return call;                                                   \
        }                                                                  \
        template <class T>                                                 \
        BRASS_D void name(T *r, cudaTextureObject_t o, BRASS_ARGS params)  \
        {                                                                  \
            *r = name<T>(o, BRASS_ARGS names);                             \
        }                                                                  \
        template <class E, cudaTextureReadMode M>                          \
        BRASS_D typename brass_reads<E, M>::R name(texture<E, dim, M> ref, \
                                                   BRASS_ARGS params)      \
        {                                                                  \
            typedef typename brass_reads<E, M>::R T;                       \
            const brass_tex *t = brass_tex_of(ref);                        \
                                                                           \
            return call;                                                   \
        }
BRASS_TEX(tex1Dfetch, (int i), (i), 1, brass_fetch<T>(t, i))
BRASS_TEX(tex1D, (float x), (x), 1, (brass_sample<T, 1>(t, x, 0, 0, 0)))
BRASS_TEX(tex2D, (float x, float y), (x, y), 2,
          (brass_sample<T, 2>(t, x, y, 0, 0)))
BRASS_TEX(tex3D, (float x, float y, float z), (x, y, z), 3,
          (brass_sample<T, 3>(t, x, y, z, 0)))
BRASS_TEX(tex1DLayered, (float x, int layer), (x, layer), 0xf1,
          (brass_sample<T, 1>(t, x, 0, 0, layer)))
BRASS_TEX(tex2DLayered, (float x, float y, int layer), (x, y, layer), 0xf2,
          (brass_sample<T, 2>(t, x, y, 0, layer)))
BRASS_TEX(texCubemap, (float x, float y, float z), (x, y, z), 0xc,
          brass_cube<T>(t, x, y, z, 0))
BRASS_TEX(texCubemapLayered, (float x, float y, float z, int layer),
          (x, y, z, layer), 0xfc, brass_cube<T>(t, x, y, z, layer))
/* One level is all there is. */
BRASS_TEX(tex1DLod, (float x, float), (x, 0), 1,
          (brass_sample<T, 1>(t, x, 0, 0, 0)))
BRASS_TEX(tex2DLod, (float x, float y, float), (x, y, 0), 2,
          (brass_sample<T, 2>(t, x, y, 0, 0)))
BRASS_TEX(tex3DLod, (float x, float y, float z, float), (x, y, z, 0), 3,
          (brass_sample<T, 3>(t, x, y, z, 0)))
BRASS_TEX(tex2DGrad, (float x, float y, float2 a, float2 b), (x, y, a, b), 2,
          (brass_sample<T, 2>(t, x, y, 0, 0)))
#    undef BRASS_TEX
template <class T>
BRASS_D T
tex2Dgather(cudaTextureObject_t o, float x, float y, int channel = 0)
{
    return brass_gather<T>(BRASS_TEX_OF(o), x, y, channel);
}

/* ---- surfaces: x counts bytes ------------------------------------------- */

/* The place of n bytes; NULL: nothing is read or written there. */
BRASS_D char *
brass_surface_at(const brass_tex *t, int x, int y, int z, int n,
                 cudaSurfaceBoundaryMode mode)
{
    int bytes = t->width * t->channels * t->bytes;

    if (mode == cudaBoundaryModeClamp) {
        x = x < 0 ? 0 : x > bytes - n ? bytes - n : x;
        y = brass_place(y, t->height, cudaAddressModeClamp);
        z = brass_place(z, t->depth, cudaAddressModeClamp);
    } else if (x < 0 || x > bytes - n || (unsigned)y >= (unsigned)t->height ||
               (unsigned)z >= (unsigned)t->depth) {
        if (mode == cudaBoundaryModeTrap)
            __trap();
        return 0;
    }
    return (char *)t->base + z * (long long)t->slice + y * (long long)t->pitch +
           x;
}
template <class T>
BRASS_D T
brass_surface_get(const brass_tex *t, int x, int y, int z,
                  cudaSurfaceBoundaryMode mode)
{
    const char *p = brass_surface_at(t, x, y, z, (int)sizeof(T), mode);

    return p ? *(const T *)p : T{};
}
template <class T>
BRASS_D void
brass_surface_put(const brass_tex *t, T v, int x, int y, int z,
                  cudaSurfaceBoundaryMode mode)
{
    char *p = brass_surface_at(t, x, y, z, (int)sizeof(T), mode);

    if (p)
        *(T *)p = v;
}
template <int D>
BRASS_D const brass_tex *
brass_surface_of(surface<void, D> s)
{
    return (const brass_tex *)*(const unsigned long long *)&s;
}
#    define BRASS_SURF(name, params, names, dim, at)                           \
        template <class T>                                                     \
        BRASS_D T name##read(cudaSurfaceObject_t o, BRASS_ARGS params,         \
                             cudaSurfaceBoundaryMode mode =                    \
                                 cudaBoundaryModeTrap)                         \
        {                                                                      \
            return brass_surface_get<T>(BRASS_TEX_OF(o), BRASS_ARGS at, mode); \
        }                                                                      \
        template <class T>                                                     \
        BRASS_D void name##read(                                               \
            T *r, cudaSurfaceObject_t o, BRASS_ARGS params,                    \
            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)               \
        {                                                                      \
            *r = name##read<T>(o, BRASS_ARGS names, mode);                     \
        }                                                                      \
        template <class T>                                                     \
        BRASS_D void name##write(                                              \
            T v, cudaSurfaceObject_t o, BRASS_ARGS params,                     \
            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)               \
        {                                                                      \
            brass_surface_put<T>(BRASS_TEX_OF(o), v, BRASS_ARGS at, mode);     \
        }                                                                      \
        template <class T>                                                     \
        BRASS_D T name##read(surface<void, dim> s, BRASS_ARGS params,          \
                             cudaSurfaceBoundaryMode mode =                    \
                                 cudaBoundaryModeTrap)                         \
        {                                                                      \
            return brass_surface_get<T>(brass_surface_of(s), BRASS_ARGS at,    \
                                        mode);                                 \
        }                                                                      \
        template <class T>                                                     \
        BRASS_D void name##read(T *r, surface<void, dim> s, BRASS_ARGS params, \
                                cudaSurfaceBoundaryMode mode =                 \
                                    cudaBoundaryModeTrap)                      \
        {                                                                      \
            *r = name##read<T>(s, BRASS_ARGS names, mode);                     \
        }                                                                      \
        template <class T>                                                     \
        BRASS_D void name##write(T v, surface<void, dim> s, BRASS_ARGS params, \
                                 cudaSurfaceBoundaryMode mode =                \
                                     cudaBoundaryModeTrap)                     \
        {                                                                      \
            brass_surface_put<T>(brass_surface_of(s), v, BRASS_ARGS at, mode); \
        }
BRASS_SURF(surf1D, (int x), (x), 1, (x, 0, 0))
BRASS_SURF(surf2D, (int x, int y), (x, y), 2, (x, y, 0))
BRASS_SURF(surf3D, (int x, int y, int z), (x, y, z), 3, (x, y, z))
BRASS_SURF(surf1DLayered, (int x, int layer), (x, layer), 0xf1, (x, 0, layer))
BRASS_SURF(surf2DLayered, (int x, int y, int layer), (x, y, layer), 0xf2,
           (x, y, layer))
BRASS_SURF(surfCubemap, (int x, int y, int face), (x, y, face), 0xc,
           (x, y, face))
#    undef BRASS_SURF
#    undef BRASS_ARGS
#endif
#endif
