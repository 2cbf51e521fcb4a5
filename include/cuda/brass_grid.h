/* brass_grid.h - algorithms of a whole device, which CUB's and Thrust's calls are.
 *
 * A kernel calls a function for each index. What has an order is cut into parts,
 * one a thread, whose number depends on n alone:
 *
 *     scan      parts fold --> one thread adds them up --> parts run again
 *     select    parts count --> sums --> parts write
 *     sort      digits: parts count, sums, parts move; or runs are merged
 *
 * So results are the same in every run, and operators need not commute, but for
 * reduce's. Memory on the way comes from an arena, which counts first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_GRID_H
#define BRASS_GRID_H
#include "brass_push.h"

#include "brass_collect.h"
#include "cub/util_type.cuh"

namespace brass
{
/* Without memory it only says how much is needed. */
struct arena {
    char *base;
    size_t used;
    explicit arena(void *p) : base((char *)p), used(0) {}
    bool counts() const { return !base; }
    template <class T> T *take(size_t n)
    {
        size_t at = (used + 255) / 256 * 256;

        used = at + n * sizeof(T);
        return base ? (T *)(void *)(base + at) : (T *)0;
    }
};

/* n items in parts of an odd number of cache lines: parts that lie a power of
 * two apart would share few sets of the cache. */
struct parts {
    size_t n, length, count;
    BRASS_HD explicit parts(size_t items, size_t most = 2048, size_t least = 32)
        : n(items)
    {
        length = (items + most - 1) / most;
        length = length < least ? least : length;
        length = (length + 15) / 16;
        length = (length | 1) * 16;
        count = (items + length - 1) / length;
    }
    BRASS_HD size_t begin(size_t k) const { return k * length; }
    BRASS_HD size_t end(size_t k) const
    {
        return n - k * length < length ? n : (k + 1) * length;
    }
};

template <class F>
__global__ void
grid_each(size_t n, F f)
{
    size_t all = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += all)
        f(i);
}
/* f(block) by all threads of each block. */
template <class F>
__global__ void
grid_blocks(size_t n, F f)
{
    for (size_t i = blockIdx.x; i < n; i += gridDim.x)
        f(i);
}
template <class F>
cudaError_t
each(cudaStream_t s, size_t n, F f, unsigned block = 256)
{
    size_t blocks = (n + block - 1) / block;

    if (n == 0)
        return cudaSuccess;
    if (blocks > 1u << 20)
        blocks = 1u << 20;
    grid_each<<<(unsigned)blocks, block, 0, s>>>(n, f);
    return cudaPeekAtLastError();
}
/* Threads that have much to do each. */
template <class F>
cudaError_t
each_part(cudaStream_t s, const parts &p, F f)
{
    return each(s, p.count, f, 64);
}
template <class F>
cudaError_t
each_block(cudaStream_t s, size_t n, F f, unsigned block)
{
    unsigned blocks = n < 1u << 20 ? (unsigned)n : 1u << 20;

    if (n == 0)
        return cudaSuccess;
    grid_blocks<<<blocks, block, 0, s>>>(n, f);
    return cudaPeekAtLastError();
}
/* Several steps, each a call that may fail: the first error is the result. */
struct steps {
    cudaError_t error = cudaSuccess;
    bool operator()(cudaError_t e)
    {
        if (error == cudaSuccess)
            error = e;
        return error == cudaSuccess;
    }
};

/* ---- one value ---------------------------------------------------------- */

/* A warp reads a stretch of memory from end to end: lanes 8 KB apart, as threads
 * that go on by the grid's size are, cost five times as much (16M floats). */
struct stretches {
    size_t n, length, count;
    BRASS_HD explicit stretches(size_t items, size_t whole, size_t most = 64)
        : n(items)
    {
        length = (items + most - 1) / most;
        length = (length < 4 * whole ? 4 * whole : length) + whole - 1;
        length -= length % whole;
        count = (items + length - 1) / length;
    }
    BRASS_HD size_t begin(size_t c) const { return c * length; }
    BRASS_HD size_t end(size_t c) const
    {
        return n - c * length < length ? n : (c + 1) * length;
    }
};
/* done(sum) gets init and all n values, by one thread. */
template <class A, class I, class F, class D>
cudaError_t
reduce(arena &a, cudaStream_t s, I in, size_t n, F op, A init, D done)
{
    stretches p(n, 128);
    A *part = a.take<A>(32 * p.count);
    steps step;

    if (a.counts())
        return cudaSuccess;
    step(each_block(
        s, p.count,
        [=] __device__(size_t c) mutable {
            size_t i = p.begin(c) + threadIdx.x, end = p.end(c);

            if (i >= end)
                return;
            A v = (A)in[i];

            for (i += 32; i + 96 < end; i += 128) {
                v = (A)op(v, in[i]);
                v = (A)op(v, in[i + 32]);
                v = (A)op(v, in[i + 64]);
                v = (A)op(v, in[i + 96]);
            }
            for (; i < end; i += 32)
                v = (A)op(v, in[i]);
            part[c * 32 + threadIdx.x] = v;
        },
        32));
    step(each(
        s, 1,
        [=] __device__(size_t) mutable {
            size_t last = n - p.begin(p.count - 1); /* lanes that had any */
            size_t k =
                n == 0 ? 0 : 32 * (p.count - 1) + (last < 32 ? last : 32);
            A v = init;

            for (size_t t = 0; t < k; t++)
                v = (A)op(v, part[t]);
            done(v);
        },
        1));
    return step.error;
}

