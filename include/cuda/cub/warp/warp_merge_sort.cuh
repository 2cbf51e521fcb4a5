/* warp_merge_sort.cuh - see block_merge_sort.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_MERGE_SORT
#define BRASS_CUB_WARP_MERGE_SORT
#include "../block/block_merge_sort.cuh"
#endif
