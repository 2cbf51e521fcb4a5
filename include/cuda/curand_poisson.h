/* curand_poisson.h - a part of curand_kernel.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CURAND_POISSON_H
#define BRASS_CURAND_POISSON_H
#include "curand_kernel.h"
#endif
