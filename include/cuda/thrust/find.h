/* find.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_FIND
#define BRASS_THRUST_FIND
#include "reduce.h"
#endif
