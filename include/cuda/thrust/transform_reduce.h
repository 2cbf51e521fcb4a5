/* transform_reduce.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TRANSFORM_REDUCE
#define BRASS_THRUST_TRANSFORM_REDUCE
#include "reduce.h"
#endif
