/* logical.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_LOGICAL
#define BRASS_THRUST_LOGICAL
#include "reduce.h"
#endif
