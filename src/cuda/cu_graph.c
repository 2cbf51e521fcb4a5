/* cu_graph.c - graphs: ops that are kept, to be done again and again.
 *
 * A node keeps the op that it stands for. An executable graph holds the nodes
 * in an order that respects their edges, and a launch is one op of the stream
 * that does them one after another. Capturing appends what would have been
 * issued, which is such an order by itself; so edges matter only where the
 * program draws them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

struct CUgraphNode_st {
    void *payload; /* NULL: empty */
    cudaGraphNodeType type;
    struct CUgraph_st *graph;
    unsigned refs; /* the graph and the executables that hold it */
    unsigned waits;
    BR_VEC(cudaGraphNode_t) after; /* edges from here */
};
struct CUgraph_st {
    BR_VEC(cudaGraphNode_t) nodes;
    struct CUstream_st *origin; /* of a capture */
    bool broken;
};
struct CUgraphExec_st {
    BR_VEC(cudaGraphNode_t) order;
    unsigned refs; /* the program, and launches under way */
};

static void
node_drop(cudaGraphNode_t n)
{
    if (--n->refs)
        return;
    if (n->payload)
        bc_op_free(n->payload);
    br_vec_fini(&n->after);
    br_free(n);
}

static void
graph_free(cudaGraph_t g)
{
    for (size_t k = 0; k < g->nodes.n; k++)
        node_drop(g->nodes.at[k]);
    br_vec_fini(&g->nodes);
    br_free(g);
}

static void
exec_drop(cudaGraphExec_t x)
{
    if (--x->refs)
        return;
    for (size_t k = 0; k < x->order.n; k++)
        node_drop(x->order.at[k]);
    br_vec_fini(&x->order);
    br_free(x);
}

/* Takes the payload. */
static cudaGraphNode_t
node_add(cudaGraph_t g, void *payload, cudaGraphNodeType type)
{
    cudaGraphNode_t n = br_try_calloc(1, sizeof *n);

    if (!n || !br_vec_push(&g->nodes, n)) {
        br_free(n);
        if (payload)
            bc_op_free(payload);
        return NULL;
    }
    n->payload = payload;
    n->type = type;
    n->graph = g;
    n->refs = 1;
    return n;
}

/* ---- capture ------------------------------------------------------------ */

cudaError_t
bc_graph_capture(struct CUstream_st *s, void *payload)
{
    cudaGraphNode_t n = node_add(s->capture, payload, bc_op_of(payload)->type);

    if (!n) {
        s->capture->broken = true;
        return cudaErrorMemoryAllocation;
    }
    s->last = n;
    return cudaSuccess;
}

cudaError_t
bc_graph_join(struct CUstream_st *s, struct CUevent_st *e)
{
    if (!e->graph)
        return e->recorded ? cudaErrorStreamCaptureIsolation : cudaSuccess;
    if (s == &bc_rt.null)
        return cudaErrorStreamCaptureImplicit;
    if (s->capture && s->capture != e->graph)
        return cudaErrorStreamCaptureMerge;
    s->capture = e->graph;
    return cudaSuccess;
}

/* Every stream and event of a capture leaves it. */
static void
leave(cudaGraph_t g)
{
    for (struct CUstream_st *s = bc_rt.streams; s; s = s->next)
        if (s->capture == g)
            s->capture = NULL;
    for (struct CUevent_st *e = bc_rt.events; e; e = e->next)
        if (e->graph == g)
            e->graph = NULL;
}

