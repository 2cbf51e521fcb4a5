/* fourier.cu - a transform of 256 complex numbers in shared memory, forth and
 * back, against the sum that defines it; with operators on float2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { N = 256 };
struct Complex {
    float re, im;
    __host__ __device__ Complex(float a = 0, float b = 0) : re(a), im(b) {}
    __device__ Complex operator+(const Complex &o) const
    {
        return Complex(re + o.re, im + o.im);
    }
    __device__ Complex operator-(const Complex &o) const
    {
        return Complex(re - o.re, im - o.im);
    }
    __device__ Complex operator*(const Complex &o) const
    {
        return Complex(re * o.re - im * o.im, re * o.im + im * o.re);
    }
};

/* Stockham: no bits are reversed, two buffers change places. */
template <bool Inverse>
__global__ void
transform(const float2 *in, float2 *out)
{
    extern __shared__ float raw[];
    float2 *from = (float2 *)raw, *to = from + N;
    int j = threadIdx.x;

    in += blockIdx.x * N;
    from[j] = in[j];
    from[j + N / 2] = in[j + N / 2];
    __syncthreads();
    for (int half = 1; half < N; half *= 2) {
        int k = j % half, at = (j / half) * half * 2 + k;
        float s, c;

        sincospif((Inverse ? 1.0f : -1.0f) * k / half, &s, &c);
        Complex a(from[j].x, from[j].y), w(c, s);
        Complex b = Complex(from[j + N / 2].x, from[j + N / 2].y) * w;
        Complex sum = a + b, diff = a - b;

        to[at] = make_float2(sum.re, sum.im);
        to[at + half] = make_float2(diff.re, diff.im);
        float2 *t = from;
        from = to;
        to = t;
        __syncthreads();
    }
    for (int i = j; i < N; i += N / 2) {
        float2 v = from[i];

        if (Inverse)
            v = make_float2(v.x / N, v.y / N);
        out[blockIdx.x * N + i] = v;
    }
}

int
main()
{
    std::vector<float2> v(2 * N);

    for (float2 &x : v)
        x = make_float2(rnd() - 0.5f, rnd() - 0.5f);
    Dev<float2> in(v), mid(2 * N), back(2 * N);

    transform<false><<<2, N / 2, 2 * N * sizeof(float2)>>>(in, mid);
    transform<true><<<2, N / 2, 2 * N * sizeof(float2)>>>(mid, back);
    std::vector<float2> m = mid.get(), b = back.get();
    for (int i = 0; i < 2 * N; i++)
        EXPECT(fabs(b[i].x - v[i].x) < 1e-6 && fabs(b[i].y - v[i].y) < 1e-6);
    for (int f = 0; f < N; f += 23) {
        double re = 0, im = 0;

        for (int i = 0; i < N; i++) {
            double a = -2 * M_PI * f * i / N;

            re += v[N + i].x * cos(a) - v[N + i].y * sin(a);
            im += v[N + i].x * sin(a) + v[N + i].y * cos(a);
        }
        EXPECT(fabs(m[N + f].x - re) < 1e-4 && fabs(m[N + f].y - im) < 1e-4);
    }
    return done();
}
