/* thread_operators.cuh - CUB's functors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_OPERATORS
#define BRASS_CUB_THREAD_OPERATORS
#include "../../brass_push.h"

#include "../util_type.cuh"

namespace cub
{
struct Equality {
    template <class T, class U>
    BRASS_HD bool operator()(const T &a, const U &b) const
    {
        return a == b;
    }
};
struct Inequality {
    template <class T, class U>
    BRASS_HD bool operator()(const T &a, const U &b) const
    {
        return a != b;
    }
};
template <class F> struct InequalityWrapper {
    F op;
    BRASS_HD InequalityWrapper(F f) : op(f) {}
    template <class T, class U> BRASS_HD bool operator()(T a, U b)
    {
        return !op(a, b);
    }
};
/* Of two of a type, that type, however narrow. */
#define BR_ARITHMETIC(name, op)                                                \
    struct name {                                                              \
        template <class T> BRASS_HD T operator()(const T &a, const T &b) const \
        {                                                                      \
            return static_cast<T>(a op b);                                     \
        }                                                                      \
        template <class T, class U>                                            \
        BRASS_HD auto operator()(const T &a, const U &b) const                 \
            -> decltype(a op b)                                                \
        {                                                                      \
            return a op b;                                                     \
        }                                                                      \
    };
BR_ARITHMETIC(Sum, +)
BR_ARITHMETIC(Difference, -)
BR_ARITHMETIC(Division, /)
#undef BR_ARITHMETIC
#define BR_EXTREME(name, take_b)                                               \
    struct name {                                                              \
        template <class T> BRASS_HD T operator()(const T &a, const T &b) const \
        {                                                                      \
            return take_b ? b : a;                                             \
        }                                                                      \
        template <class T, class U>                                            \
        BRASS_HD typename std::common_type<T, U>::type                         \
        operator()(const T &a, const U &b) const                               \
        {                                                                      \
            return take_b ? b : a;                                             \
        }                                                                      \
    };
BR_EXTREME(Max, a < b)
BR_EXTREME(Min, b < a)
#undef BR_EXTREME
/* Of equal values, the first. */
struct ArgMax {
    template <class T, class K>
    BRASS_HD KeyValuePair<K, T> operator()(const KeyValuePair<K, T> &a,
                                           const KeyValuePair<K, T> &b) const
    {
        return a.value < b.value || (a.value == b.value && b.key < a.key) ? b
                                                                          : a;
    }
};
struct ArgMin {
    template <class T, class K>
    BRASS_HD KeyValuePair<K, T> operator()(const KeyValuePair<K, T> &a,
                                           const KeyValuePair<K, T> &b) const
    {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b
                                                                          : a;
    }
};
template <class B> struct CastOp {
    template <class A> BRASS_HD B operator()(const A &a) const { return (B)a; }
};
template <class F> struct SwizzleScanOp {
    F op;
    BRASS_HD SwizzleScanOp(F f) : op(f) {}
    template <class T> BRASS_HD T operator()(const T &a, const T &b)
    {
        return op(T(b), T(a));
    }
};
/* Pairs of a count of segments and a value: a new segment begins anew. */
template <class F> struct ReduceBySegmentOp {
    F op;
    ReduceBySegmentOp() = default;
    BRASS_HD ReduceBySegmentOp(F f) : op(f) {}
    template <class P> BRASS_HD P operator()(const P &a, const P &b)
    {
        P r;

        r.key = a.key + b.key;
        r.value = b.key ? b.value : op(a.value, b.value);
        return r;
    }
};
template <class F> struct ReduceByKeyOp {
    F op;
    ReduceByKeyOp() = default;
    BRASS_HD ReduceByKeyOp(F f) : op(f) {}
    template <class P> BRASS_HD P operator()(const P &a, const P &b)
    {
        P r = b;

        if (a.key == b.key)
            r.value = op(a.value, b.value);
        return r;
    }
};
struct Mod {
    template <class T> BRASS_HD T operator()(const T &a, const T &b) const
    {
        return a % b;
    }
};
} // namespace cub

#include "../../brass_pop.h"
#endif
