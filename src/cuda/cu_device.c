/* cu_device.c - the device's properties, errors, limits, printf.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <stdio.h>
#include <string.h>

bc_state bc_rt = {.lock = BR_MUTEX,
                  .moved = PTHREAD_COND_INITIALIZER,
                  .exec = BR_MUTEX,
                  .null = {.used = true, .blocking = true},
                  .printf_bytes = BC_PRINTF_BYTES,
                  .heap_bytes = BC_HEAP_BYTES,
                  .stack_bytes = 1024};

void
bc_say(const char *fmt, ...)
{
    char line[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(stderr, "brass: %s\n", line);
}

/* ---- errors ------------------------------------------------------------- */

static _Thread_local cudaError_t last;
_Thread_local bool bc_touched;

cudaError_t
bc_end(cudaError_t e)
{
    bc_touched = true;
    if (e != cudaSuccess)
        last = e;
    return e;
}

bc_traces
bc_traces_of(void)
{
    return (bc_traces){bc_touched, last};
}

void
bc_traces_set(bc_traces t)
{
    bc_touched = t.touched;
    last = t.last;
}

cudaError_t
bc_last(bool clear)
{
    cudaError_t e = last;

    bc_lock();
    if (bc_rt.sticky)
        e = bc_rt.sticky;
    bc_unlock();
    if (clear)
        last = cudaSuccess;
    return e;
}

/* ---- printf ------------------------------------------------------------- */

/* From a kernel: what does not fit any more is lost, as it is on a device. */
void
bc_print(void *arg, const char *text, size_t n)
{
    (void)arg;
    bc_lock();
    if (bc_rt.printed.n + n <= bc_rt.printf_bytes)
        br_str_put(&bc_rt.printed, text, n);
    bc_unlock();
}

/* Where the host waits for the device, it sees what was printed. */
void
bc_flush_printf(void)
{
    if (!bc_rt.printed.n)
        return;
    fwrite(bc_rt.printed.at, 1, bc_rt.printed.n, stdout);
    fflush(stdout);
    br_str_clear(&bc_rt.printed);
}

/* ---- properties --------------------------------------------------------- */

static cudaDeviceProp prop;
static br_once once = BR_ONCE;

static void
processor_name(char *out, size_t n)
{
    char text[4096], *p;

    snprintf(out, n, "Brass CPU");
    if (!br_os_read("/proc/cpuinfo", text, sizeof text))
        return;
    p = strstr(text, "model name");
    p = p ? strchr(p, ':') : NULL;
    if (p)
        snprintf(out, n, "Brass on %.*s", (int)strcspn(p + 2, "\n"), p + 2);
}

/* Sizes of textures that other processors of this capability promise; more works,
 * and mipmaps do not. */
static void
fill_textures(cudaDeviceProp *p)
{
    const int wide = 131072, side = 32768, box = 16384, layers = 2048;

    p->maxTexture1D = p->maxTexture2D[0] = p->maxSurface2D[0] = wide;
    p->maxTexture2D[1] = p->maxSurface2D[1] = wide / 2;
    p->maxTexture1DLinear = 1 << 28;
    p->maxTexture2DLinear[0] = wide;
    p->maxTexture2DLinear[1] = 65000;
    p->maxTexture2DLinear[2] = 2097120;
    p->maxTexture2DGather[0] = p->maxTexture2DGather[1] = side;
    for (int k = 0; k < 3; k++)
        p->maxTexture3D[k] = p->maxSurface3D[k] = box;
    p->maxTextureCubemap = p->maxSurfaceCubemap = p->maxSurface1D = side;
    p->maxTexture1DLayered[0] = p->maxSurface1DLayered[0] = side;
    p->maxTexture1DLayered[1] = p->maxSurface1DLayered[1] = layers;
    for (int k = 0; k < 2; k++)
        p->maxTexture2DLayered[k] = p->maxSurface2DLayered[k] = side;
    p->maxTexture2DLayered[2] = p->maxSurface2DLayered[2] = layers;
    p->maxTextureCubemapLayered[0] = p->maxSurfaceCubemapLayered[0] = side;
    p->maxTextureCubemapLayered[1] = p->maxSurfaceCubemapLayered[1] =
        layers - 2;
}

