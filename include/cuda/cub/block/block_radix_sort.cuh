/* block_radix_sort.cuh - the keys of a block in order, and what goes with them.
 *
 * Four bits at a time from the lowest: stable, so descending too.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_RADIX_SORT
#define BRASS_CUB_BLOCK_RADIX_SORT
#include "../../brass_push.h"

#include "block_exchange.cuh"
#include "block_radix_rank.cuh"

namespace cub
{
template <class K, int X, int N, class V = NullType, int Bits = 4,
          bool Memoize = true, int Inner = BLOCK_SCAN_WARP_SCANS,
          int Config = 0, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockRadixSort
{
    static const int bits = 4;
    typedef BlockRadixRank<X, bits, false, false, Inner, 0, Y, Z> Up;
    typedef BlockRadixRank<X, bits, true, false, Inner, 0, Y, Z> Down;
    typedef BlockExchange<K, X, N, false, Y, Z> Keys;
    typedef BlockExchange<V, X, N, false, Y, Z> Values;
    typedef NumericTraits<K> Number;
    union Memory {
        typename Up::TempStorage up;
        typename Down::TempStorage down;
        typename Keys::TempStorage keys;
        typename Values::TempStorage values;
    };
    Memory &m;

    struct digit {
        unsigned first, mask;
        BRASS_ME unsigned Digit(const K &key) const
        {
            return (unsigned)(Number::how::order(key) >> first) & mask;
        }
    };
    template <bool Descending>
    BRASS_ME void ranks_of(K (&keys)[N], int (&ranks)[N], int from, int to)
    {
        int n = to - from < bits ? to - from : bits;
        digit d = {(unsigned)from, (1u << n) - 1};

        if (Descending)
            Down(m.down).RankKeys(keys, ranks, d);
        else
            Up(m.up).RankKeys(keys, ranks, d);
        __syncthreads();
    }
    /* Values are a V, or none. */
    template <bool Descending, bool Striped, class W>
    BRASS_ME void sort(K (&keys)[N], W (&values)[N], int from, int to)
    {
        const bool pairs = !std::is_same<W, NullType>::value;
        int ranks[N];

        for (; from < to; from += bits) {
            ranks_of<Descending>(keys, ranks, from, to);
            Keys(m.keys).ScatterToBlocked(keys, ranks);
            __syncthreads();
            if (pairs)
                move(values, ranks);
        }
        if (Striped) {
            Keys(m.keys).BlockedToStriped(keys);
            __syncthreads();
            if (pairs)
                stripe(values);
        }
    }
    BRASS_ME void move(V (&values)[N], int (&ranks)[N])
    {
        Values(m.values).ScatterToBlocked(values, ranks);
        __syncthreads();
    }
    BRASS_ME void stripe(V (&values)[N])
    {
        Values(m.values).BlockedToStriped(values);
        __syncthreads();
    }
    template <class W> BRASS_ME void move(W (&)[N], int (&)[N]) {}
    template <class W> BRASS_ME void stripe(W (&)[N]) {}

  public:
    struct TempStorage : Uninitialized<Memory> {
    };

  private:
    BRASS_ME static Memory &own()
    {
        __shared__ TempStorage t;
        return t.Alias();
    }

  public:
    BRASS_ME BlockRadixSort() : m(own()) {}
    BRASS_ME BlockRadixSort(TempStorage &t) : m(t.Alias()) {}

#define BR_SORT(name, descending, striped)                                \
    BRASS_ME void name(K(&keys)[N], int from = 0, int to = sizeof(K) * 8) \
    {                                                                     \
        NullType none[N];                                                 \
        sort<descending, striped>(keys, none, from, to);                  \
    }                                                                     \
    BRASS_ME void name(K(&keys)[N], V(&values)[N], int from = 0,          \
                       int to = sizeof(K) * 8)                            \
    {                                                                     \
        sort<descending, striped>(keys, values, from, to);                \
    }
    BR_SORT(Sort, false, false)
    BR_SORT(SortDescending, true, false)
    BR_SORT(SortBlockedToStriped, false, true)
    BR_SORT(SortDescendingBlockedToStriped, true, true)
#undef BR_SORT
};
} // namespace cub

#include "../../brass_pop.h"
#endif
