/* brass_libdevice.h - the functions that clang's CUDA headers call.
 *
 * They are declared there as __nv_NAME; SDKs bring them as bitcode, and here
 * they are inline functions. Only what is used gets into the PTX. Left out are
 * the Bessel functions j and y.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_LIBDEVICE_H
#define BRASS_LIBDEVICE_H
#include "brass_math.h"

#define BR_NV __device__ inline __attribute__((always_inline))

/* f of each lane of two words, signs and zeros of its type. */
template <class T, class F>
BR_FN unsigned
br_lanes(unsigned a, unsigned b, F f)
{
    const int w = 8 * sizeof(T);
    unsigned r = 0;

    for (int k = 0; k < 32; k += w)
        r |= ((unsigned)f((int)(T)(a >> k), (int)(T)(b >> k)) &
              (0xffffffffu >> (32 - w)))
             << k;
    return r;
}
template <class T>
BR_FN unsigned
br_lane_sum(unsigned a, unsigned b)
{
    unsigned r = 0;

    for (int k = 0; k < 32; k += 8 * (int)sizeof(T)) {
        int d = (int)(T)(a >> k) - (int)(T)(b >> k);

        r += (unsigned)(d < 0 ? -d : d);
    }
    return r;
}

extern "C" {
#include "brass_libdevice.def"
}

#endif
