/* rt_graph_more.c - the runtime API: what graphs keep alive, forms of instantiation,
 * steps that are left out, a picture.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <stdio.h>

/* ---- user objects ------------------------------------------------------- */

struct CUuserObject_st {
    cudaHostFn_t destroy;
    void *user;
    unsigned refs;
};

/* The program's destructor runs in a stream's thread, as it may wait for this one. */
static void
let_go(cudaUserObject_t o)
{
    void *payload;

    if (--o->refs)
        return;
    bc_gone(o);
    payload = bc_host_op(o->destroy, o->user);
    if (payload)
        (void)bc_queue(&bc_rt.null, payload);
    br_free(o);
}

void
bc_users_drop(bc_users *users)
{
    for (size_t k = 0; k < users->n; k++)
        let_go(users->at[k]);
    br_vec_fini(users);
}

bool
bc_users_too(bc_users *to, const bc_users *from)
{
    if (!br_vec_reserve(to, to->n + from->n))
        return false;
    for (size_t k = 0; k < from->n; k++) {
        from->at[k]->refs++;
        to->at[to->n++] = from->at[k];
    }
    return true;
}

/* It cannot be waited for: that its destructor does not is said by the flag. */
static cudaError_t
user_new(cudaUserObject_t *out, void *ptr, cudaHostFn_t destroy, unsigned refs,
         unsigned flags)
{
    cudaUserObject_t o;

    if (!out || !destroy || !refs || refs > INT32_MAX ||
        flags != cudaUserObjectNoDestructorSync)
        return cudaErrorInvalidValue;
    *out = NULL;
    o = br_try_calloc(1, sizeof *o);
    if (!o || !bc_user_born(o)) {
        br_free(o);
        return cudaErrorMemoryAllocation;
    }
    *o = (struct CUuserObject_st){destroy, ptr, refs};
    *out = o;
    return cudaSuccess;
}

cudaError_t
cudaUserObjectCreate(cudaUserObject_t *out, void *ptr, cudaHostFn_t destroy,
                     unsigned int refs, unsigned int flags)
{
    BC_API(user_new(out, ptr, destroy, refs, flags));
}

cudaError_t
cudaUserObjectRetain(cudaUserObject_t o, unsigned int n)
{
    BC_API(bc_is_user(o) && n && n <= INT32_MAX - o->refs
               ? (o->refs += n, cudaSuccess)
               : cudaErrorInvalidValue);
}

static cudaError_t
release(cudaUserObject_t o, unsigned n)
{
    if (!bc_is_user(o) || !n || n > o->refs)
        return cudaErrorInvalidValue;
    o->refs -= n - 1;
    let_go(o);
    return cudaSuccess;
}

cudaError_t
cudaUserObjectRelease(cudaUserObject_t o, unsigned int n)
{
    BC_API(release(o, n));
}

static cudaError_t
graph_keeps(cudaGraph_t g, cudaUserObject_t o, unsigned n, unsigned flags)
{
    if (!bc_is_graph(g) || !bc_is_user(o) || !n ||
        flags > cudaGraphUserObjectMove || (flags && n > o->refs) ||
        n > INT32_MAX - o->refs)
        return cudaErrorInvalidValue;
    if (!br_vec_reserve(&g->users, g->users.n + n))
        return cudaErrorMemoryAllocation;
    for (unsigned k = 0; k < n; k++)
        g->users.at[g->users.n++] = o;
    o->refs += flags ? 0 : n;
    return cudaSuccess;
}

cudaError_t
cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t o, unsigned int n,
                          unsigned int flags)
{
    BC_API(graph_keeps(graph, o, n, flags));
}

static cudaError_t
graph_gives(cudaGraph_t g, cudaUserObject_t o, unsigned n)
{
    unsigned has = 0;
    size_t kept = 0;

    if (!bc_is_graph(g) || !bc_is_user(o) || !n)
        return cudaErrorInvalidValue;
    for (size_t k = 0; k < g->users.n; k++)
        has += g->users.at[k] == o;
    if (has < n)
        return cudaErrorInvalidValue;
    has = n;
    for (size_t k = 0; k < g->users.n; k++)
        if (g->users.at[k] == o && has)
            has--;
        else
            g->users.at[kept++] = g->users.at[k];
    g->users.n = kept;
    return release(o, n);
}

cudaError_t
cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t o,
                           unsigned int n)
{
    BC_API(graph_gives(graph, o, n));
}

