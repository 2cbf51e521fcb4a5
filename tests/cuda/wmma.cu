/* wmma.cu - products of small matrices by a warp: every shape, type and layout,
 * and a tiled product that scales its sums in the fragment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <mma.h>
using namespace nvcuda;

template <int M, int N, class T, class D, class LA, class LB>
__global__ void
small(const T *a, const T *b, const D *c, D *d, int pad, wmma::layout_t out)
{
    const bool ra = std::is_same<LA, wmma::row_major>::value;
    const bool rb = std::is_same<LB, wmma::row_major>::value;
    wmma::fragment<wmma::matrix_a, M, N, 16, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, 16, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, 16, D> fc;

    wmma::load_matrix_sync(fa, a, (ra ? 16 : M) + pad);
    wmma::load_matrix_sync(fb, b, (rb ? N : 16) + pad);
    wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, out == wmma::mem_row_major ? N : M, out);
}

template <int M, int N, class T, class D, class LA, class LB>
static void
check(double tol, double scale)
{
    const bool ra = std::is_same<LA, wmma::row_major>::value;
    const bool rb = std::is_same<LB, wmma::row_major>::value;
    const int pad = 8, lda = (ra ? 16 : M) + pad, ldb = (rb ? N : 16) + pad;
    std::vector<T> a(lda * (ra ? M : 16)), b(ldb * (rb ? 16 : N));
    std::vector<D> c(M * N);

    for (T &v : a)
        v = (T)((rnd() - (scale > 1 ? 0.f : 0.5f)) * (float)scale);
    for (T &v : b)
        v = (T)((rnd() - (scale > 1 ? 0.f : 0.5f)) * (float)scale);
    for (D &v : c)
        v = (D)(rnd() * (float)scale);
    Dev<T> da(a), db(b);
    Dev<D> dc(c), dd(M * N);
    for (int out = 0; out < 2; out++) {
        int bad = 0;

        small<M, N, T, D, LA, LB><<<1, 32>>>(
            da.p, db.p, dc.p, dd.p, pad,
            out ? wmma::mem_col_major : wmma::mem_row_major);
        std::vector<D> d = dd.get();
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = (double)(float)c[i * N + j];

                for (int k = 0; k < 16; k++)
                    sum += (double)(float)a[ra ? i * lda + k : k * lda + i] *
                           (double)(float)b[rb ? k * ldb + j : j * ldb + k];
                bad += !near((float)d[out ? j * M + i : i * N + j], sum, tol);
            }
        EXPECT(bad == 0);
    }
}
/* tf32 and double: as deep as they come, both layouts. */
template <int M, int N, int K, class P, class T, class LA, class LB>
__global__ void
deep(const T *a, const T *b, T *c)
{
    const bool ra = std::is_same<LA, wmma::row_major>::value;
    const bool rb = std::is_same<LB, wmma::row_major>::value;
    wmma::fragment<wmma::matrix_a, M, N, K, P, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, P, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, T> fc;

    wmma::fill_fragment(fc, 2);
    wmma::load_matrix_sync(fa, a, ra ? K : M);
    wmma::load_matrix_sync(fb, b, rb ? N : K);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
template <int M, int N, int K, class P, class T, class LA, class LB>
static void
check_deep()
{
    const bool ra = std::is_same<LA, wmma::row_major>::value;
    const bool rb = std::is_same<LB, wmma::row_major>::value;
    std::vector<T> a(M * K), b(K * N), got;
    Dev<T> c(M * N);
    int bad = 0;

    for (T &v : a) /* exact in tf32 */
        v = (T)((int)(rnd() * 64) - 32) / 8;
    for (T &v : b)
        v = (T)((int)(rnd() * 64) - 32) / 8;
    Dev<T> da(a), db(b);
    deep<M, N, K, P, T, LA, LB><<<1, dim3(8, 4)>>>(da.p, db.p, c.p);
    got = c.get();
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            T sum = 2;

            for (int k = 0; k < K; k++)
                sum += 2 * a[ra ? i * K + k : k * M + i] *
                       b[rb ? k * N + j : j * K + k];
            bad += got[i * N + j] != sum;
        }
    EXPECT(bad == 0);
}
template <int M, int N, int K, class P, class T>
static void
deeps()
{
    check_deep<M, N, K, P, T, wmma::row_major, wmma::col_major>();
    check_deep<M, N, K, P, T, wmma::col_major, wmma::row_major>();
}

template <class T, class D>
static void
shapes(double tol, double scale)
{
    check<16, 16, T, D, wmma::row_major, wmma::col_major>(tol, scale);
    check<16, 16, T, D, wmma::col_major, wmma::row_major>(tol, scale);
    check<32, 8, T, D, wmma::row_major, wmma::row_major>(tol, scale);
    check<8, 32, T, D, wmma::col_major, wmma::col_major>(tol, scale);
}

/* C = alpha A B + beta C, a warp for each 16 x 16 of C. */
__global__ void
tiled(const half *a, const half *b, float *c, int n, float alpha, float beta)
{
    int warp = threadIdx.x / 32, i = blockIdx.x * 16;
    int j = (blockIdx.y * (blockDim.x / 32) + warp) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;

    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + i * n + k, n);
        wmma::load_matrix_sync(fb, b + k * n + j, n);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::load_matrix_sync(old, c + i * n + j, n, wmma::mem_row_major);
    for (int e = 0; e < sum.num_elements; e++)
        old.x[e] = alpha * sum.x[e] + beta * old.x[e];
    wmma::store_matrix_sync(c + i * n + j, old, n, wmma::mem_row_major);
}
static void
product()
{
    const int n = 64;
    std::vector<half> a(n * n), b(n * n);
    std::vector<float> c(n * n);
    int bad = 0;

    for (int k = 0; k < n * n; k++)
        a[k] = half(rnd() - 0.5f), b[k] = half(rnd() - 0.5f), c[k] = rnd();
    Dev<half> da(a), db(b);
    Dev<float> dc(c);
    tiled<<<dim3(n / 16, n / 32), 64>>>(da.p, db.p, dc.p, n, 2.f, 0.5f);
    std::vector<float> got = dc.get();
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;

            for (int k = 0; k < n; k++)
                sum += (double)(float)a[i * n + k] * (float)b[k * n + j];
            bad += !near(got[i * n + j], 2 * sum + 0.5 * c[i * n + j], 1e-4);
        }
    EXPECT(bad == 0);
}

int
main()
{
    shapes<half, float>(1e-4, 1);
    shapes<half, half>(5e-3, 1);
    shapes<__nv_bfloat16, float>(1e-4, 1);
    shapes<signed char, int>(0, 100);
    shapes<unsigned char, int>(0, 250);
    deeps<16, 16, 8, wmma::precision::tf32, float>();
    deeps<8, 8, 4, double, double>();
    product();
    return done();
}
