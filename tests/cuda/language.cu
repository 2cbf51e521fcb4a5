/* language.cu - C++ on the device: templates, classes, structs by value,
 * function pointers, lambdas, recursion, globals, local arrays, new.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <assert.h>
#include <limits>

/* Headers that people name, though cuda_runtime.h is enough. */
#include <common_functions.h>
#include <crt/device_functions.h>
#include <crt/host_config.h>
#include <crt/host_defines.h>
#include <crt/math_functions.h>
#include <crt/mma.h>
#include <cuda/std/cassert>
#include <cudaProfiler.h>
#include <cuda_bf16.hpp>
#include <cuda_fp16.hpp>
#include <curand_globals.h>
#include <curand_normal.h>
#include <curand_poisson.h>
#include <curand_uniform.h>
#include <device_double_functions.h>
#include <driver_functions.h>
#include <host_config.h>
#include <sm_20_intrinsics.h>
#include <sm_32_intrinsics.h>
#include <sm_35_intrinsics.h>
#include <vector_functions.hpp>

/* ---- templates, functors, lambdas ------------------------------------------- */

template <class T, int N> struct Vec {
    T v[N];
    __host__ __device__ T &operator[](int i) { return v[i]; }
    __host__ __device__ const T &operator[](int i) const { return v[i]; }
    template <class U> __device__ auto dot(const Vec<U, N> &o) const
    {
        decltype(T() * U()) s = 0;
        for (int i = 0; i < N; i++)
            s += v[i] * o[i];
        return s;
    }
};
template <class T, class Op> __global__ void apply(T *p, int n, Op op)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        p[i] = op(p[i], i);
}
struct AddIndex {
    int times;
    __device__ int operator()(int x, int i) const { return x + times * i; }
};
template <class... A> __device__ int total(A... a) { return (0 + ... + a); }
template <int N> struct Fib {
    static constexpr int value = Fib<N - 1>::value + Fib<N - 2>::value;
};
template <> struct Fib<1> {
    static constexpr int value = 1;
};
template <> struct Fib<0> {
    static constexpr int value = 0;
};
__global__ void generic(int *out)
{
    Vec<int, 3> a = {{1, 2, 3}};
    Vec<double, 3> b = {{0.5, 0.5, 2}};

    out[0] = (int)(a.dot(b) * 10);
    out[1] = total(1, 2, 3, 4);
    out[2] = Fib<10>::value;
    auto twice = [](auto x) { return x + x; };
    out[3] = twice(21);
    if constexpr (sizeof(void *) == 8)
        out[4] = 8;
    out[5] = std::numeric_limits<int>::max() == 2147483647;
}

/* ---- structs by value, many parameters --------------------------------------- */

struct Big {
    char c;
    double d;
    short s[5];
    float4 f;
    int *p;
    char pad[3000];
};
__global__ void by_value(Big b, char x, short y, long long z, float3 w)
{
    b.p[0] = b.c + (int)b.d + b.s[4] + (int)b.f.w + b.pad[2999];
    b.p[1] = x + y + (int)z + (int)(w.x + w.y + w.z);
}
__global__ void many(int *o, int a, int b, int c, int d, int e, int f, int g,
                     int h, int i, int j, int k, int l, int m, int n, char p,
                     double q, int *r, unsigned char s, float t, bool u)
{
    *o = a + b + c + d + e + f + g + h + i + j + k + l + m + n + p + (int)q +
         *r + s + (int)t + u;
}

/* ---- function pointers, virtual functions, recursion --------------------------- */

typedef int (*Op)(int, int);
__device__ __noinline__ int op_add(int a, int b) { return a + b; }
__device__ __noinline__ int op_mul(int a, int b) { return a * b; }
__device__ Op table[2] = {op_add, op_mul};
__global__ void pointers(int *out, int which)
{
    __assume(which < 2);
    Op local = which ? op_mul : op_add;

    out[0] = table[which](6, 7);
    out[1] = local(3, 4);
}
struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float a;
    __device__ Square(float x) : a(x) {}
    __device__ float area() const override { return a * a; }
};
struct Circle : Shape {
    float r;
    __device__ Circle(float x) : r(x) {}
    __device__ float area() const override { return 3 * r * r; }
};
__global__ void shapes(float *out, int kind)
{
    Shape *s = kind ? (Shape *)new Circle(2) : (Shape *)new Square(5);

    *out = s->area();
    delete s;
}
__device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
__global__ void recursion(int *out) { out[threadIdx.x] = ackermann(2, threadIdx.x); }

