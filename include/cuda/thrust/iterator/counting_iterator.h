/* counting_iterator.h - iterators whose items come from a rule, or from others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_COUNTING_ITERATOR
#define BRASS_THRUST_COUNTING_ITERATOR
#include "../../brass_push.h"

#include "../tuple.h"
#include "iterator_traits.h"

namespace thrust
{
template <class T, class = use_default, class = use_default,
          class D = use_default>
struct counting_iterator
    : brass::moving<counting_iterator<T>, T, T, ptrdiff_t, T> {
    typedef brass::moving<counting_iterator<T>, T, T, ptrdiff_t, T> moves;
    counting_iterator() = default;
    BRASS_HD explicit counting_iterator(const T &v) : moves(v) {}
    BRASS_HD T operator*() const { return this->at; }
    BRASS_HD T base() const { return this->at; }
};
template <class T>
BRASS_HD counting_iterator<T>
make_counting_iterator(T v)
{
    return counting_iterator<T>(v);
}

template <class T, class = use_default, class = use_default>
struct constant_iterator
    : brass::moving<constant_iterator<T>, T, T, ptrdiff_t, ptrdiff_t> {
    typedef brass::moving<constant_iterator<T>, T, T, ptrdiff_t, ptrdiff_t>
        moves;
    T v;
    constant_iterator() = default;
    BRASS_HD explicit constant_iterator(const T &x, ptrdiff_t n = 0)
        : moves(n), v(x)
    {
    }
    BRASS_HD T operator*() const { return v; }
    BRASS_HD T value() const { return v; }
};
template <class T>
BRASS_HD constant_iterator<T>
make_constant_iterator(T v, ptrdiff_t n = 0)
{
    return constant_iterator<T>(v, n);
}

/* Takes what it is given, and forgets it. */
struct brass_forgets {
    template <class T> BRASS_HD const brass_forgets &operator=(const T &) const
    {
        return *this;
    }
};
template <class = use_default>
struct discard_iterator : brass::moving<discard_iterator<>, brass_forgets,
                                        brass_forgets, ptrdiff_t, ptrdiff_t> {
    typedef brass::moving<discard_iterator<>, brass_forgets, brass_forgets,
                          ptrdiff_t, ptrdiff_t>
        moves;
    BRASS_HD explicit discard_iterator(ptrdiff_t n = 0) : moves(n) {}
    BRASS_HD brass_forgets operator*() const { return {}; }
};
BRASS_HD discard_iterator<>
make_discard_iterator(ptrdiff_t n = 0)
{
    return discard_iterator<>(n);
}
} // namespace thrust

namespace brass
{
template <class T> struct rule {
    static const place where = anywhere;
    typedef T type;
    BRASS_HD static T of(const T &i) { return i; }
};
template <class T>
struct bare<thrust::counting_iterator<T>> : rule<thrust::counting_iterator<T>> {
};
template <class T>
struct bare<thrust::constant_iterator<T>> : rule<thrust::constant_iterator<T>> {
};
template <>
struct bare<thrust::discard_iterator<>> : rule<thrust::discard_iterator<>> {
};
/* What f makes of an item of I; R, where a program says it. */
template <class F, class I, class R> struct made_by {
    typedef R type;
};
template <class F, class I> struct made_by<F, I, thrust::use_default> {
    typedef decltype(std::declval<F &>()(std::declval<item_of<I>>())) type;
};
template <class F, class I, class R>
using made_by_t = typename made_by<F, I, R>::type;
} // namespace brass

