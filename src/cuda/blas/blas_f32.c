/* blas_f32.c - products in float, on any processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas.h"

#include "base/half.h"

#include <string.h>

#define T       float
#define PRODUCT blas_product_f32
#define FUSED
#include "cuda/blas/blas_product.h"
