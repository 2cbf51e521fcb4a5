/* device_adjacent_difference.cuh - see device_for.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_ADJACENT_DIFFERENCE
#define BRASS_CUB_DEVICE_ADJACENT_DIFFERENCE
#include "device_for.cuh"
#endif
