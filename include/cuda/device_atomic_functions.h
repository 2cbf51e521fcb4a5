/* device_atomic_functions.h - atomics come with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DEVICE_ATOMIC_FUNCTIONS_H
#define BRASS_DEVICE_ATOMIC_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
