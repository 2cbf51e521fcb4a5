/* curand_philox4x32_x.h - a part of curand_kernel.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CURAND_PHILOX4X32_X_H
#define BRASS_CURAND_PHILOX4X32_X_H
#include "curand_kernel.h"
#endif
