/* device_histogram.cuh - how many samples lie in each range.
 *
 * Pixels of Channels samples each, of which the first Active are counted; rows
 * may lie further apart than their samples.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DEVICE_HISTOGRAM
#define BRASS_CUB_DEVICE_HISTOGRAM
#include "../../brass_push.h"

#include "dispatch_two_calls.cuh"

namespace brass
{
/* Bins of one width: integers divide exactly, floats scale. */
template <class L, bool Whole> struct even_bins {
    L lower, upper;
    unsigned n;
    template <class T> BRASS_ME int of(T v) const
    {
        L x = (L)v;

        if (!(x >= lower) || !(x < upper))
            return -1;
        unsigned b = (unsigned)((x - lower) * ((L)n / (upper - lower)));
        return (int)(b < n ? b : n - 1);
    }
};
template <class L> struct even_bins<L, true> {
    L lower, upper;
    unsigned n;
    template <class T> BRASS_ME int of(T v) const
    {
        typedef typename std::common_type<L, T>::type C;

        if ((C)v < (C)lower || (C)v >= (C)upper)
            return -1;
        return (int)((unsigned long long)((C)v - (C)lower) * n /
                     (unsigned long long)(upper - lower));
    }
};
/* Bins between levels that rise. */
template <class L> struct level_bins {
    const L *levels;
    unsigned n;
    template <class T> BRASS_ME int of(T v) const
    {
        unsigned lo = 0, hi = n + 1;

        while (lo < hi) { /* the first level above v */
            unsigned mid = (lo + hi) / 2;

            if ((L)v < levels[mid])
                hi = mid;
            else
                lo = mid + 1;
        }
        return lo == 0 || lo > n ? -1 : (int)lo - 1;
    }
};
template <class C, class B, int Active> struct channels {
    C *to[Active];
    B bins[Active];
};
template <class C>
BRASS_ME void
count_one(C *at)
{
    if (sizeof(C) == 8)
        atomicAdd((unsigned long long *)(void *)at, 1ull);
    else
        atomicAdd((unsigned *)(void *)at, 1u);
}
template <int Channels, int Active, class I, class C, class B>
cudaError_t
histogram(cudaStream_t s, I in, channels<C, B, Active> h, size_t row,
          size_t rows, size_t row_items)
{
    steps step;

    static_assert(sizeof(C) == 4 || sizeof(C) == 8, "counters of 4 or 8 bytes");
    for (int c = 0; c < Active; c++)
        step(cudaMemsetAsync(h.to[c], 0, h.bins[c].n * sizeof(C), s));
    step(each(s, row * rows, [=] __device__(size_t i) mutable {
        size_t at = i / row * row_items + i % row * Channels;

        for (int c = 0; c < Active; c++) {
            int bin = h.bins[c].of(in[at + c]);

            if (bin >= 0)
                count_one(h.to[c] + bin);
        }
    }));
    return step.error;
}
} // namespace brass

