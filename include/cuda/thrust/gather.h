/* gather.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_GATHER
#define BRASS_THRUST_GATHER
#include "transform.h"
#endif
