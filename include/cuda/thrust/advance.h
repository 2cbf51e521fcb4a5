/* advance.h - see iterator_traits.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ADVANCE
#define BRASS_THRUST_ADVANCE
#include "iterator/iterator_traits.h"
#endif
