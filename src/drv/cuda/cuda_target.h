/* cuda_target.h - NVIDIA's GPU as a target of kernel run (cuda_target.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_TARGET_H
#define BR_CUDA_TARGET_H

#include "cg/ktarget.h"

/* False: that is not its name. Whether there is one compile says. */
bool br_cuda_target(br_ktarget *out, const char *name);

#endif
