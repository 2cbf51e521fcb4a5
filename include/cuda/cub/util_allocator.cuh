/* util_allocator.cuh - CUB's allocator, which keeps what is freed.
 *
 * Sizes are powers of a growth factor; a block is given again to whoever asks for
 * its size on its stream, or on another one once its event has passed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_ALLOCATOR
#define BRASS_CUB_UTIL_ALLOCATOR
#include "../brass_push.h"

#include "util_debug.cuh"

#include <map>
#include <mutex>

namespace cub
{
struct CachingDeviceAllocator {
    static const unsigned int INVALID_BIN = (unsigned int)-1;
    static const size_t INVALID_SIZE = (size_t)-1;
    static const int INVALID_DEVICE_ORDINAL = -1;

    unsigned int bin_growth, min_bin, max_bin;
    size_t max_cached_bytes;
    bool skip_cleanup, debug;

    explicit CachingDeviceAllocator(unsigned int growth, unsigned int least = 1,
                                    unsigned int most = INVALID_BIN,
                                    size_t cached = INVALID_SIZE,
                                    bool keep = false, bool tell = false)
        : bin_growth(growth), min_bin(least), max_bin(most),
          max_cached_bytes(cached), skip_cleanup(keep), debug(tell)
    {
    }
    CachingDeviceAllocator(bool keep = false, bool tell = false)
        : CachingDeviceAllocator(8, 3, 7, (size_t)6 << 20, keep, tell)
    {
    }
    ~CachingDeviceAllocator()
    {
        if (!skip_cleanup)
            FreeAllCached();
    }
    cudaError_t SetMaxCachedBytes(size_t n)
    {
        std::lock_guard<std::mutex> hold(lock);

        max_cached_bytes = n;
        return cudaSuccess;
    }
    cudaError_t DeviceAllocate(int, void **p, size_t bytes, cudaStream_t s = 0)
    {
        return DeviceAllocate(p, bytes, s);
    }
    cudaError_t DeviceAllocate(void **p, size_t bytes, cudaStream_t s = 0)
    {
        std::lock_guard<std::mutex> hold(lock);
        size_t size = rounded(bytes);
        block b = {size, s, 0};

        if (size && again(p, b))
            return cudaSuccess;
        b.size = size ? size : bytes;
        cudaError_t e = cudaMalloc(p, b.size);
        if (e == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            drop_all();
            e = cudaMalloc(p, b.size);
        }
        b.size = size; /* 0: not to be kept */
        if (e == cudaSuccess)
            live[*p] = b;
        return e;
    }
    cudaError_t DeviceFree(int, void *p) { return DeviceFree(p); }
    cudaError_t DeviceFree(void *p)
    {
        std::lock_guard<std::mutex> hold(lock);
        auto at = live.find(p);
        cudaError_t e = cudaSuccess;

        if (at == live.end())
            return cudaFree(p);
        block b = at->second;
        live.erase(at);
        if (b.size == 0 || cached + b.size > max_cached_bytes)
            return cudaFree(p);
        e = cudaEventCreateWithFlags(&b.ready, cudaEventDisableTiming);
        if (e == cudaSuccess)
            e = cudaEventRecord(b.ready, b.stream);
        if (e != cudaSuccess)
            return e;
        cached += b.size;
        idle.insert(std::make_pair(p, b));
        return e;
    }
    cudaError_t FreeAllCached()
    {
        std::lock_guard<std::mutex> hold(lock);

        return drop_all();
    }

  private:
    struct block {
        size_t size;
        cudaStream_t stream;
        cudaEvent_t ready;
    };
    std::mutex lock;
    std::map<void *, block> live, idle;
    size_t cached = 0;

    /* The size of the bin; 0 of what is too large for all of them. */
    size_t rounded(size_t bytes) const
    {
        size_t size = 1;
        unsigned int bin = 0;

        for (; bin < min_bin || size < bytes; bin++) {
            if (bin >= max_bin || size > (size_t)-1 / bin_growth)
                return 0;
            size *= bin_growth;
        }
        return size;
    }
    bool again(void **p, block &b)
    {
        for (auto at = idle.begin(); at != idle.end(); ++at) {
            block &c = at->second;

            if (c.size != b.size || (c.stream != b.stream &&
                                     cudaEventQuery(c.ready) != cudaSuccess))
                continue;
            cudaEventDestroy(c.ready);
            *p = at->first;
            live[*p] = b;
            cached -= b.size;
            idle.erase(at);
            return true;
        }
        return false;
    }
    cudaError_t drop_all()
    {
        cudaError_t e = cudaSuccess;

        for (auto &at : idle) {
            cudaError_t one = cudaFree(at.first);

            cudaEventDestroy(at.second.ready);
            e = e == cudaSuccess ? one : e;
        }
        idle.clear();
        cached = 0;
        return e;
    }
};
} // namespace cub

#include "../brass_pop.h"
#endif
