/* channel_descriptor.h - channel descriptors come with the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CHANNEL_DESCRIPTOR_H
#define BRASS_CHANNEL_DESCRIPTOR_H
#include "cuda_runtime.h"
#endif
