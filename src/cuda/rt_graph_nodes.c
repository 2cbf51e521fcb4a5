/* rt_graph_nodes.c - the runtime API: nodes of graphs are added, asked and changed.
 *
 * Each kind has functions of its own for what cudaGraphNodeParams says of any.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

typedef cudaGraphNodeParams any;
typedef const cudaGraphNode_t *nodes; /* a list of them */

/* ---- of any kind -------------------------------------------------------- */

static cudaError_t
add(cudaGraphNode_t *node, cudaGraph_t g, nodes deps, size_t n, any *p)
{
    bc_work *w;
    cudaError_t e;

    if (!node || !bc_is_graph(g) || !p)
        return cudaErrorInvalidValue;
    e = bc_node_work(g, p, &w);
    return e == cudaSuccess ? bc_node_draw(node, g, deps, n, w, p->type) : e;
}

/* Memory is had and freed at the addresses that it was made with. */
static cudaError_t
changed(cudaGraphNode_t node, any *p, bc_work **w)
{
    if (!bc_is_node(node) || !p || node->type != p->type ||
        p->type == cudaGraphNodeTypeMemAlloc ||
        p->type == cudaGraphNodeTypeMemFree)
        return cudaErrorInvalidValue;
    return bc_node_work(node->graph, p, w);
}

static cudaError_t
set(cudaGraphNode_t node, any *p)
{
    bc_work *w;
    cudaError_t e = changed(node, p, &w);

    if (e != cudaSuccess)
        return e;
    bc_work_drop(node->w);
    node->w = w;
    return cudaSuccess;
}

static cudaError_t
set_step(cudaGraphExec_t x, cudaGraphNode_t node, any *p)
{
    bc_work *w;
    cudaError_t e =
        bc_is_exec(x) ? changed(node, p, &w) : cudaErrorInvalidValue;

    return e == cudaSuccess ? bc_step_set(x, node, w, p->type) : e;
}

/* n bytes of what is behind the type. */
static cudaError_t
get(cudaGraphNode_t node, cudaGraphNodeType type, void *out, size_t n)
{
    any p;
    cudaError_t e;

    if (!bc_is_node(node) || !out || node->type != type)
        return cudaErrorInvalidValue;
    e = bc_node_params(node, &p);
    if (e == cudaSuccess)
        memcpy(out, &p.reserved1, n);
    return e;
}

cudaError_t
cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps, size_t n,
                 any *p)
{
    BC_API(add(node, graph, deps, n, p));
}

cudaError_t
cudaGraphNodeSetParams(cudaGraphNode_t node, any *p)
{
    BC_API(set(node, p));
}

cudaError_t
cudaGraphExecNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node, any *p)
{
    BC_API(set_step(x, node, p));
}

/* What each kind has whose parameters are `at` of those of any. */
#define NODES_OF(Kind, at, params)                                      \
    static any *of_##at(any *a, const params *p)                        \
    {                                                                   \
        *a = (any){.type = cudaGraphNodeType##Kind};                    \
        if (p)                                                          \
            a->at = *p;                                                 \
        return p ? a : NULL;                                            \
    }                                                                   \
    cudaError_t cudaGraphAdd##Kind##Node(cudaGraphNode_t *node,         \
                                         cudaGraph_t graph, nodes deps, \
                                         size_t n, const params *p)     \
    {                                                                   \
        any a;                                                          \
        BC_API(add(node, graph, deps, n, of_##at(&a, p)));              \
    }                                                                   \
    cudaError_t cudaGraph##Kind##NodeGetParams(cudaGraphNode_t node,    \
                                               params *p)               \
    {                                                                   \
        BC_API(get(node, cudaGraphNodeType##Kind, p, sizeof *p));       \
    }                                                                   \
    cudaError_t cudaGraph##Kind##NodeSetParams(cudaGraphNode_t node,    \
                                               const params *p)         \
    {                                                                   \
        any a;                                                          \
        BC_API(set(node, of_##at(&a, p)));                              \
    }                                                                   \
    cudaError_t cudaGraphExec##Kind##NodeSetParams(                     \
        cudaGraphExec_t x, cudaGraphNode_t node, const params *p)       \
    {                                                                   \
        any a;                                                          \
        BC_API(set_step(x, node, of_##at(&a, p)));                      \
    }
NODES_OF(Kernel, kernel, cudaKernelNodeParams)
NODES_OF(Memset, memset, cudaMemsetParams)
NODES_OF(Host, host, cudaHostNodeParams)

/* ---- kernels ------------------------------------------------------------ */

static cudaError_t
set_attribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
              const cudaLaunchAttributeValue *v)
{
    cudaLaunchAttribute a = {.id = id};
    bc_launch l = {0};
    bc_work *w;
    cudaError_t e;

    if (!bc_is_node(node) || !v || node->type != cudaGraphNodeTypeKernel)
        return cudaErrorInvalidValue;
    a.val = *v;
    e = bc_launch_attr(&l, &a);
    if (e != cudaSuccess)
        return e;
    if (id == cudaLaunchAttributePriority)
        node->priority = v->priority;
    if (id == cudaLaunchAttributeAccessPolicyWindow)
        node->window = v->accessPolicyWindow;
    if (id != cudaLaunchAttributeCooperative)
        return cudaSuccess;
    e = bc_work_cooperate(node->w, l.cooperative, &w);
    if (e != cudaSuccess)
        return e;
    bc_work_drop(node->w);
    node->w = w;
    return cudaSuccess;
}

static cudaError_t
get_attribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
              cudaLaunchAttributeValue *v)
{
    if (!bc_is_node(node) || !v || node->type != cudaGraphNodeTypeKernel)
        return cudaErrorInvalidValue;
    memset(v, 0, sizeof *v);
    switch (id) {
    case cudaLaunchAttributeCooperative:
        v->cooperative = bc_is_cooperative(node->w->payload);
        return cudaSuccess;
    case cudaLaunchAttributePriority:
        v->priority = node->priority;
        return cudaSuccess;
    case cudaLaunchAttributeAccessPolicyWindow:
        v->accessPolicyWindow = node->window;
        return cudaSuccess;
    default: return cudaErrorNotSupported;
    }
}

cudaError_t
cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                const cudaLaunchAttributeValue *value)
{
    BC_API(set_attribute(node, id, value));
}

cudaError_t
cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                cudaLaunchAttributeValue *value)
{
    BC_API(get_attribute(node, id, value));
}

static cudaError_t
copy_attributes(cudaGraphNode_t from, cudaGraphNode_t to)
{
    cudaLaunchAttributeValue v;
    cudaError_t e = get_attribute(from, cudaLaunchAttributeCooperative, &v);

    if (e == cudaSuccess)
        e = set_attribute(to, cudaLaunchAttributeCooperative, &v);
    if (e == cudaSuccess) {
        to->priority = from->priority;
        to->window = from->window;
    }
    return e;
}

cudaError_t
cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t src, cudaGraphNode_t dst)
{
    BC_API(copy_attributes(src, dst));
}

