/* block_reduce.cuh - one value out of those of a block's threads.
 *
 * Each warp folds by shuffles, thread 0 folds what the warps have left in
 * shared memory, and has the result. All algorithms that can be asked for are
 * that one: the order of the threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_REDUCE
#define BRASS_CUB_BLOCK_REDUCE
#include "../../brass_push.h"

#include "../thread/thread_reduce.cuh"

namespace cub
{
enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};

template <class T, int X, int Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockReduce
{
    static const int threads = X * Y * Z, warps = (threads + 31) / 32;
    struct Memory {
        T part[warps];
    };
    Memory &m;
    int me;

    template <class F> BRASS_ME T fold(T v, F op, int valid)
    {
        int warp = me / 32, left = valid - warp * 32;

        v = brass::warp_fold<32>(v, op, left < 32 ? left : 32);
        if (warps == 1)
            return v;
        if (me % 32 == 0)
            m.part[warp] = v;
        __syncthreads();
        if (me == 0)
            for (int w = 1; w < warps && w * 32 < valid; w++)
                v = op(v, m.part[w]);
        return v;
    }

  public:
    BRASS_CUB_STORAGE(BlockReduce)
    template <class F> BRASS_ME T Reduce(T v, F op)
    {
        return fold(v, op, threads);
    }
    template <class F> BRASS_ME T Reduce(T v, F op, int valid)
    {
        return fold(v, op, valid);
    }
    template <int Items, class F> BRASS_ME T Reduce(T (&v)[Items], F op)
    {
        return fold(ThreadReduce(v, op), op, threads);
    }
    BRASS_ME T Sum(T v) { return fold(v, cub::Sum(), threads); }
    BRASS_ME T Sum(T v, int valid) { return fold(v, cub::Sum(), valid); }
    template <int Items> BRASS_ME T Sum(T (&v)[Items])
    {
        return Reduce(v, cub::Sum());
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
