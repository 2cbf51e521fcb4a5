/* tabulate.h - see transform.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TABULATE
#define BRASS_THRUST_TABULATE
#include "transform.h"
#endif
