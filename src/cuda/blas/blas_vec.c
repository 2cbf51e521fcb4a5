/* blas_vec.c - vectors, and matrix times vector, in float and double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas_vec.h"

#include <math.h>

#define T       float
#define BODY(f) blas_##f##_f32
#define ROOT    sqrtf
#define ABS     fabsf
#include "cuda/blas/blas_vec_body.h"
#undef T
#undef BODY
#undef ROOT
#undef ABS

#define T       double
#define BODY(f) blas_##f##_f64
#define ROOT    sqrt
#define ABS     fabs
#include "cuda/blas/blas_vec_body.h"
