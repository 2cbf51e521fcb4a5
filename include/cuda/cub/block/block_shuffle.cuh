/* block_shuffle.cuh - items move to threads some ranks away.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_BLOCK_SHUFFLE
#define BRASS_CUB_BLOCK_SHUFFLE
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockShuffle
{
    static const int threads = X * Y * Z;
    struct Memory {
        T v[threads];
    };
    Memory &m;
    int me;

    BRASS_ME void share(const T &v)
    {
        m.v[me] = v;
        __syncthreads();
    }

  public:
    BRASS_CUB_STORAGE(BlockShuffle)
    /* Where no thread is that far away, out stays. */
    BRASS_ME void Offset(T in, T &out, int distance = 1)
    {
        int from = me + distance;

        share(in);
        if (from >= 0 && from < threads)
            out = m.v[from];
    }
    BRASS_ME void Rotate(T in, T &out, unsigned distance = 1)
    {
        share(in);
        out = m.v[(me + distance) % threads];
    }
    /* All items one place on; the first of all stays. */
    template <int N> BRASS_ME void Up(T (&in)[N], T (&out)[N])
    {
        share(in[N - 1]);
        for (int k = N - 1; k > 0; k--)
            out[k] = in[k - 1];
        if (me > 0)
            out[0] = m.v[me - 1];
    }
    template <int N> BRASS_ME void Up(T (&in)[N], T (&out)[N], T &last)
    {
        Up(in, out);
        last = m.v[threads - 1];
    }
    template <int N> BRASS_ME void Down(T (&in)[N], T (&out)[N])
    {
        share(in[0]);
        for (int k = 0; k < N - 1; k++)
            out[k] = in[k + 1];
        if (me < threads - 1)
            out[N - 1] = m.v[me + 1];
    }
    template <int N> BRASS_ME void Down(T (&in)[N], T (&out)[N], T &first)
    {
        Down(in, out);
        first = m.v[0];
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
