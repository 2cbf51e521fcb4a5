/* pair.h - see tuple.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_PAIR
#define BRASS_THRUST_PAIR
#include "tuple.h"
#endif
