/* device_segmented_radix_sort.cuh - see device_segmented_sort.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_SEGMENTED_RADIX_SORT
#define BRASS_CUB_DEVICE_SEGMENTED_RADIX_SORT
#include "device_segmented_sort.cuh"
#endif
