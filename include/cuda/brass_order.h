/* brass_order.h - sorting on a whole device: by digits, by merging, in segments.
 *
 * Numbers go digit by digit of eight bits, in one stable move each; what has an
 * order of its own by runs of 32, merged two by two, each thread writing 64 items
 * whose place in the two it finds by bisection. All are stable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_ORDER_H
#define BRASS_ORDER_H
#include "brass_push.h"

#include "brass_grid.h"
#include "cub/thread/thread_reduce.cuh"

namespace brass
{
/* ---- orders ------------------------------------------------------------- */

/* What goes with the keys, or nothing does. */
struct no_values {
    BRASS_HD no_values operator+(size_t) const { return *this; }
    BRASS_HD no_values operator[](size_t) const { return *this; }
};
template <class V> struct buffer {
    static V of(arena &, size_t) { return V(); }
};
template <class T> struct buffer<T *> {
    static T *of(arena &a, size_t n) { return a.take<T>(n); }
};

/* ---- by digits ---------------------------------------------------------- */

/* Some bits of a number in their order. */
template <class K> struct digits {
    typedef cub::NumericTraits<K> number;
    typedef typename number::UnsignedBits bits_t;
    int from, to;
    bool down;
    BRASS_HD bits_t of(const K &k) const
    {
        bits_t b = (bits_t)(number::how::order(k) >> from);
        int n = to - from;

        b = down ? (bits_t)~b : b;
        return n >= (int)sizeof(b) * 8 ? b
                                       : (bits_t)(b & (((bits_t)1 << n) - 1));
    }
    BRASS_HD bool operator()(const K &a, const K &b) const
    {
        return of(a) < of(b);
    }
};
template <class KI, class KO, class VI, class VO>
cudaError_t
copy_pairs(cudaStream_t s, KI ki, KO ko, VI vi, VO vo, size_t n)
{
    return each(s, n, [=] __device__(size_t i) mutable {
        ko[i] = ki[i];
        vo[i] = vi[i];
    });
}
/* By one digit: at[digit][part] are counts, then places. */
template <class K, class KI, class KO, class VI, class VO>
cudaError_t
radix_pass(arena a, cudaStream_t s, KI ki, KO ko, VI vi, VO vo, parts p,
           unsigned *at, digits<K> d)
{
    size_t all = p.count << (d.to - d.from);
    scan_how<unsigned> how = {false, true, 0};
    steps step;

    step(cudaMemsetAsync(at, 0, all * sizeof *at, s));
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        for (size_t i = p.begin(c), end = p.end(c); i < end; i++)
            at[(size_t)d.of(ki[i]) * p.count + c]++;
    }));
    step(scan(a, s, at, at, all, cub::Sum(), how));
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        for (size_t i = p.begin(c), end = p.end(c); i < end; i++) {
            K key = ki[i];
            unsigned to = at[(size_t)d.of(key) * p.count + c]++;

            ko[to] = key;
            vo[to] = vi[i];
        }
    }));
    return step.error;
}
/* Through two buffers of its own, from the input and to the output, which may be
 * one memory. */
template <class K, class V, class KI, class KO, class VI, class VO>
cudaError_t
radix_sort(arena &a, cudaStream_t s, KI ki, KO ko, VI vi, VO vo, size_t n,
           digits<K> d)
{
    const int bits = 8;
    parts p(n, 1024, 64);
    unsigned *at = a.take<unsigned>(p.count << bits);
    K *keys[2] = {a.take<K>(n), a.take<K>(n)};
    V values[2] = {buffer<V>::of(a, n), buffer<V>::of(a, n)};
    arena scratch = a;
    int k = 0, passes = (d.to - d.from + bits - 1) / bits;
    steps step;

    a.take<unsigned>(2048 + 64);
    if (a.counts() || n == 0)
        return cudaSuccess;
    for (int pass = 0; pass < passes; pass++) {
        digits<K> one = d;

        one.from = d.from + pass * bits;
        one.to = one.from + bits < d.to ? one.from + bits : d.to;
        if (pass == 0)
            step(
                radix_pass(scratch, s, ki, keys[0], vi, values[0], p, at, one));
        else if (pass == passes - 1)
            step(
                radix_pass(scratch, s, keys[k], ko, values[k], vo, p, at, one));
        else
            step(radix_pass(scratch, s, keys[k], keys[k ^ 1], values[k],
                            values[k ^ 1], p, at, one));
        k = pass ? k ^ 1 : 0;
    }
    if (passes == 0)
        step(copy_pairs(s, ki, ko, vi, vo, n));
    else if (passes == 1)
        step(copy_pairs(s, keys[0], ko, values[0], vo, n));
    return step.error;
}

