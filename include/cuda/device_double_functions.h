/* device_double_functions.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DEVICE_DOUBLE_FUNCTIONS_H
#define BRASS_DEVICE_DOUBLE_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