/* ---- copies ------------------------------------------------------------- */

static any *
of_copy(any *a, const cudaMemcpy3DParms *p)
{
    *a = (any){.type = cudaGraphNodeTypeMemcpy};
    if (p)
        a->memcpy.copyParams = *p;
    return p ? a : NULL;
}

static any *
of_line(any *a, void *dst, const void *src, size_t n, cudaMemcpyKind kind)
{
    union { /* the structure's pointers are to what may be written */
        const void *c;
        void *p;
    } from = {src};
    const cudaMemcpy3DParms p = {.dstPtr = {dst, n, n, 1},
                                 .srcPtr = {from.p, n, n, 1},
                                 .extent = {n, 1, 1},
                                 .kind = kind};

    return dst && src ? of_copy(a, &p) : NULL;
}

/* The side that is a variable is found now. */
static any *
of_symbol(any *a, const void *symbol, size_t offset, bool to, void *other,
          size_t n, cudaMemcpyKind kind)
{
    void *at;
    size_t bytes;

    if (!symbol || bc_symbol(symbol, &at, &bytes) != cudaSuccess ||
        offset > bytes || n > bytes - offset)
        return NULL;
    at = (char *)at + offset;
    return to ? of_line(a, at, other, n, kind) : of_line(a, other, at, n, kind);
}

cudaError_t
cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                       size_t n, const cudaMemcpy3DParms *p)
{
    any a;

    BC_API(add(node, graph, deps, n, of_copy(&a, p)));
}

cudaError_t
cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                         size_t n, void *dst, const void *src, size_t bytes,
                         cudaMemcpyKind kind)
{
    any a;

    BC_API(add(node, graph, deps, n, of_line(&a, dst, src, bytes, kind)));
}

cudaError_t
cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                               nodes deps, size_t n, const void *symbol,
                               const void *src, size_t bytes, size_t offset,
                               cudaMemcpyKind kind)
{
    union {
        const void *c;
        void *p;
    } from = {src};
    any a;

    BC_API(add(node, graph, deps, n,
               of_symbol(&a, symbol, offset, true, from.p, bytes, kind)));
}

cudaError_t
cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                 nodes deps, size_t n, void *dst,
                                 const void *symbol, size_t bytes,
                                 size_t offset, cudaMemcpyKind kind)
{
    any a;

    BC_API(add(node, graph, deps, n,
               of_symbol(&a, symbol, offset, false, dst, bytes, kind)));
}

cudaError_t
cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *p)
{
    any a;
    cudaError_t e;

    bc_lock();
    e = p ? get(node, cudaGraphNodeTypeMemcpy, &a.reserved1, sizeof a.reserved1)
          : cudaErrorInvalidValue;
    bc_unlock();
    if (e == cudaSuccess)
        *p = a.memcpy.copyParams;
    return bc_end(e);
}

