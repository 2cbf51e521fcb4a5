/* blas_calls.c - cuBLAS: each call is checked and becomes a job of its stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas_handle.h"
#include "cuda/blas/blas_vec.h"

/* ---- jobs --------------------------------------------------------------- */

static bool
reaches(const blas_mat *m, const void *at, int batch)
{
    int64_t step = m->ld < 0 ? -m->ld : m->ld;
    int64_t n = (m->cols - 1) * step + m->rows;
    uint64_t bytes;

    if (m->rows == 0 || m->cols == 0)
        return true;
    bytes = (uint64_t)(n + (m->list ? 0 : (batch - 1) * m->stride)) *
            blas_bytes(m->type);
    return at && bc_mem_fits(at, bytes);
}

bool
blas_in_memory(const blas_mat *m, int batch)
{
    if (!m->list)
        return reaches(m, m->at, batch);
    if (!bc_mem_fits(m->list, (uint64_t)batch * sizeof *m->list))
        return false;
    for (int i = 0; i < batch; i++)
        if (!reaches(m, m->list[i], 1))
            return false;
    return true;
}

static cudaError_t
run(void *payload)
{
    const blas_job *j = payload;
    bool ok;

    bc_lock();
    ok = blas_in_memory(&j->a, j->batch) && blas_in_memory(&j->b, j->batch) &&
         blas_in_memory(&j->c, j->batch) && bc_mem_fits(j->alpha_at, 4) &&
         bc_mem_fits(j->beta_at, 4) &&
         bc_mem_fits(j->out, BR_MIN(blas_bytes(j->type), (size_t)4));
    bc_unlock();
    if (!ok)
        return cudaErrorIllegalAddress;
    return j->body(j) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cublasStatus_t
issue(cublasHandle_t h, const blas_job *j)
{
    struct CUstream_st *s;
    blas_job *p;
    cudaError_t e = cudaErrorInvalidResourceHandle;

    bc_lock();
    s = bc_stream_of(h->stream);
    p = s ? bc_op_new(sizeof *p, run) : NULL;
    if (s && !p)
        e = cudaErrorMemoryAllocation;
    if (p) {
        *p = *j;
        bc_op_of(p)->type = cudaGraphNodeTypeHost;
        e = bc_issue(s, p);
    }
    /* A result on the host is there when the call returns. */
    if (e == cudaSuccess && j->out && h->mode == CUBLAS_POINTER_MODE_HOST)
        e = bc_stream_sync(h->stream);
    bc_unlock();
    return e == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
           : e == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* What alpha and beta are: read now, or where they lie when the job runs. */
static bool
numbers(cublasHandle_t h, blas_job *j, const void *alpha, const void *beta)
{
    if (!alpha || !beta)
        return false;
    if (h->mode == CUBLAS_POINTER_MODE_DEVICE) {
        j->alpha_at = alpha;
        j->beta_at = beta;
        return true;
    }
    j->alpha = blas_number(alpha, j->type);
    j->beta = blas_number(beta, j->type);
    return true;
}

/* ---- vectors ------------------------------------------------------------ */

static blas_mat
vec(const void *x, int inc, int n, cudaDataType type)
{
    return (blas_mat){.at = (void *)(uintptr_t)x,
                      .ld = inc,
                      .rows = n > 0,
                      .cols = n,
                      .type = type};
}

/* x, y and what goes in or out of a function on two vectors. */
enum { PLAIN, NUMBERS, RESULT };
typedef struct two {
    int needs; /* alpha and beta, or somewhere for its result */
    blas_body *body;
    cudaDataType type;
    int n;
    const void *x, *y;
    int incx, incy;
    const void *alpha, *beta;
    void *out;
} two;

static cublasStatus_t
on_vectors(cublasHandle_t h, two v)
{
    int n = BR_MAX(v.n, 0);
    blas_job j = {.body = v.body, .type = v.type, .n = n, .batch = 1};

    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((v.needs == RESULT && !v.out) ||
        (v.needs == NUMBERS && !numbers(h, &j, v.alpha, v.beta)))
        return CUBLAS_STATUS_INVALID_VALUE;
    j.a = vec(v.x, v.incx, n, v.type);
    j.b = vec(v.y, v.incy, v.y ? n : 0, v.type);
    j.out = v.out;
    return n || v.out ? issue(h, &j) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
gemv(cublasHandle_t h, blas_job j, cublasOperation_t t, int lda, int incx,
     int incy, const void *alpha, const void *beta)
{
    int cols, rows;

    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((unsigned)t > CUBLAS_OP_C || j.m < 0 || j.n < 0 ||
        lda < BR_MAX(1, j.m) || incx == 0 || incy == 0 ||
        !numbers(h, &j, alpha, beta))
        return CUBLAS_STATUS_INVALID_VALUE;
    cols = t ? j.m : j.n;
    rows = t ? j.n : j.m;
    j.a = (blas_mat){j.a.at, NULL, lda, 0, j.m, j.n, j.type, t != 0};
    j.b = vec(j.b.at, incx, cols, j.type);
    j.c = vec(j.c.at, incy, rows, j.type);
    j.batch = 1;
    return rows ? issue(h, &j) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
ger(cublasHandle_t h, blas_job j, int incx, int incy, int lda,
    const void *alpha)
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (j.m < 0 || j.n < 0 || lda < BR_MAX(1, j.m) || incx == 0 || incy == 0 ||
        !numbers(h, &j, alpha, alpha))
        return CUBLAS_STATUS_INVALID_VALUE;
    j.a = vec(j.a.at, incx, j.m, j.type);
    j.b = vec(j.b.at, incy, j.n, j.type);
    j.c = (blas_mat){j.c.at, NULL, lda, 0, j.m, j.n, j.type, false};
    j.batch = 1;
    return j.m && j.n ? issue(h, &j) : CUBLAS_STATUS_SUCCESS;
}

/* ---- products ----------------------------------------------------------- */

typedef struct operand {
    const void *at;
    const void *list;
    cudaDataType type;
    int ld;
    long long stride;
} operand;

static bool
matrix(blas_mat *m, operand o, cublasOperation_t t, int rows, int cols)
{
    *m = (blas_mat){(void *)(uintptr_t)o.at, o.list,          o.ld,   o.stride,
                    t ? cols : rows,         t ? rows : cols, o.type, t != 0};
    return (unsigned)t <= CUBLAS_OP_C && o.ld >= BR_MAX(1, m->rows) &&
           o.stride >= 0;
}

static cublasStatus_t
gemm(cublasHandle_t h, const cublasOperation_t t[2], blas_job j, operand a,
     operand b, operand c, const void *const alpha_beta[2])
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (j.m < 0 || j.n < 0 || j.k < 0 || j.batch < 0 ||
        !matrix(&j.a, a, t[0], j.m, j.k) || !matrix(&j.b, b, t[1], j.k, j.n) ||
        !matrix(&j.c, c, CUBLAS_OP_N, j.m, j.n) ||
        !numbers(h, &j, alpha_beta[0], alpha_beta[1]))
        return CUBLAS_STATUS_INVALID_VALUE;
    j.body = blas_gemm;
    return j.m && j.n && j.batch ? issue(h, &j) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
geam(cublasHandle_t h, const cublasOperation_t t[2], blas_job j, operand a,
     operand b, operand c, const void *const alpha_beta[2])
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (j.m < 0 || j.n < 0 || !matrix(&j.a, a, t[0], j.m, j.n) ||
        !matrix(&j.b, b, t[1], j.m, j.n) ||
        !matrix(&j.c, c, CUBLAS_OP_N, j.m, j.n) ||
        !numbers(h, &j, alpha_beta[0], alpha_beta[1]))
        return CUBLAS_STATUS_INVALID_VALUE;
    /* One that counts nothing need not be there. */
    if (!j.alpha_at && j.alpha == 0)
        j.a.rows = 0;
    if (!j.beta_at && j.beta == 0)
        j.b.rows = 0;
    return j.m && j.n ? issue(h, &j) : CUBLAS_STATUS_SUCCESS;
}

bool
blas_product_type(cudaDataType a, cudaDataType b, cudaDataType c,
                  cublasComputeType_t compute, cudaDataType *scalar)
{
    bool small = a == CUDA_R_16F || a == CUDA_R_16BF;

    switch (compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
        *scalar = CUDA_R_64F;
        return a == CUDA_R_64F && b == a && c == a;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
        *scalar = CUDA_R_32I;
        return a == CUDA_R_8I && b == a && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
        *scalar = CUDA_R_16F;
        return a == CUDA_R_16F && b == a && c == a;
    default:
        *scalar = CUDA_R_32F;
        return a == b && (a == CUDA_R_32F || a == CUDA_R_8I || small) &&
               (c == CUDA_R_32F || (small && c == a));
    }
}

static cublasStatus_t
gemm_ex(cublasHandle_t h, const cublasOperation_t t[2], blas_job j, operand a,
        operand b, operand c, const void *const alpha_beta[2],
        cublasComputeType_t compute)
{
    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!blas_product_type(a.type, b.type, c.type, compute, &j.type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return gemm(h, t, j, a, b, c, alpha_beta);
}

/* ---- the functions ------------------------------------------------------ */

#define H   cublasHandle_t h
#define S   cublasStatus_t
#define OPS cublasOperation_t ta, cublasOperation_t tb
#define T_                       \
    (const cublasOperation_t[2]) \
    {                            \
        ta, tb                   \
    }
#define AB_                \
    (const void *const[2]) \
    {                      \
        alpha, beta        \
    }
#define ON(...) return on_vectors(h, (two){__VA_ARGS__})

#define FUNCTIONS(L, l, T, R, t)                                               \
    S cublas##L##axpy_v2(H, int n, const T *alpha, const T *x, int incx, T *y, \
                         int incy)                                             \
    {                                                                          \
        ON(NUMBERS, blas_axpy_##t, R, n, x, y, incx, incy, alpha, alpha,       \
           NULL);                                                              \
    }                                                                          \
    S cublas##L##scal_v2(H, int n, const T *alpha, T *x, int incx)             \
    {                                                                          \
        ON(NUMBERS, blas_scal_##t, R, n, x, NULL, incx, 0, alpha, alpha,       \
           NULL);                                                              \
    }                                                                          \
    S cublas##L##copy_v2(H, int n, const T *x, int incx, T *y, int incy)       \
    {                                                                          \
        ON(PLAIN, blas_copy_##t, R, n, x, y, incx, incy, NULL, NULL, NULL);    \
    }                                                                          \
    S cublas##L##swap_v2(H, int n, T *x, int incx, T *y, int incy)             \
    {                                                                          \
        ON(PLAIN, blas_swap_##t, R, n, x, y, incx, incy, NULL, NULL, NULL);    \
    }                                                                          \
    S cublas##L##rot_v2(H, int n, T *x, int incx, T *y, int incy, const T *c,  \
                        const T *s)                                            \
    {                                                                          \
        ON(NUMBERS, blas_rot_##t, R, n, x, y, incx, incy, c, s, NULL);         \
    }                                                                          \
    S cublas##L##dot_v2(H, int n, const T *x, int incx, const T *y, int incy,  \
                        T *result)                                             \
    {                                                                          \
        ON(RESULT, blas_dot_##t, R, n, x, y, incx, incy, NULL, NULL, result);  \
    }                                                                          \
    S cublas##L##nrm2_v2(H, int n, const T *x, int incx, T *result)            \
    {                                                                          \
        ON(RESULT, blas_nrm2_##t, R, n, x, NULL, incx, 0, NULL, NULL, result); \
    }                                                                          \
    S cublas##L##asum_v2(H, int n, const T *x, int incx, T *result)            \
    {                                                                          \
        ON(RESULT, blas_asum_##t, R, n, x, NULL, incx, 0, NULL, NULL, result); \
    }                                                                          \
    S cublasI##l##amax_v2(H, int n, const T *x, int incx, int *result)         \
    {                                                                          \
        ON(RESULT, blas_amax_##t, R, n, x, NULL, incx, 0, NULL, NULL, result); \
    }                                                                          \
    S cublasI##l##amin_v2(H, int n, const T *x, int incx, int *result)         \
    {                                                                          \
        ON(RESULT, blas_amin_##t, R, n, x, NULL, incx, 0, NULL, NULL, result); \
    }                                                                          \
    S cublas##L##gemv_v2(H, cublasOperation_t ta, int m, int n,                \
                         const T *alpha, const T *a, int lda, const T *x,      \
                         int incx, const T *beta, T *y, int incy)              \
    {                                                                          \
        blas_job j = {.body = blas_gemv_##t, .type = R, .m = m, .n = n};       \
                                                                               \
        j.a.at = (void *)(uintptr_t)a;                                         \
        j.b.at = (void *)(uintptr_t)x;                                         \
        j.c.at = y;                                                            \
        return gemv(h, j, ta, lda, incx, incy, alpha, beta);                   \
    }                                                                          \
    S cublas##L##ger_v2(H, int m, int n, const T *alpha, const T *x, int incx, \
                        const T *y, int incy, T *a, int lda)                   \
    {                                                                          \
        blas_job j = {.body = blas_ger_##t, .type = R, .m = m, .n = n};        \
                                                                               \
        j.a.at = (void *)(uintptr_t)x;                                         \
        j.b.at = (void *)(uintptr_t)y;                                         \
        j.c.at = a;                                                            \
        return ger(h, j, incx, incy, lda, alpha);                              \
    }                                                                          \
    S cublas##L##geam(H, OPS, int m, int n, const T *alpha, const T *a,        \
                      int lda, const T *beta, const T *b, int ldb, T *c,       \
                      int ldc)                                                 \
    {                                                                          \
        blas_job j = {                                                         \
            .body = blas_geam_##t, .type = R, .m = m, .n = n, .batch = 1};     \
                                                                               \
        return geam(h, T_, j, (operand){a, NULL, R, lda, 0},                   \
                    (operand){b, NULL, R, ldb, 0},                             \
                    (operand){c, NULL, R, ldc, 0}, AB_);                       \
    }                                                                          \
    S cublas##L##gemm_v2(H, OPS, int m, int n, int k, const T *alpha,          \
                         const T *a, int lda, const T *b, int ldb,             \
                         const T *beta, T *c, int ldc)                         \
    {                                                                          \
        blas_job j = {.type = R, .m = m, .n = n, .k = k, .batch = 1};          \
                                                                               \
        return gemm(h, T_, j, (operand){a, NULL, R, lda, 0},                   \
                    (operand){b, NULL, R, ldb, 0},                             \
                    (operand){c, NULL, R, ldc, 0}, AB_);                       \
    }                                                                          \
    S cublas##L##gemmBatched(H, OPS, int m, int n, int k, const T *alpha,      \
                             const T *const a[], int lda, const T *const b[],  \
                             int ldb, const T *beta, T *const c[], int ldc,    \
                             int batch)                                        \
    {                                                                          \
        blas_job j = {.type = R, .m = m, .n = n, .k = k, .batch = batch};      \
                                                                               \
        return gemm(h, T_, j, (operand){NULL, a, R, lda, 0},                   \
                    (operand){NULL, b, R, ldb, 0},                             \
                    (operand){NULL, c, R, ldc, 0}, AB_);                       \
    }                                                                          \
    S cublas##L##gemmStridedBatched(                                           \
        H, OPS, int m, int n, int k, const T *alpha, const T *a, int lda,      \
        long long sa, const T *b, int ldb, long long sb, const T *beta, T *c,  \
        int ldc, long long sc, int batch)                                      \
    {                                                                          \
        blas_job j = {.type = R, .m = m, .n = n, .k = k, .batch = batch};      \
                                                                               \
        return gemm(h, T_, j, (operand){a, NULL, R, lda, sa},                  \
                    (operand){b, NULL, R, ldb, sb},                            \
                    (operand){c, NULL, R, ldc, sc}, AB_);                      \
    }
FUNCTIONS(S, s, float, CUDA_R_32F, f32)
FUNCTIONS(D, d, double, CUDA_R_64F, f64)

S
cublasHgemm(H, OPS, int m, int n, int k, const __half *alpha, const __half *a,
            int lda, const __half *b, int ldb, const __half *beta, __half *c,
            int ldc)
{
    return cublasHgemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b,
                                     ldb, 0, beta, c, ldc, 0, 1);
}

S
cublasHgemmStridedBatched(H, OPS, int m, int n, int k, const __half *alpha,
                          const __half *a, int lda, long long sa,
                          const __half *b, int ldb, long long sb,
                          const __half *beta, __half *c, int ldc, long long sc,
                          int batch)
{
    blas_job j = {.type = CUDA_R_16F, .m = m, .n = n, .k = k, .batch = batch};

    return gemm(h, T_, j, (operand){a, NULL, CUDA_R_16F, lda, sa},
                (operand){b, NULL, CUDA_R_16F, ldb, sb},
                (operand){c, NULL, CUDA_R_16F, ldc, sc}, AB_);
}

S
cublasHgemmBatched(H, OPS, int m, int n, int k, const __half *alpha,
                   const __half *const a[], int lda, const __half *const b[],
                   int ldb, const __half *beta, __half *const c[], int ldc,
                   int batch)
{
    blas_job j = {.type = CUDA_R_16F, .m = m, .n = n, .k = k, .batch = batch};

    return gemm(h, T_, j, (operand){NULL, a, CUDA_R_16F, lda, 0},
                (operand){NULL, b, CUDA_R_16F, ldb, 0},
                (operand){NULL, c, CUDA_R_16F, ldc, 0}, AB_);
}

static bool
is_float(cudaDataType t)
{
    return t == CUDA_R_32F || t == CUDA_R_64F || t == CUDA_R_16F ||
           t == CUDA_R_16BF;
}

S
cublasDotEx(H, int n, const void *x, cudaDataType xt, int incx, const void *y,
            cudaDataType yt, int incy, void *result, cudaDataType rt,
            cudaDataType et)
{
    blas_job j = {.body = blas_dot_of, .type = rt, .n = BR_MAX(n, 0)};

    if (!blas_is(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((et != CUDA_R_32F && et != CUDA_R_64F) || !is_float(xt) ||
        !is_float(yt) || !is_float(rt))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (xt == rt && yt == rt && rt == CUDA_R_32F)
        j.body = blas_dot_f32;
    if (xt == rt && yt == rt && rt == CUDA_R_64F)
        j.body = blas_dot_f64;
    j.a = vec(x, incx, j.n, xt);
    j.b = vec(y, incy, j.n, yt);
    j.batch = 1;
    j.out = result;
    return issue(h, &j);
}

S
cublasSgemmEx(H, OPS, int m, int n, int k, const float *alpha, const void *a,
              cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb,
              const float *beta, void *c, cudaDataType ct, int ldc)
{
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta,
                        c, ct, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

S
cublasGemmEx(H, OPS, int m, int n, int k, const void *alpha, const void *a,
             cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb,
             const void *beta, void *c, cudaDataType ct, int ldc,
             cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0,
                                      b, bt, ldb, 0, beta, c, ct, ldc, 0, 1,
                                      compute, algo);
}

S
cublasGemmBatchedEx(H, OPS, int m, int n, int k, const void *alpha,
                    const void *const a[], cudaDataType at, int lda,
                    const void *const b[], cudaDataType bt, int ldb,
                    const void *beta, void *const c[], cudaDataType ct, int ldc,
                    int batch, cublasComputeType_t compute,
                    cublasGemmAlgo_t algo)
{
    blas_job j = {.m = m, .n = n, .k = k, .batch = batch};

    (void)algo;
    return gemm_ex(h, T_, j, (operand){NULL, a, at, lda, 0},
                   (operand){NULL, b, bt, ldb, 0},
                   (operand){NULL, c, ct, ldc, 0}, AB_, compute);
}

S
cublasGemmStridedBatchedEx(H, OPS, int m, int n, int k, const void *alpha,
                           const void *a, cudaDataType at, int lda,
                           long long sa, const void *b, cudaDataType bt,
                           int ldb, long long sb, const void *beta, void *c,
                           cudaDataType ct, int ldc, long long sc, int batch,
                           cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    blas_job j = {.m = m, .n = n, .k = k, .batch = batch};

    (void)algo;
    return gemm_ex(h, T_, j, (operand){a, NULL, at, lda, sa},
                   (operand){b, NULL, bt, ldb, sb},
                   (operand){c, NULL, ct, ldc, sc}, AB_, compute);
}
