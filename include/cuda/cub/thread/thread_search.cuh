/* thread_search.cuh - see thread_reduce.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_SEARCH
#define BRASS_CUB_THREAD_SEARCH
#include "thread_reduce.cuh"
#endif
