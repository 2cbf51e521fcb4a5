/* functional.h - functors, and expressions of _1, _2 that become some.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_FUNCTIONAL
#define BRASS_THRUST_FUNCTIONAL
#include "../brass_push.h"

#include "../cuda/functional"
#include "tuple.h"

#include <functional>

namespace thrust
{
template <class A, class R> struct unary_function {
    typedef A argument_type;
    typedef R result_type;
};
template <class A, class B, class R> struct binary_function {
    typedef A first_argument_type;
    typedef B second_argument_type;
    typedef R result_type;
};
using ::cuda::maximum;
using ::cuda::minimum;

/* Of two T's, or of what comes; result_of T is T or bool. */
#define BR_BINARY(name, result_of, expression)                                \
    template <class T = void> struct name {                                   \
        typedef T first_argument_type;                                        \
        typedef T second_argument_type;                                       \
        typedef result_of result_type;                                        \
        BRASS_HD constexpr result_of operator()(const T &a, const T &b) const \
        {                                                                     \
            return expression;                                                \
        }                                                                     \
    };                                                                        \
    template <> struct name<void> {                                           \
        template <class A, class B>                                           \
        BRASS_HD constexpr auto operator()(const A &a, const B &b) const      \
        {                                                                     \
            return expression;                                                \
        }                                                                     \
    };
#define BR_UNARY(name, result_of, expression)                     \
    template <class T = void> struct name {                       \
        typedef T argument_type;                                  \
        typedef result_of result_type;                            \
        BRASS_HD constexpr result_of operator()(const T &a) const \
        {                                                         \
            return expression;                                    \
        }                                                         \
    };                                                            \
    template <> struct name<void> {                               \
        template <class A>                                        \
        BRASS_HD constexpr auto operator()(const A &a) const      \
        {                                                         \
            return expression;                                    \
        }                                                         \
    };
/* clang-format off */
BR_BINARY(plus, T, a + b)
BR_BINARY(minus, T, a - b)
BR_BINARY(multiplies, T, a * b)
BR_BINARY(divides, T, a / b)
BR_BINARY(modulus, T, a % b)
BR_BINARY(bit_and, T, a & b)
BR_BINARY(bit_or, T, a | b)
BR_BINARY(bit_xor, T, a ^ b)
BR_BINARY(equal_to, bool, a == b)
BR_BINARY(not_equal_to, bool, a != b)
BR_BINARY(less, bool, a < b)
BR_BINARY(greater, bool, b < a)
BR_BINARY(less_equal, bool, !(b < a))
BR_BINARY(greater_equal, bool, !(a < b))
BR_BINARY(logical_and, bool, a && b)
BR_BINARY(logical_or, bool, a || b)
BR_UNARY(negate, T, -a)
BR_UNARY(square, T, a * a)
BR_UNARY(logical_not, bool, !a)
/* clang-format on */
#undef BR_BINARY
#undef BR_UNARY
template <class T = void> struct identity {
    typedef T argument_type;
    typedef T result_type;
    BRASS_HD constexpr const T &operator()(const T &a) const { return a; }
};
template <> struct identity<void> {
    template <class T> BRASS_HD constexpr T operator()(const T &a) const
    {
        return a;
    }
};
template <class A = void, class B = void> struct project1st {
    template <class T, class U>
    BRASS_HD constexpr T operator()(const T &a, const U &) const
    {
        return a;
    }
};
template <class A = void, class B = void> struct project2nd {
    template <class T, class U>
    BRASS_HD constexpr U operator()(const T &, const U &b) const
    {
        return b;
    }
};
template <class F> struct unary_negate {
    F f;
    BRASS_HD explicit unary_negate(F g) : f(g) {}
    template <class... T> BRASS_HD bool operator()(const T &...v)
    {
        return !f(v...);
    }
};
template <class F>
BRASS_HD unary_negate<F>
not1(const F &f)
{
    return unary_negate<F>(f);
}
template <class F>
BRASS_HD unary_negate<F>
not2(const F &f)
{
    return unary_negate<F>(f);
}
template <class F>
BRASS_HD unary_negate<F>
not_fn(const F &f)
{
    return unary_negate<F>(f);
}
/* f of a tuple's parts. */
template <class F> struct zip_function {
    F f;
    BRASS_HD zip_function(F g) : f(g) {}
    template <class T> BRASS_HD decltype(auto) operator()(T &&t) const
    {
        typedef typename std::decay<T>::type tuple;

        return of(t, brass::count_to<tuple_size<tuple>::value>());
    }

  private:
    template <class T, size_t... K>
    BRASS_HD decltype(auto) of(T &t, std::index_sequence<K...>) const
    {
        F g = f;

        return g(thrust::get<K>(t)...);
    }
};
template <class F>
BRASS_HD zip_function<F>
make_zip_function(F f)
{
    return zip_function<F>(f);
}
} // namespace thrust

