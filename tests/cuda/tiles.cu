/* tiles.cu - tiles of several warps, tiles of tiles, barriers by number; several
 * numbers in a word; the smaller and larger of three; complex numbers of cuda/std.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/functional>
#include <cuda/std/complex>
namespace cg = cooperative_groups;

template <unsigned N, unsigned T>
__global__ void warps(int *o, const int *in)
{
    __shared__ cg::block_tile_memory<T> room;
    __shared__ int part[T];
    auto block = cg::this_thread_block(room);
    auto tile = cg::tiled_partition<N>(block);
    int t = threadIdx.x, v = in[t], *r = o + 12 * t;

    r[0] = cg::reduce(tile, v, cg::plus<int>());
    r[1] = (int)cg::reduce(tile, (double)v, cg::greater<double>());
    r[2] = tile.shfl(v, 37);
    r[3] = tile.any(v == 5 && tile.meta_group_rank() == 1);
    r[4] = tile.all(tile.thread_rank() < N);
    r[5] = tile.meta_group_rank() * 1000 + tile.meta_group_size();
    r[6] = tile.thread_rank() + tile.size();
    part[t] = 0;
    for (int k = 0; k < 20; k++) { /* each tile at its own speed */
        part[t] += k;
        tile.sync();
        int next = part[t - tile.thread_rank() + (tile.thread_rank() + 1) % N];
        tile.sync();
        r[7] = next;
    }
    auto half = cg::tiled_partition<32>(tile);
    auto q = cg::tiled_partition<8>(half);
    r[8] = half.meta_group_size() * 100 + half.meta_group_rank();
    r[9] = q.meta_group_size() * 100 + q.meta_group_rank();
    __shared__ cuda::atomic<int, cuda::thread_scope_block> total;
    if (t == 0)
        total = 100;
    block.sync();
    if (t < 32)
        r[10] = cg::exclusive_scan_update(half, total, v);
    block.sync();
    r[11] = total;
}

template <unsigned N, unsigned T>
static void tiles()
{
    int *o, *in;

    CHECK(cudaMallocManaged(&o, T * 12 * 4));
    CHECK(cudaMallocManaged(&in, T * 4));
    for (int i = 0; i < (int)T; i++)
        in[i] = i * 37 % 101;
    warps<N, T><<<1, T>>>(o, in);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < (int)T; t++) {
        int from = t / N * N, sum = 0, most = 0, before = 100, *r = o + 12 * t;
        bool five = false;

        for (int k = from; k < from + (int)N; k++) {
            sum += in[k];
            most = in[k] > most ? in[k] : most;
            five |= in[k] == 5 && k / N == 1;
        }
        for (int k = 0; k < t; k++)
            before += in[k];
        EXPECT(r[0] == sum && r[1] == most);
        EXPECT(r[2] == in[from + 37] && r[3] == five && r[4]);
        EXPECT(r[5] == t / (int)N * 1000 + (int)(T / N));
        EXPECT(r[6] == t % (int)N + (int)N && r[7] == 190);
        EXPECT(r[8] == (int)N / 32 * 100 + t % (int)N / 32);
        EXPECT(r[9] == 400 + t % 32 / 8);
        EXPECT(t >= 32 || r[10] == before);
        if (t >= 31)
            EXPECT(r[11] == o[31 * 12 + 10] + in[31]);
    }
    CHECK(cudaFree(o));
    CHECK(cudaFree(in));
}

/* Barriers by numbers in registers, in a loop that some warps are not in. */
__global__ void numbered(int *o, int tiles)
{
    __shared__ int total;
    int t = threadIdx.x;

    if (t == 0)
        total = 0;
    __syncthreads();
    for (int k = 0; k < 3; k++)
        if (t / 64 < tiles)
            asm volatile("bar.sync %0, 64;" ::"r"(t / 64 + 1) : "memory");
    if (t == 0)
        total = 100;
    __syncthreads();
    o[t] = total;
}
static void barriers()
{
    int *o;

    CHECK(cudaMallocManaged(&o, 256 * 4));
    for (int n = 0; n <= 4; n++) {
        numbered<<<1, 256>>>(o, n);
        CHECK(cudaDeviceSynchronize());
        for (int t = 0; t < 256; t++)
            EXPECT(o[t] == 100);
    }
    CHECK(cudaFree(o));
}

