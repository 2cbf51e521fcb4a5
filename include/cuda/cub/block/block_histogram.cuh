/* block_histogram.cuh - how often a block's items have each value.
 *
 * Counted in shared memory by atomics, then added to the program's counters,
 * of whatever type, by one thread each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_HISTOGRAM
#define BRASS_CUB_BLOCK_HISTOGRAM
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int X, int N, int Bins, int Algorithm = BLOCK_HISTO_SORT,
          int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockHistogram
{
    static const int threads = X * Y * Z;
    struct Memory {
        unsigned n[Bins];
    };
    Memory &m;
    int me;

  public:
    BRASS_CUB_STORAGE(BlockHistogram)
    template <class C> BRASS_ME void InitHistogram(C histogram[Bins])
    {
        for (int b = me; b < Bins; b += threads)
            histogram[b] = 0;
        __syncthreads();
    }
    template <class C> BRASS_ME void Composite(T (&items)[N], C histogram[Bins])
    {
        for (int b = me; b < Bins; b += threads)
            m.n[b] = 0;
        __syncthreads();
        for (int k = 0; k < N; k++)
            atomicAdd(&m.n[(int)items[k]], 1u);
        __syncthreads();
        for (int b = me; b < Bins; b += threads)
            histogram[b] = (C)(histogram[b] + m.n[b]);
        __syncthreads();
    }
    template <class C> BRASS_ME void Histogram(T (&items)[N], C histogram[Bins])
    {
        InitHistogram(histogram);
        Composite(items, histogram);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
