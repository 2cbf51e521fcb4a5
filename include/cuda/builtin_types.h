/* builtin_types.h - types of the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_BUILTIN_TYPES_H
#define BRASS_BUILTIN_TYPES_H
#include "driver_types.h"
#endif
