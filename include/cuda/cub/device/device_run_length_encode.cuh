/* device_run_length_encode.cuh - runs of equal items: what, where, how long.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_RUN_LENGTH_ENCODE
#define BRASS_CUB_DEVICE_RUN_LENGTH_ENCODE
#include "../../brass_push.h"

#include "dispatch_two_calls.cuh"

namespace cub
{
struct DeviceRunLengthEncode {
    template <class I, class U, class L, class N>
    static cudaError_t Encode(void *temp, size_t &bytes, I in, U unique,
                              L lengths, N runs, long long n,
                              cudaStream_t s = 0, bool = false)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::each_run(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return i == 0 || !(in[i] == in[i - 1]);
                },
                [=] __device__(size_t i, size_t end, size_t at) mutable {
                    unique[at] = in[i];
                    lengths[at] = end - i;
                },
                [=] __device__(size_t k) mutable { *runs = k; });
        });
    }
    /* Runs of two and more. */
    template <class I, class O, class L, class N>
    static cudaError_t NonTrivialRuns(void *temp, size_t &bytes, I in,
                                      O offsets, L lengths, N runs, long long n,
                                      cudaStream_t s = 0, bool = false)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::select(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return i + 1 < (size_t)n && in[i] == in[i + 1] &&
                           (i == 0 || !(in[i] == in[i - 1]));
                },
                [=] __device__(size_t i, size_t at) mutable {
                    size_t end = i + 2;

                    while (end < (size_t)n && in[end] == in[i])
                        end++;
                    offsets[at] = i;
                    lengths[at] = end - i;
                },
                brass::nothing(),
                [=] __device__(size_t k) mutable { *runs = k; });
        });
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
