/* host_defines.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CRT_HOST_DEFINES_H
#define BRASS_CRT_HOST_DEFINES_H
#include "../cuda_runtime.h"
#endif
