/* reduce.h - one value of many: sums, extremes, places, yes or no.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_REDUCE
#define BRASS_THRUST_REDUCE
#include "../brass_push.h"

#include "scan.h"

namespace brass
{
#define BR_RULE(i) [=] __host__ __device__(size_t i) mutable
struct transform_reduce_f {
    template <class X, class I, class G, class T, class F>
    BRASS_HD T operator()(X &x, I a, I b, G g, T init, F op) const
    {
        auto in = raw_of(a);

        return x.fold((size_t)(b - a), BR_RULE(i) { return g(in[i]); }, op,
                      init);
    }
};
struct reduce_f {
    template <class X, class I, class T, class F>
    BRASS_HD T operator()(X &x, I a, I b, T init, F op) const
    {
        auto in = raw_of(a);

        return x.fold((size_t)(b - a),
                      BR_RULE(i)->value_of<I> { return in[i]; }, op, init);
    }
    template <class X, class I, class T>
    BRASS_HD T operator()(X &x, I a, I b, T init) const
    {
        return (*this)(x, a, b, init, thrust::plus<>());
    }
    template <class X, class I>
    BRASS_HD value_of<I> operator()(X &x, I a, I b) const
    {
        return (*this)(x, a, b, value_of<I>(), thrust::plus<>());
    }
};
struct inner_product_f {
    template <class X, class I, class J, class T, class F, class G>
    BRASS_HD T operator()(X &x, I a, I b, J c, T init, F op, G g) const
    {
        auto in = raw_of(a);
        auto with = raw_of(c);

        return x.fold((size_t)(b - a), BR_RULE(i) { return g(in[i], with[i]); },
                      op, init);
    }
    template <class X, class I, class J, class T>
    BRASS_HD T operator()(X &x, I a, I b, J c, T init) const
    {
        return (*this)(x, a, b, c, init, thrust::plus<>(),
                       thrust::multiplies<>());
    }
};
/* How many places is(i) is true of; the first one, n where there is none. */
template <class X, class P>
BRASS_HD size_t
how_many(X &x, size_t n, P is)
{
    return x.fold(
        n, BR_RULE(i) { return (size_t)(bool)is(i); }, plus_size(), (size_t)0);
}
struct min_size {
    BRASS_HD size_t operator()(size_t a, size_t b) const
    {
        return a < b ? a : b;
    }
};
template <class X, class P>
BRASS_HD size_t
first_place(X &x, size_t n, P is)
{
    if constexpr (X::parallel) {
        return x.fold(
            n, BR_RULE(i) { return is(i) ? i : n; }, min_size(), n);
    } else {
        size_t i = 0;

        while (i < n && !is(i))
            i++;
        return i;
    }
}
struct count_if_f {
    template <class X, class I, class P>
    BRASS_HD typename iter<I>::diff operator()(X &x, I a, I b, P is) const
    {
        auto in = raw_of(a);

        return (typename iter<I>::diff)how_many(
            x, (size_t)(b - a), BR_RULE(i) { return (bool)is(in[i]); });
    }
};
struct count_f {
    template <class X, class I, class T>
    BRASS_HD typename iter<I>::diff operator()(X &x, I a, I b, T v) const
    {
        return count_if_f()(x, a, b, same_as<T>{v});
    }
};
struct find_if_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P is) const
    {
        auto in = raw_of(a);

        return a +
               first_place(
                   x, (size_t)(b - a), BR_RULE(i) { return (bool)is(in[i]); });
    }
};
struct find_if_not_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P is) const
    {
        return find_if_f()(x, a, b, thrust::not_fn(is));
    }
};
struct find_f {
    template <class X, class I, class T>
    BRASS_HD I operator()(X &x, I a, I b, T v) const
    {
        return find_if_f()(x, a, b, same_as<T>{v});
    }
};
struct any_of_f {
    template <class X, class I, class P>
    BRASS_HD bool operator()(X &x, I a, I b, P is) const
    {
        return find_if_f()(x, a, b, is) != b;
    }
};
struct none_of_f {
    template <class X, class I, class P>
    BRASS_HD bool operator()(X &x, I a, I b, P is) const
    {
        return !any_of_f()(x, a, b, is);
    }
};
struct all_of_f {
    template <class X, class I, class P>
    BRASS_HD bool operator()(X &x, I a, I b, P is) const
    {
        return find_if_not_f()(x, a, b, is) == b;
    }
};
struct mismatch_f {
    template <class X, class I, class J, class P>
    BRASS_HD thrust::pair<I, J> operator()(X &x, I a, I b, J c, P same) const
    {
        auto in = raw_of(a);
        auto with = raw_of(c);
        size_t at = first_place(
            x, (size_t)(b - a), BR_RULE(i) { return !same(in[i], with[i]); });

        return thrust::pair<I, J>(a + at, c + at);
    }
    template <class X, class I, class J>
    BRASS_HD thrust::pair<I, J> operator()(X &x, I a, I b, J c) const
    {
        return (*this)(x, a, b, c, thrust::equal_to<>());
    }
};
struct equal_f {
    template <class X, class I, class J, class P>
    BRASS_HD bool operator()(X &x, I a, I b, J c, P same) const
    {
        return mismatch_f()(x, a, b, c, same).first == b;
    }
    template <class X, class I, class J>
    BRASS_HD bool operator()(X &x, I a, I b, J c) const
    {
        return mismatch_f()(x, a, b, c).first == b;
    }
};
/* The first item that lies before its neighbour, or same to it. */
struct is_sorted_until_f {
    template <class X, class I, class F>
    BRASS_HD I operator()(X &x, I a, I b, F less) const
    {
        auto in = raw_of(a);

        return a + first_place(
                       x, (size_t)(b - a),
                       BR_RULE(i) { return i && less(in[i], in[i - 1]); });
    }
    template <class X, class I> BRASS_HD I operator()(X &x, I a, I b) const
    {
        return (*this)(x, a, b, thrust::less<>());
    }
};
struct is_sorted_f {
    template <class X, class I, class... F>
    BRASS_HD bool operator()(X &x, I a, I b, F... less) const
    {
        return is_sorted_until_f()(x, a, b, less...) == b;
    }
};
struct is_partitioned_f {
    template <class X, class I, class P>
    BRASS_HD bool operator()(X &x, I a, I b, P is) const
    {
        auto in = raw_of(a);
        size_t n = (size_t)(b - a);

        return first_place(
                   x, n, BR_RULE(i) {
                       return i && is(in[i]) && !is(in[i - 1]);
                   }) == n;
    }
};
struct partition_point_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P is) const
    {
        return find_if_not_f()(x, a, b, is);
    }
};

