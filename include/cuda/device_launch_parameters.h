/* device_launch_parameters.h - threadIdx and its like come with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DEVICE_LAUNCH_PARAMETERS_H
#define BRASS_DEVICE_LAUNCH_PARAMETERS_H
#include "cuda_runtime.h"
#endif