/* ---- scans -------------------------------------------------------------- */

template <class A> struct scan_how {
    bool inclusive, has_init;
    A init;
};
/* v[c] becomes what comes before part c; the first is init, where there is one. */
template <class A, class F>
cudaError_t
scan_parts(cudaStream_t s, A *v, size_t n, F op, scan_how<A> how)
{
    return each(
        s, 1,
        [=] __device__(size_t) mutable {
            A sum = how.init;
            bool any = how.has_init;

            for (size_t c = 0; c < n; c++) {
                A x = v[c];

                v[c] = sum;
                sum = any ? (A)op(sum, x) : x;
                any = true;
            }
        },
        1);
}
/* Values that go through shuffles in a few words: warps take tiles of 8 items a
 * lane, one shuffle a step for all of them. */
template <class A>
constexpr bool
    in_tiles = std::is_trivially_copyable<A>::value &&
                   std::is_trivially_default_constructible<A>::value &&
               sizeof(A) <= 16;
enum { TILE_ITEMS = 8, TILE = 32 * TILE_ITEMS };

/* Lane 0 gets the sum of the tile whose lane's part begins at in. */
template <class A, class I, class F>
BRASS_ME A
tile_fold(I &in, size_t i, F &op)
{
    A x[TILE_ITEMS];

#pragma unroll
    for (int k = 0; k < TILE_ITEMS; k++)
        x[k] = (A)in[i + k];
#pragma unroll
    for (int k = 1; k < TILE_ITEMS; k++)
        x[0] = (A)op(x[0], x[k]);
    return warp_fold<32>(x[0], op);
}
/* What came before the tile; any: there is something. */
template <class A> struct carried {
    A v;
    bool any;
};
/* One tile: n of a lane's items are there, which begin at i. The last lane that
 * has items leaves what comes after them. */
