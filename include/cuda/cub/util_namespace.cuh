/* util_namespace.cuh - see util_macro.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_NAMESPACE
#define BRASS_CUB_UTIL_NAMESPACE
#include "util_macro.cuh"
#endif
