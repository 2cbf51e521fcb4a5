/* iterator_traits.h - where an iterator's items lie, and how a kernel walks them.
 *
 * bare<I> is what I becomes for a kernel: pointers instead of device_ptr, at every
 * depth, so that functors get T & and not a device_reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_ITERATOR_TRAITS
#define BRASS_THRUST_ITERATOR_TRAITS
#include "../../brass_push.h"

#include "../device_ptr.h"

namespace brass
{
enum place { anywhere, on_host, on_device };

template <class I, class = void> struct is_iterator : std::false_type {
};
template <class I>
struct is_iterator<
    I, typename first_of_two<
           void, typename std::iterator_traits<I>::iterator_category>::type>
    : std::true_type {
};
/* Of what is no iterator: anywhere. */
template <class I, class = void> struct bare {
    static const place where = is_iterator<I>::value ? on_host : anywhere;
    typedef I type;
    BRASS_HD static I of(const I &i) { return i; }
};
template <class T> struct bare<thrust::device_ptr<T>> {
    static const place where = on_device;
    typedef T *type;
    BRASS_HD static T *of(const thrust::device_ptr<T> &p) { return p.get(); }
};
template <class T> struct bare<thrust::universal_ptr<T>> {
    static const place where = on_device;
    typedef T *type;
    BRASS_HD static T *of(const thrust::universal_ptr<T> &p) { return p.get(); }
};
constexpr place
place_of()
{
    return anywhere;
}
template <class... P>
constexpr place
place_of(place a, P... rest)
{
    place b = place_of(rest...);

    return a < b ? b : a;
}
template <class I> using bare_t = typename bare<I>::type;
template <class I>
BRASS_HD bare_t<I>
raw_of(const I &i)
{
    return bare<I>::of(i);
}
template <class I>
using value_of = typename std::iterator_traits<I>::value_type;
/* What a kernel gets of *i. */
template <class I> using item_of = decltype(*std::declval<const bare_t<I> &>());
} // namespace brass

namespace thrust
{
template <class I> struct iterator_traits : std::iterator_traits<I> {
};
template <class I> struct iterator_value {
    typedef brass::value_of<I> type;
};
template <class I> struct iterator_reference {
    typedef typename std::iterator_traits<I>::reference type;
};
template <class I> struct iterator_pointer {
    typedef typename std::iterator_traits<I>::pointer type;
};
template <class I> struct iterator_difference {
    typedef typename std::iterator_traits<I>::difference_type type;
};
template <class I> struct iterator_traversal {
    typedef typename std::iterator_traits<I>::iterator_category type;
};
template <class I> struct iterator_system {
    typedef typename std::conditional<
        brass::bare<I>::where == brass::on_device, device_system_tag,
        typename std::conditional<brass::bare<I>::where == brass::on_host,
                                  host_system_tag, any_system_tag>::type>::type
        type;
};
template <class I> using iterator_value_t = typename iterator_value<I>::type;
template <class I>
using iterator_reference_t = typename iterator_reference<I>::type;
template <class I>
using iterator_difference_t = typename iterator_difference<I>::type;
template <class I> using iterator_system_t = typename iterator_system<I>::type;
struct use_default {
};
struct random_access_traversal_tag : std::random_access_iterator_tag {
};
template <class I>
BRASS_HD typename std::iterator_traits<I>::difference_type
distance(I a, I b)
{
    return b - a;
}
template <class I, class N>
BRASS_HD void
advance(I &i, N n)
{
    i += n;
}
template <class I>
BRASS_HD I
next(I i, typename std::iterator_traits<I>::difference_type n = 1)
{
    return i + n;
}
template <class I>
BRASS_HD I
prev(I i, typename std::iterator_traits<I>::difference_type n = 1)
{
    return i - n;
}
} // namespace thrust

#include "../../brass_pop.h"
#endif
