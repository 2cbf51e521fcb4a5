/* error_code.h - see system_error.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_ERROR_CODE
#define BRASS_THRUST_SYSTEM_ERROR_CODE
#include "../system_error.h"
#endif
