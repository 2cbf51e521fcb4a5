/* reverse.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_REVERSE
#define BRASS_THRUST_REVERSE
#include "transform.h"
#endif
