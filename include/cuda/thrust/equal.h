/* equal.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_EQUAL
#define BRASS_THRUST_EQUAL
#include "reduce.h"
#endif
