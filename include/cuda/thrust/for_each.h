/* for_each.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_FOR_EACH
#define BRASS_THRUST_FOR_EACH
#include "transform.h"
#endif
