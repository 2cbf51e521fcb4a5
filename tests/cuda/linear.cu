/* linear.cu - saxpy, dot, gemv, matrix products in three ways, transposes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

typedef std::vector<float> vec;
static vec random_vec(size_t n)
{
    vec v(n);
    for (float &x : v)
        x = rnd() - 0.5f;
    return v;
}

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void dot(const float *a, const float *b, float *out, int n)
{
    __shared__ float part[128];
    float s = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += blockDim.x * gridDim.x)
        s += a[i] * b[i];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (threadIdx.x < k)
            part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(out, part[0]);
}

__global__ void sgemm_naive(const float *a, const float *b, float *c, int m,
                            int n, int k)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= n || y >= m)
        return;
    float s = 0;
    for (int i = 0; i < k; i++)
        s += a[y * k + i] * b[i * n + x];
    c[y * n + x] = s;
}

template <int T>
__global__ void sgemm_shared(const float *a, const float *b, float *c, int m,
                             int n, int k)
{
    __shared__ float as[T][T], bs[T][T + 1];
    int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
    float s = 0;

    for (int t = 0; t < k; t += T) {
        int ax = t + threadIdx.x, by = t + threadIdx.y;

        as[threadIdx.y][threadIdx.x] = y < m && ax < k ? a[y * k + ax] : 0;
        bs[threadIdx.y][threadIdx.x] = by < k && x < n ? b[by * n + x] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++)
            s += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (y < m && x < n)
        c[y * n + x] = s;
}

/* Every thread makes 4 x 4 results; sizes are multiples of 32, k of 8. */
__global__ void __launch_bounds__(64)
    sgemm_2d(const float *__restrict__ a, const float *__restrict__ b,
             float *__restrict__ c, int n, int k)
{
    __shared__ float as[8][32];
    __shared__ float4 bs[8][8];
    int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    float acc[4][4] = {};

    for (int t = 0; t < k; t += 8) {
        for (int i = threadIdx.x; i < 256; i += 64)
            as[i % 8][i / 8] = a[(blockIdx.y * 32 + i / 8) * k + t + i % 8];
        bs[ty][tx] = *(const float4 *)&b[(t + ty) * n + blockIdx.x * 32 +
                                         tx * 4];
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float4 v = bs[i][tx];
            for (int r = 0; r < 4; r++) {
                float w = as[i][ty * 4 + r];
                acc[r][0] += w * v.x;
                acc[r][1] += w * v.y;
                acc[r][2] += w * v.z;
                acc[r][3] += w * v.w;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        *(float4 *)&c[(blockIdx.y * 32 + ty * 4 + r) * n + blockIdx.x * 32 +
                      tx * 4] =
            make_float4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

__global__ void gemv(const float *a, const float *x, float *y, int n)
{
    float s = 0;

    for (int i = threadIdx.x; i < n; i += 32)
        s += a[blockIdx.x * n + i] * x[i];
    for (int o = 16; o; o >>= 1)
        s += __shfl_down_sync(0xffffffff, s, o);
    if (threadIdx.x == 0)
        y[blockIdx.x] = s;
}

__global__ void transpose(const int *in, int *out, int w, int h)
{
    __shared__ int tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;

    for (int r = 0; r < 16; r += 4)
        if (x < w && y + r < h)
            tile[threadIdx.y + r][threadIdx.x] = in[(y + r) * w + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    for (int r = 0; r < 16; r += 4)
        if (x < h && y + r < w)
            out[(y + r) * h + x] = tile[threadIdx.x][threadIdx.y + r];
}

static vec product(const vec &a, const vec &b, int m, int n, int k)
{
    vec c(m * n);
    for (int y = 0; y < m; y++)
        for (int x = 0; x < n; x++) {
            double s = 0;
            for (int i = 0; i < k; i++)
                s += (double)a[y * k + i] * b[i * n + x];
            c[y * n + x] = (float)s;
        }
    return c;
}
static void same(const vec &a, const vec &b)
{
    for (size_t i = 0; i < a.size(); i++)
        EXPECT(near(a[i], b[i], 1e-5));
}

int main()
{
    {
        vec x = random_vec(1000), y = random_vec(1000);
        Dev<float> dx(x), dy(y), out(vec(1, 0));
        saxpy<<<3, 100>>>(1000, 2.5f, dx, dy);
        vec got = dy.get();
        for (int i = 0; i < 1000; i++)
            EXPECT(near(got[i], 2.5 * x[i] + y[i], 1e-6));
        dot<<<4, 128>>>(dx, dy, out, 1000);
        double want = 0;
        for (int i = 0; i < 1000; i++)
            want += (double)x[i] * got[i];
        EXPECT(near(out.get()[0], want, 1e-5));
    }
    {
        const int m = 33, n = 29, k = 21;
        vec a = random_vec(m * k), b = random_vec(k * n);
        Dev<float> da(a), db(b), dc(m * n);
        vec want = product(a, b, m, n, k);
        sgemm_naive<<<dim3(2, 3), dim3(16, 16)>>>(da, db, dc, m, n, k);
        same(dc.get(), want);
        CHECK(cudaMemset(dc, 0, m * n * 4));
        sgemm_shared<8><<<dim3(4, 5), dim3(8, 8)>>>(da, db, dc, m, n, k);
        same(dc.get(), want);
        sgemm_shared<16><<<dim3(2, 3), dim3(16, 16)>>>(da, db, dc, m, n, k);
        same(dc.get(), want);
        gemv<<<m, 32>>>(da, db, dc, k);
        vec y = product(a, vec(b.begin(), b.begin() + k), m, 1, k);
        vec got = dc.get();
        got.resize(m);
        same(got, y);
    }
    {
        vec a = random_vec(64 * 16), b = random_vec(16 * 32);
        Dev<float> da(a), db(b), dc(64 * 32);
        sgemm_2d<<<dim3(1, 2), 64>>>(da, db, dc, 32, 16);
        same(dc.get(), product(a, b, 64, 32, 16));
    }
    {
        const int w = 37, h = 21;
        std::vector<int> v(w * h);
        for (int i = 0; i < w * h; i++)
            v[i] = i;
        Dev<int> in(v), out(w * h);
        transpose<<<dim3(3, 2), dim3(16, 4)>>>(in, out, w, h);
        std::vector<int> got = out.get();
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++)
                EXPECT(got[x * h + y] == v[y * w + x]);
    }
    return done();
}
