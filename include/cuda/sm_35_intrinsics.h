/* sm_35_intrinsics.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SM_35_INTRINSICS_H
#define BRASS_SM_35_INTRINSICS_H
#include "cuda_runtime.h"
#endif
