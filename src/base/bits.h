/* bits.h - floats and the bits they are made of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_BITS_H
#define BR_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
br_f32_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float
br_f32_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t
br_f64_bits(double f)
{
    uint64_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline double
br_f64_of(uint64_t u)
{
    double f;

    memcpy(&f, &u, sizeof f);
    return f;
}

#endif
