/* brass_sync.h - cuda::barrier, cuda::pipeline, and copies that they hear of.
 *
 * A barrier of a block is an mbarrier in shared memory. Copies are made where
 * they are asked for, which is a time that the contract allows: whoever arrives
 * has copied. So a thread's own pipeline has nothing to wait for, and a block's
 * is two mbarriers for each stage, "full" and "empty".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_SYNC_H
#define BRASS_SYNC_H
#include "brass_push.h"

#include "cuda_runtime.h"

#include <new>
#include <utility>

namespace cuda
{
enum thread_scope {
    thread_scope_system,
    thread_scope_device,
    thread_scope_block,
    thread_scope_thread
};

template <size_t N> struct aligned_size_t {
    static const size_t align = N;
    size_t value;
    __host__ __device__ explicit constexpr aligned_size_t(size_t n) : value(n)
    {
    }
    __host__ __device__ constexpr operator size_t() const { return value; }
};

/* ---- mbarriers ----------------------------------------------------------- */

typedef unsigned long long brass_mbar;
BRASS_D unsigned
brass_mbar_at(const volatile brass_mbar *b)
{
    return (unsigned)__cvta_generic_to_shared((const void *)b);
}
BRASS_D void
brass_mbar_init(brass_mbar *b, unsigned n)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(brass_mbar_at(b)),
                 "r"(n)
                 : "memory");
}
BRASS_D brass_mbar
brass_mbar_arrive(brass_mbar *b)
{
    brass_mbar state;

    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];"
                 : "=l"(state)
                 : "r"(brass_mbar_at(b))
                 : "memory");
    return state;
}
BRASS_D bool
brass_mbar_over(const brass_mbar *b, brass_mbar state)
{
    unsigned over;

    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(over)
                 : "r"(brass_mbar_at(b)), "l"(state)
                 : "memory");
    return over;
}
BRASS_D bool
brass_mbar_past(const brass_mbar *b, unsigned parity)
{
    unsigned over;

    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(over)
        : "r"(brass_mbar_at(b)), "r"(parity)
        : "memory");
    return over;
}

/* ---- barriers ------------------------------------------------------------ */

struct brass_nothing {
    __device__ void operator()() {}
};
template <thread_scope Scope, class Completion = brass_nothing> class barrier
{
    static_assert(Scope == thread_scope_block || Scope == thread_scope_thread,
                  "barriers of a block are there; for more use a cooperative "
                  "launch");
    static_assert(sizeof(Completion) == 1, "no function runs at the end");
    brass_mbar b;

  public:
    typedef brass_mbar arrival_token;
    barrier() = default;
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;
    __device__ explicit barrier(ptrdiff_t n)
    {
        brass_mbar_init(&b, (unsigned)n);
    }
    __device__ arrival_token arrive(ptrdiff_t n = 1)
    {
        arrival_token t = brass_mbar_arrive(&b);

        while (--n > 0)
            brass_mbar_arrive(&b);
        return t;
    }
    __device__ void wait(arrival_token &&t) const
    {
        while (!brass_mbar_over(&b, t)) {
        }
    }
    __device__ void wait_parity(bool parity) const
    {
        while (!brass_mbar_past(&b, parity)) {
        }
    }
    __device__ void arrive_and_wait() { wait(arrive()); }
    __device__ static constexpr ptrdiff_t max() { return 65535; }
    friend __device__ void init(barrier *p, ptrdiff_t n) { new (p) barrier(n); }
    __device__ brass_mbar *brass_handle() { return &b; }
};
template <thread_scope S, class C>
BRASS_D unsigned long long *
brass_native_handle(barrier<S, C> &b)
{
    return b.brass_handle();
}
namespace device
{
template <thread_scope S, class C>
BRASS_D unsigned long long *
barrier_native_handle(barrier<S, C> &b)
{
    return b.brass_handle();
}
} // namespace device

/* ---- pipelines ----------------------------------------------------------- */

enum class pipeline_role { producer, consumer };

template <thread_scope Scope, unsigned char Stages>
struct pipeline_shared_state {
    brass_mbar full[Stages], empty[Stages];
    unsigned producers, consumers;
    pipeline_shared_state() = default;
    pipeline_shared_state(const pipeline_shared_state &) = delete;
};

