/* tuple.h - pairs and tuples that kernels may assign.
 *
 * The host's std::tuple is constexpr, which lets a kernel make and read one; its
 * assignments are not before C++20.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TUPLE
#define BRASS_THRUST_TUPLE
#include "../brass_push.h"

#include "../brass_collect.h"

#include <tuple>

namespace thrust
{
struct null_type {
};
template <class A, class B> struct pair {
    typedef A first_type;
    typedef B second_type;
    A first;
    B second;
    BRASS_HD constexpr pair() : first(), second() {}
    BRASS_HD constexpr pair(const A &a, const B &b) : first(a), second(b) {}
    template <class C, class D>
    BRASS_HD constexpr pair(const pair<C, D> &p)
        : first(p.first), second(p.second)
    {
    }
    template <class C, class D>
    constexpr pair(const std::pair<C, D> &p) : first(p.first), second(p.second)
    {
    }
    template <class C, class D> BRASS_HD pair &operator=(const pair<C, D> &p)
    {
        first = p.first;
        second = p.second;
        return *this;
    }
    BRASS_HD void swap(pair &p)
    {
        pair was = *this;

        *this = p;
        p = was;
    }
};
template <class A, class B>
BRASS_HD constexpr pair<typename std::decay<A>::type,
                        typename std::decay<B>::type>
make_pair(A &&a, B &&b)
{
    return {a, b};
}
template <class... T> struct tuple;
} // namespace thrust

namespace brass
{
/* Part k of a tuple: a base of its own, so that all are reached by index. */
template <size_t K, class T> struct part {
    T v;
    BRASS_HD constexpr part() : v() {}
    template <class U> BRASS_HD constexpr part(int, U &&u) : v((U &&) u) {}
};
template <size_t K, class T> struct part<K, T &> {
    T &v;
    template <class U> BRASS_HD constexpr part(int, U &&u) : v(u) {}
};
template <class N, class... T> struct all_parts;
template <size_t... K, class... T>
struct all_parts<std::index_sequence<K...>, T...> : part<K, T>... {
    constexpr all_parts() = default;
    template <class... U>
    BRASS_HD constexpr all_parts(int, U &&...u) : part<K, T>(0, (U &&) u)...
    {
    }
};
template <size_t K, class T>
BRASS_HD constexpr T &
of_part(part<K, T> &p)
{
    return p.v;
}
template <size_t K, class T>
BRASS_HD constexpr const T &
of_part(const part<K, T> &p)
{
    return p.v;
}
template <size_t K, class T>
BRASS_HD constexpr T &
of_part(const part<K, T &> &p)
{
    return p.v;
}
template <class A, class B, size_t... K>
BRASS_HD bool
same_parts(const A &a, const B &b, std::index_sequence<K...>)
{
    return ((of_part<K>(a) == of_part<K>(b)) && ...);
}
/* -1, 0, 1: the first part that differs decides. */
template <class A, class B, size_t... K>
BRASS_HD bool
less_parts(const A &a, const B &b, std::index_sequence<K...>)
{
    int r = 0;

    ((r = r                               ? r
          : of_part<K>(a) < of_part<K>(b) ? -1
          : of_part<K>(b) < of_part<K>(a) ? 1
                                          : 0),
     ...);
    return r < 0;
}
template <size_t N> using count_to = std::make_index_sequence<N>;
template <class T> struct is_tuple : std::false_type {
};
template <class... T> struct is_tuple<thrust::tuple<T...>> : std::true_type {
};
} // namespace brass

namespace thrust
{
template <class... T>
struct tuple : brass::all_parts<brass::count_to<sizeof...(T)>, T...> {
    typedef brass::all_parts<brass::count_to<sizeof...(T)>, T...> parts;
    constexpr tuple() = default;
    tuple(const tuple &) = default;
    template <class U, class... V,
              typename std::enable_if<
                  sizeof...(V) + 1 == sizeof...(T) &&
                      (sizeof...(V) > 0 ||
                       !brass::is_tuple<typename std::decay<U>::type>::value),
                  int>::type = 0>
    BRASS_HD constexpr tuple(U &&u, V &&...v) : parts(0, (U &&) u, (V &&) v...)
    {
    }
    template <class... U>
    BRASS_HD tuple(const tuple<U...> &t)
        : tuple(t, brass::count_to<sizeof...(T)>())
    {
    }
    template <class A, class B>
    BRASS_HD tuple(const pair<A, B> &p) : parts(0, p.first, p.second)
    {
    }
    BRASS_HD tuple &operator=(const tuple &t) { return become(t); }
    template <class... U> BRASS_HD tuple &operator=(const tuple<U...> &t)
    {
        return become(t);
    }
    template <class A, class B> BRASS_HD tuple &operator=(const pair<A, B> &p)
    {
        return become(tuple<const A &, const B &>(p.first, p.second));
    }
    BRASS_HD void swap(tuple &t)
    {
        tuple was = *this;

        *this = t;
        t = was;
    }

