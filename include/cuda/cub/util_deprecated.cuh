/* util_deprecated.cuh - see util_macro.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_DEPRECATED
#define BRASS_CUB_UTIL_DEPRECATED
#include "util_macro.cuh"
#endif