/* ---- globals --------------------------------------------------------------------- */

__device__ int counter = 5;
__device__ float table2d[2][3] = {{1, 2, 3}, {4, 5, 6}};
__constant__ int primes[5] = {2, 3, 5, 7, 11};
__managed__ int shared_by_both = 40;
__device__ const char *word = "brass";
struct Node {
    int v;
    Node *next;
};
extern __device__ Node second;
__device__ Node first = {1, &second};
__device__ Node second = {2, nullptr};
__global__ void globals(int *out)
{
    static __device__ int calls = 0;
    static __shared__ int s;

    if (threadIdx.x == 0)
        s = 100;
    __syncthreads();
    atomicAdd(&counter, primes[threadIdx.x]);
    atomicAdd(&calls, 1);
    __syncthreads();
    if (threadIdx.x)
        return;
    out[0] = s + (int)table2d[1][2];
    out[1] = word[4];
    out[2] = first.next->v;
    out[3] = calls;
    shared_by_both += 2;
}

/* ---- control flow, local memory ----------------------------------------------------- */

__device__ int classify(int x)
{
    switch (x % 7) {
    case 0: return 1;
    case 1:
    case 2: x *= 2; /* falls through */
    case 3: return x;
    case 4: goto end;
    default: break;
    }
    for (int i = 0;; i++) {
        if (i * i > x)
            return i;
        if (i == 50)
            break;
    }
end:
    return -x;
}
__global__ void flow(int *out)
{
    int a[8], i = threadIdx.x, k = 0;

    for (int j = 0; j < 8; j++)
        a[j] = (i * 31 + j * 17) % 23;
    for (int j = 0; j < 8; j++)
        for (int l = j + 1; l < 8; l++)
            if (a[l] < a[j]) {
                int t = a[j];
                a[j] = a[l];
                a[l] = t;
            }
    do {
        k += a[k % 8] + 1;
        if (k > 40)
            continue;
        k++;
    } while (k < 60);
    out[i] = classify(i) * 1000 + k + a[i % 8];
}
static int flow_host(int i)
{
    int a[8], k = 0, x = i, c = 0;
    for (int j = 0; j < 8; j++)
        a[j] = (i * 31 + j * 17) % 23;
    for (int j = 0; j < 8; j++)
        for (int l = j + 1; l < 8; l++)
            if (a[l] < a[j])
                std::swap(a[j], a[l]);
    do {
        k += a[k % 8] + 1;
        if (k > 40)
            continue;
        k++;
    } while (k < 60);
    if (x % 7 == 0)
        c = 1;
    else if (x % 7 < 3)
        c = 2 * x;
    else if (x % 7 == 3)
        c = x;
    else if (x % 7 == 4)
        c = -x;
    else
        for (int j = 0; !c; j++)
            if (j * j > x)
                c = j;
    return c * 1000 + k + a[i % 8];
}

__global__ void heap(int *out)
{
    int *p = (int *)malloc(16 * sizeof *p);

    assert(p != nullptr);
    for (int i = 0; i < 16; i++)
        p[i] = i * threadIdx.x;
    out[threadIdx.x] = p[15];
    free(p);
}
/* Lists that live from one kernel to the next. */
__device__ Node *list;
__global__ void push(int v)
{
    Node *n = new Node;

    n->v = v;
    n->next = list;
    list = n;
}
/* It gets no memory itself, nor gives it back. */
__global__ void count_list(int *out)
{
    for (const Node *n = list; n; n = n->next)
        *out += 1000;
}
__global__ void sum_list(int *out)
{
    for (Node *n = list; n;) {
        Node *next = n->next;
        *out += n->v;
        delete n;
        n = next;
    }
}

__global__ void integers(long long *out)
{
    unsigned char c = 250;
    short s = -30000;
    c += 10;
    s -= 10000;
    out[0] = c;
    out[1] = s;
    out[2] = -7 / 2 * 10 + -7 % 2;
    out[3] = (long long)(1ull << 63 >> 3);
    out[4] = (int)3000000000u >> 4;
    out[5] = (long long)((unsigned __int128)~0ull * ~0ull >> 64);
    out[6] = __funnelshift_l(0x80000001u, 0x12345678u, 4);
    out[7] = (int)-2.7f + (long long)(unsigned)3e9f;
}

