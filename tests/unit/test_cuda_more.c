/* test_cuda_more.c - what few programs ask of the driver: what objects, references and
 * nodes were made of, contexts that are held twice, entry points of a thread's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda_int.h"

#include "cuda/cuda.h"

#include <string.h>

/* They are in CUDA's header, not in ours. */
CUresult cuCtxAttach(CUcontext *ctx, unsigned flags);
CUresult cuCtxDetach(CUcontext ctx);
CUresult cuCtxSetFlags(unsigned flags);
CUresult cuCtxGetExecAffinity(void *out, int type);
CUresult cuDeviceGetExecAffinitySupport(int *is, int type, CUdevice device);
CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *most, CUarray_format format,
                                            unsigned channels, CUdevice device);
CUresult cuGetProcAddress_v2_ptsz(const char *name, void **fn, int version,
                                  unsigned long long flags, int *status);
CUresult cuGraphMemcpyNodeGetParams(cudaGraphNode_t node, CUDA_MEMCPY3D *c);
CUresult cuGraphAddMemcpyNode(cudaGraphNode_t *node, CUgraph graph,
                              const cudaGraphNode_t *deps, size_t n,
                              const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult cuGraphCreate(CUgraph *g, unsigned flags);
CUresult cuMemcpyAtoA_v2(CUarray dst, size_t at, CUarray src, size_t from,
                         size_t n);
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject o);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject o);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject o);
CUresult cuTexRefGetAddressMode(CUaddress_mode *m, CUtexref ref, int dim);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *p, CUtexref ref);
CUresult cuTexRefGetArray(CUarray *array, CUtexref ref);
CUresult cuTexRefGetBorderColor(float *color, CUtexref ref);
CUresult cuTexRefGetFilterMode(CUfilter_mode *m, CUtexref ref);
CUresult cuTexRefGetFlags(unsigned *flags, CUtexref ref);
CUresult cuTexRefGetFormat(CUarray_format *f, int *n, CUtexref ref);
CUresult cuTexRefGetMaxAnisotropy(int *most, CUtexref ref);
CUresult cuTexRefSetBorderColor(CUtexref ref, const float *color);
CUresult cuTexRefSetMaxAnisotropy(CUtexref ref, unsigned most);

#define DO(call)  ck_assert_int_eq(call, CUDA_SUCCESS)
#define NOT(call) ck_assert_int_eq(call, CUDA_ERROR_INVALID_VALUE)

static CUcontext
start(void)
{
    CUcontext ctx;

    DO(cuInit(0));
    DO(cuCtxCreate(&ctx, 0, 0));
    return ctx;
}

static void
end(void)
{
    DO(cuDevicePrimaryCtxReset(0));
}

TEST(cuda_objects_tell_what_they_were_made_of)
{
    const CUDA_ARRAY_DESCRIPTOR wide = {8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY}, got;
    CUDA_TEXTURE_DESC d = {.filterMode = CU_TR_FILTER_MODE_LINEAR,
                           .flags = CU_TRSF_NORMALIZED_COORDINATES,
                           .borderColor = {1, 2, 3, 4}};
    CUDA_TEXTURE_DESC how;
    CUtexObject t;
    CUsurfObject s;
    CUdeviceptr p;
    CUarray a;

    start();
    d.addressMode[1] = CU_TR_ADDRESS_MODE_BORDER;
    DO(cuArrayCreate(&a, &wide));
    r.res.array.hArray = a;
    DO(cuTexObjectCreate(&t, &r, &d, NULL));
    DO(cuTexObjectGetResourceDesc(&got, t));
    ck_assert_int_eq(got.resType, CU_RESOURCE_TYPE_ARRAY);
    ck_assert_ptr_eq(got.res.array.hArray, a);
    DO(cuTexObjectGetTextureDesc(&how, t));
    ck_assert_mem_eq(&how, &d, sizeof d);
    d.filterMode = CU_TR_FILTER_MODE_POINT;
    d.flags = CU_TRSF_READ_AS_INTEGER;
    DO(cuTexObjectCreate(&t, &r, &d, NULL));
    DO(cuTexObjectGetTextureDesc(&how, t));
    ck_assert_mem_eq(&how, &d, sizeof d);
    DO(cuSurfObjectCreate(&s, &r));
    DO(cuSurfObjectGetResourceDesc(&got, s));
    ck_assert_ptr_eq(got.res.array.hArray, a);
    DO(cuMemAlloc(&p, 1024));
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_LINEAR;
    r.res.linear.devPtr = p;
    r.res.linear.format = CU_AD_FORMAT_HALF;
    r.res.linear.numChannels = 2;
    r.res.linear.sizeInBytes = 512;
    DO(cuTexObjectCreate(&t, &r, &d, NULL));
    DO(cuTexObjectGetResourceDesc(&got, t));
    ck_assert_mem_eq(&got, &r, sizeof r);
    ck_assert_int_ne(cuTexObjectGetResourceDesc(&got, 5), CUDA_SUCCESS);
    NOT(cuTexObjectGetResourceDesc(NULL, t));
    end();
}

