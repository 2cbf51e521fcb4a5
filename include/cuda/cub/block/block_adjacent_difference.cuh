/* block_adjacent_difference.cuh - what neighbours in a block make.
 *
 *     left: out[i] = op(in[i], in[i - 1])    right: out[i] = op(in[i], in[i + 1])
 *
 * The item without a neighbour stays what it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_ADJACENT_DIFFERENCE
#define BRASS_CUB_BLOCK_ADJACENT_DIFFERENCE
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockAdjacentDifference
{
    static const int threads = X * Y * Z;
    struct Memory {
        T edge[threads];
    };
    Memory &m;
    int me;

    template <int N, class U, class F>
    BRASS_ME void left(T (&in)[N], U (&out)[N], F op, int valid, T *before)
    {
        T v = in[N - 1], next;

        m.edge[me] = v;
        __syncthreads();
        for (int k = N - 1; k > 0; k--, v = next) {
            next = in[k - 1];
            out[k] = me * N + k < valid ? op(v, next) : v;
        }
        if (me == 0)
            out[0] = before && valid > 0 ? op(v, *before) : v;
        else
            out[0] = me * N < valid ? op(v, m.edge[me - 1]) : v;
    }
    template <int N, class U, class F>
    BRASS_ME void right(T (&in)[N], U (&out)[N], F op, int valid, T *after)
    {
        T v = in[0], next;

        m.edge[me] = v;
        __syncthreads();
        for (int k = 0; k < N - 1; k++, v = next) {
            next = in[k + 1];
            out[k] = me * N + k + 1 < valid ? op(v, next) : v;
        }
        if (me == threads - 1)
            out[N - 1] = after ? op(v, *after) : v;
        else
            out[N - 1] = me * N + N < valid ? op(v, m.edge[me + 1]) : v;
    }

  public:
    BRASS_CUB_STORAGE(BlockAdjacentDifference)
    template <int N, class U, class F>
    BRASS_ME void SubtractLeft(T (&in)[N], U (&out)[N], F op)
    {
        left(in, out, op, threads * N, 0);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractLeft(T (&in)[N], U (&out)[N], F op, T before)
    {
        left(in, out, op, threads * N, &before);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractLeftPartialTile(T (&in)[N], U (&out)[N], F op,
                                          int valid)
    {
        left(in, out, op, valid, 0);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractLeftPartialTile(T (&in)[N], U (&out)[N], F op,
                                          int valid, T before)
    {
        left(in, out, op, valid, &before);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractRight(T (&in)[N], U (&out)[N], F op)
    {
        right(in, out, op, threads * N, 0);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractRight(T (&in)[N], U (&out)[N], F op, T after)
    {
        right(in, out, op, threads * N, &after);
    }
    template <int N, class U, class F>
    BRASS_ME void SubtractRightPartialTile(T (&in)[N], U (&out)[N], F op,
                                           int valid)
    {
        right(in, out, op, valid, 0);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
