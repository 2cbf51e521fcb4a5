/* thread_load.cuh - loads and stores with a hint for the cache, which has no
 * meaning here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_THREAD_LOAD
#define BRASS_CUB_THREAD_LOAD
#include "../../brass_push.h"

#include "../util_ptx.cuh"

namespace cub
{
enum CacheLoadModifier {
    LOAD_DEFAULT,
    LOAD_CA,
    LOAD_CG,
    LOAD_CS,
    LOAD_CV,
    LOAD_LDG,
    LOAD_VOLATILE
};
enum CacheStoreModifier {
    STORE_DEFAULT,
    STORE_WB,
    STORE_CG,
    STORE_CS,
    STORE_WT,
    STORE_VOLATILE
};
template <CacheLoadModifier How, class I>
BRASS_ME value_t<I>
ThreadLoad(I at)
{
    return *at;
}
/* A pointer may be one that other blocks write to while this one waits. */
template <CacheLoadModifier How, class T>
BRASS_ME typename std::remove_cv<T>::type
ThreadLoad(T *at)
{
    typename std::remove_cv<T>::type v;

    if (How == LOAD_VOLATILE || How == LOAD_CV || How == LOAD_CG)
        asm volatile("" ::: "memory");
    v = *at;
    return v;
}
template <CacheStoreModifier How, class I, class T>
BRASS_ME void
ThreadStore(I at, T v)
{
    *at = v;
    if (How == STORE_VOLATILE || How == STORE_CG)
        asm volatile("" ::: "memory");
}
} // namespace cub

#include "../../brass_pop.h"
#endif
