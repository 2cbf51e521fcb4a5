/* blas_gemm.c - products of a batch, one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas.h"

#include "base/half.h"

double
blas_number(const void *at, cudaDataType type)
{
    switch (type) {
    case CUDA_R_64F: return *(const double *)at;
    case CUDA_R_16F: return (double)br_f16_to_f32(*(const uint16_t *)at);
    case CUDA_R_32I: return *(const int32_t *)at;
    default: return (double)*(const float *)at;
    }
}

size_t
blas_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_8I: return 1;
    default: return 4;
    }
}

static void *
of_batch(const blas_mat *m, int i)
{
    return m->list
               ? m->list[i]
               : (char *)m->at + i * m->stride * (int64_t)blas_bytes(m->type);
}

static blas_product_fn *
best(bool wide)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return wide ? blas_product_f64_avx2 : blas_product_f32_avx2;
#endif
    return wide ? blas_product_f64 : blas_product_f32;
}

bool
blas_gemm(const blas_job *j)
{
    /* Integers are exact in a double up to 2^53. */
    bool wide = j->type == CUDA_R_64F || j->type == CUDA_R_32I;
    blas_product p = {.j = j};

    p.alpha = j->alpha_at ? blas_number(j->alpha_at, j->type) : j->alpha;
    p.beta = j->beta_at ? blas_number(j->beta_at, j->type) : j->beta;
    p.room = br_try_alloc(BLAS_ROOM);
    if (!p.room)
        return false;
    for (int i = 0; i < j->batch; i++) {
        p.a = of_batch(&j->a, i);
        p.b = of_batch(&j->b, i);
        p.c = of_batch(&j->c, i);
        best(wide)(&p);
    }
    br_free(p.room);
    return true;
}
