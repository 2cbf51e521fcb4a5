/* blas.cu - cuBLAS against loops: vectors, products of every type and shape.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cublas_v2.h>
#include <cuComplex.h>
#include <cuda_bf16.h>

#include "check.h"

#define BLAS(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

static cublasHandle_t h;
static float value(float x) { return x; }
static float value(double x) { return (float)x; }
static float value(__half x) { return __half2float(x); }
static float value(__nv_bfloat16 x) { return __bfloat162float(x); }
static float value(int8_t x) { return x; }
static float value(int x) { return (float)x; }
template <class T> static T make(float x) { return (T)x; }
template <> int8_t make(float x) { return (int8_t)(x * 100); }

template <class T> static std::vector<T> some(size_t n)
{
    std::vector<T> v(n);

    for (T &x : v)
        x = make<T>(rnd() - 0.5f);
    return v;
}

/* c = alpha op(a) op(b) + beta c, entry by entry in double. */
template <class A, class C>
static std::vector<double> product(bool ta, bool tb, int m, int n, int k,
                                   double alpha, const std::vector<A> &a,
                                   int lda, const std::vector<A> &b, int ldb,
                                   double beta, const std::vector<C> &c,
                                   int ldc)
{
    std::vector<double> r(c.size());

    for (size_t i = 0; i < c.size(); i++)
        r[i] = value(c[i]);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double s = 0;

            for (int l = 0; l < k; l++)
                s += (double)value(a[ta ? l + i * lda : i + l * lda]) *
                     value(b[tb ? j + l * ldb : l + j * ldb]);
            r[i + j * ldc] = alpha * s + (beta != 0 ? beta * r[i + j * ldc] : 0);
        }
    return r;
}

template <class A, class C, class N>
static void gemm_ex(cudaDataType at, cudaDataType ct, cublasComputeType_t how,
                    int m, int n, int k, bool ta, bool tb, float alpha,
                    float beta, double tol)
{
    int lda = (ta ? k : m) + 3, ldb = (tb ? n : k) + 1, ldc = m + 2;
    std::vector<A> a = some<A>((size_t)lda * (ta ? m : k));
    std::vector<A> b = some<A>((size_t)ldb * (tb ? k : n));
    std::vector<C> c = some<C>((size_t)ldc * n);
    std::vector<double> want =
        product(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    Dev<A> da(a), db(b);
    Dev<C> dc(c);
    N x = (N)alpha, y = (N)beta;

    BLAS(cublasGemmEx(h, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb ? CUBLAS_OP_C : CUBLAS_OP_N, m, n, k, &x, da, at, lda,
                      db, at, ldb, &y, dc, ct, ldc, how,
                      CUBLAS_GEMM_DEFAULT_TENSOR_OP));
    c = dc.get();
    for (size_t i = 0; i < c.size(); i++)
        EXPECT(near(value(c[i]), want[i], tol));
}

static void products()
{
    static const int shape[][3] = {{1, 1, 1},   {17, 7, 5},   {16, 6, 256},
                                   {97, 13, 300}, {5, 1030, 3}, {800, 3, 9}};

    for (auto &s : shape)
        for (int t = 0; t < 4; t++) {
            int m = s[0], n = s[1], k = s[2];
            bool ta = t & 1, tb = t & 2;

            gemm_ex<float, float, float>(CUDA_R_32F, CUDA_R_32F,
                                         CUBLAS_COMPUTE_32F, m, n, k, ta, tb,
                                         1.5f, t ? 0.5f : 0, 1e-5);
            gemm_ex<double, double, double>(CUDA_R_64F, CUDA_R_64F,
                                            CUBLAS_COMPUTE_64F, m, n, k, ta, tb,
                                            1.5f, t ? -1.f : 0, 1e-6);
            gemm_ex<__half, __half, float>(CUDA_R_16F, CUDA_R_16F,
                                           CUBLAS_COMPUTE_32F, m, n, k, ta, tb,
                                           1, 0, 2e-3);
            gemm_ex<__nv_bfloat16, float, float>(CUDA_R_16BF, CUDA_R_32F,
                                                 CUBLAS_COMPUTE_32F, m, n, k,
                                                 ta, tb, 1, 1, 1e-5);
            gemm_ex<int8_t, int, int>(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I,
                                      m, n, k, ta, tb, 2, 1, 0);
        }
}

static void batches()
{
    enum { M = 9, N = 4, K = 11, COUNT = 5 };
    std::vector<float> a = some<float>(M * K * COUNT);
    std::vector<float> b = some<float>(K * N), c(M * N * COUNT);
    Dev<float> da(a), db(b), dc(c), dd(c);
    std::vector<float *> pa, pb, pc;
    float one = 1, none = 0;

    for (int i = 0; i < COUNT; i++) {
        pa.push_back((float *)da + i * M * K);
        pb.push_back((float *)db);
        pc.push_back((float *)dd + i * M * N);
    }
    Dev<float *> ga(pa), gb(pb), gc(pc);
    BLAS(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one,
                                   da, M, M * K, db, K, 0, &none, dc, M, M * N,
                                   COUNT));
    BLAS(cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one,
                            (const float *const *)(float **)ga, M,
                            (const float *const *)(float **)gb, K, &none, gc, M,
                            COUNT));
    EXPECT(dc.get() == dd.get());
    for (int i = 0; i < COUNT; i++) {
        std::vector<float> part(a.begin() + i * M * K,
                                a.begin() + (i + 1) * M * K);
        std::vector<double> want = product(false, false, M, N, K, 1, part, M, b,
                                           K, 0, std::vector<float>(M * N), M);
        std::vector<float> got = dc.get();

        for (int k = 0; k < M * N; k++)
            EXPECT(near(got[i * M * N + k], want[k], 1e-5));
    }
}

