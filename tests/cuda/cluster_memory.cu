/* cluster_memory.cu - clusters that a launch asks for: counters in the shared memory of all
 * their blocks, and where a block is in its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <string.h>
#include <vector>

namespace cg = cooperative_groups;

enum { N = 20000, BINS = 200 };

__global__ void
count(int *bins, int each, const int *in)
{
    extern __shared__ int mine[];
    auto c = cg::this_cluster();
    int rank = (int)c.block_rank();

    for (int i = (int)threadIdx.x; i < each; i += (int)blockDim.x)
        mine[i] = 0;
    c.sync();
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < N;
         i += (int)(gridDim.x * blockDim.x)) {
        int b = in[i] % BINS;

        atomicAdd(c.map_shared_rank(mine, (unsigned)(b / each)) + b % each, 1);
    }
    c.sync();
    for (int i = (int)threadIdx.x; i < each && rank * each + i < BINS;
         i += (int)blockDim.x)
        atomicAdd(bins + rank * each + i, mine[i]);
}

__global__ void
place(int *out)
{
    __shared__ int mine[64];
    auto c = cg::this_cluster();
    int *o = out + 6 * (blockIdx.y * gridDim.x + blockIdx.x), sum = 0;

    mine[threadIdx.x] = (int)c.thread_rank();
    c.barrier_wait(c.barrier_arrive());
    for (unsigned r = 0; r < c.num_blocks(); r++)
        sum += c.map_shared_rank(mine, r)[5];
    if (threadIdx.x == 5) {
        o[0] = (int)c.block_rank();
        o[1] = (int)(c.block_index().x + 10 * c.block_index().y);
        o[2] = (int)(c.dim_blocks().x + 10 * c.dim_blocks().y);
        o[3] = (int)c.num_threads();
        o[4] = sum;
        o[5] = (int)c.query_shared_rank(
            c.map_shared_rank(mine, c.num_blocks() - 1));
    }
    c.sync();
}

static cudaLaunchAttribute attr;
static cudaLaunchConfig_t
config(dim3 grid, dim3 block, size_t shared, dim3 cluster)
{
    cudaLaunchConfig_t c = {};

    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    c.gridDim = grid;
    c.blockDim = block;
    c.dynamicSmemBytes = shared;
    c.attrs = &attr;
    c.numAttrs = 1;
    return c;
}

int
main()
{
    std::vector<int> in(N);
    int want[BINS] = {};

    for (int i = 0; i < N; i++) {
        in[i] = i * 7919 % 1013;
        want[in[i] % BINS]++;
    }
    Dev<int> from(in), bins(BINS), out(4 * 6 * 6);
    for (unsigned size = 1; size <= 8; size *= 2)
        for (unsigned block = 32; block <= 224; block += 64) {
            int each = (BINS + (int)size - 1) / (int)size, got[BINS];
            cudaLaunchConfig_t c = config(16, block, each * 4, size);

            CHECK(cudaMemset(bins, 0, sizeof want));
            CHECK(cudaLaunchKernelEx(&c, count, (int *)bins, each,
                                     (const int *)from.p));
            CHECK(cudaMemcpy(got, bins, sizeof got, cudaMemcpyDeviceToHost));
            EXPECT(memcmp(got, want, sizeof got) == 0);
        }
    cudaLaunchConfig_t c = config(dim3(4, 6), 64, 0, dim3(2, 3));
    std::vector<int> got(4 * 6 * 6);
    CHECK(cudaLaunchKernelEx(&c, place, (int *)out));
    CHECK(cudaMemcpy(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 4; x++) {
            const int *o = &got[6 * (y * 4 + x)];

            EXPECT(o[0] == x % 2 + y % 3 * 2 && o[1] == x % 2 + y % 3 * 10);
            EXPECT(o[2] == 32 && o[3] == 384 && o[4] == 15 * 64 + 6 * 5);
            EXPECT(o[5] == 5);
        }
    c = config(dim3(4, 6), 64, 0, dim3(3, 1));
    EXPECT(cudaLaunchKernelEx(&c, place, (int *)out) ==
           cudaErrorInvalidClusterSize);
    cudaGetLastError();
    return done();
}