/* ---- by merging --------------------------------------------------------- */

static const size_t run_length = 32, merge_length = 64;

/* n keys into `keys`, in order, by insertion. */
template <class K, class V, class KI, class VI, class F>
BRASS_ME void
sort_run(KI ki, VI vi, K *keys, V values, size_t n, F &less)
{
    for (size_t i = 0; i < n; i++) {
        K key = ki[i];
        size_t k = i;

        for (; k > 0 && less(key, keys[k - 1]); k--) {
            keys[k] = keys[k - 1];
            values[k] = values[k - 1];
        }
        keys[k] = key;
        values[k] = vi[i];
    }
}
/* Part t of n items whose runs of `width` are merged two by two. */
template <class K, class V, class F>
BRASS_ME void
merge_part(const K *ki, V vi, K *ko, V vo, size_t n, size_t width, size_t t,
           F &less)
{
    size_t at = t * merge_length, a = at / (2 * width) * 2 * width;
    size_t b = a + width < n ? a + width : n;
    size_t end = b + width < n ? b + width : n;
    size_t i = a + cub::MergePath(ki + a, ki + b, b - a, end - b, at - a, less);
    size_t j = b + (at - a) - (i - a);
    size_t last = at + merge_length < end ? at + merge_length : end;

    for (; at < last; at++) {
        bool second = j < end && (i >= b || less(ki[j], ki[i]));
        size_t from = second ? j++ : i++;

        ko[at] = ki[from];
        vo[at] = vi[from];
    }
}
/* Any order, stable. */
template <class K, class V, class KI, class KO, class VI, class VO, class F>
cudaError_t
merge_all(arena &a, cudaStream_t s, KI ki, KO ko, VI vi, VO vo, size_t n,
          F less)
{
    K *keys[2] = {a.take<K>(n), a.take<K>(n)};
    V values[2] = {buffer<V>::of(a, n), buffer<V>::of(a, n)};
    int k = 0;
    steps step;

    if (a.counts())
        return cudaSuccess;
    K *first = keys[0];
    V with = values[0];
    step(each(
        s, (n + run_length - 1) / run_length,
        [=] __device__(size_t t) mutable {
            size_t at = t * run_length, left = n - at;

            sort_run(ki + at, vi + at, first + at, with + at,
                     left < run_length ? left : run_length, less);
        },
        64));
    for (size_t width = run_length; width < n; width *= 2, k ^= 1) {
        K *from = keys[k], *to = keys[k ^ 1];
        V vfrom = values[k], vto = values[k ^ 1];

        step(each(
            s, (n + merge_length - 1) / merge_length,
            [=] __device__(size_t t) mutable {
                merge_part(from, vfrom, to, vto, n, width, t, less);
            },
            64));
    }
    step(copy_pairs(s, keys[k], ko, values[k], vo, n));
    return step.error;
}
/* Each segment [first[g], last[g]) by a block. */
template <class K, class V, class VI, class VO, class B, class E, class F>
cudaError_t
segment_sort(arena &a, cudaStream_t s, const K *ki, K *ko, VI vi, VO vo,
             size_t n, size_t segments, B first, E last, F less)
{
    K *k0 = a.take<K>(n), *k1 = a.take<K>(n);
    V v0 = buffer<V>::of(a, n), v1 = buffer<V>::of(a, n);

    if (a.counts())
        return cudaSuccess;
    return each_block(
        s, segments,
        [=] __device__(size_t g) mutable {
            size_t at = (size_t)first[g], end = (size_t)last[g];
            size_t m = end > at ? end - at : 0;
            K *from = k0 + at, *to = k1 + at;
            V vfrom = v0 + at, vto = v1 + at;

            for (size_t t = threadIdx.x * run_length; t < m;
                 t += blockDim.x * run_length)
                sort_run(ki + at + t, vi + at + t, from + t, vfrom + t,
                         m - t < run_length ? m - t : run_length, less);
            __syncthreads();
            for (size_t width = run_length; width < m; width *= 2) {
                for (size_t t = threadIdx.x; t * merge_length < m;
                     t += blockDim.x)
                    merge_part(from, vfrom, to, vto, m, width, t, less);
                K *k = from;
                V v = vfrom;
                from = to, to = k;
                vfrom = vto, vto = v;
                __syncthreads();
            }
            for (size_t t = threadIdx.x; t < m; t += blockDim.x) {
                ko[at + t] = from[t];
                vo[at + t] = vfrom[t];
            }
            __syncthreads();
        },
        64);
}
} // namespace brass

#include "brass_pop.h"
#endif
