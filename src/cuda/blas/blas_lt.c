/* blas_lt.c - cublasLt: one product, and what comes after each sum.
 *
 *   layouts -> views by columns -> (C into D) -> blas_gemm -> bias, GELU, ...
 *
 * A matrix by rows is its transpose by columns; when D is, the transposed
 * product is computed. Where D has 16 bits and something follows, sums stay
 * floats until it is done: one rounding.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas_handle.h"

#include "base/half.h"
#define BRASS_CUBLAS_LT_INSIDE
#include "cuda/cublasLt.h"

#include <math.h>
#include <string.h>

enum { RELU = 2, BIAS = 4, GELU = 32, AUX = 128 };
enum { MAX_BATCH = 65535 };
#define MAX_STRIDE ((int64_t)1 << 40) /* no product of these overflows */

struct cublasLtMatmulDesc {
    cublasComputeType_t compute;
    cudaDataType_t scale, bias_type;
    cublasLtPointerMode_t mode;
    cublasOperation_t t[3]; /* of a, b, c */
    cublasLtEpilogue_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_ld, aux_stride, bias_stride;
};
struct cublasLtMatrixLayout {
    cudaDataType_t type;
    cublasLtOrder_t order;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
};
struct cublasLtMatmulPreference {
    uint64_t workspace;
    uint32_t search;
};
_Static_assert(sizeof(struct cublasLtMatmulDesc) <= 256 &&
                   sizeof(struct cublasLtMatrixLayout) <= 64 &&
                   sizeof(struct cublasLtMatmulPreference) <= 64,
               "programs have that much room for them (cublasLt.h)");

/* ---- descriptors -------------------------------------------------------- */

static void *
desc_field(struct cublasLtMatmulDesc *d, int attr, size_t *n)
{
    switch (attr) {
#define F(name, field) \
    case CUBLASLT_MATMUL_DESC_##name: *n = sizeof d->field; return &d->field;
        F(COMPUTE_TYPE, compute)
        F(SCALE_TYPE, scale)
        F(POINTER_MODE, mode)
        F(TRANSA, t[0])
        F(TRANSB, t[1])
        F(TRANSC, t[2])
        F(EPILOGUE, epilogue)
        F(BIAS_POINTER, bias)
        F(BIAS_BATCH_STRIDE, bias_stride)
        F(EPILOGUE_AUX_POINTER, aux)
        F(EPILOGUE_AUX_LD, aux_ld)
        F(EPILOGUE_AUX_BATCH_STRIDE, aux_stride)
        F(BIAS_DATA_TYPE, bias_type)
#undef F
    default: return NULL;
    }
}

static void *
layout_field(struct cublasLtMatrixLayout *l, int attr, size_t *n)
{
    switch (attr) {
#define F(name, field) \
    case CUBLASLT_MATRIX_LAYOUT_##name: *n = sizeof l->field; return &l->field;
        F(TYPE, type)
        F(ORDER, order)
        F(ROWS, rows)
        F(COLS, cols)
        F(LD, ld)
        F(BATCH_COUNT, batch)
        F(STRIDED_BATCH_OFFSET, stride)
#undef F
    default: return NULL;
    }
}

static void *
pref_field(struct cublasLtMatmulPreference *p, int attr, size_t *n)
{
    switch (attr) {
#define F(name, field) \
    case CUBLASLT_MATMUL_PREF_##name: *n = sizeof p->field; return &p->field;
        F(SEARCH_MODE, search)
        F(MAX_WORKSPACE_BYTES, workspace)
#undef F
    default: return NULL;
    }
}

