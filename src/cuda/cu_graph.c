/* cu_graph.c - graphs: ops that are kept, to be done again and again.
 *
 * A node keeps the op that it stands for: its work. An executable graph holds
 * the works in an order that respects the edges between nodes, and a launch is
 * one op of the stream that does them one after another. Capturing (cu_capture.c)
 * appends what would have been issued, with the edges that streams and events mean.
 * A work is never changed, for graphs, their
 * clones and executables share it: nodes get others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

void
bc_work_drop(bc_work *w)
{
    if (!w || --w->refs)
        return;
    if (w->payload)
        bc_op_free(w->payload);
    br_free(w);
}

/* Takes the payload. */
bc_work *
bc_work_new(void *payload)
{
    bc_work *w = br_try_calloc(1, sizeof *w);

    if (w)
        *w = (bc_work){payload, 1};
    else if (payload)
        bc_op_free(payload);
    return w;
}

void
bc_graph_free(cudaGraph_t g)
{
    for (size_t k = 0; k < g->nodes.n; k++) {
        bc_work_drop(g->nodes.at[k]->w);
        br_vec_fini(&g->nodes.at[k]->after);
        br_free(g->nodes.at[k]);
    }
    br_vec_fini(&g->nodes);
    br_free(g);
}

static void
exec_drop(cudaGraphExec_t x)
{
    if (--x->refs)
        return;
    for (size_t k = 0; k < x->order.n; k++)
        bc_work_drop(x->order.at[k].w);
    br_vec_fini(&x->order);
    br_free(x);
}

/* Takes the work, which may be NULL: there was no memory for it. */
cudaGraphNode_t
bc_node_add(cudaGraph_t g, bc_work *w, cudaGraphNodeType type)
{
    cudaGraphNode_t n = br_try_calloc(1, sizeof *n);

    if (!w || !n || !br_vec_push(&g->nodes, n)) {
        br_free(n);
        bc_work_drop(w);
        return NULL;
    }
    n->w = w;
    n->type = type;
    n->graph = g;
    n->index = (unsigned)g->nodes.n - 1;
    return n;
}

void
bc_count_edges(cudaGraph_t g)
{
    for (size_t k = 0; k < g->nodes.n; k++)
        g->nodes.at[k]->waits = 0;
    for (size_t k = 0; k < g->nodes.n; k++)
        for (size_t a = 0; a < g->nodes.at[k]->after.n; a++)
            g->nodes.at[k]->after.at[a]->waits++;
}

/* ---- graphs drawn by the program ---------------------------------------- */

