/* cublas.h - cuBLAS as its first version had it: one handle for all, numbers by
 * value, results returned, errors asked for afterwards. Float and double; for
 * what is new there is cublas_v2.h, which a file does not include beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUBLAS_H
#define BRASS_CUBLAS_H
#include "cublas_v2.h"

typedef cublasStatus_t cublasStatus;

/* One of each in a program. */
__attribute__((weak)) cublasHandle_t brass_blas_handle;
__attribute__((weak)) cublasStatus_t brass_blas_error;

static inline void
brass_blas_note(cublasStatus_t s)
{
    if (s != CUBLAS_STATUS_SUCCESS)
        brass_blas_error = s;
}
static inline cublasHandle_t
brass_blas(void)
{
    if (!brass_blas_handle)
        brass_blas_note(cublasCreate_v2(&brass_blas_handle));
    return brass_blas_handle;
}
static inline cublasStatus_t
cublasInit(void)
{
    return brass_blas() ? CUBLAS_STATUS_SUCCESS : brass_blas_error;
}
static inline cublasStatus_t
cublasShutdown(void)
{
    cublasHandle_t h = brass_blas_handle;

    brass_blas_handle = NULL;
    return h ? cublasDestroy_v2(h) : CUBLAS_STATUS_NOT_INITIALIZED;
}
/* The last one, and then none. */
static inline cublasStatus_t
cublasGetError(void)
{
    cublasStatus_t s = brass_blas_error;

    brass_blas_error = CUBLAS_STATUS_SUCCESS;
    return s;
}
static inline cublasStatus_t
cublasSetKernelStream(cudaStream_t stream)
{
    return cublasSetStream_v2(brass_blas(), stream);
}
static inline cublasStatus_t
cublasAlloc(int n, int element, void **device)
{
    if (n <= 0 || element <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    return cudaMalloc(device, (size_t)n * (size_t)element) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_ALLOC_FAILED;
}
static inline cublasStatus_t
cublasFree(void *device)
{
    return cudaFree(device) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                           : CUBLAS_STATUS_INTERNAL_ERROR;
}
/* What no letter names is refused where it is used. */
static inline cublasOperation_t
brass_blas_op(char c)
{
    return c == 'N' || c == 'n'   ? CUBLAS_OP_N
           : c == 'T' || c == 't' ? CUBLAS_OP_T
           : c == 'C' || c == 'c' ? CUBLAS_OP_C
                                  : (cublasOperation_t)-1;
}

#undef cublasSaxpy
#undef cublasDaxpy
#undef cublasSscal
#undef cublasDscal
#undef cublasScopy
#undef cublasDcopy
#undef cublasSswap
#undef cublasDswap
#undef cublasSrot
#undef cublasDrot
#undef cublasSdot
#undef cublasDdot
#undef cublasSnrm2
#undef cublasDnrm2
#undef cublasSasum
#undef cublasDasum
#undef cublasIsamax
#undef cublasIdamax
#undef cublasIsamin
#undef cublasIdamin
#undef cublasSgemv
#undef cublasDgemv
#undef cublasSger
#undef cublasDger
#undef cublasSgemm
#undef cublasDgemm

#define BRASS_BLAS(L, l, T)                                                    \
    static inline void cublas##L##axpy(int n, T alpha, const T *x, int incx,   \
                                       T *y, int incy)                         \
    {                                                                          \
        brass_blas_note(                                                       \
            cublas##L##axpy_v2(brass_blas(), n, &alpha, x, incx, y, incy));    \
    }                                                                          \
    static inline void cublas##L##scal(int n, T alpha, T *x, int incx)         \
    {                                                                          \
        brass_blas_note(cublas##L##scal_v2(brass_blas(), n, &alpha, x, incx)); \
    }                                                                          \
    static inline void cublas##L##copy(int n, const T *x, int incx, T *y,      \
                                       int incy)                               \
    {                                                                          \
        brass_blas_note(                                                       \
            cublas##L##copy_v2(brass_blas(), n, x, incx, y, incy));            \
    }                                                                          \
    static inline void cublas##L##swap(int n, T *x, int incx, T *y, int incy)  \
    {                                                                          \
        brass_blas_note(                                                       \
            cublas##L##swap_v2(brass_blas(), n, x, incx, y, incy));            \
    }                                                                          \
    static inline void cublas##L##rot(int n, T *x, int incx, T *y, int incy,   \
                                      T c, T s)                                \
    {                                                                          \
        brass_blas_note(                                                       \
            cublas##L##rot_v2(brass_blas(), n, x, incx, y, incy, &c, &s));     \
    }                                                                          \
    static inline T cublas##L##dot(int n, const T *x, int incx, const T *y,    \
                                   int incy)                                   \
    {                                                                          \
        T r = 0;                                                               \
                                                                               \
        brass_blas_note(                                                       \
            cublas##L##dot_v2(brass_blas(), n, x, incx, y, incy, &r));         \
        return r;                                                              \
    }                                                                          \
    static inline T cublas##L##nrm2(int n, const T *x, int incx)               \
    {                                                                          \
        T r = 0;                                                               \
                                                                               \
        brass_blas_note(cublas##L##nrm2_v2(brass_blas(), n, x, incx, &r));     \
        return r;                                                              \
    }                                                                          \
    static inline T cublas##L##asum(int n, const T *x, int incx)               \
    {                                                                          \
        T r = 0;                                                               \
                                                                               \
        brass_blas_note(cublas##L##asum_v2(brass_blas(), n, x, incx, &r));     \
        return r;                                                              \
    }                                                                          \
    static inline int cublasI##l##amax(int n, const T *x, int incx)            \
    {                                                                          \
        int r = 0;                                                             \
                                                                               \
        brass_blas_note(cublasI##l##amax_v2(brass_blas(), n, x, incx, &r));    \
        return r;                                                              \
    }                                                                          \
    static inline int cublasI##l##amin(int n, const T *x, int incx)            \
    {                                                                          \
        int r = 0;                                                             \
                                                                               \
        brass_blas_note(cublasI##l##amin_v2(brass_blas(), n, x, incx, &r));    \
        return r;                                                              \
    }                                                                          \
    static inline void cublas##L##gemv(char trans, int m, int n, T alpha,      \
                                       const T *a, int lda, const T *x,        \
                                       int incx, T beta, T *y, int incy)       \
    {                                                                          \
        brass_blas_note(cublas##L##gemv_v2(brass_blas(), brass_blas_op(trans), \
                                           m, n, &alpha, a, lda, x, incx,      \
                                           &beta, y, incy));                   \
    }                                                                          \
    static inline void cublas##L##ger(int m, int n, T alpha, const T *x,       \
                                      int incx, const T *y, int incy, T *a,    \
                                      int lda)                                 \
    {                                                                          \
        brass_blas_note(cublas##L##ger_v2(brass_blas(), m, n, &alpha, x, incx, \
                                          y, incy, a, lda));                   \
    }                                                                          \
    static inline void cublas##L##gemm(                                        \
        char transa, char transb, int m, int n, int k, T alpha, const T *a,    \
        int lda, const T *b, int ldb, T beta, T *c, int ldc)                   \
    {                                                                          \
        brass_blas_note(cublas##L##gemm_v2(                                    \
            brass_blas(), brass_blas_op(transa), brass_blas_op(transb), m, n,  \
            k, &alpha, a, lda, b, ldb, &beta, c, ldc));                        \
    }
BRASS_BLAS(S, s, float)
BRASS_BLAS(D, d, double)
#undef BRASS_BLAS
#endif
