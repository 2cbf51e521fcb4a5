/* linear_congruential_engine.h - see random.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_RANDOM_LINEAR_CONGRUENTIAL_ENGINE
#define BRASS_THRUST_RANDOM_LINEAR_CONGRUENTIAL_ENGINE
#include "../random.h"
#endif
