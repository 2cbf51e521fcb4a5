/* arg_index_input_iterator.cuh - see counting_input_iterator.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_ARG_INDEX_INPUT_ITERATOR
#define BRASS_CUB_ARG_INDEX_INPUT_ITERATOR
#include "counting_input_iterator.cuh"
#endif
