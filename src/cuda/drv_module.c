/* drv_module.c - the driver API: modules, launches, memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include "cg/ptx/ptx.h"

#include <string.h>

/* ---- modules ------------------------------------------------------------ */

/* The image is copied: the caller may free it. */
static cudaError_t
load(CUmodule *out, const void *image, char *mine, size_t n, br_status *st)
{
    bc_module *mod = bc_module_new(mine ? mine : image);
    cudaError_t e;

    if (!mod) {
        br_free(mine);
        return cudaErrorMemoryAllocation;
    }
    mod->mine = mine != NULL;
    mod->image_n = n;
    e = bc_module_read(mod, st);
    if (e == cudaSuccess)
        *out = (CUmodule)(void *)mod;
    else
        bc_module_free(mod);
    return e;
}

/* Everything of it is read now. */
static CUresult
load_data(CUmodule *mod, const void *image, br_status *st)
{
    BD_API(mod && image ? load(mod, image, NULL, 0, st)
                        : cudaErrorInvalidValue);
}

CUresult
cuModuleLoadData(CUmodule *mod, const void *image)
{
    br_status st = {0};

    return load_data(mod, image, &st);
}

CUresult
cuModuleLoadDataEx(CUmodule *mod, const void *image, unsigned int n,
                   CUjit_option *options, void **values)
{
    br_status st = {0};
    CUresult e = load_data(mod, image, &st);

    /* the rest: hints for another compiler */
    bd_log(n, options, values, e == CUDA_SUCCESS ? "" : st.msg);
    return e;
}

CUresult
cuModuleLoadFatBinary(CUmodule *mod, const void *image)
{
    return cuModuleLoadData(mod, image);
}

CUresult
cuModuleLoad(CUmodule *mod, const char *path)
{
    CUresult e = bd_begin();
    br_status st = {0};
    char *text;
    size_t n;

    if (e != CUDA_SUCCESS || !mod || !path)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    if (br_file_read(path, BR_PTX_MAX_BYTES, &text, &n, &st) != BR_OK) {
        bc_say("%s", st.msg);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    BD_API(load(mod, NULL, text, n, &st));
}

static bc_module *
module_of(CUmodule h)
{
    bc_module *mod = bc_rt.modules;

    while (mod && (void *)mod != (void *)h)
        mod = mod->next;
    return mod;
}

static cudaError_t
unload(CUmodule h)
{
    bc_module *mod = module_of(h);
    cudaError_t e;

    if (!mod || mod->registered)
        return cudaErrorInvalidResourceHandle;
    e = bc_wait_all(); /* another thread may have been quicker */
    if (module_of(h) != mod)
        return cudaErrorInvalidResourceHandle;
    bc_module_free(mod);
    return e;
}

CUresult
cuModuleUnload(CUmodule mod)
{
    BD_API(unload(mod));
}

static cudaError_t
function(CUfunction *f, CUmodule h, const char *name)
{
    bc_module *mod = module_of(h);

    if (!mod || !f || !name)
        return mod ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    return bc_function(mod, name, f);
}

CUresult
cuModuleGetFunction(CUfunction *f, CUmodule mod, const char *name)
{
    BD_API(function(f, mod, name));
}

cudaError_t
bd_global(CUdeviceptr *p, size_t *bytes, CUmodule h, const char *name)
{
    bc_module *mod = module_of(h);
    cudaError_t e;
    size_t n;
    void *at;

    if (!mod || !name)
        return mod ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    e = bc_variable(mod, name, &at, &n);
    if (e == cudaSuccess && p)
        *p = (CUdeviceptr)(uintptr_t)at;
    if (e == cudaSuccess && bytes)
        *bytes = n;
    return e;
}

CUresult
cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule mod,
                     const char *name)
{
    BD_API(bd_global(p, bytes, mod, name));
}

/* ---- functions, launches ------------------------------------------------ */

