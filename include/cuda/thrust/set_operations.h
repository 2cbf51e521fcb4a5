/* set_operations.h - two sorted lists: merged, and as sets.
 *
 * Place k of the merged list takes item i of the first or j of the second, which a
 * bisection finds. As sets differ only in which places stay: an item is the r-th of
 * its equals, and stays by how many equals the other list has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SET_OPERATIONS
#define BRASS_THRUST_SET_OPERATIONS
#include "../brass_push.h"

#include "transform.h"

namespace brass
{
enum set_kind { merged, united, common, lacking, in_one };
/* Two lists and their order. */
template <class A, class B, class F> struct two_lists {
    A a;
    B b;
    size_t na, nb;
    F less;
    set_kind kind;

    /* The item at place k: of the first list, or of the second. */
    BRASS_HD bool second(size_t k, size_t &at) const
    {
        F f = less;
        size_t i = cub::MergePath(a, b, na, nb, k, f), j = k - i;
        bool r = j < nb && (i >= na || f(b[j], a[i]));

        at = r ? j : i;
        return r;
    }
    /* How many of n items of v before x, or before what follows x's equals. */
    template <class V, class T>
    BRASS_HD size_t before(V v, size_t n, const T &x, bool with_equals) const
    {
        F f = less;

        return bisect(n, [&](size_t t) {
            return with_equals ? !f(x, v[t]) : (bool)f(v[t], x);
        });
    }
    /* Whether v[at] has fewer equals before it than the other list w has. */
    template <class V, class W>
    BRASS_HD bool paired(V v, size_t at, size_t n, W w, size_t m) const
    {
        auto &&x = v[at];
        size_t rank = at - before(v, n, x, false);

        return rank < before(w, m, x, true) - before(w, m, x, false);
    }
    BRASS_HD bool operator()(size_t k) const
    {
        size_t at;
        bool other = second(k, at);

        if (kind == merged)
            return true;
        if (other)
            return (kind == united || kind == in_one) &&
                   !paired(b, at, nb, a, na);
        if (kind == united)
            return true;
        return paired(a, at, na, b, nb) == (kind == common);
    }
};
template <class X, class L, class A, class B, class O>
BRASS_HD size_t
take_places(X &x, L lists, A a, B b, O out)
{
    return x.select(
        lists.na + lists.nb, lists,
        [=] __host__ __device__(size_t k, size_t to) mutable {
            size_t at;

            if (lists.second(k, at))
                out[to] = b[at];
            else
                out[to] = a[at];
        },
        nothing());
}
template <set_kind Kind> struct set_f {
    template <class X, class I, class J, class O, class F>
    BRASS_HD O operator()(X &x, I a, I a_end, J b, J b_end, O to, F less) const
    {
        two_lists<bare_t<I>, bare_t<J>, F> lists = {
            raw_of(a),           raw_of(b), (size_t)(a_end - a),
            (size_t)(b_end - b), less,      Kind};

        return to + take_places(x, lists, lists.a, lists.b, raw_of(to));
    }
    template <class X, class I, class J, class O>
    BRASS_HD O operator()(X &x, I a, I a_end, J b, J b_end, O to) const
    {
        return (*this)(x, a, a_end, b, b_end, to, thrust::less<>());
    }
};
/* With values: in common are the first list's alone, which has no others then. */
template <set_kind Kind> struct set_by_key_f {
    template <class X, class I, class J, class V, class W, class KO, class VO,
              class F>
    BRASS_HD thrust::pair<KO, VO> operator()(X &x, I a, I a_end, J b, J b_end,
                                             V v, W w, KO ko, VO vo,
                                             F less) const
    {
        two_lists<bare_t<I>, bare_t<J>, F> lists = {
            raw_of(a),           raw_of(b), (size_t)(a_end - a),
            (size_t)(b_end - b), less,      Kind};
        auto in = raw_of(thrust::make_zip_iterator(thrust::tuple<I, V>(a, v)));
        auto other =
            raw_of(thrust::make_zip_iterator(thrust::tuple<J, W>(b, w)));
        auto out =
            raw_of(thrust::make_zip_iterator(thrust::tuple<KO, VO>(ko, vo)));
        size_t n = take_places(x, lists, in, other, out);

        return thrust::pair<KO, VO>(ko + n, vo + n);
    }
    template <class X, class I, class J, class V, class W, class KO, class VO>
    BRASS_HD typename std::enable_if<is_iterator<VO>::value,
                                     thrust::pair<KO, VO>>::type
    operator()(X &x, I a, I a_end, J b, J b_end, V v, W w, KO ko, VO vo) const
    {
        return (*this)(x, a, a_end, b, b_end, v, w, ko, vo, thrust::less<>());
    }
};
struct set_intersection_by_key_f {
    template <class X, class I, class J, class V, class KO, class VO, class F>
    BRASS_HD thrust::pair<KO, VO> operator()(X &x, I a, I a_end, J b, J b_end,
                                             V v, KO ko, VO vo, F less) const
    {
        return set_by_key_f<common>()(
            x, a, a_end, b, b_end, v,
            thrust::constant_iterator<value_of<V>>(value_of<V>()), ko, vo,
            less);
    }
    template <class X, class I, class J, class V, class KO, class VO>
    BRASS_HD thrust::pair<KO, VO> operator()(X &x, I a, I a_end, J b, J b_end,
                                             V v, KO ko, VO vo) const
    {
        return (*this)(x, a, a_end, b, b_end, v, ko, vo, thrust::less<>());
    }
};
/* merge_by_key takes all keys first, then what goes with them: so do the others. */
typedef set_f<merged> merge_f;
typedef set_f<united> set_union_f;
typedef set_f<common> set_intersection_f;
typedef set_f<lacking> set_difference_f;
typedef set_f<in_one> set_symmetric_difference_f;
typedef set_by_key_f<merged> merge_by_key_f;
typedef set_by_key_f<united> set_union_by_key_f;
typedef set_by_key_f<lacking> set_difference_by_key_f;
typedef set_by_key_f<in_one> set_symmetric_difference_by_key_f;

