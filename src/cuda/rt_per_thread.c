/* rt_per_thread.c - the runtime API once more, under the names that nvcc gives it with
 * -default-stream per-thread (cudaMemcpy_ptds, cudaLaunchKernel_ptsz, ...).
 *
 * Each is its namesake, during which the null stream is the thread's own. Ops that are
 * worked off meanwhile ask for no stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#define API __attribute__((visibility("default")))

_Thread_local bool bc_own_null;

/* A program's callback may call one under another's names: as it was, afterwards. */
#define X(fn, end, params, args)       \
    API cudaError_t fn##_##end params; \
    cudaError_t fn##_##end params      \
    {                                  \
        const bool was = bc_own_null;  \
        cudaError_t code;              \
                                       \
        bc_own_null = true;            \
        code = fn args;                \
        bc_own_null = was;             \
        return code;                   \
    }
#include "cuda/per_thread.def"
#undef X
