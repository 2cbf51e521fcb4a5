/* transform_scan.h - see scan.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TRANSFORM_SCAN
#define BRASS_THRUST_TRANSFORM_SCAN
#include "scan.h"
#endif
