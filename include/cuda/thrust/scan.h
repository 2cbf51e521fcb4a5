/* scan.h - sums of what came before, of all or of runs of equal keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SCAN
#define BRASS_THRUST_SCAN
#include "../brass_push.h"

#include "transform.h"

namespace brass
{
template <class T, class X, class I, class O, class F>
BRASS_HD O
scan_to(X &x, I a, I b, O to, F op, scan_how<T> how)
{
    x.template scan<T>(raw_of(a), raw_of(to), (size_t)(b - a), op, how);
    return to + (b - a);
}
struct inclusive_scan_f {
    template <class X, class I, class O, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, F op) const
    {
        typedef value_of<I> T;

        return scan_to<T>(x, a, b, to, op, {true, false, T()});
    }
    template <class X, class I, class O, class T, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, T init, F op) const
    {
        return scan_to<T>(x, a, b, to, op, {true, true, init});
    }
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return (*this)(x, a, b, to, thrust::plus<>());
    }
};
struct exclusive_scan_f {
    template <class X, class I, class O, class T, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, T init, F op) const
    {
        return scan_to<T>(x, a, b, to, op, {false, true, init});
    }
    template <class X, class I, class O, class T>
    BRASS_HD O operator()(X &x, I a, I b, O to, T init) const
    {
        return (*this)(x, a, b, to, init, thrust::plus<>());
    }
    template <class X, class I, class O>
    BRASS_HD O operator()(X &x, I a, I b, O to) const
    {
        return (*this)(x, a, b, to, value_of<I>());
    }
};
struct transform_inclusive_scan_f {
    template <class X, class I, class O, class G, class... F>
    BRASS_HD O operator()(X &x, I a, I b, O to, G g, F... op) const
    {
        return inclusive_scan_f()(x, thrust::make_transform_iterator(a, g),
                                  thrust::make_transform_iterator(b, g), to,
                                  op...);
    }
};
struct transform_exclusive_scan_f {
    template <class X, class I, class O, class G, class T, class F>
    BRASS_HD O operator()(X &x, I a, I b, O to, G g, T init, F op) const
    {
        return exclusive_scan_f()(x, thrust::make_transform_iterator(a, g),
                                  thrust::make_transform_iterator(b, g), to,
                                  init, op);
    }
};
/* Whether a run begins at i. */
template <class K, class P> struct run_head {
    K keys;
    P same;
    BRASS_HD bool operator()(size_t i) const
    {
        P f = same;

        return i == 0 || !f(keys[i - 1], keys[i]);
    }
};
template <class X, class K, class I, class O, class P, class F, class T>
BRASS_HD O
scan_keys(X &x, K a, K b, I in, O to, P same, F op, scan_how<T> how)
{
    run_head<bare_t<K>, P> head = {raw_of(a), same};

    x.template scan_runs<T>(head, raw_of(in), raw_of(to), (size_t)(b - a), op,
                            how);
    return to + (b - a);
}
struct inclusive_scan_by_key_f {
    template <class X, class K, class I, class O, class P, class F>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to, P same, F op) const
    {
        typedef value_of<I> T;

        return scan_keys(x, a, b, in, to, same, op,
                         scan_how<T>{true, false, T()});
    }
    template <class X, class K, class I, class O, class P>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to, P same) const
    {
        return (*this)(x, a, b, in, to, same, thrust::plus<>());
    }
    template <class X, class K, class I, class O>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to) const
    {
        return (*this)(x, a, b, in, to, thrust::equal_to<>());
    }
};
struct exclusive_scan_by_key_f {
    template <class X, class K, class I, class O, class T, class P, class F>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to, T init, P same,
                          F op) const
    {
        return scan_keys(x, a, b, in, to, same, op,
                         scan_how<T>{false, true, init});
    }
    template <class X, class K, class I, class O, class T, class P>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to, T init, P same) const
    {
        return (*this)(x, a, b, in, to, init, same, thrust::plus<>());
    }
    template <class X, class K, class I, class O, class T>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to, T init) const
    {
        return (*this)(x, a, b, in, to, init, thrust::equal_to<>());
    }
    template <class X, class K, class I, class O>
    BRASS_HD O operator()(X &x, K a, K b, I in, O to) const
    {
        return (*this)(x, a, b, in, to, value_of<I>());
    }
};
/* A run's sum is what the scan has at its end, where the next one begins. */
struct reduce_by_key_f {
    template <class X, class K, class I, class O, class V, class P, class F>
    BRASS_HD thrust::pair<O, V> operator()(X &x, K a, K b, I values, O keys_to,
                                           V to, P same, F op) const
    {
        typedef value_of<I> T;
        size_t n = (size_t)(b - a), runs;
        auto in = raw_of(a);
        auto vin = raw_of(values);
        auto kout = raw_of(keys_to);
        auto out = raw_of(to);
        run_head<bare_t<K>, P> head = {in, same};

        if (n == 0)
            return thrust::pair<O, V>(keys_to, to);
        if constexpr (X::parallel) {
            typename X::template kept<T> sums(&x, n);
            T *v = sums.it;

            x.scan_runs(head, vin, v, n, op, scan_how<T>{true, false, T()});
            runs = x.select(
                n, head,
                [=] __host__ __device__(size_t i, size_t at) mutable {
                    kout[at] = in[i];
                    if (at)
                        out[at - 1] = v[i - 1];
                },
                nothing());
            x.each(
                1, BR_EACH(i) { out[runs - 1 + i] = v[n - 1]; });
        } else {
            T v = vin[0];

            kout[0] = in[0];
            runs = 1;
            for (size_t i = 1; i < n; i++)
                if (head(i)) {
                    out[runs - 1] = v;
                    kout[runs++] = in[i];
                    v = vin[i];
                } else {
                    v = op(v, vin[i]);
                }
            out[runs - 1] = v;
        }
        return thrust::pair<O, V>(keys_to + runs, to + runs);
    }
    template <class X, class K, class I, class O, class V, class P>
    BRASS_HD thrust::pair<O, V> operator()(X &x, K a, K b, I values, O keys_to,
                                           V to, P same) const
    {
        return (*this)(x, a, b, values, keys_to, to, same, thrust::plus<>());
    }
    template <class X, class K, class I, class O, class V>
    BRASS_HD thrust::pair<O, V> operator()(X &x, K a, K b, I values, O keys_to,
                                           V to) const
    {
        return (*this)(x, a, b, values, keys_to, to, thrust::equal_to<>());
    }
};
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(inclusive_scan)
BR_THRUST(exclusive_scan)
BR_THRUST(transform_inclusive_scan)
BR_THRUST(transform_exclusive_scan)
BR_THRUST(inclusive_scan_by_key)
BR_THRUST(exclusive_scan_by_key)
BR_THRUST(reduce_by_key)
/* clang-format on */
} // namespace thrust

#include "../brass_pop.h"
#endif