cudaError_t
cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    if (!graph || flags)
        return bc_end(cudaErrorInvalidValue);
    *graph = br_try_calloc(1, sizeof **graph);
    return bc_end(*graph ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t
cudaGraphDestroy(cudaGraph_t graph)
{
    if (!graph)
        return bc_end(cudaErrorInvalidValue);
    bc_lock();
    bc_graph_free(graph);
    bc_unlock();
    return cudaSuccess;
}

/* Takes the payload. */
static cudaError_t
add(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps, size_t n,
    void *payload, cudaGraphNodeType type)
{
    cudaGraphNode_t node;

    if (!out || !g || (n && !deps)) {
        if (payload)
            bc_op_free(payload);
        return cudaErrorInvalidValue;
    }
    for (size_t k = 0; k < n; k++)
        if (!deps[k] || deps[k]->graph != g) {
            if (payload)
                bc_op_free(payload);
            return cudaErrorInvalidValue;
        }
    node = bc_node_add(g, bc_work_new(payload), type);
    *out = node;
    for (size_t k = 0; node && k < n; k++)
        if (!br_vec_push(&deps[k]->after, node))
            return cudaErrorMemoryAllocation;
    return node ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t
kernel(const cudaKernelNodeParams *p, void **payload)
{
    bc_launch l = {0};
    cudaError_t e;

    if (!p || p->extra)
        return cudaErrorInvalidValue;
    l.grid[0] = p->gridDim.x, l.grid[1] = p->gridDim.y;
    l.grid[2] = p->gridDim.z, l.block[0] = p->blockDim.x;
    l.block[1] = p->blockDim.y, l.block[2] = p->blockDim.z;
    l.shared = p->sharedMemBytes;
    l.args = p->kernelParams;
    e = bc_kernel_of(p->func, &l.f);
    return e == cudaSuccess ? bc_launch_op(&l, payload) : e;
}

cudaError_t
cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *deps, size_t n,
                       const cudaKernelNodeParams *p)
{
    void *payload;
    cudaError_t e;

    bc_lock();
    e = kernel(p, &payload);
    if (e == cudaSuccess)
        e = add(node, graph, deps, n, payload, cudaGraphNodeTypeKernel);
    bc_unlock();
    return bc_end(e);
}

static cudaError_t
add_rect(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
         size_t n, const bc_rect *r)
{
    void *payload = bc_rect_op(r);
    cudaError_t e = cudaErrorMemoryAllocation;

    bc_lock();
    if (payload)
        e = add(node, graph, deps, n, payload, bc_op_of(payload)->type);
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *deps, size_t n,
                       const cudaMemcpy3DParms *p)
{
    bc_rect r;
    cudaError_t e;

    bc_lock();
    e = bc_rect_3d(p, &r);
    bc_unlock();
    return e == cudaSuccess ? add_rect(node, graph, deps, n, &r) : bc_end(e);
}

cudaError_t
cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                         const cudaGraphNode_t *deps, size_t n, void *dst,
                         const void *src, size_t bytes, cudaMemcpyKind kind)
{
    bc_rect r = {.dst = dst, .src = src, .width = bytes, .height = 1};

    r.depth = 1;
    if (!dst || !src || (unsigned)kind > cudaMemcpyDefault)
        return bc_end(cudaErrorInvalidValue);
    return add_rect(node, graph, deps, n, &r);
}

static bool
fill_rect(const cudaMemsetParams *p, bc_rect *r)
{
    if (!p || !p->dst ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return false;
    *r = (bc_rect){.dst = p->dst, .height = p->height, .depth = 1};
    r->width = (uint64_t)p->width * p->elementSize;
    r->dpitch = p->pitch;
    r->value = p->value;
    r->element = p->elementSize;
    return true;
}

cudaError_t
cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *deps, size_t n,
                       const cudaMemsetParams *p)
{
    bc_rect r;

    return fill_rect(p, &r) ? add_rect(node, graph, deps, n, &r)
                            : bc_end(cudaErrorInvalidValue);
}

static cudaError_t
call_node(void *payload)
{
    const cudaHostNodeParams *p = payload;

    p->fn(p->userData);
    return cudaSuccess;
}

cudaError_t
cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                     const cudaGraphNode_t *deps, size_t n,
                     const cudaHostNodeParams *p)
{
    cudaHostNodeParams *payload;
    cudaError_t e;

    if (!p || !p->fn)
        return bc_end(cudaErrorInvalidValue);
    payload = bc_op_new(sizeof *payload, call_node);
    if (!payload)
        return bc_end(cudaErrorMemoryAllocation);
    *payload = *p;
    bc_lock();
    e = add(node, graph, deps, n, payload, cudaGraphNodeTypeHost);
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                      const cudaGraphNode_t *deps, size_t n)
{
    cudaError_t e;

    bc_lock();
    e = add(node, graph, deps, n, NULL, cudaGraphNodeTypeEmpty);
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    if (!graph || !n)
        return bc_end(cudaErrorInvalidValue);
    for (size_t k = 0; nodes && k < *n; k++)
        nodes[k] = k < graph->nodes.n ? graph->nodes.at[k] : NULL;
    *n = nodes ? BR_MIN(*n, graph->nodes.n) : graph->nodes.n;
    return cudaSuccess;
}

