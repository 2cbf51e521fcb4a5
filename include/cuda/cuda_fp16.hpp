/* cuda_fp16.hpp - a part of cuda_fp16.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_FP16_HPP
#define BRASS_CUDA_FP16_HPP
#include "cuda_fp16.h"
#endif
