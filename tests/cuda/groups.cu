/* groups.cu - cooperative groups that arrive and wait, agree, ask one of them, and
 * reduce into memory and atomics; and leaders that alone have set what all hand on,
 * as NVIDIA's manual shows it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>

using namespace std; // people do: malloc and memset have one meaning all the same

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

/* Nobody but the leader sets r. */
__device__ int place_in(int *n)
{
    auto active = cg::coalesced_threads();
    int r;
    if (active.thread_rank() == 0)
        r = atomicAdd(n, active.size());
    r = active.shfl(r, 0);
    return r + active.thread_rank();
}
__device__ int place_by_hand(int *n)
{
    unsigned active = __activemask(), lane = threadIdx.x % 32;
    int leader = __ffs(active) - 1, r;
    if (lane == leader)
        r = atomicAdd(n, __popc(active));
    r = __shfl_sync(active, r, leader);
    return r + __popc(active & ((1u << lane) - 1));
}
__global__ void filter(int *n, int *to)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0)
        to[place_in(n)] = i;
    if (i % 5 == 0)
        to[ALL + place_by_hand(n + 1)] = i;
}
__global__ void from_std(int *out)
{
    int *p = (int *)malloc(8), *q = (int *)std::malloc(8);
    memset(p, 1, 8);
    std::memset(q, 2, 8);
    std::memcpy(out, p, 4);
    memcpy(out + 1, q, 4);
    free(p);
    std::free(q);
}

/* A cluster of one block. */
__global__ void __cluster_dims__(1, 1, 1) cluster(int *out)
{
    __shared__ int s;
    auto c = cg::this_cluster();
    if (c.thread_rank() == 0)
        s = blockIdx.x + 5;
    c.sync();
    if (threadIdx.x == 1)
        out[blockIdx.x] = *c.map_shared_rank(&s, 0) + 100 * c.num_blocks() + 1000 * c.block_rank();
}

static void leaders()
{
    Dev<int> n(std::vector<int>(2, 0)), to(std::vector<int>(2 * ALL, -1));
    filter<<<BLOCKS, THREADS>>>(n, to);
    std::vector<int> got = to.get(), seen(2 * ALL, 0);
    EXPECT(n.get()[0] == ALL / 3 && n.get()[1] == (ALL + 4) / 5);
    for (int i = 0; i < 2 * ALL; i++)
        if (got[i] >= 0)
            seen[i / ALL * ALL + got[i]]++;
    for (int i = 0; i < ALL; i++)
        EXPECT(seen[i] == (i % 3 == 0) && seen[ALL + i] == (i % 5 == 0));
    from_std<<<1, 1>>>(n);
    EXPECT(n.get()[0] == 0x01010101 && n.get()[1] == 0x02020202);
    cluster<<<2, 32>>>(n);
    EXPECT(n.get()[0] == 105 && n.get()[1] == 106);
}

int main()
{
    ask_groups();
    leaders();
    return done();
}