namespace thrust
{
template <class F, class I, class R = use_default, class V = use_default>
struct transform_iterator
    : brass::moving<transform_iterator<F, I, R, V>,
                    typename std::decay<brass::made_by_t<F, I, R>>::type,
                    brass::made_by_t<F, I, R>, ptrdiff_t, I> {
    typedef brass::made_by_t<F, I, R> made;
    typedef brass::moving<transform_iterator, typename std::decay<made>::type,
                          made, ptrdiff_t, I>
        moves;
    F f;
    BRASS_HD transform_iterator(I i, F g) : moves(i), f(g) {}
    BRASS_HD explicit transform_iterator(I i = I()) : moves(i), f() {}
    BRASS_HD made operator*() const
    {
        F g = f;

        return g(*brass::raw_of(this->at));
    }
    BRASS_HD I base() const { return this->at; }
    BRASS_HD F functor() const { return f; }
};
template <class F, class I>
BRASS_HD transform_iterator<F, I>
make_transform_iterator(I i, F f)
{
    return transform_iterator<F, I>(i, f);
}

/* base[index]; the indices move. */
template <class E, class I>
struct permutation_iterator
    : brass::moving<permutation_iterator<E, I>, brass::value_of<E>,
                    brass::item_of<E>, ptrdiff_t, I> {
    typedef brass::moving<permutation_iterator, brass::value_of<E>,
                          brass::item_of<E>, ptrdiff_t, I>
        moves;
    E items;
    permutation_iterator() = default;
    BRASS_HD permutation_iterator(E e, I i) : moves(i), items(e) {}
    BRASS_HD brass::item_of<E> operator*() const
    {
        auto i = *brass::raw_of(this->at);

        return *(brass::raw_of(items) + i);
    }
    BRASS_HD I base() const { return this->at; }
};
template <class E, class I>
BRASS_HD permutation_iterator<E, I>
make_permutation_iterator(E e, I i)
{
    return permutation_iterator<E, I>(e, i);
}

/* From the end on, which `at` is one beyond. */
template <class I>
struct reverse_iterator
    : brass::moving<reverse_iterator<I>, brass::value_of<I>, brass::item_of<I>,
                    ptrdiff_t, ptrdiff_t> {
    typedef brass::moving<reverse_iterator, brass::value_of<I>,
                          brass::item_of<I>, ptrdiff_t, ptrdiff_t>
        moves;
    I from;
    reverse_iterator() = default;
    BRASS_HD explicit reverse_iterator(I i) : moves(0), from(i) {}
    template <class J>
    BRASS_HD reverse_iterator(const reverse_iterator<J> &i)
        : moves(i.at), from(i.from)
    {
    }
    BRASS_HD brass::item_of<I> operator*() const
    {
        return *(brass::raw_of(from) - (this->at + 1));
    }
    BRASS_HD I base() const { return from - this->at; }
    BRASS_HD ptrdiff_t operator-(const reverse_iterator &b) const
    {
        return b.base() - base();
    }
    BRASS_HD reverse_iterator operator-(ptrdiff_t n) const
    {
        return *this + -n;
    }
    BRASS_HD bool operator==(const reverse_iterator &b) const
    {
        return base() == b.base();
    }
    BRASS_HD bool operator!=(const reverse_iterator &b) const
    {
        return !(*this == b);
    }
    BRASS_HD bool operator<(const reverse_iterator &b) const
    {
        return b.base() < base();
    }
};
template <class I>
BRASS_HD reverse_iterator<I>
make_reverse_iterator(I i)
{
    return reverse_iterator<I>(i);
}

/* *i = v puts f(v); of an input and output one, *i is read through g too. */
struct brass_no_input {
};
template <class G, class F, class I> struct brass_place {
    G g;
    F f;
    I at;
    template <class T> BRASS_HD const brass_place &operator=(const T &v) const
    {
        F h = f;

        *at = h(v);
        return *this;
    }
    BRASS_HD const brass_place &operator=(const brass_place &p) const
    {
        F h = f;

        *at = h(p.get());
        return *this;
    }
    BRASS_HD auto get() const
    {
        G h = g;

        return h(*at);
    }
    template <class T> BRASS_HD operator T() const { return (T)get(); }
};
template <class G, class F, class I>
struct transform_input_output_iterator
    : brass::moving<
          transform_input_output_iterator<G, F, I>,
          typename std::decay<brass::made_by_t<G, I, use_default>>::type,
          brass_place<G, F, brass::bare_t<I>>, ptrdiff_t, I> {
    typedef brass_place<G, F, brass::bare_t<I>> place;
    typedef brass::moving<
        transform_input_output_iterator,
        typename std::decay<brass::made_by_t<G, I, use_default>>::type, place,
        ptrdiff_t, I>
        moves;
    G g;
    F f;
    BRASS_HD transform_input_output_iterator(I i, G in, F out)
        : moves(i), g(in), f(out)
    {
    }
    BRASS_HD place operator*() const { return {g, f, brass::raw_of(this->at)}; }
};
template <class G, class F, class I>
BRASS_HD transform_input_output_iterator<G, F, I>
make_transform_input_output_iterator(I i, G g, F f)
{
    return transform_input_output_iterator<G, F, I>(i, g, f);
}
template <class F, class I>
struct transform_output_iterator
    : brass::moving<transform_output_iterator<F, I>, void,
                    brass_place<brass_no_input, F, brass::bare_t<I>>, ptrdiff_t,
                    I> {
    typedef brass_place<brass_no_input, F, brass::bare_t<I>> place;
    typedef brass::moving<transform_output_iterator, void, place, ptrdiff_t, I>
        moves;
    F f;
    BRASS_HD transform_output_iterator(I i, F out) : moves(i), f(out) {}
    BRASS_HD place operator*() const
    {
        return {{}, f, brass::raw_of(this->at)};
    }
};
template <class F, class I>
BRASS_HD transform_output_iterator<F, I>
make_transform_output_iterator(I i, F f)
{
    return transform_output_iterator<F, I>(i, f);
}
/* *i = v calls f(place, v). */
template <class F> struct brass_tabulate {
    F f;
    ptrdiff_t i;
    template <class T>
    BRASS_HD const brass_tabulate &operator=(const T &v) const
    {
        F g = f;

        g(i, v);
        return *this;
    }
};
template <class F>
struct tabulate_output_iterator
    : brass::moving<tabulate_output_iterator<F>, void, brass_tabulate<F>,
                    ptrdiff_t, ptrdiff_t> {
    typedef brass::moving<tabulate_output_iterator, void, brass_tabulate<F>,
                          ptrdiff_t, ptrdiff_t>
        moves;
    F f;
    BRASS_HD tabulate_output_iterator(F g, ptrdiff_t n = 0) : moves(n), f(g) {}
    BRASS_HD brass_tabulate<F> operator*() const { return {f, this->at}; }
};
template <class F>
BRASS_HD tabulate_output_iterator<F>
make_tabulate_output_iterator(F f, ptrdiff_t n = 0)
{
    return tabulate_output_iterator<F>(f, n);
}

/* ---- several at once ---------------------------------------------------- */

template <class T> struct zip_iterator;
template <class... I>
struct zip_iterator<tuple<I...>>
    : brass::moving<zip_iterator<tuple<I...>>, tuple<brass::value_of<I>...>,
                    tuple<brass::item_of<I>...>, ptrdiff_t, ptrdiff_t> {
    typedef brass::moving<zip_iterator, tuple<brass::value_of<I>...>,
                          tuple<brass::item_of<I>...>, ptrdiff_t, ptrdiff_t>
        moves;
    typedef tuple<I...> iterator_tuple;
    iterator_tuple from;
    zip_iterator() = default;
    BRASS_HD zip_iterator(const iterator_tuple &t) : moves(0), from(t) {}
    template <class... J>
    BRASS_HD zip_iterator(const zip_iterator<tuple<J...>> &z)
        : moves(z.at), from(z.from)
    {
    }
    BRASS_HD tuple<brass::item_of<I>...> operator*() const
    {
        return items(brass::count_to<sizeof...(I)>());
    }
    BRASS_HD iterator_tuple get_iterator_tuple() const
    {
        return moved(brass::count_to<sizeof...(I)>());
    }
    /* Two zips of one place may have begun at different ones. */
    BRASS_HD ptrdiff_t operator-(const zip_iterator &b) const
    {
        return thrust::get<0>(from) - thrust::get<0>(b.from) + this->at - b.at;
    }
    BRASS_HD zip_iterator operator-(ptrdiff_t n) const { return *this + -n; }
    BRASS_HD bool operator==(const zip_iterator &b) const
    {
        return *this - b == 0;
    }
    BRASS_HD bool operator!=(const zip_iterator &b) const
    {
        return *this - b != 0;
    }
    BRASS_HD bool operator<(const zip_iterator &b) const
    {
        return *this - b < 0;
    }

  private:
    template <size_t... K>
    BRASS_HD tuple<brass::item_of<I>...> items(std::index_sequence<K...>) const
    {
        return tuple<brass::item_of<I>...>(
            *(brass::raw_of(thrust::get<K>(from)) + this->at)...);
    }
    template <size_t... K>
    BRASS_HD iterator_tuple moved(std::index_sequence<K...>) const
    {
        return iterator_tuple((thrust::get<K>(from) + this->at)...);
    }
};
template <class... I>
BRASS_HD zip_iterator<tuple<I...>>
make_zip_iterator(const tuple<I...> &t)
{
    return zip_iterator<tuple<I...>>(t);
}
template <class I, class... J>
BRASS_HD typename std::enable_if<brass::is_iterator<I>::value,
                                 zip_iterator<tuple<I, J...>>>::type
make_zip_iterator(I i, J... j)
{
    return zip_iterator<tuple<I, J...>>(tuple<I, J...>(i, j...));
}
} // namespace thrust

