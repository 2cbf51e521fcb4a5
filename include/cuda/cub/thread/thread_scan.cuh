/* thread_scan.cuh - see thread_reduce.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_SCAN
#define BRASS_CUB_THREAD_SCAN
#include "thread_reduce.cuh"
#endif