TEST(cuda_texture_references_tell_what_was_set)
{
    const CUDA_ARRAY_DESCRIPTOR wide = {8, 4, CU_AD_FORMAT_FLOAT, 2};
    const float color[4] = {.5f, 1, 2, 3};
    CUaddress_mode mode;
    CUarray_format f;
    CUfilter_mode filter;
    CUdeviceptr p, q;
    unsigned flags;
    CUtexref ref;
    CUmodule mod;
    CUarray a, b;
    float got[4];
    size_t most;
    int n;

    start();
    DO(cuModuleLoadData(&mod, ".version 8.0\n.target sm_80\n"
                              ".address_size 64\n.global .texref t;\n"));
    DO(cuModuleGetTexRef(&ref, mod, "t"));
    NOT(cuTexRefGetArray(&a, ref)); /* nothing is bound */
    NOT(cuTexRefGetAddress_v2(&p, ref));
    DO(cuTexRefSetAddressMode(ref, 1, CU_TR_ADDRESS_MODE_CLAMP));
    DO(cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
    DO(cuTexRefSetFlags(ref, CU_TRSF_NORMALIZED_COORDINATES));
    DO(cuTexRefSetBorderColor(ref, color));
    DO(cuTexRefSetMaxAnisotropy(ref, 4));
    NOT(cuTexRefSetMaxAnisotropy(ref, 17));
    DO(cuTexRefSetFormat(ref, CU_AD_FORMAT_SIGNED_INT16, 4));
    DO(cuTexRefGetFormat(&f, &n, ref));
    ck_assert_int_eq(f, CU_AD_FORMAT_SIGNED_INT16);
    ck_assert_int_eq(n, 4);
    DO(cuArrayCreate(&a, &wide));
    DO(cuTexRefSetArray(ref, a, CU_TRSA_OVERRIDE_FORMAT));
    DO(cuTexRefGetArray(&b, ref));
    ck_assert_ptr_eq(a, b);
    DO(cuTexRefGetFormat(&f, &n, ref));
    ck_assert_int_eq(f, CU_AD_FORMAT_FLOAT);
    ck_assert_int_eq(n, 2);
    DO(cuTexRefGetAddressMode(&mode, ref, 1));
    ck_assert_int_eq(mode, CU_TR_ADDRESS_MODE_CLAMP);
    NOT(cuTexRefGetAddressMode(&mode, ref, 3));
    DO(cuTexRefGetFilterMode(&filter, ref));
    ck_assert_int_eq(filter, CU_TR_FILTER_MODE_LINEAR);
    DO(cuTexRefGetFlags(&flags, ref));
    ck_assert_uint_eq(flags, CU_TRSF_NORMALIZED_COORDINATES);
    DO(cuTexRefGetBorderColor(got, ref));
    ck_assert_mem_eq(got, color, sizeof got);
    DO(cuTexRefGetMaxAnisotropy(&n, ref));
    ck_assert_int_eq(n, 4);
    DO(cuTexRefSetFlags(ref, 0));
    DO(cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_POINT));
    DO(cuMemAlloc(&p, 1024));
    DO(cuTexRefSetAddress(&most, ref, p, 1024));
    DO(cuTexRefGetAddress_v2(&q, ref));
    ck_assert_uint_eq(p, q);
    NOT(cuTexRefGetArray(&b, ref));
    DO(cuDeviceGetTexture1DLinearMaxWidth(&most, CU_AD_FORMAT_FLOAT, 4, 0));
    ck_assert_uint_ge(most, 1 << 16);
    DO(cuModuleUnload(mod)); /* its references go with it */
    end();
}

