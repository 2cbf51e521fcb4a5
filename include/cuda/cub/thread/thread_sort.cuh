/* thread_sort.cuh - see thread_reduce.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_SORT
#define BRASS_CUB_THREAD_SORT
#include "thread_reduce.cuh"
#endif
