/* device_for.cuh - a function for each item; differences of neighbours.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_FOR
#define BRASS_CUB_DEVICE_FOR
#include "../../brass_push.h"

#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceFor {
    template <class N, class F>
    static cudaError_t Bulk(N n, F f, cudaStream_t s = 0)
    {
        return brass::each(s, (size_t)n,
                           [=] __device__(size_t i) mutable { f((N)i); });
    }
    template <class I, class N, class F>
    static cudaError_t ForEachN(I in, N n, F f, cudaStream_t s = 0)
    {
        return brass::each(s, (size_t)n,
                           [=] __device__(size_t i) mutable { f(in[i]); });
    }
    template <class I, class F>
    static cudaError_t ForEach(I in, I end, F f, cudaStream_t s = 0)
    {
        return ForEachN(in, end - in, f, s);
    }
    template <class I, class N, class F>
    static cudaError_t ForEachCopyN(I in, N n, F f, cudaStream_t s = 0)
    {
        return ForEachN(in, n, f, s);
    }
    template <class I, class F>
    static cudaError_t ForEachCopy(I in, I end, F f, cudaStream_t s = 0)
    {
        return ForEachN(in, end - in, f, s);
    }
    /* With a size that may be asked for. */
    template <class N, class F>
    static cudaError_t Bulk(void *temp, size_t &bytes, N n, F f,
                            cudaStream_t s = 0)
    {
        bytes = temp ? bytes : 1;
        return temp ? Bulk(n, f, s) : cudaSuccess;
    }
    template <class I, class N, class F>
    static cudaError_t ForEachN(void *temp, size_t &bytes, I in, N n, F f,
                                cudaStream_t s = 0)
    {
        bytes = temp ? bytes : 1;
        return temp ? ForEachN(in, n, f, s) : cudaSuccess;
    }
};

struct DeviceAdjacentDifference {
    template <class I, class O, class F = Difference>
    static cudaError_t SubtractLeftCopy(void *temp, size_t &bytes, I in, O out,
                                        long long n, F op = F(),
                                        cudaStream_t s = 0, bool = false)
    {
        return run(temp, bytes, n, s, [=] __device__(size_t i) mutable {
            if (i)
                out[i] = op(in[i], in[i - 1]);
            else
                out[i] = in[i];
        });
    }
    template <class I, class O, class F = Difference>
    static cudaError_t SubtractRightCopy(void *temp, size_t &bytes, I in, O out,
                                         long long n, F op = F(),
                                         cudaStream_t s = 0, bool = false)
    {
        return run(temp, bytes, n, s, [=] __device__(size_t i) mutable {
            if (i + 1 < (size_t)n)
                out[i] = op(in[i], in[i + 1]);
            else
                out[i] = in[i];
        });
    }
    template <class I, class F = Difference>
    static cudaError_t SubtractLeft(void *temp, size_t &bytes, I data,
                                    long long n, F op = F(), cudaStream_t s = 0,
                                    bool = false)
    {
        return own(temp, bytes, data, n, s, [=](value_t<I> *from) {
            size_t none = 0;

            return SubtractLeftCopy((void *)from, none, from, data, n, op, s);
        });
    }
    template <class I, class F = Difference>
    static cudaError_t SubtractRight(void *temp, size_t &bytes, I data,
                                     long long n, F op = F(),
                                     cudaStream_t s = 0, bool = false)
    {
        return own(temp, bytes, data, n, s, [=](value_t<I> *from) {
            size_t none = 0;

            return SubtractRightCopy((void *)from, none, from, data, n, op, s);
        });
    }

  private:
    template <class F>
    static cudaError_t run(void *temp, size_t &bytes, long long n,
                           cudaStream_t s, F f)
    {
        if (!temp) {
            bytes = 1;
            return cudaSuccess;
        }
        return brass::each(s, (size_t)n, f);
    }
    /* In place: from a copy. */
    template <class I, class F>
    static cudaError_t own(void *temp, size_t &bytes, I data, long long n,
                           cudaStream_t s, F then)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            value_t<I> *from = a.take<value_t<I>>((size_t)n);
            brass::steps step;

            if (a.counts())
                return cudaSuccess;
            step(brass::each(s, (size_t)n, [=] __device__(size_t i) mutable {
                from[i] = data[i];
            }));
            step(then(from));
            return step.error;
        });
    }
};

/* Many copies, a block for each. */
struct DeviceMemcpy {
    template <class I, class O, class N>
    static cudaError_t Batched(void *temp, size_t &bytes, I from, O to, N sizes,
                               long long n, cudaStream_t s = 0)
    {
        if (!temp) {
            bytes = 1;
            return cudaSuccess;
        }
        return brass::each_block(
            s, (size_t)n,
            [=] __device__(size_t k) mutable {
                const char *src = (const char *)from[k];
                char *dst = (char *)to[k];

                for (size_t i = threadIdx.x; i < (size_t)sizes[k]; i += 64)
                    dst[i] = src[i];
            },
            64);
    }
};
struct DeviceCopy {
    template <class I, class O, class N>
    static cudaError_t Batched(void *temp, size_t &bytes, I from, O to, N sizes,
                               long long n, cudaStream_t s = 0)
    {
        if (!temp) {
            bytes = 1;
            return cudaSuccess;
        }
        return brass::each_block(
            s, (size_t)n,
            [=] __device__(size_t k) mutable {
                for (size_t i = threadIdx.x; i < (size_t)sizes[k]; i += 64)
                    to[k][i] = from[k][i];
            },
            64);
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
