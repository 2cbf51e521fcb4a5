/* util_macro.cuh - CUB's macros.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_MACRO
#define BRASS_CUB_UTIL_MACRO
#include "version.cuh"

#ifndef CUB_MAX
#    define CUB_MAX(a, b) ((b) < (a) ? (a) : (b))
#endif
#ifndef CUB_MIN
#    define CUB_MIN(a, b) ((b) < (a) ? (b) : (a))
#endif
#define CUB_QUOTIENT_FLOOR(x, y)      ((x) / (y))
#define CUB_QUOTIENT_CEILING(x, y)    (((x) + (y)-1) / (y))
#define CUB_ROUND_UP_NEAREST(x, y)    (CUB_QUOTIENT_CEILING(x, y) * (y))
#define CUB_ROUND_DOWN_NEAREST(x, y)  ((x) / (y) * (y))
#define CUB_STATIC_ASSERT(cond, text) static_assert(cond, text)
#define CUB_PREVENT_MACRO_SUBSTITUTION
#define CUB_RUNTIME_FUNCTION __host__
#define CUB_NAMESPACE_BEGIN \
    namespace cub           \
    {
#define CUB_NAMESPACE_END }
#define CUB_NS_PREFIX
#define CUB_NS_POSTFIX
#define CUB_NS_QUALIFIER ::cub

#endif
