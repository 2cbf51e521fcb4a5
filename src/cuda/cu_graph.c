/* cu_graph.c - graphs: ops that are kept, to be done again and again.
 *
 * A node keeps the op that it stands for: its work. An executable graph holds
 * the works in an order that respects the edges between nodes, and a launch is
 * one op of the stream that does them one after another. Capturing (cu_capture.c)
 * appends what would have been issued, with the edges that streams and events mean.
 * A work is never changed, for graphs, their clones and executables share it: nodes
 * get others. Of events and memory a launch is told when it is issued.
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

cudaGraph_t
bc_graph_new(void)
{
    cudaGraph_t g = br_try_calloc(1, sizeof *g);

    if (g && bc_graph_born(g))
        return g;
    br_free(g);
    return NULL;
}

void
bc_graph_free(cudaGraph_t g)
{
    bc_gone(g);
    for (size_t k = 0; k < g->nodes.n; k++) {
        bc_gone(g->nodes.at[k]);
        bc_work_drop(g->nodes.at[k]->w);
        br_vec_fini(&g->nodes.at[k]->after);
        br_free(g->nodes.at[k]);
    }
    br_vec_fini(&g->nodes);
    bc_users_drop(&g->users);
    br_free(g);
}

void
bc_exec_drop(cudaGraphExec_t x)
{
    if (--x->refs)
        return;
    for (size_t k = 0; k < x->order.n; k++)
        bc_work_drop(x->order.at[k].w);
    br_vec_fini(&x->order);
    bc_users_drop(&x->users);
    br_free(x);
}

/* Takes the work, which may be NULL: there was no memory for it. */
cudaGraphNode_t
bc_node_add(cudaGraph_t g, bc_work *w, cudaGraphNodeType type)
{
    cudaGraphNode_t n = br_try_calloc(1, sizeof *n);

    if (!w || !n || !br_vec_reserve(&g->nodes, g->nodes.n + 1) ||
        !bc_node_born(n)) {
        br_free(n);
        bc_work_drop(w);
        return NULL;
    }
    g->nodes.at[g->nodes.n++] = n;
    n->w = w;
    n->type = type;
    n->graph = g;
    n->index = (unsigned)g->nodes.n - 1;
    return n;
}

