/* generate.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_GENERATE
#define BRASS_THRUST_GENERATE
#include "transform.h"
#endif
