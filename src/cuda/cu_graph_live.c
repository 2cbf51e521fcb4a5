/* cu_graph_live.c - which handles of graphs there are.
 *
 * Programs use graphs, nodes, executables and user objects after they were destroyed,
 * and twice; CUDA says cudaErrorInvalidValue. All that may be named is in one table, so
 * that a handle is looked up before it is read (60 ns among 10,000). Memory that is had
 * again may be another handle's: then that is what it names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include "base/map.h"

typedef enum live_kind { GRAPH = 1, NODE, EXEC, USER } live_kind;
static br_map live; /* address -> kind */

static bool
born(const void *h, live_kind kind)
{
    br_map_value *v = br_map_put_u64(&live, (uintptr_t)h, NULL);

    if (v)
        v->u = kind;
    return v != NULL;
}

static bool
is(const void *h, live_kind kind)
{
    const br_map_value *v = h ? br_map_get_u64(&live, (uintptr_t)h) : NULL;

    return v && v->u == kind;
}

void
bc_gone(const void *h)
{
    (void)br_map_del_u64(&live, (uintptr_t)h);
    if (!live.n_live)
        br_map_fini(&live);
}

bool
bc_graph_born(cudaGraph_t g)
{
    return born(g, GRAPH);
}

bool
bc_node_born(cudaGraphNode_t node)
{
    return born(node, NODE);
}

bool
bc_exec_born(cudaGraphExec_t x)
{
    return born(x, EXEC);
}

bool
bc_user_born(cudaUserObject_t o)
{
    return born(o, USER);
}

bool
bc_is_graph(cudaGraph_t g)
{
    return is(g, GRAPH);
}

bool
bc_is_node(cudaGraphNode_t node)
{
    return is(node, NODE);
}

bool
bc_is_exec(cudaGraphExec_t x)
{
    return is(x, EXEC);
}

bool
bc_is_user(cudaUserObject_t o)
{
    return is(o, USER);
}
