/* execution_policy.h - who works: policies, and what they become.
 *
 * An algorithm is written once, for an executor x that knows six things:
 *
 *     each   f(i) for all i        scan, scan_runs   sums of what came before
 *     fold   one value of all      select            some, with their ranks
 *     sort   by an order
 *
 * in_order is one thread's loops, of the host or inside of a kernel; in_kernels are
 * the kernels of brass_grid.h and brass_order.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_EXECUTION_POLICY
#define BRASS_THRUST_EXECUTION_POLICY
#include "../brass_push.h"

#include "../brass_order.h"
#include "functional.h"
#include "iterator/iterator_traits.h"

#include <algorithm>

namespace brass
{
struct policy {
};
struct policy_in_order : policy {
};
/* A is the program's allocator of bytes, or void. */
template <class A = void> struct policy_in_kernels : policy {
    cudaStream_t stream = 0;
    A *allocator = 0;
    bool wait = true;
    constexpr policy_in_kernels() = default;
    constexpr policy_in_kernels(cudaStream_t s, A *a, bool w)
        : stream(s), allocator(a), wait(w)
    {
    }
    policy_in_kernels on(cudaStream_t s) const { return {s, allocator, wait}; }
    template <class B> policy_in_kernels<B> operator()(B &a) const
    {
        return {stream, &a, wait};
    }
    template <class B> policy_in_kernels<B> operator()(B *a) const
    {
        return {stream, a, wait};
    }
};
template <class T>
using is_policy = std::is_base_of<policy, typename std::decay<T>::type>;

/* ---- one thread --------------------------------------------------------- */

