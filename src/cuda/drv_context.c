/* drv_context.c - the driver API: errors, device, contexts, streams, events.
 *
 * There is one context. A thread's stack of contexts holds it or nothing; what
 * needs a context asks for it, as the driver does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/drv_int.h"

#include <stdio.h>

enum { MAX_STACK = 64, NEWEST = 13000 };
struct CUctx_st {
    unsigned flags;
};
static struct CUctx_st the_context;
static _Thread_local bool stack[MAX_STACK];
static _Thread_local unsigned depth;
static _Atomic bool started;

/* A thread that has called the runtime has its context, which is this one. */
static bool
initialized(void)
{
    return bc_touched || atomic_load_explicit(&started, memory_order_relaxed);
}

static bool
current(void)
{
    return depth ? stack[depth - 1] : bc_touched;
}

CUresult
bd_error(cudaError_t e)
{
    switch (e) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidHostPointer:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    default: return (CUresult)e;
    }
}

CUresult
bd_begin(void)
{
    if (!initialized())
        return CUDA_ERROR_NOT_INITIALIZED;
    return current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- errors ------------------------------------------------------------- */

CUresult
cuGetErrorName(CUresult error, const char **text)
{
    *text = NULL;
    switch ((int)error) {
#define BD_R(driver, value)
#define BD_B(driver, value) \
    case value:             \
        *text = #driver;    \
        break;
#define X(kind, name, driver, value, s) BD_##kind(driver, value)
#include "cuda/brass_errors.def"
#undef X
    default: break;
    }
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuGetErrorString(CUresult error, const char **text)
{
    *text = NULL;
    switch ((int)error) {
#define BD_S(value, s) \
    case value:        \
        *text = s;     \
        break;
#define X(kind, name, driver, value, s) BD_S(value, s)
#include "cuda/brass_errors.def"
#undef X
    default: break;
    }
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- device ------------------------------------------------------------- */

CUresult
cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store_explicit(&started, true, memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* The newest whose programs find what they ask for: the driver has what is new in 13
 * beside what was (cuCtxCreate_v4, ...). */
CUresult
cuDriverGetVersion(int *version)
{
    if (version)
        *version = NEWEST;
    return version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
device_ok(CUdevice device)
{
    if (!initialized())
        return CUDA_ERROR_NOT_INITIALIZED;
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult
cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return device_ok(ordinal);
}

CUresult
cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return device_ok(0);
}

CUresult
cuDeviceGetName(char *name, int n, CUdevice device)
{
    if (!name || n <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)n, "%s", bc_device()->name);
    return device_ok(device);
}

CUresult
cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = bc_device()->totalGlobalMem;
    return device_ok(device);
}

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice device)
{
    CUresult e = device_ok(device);

    return e ? e : bd_error(bc_attr(value, (int)attr));
}

CUresult
cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = bc_device()->major;
    *minor = bc_device()->minor;
    return device_ok(device);
}

/* ---- contexts ----------------------------------------------------------- */

CUresult
cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx = &the_context;
    return device_ok(device);
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return device_ok(device);
}

CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult e = device_ok(device);

    if (e == CUDA_SUCCESS) {
        bc_lock();
        bc_reset();
        bc_unlock();
    }
    return e;
}

CUresult
cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (ctx != &the_context || depth == MAX_STACK)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = true;
    return CUDA_SUCCESS;
}

CUresult
cuCtxPopCurrent_v2(CUcontext *ctx)
{
    CUresult e = bd_begin();

    if (e)
        return e;
    if (depth) {
        depth--;
    } else { /* the runtime's own went; what it began stays */
        bc_touched = false;
        atomic_store_explicit(&started, true, memory_order_relaxed);
    }
    if (ctx)
        *ctx = &the_context;
    return CUDA_SUCCESS;
}

CUresult
cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice device)
{
    CUresult e = device_ok(device);

    if (e || !ctx)
        return e ? e : CUDA_ERROR_INVALID_VALUE;
    the_context.flags = flags;
    *ctx = &the_context;
    return cuCtxPushCurrent_v2(&the_context);
}

/* What the parameters could ask for is a part of the device. */
CUresult
cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags,
               CUdevice device)
{
    if (params && (params->numExecAffinityParams || params->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(ctx, flags, device);
}

CUresult
cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult e;

    if (ctx != &the_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    bc_lock();
    e = bd_error(bc_wait_all());
    bc_unlock();
    if (depth)
        depth--;
    return e;
}

CUresult
cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && ctx != &the_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!depth)
        depth = 1;
    stack[depth - 1] = ctx != NULL;
    return CUDA_SUCCESS;
}

CUresult
cuCtxGetCurrent(CUcontext *ctx)
{
    if (!ctx)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx = current() ? &the_context : NULL;
    return CUDA_SUCCESS;
}

CUresult
cuCtxGetDevice(CUdevice *device)
{
    CUresult e = bd_begin();

    if (!e && device)
        *device = 0;
    return e || device ? e : CUDA_ERROR_INVALID_VALUE;
}

/* There is one context, which is the current one where there is any. */
CUresult
cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    return ctx && ctx != &the_context ? CUDA_ERROR_INVALID_CONTEXT
                                      : cuCtxGetDevice(device);
}

CUresult
cuCtxSynchronize_v2(CUcontext ctx)
{
    return ctx && ctx != &the_context ? CUDA_ERROR_INVALID_CONTEXT
                                      : cuCtxSynchronize();
}

CUresult
cuCtxSynchronize(void)
{
    BD_API(bc_device_sync());
}

/* ---- streams, events ---------------------------------------------------- */

CUresult
cuStreamCreateWithPriority(CUstream *s, unsigned int flags, int priority)
{
    BD_API(bc_stream_new(s, flags, priority));
}

CUresult
cuStreamCreate(CUstream *s, unsigned int flags)
{
    BD_API(bc_stream_new(s, flags, 0));
}

CUresult
cuStreamDestroy_v2(CUstream s)
{
    BD_API(s ? bc_stream_end(s) : cudaErrorInvalidResourceHandle);
}

CUresult
cuStreamSynchronize(CUstream s)
{
    BD_API(bc_stream_sync(s));
}

CUresult
cuStreamQuery(CUstream s)
{
    BD_API(bc_stream_query(s));
}

CUresult
cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags)
{
    BD_API(flags > 1 ? cudaErrorInvalidValue : bc_stream_wait_event(s, e));
}

/* The codes that a callback may see are the same numbers in both APIs. */
CUresult
cuStreamAddCallback(CUstream s, CUstreamCallback fn, void *user,
                    unsigned int flags)
{
    BD_API(
        flags ? cudaErrorInvalidValue
              : bc_callback(s, (cudaStreamCallback_t)(void (*)(void))fn, user));
}

CUresult
cuLaunchHostFunc(CUstream s, CUhostFn fn, void *user)
{
    BD_API(bc_host_fn(s, fn, user));
}

CUresult
cuEventCreate(CUevent *e, unsigned int flags)
{
    BD_API(bc_event_new(e, flags));
}

CUresult
cuEventDestroy_v2(CUevent e)
{
    BD_API(bc_event_end(e));
}

CUresult
cuEventRecord(CUevent e, CUstream s)
{
    BD_API(bc_event_record(e, s));
}

CUresult
cuEventSynchronize(CUevent e)
{
    BD_API(bc_event_sync(e));
}

CUresult
cuEventQuery(CUevent e)
{
    BD_API(bc_event_query(e));
}

CUresult
cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    BD_API(bc_event_elapsed(ms, start, end));
}

CUresult
cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime(ms, start, end);
}
