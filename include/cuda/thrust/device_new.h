/* device_new.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_NEW
#define BRASS_THRUST_DEVICE_NEW
#include "device_ptr.h"
#endif
