/* dispatch_two_calls.cuh - a call without memory says how much it needs, the
 * next one works.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_DISPATCH_TWO_CALLS
#define BRASS_CUB_DISPATCH_TWO_CALLS
#include "../../brass_push.h"

#include "../../brass_grid.h"
#include "../thread/thread_operators.cuh"

namespace brass
{
/* f(arena) is called for the size, and again with memory that is large enough. */
template <class F>
cudaError_t
two_calls(void *temp, size_t &bytes, F f)
{
    arena counting(0), a(temp);
    cudaError_t e = f(counting);

    if (e != cudaSuccess)
        return e;
    if (!temp) {
        bytes = counting.used + 256;
        return cudaSuccess;
    }
    if (bytes < counting.used)
        return cudaErrorInvalidValue;
    return f(a);
}
/* What sums of an input are made in, when they are written to O. */
template <class I, class O, bool Whole> struct sum_of {
    typedef made_of<cub::Sum, I> type;
};
template <class I, class O> struct sum_of<I, O, true> {
    typedef typename std::common_type<I, O>::type type;
};
template <class I, class O> struct value_or {
    typedef O type;
};
template <class I> struct value_or<I, void> {
    typedef I type;
};
template <class I, class O>
using out_value =
    typename value_or<typename iter<I>::value, typename iter<O>::value>::type;
template <class I, class O>
using sum_value =
    typename sum_of<typename iter<I>::value, out_value<I, O>,
                    std::is_integral<typename iter<I>::value>::value &&
                        std::is_integral<out_value<I, O>>::value>::type;
} // namespace brass

#include "../../brass_pop.h"
#endif
