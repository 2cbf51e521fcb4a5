/* functors.cu - one kernel, many functions: lambdas, functors with state, tables
 * of device pointers, virtual calls, variadic and partly specialised templates.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda/std/functional>

template <class F, class... A>
__global__ void
each(int n, F f, A... a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        f(i, a...);
}
template <class T, class Op>
__global__ void
fold(const T *in, int n, T *out, Op op)
{
    __shared__ T part[64];
    T v = op.zero();

    for (int i = threadIdx.x; i < n; i += blockDim.x)
        v = op(v, in[i]);
    part[threadIdx.x] = v;
    __syncthreads();
    for (int by = blockDim.x / 2; by; by /= 2) {
        if (threadIdx.x < by)
            part[threadIdx.x] = op(part[threadIdx.x], part[threadIdx.x + by]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *out = part[0];
}
template <class T> struct Sum {
    __host__ __device__ T zero() const { return T(0); }
    __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct Clamped {
    T most;
    __host__ __device__ T zero() const { return -most; }
    __host__ __device__ T operator()(T a, T b) const
    {
        T m = a < b ? b : a;

        return m < most ? m : most;
    }
};
template <class T, int N> struct Power {
    static __host__ __device__ T of(T x) { return x * Power<T, N - 1>::of(x); }
};
template <class T> struct Power<T, 0> {
    static __host__ __device__ T of(T) { return 1; }
};

/* A name that some programs have for their own. */
static __device__ unsigned long long
__globaltimer()
{
    return 7;
}

typedef float (*unary)(float);
__device__ float
twice(float x)
{
    return 2 * x;
}
__device__ float
third(float x)
{
    return x / 3;
}
__device__ float
less(float x)
{
    return x - 1;
}
__device__ unary table[] = {twice, third, less};
__device__ unary chosen = less;

__global__ void
call(const float *in, float *out, unary given)
{
    int i = threadIdx.x;

    out[i] = given(table[i % 3](in[i])) + chosen(1.0f);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Ring final : Shape {
    float in, out;
    __device__ Ring(float a, float b) : in(a), out(b) {}
    __device__ float area() const override { return 3 * (out * out - in * in); }
};
__global__ void
areas(float *out)
{
    Shape *s = threadIdx.x % 2 ? (Shape *)new Square(threadIdx.x)
                               : new Ring(1, (float)threadIdx.x);

    out[threadIdx.x] = s->area();
    delete s;
}

int
main()
{
    const int n = 100;
    std::vector<float> v(n);
    for (float &f : v)
        f = rnd() * 8;
    Dev<float> in(v), out(n), one(1);
    Dev<double> d(1);
    float *p = out, k = 3;

    each<<<2, 64>>>(n, [=] __device__(int i) { p[i] = k * i; });
    EXPECT(out.get()[99] == 297);
    cuda::std::identity same;
    each<<<2, 64>>>(n, [=] __device__(int i) { p[i] = same(i) + __globaltimer(); });
    EXPECT(out.get()[99] == 106);
    each<<<2, 64>>>(
        n,
        [] __device__(int i, float *to, const float *a, double b) {
            to[i] = Power<float, 3>::of(a[i]) + (float)b;
        },
        p, (const float *)in, 0.5);
    std::vector<float> got = out.get();
    for (int i = 0; i < n; i++)
        EXPECT(near(got[i], v[i] * v[i] * v[i] + 0.5f, 1e-6));

    fold<<<1, 64>>>((const float *)in, n, (float *)one, Clamped<float>{4});
    EXPECT(one.get()[0] == 4);
    fold<<<1, 64>>>((const float *)in, n, (float *)one, Sum<float>());
    double sum = 0;
    for (float f : v)
        sum += f;
    EXPECT(near(one.get()[0], sum, 1e-5));

    unary host;
    CHECK(cudaMemcpyFromSymbol(&host, chosen, sizeof host));
    call<<<1, n>>>(in, out, host);
    got = out.get();
    for (int i = 0; i < n; i++)
        EXPECT(near(got[i],
                    (i % 3 == 0   ? 2 * v[i]
                     : i % 3 == 1 ? v[i] / 3
                                  : v[i] - 1) -
                        1,
                    1e-6));

    areas<<<1, 10>>>(out);
    got = out.get();
    for (int i = 0; i < 10; i++)
        EXPECT(got[i] == (i % 2 ? i * i : 3 * (i * i - 1)));
    return done();
}
