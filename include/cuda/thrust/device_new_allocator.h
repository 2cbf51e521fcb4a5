/* device_new_allocator.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_NEW_ALLOCATOR
#define BRASS_THRUST_DEVICE_NEW_ALLOCATOR
#include "device_ptr.h"
#endif
