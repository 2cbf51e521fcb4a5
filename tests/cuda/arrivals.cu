/* arrivals.cu - mbarriers by hand, in PTX of sm_90: bytes that come before somebody
 * expects them, threads that leave for good, stores and sums that an mbarrier hears of,
 * bulk copies that add.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

enum { N = 128 };

__device__ static unsigned
shared(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ static void
prepare(uint64_t *bar, unsigned n)
{
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(bar)), "r"(n)
                     : "memory");
    __syncthreads();
}

__device__ static uint64_t
arrive(uint64_t *bar)
{
    uint64_t state;

    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];"
                 : "=l"(state) : "r"(shared(bar)) : "memory");
    return state;
}

__device__ static void
wait(uint64_t *bar, unsigned parity)
{
    unsigned over = 0;

    while (!over)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, p;}"
                     : "=r"(over) : "r"(shared(bar)), "r"(parity) : "memory");
}

/* As the programming guide has it: the copy first, what it brings is said later. */
__global__ void
late(const int *in, int *out)
{
    __shared__ __align__(16) int a[N];
    __shared__ __align__(8) uint64_t bar;

    prepare(&bar, N);
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                         __cvta_generic_to_global(in)), "r"((unsigned)sizeof a));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], 1;" ::"r"(shared(a)),
                     "l"(__cvta_generic_to_global(in)), "r"((unsigned)sizeof a),
                     "r"(shared(&bar)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                         shared(&bar)), "r"((unsigned)sizeof a) : "memory");
    } else {
        arrive(&bar);
    }
    wait(&bar, 0);
    out[threadIdx.x] = a[N - 1 - threadIdx.x];
}

/* Every round a warp leaves; counts[r]: who came to round r; missing: sums of what the
 * states say was missing. */
__global__ void
fewer(int *counts, unsigned *missing)
{
    __shared__ __align__(8) uint64_t bar;
    __shared__ int n[4];
    const int t = threadIdx.x;
    uint64_t state;
    unsigned left;

    if (t < 4)
        n[t] = 0;
    prepare(&bar, N);
    for (int r = 0; r < 4; r++) {
        if (t / (N / 4) == r && r < 3) {
            if (r == 1)
                asm volatile("mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [%0], "
                             "1;" ::"r"(shared(&bar)) : "memory");
            else
                asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];"
                             : "=l"(state) : "r"(shared(&bar)) : "memory");
            return;
        }
        atomicAdd(&n[r], 1);
        state = arrive(&bar);
        wait(&bar, r & 1);
        asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));
        atomicAdd(&missing[r], left);
        if (t == N - 1)
            counts[r] = n[r];
    }
}

