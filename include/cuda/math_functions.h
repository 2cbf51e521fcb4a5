/* math_functions.h - the device's mathematics come with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_MATH_FUNCTIONS_H
#define BRASS_MATH_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
