/* util_compiler.cuh - see util_macro.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_COMPILER
#define BRASS_CUB_UTIL_COMPILER
#include "util_macro.cuh"
#endif
