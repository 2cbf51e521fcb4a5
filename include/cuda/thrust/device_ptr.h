/* device_ptr.h - pointers that say where they point to, and what lies there.
 *
 * Memory of the device is the host's at the same address: the wrappers only choose
 * who works on it. A reference is read and written by copies, which wait for what
 * the null stream has to do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_DEVICE_PTR
#define BRASS_THRUST_DEVICE_PTR
#include "../brass_push.h"

#include "../cub/iterator/counting_input_iterator.cuh"
#include "system_error.h"
#include "version.h"

#include <iostream> /* which programs count on */
#include <memory>
#include <new>

namespace thrust
{
struct any_system_tag {
};
struct host_system_tag : any_system_tag {
};
struct device_system_tag : any_system_tag {
};
struct random_access_device_iterator_tag : std::random_access_iterator_tag {
};
template <class T> struct device_ptr;

template <class T> struct device_reference {
    typedef T value_type;
    typedef device_ptr<T> pointer;
    T *at;
    BRASS_HD explicit device_reference(T *p) : at(p) {}
    device_reference(const device_reference &) = default;
    template <class U>
    BRASS_HD device_reference(const device_reference<U> &r) : at(r.at)
    {
    }
    BRASS_HD device_ptr<T> operator&() const { return device_ptr<T>(at); }
    BRASS_HD operator typename std::remove_cv<T>::type() const
    {
#ifdef __CUDA_ARCH__
        return *at;
#else
        brass::raw<typename std::remove_cv<T>::type> v;

        brass::check(cudaMemcpy(&v, at, sizeof v, cudaMemcpyDeviceToHost));
        return v.it();
#endif
    }
    BRASS_HD const device_reference &operator=(const T &v) const
    {
#ifdef __CUDA_ARCH__
        *at = v;
#else
        brass::check(cudaMemcpy((void *)at, (const void *)std::addressof(v),
                                sizeof v, cudaMemcpyHostToDevice));
#endif
        return *this;
    }
    BRASS_HD const device_reference &operator=(const device_reference &r) const
    {
        return *this = (T)r;
    }
    template <class U>
    BRASS_HD const device_reference &
    operator=(const device_reference<U> &r) const
    {
        return *this = (T)(U)r;
    }
#define BR_ASSIGN(sign)                                                 \
    template <class U>                                                  \
    BRASS_HD const device_reference &operator sign##=(const U &v) const \
    {                                                                   \
        return *this = (T)((T) * this sign v);                          \
    }
    /* clang-format off */
    BR_ASSIGN(+)
    BR_ASSIGN(-)
    BR_ASSIGN(*)
    BR_ASSIGN(/)
    BR_ASSIGN(%)
    BR_ASSIGN(&)
    BR_ASSIGN(|)
    BR_ASSIGN(^)
    BR_ASSIGN(<<)
    BR_ASSIGN(>>)
    /* clang-format on */
#undef BR_ASSIGN
    BRASS_HD const device_reference &operator++() const
    {
        return *this += 1;
    }
    BRASS_HD const device_reference &operator--() const
    {
        return *this -= 1;
    }
    BRASS_HD T operator++(int) const
    {
        T was = *this;

        *this += 1;
        return was;
    }
    BRASS_HD T operator--(int) const
    {
        T was = *this;

        *this -= 1;
        return was;
    }
    friend BRASS_HD void swap(const device_reference &a,
                              const device_reference &b)
    {
        T was = a;

        a = b;
        b = was;
    }
    template <class Stream>
    friend Stream &operator<<(Stream &s, const device_reference &r)
    {
        s << (T)r;
        return s;
    }
};

/* What a device_ptr of T, and one of what has no items, can do. */
template <class T>
struct device_ptr
    : brass::moving<device_ptr<T>, T, device_reference<T>, ptrdiff_t, T *> {
    typedef brass::moving<device_ptr, T, device_reference<T>, ptrdiff_t, T *>
        moves;
    typedef device_ptr pointer;
    typedef typename std::remove_cv<T>::type value_type;
    typedef T element_type;
    typedef device_system_tag system;
    template <class U> struct rebind {
        typedef device_ptr<U> other;
    };
    BRASS_HD device_ptr() : moves((T *)0) {}
    BRASS_HD device_ptr(std::nullptr_t) : moves((T *)0) {}
    BRASS_HD explicit device_ptr(T *p) : moves(p) {}
    template <class U, class = typename std::enable_if<
                           std::is_convertible<U *, T *>::value>::type>
    BRASS_HD device_ptr(const device_ptr<U> &p) : moves(p.get())
    {
    }
    BRASS_HD explicit device_ptr(const device_ptr<void> &p);
    BRASS_HD T *get() const { return this->at; }
    BRASS_HD device_ptr base() const { return *this; }
    BRASS_HD T *operator->() const { return this->at; }
    BRASS_HD explicit operator bool() const { return this->at != 0; }
    BRASS_HD device_reference<T> operator*() const
    {
        return device_reference<T>(this->at);
    }
};
template <> struct device_ptr<void> {
    void *at;
    BRASS_HD device_ptr(std::nullptr_t = 0) : at(0) {}
    BRASS_HD explicit device_ptr(void *p) : at(p) {}
    template <class T>
    BRASS_HD device_ptr(const device_ptr<T> &p) : at((void *)p.get())
    {
    }
    BRASS_HD void *get() const { return at; }
    BRASS_HD explicit operator bool() const { return at != 0; }
};
template <class T>
BRASS_HD
device_ptr<T>::device_ptr(const device_ptr<void> &p)
    : moves((T *)p.get())
{
}
template <class T>
BRASS_HD bool
operator==(const device_ptr<T> &p, std::nullptr_t)
{
    return !p;
}
template <class T>
BRASS_HD bool
operator!=(const device_ptr<T> &p, std::nullptr_t)
{
    return (bool)p;
}
/* The same for who may read it on the host too: references are plain ones. */
template <class T>
struct universal_ptr
    : brass::moving<universal_ptr<T>, typename std::remove_cv<T>::type, T &,
                    ptrdiff_t, T *> {
    typedef brass::moving<universal_ptr, typename std::remove_cv<T>::type, T &,
                          ptrdiff_t, T *>
        moves;
    BRASS_HD universal_ptr() : moves((T *)0) {}
    BRASS_HD explicit universal_ptr(T *p) : moves(p) {}
    template <class U, class = typename std::enable_if<
                           std::is_convertible<U *, T *>::value>::type>
    BRASS_HD universal_ptr(const universal_ptr<U> &p) : moves(p.get())
    {
    }
    BRASS_HD T *get() const { return this->at; }
    BRASS_HD T *operator->() const { return this->at; }
    BRASS_HD explicit operator bool() const { return this->at != 0; }
    BRASS_HD T &operator*() const { return *this->at; }
};

template <class T>
BRASS_HD T *
raw_pointer_cast(T *p)
{
    return p;
}
template <class T>
BRASS_HD T *
raw_pointer_cast(const device_ptr<T> &p)
{
    return p.get();
}
template <class T>
BRASS_HD T *
raw_pointer_cast(const universal_ptr<T> &p)
{
    return p.get();
}
template <class T>
BRASS_HD T &
raw_reference_cast(T &r)
{
    return r;
}
template <class T>
BRASS_HD T &
raw_reference_cast(const device_reference<T> &r)
{
    return *r.at;
}
template <class T>
BRASS_HD device_ptr<T>
device_pointer_cast(T *p)
{
    return device_ptr<T>(p);
}
template <class T>
BRASS_HD device_ptr<T>
device_pointer_cast(const device_ptr<T> &p)
{
    return p;
}
template <class T, class U>
BRASS_HD device_ptr<T>
static_pointer_cast(const device_ptr<U> &p)
{
    return device_ptr<T>((T *)p.get());
}
template <class T, class U>
BRASS_HD device_ptr<T>
reinterpret_pointer_cast(const device_ptr<U> &p)
{
    return device_ptr<T>((T *)p.get());
}

/* ---- memory ------------------------------------------------------------- */

inline device_ptr<void>
device_malloc(size_t bytes)
{
    void *p = 0;

    brass::check(cudaMalloc(&p, bytes));
    return device_ptr<void>(p);
}
template <class T>
device_ptr<T>
device_malloc(size_t n)
{
    return device_ptr<T>(device_malloc(n * sizeof(T)));
}
inline void
device_free(device_ptr<void> p)
{
    brass::check(cudaFree(p.get()));
}
template <class T>
device_ptr<T>
device_new(size_t n = 1)
{
    device_ptr<T> p = device_malloc<T>(n);

    for (size_t i = 0; i < n; i++)
        new ((void *)(p.get() + i)) T();
    return p;
}
template <class T>
void
device_delete(device_ptr<T> p, size_t n = 1)
{
    for (size_t i = 0; i < n; i++)
        p.get()[i].~T();
    device_free(p);
}
/* How is what gets and frees: the kinds of memory there are. */
template <class T, class P, class How> struct brass_allocator {
    typedef T value_type;
    typedef P pointer;
    typedef size_t size_type;
    typedef ptrdiff_t difference_type;
    template <class U> struct rebind {
        typedef brass_allocator<U, typename How::template pointer<U>, How>
            other;
    };
    brass_allocator() = default;
    template <class U, class Q>
    brass_allocator(const brass_allocator<U, Q, How> &)
    {
    }
    P allocate(size_t n)
    {
        void *p = 0;

        if (n > (size_t)-1 / sizeof(T))
            throw std::bad_alloc();
        brass::check(How::get(&p, n * sizeof(T)));
        return P((T *)p);
    }
    void deallocate(P p, size_t)
    {
        brass::check(How::drop((void *)raw_pointer_cast(p)));
    }
    bool operator==(const brass_allocator &) const { return true; }
    bool operator!=(const brass_allocator &) const { return false; }
};
struct brass_on_device {
    template <class T> using pointer = device_ptr<T>;
    static cudaError_t get(void **p, size_t n) { return cudaMalloc(p, n); }
    static cudaError_t drop(void *p) { return cudaFree(p); }
};
struct brass_managed {
    template <class T> using pointer = universal_ptr<T>;
    static cudaError_t get(void **p, size_t n)
    {
        return cudaMallocManaged(p, n);
    }
    static cudaError_t drop(void *p) { return cudaFree(p); }
};
struct brass_pinned {
    template <class T> using pointer = T *;
    static cudaError_t get(void **p, size_t n) { return cudaMallocHost(p, n); }
    static cudaError_t drop(void *p) { return cudaFreeHost(p); }
};
template <class T>
struct device_allocator : brass_allocator<T, device_ptr<T>, brass_on_device> {
    template <class U> struct rebind {
        typedef device_allocator<U> other;
    };
    device_allocator() = default;
    template <class U> device_allocator(const device_allocator<U> &) {}
};
template <class T> using device_malloc_allocator = device_allocator<T>;
template <class T> using device_new_allocator = device_allocator<T>;
template <class T>
using universal_allocator = brass_allocator<T, universal_ptr<T>, brass_managed>;
template <class T>
using universal_host_pinned_allocator = brass_allocator<T, T *, brass_pinned>;
namespace system
{
namespace cuda
{
namespace experimental
{
template <class T> using pinned_allocator = universal_host_pinned_allocator<T>;
}
} // namespace cuda
} // namespace system
} // namespace thrust

#include "../brass_pop.h"
#endif
