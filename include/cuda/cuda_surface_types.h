/* cuda_surface_types.h - surfaces are not there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_SURFACE_TYPES_H
#define BRASS_CUDA_SURFACE_TYPES_H
#include "driver_types.h"
#endif
