/* cuda_profiler_api.h - the profiler's switches come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_PROFILER_API_H
#define BRASS_CUDA_PROFILER_API_H
#include "cuda_runtime_api.h"
#endif
