/* cuda_words.h - the words of CUDA that blocks.cu uses, for clang without a
 * toolkit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define __global__   __attribute__((global))
#define __device__   __attribute__((device))
#define __shared__   __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#include <__clang_cuda_builtin_vars.h>
static __device__ float
__shfl_down_sync(unsigned mask, float v, int d)
{
    return __nvvm_shfl_sync_down_f32(mask, v, d, 31);
}
static __device__ unsigned
atomicAdd(unsigned *p, unsigned v)
{
    return __nvvm_atom_add_gen_i((int *)p, (int)v);
}
