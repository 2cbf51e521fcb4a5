/* surface_functions.h - surfaces come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SURFACE_FUNCTIONS_H
#define BRASS_SURFACE_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
