/* normal_distribution.h - see random.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_RANDOM_NORMAL_DISTRIBUTION
#define BRASS_THRUST_RANDOM_NORMAL_DISTRIBUTION
#include "../random.h"
#endif