template <class V>
BRASS_HD void
swap_items(V v, size_t i, size_t k)
{
    value_of<V> was = v[i];

    v[i] = v[k];
    v[k] = was;
}
BRASS_HD void
swap_items(no_values, size_t, size_t)
{
}
/* Items [a, b) and [b, c) change places. */
template <class K, class V>
BRASS_HD void
rotate_items(K k, V v, size_t a, size_t b, size_t c)
{
    size_t ends[3][2] = {{a, b}, {b, c}, {a, c}};

    for (int t = 0; t < 3; t++)
        for (size_t i = ends[t][0], j = ends[t][1]; i + 1 < j; i++) {
            swap_items(k, i, --j);
            swap_items(v, i, j);
        }
}
/* How many of n places come before: f(i) is true of the first ones. */
template <class F>
BRASS_HD size_t
bisect(size_t n, F f)
{
    size_t at = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (f(at + half)) {
            at += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return at;
}
/* Stable, without memory: the larger half is cut in two, what has to pass the cut
 * is rotated. Depth is the logarithm of the length. */
template <class K, class V, class F>
__host__ __device__ void
merge_in_place(K k, V v, size_t a, size_t b, size_t c, F &less)
{
    if (a == b || b == c)
        return;
    if (c - a == 2) {
        if (less(k[b], k[a])) {
            swap_items(k, a, b);
            swap_items(v, a, b);
        }
        return;
    }
    size_t i, j;
    if (b - a > c - b) {
        i = a + (b - a) / 2;
        j = b + bisect(c - b, [&](size_t t) { return less(k[b + t], k[i]); });
    } else {
        j = b + (c - b) / 2;
        i = a + bisect(b - a, [&](size_t t) { return !less(k[j], k[a + t]); });
    }
    size_t mid = i + (j - b);
    rotate_items(k, v, i, b, j);
    merge_in_place(k, v, a, i, mid, less);
    merge_in_place(k, v, mid, j, c, less);
}
struct in_order {
    static const bool parallel = false;
    template <class F> BRASS_HD void each(size_t n, F f)
    {
        for (size_t i = 0; i < n; i++)
            f(i);
    }
    /* From the last to the first, where items are read before they change. */
    template <class F> BRASS_HD void each_down(size_t n, F f)
    {
        while (n-- > 0)
            f(n);
    }
    template <class A, class G, class F>
    BRASS_HD A fold(size_t n, G get, F op, A v)
    {
        for (size_t i = 0; i < n; i++)
            v = (A)op(v, get(i));
        return v;
    }
    template <class A, class I, class O, class F>
    BRASS_HD void scan(I in, O out, size_t n, F op, scan_how<A> how)
    {
        scan_runs([](size_t i) { return i == 0; }, in, out, n, op, how);
    }
    template <class A, class H, class I, class O, class F>
    BRASS_HD void scan_runs(H head, I in, O out, size_t n, F op,
                            scan_how<A> how)
    {
        A v = how.init;

        for (size_t i = 0; i < n; i++) {
            bool any = how.has_init;

            if (head(i))
                v = how.init;
            else
                any = true;
            A x = (A)in[i], sum = any ? (A)op(v, x) : x;
            if (how.inclusive)
                out[i] = sum;
            else
                out[i] = v;
            v = sum;
        }
    }
    template <class P, class T, class R>
    BRASS_HD size_t select(size_t n, P is, T take, R rest)
    {
        size_t at = 0;

        for (size_t i = 0; i < n; i++)
            if (is(i))
                take(i, at++);
            else
                rest(i, i - at);
        return at;
    }
    template <class K, class V, class F>
    BRASS_HD void sort(K k, V v, size_t n, F less)
    {
#ifndef __CUDA_ARCH__
        if constexpr (std::is_pointer<K>::value &&
                      std::is_same<V, no_values>::value) {
            std::stable_sort(k, k + n, less);
            return;
        }
#endif
        for (size_t a = 0; a < n; a += 16)
            for (size_t i = a + 1; i < a + 16 && i < n; i++)
                for (size_t j = i; j > a && less(k[j], k[j - 1]); j--) {
                    swap_items(k, j, j - 1);
                    swap_items(v, j, j - 1);
                }
        for (size_t w = 16; w < n; w *= 2)
            for (size_t a = 0; a + w < n; a += 2 * w)
                merge_in_place(k, v, a, a + w, a + 2 * w < n ? a + 2 * w : n,
                               less);
    }
    /* Items that stay as they are while others are written over them. */
    template <class I> struct kept {
        I it;
    };
    template <class I> BRASS_HD kept<I> keep(I in, size_t)
    {
        return {in};
    }
};

/* ---- kernels ------------------------------------------------------------ */

/* Orders that numbers have by their bits: -1 down, 1 up, 0 another. */
template <class F, class K> struct known_order {
    static const int way = 0;
};
#define BR_KNOWN(order, by)                                 \
    template <class K> struct known_order<order<K>, K> {    \
        static const int way = by;                          \
    };                                                      \
    template <class K> struct known_order<order<void>, K> { \
        static const int way = by;                          \
    };
BR_KNOWN(thrust::less, 1)
BR_KNOWN(thrust::greater, -1)
BR_KNOWN(std::less, 1)
BR_KNOWN(std::greater, -1)
#undef BR_KNOWN

template <class G> struct by_index {
    G get;
    BRASS_HD auto operator[](size_t i) const
    {
        G g = get;

        return g(i);
    }
};
template <class V> struct values_of {
    typedef value_of<V> *type;
};
template <> struct values_of<no_values> {
    typedef no_values type;
};
template <class A> struct in_kernels {
    static const bool parallel = true;
    policy_in_kernels<A> p;

    /* Bytes of the device, for as long as it lives. */
    struct memory {
        in_kernels *x;
        void *at;
        size_t bytes;
        memory(in_kernels *k, size_t n) : x(k), at(0), bytes(n)
        {
            if constexpr (std::is_void<A>::value)
                check(cudaMalloc(&at, n));
            else
                at = (void *)thrust::raw_pointer_cast(
                    x->p.allocator->allocate(n));
        }
        memory(const memory &) = delete;
        ~memory()
        {
            cudaStreamSynchronize(x->p.stream);
            if constexpr (std::is_void<A>::value)
                cudaFree(at);
            else
                release(x->p.allocator);
        }
        template <class B> void release(B *a)
        {
            typedef decltype(a->allocate(bytes)) pointer;
            typedef typename std::iterator_traits<pointer>::value_type item;

            a->deallocate(pointer((item *)at), bytes);
        }
    };
    void end()
    {
        if (p.wait)
            check(cudaStreamSynchronize(p.stream));
    }
    /* f(arena) says how much it needs, and works the second time. */
    template <class F> void run(F f)
    {
        arena counting(0);

        check(f(counting));
        memory m(this, counting.used + 256);
        arena a(m.at);
        check(f(a));
        check(cudaStreamSynchronize(p.stream));
    }
    template <class F> void each(size_t n, F f)
    {
        check(brass::each(p.stream, n, f));
        end();
    }
    template <class F> void each_down(size_t n, F f) { each(n, f); }
    template <class T, class G, class F> T fold(size_t n, G get, F op, T init)
    {
        raw<T> result;

        run([&](arena &a) {
            T *to = a.take<T>(1);
            cudaError_t e =
                brass::reduce(a, p.stream, by_index<G>{get}, n, op, init,
                              [=] __device__(const T &v) mutable { *to = v; });

            if (a.counts() || e != cudaSuccess)
                return e;
            return cudaMemcpyAsync((void *)&result, (void *)to, sizeof(T),
                                   cudaMemcpyDeviceToHost, p.stream);
        });
        return result.it();
    }
    template <class T, class I, class O, class F>
    void scan(I in, O out, size_t n, F op, scan_how<T> how)
    {
        run([&](arena &a) {
            return brass::scan(a, p.stream, in, out, n, op, how);
        });
    }
    template <class T, class H, class I, class O, class F>
    void scan_runs(H head, I in, O out, size_t n, F op, scan_how<T> how)
    {
        run([&](arena &a) {
            return brass::scan_runs(a, p.stream, head, in, out, n, op, how);
        });
    }
    template <class P, class T, class R>
    size_t select(size_t n, P is, T take, R rest)
    {
        size_t result = 0;

        run([&](arena &a) {
            size_t *to = a.take<size_t>(1);
            cudaError_t e =
                brass::select(a, p.stream, n, is, take, rest,
                              [=] __device__(size_t k) mutable { *to = k; });

            if (a.counts() || e != cudaSuccess)
                return e;
            return cudaMemcpyAsync(&result, to, sizeof *to,
                                   cudaMemcpyDeviceToHost, p.stream);
        });
        return result;
    }
    template <class K, class V, class F> void sort(K k, V v, size_t n, F less)
    {
        typedef value_of<K> key;
        typedef typename values_of<V>::type values;
        constexpr int way =
            cub::Traits<key>::PRIMITIVE ? known_order<F, key>::way : 0;

        run([&](arena &a) {
            if constexpr (way != 0)
                return radix_sort<key, values>(
                    a, p.stream, k, k, v, v, n,
                    digits<key>{0, (int)sizeof(key) * 8, way < 0});
            else
                return merge_all<key, values>(a, p.stream, k, k, v, v, n, less);
        });
    }
    template <class T> struct kept {
        memory m;
        T *it;
        kept(in_kernels *x, size_t n)
            : m(x, (n ? n : 1) * sizeof(T)), it((T *)m.at)
        {
        }
        template <class I> kept(in_kernels *x, I in, size_t n) : kept(x, n)
        {
            T *to = it;

            x->each(n, [=] __device__(size_t i) mutable { to[i] = in[i]; });
        }
    };
    template <class I> kept<value_of<I>> keep(I in, size_t n)
    {
        return {this, in, n};
    }
};

/* ---- from the call to the executor -------------------------------------- */

BRASS_HD in_order
executor_of(const policy_in_order &)
{
    return {};
}
template <class A>
in_kernels<A>
executor_of(const policy_in_kernels<A> &p)
{
    return {p};
}
/* Whether kernels do it, of a first argument that is a policy or is not. */
template <class P, class... A>
constexpr bool
wants_kernels()
{
    if constexpr (is_policy<P>::value)
        return !std::is_base_of<policy_in_order, P>::value;
    else
        return place_of(bare<P>::where,
                        bare<typename std::decay<A>::type>::where...) ==
               on_device;
}
template <class F, class P, class... A>
auto
call_on_host(F f, const P &p, A &&...a)
{
    if constexpr (is_policy<P>::value) {
        auto x = executor_of(p);

        return f(x, static_cast<A &&>(a)...);
    } else if constexpr (wants_kernels<P, A...>()) {
        in_kernels<void> x = {};

        return f(x, p, static_cast<A &&>(a)...);
    } else {
        in_order x;

        return f(x, p, static_cast<A &&>(a)...);
    }
}
/* Clang compiles a function for both sides (a lambda without attributes is one)
 * with the call for kernels when it looks for kernels, and so would not find those
 * that the same call launches on the host. To ask for the host's type finds them;
 * a class asks, since a function of kernels may not. */
template <bool Kernels, class F, class P, class... A> struct found_kernels {
};
template <class F, class P, class... A> struct found_kernels<true, F, P, A...> {
    typedef decltype(call_on_host(std::declval<F>(), std::declval<const P &>(),
                                  std::declval<A>()...)) type;
};
template <class F, class P, class... A>
__host__ auto
call(F f, const P &p, A &&...a)
{
    return call_on_host(f, p, static_cast<A &&>(a)...);
}
/* Inside of a kernel it is the thread's own, whatever the policy. */
template <class F, class P, class... A>
__device__ auto
call(F f, const P &p, A &&...a)
{
    found_kernels<wants_kernels<P, A...>(), F, P, A...> found;
    in_order x;

    (void)found;
    if constexpr (is_policy<P>::value)
        return f(x, static_cast<A &&>(a)...);
    else
        return f(x, p, static_cast<A &&>(a)...);
}
} // namespace brass

