/* cuda_bf16.hpp - a part of cuda_bf16.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_BF16_HPP
#define BRASS_CUDA_BF16_HPP
#include "cuda_bf16.h"
#endif
