/* cu_capture.c - what would be issued to a stream becomes nodes of a graph.
 *
 * A stream that captures knows the nodes that the next one comes after: the last one,
 * and what events brought that it was told to wait for. An event that is recorded
 * there keeps those nodes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

#include <string.h>

static unsigned long long captures; /* so many began */

static bool
has(const cudaGraphNode_t *at, size_t n, cudaGraphNode_t node)
{
    for (size_t k = 0; k < n; k++)
        if (at[k] == node)
            return true;
    return false;
}

/* Nodes more to come after, each once. */
static cudaError_t
after_too(struct CUstream_st *s, const cudaGraphNode_t *at, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!has(s->deps.at, s->deps.n, at[k]) && !br_vec_push(&s->deps, at[k]))
            return cudaErrorMemoryAllocation;
    return cudaSuccess;
}

cudaError_t
bc_graph_spoil(cudaGraph_t g, cudaError_t e)
{
    g->broken = true;
    return e;
}

/* The legacy stream would wait for every blocking stream: while one captures there is
 * nothing that it can be asked. */
static bool
is_barred(const struct CUstream_st *s, bool spoil)
{
    bool found = false;

    for (struct CUstream_st *k = bc_rt.streams; k && s == &bc_rt.null;
         k = k->next)
        if (k->blocking && k->capture) {
            k->capture->broken |= spoil;
            found = true;
        }
    return found;
}

cudaError_t
bc_graph_implicit(const struct CUstream_st *s)
{
    return is_barred(s, true) ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t
bc_device_sync(void)
{
    bool found = false;

    for (struct CUstream_st *k = bc_rt.streams; k; k = k->next)
        if (k->capture)
            k->capture->broken = found = true;
    return found ? cudaErrorStreamCaptureUnsupported : bc_wait_all();
}

cudaError_t
bc_graph_capture(struct CUstream_st *s, void *payload)
{
    cudaGraphNodeType type = bc_op_of(payload)->type;
    cudaGraphNode_t n;
    bool ok;

    if (s->capture->broken) {
        bc_op_free(payload);
        return cudaErrorStreamCaptureInvalidated;
    }
    n = bc_node_add(s->capture, bc_work_new(payload), type);
    ok = n && br_vec_reserve(&s->deps, 1);
    for (size_t k = 0; ok && k < s->deps.n; k++)
        ok = br_vec_push(&s->deps.at[k]->after, n);
    if (!ok)
        return bc_graph_spoil(s->capture, cudaErrorMemoryAllocation);
    s->deps.at[0] = n;
    s->deps.n = 1;
    return cudaSuccess;
}

cudaError_t
bc_graph_mark(struct CUstream_st *s, struct CUevent_st *e)
{
    e->graph = s->capture;
    e->deps.n = 0;
    for (size_t k = 0; k < s->deps.n; k++)
        if (!br_vec_push(&e->deps, s->deps.at[k]))
            return bc_graph_spoil(s->capture, cudaErrorMemoryAllocation);
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
    return after_too(s, e->deps.at, e->deps.n);
}

/* Every stream and event of a capture leaves it. */
static void
leave(cudaGraph_t g)
{
    for (struct CUstream_st *s = bc_rt.streams; s; s = s->next)
        if (s->capture == g) {
            s->capture = NULL;
            s->deps.n = 0;
        }
    for (struct CUevent_st *e = bc_rt.events; e; e = e->next)
        if (e->graph == g) {
            e->graph = NULL;
            e->deps.n = 0;
        }
    g->origin = NULL;
}

static void
no_more(cudaGraph_t g)
{
    leave(g);
    if (!g->drawn)
        bc_graph_free(g);
}

void
bc_graph_drop(struct CUstream_st *s)
{
    if (s->capture->origin == s) {
        no_more(s->capture);
    } else {
        s->capture = NULL;
        s->deps.n = 0;
    }
}

static void
strike(cudaGraphNode_t node, cudaGraphNode_t *at, size_t *n)
{
    size_t kept = 0;

    for (size_t k = 0; k < *n; k++)
        if (at[k] != node)
            at[kept++] = at[k];
    *n = kept;
}

void
bc_graph_forget(cudaGraphNode_t node)
{
    for (struct CUstream_st *s = bc_rt.streams; s; s = s->next)
        strike(node, s->deps.at, &s->deps.n);
    for (struct CUevent_st *e = bc_rt.events; e; e = e->next)
        strike(node, e->deps.at, &e->deps.n);
}

static cudaError_t
begin(struct CUstream_st *s, cudaStreamCaptureMode mode, cudaGraph_t into)
{
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return cudaErrorInvalidValue;
    if (s == &bc_rt.null)
        return cudaErrorStreamCaptureUnsupported;
    if (s->capture || (into && into->origin))
        return cudaErrorIllegalState;
    s->capture = into ? into : bc_graph_new();
    if (!s->capture)
        return cudaErrorMemoryAllocation;
    s->capture->origin = s;
    s->capture->capture = ++captures;
    s->capture->drawn = into != NULL;
    s->capture->broken = false;
    s->deps.n = 0;
    return cudaSuccess;
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    BC_API(begin(bc_stream_of(s), mode, NULL));
}

/* Nodes of it to come after, each once; NULL: none. */
static bool
all_of(cudaGraph_t g, const cudaGraphNode_t *at, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!at || !bc_is_node(at[k]) || at[k]->graph != g)
            return false;
    return true;
}

