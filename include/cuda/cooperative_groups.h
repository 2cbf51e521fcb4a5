/* cooperative_groups.h - groups of threads: block, tiles, coalesced, grid.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_COOPERATIVE_GROUPS_H
#define BRASS_COOPERATIVE_GROUPS_H
#include "brass_push.h"

#include "cuda_runtime.h"

namespace cooperative_groups
{
#define BR_CG static __device__ __forceinline__
#define BR_ME __device__ __forceinline__

namespace details
{
BR_CG unsigned
lane()
{
    unsigned r;

    asm("mov.u32 %0, %%laneid;" : "=r"(r));
    return r;
}
BR_CG unsigned long long
block_size()
{
    return (unsigned long long)blockDim.x * blockDim.y * blockDim.z;
}
BR_CG unsigned long long
block_rank()
{
    return threadIdx.x +
           blockDim.x *
               (threadIdx.y + (unsigned long long)blockDim.y * threadIdx.z);
}
BR_CG unsigned long long
grid_size()
{
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
}
BR_CG unsigned long long
grid_rank()
{
    return blockIdx.x +
           gridDim.x *
               (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
}
/* Blocks that came, and how often all have. Kernels run one at a time, and a
 * kernel leaves the first as it was: 0. */
static __device__ unsigned int grid_come, grid_turn;

/* A value of any size goes word by word. */
template <class T, class F>
BR_CG T
words(T v, F f)
{
    unsigned w[(sizeof(T) + 3) / 4] = {0};

    memcpy(w, &v, sizeof v);
    for (unsigned k = 0; k < sizeof w / 4; k++)
        w[k] = f(w[k]);
    memcpy(&v, w, sizeof v);
    return v;
}
} // namespace details

enum thread_scope {
    thread_scope_thread,
    thread_scope_block,
    thread_scope_device
};

/* Who arrives goes on; who waits, waits for all to wait: later than it has to be,
 * which is a time that the contract allows. */
struct arrival_token {
};

/* ---- the block ---------------------------------------------------------- */

namespace details
{
/* Where the warps of a sixteenth tile find each other: who came, how often all
 * have; and of all tiles room for a value of each warp. */
struct tile_room {
    volatile unsigned come, turn;
};
struct block_room {
    tile_room last;
    alignas(16) char value[32][64];
};
} // namespace details
template <unsigned MaxThreads = 1024>
struct block_tile_memory : details::block_room {
};

class thread_block
{
  public:
    details::block_room *room = nullptr;

    typedef cooperative_groups::arrival_token arrival_token;
    BR_ME static void sync() { __syncthreads(); }
    BR_ME static arrival_token barrier_arrive() { return arrival_token(); }
    BR_ME static void barrier_wait(arrival_token &&) { sync(); }
    BR_ME static void barrier_wait() { sync(); }
    BR_ME static unsigned thread_rank()
    {
        return (unsigned)details::block_rank();
    }
    BR_ME static unsigned size() { return (unsigned)details::block_size(); }
    BR_ME static unsigned num_threads() { return size(); }
    BR_ME static dim3 group_index() { return blockIdx; }
    BR_ME static dim3 thread_index() { return threadIdx; }
    BR_ME static dim3 group_dim() { return blockDim; }
    BR_ME static dim3 dim_threads() { return blockDim; }
};
BR_CG thread_block
this_thread_block()
{
    return thread_block();
}
/* For tiles of more threads than a warp. */
template <unsigned N>
BR_CG thread_block
this_thread_block(block_tile_memory<N> &m)
{
    thread_block b;

    b.room = &m;
    if (details::block_rank() == 0)
        m.last.come = m.last.turn = 0;
    __syncthreads();
    return b;
}

/* ---- the grid ----------------------------------------------------------- */

