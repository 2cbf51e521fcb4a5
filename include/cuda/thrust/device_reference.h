/* device_reference.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_REFERENCE
#define BRASS_THRUST_DEVICE_REFERENCE
#include "device_ptr.h"
#endif
