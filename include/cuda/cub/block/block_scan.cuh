/* block_scan.cuh - every thread gets what the threads before it add up to.
 *
 *     warps scan --> part[warp] --> each thread adds the parts before its warp's
 *
 * All algorithms that can be asked for are that one. A callback is asked by the
 * first warp, with the sum of all, for what comes before the block.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_SCAN
#define BRASS_CUB_BLOCK_SCAN
#include "../../brass_push.h"

#include "../thread/thread_reduce.cuh"

namespace cub
{
enum BlockScanAlgorithm {
    BLOCK_SCAN_RAKING,
    BLOCK_SCAN_RAKING_MEMOIZE,
    BLOCK_SCAN_WARP_SCANS
};

template <class T, int X, int Algorithm = BLOCK_SCAN_RAKING, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockScan
{
    static const int threads = X * Y * Z, warps = (threads + 31) / 32;
    struct Memory {
        T part[warps], before;
    };
    Memory &m;
    int me;

    /* What comes before (nothing, for thread 0), what is up to here, and all. */
    template <class F> BRASS_ME void scan(T v, T &excl, T &incl, T &all, F op)
    {
        int warp = me / 32, last = threads - 1;

        incl = brass::warp_scan<32>(v, op);
        excl = brass::shuffle_up<32>(incl, 1);
        if (warps == 1) {
            all = brass::shuffle<32>(incl, (unsigned)last % 32);
            return;
        }
        if (me % 32 == 31 || me == last)
            m.part[warp] = incl;
        __syncthreads();
        T sum = m.part[0], mine = sum;
        for (int w = 1; w < warps; w++) {
            if (w == warp)
                mine = sum;
            sum = op(sum, m.part[w]);
        }
        if (warp) {
            incl = op(mine, incl);
            excl = me % 32 ? op(mine, excl) : mine;
        }
        all = sum;
    }
    template <class C> BRASS_ME T asked(C &callback, T all)
    {
        if (me < 32) {
            T r = callback(all);

            if (me == 0)
                m.before = r;
        }
        __syncthreads();
        return m.before;
    }

  public:
    BRASS_CUB_STORAGE(BlockScan)

    /* ---- one item a thread ---------------------------------------------- */

    template <class F> BRASS_ME void InclusiveScan(T v, T &out, F op, T &all)
    {
        T before, sum, total;

        scan(v, before, sum, total, op);
        out = sum, all = total;
    }
    template <class F> BRASS_ME void InclusiveScan(T v, T &out, F op)
    {
        T all;

        InclusiveScan(v, out, op, all);
    }
    template <class F, class C>
    BRASS_ME void InclusiveScan(T v, T &out, F op, C &callback)
    {
        T before, sum, all;

        scan(v, before, sum, all, op);
        out = op(asked(callback, all), sum);
    }
    /* What thread 0 gets is left open. */
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, F op, T &all)
    {
        T before, sum, total;

        scan(v, before, sum, total, op);
        out = before, all = total;
    }
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, F op)
    {
        T all;

        ExclusiveScan(v, out, op, all);
    }
    template <class F>
    BRASS_ME void ExclusiveScan(T v, T &out, T init, F op, T &all)
    {
        T before, sum, total;

        scan(v, before, sum, total, op);
        out = me ? op(init, before) : init;
        all = total;
    }
    template <class F> BRASS_ME void ExclusiveScan(T v, T &out, T init, F op)
    {
        T all;

        ExclusiveScan(v, out, init, op, all);
    }
    template <class F, class C>
    BRASS_ME void ExclusiveScan(T v, T &out, F op, C &callback)
    {
        T before, sum, all;

        scan(v, before, sum, all, op);
        T init = asked(callback, all);
        out = me ? op(init, before) : init;
    }
    BRASS_ME void InclusiveSum(T v, T &out)
    {
        InclusiveScan(v, out, cub::Sum());
    }
    BRASS_ME void InclusiveSum(T v, T &out, T &all)
    {
        InclusiveScan(v, out, cub::Sum(), all);
    }
    template <class C> BRASS_ME void InclusiveSum(T v, T &out, C &callback)
    {
        InclusiveScan(v, out, cub::Sum(), callback);
    }
    BRASS_ME void ExclusiveSum(T v, T &out)
    {
        ExclusiveScan(v, out, T(), cub::Sum());
    }
    BRASS_ME void ExclusiveSum(T v, T &out, T &all)
    {
        ExclusiveScan(v, out, T(), cub::Sum(), all);
    }
    template <class C> BRASS_ME void ExclusiveSum(T v, T &out, C &callback)
    {
        ExclusiveScan(v, out, cub::Sum(), callback);
    }

    /* ---- several: a thread folds its own first -------------------------- */

    template <int N, class F>
    BRASS_ME void InclusiveScan(T (&v)[N], T (&out)[N], F op, T &all)
    {
        T before;

        ExclusiveScan(ThreadReduce(v, op), before, op, all);
        ThreadScanInclusive(v, out, op, before, me != 0);
    }
    template <int N, class F>
    BRASS_ME void InclusiveScan(T (&v)[N], T (&out)[N], F op)
    {
        T all;

        InclusiveScan(v, out, op, all);
    }
    template <int N, class F, class C>
    BRASS_ME void InclusiveScan(T (&v)[N], T (&out)[N], F op, C &callback)
    {
        T before;

        ExclusiveScan(ThreadReduce(v, op), before, op, callback);
        ThreadScanInclusive(v, out, op, before);
    }
    template <int N, class F>
    BRASS_ME void ExclusiveScan(T (&v)[N], T (&out)[N], F op, T &all)
    {
        T before;

        ExclusiveScan(ThreadReduce(v, op), before, op, all);
        ThreadScanExclusive(v, out, op, before, me != 0);
    }
    template <int N, class F>
    BRASS_ME void ExclusiveScan(T (&v)[N], T (&out)[N], F op)
    {
        T all;

        ExclusiveScan(v, out, op, all);
    }
    template <int N, class F>
    BRASS_ME void ExclusiveScan(T (&v)[N], T (&out)[N], T init, F op, T &all)
    {
        T before;

        ExclusiveScan(ThreadReduce(v, op), before, init, op, all);
        ThreadScanExclusive(v, out, op, before);
    }
    template <int N, class F>
    BRASS_ME void ExclusiveScan(T (&v)[N], T (&out)[N], T init, F op)
    {
        T all;

        ExclusiveScan(v, out, init, op, all);
    }
    template <int N, class F, class C>
    BRASS_ME void ExclusiveScan(T (&v)[N], T (&out)[N], F op, C &callback)
    {
        T before;

        ExclusiveScan(ThreadReduce(v, op), before, op, callback);
        ThreadScanExclusive(v, out, op, before);
    }
    template <int N> BRASS_ME void InclusiveSum(T (&v)[N], T (&out)[N])
    {
        InclusiveScan(v, out, cub::Sum());
    }
    template <int N> BRASS_ME void InclusiveSum(T (&v)[N], T (&out)[N], T &all)
    {
        InclusiveScan(v, out, cub::Sum(), all);
    }
    template <int N, class C>
    BRASS_ME void InclusiveSum(T (&v)[N], T (&out)[N], C &callback)
    {
        InclusiveScan(v, out, cub::Sum(), callback);
    }
    template <int N> BRASS_ME void ExclusiveSum(T (&v)[N], T (&out)[N])
    {
        ExclusiveScan(v, out, T(), cub::Sum());
    }
    template <int N> BRASS_ME void ExclusiveSum(T (&v)[N], T (&out)[N], T &all)
    {
        ExclusiveScan(v, out, T(), cub::Sum(), all);
    }
    template <int N, class C>
    BRASS_ME void ExclusiveSum(T (&v)[N], T (&out)[N], C &callback)
    {
        ExclusiveScan(v, out, cub::Sum(), callback);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
