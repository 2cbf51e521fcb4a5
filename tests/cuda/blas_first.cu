/* blas_first.cu - cuBLAS by the names and forms of its first version.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cublas.h>

#include "check.h"

#define OK(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

template <class T> static std::vector<T> numbers(int n)
{
    std::vector<T> v(n);

    for (T &x : v)
        x = rnd() - 0.5f;
    return v;
}

static void vectors(void)
{
    std::vector<double> x = numbers<double>(100), y = numbers<double>(100);
    double dot = 0, sum = 0, two = 0;
    double *dx, *dy;
    int most = 0;

    OK(cublasAlloc(100, sizeof(double), (void **)&dx));
    OK(cublasAlloc(100, sizeof(double), (void **)&dy));
    OK(cublasSetVector(100, sizeof(double), x.data(), 1, dx, 1));
    OK(cublasSetVector(100, sizeof(double), y.data(), 1, dy, 1));
    cublasDaxpy(100, 3, dx, 1, dy, 1);
    for (int i = 0; i < 100; i++) {
        y[i] += 3 * x[i];
        dot += x[i] * y[i];
        sum += fabs(x[i]);
        two += x[i] * x[i];
        most = fabs(x[i]) > fabs(x[most]) ? i : most;
    }
    EXPECT(near(cublasDdot(100, dx, 1, dy, 1), dot, 1e-12));
    EXPECT(near(cublasDasum(100, dx, 1), sum, 1e-12));
    EXPECT(near(cublasDnrm2(100, dx, 1), sqrt(two), 1e-12));
    EXPECT(cublasIdamax(100, dx, 1) == most + 1);
    cublasDscal(50, 2, dx, 2);
    cublasDswap(100, dx, 1, dy, 1);
    OK(cublasGetVector(100, sizeof(double), dy, 1, y.data(), 1));
    for (int i = 0; i < 100; i++)
        EXPECT(y[i] == (i % 2 ? x[i] : 2 * x[i]));
    OK(cublasFree(dx));
    OK(cublasFree(dy));
    OK(cublasGetError());
}

static void matrices(void)
{
    const int m = 5, n = 7, k = 9;
    std::vector<float> a = numbers<float>(m * k), b = numbers<float>(n * k);
    std::vector<float> c = numbers<float>(m * n), y = numbers<float>(m);
    Dev<float> da(a), db(b), dc(c), dy(y);

    cublasSgemm('n', 'T', m, n, k, 2, da, m, db, n, 0.5f, dc, m);
    cublasSgemv('N', m, k, 1, da, m, db, 1, 1, dy, 1);
    OK(cublasGetError());
    std::vector<float> got = dc.get(), row = dy.get();
    for (int i = 0; i < m; i++) {
        double by = y[i];

        for (int p = 0; p < k; p++)
            by += a[p * m + i] * b[p];
        EXPECT(near(row[i], by, 1e-5));
        for (int j = 0; j < n; j++) {
            double r = 0.5 * c[j * m + i];

            for (int p = 0; p < k; p++)
                r += 2.0 * a[p * m + i] * b[p * n + j];
            EXPECT(near(got[j * m + i], r, 1e-5));
        }
    }
    cublasSgemm('x', 'n', m, n, k, 2, da, m, db, n, 0, dc, m);
    EXPECT(cublasGetError() == CUBLAS_STATUS_INVALID_VALUE);
    OK(cublasGetError());
    cublasSgemm('n', 't', m, n, k, 2, da, m - 1, db, n, 0, dc, m);
    EXPECT(cublasGetError() == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(dc.get() == got);
}

int main()
{
    cudaStream_t s;

    EXPECT(cublasShutdown() == CUBLAS_STATUS_NOT_INITIALIZED);
    OK(cublasInit());
    vectors();
    CHECK(cudaStreamCreate(&s));
    OK(cublasSetKernelStream(s));
    matrices();
    OK(cublasShutdown());
    return done();
}
