/* uniform_real_distribution.h - see random.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_RANDOM_UNIFORM_REAL_DISTRIBUTION
#define BRASS_THRUST_RANDOM_UNIFORM_REAL_DISTRIBUTION
#include "../random.h"
#endif
