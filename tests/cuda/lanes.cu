/* lanes.cu - shuffles, votes, matches, partial masks, atomics, cooperative
 * groups, a barrier of the grid, half and bfloat16.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

__global__ void shuffles(int *o)
{
    int t = threadIdx.x;

    o[t] = __shfl_sync(~0u, t, 5);
    o[32 + t] = __shfl_up_sync(~0u, t, 3);
    o[64 + t] = __shfl_down_sync(~0u, t, 2, 8);
    o[96 + t] = __shfl_xor_sync(~0u, t, 16);
    o[128 + t] = __shfl_sync(~0u, t, 1, 4);
    double d = __shfl_sync(~0u, t * 0.5, 31);
    long long l = __shfl_xor_sync(~0u, (long long)t << 40, 1);
    o[160 + t] = (int)(d * 2) + (int)(l >> 40);
    if (t & 1) /* half of the lanes among themselves */
        o[192 + t] = __shfl_xor_sync(0xaaaaaaaa, t, 2);
    else
        o[192 + t] = __reduce_add_sync(0x55555555, t);
}
__global__ void votes(unsigned *o)
{
    int t = threadIdx.x;
    int pred;

    if (t == 0) {
        o[0] = __activemask();
        o[1] = __popc(__activemask());
    }
    __syncwarp();
    unsigned b = __ballot_sync(~0u, t % 3 == 0);
    int any = __any_sync(~0u, t == 7), all = __all_sync(~0u, t < 32);
    unsigned m = __match_any_sync(~0u, t / 8);
    unsigned n = __match_all_sync(~0u, 5.0, &pred);
    if (t == 9) {
        o[2] = b, o[3] = any, o[4] = all, o[5] = m, o[6] = n, o[7] = pred;
    }
    int c = __syncthreads_count(t & 1), x = __syncthreads_or(t == 3);
    if (t == 0)
        o[8] = c, o[9] = x, o[10] = __syncthreads_and(1) ? 1 : 0;
    else
        __syncthreads_and(1);
}
__global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f,
                        double *d)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;

    atomicAdd(&i[0], t);
    atomicSub(&i[1], 1);
    atomicMax(&i[2], t ^ 21);
    atomicMin(&i[3], t ^ 21);
    atomicAnd(&u[0], ~(1u << (t % 32)));
    atomicOr(&u[1], 1u << (t % 32));
    atomicXor(&u[2], 1u << (t % 32));
    atomicInc(&u[3], 9);
    atomicDec(&u[4], 9);
    atomicAdd(&l[0], 1ull << 32);
    atomicMax(&l[1], (unsigned long long)t << 33);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    for (int done = 0; !done;) { /* a lock, one lane after another */
        if (atomicCAS(&i[4], 0, 1) == 0) {
            i[5] += 2;
            __threadfence();
            atomicExch(&i[4], 0);
            done = 1;
        }
    }
}
__global__ void tiles(int *o)
{
    cg::thread_block b = cg::this_thread_block();
    cg::thread_block_tile<8> t = cg::tiled_partition<8>(b);
    int r = b.thread_rank();

    o[r] = cg::reduce(t, r, cg::plus<int>());
    o[64 + r] = t.shfl(r, 3) * 100 + t.meta_group_rank();
    o[128 + r] = cg::inclusive_scan(t, 1);
    if (r % 2) {
        cg::coalesced_group c = cg::coalesced_threads();
        o[192 + r] = c.size() * 100 + c.thread_rank() * 10 + c.any(r == 1);
    } else {
        o[192 + r] = t.size();
    }
}
/* Every block adds what all blocks have written before the barrier. */
__global__ void across(int *v, int *o, int n)
{
    cg::grid_group g = cg::this_grid();

    for (int k = 0; k < 3; k++) {
        if (threadIdx.x == 0)
            v[blockIdx.x] = k + blockIdx.x;
        g.sync();
        int s = 0;
        for (int i = 0; i < n; i++)
            s += v[i];
        if (threadIdx.x == 0)
            o[blockIdx.x] += s;
        g.sync();
    }
}
__global__ void halves(__half *h, __nv_bfloat16 *b, float *f)
{
    int t = threadIdx.x;
    __half2 p = __floats2half2_rn(f[t], 2.0f);

    h[t] = __hfma(h[t], __float2half(3.0f), (__half)0.5f);
    f[t] = __high2float(__hmul2(p, p)) + __half2float(hexp2(__low2half(p)));
    b[t] = b[t] * __float2bfloat16(1.5f) + (__nv_bfloat16)1;
    if (t == 0)
        h[1] = __hlt(h[0], h[2]) ? h[2] : h[0];
}


