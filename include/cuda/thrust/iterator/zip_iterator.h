/* zip_iterator.h - see counting_iterator.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ITERATOR_ZIP_ITERATOR
#define BRASS_THRUST_ITERATOR_ZIP_ITERATOR
#include "counting_iterator.h"
#endif
