/* system_error.h - see system_error.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_SYSTEM_ERROR
#define BRASS_THRUST_SYSTEM_SYSTEM_ERROR
#include "../system_error.h"
#endif
