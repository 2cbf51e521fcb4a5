/* drv_first.c - the driver API: launches in parts, as before CUDA 4.
 *
 *   cuFuncSetBlockShape, cuFuncSetSharedSize, cuParamSet? --> cuLaunchGrid
 *
 * Headers have had cuLaunchKernel beside them since, and have them still. What is set
 * stays with the function until it is set again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include <string.h>

#define API __attribute__((visibility("default")))

/* The function, with room for its parts. */
static cudaError_t
parts_of(CUfunction h, struct CUfunc_st **f)
{
    cudaError_t e = bc_kernel_of(h, f);

    if (e == cudaSuccess && !(*f)->parts)
        (*f)->parts = br_try_calloc(1, sizeof *(*f)->parts);
    return e != cudaSuccess || (*f)->parts ? e : cudaErrorMemoryAllocation;
}

static cudaError_t
set_block(CUfunction h, int x, int y, int z)
{
    struct CUfunc_st *f;
    cudaError_t e = parts_of(h, &f);

    if (e == cudaSuccess && (x <= 0 || y <= 0 || z <= 0))
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return e;
    f->parts->block[0] = (uint32_t)x;
    f->parts->block[1] = (uint32_t)y;
    f->parts->block[2] = (uint32_t)z;
    return cudaSuccess;
}

API CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z);
CUresult
cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
    BD_API(set_block(f, x, y, z));
}

static cudaError_t
set_size(CUfunction h, unsigned bytes, bool shared)
{
    struct CUfunc_st *f;
    cudaError_t e = parts_of(h, &f);

    if (e == cudaSuccess && !shared && bytes > sizeof f->parts->params)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        *(shared ? &f->parts->shared : &f->parts->bytes) = bytes;
    return e;
}

API CUresult cuFuncSetSharedSize(CUfunction f, unsigned bytes);
CUresult
cuFuncSetSharedSize(CUfunction f, unsigned bytes)
{
    BD_API(set_size(f, bytes, true));
}

API CUresult cuParamSetSize(CUfunction f, unsigned bytes);
CUresult
cuParamSetSize(CUfunction f, unsigned bytes)
{
    BD_API(set_size(f, bytes, false));
}

static cudaError_t
set_param(CUfunction h, int offset, const void *at, size_t n)
{
    struct CUfunc_st *f;
    cudaError_t e = parts_of(h, &f);

    if (e == cudaSuccess &&
        (!at || offset < 0 || (size_t)offset > sizeof f->parts->params ||
         n > sizeof f->parts->params - (size_t)offset))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess && n)
        memcpy(f->parts->params + offset, at, n);
    return e;
}

API CUresult cuParamSetv(CUfunction f, int offset, void *p, unsigned n);
CUresult
cuParamSetv(CUfunction f, int offset, void *p, unsigned n)
{
    BD_API(set_param(f, offset, p, n));
}

API CUresult cuParamSeti(CUfunction f, int offset, unsigned value);
CUresult
cuParamSeti(CUfunction f, int offset, unsigned value)
{
    BD_API(set_param(f, offset, &value, sizeof value));
}

API CUresult cuParamSetf(CUfunction f, int offset, float value);
CUresult
cuParamSetf(CUfunction f, int offset, float value)
{
    BD_API(set_param(f, offset, &value, sizeof value));
}

static cudaError_t
launch(CUfunction h, int x, int y, CUstream s)
{
    struct CUfunc_st *f;
    cudaError_t e = parts_of(h, &f);
    bc_launch l = {0};

    if (e == cudaSuccess && (x <= 0 || y <= 0))
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return e;
    l.f = f;
    l.grid[0] = (uint32_t)x;
    l.grid[1] = (uint32_t)y;
    l.grid[2] = 1;
    memcpy(l.block, f->parts->block, sizeof l.block);
    l.shared = f->parts->shared;
    l.packed = f->parts->params;
    l.packed_bytes = f->parts->bytes;
    return bc_launch_on(&l, s);
}

API CUresult cuLaunch(CUfunction f);
CUresult
cuLaunch(CUfunction f)
{
    BD_API(launch(f, 1, 1, NULL));
}

API CUresult cuLaunchGrid(CUfunction f, int width, int height);
CUresult
cuLaunchGrid(CUfunction f, int width, int height)
{
    BD_API(launch(f, width, height, NULL));
}

API CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream s);
CUresult
cuLaunchGridAsync(CUfunction f, int width, int height, CUstream s)
{
    BD_API(launch(f, width, height, s));
}
