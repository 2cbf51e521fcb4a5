/* sequence.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SEQUENCE
#define BRASS_THRUST_SEQUENCE
#include "transform.h"
#endif
