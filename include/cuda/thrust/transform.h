/* transform.h - what is done item by item, in no order.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TRANSFORM
#define BRASS_THRUST_TRANSFORM
#include "../brass_push.h"

#include "execution_policy.h"
#include "iterator/counting_iterator.h"

namespace brass
{
#define BR_EACH(i) [=] __host__ __device__(size_t i) mutable
/* out[i] = f(in[i]) where(i). */
template <class X, class I, class O, class F>
BRASS_HD O
map(X &x, I a, size_t n, O to, F f)
{
    auto in = raw_of(a);
    auto out = raw_of(to);

    x.each(
        n, BR_EACH(i) { out[i] = f(in[i]); });
    return to + n;
}
template <class X, class I, class S, class O, class F, class P>
BRASS_HD O
map_if(X &x, I a, size_t n, S s, O to, F f, P is)
{
    auto in = raw_of(a);
    auto by = raw_of(s);
    auto out = raw_of(to);

    x.each(
        n, BR_EACH(i) {
            if (is(by[i]))
                out[i] = f(in[i]);
        });
    return to + n;
}
struct for_each_n_f {
    template <class X, class I, class N, class F>
    BRASS_HD I operator()(X &x, I a, N n, F f) const
    {
        auto in = raw_of(a);

        x.each((size_t)n, BR_EACH(i) { f(in[i]); });
        return a + n;
    }
};
struct for_each_f {
    template <class X, class I, class F>
    BRASS_HD I operator()(X &x, I a, I b, F f) const
    {
        return for_each_n_f()(x, a, (size_t)(b - a), f);
    }
};
struct transform_f {
    template <class X, class I, class O, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, F f) const
    {
        return map(x, a, (size_t)(b - a), to, f);
    }
    template <class X, class I, class J, class O, class F>
    BRASS_HD O operator()(X &x, I a, I b, J c, O to, F f) const
    {
        auto in = raw_of(a);
        auto with = raw_of(c);
        auto out = raw_of(to);
        size_t n = (size_t)(b - a);

        x.each(
            n, BR_EACH(i) { out[i] = f(in[i], with[i]); });
        return to + n;
    }
};
struct transform_if_f {
    template <class X, class I, class O, class F, class P>
    BRASS_HD O operator()(X &x, I a, I b, O to, F f, P is) const
    {
        return map_if(x, a, (size_t)(b - a), a, to, f, is);
    }
    template <class X, class I, class S, class O, class F, class P>
    BRASS_HD O operator()(X &x, I a, I b, S s, O to, F f, P is) const
    {
        return map_if(x, a, (size_t)(b - a), s, to, f, is);
    }
    template <class X, class I, class J, class S, class O, class F, class P>
    BRASS_HD O operator()(X &x, I a, I b, J c, S s, O to, F f, P is) const
    {
        auto pairs = thrust::make_zip_iterator(thrust::tuple<I, J>(a, c));

        return map_if(x, pairs, (size_t)(b - a), s, to,
                      thrust::make_zip_function(f), is);
    }
};
struct fill_n_f {
    template <class X, class I, class N, class T>
    BRASS_HD I operator()(X &x, I a, N n, T v) const
    {
        auto out = raw_of(a);

        x.each((size_t)n, BR_EACH(i) { out[i] = v; });
        return a + n;
    }
};
struct fill_f {
    template <class X, class I, class T>
    BRASS_HD void operator()(X &x, I a, I b, T v) const
    {
        fill_n_f()(x, a, (size_t)(b - a), v);
    }
};
struct tabulate_f {
    template <class X, class I, class F>
    BRASS_HD void operator()(X &x, I a, I b, F f) const
    {
        auto out = raw_of(a);

        x.each((size_t)(b - a),
               BR_EACH(i) { out[i] = f((typename iter<I>::diff)i); });
    }
};
struct sequence_f {
    template <class X, class I, class T, class U>
    BRASS_HD void operator()(X &x, I a, I b, T first, U step) const
    {
        auto out = raw_of(a);

        x.each((size_t)(b - a), BR_EACH(i) {
            out[i] = (value_of<I>)(first + (value_of<I>)i * step);
        });
    }
    template <class X, class I, class T>
    BRASS_HD void operator()(X &x, I a, I b, T first) const
    {
        (*this)(x, a, b, first, (T)1);
    }
    template <class X, class I> BRASS_HD void operator()(X &x, I a, I b) const
    {
        (*this)(x, a, b, value_of<I>(0), value_of<I>(1));
    }
};
struct generate_n_f {
    template <class X, class I, class N, class F>
    BRASS_HD I operator()(X &x, I a, N n, F f) const
    {
        auto out = raw_of(a);

        x.each((size_t)n, BR_EACH(i) { out[i] = f(); });
        return a + n;
    }
};
struct generate_f {
    template <class X, class I, class F>
    BRASS_HD void operator()(X &x, I a, I b, F f) const
    {
        /* On the host one f is called for all: rand() and what has a state. */
        if constexpr (X::parallel) {
            generate_n_f()(x, a, (size_t)(b - a), f);
        } else {
            for (auto i = raw_of(a), end = raw_of(b); i != end; ++i)
                *i = f();
        }
    }
};
struct gather_if_f {
    template <class X, class M, class S, class I, class O, class P>
    BRASS_HD O operator()(X &x, M a, M b, S s, I items, O to, P is) const
    {
        return map_if(x, thrust::permutation_iterator<I, M>(items, a),
                      (size_t)(b - a), s, to, thrust::identity<>(), is);
    }
    template <class X, class M, class S, class I, class O>
    BRASS_HD O operator()(X &x, M a, M b, S s, I items, O to) const
    {
        return (*this)(x, a, b, s, items, to, thrust::identity<>());
    }
};
struct gather_f {
    template <class X, class M, class I, class O>
    BRASS_HD O operator()(X &x, M a, M b, I items, O to) const
    {
        return map(x, thrust::permutation_iterator<I, M>(items, a),
                   (size_t)(b - a), to, thrust::identity<>());
    }
};
struct scatter_if_f {
    template <class X, class I, class M, class S, class O, class P>
    BRASS_HD void operator()(X &x, I a, I b, M m, S s, O to, P is) const
    {
        map_if(x, a, (size_t)(b - a), s,
               thrust::permutation_iterator<O, M>(to, m), thrust::identity<>(),
               is);
    }
    template <class X, class I, class M, class S, class O>
    BRASS_HD void operator()(X &x, I a, I b, M m, S s, O to) const
    {
        (*this)(x, a, b, m, s, to, thrust::identity<>());
    }
};
struct scatter_f {
    template <class X, class I, class M, class O>
    BRASS_HD void operator()(X &x, I a, I b, M m, O to) const
    {
        map(x, a, (size_t)(b - a), thrust::permutation_iterator<O, M>(to, m),
            thrust::identity<>());
    }
};
template <class F, class T> struct instead {
    F is;
    T v;
    template <class U> BRASS_HD U operator()(const U &x) const
    {
        F f = is;

        return f(x) ? (U)v : x;
    }
};
template <class T> struct same_as {
    T v;
    template <class U> BRASS_HD bool operator()(const U &x) const
    {
        return x == v;
    }
};
struct replace_if_f {
    template <class X, class I, class P, class T>
    BRASS_HD void operator()(X &x, I a, I b, P is, T v) const
    {
        (*this)(x, a, b, a, is, v);
    }
    template <class X, class I, class S, class P, class T>
    BRASS_HD void operator()(X &x, I a, I b, S s, P is, T v) const
    {
        map_if(x, thrust::constant_iterator<T>(v), (size_t)(b - a), s, a,
               thrust::identity<>(), is);
    }
};
struct replace_f {
    template <class X, class I, class T>
    BRASS_HD void operator()(X &x, I a, I b, T was, T v) const
    {
        replace_if_f()(x, a, b, same_as<T>{was}, v);
    }
};
struct replace_copy_if_f {
    template <class X, class I, class O, class P, class T>
    BRASS_HD O operator()(X &x, I a, I b, O to, P is, T v) const
    {
        return map(x, a, (size_t)(b - a), to, instead<P, T>{is, v});
    }
    template <class X, class I, class S, class O, class P, class T>
    BRASS_HD O operator()(X &x, I a, I b, S s, O to, P is, T v) const
    {
        auto in = raw_of(a);
        auto by = raw_of(s);
        auto out = raw_of(to);
        size_t n = (size_t)(b - a);

        x.each(
            n, BR_EACH(i) {
                if (is(by[i]))
                    out[i] = v;
                else
                    out[i] = in[i];
            });
        return to + n;
    }
};
struct replace_copy_f {
    template <class X, class I, class O, class T>
    BRASS_HD O operator()(X &x, I a, I b, O to, T was, T v) const
    {
        return replace_copy_if_f()(x, a, b, to, same_as<T>{was}, v);
    }
};
struct reverse_f {
    template <class X, class I> BRASS_HD void operator()(X &x, I a, I b) const
    {
        auto in = raw_of(a);
        size_t n = (size_t)(b - a);

        x.each(
            n / 2, BR_EACH(i) { swap_items(in, i, n - 1 - i); });
    }
};
struct reverse_copy_f {
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return map(x, thrust::reverse_iterator<I>(b), (size_t)(b - a), to,
                   thrust::identity<>());
    }
};
struct swap_ranges_f {
    template <class X, class I, class J>
    BRASS_HD J operator()(X &x, I a, I b, J c) const
    {
        auto in = raw_of(a);
        auto with = raw_of(c);

        x.each((size_t)(b - a), BR_EACH(i) {
            value_of<I> was = in[i];

            in[i] = with[i];
            with[i] = was;
        });
        return c + (b - a);
    }
};
struct adjacent_difference_f {
    template <class X, class I, class O, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, F op) const
    {
        size_t n = (size_t)(b - a);
        auto held = x.keep(raw_of(a), n);
        auto in = held.it;
        auto out = raw_of(to);

        x.each_down(
            n, BR_EACH(i) {
                if (i)
                    out[i] = op(in[i], in[i - 1]);
                else
                    out[i] = in[i];
            });
        return to + n;
    }
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return (*this)(x, a, b, to, thrust::minus<value_of<I>>());
    }
};