template <thread_scope Scope> class pipeline
{
    brass_mbar *full = 0, *empty = 0;
    unsigned stages = 0, head = 0, tail = 0; /* counted on */
    bool produces = true, consumes = true;

  public:
    pipeline() = default;
    pipeline(pipeline &&) = default;
    pipeline(const pipeline &) = delete;
    __device__ pipeline(brass_mbar *f, brass_mbar *e, unsigned n, bool p,
                        bool c)
        : full(f), empty(e), stages(n), produces(p), consumes(c)
    {
    }
    __device__ void producer_acquire()
    {
        if (stages && produces)
            while (!brass_mbar_past(empty + head % stages,
                                    head / stages % 2 ^ 1)) {
            }
    }
    __device__ void producer_commit()
    {
        if (stages && produces)
            brass_mbar_arrive(full + head % stages);
        head++;
    }
    __device__ void consumer_wait()
    {
        if (stages && consumes)
            while (!brass_mbar_past(full + tail % stages, tail / stages % 2)) {
            }
    }
    __device__ void consumer_release()
    {
        if (stages && consumes)
            brass_mbar_arrive(empty + tail % stages);
        tail++;
    }
    __device__ bool quit() { return true; }
};

__device__ inline pipeline<thread_scope_thread>
make_pipeline()
{
    return pipeline<thread_scope_thread>();
}
/* Every thread of the group calls it. */
template <class Group, thread_scope S, unsigned char N>
__device__ pipeline<S>
brass_pipeline(const Group &g, pipeline_shared_state<S, N> *s, bool produces,
               bool consumes)
{
    if (g.thread_rank() == 0)
        s->producers = s->consumers = 0;
    g.sync();
    if (produces)
        atomicAdd(&s->producers, 1u);
    if (consumes)
        atomicAdd(&s->consumers, 1u);
    g.sync();
    if (g.thread_rank() == 0)
        for (unsigned k = 0; k < N; k++) {
            brass_mbar_init(&s->full[k], s->producers);
            brass_mbar_init(&s->empty[k], s->consumers);
        }
    g.sync();
    return pipeline<S>(s->full, s->empty, N, produces, consumes);
}
template <class Group, thread_scope S, unsigned char N>
__device__ pipeline<S>
make_pipeline(const Group &g, pipeline_shared_state<S, N> *s)
{
    return brass_pipeline(g, s, true, true);
}
template <class Group, thread_scope S, unsigned char N>
__device__ pipeline<S>
make_pipeline(const Group &g, pipeline_shared_state<S, N> *s,
              pipeline_role role)
{
    return brass_pipeline(g, s, role == pipeline_role::producer,
                          role == pipeline_role::consumer);
}
template <class Group, thread_scope S, unsigned char N>
__device__ pipeline<S>
make_pipeline(const Group &g, pipeline_shared_state<S, N> *s, size_t producers)
{
    bool p = g.thread_rank() < producers;

    return brass_pipeline(g, s, p, !p);
}
template <unsigned char Prior, thread_scope S>
__device__ void
pipeline_consumer_wait_prior(pipeline<S> &)
{
    static_assert(S == thread_scope_thread, "of a thread's own pipeline");
    asm volatile("" ::: "memory");
}

/* ---- copies -------------------------------------------------------------- */

BRASS_D void
brass_copy(void *dst, const void *src, size_t n, unsigned rank, unsigned size)
{
    if (((size_t)dst | (size_t)src | n) % 16 == 0)
        for (size_t k = rank; k < n / 16; k += size)
            ((uint4 *)dst)[k] = ((const uint4 *)src)[k];
    else if (((size_t)dst | (size_t)src | n) % 4 == 0)
        for (size_t k = rank; k < n / 4; k += size)
            ((unsigned *)dst)[k] = ((const unsigned *)src)[k];
    else
        for (size_t k = rank; k < n; k += size)
            ((char *)dst)[k] = ((const char *)src)[k];
}
template <class Shape, class Sync>
__device__ void
memcpy_async(void *dst, const void *src, Shape n, Sync &)
{
    brass_copy(dst, src, (size_t)n, 0, 1);
}
template <class T, class Shape, class Sync>
__device__ void
memcpy_async(T *dst, const T *src, Shape n, Sync &)
{
    brass_copy(dst, src, (size_t)n, 0, 1);
}
template <class Group, class Shape, class Sync>
__device__ void
memcpy_async(const Group &g, void *dst, const void *src, Shape n, Sync &)
{
    brass_copy(dst, src, (size_t)n, (unsigned)g.thread_rank(),
               (unsigned)g.size());
}
template <class Group, class T, class Shape, class Sync>
__device__ void
memcpy_async(const Group &g, T *dst, const T *src, Shape n, Sync &)
{
    brass_copy(dst, src, (size_t)n, (unsigned)g.thread_rank(),
               (unsigned)g.size());
}
} // namespace cuda

#include "brass_pop.h"
#endif
