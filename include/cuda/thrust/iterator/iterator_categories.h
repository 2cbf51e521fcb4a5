/* iterator_categories.h - see iterator_traits.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ITERATOR_ITERATOR_CATEGORIES
#define BRASS_THRUST_ITERATOR_ITERATOR_CATEGORIES
#include "iterator_traits.h"
#endif
