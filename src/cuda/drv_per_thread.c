/* drv_per_thread.c - the driver API once more, under the names that its header gives it
 * with CUDA_API_PER_THREAD_DEFAULT_STREAM (cuLaunchKernel_ptsz, cuMemcpyHtoD_v2_ptds, ...).
 *
 * Each is its namesake, during which the null stream is the thread's own, as in
 * rt_per_thread.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"
#include "cuda/drv_int.h"

#define API __attribute__((visibility("default")))

#define X(fn, end, params, args)      \
    CUresult fn params;               \
    API CUresult fn##_##end params;   \
    CUresult fn##_##end params        \
    {                                 \
        const bool was = bc_own_null; \
        CUresult code;                \
                                      \
        bc_own_null = true;           \
        code = fn args;               \
        bc_own_null = was;            \
        return code;                  \
    }
#include "cuda/drv_per_thread.def"
#undef X