void
bc_graph_drop(struct CUstream_st *s)
{
    cudaGraph_t g = s->capture;

    if (g->origin == s) {
        leave(g);
        graph_free(g);
    } else {
        s->capture = NULL;
    }
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t hs, cudaStreamCaptureMode mode)
{
    struct CUstream_st *s;
    cudaError_t e = cudaSuccess;

    bc_lock();
    s = bc_stream_of(hs);
    if (!s)
        e = cudaErrorInvalidResourceHandle;
    else if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        e = cudaErrorInvalidValue;
    else if (s == &bc_rt.null)
        e = cudaErrorStreamCaptureUnsupported;
    else if (s->capture)
        e = cudaErrorIllegalState;
    else if (!(s->capture = br_try_calloc(1, sizeof *s->capture)))
        e = cudaErrorMemoryAllocation;
    else
        s->capture->origin = s;
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaStreamEndCapture(cudaStream_t hs, cudaGraph_t *graph)
{
    struct CUstream_st *s;
    cudaError_t e = cudaSuccess;

    bc_lock();
    s = bc_stream_of(hs);
    if (!s || !graph) {
        e = s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    } else if (!s->capture) {
        e = cudaErrorIllegalState;
    } else if (s->capture->origin != s) {
        e = cudaErrorStreamCaptureUnmatched;
    } else {
        *graph = s->capture;
        leave(*graph);
        if ((*graph)->broken) {
            graph_free(*graph);
            *graph = NULL;
            e = cudaErrorStreamCaptureInvalidated;
        }
    }
    bc_unlock();
    return bc_end(e);
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t hs, cudaStreamCaptureStatus *status)
{
    struct CUstream_st *s;

    bc_lock();
    s = bc_stream_of(hs);
    if (s && status)
        *status = s->capture ? cudaStreamCaptureStatusActive
                             : cudaStreamCaptureStatusNone;
    bc_unlock();
    return bc_end(!s       ? cudaErrorInvalidResourceHandle
                  : status ? cudaSuccess
                           : cudaErrorInvalidValue);
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
    graph_free(graph);
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
    node = node_add(g, payload, type);
    *out = node;
    for (size_t k = 0; node && k < n; k++)
        if (!br_vec_push(&deps[k]->after, node))
            return cudaErrorMemoryAllocation;
    return node ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t
cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *deps, size_t n,
                       const cudaKernelNodeParams *p)
{
    bc_launch l = {0};
    void *payload;
    cudaError_t e;

    if (!p || p->extra)
        return bc_end(cudaErrorInvalidValue);
    l.grid[0] = p->gridDim.x, l.grid[1] = p->gridDim.y;
    l.grid[2] = p->gridDim.z, l.block[0] = p->blockDim.x;
    l.block[1] = p->blockDim.y, l.block[2] = p->blockDim.z;
    l.shared = p->sharedMemBytes;
    l.args = p->kernelParams;
    bc_lock();
    e = bc_kernel_of(p->func, &l.f);
    if (e == cudaSuccess)
        e = bc_launch_op(&l, &payload);
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

cudaError_t
cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *deps, size_t n,
                       const cudaMemsetParams *p)
{
    bc_rect r = {.depth = 1};

    if (!p || !p->dst ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return bc_end(cudaErrorInvalidValue);
    r.dst = p->dst;
    r.width = (uint64_t)p->width * p->elementSize;
    r.height = p->height;
    r.dpitch = p->pitch;
    r.value = p->value;
    r.element = p->elementSize;
    return add_rect(node, graph, deps, n, &r);
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
cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                         const cudaGraphNode_t *to, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (!from[k] || !to[k] || from[k]->graph != graph ||
            to[k]->graph != graph)
            return bc_end(cudaErrorInvalidValue);
        if (!br_vec_push(&from[k]->after, to[k]))
            return bc_end(cudaErrorMemoryAllocation);
    }
    return cudaSuccess;
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
    if (!br_vec_reserve(&x->order, g->nodes.n))
        return cudaErrorMemoryAllocation;
    for (size_t k = 0; k < g->nodes.n; k++)
        g->nodes.at[k]->waits = 0;
    for (size_t k = 0; k < g->nodes.n; k++)
        for (size_t a = 0; a < g->nodes.at[k]->after.n; a++)
            g->nodes.at[k]->after.at[a]->waits++;
    for (size_t k = 0; k < g->nodes.n; k++)
        if (!g->nodes.at[k]->waits)
            x->order.at[x->order.n++] = g->nodes.at[k];
    for (size_t k = 0; k < x->order.n; k++) {
        cudaGraphNode_t n = x->order.at[k];

        for (size_t a = 0; a < n->after.n; a++)
            if (--n->after.at[a]->waits == 0)
                x->order.at[x->order.n++] = n->after.at[a];
    }
    if (x->order.n != g->nodes.n)
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < x->order.n; k++)
        x->order.at[k]->refs++;
    return cudaSuccess;
}

cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                              unsigned long long flags)
{
    cudaGraphExec_t x;
    cudaError_t e;

    (void)flags;
    if (!exec || !graph)
        return bc_end(cudaErrorInvalidValue);
    x = br_try_calloc(1, sizeof *x);
    if (!x)
        return bc_end(cudaErrorMemoryAllocation);
    x->refs = 1;
    bc_lock();
    e = put_in_order(graph, x);
    bc_unlock();
    if (e != cudaSuccess) {
        br_vec_fini(&x->order);
        br_free(x);
        x = NULL;
    }
    *exec = x;
    return bc_end(e);
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
        if (x->order.at[k]->payload)
            e = bc_op_of(x->order.at[k]->payload)->run(x->order.at[k]->payload);
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