static cudaError_t
attribute(int *value, CUfunction_attribute attr, CUfunction f)
{
    cudaFuncAttributes a;
    cudaError_t e = bc_kernel_of(f, &f);

    if (e == cudaSuccess)
        e = bc_attributes(f, &a);
    if (e != cudaSuccess || !value)
        return e ? e : cudaErrorInvalidValue;
    switch (attr) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = a.maxThreadsPerBlock;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)a.sharedSizeBytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = (int)a.constSizeBytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)a.localSizeBytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = a.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = a.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = a.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = a.cacheModeCA; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = a.maxDynamicSharedSizeBytes;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = a.preferredShmemCarveout;
        break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

CUresult
cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction f)
{
    BD_API(attribute(value, attr, f));
}

static cudaError_t
set_attribute(CUfunction f, CUfunction_attribute attr, int value)
{
    cudaError_t e = bc_kernel_of(f, &f);

    return e ? e : bc_set_attribute(f, (cudaFuncAttribute)attr, value);
}

CUresult
cuFuncSetAttribute(CUfunction f, CUfunction_attribute attr, int value)
{
    BD_API(set_attribute(f, attr, value));
}

static cudaError_t
launch(bc_launch *l, CUstream s, void **extra)
{
    cudaError_t e = bc_kernel_of(l->f, &l->f);

    while (e == cudaSuccess && extra && *extra != CU_LAUNCH_PARAM_END) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            l->packed = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            l->packed_bytes = *(size_t *)extra[1];
        else
            return cudaErrorInvalidValue;
        extra += 2;
    }
    return e ? e : bc_launch_on(l, s);
}

CUresult
cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
               unsigned int bx, unsigned int by, unsigned int bz,
               unsigned int shared, CUstream s, void **params, void **extra)
{
    bc_launch l = {.f = f,
                   .grid = {gx, gy, gz},
                   .block = {bx, by, bz},
                   .shared = shared,
                   .args = params};

    BD_API(params && extra ? cudaErrorInvalidValue : launch(&l, s, extra));
}

/* The runtime's attributes have the same numbers and places. */
_Static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute),
               "attributes of launches");

static cudaError_t
launch_ex(const CUlaunchConfig *c, bc_launch *l, void **extra)
{
    cudaError_t e = cudaSuccess;

    if (!c || (c->numAttrs && !c->attrs) || (l->args && extra))
        return cudaErrorInvalidValue;
    memcpy(l->grid, &c->gridDimX, sizeof l->grid);
    memcpy(l->block, &c->blockDimX, sizeof l->block);
    l->shared = c->sharedMemBytes;
    for (unsigned k = 0; k < c->numAttrs && e == cudaSuccess; k++) {
        cudaLaunchAttribute a;

        memcpy(&a, &c->attrs[k], sizeof a);
        e = bc_launch_attr(l, &a);
    }
    return e != cudaSuccess ? e : launch(l, c->hStream, extra);
}

CUresult
cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
                 void **extra)
{
    bc_launch l = {.f = f, .args = params};

    BD_API(launch_ex(config, &l, extra));
}

CUresult
cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy,
                          unsigned int gz, unsigned int bx, unsigned int by,
                          unsigned int bz, unsigned int shared, CUstream s,
                          void **params)
{
    bc_launch l = {.f = f,
                   .grid = {gx, gy, gz},
                   .block = {bx, by, bz},
                   .shared = shared,
                   .cooperative = true,
                   .args = params};

    BD_API(launch(&l, s, NULL));
}

static cudaError_t
occupancy(int *blocks, CUfunction f, int block, size_t shared)
{
    cudaError_t e = bc_kernel_of(f, &f);

    return e ? e : bc_occupancy(f, block, shared, blocks);
}

CUresult
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f,
                                            int block, size_t shared)
{
    BD_API(occupancy(blocks, f, block, shared));
}

/* ---- memory ------------------------------------------------------------- */

static void *
at(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

CUresult
cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    BD_CALL(p && bytes ? cudaMalloc((void **)p, bytes) : cudaErrorInvalidValue);
}

