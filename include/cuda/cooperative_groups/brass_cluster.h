/* brass_cluster.h - a part of cooperative_groups.h, inside its namespace: the blocks of a
 * cluster.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CLUSTER_H
#define BRASS_CLUSTER_H

/* Of one block, unless the launch asks for more. */
class cluster_group
{
#define BR_OF_CLUSTER(name)                           \
    unsigned v;                                       \
                                                      \
    asm("mov.u32 %0, %%cluster_" name ";" : "=r"(v)); \
    return v
    BR_ME static unsigned x()
    {
        BR_OF_CLUSTER("ctaid.x");
    }
    BR_ME static unsigned y()
    {
        BR_OF_CLUSTER("ctaid.y");
    }
    BR_ME static unsigned z()
    {
        BR_OF_CLUSTER("ctaid.z");
    }
    BR_ME static unsigned nx()
    {
        BR_OF_CLUSTER("nctaid.x");
    }
    BR_ME static unsigned ny()
    {
        BR_OF_CLUSTER("nctaid.y");
    }
    BR_ME static unsigned nz()
    {
        BR_OF_CLUSTER("nctaid.z");
    }

  public:
    typedef cooperative_groups::arrival_token arrival_token;
    BR_ME static unsigned num_blocks()
    {
        BR_OF_CLUSTER("nctarank");
    }
    BR_ME static unsigned block_rank()
    {
        BR_OF_CLUSTER("ctarank");
    }
#undef BR_OF_CLUSTER
    BR_ME static dim3 dim_blocks()
    {
        return dim3(nx(), ny(), nz());
    }
    BR_ME static dim3 block_index()
    {
        return dim3(x(), y(), z());
    }
    BR_ME static dim3 dim_threads()
    {
        return dim3(nx() * blockDim.x, ny() * blockDim.y, nz() * blockDim.z);
    }
    BR_ME static dim3 thread_index()
    {
        return dim3(x() * blockDim.x + threadIdx.x,
                    y() * blockDim.y + threadIdx.y,
                    z() * blockDim.z + threadIdx.z);
    }
    BR_ME static unsigned thread_rank()
    {
        return block_rank() * (unsigned)details::block_size() +
               (unsigned)details::block_rank();
    }
    BR_ME static unsigned num_threads()
    {
        return num_blocks() * (unsigned)details::block_size();
    }
    BR_ME static unsigned size()
    {
        return num_threads();
    }
    BR_ME static arrival_token barrier_arrive()
    {
        asm volatile("barrier.cluster.arrive;" ::: "memory");
        return arrival_token();
    }
    BR_ME static void barrier_wait()
    {
        asm volatile("barrier.cluster.wait;" ::: "memory");
    }
    BR_ME static void barrier_wait(arrival_token &&)
    {
        barrier_wait();
    }
    BR_ME static void sync()
    {
        barrier_arrive();
        barrier_wait();
    }
    template <class T> BR_ME static T *map_shared_rank(T *p, unsigned rank)
    {
        T *at;

        asm volatile("mapa.u64 %0, %1, %2;" : "=l"(at) : "l"(p), "r"(rank));
        return at;
    }
    BR_ME static unsigned query_shared_rank(const void *p)
    {
        unsigned rank;

        asm volatile("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(p));
        return rank;
    }
};

#endif
