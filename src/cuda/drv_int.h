/* drv_int.h - what the parts of the driver API share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_INT_H
#define BR_DRV_INT_H

#include "cuda/cuda_int.h"

#include "cuda/cuda.h"

CUresult bd_error(cudaError_t e); /* as the driver says it */
CUresult bd_begin(void);          /* whether the thread has a context */

/* What loading would have logged: nothing. (drv_link.c) */
void bd_no_logs(unsigned n, const CUjit_option *options, void **values);

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

/* The runtime's function does it. */
#define BD_CALL(call)                          \
    do {                                       \
        CUresult bd_e_ = bd_begin();           \
                                               \
        return bd_e_ ? bd_e_ : bd_error(call); \
    } while (0)

#endif
