/* device_select.cuh - the items that are wanted, in their order; or those first
 * and the others behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_SELECT
#define BRASS_CUB_DEVICE_SELECT
#include "../../brass_push.h"

#include "dispatch_two_calls.cuh"

namespace brass
{
template <class I, class O>
bool
one_memory(const I &, const O &)
{
    return false;
}
template <class T>
bool
one_memory(T *const &in, T *const &out)
{
    return in == out;
}
/* Items that leave while others are still read go through memory of their own
 * where both sides are one. */
template <class I, class O, class N, class P>
cudaError_t
select_items(arena &a, cudaStream_t s, I in, O out, N count, size_t n, P is)
{
    typedef typename iter<I>::value T;
    bool same = one_memory(in, out);
    T *own = same ? a.take<T>(n) : 0;
    auto done = [=] __device__(size_t k) mutable { *count = k; };
    steps step;

    if (!same)
        return select(
            a, s, n, is,
            [=] __device__(size_t i, size_t at) mutable { out[at] = in[i]; },
            nothing(), done);
    step(select(
        a, s, n, is,
        [=] __device__(size_t i, size_t at) mutable { own[at] = in[i]; },
        nothing(), done));
    if (a.counts())
        return step.error;
    step(each(s, n, [=] __device__(size_t i) mutable {
        if (i < (size_t)*count)
            out[i] = own[i];
    }));
    return step.error;
}
} // namespace brass

namespace cub
{
struct DeviceSelect {
    template <class I, class G, class O, class N>
    static cudaError_t Flagged(void *temp, size_t &bytes, I in, G flags, O out,
                               N count, long long n, cudaStream_t s = 0,
                               bool = false)
    {
        return pick(
            temp, bytes, in, out, count, n, s,
            [=] __device__(size_t i) mutable { return (bool)flags[i]; });
    }
    template <class I, class O, class N, class F>
    static cudaError_t If(void *temp, size_t &bytes, I in, O out, N count,
                          long long n, F is, cudaStream_t s = 0, bool = false)
    {
        return pick(
            temp, bytes, in, out, count, n, s,
            [=] __device__(size_t i) mutable { return (bool)is(in[i]); });
    }
    template <class I, class N, class F>
    static cudaError_t If(void *temp, size_t &bytes, I data, N count,
                          long long n, F is, cudaStream_t s = 0)
    {
        return If(temp, bytes, data, data, count, n, is, s);
    }
    template <class I, class G, class O, class N, class F>
    static cudaError_t FlaggedIf(void *temp, size_t &bytes, I in, G flags,
                                 O out, N count, long long n, F is,
                                 cudaStream_t s = 0)
    {
        return pick(
            temp, bytes, in, out, count, n, s,
            [=] __device__(size_t i) mutable { return (bool)is(flags[i]); });
    }
    /* The first of each run of equal items. */
    template <class I, class O, class N>
    static cudaError_t Unique(void *temp, size_t &bytes, I in, O out, N count,
                              long long n, cudaStream_t s = 0, bool = false)
    {
        return pick(temp, bytes, in, out, count, n, s,
                    [=] __device__(size_t i) mutable {
                        return i == 0 || !(in[i] == in[i - 1]);
                    });
    }
    template <class K, class V, class KO, class VO, class N>
    static cudaError_t UniqueByKey(void *temp, size_t &bytes, K keys, V values,
                                   KO ko, VO vo, N count, long long n,
                                   cudaStream_t s = 0, bool = false)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::select(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return i == 0 || !(keys[i] == keys[i - 1]);
                },
                [=] __device__(size_t i, size_t at) mutable {
                    ko[at] = keys[i];
                    vo[at] = values[i];
                },
                brass::nothing(),
                [=] __device__(size_t k) mutable { *count = k; });
        });
    }

  private:
    template <class I, class O, class N, class P>
    static cudaError_t pick(void *temp, size_t &bytes, I in, O out, N count,
                            long long n, cudaStream_t s, P is)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::select_items(a, s, in, out, count, (size_t)n, is);
        });
    }
};

/* Those that are not wanted stand at the end, the last of them first. */
struct DevicePartition {
    template <class I, class G, class O, class N>
    static cudaError_t Flagged(void *temp, size_t &bytes, I in, G flags, O out,
                               N count, long long n, cudaStream_t s = 0,
                               bool = false)
    {
        return part(
            temp, bytes, in, out, count, n, s,
            [=] __device__(size_t i) mutable { return (bool)flags[i]; });
    }
    template <class I, class O, class N, class F>
    static cudaError_t If(void *temp, size_t &bytes, I in, O out, N count,
                          long long n, F is, cudaStream_t s = 0, bool = false)
    {
        return part(
            temp, bytes, in, out, count, n, s,
            [=] __device__(size_t i) mutable { return (bool)is(in[i]); });
    }
    /* Three ways: counts are of the first two, the rest keeps its order. */
    template <class I, class O1, class O2, class O3, class N, class F1,
              class F2>
    static cudaError_t If(void *temp, size_t &bytes, I in, O1 first, O2 second,
                          O3 rest, N counts, long long n, F1 is_first,
                          F2 is_second, cudaStream_t s = 0, bool = false)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            brass::steps step;

            step(brass::select(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return (bool)is_first(in[i]);
                },
                [=] __device__(size_t i, size_t at) mutable {
                    first[at] = in[i];
                },
                brass::nothing(),
                [=] __device__(size_t k) mutable { counts[0] = k; }));
            step(brass::select(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return !is_first(in[i]) && is_second(in[i]);
                },
                [=] __device__(size_t i, size_t at) mutable {
                    second[at] = in[i];
                },
                brass::nothing(),
                [=] __device__(size_t k) mutable { counts[1] = k; }));
            step(brass::select(
                a, s, (size_t)n,
                [=] __device__(size_t i) mutable {
                    return !is_first(in[i]) && !is_second(in[i]);
                },
                [=] __device__(size_t i, size_t at) mutable {
                    rest[at] = in[i];
                },
                brass::nothing(), brass::nothing()));
            return step.error;
        });
    }

  private:
    template <class I, class O, class N, class P>
    static cudaError_t part(void *temp, size_t &bytes, I in, O out, N count,
                            long long n, cudaStream_t s, P is)
    {
        return brass::two_calls(temp, bytes, [=](brass::arena &a) {
            return brass::select(
                a, s, (size_t)n, is,
                [=] __device__(size_t i, size_t at) mutable {
                    out[at] = in[i];
                },
                [=] __device__(size_t i, size_t at) mutable {
                    out[(size_t)n - 1 - at] = in[i];
                },
                [=] __device__(size_t k) mutable { *count = k; });
        });
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
