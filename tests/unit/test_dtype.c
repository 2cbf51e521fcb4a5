/* test_dtype.c - conversions, against a construction that shares nothing with
 * them: the values of a small float are made by counting up from zero, adding
 * one quantum at a time, and rounding is judged by midpoints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mega/dtype.h"

T_ONE_THREAD();

typedef struct form {
    int dtype, mbits, bias;
    uint32_t max; /* bits of the largest finite */
    bool inf;
    uint32_t sign;
} form;

static const form forms[] = {
    {BR_MDT_F16, 10, 15, 0x7bff, true, 0x8000},
    {BR_MDT_BF16, 7, 127, 0x7f7f, true, 0x8000},
    {BR_MDT_F8E4M3, 3, 7, 0x7e, false, 0x80},
    {BR_MDT_F8E5M2, 2, 15, 0x7b, true, 0x80},
};

static double
get(int dtype, uint32_t bits)
{
    uint16_t h = (uint16_t)bits;
    uint8_t b = (uint8_t)bits;

    return br_dt_get(dtype, br_dt_row_bytes(dtype, 1) == 2 ? (void *)&h : &b,
                     0);
}

static uint32_t
put(int dtype, double v)
{
    unsigned char raw[8] = {0};
    uint16_t h;

    ck_assert(br_dt_put(dtype, raw, 0, v));
    memcpy(&h, raw, 2);
    return br_dt_row_bytes(dtype, 1) == 2 ? h : raw[0];
}

/* check's assertions cost a microsecond each; these loops run millions. */
static void
same(double got, double want, const char *what, uint32_t at)
{
    if (got != want)
        ck_abort_msg("%s: at %x: got %a, want %a", what, at, got, want);
}

/* value[i] of the i-th non-negative finite number, by counting */
static double *
count_up(const form *f, uint32_t n)
{
    double *v = t_keep(calloc(n + 2, sizeof *v));
    double step = ldexp(1, 1 - f->bias - f->mbits);

    for (uint32_t i = 1; i < n + 2; i++) {
        v[i] = v[i - 1] + step;
        if (i % (1u << f->mbits) == 0 && i >= 2u << f->mbits)
            step *= 2;
    }
    return v;
}

TEST(dtype_every_small_float_has_its_value)
{
    for (size_t k = 0; k < BR_COUNT(forms); k++) {
        const form *f = &forms[k];
        double *v = count_up(f, f->max);

        for (uint32_t i = 0; i <= f->max; i++) {
            same(get(f->dtype, i), v[i], br_dt_name(f->dtype), i);
            same(get(f->dtype, i | f->sign), -v[i], "negative", i);
            same(signbit(get(f->dtype, i | f->sign)) != 0, 1, "sign", i);
            same(put(f->dtype, v[i]), i, "put", i);
            same(put(f->dtype, -v[i]), i | f->sign, "put", i);
        }
        for (uint32_t i = f->max + 1; i < f->sign; i++) {
            bool inf = f->inf && i == f->max + 1;
            double got = get(f->dtype, i);

            ck_assert_msg(inf ? isinf(got) && got > 0 : isnan(got) != 0,
                          "%s %x", br_dt_name(f->dtype), i);
            got = get(f->dtype, i | f->sign);
            ck_assert(inf ? isinf(got) && got < 0 : isnan(got) != 0);
        }
    }
}

TEST(dtype_rounds_to_nearest_even_at_every_midpoint)
{
    for (size_t k = 0; k < BR_COUNT(forms); k++) {
        const form *f = &forms[k];
        double *v = count_up(f, f->max);
        uint32_t over = f->max + 1; /* inf, or NaN in E4M3 */

        for (uint32_t i = 0; i <= f->max; i++) {
            double mid = (v[i] + v[i + 1]) / 2;
            uint32_t even = i & 1 ? i + 1 : i;

            same(put(f->dtype, mid), even, "mid", i);
            same(put(f->dtype, nextafter(mid, 0)), i, "below", i);
            same(put(f->dtype, nextafter(mid, 1e300)), i + 1, "above", i);
            same(put(f->dtype, -mid), even | f->sign, "-mid", i);
        }
        ck_assert_uint_eq(put(f->dtype, v[over] * 1.5), over);
        ck_assert_uint_eq(put(f->dtype, 1e308), over);
        ck_assert_uint_eq(put(f->dtype, -1e308), over | f->sign);
        ck_assert_uint_eq(put(f->dtype, (double)INFINITY), over);
        ck_assert_uint_eq(put(f->dtype, 5e-324), 0);
        ck_assert_uint_eq(put(f->dtype, -5e-324), f->sign);
        ck_assert(isnan(get(f->dtype, put(f->dtype, (double)NAN))));
    }
}

TEST(dtype_known_values)
{
    ck_assert_double_eq(get(BR_MDT_F16, 0x3c00), 1);
    ck_assert_double_eq(get(BR_MDT_F16, 0x7bff), 65504);
    ck_assert_double_eq(get(BR_MDT_F16, 0x0001), ldexp(1, -24));
    ck_assert_double_eq(get(BR_MDT_BF16, 0x4049), 3.140625);
    ck_assert_double_eq(get(BR_MDT_F8E4M3, 0x7e), 448);
    ck_assert_double_eq(get(BR_MDT_F8E5M2, 0x7b), 57344);
    /* 1 + 2^-11 + 2^-30 is above the midpoint; through f32 it would not be */
    ck_assert_uint_eq(put(BR_MDT_F16, 1 + ldexp(1, -11) + ldexp(1, -30)),
                      0x3c01);
}

