/* rt_pool.c - the runtime API: pools of memory that comes and goes in streams.
 *
 * Every pool takes from the device's memory and gives back at once, so what a
 * pool has reserved is what of it is in use. A piece of memory knows its pool by
 * its flags, which device memory has no other use for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

enum { DEFAULT_POOL = 1 }; /* the number of the device's own */

struct CUmemPoolHandle_st {
    cudaMemPool_t next;
    unsigned number;
    uint64_t threshold, high; /* most bytes at a time */
    int reuse[3];
};
static struct CUmemPoolHandle_st first = {.number = DEFAULT_POOL,
                                          .reuse = {1, 1, 1}};
static cudaMemPool_t current = &first;
static unsigned numbers = DEFAULT_POOL;

static bool
is_pool(cudaMemPool_t pool)
{
    for (cudaMemPool_t p = &first; p; p = p->next)
        if (p == pool)
            return true;
    return false;
}

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    if (device || !pool)
        return bc_end(device ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    *pool = &first;
    return bc_end(cudaSuccess);
}

static cudaError_t
device_pool(cudaMemPool_t *get, cudaMemPool_t set, int device)
{
    if (device)
        return cudaErrorInvalidDevice;
    if (!get && !is_pool(set))
        return cudaErrorInvalidValue;
    if (get)
        *get = current;
    else
        current = set;
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    BC_API(pool ? device_pool(pool, NULL, device) : cudaErrorInvalidValue);
}

cudaError_t
cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    BC_API(device_pool(NULL, pool, device));
}

static cudaError_t
pool_new(cudaMemPool_t *out, const cudaMemPoolProps *p)
{
    cudaMemPool_t pool;

    if (!out || !p || p->allocType != cudaMemAllocationTypePinned)
        return cudaErrorInvalidValue;
    if (p->handleTypes != cudaMemHandleTypeNone ||
        p->location.type != cudaMemLocationTypeDevice)
        return cudaErrorNotSupported;
    if (p->location.id)
        return cudaErrorInvalidDevice;
    pool = br_try_calloc(1, sizeof *pool);
    if (!pool)
        return cudaErrorMemoryAllocation;
    *pool = (struct CUmemPoolHandle_st){
        .next = first.next, .number = ++numbers, .reuse = {1, 1, 1}};
    first.next = pool;
    *out = pool;
    return cudaSuccess;
}

cudaError_t
cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
    BC_API(pool_new(pool, props));
}

/* What was had from it stays with who has it. */
static cudaError_t
pool_end(cudaMemPool_t pool)
{
    cudaMemPool_t *at = &first.next;

    while (*at && *at != pool)
        at = &(*at)->next;
    if (!*at)
        return cudaErrorInvalidValue;
    *at = pool->next;
    if (current == pool)
        current = &first;
    br_free(pool);
    return cudaSuccess;
}

cudaError_t
cudaMemPoolDestroy(cudaMemPool_t pool)
{
    BC_API(pool_end(pool));
}

static cudaError_t
attribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value, bool set)
{
    uint64_t *u = value;
    int *i = value,
        k = (int)attr - (int)cudaMemPoolReuseFollowEventDependencies;

    if (!is_pool(pool) || !value)
        return cudaErrorInvalidValue;
    switch (attr) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        if (set)
            pool->reuse[k] = *i != 0;
        else
            *i = pool->reuse[k];
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        if (set)
            pool->threshold = *u;
        else
            *u = pool->threshold;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        if (set && *u)
            return cudaErrorInvalidValue; /* it may be set to 0 alone */
        if (set)
            pool->high = bc_mem_flagged(pool->number);
        else
            *u = pool->high;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
        if (set)
            return cudaErrorInvalidValue;
        *u = bc_mem_flagged(pool->number);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t
cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
    BC_API(attribute(pool, attr, value, true));
}

cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value)
{
    BC_API(attribute(pool, attr, value, false));
}

/* Nothing is kept that could be given back. */
cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    (void)keep;
    BC_API(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

/* The one device may do everything, and that cannot be taken from it. */
static cudaError_t
set_access(cudaMemPool_t pool, const cudaMemAccessDesc *d, size_t n)
{
    if (!is_pool(pool) || (n && !d))
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++) {
        if (d[k].location.type != cudaMemLocationTypeDevice || d[k].location.id)
            return cudaErrorInvalidDevice;
        if (d[k].flags != cudaMemAccessFlagsProtReadWrite)
            return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *d, size_t n)
{
    BC_API(set_access(pool, d, n));
}

cudaError_t
cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool,
                     cudaMemLocation *at)
{
    cudaError_t e = cudaSuccess;

    bc_lock();
    if (!flags || !at || !is_pool(pool))
        e = cudaErrorInvalidValue;
    else if (at->type != cudaMemLocationTypeDevice || at->id)
        e = cudaErrorInvalidDevice;
    else
        *flags = cudaMemAccessFlagsProtReadWrite;
    bc_unlock();
    return bc_end(e);
}

/* Memory is had at once: that of a free that is still to come is not handed out
 * before, for frees are due in their stream. */
static cudaError_t
take(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s)
{
    cudaError_t e;
    uint64_t used;

    if (!p || !is_pool(pool))
        return cudaErrorInvalidValue;
    *p = NULL;
    if (!bc_stream_of(s))
        return cudaErrorInvalidResourceHandle;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    if (bytes && bc_stream_of(s)->capture)
        return bc_graph_mem_taken(bc_stream_of(s), p, bytes);
    e = bytes ? bc_mem_get(p, bytes, 256, BC_MEM_DEVICE, pool->number)
              : cudaSuccess;
    used = bc_mem_flagged(pool->number);
    pool->high = BR_MAX(pool->high, used);
    return e;
}

cudaError_t
cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool,
                        cudaStream_t stream)
{
    BC_API(take(p, bytes, pool, stream));
}

cudaError_t
cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    BC_API(take(p, bytes, current, stream));
}
