/* rt_launch.c - the runtime API: registration, launches, streams, events.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

/* ---- what compilers call ------------------------------------------------ */

typedef struct wrapper { /* of the image in the program */
    uint32_t magic, version;
    const void *image;
    void *unused;
} wrapper;
enum { WRAPPER_MAGIC = 0x466243b1 };

static bc_module *
module_of(void **handle)
{
    return (bc_module *)(void *)handle;
}

void **
__cudaRegisterFatBinary(void *w)
{
    const wrapper *x = w;
    bc_module *mod = NULL;

    if (x->magic != WRAPPER_MAGIC) {
        bc_say("a program's image has the unknown magic 0x%x", x->magic);
        return NULL;
    }
    bc_lock();
    mod = bc_module_new(x->image);
    if (mod)
        mod->registered = true;
    else
        bc_say("out of memory");
    bc_unlock();
    return (void **)(void *)mod;
}

/* A part of a program that was compiled with -rdc=true. unit: what its device
 * code is linked with, an address that brasscc makes for each link. */
void
__brassRegisterLinked(void (*globals)(void **handle), void *w, const void *unit)
{
    const wrapper *x = w;
    bc_module *mod;
    bool ok = x->magic == WRAPPER_MAGIC;

    bc_lock();
    mod = bc_rt.modules;
    while (mod && (!mod->parts.n || mod->image != unit))
        mod = mod->next;
    if (!mod && ok)
        mod = bc_module_new(unit);
    ok = ok && mod && !mod->m && br_vec_push(&mod->parts, x->image);
    if (ok)
        mod->registered = true;
    else
        bc_say("a part of the program could not be linked");
    bc_unlock();
    if (ok)
        globals((void **)(void *)mod);
}

void
__cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* At the end of the process: its memory goes with it, and other threads may
 * still be about. */
void
__cudaUnregisterFatBinary(void **handle)
{
    if (!handle)
        return;
    bc_lock();
    bc_wait_all();
    module_of(handle)->registered = false;
    bc_unlock();
}

void
__cudaRegisterFunction(void **handle, const char *host, char *dev,
                       const char *name, int thread_limit, void *tid, void *bid,
                       void *block, void *grid, int *warp)
{
    struct CUfunc_st *f = br_try_calloc(1, sizeof *f);

    (void)dev, (void)thread_limit, (void)tid, (void)bid, (void)block;
    (void)grid, (void)warp;
    bc_lock();
    if (f)
        *f = (struct CUfunc_st){.mod = module_of(handle),
                                .host = host,
                                .name = name,
                                .carveout = -1};
    if (!handle || !f || !br_vec_push(&module_of(handle)->fns, f)) {
        bc_say("kernel %s could not be registered", name);
        br_free(f);
    }
    bc_unlock();
}

static void
add_var(void **handle, bc_var v)
{
    bc_lock();
    if (!handle || !br_vec_push(&module_of(handle)->vars, v))
        bc_say("variable %s could not be registered", v.name);
    bc_unlock();
}

void
__cudaRegisterVar(void **handle, char *host, char *dev, const char *name,
                  int ext, size_t bytes, int constant, int global)
{
    (void)dev, (void)ext, (void)constant, (void)global;
    add_var(handle, (bc_var){.host = host, .name = name, .bytes = bytes});
}

/* A reference is a variable as large as a texture's descriptor. */
void
__cudaRegisterTexture(void **handle, const textureReference *host,
                      const void **dev, const char *name, int dim,
                      int normalized, int ext)
{
    (void)dev, (void)dim, (void)normalized, (void)ext;
    add_var(handle, (bc_var){.host = host, .name = name});
}

void
__cudaRegisterSurface(void **handle, const surfaceReference *host,
                      const void **dev, const char *name, int dim, int ext)
{
    (void)dev, (void)dim, (void)ext;
    add_var(handle, (bc_var){.host = host, .name = name});
}

void
__cudaRegisterManagedVar(void **handle, void **host, char *dev,
                         const char *name, int ext, size_t bytes, int constant,
                         int global)
{
    (void)dev, (void)ext, (void)constant, (void)global;
    add_var(
        handle,
        (bc_var){.host = host, .name = name, .bytes = bytes, .managed = host});
}

/* Before the host touches a managed variable. */
char
__cudaInitModule(void **handle)
{
    cudaError_t e = cudaErrorInvalidKernelImage;

    bc_lock();
    if (handle)
        e = bc_module_load(module_of(handle));
    bc_unlock();
    bc_end(e);
    return e == cudaSuccess;
}

enum { MAX_PUSHED = 64 };
static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed[MAX_PUSHED];
static _Thread_local unsigned n_pushed;

