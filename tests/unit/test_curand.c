/* test_curand.c - random numbers: published values, tables computed anew, what
 * the host's interface promises, and distributions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/rand/rand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* ---- the algorithms ----------------------------------------------------- */

/* Marsaglia's own seeds; the words that every XORWOW gives for them. */
TEST(curand_xorwow_is_marsaglias)
{
    static const uint32_t want[] = {246875399u, 3690007200u, 1264581005u,
                                    3906711041u, 1866187943u};
    struct curandStateXORWOW s = {
        .d = 6615241,
        .v = {123456789, 362436069, 521288629, 88675123, 5783321}};

    for (size_t k = 0; k < BR_COUNT(want); k++)
        ck_assert_uint_eq(brass_xorwow(&s), want[k]);
}

/* The step's polynomial has no factors, so one state speaks for all: row 0 is
 * one step, and row k twice is row k + 1 once. */
TEST(curand_xorwow_jumps_are_powers)
{
    struct curandStateXORWOW a, b;

    brass_xorwow_seed(&a, 7);
    b = a;
    brass_xorwow_skip(&a, 1);
    brass_xorwow(&b);
    ck_assert(memcmp(a.v, b.v, sizeof a.v) == 0 && a.d == b.d);
    for (int k = 0; k < 130; k++) {
        brass_xorwow_seed(&a, (unsigned)k);
        b = a;
        brass_xorwow_jump(&a, 1, k);
        brass_xorwow_jump(&a, 1, k);
        brass_xorwow_jump(&b, 1, k + 1);
        ck_assert_msg(memcmp(a.v, b.v, sizeof a.v) == 0, "row %d", k + 1);
    }
    brass_xorwow_skip(&a, 12345);
    b.d = a.d - 12345u * BRASS_XORWOW_WEYL;
    for (int k = 0; k < 12345; k++)
        brass_xorwow(&b);
    ck_assert(memcmp(a.v, b.v, sizeof a.v) == 0 && a.d == b.d);
}

/* L'Ecuyer's package starts with six times 12345; u is z / (m1 + 1). */
TEST(curand_mrg32k3a_is_lecuyers)
{
    static const double want[] = {0.1270111220465, 0.3185275653967,
                                  0.3091860155832, 0.8258468629271,
                                  0.2216299157820};
    struct curandStateMRG32k3a s = {.s1 = {12345, 12345, 12345},
                                    .s2 = {12345, 12345, 12345}};
    struct curandStateMRG32k3a a, b;

    for (size_t k = 0; k < BR_COUNT(want); k++)
        ck_assert_double_eq_tol((brass_mrg(&s) + 1.0) / (BRASS_MRG_M1 + 1.0),
                                want[k], 1e-12);
    brass_mrg_seed(&a, 7);
    b = a;
    brass_mrg_skip(&a, 1000, 0);
    for (int k = 0; k < 1000; k++)
        brass_mrg(&b);
    ck_assert(memcmp(a.s1, b.s1, sizeof a.s1) == 0 &&
              memcmp(a.s2, b.s2, sizeof a.s2) == 0);
}

TEST(curand_mrg32k3a_jumps_are_powers)
{
    for (int h = 0; h < 2; h++) {
        unsigned c = h ? BRASS_MRG_C2 : BRASS_MRG_C1, a[9], t[9];

        memcpy(a, brass_mrg_pow[0][h], sizeof a);
        for (int k = 1; k <= 127; k++) {
            brass_mrg_mul(t, a, a, 3, c);
            memcpy(a, t, sizeof a);
            if (k == 76 || k == 127)
                ck_assert(memcmp(a, brass_mrg_pow[1 + (k > 76)][h], sizeof a) ==
                          0);
        }
    }
    ck_assert_uint_eq(brass_mrg_mod(~0ull, BRASS_MRG_C1), ~0ull % BRASS_MRG_M1);
    ck_assert_uint_eq(brass_mrg_mod(~0ull, BRASS_MRG_C2), ~0ull % BRASS_MRG_M2);
}

