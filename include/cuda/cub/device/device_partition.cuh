/* device_partition.cuh - see device_select.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_PARTITION
#define BRASS_CUB_DEVICE_PARTITION
#include "device_select.cuh"
#endif
