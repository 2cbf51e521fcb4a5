/* unique.h - see partition.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNIQUE
#define BRASS_THRUST_UNIQUE
#include "partition.h"
#endif
