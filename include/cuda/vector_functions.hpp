/* vector_functions.hpp - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_VECTOR_FUNCTIONS_HPP
#define BRASS_VECTOR_FUNCTIONS_HPP
#include "vector_functions.h"
#endif
