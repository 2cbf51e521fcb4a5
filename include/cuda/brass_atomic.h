/* brass_atomic.h - cuda::atomic, cuda::atomic_ref, and what waits by them.
 *
 * The compiler's own operations, for host and device alike. Scopes are taken and
 * change nothing: what holds for the system holds for the block. Orders are two:
 * relaxed, and all others as sequentially consistent: on the device an operation
 * between two fences, as LLVM selects none of its own. Floating point adds on the
 * device are the hardware's `atom.add`; what has no instruction of its own
 * (min and max of floats, sums of half on the host) compares and swaps.
 * Objects have up to 8 bytes. SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_ATOMIC_H
#define BRASS_ATOMIC_H
#include "brass_sync.h"

#include <atomic>
#include <type_traits>

#include "brass_push.h"

namespace cuda
{
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

#define BRASS_HD __host__ __device__ __forceinline__

BRASS_HD void
atomic_thread_fence(memory_order o, thread_scope = thread_scope_system)
{
#ifdef __CUDA_ARCH__
    if (o != memory_order_relaxed)
        __threadfence_system();
#else
    if (o != memory_order_relaxed)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
/* Around an operation of that order. */
#ifdef __CUDA_ARCH__
#    define BRASS_ORDER __ATOMIC_RELAXED
#else
#    define BRASS_ORDER __ATOMIC_SEQ_CST
#endif
struct brass_ordered {
#ifdef __CUDA_ARCH__
    memory_order order;

    BRASS_HD brass_ordered(memory_order o) : order(o)
    {
        atomic_thread_fence(o);
    }
    BRASS_HD ~brass_ordered()
    {
        atomic_thread_fence(order);
    }
#else
    BRASS_HD brass_ordered(memory_order) {}
#endif
};
BRASS_HD void
atomic_signal_fence(memory_order)
{
    asm volatile("" ::: "memory");
}
BRASS_HD void
brass_pause(unsigned &turns)
{
#ifdef __CUDA_ARCH__
    if (++turns > 8)
        __nanosleep(64);
#else
    turns++;
#endif
}

/* Where an atomic's operations are, on a place that is there already. */
template <class T> struct brass_atomic_ops {
    static_assert(::std::is_trivially_copyable<T>::value,
                  "an atomic is copied by its bytes");
    static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0,
                  "atomics of 1, 2, 4 or 8 bytes");
    /* An integer of its size: the operations' own kind. */
    typedef ::std::conditional_t<
        sizeof(T) == 1, unsigned char,
        ::std::conditional_t<
            sizeof(T) == 2, unsigned short,
            ::std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>>>
        word;
    static constexpr bool counts =
        ::std::is_integral<T>::value && !::std::is_same<T, bool>::value;

    BRASS_HD static word bits(T v)
    {
        word w;

        __builtin_memcpy(&w, &v, sizeof w);
        return w;
    }
    BRASS_HD static T value(word w)
    {
        T v;

        __builtin_memcpy(&v, &w, sizeof v);
        return v;
    }
    BRASS_HD static T load(const T *p, memory_order o)
    {
        brass_ordered all(o);

        return value(__atomic_load_n((const word *)p, BRASS_ORDER));
    }
    BRASS_HD static void store(T *p, T v, memory_order o)
    {
        brass_ordered all(o);

        __atomic_store_n((word *)p, bits(v), BRASS_ORDER);
    }
    BRASS_HD static T exchange(T *p, T v, memory_order o)
    {
        brass_ordered all(o);

        return value(__atomic_exchange_n((word *)p, bits(v), BRASS_ORDER));
    }
    BRASS_HD static bool swap(T *p, T &want, T v, memory_order o)
    {
        brass_ordered all(o);

        word was = bits(want);
        bool ok = __atomic_compare_exchange_n((word *)p, &was, bits(v), false,
                                              BRASS_ORDER, BRASS_ORDER);

        want = value(was);
        return ok;
    }
    /* By f, as often as somebody was faster. */
    template <class F> BRASS_HD static T by(T *p, memory_order o, F f)
    {
        T was = load(p, memory_order_relaxed);

        while (!swap(p, was, f(was), o)) {
        }
        return was;
    }
    BRASS_HD static T add(T *p, T v, memory_order o)
    {
        if constexpr (counts) {
            brass_ordered all(o);

            return __atomic_fetch_add(p, v, BRASS_ORDER);
        } else {
#ifdef __CUDA_ARCH__
            if constexpr (::std::is_same<T, float>::value ||
                          ::std::is_same<T, double>::value) {
                brass_ordered all(o);

                return atomicAdd(p, v);
            }
#endif
            return by(p, o, [=](T x) { return (T)(x + v); });
        }
    }
    template <class F> BRASS_HD static T less(T *p, T v, memory_order o, F f)
    {
        T was = load(p, o);

        while (f(v, was) && !swap(p, was, v, o)) {
        }
        return was;
    }
};