/* Nodes without an edge in; an edge from each `from` to its `to`. */
cudaError_t
cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    size_t roots = 0;

    if (!graph || !n)
        return bc_end(cudaErrorInvalidValue);
    bc_count_edges(graph);
    for (size_t k = 0; k < graph->nodes.n; k++)
        if (!graph->nodes.at[k]->waits) {
            if (nodes && roots < *n)
                nodes[roots] = graph->nodes.at[k];
            roots++;
        }
    *n = nodes ? BR_MIN(*n, roots) : roots;
    return cudaSuccess;
}

cudaError_t
cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                  size_t *n)
{
    size_t edges = 0;

    if (!graph || !n || !from != !to)
        return bc_end(cudaErrorInvalidValue);
    for (size_t k = 0; k < graph->nodes.n; k++)
        for (size_t a = 0; a < graph->nodes.at[k]->after.n; a++, edges++)
            if (from && edges < *n) {
                from[edges] = graph->nodes.at[k];
                to[edges] = graph->nodes.at[k]->after.at[a];
            }
    *n = from ? BR_MIN(*n, edges) : edges;
    return cudaSuccess;
}

static cudaError_t
copy_graph(cudaGraph_t *out, cudaGraph_t from)
{
    cudaGraph_t g = br_try_calloc(1, sizeof *g);
    bool ok = g != NULL;

    for (size_t k = 0; ok && k < from->nodes.n; k++) {
        from->nodes.at[k]->w->refs++;
        ok = bc_node_add(g, from->nodes.at[k]->w, from->nodes.at[k]->type) !=
             NULL;
        if (ok)
            g->nodes.at[k]->copy_of = from->nodes.at[k];
    }
    for (size_t k = 0; ok && k < from->nodes.n; k++)
        for (size_t a = 0; ok && a < from->nodes.at[k]->after.n; a++)
            ok =
                br_vec_push(&g->nodes.at[k]->after,
                            g->nodes.at[from->nodes.at[k]->after.at[a]->index]);
    if (!ok && g)
        bc_graph_free(g);
    *out = ok ? g : NULL;
    return ok ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t
cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph)
{
    BC_API(out && graph ? copy_graph(out, graph) : cudaErrorInvalidValue);
}

cudaError_t
cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node,
                         cudaGraph_t graph)
{
    if (!out || !node || !graph)
        return bc_end(cudaErrorInvalidValue);
    for (size_t k = 0; k < graph->nodes.n; k++)
        if (graph->nodes.at[k]->copy_of == node) {
            *out = graph->nodes.at[k];
            return bc_end(cudaSuccess);
        }
    return bc_end(cudaErrorInvalidValue);
}

static cudaError_t
kernel_params(cudaGraphNode_t node, const cudaKernelNodeParams *p)
{
    void *payload;
    cudaError_t e;
    bc_work *w;

    if (!node || node->type != cudaGraphNodeTypeKernel)
        return cudaErrorInvalidValue;
    e = kernel(p, &payload);
    if (e != cudaSuccess)
        return e;
    w = bc_work_new(payload);
    if (!w)
        return cudaErrorMemoryAllocation;
    bc_work_drop(node->w);
    node->w = w;
    return cudaSuccess;
}

cudaError_t
cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                             const cudaKernelNodeParams *p)
{
    BC_API(kernel_params(node, p));
}

cudaError_t
cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type)
{
    if (!node || !type)
        return bc_end(cudaErrorInvalidValue);
    *type = node->type;
    return cudaSuccess;
}

/* ---- executables -------------------------------------------------------- */

