/* blas_f64.c - products in double, on any processor.
 * SPDX-License-Identifier: Apache-2.0 */
#define T       double
#define PRODUCT blas_product_f64
#include "cuda/blas/blas_product.h"