/* The function `name` of namespace thrust, which brass::name##_f does; of an array it is
 * the address, as where arguments are values. */
#define BR_THRUST(name)                                                       \
    template <class P, class... A> __host__ auto name(const P &p, A &&...a)   \
    {                                                                         \
        return brass::call(brass::name##_f(), p, static_cast<A &&>(a)...);    \
    }                                                                         \
    template <class P, class... A> __device__ auto name(const P &p, A &&...a) \
    {                                                                         \
        return brass::call(brass::name##_f(), p, static_cast<A &&>(a)...);    \
    }                                                                         \
    BR_THRUST_ARRAY(name)
#define BR_THRUST_ARRAY(name)                                              \
    template <class T, size_t N, class... A>                               \
    __host__ auto name(T(&p)[N], A &&...a)                                 \
    {                                                                      \
        return thrust::name(static_cast<T *>(p), static_cast<A &&>(a)...); \
    }                                                                      \
    template <class T, size_t N, class... A>                               \
    __device__ auto name(T(&p)[N], A &&...a)                               \
    {                                                                      \
        return thrust::name(static_cast<T *>(p), static_cast<A &&>(a)...); \
    }

namespace thrust
{
template <class D = void> struct execution_policy : brass::policy {
};
template <class D = void>
struct device_execution_policy : brass::policy_in_kernels<> {
};
template <class D = void>
struct host_execution_policy : brass::policy_in_order {
};
static constexpr brass::policy_in_kernels<> device{};
static constexpr brass::policy_in_order host{};
static constexpr brass::policy_in_order seq{};
namespace cuda
{
template <class D = void> using execution_policy = device_execution_policy<D>;
typedef device_system_tag tag;
static constexpr brass::policy_in_kernels<> par{};
static constexpr brass::policy_in_kernels<> par_nosync{0, 0, false};
using thrust::device_ptr;
template <class T> using allocator = device_allocator<T>;
template <class T> using universal_allocator = thrust::universal_allocator<T>;
template <class T> using pointer = device_ptr<T>;
} // namespace cuda
namespace system
{
namespace cuda
{
using namespace thrust::cuda;
}
} // namespace system
namespace cuda_cub
{
using namespace thrust::cuda;
}
#define BR_HOST(name)                                  \
    namespace name                                     \
    {                                                  \
    template <class D = void>                          \
    using execution_policy = host_execution_policy<D>; \
    static constexpr brass::policy_in_order par{};     \
    }
BR_HOST(omp)
BR_HOST(cpp)
BR_HOST(tbb)
#undef BR_HOST
} // namespace thrust

#include "../brass_pop.h"
#endif
