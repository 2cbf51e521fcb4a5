/* blas_f64_avx2.c - products in double, with AVX2 and FMA.
 * SPDX-License-Identifier: Apache-2.0 */
#define T       double
#define PRODUCT blas_product_f64_avx2
#define AVX2
#include "cuda/blas/blas_product.h"
