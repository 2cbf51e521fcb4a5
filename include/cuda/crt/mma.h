/* mma.h - a part of mma.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CRT_MMA_H
#define BRASS_CRT_MMA_H
#include "../mma.h"
#endif
