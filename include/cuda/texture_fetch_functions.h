/* texture_fetch_functions.h - texture fetches come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_TEXTURE_FETCH_FUNCTIONS_H
#define BRASS_TEXTURE_FETCH_FUNCTIONS_H
#include "cuda_runtime.h"
#endif
