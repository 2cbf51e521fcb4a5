/* block_radix_rank.cuh - where the items of a block go when they are sorted by
 * a few bits.
 *
 *     count[digit][thread] --sums in that order--> first place of each digit of
 *     each thread, whose items take theirs one by one: equal digits keep their
 *     order
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_RADIX_RANK
#define BRASS_CUB_BLOCK_RADIX_RANK
#include "../../brass_push.h"

#include "block_scan.cuh"

namespace cub
{
/* Some bits of a number whose order is theirs. */
template <class B> struct BFEDigitExtractor {
    unsigned first, bits;
    BRASS_HD explicit BFEDigitExtractor(unsigned f = 0, unsigned n = 0)
        : first(f), bits(n)
    {
    }
    template <class U> BRASS_HD unsigned Digit(U key) const
    {
        return (unsigned)(key >> first) & ((1u << bits) - 1);
    }
};

template <int X, int Bits, bool Descending, bool Memoize = false,
          int Inner = BLOCK_SCAN_WARP_SCANS, int Config = 0, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockRadixRank
{
    static const int threads = X * Y * Z, digits = 1 << Bits;
    typedef BlockScan<unsigned, X, Inner, Y, Z> Scan;
    struct Memory {
        unsigned short count[digits * threads];
        typename Scan::TempStorage scan;
    };
    Memory &m;
    int me;

    /* A thread's part of the table: `digits` counts in a row. */
    BRASS_ME void sum_up()
    {
        unsigned short *mine = m.count + me * digits;
        unsigned sum = 0, before;

        for (int k = 0; k < digits; k++)
            sum += mine[k];
        Scan(m.scan).ExclusiveSum(sum, before);
        for (int k = 0; k < digits; k++) {
            unsigned n = mine[k];

            mine[k] = (unsigned short)before;
            before += n;
        }
        __syncthreads();
    }

  public:
    enum { BINS_TRACKED_PER_THREAD = (digits + threads - 1) / threads };
    struct TempStorage : Uninitialized<Memory> {
    };
    BRASS_ME explicit BlockRadixRank(TempStorage &t)
        : m(t.Alias()), me(brass::rank<X, Y, Z>())
    {
    }
    template <class B, int N, class D>
    BRASS_ME void RankKeys(B (&keys)[N], int (&ranks)[N], D digit_of)
    {
        unsigned digit[N];

        for (int d = 0; d < digits; d++)
            m.count[d * threads + me] = 0;
        for (int k = 0; k < N; k++) {
            digit[k] = digit_of.Digit(keys[k]);
            if (Descending)
                digit[k] = digits - 1 - digit[k];
            m.count[digit[k] * threads + me]++;
        }
        __syncthreads();
        sum_up();
        for (int k = 0; k < N; k++)
            ranks[k] = m.count[digit[k] * threads + me]++;
    }
    /* How many keys have a lower digit than mine, too. */
    template <class B, int N, class D>
    BRASS_ME void RankKeys(B (&keys)[N], int (&ranks)[N], D digit_of,
                           int (&before)[BINS_TRACKED_PER_THREAD])
    {
        RankKeys(keys, ranks, digit_of);
        __syncthreads();
        for (int k = 0; k < BINS_TRACKED_PER_THREAD; k++) {
            int d = me * BINS_TRACKED_PER_THREAD + k;

            if (Descending)
                d = digits - 1 - d;
            /* Every count stands now at its digit's and thread's end. */
            if (d >= 0 && d < digits)
                before[k] = d ? m.count[d * threads - 1] : 0;
        }
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
