/* vector.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_CUDA_VECTOR
#define BRASS_THRUST_SYSTEM_CUDA_VECTOR
#include "../../device_vector.h"
#endif
