/* lm_cuda.h - a model at work on an NVIDIA GPU, one sequence.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_CUDA_H
#define BR_LM_CUDA_H

#include "run/lm_model.h"

typedef struct br_lm_cuda br_lm_cuda;

/* NO_DEVICE: no driver, no device, or one that is too old. UNSUPPORTED: the
 * model has what this tier lacks. */
br_code br_lm_cuda_open(br_lm_cuda **out, br_lm *lm, const br_model *m,
                        const br_lm_config *c, br_status *st) BR_MUST_USE;
void br_lm_cuda_close(br_lm_cuda *r);

#endif
