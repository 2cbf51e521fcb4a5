/* test_softfp.c - integers that compute like the processor's floats.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/softfp.h"

#include <math.h>
#include <string.h>

T_ONE_THREAD();

/* Bits with exponents near each other more often than chance has them, and
 * zeros, infinities and subnormals among them. */
static uint64_t
pick(uint64_t *seed, unsigned bits, unsigned mbits)
{
    uint64_t v = t_rand(seed) >> (64 - bits), way = t_rand(seed) % 8;
    uint64_t bias = (1ull << (bits - mbits - 2)) - 1;

    if (way < 4)
        v = (v & ~(~0ull << mbits)) | (v >> (bits - 1)) << (bits - 1) |
            (bias + (t_rand(seed) % 9) - 4) << mbits;
    if (way == 4)
        v &= ~(~0ull << mbits) | 1ull << (bits - 1);
    if (way == 5)
        v &= ~0ull << mbits;
    return v;
}

static float
f32_of(uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static double
f64_of(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

static bool
same32(uint64_t got, float want)
{
    uint32_t bits;

    memcpy(&bits, &want, sizeof bits);
    return isnan(want) ? br_sf_is_nan(BR_SF_F32, got) : got == bits;
}

static bool
same64(uint64_t got, double want)
{
    uint64_t bits;

    memcpy(&bits, &want, sizeof bits);
    return isnan(want) ? br_sf_is_nan(BR_SF_F64, got) : got == bits;
}

TEST(softfp_is_the_processor_in_its_own_rounding)
{
    br_sf s = {BR_SF_F32, BR_SF_RN, false}, d = {BR_SF_F64, BR_SF_RN, false};
    uint64_t seed = 1;
    int bad = 0;

    for (int n = 0; n < 100000; n++) {
        uint64_t a = pick(&seed, 32, 23), b = pick(&seed, 32, 23);
        uint64_t c = pick(&seed, 32, 23);
        float x = f32_of(a), y = f32_of(b), z = f32_of(c);

        bad += !same32(br_sf_add(s, a, b), x + y);
        bad += !same32(br_sf_mul(s, a, b), x * y);
        bad += !same32(br_sf_div(s, a, b), x / y);
        bad += !same32(br_sf_sqrt(s, a), sqrtf(x));
        bad += !same32(br_sf_fma(s, a, b, c), fmaf(x, y, z));
        bad += !same32(br_sf_rint(s, a), rintf(x));
        bad += !same64(br_sf_cvt(s, BR_SF_F64, false, a), (double)x);
    }
    ck_assert_int_eq(bad, 0);
    for (int n = 0; n < 100000; n++) {
        uint64_t a = pick(&seed, 64, 52), b = pick(&seed, 64, 52);
        uint64_t c = pick(&seed, 64, 52);
        double x = f64_of(a), y = f64_of(b), z = f64_of(c);

        bad += !same64(br_sf_add(d, a, b), x + y);
        bad += !same64(br_sf_mul(d, a, b), x * y);
        bad += !same64(br_sf_div(d, a, b), x / y);
        bad += !same64(br_sf_sqrt(d, a), sqrt(x));
        bad += !same64(br_sf_fma(d, a, b, c), fma(x, y, z));
        bad += !same32(br_sf_cvt(d, BR_SF_F32, false, a), (float)x);
    }
    ck_assert_int_eq(bad, 0);
}

/* A rounded result lies between its neighbours, and rm <= rn <= rp. */
TEST(softfp_roundings_enclose_the_result)
{
    uint64_t seed = 2;
    int bad = 0;

    for (int n = 0; n < 50000; n++) {
        uint64_t a = pick(&seed, 32, 23), b = pick(&seed, 32, 23), r[5];
        bool minus;

        for (unsigned k = BR_SF_RN; k <= BR_SF_RP; k++)
            r[k] = br_sf_mul((br_sf){BR_SF_F32, (br_sf_round)k, false}, a, b);
        if (br_sf_is_nan(BR_SF_F32, r[BR_SF_RN]))
            continue;
        minus = r[BR_SF_RN] >> 31;
        /* Exact in f64: 24 + 24 bits. */
        bad += !((double)f32_of(r[BR_SF_RM]) <=
                     (double)f32_of(a) * (double)f32_of(b) &&
                 (double)f32_of(r[BR_SF_RP]) >=
                     (double)f32_of(a) * (double)f32_of(b));
        bad += r[BR_SF_RZ] != r[minus ? BR_SF_RP : BR_SF_RM];
        bad += r[BR_SF_RN] != r[BR_SF_RM] && r[BR_SF_RN] != r[BR_SF_RP];
    }
    ck_assert_int_eq(bad, 0);
}

/* Every value of the small formats there and back. */
TEST(softfp_small_formats_come_back_from_f32)
{
    static const struct {
        br_sf_fmt fmt;
        unsigned values;
    } fmts[] = {{BR_SF_F16, 1 << 16},
                {BR_SF_BF16, 1 << 16},
                {BR_SF_E4M3, 1 << 8},
                {BR_SF_E5M2, 1 << 8}};
    int bad = 0;

    for (size_t k = 0; k < BR_COUNT(fmts); k++)
        for (uint64_t v = 0; v < fmts[k].values; v++) {
            br_sf s = {fmts[k].fmt, BR_SF_RN, false};
            br_sf back = {BR_SF_F32, BR_SF_RN, false};
            uint64_t f = br_sf_cvt(s, BR_SF_F32, false, v);

            if (br_sf_is_nan(s.fmt, v))
                bad += !br_sf_is_nan(BR_SF_F32, f);
            else
                bad += br_sf_cvt(back, s.fmt, false, f) != v;
        }
    ck_assert_int_eq(bad, 0);
}

/* The functions are within half a unit of what libm says in f64. */
TEST(softfp_approximations_are_nearest)
{
    static double (*const fns[])(double) = {[BR_SF_EX2] = exp2,
                                            [BR_SF_LG2] = log2,
                                            [BR_SF_SIN] = sin,
                                            [BR_SF_COS] = cos,
                                            [BR_SF_TANH] = tanh};
    br_sf s = {BR_SF_F32, BR_SF_RN, false};
    uint64_t seed = 3;
    int off = 0;

    for (int n = 0; n < 20000; n++)
        for (int k = BR_SF_EX2; k <= BR_SF_TANH; k++) {
            uint64_t a = pick(&seed, 32, 23), got, d;
            float want;
            uint32_t bits;

            if (k == BR_SF_LG2)
                a &= 0x7fffffff;
            want = (float)fns[k]((double)f32_of(a));
            got = br_sf_approx(s, (br_sf_fn)k, a);
            if (same32(got, want) || (k >= BR_SF_SIN && k <= BR_SF_COS &&
                                      fabs((double)f32_of(a)) > 1e6))
                continue;
            memcpy(&bits, &want, sizeof bits);
            d = got > bits ? got - bits : bits - got;
            ck_assert_msg(d <= 1, "%d of %a: %a, not %a", k, (double)f32_of(a),
                          (double)f32_of(got), (double)want);
            off++;
        }
    ck_assert_int_le(off, 5); /* of 100,000: a tie that f64 could not tell */
}