cudaError_t
cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *p)
{
    any a;

    BC_API(set(node, of_copy(&a, p)));
}

cudaError_t
cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                               size_t bytes, cudaMemcpyKind kind)
{
    any a;

    BC_API(set(node, of_line(&a, dst, src, bytes, kind)));
}

cudaError_t
cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                     const void *src, size_t bytes,
                                     size_t offset, cudaMemcpyKind kind)
{
    union {
        const void *c;
        void *p;
    } from = {src};
    any a;

    BC_API(set(node, of_symbol(&a, symbol, offset, true, from.p, bytes, kind)));
}

cudaError_t
cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                       const void *symbol, size_t bytes,
                                       size_t offset, cudaMemcpyKind kind)
{
    any a;

    BC_API(set(node, of_symbol(&a, symbol, offset, false, dst, bytes, kind)));
}

cudaError_t
cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                 const cudaMemcpy3DParms *p)
{
    any a;

    BC_API(set_step(x, node, of_copy(&a, p)));
}

cudaError_t
cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t x, cudaGraphNode_t node,
                                   void *dst, const void *src, size_t bytes,
                                   cudaMemcpyKind kind)
{
    any a;

    BC_API(set_step(x, node, of_line(&a, dst, src, bytes, kind)));
}

cudaError_t
cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t x,
                                         cudaGraphNode_t node,
                                         const void *symbol, const void *src,
                                         size_t bytes, size_t offset,
                                         cudaMemcpyKind kind)
{
    union {
        const void *c;
        void *p;
    } from = {src};
    any a;

    BC_API(set_step(x, node,
                    of_symbol(&a, symbol, offset, true, from.p, bytes, kind)));
}

cudaError_t
cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t x,
                                           cudaGraphNode_t node, void *dst,
                                           const void *symbol, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind)
{
    any a;

    BC_API(set_step(x, node,
                    of_symbol(&a, symbol, offset, false, dst, bytes, kind)));
}

/* ---- events, memory, children, nothing ---------------------------------- */

cudaError_t
cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                      size_t n)
{
    any a = {.type = cudaGraphNodeTypeEmpty};

    BC_API(add(node, graph, deps, n, &a));
}

cudaError_t
cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                            nodes deps, size_t n, cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeEventRecord, .eventRecord = {event}};

    BC_API(add(node, graph, deps, n, &a));
}

cudaError_t
cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                          size_t n, cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeWaitEvent, .eventWait = {event}};

    BC_API(add(node, graph, deps, n, &a));
}

cudaError_t
cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    BC_API(get(node, cudaGraphNodeTypeEventRecord, event, sizeof *event));
}

cudaError_t
cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    BC_API(get(node, cudaGraphNodeTypeWaitEvent, event, sizeof *event));
}

cudaError_t
cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeEventRecord, .eventRecord = {event}};

    BC_API(set(node, &a));
}

cudaError_t
cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeWaitEvent, .eventWait = {event}};

    BC_API(set(node, &a));
}

cudaError_t
cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t x, cudaGraphNode_t node,
                                     cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeEventRecord, .eventRecord = {event}};

    BC_API(set_step(x, node, &a));
}

cudaError_t
cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t x, cudaGraphNode_t node,
                                   cudaEvent_t event)
{
    any a = {.type = cudaGraphNodeTypeWaitEvent, .eventWait = {event}};

    BC_API(set_step(x, node, &a));
}

cudaError_t
cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                         size_t n, cudaMemAllocNodeParams *p)
{
    any a = {.type = cudaGraphNodeTypeMemAlloc};
    cudaError_t e = cudaErrorInvalidValue;

    bc_lock();
    if (p) {
        a.alloc = *p;
        e = add(node, graph, deps, n, &a);
        p->dptr = e == cudaSuccess ? a.alloc.dptr : NULL;
    }
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *p)
{
    BC_API(get(node, cudaGraphNodeTypeMemAlloc, p, sizeof *p));
}

cudaError_t
cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                        size_t n, void *dptr)
{
    any a = {.type = cudaGraphNodeTypeMemFree, .free = {dptr}};

    BC_API(add(node, graph, deps, n, &a));
}

cudaError_t
cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr)
{
    BC_API(get(node, cudaGraphNodeTypeMemFree, dptr, sizeof(void *)));
}

/* The graph as it is now; the node's own is asked for below. */
cudaError_t
cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, nodes deps,
                           size_t n, cudaGraph_t of)
{
    any a = {.type = cudaGraphNodeTypeGraph, .graph = {.graph = of}};

    BC_API(add(node, graph, deps, n, &a));
}

cudaError_t
cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    BC_API(get(node, cudaGraphNodeTypeGraph, graph, sizeof *graph));
}

cudaError_t
cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                     cudaGraph_t of)
{
    any a = {.type = cudaGraphNodeTypeGraph, .graph = {.graph = of}};

    BC_API(set_step(x, node, &a));
}
