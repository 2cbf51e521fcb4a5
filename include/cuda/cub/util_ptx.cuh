/* util_ptx.cuh - CUB's small words for lanes, barriers and bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_PTX
#define BRASS_CUB_UTIL_PTX
#include "../brass_push.h"

#include "util_arch.cuh"
#include "util_debug.cuh"
#include "util_type.cuh"

namespace cub
{
BRASS_ME unsigned
LaneId()
{
    return brass::lane();
}
BRASS_ME unsigned
WarpId()
{
    return (threadIdx.x +
            blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) /
           32;
}
BRASS_ME int
RowMajorTid(int x, int y, int)
{
    return (int)threadIdx.x + x * ((int)threadIdx.y + y * (int)threadIdx.z);
}
BRASS_ME unsigned
LaneMaskLt()
{
    return (1u << brass::lane()) - 1;
}
BRASS_ME unsigned
LaneMaskLe()
{
    return (2u << brass::lane()) - 1;
}
BRASS_ME unsigned
LaneMaskGt()
{
    return ~LaneMaskLe();
}
BRASS_ME unsigned
LaneMaskGe()
{
    return ~LaneMaskLt();
}
template <int N, int LegacyArch = 0>
BRASS_ME unsigned
WarpMask(unsigned warp)
{
    unsigned all = 0xffffffffu >> (32 - N);

    return brass::lanes<N>::even ? all << (warp * N) : all;
}
BRASS_ME void
CTA_SYNC()
{
    __syncthreads();
}
BRASS_ME int
CTA_SYNC_AND(int p)
{
    return __syncthreads_and(p);
}
BRASS_ME int
CTA_SYNC_OR(int p)
{
    return __syncthreads_or(p);
}
BRASS_ME void
WARP_SYNC(unsigned mask)
{
    __syncwarp(mask);
}
BRASS_ME int
WARP_ANY(int p, unsigned mask)
{
    return __any_sync(mask, p);
}
BRASS_ME int
WARP_ALL(int p, unsigned mask)
{
    return __all_sync(mask, p);
}
BRASS_ME int
WARP_BALLOT(int p, unsigned mask)
{
    return (int)__ballot_sync(mask, p);
}
BRASS_ME void
ThreadTrap()
{
    __trap();
}
BRASS_ME void
ThreadExit()
{
    asm volatile("exit;");
}
template <class T>
BRASS_ME unsigned
BFE(T v, unsigned first, unsigned bits)
{
    unsigned long long all = ~0ull >> (64 - bits);

    return bits ? (unsigned)((unsigned long long)v >> first & all) : 0;
}
BRASS_ME void
BFI(unsigned &r, unsigned x, unsigned y, unsigned first, unsigned bits)
{
    asm("bfi.b32 %0, %1, %2, %3, %4;"
        : "=r"(r)
        : "r"(y), "r"(x), "r"(first), "r"(bits));
}
BRASS_ME unsigned
IADD3(unsigned a, unsigned b, unsigned c)
{
    return a + b + c;
}
BRASS_ME int
PRMT(unsigned a, unsigned b, unsigned index)
{
    return (int)__byte_perm(a, b, index);
}
BRASS_ME unsigned
SHR_ADD(unsigned v, unsigned by, unsigned add)
{
    return (v >> by) + add;
}
BRASS_ME unsigned
SHL_ADD(unsigned v, unsigned by, unsigned add)
{
    return (v << by) + add;
}
/* A source outside of [first, last] is the lane itself. */
template <int N, class T>
BRASS_ME T
ShuffleUp(T v, int by, int first, unsigned)
{
    int me = (int)brass::lanes<N>::me();

    return brass::shuffle<N>(v, (unsigned)(me - by >= first ? me - by : me));
}
template <int N, class T>
BRASS_ME T
ShuffleDown(T v, int by, int last, unsigned)
{
    int me = (int)brass::lanes<N>::me();

    return brass::shuffle<N>(v, (unsigned)(me + by <= last ? me + by : me));
}
template <int N, class T>
BRASS_ME T
ShuffleIndex(T v, int from, unsigned)
{
    return brass::shuffle<N>(v, (unsigned)from);
}
/* The lanes whose first Bits bits are the same. */
template <int Bits>
BRASS_ME unsigned
MatchAny(unsigned v)
{
    return __match_any_sync(0xffffffffu, v & (0xffffffffu >> (32 - Bits)));
}
} // namespace cub

#include "../brass_pop.h"
#endif
