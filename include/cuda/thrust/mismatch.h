/* mismatch.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_MISMATCH
#define BRASS_THRUST_MISMATCH
#include "reduce.h"
#endif
