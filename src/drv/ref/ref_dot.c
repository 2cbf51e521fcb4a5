/* ref_dot.c - the float dot product of the contract.
 *
 *   lane[l] = fma(a[k], b[k], lane[l])   k ascending, l = k mod 16
 *   8-4-2-1: lane[l] += lane[l + 8] for l < 8, then 4, 2, 1
 *
 * Sixteen lanes are one AVX-512 register, two AVX2, four NEON; any machine can
 * do it as fast as its memory feeds it, and every one gets the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref.h"

#include <math.h>

/* The same C for machines with and without a fused multiply-add instruction;
 * without one, libm's fmaf is exact and about 30 times slower. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#    define CLONES \
        __attribute__((target_clones("fma", "default"), optimize("O3")))
#else
#    define CLONES
#endif

CLONES float
br_ref_dot(const float *a, const float *b, size_t n)
{
    float lane[16] = {0};
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        for (size_t l = 0; l < 16; l++)
            lane[l] = fmaf(a[k + l], b[k + l], lane[l]);
    for (size_t l = 0; k + l < n; l++)
        lane[l] = fmaf(a[k + l], b[k + l], lane[l]);
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}