unsigned int
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                            cudaStream_t stream)
{
    if (n_pushed == MAX_PUSHED)
        return bc_end(cudaErrorMissingConfiguration);
    pushed[n_pushed].grid = grid;
    pushed[n_pushed].block = block;
    pushed[n_pushed].shared = shared;
    pushed[n_pushed++].stream = stream;
    return 0;
}

cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                           void *stream)
{
    if (!n_pushed)
        return bc_end(cudaErrorMissingConfiguration);
    *grid = pushed[--n_pushed].grid;
    *block = pushed[n_pushed].block;
    *shared = pushed[n_pushed].shared;
    memcpy(stream, &pushed[n_pushed].stream, sizeof(cudaStream_t));
    return cudaSuccess;
}

void
__brassPerThreadDefaultStream(void)
{
    bc_lock();
    bc_rt.per_thread = true;
    bc_unlock();
}

/* ---- launches ----------------------------------------------------------- */

static cudaError_t
launch(const void *fn, dim3 grid, dim3 block, bc_launch l, cudaStream_t s)
{
    cudaError_t e;

    l.grid[0] = grid.x, l.grid[1] = grid.y, l.grid[2] = grid.z;
    l.block[0] = block.x, l.block[1] = block.y, l.block[2] = block.z;
    bc_lock();
    e = bc_kernel_of(fn, &l.f);
    if (e == cudaSuccess)
        e = bc_launch_on(&l, s);
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaLaunchKernel(const void *fn, dim3 grid, dim3 block, void **args,
                 size_t shared, cudaStream_t stream)
{
    bc_launch l = {.shared = shared, .args = args};

    return launch(fn, grid, block, l, stream);
}

cudaError_t
cudaLaunchCooperativeKernel(const void *fn, dim3 grid, dim3 block, void **args,
                            size_t shared, cudaStream_t stream)
{
    bc_launch l = {.shared = shared, .args = args, .cooperative = true};

    return launch(fn, grid, block, l, stream);
}

cudaError_t
cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *fn, void **args)
{
    bc_launch l = {.args = args};
    cudaError_t e = cudaSuccess;

    if (!c || (c->numAttrs && !c->attrs))
        return bc_end(cudaErrorInvalidValue);
    l.shared = c->dynamicSmemBytes;
    for (unsigned k = 0; k < c->numAttrs && e == cudaSuccess; k++)
        e = bc_launch_attr(&l, &c->attrs[k]);
    return e != cudaSuccess ? bc_end(e)
                            : launch(fn, c->gridDim, c->blockDim, l, c->stream);
}

cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    struct CUfunc_st *f = NULL;
    cudaError_t e;

    bc_lock();
    e = bc_kernel_of(host, &f);
    bc_unlock();
    *kernel = (cudaKernel_t)(void *)f;
    return bc_end(e);
}

cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                   size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

static cudaError_t
with_kernel(const void *fn, struct CUfunc_st **f)
{
    return bc_rt.sticky ? bc_rt.sticky : bc_kernel_of(fn, f);
}

#define BC_KERNEL(fn, expr)                            \
    do {                                               \
        struct CUfunc_st *f = NULL;                    \
        cudaError_t bc_k_;                             \
                                                       \
        bc_lock();                                     \
        bc_k_ = with_kernel((fn), &f);                 \
        bc_k_ = bc_k_ == cudaSuccess ? (expr) : bc_k_; \
        bc_unlock();                                   \
        return bc_end(bc_k_);                          \
    } while (0)

cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *a, const void *fn)
{
    BC_KERNEL(fn, a ? bc_attributes(f, a) : cudaErrorInvalidValue);
}

cudaError_t
cudaFuncSetAttribute(const void *fn, cudaFuncAttribute attr, int value)
{
    BC_KERNEL(fn, bc_set_attribute(f, attr, value));
}

cudaError_t
cudaFuncSetCacheConfig(const void *fn, cudaFuncCache config)
{
    BC_KERNEL(fn, (unsigned)config > cudaFuncCachePreferEqual
                      ? cudaErrorInvalidValue
                      : cudaSuccess);
}

cudaError_t
cudaFuncSetSharedMemConfig(const void *fn, cudaSharedMemConfig config)
{
    BC_KERNEL(fn, (unsigned)config > cudaSharedMemBankSizeEightByte
                      ? cudaErrorInvalidValue
                      : cudaSuccess);
}

