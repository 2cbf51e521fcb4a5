/* cache_modified_output_iterator.cuh - see counting_input_iterator.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_CACHE_MODIFIED_OUTPUT_ITERATOR
#define BRASS_CUB_CACHE_MODIFIED_OUTPUT_ITERATOR
#include "counting_input_iterator.cuh"
#endif
