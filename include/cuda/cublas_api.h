/* cublas_api.h - see cublas_v2.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUBLAS_API_H
#define BRASS_CUBLAS_API_H
#include "cublas_v2.h"
#endif