static void vectors()
{
    enum { N = 1003 };
    std::vector<float> x = some<float>(2 * N), y = some<float>(N);
    Dev<float> dx(x), dy(y), result(std::vector<float>(1));
    double dot = 0, sum = 0, squares = 0;
    float alpha = 0.25f, r = 0;
    int big = 0, at = 0;

    for (int i = 0; i < N; i++) { /* every second, from the far end */
        dot += (double)x[2 * (N - 1 - i)] * y[i];
        sum += fabs(y[i]);
        squares += (double)y[i] * y[i];
        big = fabsf(y[i]) > fabsf(y[big]) ? i : big;
    }
    BLAS(cublasSdot(h, N, dx, -2, dy, 1, &r));
    EXPECT(near(r, dot, 1e-5));
    BLAS(cublasSasum(h, N, dy, 1, &r));
    EXPECT(near(r, sum, 1e-5));
    BLAS(cublasSnrm2(h, N, dy, 1, &r));
    EXPECT(near(r, sqrt(squares), 1e-5));
    BLAS(cublasIsamax(h, N, dy, 1, &at));
    EXPECT(at == big + 1);
    BLAS(cublasSaxpy(h, N, &alpha, dx, 2, dy, 1));
    EXPECT(near(dy.get()[7], y[7] + alpha * x[14], 1e-6));
    BLAS(cublasSswap(h, N, dx, 2, dy, 1));
    EXPECT(dy.get()[N - 1] == x[2 * N - 2]);
    BLAS(cublasSscal(h, N, &alpha, dy, 1));
    EXPECT(dy.get()[3] == alpha * x[6]);
    BLAS(cublasScopy(h, N, dy, 1, dx, 2));
    EXPECT(dx.get()[6] == alpha * x[6] && dx.get()[7] == x[7]);
    /* Numbers that lie on the device: nothing waits for the host. */
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasSdot(h, 3, dy, 1, dy, 1, result));
    BLAS(cublasSaxpy(h, 1, result, dy, 1, dx, 1));
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
    EXPECT(dx.get()[0] != alpha * x[0]);
}

