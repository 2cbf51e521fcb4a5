/* device_segmented_reduce.cuh - one value out of each segment.
 *
 * A warp for each: its lanes fold every 32nd item, then each other's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_SEGMENTED_REDUCE
#define BRASS_CUB_DEVICE_SEGMENTED_REDUCE
#include "../../brass_push.h"

#include "../iterator/arg_index_input_iterator.cuh"
#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceSegmentedReduce {
    template <class I, class O, class B, class E, class F, class T>
    static cudaError_t Reduce(void *temp, size_t &bytes, I in, O out,
                              long long segments, B first, E last, F op, T init,
                              cudaStream_t s = 0, bool = false)
    {
        typedef brass::made_of<F, T, value_t<I>> A;

        return run(temp, bytes, segments, s, [=] __device__(size_t g) mutable {
            long long at = (long long)first[g], end = (long long)last[g];
            A v = fold<A>(in, at, end, op);

            if (threadIdx.x == 0)
                out[g] = end > at ? (A)op((A)init, v) : (A)init;
        });
    }
    template <class I, class O, class B, class E>
    static cudaError_t Sum(void *temp, size_t &bytes, I in, O out,
                           long long segments, B first, E last,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, segments, first, last, cub::Sum(),
                      brass::out_value<I, O>(), s);
    }
    template <class I, class O, class B, class E>
    static cudaError_t Max(void *temp, size_t &bytes, I in, O out,
                           long long segments, B first, E last,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, segments, first, last, cub::Max(),
                      Traits<value_t<I>>::Lowest(), s);
    }
    template <class I, class O, class B, class E>
    static cudaError_t Min(void *temp, size_t &bytes, I in, O out,
                           long long segments, B first, E last,
                           cudaStream_t s = 0, bool = false)
    {
        return Reduce(temp, bytes, in, out, segments, first, last, cub::Min(),
                      Traits<value_t<I>>::Max(), s);
    }
    /* Places count from each segment's first item. */
    template <class I, class O, class B, class E>
    static cudaError_t ArgMax(void *temp, size_t &bytes, I in, O out,
                              long long segments, B first, E last,
                              cudaStream_t s = 0, bool = false)
    {
        return arg(temp, bytes, in, out, segments, first, last, cub::ArgMax(),
                   Traits<value_t<I>>::Lowest(), s);
    }
    template <class I, class O, class B, class E>
    static cudaError_t ArgMin(void *temp, size_t &bytes, I in, O out,
                              long long segments, B first, E last,
                              cudaStream_t s = 0, bool = false)
    {
        return arg(temp, bytes, in, out, segments, first, last, cub::ArgMin(),
                   Traits<value_t<I>>::Max(), s);
    }

  private:
    template <class A, class I, class F>
    BRASS_ME static A fold(I in, long long at, long long end, F &op)
    {
        long long n = end - at;
        A v;

        if (threadIdx.x < n)
            v = (A)in[at + threadIdx.x];
        for (long long i = at + threadIdx.x + 32; i < end; i += 32)
            v = (A)op(v, in[i]);
        __syncwarp();
        return brass::warp_fold<32>(v, op, n < 32 ? (int)n : 32);
    }
    template <class I, class O, class B, class E, class F, class T>
    static cudaError_t arg(void *temp, size_t &bytes, I in, O out,
                           long long segments, B first, E last, F op, T none,
                           cudaStream_t s)
    {
        typedef typename brass::arg_pair<O, value_t<I>>::type A;
        typedef ArgIndexInputIterator<I, typename A::Key, typename A::Value> P;

        return run(temp, bytes, segments, s, [=] __device__(size_t g) mutable {
            long long at = (long long)first[g], n = (long long)last[g] - at;
            A v = fold<A>(P(in + at), 0, n, op);

            if (threadIdx.x == 0)
                out[g] = n > 0 ? v : A(1, (typename A::Value)none);
        });
    }
    template <class F>
    static cudaError_t run(void *temp, size_t &bytes, long long segments,
                           cudaStream_t s, F f)
    {
        if (!temp) {
            bytes = 1;
            return cudaSuccess;
        }
        return brass::each_block(s, (size_t)segments, f, 32);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
