/* host_config.h - what it declares comes with cuda_runtime.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_HOST_CONFIG_H
#define BRASS_HOST_CONFIG_H
#include "cuda_runtime.h"
#endif
