/* block_store.cuh - a tile of items out of the registers of a block or a warp.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_STORE
#define BRASS_CUB_BLOCK_STORE
#include "../../brass_push.h"

#include "../thread/thread_load.cuh"

namespace cub
{
template <class I, class T, int N>
BRASS_ME void
StoreDirectBlocked(int me, I to, T (&items)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        to[me * N + k] = items[k];
}
template <class I, class T, int N>
BRASS_ME void
StoreDirectBlocked(int me, I to, T (&items)[N], int valid)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        if (me * N + k < valid)
            to[me * N + k] = items[k];
}
template <class T, int N>
BRASS_ME void
StoreDirectBlockedVectorized(int me, T *to, T (&items)[N])
{
    StoreDirectBlocked(me, to, items);
}
template <int Threads, class I, class T, int N>
BRASS_ME void
StoreDirectStriped(int me, I to, T (&items)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        to[me + k * Threads] = items[k];
}
template <int Threads, class I, class T, int N>
BRASS_ME void
StoreDirectStriped(int me, I to, T (&items)[N], int valid)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        if (me + k * Threads < valid)
            to[me + k * Threads] = items[k];
}
template <class I, class T, int N>
BRASS_ME void
StoreDirectWarpStriped(int me, I to, T (&items)[N])
{
    StoreDirectStriped<32>(me % 32, to + me / 32 * 32 * N, items);
}
template <class I, class T, int N>
BRASS_ME void
StoreDirectWarpStriped(int me, I to, T (&items)[N], int valid)
{
    int first = me / 32 * 32 * N;

    StoreDirectStriped<32>(me % 32, to + first, items, valid - first);
}

enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum WarpStoreAlgorithm {
    WARP_STORE_DIRECT,
    WARP_STORE_STRIPED,
    WARP_STORE_VECTORIZE,
    WARP_STORE_TRANSPOSE
};

template <class T, int X, int N, int Algorithm = BLOCK_STORE_DIRECT, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockStore
{
    int me;

  public:
    struct TempStorage {
    };
    BRASS_ME BlockStore() : me(brass::rank<X, Y, Z>()) {}
    BRASS_ME BlockStore(TempStorage &) : me(brass::rank<X, Y, Z>()) {}
    template <class I, class U, class... R>
    BRASS_ME void Store(I to, U (&items)[N], R... valid)
    {
        if (Algorithm == BLOCK_STORE_STRIPED)
            StoreDirectStriped<X * Y * Z>(me, to, items, valid...);
        else
            StoreDirectBlocked(me, to, items, valid...);
    }
};
template <class T, int N, int Algorithm = WARP_STORE_DIRECT, int Lanes = 32,
          int LegacyArch = 0>
class WarpStore
{
    int me;

  public:
    struct TempStorage {
    };
    BRASS_ME WarpStore() : me((int)brass::lanes<Lanes>::me()) {}
    BRASS_ME WarpStore(TempStorage &) : me((int)brass::lanes<Lanes>::me()) {}
    template <class I, class U, class... R>
    BRASS_ME void Store(I to, U (&items)[N], R... valid)
    {
        if (Algorithm == WARP_STORE_STRIPED)
            StoreDirectStriped<Lanes>(me, to, items, valid...);
        else
            StoreDirectBlocked(me, to, items, valid...);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
