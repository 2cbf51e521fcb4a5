/* texture_indirect_functions.h - texture objects come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_TEXTURE_INDIRECT_FUNCTIONS_H
#define BRASS_TEXTURE_INDIRECT_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