CUresult
cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned int flags)
{
    BD_CALL(cudaMallocManaged((void **)p, bytes, flags));
}

CUresult
cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
                   unsigned int element)
{
    BD_CALL(element == 4 || element == 8 || element == 16
                ? cudaMallocPitch((void **)p, pitch, width, height)
                : cudaErrorInvalidValue);
}

CUresult
cuMemFree_v2(CUdeviceptr p)
{
    BD_CALL(cudaFree(at(p)));
}

CUresult
cuMemAllocHost_v2(void **p, size_t bytes)
{
    BD_CALL(cudaMallocHost(p, bytes));
}

CUresult
cuMemHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    BD_CALL(cudaHostAlloc(p, bytes, flags));
}

CUresult
cuMemFreeHost(void *p)
{
    BD_CALL(cudaFreeHost(p));
}

CUresult
cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
    BD_CALL(cudaHostRegister(p, bytes, flags));
}

CUresult
cuMemHostUnregister(void *p)
{
    BD_CALL(cudaHostUnregister(p));
}

CUresult
cuMemHostGetDevicePointer_v2(CUdeviceptr *dev, void *p, unsigned int flags)
{
    BD_CALL(cudaHostGetDevicePointer((void **)dev, p, flags));
}

CUresult
cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BD_CALL(cudaMemGetInfo(free_bytes, total));
}

static cudaError_t
range(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
    const bc_mem *m = bc_mem_find(at(p));

    if (!m)
        return cudaErrorSymbolNotFound;
    if (base)
        *base = m->addr;
    if (bytes)
        *bytes = (size_t)m->bytes;
    return cudaSuccess;
}

CUresult
cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
    BD_API(range(base, bytes, p));
}

CUresult
cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    BD_API(bc_copy_line(at(dst), at(src), n, cudaMemcpyDefault, 0, false));
}

CUresult
cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
    BD_API(bc_copy_line(at(dst), at(src), n, cudaMemcpyDefault, s, true));
}

CUresult
cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
    BD_API(bc_copy_line(at(dst), src, n, cudaMemcpyHostToDevice, 0, false));
}

CUresult
cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
    BD_API(bc_copy_line(dst, at(src), n, cudaMemcpyDeviceToHost, 0, false));
}

CUresult
cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    BD_API(
        bc_copy_line(at(dst), at(src), n, cudaMemcpyDeviceToDevice, 0, false));
}

CUresult
cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
    BD_API(bc_copy_line(at(dst), src, n, cudaMemcpyHostToDevice, s, true));
}

CUresult
cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s)
{
    BD_API(bc_copy_line(dst, at(src), n, cudaMemcpyDeviceToHost, s, true));
}

CUresult
cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
    BD_API(
        bc_copy_line(at(dst), at(src), n, cudaMemcpyDeviceToDevice, s, true));
}

/* n elements of so many bytes. */
static cudaError_t
fill(CUdeviceptr p, unsigned value, unsigned element, size_t n, CUstream s,
     bool async)
{
    size_t bytes;

    if (p % element || br_mul_overflows(n, element, &bytes))
        return cudaErrorInvalidValue;
    return bc_fill(at(p), value, element, bytes, s, async);
}

CUresult
cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t n)
{
    BD_API(fill(p, value, 1, n, 0, false));
}

CUresult
cuMemsetD16_v2(CUdeviceptr p, unsigned short value, size_t n)
{
    BD_API(fill(p, value, 2, n, 0, false));
}

CUresult
cuMemsetD32_v2(CUdeviceptr p, unsigned int value, size_t n)
{
    BD_API(fill(p, value, 4, n, 0, false));
}

CUresult
cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream s)
{
    BD_API(fill(p, value, 1, n, s, true));
}

CUresult
cuMemsetD32Async(CUdeviceptr p, unsigned int value, size_t n, CUstream s)
{
    BD_API(fill(p, value, 4, n, s, true));
}
