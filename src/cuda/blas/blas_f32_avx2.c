/* blas_f32_avx2.c - products in float, with AVX2 and FMA.
 * SPDX-License-Identifier: Apache-2.0 */
#define T       float
#define PRODUCT blas_product_f32_avx2
#define AVX2
#include "cuda/blas/blas_product.h"
