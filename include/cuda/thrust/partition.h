/* partition.h - some of the items: those that, all but those, the first of equals.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_PARTITION
#define BRASS_THRUST_PARTITION
#include "../brass_push.h"

#include "reduce.h"

namespace brass
{
/* Items i with is(i) to `to`. Where kernels write over what they read, from a copy
 * of it: `held` is what x.keep gave. */
template <class X, class I, class O, class P>
BRASS_HD O
take_if(X &x, I in, size_t n, O to, P is)
{
    auto out = raw_of(to);

    return to + x.select(
                    n, is,
                    [=] __host__ __device__(size_t i, size_t at) mutable {
                        out[at] = in[i];
                    },
                    nothing());
}
/* is of an item of a stencil; or not is. */
template <class S, class P> struct by_item {
    S s;
    P is;
    bool want;
    BRASS_HD bool operator()(size_t i) const
    {
        P f = is;

        return (bool)f(s[i]) == want;
    }
};
/* Those of which it is as wanted. */
template <bool Want> struct copy_where_f {
    template <class X, class I, class O, class P>
    BRASS_HD O operator()(X &x, I a, I b, O to, P is) const
    {
        return (*this)(x, a, b, a, to, is);
    }
    template <class X, class I, class S, class O, class P>
    BRASS_HD O operator()(X &x, I a, I b, S s, O to, P is) const
    {
        return take_if(x, raw_of(a), (size_t)(b - a), to,
                       by_item<bare_t<S>, P>{raw_of(s), is, Want});
    }
};
typedef copy_where_f<true> copy_if_f;
typedef copy_where_f<false> remove_copy_if_f;
struct remove_copy_f {
    template <class X, class I, class O, class T>
    BRASS_HD O operator()(X &x, I a, I b, O to, T v) const
    {
        return remove_copy_if_f()(x, a, b, to, same_as<T>{v});
    }
};
struct remove_if_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P is) const
    {
        size_t n = (size_t)(b - a);
        auto held = x.keep(raw_of(a), n);

        return take_if(x, held.it, n, a,
                       by_item<decltype(held.it), P>{held.it, is, false});
    }
    template <class X, class I, class S, class P>
    BRASS_HD I operator()(X &x, I a, I b, S s, P is) const
    {
        size_t n = (size_t)(b - a);
        auto held = x.keep(raw_of(a), n);

        return take_if(x, held.it, n, a,
                       by_item<bare_t<S>, P>{raw_of(s), is, false});
    }
};
struct remove_f {
    template <class X, class I, class T>
    BRASS_HD I operator()(X &x, I a, I b, T v) const
    {
        return remove_if_f()(x, a, b, same_as<T>{v});
    }
};
struct unique_copy_f {
    template <class X, class I, class O, class P>
    BRASS_HD O operator()(X &x, I a, I b, O to, P same) const
    {
        return take_if(x, raw_of(a), (size_t)(b - a), to,
                       run_head<bare_t<I>, P>{raw_of(a), same});
    }
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return (*this)(x, a, b, to, thrust::equal_to<>());
    }
};
struct unique_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P same) const
    {
        size_t n = (size_t)(b - a);
        auto held = x.keep(raw_of(a), n);

        return take_if(x, held.it, n, a,
                       run_head<decltype(held.it), P>{held.it, same});
    }
    template <class X, class I> BRASS_HD I operator()(X &x, I a, I b) const
    {
        return (*this)(x, a, b, thrust::equal_to<>());
    }
};
struct unique_count_f {
    template <class X, class I, class P>
    BRASS_HD typename iter<I>::diff operator()(X &x, I a, I b, P same) const
    {
        run_head<bare_t<I>, P> head = {raw_of(a), same};

        return (typename iter<I>::diff)how_many(x, (size_t)(b - a), head);
    }
    template <class X, class I>
    BRASS_HD typename iter<I>::diff operator()(X &x, I a, I b) const
    {
        return (*this)(x, a, b, thrust::equal_to<>());
    }
};
struct unique_by_key_copy_f {
    template <class X, class K, class V, class KO, class VO, class P>
    BRASS_HD thrust::pair<KO, VO> operator()(X &x, K a, K b, V v, KO ko, VO vo,
                                             P same) const
    {
        auto pairs = thrust::make_zip_iterator(thrust::tuple<K, V>(a, v));
        auto to = thrust::make_zip_iterator(thrust::tuple<KO, VO>(ko, vo));
        auto n = take_if(x, raw_of(pairs), (size_t)(b - a), to,
                         run_head<bare_t<K>, P>{raw_of(a), same}) -
                 to;

        return thrust::pair<KO, VO>(ko + n, vo + n);
    }
    template <class X, class K, class V, class KO, class VO>
    BRASS_HD thrust::pair<KO, VO> operator()(X &x, K a, K b, V v, KO ko,
                                             VO vo) const
    {
        return (*this)(x, a, b, v, ko, vo, thrust::equal_to<>());
    }
};
struct unique_by_key_f {
    template <class X, class K, class V, class P>
    BRASS_HD thrust::pair<K, V> operator()(X &x, K a, K b, V v, P same) const
    {
        size_t n = (size_t)(b - a);
        auto k = x.keep(raw_of(a), n);
        auto with = x.keep(raw_of(v), n);
        auto m = unique_by_key_copy_f()(x, k.it, k.it + n, with.it, a, v, same)
                     .first -
                 a;

        return thrust::pair<K, V>(a + m, v + m);
    }
    template <class X, class K, class V>
    BRASS_HD thrust::pair<K, V> operator()(X &x, K a, K b, V v) const
    {
        return (*this)(x, a, b, v, thrust::equal_to<>());
    }
};