cudaError_t
cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol)
{
    BC_KERNEL(symbol, out ? (*out = f, cudaSuccess) : cudaErrorInvalidValue);
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *fn,
                                              int block_size, size_t shared)
{
    BC_KERNEL(fn, bc_occupancy(f, block_size, shared, blocks));
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                       const void *fn,
                                                       int block_size,
                                                       size_t shared,
                                                       unsigned int flags)
{
    if (flags > cudaOccupancyDisableCachingOverride)
        return bc_end(cudaErrorInvalidValue);
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, fn, block_size,
                                                         shared);
}

static cudaError_t
available(size_t *bytes, struct CUfunc_st *f, int blocks, int block_size)
{
    int most;

    if (!bytes || blocks <= 0 ||
        bc_occupancy(f, block_size, 0, &most) != cudaSuccess || blocks > most)
        return cudaErrorInvalidValue;
    *bytes = (bc_shared_optin() + 1024) / (size_t)blocks - 1024 -
             (size_t)f->mod->at->shared[f->fn];
    return cudaSuccess;
}

cudaError_t
cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *fn,
                                          int blocks, int block_size)
{
    BC_KERNEL(fn, available(bytes, f, blocks, block_size));
}

/* As many as there is room for all their blocks. */
static unsigned
cluster_size(const bc_launch *l, struct CUfunc_st *f)
{
    unsigned n = 1;

    for (int k = 0; k < 3 && n <= BR_KMAX_CLUSTER; k++) {
        unsigned c = l->cluster[k] ? l->cluster[k] : bc_kfn(f)->cluster[k];

        n *= BR_MIN(BR_MAX(c, 1u), BR_KMAX_CLUSTER + 1u);
    }
    return n;
}

static unsigned
most_in_cluster(struct CUfunc_st *f)
{
    const unsigned most = f->large_clusters ? BR_KMAX_CLUSTER : 8;
    const unsigned own = bc_kfn(f)->max_cluster;

    return own ? BR_MIN(own, most) : most;
}

static cudaError_t
active_clusters(int *clusters, struct CUfunc_st *f, const cudaLaunchConfig_t *c)
{
    const uint64_t threads =
        (uint64_t)c->blockDim.x * c->blockDim.y * c->blockDim.z;
    bc_launch l = {0};
    cudaError_t e = cudaSuccess;

    if (!threads || threads > BC_MAX_THREADS)
        return cudaErrorInvalidValue;
    for (unsigned k = 0; k < c->numAttrs && e == cudaSuccess; k++)
        e = bc_launch_attr(&l, &c->attrs[k]);
    if (e == cudaSuccess && cluster_size(&l, f) > most_in_cluster(f))
        e = cudaErrorInvalidClusterSize;
    if (e == cudaSuccess)
        e = bc_occupancy(f, (int)threads, c->dynamicSmemBytes, clusters);
    if (e == cudaSuccess)
        *clusters = *clusters * bc_device()->multiProcessorCount /
                    (int)cluster_size(&l, f);
    return e;
}

cudaError_t
cudaOccupancyMaxActiveClusters(int *clusters, const void *fn,
                               const cudaLaunchConfig_t *config)
{
    if (!clusters || !config || (config->numAttrs && !config->attrs))
        return bc_end(cudaErrorInvalidValue);
    BC_KERNEL(fn, active_clusters(clusters, f, config));
}

cudaError_t
cudaOccupancyMaxPotentialClusterSize(int *size, const void *fn,
                                     const cudaLaunchConfig_t *config)
{
    if (!size || !config)
        return bc_end(cudaErrorInvalidValue);
    BC_KERNEL(fn, (*size = (int)most_in_cluster(f), cudaSuccess));
}

/* ---- streams, events ---------------------------------------------------- */

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *s, unsigned int flags, int priority)
{
    BC_API(bc_stream_new(s, flags, priority));
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *s, unsigned int flags)
{
    BC_API(bc_stream_new(s, flags, 0));
}

cudaError_t
cudaStreamCreate(cudaStream_t *s)
{
    BC_API(bc_stream_new(s, 0, 0));
}

cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    BC_API(s ? bc_stream_end(s) : cudaErrorInvalidResourceHandle);
}

cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
    BC_API(bc_stream_sync(s));
}

cudaError_t
cudaStreamQuery(cudaStream_t s)
{
    BC_API(bc_stream_query(s));
}

/* An event from outside of its graph is a node there (cudaEventWaitExternal). */
static bool
is_captured(cudaStream_t h)
{
    const struct CUstream_st *s = bc_stream_of(h);

    return s && s->capture;
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned int flags)
{
    BC_API(flags > 1 ? cudaErrorInvalidValue
           : flags && is_captured(s)
               ? bc_event_captured(bc_stream_of(s), e, false)
               : bc_stream_wait_event(s, e));
}

cudaError_t
cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t fn, void *user,
                      unsigned int flags)
{
    BC_API(flags ? cudaErrorInvalidValue : bc_callback(s, fn, user));
}

