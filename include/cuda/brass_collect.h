/* brass_collect.h - what CUB's and Thrust's headers here are made of: lanes,
 * values of any size through shuffles, memory that nobody constructs.
 *
 * Written from the public documentation of both interfaces. Collectives fold in
 * the order of ranks, always the same one, so an operator need not commute and
 * sums of floats are the same in every run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_COLLECT_H
#define BRASS_COLLECT_H
#include "brass_push.h"

#include "cuda_runtime.h"

#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#define BRASS_ME __device__ __forceinline__
#define BRASS_HD __host__ __device__ __forceinline__

namespace brass
{
/* The rank of a thread in a block whose shape the program has said. */
template <int X, int Y, int Z>
BRASS_ME int
rank()
{
    if (Y == 1 && Z == 1)
        return (int)threadIdx.x;
    return (int)(threadIdx.x + X * (threadIdx.y + Y * threadIdx.z));
}
BRASS_ME unsigned
lane()
{
    unsigned r;

    asm("mov.u32 %0, %%laneid;" : "=r"(r));
    return r;
}

/* A group of N lanes, several in a warp where N is a power of two. */
template <int N> struct lanes {
    static_assert(N > 0 && N <= 32, "a warp has 32 lanes");
    static const bool even = (N & (N - 1)) == 0;
    BRASS_ME static unsigned me() { return even ? lane() & (N - 1) : lane(); }
    BRASS_ME static unsigned first() { return even ? lane() & ~(N - 1u) : 0; }
    BRASS_ME static unsigned mask()
    {
        return 0xffffffffu >> (32 - N) << first();
    }
};

/* A value goes word by word: f says how. */
template <class T, class F>
BRASS_ME T
by_words(const T &v, F f)
{
    unsigned w[(sizeof(T) + 3) / 4];
    T r;

    w[sizeof w / 4 - 1] = 0;
    memcpy((void *)w, (const void *)&v, sizeof v);
#pragma unroll
    for (unsigned k = 0; k < sizeof w / 4; k++)
        w[k] = f(w[k]);
    memcpy((void *)&r, (const void *)w, sizeof r);
    return r;
}
template <int N, class T>
BRASS_ME T
shuffle(const T &v, unsigned from)
{
    unsigned mask = lanes<N>::mask(), at = lanes<N>::first() + from;

    return by_words(v, [=](unsigned w) {
        return (unsigned)__shfl_sync(mask, (int)w, (int)at);
    });
}
/* Beyond the group's end a lane gets its own value. */
template <int N, class T>
BRASS_ME T
shuffle_down(const T &v, unsigned by)
{
    unsigned me = lanes<N>::me();

    if (N == 32)
        return by_words(v, [=](unsigned w) {
            return (unsigned)__shfl_down_sync(0xffffffff, (int)w, by);
        });
    return shuffle<N>(v, me + by < N ? me + by : me);
}
template <int N, class T>
BRASS_ME T
shuffle_up(const T &v, unsigned by)
{
    unsigned me = lanes<N>::me();

    if (N == 32)
        return by_words(v, [=](unsigned w) {
            return (unsigned)__shfl_up_sync(0xffffffff, (int)w, by);
        });
    return shuffle<N>(v, me >= by ? me - by : me);
}

/* Lane 0 gets op over the first n lanes. */
template <int N, class T, class F>
BRASS_ME T
warp_fold(T v, F op, int n = N)
{
    int me = (int)lanes<N>::me();

#pragma unroll
    for (int by = 1; by < N; by *= 2) {
        T next = shuffle_down<N>(v, by);

        if (me + by < n)
            v = op(v, next);
    }
    return v;
}
/* Every lane gets op over the lanes up to its own. */
template <int N, class T, class F>
BRASS_ME T
warp_scan(T v, F op)
{
    int me = (int)lanes<N>::me();

#pragma unroll
    for (int by = 1; by < N; by *= 2) {
        T before = shuffle_up<N>(v, by);

        if (me >= by)
            v = op(before, v);
    }
    return v;
}

/* Memory for a T that nobody constructs: unions and __shared__ take it. */
template <class T> struct alignas(T) raw {
    alignas(T) unsigned char bytes[sizeof(T)];
    BRASS_HD T &it() { return *reinterpret_cast<T *>(bytes); }
    BRASS_HD const T &it() const { return *reinterpret_cast<const T *>(bytes); }
};

template <class I> struct iter {
    typedef typename std::iterator_traits<I>::value_type value;
    typedef typename std::iterator_traits<I>::difference_type diff;
};
template <class A, class B> struct first_of_two {
    typedef A type;
};
/* What op makes of A and B. A class asks, not the host's function that names the
 * type: that one may not call what is a kernel's alone. */
template <class F, class A, class B> struct made_by_op {
    typedef typename std::decay<decltype(std::declval<F &>()(
        std::declval<A>(), std::declval<B>()))>::type type;
};
template <class F, class A, class B = A>
using made_of = typename made_by_op<F, A, B>::type;
} // namespace brass

#include "brass_pop.h"
#endif
