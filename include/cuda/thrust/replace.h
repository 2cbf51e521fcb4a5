/* replace.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_REPLACE
#define BRASS_THRUST_REPLACE
#include "transform.h"
#endif