#ifndef __NVCC__
#    error "programs ask for __NVCC__ where they mean CUDA"
#endif
__device__ bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}
__global__ void errors(int *out)
{
    out[0] = same_text(cudaGetErrorString(cudaErrorInvalidValue),
                       "invalid argument");
    out[1] = same_text(cudaGetErrorName((cudaError_t)12345),
                       "unrecognized error code");
}

/* People forget a result that nobody reads. */
#pragma clang diagnostic ignored "-Wreturn-type"
__device__ int no_result(int x)
{
    if (x > 2)
        return 2 * x;
}
__global__ void without_result(int *out)
{
    int t = threadIdx.x;
    if (t > 2) {
        out[t] = no_result(t);
    } else {
        no_result(t);
        out[t] = 7;
    }
}

int main()
{
    Dev<int> out(std::vector<int>(64, 0));
    std::vector<int> v;
    without_result<<<1, 8>>>(out);
    v = out.get();
    EXPECT(v[0] == 7 && v[2] == 7 && v[3] == 6 && v[7] == 14);
    generic<<<1, 1>>>(out);
    v = out.get();
    EXPECT(v[0] == 75 && v[1] == 10 && v[2] == 55 && v[3] == 42 && v[4] == 8 &&
           v[5] == 1);
    {
        int by = 3;
        Dev<int> p(std::vector<int>(40, 1));
        apply<<<2, 32>>>(p.p, 40, AddIndex{2});
        apply<<<2, 32>>>(p.p, 40,
                         [=] __device__(int x, int i) { return x * by - i; });
        v = p.get();
        for (int i = 0; i < 40; i++)
            EXPECT(v[i] == (1 + 2 * i) * 3 - i);
    }
    Big b = {};
    b.c = 1, b.d = 20, b.s[4] = 300, b.f.w = 4000, b.p = out, b.pad[2999] = 7;
    by_value<<<1, 1>>>(b, 1, 20, 300, make_float3(1000, 2000, 3000));
    v = out.get();
    EXPECT(v[0] == 4328 && v[1] == 6321);
    many<<<1, 1>>>(out, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16.5,
                   out + 1, 17, 18.25f, true);
    EXPECT(out.get()[0] == 6321 + 105 + 15 + 16 + 17 + 18 + 1);
    for (int k = 0; k < 2; k++) {
        pointers<<<1, 32>>>(out, k);
        v = out.get();
        EXPECT(v[0] == (k ? 42 : 13) && v[1] == (k ? 12 : 7));
        Dev<float> f(1);
        shapes<<<1, 1>>>(f, k);
        EXPECT(f.get()[0] == (k ? 12 : 25));
    }
    recursion<<<1, 4>>>(out);
    v = out.get();
    for (int i = 0; i < 4; i++)
        EXPECT(v[i] == 2 * i + 3);
    EXPECT(shared_by_both == 40);
    globals<<<1, 5>>>(out);
    CHECK(cudaDeviceSynchronize());
    v = out.get();
    EXPECT(v[0] == 106 && v[1] == 's' && v[2] == 2 && v[3] == 5);
    EXPECT(shared_by_both == 42);
    int c;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    EXPECT(c == 5 + 28);
    flow<<<1, 64>>>(out);
    v = out.get();
    for (int i = 0; i < 64; i++)
        EXPECT(v[i] == flow_host(i));
    heap<<<1, 33>>>(out);
    EXPECT(out.get()[32] == 15 * 32);
    CHECK(cudaMemset(out, 0, 4));
    for (int i = 1; i <= 4; i++)
        push<<<1, 1>>>(i * i);
    count_list<<<1, 1>>>(out);
    sum_list<<<1, 1>>>(out);
    EXPECT(out.get()[0] == 4030);
    Dev<long long> w(8);
    integers<<<1, 1>>>(w);
    auto q = w.get();
    EXPECT(q[0] == 4 && q[1] == 25536 && q[2] == -31 && q[3] == 1ll << 60);
    EXPECT(q[4] == (int)3000000000u >> 4 && q[5] == -2 && q[6] == 0x23456788);
    EXPECT(q[7] == 2999999998);
    errors<<<1, 1>>>(out);
    v = out.get();
    EXPECT(v[0] == 1 && v[1] == 1);
    CHECK(cudaDeviceSynchronize());
    return done();
}
