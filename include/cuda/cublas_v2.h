/* cublas_v2.h - dense linear algebra on device memory: vectors, matrix times
 * vector, matrix times matrix; float and double, and products of half, bfloat16
 * and int8.
 *
 * Matrices lie by columns. Complex numbers and triangular solves are not there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUBLAS_V2_H
#define BRASS_CUBLAS_V2_H
#define CUBLAS_API_H_ /* as programs ask for it */
#include "brass_push.h"

#include "cuComplex.h"
#include "cuda_runtime_api.h"
#include "library_types.h"
#ifdef __cplusplus
#    include "cuda_bf16.h"
#    include "cuda_fp16.h"
#else
typedef struct __half {
    unsigned short bits;
} __half;
#endif

#define CUBLAS_VER_MAJOR 12
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION   120000
#define CUBLASWINAPI

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct cublasContext *cublasHandle_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2
} cublasOperation_t;
typedef enum {
    CUBLAS_POINTER_MODE_HOST = 0,
    CUBLAS_POINTER_MODE_DEVICE = 1
} cublasPointerMode_t;
typedef enum {
    CUBLAS_ATOMICS_NOT_ALLOWED = 0,
    CUBLAS_ATOMICS_ALLOWED = 1
} cublasAtomicsMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO23 = 23,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef cudaDataType cublasDataType_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                       cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                       cublasPointerMode_t *mode);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle,
                                    cublasAtomicsMode_t mode);
const char *cublasGetStatusName(cublasStatus_t status);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetVector(int n, int element, const void *x, int incx,
                               void *device, int incy);
cublasStatus_t cublasGetVector(int n, int element, const void *device, int incx,
                               void *y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int cols, int element, const void *a,
                               int lda, void *device, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int cols, int element,
                               const void *device, int lda, void *b, int ldb);

/* S, float and D, double */
#define BRASS_BLAS(L, l, T)                                                    \
    cublasStatus_t cublas##L##axpy_v2(cublasHandle_t handle, int n,            \
                                      const T *alpha, const T *x, int incx,    \
                                      T *y, int incy);                         \
    cublasStatus_t cublas##L##scal_v2(cublasHandle_t handle, int n,            \
                                      const T *alpha, T *x, int incx);         \
    cublasStatus_t cublas##L##copy_v2(cublasHandle_t handle, int n,            \
                                      const T *x, int incx, T *y, int incy);   \
    cublasStatus_t cublas##L##swap_v2(cublasHandle_t handle, int n, T *x,      \
                                      int incx, T *y, int incy);               \
    cublasStatus_t cublas##L##rot_v2(cublasHandle_t handle, int n, T *x,       \
                                     int incx, T *y, int incy, const T *c,     \
                                     const T *s);                              \
    cublasStatus_t cublas##L##dot_v2(cublasHandle_t handle, int n, const T *x, \
                                     int incx, const T *y, int incy,           \
                                     T *result);                               \
    cublasStatus_t cublas##L##nrm2_v2(cublasHandle_t handle, int n,            \
                                      const T *x, int incx, T *result);        \
    cublasStatus_t cublas##L##asum_v2(cublasHandle_t handle, int n,            \
                                      const T *x, int incx, T *result);        \
    cublasStatus_t cublasI##l##amax_v2(cublasHandle_t handle, int n,           \
                                       const T *x, int incx, int *result);     \
    cublasStatus_t cublasI##l##amin_v2(cublasHandle_t handle, int n,           \
                                       const T *x, int incx, int *result);     \
    cublasStatus_t cublas##L##gemv_v2(                                         \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n,          \
        const T *alpha, const T *a, int lda, const T *x, int incx,             \
        const T *beta, T *y, int incy);                                        \
    cublasStatus_t cublas##L##ger_v2(cublasHandle_t handle, int m, int n,      \
                                     const T *alpha, const T *x, int incx,     \
                                     const T *y, int incy, T *a, int lda);     \
    cublasStatus_t cublas##L##geam(                                            \
        cublasHandle_t handle, cublasOperation_t transa,                       \
        cublasOperation_t transb, int m, int n, const T *alpha, const T *a,    \
        int lda, const T *beta, const T *b, int ldb, T *c, int ldc);           \
    cublasStatus_t cublas##L##gemm_v2(                                         \
        cublasHandle_t handle, cublasOperation_t transa,                       \
        cublasOperation_t transb, int m, int n, int k, const T *alpha,         \
        const T *a, int lda, const T *b, int ldb, const T *beta, T *c,         \
        int ldc);                                                              \
    cublasStatus_t cublas##L##gemmBatched(                                     \
        cublasHandle_t handle, cublasOperation_t transa,                       \
        cublasOperation_t transb, int m, int n, int k, const T *alpha,         \
        const T *const a[], int lda, const T *const b[], int ldb,              \
        const T *beta, T *const c[], int ldc, int batch);                      \
    cublasStatus_t cublas##L##gemmStridedBatched(                              \
        cublasHandle_t handle, cublasOperation_t transa,                       \
        cublasOperation_t transb, int m, int n, int k, const T *alpha,         \
        const T *a, int lda, long long int stridea, const T *b, int ldb,       \
        long long int strideb, const T *beta, T *c, int ldc,                   \
        long long int stridec, int batch);