class grid_group
{
  public:
    typedef cooperative_groups::arrival_token arrival_token;
    BR_ME bool is_valid() const { return true; }
    BR_ME static arrival_token barrier_arrive() { return arrival_token(); }
    BR_ME static void barrier_wait(arrival_token &&) { sync(); }
    BR_ME static void barrier_wait() { sync(); }
    BR_ME static unsigned long long size()
    {
        return details::grid_size() * details::block_size();
    }
    BR_ME static unsigned long long num_threads() { return size(); }
    BR_ME static unsigned long long num_blocks()
    {
        return details::grid_size();
    }
    BR_ME static unsigned long long block_rank()
    {
        return details::grid_rank();
    }
    BR_ME static unsigned long long thread_rank()
    {
        return details::grid_rank() * details::block_size() +
               details::block_rank();
    }
    BR_ME static dim3 group_dim() { return gridDim; }
    BR_ME static dim3 dim_blocks() { return gridDim; }
    BR_ME static dim3 block_index() { return blockIdx; }
    __device__ static void sync()
    {
        __syncthreads();
        if (details::block_rank() == 0) {
            volatile unsigned *turn = &details::grid_turn;
            unsigned now = *turn;

            __threadfence();
            if (atomicAdd(&details::grid_come, 1) + 1 == details::grid_size()) {
                details::grid_come = 0;
                __threadfence();
                *turn = now + 1;
            } else {
                while (*turn == now)
                    __nanosleep(100);
            }
            __threadfence();
        }
        __syncthreads();
    }
};
BR_CG grid_group
this_grid()
{
    return grid_group();
}

/* One device is all there is. */
class multi_grid_group : public grid_group
{
  public:
    BR_ME static unsigned grid_rank() { return 0; }
    BR_ME static unsigned num_grids() { return 1; }
};
BR_CG multi_grid_group
this_multi_grid()
{
    return multi_grid_group();
}

#include "cooperative_groups/brass_cluster.h"
BR_CG cluster_group
this_cluster()
{
    return cluster_group();
}

/* ---- lanes of a warp ---------------------------------------------------- */

template <unsigned N, class Parent> class thread_block_tile;

class coalesced_group
{
  protected:
    unsigned mask;

  public:
    BR_ME explicit coalesced_group(unsigned m) : mask(m) {}
    BR_ME unsigned lanes() const { return mask; }
    BR_ME void sync() const { __syncwarp(mask); }
    BR_ME unsigned size() const { return (unsigned)__popc(mask); }
    BR_ME unsigned num_threads() const { return size(); }
    BR_ME unsigned thread_rank() const
    {
        return (unsigned)__popc(mask & ((1u << details::lane()) - 1));
    }
    BR_ME unsigned meta_group_size() const { return 1; }
    BR_ME unsigned meta_group_rank() const { return 0; }
    BR_ME unsigned lane_of(unsigned rank) const
    {
        unsigned m = mask;

        for (unsigned k = 0; k < rank && m; k++)
            m &= m - 1;
        return m ? (unsigned)__ffs((int)m) - 1 : details::lane();
    }
    template <class T> BR_ME T shfl(T v, int rank) const
    {
        unsigned from = lane_of((unsigned)rank);

        return details::words(v, [&](unsigned w) {
            return (unsigned)__shfl_sync(mask, (int)w, (int)from);
        });
    }
    template <class T> BR_ME T shfl_down(T v, unsigned by) const
    {
        unsigned to = thread_rank() + by;

        return shfl(v, (int)(to < size() ? to : thread_rank()));
    }
    template <class T> BR_ME T shfl_up(T v, unsigned by) const
    {
        unsigned r = thread_rank();

        return shfl(v, (int)(r >= by ? r - by : r));
    }
    template <class T> BR_ME T shfl_xor(T v, unsigned by) const
    {
        return shfl(v, (int)(thread_rank() ^ by));
    }
    BR_ME int any(int p) const { return (__ballot_sync(mask, p) & mask) != 0; }
    BR_ME int all(int p) const
    {
        return (__ballot_sync(mask, p) & mask) == mask;
    }
    BR_ME unsigned ballot(int p) const
    {
        unsigned b = __ballot_sync(mask, p) & mask, r = 0, k = 0;

        for (unsigned m = mask; m; m &= m - 1, k++)
            r |= (b >> (__ffs((int)m) - 1) & 1) << k;
        return r;
    }
    template <class T> BR_ME unsigned match_any(T v) const
    {
        unsigned b = __match_any_sync(mask, v), r = 0, k = 0;

        for (unsigned m = mask; m; m &= m - 1, k++)
            r |= (b >> (__ffs((int)m) - 1) & 1) << k;
        return r;
    }
};
/* ---- whatever group ------------------------------------------------------ */

