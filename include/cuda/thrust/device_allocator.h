/* device_allocator.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_ALLOCATOR
#define BRASS_THRUST_DEVICE_ALLOCATOR
#include "device_ptr.h"
#endif
