/* merge.h - see set_operations.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_MERGE
#define BRASS_THRUST_MERGE
#include "set_operations.h"
#endif
