/* system_error.h - what is thrown when the device says no.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_ERROR
#define BRASS_THRUST_SYSTEM_ERROR
#include "../cuda_runtime.h"

#include <new>
#include <string>
#include <system_error>

namespace thrust
{
using std::errc;
using std::error_category;
using std::error_code;
using std::error_condition;
using std::make_error_code;

struct brass_category : std::error_category {
    const char *name() const noexcept override { return "cuda"; }
    std::string message(int e) const override
    {
        return std::string(cudaGetErrorName((cudaError_t)e)) + ": " +
               cudaGetErrorString((cudaError_t)e);
    }
};
inline const std::error_category &
cuda_category()
{
    static brass_category c;

    return c;
}
struct system_error : std::system_error {
    using std::system_error::system_error;
    system_error(cudaError_t e, const char *what)
        : std::system_error((int)e, cuda_category(), what)
    {
    }
};
namespace system
{
using thrust::cuda_category;
using thrust::error_category;
using thrust::error_code;
using thrust::system_error;
namespace detail
{
struct bad_alloc : std::bad_alloc {
    const char *what() const noexcept override
    {
        return "std::bad_alloc: cudaErrorMemoryAllocation: out of memory";
    }
};
} // namespace detail
} // namespace system
} // namespace thrust

namespace brass
{
inline void
check(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    cudaGetLastError();
    if (e == cudaErrorMemoryAllocation)
        throw thrust::system::detail::bad_alloc();
    throw thrust::system_error(e, "thrust");
}
} // namespace brass
#endif