/* What atomic and atomic_ref have in common: Self says where. */
template <class Self, class T> struct brass_atomic_face {
    typedef T value_type;
    typedef brass_atomic_ops<T> ops;
    static constexpr bool is_always_lock_free = true;

    BRASS_HD T *at() const { return ((const Self *)this)->brass_place(); }
    BRASS_HD bool is_lock_free() const { return true; }
    BRASS_HD T load(memory_order o = memory_order_seq_cst) const
    {
        return ops::load(at(), o);
    }
    BRASS_HD operator T() const { return load(); }
    BRASS_HD void store(T v, memory_order o = memory_order_seq_cst) const
    {
        ops::store(at(), v, o);
    }
    BRASS_HD T exchange(T v, memory_order o = memory_order_seq_cst) const
    {
        return ops::exchange(at(), v, o);
    }
    BRASS_HD bool
    compare_exchange_strong(T &want, T v,
                            memory_order o = memory_order_seq_cst) const
    {
        return ops::swap(at(), want, v, o);
    }
    BRASS_HD bool compare_exchange_strong(T &want, T v, memory_order o,
                                          memory_order) const
    {
        return ops::swap(at(), want, v, o);
    }
    BRASS_HD bool
    compare_exchange_weak(T &want, T v,
                          memory_order o = memory_order_seq_cst) const
    {
        return ops::swap(at(), want, v, o);
    }
    BRASS_HD bool compare_exchange_weak(T &want, T v, memory_order o,
                                        memory_order) const
    {
        return ops::swap(at(), want, v, o);
    }
    BRASS_HD T fetch_add(T v, memory_order o = memory_order_seq_cst) const
    {
        return ops::add(at(), v, o);
    }
    BRASS_HD T fetch_sub(T v, memory_order o = memory_order_seq_cst) const
    {
        return ops::add(at(), (T)(0 - v), o);
    }
    BRASS_HD T fetch_and(T v, memory_order o = memory_order_seq_cst) const
    {
        brass_ordered all(o);

        return __atomic_fetch_and(at(), v, BRASS_ORDER);
    }
    BRASS_HD T fetch_or(T v, memory_order o = memory_order_seq_cst) const
    {
        brass_ordered all(o);

        return __atomic_fetch_or(at(), v, BRASS_ORDER);
    }
    BRASS_HD T fetch_xor(T v, memory_order o = memory_order_seq_cst) const
    {
        brass_ordered all(o);

        return __atomic_fetch_xor(at(), v, BRASS_ORDER);
    }
    BRASS_HD T fetch_min(T v, memory_order o = memory_order_seq_cst) const
    {
        return ops::less(at(), v, o, [](T a, T b) { return a < b; });
    }
    BRASS_HD T fetch_max(T v, memory_order o = memory_order_seq_cst) const
    {
        return ops::less(at(), v, o, [](T a, T b) { return b < a; });
    }
    BRASS_HD T operator+=(T v) const { return fetch_add(v) + v; }
    BRASS_HD T operator-=(T v) const { return fetch_sub(v) - v; }
    BRASS_HD T operator&=(T v) const { return fetch_and(v) & v; }
    BRASS_HD T operator|=(T v) const { return fetch_or(v) | v; }
    BRASS_HD T operator^=(T v) const { return fetch_xor(v) ^ v; }
    BRASS_HD T operator++() const { return fetch_add(1) + 1; }
    BRASS_HD T operator--() const { return fetch_sub(1) - 1; }
    BRASS_HD T operator++(int) const { return fetch_add(1); }
    BRASS_HD T operator--(int) const { return fetch_sub(1); }
    BRASS_HD void wait(T old, memory_order o = memory_order_seq_cst) const
    {
        unsigned turns = 0;

        while (load(o) == old)
            brass_pause(turns);
    }
    BRASS_HD void notify_one() const {}
    BRASS_HD void notify_all() const {}
};

template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref : public brass_atomic_face<atomic_ref<T, Scope>, T>
{
    T *place;

  public:
    static constexpr size_t required_alignment = sizeof(T);

    BRASS_HD explicit atomic_ref(T &v) : place(&v) {}
    BRASS_HD atomic_ref(const atomic_ref &r) : place(r.place) {}
    atomic_ref &operator=(const atomic_ref &) = delete;
    BRASS_HD T operator=(T v) const
    {
        this->store(v);
        return v;
    }
    BRASS_HD T *brass_place() const { return place; }
};

template <class T, thread_scope Scope = thread_scope_system>
class atomic : public brass_atomic_face<atomic<T, Scope>, T>
{
    alignas(sizeof(T)) mutable T v;

