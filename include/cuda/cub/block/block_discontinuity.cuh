/* block_discontinuity.cuh - where a block's items differ from their neighbours.
 *
 * The first item of the tile is a head and the last one a tail, unless the
 * program tells what stands before and after.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_DISCONTINUITY
#define BRASS_CUB_BLOCK_DISCONTINUITY
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace brass
{
/* Operators may take the index of the item as a third argument. */
template <class F, class T>
BRASS_ME auto
differ(F &op, T &a, T &b, int at, int) -> decltype((bool)op(a, b, at))
{
    return op(a, b, at);
}
template <class F, class T>
BRASS_ME bool
differ(F &op, T &a, T &b, int, long)
{
    return op(a, b);
}
} // namespace brass

namespace cub
{
template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockDiscontinuity
{
    static const int threads = X * Y * Z;
    struct Memory {
        T first[threads], last[threads];
    };
    Memory &m;
    int me;

    template <int N> BRASS_ME void share(T (&v)[N])
    {
        m.first[me] = v[0];
        m.last[me] = v[N - 1];
        __syncthreads();
    }
    template <int N, class G, class F>
    BRASS_ME void heads(G (&flags)[N], T (&v)[N], F op, T *before)
    {
        flags[0] = 1;
        if (me)
            flags[0] = brass::differ(op, m.last[me - 1], v[0], me * N, 0);
        else if (before)
            flags[0] = brass::differ(op, *before, v[0], 0, 0);
        for (int k = 1; k < N; k++)
            flags[k] = brass::differ(op, v[k - 1], v[k], me * N + k, 0);
    }
    template <int N, class G, class F>
    BRASS_ME void tails(G (&flags)[N], T (&v)[N], F op, T *after)
    {
        int end = me * N + N;

        for (int k = 0; k < N - 1; k++)
            flags[k] = brass::differ(op, v[k], v[k + 1], me * N + k + 1, 0);
        flags[N - 1] = 1;
        if (me < threads - 1)
            flags[N - 1] = brass::differ(op, v[N - 1], m.first[me + 1], end, 0);
        else if (after)
            flags[N - 1] = brass::differ(op, v[N - 1], *after, end, 0);
    }

  public:
    BRASS_CUB_STORAGE(BlockDiscontinuity)
    template <int N, class G, class F>
    BRASS_ME void FlagHeads(G (&flags)[N], T (&v)[N], F op)
    {
        share(v);
        heads(flags, v, op, 0);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagHeads(G (&flags)[N], T (&v)[N], F op, T before)
    {
        share(v);
        heads(flags, v, op, &before);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagTails(G (&flags)[N], T (&v)[N], F op)
    {
        share(v);
        tails(flags, v, op, 0);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagTails(G (&flags)[N], T (&v)[N], F op, T after)
    {
        share(v);
        tails(flags, v, op, &after);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagHeadsAndTails(G (&head)[N], G (&tail)[N], T (&v)[N], F op)
    {
        share(v);
        heads(head, v, op, 0);
        tails(tail, v, op, 0);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagHeadsAndTails(G (&head)[N], G (&tail)[N], T after,
                                    T (&v)[N], F op)
    {
        share(v);
        heads(head, v, op, 0);
        tails(tail, v, op, &after);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagHeadsAndTails(G (&head)[N], T before, G (&tail)[N],
                                    T (&v)[N], F op)
    {
        share(v);
        heads(head, v, op, &before);
        tails(tail, v, op, 0);
    }
    template <int N, class G, class F>
    BRASS_ME void FlagHeadsAndTails(G (&head)[N], T before, G (&tail)[N],
                                    T after, T (&v)[N], F op)
    {
        share(v);
        heads(head, v, op, &before);
        tails(tail, v, op, &after);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
