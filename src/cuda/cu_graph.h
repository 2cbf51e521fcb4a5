/* cu_graph.h - graphs inside: nodes, what they do, executables; what streams need of
 * them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CU_GRAPH_H
#define BR_CU_GRAPH_H

#include "cuda/cuda_int.h"

typedef struct bc_work {
    void *payload; /* NULL: empty */
    unsigned refs;
} bc_work;
struct CUgraphNode_st {
    bc_work *w;
    cudaGraphNodeType type;
    struct CUgraph_st *graph;
    const void *copy_of; /* the node of which it is, by its address */
    unsigned waits, index;
    int priority; /* hints that were set are told again */
    cudaAccessPolicyWindow window;
    BR_VEC(cudaGraphNode_t) after; /* edges from here */
};
typedef BR_VEC(cudaUserObject_t) bc_users; /* one for each reference */
struct CUgraph_st {
    BR_VEC(cudaGraphNode_t) nodes;
    bc_users users;
    struct CUstream_st *origin; /* of a capture */
    unsigned long long capture; /* its number */
    bool broken, drawn;         /* drawn: the program's, captured into */
    bool owned;                 /* by a node */
};
typedef struct bc_step {
    const void *node; /* which it was, by its address; it may be gone */
    cudaGraphNodeType type;
    bc_work *w;
    bool off; /* by the program */
} bc_step;
struct CUgraphExec_st {
    BR_VEC(bc_step) order;
    bc_users users;
    unsigned refs; /* the program, and launches under way */
    unsigned long long flags;
};

/* All with the lock held. */

/* ---- cu_graph_live.c: handles that programs have ------------------------- */

/* False: out of memory. */
bool bc_graph_born(cudaGraph_t g);
bool bc_node_born(cudaGraphNode_t node);
bool bc_exec_born(cudaGraphExec_t x);
bool bc_user_born(cudaUserObject_t o);
void bc_gone(const void *h);
/* Whether it is one that is still there; of NULL, not. */
bool bc_is_graph(cudaGraph_t g);
bool bc_is_node(cudaGraphNode_t node);
bool bc_is_exec(cudaGraphExec_t x);
bool bc_is_user(cudaUserObject_t o);

/* ---- cu_graph.c ---------------------------------------------------------- */

bc_work *bc_work_new(void *payload); /* takes it; NULL: out of memory */
void bc_work_drop(bc_work *w);
/* Takes the work, which may be NULL: there was no memory for it. */
cudaGraphNode_t bc_node_add(cudaGraph_t g, bc_work *w, cudaGraphNodeType type);
/* Takes the work, too: a node after those. */
cudaError_t bc_node_draw(cudaGraphNode_t *out, cudaGraph_t g,
                         const cudaGraphNode_t *deps, size_t n, bc_work *w,
                         cudaGraphNodeType type);
cudaGraph_t bc_graph_new(void); /* NULL: out of memory */
void bc_graph_free(cudaGraph_t g);
cudaError_t bc_graph_copy(cudaGraph_t *out, cudaGraph_t from);
cudaError_t bc_graph_make(cudaGraphExec_t *exec, cudaGraph_t graph,
                          unsigned long long flags);
void bc_exec_drop(cudaGraphExec_t x);
/* A payload that is a graph, which it takes; the graph of one, NULL: it has none. */
void *bc_child_op(cudaGraph_t graph);
cudaGraph_t bc_child_graph(const void *payload);
/* Of a node, in the executable or a child of it. */
bc_step *bc_step_of(cudaGraphExec_t x, const void *node);
/* Another work for a node's step, when no launch is under way. Takes it. */
cudaError_t bc_step_set(cudaGraphExec_t x, cudaGraphNode_t node, bc_work *w,
                        cudaGraphNodeType type);
void bc_count_edges(cudaGraph_t g); /* into `waits` of its nodes */

/* ---- cu_graph_work.c ------------------------------------------------------ */

