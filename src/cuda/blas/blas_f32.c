/* blas_f32.c - products in float, on any processor.
 * SPDX-License-Identifier: Apache-2.0 */
#define T       float
#define PRODUCT blas_product_f32
#include "cuda/blas/blas_product.h"
