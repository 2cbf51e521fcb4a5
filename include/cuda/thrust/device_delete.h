/* device_delete.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_DELETE
#define BRASS_THRUST_DEVICE_DELETE
#include "device_ptr.h"
#endif
