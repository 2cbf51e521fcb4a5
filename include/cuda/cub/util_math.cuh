/* util_math.cuh - see util_ptx.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_MATH
#define BRASS_CUB_UTIL_MATH
#include "util_ptx.cuh"
#endif
