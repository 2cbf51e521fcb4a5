/* test_mega_quantize.c - the recorded matrices byte for byte, and by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mega/dtype.h"
#include "mega/quantize.h"

/* ---- recorded --------------------------------------------------------- */

static const char *dir;

static const char *
blob(const br_json *e, const char *key, size_t *n)
{
    const br_json *b = br_json_get(e, key);

    ck_assert(b && b->kind == BR_J_OBJ);
    return t_read(t_printf("%s/%s", dir, br_json_get(b, "file")->s), n);
}

static void
one_matrix(const br_json *e)
{
    br_quantize d = {.rows = br_json_get(e, "N")->i,
                     .cols = br_json_get(e, "K")->i,
                     .group = br_json_get(e, "group")->i,
                     .bits = (int)br_json_get(e, "bits")->i,
                     .symmetric = br_json_get(e, "symmetric")->b};
    const char *id = br_json_get(e, "id")->s, *want;
    size_t n, n_scales = (size_t)(d.rows * br_quantize_groups(&d));
    const char *w = blob(e, "weight", &n);
    float *in = t_keep(malloc(n)), *scales, *zeros;
    unsigned char *packed;
    br_status st = {0};

    memcpy(in, w, n);
    want = blob(e, "packed", &n);
    ck_assert_uint_eq(n, (size_t)(d.rows * br_quantize_row_bytes(&d)));
    packed = t_keep(malloc(n));
    scales = t_keep(malloc(n_scales * 4));
    zeros = t_keep(malloc(n_scales * 4));
    t_ok(br_quantize_weights(&d, in, packed, scales, zeros, &st), &st);
    ck_assert_msg(memcmp(packed, want, n) == 0, "%s: packed", id);
    want = blob(e, "scales_f32", &n);
    ck_assert_uint_eq(n, n_scales * 4);
    ck_assert_msg(memcmp(scales, want, n) == 0, "%s: scales", id);
    want = blob(e, "scales_as_f16_then_f32", &n);
    for (size_t i = 0; i < n_scales; i++)
        scales[i] = br_f16_to_f32(br_f64_to_f16((double)scales[i]));
    ck_assert_msg(memcmp(scales, want, n) == 0, "%s: scales in F16", id);
    if (!d.symmetric) {
        want = blob(e, "zeros_f32", &n);
        ck_assert_msg(memcmp(zeros, want, n) == 0, "%s: zeros", id);
    }
}

TEST(quantize_equals_every_recorded_matrix)
{
    br_status st = {0};
    br_arena a;
    br_json *m;
    char *text;
    size_t n, count = 0;

    dir = t_vectors("amk");
    if (!dir)
        t_skip("no ../shared/vectors/amk here");
    text = t_read(t_printf("%s/manifest.json", dir), &n);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&m, &a, text, n, BR_JSON_LAX, &st), &st);
    for (const br_json *e = br_json_get(m, "quantizer")->child; e; e = e->next)
        one_matrix(e), count++;
    ck_assert_uint_ge(count, 8);
    br_arena_fini(&a);
}

/* ---- by hand ---------------------------------------------------------- */

TEST(quantize_int8_by_hand)
{
    br_quantize d = {1, 3, 2, 8, true};
    unsigned char p[3];
    float s[2];
    br_status st = {0};

    /* groups (127, -63.5) and (2): scales 1 and 2/127; -63.5 ties to even */
    t_ok(br_quantize_weights(&d, (const float[]){127, -63.5f, 2}, p, s, NULL,
                             &st),
         &st);
    ck_assert_uint_eq(p[0], 127);
    ck_assert_uint_eq(p[1], (unsigned char)-64);
    ck_assert_uint_eq(p[2], 127);
    ck_assert(s[0] == 1.0f && s[1] == 2.0f / 127);
}

TEST(quantize_int4_by_hand)
{
    br_quantize d = {1, 3, 4, 4, true};
    unsigned char p[2];
    float s[1];
    br_status st = {0};

    t_ok(br_quantize_weights(&d, (const float[]){-7, 3.5f, 2}, p, s, NULL, &st),
         &st);
    ck_assert(s[0] == 1.0f);
    ck_assert_uint_eq(p[0], 1 | 12 << 4); /* 3.5 goes to 4 */
    ck_assert_uint_eq(p[1], 10);          /* beside a zero nibble */
}

TEST(quantize_asymmetric_by_hand)
{
    br_quantize d = {1, 4, 4, 4, false};
    unsigned char p[2];
    float s[1], z[1];
    br_status st = {0};

    t_ok(br_quantize_weights(&d, (const float[]){-5, 10, 0, 1}, p, s, z, &st),
         &st);
    ck_assert(s[0] == 1.0f && z[0] == 5.0f);
    ck_assert_uint_eq(p[0], 0 | 15 << 4);
    ck_assert_uint_eq(p[1], 5 | 6 << 4);
    /* a group cut short: the padding's zeros count as the least */
    d.cols = 2;
    t_ok(br_quantize_weights(&d, (const float[]){10, 15}, p, s, z, &st), &st);
    ck_assert(s[0] == 1.0f && z[0] == 0.0f);
    ck_assert_uint_eq(p[0], 10 | 15 << 4);
}

TEST(quantize_zeros_and_refusals)
{
    br_quantize d = {2, 2, 2, 8, true}, bad;
    unsigned char p[4];
    float s[2], w[4] = {0};
    br_status st = {0};

    t_ok(br_quantize_weights(&d, w, p, s, NULL, &st), &st);
    ck_assert(s[0] == 1e-8f && p[0] == 0 && p[3] == 0);
    w[3] = NAN;
    ck_assert_int_eq(br_quantize_weights(&d, w, p, s, NULL, &st), BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "weight [1, 1] is nan");
    for (int i = 0; i < 5; i++) {
        bad = d;
        bad.rows = i == 0 ? -1 : bad.rows;
        bad.cols = i == 1 ? -1 : bad.cols;
        bad.group = i == 2 ? 0 : bad.group;
        bad.bits = i == 3 ? 5 : bad.bits;
        bad.rows = i == 4 ? INT64_MAX : bad.rows;
        st = (br_status){0};
        ck_assert_int_eq(br_quantize_weights(&bad, w, p, s, NULL, &st),
                         BR_E_FORMAT);
    }
}

/* Dequantised values lie within half a step of the weights. */
TEST(quantize_error_is_half_a_step)
{
    uint64_t seed = 5;

    for (int round = 0; round < 200; round++) {
        br_quantize d = {
            1 + (int64_t)(t_rand(&seed) % 4), 1 + (int64_t)(t_rand(&seed) % 40),
            1 + (int64_t)(t_rand(&seed) % 20), t_rand(&seed) & 1 ? 4 : 8, true};
        int64_t g = br_quantize_groups(&d), rb = br_quantize_row_bytes(&d);
        float w[160], s[160];
        unsigned char p[160];
        br_status st = {0};

        for (int64_t i = 0; i < d.rows * d.cols; i++)
            w[i] = (float)((double)(int64_t)t_rand(&seed) / 9e18);
        t_ok(br_quantize_weights(&d, w, p, s, NULL, &st), &st);
        for (int64_t i = 0; i < d.rows * d.cols; i++) {
            int64_t r = i / d.cols, c = i % d.cols;
            double q =
                br_dt_get(d.bits == 8 ? BR_MDT_I8 : BR_MDT_I4, p + r * rb, c);
            double step = (double)s[r * g + c / d.group];

            ck_assert(fabs(q * step - (double)w[i]) <= step * 0.5001);
        }
    }
}
