/* counting_input_iterator.cuh - CUB's iterators, whose items come from a rule.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_COUNTING_INPUT_ITERATOR
#define BRASS_CUB_COUNTING_INPUT_ITERATOR
#include "../../brass_push.h"

#include "../thread/thread_load.cuh"

namespace brass
{
/* All moves of a random iterator S over T from one: S::at is what it moves.
 * Reading is S's own. */
template <class S, class T, class R, class D, class At> struct moving {
    typedef S self_type;
    typedef D difference_type;
    typedef T value_type;
    typedef T *pointer;
    typedef R reference;
    typedef std::random_access_iterator_tag iterator_category;
    At at;

    moving() = default;
    BRASS_HD explicit moving(At a) : at(a) {}
    BRASS_HD S &self() { return *static_cast<S *>(this); }
    BRASS_HD const S &self() const { return *static_cast<const S *>(this); }
    BRASS_HD S &operator++()
    {
        at = at + (D)1;
        return self();
    }
    BRASS_HD S operator++(int)
    {
        S was = self();

        at = at + (D)1;
        return was;
    }
    BRASS_HD S &operator--()
    {
        at = at - (D)1;
        return self();
    }
    BRASS_HD S operator--(int)
    {
        S was = self();

        at = at - (D)1;
        return was;
    }
    template <class N> BRASS_HD S operator+(N n) const
    {
        S r = self();

        r.at = at + (D)n;
        return r;
    }
    template <class N> BRASS_HD S &operator+=(N n)
    {
        at = at + (D)n;
        return self();
    }
    template <class N> BRASS_HD S &operator-=(N n)
    {
        at = at - (D)n;
        return self();
    }
    /* Back by a number, or how far from another. */
    template <class N>
    BRASS_HD typename std::enable_if<std::is_integral<N>::value, S>::type
    operator-(N n) const
    {
        S r = self();

        r.at = at - (D)n;
        return r;
    }
    BRASS_HD D operator-(const S &b) const { return (D)(at - b.at); }
    template <class N> BRASS_HD R operator[](N n) const
    {
        return *(self() + n);
    }
    BRASS_HD bool operator==(const S &b) const { return at == b.at; }
    BRASS_HD bool operator!=(const S &b) const { return !(at == b.at); }
    BRASS_HD bool operator<(const S &b) const { return at < b.at; }
    BRASS_HD bool operator>(const S &b) const { return b.at < at; }
    BRASS_HD bool operator<=(const S &b) const { return !(b.at < at); }
    BRASS_HD bool operator>=(const S &b) const { return !(at < b.at); }
    friend BRASS_HD S operator+(D n, const S &b) { return b + n; }
};
} // namespace brass

namespace cub
{
template <class T, class D = ptrdiff_t>
struct CountingInputIterator
    : brass::moving<CountingInputIterator<T, D>, T, T, D, T> {
    typedef brass::moving<CountingInputIterator, T, T, D, T> moves;
    BRASS_HD CountingInputIterator(const T &first) : moves(first) {}
    BRASS_HD T operator*() const { return this->at; }
};
template <class T, class D = ptrdiff_t>
struct ConstantInputIterator
    : brass::moving<ConstantInputIterator<T, D>, T, T, D, D> {
    typedef brass::moving<ConstantInputIterator, T, T, D, D> moves;
    T val;
    BRASS_HD ConstantInputIterator(T v, D first = 0) : moves(first), val(v) {}
    BRASS_HD T operator*() const { return val; }
};
template <class T, class F, class I, class D = ptrdiff_t>
struct TransformInputIterator
    : brass::moving<TransformInputIterator<T, F, I, D>, T, T, D, I> {
    typedef brass::moving<TransformInputIterator, T, T, D, I> moves;
    F op;
    BRASS_HD TransformInputIterator(I in, F f) : moves(in), op(f) {}
    BRASS_ME T operator*() const
    {
        F f = op;

        return f(*this->at);
    }
};
template <CacheLoadModifier How, class T, class D = ptrdiff_t>
struct CacheModifiedInputIterator
    : brass::moving<CacheModifiedInputIterator<How, T, D>, T, T, D, T *> {
    typedef brass::moving<CacheModifiedInputIterator, T, T, D, T *> moves;
    template <class U>
    BRASS_HD CacheModifiedInputIterator(U *p) : moves(const_cast<T *>(p))
    {
    }
    BRASS_ME T operator*() const { return ThreadLoad<How>(this->at); }
};
template <CacheStoreModifier How, class T, class D = ptrdiff_t>
struct CacheModifiedOutputIterator
    : brass::moving<CacheModifiedOutputIterator<How, T, D>, T, T &, D, T *> {
    typedef brass::moving<CacheModifiedOutputIterator, T, T &, D, T *> moves;
    template <class U> BRASS_HD CacheModifiedOutputIterator(U *p) : moves(p) {}
    BRASS_ME T &operator*() const { return *this->at; }
};
/* Takes what it is given, and forgets it. */
template <class D = ptrdiff_t>
struct DiscardOutputIterator
    : brass::moving<DiscardOutputIterator<D>, void,
                    const DiscardOutputIterator<D> &, D, D> {
    typedef brass::moving<DiscardOutputIterator, void,
                          const DiscardOutputIterator &, D, D>
        moves;
    BRASS_HD DiscardOutputIterator(D first = 0) : moves(first) {}
    BRASS_HD const DiscardOutputIterator &operator*() const { return *this; }
    template <class N> BRASS_HD const DiscardOutputIterator &operator[](N) const
    {
        return *this;
    }
    template <class T> BRASS_HD void operator=(const T &) const {}
};
/* Items with their places. */
template <class I, class D = ptrdiff_t, class V = value_t<I>>
struct ArgIndexInputIterator
    : brass::moving<ArgIndexInputIterator<I, D, V>, KeyValuePair<D, V>,
                    KeyValuePair<D, V>, D, D> {
    typedef brass::moving<ArgIndexInputIterator, KeyValuePair<D, V>,
                          KeyValuePair<D, V>, D, D>
        moves;
    I in;
    BRASS_HD ArgIndexInputIterator(I i, D first = 0) : moves(first), in(i) {}
    BRASS_ME KeyValuePair<D, V> operator*() const
    {
        return KeyValuePair<D, V>(this->at, (V)in[this->at]);
    }
};
} // namespace cub

namespace brass
{
/* The pair that ArgMax writes: the output's, or of int. */
template <class O, class T> struct arg_pair {
    template <class P>
    static auto of(int) -> typename first_of_two<P, typename P::Key>::type;
    template <class P> static cub::KeyValuePair<int, T> of(long);
    typedef decltype(of<typename iter<O>::value>(0)) type;
};
} // namespace brass

#include "../../brass_pop.h"
#endif
