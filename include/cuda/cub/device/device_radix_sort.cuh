/* device_radix_sort.cuh - numbers in order, with what goes with them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_RADIX_SORT
#define BRASS_CUB_DEVICE_RADIX_SORT
#include "../../brass_push.h"

#include "../../brass_order.h"
#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceRadixSort {
#define BR_SORT(Suffix, descending)                                            \
    template <class K, class V>                                                \
    static cudaError_t SortPairs##Suffix(                                      \
        void *temp, size_t &bytes, const K *ki, K *ko, const V *vi, V *vo,     \
        long long n, int from = 0, int to = sizeof(K) * 8, cudaStream_t s = 0, \
        bool = false)                                                          \
    {                                                                          \
        return sort<K, V *>(temp, bytes, ki, ko, vi, vo, n,                    \
                            brass::digits<K>{from, to, descending}, s);        \
    }                                                                          \
    template <class K, class V>                                                \
    static cudaError_t SortPairs##Suffix(                                      \
        void *temp, size_t &bytes, DoubleBuffer<K> &k, DoubleBuffer<V> &v,     \
        long long n, int from = 0, int to = sizeof(K) * 8, cudaStream_t s = 0, \
        bool = false)                                                          \
    {                                                                          \
        cudaError_t e = SortPairs##Suffix(                                     \
            temp, bytes, (const K *)k.Current(), k.Alternate(),                \
            (const V *)v.Current(), v.Alternate(), n, from, to, s);            \
                                                                               \
        return turn(temp, k, turn(temp, v, e));                                \
    }                                                                          \
    template <class K>                                                         \
    static cudaError_t SortKeys##Suffix(void *temp, size_t &bytes,             \
                                        const K *ki, K *ko, long long n,       \
                                        int from = 0, int to = sizeof(K) * 8,  \
                                        cudaStream_t s = 0, bool = false)      \
    {                                                                          \
        brass::no_values v;                                                    \
                                                                               \
        return sort<K, brass::no_values>(                                      \
            temp, bytes, ki, ko, v, v, n,                                      \
            brass::digits<K>{from, to, descending}, s);                        \
    }                                                                          \
    template <class K>                                                         \
    static cudaError_t SortKeys##Suffix(void *temp, size_t &bytes,             \
                                        DoubleBuffer<K> &k, long long n,       \
                                        int from = 0, int to = sizeof(K) * 8,  \
                                        cudaStream_t s = 0, bool = false)      \
    {                                                                          \
        return turn(temp, k,                                                   \
                    SortKeys##Suffix(temp, bytes, (const K *)k.Current(),      \
                                     k.Alternate(), n, from, to, s));          \
    }
    BR_SORT(, false)
    BR_SORT(Descending, true)
#undef BR_SORT

  private:
    template <class K, class V, class VI, class VO>
    static cudaError_t sort(void *temp, size_t &bytes, const K *ki, K *ko,
                            VI vi, VO vo, long long n, brass::digits<K> d,
                            cudaStream_t s)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::radix_sort<K, V>(a, s, ki, ko, vi, vo, (size_t)n, d);
        });
    }
    template <class T>
    static cudaError_t turn(void *temp, DoubleBuffer<T> &b, cudaError_t e)
    {
        if (temp && e == cudaSuccess)
            b.selector ^= 1;
        return e;
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
