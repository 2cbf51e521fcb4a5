/* sm_61_intrinsics.h - intrinsics come with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SM_61_INTRINSICS_H
#define BRASS_SM_61_INTRINSICS_H
#include "cuda_runtime.h"
#endif
