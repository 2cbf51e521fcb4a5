/* config.cuh - see util_arch.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_CONFIG
#define BRASS_CUB_CONFIG
#include "util_arch.cuh"
#endif