static void matrices()
{
    enum { M = 37, N = 23, LD = 40 };
    std::vector<double> a = some<double>(LD * N), x = some<double>(N);
    std::vector<double> y = some<double>(M);
    Dev<double> da(a), dx(x), dy(y), dt(std::vector<double>(N * M));
    double alpha = 2, beta = -1, none = 0, s = 0;

    BLAS(cublasDgemv(h, CUBLAS_OP_N, M, N, &alpha, da, LD, dx, 1, &beta, dy, 1));
    for (int j = 0; j < N; j++)
        s += a[5 + j * LD] * x[j];
    EXPECT(near(dy.get()[5], 2 * s - y[5], 1e-12));
    BLAS(cublasDgemv(h, CUBLAS_OP_T, M, N, &alpha, da, LD, dy, 1, &none, dx, 1));
    y = dy.get();
    s = 0;
    for (int i = 0; i < M; i++)
        s += a[i + 4 * LD] * y[i];
    EXPECT(near(dx.get()[4], 2 * s, 1e-12));
    BLAS(cublasDgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, N, M, &alpha, da, LD, &none,
                     nullptr, N, dt, N));
    EXPECT(dt.get()[3 + 8 * N] == 2 * a[8 + 3 * LD]);
    BLAS(cublasDger(h, M, N, &alpha, dy, 1, dx, 1, da, LD));
    EXPECT(near(da.get()[8 + 3 * LD],
                a[8 + 3 * LD] + 2 * y[8] * dx.get()[3], 1e-12));
}

/* What is refused, and how. */
static void refusals()
{
    Dev<float> d(std::vector<float>(16));
    float one = 1;

    EXPECT(cublasSscal(nullptr, 1, &one, d, 1) ==
           CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, d, 3, d, 4,
                       &one, d, 4) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, -1, 4, 4, &one, d, 4, d, 4,
                       &one, d, 4) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSdot(h, 4, d, 1, d, 1, nullptr) ==
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, d,
                        CUDA_R_32F, 4, d, CUDA_R_16F, 4, &one, d, CUDA_R_32F, 4,
                        CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, d,
                        CUDA_R_32F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4,
                        CUDA_R_32F, CUBLAS_GEMM_DEFAULT) ==
           CUBLAS_STATUS_SUCCESS);
    EXPECT(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, d,
                        CUDA_R_32F, 4, d, CUDA_R_32F, 4, &one, d, CUDA_R_32F, 4,
                        CUDA_R_8I, CUBLAS_GEMM_DEFAULT) ==
           CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, nullptr, 1,
                       d, 4, &one, d, 1) == CUBLAS_STATUS_SUCCESS);
    EXPECT(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)[0] != 0);
}

