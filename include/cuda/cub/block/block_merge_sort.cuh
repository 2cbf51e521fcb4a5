/* block_merge_sort.cuh - the keys of a block, or of a warp, in an order
 * that the program defines.
 *
 * A thread sorts its own; then runs are merged two by two, where each thread
 * finds by bisection which N of the merged run are its part. Stable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_MERGE_SORT
#define BRASS_CUB_BLOCK_MERGE_SORT
#include "../../brass_push.h"

#include "../thread/thread_reduce.cuh"

namespace brass
{
template <class K, class V, int Threads, int N> struct merge_memory {
    K keys[Threads * N];
    V values[Threads * N];
};
template <class K, int Threads, int N>
struct merge_memory<K, cub::NullType, Threads, N> {
    K keys[Threads * N];
    cub::NullType values[1];
};

/* Sync: a barrier of the threads, and the rank among them. */
template <class K, class V, int Threads, int N, class Sync> struct merge_sort {
    typedef merge_memory<K, V, Threads, N> Memory;
    static const bool pairs = !std::is_same<V, cub::NullType>::value;
    static const int total = Threads * N;

    template <class F>
    BRASS_ME static void merge(Memory &m, K (&keys)[N], V (&values)[N],
                               int width, F less)
    {
        int me = Sync::rank(), diag = me * N % (2 * width);
        int a = me * N - diag, b = a + width < total ? a + width : total;
        int end = b + width < total ? b + width : total, mid = b;
        int i = a + cub::MergePath(m.keys + a, m.keys + b, b - a, end - b, diag,
                                   less);
        int j = b + diag - (i - a);

        for (int k = 0; k < N; k++) {
            bool second = j < end && (i >= mid || less(m.keys[j], m.keys[i]));
            int at = second ? j++ : i++;

            keys[k] = m.keys[at];
            if (pairs)
                values[k] = m.values[at];
        }
    }
    template <class F>
    BRASS_ME static void sort(Memory &m, K (&keys)[N], V (&values)[N], F less)
    {
        int first = Sync::rank() * N;

        cub::StableOddEvenSort(keys, values, less);
        for (int width = N; width < total; width *= 2) {
            Sync::sync();
            for (int k = 0; k < N; k++) {
                m.keys[first + k] = keys[k];
                if (pairs)
                    m.values[first + k] = values[k];
            }
            Sync::sync();
            merge(m, keys, values, width, less);
        }
    }
    /* Those beyond the valid ones are last, and are what the program said. */
    BRASS_ME static void fill(K (&keys)[N], int valid, const K &last)
    {
        for (int k = 0; k < N; k++)
            if (Sync::rank() * N + k >= valid)
                keys[k] = last;
    }
};
template <int X, int Y, int Z> struct block_sync {
    BRASS_ME static int rank() { return brass::rank<X, Y, Z>(); }
    BRASS_ME static void sync() { __syncthreads(); }
};
template <int N> struct warp_sync {
    BRASS_ME static int rank() { return (int)lanes<N>::me(); }
    BRASS_ME static void sync() { __syncwarp(lanes<N>::mask()); }
};
} // namespace brass

namespace cub
{
/* The calls that both sorters have. */
template <class K, class V, int Threads, int N, class Sync> class BrassMergeSort
{
    typedef brass::merge_sort<K, V, Threads, N, Sync> how;
    typedef typename how::Memory Memory;
    Memory &m;

  public:
    struct TempStorage : Uninitialized<Memory> {
    };
    BRASS_ME explicit BrassMergeSort(Memory &t) : m(t) {}
    template <class F> BRASS_ME void Sort(K (&keys)[N], F less)
    {
        V none[N];

        how::sort(m, keys, none, less);
    }
    template <class F>
    BRASS_ME void Sort(K (&keys)[N], F less, int valid, K last)
    {
        how::fill(keys, valid, last);
        Sort(keys, less);
    }
    template <class F> BRASS_ME void Sort(K (&keys)[N], V (&values)[N], F less)
    {
        how::sort(m, keys, values, less);
    }
    template <class F>
    BRASS_ME void Sort(K (&keys)[N], V (&values)[N], F less, int valid, K last)
    {
        how::fill(keys, valid, last);
        how::sort(m, keys, values, less);
    }
    template <class... A> BRASS_ME void StableSort(K (&keys)[N], A &&...a)
    {
        Sort(keys, static_cast<A &&>(a)...);
    }
};
template <class K, int X, int N, class V = NullType, int Y = 1, int Z = 1>
class BlockMergeSort
    : public BrassMergeSort<K, V, X * Y * Z, N, brass::block_sync<X, Y, Z>>
{
    typedef BrassMergeSort<K, V, X * Y * Z, N, brass::block_sync<X, Y, Z>> Base;

  public:
    typedef typename Base::TempStorage TempStorage;

  private:
    BRASS_ME static TempStorage &own()
    {
        __shared__ TempStorage t;
        return t;
    }

  public:
    BRASS_ME BlockMergeSort() : Base(own().Alias()) {}
    BRASS_ME BlockMergeSort(TempStorage &t) : Base(t.Alias()) {}
};
template <class K, int N, int Lanes = 32, class V = NullType,
          int LegacyArch = 0>
class WarpMergeSort
    : public BrassMergeSort<K, V, Lanes, N, brass::warp_sync<Lanes>>
{
    typedef BrassMergeSort<K, V, Lanes, N, brass::warp_sync<Lanes>> Base;

  public:
    typedef typename Base::TempStorage TempStorage;
    BRASS_ME WarpMergeSort(TempStorage &t) : Base(t.Alias()) {}
};
} // namespace cub

#include "../../brass_pop.h"
#endif
