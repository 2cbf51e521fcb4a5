/* device_malloc.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_MALLOC
#define BRASS_THRUST_DEVICE_MALLOC
#include "device_ptr.h"
#endif
