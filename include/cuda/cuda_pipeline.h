/* cuda_pipeline.h - copies to shared memory that run ahead of their thread.
 *
 * Here a copy is made where it is asked for, which is a time that the contract
 * allows; so committing and waiting only order what the thread does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUDA_PIPELINE_H
#define BRASS_CUDA_PIPELINE_H
#include "brass_push.h"

#include "cuda_runtime.h"

/* `zeros` of the bytes at the end are not read; zeros are written for them. */
BRASS_D void
__pipeline_memcpy_async(void *__restrict__ dst, const void *__restrict__ src,
                        size_t bytes, size_t zeros = 0)
{
    size_t n = bytes - zeros;

    if (zeros == 0 && bytes == 16)
        *(uint4 *)dst = *(const uint4 *)src;
    else if (zeros == 0 && bytes == 8)
        *(uint2 *)dst = *(const uint2 *)src;
    else if (zeros == 0 && bytes == 4)
        *(unsigned int *)dst = *(const unsigned int *)src;
    else
        for (size_t k = 0; k < bytes; k++)
            ((char *)dst)[k] = k < n ? ((const char *)src)[k] : 0;
}
BRASS_D void
__pipeline_commit()
{
    asm volatile("" ::: "memory");
}
BRASS_D void
__pipeline_wait_prior(size_t)
{
    asm volatile("" ::: "memory");
}

namespace nvcuda
{
namespace experimental
{
class pipeline
{
    size_t stage = 0;

  public:
    __device__ pipeline() {}
    pipeline(const pipeline &) = delete;
    __device__ size_t commit()
    {
        __pipeline_commit();
        return stage++;
    }
    __device__ void commit_and_wait() { wait(commit()); }
    __device__ void wait(size_t) { __pipeline_wait_prior(0); }
    template <unsigned N> __device__ void wait_prior()
    {
        __pipeline_wait_prior(N);
    }
};
template <class T>
BRASS_D void
memcpy_async(T &dst, const T &src, pipeline &)
{
    dst = src;
}
} // namespace experimental
} // namespace nvcuda

#include "brass_pop.h"
#endif