template <bool Whole, class A, class I, class O, class F>
BRASS_ME void
tile_scan(I &in, O &out, size_t i, int n, F &op, bool inclusive, carried<A> &c)
{
    A x[TILE_ITEMS], sum;

#pragma unroll
    for (int k = 0; k < TILE_ITEMS; k++)
        x[k] = Whole || k < n ? (A)in[i + k] : c.v;
    sum = x[0];
#pragma unroll
    for (int k = 1; k < TILE_ITEMS; k++)
        if (Whole || k < n)
            sum = (A)op(sum, x[k]);
#pragma unroll
    for (unsigned by = 1; by < 32; by *= 2) {
        A before = shuffle_up<32>(sum, by);

        if (lane() >= by && (Whole || n > 0))
            sum = (A)op(before, sum);
    }
    A before = shuffle_up<32>(sum, 1), all = shuffle<32>(sum, 31);
    A v = lane() == 0 ? c.v : c.any ? (A)op(c.v, before) : before;
    bool any = lane() || c.any;

    c.v = c.any ? (A)op(c.v, all) : all;
    c.any = true;
#pragma unroll
    for (int k = 0; k < TILE_ITEMS; k++)
        if (Whole || k < n) {
            A to = any ? (A)op(v, x[k]) : x[k];

            out[i + k] = inclusive ? to : v;
            v = to;
            any = true;
        }
}
template <class A, class I, class O, class F>
cudaError_t
scan_tiles(arena &a, cudaStream_t s, I in, O out, size_t n, F op,
           scan_how<A> how)
{
    stretches p(n, TILE, 256);
    A *part = a.take<A>(p.count);
    steps step;

    if (a.counts() || n == 0)
        return cudaSuccess;
    if (p.count > 1) { /* nobody asks for the last one's sum */
        step(each_block(
            s, p.count - 1,
            [=] __device__(size_t c) mutable {
                size_t i = p.begin(c), at = lane() * TILE_ITEMS;
                A v = tile_fold<A>(in, i + at, op);

                for (i += TILE; i < p.end(c); i += TILE)
                    v = (A)op(v, tile_fold<A>(in, i + at, op));
                if (lane() == 0)
                    part[c] = v;
            },
            32));
        step(scan_parts(s, part, p.count, op, how));
    }
    step(each_block(
        s, p.count,
        [=] __device__(size_t c) mutable {
            carried<A> sum = {c ? part[c] : how.init, c || how.has_init};
            size_t i = p.begin(c), end = p.end(c), at = lane() * TILE_ITEMS;

            for (; i + TILE <= end; i += TILE)
                tile_scan<true>(in, out, i + at, TILE_ITEMS, op, how.inclusive,
                                sum);
            if (i < end) {
                long left = (long)(end - i) - (long)at;

                tile_scan<false>(in, out, i + at, (int)(left < 8 ? left : 8),
                                 op, how.inclusive, sum);
            }
        },
        32));
    return step.error;
}
template <class A, class I, class O, class F>
cudaError_t
scan_in_parts(arena &a, cudaStream_t s, I in, O out, size_t n, F op,
              scan_how<A> how)
{
    parts p(n);
    A *part = a.take<A>(p.count);
    steps step;

    if (a.counts())
        return cudaSuccess;
    if (p.count > 1) {
        step(each_part(s, p, [=] __device__(size_t c) mutable {
            size_t i = p.begin(c), end = p.end(c);
            A v = (A)in[i];

            while (++i < end)
                v = (A)op(v, in[i]);
            part[c] = v;
        }));
        step(scan_parts(s, part, p.count, op, how));
    }
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        bool any = c || how.has_init;
        A v = c ? part[c] : how.init;

        for (size_t i = p.begin(c), end = p.end(c); i < end; i++) {
            A x = (A)in[i], sum = any ? (A)op(v, x) : x;

            if (how.inclusive)
                out[i] = sum;
            else
                out[i] = v;
            v = sum;
            any = true;
        }
    }));
    return step.error;
}
template <class A, class I, class O, class F>
cudaError_t
scan(arena &a, cudaStream_t s, I in, O out, size_t n, F op, scan_how<A> how)
{
    if constexpr (in_tiles<A>)
        return scan_tiles(a, s, in, out, n, op, how);
    else
        return scan_in_parts(a, s, in, out, n, op, how);
}
/* Sums that begin anew where head(i). A part's last run, or its only one. */
template <class A> struct run {
    A v;
    bool fresh; /* it begins in the part */
};
template <class A, class I, class O, class H, class F>
cudaError_t
scan_runs(arena &a, cudaStream_t s, H head, I in, O out, size_t n, F op,
          scan_how<A> how)
{
    parts p(n);
    run<A> *part = a.take<run<A>>(p.count);
    steps step;

    if (a.counts() || n == 0)
        return cudaSuccess;
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        size_t i = p.begin(c), end = p.end(c);
        run<A> r = {(A)in[i], head(i)};

        while (++i < end) {
            bool h = head(i);

            r.v = h ? (A)in[i] : (A)op(r.v, in[i]);
            r.fresh |= h;
        }
        part[c] = r;
    }));
    step(each(
        s, 1,
        [=] __device__(size_t) mutable {
            A sum = part[0].v;

            for (size_t c = 1; c < p.count; c++) {
                run<A> r = part[c];

                part[c].v = sum;
                sum = r.fresh ? r.v : (A)op(sum, r.v);
            }
        },
        1));
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        A v = part[c].v;

        for (size_t i = p.begin(c), end = p.end(c); i < end; i++) {
            bool h = head(i);
            A x = (A)in[i], sum = h ? x : (A)op(v, x);

            if (how.inclusive)
                out[i] = how.has_init ? (A)op(how.init, sum) : sum;
            else if (h)
                out[i] = how.init;
            else
                out[i] = how.has_init ? (A)op(how.init, v) : v;
            v = sum;
        }
    }));
    return step.error;
}

/* ---- selections --------------------------------------------------------- */

struct plus_size {
    BRASS_HD size_t operator()(size_t a, size_t b) const { return a + b; }
};
/* take(i, rank) for each i with is(i), and rest(i, rank) for the others; at the
 * end done(how many are taken), by one thread. */
template <class P, class T, class R, class D>
cudaError_t
select(arena &a, cudaStream_t s, size_t n, P is, T take, R rest, D done)
{
    parts p(n);
    size_t *part = a.take<size_t>(p.count + 1);
    scan_how<size_t> how = {false, true, 0};
    steps step;

    if (a.counts())
        return cudaSuccess;
    step(each(
        s, p.count + 1,
        [=] __device__(size_t c) mutable {
            size_t sum = 0;

            if (c < p.count)
                for (size_t i = p.begin(c), end = p.end(c); i < end; i++)
                    sum += (bool)is(i);
            part[c] = sum;
        },
        64));
    step(scan_parts(s, part, p.count + 1, plus_size(), how));
    step(each_part(s, p, [=] __device__(size_t c) mutable {
        size_t at = part[c];

        for (size_t i = p.begin(c), end = p.end(c); i < end; i++)
            if (is(i))
                take(i, at++);
            else
                rest(i, i - at);
    }));
    step(each(
        s, 1, [=] __device__(size_t) mutable { done(part[p.count]); }, 1));
    return step.error;
}
struct nothing {
    template <class... T> BRASS_HD void operator()(T...) const {}
};
/* Runs of equal keys: take(first, end, rank) for each. */
template <class H, class T, class D>
cudaError_t
each_run(arena &a, cudaStream_t s, size_t n, H head, T take, D done)
{
    return select(
        a, s, n, head,
        [=] __device__(size_t i, size_t at) mutable {
            size_t end = i + 1;

            while (end < n && !head(end))
                end++;
            take(i, end, at);
        },
        nothing(), done);
}
} // namespace brass

#include "brass_pop.h"
#endif