cudaError_t
bc_node_draw(cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
             size_t n, bc_work *w, cudaGraphNodeType type)
{
    bool ok = out && bc_is_graph(g) && (!n || deps);
    cudaGraphNode_t node;

    for (size_t k = 0; ok && k < n; k++)
        ok = bc_is_node(deps[k]) && deps[k]->graph == g;
    if (!ok) {
        bc_work_drop(w);
        return cudaErrorInvalidValue;
    }
    node = bc_node_add(g, w, type);
    *out = node;
    for (size_t k = 0; node && k < n; k++)
        if (!br_vec_push(&deps[k]->after, node))
            return cudaErrorMemoryAllocation;
    return node ? cudaSuccess : cudaErrorMemoryAllocation;
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

static bool
copy_nodes(cudaGraph_t g, cudaGraph_t from)
{
    for (size_t k = 0; k < from->nodes.n; k++) {
        const struct CUgraphNode_st *o = from->nodes.at[k];
        cudaGraphNode_t n;

        o->w->refs++;
        n = bc_node_add(g, o->w, o->type);
        if (!n)
            return false;
        n->copy_of = o;
        n->priority = o->priority;
        n->window = o->window;
    }
    for (size_t k = 0; k < from->nodes.n; k++)
        for (size_t a = 0; a < from->nodes.at[k]->after.n; a++)
            if (!br_vec_push(
                    &g->nodes.at[k]->after,
                    g->nodes.at[from->nodes.at[k]->after.at[a]->index]))
                return false;
    return bc_users_too(&g->users, &from->users);
}

/* Memory of nodes is one graph's, and two of it could be at work. */
cudaError_t
bc_graph_copy(cudaGraph_t *out, cudaGraph_t from)
{
    cudaGraph_t g;

    *out = NULL;
    for (size_t k = 0; k < from->nodes.n; k++)
        if (from->nodes.at[k]->type == cudaGraphNodeTypeMemAlloc ||
            from->nodes.at[k]->type == cudaGraphNodeTypeMemFree)
            return cudaErrorNotSupported;
    g = bc_graph_new();
    if (!g || !copy_nodes(g, from)) {
        if (g)
            bc_graph_free(g);
        return cudaErrorMemoryAllocation;
    }
    *out = g;
    return cudaSuccess;
}

/* ---- executables -------------------------------------------------------- */

static cudaError_t
do_graph(void *payload)
{
    cudaGraphExec_t x = *(cudaGraphExec_t *)payload;
    cudaError_t e = cudaSuccess;

    for (size_t k = 0; e == cudaSuccess && k < x->order.n; k++) {
        const bc_step *s = &x->order.at[k];

        if (s->w->payload && !s->off)
            e = bc_op_of(s->w->payload)->run(s->w->payload);
    }
    return e;
}

static void
drop_exec(void *payload)
{
    bc_exec_drop(*(cudaGraphExec_t *)payload);
}

/* The executable that a payload is; NULL: another kind. */
static cudaGraphExec_t
exec_of(void *payload)
{
    return payload && bc_op_of(payload)->run == do_graph
               ? *(cudaGraphExec_t *)payload
               : NULL;
}

/* A graph as a node is one until an executable is made of it. */
static cudaError_t
do_child(void *payload)
{
    (void)payload;
    return cudaErrorUnknown;
}

static void
drop_child(void *payload)
{
    bc_graph_free(*(cudaGraph_t *)payload);
}

void *
bc_child_op(cudaGraph_t graph)
{
    cudaGraph_t *p = bc_op_new(sizeof *p, do_child);

    if (!p) {
        bc_graph_free(graph);
        return NULL;
    }
    *p = graph;
    graph->owned = true;
    bc_op_of(p)->drop = drop_child;
    bc_op_of(p)->type = cudaGraphNodeTypeGraph;
    return p;
}

static bc_work *
work_for(bc_work *w, cudaError_t *e)
{
    cudaGraph_t child = bc_child_graph(w->payload);
    cudaGraphExec_t *p;

    if (!child) {
        w->refs++;
        return w;
    }
    p = bc_op_new(sizeof *p, do_graph);
    *e = p ? bc_graph_make(p, child, 0) : cudaErrorMemoryAllocation;
    if (*e != cudaSuccess) {
        if (p)
            bc_op_free(p);
        return NULL;
    }
    bc_op_of(p)->drop = drop_exec;
    bc_op_of(p)->type = cudaGraphNodeTypeGraph;
    w = bc_work_new(p);
    *e = w ? cudaSuccess : cudaErrorMemoryAllocation;
    return w;
}

/* Nodes whose edges in are all done, again and again; a cycle leaves some. */
static cudaError_t
put_in_order(cudaGraph_t g, cudaGraphExec_t x)
{
    cudaGraphNode_t *order = br_try_calloc(g->nodes.n + 1, sizeof *order);
    cudaError_t e = cudaSuccess;
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
    if (n != g->nodes.n)
        e = cudaErrorInvalidValue;
    for (size_t k = 0; e == cudaSuccess && k < n; k++) {
        bc_work *w = work_for(order[k]->w, &e);

        if (w)
            x->order.at[x->order.n++] =
                (bc_step){.node = order[k], .type = order[k]->type, .w = w};
    }
    br_free(order);
    return e;
}

/* Graphs that kernels launch are not there. */
cudaError_t
bc_graph_make(cudaGraphExec_t *exec, cudaGraph_t graph,
              unsigned long long flags)
{
    cudaGraphExec_t x;
    cudaError_t e;

    if (!exec || !bc_is_graph(graph) || flags > 15)
        return cudaErrorInvalidValue;
    *exec = NULL;
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
        return cudaErrorNotSupported;
    x = br_try_calloc(1, sizeof *x);
    if (!x)
        return cudaErrorMemoryAllocation;
    x->refs = 1;
    x->flags = flags;
    e = put_in_order(graph, x);
    if (e == cudaSuccess && !bc_users_too(&x->users, &graph->users))
        e = cudaErrorMemoryAllocation;
    if (e != cudaSuccess) {
        bc_exec_drop(x);
        x = NULL;
    }
    *exec = x;
    return e;
}

/* ---- launches ------------------------------------------------------------- */

/* Nothing is changed yet: kernels have to be there, and memory that is in use is not had
 * once more, unless it is freed before. */
static cudaError_t
may_launch(cudaGraphExec_t x, bool frees)
{
    cudaError_t e = cudaSuccess;

    for (size_t k = 0; e == cudaSuccess && k < x->order.n; k++) {
        const bc_step *s = &x->order.at[k];
        cudaGraphExec_t child = exec_of(s->w->payload);

        if (child)
            e = may_launch(child, frees);
        else if (s->type == cudaGraphNodeTypeKernel && !s->off &&
                 bc_kernel_gone(s->w->payload))
            e = cudaErrorInvalidResourceHandle;
        else if (s->type == cudaGraphNodeTypeMemAlloc && !frees &&
                 bc_graph_mem_live(bc_graph_mem_of(s->w->payload)))
            e = cudaErrorInvalidValue;
    }
    return e;
}

/* What events say now that the op has to come after. Of one that the graph records
 * before it waits, nothing. */
static bool
wait_for_events(cudaGraphExec_t x, bc_op *o)
{
    for (size_t k = 0; k < x->order.n; k++) {
        const bc_step *s = &x->order.at[k];
        cudaGraphExec_t child = exec_of(s->w->payload);
        struct CUevent_st *e;
        bool before = false;

        if (child && !wait_for_events(child, o))
            return false;
        if (s->type != cudaGraphNodeTypeWaitEvent)
            continue;
        e = bc_event_payload(s->w->payload);
        for (size_t a = 0; a < k; a++)
            before |= x->order.at[a].type == cudaGraphNodeTypeEventRecord &&
                      bc_event_payload(x->order.at[a].w->payload) == e;
        if (!before && e->recorded && !bc_wait_for(o, e->at.s, e->at.seq))
            return false;
    }
    return true;
}

/* It is issued: events will have happened with it, memory is in use or not. */
static void
launched(cudaGraphExec_t x, bc_wait at)
{
    for (size_t k = 0; k < x->order.n; k++) {
        const bc_step *s = &x->order.at[k];
        cudaGraphExec_t child = exec_of(s->w->payload);

        if (child)
            launched(child, at);
        if (s->type == cudaGraphNodeTypeEventRecord) {
            struct CUevent_st *e = bc_event_payload(s->w->payload);

            e->recorded = true;
            e->graph = NULL;
            e->record++;
            e->at = at;
        } else if (s->type == cudaGraphNodeTypeMemAlloc ||
                   s->type == cudaGraphNodeTypeMemFree) {
            (void)bc_graph_mem_turn(bc_graph_mem_of(s->w->payload),
                                    s->type == cudaGraphNodeTypeMemAlloc);
        }
    }
}

static cudaError_t
launch(cudaGraphExec_t x, struct CUstream_st *s)
{
    const bool captured = s && s->capture;
    cudaGraphExec_t *p;
    cudaError_t e;

    if (!bc_is_exec(x))
        return cudaErrorInvalidValue;
    if (!s || bc_rt.sticky)
        return s ? bc_rt.sticky : cudaErrorInvalidResourceHandle;
    e = captured ? cudaSuccess
                 : may_launch(x, x->flags &
                                     cudaGraphInstantiateFlagAutoFreeOnLaunch);
    if (e != cudaSuccess)
        return e;
    p = bc_op_new(sizeof *p, do_graph);
    if (!p)
        return cudaErrorMemoryAllocation;
    *p = x;
    bc_op_of(p)->type = cudaGraphNodeTypeGraph;
    if (!captured && !wait_for_events(x, bc_op_of(p))) {
        bc_op_free(p);
        return cudaErrorMemoryAllocation;
    }
    x->refs++;
    bc_op_of(p)->drop = drop_exec;
    e = bc_issue(s, p);
    if (e == cudaSuccess && !captured)
        launched(x, (bc_wait){s, s->issued});
    return e;
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    BC_API(launch(exec, bc_stream_of(s)));
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s)
{
    BC_API(bc_is_exec(exec) && bc_stream_of(s) ? cudaSuccess
                                               : cudaErrorInvalidValue);
}

/* Launches under way go on. */
static cudaError_t
destroy(cudaGraphExec_t x)
{
    if (!bc_is_exec(x))
        return cudaErrorInvalidValue;
    bc_gone(x);
    bc_exec_drop(x);
    return cudaSuccess;
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    BC_API(destroy(exec));
}

/* ---- what changes in an executable ---------------------------------------- */

bc_step *
bc_step_of(cudaGraphExec_t x, const void *node)
{
    bc_step *at = NULL;

    for (size_t k = 0; x && !at && k < x->order.n; k++)
        at = x->order.at[k].node == node
                 ? &x->order.at[k]
                 : bc_step_of(exec_of(x->order.at[k].w->payload), node);
    return at;
}

static bool
same_shape(cudaGraphExec_t a, cudaGraphExec_t b)
{
    bool same = a && b ? a->order.n == b->order.n : a == b;

    for (size_t k = 0; a && same && k < a->order.n; k++)
        same = a->order.at[k].type == b->order.at[k].type &&
               same_shape(exec_of(a->order.at[k].w->payload),
                          exec_of(b->order.at[k].w->payload));
    return same;
}

cudaError_t
bc_step_set(cudaGraphExec_t x, cudaGraphNode_t node, bc_work *w,
            cudaGraphNodeType type)
{
    cudaError_t e = w ? bc_wait_all() : cudaErrorMemoryAllocation;
    bc_step *at = bc_is_exec(x) ? bc_step_of(x, node) : NULL;
    bc_work *now = e == cudaSuccess ? work_for(w, &e) : NULL;

    bc_work_drop(w);
    if (e == cudaSuccess &&
        (!at || at->type != type ||
         !same_shape(exec_of(at->w->payload), exec_of(now->payload))))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess && at) { /* gcc does not see that it is there */
        bc_work *old = at->w;

        at->w = now;
        now = old;
    }
    bc_work_drop(now);
    return e;
}