  private:
    template <class U, size_t... K>
    BRASS_HD tuple(const U &t, std::index_sequence<K...>)
        : parts(0, brass::of_part<K>(t)...)
    {
    }
    template <class U> BRASS_HD tuple &become(const U &t)
    {
        return become(t, brass::count_to<sizeof...(T)>());
    }
    template <class U, size_t... K>
    BRASS_HD tuple &become(const U &t, std::index_sequence<K...>)
    {
        ((brass::of_part<K>(*this) = brass::of_part<K>(t)), ...);
        return *this;
    }
};
template <size_t K, class T> struct tuple_element;
template <size_t K, class... T> struct tuple_element<K, tuple<T...>> {
    typedef typename std::tuple_element<K, std::tuple<T...>>::type type;
};
template <size_t K, class A, class B> struct tuple_element<K, pair<A, B>> {
    typedef typename std::tuple_element<K, std::tuple<A, B>>::type type;
};
template <size_t K, class T> struct tuple_element<K, const T> {
    typedef const typename tuple_element<K, T>::type type;
};
template <class T> struct tuple_size;
template <class... T>
struct tuple_size<tuple<T...>> : std::integral_constant<size_t, sizeof...(T)> {
};
template <class A, class B>
struct tuple_size<pair<A, B>> : std::integral_constant<size_t, 2> {
};
template <class T> struct tuple_size<const T> : tuple_size<T> {
};

template <size_t K, class... T>
BRASS_HD constexpr auto &
get(tuple<T...> &t)
{
    return brass::of_part<K>(t);
}
template <size_t K, class... T>
BRASS_HD constexpr auto &
get(const tuple<T...> &t)
{
    return brass::of_part<K>(t);
}
template <size_t K, class... T>
BRASS_HD constexpr typename tuple_element<K, tuple<T...>>::type &&
get(tuple<T...> &&t)
{
    return (typename tuple_element<K, tuple<T...>>::type &&)
        brass::of_part<K>(t);
}
template <size_t K, class A, class B>
BRASS_HD constexpr auto &
get(pair<A, B> &p)
{
    if constexpr (K == 0)
        return p.first;
    else
        return p.second;
}
template <size_t K, class A, class B>
BRASS_HD constexpr auto &
get(const pair<A, B> &p)
{
    if constexpr (K == 0)
        return p.first;
    else
        return p.second;
}
template <class... T>
BRASS_HD constexpr tuple<typename std::decay<T>::type...>
make_tuple(T &&...v)
{
    return tuple<typename std::decay<T>::type...>((T &&) v...);
}
template <class... T>
BRASS_HD constexpr tuple<T &...>
tie(T &...v)
{
    return tuple<T &...>(v...);
}
struct brass_ignore {
    template <class T> BRASS_HD const brass_ignore &operator=(const T &) const
    {
        return *this;
    }
};
static constexpr brass_ignore ignore{};

template <class... T, class... U>
BRASS_HD bool
operator==(const tuple<T...> &a, const tuple<U...> &b)
{
    return brass::same_parts(a, b, brass::count_to<sizeof...(T)>());
}
template <class... T, class... U>
BRASS_HD bool
operator<(const tuple<T...> &a, const tuple<U...> &b)
{
    return brass::less_parts(a, b, brass::count_to<sizeof...(T)>());
}
template <class A, class B>
BRASS_HD bool
operator==(const pair<A, B> &a, const pair<A, B> &b)
{
    return a.first == b.first && a.second == b.second;
}
template <class A, class B>
BRASS_HD bool
operator<(const pair<A, B> &a, const pair<A, B> &b)
{
    return a.first < b.first || (!(b.first < a.first) && a.second < b.second);
}
#define BR_ORDERED(params, type_a, type_b)                     \
    template <params>                                          \
    BRASS_HD bool operator!=(const type_a &a, const type_b &b) \
    {                                                          \
        return !(a == b);                                      \
    }                                                          \
    template <params>                                          \
    BRASS_HD bool operator>(const type_a &a, const type_b &b)  \
    {                                                          \
        return b < a;                                          \
    }                                                          \
    template <params>                                          \
    BRASS_HD bool operator<=(const type_a &a, const type_b &b) \
    {                                                          \
        return !(b < a);                                       \
    }                                                          \
    template <params>                                          \
    BRASS_HD bool operator>=(const type_a &a, const type_b &b) \
    {                                                          \
        return !(a < b);                                       \
    }
#define BR_COMMA ,
BR_ORDERED(class... T BR_COMMA class... U, tuple<T...>, tuple<U...>)
BR_ORDERED(class A BR_COMMA class B, pair<A BR_COMMA B>, pair<A BR_COMMA B>)
#undef BR_COMMA
#undef BR_ORDERED
template <class A, class B>
BRASS_HD void
swap(pair<A, B> &a, pair<A, B> &b)
{
    a.swap(b);
}
template <class... T>
BRASS_HD void
swap(tuple<T...> &a, tuple<T...> &b)
{
    a.swap(b);
}
} // namespace thrust

/* auto [a, b] = t; */
namespace std
{
template <class... T>
struct tuple_size<thrust::tuple<T...>>
    : thrust::tuple_size<thrust::tuple<T...>> {
};
template <size_t K, class... T>
struct tuple_element<K, thrust::tuple<T...>>
    : thrust::tuple_element<K, thrust::tuple<T...>> {
};
template <class A, class B>
struct tuple_size<thrust::pair<A, B>> : thrust::tuple_size<thrust::pair<A, B>> {
};
template <size_t K, class A, class B>
struct tuple_element<K, thrust::pair<A, B>>
    : thrust::tuple_element<K, thrust::pair<A, B>> {
};
} // namespace std

#include "../brass_pop.h"
#endif
