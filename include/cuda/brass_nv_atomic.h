/* brass_nv_atomic.h - the atomic functions of CUDA 12.8: __nv_atomic_load_n, ...
 *
 * As GCC's, with a scope that changes nothing here. Orders are two: relaxed, and
 * all others as an operation between two fences. Objects have 1 to 8 bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_NV_ATOMIC_H
#define BRASS_NV_ATOMIC_H
#include "brass_push.h"

#define __NV_ATOMIC_RELAXED       0
#define __NV_ATOMIC_CONSUME       1
#define __NV_ATOMIC_ACQUIRE       2
#define __NV_ATOMIC_RELEASE       3
#define __NV_ATOMIC_ACQ_REL       4
#define __NV_ATOMIC_SEQ_CST       5

#define __NV_THREAD_SCOPE_THREAD  0
#define __NV_THREAD_SCOPE_BLOCK   1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE  3
#define __NV_THREAD_SCOPE_SYSTEM  4

namespace brass_nv
{
template <unsigned Bytes> struct word {
    static_assert(Bytes == 1, "an atomic object has 1, 2, 4 or 8 bytes");
    typedef unsigned char type;
};
template <> struct word<2> {
    typedef unsigned short type;
};
template <> struct word<4> {
    typedef unsigned type;
};
template <> struct word<8> {
    typedef unsigned long long type;
};
template <class T> using word_of = typename word<sizeof(T)>::type;
template <class T> struct same {
    typedef T type;
};
/* A value is of the object's type, whatever the program wrote. */
template <class T> using value = typename same<T>::type;

/* Around an operation of that order. */
struct ordered {
    int order;
    __device__ ordered(int o) : order(o) { fence(); }
    __device__ ~ordered() { fence(); }
    __device__ void fence() const
    {
        if (order != __NV_ATOMIC_RELAXED)
            __threadfence_system();
    }
};
template <class T>
BRASS_D word_of<T>
bits(T v)
{
    word_of<T> w;

    __builtin_memcpy(&w, &v, sizeof w);
    return w;
}
template <class T>
BRASS_D T
from(word_of<T> w)
{
    T v;

    __builtin_memcpy(&v, &w, sizeof v);
    return v;
}
} // namespace brass_nv

BRASS_D void
__nv_atomic_thread_fence(int order, int = __NV_THREAD_SCOPE_SYSTEM)
{
    if (order != __NV_ATOMIC_RELAXED)
        __threadfence_system();
}
template <class T>
BRASS_D T
__nv_atomic_load_n(const T *p, int order, int = __NV_THREAD_SCOPE_SYSTEM)
{
    brass_nv::ordered all(order);

    return brass_nv::from<T>(__atomic_load_n(
        (const brass_nv::word_of<T> *)(const void *)p, __ATOMIC_RELAXED));
}
template <class T>
BRASS_D void
__nv_atomic_load(const T *p, T *to, int order,
                 int scope = __NV_THREAD_SCOPE_SYSTEM)
{
    *to = __nv_atomic_load_n(p, order, scope);
}
template <class T>
BRASS_D void
__nv_atomic_store_n(T *p, brass_nv::value<T> v, int order,
                    int = __NV_THREAD_SCOPE_SYSTEM)
{
    brass_nv::ordered all(order);

    __atomic_store_n((brass_nv::word_of<T> *)(void *)p, brass_nv::bits<T>(v),
                     __ATOMIC_RELAXED);
}
template <class T>
BRASS_D void
__nv_atomic_store(T *p, T *v, int order, int scope = __NV_THREAD_SCOPE_SYSTEM)
{
    __nv_atomic_store_n(p, *v, order, scope);
}
template <class T>
BRASS_D T
__nv_atomic_exchange_n(T *p, brass_nv::value<T> v, int order,
                       int = __NV_THREAD_SCOPE_SYSTEM)
{
    brass_nv::ordered all(order);

    return brass_nv::from<T>(
        __atomic_exchange_n((brass_nv::word_of<T> *)(void *)p,
                            brass_nv::bits<T>(v), __ATOMIC_RELAXED));
}
template <class T>
BRASS_D void
__nv_atomic_exchange(T *p, T *v, T *to, int order,
                     int scope = __NV_THREAD_SCOPE_SYSTEM)
{
    *to = __nv_atomic_exchange_n(p, *v, order, scope);
}
template <class T>
BRASS_D bool
__nv_atomic_compare_exchange_n(T *p, T *want, brass_nv::value<T> v, bool,
                               int order, int, int = __NV_THREAD_SCOPE_SYSTEM)
{
    brass_nv::ordered all(order);
    brass_nv::word_of<T> was = brass_nv::bits<T>(*want);
    bool ok = __atomic_compare_exchange_n((brass_nv::word_of<T> *)(void *)p,
                                          &was, brass_nv::bits<T>(v), false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED);

    *want = brass_nv::from<T>(was);
    return ok;
}
template <class T>
BRASS_D bool
__nv_atomic_compare_exchange(T *p, T *want, T *v, bool weak, int order,
                             int fail, int scope = __NV_THREAD_SCOPE_SYSTEM)
{
    return __nv_atomic_compare_exchange_n(p, want, *v, weak, order, fail,
                                          scope);
}

/* Two forms of each: what was there before, or nothing. */
#define BRASS_NV_FETCH(name, call)                                            \
    template <class T>                                                        \
    BRASS_D T __nv_atomic_fetch_##name(T *p, brass_nv::value<T> v, int order, \
                                       int = __NV_THREAD_SCOPE_SYSTEM)        \
    {                                                                         \
        brass_nv::ordered all(order);                                         \
                                                                              \
        return call(p, v);                                                    \
    }                                                                         \
    template <class T>                                                        \
    BRASS_D void __nv_atomic_##name(T *p, brass_nv::value<T> v, int order,    \
                                    int scope = __NV_THREAD_SCOPE_SYSTEM)     \
    {                                                                         \
        (void)__nv_atomic_fetch_##name(p, v, order, scope);                   \
    }
#define BRASS_NV_SUB(p, v) atomicAdd((p), (T)(0 - (v)))
BRASS_NV_FETCH(add, atomicAdd)
BRASS_NV_FETCH(sub, BRASS_NV_SUB)
BRASS_NV_FETCH(min, atomicMin)
BRASS_NV_FETCH(max, atomicMax)
BRASS_NV_FETCH(and, atomicAnd)
BRASS_NV_FETCH(or, atomicOr)
BRASS_NV_FETCH(xor, atomicXor)
#undef BRASS_NV_FETCH
#undef BRASS_NV_SUB

#include "brass_pop.h"
#endif