/* Warps whose lanes meet in shared memory without barriers, as programs from
 * before Volta do: every lane loads before any goes on to store. */
__device__ int
scanned(int val, volatile int *s)
{
    int i = threadIdx.x, t;

    s[i] = 0;
    i += 32;
    t = s[i] = val;
    s[i] = t += s[i - 1];
    s[i] = t += s[i - 2];
    s[i] = t += s[i - 4];
    s[i] = t += s[i - 8];
    s[i] = t += s[i - 16];
    return s[i - 1];
}
__global__ void no_barriers(int *o)
{
    __shared__ int s[64], plain[32];
    __shared__ volatile int v[64];
    int t = threadIdx.x;

    if (t % 32 == 31)
        s[t / 32] = t;
    __syncthreads();
    if (t < 32)
        s[t] = scanned(s[t], s);
    __syncthreads();
    o[t] = s[t / 32];
    if (t >= 32)
        return;
    v[t] = t;
    v[t + 32] = 100 + t;
    v[t] += v[t + 32]; /* 100 + 2t */
    v[t] += v[t + 16];
    v[t] += v[t + 8];
    v[t] += v[t + 4];
    v[t] += v[t + 2];
    v[t] += v[t + 1];
    o[1024 + t] = v[0];
    v[31 - t] = t; /* all read backwards what was there before */
    v[t] = v[31 - t] * 2;
    o[1056 + t] = v[t];
    plain[t] = t; /* a ring moves on by one */
    o[1088 + t] = plain[(t + 1) % 32];
}
static void
lanes_without_barriers()
{
    Dev<int> o(std::vector<int>(1120, -1));

    no_barriers<<<1, 1024>>>(o);
    std::vector<int> got = o.get();
    for (int w = 0, sum = 0; w < 32; sum += w * 32 + 31, w++)
        for (int t = 0; t < 32; t++)
            EXPECT(got[w * 32 + t] == sum);
    for (int t = 0; t < 32; t++) {
        EXPECT(got[1024 + t] == 32 * 100 + 31 * 32);
        EXPECT(got[1056 + t] == 2 * t);
        EXPECT(got[1088 + t] == (t + 1) % 32);
    }
}
/* All lanes store one number to one place, and touch nothing beside it. */
struct Spot {
    unsigned char byte, beside[3];
    unsigned word, few, none;
    unsigned long long wide;
    short half, by_half;
    float real;
    int4 four;
    double exact, after;
};

__global__ void one_place(Spot *s, const int *from, int n)
{
    for (int k = 0; k < n; k++) {
        int v = from[k];

        s[k].byte = (unsigned char)v;
        s[k].word = (unsigned)v * 3;
        s[k].wide = (unsigned long long)v << 33 | 1;
        s[k].half = (short)v;
        s[k].real = v * 0.5f;
        s[k].four = make_int4(v, v + 1, v + 2, v + 3);
        s[k].exact = v * 0.25;
        if (threadIdx.x >= 40)
            s[k].few = (unsigned)v + 1;
        if (threadIdx.x >= blockDim.x)
            s[k].none = (unsigned)v;
    }
}

static void stores_to_one_place()
{
    std::vector<Spot> all(7);
    std::vector<int> from(7);

    memset((void *)all.data(), 0x5a, 7 * sizeof(Spot));
    for (int k = 0; k < 7; k++)
        from[k] = 1000 - 300 * k;
    Dev<Spot> d(all);
    Dev<int> f(from);
    one_place<<<3, 45>>>(d, f, 7);
    all = d.get();
    for (int k = 0; k < 7; k++) {
        const Spot *p = &all[k];
        int v = from[k];

        EXPECT(p->byte == (unsigned char)v && p->beside[0] == 0x5a);
        EXPECT(p->word == (unsigned)v * 3 && p->few == (unsigned)v + 1);
        EXPECT(p->none == 0x5a5a5a5a);
        EXPECT(p->wide == ((unsigned long long)v << 33 | 1));
        EXPECT(p->half == (short)v && p->by_half == 0x5a5a);
        EXPECT(p->real == v * 0.5f && p->exact == v * 0.25);
        EXPECT(p->four.x == v && p->four.w == v + 3);
        EXPECT(memcmp(&p->after, "ZZZZZZZZ", 8) == 0);
    }
}