/* An expression is called with the values of _1, _2 ... and asks its sides. */
namespace brass
{
struct expression {
};
template <size_t K> struct argument : expression {
    template <class... T> BRASS_HD auto operator()(const T &...v) const
    {
        return of_part<K>(thrust::tuple<const T &...>(v...));
    }
};
template <class T> struct literal : expression {
    T v;
    BRASS_HD literal(const T &x) : v(x) {}
    template <class... U> BRASS_HD T operator()(const U &...) const
    {
        return v;
    }
};
template <class F, class A, class B> struct both : expression {
    A a;
    B b;
    BRASS_HD both(const A &x, const B &y) : a(x), b(y) {}
    template <class... T> BRASS_HD auto operator()(const T &...v) const
    {
        return F()(a(v...), b(v...));
    }
};
template <class F, class A> struct alone : expression {
    A a;
    BRASS_HD alone(const A &x) : a(x) {}
    template <class... T> BRASS_HD auto operator()(const T &...v) const
    {
        return F()(a(v...));
    }
};
template <class T> using is_expression = std::is_base_of<expression, T>;
template <class T>
using side =
    typename std::conditional<is_expression<T>::value, T, literal<T>>::type;
template <class A, class B>
using if_expression =
    typename std::enable_if<is_expression<A>::value || is_expression<B>::value,
                            int>::type;
#define BR_SIGN(sign, name)                                                   \
    template <class A, class B, if_expression<A, B> = 0>                      \
    BRASS_HD both<thrust::name<>, side<A>, side<B>> operator sign(const A &a, \
                                                                  const B &b) \
    {                                                                         \
        return {a, b};                                                        \
    }
/* clang-format off */
BR_SIGN(+, plus)
BR_SIGN(-, minus)
BR_SIGN(*, multiplies)
BR_SIGN(/, divides)
BR_SIGN(%, modulus)
BR_SIGN(&, bit_and)
BR_SIGN(|, bit_or)
BR_SIGN(^, bit_xor)
BR_SIGN(==, equal_to)
BR_SIGN(!=, not_equal_to)
BR_SIGN(<, less)
BR_SIGN(>, greater)
BR_SIGN(<=, less_equal)
BR_SIGN(>=, greater_equal)
BR_SIGN(&&, logical_and)
BR_SIGN(||, logical_or)
/* clang-format on */
#undef BR_SIGN
template <class A, if_expression<A, A> = 0>
BRASS_HD alone<thrust::negate<>, A>
operator-(const A &a)
{
    return {a};
}
template <class A, if_expression<A, A> = 0>
BRASS_HD alone<thrust::logical_not<>, A>
operator!(const A &a)
{
    return {a};
}
} // namespace brass
namespace thrust
{
namespace placeholders
{
static constexpr brass::argument<0> _1{};
static constexpr brass::argument<1> _2{};
static constexpr brass::argument<2> _3{};
static constexpr brass::argument<3> _4{};
} // namespace placeholders
} // namespace thrust

#include "../brass_pop.h"
#endif
