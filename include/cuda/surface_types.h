/* surface_types.h - types of surfaces come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SURFACE_TYPES_H
#define BRASS_SURFACE_TYPES_H
#include "texture_types.h"
#endif
