/* uninitialized_copy.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_UNINITIALIZED_COPY
#define BRASS_THRUST_UNINITIALIZED_COPY
#include "transform.h"
#endif
