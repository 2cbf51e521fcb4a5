/* copy.h - see partition.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_COPY
#define BRASS_THRUST_COPY
#include "partition.h"
#endif
