/* blas_f32_avx2.c - products in float, with AVX2 and FMA.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas.h"

#include "base/half.h"

#include <string.h>

#define T       float
#define PRODUCT blas_product_f32_avx2
#if !defined __x86_64__
#    define FUSED
#elif defined __clang__
#    pragma clang fp contract(fast)
#    define FUSED __attribute__((target("avx2,fma")))
#else
#    define FUSED \
        __attribute__((target("avx2,fma"), optimize("fp-contract=fast")))
#endif
#include "cuda/blas/blas_product.h"
