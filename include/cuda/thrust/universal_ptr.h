/* universal_ptr.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNIVERSAL_PTR
#define BRASS_THRUST_UNIVERSAL_PTR
#include "device_vector.h"
#endif