#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 half;

TEST(dtype_f16_agrees_with_the_compiler)
{
    uint64_t s = 1;

    for (int i = 0; i < 300000; i++) {
        uint32_t u = (uint32_t)t_rand(&s);
        half want;
        uint16_t bits;
        float f;

        memcpy(&f, &u, 4);
        if (isnan(f))
            continue;
        want = (half)f;
        memcpy(&bits, &want, 2);
        same(br_f64_to_f16((double)f), bits, "f16", u);
    }
}
#endif

/* The usual trick on integers, for values that are not near overflow. */
TEST(dtype_bf16_agrees_with_integer_rounding)
{
    uint64_t s = 2;

    for (int i = 0; i < 300000; i++) {
        uint32_t u = (uint32_t)t_rand(&s);
        float f;

        memcpy(&f, &u, 4);
        if (isnan(f))
            continue;
        same(br_f64_to_bf16((double)f), (u + 0x7fff + (u >> 16 & 1)) >> 16,
             "bf16", u);
    }
}

TEST(dtype_integers_round_and_refuse)
{
    static const struct {
        int dtype;
        double lo, hi;
    } rows[] = {
        {BR_MDT_I32, -2147483648.0, 2147483647.0},
        {BR_MDT_I8, -128, 127},
        {BR_MDT_U8, 0, 255},
        {BR_MDT_I4, -8, 7},
    };

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        int dt = rows[k].dtype;
        unsigned char raw[8] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};
        unsigned char was[8];

        ck_assert(br_dt_put(dt, raw, 0, rows[k].lo));
        ck_assert_double_eq(br_dt_get(dt, raw, 0), rows[k].lo);
        ck_assert(br_dt_put(dt, raw, 0, rows[k].hi));
        ck_assert_double_eq(br_dt_get(dt, raw, 0), rows[k].hi);
        ck_assert(br_dt_put(dt, raw, 0, rows[k].hi + 0.25));
        ck_assert_double_eq(br_dt_get(dt, raw, 0), rows[k].hi);
        ck_assert(br_dt_put(dt, raw, 1, 2.5));
        ck_assert_double_eq(br_dt_get(dt, raw, 1), 2);
        ck_assert(br_dt_put(dt, raw, 1, 3.5));
        ck_assert_double_eq(br_dt_get(dt, raw, 1), 4);
        ck_assert_double_eq(br_dt_get(dt, raw, 0), rows[k].hi);
        memcpy(was, raw, 8);
        ck_assert(!br_dt_put(dt, raw, 0, rows[k].hi + 0.75));
        ck_assert(!br_dt_put(dt, raw, 0, rows[k].lo - 0.75));
        ck_assert(!br_dt_put(dt, raw, 0, (double)NAN));
        ck_assert(!br_dt_put(dt, raw, 0, (double)INFINITY));
        ck_assert_mem_eq(was, raw, 8);
    }
}

TEST(dtype_i4_even_column_is_the_low_nibble)
{
    unsigned char raw[2] = {0xff, 0xff};

    ck_assert(br_dt_put(BR_MDT_I4, raw, 0, -8));
    ck_assert(br_dt_put(BR_MDT_I4, raw, 1, 3));
    ck_assert_uint_eq(raw[0], 0xb0);
    ck_assert_uint_eq(raw[1], 0xff);
    for (int v = -8; v < 8; v++) {
        ck_assert(br_dt_put(BR_MDT_I4, raw, 2, v));
        ck_assert_uint_eq(raw[1], 0xf0 | (v + 8));
        ck_assert_double_eq(br_dt_get(BR_MDT_I4, raw, 2), v);
    }
    ck_assert_int_eq(br_dt_row_bytes(BR_MDT_I4, 5), 3);
    ck_assert_int_eq(br_dt_row_bytes(BR_MDT_I4, 0), 0);
}

TEST(dtype_bool_is_not_zero)
{
    unsigned char raw[4] = {9, 9, 9, 9};

    ck_assert(br_dt_put(BR_MDT_BOOL, raw, 0, 0.25));
    ck_assert(br_dt_put(BR_MDT_BOOL, raw, 1, 0));
    ck_assert(br_dt_put(BR_MDT_BOOL, raw, 2, (double)NAN));
    ck_assert_uint_eq(raw[0], 1);
    ck_assert_uint_eq(raw[1], 0);
    ck_assert_uint_eq(raw[2], 1);
    ck_assert_double_eq(br_dt_get(BR_MDT_BOOL, raw, 3), 1);
}

TEST(dtype_i32_to_f32_rounds_once)
{
    int32_t n[3] = {16777217, 16777219, -2147483647};
    float f[3];

    br_dt_get_f32(BR_MDT_I32, n, 0, 3, f);
    ck_assert_double_eq((double)f[0], 16777216);
    ck_assert_double_eq((double)f[1], 16777220);
    ck_assert_double_eq((double)f[2], -2147483648.0);
}
