/* blas_vec.h - bodies of jobs on vectors; each for float and for double.
 *
 * Vectors are a and b of a job, a matrix is c (gemv: a is the matrix, b what it
 * is multiplied with, c the result; geam: as a product).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_BLAS_VEC_H
#define BR_CUDA_BLAS_VEC_H

#include "cuda/blas/blas.h"

#define PAIR(f) blas_##f##_f32, blas_##f##_f64
extern blas_body PAIR(axpy), PAIR(scal), PAIR(copy), PAIR(swap), PAIR(rot),
    PAIR(dot), PAIR(nrm2), PAIR(asum), PAIR(amax), PAIR(amin), PAIR(gemv),
    PAIR(ger), PAIR(geam);
#undef PAIR
extern blas_body blas_dot_of;

#endif
