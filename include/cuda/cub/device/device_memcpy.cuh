/* device_memcpy.cuh - see device_for.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_MEMCPY
#define BRASS_CUB_DEVICE_MEMCPY
#include "device_for.cuh"
#endif