/* ---- what kernels get of them ------------------------------------------- */

namespace brass
{
template <class F, class I, class R, class V>
struct bare<thrust::transform_iterator<F, I, R, V>> {
    static const place where = bare<I>::where;
    typedef thrust::transform_iterator<F, bare_t<I>, R, V> type;
    BRASS_HD static type of(const thrust::transform_iterator<F, I, R, V> &i)
    {
        return type(raw_of(i.at), i.f);
    }
};
template <class E, class I> struct bare<thrust::permutation_iterator<E, I>> {
    static const place where = place_of(bare<E>::where, bare<I>::where);
    typedef thrust::permutation_iterator<bare_t<E>, bare_t<I>> type;
    BRASS_HD static type of(const thrust::permutation_iterator<E, I> &i)
    {
        return type(raw_of(i.items), raw_of(i.at));
    }
};
template <class I> struct bare<thrust::reverse_iterator<I>> {
    static const place where = bare<I>::where;
    typedef thrust::reverse_iterator<bare_t<I>> type;
    BRASS_HD static type of(const thrust::reverse_iterator<I> &i)
    {
        return type(raw_of(i.base()));
    }
};
template <class G, class F, class I>
struct bare<thrust::transform_input_output_iterator<G, F, I>>
    : rule<thrust::transform_input_output_iterator<G, F, I>> {
    static const place where = bare<I>::where;
};
template <class F, class I>
struct bare<thrust::transform_output_iterator<F, I>>
    : rule<thrust::transform_output_iterator<F, I>> {
    static const place where = bare<I>::where;
};
template <class F>
struct bare<thrust::tabulate_output_iterator<F>>
    : rule<thrust::tabulate_output_iterator<F>> {
};
template <class... I> struct bare<thrust::zip_iterator<thrust::tuple<I...>>> {
    static const place where = place_of(bare<I>::where...);
    typedef thrust::zip_iterator<thrust::tuple<bare_t<I>...>> type;
    template <size_t... K>
    BRASS_HD static type of(const thrust::tuple<I...> &t,
                            std::index_sequence<K...>)
    {
        return type(thrust::tuple<bare_t<I>...>(raw_of(of_part<K>(t))...));
    }
    BRASS_HD static type of(const thrust::zip_iterator<thrust::tuple<I...>> &i)
    {
        return of(i.get_iterator_tuple(), count_to<sizeof...(I)>());
    }
};
} // namespace brass

#include "../../brass_pop.h"
#endif