/* Dots of two types' strides, and products of halves by pointers. */
static void mixed()
{
    int n = 100;
    std::vector<__half> x(3 * n), y(2 * n);
    double want = 0;

    for (__half &v : x)
        v = __float2half(rnd());
    for (__half &v : y)
        v = __float2half(rnd());
    for (int i = 0; i < n; i++)
        want += (double)__half2float(x[3 * i]) * __half2float(y[2 * i]);
    Dev<__half> dx(x), dy(y), dr(1);
    __half r;
    float wide;
    BLAS(cublasDotEx(h, n, dx, CUDA_R_16F, 3, dy, CUDA_R_16F, 2, &r, CUDA_R_16F,
                     CUDA_R_32F));
    EXPECT(near(__half2float(r), want, 1e-3));
    BLAS(cublasDotEx(h, n, dx, CUDA_R_16F, 3, dy, CUDA_R_16F, 2, &wide,
                     CUDA_R_32F, CUDA_R_32F));
    EXPECT(near(wide, want, 1e-5));
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasDotEx(h, n, dx, CUDA_R_16F, 3, dy, CUDA_R_16F, 2, dr.p,
                     CUDA_R_16F, CUDA_R_32F));
    BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
    EXPECT(near(__half2float(dr.get()[0]), want, 1e-3));
    Dev<double> d(std::vector<double>{1, 2, 3, 4});
    double sum;
    BLAS(cublasDotEx(h, 2, d, CUDA_R_64F, 2, d.p + 1, CUDA_R_64F, 2, &sum,
                     CUDA_R_64F, CUDA_R_64F));
    EXPECT(sum == 14);
    BLAS(cublasDotEx(h, 2, d, CUDA_R_64F, -1, d, CUDA_R_64F, 1, &sum,
                     CUDA_R_64F, CUDA_R_64F));
    EXPECT(sum == 4); /* 2 1 + 1 2 */
    EXPECT(cublasDotEx(h, 2, d, CUDA_R_64F, 1, d, CUDA_R_64F, 1, &sum,
                       CUDA_R_8I,
                       CUDA_R_64F) == CUBLAS_STATUS_NOT_SUPPORTED);

    /* Four million equal addends; one after the other in float: off by 1e-3. */
    {
        int many = 1 << 22;
        Dev<float> f(std::vector<float>(many, 0.1f));
        Dev<__half> e(std::vector<__half>(many, __float2half(0.1f)));
        float total, length, size;

        BLAS(cublasSdot(h, many, f, 1, f, 1, &total));
        BLAS(cublasSnrm2(h, many, f, 1, &length));
        BLAS(cublasSasum(h, many, f, 1, &size));
        EXPECT(near(total, many * 0.01, 1e-6) && near(size, many * 0.1, 1e-6));
        EXPECT(near(length, 2048 * 0.1, 1e-6));
        BLAS(cublasDotEx(h, many, f, CUDA_R_32F, 1, f, CUDA_R_32F, 1, &total,
                         CUDA_R_32F, CUDA_R_32F));
        EXPECT(near(total, many * 0.01, 1e-6));
        BLAS(cublasDotEx(h, many, e, CUDA_R_16F, 1, e, CUDA_R_16F, 1, &total,
                         CUDA_R_32F, CUDA_R_32F));
        EXPECT(near(total, many * 0.0099951187, 1e-6));
    }

    /* c[k] = row k of x times column k of y, of 10 each. */
    Dev<__half> c(2);
    std::vector<const __half *> a = {dx.p, dx.p + 10}, b = {dy.p, dy.p + 20};
    std::vector<__half *> to = {c.p, c.p + 1};
    Dev<const __half *> da(a), db(b);
    Dev<__half *> dc(to);
    __half one = __float2half(1), none = __float2half(0);
    BLAS(cublasHgemmBatched(h, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 10, &one, da, 10,
                            db, 10, &none, dc, 1, 2));
    for (int k = 0; k < 2; k++) {
        want = 0;
        for (int i = 0; i < 10; i++)
            want += (double)__half2float(x[10 * k + i]) *
                    __half2float(y[20 * k + i]);
        EXPECT(near(__half2float(c.get()[k]), want, 4e-3));
    }
}

/* Beyond the memory: an error of the device, as after a kernel. */
static void outside()
{
    Dev<float> d(std::vector<float>(16));
    float one = 1;

    BLAS(cublasSscal(h, 17, &one, d, 1));
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

__global__ void complex_numbers(int *bad)
{
    cuComplex a = make_cuComplex(3, 4), b = make_cuComplex(1, -2);
    cuDoubleComplex q = cuCdiv(make_cuDoubleComplex(1e300, 1e300),
                               make_cuDoubleComplex(1e300, -1e300));

    *bad += cuCabsf(a) != 5 || cuCrealf(cuCmulf(a, b)) != 11;
    *bad += cuCimagf(cuCmulf(a, b)) != -2 || cuCimagf(cuConjf(a)) != -4;
    *bad += cuCreal(q) != 0 || cuCimag(q) != 1;
    *bad += cuCabs(make_cuDoubleComplex(0, 0)) != 0;
}

int main()
{
    cudaStream_t s;
    Dev<int> bad(std::vector<int>(1));

    CHECK(cudaStreamCreate(&s));
    BLAS(cublasCreate(&h));
    products();
    BLAS(cublasSetStream(h, s));
    batches();
    CHECK(cudaStreamSynchronize(s));
    BLAS(cublasSetStream(h, 0));
    vectors();
    matrices();
    refusals();
    mixed();
    complex_numbers<<<1, 1>>>(bad);
    EXPECT(bad.get()[0] == 0);
    outside();
    BLAS(cublasDestroy(h));
    return done();
}
