/* warp_load.cuh - see block_load.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_LOAD
#define BRASS_CUB_WARP_LOAD
#include "../block/block_load.cuh"
#endif
