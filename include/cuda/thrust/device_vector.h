/* device_vector.h - arrays of the host and the device that grow.
 *
 * Both are one class, which an allocator makes the one or the other. The host fills
 * and moves items itself, after what the null stream has to do: memory of the device
 * is its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_VECTOR
#define BRASS_THRUST_DEVICE_VECTOR
#include "../brass_push.h"

#include "iterator/counting_iterator.h"
#include "transform.h"

#include <initializer_list>
#include <memory>
#include <vector>

namespace brass
{
template <class P, class T> struct pointer_to;
template <class T, class U> struct pointer_to<U *, T> {
    typedef T *type;
    typedef T &ref;
};
template <class T, class U> struct pointer_to<thrust::device_ptr<U>, T> {
    typedef thrust::device_ptr<T> type;
    typedef thrust::device_reference<T> ref;
};
template <class T, class U> struct pointer_to<thrust::universal_ptr<U>, T> {
    typedef thrust::universal_ptr<T> type;
    typedef T &ref;
};

template <class T, class A> class vector
{
    typedef std::allocator_traits<A> traits;
    typedef pointer_to<typename traits::pointer, T> to;
    typedef pointer_to<typename traits::pointer, const T> to_const;
    static const bool far = bare<typename to::type>::where == on_device;
    A alloc;
    T *at = 0;
    size_t n = 0, room = 0;

    static void settle()
    {
        if (far)
            check(cudaStreamSynchronize(0));
    }
    T *get(size_t k)
    {
        return k ? thrust::raw_pointer_cast(traits::allocate(alloc, k)) : 0;
    }
    void drop()
    {
        if (at)
            cut(0);
        if (at)
            traits::deallocate(alloc, typename to::type(at), room);
        at = 0;
        n = room = 0;
    }
    void cut(size_t k)
    {
        settle();
        while (n > k)
            at[--n].~T();
    }
    void grow(size_t k)
    {
        if (k <= room)
            return;
        k = k < 2 * room ? 2 * room : k;
        T *fresh = get(k);
        settle();
        std::uninitialized_copy(std::make_move_iterator(at),
                                std::make_move_iterator(at + n), fresh);
        size_t had = n;
        drop();
        at = fresh;
        n = had;
        room = k;
    }
    /* Items from an iterator; what kernels make comes through thrust::copy. */
    template <class I> void take(I a, I b)
    {
        size_t k = (size_t)std::distance(a, b);

        drop();
        grow(k);
        settle();
        if constexpr (std::is_trivially_copyable<T>::value &&
                      bare<I>::where == on_device) {
            n = k;
            thrust::copy(a, b, begin());
        } else {
            std::uninitialized_copy(raw_of(a), raw_of(b), at);
            n = k;
        }
    }

  public:
    typedef T value_type;
    typedef A allocator_type;
    typedef size_t size_type;
    typedef ptrdiff_t difference_type;
    typedef typename to::type pointer;
    typedef typename to_const::type const_pointer;
    typedef typename to::ref reference;
    typedef typename to_const::ref const_reference;
    typedef pointer iterator;
    typedef const_pointer const_iterator;
    typedef thrust::reverse_iterator<iterator> reverse_iterator;
    typedef thrust::reverse_iterator<const_iterator> const_reverse_iterator;

    vector() {}
    explicit vector(const A &a) : alloc(a) {}
    explicit vector(size_t k, const A &a = A()) : alloc(a) { resize(k); }
    vector(size_t k, const T &v, const A &a = A()) : alloc(a) { assign(k, v); }
    template <class I,
              typename std::enable_if<is_iterator<I>::value, int>::type = 0>
    vector(I a, I b, const A &al = A()) : alloc(al)
    {
        take(a, b);
    }
    vector(std::initializer_list<T> l, const A &a = A()) : alloc(a)
    {
        take(l.begin(), l.end());
    }
    vector(const vector &v) : alloc(v.alloc) { take(v.begin(), v.end()); }
    vector(const vector &v, const A &a) : alloc(a) { take(v.begin(), v.end()); }
    vector(vector &&v) : alloc(v.alloc) { swap(v); }
    template <class U, class B> vector(const vector<U, B> &v)
    {
        take(v.begin(), v.end());
    }
    template <class U, class B> vector(const std::vector<U, B> &v)
    {
        take(v.begin(), v.end());
    }
    /* A device that has failed says so where the program asks it. */
    ~vector()
    {
        try {
            drop();
        } catch (const std::exception &) {
        }
    }
    vector &operator=(const vector &v)
    {
        if (this != &v)
            take(v.begin(), v.end());
        return *this;
    }
    vector &operator=(vector &&v)
    {
        swap(v);
        return *this;
    }
    template <class U, class B> vector &operator=(const vector<U, B> &v)
    {
        take(v.begin(), v.end());
        return *this;
    }
    template <class U, class B> vector &operator=(const std::vector<U, B> &v)
    {
        take(v.begin(), v.end());
        return *this;
    }
    vector &operator=(std::initializer_list<T> l)
    {
        take(l.begin(), l.end());
        return *this;
    }
    void assign(size_t k, const T &v)
    {
        T x = v;

        clear();
        resize(k, x);
    }
    template <class I>
    typename std::enable_if<is_iterator<I>::value>::type assign(I a, I b)
    {
        take(a, b);
    }
    void resize(size_t k)
    {
        if (k > n)
            resize(k, T());
        cut(k);
    }
    void resize(size_t k, const T &v)
    {
        T x = v;

        grow(k);
        settle();
        if (k > n)
            std::uninitialized_fill(at + n, at + k, x);
        else
            cut(k);
        n = k;
    }
    void reserve(size_t k) { grow(k); }
    void clear() { cut(0); }
    void shrink_to_fit()
    {
        vector v(begin(), end(), alloc);

        swap(v);
    }
    void push_back(const T &v) { resize(n + 1, v); }
    void emplace_back(const T &v) { push_back(v); }
    void pop_back() { cut(n - 1); }
    iterator erase(iterator a) { return erase(a, a + 1); }
    iterator erase(iterator a, iterator b)
    {
        T *from = raw_of(a), *end = raw_of(b);

        settle();
        cut((size_t)(std::move(end, at + n, from) - at));
        return a;
    }
    iterator insert(iterator where, const T &v)
    {
        size_t i = (size_t)(where - begin());

        insert(where, 1, v);
        return begin() + i;
    }
    void insert(iterator where, size_t k, const T &v)
    {
        size_t i = (size_t)(where - begin());

        resize(n + k, v);
        std::rotate(at + i, at + n - k, at + n);
    }
    template <class I>
    typename std::enable_if<is_iterator<I>::value>::type insert(iterator where,
                                                                I a, I b)
    {
        vector v(a, b, alloc);
        size_t i = (size_t)(where - begin()), k = v.size();

        grow(n + k);
        settle();
        std::uninitialized_copy(v.at, v.at + k, at + n);
        n += k;
        std::rotate(at + i, at + n - k, at + n);
    }
    void swap(vector &v)
    {
        std::swap(alloc, v.alloc);
        std::swap(at, v.at);
        std::swap(n, v.n);
        std::swap(room, v.room);
    }
    size_t size() const { return n; }
    size_t max_size() const { return (size_t)-1 / sizeof(T); }
    size_t capacity() const { return room; }
    bool empty() const { return n == 0; }
    A get_allocator() const { return alloc; }
    pointer data() { return pointer(at); }
    const_pointer data() const { return const_pointer(at); }
    iterator begin() { return iterator(at); }
    iterator end() { return iterator(at + n); }
    const_iterator begin() const { return const_iterator(at); }
    const_iterator end() const { return const_iterator(at + n); }
    const_iterator cbegin() const { return begin(); }
    const_iterator cend() const { return end(); }
    reverse_iterator rbegin() { return reverse_iterator(end()); }
    reverse_iterator rend() { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const
    {
        return const_reverse_iterator(end());
    }
    const_reverse_iterator rend() const
    {
        return const_reverse_iterator(begin());
    }
    const_reverse_iterator crbegin() const { return rbegin(); }
    const_reverse_iterator crend() const { return rend(); }
    reference operator[](size_t i) { return *(begin() + i); }
    const_reference operator[](size_t i) const { return *(begin() + i); }
    reference front() { return *begin(); }
    const_reference front() const { return *begin(); }
    reference back() { return *(end() - 1); }
    const_reference back() const { return *(end() - 1); }
    template <class U, class B>
    friend bool operator==(const vector &a, const vector<U, B> &b)
    {
        settle();
        return a.size() == b.size() &&
               std::equal(raw_of(a.begin()), raw_of(a.end()),
                          raw_of(b.begin()));
    }
    template <class U, class B>
    friend bool operator==(const vector &a, const std::vector<U, B> &b)
    {
        settle();
        return a.size() == b.size() && std::equal(a.at, a.at + a.n, b.begin());
    }
    template <class U, class B>
    friend bool operator==(const std::vector<U, B> &a, const vector &b)
    {
        return b == a;
    }
    template <class U, class B>
    friend bool operator!=(const vector &a, const vector<U, B> &b)
    {
        return !(a == b);
    }
    template <class U, class B>
    friend bool operator!=(const vector &a, const std::vector<U, B> &b)
    {
        return !(a == b);
    }
    template <class U, class B>
    friend bool operator!=(const std::vector<U, B> &a, const vector &b)
    {
        return !(b == a);
    }
};
} // namespace brass