/* What a node of that type does, of what a program says; and the other way. */
cudaError_t bc_node_work(cudaGraph_t g, cudaGraphNodeParams *p, bc_work **out);
cudaError_t bc_node_params(cudaGraphNode_t node, cudaGraphNodeParams *out);
cudaError_t bc_work_cooperate(bc_work *old, bool on, bc_work **out);
/* Of a payload that records an event, or waits for one. */
struct CUevent_st *bc_event_payload(const void *payload);
/* A stream captures, and a node is to do it. */
cudaError_t bc_event_captured(struct CUstream_st *s, cudaEvent_t h,
                              bool records);

/* ---- cu_graph_mem.c: memory that nodes get and free ----------------------- */

typedef struct bc_graph_mem bc_graph_mem;
cudaError_t bc_graph_mem_get(bc_graph_mem **out, size_t bytes);
bc_graph_mem *bc_graph_mem_find(const void *p); /* NULL: it is no node's */
void *bc_graph_mem_at(const bc_graph_mem *m);
size_t bc_graph_mem_bytes(const bc_graph_mem *m);
void *bc_graph_mem_op(bc_graph_mem *m, bool frees); /* a payload */
cudaError_t bc_graph_mem_free(cudaGraph_t g, void *p, void **payload);
bc_graph_mem *bc_graph_mem_of(const void *payload);
/* From now on it is in use, or not. InvalidValue: it already was so. */
cudaError_t bc_graph_mem_turn(bc_graph_mem *m, bool live);
bool bc_graph_mem_live(const bc_graph_mem *m);
void bc_graph_mem_reset(void); /* the device's memory went */
/* A stream captures: nodes of it. */
cudaError_t bc_graph_mem_taken(struct CUstream_st *s, void **p, size_t bytes);
cudaError_t bc_graph_mem_given(struct CUstream_st *s, void *p);

/* ---- rt_graph_more.c ------------------------------------------------------- */

bool bc_users_too(bc_users *to, const bc_users *from);
void bc_users_drop(bc_users *users);

/* ---- cu_capture.c --------------------------------------------------------- */

cudaError_t bc_graph_capture(struct CUstream_st *s, void *payload);
cudaError_t bc_graph_mark(struct CUstream_st *s, struct CUevent_st *e);
cudaError_t bc_graph_join(struct CUstream_st *s, struct CUevent_st *e);
void bc_graph_drop(struct CUstream_st *s); /* its capture ends with nothing */
/* What a capture cannot have was asked for: e, and nothing will come of it. */
cudaError_t bc_graph_spoil(cudaGraph_t g, cudaError_t e);
/* Of what uses the legacy stream while a blocking stream captures: that is spoiled. */
cudaError_t bc_graph_implicit(const struct CUstream_st *s);
/* The node goes, so nothing that is captured comes after it. */
void bc_graph_forget(cudaGraphNode_t node);
/* cudaGraphEdgeData: two ports, a type and room. What is not zero asks for a launch
 * before the other kernel's end; ours are all plain. */
enum { BC_EDGE_BYTES = 8 };
bool bc_plain_edges(const uint8_t *data, size_t edges);
/* Says so of *n edges, where they are listed. */
void bc_tell_plain(uint8_t *data, const cudaGraphNode_t *listed,
                   const size_t *n);
/* The same of what a capture goes on from, as far as there is a list to show. */
cudaError_t bc_tell_capture(size_t found, const uint8_t **data, size_t *n);
cudaError_t bc_capture_info(cudaStream_t s, cudaStreamCaptureStatus *status,
                            unsigned long long *id, cudaGraph_t *graph,
                            const cudaGraphNode_t **nodes, size_t *n);
cudaError_t bc_capture_into(cudaStream_t s, cudaGraph_t graph,
                            const cudaGraphNode_t *nodes, size_t n,
                            cudaStreamCaptureMode mode);

#endif
