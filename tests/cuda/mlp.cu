/* mlp.cu - a layer as inference does it: cublasLt with bias and GELU, in float,
 * half and bfloat16, by columns and rows, batches; weights in fp8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define LT(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

static float value(float x) { return x; }
static float value(__half x) { return __half2float(x); }
static float value(__nv_bfloat16 x) { return __bfloat162float(x); }

struct Shape {
    int m, n, k, batch;
    bool ta, tb, rows; /* transposed; D and C by rows */
    int epilogue;
    float beta;
};

static float
gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

template <class T>
static cublasLtMatrixLayout_t
layout(cudaDataType type, int rows, int cols, bool by_rows, int pad, int batch,
       std::vector<T> &v)
{
    cublasLtMatrixLayout_t l;
    cublasLtOrder_t order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    int ld = (by_rows ? cols : rows) + pad;
    int64_t stride = (int64_t)ld * (by_rows ? rows : cols);

    LT(cublasLtMatrixLayoutCreate(&l, type, rows, cols, ld));
    LT(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                        sizeof order));
    LT(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                        &batch, sizeof batch));
    LT(cublasLtMatrixLayoutSetAttribute(
        l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
        sizeof stride));
    v.resize(stride * batch);
    for (size_t k = 0; k < v.size(); k++)
        v[k] = T(rnd() - 0.5f);
    return l;
}

template <class T>
static void
layer(cublasLtHandle_t h, cudaDataType type, Shape s, double tol)
{
    std::vector<T> a, b, c, d, x, bias(s.m);
    cublasLtMatrixLayout_t la, lb, lc, ld;
    cublasLtMatmulDesc_t desc;
    cublasLtMatmulPreference_t pref;
    cublasLtMatmulHeuristicResult_t best;
    cublasOperation_t ta = s.ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t tb = s.tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    float alpha = 0.75f;
    int found = 0;

    la = layout(type, s.ta ? s.k : s.m, s.ta ? s.m : s.k, false, 1, s.batch, a);
    lb = layout(type, s.tb ? s.n : s.k, s.tb ? s.k : s.n, s.rows, 2, s.batch, b);
    lc = layout(type, s.m, s.n, s.rows, 3, s.batch, c);
    ld = layout(type, s.m, s.n, s.rows, 0, s.batch, d);
    for (T &v : bias)
        v = T(rnd());
    x = d;
    Dev<T> da(a), db(b), dc(c), dd(d), dbias(bias), dx(x);
    T *bias_at = dbias.p, *aux = dx.p;
    int64_t aux_ld = s.rows ? s.n : s.m, aux_stride = (int64_t)s.m * s.n;

    LT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
#define SET(name, v) \
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_##name, &v, \
                                      sizeof v))
    SET(TRANSA, ta);
    SET(TRANSB, tb);
    SET(EPILOGUE, s.epilogue);
    SET(BIAS_POINTER, bias_at);
    SET(EPILOGUE_AUX_POINTER, aux);
    SET(EPILOGUE_AUX_LD, aux_ld);
    SET(EPILOGUE_AUX_BATCH_STRIDE, aux_stride);
    LT(cublasLtMatmulPreferenceCreate(&pref));
    LT(cublasLtMatmulAlgoGetHeuristic(h, desc, la, lb, lc, ld, pref, 1, &best,
                                      &found));
    EXPECT(found == 1 && best.workspaceSize == 0);
    LT(cublasLtMatmul(h, desc, &alpha, da, la, db, lb, &s.beta, dc, lc, dd, ld,
                      &best.algo, NULL, 0, 0));
    d = dd.get();
    x = dx.get();
    int bad = 0;
    for (int z = 0; z < s.batch; z++)
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j < s.n; j++) {
                /* how far elements of a matrix lie, by its layout */
                size_t lda = (s.ta ? s.k : s.m) + 1;
                size_t ldb = (s.rows ? (s.tb ? s.k : s.n) : s.tb ? s.n : s.k) + 2;
                size_t ldc = (s.rows ? s.n : s.m) + 3, ldd = s.rows ? s.n : s.m;
                size_t za = a.size() / s.batch * z, zb = b.size() / s.batch * z;
                size_t zc = c.size() / s.batch * z, zd = d.size() / s.batch * z;
                double sum = 0;

                for (int k = 0; k < s.k; k++) {
                    size_t ia = s.ta ? k + i * lda : i + k * lda;
                    bool flat = s.tb != s.rows; /* j is the near index */

                    sum += (double)value(a[za + ia]) *
                           value(b[zb + (flat ? j + k * ldb : k + j * ldb)]);
                }
                sum = alpha * sum +
                      s.beta * value(c[zc + (s.rows ? i * ldc + j
                                                    : j * ldc + i)]);
                sum += s.epilogue & 4 ? value(bias[i]) : 0;
                size_t at = zd + (s.rows ? i * ldd + j : j * ldd + i);

                bad += s.epilogue & 128 && !near(value(x[at]), sum, tol);
                sum = s.epilogue & 32  ? gelu((float)sum)
                      : s.epilogue & 2 ? fmax(sum, 0)
                                       : sum;
                bad += !near(value(d[at]), sum, tol);
            }
    EXPECT(bad == 0);
    cublasLtMatmulPreferenceDestroy(pref);
    cublasLtMatmulDescDestroy(desc);
    for (cublasLtMatrixLayout_t l : {la, lb, lc, ld})
        cublasLtMatrixLayoutDestroy(l);
}

