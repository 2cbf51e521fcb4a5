/* universal_allocator.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNIVERSAL_ALLOCATOR
#define BRASS_THRUST_UNIVERSAL_ALLOCATOR
#include "device_vector.h"
#endif
