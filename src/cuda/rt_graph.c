/* rt_graph.c - the runtime API: graphs, and what is around a node.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

/* ---- graphs --------------------------------------------------------------- */

cudaError_t
cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    if (!graph || flags)
        return bc_end(cudaErrorInvalidValue);
    BC_API((*graph = bc_graph_new()) ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* A node's and a capture's go with those. */
static cudaError_t
destroy_graph(cudaGraph_t g)
{
    if (!bc_is_graph(g) || g->owned || g->origin)
        return cudaErrorInvalidValue;
    bc_graph_free(g);
    return cudaSuccess;
}

cudaError_t
cudaGraphDestroy(cudaGraph_t graph)
{
    BC_API(destroy_graph(graph));
}

static cudaError_t
nodes_of(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    if (!bc_is_graph(graph) || !n)
        return cudaErrorInvalidValue;
    for (size_t k = 0; nodes && k < *n; k++)
        nodes[k] = k < graph->nodes.n ? graph->nodes.at[k] : NULL;
    *n = nodes ? BR_MIN(*n, graph->nodes.n) : graph->nodes.n;
    return cudaSuccess;
}

cudaError_t
cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    BC_API(nodes_of(graph, nodes, n));
}

/* Nodes without an edge in; an edge from each `from` to its `to`. */
static cudaError_t
roots_of(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    size_t roots = 0;

    if (!bc_is_graph(graph) || !n)
        return cudaErrorInvalidValue;
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
cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    BC_API(roots_of(graph, nodes, n));
}

static cudaError_t
edges_of(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
         size_t *n)
{
    size_t edges = 0;

    if (!bc_is_graph(graph) || !n || !from != !to)
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < graph->nodes.n; k++)
        for (size_t a = 0; a < graph->nodes.at[k]->after.n; a++, edges++)
            if (from && edges < *n) {
                from[edges] = graph->nodes.at[k];
                to[edges] = graph->nodes.at[k]->after.at[a];
            }
    *n = from ? BR_MIN(*n, edges) : edges;
    return cudaSuccess;
}

cudaError_t
cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                  size_t *n)
{
    BC_API(edges_of(graph, from, to, n));
}

cudaError_t
cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph)
{
    BC_API(out && bc_is_graph(graph) ? bc_graph_copy(out, graph)
                                     : cudaErrorInvalidValue);
}

/* The node itself may be gone since. */
static cudaError_t
in_clone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t graph)
{
    if (!out || !node || !bc_is_graph(graph))
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < graph->nodes.n; k++)
        if (graph->nodes.at[k]->copy_of == node) {
            *out = graph->nodes.at[k];
            return cudaSuccess;
        }
    return cudaErrorInvalidValue;
}

cudaError_t
cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node,
                         cudaGraph_t graph)
{
    BC_API(in_clone(out, node, graph));
}

cudaError_t
cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type)
{
    BC_API(bc_is_node(node) && type ? (*type = node->type, cudaSuccess)
                                    : cudaErrorInvalidValue);
}

/* ---- edges ---------------------------------------------------------------- */

static size_t
edge(cudaGraphNode_t from, cudaGraphNode_t to)
{
    size_t k = 0;

    while (k < from->after.n && from->after.at[k] != to)
        k++;
    return k;
}

/* As many as there is room for; without a list, how many there are. */
static cudaError_t
list(cudaGraphNode_t node, cudaGraphNode_t *out, size_t *n, bool before)
{
    size_t found = 0;

    if (!bc_is_node(node) || !n)
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < node->graph->nodes.n; k++) {
        cudaGraphNode_t other = node->graph->nodes.at[k];
        bool is = before ? edge(other, node) < other->after.n
                         : edge(node, other) < node->after.n;

        if (is && out && found < *n)
            out[found] = other;
        found += is;
    }
    for (size_t k = found; out && k < *n; k++)
        out[k] = NULL;
    *n = out ? BR_MIN(*n, found) : found;
    return cudaSuccess;
}

cudaError_t
cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps,
                             size_t *n)
{
    BC_API(list(node, deps, n, true));
}

cudaError_t
cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *deps,
                               size_t *n)
{
    BC_API(list(node, deps, n, false));
}

static bool
is_of(cudaGraphNode_t node, cudaGraph_t g)
{
    return bc_is_node(node) && node->graph == g;
}

/* All of them, or none: each is new. */
static cudaError_t
add_edges(cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
          size_t n)
{
    if (!bc_is_graph(g) || (n && (!from || !to)))
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++)
        if (!is_of(from[k], g) || !is_of(to[k], g) ||
            edge(from[k], to[k]) < from[k]->after.n)
            return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++)
        if (!br_vec_push(&from[k]->after, to[k]))
            return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

cudaError_t
cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                         const cudaGraphNode_t *to, size_t n)
{
    BC_API(add_edges(graph, from, to, n));
}

static void
cut(cudaGraphNode_t from, size_t at)
{
    memmove(from->after.at + at, from->after.at + at + 1,
            (from->after.n - at - 1) * sizeof *from->after.at);
    from->after.n--;
}

/* All of them, or none: each has to be there. */
static cudaError_t
remove_edges(cudaGraph_t g, const cudaGraphNode_t *from,
             const cudaGraphNode_t *to, size_t n)
{
    if (!bc_is_graph(g) || (n && (!from || !to)))
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++)
        if (!is_of(from[k], g) || !is_of(to[k], g) ||
            edge(from[k], to[k]) == from[k]->after.n)
            return cudaErrorInvalidValue;
    for (size_t k = 0; k < n; k++) {
        size_t at = edge(from[k], to[k]);

        if (at < from[k]->after.n) /* named twice */
            cut(from[k], at);
    }
    return cudaSuccess;
}

cudaError_t
cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                            const cudaGraphNode_t *to, size_t n)
{
    BC_API(remove_edges(graph, from, to, n));
}

static cudaError_t
destroy(cudaGraphNode_t node)
{
    cudaGraph_t g;

    if (!bc_is_node(node))
        return cudaErrorInvalidValue;
    g = node->graph;
    bc_graph_forget(node);
    for (size_t k = 0; k < g->nodes.n; k++)
        for (size_t at;
             (at = edge(g->nodes.at[k], node)) < g->nodes.at[k]->after.n;)
            cut(g->nodes.at[k], at);
    memmove(g->nodes.at + node->index, g->nodes.at + node->index + 1,
            (g->nodes.n - node->index - 1) * sizeof *g->nodes.at);
    g->nodes.n--;
    for (size_t k = node->index; k < g->nodes.n; k++)
        g->nodes.at[k]->index = (unsigned)k;
    bc_gone(node);
    bc_work_drop(node->w);
    br_vec_fini(&node->after);
    br_free(node);
    return cudaSuccess;
}

cudaError_t
cudaGraphDestroyNode(cudaGraphNode_t node)
{
    BC_API(destroy(node));
}
