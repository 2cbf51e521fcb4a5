/* uninitialized_fill.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNINITIALIZED_FILL
#define BRASS_THRUST_UNINITIALIZED_FILL
#include "transform.h"
#endif