/* Nodes whose edges in are all done, again and again; a cycle leaves some. */
static cudaError_t
put_in_order(cudaGraph_t g, cudaGraphExec_t x)
{
    cudaGraphNode_t *order = br_try_calloc(g->nodes.n + 1, sizeof *order);
    size_t n = 0;

    if (!order || !br_vec_reserve(&x->order, g->nodes.n)) {
        br_free(order);
        return cudaErrorMemoryAllocation;
    }
    bc_count_edges(g);
    for (size_t k = 0; k < g->nodes.n; k++)
        if (!g->nodes.at[k]->waits)
            order[n++] = g->nodes.at[k];
    for (size_t k = 0; k < n; k++)
        for (size_t a = 0; a < order[k]->after.n; a++)
            if (--order[k]->after.at[a]->waits == 0)
                order[n++] = order[k]->after.at[a];
    for (size_t k = 0; n == g->nodes.n && k < n; k++) {
        order[k]->w->refs++;
        x->order.at[x->order.n++] =
            (bc_step){order[k], order[k]->type, order[k]->w};
    }
    br_free(order);
    return n == g->nodes.n ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t
instantiate(cudaGraphExec_t *exec, cudaGraph_t graph)
{
    cudaGraphExec_t x;
    cudaError_t e;

    if (!exec || !graph)
        return cudaErrorInvalidValue;
    x = br_try_calloc(1, sizeof *x);
    if (!x)
        return cudaErrorMemoryAllocation;
    x->refs = 1;
    e = put_in_order(graph, x);
    if (e != cudaSuccess) {
        br_vec_fini(&x->order);
        br_free(x);
        x = NULL;
    }
    *exec = x;
    return e;
}

cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                              unsigned long long flags)
{
    (void)flags;
    BC_API(instantiate(exec, graph));
}

cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                     unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

static cudaError_t
do_graph(void *payload)
{
    cudaGraphExec_t x = *(cudaGraphExec_t *)payload;
    cudaError_t e = cudaSuccess;

    for (size_t k = 0; e == cudaSuccess && k < x->order.n; k++)
        if (x->order.at[k].w->payload)
            e = bc_op_of(x->order.at[k].w->payload)
                    ->run(x->order.at[k].w->payload);
    return e;
}

static void
drop_launch(void *payload)
{
    exec_drop(*(cudaGraphExec_t *)payload);
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t hs)
{
    struct CUstream_st *s;
    cudaGraphExec_t *p;
    cudaError_t e;

    if (!exec)
        return bc_end(cudaErrorInvalidValue);
    p = bc_op_new(sizeof *p, do_graph);
    if (!p)
        return bc_end(cudaErrorMemoryAllocation);
    bc_lock();
    s = bc_stream_of(hs);
    *p = exec;
    bc_op_of(p)->type = cudaGraphNodeTypeGraph;
    if (!s || bc_rt.sticky) {
        bc_op_free(p);
        e = s ? bc_rt.sticky : cudaErrorInvalidResourceHandle;
    } else {
        exec->refs++;
        bc_op_of(p)->drop = drop_launch;
        e = bc_issue(s, p);
    }
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t hs)
{
    bool ok;

    bc_lock();
    ok = bc_stream_of(hs) != NULL;
    bc_unlock();
    return bc_end(exec && ok ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (!exec)
        return bc_end(cudaErrorInvalidValue);
    bc_lock();
    exec_drop(exec);
    bc_unlock();
    return cudaSuccess;
}

/* ---- what changes in an executable ---------------------------------------- */

/* Another work for a node's step, when no launch is under way. Takes it. */
static cudaError_t
replace(cudaGraphExec_t x, const void *node, bc_work *w, cudaGraphNodeType type)
{
    cudaError_t e = w ? bc_wait_all() : cudaErrorMemoryAllocation;
    bc_step *at = NULL;

    for (size_t k = 0; x && k < x->order.n; k++)
        if (x->order.at[k].node == node)
            at = &x->order.at[k];
    if (e == cudaSuccess && (!at || at->type != type))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        bc_work *old = at->w;

        at->w = w;
        w = old;
    }
    bc_work_drop(w);
    return e;
}