/* The block, or lanes of a warp: which, is known at run time. */
class thread_group
{
    unsigned mask; /* 0: the block */

  public:
    BR_ME thread_group(const thread_block &) : mask(0) {}
    BR_ME thread_group(const coalesced_group &g) : mask(g.lanes()) {}
    template <unsigned N, class P>
    BR_ME thread_group(const thread_block_tile<N, P> &t)
        : mask(coalesced_group(t).lanes())
    {
    }
    BR_ME unsigned lanes() const { return mask; }
    BR_ME void sync() const
    {
        if (mask)
            __syncwarp(mask);
        else
            __syncthreads();
    }
    BR_ME unsigned long long size() const
    {
        return mask ? (unsigned)__popc(mask) : details::block_size();
    }
    BR_ME unsigned long long num_threads() const { return size(); }
    BR_ME unsigned long long thread_rank() const
    {
        return mask ? coalesced_group(mask).thread_rank()
                    : details::block_rank();
    }
    /* As for a tile: of lanes alone. */
    template <class T> BR_ME T shfl(T v, int rank) const
    {
        return coalesced_group(mask).shfl(v, rank);
    }
    template <class T> BR_ME T shfl_down(T v, unsigned by) const
    {
        return coalesced_group(mask).shfl_down(v, by);
    }
    template <class T> BR_ME T shfl_up(T v, unsigned by) const
    {
        return coalesced_group(mask).shfl_up(v, by);
    }
    template <class T> BR_ME T shfl_xor(T v, unsigned by) const
    {
        return coalesced_group(mask).shfl_xor(v, by);
    }
};

BR_CG coalesced_group
coalesced_threads()
{
    return coalesced_group(__activemask());
}