  public:
    atomic() noexcept = default;
    __host__ __device__ constexpr atomic(T x) noexcept : v(x) {}
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    BRASS_HD T operator=(T x)
    {
        this->store(x);
        return x;
    }
    BRASS_HD T *brass_place() const { return &v; }
};

/* Of a pointer: it goes on by elements. */
template <class E, thread_scope Scope>
class atomic<E *, Scope> : public brass_atomic_face<atomic<E *, Scope>, E *>
{
    mutable E *v;
    typedef brass_atomic_ops<E *> ops;

  public:
    atomic() noexcept = default;
    __host__ __device__ constexpr atomic(E *x) noexcept : v(x) {}
    atomic(const atomic &) = delete;
    BRASS_HD E *operator=(E *x)
    {
        this->store(x);
        return x;
    }
    BRASS_HD E **brass_place() const { return &v; }
    BRASS_HD E *fetch_add(ptrdiff_t n,
                          memory_order o = memory_order_seq_cst) const
    {
        return ops::by(&v, o, [=](E *p) { return p + n; });
    }
    BRASS_HD E *fetch_sub(ptrdiff_t n,
                          memory_order o = memory_order_seq_cst) const
    {
        return fetch_add(-n, o);
    }
    BRASS_HD E *operator+=(ptrdiff_t n) const { return fetch_add(n) + n; }
    BRASS_HD E *operator-=(ptrdiff_t n) const { return fetch_sub(n) - n; }
    BRASS_HD E *operator++() const { return fetch_add(1) + 1; }
    BRASS_HD E *operator++(int) const { return fetch_add(1); }
};

template <thread_scope Scope> class brass_flag
{
    atomic<unsigned, Scope> set;

  public:
    brass_flag() noexcept = default;
    __host__ __device__ constexpr brass_flag(bool on) noexcept : set(on) {}
    BRASS_HD bool test(memory_order o = memory_order_seq_cst) const
    {
        return set.load(o) != 0;
    }
    BRASS_HD bool test_and_set(memory_order o = memory_order_seq_cst)
    {
        return set.exchange(1, o) != 0;
    }
    BRASS_HD void clear(memory_order o = memory_order_seq_cst)
    {
        set.store(0, o);
    }
};
typedef brass_flag<thread_scope_system> atomic_flag;

/* ---- what waits ---------------------------------------------------------- */

template <thread_scope Scope, ptrdiff_t Least = 0x7fffffff>
class counting_semaphore
{
    atomic<int, Scope> left;

  public:
    counting_semaphore() = default; /* in shared memory, to be made there */
    __host__ __device__ constexpr explicit counting_semaphore(ptrdiff_t n)
        : left((int)n)
    {
    }
    counting_semaphore(const counting_semaphore &) = delete;
    static constexpr ptrdiff_t max() noexcept { return Least; }
    BRASS_HD void release(ptrdiff_t n = 1) { left.fetch_add((int)n); }
    BRASS_HD bool try_acquire()
    {
        int n = left.load();

        return n > 0 && left.compare_exchange_strong(n, n - 1);
    }
    BRASS_HD void acquire()
    {
        unsigned turns = 0;

        while (!try_acquire())
            brass_pause(turns);
    }
};
template <thread_scope Scope>
using binary_semaphore = counting_semaphore<Scope, 1>;

template <thread_scope Scope> class latch
{
    atomic<int, Scope> left;

  public:
    __host__ __device__ constexpr explicit latch(ptrdiff_t n) : left((int)n) {}
    latch(const latch &) = delete;
    static constexpr ptrdiff_t max() noexcept { return 0x7fffffff; }
    BRASS_HD void count_down(ptrdiff_t n = 1) { left.fetch_sub((int)n); }
    BRASS_HD bool try_wait() const { return left.load() == 0; }
    BRASS_HD void wait() const
    {
        unsigned turns = 0;

        while (!try_wait())
            brass_pause(turns);
    }
    BRASS_HD void arrive_and_wait(ptrdiff_t n = 1)
    {
        count_down(n);
        wait();
    }
};
#undef BRASS_HD
#undef BRASS_ORDER

namespace std
{
using ::cuda::atomic_flag;
using ::cuda::atomic_signal_fence;
using ::cuda::atomic_thread_fence;
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;
template <class T> using atomic = ::cuda::atomic<T>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T>;
template <ptrdiff_t N = 0x7fffffff>
using counting_semaphore = ::cuda::counting_semaphore<thread_scope_system, N>;
using binary_semaphore = ::cuda::binary_semaphore<thread_scope_system>;
using latch = ::cuda::latch<thread_scope_system>;
} // namespace std
} // namespace cuda

#include "brass_pop.h"
#endif
