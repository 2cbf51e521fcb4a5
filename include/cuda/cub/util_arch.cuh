/* util_arch.cuh - what CUB says of processors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_ARCH
#define BRASS_CUB_UTIL_ARCH
#include "util_macro.cuh"

#ifdef __CUDA_ARCH__
#    define CUB_PTX_ARCH __CUDA_ARCH__
#else
#    define CUB_PTX_ARCH 0
#endif
#define CUB_LOG_WARP_THREADS(arch)             5
#define CUB_WARP_THREADS(arch)                 32
#define CUB_LOG_SMEM_BANKS(arch)               5
#define CUB_SMEM_BANKS(arch)                   32
#define CUB_PTX_LOG_WARP_THREADS               5
#define CUB_PTX_WARP_THREADS                   32
#define CUB_PTX_LOG_SMEM_BANKS                 5
#define CUB_PTX_SMEM_BANKS                     32
#define CUB_PREFER_CONFLICT_OVER_PADDING(arch) 1
#define CUB_PTX_PREFER_CONFLICT_OVER_PADDING   1
#define CUB_SUBSCRIPTION_FACTOR(arch)          5
#define CUB_MAX_DEVICES                        128
#endif
