/* host_defines.h - the words that CUDA adds to C++, for clang.
 *
 * Clang has no __managed__. Here it is a __device__ variable of an alignment
 * that nobody else asks for: the runtime gives such a variable the memory of
 * its host shadow, so that both sides see one object.
 *
 * __noinline__ is a word of clang's own in CUDA, and a macro of that name would
 * break the C++ library, which writes __attribute__((__noinline__)).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_HOST_DEFINES_H
#define BRASS_HOST_DEFINES_H

#ifdef __CUDA__
#    define __host__     __attribute__((host))
#    define __device__   __attribute__((device))
#    define __global__   __attribute__((global))
#    define __shared__   __attribute__((shared))
#    define __constant__ __attribute__((constant))
#    define __managed__  __device__ __attribute__((aligned(512)))
/* Threads and blocks; of the third, how many blocks a cluster may have, clang 14 knows
 * nothing, and newer ones warn of it. */
constexpr int
brass_bound(int k, long long threads, long long blocks = 0, long long = 0)
{
    return (int)(k ? blocks : threads);
}
#    define __launch_bounds__(...)                                  \
        __attribute__((launch_bounds((brass_bound(0, __VA_ARGS__)), \
                                     (brass_bound(1, __VA_ARGS__)))))
#    if __has_attribute(grid_constant)
#        define __grid_constant__ __attribute__((grid_constant))
#    else
#        define __grid_constant__ /* parameters cannot change here anyhow */
#    endif
/* What a kernel says about its clusters clang does not put into PTX. Of several blocks
 * it says that the function below, which has no value, is no constant; brasscc reads
 * that, defines BRASS_CLUSTERS, and puts the annotation's numbers there. */
#    ifdef BRASS_CLUSTERS
constexpr int
brass_cluster_dim(int k, int x, int y = 1, int z = 1)
{
    return k == 0 ? x : k == 1 ? y : z;
}
#        define __cluster_dims__(...)                                    \
            __attribute__((annotate("cluster",                           \
                                    (brass_cluster_dim(0, __VA_ARGS__)), \
                                    (brass_cluster_dim(1, __VA_ARGS__)), \
                                    (brass_cluster_dim(2, __VA_ARGS__)))))
#    else
int several_blocks_in_a_cluster_are_not_supported();
constexpr int
brass_cluster_is_one_block(int x, int y = 1, int z = 1)
{
    return x * y * z == 1 ? 1 : several_blocks_in_a_cluster_are_not_supported();
}
#        define __cluster_dims__(...) \
            __attribute__((annotate(  \
                "cluster", (brass_cluster_is_one_block(__VA_ARGS__)))))
#    endif
#    define __maxnreg__(...)
#    define __nv_pure__  __attribute__((pure))
#    define __assume(is) __builtin_assume(is)
#    if __clang_major__ < 15
#        define __noinline__ /* a word from 15 on; only a wish anyhow */
#    endif
#else
#    define __host__
#    define __device__
#    define __global__
#    define __shared__
#    define __constant__
#    define __launch_bounds__(...)
#    define __grid_constant__
#endif
#define __forceinline__      __inline__ __attribute__((always_inline))
#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CUDARTAPI
#define CUDART_CB
#define CUDAAPI
#define CUDA_CB

#endif
