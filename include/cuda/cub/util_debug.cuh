/* util_debug.cuh - CUB's way to tell of errors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_DEBUG
#define BRASS_CUB_UTIL_DEBUG
#include "../cuda_runtime.h"
#include "util_macro.cuh"

#include <stdio.h>
#include <stdlib.h>

namespace cub
{
/* The error, told with its place on stderr; in a kernel, on stdout. */
__host__ __device__ inline cudaError_t
Debug(cudaError_t error, const char *file, int line)
{
    if (error == cudaSuccess)
        return error;
#ifdef __CUDA_ARCH__
    printf("CUDA error %d [%s:%d]\n", (int)error, file, line);
#else
    cudaGetLastError();
    fprintf(stderr, "CUDA error %d [%s:%d]: %s\n", (int)error, file, line,
            cudaGetErrorString(error));
#endif
    return error;
}
} // namespace cub

#ifndef CubDebug
#    define CubDebug(e) ::cub::Debug((cudaError_t)(e), __FILE__, __LINE__)
#endif
#ifndef CubDebugExit
#    define CubDebugExit(e)                                           \
        do {                                                          \
            if (::cub::Debug((cudaError_t)(e), __FILE__, __LINE__) != \
                cudaSuccess)                                          \
                exit(1);                                              \
        } while (0)
#endif
#define _CubLog(...) printf(__VA_ARGS__)

#endif
