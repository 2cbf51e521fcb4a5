/* cu_graph.h - what streams need of graphs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CU_GRAPH_H
#define BR_CU_GRAPH_H

#include "cuda/cuda_int.h"

/* With the lock held. */
cudaError_t bc_graph_capture(struct CUstream_st *s, void *payload);
cudaError_t bc_graph_join(struct CUstream_st *s, struct CUevent_st *e);
void bc_graph_drop(struct CUstream_st *s); /* its capture ends with nothing */

#endif
