/* rt_library.c - the runtime API: libraries of kernels, what a kernel is called and
 * takes, the driver's functions by name.
 *
 * A library is a module of the driver's, a kernel of it a function.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include <string.h>

/* The driver's codes are the runtime's but for these. */
static cudaError_t
of_driver(CUresult e)
{
    switch ((int)e) {
    case CUDA_ERROR_NOT_FOUND: return bc_end(cudaErrorSymbolNotFound);
    case CUDA_ERROR_INVALID_HANDLE:
        return bc_end(cudaErrorInvalidResourceHandle);
    default: return bc_end((cudaError_t)e);
    }
}

static CUlibrary
driver(cudaLibrary_t library)
{
    return (CUlibrary)(void *)library;
}

static bc_module *
module_of(cudaLibrary_t library)
{
    bc_module *mod = bc_rt.modules;

    while (mod && (void *)mod != (void *)library)
        mod = mod->next;
    return mod;
}

/* Options are hints for another compiler. */
cudaError_t
cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                    cudaJitOption *options, void **values, unsigned int n,
                    cudaLibraryOption *library_options, void **library_values,
                    unsigned int m)
{
    (void)bc_end(cudaSuccess); /* the thread has a context */
    return of_driver(cuLibraryLoadData((CUlibrary *)library, code, options,
                                       values, n, library_options,
                                       library_values, m));
}

cudaError_t
cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                        cudaJitOption *options, void **values, unsigned int n,
                        cudaLibraryOption *library_options,
                        void **library_values, unsigned int m)
{
    (void)bc_end(cudaSuccess);
    return of_driver(cuLibraryLoadFromFile((CUlibrary *)library, path, options,
                                           values, n, library_options,
                                           library_values, m));
}

cudaError_t
cudaLibraryUnload(cudaLibrary_t library)
{
    (void)bc_end(cudaSuccess);
    return of_driver(cuLibraryUnload(driver(library)));
}

cudaError_t
cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library,
                     const char *name)
{
    (void)bc_end(cudaSuccess);
    return of_driver(
        cuLibraryGetKernel((CUkernel *)kernel, driver(library), name));
}

cudaError_t
cudaLibraryGetGlobal(void **p, size_t *bytes, cudaLibrary_t library,
                     const char *name)
{
    (void)bc_end(cudaSuccess);
    return of_driver(
        cuLibraryGetGlobal((CUdeviceptr *)p, bytes, driver(library), name));
}

/* Variables are where the host can read them, each of them. */
cudaError_t
cudaLibraryGetManaged(void **p, size_t *bytes, cudaLibrary_t library,
                      const char *name)
{
    return cudaLibraryGetGlobal(p, bytes, library, name);
}

static cudaError_t
kernels(cudaLibrary_t library, cudaKernel_t *out, unsigned room, unsigned *n)
{
    bc_module *mod = module_of(library);
    cudaError_t e = mod ? bc_module_load(mod) : cudaErrorInvalidResourceHandle;
    unsigned found = 0;

    for (size_t k = 0; e == cudaSuccess && k < mod->m->fns.n; k++) {
        const br_kfn *f = &mod->m->fns.at[k];
        struct CUfunc_st *fn = NULL;
        char name[1024];

        if (!f->entry)
            continue;
        if (out && found < room && f->name.n < sizeof name) {
            memcpy(name, f->name.p, f->name.n);
            name[f->name.n] = 0;
            e = bc_function(mod, name, &fn);
            out[found] = (cudaKernel_t)(void *)fn;
        }
        found++;
    }
    *n = found;
    return e;
}

cudaError_t
cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    BC_API(count ? kernels(library, NULL, 0, count) : cudaErrorInvalidValue);
}

cudaError_t
cudaLibraryEnumerateKernels(cudaKernel_t *out, unsigned int room,
                            cudaLibrary_t library)
{
    unsigned n;

    BC_API(out || !room ? kernels(library, out, room, &n)
                        : cudaErrorInvalidValue);
}

cudaError_t
cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    return kernel ? __cudaGetKernel(kernel, host)
                  : bc_end(cudaErrorInvalidValue);
}

cudaError_t
cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attr,
                                int value, int device)
{
    return device ? bc_end(cudaErrorInvalidDevice)
                  : cudaFuncSetAttribute(kernel, attr, value);
}

/* ---- what a kernel is called and takes ---------------------------------- */

static cudaError_t
name_of(const char **name, const void *fn)
{
    struct CUfunc_st *f;
    cudaError_t e = bc_kernel_of(fn, &f);

    if (e == cudaSuccess)
        *name = f->name;
    return e;
}

cudaError_t
cudaFuncGetName(const char **name, const void *fn)
{
    BC_API(name ? name_of(name, fn) : cudaErrorInvalidValue);
}

static cudaError_t
param_of(const void *fn, size_t k, size_t *offset, size_t *bytes)
{
    struct CUfunc_st *f;
    cudaError_t e = bc_kernel_of(fn, &f);

    if (e != cudaSuccess)
        return e;
    if (!offset || k >= bc_kfn(f)->params.n)
        return cudaErrorInvalidValue;
    *offset = bc_kfn(f)->params.at[k].offset;
    if (bytes)
        *bytes = bc_kfn(f)->params.at[k].bytes;
    return cudaSuccess;
}

cudaError_t
cudaFuncGetParamInfo(const void *fn, size_t k, size_t *offset, size_t *bytes)
{
    BC_API(param_of(fn, k, offset, bytes));
}

/* ---- the driver's functions --------------------------------------------- */

static cudaError_t
entry_point(const char *name, void **fn, unsigned version,
            unsigned long long flags, cudaDriverEntryPointQueryResult *status)
{
    if (!name || !fn || flags > cudaEnablePerThreadDefaultStream)
        return bc_end(cudaErrorInvalidValue);
    if (bc_own_null && !flags)
        flags = cudaEnablePerThreadDefaultStream;
    *fn = NULL;
    if (cuGetProcAddress_v2(name, fn, (int)version, flags, NULL))
        *fn = NULL;
    if (status)
        *status = *fn ? cudaDriverEntryPointSuccess
                      : cudaDriverEntryPointSymbolNotFound;
    return bc_end(cudaSuccess);
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **fn,
                                 unsigned int version, unsigned long long flags,
                                 cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, fn, version, flags, status);
}

cudaError_t
cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long flags,
                        cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, fn, CUDART_VERSION, flags, status);
}

/* ---- what is refused ---------------------------------------------------- */

/* Whatever its arguments are, they are not looked at. */
#define X(fn)                                                    \
    __attribute__((visibility("default"))) cudaError_t fn(void); \
    cudaError_t fn(void)                                         \
    {                                                            \
        return bc_end(cudaErrorNotSupported);                    \
    }
#include "cuda/refused.def"
#undef X
