/* blas_vec.c - vectors, and matrix times vector, in float and double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas_vec.h"

#include "base/half.h"

#include <math.h>

#define T       float
#define BODY(f) blas_##f##_f32
#define ABS     fabsf
#include "cuda/blas/blas_vec_body.h"
#undef T
#undef BODY
#undef ABS

#define T       double
#define BODY(f) blas_##f##_f64
#define ABS     fabs
#include "cuda/blas/blas_vec_body.h"

static double
element(const blas_mat *v, int n, int i)
{
    int64_t at =
        (int64_t)i * v->ld + (v->ld < 0 ? (1 - (int64_t)n) * v->ld : 0);
    const char *p = (const char *)v->at + at * (int64_t)blas_bytes(v->type);

    if (v->type == CUDA_R_16BF)
        return (double)br_bf16_to_f32(*(const uint16_t *)(const void *)p);
    return blas_number(p, v->type);
}

/* Of vectors of any two types of floats, into a third. */
bool
blas_dot_of(const blas_job *j)
{
    double s = 0;

    for (int i = 0; i < j->n; i++)
        s += element(&j->a, j->n, i) * element(&j->b, j->n, i);
    switch (j->type) {
    case CUDA_R_64F: *(double *)j->out = s; break;
    case CUDA_R_32F: *(float *)j->out = (float)s; break;
    case CUDA_R_16F: *(uint16_t *)j->out = br_f32_to_f16((float)s); break;
    default: *(uint16_t *)j->out = br_f32_to_bf16((float)s); break;
    }
    return true;
}