static cudaError_t
exec_kernel(cudaGraphExec_t x, cudaGraphNode_t node,
            const cudaKernelNodeParams *p)
{
    void *payload;
    cudaError_t e = kernel(p, &payload);

    return e == cudaSuccess
               ? replace(x, node, bc_work_new(payload), cudaGraphNodeTypeKernel)
               : e;
}

cudaError_t
cudaGraphExecKernelNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                 const cudaKernelNodeParams *p)
{
    BC_API(exec_kernel(x, node, p));
}

static cudaError_t
exec_rect(cudaGraphExec_t x, cudaGraphNode_t node, const bc_rect *r)
{
    void *payload = bc_rect_op(r);

    return payload ? replace(x, node, bc_work_new(payload),
                             r->src ? cudaGraphNodeTypeMemcpy
                                    : cudaGraphNodeTypeMemset)
                   : cudaErrorMemoryAllocation;
}

cudaError_t
cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t x, cudaGraphNode_t node,
                                   void *dst, const void *src, size_t bytes,
                                   cudaMemcpyKind kind)
{
    bc_rect r = {.dst = dst, .src = src, .width = bytes, .height = 1};

    r.depth = 1;
    BC_API(dst && src && (unsigned)kind <= cudaMemcpyDefault
               ? exec_rect(x, node, &r)
               : cudaErrorInvalidValue);
}

cudaError_t
cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t x, cudaGraphNode_t node,
                                 const cudaMemsetParams *p)
{
    bc_rect r;

    BC_API(fill_rect(p, &r) ? exec_rect(x, node, &r) : cudaErrorInvalidValue);
}

/* The works of another graph of the same shape. */
static cudaError_t
update(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResult *result)
{
    cudaGraphExec_t fresh;
    cudaError_t e = bc_wait_all();

    *result = cudaGraphExecUpdateError;
    if (e == cudaSuccess)
        e = instantiate(&fresh, g);
    if (e != cudaSuccess)
        return e;
    *result = fresh->order.n == x->order.n
                  ? cudaGraphExecUpdateSuccess
                  : cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t k = 0; !*result && k < x->order.n; k++)
        if (fresh->order.at[k].type != x->order.at[k].type)
            *result = cudaGraphExecUpdateErrorNodeTypeChanged;
    for (size_t k = 0; !*result && k < x->order.n; k++) {
        bc_step s = x->order.at[k];

        x->order.at[k].w = fresh->order.at[k].w;
        fresh->order.at[k].w = s.w;
    }
    exec_drop(fresh);
    return *result ? cudaErrorGraphExecUpdateFailure : cudaSuccess;
}

cudaError_t
cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                    cudaGraphExecUpdateResultInfo *info)
{
    cudaGraphExecUpdateResultInfo r = {0};
    cudaError_t e;

    if (!exec || !graph || !info)
        return bc_end(cudaErrorInvalidValue);
    bc_lock();
    e = update(exec, graph, &r.result);
    bc_unlock();
    *info = r;
    return bc_end(e);
}

static void
drop_child(void *payload)
{
    exec_drop(*(cudaGraphExec_t *)payload);
}

/* A graph as a node: as it is now. */
static cudaError_t
child(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
      size_t n, cudaGraph_t of)
{
    cudaGraphExec_t *p = bc_op_new(sizeof *p, do_graph);
    cudaError_t e = p ? instantiate(p, of) : cudaErrorMemoryAllocation;

    if (e != cudaSuccess) {
        if (p)
            bc_op_free(p);
        return e;
    }
    bc_op_of(p)->drop = drop_child;
    return add(node, graph, deps, n, p, cudaGraphNodeTypeGraph);
}

cudaError_t
cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                           const cudaGraphNode_t *deps, size_t n,
                           cudaGraph_t of)
{
    BC_API(child(node, graph, deps, n, of));
}
