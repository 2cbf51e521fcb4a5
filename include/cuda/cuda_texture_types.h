/* cuda_texture_types.h - textures are not there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_TEXTURE_TYPES_H
#define BRASS_CUDA_TEXTURE_TYPES_H
#include "driver_types.h"
#endif