/* Threads write into each other's places; the barrier hears of every byte. */
__global__ void
told(int *out, unsigned *sums)
{
    __shared__ __align__(16) int a[N], b[2 * N], c[4 * N];
    __shared__ __align__(8) unsigned long long big;
    __shared__ unsigned s[8];
    __shared__ __align__(8) uint64_t bar;
    const unsigned t = threadIdx.x, to = (t + 5) % N;

    if (t < 8)
        s[t] = t == 1 ? 1000 : t == 3 ? 0xffffffffu : 0;
    big = 1ull << 40;
    prepare(&bar, N);
#define TOLD ".shared::cluster.mbarrier::complete_tx::bytes"
#define RED(op, type, at, v)                                                        \
    asm volatile("red.async.relaxed.cluster" TOLD "." op "." type " [%0], %1, [%2];" \
                 ::"r"(shared(&s[at])), "r"(v), "r"(shared(&bar)) : "memory")
    asm volatile("st.async.weak" TOLD ".s32 [%0], %1, [%2];" ::"r"(shared(&a[to])),
                 "r"(t), "r"(shared(&bar)) : "memory");
    asm volatile("st.async" TOLD ".v2.b32 [%0+0], {%1, %2}, [%3];" ::"r"(
                     shared(&b[2 * to])), "r"(t), "r"(t + 100), "r"(shared(&bar))
                 : "memory");
    asm volatile("st.async" TOLD ".v4.b32 [%0], {%1, %2, %1, %2}, [%3];" ::"r"(
                     shared(&c[4 * to])), "r"(t), "r"(t * t), "r"(shared(&bar))
                 : "memory");
    RED("add", "u32", 0, t);
    RED("min", "u32", 1, t + 7);
    RED("max", "s32", 2, (int)t - 9);
    RED("and", "b32", 3, ~(1u << t % 30));
    RED("or", "b32", 4, 1u << t % 30);
    RED("xor", "b32", 5, t * 3);
    RED("inc", "u32", 6, 9u);
    RED("dec", "u32", 7, 49u);
    asm volatile("red.async.relaxed.cluster" TOLD ".add.u64 [%0], %1, [%2];" ::"r"(
                     shared(&big)), "l"(t * 0x100000001ull), "r"(shared(&bar))
                 : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&bar)),
                 "r"(4 + 8 + 16 + 8 * 4 + 8) : "memory");
    wait(&bar, 0);
    out[t] = a[t] + b[2 * t] + b[2 * t + 1] + c[4 * t] + c[4 * t + 1] + c[4 * t + 2] +
             c[4 * t + 3];
    if (t < 8)
        sums[t] = s[t];
    if (t == 0)
        memcpy(sums + 8, &big, 8);
}

/* Every block folds its numbers into those of global memory. */
#define INTO(name, T, suffix)                                                            \
    __global__ void name(T *out, const T *in)                                            \
    {                                                                                    \
        __shared__ __align__(16) T a[N];                                                 \
        a[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];                               \
        __syncthreads();                                                                 \
        if (threadIdx.x == 0)                                                            \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." suffix    \
                         " [%0], [%1], %2;\ncp.async.bulk.commit_group;\n"               \
                         "cp.async.bulk.wait_group 0;" ::"l"(                            \
                             __cvta_generic_to_global(out)), "r"(shared(a)),             \
                         "r"((unsigned)sizeof a) : "memory");                            \
    }
INTO(add_s32, int, "add.s32")
INTO(min_s64, long long, "min.s64")
INTO(or_b32, unsigned, "or.b32")
INTO(add_u64, unsigned long long, "add.u64")
INTO(add_f32, float, "add.f32")
INTO(add_f64, double, "add.f64")
INTO(add_f16, __half, "add.noftz.f16")
INTO(max_bf16, __nv_bfloat16, "max.bf16")

/* Of shared memory into shared memory, which an mbarrier hears of. */
__global__ void
inside(int *out)
{
    __shared__ __align__(16) int a[N], b[N];
    __shared__ __align__(8) uint64_t bar;
    const int t = threadIdx.x;

    a[t] = t * 7 % 50;
    b[t] = 30;
    prepare(&bar, 1);
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                         shared(&bar)), "r"((unsigned)sizeof a) : "memory");
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::"
                     "complete_tx::bytes.max.s32 [%0], [%1], %2, [%3];" ::"r"(shared(b)),
                     "r"(shared(a)), "r"((unsigned)sizeof a), "r"(shared(&bar))
                     : "memory");
    }
    wait(&bar, 0);
    out[t] = b[t];
}

/* Nothing is read where the predicate holds. */
__global__ void
some(const int *in, int *out)
{
    __shared__ __align__(16) int a[N];
    const int t = threadIdx.x;

    a[t] = -1;
    __syncthreads();
    asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0;\n"
                 "cp.async.ca.shared.global [%0], [%1], 4, p;\ncp.async.wait_all;}" ::"r"(
                     shared(&a[t])), "l"(__cvta_generic_to_global(in + t)), "r"(t % 3)
                 : "memory");
    __syncthreads();
    out[t] = a[t];
}