/* The vectors that come with Random123. */
TEST(curand_philox_is_random123s)
{
    static const struct {
        unsigned ctr[4], key[2], out[4];
    } known[] = {{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {{~0u, ~0u, ~0u, ~0u},
                  {~0u, ~0u},
                  {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                  {0xa4093822, 0x299f31d0},
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    struct curandStatePhilox4_32_10 a, b;
    unsigned out[4];

    for (size_t k = 0; k < BR_COUNT(known); k++) {
        brass_philox_block(known[k].ctr, known[k].key, out);
        ck_assert(memcmp(out, known[k].out, sizeof out) == 0);
    }
    brass_philox_seed(&a, 0x1234567890ull);
    b = a;
    brass_philox_skip(&a, 3);
    brass_philox_skip(&a, 7);
    for (int k = 0; k < 10; k++)
        brass_philox(&b);
    ck_assert_uint_eq(brass_philox(&a), brass_philox(&b));
    brass_philox_add(&a, ~0ull, 0); /* the halves carry */
    ck_assert_uint_eq(a.ctr[0], 1);
    ck_assert_uint_eq(a.ctr[2], 1);
}

TEST(curand_quantile_inverts_the_normal_integral)
{
    for (double p = 1e-15; p < 1; p = p < 0.01 ? p * 1.7 : p + 0.013)
        ck_assert_double_eq_tol(
            0.5 * erfc(-brass_quantile(p) * 0.70710678118654752) / p, 1, 1e-13);
}

/* ---- the host's interface ----------------------------------------------- */

static curandGenerator_t
made(curandRngType_t type)
{
    curandGenerator_t g = NULL;

    ck_assert_int_eq(curandCreateGeneratorHost(&g, type),
                     CURAND_STATUS_SUCCESS);
    return g;
}
#define OK(call) ck_assert_int_eq(call, CURAND_STATUS_SUCCESS)

/* Numbers that NVIDIA's library gave on an H200, in any of its orderings: 65,536
 * subsequences take turns by four. */
TEST(curand_philox_is_in_the_librarys_order)
{
    static const struct {
        unsigned at, word;
    } known[] = {
        {0, 0x34c7256f},      {1, 0x47f5eb6f},      {3, 0x91560e82},
        {4, 0xb0fef5f2},      {8, 0xc779a702},      {255, 0xd1e360ca},
        {4096, 0xbd9ffffb},   {65537, 0x5c3a2fe6},  {262143, 0xd4bcba56},
        {262144, 0x21f82f6b}, {262145, 0x92d0b095}, {327680, 0x1061f111}};
    enum { N = 327681 };
    unsigned *v = t_keep(malloc(N * sizeof *v));
    curandGenerator_t g = made(CURAND_RNG_PSEUDO_PHILOX4_32_10);

    OK(curandSetPseudoRandomGeneratorSeed(g, 77));
    OK(curandGenerate(g, v, N));
    for (size_t k = 0; k < BR_COUNT(known); k++)
        ck_assert_uint_eq(v[known[k].at], known[k].word);
    OK(curandSetGeneratorOffset(g, 262143));
    OK(curandGenerate(g, v, 2));
    ck_assert(v[0] == 0xd4bcba56 && v[1] == 0x21f82f6b);
    OK(curandDestroyGenerator(g));
}

/* In one piece, in pieces, from an offset: the same numbers. */
TEST(curand_sequences_go_on)
{
    static const curandRngType_t types[] = {
        CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A,
        CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_QUASI_SOBOL32};
    enum { N = 9001 };
    static unsigned all[N], part[N];

    for (size_t k = 0; k < BR_COUNT(types); k++) {
        curandGenerator_t g = made(types[k]);

        if (types[k] != CURAND_RNG_QUASI_SOBOL32)
            OK(curandSetPseudoRandomGeneratorSeed(g, 99));
        OK(curandGenerate(g, all, N));
        OK(curandSetGeneratorOffset(g, 0));
        for (size_t at = 0, n; at < N; at += n) {
            n = BR_MIN((size_t)1003, N - at);
            OK(curandGenerate(g, part + at, n));
        }
        ck_assert(memcmp(all, part, sizeof all) == 0);
        OK(curandSetGeneratorOffset(g, 4099));
        OK(curandGenerate(g, part, N - 4099));
        ck_assert(memcmp(all + 4099, part, sizeof all - sizeof *all * 4099) ==
                  0);
        OK(curandDestroyGenerator(g));
    }
}

/* Result n is lane n mod 4096's, 2^67 steps from the lane before. */
TEST(curand_xorwow_lanes_are_subsequences)
{
    curandGenerator_t g = made(CURAND_RNG_PSEUDO_DEFAULT);
    static unsigned got[3 * RAND_LANES];
    struct curandStateXORWOW s;

    OK(curandSetPseudoRandomGeneratorSeed(g, 1234));
    OK(curandGenerate(g, got, BR_COUNT(got)));
    brass_xorwow_seed(&s, 1234);
    brass_xorwow_jump(&s, 777, BRASS_XORWOW_SEQUENCE);
    for (int k = 0; k < 3; k++)
        ck_assert_uint_eq(got[k * RAND_LANES + 777], brass_xorwow(&s));
    OK(curandDestroyGenerator(g));
}

/* The number that the C++ standard gives for its mt19937. */
TEST(curand_mt19937_is_the_mersenne_twister)
{
    curandGenerator_t g = made(CURAND_RNG_PSEUDO_MT19937);
    static unsigned got[10000];

    OK(curandSetPseudoRandomGeneratorSeed(g, 5489));
    OK(curandGenerate(g, got, 10000));
    ck_assert_uint_eq(got[0], 3499211612u);
    ck_assert_uint_eq(got[9999], 4123659995u);
    ck_assert_int_eq(curandSetGeneratorOffset(g, 1), CURAND_STATUS_TYPE_ERROR);
    OK(curandDestroyGenerator(g));
}

/* The first points of the first dimensions; and in every dimension 2^k points
 * lie one in each of 2^k equal parts, also where the numbers are our own. */
TEST(curand_sobol_fills_evenly)
{
    enum { DIMS = 200, N = 256 };
    static const float first[4][8] = {
        {0, .5f, .75f, .25f, .375f, .875f, .625f, .125f},
        {0, .5f, .25f, .75f, .375f, .875f, .125f, .625f},
        {0, .5f, .25f, .75f, .625f, .125f, .875f, .375f},
        {0, .5f, .25f, .75f, .875f, .375f, .625f, .125f}};
    curandGenerator_t g = made(CURAND_RNG_QUASI_DEFAULT);
    static unsigned x[DIMS * N];
    curandDirectionVectors32_t *v32;
    curandDirectionVectors64_t *v64;
    int bad = 0;

    OK(curandSetQuasiRandomGeneratorDimensions(g, DIMS));
    ck_assert_int_eq(curandGenerate(g, x, DIMS * N - 1),
                     CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    OK(curandGenerate(g, x, DIMS * N));
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < 8; k++)
            ck_assert(x[d * N + k] == (unsigned)(first[d][k] * 256) << 24);
    for (int d = 0; d < DIMS; d++) {
        bool seen[N] = {false};

        for (int k = 0; k < N; k++) {
            bad += seen[x[d * N + k] >> 24];
            seen[x[d * N + k] >> 24] = true;
        }
    }
    ck_assert_int_eq(bad, 0);
    OK(curandGetDirectionVectors32(&v32, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
    OK(curandGetDirectionVectors64(&v64, CURAND_DIRECTION_VECTORS_64_JOEKUO6));
    for (unsigned d = 0; d < RAND_MAX_DIM; d++)
        for (unsigned k = 0; k < 64; k++) /* a triangle of ones */
            bad += v64[d][k] << k << 1 != 0 && v64[d][k] << k >> 63 == 0;
    for (unsigned d = 1; d < RAND_MAX_DIM; d++) /* no two alike */
        bad += memcmp(v64[d], v64[d - 1], sizeof *v64) == 0 ||
               v32[d][20] != v64[d][20] >> 32;
    ck_assert_int_eq(bad, 0);
    OK(curandDestroyGenerator(g));
}

TEST(curand_refuses_what_it_cannot_do)
{
    curandGenerator_t g = NULL, q;
    double d[4];
    float f[4];
    unsigned u[4];

    ck_assert_int_eq(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_MTGP32),
                     CURAND_STATUS_TYPE_ERROR);
    ck_assert_int_eq(curandGenerate(g, u, 4), CURAND_STATUS_NOT_INITIALIZED);
    g = made(CURAND_RNG_PSEUDO_PHILOX4_32_10);
    q = made(CURAND_RNG_QUASI_SOBOL64);
    ck_assert_int_eq(curandGenerateNormal(g, f, 3, 0, 1),
                     CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    ck_assert_int_eq(curandGenerateNormalDouble(g, d, 2, 0, -1),
                     CURAND_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(curandGeneratePoisson(g, u, 4, 400001),
                     CURAND_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(curandGenerateLongLong(g, (unsigned long long *)d, 4),
                     CURAND_STATUS_TYPE_ERROR);
    ck_assert_int_eq(curandGenerate(q, u, 4), CURAND_STATUS_TYPE_ERROR);
    ck_assert_int_eq(curandGeneratePoisson(q, u, 4, 1),
                     CURAND_STATUS_TYPE_ERROR);
    ck_assert_int_eq(curandSetPseudoRandomGeneratorSeed(q, 1),
                     CURAND_STATUS_TYPE_ERROR);
    ck_assert_int_eq(curandSetQuasiRandomGeneratorDimensions(q, 20001),
                     CURAND_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(
        curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT),
        CURAND_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(curandGenerate(g, NULL, 4), CURAND_STATUS_LAUNCH_FAILURE);
    OK(curandDestroyGenerator(g));
    OK(curandDestroyGenerator(q));
}

/* ---- distributions ------------------------------------------------------ */

/* Chi-square of counts against what is expected: below 5 sigma. */
static void
fits(const char *what, const unsigned *count, const double *want, int n)
{
    double chi = 0;

    for (int k = 0; k < n; k++)
        chi += (count[k] - want[k]) * (count[k] - want[k]) / want[k];
    ck_assert_msg(chi < n + 5 * sqrt(2.0 * n), "%s: chi2 %g of %d", what, chi,
                  n);
}

TEST(curand_numbers_are_distributed_as_asked)
{
    enum { N = 60000, BINS = 32 };
    static const curandRngType_t types[] = {
        CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A,
        CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_MT19937};
    static float x[N];
    static unsigned u[N];

    for (size_t t = 0; t < BR_COUNT(types); t++) {
        curandGenerator_t g = made(types[t]);
        unsigned flat[BINS] = {0}, bell[BINS] = {0}, two[BINS * BINS] = {0};
        double want[BINS * BINS];
        int bad = 0;

        OK(curandGenerateUniform(g, x, N));
        for (int k = 0; k < N; k++) {
            bad += !(x[k] > 0 && x[k] <= 1);
            flat[BR_MIN((int)(x[k] * BINS), BINS - 1)]++;
            if (k & 1)
                two[(int)(x[k] * 31.99f) * BINS + (int)(x[k - 1] * 31.99f)]++;
        }
        OK(curandGenerateNormal(g, x, N, 3, 2));
        for (int k = 0; k < N; k++) {
            double p = 0.5 * erfc(-((double)x[k] - 3) / 2 * 0.7071067811865476);

            bell[BR_MIN((int)(p * BINS), BINS - 1)]++;
        }
        for (int k = 0; k < BINS; k++)
            want[k] = (double)N / BINS;
        ck_assert_int_eq(bad, 0);
        fits("uniform", flat, want, BINS);
        fits("normal", bell, want, BINS);
        for (int k = 0; k < BINS * BINS; k++)
            want[k] = N / 2.0 / BINS / BINS;
        fits("pairs", two, want, BINS * BINS);
        OK(curandDestroyGenerator(g));
    }
    for (int t = 0; t < 3; t++) { /* Knuth's way, and Hoermann's twice */
        static const double lambdas[] = {2.5, 11, 300};
        curandGenerator_t g = made(CURAND_RNG_PSEUDO_PHILOX4_32_10);
        double l = lambdas[t], want[512] = {0};
        unsigned count[512] = {0};
        int from = (int)(l - 3 * sqrt(l)), to = (int)(l + 3 * sqrt(l));

        from = BR_MAX(from, 0);
        OK(curandGeneratePoisson(g, u, N, l));
        for (int k = 0; k < N; k++)
            count[BR_MIN(u[k], 511u)]++;
        for (int k = from; k <= to; k++)
            want[k] = N * exp(k * log(l) - l - lgamma(k + 1.0));
        fits("poisson", count + from, want + from, to - from + 1);
        OK(curandDestroyGenerator(g));
    }
}
