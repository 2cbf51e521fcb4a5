/* curand_normal.h - a part of curand_kernel.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CURAND_NORMAL_H
#define BRASS_CURAND_NORMAL_H
#include "curand_kernel.h"
#endif
