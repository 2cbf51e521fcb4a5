/* discard_iterator.h - see counting_iterator.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ITERATOR_DISCARD_ITERATOR
#define BRASS_THRUST_ITERATOR_DISCARD_ITERATOR
#include "counting_iterator.h"
#endif
