/* device_segmented_sort.cuh - the keys of each segment in order.
 *
 * A block for each; DeviceSegmentedRadixSort is the same, by some bits of a key.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_SEGMENTED_SORT
#define BRASS_CUB_DEVICE_SEGMENTED_SORT
#include "../../brass_push.h"

#include "../../brass_order.h"
#include "dispatch_two_calls.cuh"

namespace brass
{
template <class K, class V, class VI, class VO, class B, class E>
cudaError_t
sort_segments(void *temp, size_t &bytes, const K *ki, K *ko, VI vi, VO vo,
              long long n, long long segments, B first, E last, digits<K> d,
              cudaStream_t s)
{
    return two_calls(temp, bytes, [=](arena &a) {
        return segment_sort<K, V>(a, s, ki, ko, vi, vo, (size_t)n,
                                  (size_t)segments, first, last, d);
    });
}
/* The buffers turn when the work was asked for, not its size. */
template <class T>
cudaError_t
turn(void *temp, cub::DoubleBuffer<T> &b, cudaError_t e)
{
    if (temp && e == cudaSuccess)
        b.selector ^= 1;
    return e;
}
} // namespace brass

namespace cub
{
/* Bits: the parameters that tell which, with their commas. */
#define BR_SORT(Name, down, descending, Bits, from, to)                        \
    template <class K, class V, class B, class E>                              \
    static cudaError_t Name##Pairs##down(                                      \
        void *temp, size_t &bytes, const K *ki, K *ko, const V *vi, V *vo,     \
        long long n, long long segments, B first, E last Bits,                 \
        cudaStream_t s = 0, bool = false)                                      \
    {                                                                          \
        return brass::sort_segments<K, V *>(                                   \
            temp, bytes, ki, ko, vi, vo, n, segments, first, last,             \
            brass::digits<K>{from, to, descending}, s);                        \
    }                                                                          \
    template <class K, class B, class E>                                       \
    static cudaError_t Name##Keys##down(                                       \
        void *temp, size_t &bytes, const K *ki, K *ko, long long n,            \
        long long segments, B first, E last Bits, cudaStream_t s = 0,          \
        bool = false)                                                          \
    {                                                                          \
        brass::no_values v;                                                    \
                                                                               \
        return brass::sort_segments<K, brass::no_values>(                      \
            temp, bytes, ki, ko, v, v, n, segments, first, last,               \
            brass::digits<K>{from, to, descending}, s);                        \
    }                                                                          \
    template <class K, class V, class B, class E>                              \
    static cudaError_t Name##Pairs##down(                                      \
        void *temp, size_t &bytes, DoubleBuffer<K> &k, DoubleBuffer<V> &v,     \
        long long n, long long segments, B first, E last Bits,                 \
        cudaStream_t s = 0, bool = false)                                      \
    {                                                                          \
        cudaError_t e = brass::sort_segments<K, V *>(                          \
            temp, bytes, k.Current(), k.Alternate(), v.Current(),              \
            v.Alternate(), n, segments, first, last,                           \
            brass::digits<K>{from, to, descending}, s);                        \
                                                                               \
        return brass::turn(temp, k, brass::turn(temp, v, e));                  \
    }                                                                          \
    template <class K, class B, class E>                                       \
    static cudaError_t Name##Keys##down(                                       \
        void *temp, size_t &bytes, DoubleBuffer<K> &k, long long n,            \
        long long segments, B first, E last Bits, cudaStream_t s = 0,          \
        bool = false)                                                          \
    {                                                                          \
        brass::no_values v;                                                    \
        cudaError_t e = brass::sort_segments<K, brass::no_values>(             \
            temp, bytes, k.Current(), k.Alternate(), v, v, n, segments, first, \
            last, brass::digits<K>{from, to, descending}, s);                  \
                                                                               \
        return brass::turn(temp, k, e);                                        \
    }
#define BR_NO_BITS
#define BR_BITS , int from = 0, int to = sizeof(K) * 8

struct DeviceSegmentedRadixSort {
    BR_SORT(Sort, , false, BR_BITS, from, to)
    BR_SORT(Sort, Descending, true, BR_BITS, from, to)
};
struct DeviceSegmentedSort {
    BR_SORT(Sort, , false, BR_NO_BITS, 0, sizeof(K) * 8)
    BR_SORT(Sort, Descending, true, BR_NO_BITS, 0, sizeof(K) * 8)
    BR_SORT(StableSort, , false, BR_NO_BITS, 0, sizeof(K) * 8)
    BR_SORT(StableSort, Descending, true, BR_NO_BITS, 0, sizeof(K) * 8)
};
#undef BR_SORT
#undef BR_NO_BITS
#undef BR_BITS
} // namespace cub

#include "../../brass_pop.h"
#endif