template <class T, class F>
static void
folded(void (*run)(T *, const T *), F f)
{
    std::vector<T> in(3 * N), out(N);

    for (int k = 0; k < 3 * N; k++)
        in[k] = (T)(float)(k * 37 % 101 - 50);
    for (int k = 0; k < N; k++)
        out[k] = (T)(float)(k % 20);
    Dev<T> din(in), dout(out);
    run<<<3, N>>>(dout.p, din.p);
    std::vector<T> is = dout.get();
    for (int k = 0; k < N; k++) {
        for (int b = 0; b < 3; b++)
            out[k] = f(out[k], in[b * N + k]);
        EXPECT(memcmp(&is[k], &out[k], sizeof(T)) == 0);
    }
}

static void
check_told()
{
    Dev<int> out(N);
    Dev<unsigned> sums(10);
    unsigned e[8] = {0, 1000, 0, 0xffffffffu, 0, 0, 0, 0};
    unsigned long long big = 1ull << 40, is;

    told<<<1, N>>>(out.p, sums.p);
    std::vector<int> a = out.get();
    std::vector<unsigned> s = sums.get();
    for (unsigned t = 0; t < N; t++) {
        const unsigned from = (t + N - 5) % N;

        EXPECT(a[t] == (int)(from + from + from + 100 + 2 * from + 2 * from * from));
        e[0] += t;
        e[1] = e[1] < t + 7 ? e[1] : t + 7;
        e[2] = (int)e[2] > (int)t - 9 ? e[2] : t - 9;
        e[3] &= ~(1u << t % 30);
        e[4] |= 1u << t % 30;
        e[5] ^= t * 3;
        e[6] = e[6] >= 9 ? 0 : e[6] + 1;
        e[7] = e[7] == 0 || e[7] > 49 ? 49 : e[7] - 1;
        big += t * 0x100000001ull;
    }
    for (int k = 0; k < 8; k++)
        EXPECT(s[k] == e[k]);
    memcpy(&is, &s[8], 8);
    EXPECT(is == big);
}

int
main()
{
    std::vector<int> in(N);
    Dev<int> out(N);
    Dev<unsigned> missing(std::vector<unsigned>(4, 0));

    for (int k = 0; k < N; k++)
        in[k] = k * 3 + 1;
    Dev<int> din(in);
    late<<<1, N>>>(din.p, out.p);
    std::vector<int> is = out.get();
    for (int k = 0; k < N; k++)
        EXPECT(is[k] == in[N - 1 - k]);
    fewer<<<1, N>>>(out.p, missing.p);
    is = out.get();
    EXPECT(is[0] == 96 && is[1] == 64 && is[2] == 32 && is[3] == 32);
    EXPECT(missing.get()[3] == 32 * 33 / 2); /* 32, 31 ... 1 */
    check_told();
    folded<int>(add_s32, [](int a, int b) { return a + b; });
    folded<long long>(min_s64, [](long long a, long long b) { return a < b ? a : b; });
    folded<unsigned>(or_b32, [](unsigned a, unsigned b) { return a | b; });
    folded<unsigned long long>(
        add_u64, [](unsigned long long a, unsigned long long b) { return a + b; });
    folded<float>(add_f32, [](float a, float b) { return a + b; });
    folded<double>(add_f64, [](double a, double b) { return a + b; });
    folded<__half>(add_f16,
                   [](__half a, __half b) { return __half((float)a + (float)b); });
    folded<__nv_bfloat16>(max_bf16, [](__nv_bfloat16 a, __nv_bfloat16 b) {
        return (float)a > (float)b ? a : b;
    });
    inside<<<1, N>>>(out.p);
    is = out.get();
    for (int k = 0; k < N; k++)
        EXPECT(is[k] == (k * 7 % 50 > 30 ? k * 7 % 50 : 30));
    some<<<1, N>>>(din.p, out.p);
    is = out.get();
    for (int k = 0; k < N; k++)
        EXPECT(is[k] == (k % 3 ? 0 : in[k]));
    return done();
}
