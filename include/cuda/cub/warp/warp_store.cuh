/* warp_store.cuh - see block_store.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_STORE
#define BRASS_CUB_WARP_STORE
#include "../block/block_store.cuh"
#endif