__global__ void words(const unsigned *in, unsigned *o)
{
    unsigned a = in[threadIdx.x], b = in[threadIdx.x + 64], c = a ^ b << 3;
    unsigned *r = o + 16 * threadIdx.x;

    r[0] = __vcmpeq4(a, b);
    r[1] = __vcmpgts2(a, b);
    r[2] = __vsetltu4(a, b);
    r[3] = __vsetges4(a, b);
    r[4] = __vavgu4(a, b);
    r[5] = __vavgs2(a, b);
    r[6] = __vsadu4(a, b);
    r[7] = __vsads2(a, b);
    r[8] = __viaddmax_s32(a, b, c);
    r[9] = __vimin3_u16x2(a, b, c);
    r[10] = __vimax3_s16x2_relu(a, b, c);
    bool p;
    r[11] = __vibmax_s32(a, b, &p);
    r[11] += p;
    r[12] = __viaddmin_u16x2(a, b, c);
}

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static void in_words()
{
    unsigned *in, *o;

    CHECK(cudaMallocManaged(&in, 128 * 4));
    CHECK(cudaMallocManaged(&o, 64 * 16 * 4));
    for (unsigned i = 0, x = 1; i < 128; i++) {
        in[i] = x = x * 1664525 + 1013904223;
        if (i >= 64 && i % 3 == 0)
            in[i] = in[i - 64] ^ 0x01000080;
    }
    words<<<1, 64>>>(in, o);
    CHECK(cudaDeviceSynchronize());
    for (int t = 0; t < 64; t++) {
        unsigned a = in[t], b = in[t + 64], c = a ^ b << 3, *r = o + 16 * t;
        unsigned w[13] = {0};

        for (int k = 0; k < 32; k += 8) {
            int x = a >> k & 255, y = b >> k & 255;

            w[0] |= x == y ? 255u << k : 0;
            w[2] |= (unsigned)(x < y) << k;
            w[3] |= (unsigned)((signed char)x >= (signed char)y) << k;
            w[4] |= (unsigned)((x + y + 1) / 2) << k;
            w[6] += (unsigned)abs(x - y);
        }
        for (int k = 0; k < 32; k += 16) {
            int x = (short)(a >> k), y = (short)(b >> k), z = (short)(c >> k);
            int ux = x & 65535, uy = y & 65535, uz = z & 65535, s = x + y;

            w[1] |= x > y ? 65535u << k : 0;
            w[5] |= (unsigned)((s + (s >= 0)) >> 1 & 65535) << k;
            w[7] += (unsigned)abs(x - y);
            w[9] |= (unsigned)smaller(smaller(ux, uy), uz) << k;
            w[10] |= (unsigned)larger(larger(larger(x, y), z), 0) << k;
            w[12] |= (unsigned)smaller((ux + uy) & 65535, uz) << k;
        }
        w[8] = (unsigned)larger((int)(a + b), (int)c);
        w[11] = (unsigned)larger((int)a, (int)b) + ((int)a >= (int)b);
        for (int k = 0; k < 13; k++)
            if (r[k] != w[k])
                EXPECT(!fprintf(stderr, "%d of %x %x: %x, not %x\n", k, a, b,
                                r[k], w[k]));
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(o));
}

struct some {
    float x[3];
};
__global__ void numbers(const __grid_constant__ some s, float *o)
{
    cuda::std::complex<float> z(s.x[0], s.x[1]), w = z * z / z - z;
    auto twice = cuda::proclaim_return_type<float>([](int k) { return 2 * k; });

    o[0] = abs(z) + w.real() + w.imag();
    o[1] = sqrt(z * z).real() + exp(z * 0.f).real();
    o[2] = twice(3) + cuda::maximum<>()(s.x[2], 1.f);
}

/* Of two blocks there are half as many. */
static void
clusters()
{
    int blocks = 0, n = 0, mps = 0, size = 0;
    cudaLaunchAttribute attr = {};
    cudaLaunchConfig_t c = {};

    c.gridDim = 4;
    c.blockDim = 128;
    CHECK(cudaDeviceGetAttribute(&mps, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, numbers, 128, 0));
    CHECK(cudaOccupancyMaxActiveClusters(&n, numbers, &c));
    EXPECT(n == blocks * mps && n > 0);
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, numbers, &c));
    EXPECT(size == 8);
    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim = {2, 1, 1};
    c.attrs = &attr;
    c.numAttrs = 1;
    CHECK(cudaOccupancyMaxActiveClusters(&n, numbers, &c));
    EXPECT(n == blocks * mps / 2);
    attr.val.clusterDim.x = 1;
    CHECK(cudaOccupancyMaxActiveClusters(&n, numbers, &c));
    c.blockDim = 4096;
    EXPECT(cudaOccupancyMaxActiveClusters(&n, numbers, &c) == cudaErrorInvalidValue);
    cudaGetLastError();
}

int main()
{
    float *f;
    size_t bytes = 0;

    tiles<64, 512>();
    tiles<256, 512>();
    tiles<64, 1024>(); /* more than there are barriers */
    barriers();
    in_words();
    CHECK(cudaMallocManaged(&f, 64));
    numbers<<<1, 1>>>(some{{3, 4, 5}}, f);
    CHECK(cudaDeviceSynchronize());
    EXPECT(fabsf(f[0] - 5) < 1e-5f && fabsf(f[1] - 4) < 1e-5f && f[2] == 11);
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, numbers, 2, 128));
    EXPECT(bytes > 1024);
    clusters();
    return done();
}
