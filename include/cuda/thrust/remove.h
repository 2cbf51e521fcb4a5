/* remove.h - see partition.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_REMOVE
#define BRASS_THRUST_REMOVE
#include "partition.h"
#endif
