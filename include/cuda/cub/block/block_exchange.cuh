/* block_exchange.cuh - the items of a block change threads.
 *
 * Through shared memory, with a barrier between the stores and the loads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_EXCHANGE
#define BRASS_CUB_BLOCK_EXCHANGE
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
template <class T, int X, int N, bool TimeSlicing = false, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockExchange
{
    static const int threads = X * Y * Z;
    struct Memory {
        T v[threads * N];
    };
    Memory &m;
    int me;

    BRASS_ME int blocked(int k) { return me * N + k; }
    BRASS_ME int striped(int k) { return me + k * threads; }
    /* The last warp may have fewer threads than 32. */
    BRASS_ME int warp_striped(int k)
    {
        int first = me / 32 * 32, left = threads - first;

        return first * N + me % 32 + k * (left < 32 ? left : 32);
    }
    template <class U> BRASS_ME void take_striped(U (&out)[N])
    {
        __syncthreads();
        for (int k = 0; k < N; k++)
            out[k] = m.v[striped(k)];
    }
    template <class U> BRASS_ME void take_blocked(U (&out)[N])
    {
        __syncthreads();
        for (int k = 0; k < N; k++)
            out[k] = m.v[blocked(k)];
    }

  public:
    BRASS_CUB_STORAGE(BlockExchange)
    template <class U>
    BRASS_ME void BlockedToStriped(const T (&in)[N], U (&out)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[blocked(k)] = in[k];
        take_striped(out);
    }
    template <class U>
    BRASS_ME void StripedToBlocked(const T (&in)[N], U (&out)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[striped(k)] = in[k];
        take_blocked(out);
    }
    template <class U>
    BRASS_ME void BlockedToWarpStriped(const T (&in)[N], U (&out)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[blocked(k)] = in[k];
        __syncthreads();
        for (int k = 0; k < N; k++)
            out[k] = m.v[warp_striped(k)];
    }
    template <class U>
    BRASS_ME void WarpStripedToBlocked(const T (&in)[N], U (&out)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[warp_striped(k)] = in[k];
        take_blocked(out);
    }
    template <class U, class R>
    BRASS_ME void ScatterToBlocked(const T (&in)[N], U (&out)[N], R (&ranks)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[ranks[k]] = in[k];
        take_blocked(out);
    }
    template <class U, class R>
    BRASS_ME void ScatterToStriped(const T (&in)[N], U (&out)[N], R (&ranks)[N])
    {
        for (int k = 0; k < N; k++)
            m.v[ranks[k]] = in[k];
        take_striped(out);
    }
    /* Items of a negative rank go nowhere. */
    template <class U, class R>
    BRASS_ME void ScatterToStripedGuarded(const T (&in)[N], U (&out)[N],
                                          R (&ranks)[N])
    {
        for (int k = 0; k < N; k++)
            if (ranks[k] >= 0)
                m.v[ranks[k]] = in[k];
        take_striped(out);
    }
    template <class U, class R, class G>
    BRASS_ME void ScatterToStripedFlagged(const T (&in)[N], U (&out)[N],
                                          R (&ranks)[N], G (&valid)[N])
    {
        for (int k = 0; k < N; k++)
            if (valid[k])
                m.v[ranks[k]] = in[k];
        take_striped(out);
    }
    BRASS_ME void BlockedToStriped(T (&v)[N]) { BlockedToStriped(v, v); }
    BRASS_ME void StripedToBlocked(T (&v)[N]) { StripedToBlocked(v, v); }
    BRASS_ME void BlockedToWarpStriped(T (&v)[N])
    {
        BlockedToWarpStriped(v, v);
    }
    BRASS_ME void WarpStripedToBlocked(T (&v)[N])
    {
        WarpStripedToBlocked(v, v);
    }
    template <class R> BRASS_ME void ScatterToBlocked(T (&v)[N], R (&ranks)[N])
    {
        ScatterToBlocked(v, v, ranks);
    }
    template <class R> BRASS_ME void ScatterToStriped(T (&v)[N], R (&ranks)[N])
    {
        ScatterToStriped(v, v, ranks);
    }
    template <class R>
    BRASS_ME void ScatterToStripedGuarded(T (&v)[N], R (&ranks)[N])
    {
        ScatterToStripedGuarded(v, v, ranks);
    }
    template <class R, class G>
    BRASS_ME void ScatterToStripedFlagged(T (&v)[N], R (&ranks)[N],
                                          G (&valid)[N])
    {
        ScatterToStripedFlagged(v, v, ranks, valid);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
