/* drv_int.h - what the parts of the driver API share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_INT_H
#define BR_DRV_INT_H

#include "cuda/cuda_int.h"

#include "cuda/cuda.h"

CUresult bd_error(cudaError_t e); /* as the driver says it */
CUresult bd_begin(void);          /* whether the thread has a context */

/* Into the buffers that the program has for logs: why loading failed, "" where it did
 * not. (drv_link.c) */
void bd_log(unsigned n, const CUjit_option *options, void **values,
            const char *why);

/* Where a module's variable is. With the lock held. (drv_module.c) */
cudaError_t bd_global(CUdeviceptr *p, size_t *bytes, CUmodule h,
                      const char *name);

/* Where a copy reads and writes. With the lock held. (drv_copy.c) */
cudaError_t bd_rect(const CUDA_MEMCPY3D *c, bc_rect *r, cudaMemcpyKind *kind);

/* The body of a function of the driver: one expression under the lock. */
#define BD_API(expr)                 \
    do {                             \
        CUresult bd_e_ = bd_begin(); \
                                     \
        if (bd_e_ != CUDA_SUCCESS)   \
            return bd_e_;            \
        bc_lock();                   \
        bd_e_ = bd_error(expr);      \
        bc_unlock();                 \
        return bd_e_;                \
    } while (0)

/* The runtime's function does it, and the program has not called it: neither a context
 * nor an error is left behind. */
#define BD_QUIET(e, call)                   \
    do {                                    \
        bc_traces bd_was_ = bc_traces_of(); \
                                            \
        (e) = bd_error(call);               \
        bc_traces_set(bd_was_);             \
    } while (0)
#define BD_CALL(call)                \
    do {                             \
        CUresult bd_e_ = bd_begin(); \
                                     \
        if (bd_e_ != CUDA_SUCCESS)   \
            return bd_e_;            \
        BD_QUIET(bd_e_, call);       \
        return bd_e_;                \
    } while (0)

#endif