/* Descriptors that lie in the program's own memory. */
static void
by_value(cublasLtHandle_t h)
{
    cublasLtMatmulDescOpaque_t desc = {};
    cublasLtMatrixLayoutOpaque_t one = {}, two = {};
    cublasLtMatmulPreferenceOpaque_t pref = {};
    cublasOperation_t t = CUBLAS_OP_T;
    size_t room = 1 << 20;
    Dev<float> a(std::vector<float>{1, 2, 3, 4}), d(4);
    float alpha = 1, beta = 0;

    LT(cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_TRANSB, &t,
                                      sizeof t));
    LT(cublasLtMatrixLayoutInit(&one, CUDA_R_32F, 2, 2, 2));
    LT(cublasLtMatrixLayoutInit(&two, CUDA_R_32F, 2, 2, 2));
    LT(cublasLtMatmulPreferenceInit(&pref));
    LT(cublasLtMatmulPreferenceSetAttribute(
        &pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    LT(cublasLtMatmul(h, &desc, &alpha, a, &one, a, &one, &beta, d, &two, d,
                      &two, NULL, NULL, 0, 0));
    EXPECT(d.get() == (std::vector<float>{10, 14, 14, 20}));
    EXPECT(cublasLtMatmulDescInit(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
           CUBLAS_STATUS_INVALID_VALUE);
}

static void
refusals(cublasLtHandle_t h)
{
    std::vector<float> v;
    cublasLtMatrixLayout_t a = layout(CUDA_R_32F, 4, 4, false, 0, 1, v);
    cublasLtMatrixLayout_t b = layout(CUDA_R_32F, 5, 4, false, 0, 1, v);
    cublasLtMatmulDesc_t desc;
    cublasLtEpilogue_t grad = CUBLASLT_EPILOGUE_DGELU;
    cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
    Dev<float> d(32);
    float one = 1;
    char small;

    LT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    EXPECT(cublasLtMatmul(h, desc, &one, d, a, d, b, &one, d, a, d, a, NULL,
                          NULL, 0, 0) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                          &small, sizeof small) ==
           CUBLAS_STATUS_INVALID_VALUE);
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                      &grad, sizeof grad));
    EXPECT(cublasLtMatmul(h, desc, &one, d, a, d, a, &one, d, a, d, a, NULL,
                          NULL, 0, 0) == CUBLAS_STATUS_NOT_SUPPORTED);
    LT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                      &bias, sizeof bias));
    EXPECT(cublasLtMatmul(h, desc, &one, d, a, d, a, &one, d, a, d, a, NULL,
                          NULL, 0, 0) == CUBLAS_STATUS_INVALID_VALUE);
    cublasLtMatmulDescDestroy(desc);
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
}

/* Weights of one byte with a scale for each row, as quantised models keep. */
__global__ void
quantise(const float *w, __nv_fp8_e4m3 *q, float *scale, int k)
{
    const float *row = w + blockIdx.x * k;
    __shared__ float most;
    float mine = 0;

    for (int i = threadIdx.x; i < k; i += 32)
        mine = fmaxf(mine, fabsf(row[i]));
    for (int by = 16; by; by /= 2)
        mine = fmaxf(mine, __shfl_xor_sync(~0u, mine, by));
    if (threadIdx.x == 0)
        scale[blockIdx.x] = most = mine / 448;
    __syncwarp();
    for (int i = threadIdx.x; i < k; i += 32)
        q[blockIdx.x * k + i] = __nv_fp8_e4m3(row[i] / most);
}
__global__ void
times(const __nv_fp8_e4m3 *q, const float *scale, const float *x, float *y,
      int k)
{
    float sum = 0;

    for (int i = threadIdx.x * 4; i < k; i += 128) {
        float4 w = (float4) * (const __nv_fp8x4_e4m3 *)&q[blockIdx.x * k + i];

        sum += w.x * x[i] + w.y * x[i + 1] + w.z * x[i + 2] + w.w * x[i + 3];
    }
    for (int by = 16; by; by /= 2)
        sum += __shfl_xor_sync(~0u, sum, by);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum * scale[blockIdx.x];
}
static void
eight_bits()
{
    const int m = 16, k = 256;
    std::vector<float> w(m * k), x(k);

    for (float &v : w)
        v = rnd() - 0.5f;
    for (float &v : x)
        v = rnd();
    Dev<float> dw(w), dx(x), scale(m), y(m);
    Dev<__nv_fp8_e4m3> q(m * k);

    quantise<<<m, 32>>>(dw.p, q.p, scale.p, k);
    times<<<m, 32>>>(q.p, scale.p, dx.p, y.p, k);
    std::vector<float> got = y.get();
    for (int i = 0; i < m; i++) {
        double want = 0, room = 0;

        for (int j = 0; j < k; j++) {
            want += (double)w[i * k + j] * x[j];
            room += fabs((double)w[i * k + j] * x[j]);
        }
        EXPECT(fabs(got[i] - want) < room / 64); /* half of 2^-3, and less */
    }
}

int
main()
{
    cublasLtHandle_t h;
    Shape f[] = {{33, 17, 40, 1, false, false, false, 1, 0},
                 {20, 24, 32, 2, true, false, false, 36, 0.5f},
                 {16, 9, 31, 1, true, true, true, 6, 1},
                 {12, 10, 8, 3, false, true, true, 164, 0}};

    LT(cublasLtCreate(&h));
    for (Shape s : f) {
        layer<float>(h, CUDA_R_32F, s, 1e-5);
        layer<__half>(h, CUDA_R_16F, s, 2e-3);
        layer<__nv_bfloat16>(h, CUDA_R_16BF, s, 1.2e-2);
    }
    refusals(h);
    by_value(h);
    LT(cublasLtDestroy(h));
    eight_bits();
    return done();
}
