/* blas.h - cuBLAS inside: a call becomes a job, a stream does it.
 *
 *   cublasSgemm -> blas_job, checked -> bc_op of the handle's stream -> body
 *
 * Numbers of a call are double inside (float, half and the integers that occur
 * are all exact there); bodies work in float or double, as their type says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_BLAS_H
#define BR_CUDA_BLAS_H

#include "cuda/cuda_int.h"

#include "cuda/cublas_v2.h"

/* A matrix by columns; of a vector ld is the distance of elements. */
typedef struct blas_mat {
    void *at;          /* or, when list: one for each of the batch */
    void *const *list; /* in device memory */
    int64_t ld, stride;
    int rows, cols; /* as it lies in memory */
    cudaDataType type;
    bool t; /* op() transposes it */
} blas_mat;

struct blas_job;
/* Whether there was memory for it. */
typedef bool blas_body(const struct blas_job *j);
typedef struct blas_job {
    blas_body *body;
    blas_mat a, b, c;
    int m, n, k, batch;
    cudaDataType type;  /* of alpha, beta and out; bodies compute in it */
    double alpha, beta; /* values, unless they lie on the device */
    const void *alpha_at, *beta_at;
    void *out;
} blas_job;

/* The numbers of a job when it runs. */
double blas_number(const void *at, cudaDataType type);
/* Body: c = alpha op(a) op(b) + beta c, for the whole batch. */
blas_body blas_gemm;
size_t blas_bytes(cudaDataType type);
/* Whether a batch lies in memory that is there. With the lock held. */
bool blas_in_memory(const blas_mat *m, int batch);
/* The types that a product may have, and what alpha and beta are then. */
bool blas_product_type(cudaDataType a, cudaDataType b, cudaDataType c,
                       cublasComputeType_t compute, cudaDataType *scalar);

/* One product in float or double. p: the three matrices of this one. */
typedef struct blas_product {
    const blas_job *j;
    const void *a, *b;
    void *c;
    double alpha, beta;
    void *room; /* BLAS_ROOM bytes */
} blas_product;
typedef void blas_product_fn(const blas_product *p);
enum {
    BLAS_KC =
        256,      /* a panel's depth: a column of tiles stays in the L1 cache */
    BLAS_MC = 96, /* rows of a that stay in the L2 cache */
    BLAS_MB = 768, /* rows, and columns, of sums in T */
    BLAS_NC = 1020,
    BLAS_ROOM = ((BLAS_MC + BLAS_NC) * BLAS_KC + BLAS_MB * BLAS_NC) * 8
};
extern blas_product_fn blas_product_f32, blas_product_f64;
extern blas_product_fn blas_product_f32_avx2, blas_product_f64_avx2;

#endif
