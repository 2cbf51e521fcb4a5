/* block_load.cuh - a tile of items into the registers of a block (or a warp).
 *
 *     blocked   thread t has items t * N ... t * N + N - 1
 *     striped   item k of thread t is number k * threads + t
 *
 * Without caches to please, all ways to load are these two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_LOAD
#define BRASS_CUB_BLOCK_LOAD
#include "../../brass_push.h"

#include "../thread/thread_load.cuh"

namespace cub
{
template <class I, class T, int N>
BRASS_ME void
LoadDirectBlocked(int me, I from, T (&items)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        items[k] = from[me * N + k];
}
template <class I, class T, int N>
BRASS_ME void
LoadDirectBlocked(int me, I from, T (&items)[N], int valid)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        if (me * N + k < valid)
            items[k] = from[me * N + k];
}
template <class I, class T, int N, class D>
BRASS_ME void
LoadDirectBlocked(int me, I from, T (&items)[N], int valid, D other)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        items[k] = other;
        if (me * N + k < valid)
            items[k] = from[me * N + k];
    }
}
template <class T, int N>
BRASS_ME void
LoadDirectBlockedVectorized(int me, T *from, T (&items)[N])
{
    LoadDirectBlocked(me, from, items);
}
template <int Threads, class I, class T, int N>
BRASS_ME void
LoadDirectStriped(int me, I from, T (&items)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        items[k] = from[me + k * Threads];
}
template <int Threads, class I, class T, int N>
BRASS_ME void
LoadDirectStriped(int me, I from, T (&items)[N], int valid)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        if (me + k * Threads < valid)
            items[k] = from[me + k * Threads];
}
template <int Threads, class I, class T, int N, class D>
BRASS_ME void
LoadDirectStriped(int me, I from, T (&items)[N], int valid, D other)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        items[k] = other;
        if (me + k * Threads < valid)
            items[k] = from[me + k * Threads];
    }
}
/* Striped within a warp, whose tiles follow one another. */
template <class I, class T, int N>
BRASS_ME void
LoadDirectWarpStriped(int me, I from, T (&items)[N])
{
    LoadDirectStriped<32>(me % 32, from + me / 32 * 32 * N, items);
}
template <class I, class T, int N>
BRASS_ME void
LoadDirectWarpStriped(int me, I from, T (&items)[N], int valid)
{
    int first = me / 32 * 32 * N;

    LoadDirectStriped<32>(me % 32, from + first, items, valid - first);
}
template <class I, class T, int N, class D>
BRASS_ME void
LoadDirectWarpStriped(int me, I from, T (&items)[N], int valid, D other)
{
    int first = me / 32 * 32 * N;

    LoadDirectStriped<32>(me % 32, from + first, items, valid - first, other);
}

enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum WarpLoadAlgorithm {
    WARP_LOAD_DIRECT,
    WARP_LOAD_STRIPED,
    WARP_LOAD_VECTORIZE,
    WARP_LOAD_TRANSPOSE
};

template <class T, int X, int N, int Algorithm = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockLoad
{
    int me;

  public:
    struct TempStorage {
    };
    BRASS_ME BlockLoad() : me(brass::rank<X, Y, Z>()) {}
    BRASS_ME BlockLoad(TempStorage &) : me(brass::rank<X, Y, Z>()) {}
    template <class I, class... R>
    BRASS_ME void Load(I from, T (&items)[N], R... rest)
    {
        if (Algorithm == BLOCK_LOAD_STRIPED)
            LoadDirectStriped<X * Y * Z>(me, from, items, rest...);
        else
            LoadDirectBlocked(me, from, items, rest...);
    }
};
template <class T, int N, int Algorithm = WARP_LOAD_DIRECT, int Lanes = 32,
          int LegacyArch = 0>
class WarpLoad
{
    int me;

  public:
    struct TempStorage {
    };
    BRASS_ME WarpLoad() : me((int)brass::lanes<Lanes>::me()) {}
    BRASS_ME WarpLoad(TempStorage &) : me((int)brass::lanes<Lanes>::me()) {}
    template <class I, class... R>
    BRASS_ME void Load(I from, T (&items)[N], R... rest)
    {
        if (Algorithm == WARP_LOAD_STRIPED)
            LoadDirectStriped<Lanes>(me, from, items, rest...);
        else
            LoadDirectBlocked(me, from, items, rest...);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
