/* device_free.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_FREE
#define BRASS_THRUST_DEVICE_FREE
#include "device_ptr.h"
#endif
