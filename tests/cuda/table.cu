/* table.cu - a hash table with open addresses: 64-bit compare and swap, then
 * counting and looking up; 16-bit counters by the word around them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <map>

enum { SLOTS = 1024 };

__device__ __forceinline__ unsigned
hash(unsigned k)
{
    k ^= k >> 16;
    k *= 0x85ebca6b;
    k ^= k >> 13;
    return k & (SLOTS - 1);
}
/* Key in the upper half, how often in the lower. */
__global__ void
count(const unsigned *keys, int n, unsigned long long *slots)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    unsigned long long mine = (unsigned long long)keys[i] << 32;
    for (unsigned at = hash(keys[i]);; at = (at + 1) & (SLOTS - 1)) {
        unsigned long long was = atomicCAS(&slots[at], 0ull, mine | 1);

        if (was == 0)
            return;
        if (was >> 32 == keys[i]) {
            atomicAdd(&slots[at], 1ull);
            return;
        }
    }
}
__global__ void
look(const unsigned *keys, int n, const unsigned long long *slots,
     unsigned *found)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned at = hash(keys[i]);

        while (slots[at] && slots[at] >> 32 != keys[i])
            at = (at + 1) % SLOTS;
        found[i] = (unsigned)slots[at];
    }
}
__global__ void
digits(const unsigned *keys, int n, unsigned short *count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    unsigned short *p = &count[keys[i] % 10], old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, (unsigned short)(seen + 1));
    } while (old != seen);
}

int
main()
{
    const int n = 2000;
    std::vector<unsigned> keys(n);
    std::map<unsigned, unsigned> want;
    unsigned tens[10] = {};

    for (unsigned &k : keys) {
        k = 1 + (unsigned)(rnd() * 700);
        want[k]++;
        tens[k % 10]++;
    }
    Dev<unsigned> d(keys), found(n);
    Dev<unsigned long long> slots(std::vector<unsigned long long>(SLOTS, 0));
    Dev<unsigned short> ten(std::vector<unsigned short>(10, 0));

    count<<<(n + 255) / 256, 256>>>(d, n, slots);
    look<<<1, 128>>>(d, n, slots, found);
    digits<<<4, 512>>>(d, n, ten);
    std::vector<unsigned> got = found.get();
    std::vector<unsigned short> t = ten.get();
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == want[keys[i]]);
    for (int i = 0; i < 10; i++)
        EXPECT(t[i] == tens[i]);
    return done();
}
