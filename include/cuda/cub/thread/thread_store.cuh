/* thread_store.cuh - see thread_load.cuh.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_STORE
#define BRASS_CUB_THREAD_STORE
#include "thread_load.cuh"
#endif