/* The works of another graph of the same shape. */
static cudaError_t
update(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResultInfo *r)
{
    cudaGraphExec_t fresh;
    cudaError_t e = bc_wait_all();

    r->result = cudaGraphExecUpdateError;
    if (e == cudaSuccess && !bc_is_exec(x))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = bc_graph_make(&fresh, g, 0);
    if (e != cudaSuccess)
        return e;
    r->result = fresh->order.n == x->order.n
                    ? cudaGraphExecUpdateSuccess
                    : cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t k = 0; !r->result && k < x->order.n; k++) {
        bc_step *a = &x->order.at[k], *b = &fresh->order.at[k];

        if (a->type != b->type)
            r->result = cudaGraphExecUpdateErrorNodeTypeChanged;
        else if (!same_shape(exec_of(a->w->payload), exec_of(b->w->payload)))
            r->result = cudaGraphExecUpdateErrorTopologyChanged;
        for (size_t n = 0; r->result && n < g->nodes.n; n++)
            if (g->nodes.at[n] == b->node)
                r->errorNode = g->nodes.at[n];
    }
    for (size_t k = 0; !r->result && k < x->order.n; k++) {
        bc_work *w = x->order.at[k].w;

        x->order.at[k].w = fresh->order.at[k].w;
        fresh->order.at[k].w = w;
    }
    bc_exec_drop(fresh);
    return r->result ? cudaErrorGraphExecUpdateFailure : cudaSuccess;
}

cudaError_t
cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                    cudaGraphExecUpdateResultInfo *info)
{
    cudaGraphExecUpdateResultInfo r = {0};
    cudaError_t e;

    if (!info)
        return bc_end(cudaErrorInvalidValue);
    bc_lock();
    e = update(exec, graph, &r);
    bc_unlock();
    *info = r;
    return bc_end(e);
}

cudaGraph_t
bc_child_graph(const void *payload)
{
    union { /* the op is before it */
        const void *c;
        void *p;
    } u = {payload};

    return payload && bc_op_of(u.p)->run == do_child ? *(cudaGraph_t *)u.p
                                                     : NULL;
}