/* ---- extremes: the place of one, the first of equals --------------------- */

template <class I, class F> struct better {
    I in;
    F less;
    bool largest;
    BRASS_HD size_t operator()(size_t a, size_t b) const
    {
        F f = less;
        bool second = largest ? f(in[a], in[b]) : f(in[b], in[a]);
        bool first = largest ? f(in[b], in[a]) : f(in[a], in[b]);

        return second ? b : first || a < b ? a : b;
    }
};
template <class X, class I, class F>
BRASS_HD I
extreme(X &x, I a, I b, F less, bool largest)
{
    better<bare_t<I>, F> op = {raw_of(a), less, largest};

    if (a == b)
        return b;
    return a + x.fold((size_t)(b - a), BR_RULE(i) { return i; }, op, (size_t)0);
}
struct min_element_f {
    template <class X, class I, class F>
    BRASS_HD I operator()(X &x, I a, I b, F less) const
    {
        return extreme(x, a, b, less, false);
    }
    template <class X, class I> BRASS_HD I operator()(X &x, I a, I b) const
    {
        return extreme(x, a, b, thrust::less<>(), false);
    }
};
struct max_element_f {
    template <class X, class I, class F>
    BRASS_HD I operator()(X &x, I a, I b, F less) const
    {
        return extreme(x, a, b, less, true);
    }
    template <class X, class I> BRASS_HD I operator()(X &x, I a, I b) const
    {
        return extreme(x, a, b, thrust::less<>(), true);
    }
};
struct minmax_element_f {
    template <class X, class I, class... F>
    BRASS_HD thrust::pair<I, I> operator()(X &x, I a, I b, F... less) const
    {
        return thrust::pair<I, I>(min_element_f()(x, a, b, less...),
                                  max_element_f()(x, a, b, less...));
    }
};
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(reduce)
BR_THRUST(transform_reduce)
BR_THRUST(inner_product)
BR_THRUST(count)
BR_THRUST(count_if)
BR_THRUST(find)
BR_THRUST(find_if)
BR_THRUST(find_if_not)
BR_THRUST(any_of)
BR_THRUST(all_of)
BR_THRUST(none_of)
BR_THRUST(mismatch)
BR_THRUST(equal)
BR_THRUST(is_sorted)
BR_THRUST(is_sorted_until)
BR_THRUST(is_partitioned)
BR_THRUST(partition_point)
BR_THRUST(min_element)
BR_THRUST(max_element)
BR_THRUST(minmax_element)
/* clang-format on */
template <class T>
BRASS_HD constexpr const T &
max(const T &a, const T &b)
{
    return a < b ? b : a;
}
template <class T>
BRASS_HD constexpr const T &
min(const T &a, const T &b)
{
    return b < a ? b : a;
}
template <class T, class F>
BRASS_HD constexpr const T &
max(const T &a, const T &b, F less)
{
    return less(a, b) ? b : a;
}
template <class T, class F>
BRASS_HD constexpr const T &
min(const T &a, const T &b, F less)
{
    return less(b, a) ? b : a;
}
template <class T>
BRASS_HD void
swap(T &a, T &b)
{
    T was = a;

    a = b;
    b = was;
}
} // namespace thrust

#include "../brass_pop.h"
#endif
