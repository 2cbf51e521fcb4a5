/* config.h - names of Thrust's own sources that programs use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_CONFIG
#define BRASS_THRUST_CONFIG
#include "../version.h"
#define THRUST_NAMESPACE_BEGIN \
    namespace thrust           \
    {
#define THRUST_NAMESPACE_END }
#endif