static void
fill(void)
{
    cudaDeviceProp *p = &prop;

    processor_name(p->name, sizeof p->name);
    memcpy(p->uuid.bytes, "brass-cpu-device", 16);
    p->totalGlobalMem = (size_t)bc_mem_total();
    p->sharedMemPerBlock = p->reservedSharedMemPerBlock = BC_MAX_SHARED;
    p->reservedSharedMemPerBlock = 1024;
    p->sharedMemPerBlockOptin = bc_shared_optin();
    p->sharedMemPerMultiprocessor = bc_shared_optin() + 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = INT32_MAX;
    p->maxThreadsPerBlock = BC_MAX_THREADS;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = BC_MAX_THREADS;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = INT32_MAX;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->clockRate = p->memoryClockRate = 1000000;
    p->memoryBusWidth = 128;
    p->totalConstMem = 64 << 10;
    p->major = 8;
    p->textureAlignment = p->surfaceAlignment = 512;
    p->texturePitchAlignment = 32;
    p->multiProcessorCount = br_cpu_count();
    p->integrated = p->canMapHostMemory = 1;
    p->l2CacheSize = 4 << 20;
    p->maxThreadsPerMultiProcessor = BC_SM_THREADS;
    p->maxBlocksPerMultiProcessor = BC_SM_BLOCKS;
    p->unifiedAddressing = p->managedMemory = 1;
    p->concurrentManagedAccess = p->directManagedMemAccessFromHost = 1;
    p->canUseHostPointerForRegisteredMem = p->hostRegisterSupported = 1;
    p->streamPrioritiesSupported = 1;
    p->singleToDoublePrecisionPerfRatio = 2;
    p->cooperativeLaunch = p->memoryPoolsSupported = 1;
    p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->computePreemptionSupported = 1;
    p->unifiedFunctionPointers = 1;
    p->asyncEngineCount = 1; /* copies run beside kernels of other streams */
    fill_textures(p);
}

const cudaDeviceProp *
bc_device(void)
{
    br_once_run(&once, fill);
    return &prop;
}

cudaError_t
bc_attr(int *value, int attr)
{
    const cudaDeviceProp *p = bc_device();

    if (!value)
        return cudaErrorInvalidValue;
    switch (attr) {
#define X(name, driver, number, v) \
    case number:                   \
        *value = v;                \
        return cudaSuccess;
#include "cuda/brass_attrs.def"
#undef X
    default: return cudaErrorInvalidValue;
    }
}

/* ---- limits ------------------------------------------------------------- */

static uint64_t *
limit_of(cudaLimit limit)
{
    switch (limit) {
    case cudaLimitStackSize: return &bc_rt.stack_bytes;
    case cudaLimitPrintfFifoSize: return &bc_rt.printf_bytes;
    case cudaLimitMallocHeapSize: return &bc_rt.heap_bytes;
    default: return NULL;
    }
}

cudaError_t
bc_limit_set(cudaLimit limit, size_t value)
{
    uint64_t *at = limit_of(limit);

    if (!at)
        return cudaErrorUnsupportedLimit;
    if (limit == cudaLimitStackSize && value > BR_KMAX_LOCAL)
        return cudaErrorInvalidValue;
    if (limit == cudaLimitMallocHeapSize && value < bc_rt.heap_used)
        return cudaErrorInvalidValue;
    *at = value;
    return cudaSuccess;
}

cudaError_t
bc_limit_get(size_t *value, cudaLimit limit)
{
    const uint64_t *at = limit_of(limit);

    if (!at || !value)
        return at ? cudaErrorInvalidValue : cudaErrorUnsupportedLimit;
    *value = (size_t)*at;
    return cudaSuccess;
}

/* The program's memory, streams, events and modules go; what the program was
 * linked with stays. What a kernel spoiled is forgotten. */
cudaError_t
bc_reset(void)
{
    cudaError_t e = bc_wait_all();

    for (struct CUstream_st *k = bc_rt.streams; k; k = k->next)
        if (k->capture)
            bc_graph_drop(k);
    bc_streams_end();
    for (bc_module *mod = bc_rt.modules, *next; mod; mod = next) {
        next = mod->next;
        if (!mod->registered)
            bc_module_free(mod);
    }
    bc_mem_reset();
    bc_graph_mem_reset();
    br_str_fini(&bc_rt.printed);
    br_free(bc_rt.block);
    bc_rt.block = NULL;
    bc_rt.heap_used = 0;
    bc_rt.sticky = last = cudaSuccess;
    return e;
}
