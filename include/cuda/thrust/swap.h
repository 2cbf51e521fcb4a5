/* swap.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SWAP
#define BRASS_THRUST_SWAP
#include "reduce.h"
#endif
