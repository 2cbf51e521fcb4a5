/* cuda_device_runtime_api.h - there is no runtime on the device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_DEVICE_RUNTIME_API_H
#define BRASS_CUDA_DEVICE_RUNTIME_API_H
#include "cuda_runtime_api.h"
#endif
