/* science.cu - n-body, Mandelbrot, Black-Scholes, heat, life, Monte Carlo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <complex>

__device__ float3 pull(float4 a, float4 b, float3 f)
{
    float3 r = make_float3(b.x - a.x, b.y - a.y, b.z - a.z);
    float d = r.x * r.x + r.y * r.y + r.z * r.z + 0.01f;
    float inv = rsqrtf(d), s = b.w * inv * inv * inv;

    f.x += r.x * s;
    f.y += r.y * s;
    f.z += r.z * s;
    return f;
}
__global__ void nbody(const float4 *pos, float3 *acc, int n)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float3 f = {0, 0, 0};

    for (int t = 0; t < n; t += blockDim.x) {
        tile[threadIdx.x] = pos[t + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < blockDim.x; k++)
            f = pull(pos[i], tile[k], f);
        __syncthreads();
    }
    acc[i] = f;
}

__global__ void mandelbrot(int *out, int w, int h, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x >= w || y >= h)
        return;
    float cr = -2 + 3.0f * x / w, ci = -1 + 2.0f * y / h, zr = 0, zi = 0;
    int k = 0;
    while (k < most && __fadd_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)) <= 4) {
        float t = __fadd_rn(__fsub_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)), cr);
        zi = __fadd_rn(__fmul_rn(__fmul_rn(2, zr), zi), ci);
        zr = t;
        k++;
    }
    out[y * w + x] = k;
}

__host__ __device__ inline double cnd(double d)
{
    return 0.5 * erfc(-d / sqrt(2.0));
}
__host__ __device__ inline void black_scholes(double s, double x, double t,
                                              double *call, double *put)
{
    const double r = 0.02, v = 0.3;
    double d1 = (log(s / x) + (r + v * v / 2) * t) / (v * sqrt(t));
    double d2 = d1 - v * sqrt(t), e = exp(-r * t);

    *call = s * cnd(d1) - x * e * cnd(d2);
    *put = x * e * cnd(-d2) - s * cnd(-d1);
}
__global__ void options(const double *s, const double *x, const double *t,
                        double *call, double *put)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    black_scholes(s[i], x[i], t[i], &call[i], &put[i]);
}

__constant__ float stencil[3];
__global__ void heat(const float *in, float *out, int n)
{
    __shared__ float s[66];
    int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x + 1;

    s[t] = in[i];
    if (threadIdx.x == 0)
        s[0] = i ? in[i - 1] : 0;
    if (threadIdx.x == 63)
        s[65] = i + 1 < n ? in[i + 1] : 0;
    __syncthreads();
    out[i] = stencil[0] * s[t - 1] + stencil[1] * s[t] + stencil[2] * s[t + 1];
}

__global__ void life(const bool *in, bool *out, int w)
{
    int x = threadIdx.x, y = blockIdx.x, n = 0;

    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            n += (dx || dy) && in[(y + dy + w) % w * w + (x + dx + w) % w];
    out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
}

__global__ void pi(unsigned long long *hits, int tries)
{
    unsigned long long s = blockIdx.x * blockDim.x + threadIdx.x + 1, n = 0;

    for (int k = 0; k < tries; k++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        float x = (float)(s >> 40) * 0x1p-24f;
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        float y = (float)(s >> 40) * 0x1p-24f;
        n += x * x + y * y < 1;
    }
    atomicAdd(hits, n);
}

int main()
{
    {
        const int n = 128;
        std::vector<float4> p(n);
        for (auto &q : p)
            q = make_float4(rnd(), rnd(), rnd(), rnd());
        Dev<float4> d(p);
        Dev<float3> a(n);
        nbody<<<2, 64, 64 * sizeof(float4)>>>(d, a, n);
        auto got = a.get();
        for (int i = 0; i < n; i++) {
            double x = 0;
            for (int k = 0; k < n; k++) {
                double dx = p[k].x - p[i].x, dy = p[k].y - p[i].y;
                double dz = p[k].z - p[i].z;
                double r = dx * dx + dy * dy + dz * dz + 0.01;
                x += dx * p[k].w / (r * sqrt(r));
            }
            EXPECT(near(got[i].x, x, 1e-4));
        }
    }
    {
        const int w = 40, h = 20, most = 50;
        Dev<int> d(w * h);
        mandelbrot<<<dim3(3, 3), dim3(16, 8)>>>(d, w, h, most);
        auto got = d.get();
        int inside = 0;
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                volatile float zr = 0, zi = 0, a, b;
                float cr = -2 + 3.0f * x / w, ci = -1 + 2.0f * y / h;
                int k = 0;
                for (; k < most; k++) {
                    a = zr * zr, b = zi * zi;
                    volatile float s = a + b;
                    if (s > 4)
                        break;
                    volatile float t = a - b, m = 2 * zr;
                    m = m * zi;
                    zi = m + ci;
                    zr = t + cr;
                }
                EXPECT(got[y * w + x] == k);
                inside += k == most;
            }
        EXPECT(inside > 100);
    }
    {
        const int n = 128;
        std::vector<double> s(n), x(n), t(n);
        for (int i = 0; i < n; i++)
            s[i] = 5 + 25 * rnd(), x[i] = 1 + 99 * rnd(), t[i] = 0.25 + rnd();
        Dev<double> ds(s), dx(x), dt(t), c(n), p(n);
        options<<<2, 64>>>(ds, dx, dt, c, p);
        auto gc = c.get(), gp = p.get();
        for (int i = 0; i < n; i++) {
            double wc, wp;
            black_scholes(s[i], x[i], t[i], &wc, &wp);
            EXPECT(fabs(gc[i] - wc) < 1e-12 && fabs(gp[i] - wp) < 1e-12);
        }
    }
    {
        const int n = 256;
        float w[3] = {0.25f, 0.5f, 0.25f};
        std::vector<float> v(n, 0);
        v[100] = 64;
        Dev<float> a(v), b(n);
        CHECK(cudaMemcpyToSymbol(stencil, w, sizeof w));
        for (int k = 0; k < 4; k++) {
            heat<<<n / 64, 64>>>(k % 2 ? b : a, k % 2 ? a : b, n);
        }
        auto got = a.get();
        EXPECT(got[100] == 17.5f && got[99] == 14 && got[104] == 0.25f);
    }
    {
        const int w = 16;
        bool *in, *out;
        CHECK(cudaMallocManaged(&in, w * w));
        CHECK(cudaMallocManaged(&out, w * w));
        CHECK(cudaMemset(in, 0, w * w));
        CHECK(cudaDeviceSynchronize());
        in[1] = in[w + 2] = in[2 * w] = in[2 * w + 1] = in[2 * w + 2] = true;
        for (int k = 0; k < 4; k++) {
            life<<<w, w>>>(in, out, w);
            CHECK(cudaDeviceSynchronize());
            std::swap(in, out);
        }
        int n = 0;
        for (int i = 0; i < w * w; i++)
            n += in[i];
        EXPECT(n == 5 && in[w + 2] && in[2 * w + 3] && in[3 * w + 1]);
        CHECK(cudaFree(in));
        CHECK(cudaFree(out));
    }
    {
        Dev<unsigned long long> d(std::vector<unsigned long long>(1, 0));
        pi<<<2, 64>>>(d, 100);
        EXPECT(near(4.0 * d.get()[0] / 12800, 3.14159, 0.02));
    }
    return done();
}
