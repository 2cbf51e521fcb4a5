/* extrema.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_EXTREMA
#define BRASS_THRUST_EXTREMA
#include "reduce.h"
#endif