namespace thrust
{
template <class T, class A = std::allocator<T>>
struct host_vector : brass::vector<T, A> {
    using brass::vector<T, A>::vector;
    using brass::vector<T, A>::operator=;
    host_vector() = default;
    template <class U, class B>
    host_vector(const brass::vector<U, B> &v) : brass::vector<T, A>(v)
    {
    }
};
template <class T, class A = device_allocator<T>>
struct device_vector : brass::vector<T, A> {
    using brass::vector<T, A>::vector;
    using brass::vector<T, A>::operator=;
    device_vector() = default;
    template <class U, class B>
    device_vector(const brass::vector<U, B> &v) : brass::vector<T, A>(v)
    {
    }
};
template <class T, class A = universal_allocator<T>>
using universal_vector = device_vector<T, A>;
template <class T, class A = universal_host_pinned_allocator<T>>
using universal_host_pinned_vector = host_vector<T, A>;
template <class T, class A>
void
swap(device_vector<T, A> &a, device_vector<T, A> &b)
{
    a.swap(b);
}
template <class T, class A>
void
swap(host_vector<T, A> &a, host_vector<T, A> &b)
{
    a.swap(b);
}
namespace cuda
{
using thrust::universal_vector;
template <class T, class A = device_allocator<T>>
using vector = device_vector<T, A>;
} // namespace cuda
} // namespace thrust

#include "../brass_pop.h"
#endif
