/* shuffle.h - items in the order of random keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SHUFFLE
#define BRASS_THRUST_SHUFFLE
#include "../brass_push.h"

#include "random.h"
#include "sort.h"

namespace brass
{
/* The key of item i: SplitMix64 of a seed that the engine gives. */
struct shuffle_key {
    uint64_t seed;
    BRASS_HD uint64_t operator()(uint64_t i) const
    {
        uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
};
struct shuffle_f {
    template <class X, class I, class E>
    BRASS_HD void operator()(X &x, I a, I b, E &&e) const
    {
        uint64_t high = (uint64_t)e() << 32;
        shuffle_key key = {high | (uint64_t)e()};
        size_t n = (size_t)(b - a);
        auto keys = thrust::make_transform_iterator(
            thrust::counting_iterator<uint64_t>(0), key);

        if constexpr (X::parallel) {
            auto held = x.keep(keys, n);

            x.sort(held.it, raw_of(a), n, thrust::less<uint64_t>());
        } else {
            auto in = raw_of(a);

            for (size_t i = n; i > 1; i--)
                swap_items(in, i - 1, (size_t)(key(i) % i));
        }
    }
};
struct shuffle_copy_f {
    template <class X, class I, class O, class E>
    BRASS_HD void operator()(X &x, I a, I b, O to, E &&e) const
    {
        shuffle_f()(x, to, copy_f()(x, a, b, to), e);
    }
};
} // namespace brass

namespace thrust
{
/* clang-format off */
BR_THRUST(shuffle)
BR_THRUST(shuffle_copy)
/* clang-format on */
} // namespace thrust

#include "../brass_pop.h"
#endif
