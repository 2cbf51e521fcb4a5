/* rt_device.c - the runtime API: errors and the device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = 12000 };

cudaError_t
cudaGetLastError(void)
{
    return bc_last(true);
}

cudaError_t
cudaPeekAtLastError(void)
{
    return bc_last(false);
}

const char *
cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define X(kind, name, driver, value, text) \
    case name:                             \
        return #name;
#include "cuda/brass_errors.def"
#undef X
    case cudaErrorApiFailureBase: break;
    }
    return "unrecognized error code";
}

const char *
cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define X(kind, name, driver, value, text) \
    case name:                             \
        return text;
#include "cuda/brass_errors.def"
#undef X
    case cudaErrorApiFailureBase: break;
    }
    return "unrecognized error code";
}

/* ---- the one device ----------------------------------------------------- */

static cudaError_t
number(int device)
{
    return device ? cudaErrorInvalidDevice : cudaSuccess;
}

static cudaError_t
put(int *at, int value)
{
    if (!at)
        return cudaErrorInvalidValue;
    *at = value;
    return cudaSuccess;
}

cudaError_t
cudaGetDeviceCount(int *count)
{
    return bc_end(put(count, 1));
}

cudaError_t
cudaGetDevice(int *device)
{
    return bc_end(put(device, 0));
}

cudaError_t
cudaSetDevice(int device)
{
    return bc_end(number(device));
}

cudaError_t
cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags, (void)flags;
    return bc_end(number(device));
}

cudaError_t
cudaSetValidDevices(int *devices, int n)
{
    for (int k = 0; k < n; k++)
        if (!devices || devices[k])
            return bc_end(cudaErrorInvalidDevice);
    return bc_end(n < 0 ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t
cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    return bc_end(prop ? put(device, 0) : cudaErrorInvalidValue);
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (!prop || device)
        return bc_end(prop ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    *prop = *bc_device();
    return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
    return cudaGetDeviceProperties(prop, device);
}

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    return bc_end(device ? cudaErrorInvalidDevice : bc_attr(value, (int)attr));
}

cudaError_t
cudaDeviceSynchronize(void)
{
    BC_API(bc_device_sync());
}

cudaError_t
cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

cudaError_t
cudaDeviceReset(void)
{
    bc_lock();
    bc_reset();
    bc_unlock();
    return cudaSuccess;
}

cudaError_t
cudaThreadExit(void)
{
    return cudaDeviceReset();
}

static cudaError_t
set_flags(unsigned flags)
{
    if (flags & ~(unsigned)(cudaDeviceScheduleMask | cudaDeviceMapHost |
                            cudaDeviceLmemResizeToMax))
        return cudaErrorInvalidValue;
    bc_rt.flags = flags;
    return cudaSuccess;
}

cudaError_t
cudaSetDeviceFlags(unsigned int flags)
{
    BC_API(set_flags(flags));
}

cudaError_t
cudaGetDeviceFlags(unsigned int *flags)
{
    BC_API(flags ? (*flags = bc_rt.flags, cudaSuccess) : cudaErrorInvalidValue);
}

cudaError_t
cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    BC_API(bc_limit_set(limit, value));
}

cudaError_t
cudaDeviceGetLimit(size_t *value, cudaLimit limit)
{
    BC_API(bc_limit_get(value, limit));
}

/* Preferences about caches and banks: there are none to choose. */
cudaError_t
cudaDeviceSetCacheConfig(cudaFuncCache config)
{
    return bc_end((unsigned)config > cudaFuncCachePreferEqual
                      ? cudaErrorInvalidValue
                      : cudaSuccess);
}

cudaError_t
cudaDeviceGetCacheConfig(cudaFuncCache *config)
{
    if (!config)
        return bc_end(cudaErrorInvalidValue);
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

cudaError_t
cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config)
{
    return bc_end((unsigned)config > cudaSharedMemBankSizeEightByte
                      ? cudaErrorInvalidValue
                      : cudaSuccess);
}

cudaError_t
cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config)
{
    if (!config)
        return bc_end(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetPCIBusId(char *id, int n, int device)
{
    if (!id || n < 13 || device)
        return bc_end(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    snprintf(id, (size_t)n, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    if (!id || strcmp(id, "0000:00:00.0") != 0)
        return bc_end(cudaErrorInvalidValue);
    return bc_end(put(device, 0));
}

cudaError_t
cudaDeviceGetTexture1DLinearMaxWidth(size_t *most,
                                     const cudaChannelFormatDesc *d, int device)
{
    if (device || !most || !d)
        return bc_end(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    *most = (size_t)bc_device()->maxTexture1DLinear;
    return bc_end(cudaSuccess);
}

/* ---- peers: there are none ---------------------------------------------- */

cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return bc_end(device || peer ? cudaErrorInvalidDevice : put(can, 0));
}

cudaError_t
cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    return bc_end(flags  ? cudaErrorInvalidValue
                  : peer ? cudaErrorInvalidDevice
                         : cudaErrorPeerAccessUnsupported);
}

cudaError_t
cudaDeviceDisablePeerAccess(int peer)
{
    return bc_end(peer ? cudaErrorInvalidDevice
                       : cudaErrorPeerAccessNotEnabled);
}

cudaError_t
cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attr, int a, int b)
{
    (void)attr;
    return bc_end(a || b || a == b ? cudaErrorInvalidDevice : put(value, 0));
}

cudaError_t
cudaDriverGetVersion(int *version)
{
    return bc_end(put(version, VERSION));
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
    return bc_end(put(version, VERSION));
}

cudaError_t
cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t
cudaProfilerStop(void)
{
    return cudaSuccess;
}
