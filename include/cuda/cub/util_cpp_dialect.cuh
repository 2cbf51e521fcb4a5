/* util_cpp_dialect.cuh - see util_macro.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_CPP_DIALECT
#define BRASS_CUB_UTIL_CPP_DIALECT
#include "util_macro.cuh"
#endif