namespace details
{
/* Which tile of its parent, and of how many: of the block, or of a tile. */
template <class Parent> struct place_in {
    BR_ME static unsigned rank(unsigned n)
    {
        return (unsigned)block_rank() / n;
    }
    BR_ME static unsigned count(unsigned n)
    {
        return ((unsigned)block_size() + n - 1) / n;
    }
};
template <unsigned M, class P> struct place_in<thread_block_tile<M, P>> {
    BR_ME static unsigned rank(unsigned n)
    {
        return (unsigned)block_rank() % M / n;
    }
    BR_ME static unsigned count(unsigned n) { return M / n; }
};

/* Tiles of 1 to 32 threads whose number is a power of two. */
template <unsigned N, class Parent> class lane_tile
{
    static_assert(N && (N & (N - 1)) == 0, "a tile has 1, 2, 4, ... threads");
    BR_ME static unsigned mask()
    {
        return (0xffffffffu >> (32 - N)) << (details::lane() & ~(N - 1));
    }

  public:
    BR_ME void sync() const { __syncwarp(mask()); }
    BR_ME static constexpr unsigned size() { return N; }
    BR_ME static constexpr unsigned num_threads() { return N; }
    BR_ME static unsigned thread_rank() { return details::lane() & (N - 1); }
    BR_ME static unsigned meta_group_rank()
    {
        return place_in<Parent>::rank(N);
    }
    BR_ME static unsigned meta_group_size()
    {
        return place_in<Parent>::count(N);
    }
    template <class T> BR_ME T shfl(T v, int rank) const
    {
        return details::words(v, [&](unsigned w) {
            return (unsigned)__shfl_sync(mask(), (int)w, rank, N);
        });
    }
    template <class T> BR_ME T shfl_down(T v, unsigned by) const
    {
        return details::words(v, [&](unsigned w) {
            return (unsigned)__shfl_down_sync(mask(), (int)w, by, N);
        });
    }
    template <class T> BR_ME T shfl_up(T v, unsigned by) const
    {
        return details::words(v, [&](unsigned w) {
            return (unsigned)__shfl_up_sync(mask(), (int)w, by, N);
        });
    }
    template <class T> BR_ME T shfl_xor(T v, unsigned by) const
    {
        return details::words(v, [&](unsigned w) {
            return (unsigned)__shfl_xor_sync(mask(), (int)w, (int)by, N);
        });
    }
    BR_ME int any(int p) const { return ballot(p) != 0; }
    BR_ME int all(int p) const { return ballot(p) == 0xffffffffu >> (32 - N); }
    BR_ME unsigned ballot(int p) const
    {
        return (__ballot_sync(mask(), p) & mask()) >>
               (details::lane() & ~(N - 1));
    }
    template <class T> BR_ME unsigned match_any(T v) const
    {
        return (__match_any_sync(mask(), v) & mask()) >>
               (details::lane() & ~(N - 1));
    }
    template <class T> BR_ME unsigned match_all(T v, int &all) const
    {
        unsigned same = ballot(v == shfl(v, 0));

        all = same == 0xffffffffu >> (32 - N);
        return all ? same : 0;
    }
    BR_ME operator coalesced_group() const { return coalesced_group(mask()); }
};

/* Tiles of 64 to 512 threads: warps meet in shared memory. */
template <unsigned N, class Parent> class warp_tile
{
    static_assert(N <= 512 && (N & (N - 1)) == 0,
                  "a tile has 64, 128, 256 or 512 threads");

  public:
    block_room *room;

    BR_ME static constexpr unsigned size() { return N; }
    BR_ME static constexpr unsigned num_threads() { return N; }
    BR_ME static unsigned thread_rank()
    {
        return (unsigned)block_rank() & (N - 1);
    }
    BR_ME static unsigned meta_group_rank()
    {
        return place_in<Parent>::rank(N);
    }
    BR_ME static unsigned meta_group_size()
    {
        return place_in<Parent>::count(N);
    }
    /* A barrier of their own; there are 15 besides the block's. */
    __device__ void sync() const
    {
        unsigned number = (unsigned)block_rank() / N;
        tile_room *t = &room->last;

        if (number < 15) {
            asm volatile("bar.sync %0, %1;" ::"r"(number + 1), "n"(N)
                         : "memory");
            return;
        }
        __threadfence_block();
        __syncwarp();
        if (lane() == 0) {
            unsigned now = t->turn;

            if (atomicAdd((unsigned *)&t->come, 1u) + 1 == N / 32) {
                t->come = 0;
                __threadfence_block();
                t->turn = now + 1;
            } else {
                while (t->turn == now)
                    __nanosleep(100);
            }
        }
        __syncwarp();
        __threadfence_block();
    }
    /* One value of each warp is there for all until the next call. */
    template <class T> BR_ME T *values(T v) const
    {
        static_assert(sizeof(T) <= sizeof room->value[0],
                      "a value of a tile's has 64 bytes at most");
        char(*at)[64] = room->value + block_rank() / N * (N / 32);

        sync(); /* nobody reads the last ones */
        if (lane() == 0)
            memcpy(at[thread_rank() / 32], &v, sizeof v);
        sync();
        return (T *)(void *)at;
    }
    template <class T> BR_ME static T value_of(const T *at, unsigned warp)
    {
        return *(const T *)(const void *)((const char *)at + 64 * warp);
    }
    template <class T> BR_ME T shfl(T v, int rank) const
    {
        unsigned from = (unsigned)rank & (N - 1);
        T mine = words(v, [&](unsigned w) {
            return (unsigned)__shfl_sync(~0u, (int)w, (int)(from & 31));
        });

        return value_of(values(mine), from / 32);
    }
    BR_ME int any(int p) const
    {
        int *at = values(__any_sync(~0u, p)), r = 0;

        for (unsigned k = 0; k < N / 32; k++)
            r |= value_of(at, k);
        return r;
    }
    BR_ME int all(int p) const { return !any(!p); }
};
template <bool wide> struct tile_of {
    template <unsigned N, class P> using type = lane_tile<N, P>;
};
template <> struct tile_of<true> {
    template <unsigned N, class P> using type = warp_tile<N, P>;
};
BR_CG block_room *
room_of(const thread_block &b)
{
    return b.room;
}
template <class G>
BR_CG block_room *
room_of(const G &g)
{
    return g.room;
}
} // namespace details

