/* cu_graph_mem.c - memory that nodes of graphs get and free.
 *
 *   get: its address is known --> launch: in use --> launch or program: free --> ...
 *
 * Its bytes are there from when the node is made, at one address, until no graph and no
 * executable knows it; between a node that frees it and the next launch nobody may use
 * it. What the program has not freed by then is from then on as if cudaMalloc had got it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"

struct bc_graph_mem {
    bc_graph_mem *next;
    void *at;
    size_t bytes;
    unsigned refs; /* of payloads */
    bool live;     /* in use, as of what has been issued */
};
static bc_graph_mem *all;
static struct {
    uint64_t used, reserved;
} now, high;

cudaError_t
bc_graph_mem_get(bc_graph_mem **out, size_t bytes)
{
    bc_graph_mem *m = br_try_calloc(1, sizeof *m);
    cudaError_t e = m ? bc_mem_get(&m->at, bytes, 256, BC_MEM_DEVICE, 0)
                      : cudaErrorMemoryAllocation;

    *out = e == cudaSuccess ? m : NULL;
    if (e != cudaSuccess) {
        br_free(m);
        return e;
    }
    m->bytes = bytes;
    m->next = all;
    all = m;
    now.reserved += bytes;
    high.reserved = BR_MAX(high.reserved, now.reserved);
    return cudaSuccess;
}

bc_graph_mem *
bc_graph_mem_find(const void *p)
{
    bc_graph_mem *m = p ? all : NULL;

    while (m && m->at != p)
        m = m->next;
    return m;
}

void *
bc_graph_mem_at(const bc_graph_mem *m)
{
    return m->at;
}

size_t
bc_graph_mem_bytes(const bc_graph_mem *m)
{
    return m->bytes;
}

bool
bc_graph_mem_live(const bc_graph_mem *m)
{
    return m->live;
}

cudaError_t
bc_graph_mem_turn(bc_graph_mem *m, bool live)
{
    if (m->live == live)
        return cudaErrorInvalidValue;
    m->live = live;
    now.used = live ? now.used + m->bytes : now.used - m->bytes;
    high.used = BR_MAX(high.used, now.used);
    return cudaSuccess;
}

static void
end(bc_graph_mem *m)
{
    bc_graph_mem **at = &all;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    now.reserved -= m->bytes;
    if (m->live)
        now.used -= m->bytes;
    else
        (void)bc_mem_put(m->at, BC_MEM_DEVICE);
    br_free(m);
}

static void
drop(void *payload)
{
    bc_graph_mem *m = *(bc_graph_mem **)payload;

    if (--m->refs == 0)
        end(m);
}

static cudaError_t
do_nothing(void *payload)
{
    (void)payload;
    return cudaSuccess;
}

/* Memory that nobody knows goes where there is no room for the payload. */
void *
bc_graph_mem_op(bc_graph_mem *m, bool frees)
{
    bc_graph_mem **p = bc_op_new(sizeof *p, do_nothing);

    if (!p) {
        if (!m->refs)
            end(m);
        return NULL;
    }
    *p = m;
    m->refs++;
    bc_op_of(p)->drop = drop;
    bc_op_of(p)->type =
        frees ? cudaGraphNodeTypeMemFree : cudaGraphNodeTypeMemAlloc;
    return p;
}

bc_graph_mem *
bc_graph_mem_of(const void *payload)
{
    return *(bc_graph_mem *const *)payload;
}

/* Once in a graph. */
cudaError_t
bc_graph_mem_free(cudaGraph_t g, void *p, void **payload)
{
    bc_graph_mem *m = bc_graph_mem_find(p);

    for (size_t k = 0; g && k < g->nodes.n; k++)
        if (g->nodes.at[k]->type == cudaGraphNodeTypeMemFree &&
            bc_graph_mem_of(g->nodes.at[k]->w->payload) == m)
            m = NULL;
    if (!m)
        return cudaErrorInvalidValue;
    *payload = bc_graph_mem_op(m, true);
    return *payload ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Graphs that know it are still there. */
void
bc_graph_mem_reset(void)
{
    for (bc_graph_mem *m = all; m; m = m->next) {
        m->at = NULL;
        m->live = true; /* so that nobody gives it back */
        m->bytes = 0;
    }
    now.used = now.reserved = high.used = high.reserved = 0;
}

/* ---- captures ------------------------------------------------------------- */

cudaError_t
bc_graph_mem_taken(struct CUstream_st *s, void **p, size_t bytes)
{
    bc_graph_mem *m;
    cudaError_t e = bc_graph_mem_get(&m, bytes);
    void *payload = e == cudaSuccess ? bc_graph_mem_op(m, false) : NULL;

    if (!payload)
        return e == cudaSuccess ? cudaErrorMemoryAllocation : e;
    *p = bc_graph_mem_at(m);
    return bc_issue(s, payload);
}

cudaError_t
bc_graph_mem_given(struct CUstream_st *s, void *p)
{
    void *payload;
    cudaError_t e = bc_graph_mem_free(s->capture, p, &payload);

    return e == cudaSuccess ? bc_issue(s, payload) : e;
}

/* ---- what the runtime tells of it ------------------------------------------ */

static cudaError_t
attribute(int device, cudaGraphMemAttributeType attr, uint64_t *value, bool set)
{
    if (device || !value)
        return device ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    if (set && (*value || (attr != cudaGraphMemAttrUsedMemHigh &&
                           attr != cudaGraphMemAttrReservedMemHigh)))
        return cudaErrorInvalidValue; /* highs may be set to 0 alone */
    switch (attr) {
    case cudaGraphMemAttrUsedMemCurrent: *value = now.used; break;
    case cudaGraphMemAttrReservedMemCurrent: *value = now.reserved; break;
    case cudaGraphMemAttrUsedMemHigh:
        high.used = set ? now.used : high.used;
        *value = set ? 0 : high.used;
        break;
    case cudaGraphMemAttrReservedMemHigh:
        high.reserved = set ? now.reserved : high.reserved;
        *value = set ? 0 : high.reserved;
        break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                               void *value)
{
    BC_API(attribute(device, attr, value, false));
}

cudaError_t
cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                               void *value)
{
    BC_API(attribute(device, attr, value, true));
}

/* Nothing is kept that no graph knows. */
cudaError_t
cudaDeviceGraphMemTrim(int device)
{
    return bc_end(device ? cudaErrorInvalidDevice : cudaSuccess);
}
