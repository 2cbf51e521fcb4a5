/* cu_graph_work.c - what nodes of graphs do, from what programs say and back again.
 *
 * A work's payload is all that is known of it, so nodes that were captured tell their
 * parameters as those do that the program drew.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

/* ---- from parameters ------------------------------------------------------ */

/* extra: pairs of a word and its value, as cuLaunchKernel takes them. */
static cudaError_t
packed(bc_launch *l, void **extra)
{
    enum { END, BUFFER, BYTES };

    for (; *extra; extra += 2) {
        if ((uintptr_t)*extra == BUFFER)
            l->packed = extra[1];
        else if ((uintptr_t)*extra == BYTES)
            l->packed_bytes = *(size_t *)extra[1];
        else
            return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static cudaError_t
kernel(const cudaKernelNodeParams *p, bool cooperative, void **payload)
{
    bc_launch l = {.shared = p->sharedMemBytes,
                   .args = p->kernelParams,
                   .cooperative = cooperative};
    cudaError_t e =
        p->extra && p->kernelParams ? cudaErrorInvalidValue : cudaSuccess;

    l.grid[0] = p->gridDim.x, l.grid[1] = p->gridDim.y;
    l.grid[2] = p->gridDim.z, l.block[0] = p->blockDim.x;
    l.block[1] = p->blockDim.y, l.block[2] = p->blockDim.z;
    if (e == cudaSuccess && p->extra)
        e = packed(&l, p->extra);
    if (e == cudaSuccess)
        e = bc_kernel_of(p->func, &l.f);
    return e == cudaSuccess ? bc_launch_op(&l, payload) : e;
}

static cudaError_t
rect(const bc_rect *r, cudaMemcpyKind kind, const cudaMemcpy3DParms *as,
     void **payload)
{
    cudaError_t e = r->width && r->height && r->depth ? bc_rect_check(r, kind)
                                                      : cudaSuccess;

    if (e != cudaSuccess)
        return e;
    *payload = bc_rect_op(r, as);
    return *payload ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t
copy(const cudaMemcpy3DParms *p, void **payload)
{
    bc_rect r;
    cudaError_t e = bc_rect_3d(p, &r);

    return e == cudaSuccess ? rect(&r, p->kind, p, payload) : e;
}

static cudaError_t
fill(const cudaMemsetParams *p, void **payload)
{
    bc_rect r = {.dst = p->dst, .height = p->height, .depth = 1};

    if ((p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) ||
        !bc_mem_find(p->dst) ||
        br_mul_overflows(p->width, p->elementSize, &r.width))
        return cudaErrorInvalidValue;
    r.dpitch = p->pitch;
    r.value = p->value;
    r.element = p->elementSize;
    return rect(&r, cudaMemcpyDefault, NULL, payload);
}

static cudaError_t
do_record(void *payload)
{
    struct CUevent_st *e = *(struct CUevent_st **)payload;

    bc_lock();
    e->ns = br_now_ns();
    bc_unlock();
    return cudaSuccess;
}

/* The launch has waited. */
static cudaError_t
do_nothing(void *payload)
{
    (void)payload;
    return cudaSuccess;
}

struct CUevent_st *
bc_event_payload(const void *payload)
{
    return *(struct CUevent_st *const *)payload;
}

static cudaError_t
event(cudaEvent_t h, bool records, void **payload)
{
    struct CUevent_st *e = bc_event_of(h), **p;

    if (!e)
        return cudaErrorInvalidResourceHandle;
    p = bc_op_new(sizeof *p, records ? do_record : do_nothing);
    if (!p)
        return cudaErrorMemoryAllocation;
    *p = e;
    bc_op_of(p)->type =
        records ? cudaGraphNodeTypeEventRecord : cudaGraphNodeTypeWaitEvent;
    *payload = p;
    return cudaSuccess;
}

cudaError_t
bc_event_captured(struct CUstream_st *s, cudaEvent_t h, bool records)
{
    void *payload;
    cudaError_t e = event(h, records, &payload);

    return e == cudaSuccess ? bc_issue(s, payload) : e;
}

static cudaError_t
child(const cudaChildGraphNodeParams *p, void **payload)
{
    cudaGraph_t copy_of;
    cudaError_t e;

    if (!bc_is_graph(p->graph))
        return cudaErrorInvalidValue;
    if (p->ownership)
        return cudaErrorNotSupported;
    e = bc_graph_copy(&copy_of, p->graph);
    if (e != cudaSuccess)
        return e;
    *payload = bc_child_op(copy_of);
    return *payload ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t
mem_alloc(cudaMemAllocNodeParams *p, void **payload)
{
    const cudaMemPoolProps *x = &p->poolProps;
    bc_graph_mem *m;
    cudaError_t e;

    if (x->allocType != cudaMemAllocationTypePinned || !p->bytesize)
        return cudaErrorInvalidValue;
    if (x->handleTypes || x->location.type != cudaMemLocationTypeDevice)
        return cudaErrorNotSupported;
    if (x->location.id)
        return cudaErrorInvalidDevice;
    for (size_t k = 0; k < p->accessDescCount; k++)
        if (!p->accessDescs || p->accessDescs[k].location.id ||
            p->accessDescs[k].location.type != cudaMemLocationTypeDevice)
            return cudaErrorInvalidDevice;
    e = bc_graph_mem_get(&m, p->bytesize);
    if (e != cudaSuccess)
        return e;
    p->dptr = bc_graph_mem_at(m);
    *payload = bc_graph_mem_op(m, false);
    return *payload ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t
payload_of(cudaGraph_t g, cudaGraphNodeParams *p, void **payload)
{
    switch (p->type) {
    case cudaGraphNodeTypeKernel: return kernel(&p->kernel, false, payload);
    case cudaGraphNodeTypeMemcpy: return copy(&p->memcpy.copyParams, payload);
    case cudaGraphNodeTypeMemset: return fill(&p->memset, payload);
    case cudaGraphNodeTypeHost:
        if (!p->host.fn)
            return cudaErrorInvalidValue;
        *payload = bc_host_op(p->host.fn, p->host.userData);
        return *payload ? cudaSuccess : cudaErrorMemoryAllocation;
    case cudaGraphNodeTypeGraph: return child(&p->graph, payload);
    case cudaGraphNodeTypeEmpty: return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        return event(p->eventWait.event, false, payload);
    case cudaGraphNodeTypeEventRecord:
        return event(p->eventRecord.event, true, payload);
    case cudaGraphNodeTypeMemAlloc: return mem_alloc(&p->alloc, payload);
    case cudaGraphNodeTypeMemFree:
        return bc_graph_mem_free(g, p->free.dptr, payload);
    /* other programs' semaphores; kernels that decide what is launched */
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
    case cudaGraphNodeTypeConditional: return cudaErrorNotSupported;
    }
    return cudaErrorInvalidValue;
}

cudaError_t
bc_node_work(cudaGraph_t g, cudaGraphNodeParams *p, bc_work **out)
{
    void *payload = NULL;
    cudaError_t e = payload_of(g, p, &payload);

    *out = e == cudaSuccess ? bc_work_new(payload) : NULL;
    return e == cudaSuccess && !*out ? cudaErrorMemoryAllocation : e;
}

cudaError_t
bc_work_cooperate(bc_work *old, bool on, bc_work **out)
{
    cudaKernelNodeParams p;
    void *payload;
    cudaError_t e;

    bc_kernel_params(old->payload, &p);
    e = kernel(&p, on, &payload);
    *out = e == cudaSuccess ? bc_work_new(payload) : NULL;
    return e == cudaSuccess && !*out ? cudaErrorMemoryAllocation : e;
}

/* ---- and back ------------------------------------------------------------- */

static void
alloc_params(const bc_graph_mem *m, cudaMemAllocNodeParams *out)
{
    *out = (cudaMemAllocNodeParams){
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 0}},
        .bytesize = bc_graph_mem_bytes(m),
        .dptr = bc_graph_mem_at(m)};
}

cudaError_t
bc_node_params(cudaGraphNode_t node, cudaGraphNodeParams *out)
{
    void *payload = node->w->payload;
    const cudaHostNodeParams *host;

    *out = (cudaGraphNodeParams){.type = node->type};
    switch (node->type) {
    case cudaGraphNodeTypeKernel:
        bc_kernel_params(payload, &out->kernel);
        return cudaSuccess;
    case cudaGraphNodeTypeMemcpy:
        return bc_copy_params(payload, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        bc_fill_params(payload, &out->memset);
        return cudaSuccess;
    case cudaGraphNodeTypeHost: /* or a call of a library of ours */
        host = bc_host_params(payload);
        if (host)
            out->host = *host;
        return host ? cudaSuccess : cudaErrorNotSupported;
    case cudaGraphNodeTypeGraph: /* or a launch that was captured */
        out->graph.graph = bc_child_graph(payload);
        return out->graph.graph ? cudaSuccess : cudaErrorNotSupported;
    case cudaGraphNodeTypeEmpty: return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        out->eventWait.event = bc_event_payload(payload);
        return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
        out->eventRecord.event = bc_event_payload(payload);
        return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
        alloc_params(bc_graph_mem_of(payload), &out->alloc);
        return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
        out->free.dptr = bc_graph_mem_at(bc_graph_mem_of(payload));
        return cudaSuccess;
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
    case cudaGraphNodeTypeConditional: break;
    }
    return cudaErrorInvalidValue;
}
