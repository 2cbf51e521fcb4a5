/* groups.cu - cooperative groups that arrive and wait, agree, ask one of them, and
 * reduce into memory and atomics.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>

enum { BLOCKS = 24, THREADS = 96, ALL = BLOCKS * THREADS };

namespace cg = cooperative_groups;

__global__ void groups(int *out, cuda::atomic<int, cuda::thread_scope_device> *sum)
{
    __shared__ int seen[THREADS];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int rank = (int)block.thread_rank(), all, *mine = out + blockIdx.x * THREADS;

    seen[rank] = rank;
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    mine[rank] = seen[THREADS - 1 - rank];
    mine[rank] += 1000 * (tile.match_all(rank / 16, all) == 0xffffu && all);
    mine[rank] += 10000 * (tile.match_all(rank / 8, all) == 0 && !all);
    mine[rank] += cg::invoke_one_broadcast(tile, [&] { return 100000 * (rank / 16); });
    cg::reduce_update_async(tile, *sum, rank, cg::plus<int>());
    cg::reduce_update_async(tile, cuda::atomic_ref<int>(mine[0]), 0, cg::plus<int>());
    if (rank < 16)
        cg::reduce_store_async(tile, &out[BLOCKS * THREADS], rank, cg::greater<int>());
}

static void ask_groups()
{
    Dev<int> out(std::vector<int>(ALL + 1, 0));
    cuda::atomic<int, cuda::thread_scope_device> *sum;

    CHECK(cudaMallocManaged(&sum, sizeof *sum));
    sum->store(0);
    groups<<<BLOCKS, THREADS>>>(out, sum);
    std::vector<int> got = out.get();
    for (int i = 0; i < ALL; i++) {
        int r = i % THREADS;
        EXPECT(got[i] == THREADS - 1 - r + 11000 + 100000 * (r / 16));
    }
    EXPECT(got[ALL] == 15);
    EXPECT(sum->load() == BLOCKS * THREADS * (THREADS - 1) / 2);
    CHECK(cudaFree(sum));
}

int main()
{
    ask_groups();
    return done();
}
