/* block_run_length_decode.cuh - runs of a block, written out window by window.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_RUN_LENGTH_DECODE
#define BRASS_CUB_BLOCK_RUN_LENGTH_DECODE
#include "../../brass_push.h"

#include "block_scan.cuh"

namespace cub
{
/* R runs a thread, D decoded items a thread and window. */
template <class T, int X, int R, int D, class O = unsigned, int Y = 1,
          int Z = 1>
class BlockRunLengthDecode
{
    static const int threads = X * Y * Z, runs = threads * R;
    typedef BlockScan<O, X, BLOCK_SCAN_RAKING_MEMOIZE, Y, Z> Scan;
    struct Memory {
        T value[runs];
        O first[runs];
        typename Scan::TempStorage scan;
    };
    Memory &m;
    int me;

  public:
    struct TempStorage : Uninitialized<Memory> {
    };
    template <class L, class S>
    BRASS_ME BlockRunLengthDecode(TempStorage &t, T (&value)[R], L (&length)[R],
                                  S &total)
        : m(t.Alias()), me(brass::rank<X, Y, Z>())
    {
        O n[R], first[R], all;

        for (int k = 0; k < R; k++)
            n[k] = (O)length[k];
        Scan(m.scan).ExclusiveSum(n, first, all);
        for (int k = 0; k < R; k++) {
            m.value[me * R + k] = value[k];
            m.first[me * R + k] = first[k];
        }
        total = all;
        __syncthreads();
    }
    /* Items from `from` on; with the place of each in its run. */
    template <class P>
    BRASS_ME void RunLengthDecode(T (&out)[D], P (&place)[D], O from = 0)
    {
        for (int k = 0; k < D; k++) {
            O at = from + (O)(me * D + k);
            int r = UpperBound(m.first, runs, at) - 1;

            out[k] = m.value[r];
            place[k] = (P)(at - m.first[r]);
        }
    }
    BRASS_ME void RunLengthDecode(T (&out)[D], O from = 0)
    {
        O place[D];

        RunLengthDecode(out, place, from);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
