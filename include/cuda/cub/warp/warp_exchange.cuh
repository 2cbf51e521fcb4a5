/* warp_exchange.cuh - the items of a warp change lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_WARP_EXCHANGE
#define BRASS_CUB_WARP_EXCHANGE
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };

/* Through shared memory: items are put where `put` says, and taken. */
template <class T, int Items, int N = 32, int Algorithm = WARP_EXCHANGE_SMEM,
          int LegacyArch = 0>
class WarpExchange
{
    struct Memory {
        T v[N * Items];
    };
    Memory &m;
    int me;

    BRASS_ME static void sync() { __syncwarp(brass::lanes<N>::mask()); }

  public:
    struct TempStorage : Uninitialized<Memory> {
    };
    BRASS_ME explicit WarpExchange(TempStorage &t)
        : m(t.Alias()), me((int)brass::lanes<N>::me())
    {
    }
    template <class U>
    BRASS_ME void BlockedToStriped(const T (&in)[Items], U (&out)[Items])
    {
        sync();
        for (int k = 0; k < Items; k++)
            m.v[me * Items + k] = in[k];
        sync();
        for (int k = 0; k < Items; k++)
            out[k] = m.v[k * N + me];
    }
    template <class U>
    BRASS_ME void StripedToBlocked(const T (&in)[Items], U (&out)[Items])
    {
        sync();
        for (int k = 0; k < Items; k++)
            m.v[k * N + me] = in[k];
        sync();
        for (int k = 0; k < Items; k++)
            out[k] = m.v[me * Items + k];
    }
    template <class U, class R>
    BRASS_ME void ScatterToStriped(const T (&in)[Items], U (&out)[Items],
                                   R (&ranks)[Items])
    {
        sync();
        for (int k = 0; k < Items; k++)
            m.v[ranks[k]] = in[k];
        sync();
        for (int k = 0; k < Items; k++)
            out[k] = m.v[k * N + me];
    }
    template <class R>
    BRASS_ME void ScatterToStriped(T (&items)[Items], R (&ranks)[Items])
    {
        ScatterToStriped(items, items, ranks);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
