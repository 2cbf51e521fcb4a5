/* zip_function.h - see functional.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ZIP_FUNCTION
#define BRASS_THRUST_ZIP_FUNCTION
#include "functional.h"
#endif