/* ---- partitions: all are stable ------------------------------------------ */

struct stable_partition_copy_f {
    template <class X, class I, class S, class T, class R, class P>
    BRASS_HD thrust::pair<T, R> operator()(X &x, I a, I b, S s, T yes, R no,
                                           P is) const
    {
        size_t n = (size_t)(b - a);
        auto in = raw_of(a);
        auto first = raw_of(yes);
        auto second = raw_of(no);
        size_t k = x.select(
            n, by_item<bare_t<S>, P>{raw_of(s), is, true},
            [=] __host__ __device__(size_t i, size_t at) mutable {
                first[at] = in[i];
            },
            [=] __host__ __device__(size_t i, size_t at) mutable {
                second[at] = in[i];
            });

        return thrust::pair<T, R>(yes + k, no + (n - k));
    }
    template <class X, class I, class T, class R, class P>
    BRASS_HD thrust::pair<T, R> operator()(X &x, I a, I b, T yes, R no,
                                           P is) const
    {
        return (*this)(x, a, b, a, yes, no, is);
    }
};
/* Yes before no, which has no other order. */
template <class P> struct yes_first {
    P is;
    template <class T> BRASS_HD bool operator()(const T &a, const T &b) const
    {
        P f = is;

        return (bool)f(a) && !(bool)f(b);
    }
};
struct stable_partition_f {
    template <class X, class I, class P>
    BRASS_HD I operator()(X &x, I a, I b, P is) const
    {
        size_t n = (size_t)(b - a);
        auto in = raw_of(a);
        size_t k = how_many(x, n, by_item<bare_t<I>, P>{in, is, true});

        x.sort(in, no_values(), n, yes_first<P>{is});
        return a + k;
    }
    template <class X, class I, class S, class P>
    BRASS_HD I operator()(X &x, I a, I b, S s, P is) const
    {
        size_t n = (size_t)(b - a);
        auto by = x.keep(raw_of(s), n);
        size_t k = how_many(x, n, by_item<decltype(by.it), P>{by.it, is, true});

        static_assert(X::parallel, "a stencil would be sorted too: use "
                                   "stable_partition_copy with it");
        x.sort(by.it, raw_of(a), n, yes_first<P>{is});
        return a + k;
    }
};
typedef stable_partition_f partition_f;
typedef stable_partition_copy_f partition_copy_f;
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(copy_if)
BR_THRUST(remove)
BR_THRUST(remove_if)
BR_THRUST(remove_copy)
BR_THRUST(remove_copy_if)
BR_THRUST(unique)
BR_THRUST(unique_copy)
BR_THRUST(unique_count)
BR_THRUST(unique_by_key)
BR_THRUST(unique_by_key_copy)
BR_THRUST(partition)
BR_THRUST(partition_copy)
BR_THRUST(stable_partition)
BR_THRUST(stable_partition_copy)
/* clang-format on */
} // namespace thrust

#include "../brass_pop.h"
#endif