TEST(cuda_arrays_are_copied_to_each_other)
{
    const CUDA_ARRAY_DESCRIPTOR line = {16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    uint8_t in[16], out[16];
    CUarray a, b;

    start();
    for (uint8_t k = 0; k < 16; k++)
        in[k] = k;
    DO(cuArrayCreate(&a, &line));
    DO(cuArrayCreate(&b, &line));
    DO(cuMemcpyHtoA(a, 0, in, 16));
    DO(cuMemcpyHtoA(b, 0, in, 16));
    DO(cuMemcpyAtoA_v2(b, 2, a, 8, 5));
    DO(cuMemcpyAtoH(out, b, 0, 16));
    memcpy(in + 2, (const uint8_t[]){8, 9, 10, 11, 12}, 5);
    ck_assert_mem_eq(out, in, 16);
    ck_assert_int_ne(cuMemcpyAtoA_v2(b, 12, a, 8, 5), CUDA_SUCCESS);
    end();
}

/* Sides, positions and sizes in bytes, whoever drew the node. */
TEST(cuda_nodes_tell_their_copies)
{
    const CUDA_ARRAY_DESCRIPTOR wide = {8, 4, CU_AD_FORMAT_FLOAT, 1};
    cudaMemcpy3DParms r = {.extent = {4, 2, 1}, .kind = cudaMemcpyDefault};
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .WidthInBytes = 24,
                       .Height = 1,
                       .Depth = 1};
    CUDA_MEMCPY3D got;
    CUcontext ctx = start();
    float host[32] = {0};
    cudaGraphNode_t node;
    CUdeviceptr p;
    CUgraph g;
    CUarray a;

    DO(cuMemAlloc(&p, 128));
    DO(cuArrayCreate(&a, &wide));
    DO(cuGraphCreate(&g, 0));
    c.srcHost = host;
    c.dstDevice = p;
    DO(cuGraphAddMemcpyNode(&node, g, NULL, 0, &c, ctx));
    DO(cuGraphMemcpyNodeGetParams(node, &got));
    ck_assert_uint_eq(got.srcDevice, (uintptr_t)host);
    ck_assert_uint_eq(got.dstDevice, p);
    ck_assert_uint_eq(got.WidthInBytes, 24);
    ck_assert_uint_eq(got.Height, 1);
    r.srcPtr = (cudaPitchedPtr){host, 32, 32, 4};
    r.dstArray = (cudaArray_t)(void *)a;
    r.dstPos.x = 3;
    r.dstPos.y = 1;
    ck_assert_int_eq(cudaGraphAddMemcpyNode(&node, g, NULL, 0, &r),
                     cudaSuccess);
    DO(cuGraphMemcpyNodeGetParams(node, &got));
    ck_assert_int_eq(got.dstMemoryType, CU_MEMORYTYPE_ARRAY);
    ck_assert_ptr_eq(got.dstArray, a);
    ck_assert_uint_eq(got.dstXInBytes, 12);
    ck_assert_uint_eq(got.dstY, 1);
    ck_assert_uint_eq(got.WidthInBytes, 16);
    ck_assert_uint_eq(got.Height, 2);
    ck_assert_uint_eq(got.srcPitch, 32);
    NOT(cuGraphMemcpyNodeGetParams((cudaGraphNode_t)(void *)g, &got));
    NOT(cuGraphMemcpyNodeGetParams(node, NULL));
    DO(cuGraphDestroy(g));
    end();
}

TEST(cuda_contexts_are_let_go_by_the_last)
{
    CUcontext ctx = start(), same = NULL;
    CUdeviceptr p;
    int is = 1;

    DO(cuCtxAttach(&same, 0));
    ck_assert_ptr_eq(same, ctx);
    NOT(cuCtxAttach(&same, 1));
    DO(cuCtxSetFlags(4));
    NOT(cuCtxSetFlags(0x100));
    DO(cuDeviceGetExecAffinitySupport(&is, 0, 0));
    ck_assert_int_eq(is, 0);
    ck_assert_int_eq(cuCtxGetExecAffinity(&is, 0), 224);
    DO(cuCtxDetach(ctx));
    DO(cuMemAlloc(&p, 4));
    DO(cuCtxDetach(ctx));
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_int_eq(cuCtxDetach(ctx), CUDA_ERROR_INVALID_CONTEXT);
    end();
}
