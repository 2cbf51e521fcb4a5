/* host_vector.h - see device_vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_HOST_VECTOR
#define BRASS_THRUST_HOST_VECTOR
#include "device_vector.h"
#endif
