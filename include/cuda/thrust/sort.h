/* sort.h - orders: all sorts are stable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SORT
#define BRASS_THRUST_SORT
#include "../brass_push.h"

#include "reduce.h"

namespace brass
{
struct sort_f {
    template <class X, class I, class F>
    BRASS_HD void operator()(X &x, I a, I b, F less) const
    {
        x.sort(raw_of(a), no_values(), (size_t)(b - a), less);
    }
    template <class X, class I> BRASS_HD void operator()(X &x, I a, I b) const
    {
        (*this)(x, a, b, thrust::less<value_of<I>>());
    }
};
struct sort_by_key_f {
    template <class X, class K, class V, class F>
    BRASS_HD void operator()(X &x, K a, K b, V v, F less) const
    {
        x.sort(raw_of(a), raw_of(v), (size_t)(b - a), less);
    }
    template <class X, class K, class V>
    BRASS_HD void operator()(X &x, K a, K b, V v) const
    {
        (*this)(x, a, b, v, thrust::less<value_of<K>>());
    }
};
typedef sort_f stable_sort_f;
typedef sort_by_key_f stable_sort_by_key_f;
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(sort)
BR_THRUST(sort_by_key)
BR_THRUST(stable_sort)
BR_THRUST(stable_sort_by_key)
/* clang-format on */
} // namespace thrust

#include "../brass_pop.h"
#endif
