/* cuda_pipeline_primitives.h - they come with cuda_pipeline.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_PIPELINE_PRIMITIVES_H
#define BRASS_CUDA_PIPELINE_PRIMITIVES_H
#include "cuda_pipeline.h"
#endif