int main()
{
    Dev<int> o(256);
    {
        shuffles<<<1, 32>>>(o);
        auto v = o.get();
        for (int t = 0; t < 32; t++) {
            EXPECT(v[t] == 5 && v[32 + t] == (t < 3 ? t : t - 3));
            EXPECT(v[64 + t] == (t % 8 < 6 ? t + 2 : t));
            EXPECT(v[96 + t] == (t ^ 16) && v[128 + t] == t / 4 * 4 + 1);
            EXPECT(v[160 + t] == 31 + (t ^ 1));
            EXPECT(v[192 + t] == (t & 1 ? t ^ 2 : 240));
        }
    }
    {
        Dev<unsigned> u(16);
        votes<<<1, 32>>>(u);
        auto v = u.get();
        EXPECT(v[0] & 1 && v[2] == 0x49249249 && v[3] && v[4]);
        EXPECT(v[5] == 0xff00 && v[6] == ~0u && v[7] == 1);
        EXPECT(v[8] == 16 && v[9] && v[10] == 1);
    }
    {
        Dev<int> i(std::vector<int>(6, 0));
        Dev<unsigned> u(std::vector<unsigned>({~0u, 0, 0, 0, 0}));
        Dev<unsigned long long> l(std::vector<unsigned long long>(2, 0));
        Dev<float> f(std::vector<float>(1, 0));
        Dev<double> d(std::vector<double>(1, 0));
        atomics<<<3, 64>>>(i, u, l, f, d);
        auto v = i.get();
        EXPECT(v[0] == 191 * 96 && v[1] == -192 && v[2] == 191 && v[3] == 0);
        EXPECT(v[4] == 0 && v[5] == 384);
        auto w = u.get();
        EXPECT(w[0] == 0 && w[1] == ~0u && w[2] == 0 && w[3] == 2 && w[4] == 8);
        EXPECT(l.get()[0] == 192ull << 32 && l.get()[1] == 191ull << 33);
        EXPECT(f.get()[0] == 96 && d.get()[0] == 48);
    }
    {
        tiles<<<1, 64>>>(o);
        auto v = o.get();
        for (int r = 0; r < 64; r++) {
            EXPECT(v[r] == r / 8 * 64 + 28);
            EXPECT(v[64 + r] == (r / 8 * 8 + 3) * 100 + r / 8);
            EXPECT(v[128 + r] == r % 8 + 1);
            EXPECT(v[192 + r] ==
                   (r % 2 ? 1600 + r % 32 / 2 * 10 + (r < 32) : 8));
        }
    }
    {
        int n = 4;
        Dev<int> v(4), s(std::vector<int>(4, 0));
        void *args[] = {&v.p, &s.p, &n};
        CHECK(cudaLaunchCooperativeKernel(across, dim3(4), dim3(64), args));
        auto got = s.get();
        for (int i = 0; i < 4; i++)
            EXPECT(got[i] == 6 + 10 + 14);
        EXPECT(cudaLaunchCooperativeKernel(across, dim3(60000), dim3(64),
                                           args) ==
               cudaErrorCooperativeLaunchTooLarge);
        cudaGetLastError();
    }
    {
        std::vector<__half> h(32);
        std::vector<__nv_bfloat16> b(32);
        std::vector<float> f(32);
        for (int i = 0; i < 32; i++)
            h[i] = __float2half(i * 0.25f), b[i] = (float)i, f[i] = (float)(i % 4);
        Dev<__half> dh(h);
        Dev<__nv_bfloat16> db(b);
        Dev<float> df(f);
        halves<<<1, 32>>>(dh, db, df);
        h = dh.get(), b = db.get(), f = df.get();
        for (int i = 0; i < 32; i++) {
            EXPECT(i == 1 || __half2float(h[i]) == i * 0.75f + 0.5f);
            EXPECT(__bfloat162float(b[i]) == i * 1.5f + 1);
            EXPECT(f[i] == 4 + (1 << i % 4));
        }
        EXPECT(__half2float(h[1]) == 2.0f);
        EXPECT(__half2float(__float2half(65519.0f)) == 65504);
        EXPECT(__half2float(__float2half(65520.0f)) == INFINITY);
        EXPECT(__half_as_ushort(__float2half(0x1p-24f)) == 1);
        EXPECT(__half_as_ushort(__float2half(0x1p-25f)) == 0);
        EXPECT(__half_as_ushort(__float2half(1 + 0x1p-11f)) == 0x3c00);
        EXPECT(__half_as_ushort(__float2half(1 + 0x3p-11f)) == 0x3c02);
        EXPECT(__half2float(__ushort_as_half(0x03ff)) == 1023 * 0x1p-24f);
    }
    lanes_without_barriers();
    stores_to_one_place();
    CHECK(cudaDeviceSynchronize());
    return done();
}
