/* transform_input_output_iterator.h - see counting_iterator.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ITERATOR_TRANSFORM_INPUT_OUTPUT_ITERATOR
#define BRASS_THRUST_ITERATOR_TRANSFORM_INPUT_OUTPUT_ITERATOR
#include "counting_iterator.h"
#endif
