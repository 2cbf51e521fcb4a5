/* device_copy.cuh - see device_for.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_COPY
#define BRASS_CUB_DEVICE_COPY
#include "device_for.cuh"
#endif
