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
    BR_VEC(cudaGraphNode_t) after; /* edges from here */
};
struct CUgraph_st {
    BR_VEC(cudaGraphNode_t) nodes;
    struct CUstream_st *origin; /* of a capture */
    unsigned long long capture; /* its number */
    bool broken, drawn;         /* drawn: the program's, captured into */
};
typedef struct bc_step {
    const void *node; /* which it was, by its address; it may be gone */
    cudaGraphNodeType type;
    bc_work *w;
} bc_step;
struct CUgraphExec_st {
    BR_VEC(bc_step) order;
    unsigned refs; /* the program, and launches under way */
};

/* All with the lock held. */

/* ---- cu_graph.c ---------------------------------------------------------- */

bc_work *bc_work_new(void *payload); /* takes it; NULL: out of memory */
void bc_work_drop(bc_work *w);
/* Takes the work, which may be NULL: there was no memory for it. */
cudaGraphNode_t bc_node_add(cudaGraph_t g, bc_work *w, cudaGraphNodeType type);
void bc_graph_free(cudaGraph_t g);
void bc_count_edges(cudaGraph_t g); /* into `waits` of its nodes */

/* ---- cu_capture.c --------------------------------------------------------- */

cudaError_t bc_graph_capture(struct CUstream_st *s, void *payload);
cudaError_t bc_graph_mark(struct CUstream_st *s, struct CUevent_st *e);
cudaError_t bc_graph_join(struct CUstream_st *s, struct CUevent_st *e);
void bc_graph_drop(struct CUstream_st *s); /* its capture ends with nothing */
/* The node goes, so nothing that is captured comes after it. */
void bc_graph_forget(cudaGraphNode_t node);
cudaError_t bc_capture_info(cudaStream_t s, cudaStreamCaptureStatus *status,
                            unsigned long long *id, cudaGraph_t *graph,
                            const cudaGraphNode_t **nodes, size_t *n);
cudaError_t bc_capture_into(cudaStream_t s, cudaGraph_t graph,
                            const cudaGraphNode_t *nodes, size_t n,
                            cudaStreamCaptureMode mode);

#endif
