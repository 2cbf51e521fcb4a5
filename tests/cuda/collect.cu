/* collect.cu - reductions, scans, histograms, compaction, sorts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <algorithm>

typedef std::vector<int> ints;

__inline__ __device__ int warp_sum(int v)
{
    for (int o = warpSize / 2; o > 0; o /= 2)
        v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}

__global__ void reduce_shuffle(const int *in, int *out, int n)
{
    __shared__ int part[32];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, v = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        v += in[i];
    v = warp_sum(v);
    if (lane == 0)
        part[w] = v;
    __syncthreads();
    if (w == 0) {
        v = lane < blockDim.x / 32 ? part[lane] : 0;
        v = warp_sum(v);
        if (lane == 0)
            atomicAdd(out, v);
    }
}

template <unsigned B> __device__ void tail(volatile int *s, unsigned t)
{
    if (B >= 64) s[t] += s[t + 32];
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    __syncwarp();
    if (t < 8) s[t] += s[t + 8];
    __syncwarp();
    if (t < 4) s[t] += s[t + 4];
    __syncwarp();
    if (t < 2) s[t] += s[t + 2];
    __syncwarp();
    if (t < 1) s[t] += s[t + 1];
}
template <unsigned B> __global__ void reduce_unrolled(const int *in, int *out)
{
    extern __shared__ int sh[];
    unsigned t = threadIdx.x;

    sh[t] = in[blockIdx.x * B * 2 + t] + in[blockIdx.x * B * 2 + B + t];
    __syncthreads();
    if (B >= 128) {
        if (t < 64) sh[t] += sh[t + 64];
        __syncthreads();
    }
    if (t < 32) tail<B>(sh, t);
    if (t == 0) out[blockIdx.x] = sh[0];
}

__global__ void scan_hillis(const int *in, int *out, int n)
{
    extern __shared__ int s[];
    int t = threadIdx.x, from = 0;

    s[t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        int to = 1 - from;
        s[to * n + t] = s[from * n + t] + (t >= d ? s[from * n + t - d] : 0);
        from = to;
        __syncthreads();
    }
    out[t] = s[from * n + t];
}

__global__ void scan_blelloch(int *data, int n)
{
    extern __shared__ int s[];
    int t = threadIdx.x;

    s[2 * t] = data[2 * t];
    s[2 * t + 1] = data[2 * t + 1];
    int off = 1;
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[off * (2 * t + 2) - 1] += s[off * (2 * t + 1) - 1];
        off *= 2;
    }
    if (t == 0) s[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        off >>= 1;
        __syncthreads();
        if (t < d) {
            int a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1;
            int x = s[a];
            s[a] = s[b];
            s[b] += x;
        }
    }
    __syncthreads();
    data[2 * t] = s[2 * t];
    data[2 * t + 1] = s[2 * t + 1];
}

__global__ void histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned bins[256];

    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&out[i], bins[i]);
}

/* Odd numbers to the front, with one atomic for each warp. */
__global__ void compact(const int *in, int *out, int *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool keep = i < n && (in[i] & 1);
    unsigned m = __ballot_sync(0xffffffff, keep);
    int lane = threadIdx.x & 31, base = 0;

    if (lane == 0)
        base = atomicAdd(count, __popc(m));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep)
        out[base + __popc(m & ((1u << lane) - 1))] = in[i];
}

__global__ void bitonic(int *v, int j, int k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i ^ j;

    if (x > i) {
        bool up = (i & k) == 0;
        if (up == (v[i] > v[x])) {
            int t = v[i];
            v[i] = v[x];
            v[x] = t;
        }
    }
}

__global__ void radix_pass(const unsigned *in, unsigned *out, int n, int shift)
{
    __shared__ int count[16], start[16];

    if (threadIdx.x < 16) count[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&count[in[threadIdx.x] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x == 0)
        for (int d = 0, s = 0; d < 16; d++) {
            start[d] = s;
            s += count[d];
        }
    __syncthreads();
    if (threadIdx.x < 16)
        for (int i = 0, at = start[threadIdx.x]; i < n; i++)
            if ((in[i] >> shift & 15) == threadIdx.x)
                out[at++] = in[i];
}

int main()
{
    const int n = 2048;
    ints v(n);
    for (int &x : v)
        x = (int)(rnd() * 1000) - 500;
    int sum = 0;
    for (int x : v)
        sum += x;
    Dev<int> in(v);
    {
        Dev<int> out(ints(1, 0)), parts(8);
        reduce_shuffle<<<3, 96>>>(in, out, n);
        EXPECT(out.get()[0] == sum);
        reduce_unrolled<128><<<8, 128, 128 * sizeof(int)>>>(in, parts);
        int s = 0;
        for (int x : parts.get())
            s += x;
        EXPECT(s == sum);
    }
    {
        Dev<int> out(256), d(ints(v.begin(), v.begin() + 256));
        scan_hillis<<<1, 256, 2 * 256 * sizeof(int)>>>(in, out, 256);
        scan_blelloch<<<1, 128, 256 * sizeof(int)>>>(d, 256);
        ints a = out.get(), b = d.get();
        for (int i = 0, s = 0; i < 256; i++) {
            EXPECT(b[i] == s);
            s += v[i];
            EXPECT(a[i] == s);
        }
    }
    {
        std::vector<unsigned char> bytes(3000);
        std::vector<unsigned> want(256, 0);
        for (auto &b : bytes) {
            b = (unsigned char)(rnd() * rnd() * 256);
            want[b]++;
        }
        Dev<unsigned char> d(bytes);
        Dev<unsigned> out(std::vector<unsigned>(256, 0));
        histogram<<<4, 64>>>(d, out, 3000);
        EXPECT(out.get() == want);
    }
    {
        Dev<int> out(n), count(ints(1, 0));
        compact<<<n / 128, 128>>>(in, out, count, n);
        int got = count.get()[0];
        ints a = out.get(), b;
        a.resize(got);
        for (int x : v)
            if (x & 1)
                b.push_back(x);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        EXPECT(a == b);
    }
    {
        const int m = 512;
        Dev<int> d(ints(v.begin(), v.begin() + m));
        for (int k = 2; k <= m; k *= 2)
            for (int j = k / 2; j > 0; j /= 2)
                bitonic<<<m / 128, 128>>>(d, j, k);
        ints a = d.get();
        EXPECT(std::is_sorted(a.begin(), a.end()));
    }
    {
        std::vector<unsigned> u(256), want;
        for (auto &x : u)
            x = (unsigned)(rnd() * 65536);
        want = u;
        std::sort(want.begin(), want.end());
        Dev<unsigned> a(u), b(256);
        for (int s = 0; s < 16; s += 8) {
            radix_pass<<<1, 256>>>(a, b, 256, s);
            radix_pass<<<1, 256>>>(b, a, 256, s + 4);
        }
        EXPECT(a.get() == want);
    }
    return done();
}