namespace cub
{
struct DeviceHistogram {
    template <class I, class C, class L>
    static cudaError_t HistogramEven(void *temp, size_t &bytes, I in, C *to,
                                     int levels, L lower, L upper, long long n,
                                     cudaStream_t s = 0, bool = false)
    {
        return HistogramEven(temp, bytes, in, to, levels, lower, upper, n, 1ll,
                             (size_t)n * sizeof(value_t<I>), s);
    }
    template <class I, class C, class L>
    static cudaError_t
    HistogramEven(void *temp, size_t &bytes, I in, C *to, int levels, L lower,
                  L upper, long long row, long long rows, size_t row_bytes,
                  cudaStream_t s = 0, bool = false)
    {
        C *all[1] = {to};
        int n[1] = {levels};
        L lo[1] = {lower}, hi[1] = {upper};

        return MultiHistogramEven<1, 1>(temp, bytes, in, all, n, lo, hi, row,
                                        rows, row_bytes, s);
    }
    template <int Channels, int Active, class I, class C, class L>
    static cudaError_t
    MultiHistogramEven(void *temp, size_t &bytes, I in, C *const to[Active],
                       const int levels[Active], const L lower[Active],
                       const L upper[Active], long long pixels,
                       cudaStream_t s = 0, bool = false)
    {
        return MultiHistogramEven<Channels, Active>(
            temp, bytes, in, to, levels, lower, upper, pixels, 1ll,
            (size_t)pixels * Channels * sizeof(value_t<I>), s);
    }
    template <int Channels, int Active, class I, class C, class L>
    static cudaError_t
    MultiHistogramEven(void *temp, size_t &bytes, I in, C *const to[Active],
                       const int levels[Active], const L lower[Active],
                       const L upper[Active], long long row, long long rows,
                       size_t row_bytes, cudaStream_t s = 0, bool = false)
    {
        typedef brass::even_bins<L, std::is_integral<L>::value &&
                                        std::is_integral<value_t<I>>::value>
            B;
        brass::channels<C, B, Active> h;

        for (int c = 0; c < Active; c++) {
            h.to[c] = to[c];
            h.bins[c].lower = lower[c];
            h.bins[c].upper = upper[c];
            h.bins[c].n = (unsigned)levels[c] - 1;
        }
        return run<Channels>(temp, bytes, in, h, row, rows, row_bytes, s);
    }
    template <class I, class C, class L>
    static cudaError_t HistogramRange(void *temp, size_t &bytes, I in, C *to,
                                      int levels, const L *level, long long n,
                                      cudaStream_t s = 0, bool = false)
    {
        return HistogramRange(temp, bytes, in, to, levels, level, n, 1ll,
                              (size_t)n * sizeof(value_t<I>), s);
    }
    template <class I, class C, class L>
    static cudaError_t HistogramRange(void *temp, size_t &bytes, I in, C *to,
                                      int levels, const L *level, long long row,
                                      long long rows, size_t row_bytes,
                                      cudaStream_t s = 0, bool = false)
    {
        C *all[1] = {to};
        int n[1] = {levels};
        const L *l[1] = {level};

        return MultiHistogramRange<1, 1>(temp, bytes, in, all, n, l, row, rows,
                                         row_bytes, s);
    }
    template <int Channels, int Active, class I, class C, class L>
    static cudaError_t
    MultiHistogramRange(void *temp, size_t &bytes, I in, C *const to[Active],
                        const int levels[Active], const L *const level[Active],
                        long long pixels, cudaStream_t s = 0, bool = false)
    {
        return MultiHistogramRange<Channels, Active>(
            temp, bytes, in, to, levels, level, pixels, 1ll,
            (size_t)pixels * Channels * sizeof(value_t<I>), s);
    }
    template <int Channels, int Active, class I, class C, class L>
    static cudaError_t
    MultiHistogramRange(void *temp, size_t &bytes, I in, C *const to[Active],
                        const int levels[Active], const L *const level[Active],
                        long long row, long long rows, size_t row_bytes,
                        cudaStream_t s = 0, bool = false)
    {
        brass::channels<C, brass::level_bins<L>, Active> h;

        for (int c = 0; c < Active; c++) {
            h.to[c] = to[c];
            h.bins[c].levels = level[c];
            h.bins[c].n = (unsigned)levels[c] - 1;
        }
        return run<Channels>(temp, bytes, in, h, row, rows, row_bytes, s);
    }

  private:
    template <int Channels, class I, class C, class B, int Active>
    static cudaError_t run(void *temp, size_t &bytes, I in,
                           brass::channels<C, B, Active> h, long long row,
                           long long rows, size_t row_bytes, cudaStream_t s)
    {
        if (!temp) {
            bytes = 1;
            return cudaSuccess;
        }
        return brass::histogram<Channels, Active>(
            s, in, h, (size_t)row, (size_t)rows,
            row_bytes / sizeof(value_t<I>));
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
