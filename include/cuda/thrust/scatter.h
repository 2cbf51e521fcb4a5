/* scatter.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SCATTER
#define BRASS_THRUST_SCATTER
#include "transform.h"
#endif
