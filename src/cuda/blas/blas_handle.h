/* blas_handle.h - what a cublasHandle_t is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_BLAS_HANDLE_H
#define BR_CUDA_BLAS_HANDLE_H

#include "cuda/blas/blas.h"

enum { BLAS_MAGIC = 0x5a1b };

struct cublasContext {
    int magic;
    cudaStream_t stream;
    cublasPointerMode_t mode;
    cublasMath_t math;
};

static inline bool
blas_is(const struct cublasContext *h)
{
    return h && h->magic == BLAS_MAGIC;
}

#endif
