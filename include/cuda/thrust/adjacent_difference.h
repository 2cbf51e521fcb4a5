/* adjacent_difference.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ADJACENT_DIFFERENCE
#define BRASS_THRUST_ADJACENT_DIFFERENCE
#include "transform.h"
#endif