/* ---- copies, between host and device too -------------------------------- */

struct copy_n_f {
    template <class X, class I, class N, class O>
    BRASS_HD O operator()(X &x, I a, N n, O to) const
    {
        return map(x, a, (size_t)n, to, thrust::identity<>());
    }
};
/* One side is the host's: its loop reads and writes what the device has, but
 * what functors of kernels make comes through an array. */
template <class I, class O>
O
copy_across(I a, I b, O to)
{
    if constexpr (bare<I>::where == on_device &&
                  !std::is_pointer<bare_t<I>>::value) {
        in_kernels<void> x = {};
        auto made = x.keep(raw_of(a), (size_t)(b - a));

        return std::copy(made.it, made.it + (b - a), to);
    } else if constexpr (bare<O>::where == on_device &&
                         !std::is_pointer<bare_t<O>>::value) {
        size_t n = (size_t)std::distance(a, b);
        in_kernels<void> x = {};
        in_kernels<void>::template kept<value_of<I>> in(&x, n);

        std::copy(a, b, in.it);
        return map(x, in.it, n, to, thrust::identity<>());
    } else {
        check(cudaStreamSynchronize(0));
        auto end = std::copy(raw_of(a), raw_of(b), raw_of(to));

        if constexpr (bare<O>::where == on_device)
            return to + (end - raw_of(to));
        else
            return end;
    }
}
template <class I, class O> struct is_across {
    static const bool value =
        (bare<I>::where == on_device && bare<O>::where == on_host) ||
        (bare<I>::where == on_host && bare<O>::where == on_device) ||
        (bare<I>::where == on_host && bare<O>::where == on_host);
};
struct copy_f {
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return copy_n_f()(x, a, (size_t)(b - a), to);
    }
};
/* Memory of kernels needs no constructor to be assigned to. */
typedef copy_f uninitialized_copy_f;
typedef copy_n_f uninitialized_copy_n_f;
typedef fill_f uninitialized_fill_f;
typedef fill_n_f uninitialized_fill_n_f;
/* Without a policy the iterators say from where to where. */
struct copy_anywhere_f {
    template <class X, class I, class O>
    O operator()(X &x, I a, I b, O to) const
    {
        if constexpr (is_across<I, O>::value)
            return copy_across(a, b, to);
        else
            return copy_f()(x, a, b, to);
    }
};
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(for_each)
BR_THRUST(for_each_n)
BR_THRUST(transform)
BR_THRUST(transform_if)
BR_THRUST(fill)
BR_THRUST(fill_n)
BR_THRUST(tabulate)
BR_THRUST(sequence)
BR_THRUST(uninitialized_copy)
BR_THRUST(uninitialized_copy_n)
BR_THRUST(uninitialized_fill)
BR_THRUST(uninitialized_fill_n)
BR_THRUST(generate)
BR_THRUST(generate_n)
BR_THRUST(gather)
BR_THRUST(gather_if)
BR_THRUST(scatter)
BR_THRUST(scatter_if)
BR_THRUST(replace)
BR_THRUST(replace_if)
BR_THRUST(replace_copy)
BR_THRUST(replace_copy_if)
BR_THRUST(reverse)
BR_THRUST(reverse_copy)
BR_THRUST(swap_ranges)
BR_THRUST(adjacent_difference)
/* clang-format on */
template <class P, class... A>
__host__ auto
copy(const P &p, A &&...a)
{
    if constexpr (brass::is_policy<P>::value)
        return brass::call(brass::copy_f(), p, static_cast<A &&>(a)...);
    else
        return brass::call(brass::copy_anywhere_f(), p,
                           static_cast<A &&>(a)...);
}
template <class P, class... A>
__device__ auto
copy(const P &p, A &&...a)
{
    return brass::call(brass::copy_f(), p, static_cast<A &&>(a)...);
}
BR_THRUST_ARRAY(copy)
template <class I, class N, class O>
O
copy_n(I a, N n, O to)
{
    return thrust::copy(a, a + n, to);
}
template <class P, class I, class N, class O>
__host__ O
copy_n(const P &p, I a, N n, O to)
{
    return brass::call(brass::copy_n_f(), p, a, n, to);
}
template <class P, class I, class N, class O>
__device__ O
copy_n(const P &p, I a, N n, O to)
{
    return brass::call(brass::copy_n_f(), p, a, n, to);
}
} // namespace thrust

#include "../brass_pop.h"
#endif
