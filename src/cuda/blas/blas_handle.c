/* blas_handle.c - cuBLAS: handles and their settings, copies, words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas_handle.h"

cublasStatus_t
cublasCreate_v2(cublasHandle_t *handle)
{
    if (!handle)
        return CUBLAS_STATUS_INVALID_VALUE;
    *handle = br_try_calloc(1, sizeof **handle);
    if (!*handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (*handle)->magic = BLAS_MAGIC;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasDestroy_v2(cublasHandle_t h)
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    h->magic = 0;
    br_free(h);
    return CUBLAS_STATUS_SUCCESS;
}

#define SETTING(set, get, type, field, valid)     \
    cublasStatus_t set(cublasHandle_t h, type v)  \
    {                                             \
        if (!blas_is(h))                          \
            return CUBLAS_STATUS_NOT_INITIALIZED; \
        if (!(valid))                             \
            return CUBLAS_STATUS_INVALID_VALUE;   \
        h->field = v;                             \
        return CUBLAS_STATUS_SUCCESS;             \
    }                                             \
    cublasStatus_t get(cublasHandle_t h, type *v) \
    {                                             \
        if (!blas_is(h))                          \
            return CUBLAS_STATUS_NOT_INITIALIZED; \
        if (!v)                                   \
            return CUBLAS_STATUS_INVALID_VALUE;   \
        *v = h->field;                            \
        return CUBLAS_STATUS_SUCCESS;             \
    }
SETTING(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream, true)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t,
        mode, (unsigned)v <= CUBLAS_POINTER_MODE_DEVICE)
SETTING(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math, true)

/* One order of sums, whatever is allowed. */
cublasStatus_t
cublasSetAtomicsMode(cublasHandle_t h, cublasAtomicsMode_t mode)
{
    (void)mode;
    return blas_is(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t
cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes)
{
    (void)workspace;
    (void)bytes;
    return blas_is(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t
cublasGetVersion_v2(cublasHandle_t h, int *version)
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!version)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- copies: columns of so many elements, with a distance --------------- */

static cublasStatus_t
columns(void *dst, int64_t to, const void *src, int64_t from, int64_t rows,
        int64_t cols, int element, cudaMemcpyKind kind)
{
    cudaError_t e;

    if (rows < 0 || cols < 0 || element <= 0 || to < rows || from < rows ||
        to <= 0 || from <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (rows == 0 || cols == 0)
        return CUBLAS_STATUS_SUCCESS;
    e = cudaMemcpy2D(dst, (size_t)(to * element), src, (size_t)(from * element),
                     (size_t)(rows * element), (size_t)cols, kind);
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                            : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t
cublasSetVector(int n, int element, const void *x, int incx, void *device,
                int incy)
{
    return columns(device, incy, x, incx, 1, n, element,
                   cudaMemcpyHostToDevice);
}

cublasStatus_t
cublasGetVector(int n, int element, const void *device, int incx, void *y,
                int incy)
{
    return columns(y, incy, device, incx, 1, n, element,
                   cudaMemcpyDeviceToHost);
}

cublasStatus_t
cublasSetMatrix(int rows, int cols, int element, const void *a, int lda,
                void *device, int ldb)
{
    return columns(device, ldb, a, lda, rows, cols, element,
                   cudaMemcpyHostToDevice);
}

cublasStatus_t
cublasGetMatrix(int rows, int cols, int element, const void *device, int lda,
                void *b, int ldb)
{
    return columns(b, ldb, device, lda, rows, cols, element,
                   cudaMemcpyDeviceToHost);
}

/* ---- words -------------------------------------------------------------- */

#define STATUSES(X)                                                    \
    X(SUCCESS, "success")                                              \
    X(NOT_INITIALIZED, "the handle is not one of cublasCreate")        \
    X(ALLOC_FAILED, "out of memory")                                   \
    X(INVALID_VALUE, "an argument is not allowed")                     \
    X(ARCH_MISMATCH, "the device lacks this")                          \
    X(MAPPING_ERROR, "device memory could not be reached")             \
    X(EXECUTION_FAILED, "it failed on the device")                     \
    X(INTERNAL_ERROR, "a fault of the library")                        \
    X(NOT_SUPPORTED, "these types or this function are not supported") \
    X(LICENSE_ERROR, "no licence")

const char *
cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
#define X(name, text) \
    case CUBLAS_STATUS_##name: return "CUBLAS_STATUS_" #name;
        STATUSES(X)
#undef X
    }
    return "unknown status";
}

const char *
cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
#define X(name, text) \
    case CUBLAS_STATUS_##name: return text;
        STATUSES(X)
#undef X
    }
    return "unknown status";
}