template <unsigned N, class Parent = void>
class thread_block_tile
    : public details::tile_of<(N > 32)>::template type<N, Parent>
{
  public:
    thread_block_tile() = default;
    template <class P>
    BR_ME thread_block_tile(const thread_block_tile<N, P> &from)
    {
        if constexpr (N > 32)
            this->room = from.room;
    }
};
template <unsigned N, class G>
BR_CG thread_block_tile<N, G>
tiled_partition(const G &g)
{
    thread_block_tile<N, G> t;

    if constexpr (N > 32)
        t.room = details::room_of(g);
    return t;
}
/* The size known at run time only. */
template <class G>
BR_CG coalesced_group
tiled_partition(const G &, unsigned n)
{
    return coalesced_group((0xffffffffu >> (32 - n))
                           << (details::lane() & ~(n - 1)));
}
template <class G>
BR_CG coalesced_group
binary_partition(const G &g, bool p)
{
    coalesced_group c = g;

    return coalesced_group(__match_any_sync(c.lanes(), (int)p));
}
template <class T>
BR_CG coalesced_group
labeled_partition(const coalesced_group &g, T label)
{
    return coalesced_group(__match_any_sync(g.lanes(), label));
}

/* ---- of all groups ------------------------------------------------------ */

template <class G>
BR_CG void
sync(const G &g)
{
    g.sync();
}
template <class G>
BR_CG unsigned
thread_rank(const G &g)
{
    return (unsigned)g.thread_rank();
}
template <class G>
BR_CG unsigned
group_size(const G &g)
{
    return (unsigned)g.size();
}

template <class T> struct plus {
    BR_ME T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    BR_ME T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    BR_ME T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
    BR_ME T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
    BR_ME T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
    BR_ME T operator()(T a, T b) const { return a ^ b; }
};

/* Every thread gets op over the values of all: of a tile by halves, then warps, */
template <unsigned N, class P, class T, class Op>
BR_CG T
reduce(const thread_block_tile<N, P> &g, T v, Op op)
{
    if constexpr (N <= 32) {
#pragma unroll
        for (unsigned by = N / 2; by; by /= 2)
            v = op(v, g.shfl_xor(v, by));
    } else {
        T *at = g.values(reduce(thread_block_tile<32>(), v, op));

        v = g.value_of(at, 0);
        for (unsigned k = 1; k < N / 32; k++)
            v = op(v, g.value_of(at, k));
    }
    return v;
}
/* else in the order of ranks. */
template <class G, class T, class Op>
BR_CG T
reduce(const G &g, T v, Op op)
{
    T sum = g.shfl(v, 0);

    for (unsigned k = 1; k < g.size(); k++)
        sum = op(sum, g.shfl(v, (int)k));
    return sum;
}
template <class G, class T, class Op>
BR_CG T
inclusive_scan(const G &g, T v, Op op)
{
    T sum = v;

    for (unsigned by = 1; by < g.size(); by *= 2) {
        T from = g.shfl_up(sum, by);

        if (g.thread_rank() >= by)
            sum = op(from, sum);
    }
    return sum;
}
template <class G, class T>
BR_CG T
inclusive_scan(const G &g, T v)
{
    return inclusive_scan(g, v, plus<T>());
}
template <class G, class T, class Op>
BR_CG T
exclusive_scan(const G &g, T v, Op op)
{
    T sum = g.shfl_up(inclusive_scan(g, v, op), 1);

    return g.thread_rank() ? sum : T();
}
template <class G, class T>
BR_CG T
exclusive_scan(const G &g, T v)
{
    return exclusive_scan(g, v, plus<T>());
}

