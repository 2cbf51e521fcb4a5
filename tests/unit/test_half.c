/* test_half.c - F16 and BF16, all 65,536 of each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/half.h"
#include "mega/dtype.h"

#include <math.h>
#include <string.h>

T_ONE_THREAD();

static float
float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

/* Value of a half by its definition. */
static double
f16_value(unsigned h)
{
    int e = (int)(h >> 10 & 31);
    double m = h & 0x3ff;
    double v = e ? ldexp(m + 1024, e - 25) : ldexp(m, -24);

    return h & 0x8000 ? -v : v;
}

TEST(half_f16_of_every_pattern)
{
    unsigned wrong = 0;

    for (unsigned h = 0; h < 65536; h++) {
        float f = br_f16_to_f32((uint16_t)h);

        if ((h & 0x7c00) != 0x7c00)
            wrong += (double)f != f16_value(h) || !signbit(f) != !(h & 0x8000);
        else if (h & 0x3ff)
            wrong += !isnan(f) || !signbit(f) != !(h & 0x8000);
        else
            wrong += !isinf(f) || (f < 0) != (h >= 0x8000);
        if (!isnan(f))
            wrong += br_f32_to_f16(f) != h;
        else
            wrong += br_f32_to_f16(f) != (h | 0x200);
    }
    ck_assert_uint_eq(wrong, 0);
}

TEST(half_f16_rounds_to_nearest_even)
{
    unsigned wrong = 0;

    /* between two neighbours: below, at and above the middle */
    for (unsigned h = 0; h < 0x7bff; h++) {
        float mid = (float)((f16_value(h) + f16_value(h + 1)) / 2);

        wrong += br_f32_to_f16(mid) != h + (h & 1);
        wrong += br_f32_to_f16(nextafterf(mid, 0)) != h;
        wrong += br_f32_to_f16(nextafterf(mid, INFINITY)) != h + 1;
        wrong += br_f32_to_f16(-mid) != (0x8000 | (h + (h & 1)));
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(br_f32_to_f16(65519.99f), 0x7bff);
    ck_assert_uint_eq(br_f32_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(br_f32_to_f16(-1e30f), 0xfc00);
    ck_assert_uint_eq(br_f32_to_f16(0x1p-25f), 0);
    ck_assert_uint_eq(br_f32_to_f16(0x1.000002p-25f), 1);
}

/* The other implementation in the tree, which goes through doubles. */
TEST(half_agrees_with_the_encoder_of_programs)
{
    uint64_t seed = 7;
    unsigned wrong = 0;

    for (int i = 0; i < 500000; i++) {
        float f = float_of((uint32_t)t_rand(&seed));

        if (isnan(f))
            continue;
        wrong += br_f32_to_f16(f) != br_f64_to_f16((double)f);
        wrong += br_f32_to_bf16(f) != br_f64_to_bf16((double)f);
    }
    ck_assert_uint_eq(wrong, 0);
}

TEST(half_bf16_of_every_pattern)
{
    unsigned wrong = 0;

    for (unsigned h = 0; h < 65536; h++) {
        float f = br_bf16_to_f32((uint16_t)h);

        if (isnan(f))
            wrong += br_f32_to_bf16(f) != (h | 0x40);
        else
            wrong += br_f32_to_bf16(f) != h;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(br_f32_to_bf16(float_of(0x3f808000)), 0x3f80);
    ck_assert_uint_eq(br_f32_to_bf16(float_of(0x3f818000)), 0x3f82);
    ck_assert_uint_eq(br_f32_to_bf16(float_of(0x7f7fffff)), 0x7f80);
}