/* ---- searches ------------------------------------------------------------ */

template <class I, class T, class F>
BRASS_HD size_t
place_in(I in, size_t n, const T &v, bool upper, F &less)
{
    return bisect(n, [&](size_t t) {
        return upper ? !less(v, in[t]) : (bool)less(in[t], v);
    });
}
/* Of one value, or of each of many, whose places (or whether they are there) go to
 * an output. One value is looked for by bisection on one thread. */
enum search_kind { lower, upper, there };
template <search_kind Kind> struct search_f {
    template <class X, class I, class J, class O, class F>
    BRASS_HD auto operator()(X &x, I a, I b, J v, J v_end, O to, F less) const
    {
        auto in = raw_of(a);
        size_t n = (size_t)(b - a);

        return map(x, v, (size_t)(v_end - v), to,
                   [=] __host__ __device__(const value_of<J> &y) mutable {
                       size_t at = place_in(in, n, y, Kind == upper, less);

                       if constexpr (Kind == there)
                           return at < n && !less(y, in[at]);
                       else
                           return (typename iter<I>::diff)at;
                   });
    }
    template <class X, class I, class J, class O>
    BRASS_HD auto operator()(X &x, I a, I b, J v, J v_end, O to) const
    {
        return (*this)(x, a, b, v, v_end, to, thrust::less<>());
    }
    template <class X, class I, class T, class F>
    BRASS_HD auto operator()(X &x, I a, I b, T v, F less) const
    {
        size_t n = (size_t)(b - a), at = 0;
        auto in = raw_of(a);
        bool is = false;

        if constexpr (X::parallel) {
            size_t both = x.fold(
                1,
                [=] __host__ __device__(size_t) mutable {
                    size_t k = place_in(in, n, v, Kind == upper, less);

                    return k * 2 + (k < n && !less(v, in[k]));
                },
                plus_size(), (size_t)0);
            at = both / 2;
            is = both & 1;
        } else {
            at = place_in(in, n, v, Kind == upper, less);
            is = at < n && !less(v, in[at]);
        }
        if constexpr (Kind == there)
            return is;
        else
            return a + at;
    }
    template <class X, class I, class T>
    BRASS_HD auto operator()(X &x, I a, I b, T v) const
    {
        return (*this)(x, a, b, v, thrust::less<>());
    }
};
typedef search_f<lower> lower_bound_f;
typedef search_f<upper> upper_bound_f;
typedef search_f<there> binary_search_f;
struct equal_range_f {
    template <class X, class I, class T, class... F>
    BRASS_HD thrust::pair<I, I> operator()(X &x, I a, I b, T v, F... less) const
    {
        return thrust::pair<I, I>(lower_bound_f()(x, a, b, v, less...),
                                  upper_bound_f()(x, a, b, v, less...));
    }
};
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(merge)
BR_THRUST(merge_by_key)
BR_THRUST(set_union)
BR_THRUST(set_union_by_key)
BR_THRUST(set_intersection)
BR_THRUST(set_intersection_by_key)
BR_THRUST(set_difference)
BR_THRUST(set_difference_by_key)
BR_THRUST(set_symmetric_difference)
BR_THRUST(set_symmetric_difference_by_key)
BR_THRUST(lower_bound)
BR_THRUST(upper_bound)
BR_THRUST(binary_search)
BR_THRUST(equal_range)
/* clang-format on */
} // namespace thrust

#include "../brass_pop.h"
#endif