static cublasStatus_t
set(void *field, size_t size, const void *value, size_t bytes)
{
    if (!field)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!value || bytes != size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
get(const void *field, size_t size, void *value, size_t bytes, size_t *written)
{
    if (!field)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (written)
        *written = size;
    if (bytes == 0 && written)
        return CUBLAS_STATUS_SUCCESS; /* asks for the size */
    if (!value || bytes < size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, field, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
make(void *out, size_t n)
{
    void *p = br_try_calloc(1, n);

    memcpy(out, &p, sizeof p);
    return p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t
gone(void *p)
{
    br_free(p);
    return CUBLAS_STATUS_SUCCESS;
}

size_t
cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

cublasStatus_t
cublasLtCreate(cublasLtHandle_t *handle)
{
    return cublasCreate_v2(handle);
}

cublasStatus_t
cublasLtDestroy(cublasLtHandle_t handle)
{
    return cublasDestroy_v2(handle);
}

cublasStatus_t
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                         cublasComputeType_t compute, cudaDataType_t scale)
{
    cublasStatus_t s =
        desc ? make(desc, sizeof **desc) : CUBLAS_STATUS_INVALID_VALUE;

    return s == CUBLAS_STATUS_SUCCESS
               ? cublasLtMatmulDescInit(*desc, compute, scale)
               : s;
}

cublasStatus_t
cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute,
                       cudaDataType_t scale)
{
    if (!desc)
        return CUBLAS_STATUS_INVALID_VALUE;
    *desc = (struct cublasLtMatmulDesc){.compute = compute,
                                        .scale = scale,
                                        .bias_type = (cudaDataType_t)-1,
                                        .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return gone(desc);
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attr,
                               const void *value, size_t bytes)
{
    size_t n = 0;
    void *f = desc ? desc_field(desc, (int)attr, &n) : NULL;

    return desc ? set(f, n, value, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attr, void *value,
                               size_t bytes, size_t *written)
{
    size_t n = 0;
    void *f = desc ? desc_field(desc, (int)attr, &n) : NULL;

    return desc ? get(f, n, value, bytes, written)
                : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                           uint64_t rows, uint64_t cols, int64_t ld)
{
    cublasStatus_t s =
        layout ? make(layout, sizeof **layout) : CUBLAS_STATUS_INVALID_VALUE;

    return s == CUBLAS_STATUS_SUCCESS
               ? cublasLtMatrixLayoutInit(*layout, type, rows, cols, ld)
               : s;
}

cublasStatus_t
cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type,
                         uint64_t rows, uint64_t cols, int64_t ld)
{
    if (!layout)
        return CUBLAS_STATUS_INVALID_VALUE;
    *layout = (struct cublasLtMatrixLayout){
        .type = type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return gone(layout);
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attr,
                                 const void *value, size_t bytes)
{
    size_t n = 0;
    void *f = layout ? layout_field(layout, (int)attr, &n) : NULL;

    return layout ? set(f, n, value, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attr,
                                 void *value, size_t bytes, size_t *written)
{
    size_t n = 0;
    void *f = layout ? layout_field(layout, (int)attr, &n) : NULL;

    return layout ? get(f, n, value, bytes, written)
                  : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    return pref ? make(pref, sizeof **pref) : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t pref)
{
    if (!pref)
        return CUBLAS_STATUS_INVALID_VALUE;
    *pref = (struct cublasLtMatmulPreference){0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    return gone(pref);
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     cublasLtMatmulPreferenceAttributes_t attr,
                                     const void *value, size_t bytes)
{
    size_t n = 0;
    void *f = pref ? pref_field(pref, (int)attr, &n) : NULL;

    return pref ? set(f, n, value, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- what follows a sum ------------------------------------------------- */

typedef struct lt_job {
    blas_job gemm; /* its c is d */
    blas_mat c, bias, aux;
    bool by_rows; /* d is, so that bias goes along the view's columns */
    int epilogue;
} lt_job;

static bool
narrow(cudaDataType type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF;
}

static void *
element(const blas_mat *m, int batch, int64_t row, int64_t col)
{
    return (char *)m->at + (batch * m->stride + col * m->ld + row) *
                               (int64_t)blas_bytes(m->type);
}

static double
load(const blas_mat *m, int batch, int64_t row, int64_t col)
{
    const void *p = element(m, batch, row, col);

    return m->type == CUDA_R_16BF ? (double)br_bf16_to_f32(*(const uint16_t *)p)
                                  : blas_number(p, m->type);
}

static void
store(const blas_mat *m, int batch, int64_t row, int64_t col, double x)
{
    void *p = element(m, batch, row, col);

    if (m->type == CUDA_R_64F)
        *(double *)p = x;
    else if (m->type == CUDA_R_32F)
        *(float *)p = (float)x;
    else if (m->type == CUDA_R_32I)
        *(int32_t *)p = (int32_t)x; /* C's, copied */
    else
        *(uint16_t *)p = m->type == CUDA_R_16F ? br_f32_to_f16((float)x)
                                               : br_f32_to_bf16((float)x);
}

static void
follow(const lt_job *j, int batch, const blas_mat *sums)
{
    const blas_mat *d = &j->gemm.c;
    int from = sums == d ? batch : 0;

    for (int64_t col = 0; col < d->cols; col++)
        for (int64_t row = 0; row < d->rows; row++) {
            double x = load(sums, from, row, col);

            if (j->epilogue & BIAS)
                x += load(&j->bias, batch, j->by_rows ? col : row, 0);
            if (j->epilogue & AUX)
                store(&j->aux, batch, row, col, x);
            if (j->epilogue & RELU)
                x = x > 0 || x != x ? x : 0;
            if (j->epilogue & GELU)
                x = 0.5 * x *
                    (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
            store(d, batch, row, col, x);
        }
}

static bool
one(const lt_job *j, int batch, float *room, double beta)
{
    blas_job g = j->gemm;
    const blas_mat *d = &j->gemm.c;

    g.batch = 1;
    g.a.at = element(&g.a, batch, 0, 0);
    g.b.at = element(&g.b, batch, 0, 0);
    g.c.at = element(&g.c, batch, 0, 0);
    if (room) {
        g.c.at = room;
        g.c.ld = g.c.rows;
        g.c.stride = 0;
        g.c.type = CUDA_R_32F;
    }
    if (beta != 0 && (room || j->c.at != d->at))
        for (int64_t col = 0; col < d->cols; col++)
            for (int64_t row = 0; row < d->rows; row++)
                store(&g.c, 0, row, col, load(&j->c, batch, row, col));
    if (!blas_gemm(&g))
        return false;
    if (j->epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        follow(j, batch, room ? &g.c : d);
    return true;
}

static cudaError_t
run(void *payload)
{
    const lt_job *j = payload;
    const blas_job *g = &j->gemm;
    double beta;
    float *room = NULL;
    bool ok;

    bc_lock();
    ok = blas_in_memory(&g->a, g->batch) && blas_in_memory(&g->b, g->batch) &&
         blas_in_memory(&g->c, g->batch) && bc_mem_fits(g->alpha_at, 4) &&
         bc_mem_fits(g->beta_at, 4) &&
         (!(j->epilogue & BIAS) || blas_in_memory(&j->bias, g->batch)) &&
         (!(j->epilogue & AUX) || blas_in_memory(&j->aux, g->batch));
    beta = !ok ? 0 : g->beta_at ? blas_number(g->beta_at, g->type) : g->beta;
    ok = ok && (beta == 0 || blas_in_memory(&j->c, g->batch));
    bc_unlock();
    if (!ok)
        return cudaErrorIllegalAddress;
    if (narrow(g->c.type) && j->epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
        room = br_try_alloc((size_t)g->m * (size_t)g->n * sizeof *room);
        if (!room)
            return cudaErrorMemoryAllocation;
    }
    for (int k = 0; k < g->batch && ok; k++)
        ok = one(j, k, room, beta);
    br_free(room);
    return ok ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- a call ------------------------------------------------------------- */

static bool
stride_ok(int64_t stride)
{
    return stride >= 0 && stride <= MAX_STRIDE;
}

/* The view by columns of a layout, transposed or not. */
static bool
view(blas_mat *m, const struct cublasLtMatrixLayout *l, const void *at,
     cublasOperation_t t)
{
    bool rows = l->order == CUBLASLT_ORDER_ROW;
    uint64_t r = rows ? l->cols : l->rows, c = rows ? l->rows : l->cols;

    *m = (blas_mat){.at = (void *)(uintptr_t)at,
                    .ld = l->ld,
                    .stride = l->stride,
                    .rows = (int)r,
                    .cols = (int)c,
                    .type = l->type,
                    .t = (t != CUBLAS_OP_N) != rows};
    return r <= INT32_MAX && c <= INT32_MAX && l->ld <= INT32_MAX &&
           l->ld >= (int64_t)BR_MAX(1u, r) && stride_ok(l->stride) &&
           l->batch > 0 && l->batch <= MAX_BATCH;
}

static cublasStatus_t
vectors(lt_job *j, const struct cublasLtMatmulDesc *d, int rows)
{
    cudaDataType type = (int)d->bias_type == -1 ? j->gemm.c.type : d->bias_type;

    if (j->epilogue & BIAS) {
        j->bias = (blas_mat){.at = (void *)(uintptr_t)d->bias,
                             .ld = rows,
                             .stride = d->bias_stride,
                             .rows = rows,
                             .cols = 1,
                             .type = type};
        if (!d->bias || !stride_ok(d->bias_stride))
            return CUBLAS_STATUS_INVALID_VALUE;
        if (type != CUDA_R_32F && type != j->gemm.c.type)
            return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (j->epilogue & AUX) {
        j->aux = j->gemm.c;
        j->aux.at = d->aux;
        j->aux.ld = d->aux_ld;
        j->aux.stride = d->aux_stride;
        if (!d->aux || d->aux_ld < BR_MAX(1, j->aux.rows) ||
            d->aux_ld > INT32_MAX || !stride_ok(d->aux_stride))
            return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}

typedef struct operands {
    const struct cublasLtMatrixLayout *a, *b, *c, *d;
    const void *at_a, *at_b, *at_c;
    void *at_d;
} operands;

static bool
supported(const struct cublasLtMatmulDesc *desc, const operands *o,
          cudaDataType *scalar)
{
    static const int known[] = {1, 2, 4, 6, 32, 36, 160, 164};
    bool ok = false;

    for (size_t k = 0; k < BR_COUNT(known); k++)
        ok |= (int)desc->epilogue == known[k];
    return ok && desc->t[2] == CUBLAS_OP_N && o->c->order == o->d->order &&
           (unsigned)o->a->order <= CUBLASLT_ORDER_ROW &&
           (unsigned)o->b->order <= CUBLASLT_ORDER_ROW &&
           (unsigned)o->d->order <= CUBLASLT_ORDER_ROW &&
           o->c->type == o->d->type &&
           blas_product_type(o->a->type, o->b->type, o->d->type, desc->compute,
                             scalar) &&
           *scalar == desc->scale &&
           (o->d->type != CUDA_R_32I ||
            desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
}

static cublasStatus_t
prepare(lt_job *j, const struct cublasLtMatmulDesc *desc, const operands *o)
{
    blas_job *g = &j->gemm;
    blas_mat a, b;
    cudaDataType scalar;

    if (!supported(desc, o, &scalar))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!view(&a, o->a, o->at_a, desc->t[0]) ||
        !view(&b, o->b, o->at_b, desc->t[1]) ||
        !view(&j->c, o->c, o->at_c, CUBLAS_OP_N) ||
        !view(&g->c, o->d, o->at_d, CUBLAS_OP_N) ||
        o->a->batch != o->d->batch || o->b->batch != o->d->batch ||
        o->c->batch != o->d->batch)
        return CUBLAS_STATUS_INVALID_VALUE;
    j->by_rows = o->d->order == CUBLASLT_ORDER_ROW;
    g->a = j->by_rows ? b : a;
    g->b = j->by_rows ? a : b;
    g->a.t ^= j->by_rows;
    g->b.t ^= j->by_rows;
    g->c.t = j->c.t = false;
    g->m = g->c.rows;
    g->n = g->c.cols;
    g->k = g->a.t ? g->a.rows : g->a.cols;
    g->batch = o->d->batch;
    g->type = scalar;
    j->epilogue = (int)desc->epilogue;
    if ((g->a.t ? g->a.cols : g->a.rows) != g->m ||
        (g->b.t ? g->b.cols : g->b.rows) != g->k ||
        (g->b.t ? g->b.rows : g->b.cols) != g->n || j->c.rows != g->m ||
        j->c.cols != g->n)
        return CUBLAS_STATUS_INVALID_VALUE;
    return vectors(j, desc, (int)o->d->rows);
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t pref, int most,
    cublasLtMatmulHeuristicResult_t results[], int *n)
{
    struct cublasLtMatmulDesc plain;
    lt_job j = {0};
    cublasStatus_t s;

    (void)pref;
    if (!blas_is(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!desc || !a || !b || !c || !d || most < 1 || !results || !n)
        return CUBLAS_STATUS_INVALID_VALUE;
    plain = *desc; /* where bias and aux lie may come later */
    plain.bias = plain.aux = &j;
    plain.aux_ld = INT32_MAX;
    s = prepare(&j, &plain, &(operands){.a = a, .b = b, .c = c, .d = d});
    *n = s == CUBLAS_STATUS_SUCCESS;
    if (*n)
        results[0] = (cublasLtMatmulHeuristicResult_t){.wavesCount = 1};
    return s;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
               const void *alpha, const void *A, cublasLtMatrixLayout_t a,
               const void *B, cublasLtMatrixLayout_t b, const void *beta,
               const void *C, cublasLtMatrixLayout_t c, void *D,
               cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    lt_job j = {0}, *p;
    cublasStatus_t s;
    cudaError_t e;

    (void)algo, (void)workspace, (void)workspace_bytes; /* one way, no room */
    if (!blas_is(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!desc || !a || !b || !c || !d || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    s = prepare(&j, desc, &(operands){a, b, c, d, A, B, C, D});
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    if (desc->mode == CUBLASLT_POINTER_MODE_DEVICE) {
        j.gemm.alpha_at = alpha;
        j.gemm.beta_at = beta;
    } else {
        j.gemm.alpha = blas_number(alpha, j.gemm.type);
        j.gemm.beta = blas_number(beta, j.gemm.type);
    }
    if (!j.gemm.m || !j.gemm.n)
        return CUBLAS_STATUS_SUCCESS;
    p = bc_op_new(sizeof *p, run);
    if (!p)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *p = j;
    bc_op_of(p)->type = cudaGraphNodeTypeHost;
    bc_lock();
    if (bc_stream_of(stream)) {
        e = bc_issue(bc_stream_of(stream), p);
    } else {
        bc_op_free(p);
        e = cudaErrorInvalidResourceHandle;
    }
    bc_unlock();
    return e == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
           : e == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}
