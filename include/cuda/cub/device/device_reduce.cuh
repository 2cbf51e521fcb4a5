/* device_reduce.cuh - one value out of all, or of each run of equal keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_REDUCE
#define BRASS_CUB_DEVICE_REDUCE
#include "../../brass_push.h"

#include "../iterator/arg_index_input_iterator.cuh"
#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceReduce {
    template <class I, class O, class F, class T>
    static cudaError_t Reduce(void *temp, size_t &bytes, I in, O out,
                              long long n, F op, T init, cudaStream_t s = 0,
                              bool = false)
    {
        typedef brass::made_of<F, T, value_t<I>> A;

        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::reduce(
                a, s, in, (size_t)n, op, (A)init,
                [=] __device__(const A &v) mutable { *out = v; });
        });
    }
    template <class I, class O>
    static cudaError_t Sum(void *temp, size_t &bytes, I in, O out, long long n,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, n, cub::Sum(),
                      brass::out_value<I, O>(), s);
    }
    /* Of nothing, the lowest number there is. */
    template <class I, class O>
    static cudaError_t Max(void *temp, size_t &bytes, I in, O out, long long n,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, n, cub::Max(),
                      Traits<value_t<I>>::Lowest(), s);
    }
    template <class I, class O>
    static cudaError_t Min(void *temp, size_t &bytes, I in, O out, long long n,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, n, cub::Min(),
                      Traits<value_t<I>>::Max(), s);
    }
    /* With its place; of equal ones the first. Of nothing, place 1. */
    template <class I, class O>
    static cudaError_t ArgMax(void *temp, size_t &bytes, I in, O out,
                              long long n, cudaStream_t s = 0, bool = false)
    {
        return arg(temp, bytes, in, out, n, cub::ArgMax(),
                   Traits<value_t<I>>::Lowest(), s);
    }
    template <class I, class O>
    static cudaError_t ArgMin(void *temp, size_t &bytes, I in, O out,
                              long long n, cudaStream_t s = 0, bool = false)
    {
        return arg(temp, bytes, in, out, n, cub::ArgMin(),
                   Traits<value_t<I>>::Max(), s);
    }
    template <class I, class O, class F, class U, class T>
    static cudaError_t TransformReduce(void *temp, size_t &bytes, I in, O out,
                                       long long n, F op, U each, T init,
                                       cudaStream_t s = 0)
    {
        typedef typename std::decay<decltype(std::declval<U &>()(
            std::declval<value_t<I>>()))>::type V;

        return Reduce(temp, bytes, TransformInputIterator<V, U, I>(in, each),
                      out, n, op, init, s);
    }
    template <class K, class KO, class V, class VO, class N, class F>
    static cudaError_t
    ReduceByKey(void *temp, size_t &bytes, K keys, KO unique, V values, VO sums,
                N count, F op, long long n, cudaStream_t s = 0, bool = false)
    {
        typedef brass::made_of<F, value_t<V>> A;

        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::each_run(
                a, s, (size_t)n,
                [=] __device__(size_t i) {
                    return i == 0 || !(keys[i] == keys[i - 1]);
                },
                [=] __device__(size_t i, size_t end, size_t at) mutable {
                    A v = (A)values[i];

                    unique[at] = keys[i];
                    while (++i < end)
                        v = (A)op(v, values[i]);
                    sums[at] = v;
                },
                [=] __device__(size_t runs) mutable { *count = runs; });
        });
    }

  private:
    template <class I, class O, class F, class T>
    static cudaError_t arg(void *temp, size_t &bytes, I in, O out, long long n,
                           F op, T none, cudaStream_t s)
    {
        typedef typename brass::arg_pair<O, value_t<I>>::type A;
        typedef ArgIndexInputIterator<I, typename A::Key, typename A::Value> P;

        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            /* The pair for "nothing" would win against its equals. */
            return brass::reduce(a, s, P(in), (size_t)n, op,
                                 A(std::numeric_limits<typename A::Key>::max(),
                                   (typename A::Value)none),
                                 [=] __device__(A v) mutable {
                                     if (n == 0)
                                         v.key = 1;
                                     *out = v;
                                 });
        });
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
