/* count.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_COUNT
#define BRASS_THRUST_COUNT
#include "reduce.h"
#endif
