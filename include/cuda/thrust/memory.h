/* memory.h - see device_ptr.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_MEMORY
#define BRASS_THRUST_MEMORY
#include "device_ptr.h"
#endif
