/* blas_f64.c - products in double, on any processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas.h"

#include "base/half.h"

#include <string.h>

#define T       double
#define PRODUCT blas_product_f64
#define FUSED
#include "cuda/blas/blas_product.h"