cudaError_t
bc_capture_into(cudaStream_t hs, cudaGraph_t graph, const cudaGraphNode_t *at,
                size_t n, cudaStreamCaptureMode mode)
{
    struct CUstream_st *s = bc_stream_of(hs);
    cudaError_t e;

    if (!bc_is_graph(graph) || !all_of(graph, at, n))
        return cudaErrorInvalidValue;
    e = begin(s, mode, graph);
    return e == cudaSuccess ? after_too(s, at, n) : e;
}

/* Whether all that other streams captured comes before what this one is at. */
static bool
is_joined(cudaGraph_t g, const struct CUstream_st *origin)
{
    bool more = true, ok = true;

    for (size_t k = 0; k < g->nodes.n; k++)
        g->nodes.at[k]->waits =
            has(origin->deps.at, origin->deps.n, g->nodes.at[k]);
    while (more) {
        more = false;
        for (size_t k = g->nodes.n; k-- > 0;) {
            cudaGraphNode_t n = g->nodes.at[k];
            unsigned now = n->waits;

            for (size_t a = 0; !now && a < n->after.n; a++)
                now = n->after.at[a]->waits;
            more |= now != n->waits;
            n->waits = now;
        }
    }
    for (const struct CUstream_st *s = bc_rt.streams; s; s = s->next)
        for (size_t k = 0; s->capture == g && k < s->deps.n; k++)
            ok &= s->deps.at[k]->waits != 0;
    return ok;
}

static cudaError_t
end(struct CUstream_st *s, cudaGraph_t *graph)
{
    cudaError_t e = cudaSuccess;
    cudaGraph_t g;

    if (!s || !graph)
        return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    if (!s->capture)
        return cudaErrorIllegalState;
    if (s->capture->origin != s)
        return cudaErrorStreamCaptureUnmatched;
    g = s->capture;
    if (g->broken)
        e = cudaErrorStreamCaptureInvalidated;
    else if (!is_joined(g, s))
        e = cudaErrorStreamCaptureUnjoined;
    *graph = e == cudaSuccess ? g : NULL;
    if (e == cudaSuccess)
        leave(g);
    else
        no_more(g);
    return e;
}

cudaError_t
cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    BC_API(end(bc_stream_of(s), graph));
}

/* Where status alone is asked for, the others are NULL. */
cudaError_t
bc_capture_info(cudaStream_t hs, cudaStreamCaptureStatus *status,
                unsigned long long *id, cudaGraph_t *graph,
                const cudaGraphNode_t **at, size_t *n)
{
    const struct CUstream_st *s = bc_stream_of(hs);

    if (!s || !status)
        return s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    *status = cudaStreamCaptureStatusNone;
    if (is_barred(s, false))
        return cudaErrorStreamCaptureImplicit;
    if (!s->capture)
        return cudaSuccess;
    *status = s->capture->broken ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
    if (id)
        *id = s->capture->capture;
    if (graph)
        *graph = s->capture;
    if (at)
        *at = s->deps.at;
    if (n)
        *n = s->deps.n;
    return cudaSuccess;
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    BC_API(bc_capture_info(s, status, NULL, NULL, NULL, NULL));
}

cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status,
                         unsigned long long *id)
{
    BC_API(bc_capture_info(s, status, id, NULL, NULL, NULL));
}

cudaError_t
cudaStreamGetCaptureInfo_v2(cudaStream_t s, cudaStreamCaptureStatus *status,
                            unsigned long long *id, cudaGraph_t *graph,
                            const cudaGraphNode_t **nodes_at, size_t *n)
{
    BC_API(bc_capture_info(s, status, id, graph, nodes_at, n));
}

static cudaError_t
set_after(struct CUstream_st *s, const cudaGraphNode_t *at, size_t n,
          unsigned flags)
{
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (flags > cudaStreamSetCaptureDependencies)
        return cudaErrorInvalidValue;
    if (!s->capture)
        return cudaErrorIllegalState;
    if (!all_of(s->capture, at, n))
        return cudaErrorInvalidValue;
    if (flags == cudaStreamSetCaptureDependencies)
        s->deps.n = 0;
    return after_too(s, at, n);
}

cudaError_t
cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *at,
                                    size_t n, unsigned int flags)
{
    BC_API(set_after(bc_stream_of(s), at, n, flags));
}

/* What is not safe to do while something is captured is done here in any mode. */
cudaError_t
cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    static _Thread_local cudaStreamCaptureMode now;
    cudaStreamCaptureMode was = now;

    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return bc_end(cudaErrorInvalidValue);
    now = *mode;
    *mode = was;
    return bc_end(cudaSuccess);
}

/* ---- edges that say more about themselves ------------------------------- */

bool
bc_plain_edges(const uint8_t *data, size_t edges)
{
    for (size_t k = 0; data && k < edges * BC_EDGE_BYTES; k++)
        if (data[k])
            return false;
    return true;
}

void
bc_tell_plain(uint8_t *data, const cudaGraphNode_t *listed, const size_t *n)
{
    if (data && listed)
        memset(data, 0, *n * BC_EDGE_BYTES);
}

cudaError_t
bc_tell_capture(size_t found, const uint8_t **data, size_t *n)
{
    static const uint8_t zeros[1024 * BC_EDGE_BYTES];

    if (data && found > sizeof zeros / BC_EDGE_BYTES)
        return cudaErrorNotSupported;
    if (data)
        *data = zeros;
    if (n)
        *n = found;
    return cudaSuccess;
}
