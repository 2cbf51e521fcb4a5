/* warp_scan.cuh - every lane gets what the lanes before it add up to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_SCAN
#define BRASS_CUB_WARP_SCAN
#include "../../brass_push.h"

#include "../thread/thread_operators.cuh"

namespace cub
{
template <class T, int N = 32, int LegacyArch = 0> class WarpScan
{
    BRASS_ME static bool first() { return brass::lanes<N>::me() == 0; }

  public:
    struct TempStorage {
    };
    BRASS_ME WarpScan() {}
    BRASS_ME WarpScan(TempStorage &) {}

    template <class F> BRASS_ME void InclusiveScan(T v, T &out, F op)
    {
        out = brass::warp_scan<N>(v, op);
    }
    template <class F> BRASS_ME void InclusiveScan(T v, T &out, F op, T &all)
    {
        out = brass::warp_scan<N>(v, op);
        all = brass::shuffle<N>(out, N - 1);
    }
    /* What lane 0 gets is left open. */
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, F op)
    {
        out = brass::shuffle_up<N>(brass::warp_scan<N>(v, op), 1);
    }
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, F op, T &all)
    {
        T r = brass::warp_scan<N>(v, op);

        all = brass::shuffle<N>(r, N - 1);
        out = brass::shuffle_up<N>(r, 1);
    }
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, T init, F op)
    {
        T r = brass::shuffle_up<N>(brass::warp_scan<N>(v, op), 1);

        out = first() ? init : op(init, r);
    }
    template <class F>
    BRASS_ME void ExclusiveScan(T v, T &out, T init, F op, T &all)
    {
        T r;

        ExclusiveScan(v, r, op, all);
        out = first() ? init : op(init, r);
    }
    template <class F> BRASS_ME void Scan(T v, T &incl, T &excl, F op)
    {
        incl = brass::warp_scan<N>(v, op);
        excl = brass::shuffle_up<N>(incl, 1);
    }
    template <class F> BRASS_ME void Scan(T v, T &incl, T &excl, T init, F op)
    {
        T r = brass::warp_scan<N>(v, op), before = brass::shuffle_up<N>(r, 1);

        incl = op(init, r);
        excl = first() ? init : op(init, before);
    }
    BRASS_ME void InclusiveSum(T v, T &out)
    {
        InclusiveScan(v, out, cub::Sum());
    }
    BRASS_ME void InclusiveSum(T v, T &out, T &all)
    {
        InclusiveScan(v, out, cub::Sum(), all);
    }
    BRASS_ME void ExclusiveSum(T v, T &out)
    {
        ExclusiveScan(v, out, T(), cub::Sum());
    }
    BRASS_ME void ExclusiveSum(T v, T &out, T &all)
    {
        ExclusiveScan(v, out, T(), cub::Sum(), all);
    }
    BRASS_ME T Broadcast(T v, unsigned from)
    {
        return brass::shuffle<N>(v, from);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
