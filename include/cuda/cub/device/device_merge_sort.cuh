/* device_merge_sort.cuh - any order, stable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_MERGE_SORT
#define BRASS_CUB_DEVICE_MERGE_SORT
#include "../../brass_push.h"

#include "../../brass_order.h"
#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceMergeSort {
    template <class K, class V, class F>
    static cudaError_t SortPairs(void *temp, size_t &bytes, K keys, V values,
                                 long long n, F less, cudaStream_t s = 0,
                                 bool = false)
    {
        return pairs(temp, bytes, keys, values, keys, values, n, less, s);
    }
    template <class K, class V, class KO, class VO, class F>
    static cudaError_t SortPairsCopy(void *temp, size_t &bytes, K ki, V vi,
                                     KO ko, VO vo, long long n, F less,
                                     cudaStream_t s = 0, bool = false)
    {
        return pairs(temp, bytes, ki, vi, ko, vo, n, less, s);
    }
    template <class K, class F>
    static cudaError_t SortKeys(void *temp, size_t &bytes, K keys, long long n,
                                F less, cudaStream_t s = 0, bool = false)
    {
        return SortKeysCopy(temp, bytes, keys, keys, n, less, s);
    }
    template <class K, class KO, class F>
    static cudaError_t SortKeysCopy(void *temp, size_t &bytes, K ki, KO ko,
                                    long long n, F less, cudaStream_t s = 0,
                                    bool = false)
    {
        typedef brass::no_values none;

        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::merge_all<value_t<K>, none>(a, s, ki, ko, none(),
                                                      none(), (size_t)n, less);
        });
    }
    template <class K, class V, class F>
    static cudaError_t StableSortPairs(void *temp, size_t &bytes, K keys,
                                       V values, long long n, F less,
                                       cudaStream_t s = 0, bool = false)
    {
        return pairs(temp, bytes, keys, values, keys, values, n, less, s);
    }
    template <class K, class F>
    static cudaError_t StableSortKeys(void *temp, size_t &bytes, K keys,
                                      long long n, F less, cudaStream_t s = 0,
                                      bool = false)
    {
        return SortKeysCopy(temp, bytes, keys, keys, n, less, s);
    }
    template <class K, class KO, class F>
    static cudaError_t StableSortKeysCopy(void *temp, size_t &bytes, K ki,
                                          KO ko, long long n, F less,
                                          cudaStream_t s = 0)
    {
        return SortKeysCopy(temp, bytes, ki, ko, n, less, s);
    }

  private:
    template <class K, class V, class KO, class VO, class F>
    static cudaError_t pairs(void *temp, size_t &bytes, K ki, V vi, KO ko,
                             VO vo, long long n, F less, cudaStream_t s)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::merge_all<value_t<K>, value_t<V> *>(
                a, s, ki, ko, vi, vo, (size_t)n, less);
        });
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
