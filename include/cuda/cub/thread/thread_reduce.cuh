/* thread_reduce.cuh - what a thread does with items of its own: folds, scans,
 * searches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_REDUCE
#define BRASS_CUB_THREAD_REDUCE
#include "../../brass_push.h"

#include "../util_ptx.cuh"
#include "thread_operators.cuh"

namespace cub
{
template <int N, class T, class F>
BRASS_ME T
ThreadReduce(const T (&v)[N], F op, T first)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        first = op(first, v[k]);
    return first;
}
template <int N, class T, class F>
BRASS_ME T
ThreadReduce(const T (&v)[N], F op)
{
    T r = v[0];

#pragma unroll
    for (int k = 1; k < N; k++)
        r = op(r, v[k]);
    return r;
}
template <int N, class T, class F>
BRASS_ME T
ThreadReduce(const T *v, F op, T first)
{
    for (int k = 0; k < N; k++)
        first = op(first, v[k]);
    return first;
}
/* From first on; without first_counts it starts at the first item. */
template <int N, class T, class F>
BRASS_ME T
ThreadScanInclusive(const T (&in)[N], T (&out)[N], F op, T first,
                    bool first_counts = true)
{
    T r = first_counts ? op(first, in[0]) : in[0];

    out[0] = r;
#pragma unroll
    for (int k = 1; k < N; k++)
        out[k] = r = op(r, in[k]);
    return r;
}
template <int N, class T, class F>
BRASS_ME T
ThreadScanInclusive(const T (&in)[N], T (&out)[N], F op)
{
    return ThreadScanInclusive(in, out, op, in[0], false);
}
template <int N, class T, class F>
BRASS_ME T
ThreadScanExclusive(const T (&in)[N], T (&out)[N], F op, T first,
                    bool first_counts = true)
{
    T r = first_counts ? op(first, in[0]) : in[0];

    out[0] = first;
#pragma unroll
    for (int k = 1; k < N; k++) {
        T v = in[k];

        out[k] = r;
        r = op(r, v);
    }
    return r;
}
/* The first of n places where v could stand, and the last. */
template <class I, class N, class T>
BRASS_HD N
LowerBound(I v, N n, T x)
{
    N at = 0;

    while (n > 0) {
        N half = n / 2;

        if (v[at + half] < x) {
            at += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return at;
}
template <class I, class N, class T>
BRASS_HD N
UpperBound(I v, N n, T x)
{
    N at = 0;

    while (n > 0) {
        N half = n / 2;

        if (x < v[at + half]) {
            n = half;
        } else {
            at += half + 1;
            n -= half + 1;
        }
    }
    return at;
}
/* How many of the first `diag` of two merged lists come from the first. */
template <class I, class J, class N, class F>
BRASS_HD N
MergePath(I a, J b, N na, N nb, N diag, F less)
{
    N lo = diag > nb ? diag - nb : 0, hi = diag < na ? diag : na;

    while (lo < hi) {
        N mid = (lo + hi) / 2;

        if (less(b[diag - 1 - mid], a[mid]))
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}
/* Keys of a thread's own, with what goes with them, by insertion: stable. */
template <class K, class V, class F, int N>
BRASS_ME void
StableOddEvenSort(K (&keys)[N], V (&values)[N], F less)
{
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int k = i & 1; k < N - 1; k += 2)
            if (less(keys[k + 1], keys[k])) {
                K key = keys[k];
                V v = values[k];

                keys[k] = keys[k + 1];
                keys[k + 1] = key;
                values[k] = values[k + 1];
                values[k + 1] = v;
            }
}
} // namespace cub

#include "../../brass_pop.h"
#endif
