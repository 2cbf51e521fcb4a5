/* distance.h - see iterator_traits.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DISTANCE
#define BRASS_THRUST_DISTANCE
#include "iterator/iterator_traits.h"
#endif
