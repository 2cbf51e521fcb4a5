/* warp_reduce.cuh - one value out of those of a warp's lanes.
 *
 * Lane 0 of the (logical) warp has the result; of segments, each head.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_REDUCE
#define BRASS_CUB_WARP_REDUCE
#include "../../brass_push.h"

#include "../thread/thread_operators.cuh"

namespace cub
{
template <class T, int N = 32, int LegacyArch = 0> class WarpReduce
{
    typedef brass::lanes<N> L;

    /* flags: a bit for each lane that begins (or, of tails, ends) a segment */
    template <class F>
    BRASS_ME T segmented(T v, F op, unsigned flags, bool tails)
    {
        int me = (int)L::me();

        if (!tails)
            flags >>= 1;
        flags = (flags | 1u << (N - 1)) & 0xffffffffu << me;
        return brass::warp_fold<N>(v, op, __ffs((int)flags));
    }
    BRASS_ME unsigned ballot(int flag)
    {
        return (__ballot_sync(L::mask(), flag) & L::mask()) >> L::first();
    }

  public:
    struct TempStorage {
    };
    BRASS_ME WarpReduce() {}
    BRASS_ME WarpReduce(TempStorage &) {}

    template <class F> BRASS_ME T Reduce(T v, F op)
    {
        return brass::warp_fold<N>(v, op);
    }
    template <class F> BRASS_ME T Reduce(T v, F op, int valid)
    {
        return brass::warp_fold<N>(v, op, valid);
    }
    BRASS_ME T Sum(T v) { return Reduce(v, cub::Sum()); }
    BRASS_ME T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
    BRASS_ME T Max(T v) { return Reduce(v, cub::Max()); }
    BRASS_ME T Max(T v, int valid) { return Reduce(v, cub::Max(), valid); }
    BRASS_ME T Min(T v) { return Reduce(v, cub::Min()); }
    BRASS_ME T Min(T v, int valid) { return Reduce(v, cub::Min(), valid); }
    template <class G, class F>
    BRASS_ME T HeadSegmentedReduce(T v, G head, F op)
    {
        return segmented(v, op, ballot((bool)head), false);
    }
    template <class G, class F>
    BRASS_ME T TailSegmentedReduce(T v, G tail, F op)
    {
        return segmented(v, op, ballot((bool)tail), true);
    }
    template <class G> BRASS_ME T HeadSegmentedSum(T v, G head)
    {
        return HeadSegmentedReduce(v, head, cub::Sum());
    }
    template <class G> BRASS_ME T TailSegmentedSum(T v, G tail)
    {
        return TailSegmentedReduce(v, tail, cub::Sum());
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
