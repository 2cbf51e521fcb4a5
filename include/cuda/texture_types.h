/* texture_types.h - arrays, textures and surfaces: what they are made from.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_TEXTURE_TYPES_H
#define BRASS_TEXTURE_TYPES_H
#include <stddef.h>

typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;

enum { /* flags */
       cudaArrayDefault = 0,
       cudaArrayLayered = 1,
       cudaArraySurfaceLoadStore = 2,
       cudaArrayCubemap = 4,
       cudaArrayTextureGather = 8
};
typedef enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned,
    cudaChannelFormatKindUnsigned,
    cudaChannelFormatKindFloat,
    cudaChannelFormatKindNone
} cudaChannelFormatKind;
typedef struct cudaChannelFormatDesc {
    int x, y, z, w; /* bits */
    cudaChannelFormatKind f;
} cudaChannelFormatDesc;

typedef enum cudaTextureAddressMode {
    cudaAddressModeWrap,
    cudaAddressModeClamp,
    cudaAddressModeMirror,
    cudaAddressModeBorder
} cudaTextureAddressMode;
typedef enum cudaTextureFilterMode {
    cudaFilterModePoint,
    cudaFilterModeLinear
} cudaTextureFilterMode;
typedef enum cudaTextureReadMode {
    cudaReadModeElementType,
    cudaReadModeNormalizedFloat
} cudaTextureReadMode;
typedef enum cudaSurfaceBoundaryMode {
    cudaBoundaryModeZero,
    cudaBoundaryModeClamp,
    cudaBoundaryModeTrap
} cudaSurfaceBoundaryMode;
typedef enum cudaResourceType {
    cudaResourceTypeArray,
    cudaResourceTypeMipmappedArray,
    cudaResourceTypeLinear,
    cudaResourceTypePitch2D
} cudaResourceType;

typedef struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            cudaMipmappedArray_t mipmap;
        } mipmap;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
} cudaResourceDesc;
typedef struct cudaResourceViewDesc {
    int format;
    size_t width, height, depth;
    unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
} cudaResourceViewDesc;
typedef struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
} cudaTextureDesc;
typedef struct textureReference {
    int normalized;
    cudaTextureFilterMode filterMode;
    cudaTextureAddressMode addressMode[3];
    cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned int maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
} textureReference;
typedef struct surfaceReference {
    cudaChannelFormatDesc channelDesc;
} surfaceReference;

/* What a texture or surface object is the address of: kernels read it, and do
 * what a texture unit does in code of their own (brass_texture.h). The PTX
 * front-end gives a texture reference as many bytes. */
typedef struct brass_tex {
    unsigned long long base, pitch, slice; /* bytes from row to row, plane .. */
    int width, height, depth;              /* texels; depth: or layers */
    int channels, bytes;                   /* of a channel */
    unsigned char kind;                    /* cudaChannelFormatKind */
    unsigned char address[3], linear, normalized, surface, pad;
    float border[4];
} brass_tex;
#endif
