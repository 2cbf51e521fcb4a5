/* device_scan.cuh - each item gets what the items before it add up to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_SCAN
#define BRASS_CUB_DEVICE_SCAN
#include "../../brass_push.h"

#include "dispatch_two_calls.cuh"

namespace cub
{
/* A first value that stands in memory when the kernel runs. */
template <class T, class I = T *> struct FutureValue {
    I at;
    BRASS_HD explicit FutureValue(I i) : at(i) {}
    BRASS_HD operator T() const { return *at; }
};

struct DeviceScan {
    template <class I, class O>
    static cudaError_t ExclusiveSum(void *temp, size_t &bytes, I in, O out,
                                    long long n, cudaStream_t s = 0,
                                    bool = false)
    {
        typedef brass::sum_value<I, O> A;

        return scan<A>(temp, bytes, in, out, n, cub::Sum(), {false, true, A()},
                       s);
    }
    template <class I, class O>
    static cudaError_t InclusiveSum(void *temp, size_t &bytes, I in, O out,
                                    long long n, cudaStream_t s = 0,
                                    bool = false)
    {
        typedef brass::sum_value<I, O> A;

        return scan<A>(temp, bytes, in, out, n, cub::Sum(), {true, false, A()},
                       s);
    }
    template <class I, class O, class F, class T>
    static cudaError_t ExclusiveScan(void *temp, size_t &bytes, I in, O out,
                                     F op, T init, long long n,
                                     cudaStream_t s = 0, bool = false)
    {
        typedef brass::made_of<F, T, value_t<I>> A;

        return scan<A>(temp, bytes, in, out, n, op, {false, true, (A)init}, s);
    }
    template <class I, class O, class F>
    static cudaError_t InclusiveScan(void *temp, size_t &bytes, I in, O out,
                                     F op, long long n, cudaStream_t s = 0,
                                     bool = false)
    {
        typedef brass::made_of<F, value_t<I>> A;

        return scan<A>(temp, bytes, in, out, n, op, {true, false, A()}, s);
    }
    template <class I, class O, class F, class T>
    static cudaError_t InclusiveScanInit(void *temp, size_t &bytes, I in, O out,
                                         F op, T init, long long n,
                                         cudaStream_t s = 0)
    {
        typedef brass::made_of<F, T, value_t<I>> A;

        return scan<A>(temp, bytes, in, out, n, op, {true, true, (A)init}, s);
    }
    /* In place. */
    template <class I>
    static cudaError_t ExclusiveSum(void *temp, size_t &bytes, I data,
                                    long long n, cudaStream_t s = 0)
    {
        return ExclusiveSum(temp, bytes, data, data, n, s);
    }
    template <class I>
    static cudaError_t InclusiveSum(void *temp, size_t &bytes, I data,
                                    long long n, cudaStream_t s = 0)
    {
        return InclusiveSum(temp, bytes, data, data, n, s);
    }

    /* ---- each run of equal keys by itself ------------------------------- */

    template <class K, class I, class O, class E = Equality>
    static cudaError_t ExclusiveSumByKey(void *temp, size_t &bytes, K keys,
                                         I in, O out, long long n, E same = E(),
                                         cudaStream_t s = 0, bool = false)
    {
        typedef brass::sum_value<I, O> A;

        return runs<A>(temp, bytes, keys, in, out, n, cub::Sum(), same,
                       {false, true, A()}, s);
    }
    template <class K, class I, class O, class E = Equality>
    static cudaError_t InclusiveSumByKey(void *temp, size_t &bytes, K keys,
                                         I in, O out, long long n, E same = E(),
                                         cudaStream_t s = 0, bool = false)
    {
        typedef brass::sum_value<I, O> A;

        return runs<A>(temp, bytes, keys, in, out, n, cub::Sum(), same,
                       {true, false, A()}, s);
    }
    template <class K, class I, class O, class F, class T, class E = Equality>
    static cudaError_t ExclusiveScanByKey(void *temp, size_t &bytes, K keys,
                                          I in, O out, F op, T init,
                                          long long n, E same = E(),
                                          cudaStream_t s = 0, bool = false)
    {
        typedef brass::made_of<F, T, value_t<I>> A;

        return runs<A>(temp, bytes, keys, in, out, n, op, same,
                       {false, true, (A)init}, s);
    }
    template <class K, class I, class O, class F, class E = Equality>
    static cudaError_t InclusiveScanByKey(void *temp, size_t &bytes, K keys,
                                          I in, O out, F op, long long n,
                                          E same = E(), cudaStream_t s = 0,
                                          bool = false)
    {
        typedef brass::made_of<F, value_t<I>> A;

        return runs<A>(temp, bytes, keys, in, out, n, op, same,
                       {true, false, A()}, s);
    }

  private:
    template <class A, class I, class O, class F>
    static cudaError_t scan(void *temp, size_t &bytes, I in, O out, long long n,
                            F op, brass::scan_how<A> how, cudaStream_t s)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::scan(a, s, in, out, (size_t)n, op, how);
        });
    }
    template <class A, class K, class I, class O, class F, class E>
    static cudaError_t runs(void *temp, size_t &bytes, K keys, I in, O out,
                            long long n, F op, E same, brass::scan_how<A> how,
                            cudaStream_t s)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::scan_runs(
                a, s,
                [=] __device__(size_t i) mutable {
                    return i == 0 || !same(keys[i - 1], keys[i]);
                },
                in, out, (size_t)n, op, how);
        });
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
