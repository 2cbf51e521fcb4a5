/* device_functions.h - device functions come with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DEVICE_FUNCTIONS_H
#define BRASS_DEVICE_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