/* ---- executables -------------------------------------------------------- */

static cudaError_t
instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaError_t e = bc_graph_make(exec, graph, flags);

    if (e != cudaSuccess || bc_exec_born(*exec))
        return e;
    bc_exec_drop(*exec);
    *exec = NULL;
    return cudaErrorMemoryAllocation;
}

cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                              unsigned long long flags)
{
    BC_API(instantiate(exec, graph, flags));
}

cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                     unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t
cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                               cudaGraphInstantiateParams *p)
{
    cudaError_t e;

    if (!p)
        return bc_end(cudaErrorInvalidValue);
    e = cudaGraphInstantiateWithFlags(exec, graph, p->flags);
    p->errNode_out = NULL;
    p->result_out = e == cudaSuccess ? cudaGraphInstantiateSuccess
                    : e == cudaErrorNotSupported
                        ? cudaGraphInstantiateNodeOperationNotSupported
                    : e == cudaErrorInvalidValue && exec && graph
                        ? cudaGraphInstantiateInvalidStructure
                        : cudaGraphInstantiateError;
    return e;
}

cudaError_t
cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    BC_API(bc_is_exec(exec) && flags ? (*flags = exec->flags, cudaSuccess)
                                     : cudaErrorInvalidValue);
}

/* Kernels, copies and fills may be left out of an executable. */
static cudaError_t
enabled(cudaGraphExec_t x, cudaGraphNode_t node, unsigned *get, unsigned set)
{
    bc_step *s = bc_is_exec(x) ? bc_step_of(x, node) : NULL;
    cudaError_t e;

    if (!s || s->type > cudaGraphNodeTypeMemset)
        return cudaErrorInvalidValue;
    if (get) {
        *get = !s->off;
        return cudaSuccess;
    }
    e = bc_wait_all(); /* launches under way go on as they began */
    if (e == cudaSuccess)
        s->off = !set;
    return e;
}

cudaError_t
cudaGraphNodeSetEnabled(cudaGraphExec_t x, cudaGraphNode_t node,
                        unsigned int is)
{
    BC_API(enabled(x, node, NULL, is));
}

cudaError_t
cudaGraphNodeGetEnabled(cudaGraphExec_t x, cudaGraphNode_t node,
                        unsigned int *is)
{
    BC_API(is ? enabled(x, node, is, 0) : cudaErrorInvalidValue);
}

/* ---- a picture ---------------------------------------------------------- */

static const char *
type_name(cudaGraphNodeType type)
{
    static const char *const names[] = {
        "KERNEL",     "MEMCPY",   "MEMSET",     "HOST",
        "GRAPH",      "EMPTY",    "EVENT_WAIT", "EVENT_RECORD",
        "SEM_SIGNAL", "SEM_WAIT", "MEM_ALLOC",  "MEM_FREE"};

    return (size_t)type < BR_COUNT(names) ? names[type] : "?";
}

static cudaError_t
draw(FILE *f, cudaGraph_t g)
{
    if (!bc_is_graph(g))
        return cudaErrorInvalidValue;
    fprintf(f, "digraph dot {\n");
    for (size_t k = 0; k < g->nodes.n; k++) {
        const struct CUgraphNode_st *n = g->nodes.at[k];

        fprintf(f, "\"node_%zu\" [shape=\"rectangle\" label=\"%zu\\n%s", k, k,
                type_name(n->type));
        if (n->type == cudaGraphNodeTypeKernel)
            fprintf(f, "\\n%s", bc_kernel_name(n->w->payload));
        fprintf(f, "\"];\n");
        for (size_t a = 0; a < n->after.n; a++)
            fprintf(f, "\"node_%zu\" -> \"node_%u\";\n", k,
                    n->after.at[a]->index);
    }
    fprintf(f, "}\n");
    return cudaSuccess;
}

cudaError_t
cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    cudaError_t e;
    FILE *f;
    bool ok;

    (void)flags; /* how much is told */
    if (!graph || !path)
        return bc_end(cudaErrorInvalidValue);
    f = fopen(path, "w");
    if (!f)
        return bc_end(cudaErrorOperatingSystem);
    bc_lock();
    e = draw(f, graph);
    bc_unlock();
    ok = !ferror(f);
    ok &= fclose(f) == 0;
    return bc_end(e != cudaSuccess || ok ? e : cudaErrorOperatingSystem);
}
