/* memory.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_CUDA_MEMORY
#define BRASS_THRUST_SYSTEM_CUDA_MEMORY
#include "../../device_vector.h"
#endif
