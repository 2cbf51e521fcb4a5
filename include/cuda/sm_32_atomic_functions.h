/* sm_32_atomic_functions.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SM_32_ATOMIC_FUNCTIONS_H
#define BRASS_SM_32_ATOMIC_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
