/* common_functions.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CRT_COMMON_FUNCTIONS_H
#define BRASS_CRT_COMMON_FUNCTIONS_H
#include "../cuda_runtime.h"
#endif