/* The scan from what the atomic holds on, which then holds the sum of all. */
template <class G, class A, class T, class Op>
BR_CG T
exclusive_scan_update(const G &g, A &&at, T v, Op op)
{
    T sum = inclusive_scan(g, v, op), was = T();
    unsigned last = (unsigned)g.size() - 1;

    if (g.thread_rank() == last) {
        was = at.load();
        while (!at.compare_exchange_weak(was, op(was, sum))) {
        }
    }
    was = g.shfl(was, (int)last);
    sum = g.shfl_up(sum, 1);
    return g.thread_rank() ? op(was, sum) : was;
}
template <class G, class A, class T, class Op>
BR_CG T
inclusive_scan_update(const G &g, A &&at, T v, Op op)
{
    return op(exclusive_scan_update(g, at, v, op), v);
}
template <class G, class A, class T>
BR_CG T
exclusive_scan_update(const G &g, A &&at, T v)
{
    return exclusive_scan_update(g, at, v, plus<T>());
}
template <class G, class A, class T>
BR_CG T
inclusive_scan_update(const G &g, A &&at, T v)
{
    return inclusive_scan_update(g, at, v, plus<T>());
}

/* The copy is done when its issuer's turn is over; wait is the barrier. */
template <class G, class T, class U>
BR_CG void
memcpy_async(const G &g, T *dst, const U *src, size_t bytes)
{
    for (size_t k = g.thread_rank(); k < bytes; k += g.size())
        ((char *)dst)[k] = ((const char *)src)[k];
}
/* As many elements as both have room for. */
template <class G, class T, class M, class N>
BR_CG void
memcpy_async(const G &g, T *dst, const M &to, const T *src, const N &from)
{
    size_t a = to, b = from;

    memcpy_async(g, dst, src, (a < b ? a : b) * sizeof(T));
}
template <class G>
BR_CG void
wait(const G &g)
{
    g.sync();
}
template <unsigned N, class G>
BR_CG void
wait_prior(const G &g)
{
    g.sync();
}
template <class G, class F>
BR_CG void
invoke_one(const G &g, F f)
{
    if (g.thread_rank() == 0)
        f();
}
/* One of them calls it, all have what it gives. Groups of lanes. */
template <class G, class F>
BR_CG auto
invoke_one_broadcast(const G &g, F f) -> decltype(f())
{
    decltype(f()) v;

    memset(&v, 0, sizeof v);
    if (g.thread_rank() == 0)
        v = f();
    return g.shfl(v, 0);
}
/* Into memory, or by an atomic of cuda/atomic: one of the group does it. */
template <class G, class T, class V, class Op>
BR_CG void
reduce_store_async(const G &g, T *to, V v, Op op)
{
    V all = reduce(g, v, op);

    if (g.thread_rank() == 0)
        *to = all;
}
template <class G, class A, class V, class Op>
BR_CG void
reduce_store_async(const G &g, A &to, V v, Op op)
{
    V all = reduce(g, v, op);

    if (g.thread_rank() == 0)
        to.store(all);
}
template <class G, class A, class V, class Op>
BR_CG void
reduce_update_async(const G &g, A &&to, V v, Op op)
{
    V all = reduce(g, v, op);

    if (g.thread_rank() == 0) {
        V was = to.load();

        while (!to.compare_exchange_weak(was, op(was, all))) {
        }
    }
}
#undef BR_CG
#undef BR_ME
} // namespace cooperative_groups

#include "brass_pop.h"
#endif