cudaError_t
cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *user)
{
    BC_API(bc_host_fn(s, fn, user));
}

static cudaError_t
stream_says(cudaStream_t h, unsigned *flags, int *priority)
{
    const struct CUstream_st *s = bc_stream_of(h);

    if (!s || (!flags && !priority))
        return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    if (flags)
        *flags = s->flags;
    if (priority)
        *priority = s->priority;
    return cudaSuccess;
}

cudaError_t
cudaStreamGetFlags(cudaStream_t s, unsigned int *flags)
{
    BC_API(stream_says(s, flags, NULL));
}

cudaError_t
cudaStreamGetPriority(cudaStream_t s, int *priority)
{
    BC_API(stream_says(s, NULL, priority));
}

static cudaError_t
stream_id(cudaStream_t h, unsigned long long *id)
{
    const struct CUstream_st *s = bc_stream_of(h);

    if (!s || !id)
        return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    *id = s == &bc_rt.null ? 1 : s->id;
    return cudaSuccess;
}

cudaError_t
cudaStreamGetId(cudaStream_t s, unsigned long long *id)
{
    BC_API(stream_id(s, id));
}

cudaError_t
cudaStreamGetDevice(cudaStream_t s, int *device)
{
    BC_API(!device            ? cudaErrorInvalidValue
           : !bc_stream_of(s) ? cudaErrorInvalidResourceHandle
                              : (*device = 0, cudaSuccess));
}

/* What is kept in caches is the processor's affair: a window is remembered and
 * changes nothing, nor do ways of waiting. */
static cudaError_t
stream_attr(cudaStream_t h, cudaStreamAttrID id, cudaStreamAttrValue *get,
            const cudaStreamAttrValue *set)
{
    struct CUstream_st *s = bc_stream_of(h);

    if (!s || (!get && !set))
        return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    switch (id) {
    case cudaLaunchAttributeAccessPolicyWindow:
        if (set && !(set->accessPolicyWindow.hitRatio >= 0 &&
                     set->accessPolicyWindow.hitRatio <= 1))
            return cudaErrorInvalidValue;
        if (set)
            s->window = set->accessPolicyWindow;
        else
            get->accessPolicyWindow = s->window;
        return cudaSuccess;
    case cudaLaunchAttributePriority:
        if (set)
            s->priority = set->priority;
        else
            get->priority = s->priority;
        return cudaSuccess;
    default: return cudaErrorNotSupported;
    }
}

cudaError_t
cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID id,
                       const cudaStreamAttrValue *value)
{
    BC_API(stream_attr(s, id, NULL, value));
}

cudaError_t
cudaStreamGetAttribute(cudaStream_t s, cudaStreamAttrID id,
                       cudaStreamAttrValue *value)
{
    BC_API(stream_attr(s, id, value, NULL));
}

static cudaError_t
copy_attrs(cudaStream_t dst, cudaStream_t src)
{
    struct CUstream_st *to = bc_stream_of(dst), *from = bc_stream_of(src);

    if (!to || !from)
        return cudaErrorInvalidResourceHandle;
    to->window = from->window;
    to->priority = from->priority;
    return cudaSuccess;
}

cudaError_t
cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    BC_API(copy_attrs(dst, src));
}

cudaError_t
cudaCtxResetPersistingL2Cache(void)
{
    return bc_end(cudaSuccess);
}

cudaError_t
cudaStreamAttachMemAsync(cudaStream_t s, void *p, size_t n, unsigned int flags)
{
    BC_API(!bc_stream_of(s) ? cudaErrorInvalidResourceHandle
           : flags != 1 && flags != 2 && flags != 4 ? cudaErrorInvalidValue
           : bc_mem_find(p) && bc_mem_fits(p, n)    ? cudaSuccess
                                                    : cudaErrorInvalidValue);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *e, unsigned int flags)
{
    BC_API(bc_event_new(e, flags));
}

cudaError_t
cudaEventCreate(cudaEvent_t *e)
{
    BC_API(bc_event_new(e, 0));
}

cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
    BC_API(bc_event_end(e));
}

cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    BC_API(bc_event_record(e, s));
}

cudaError_t
cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned int flags)
{
    BC_API(flags > 1 ? cudaErrorInvalidValue
           : flags && is_captured(s)
               ? bc_event_captured(bc_stream_of(s), e, true)
               : bc_event_record(e, s));
}

cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
    BC_API(bc_event_sync(e));
}

cudaError_t
cudaEventQuery(cudaEvent_t e)
{
    BC_API(bc_event_query(e));
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    BC_API(bc_event_elapsed(ms, start, end));
}