BRASS_BLAS(S, s, float)
BRASS_BLAS(D, d, double)
#undef BRASS_BLAS

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k,
                           const __half *alpha, const __half *a, int lda,
                           const __half *b, int ldb, const __half *beta,
                           __half *c, int ldc);
cublasStatus_t cublasHgemmStridedBatched(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int m, int n, int k, const __half *alpha, const __half *a, int lda,
    long long int stridea, const __half *b, int ldb, long long int strideb,
    const __half *beta, __half *c, int ldc, long long int stridec, int batch);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle,
                                  cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const __half *alpha, const __half *const a[],
                                  int lda, const __half *const b[], int ldb,
                                  const __half *beta, __half *const c[],
                                  int ldc, int batch);
/* Strides are positive. */
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x,
                           cudaDataType xtype, int incx, const void *y,
                           cudaDataType ytype, int incy, void *result,
                           cudaDataType rtype, cudaDataType compute);
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k,
                             const float *alpha, const void *a,
                             cudaDataType atype, int lda, const void *b,
                             cudaDataType btype, int ldb, const float *beta,
                             void *c, cudaDataType ctype, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k,
                            const void *alpha, const void *a,
                            cudaDataType atype, int lda, const void *b,
                            cudaDataType btype, int ldb, const void *beta,
                            void *c, cudaDataType ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo);
cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *const a[],
    cudaDataType atype, int lda, const void *const b[], cudaDataType btype,
    int ldb, const void *beta, void *const c[], cudaDataType ctype, int ldc,
    int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *a, cudaDataType atype,
    int lda, long long int stridea, const void *b, cudaDataType btype, int ldb,
    long long int strideb, const void *beta, void *c, cudaDataType ctype,
    int ldc, long long int stridec, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t algo);

#pragma GCC visibility pop
#ifdef __cplusplus
}
/* The forms of CUDA 10, where a type of data says in what is computed. */
static inline cublasStatus_t
brass_compute(cudaDataType t, cublasComputeType_t *c)
{
    switch (t) {
    case CUDA_R_16F: *c = CUBLAS_COMPUTE_16F; break;
    case CUDA_R_32F: *c = CUBLAS_COMPUTE_32F; break;
    case CUDA_R_64F: *c = CUBLAS_COMPUTE_64F; break;
    case CUDA_R_32I: *c = CUBLAS_COMPUTE_32I; break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t
cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
             cublasOperation_t transb, int m, int n, int k, const void *alpha,
             const void *a, cudaDataType atype, int lda, const void *b,
             cudaDataType btype, int ldb, const void *beta, void *c,
             cudaDataType ctype, int ldc, cudaDataType compute,
             cublasGemmAlgo_t algo)
{
    cublasComputeType_t in;
    cublasStatus_t s = brass_compute(compute, &in);

    return s != CUBLAS_STATUS_SUCCESS
               ? s
               : cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, atype,
                              lda, b, btype, ldb, beta, c, ctype, ldc, in,
                              algo);
}
static inline cublasStatus_t
cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k,
                           const void *alpha, const void *a, cudaDataType atype,
                           int lda, long long int stridea, const void *b,
                           cudaDataType btype, int ldb, long long int strideb,
                           const void *beta, void *c, cudaDataType ctype,
                           int ldc, long long int stridec, int batch,
                           cudaDataType compute, cublasGemmAlgo_t algo)
{
    cublasComputeType_t in;
    cublasStatus_t s = brass_compute(compute, &in);

    return s != CUBLAS_STATUS_SUCCESS
               ? s
               : cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k,
                                            alpha, a, atype, lda, stridea, b,
                                            btype, ldb, strideb, beta, c, ctype,
                                            ldc, stridec, batch, in, algo);
}
#endif

/* The names that programs write. */
#define cublasCreate         cublasCreate_v2
#define cublasDestroy        cublasDestroy_v2
#define cublasGetVersion     cublasGetVersion_v2
#define cublasSetStream      cublasSetStream_v2
#define cublasGetStream      cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSetWorkspace   cublasSetWorkspace_v2
#define cublasSaxpy          cublasSaxpy_v2
#define cublasDaxpy          cublasDaxpy_v2
#define cublasSscal          cublasSscal_v2
#define cublasDscal          cublasDscal_v2
#define cublasScopy          cublasScopy_v2
#define cublasDcopy          cublasDcopy_v2
#define cublasSswap          cublasSswap_v2
#define cublasDswap          cublasDswap_v2
#define cublasSrot           cublasSrot_v2
#define cublasDrot           cublasDrot_v2
#define cublasSdot           cublasSdot_v2
#define cublasDdot           cublasDdot_v2
#define cublasSnrm2          cublasSnrm2_v2
#define cublasDnrm2          cublasDnrm2_v2
#define cublasSasum          cublasSasum_v2
#define cublasDasum          cublasDasum_v2
#define cublasIsamax         cublasIsamax_v2
#define cublasIdamax         cublasIdamax_v2
#define cublasIsamin         cublasIsamin_v2
#define cublasIdamin         cublasIdamin_v2
#define cublasSgemv          cublasSgemv_v2
#define cublasDgemv          cublasDgemv_v2
#define cublasSger           cublasSger_v2
#define cublasDger           cublasDger_v2
#define cublasSgemm          cublasSgemm_v2
#define cublasDgemm          cublasDgemm_v2

#include "brass_pop.h"
#endif
