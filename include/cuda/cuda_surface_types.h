/* cuda_surface_types.h - surfaces come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_SURFACE_TYPES_H
#define BRASS_CUDA_SURFACE_TYPES_H
#include "cuda_runtime.h"
#endif
