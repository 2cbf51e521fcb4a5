/* cudaProfiler.h - the profiler's switches come with the driver's interface.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDAPROFILER_H
#define BRASS_CUDAPROFILER_H
#include "cuda.h"
#endif
