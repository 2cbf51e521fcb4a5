/* universal_vector.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNIVERSAL_VECTOR
#define BRASS_THRUST_UNIVERSAL_VECTOR
#include "device_vector.h"
#endif
