/* binary_search.h - see set_operations.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_BINARY_SEARCH
#define BRASS_THRUST_BINARY_SEARCH
#include "set_operations.h"
#endif
