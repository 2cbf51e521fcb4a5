/* test_quant.c - blocks to f32 and back.
 *
 * tests/data/quant: random blocks of every format, with the digest of what
 * ggml makes of them (NaN written as 0x7fc00000).
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/hash.h"
#include "base/json.h"
#include "model/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static void
canonical_nan(float *v, size_t n)
{
    uint32_t nan = 0x7fc00000;

    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]))
            memcpy(&v[i], &nan, 4);
}

/* n weights of a file, from an odd address: rows of files have none better. */
static float *
decode(const char *path, int type, size_t n)
{
    size_t bytes;
    char *blocks = t_read(path, &bytes);
    char *odd = t_keep(malloc(bytes + 1));
    float *y = t_keep(calloc(n, sizeof *y));
    uint64_t want;

    ck_assert(br_qtype_bytes(type, n, &want));
    ck_assert_uint_ge(bytes, want);
    memcpy(odd + 1, blocks, bytes);
    br_dequant(type, odd + 1, y, n);
    canonical_nan(y, n);
    return y;
}

TEST(quant_decodes_every_format_to_the_bit)
{
    char *at = t_read(t_repo("tests/data/quant/dequant.txt"), NULL);
    char name[16], digest[BR_SHA256_HEX], got[BR_SHA256_HEX];
    int used, rows = 0;
    size_t n;

    while (sscanf(at, "%15s %zu %64s\n%n", name, &n, digest, &used) == 3) {
        int type = br_qtype_find(br_text_z(name));

        ck_assert_msg(type >= 0, "%s is unknown", name);
        br_sha256_hex(
            decode(t_repo(t_printf("tests/data/quant/%s.blocks.bin", name)),
                   type, n),
            n * sizeof(float), got);
        ck_assert_msg(strcmp(got, digest) == 0, "%s differs", name);
        at += used;
        rows++;
    }
    ck_assert_int_eq(rows, 27);
}

TEST(quant_vectors_decode_to_the_bit)
{
    const char *dir = t_vectors("quant");
    br_status st = {0};
    br_arena a;
    br_json *doc;
    size_t n;
    char *text;
    int cases = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    br_arena_init(&a, 0);
    text = t_read(t_printf("%s/cases.json", dir), &n);
    t_ok(br_json_parse(&doc, &a, text, n, 0, &st), &st);
    for (const br_json *c = br_json_get(doc, "cases")->child; c; c = c->next) {
        const char *name = br_json_get(c, "type")->s;
        float *got, *want;
        size_t bytes, bad = 0;

        if (strcmp(br_json_get(c, "kind")->s, "dequant") != 0)
            continue;
        n = (size_t)br_json_get(c, "n")->i;
        got = decode(t_printf("%s/%s", dir, br_json_get(c, "blocks")->s),
                     (int)br_json_get(c, "ggml_type")->i, n);
        want = (void *)t_read(t_printf("%s/%s", dir, br_json_get(c, "f32")->s),
                              &bytes);
        ck_assert_uint_eq(bytes, n * 4);
        canonical_nan(want, n);
        for (size_t i = 0; i < n; i++)
            bad += memcmp(&got[i], &want[i], 4) != 0;
        ck_assert_msg(bad == 0, "%s: %zu of %zu differ", name, bad, n);
        cases++;
    }
    br_arena_fini(&a);
    ck_assert_int_eq(cases, 27);
}

/* ---- encoders ----------------------------------------------------------- */

enum { ROWS = 10, COLS = 512 };

static float *
read_f32(const char *dir, const char *name, size_t want)
{
    size_t n;
    char *p = t_read(t_printf("%s/%s", dir, name), &n);

    ck_assert_uint_eq(n, want * sizeof(float));
    return (void *)p;
}

/* Root of the mean of w (got - want)^2, w the importance times the size of a
 * weight, as the fits count it. w NULL: 1. */
static double
rmse(const float *got, const float *want, const float *w)
{
    double sum = 0, sum_w = 0, var = 0;

    for (int i = 0; i < COLS; i++)
        var += (double)want[i] * (double)want[i] / COLS;
    for (int i = 0; i < COLS; i++) {
        double x = (double)want[i], d = (double)got[i] - x;
        double wi = w ? (double)w[i] * sqrt(var + x * x) : 1;

        sum += wi * d * d;
        sum_w += wi;
    }
    return sum_w > 0 ? sqrt(sum / sum_w) : 0;
}

/* One case of cases.json: 10 rows against the bytes ggml wrote. */
static void
run_encoder_case(const char *dir, const br_json *c)
{
    const char *name = br_json_get(c, "type")->s;
    int type = (int)br_json_get(c, "ggml_type")->i;
    const br_json *limit = br_json_get(c, "rmse_per_row")->child;
    const br_json *equal = br_json_get(c, "gguf_py_bytes_equal");
    float *x = read_f32(dir, "quantize_input.f32", ROWS * COLS), y[COLS];
    float *w = br_json_get(c, "imatrix")->b
                   ? read_f32(dir, "quantize_imatrix.f32", COLS)
                   : NULL;
    const char *ref =
        t_read(t_printf("%s/%s", dir, br_json_get(c, "file")->s), NULL);
    uint8_t row[4 * COLS + 1];
    uint64_t bytes;

    ck_assert(br_qtype_bytes(type, COLS, &bytes));
    for (int r = 0; r < ROWS; r++, limit = limit->next) {
        double e, most = limit->kind == BR_J_INT ? (double)limit->i : limit->f;
        double e_ref;

        memset(row, 0xaa, sizeof row);
        ck_assert(br_quant(type, x + r * COLS, row + 1, COLS, w));
        ck_assert_msg(row[0] == 0xaa &&
                          (bytes == 4 * COLS || row[1 + bytes] == 0xaa),
                      "%s wrote outside its row", name);
        if (equal && equal->b)
            ck_assert_msg(memcmp(row + 1, ref + r * (int)bytes, bytes) == 0,
                          "%s row %d: other bytes", name, r);
        br_dequant(type, ref + r * (int)bytes, y, COLS);
        e_ref = rmse(y, x + r * COLS, w);
        br_dequant(type, row + 1, y, COLS);
        e = rmse(y, x + r * COLS, NULL);
        ck_assert_msg(e <= most * 1.02, "%s row %d: rmse %g, not %g%s", name, r,
                      e, most, w ? " (imatrix)" : "");
        e = rmse(y, x + r * COLS, w);
        ck_assert_msg(e <= e_ref * 1.02 + 1e-12,
                      "%s row %d: weighted rmse %g, not %g", name, r, e, e_ref);
    }
}

static int
run_encoder_cases(const char *dir)
{
    br_status st = {0};
    br_arena a;
    br_json *doc;
    size_t n;
    char *text = t_read(t_printf("%s/cases.json", dir), &n);
    int cases = 0;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&doc, &a, text, n, 0, &st), &st);
    for (const br_json *c = br_json_get(doc, "cases")->child; c; c = c->next) {
        int type = (int)br_json_get(c, "ggml_type")->i;

        if (strcmp(br_json_get(c, "kind")->s, "quantize") != 0 ||
            !(br_qinfo_of(type)->flags & BR_QF_ENC))
            continue;
        run_encoder_case(dir, c);
        cases++;
    }
    br_arena_fini(&a);
    return cases;
}

TEST(quant_encodes_as_ggml_or_better)
{
    ck_assert_int_eq(run_encoder_cases(t_repo("tests/data/quant")), 18);
}

TEST(quant_vectors_encode_as_ggml_or_better)
{
    const char *dir = t_vectors("quant");

    if (!dir)
        t_skip("no ../shared/vectors here");
    ck_assert_int_eq(run_encoder_cases(dir), 18);
}

TEST(quant_encoder_for_each_format_that_says_so)
{
    float x[256] = {1, -2, 3}, y[256];
    uint8_t row[1024];
    int with = 0;

    for (int type = 0; type < BR_Q_LIMIT; type++) {
        bool enc = br_qinfo_of(type)->flags & BR_QF_ENC;

        ck_assert(br_quant(type, x, row, 256, NULL) == enc);
        if (!enc)
            continue;
        with++;
        br_dequant(type, row, y, 256);
        for (int i = 0; i < 256; i++)
            ck_assert_msg(fabsf(y[i] - x[i]) <= 0.51f, "%s: %g for %g",
                          br_qinfo_of(type)->name, (double)y[i], (double)x[i]);
    }
    ck_assert_int_eq(with, 14);
}

/* Nobody promises a meaning, only that nothing is undefined. */
TEST(quant_encoders_survive_what_is_no_number)
{
    float x[256], none[256] = {0}, huge[256];
    uint8_t row[1024];

    for (int i = 0; i < 256; i++) {
        x[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -3e38f;
        huge[i] = i % 2 ? 3e38f : -3e38f;
    }
    for (int type = 0; type < BR_Q_LIMIT; type++) {
        br_quant(type, x, row, 256, NULL);
        br_quant(type, x, row, 256, x);
        br_quant(type, huge, row, 256, NULL);
        br_quant(type, huge, row, 256, none);
    }
}

TEST(quant_importance_of_nothing_still_keeps_the_weights)
{
    const float none[256] = {0};
    float x[256], y[256];
    uint8_t row[1024];

    for (int i = 0; i < 256; i++)
        x[i] = (float)(i % 16);
    for (int type = 0; type < BR_Q_LIMIT; type++) {
        if (!br_quant(type, x, row, 256, none))
            continue;
        br_dequant(type, row, y, 256);
        for (int i = 0; i < 256; i++)
            ck_assert_msg(fabsf(y[i] - x[i]) <= 3.1f, "%s: %g for %g",
                          br_qinfo_of(type)->name, (double)y[i], (double)x[i]);
    }
}

/* ---- the rest ----------------------------------------------------------- */

TEST(quant_integers_and_wide_floats)
{
    const int64_t wide[3] = {-1, 1ll << 40, 7};
    const int16_t words[3] = {-32768, 0, 32767};
    const double d[2] = {0.1, -1e300};
    float y[3];

    br_dequant(BR_Q_I64, wide, y, 3);
    ck_assert(y[0] == -1 && y[1] == 0x1p40f && y[2] == 7);
    br_dequant(BR_Q_I32, (const int32_t[]){-5, 1 << 30}, y, 2);
    ck_assert(y[0] == -5 && y[1] == 0x1p30f);
    br_dequant(BR_Q_I16, words, y, 3);
    ck_assert(y[0] == -32768 && y[1] == 0 && y[2] == 32767);
    br_dequant(BR_Q_I8, "\x80\x7f", y, 2);
    ck_assert(y[0] == -128 && y[1] == 127);
    br_dequant(BR_Q_F64, d, y, 2);
    ck_assert(y[0] == 0.1f && isinf(y[1]) && y[1] < 0);
    br_dequant(BR_Q_F32, (const float[]){1.5f, -0.0f}, y, 2);
    ck_assert(y[0] == 1.5f && y[1] == 0 && signbit(y[1]));
}

TEST(quant_table_of_formats)
{
    uint64_t n;

    ck_assert_int_eq(br_qtype_find(BR_TEXT("q4_k")), BR_Q_Q4_K);
    ck_assert_int_eq(br_qtype_find(BR_TEXT("Q4_")), -1);
    ck_assert_ptr_null(br_qinfo_of(-1)->name);
    ck_assert_ptr_null(br_qinfo_of(4)->name);
    ck_assert_ptr_null(br_qinfo_of(64)->name);
    ck_assert_str_eq(br_qinfo_of(BR_Q_MXFP4)->name, "MXFP4");
    ck_assert(br_qtype_bytes(BR_Q_Q4_0, 64, &n) && n == 36);
    ck_assert(!br_qtype_bytes(BR_Q_Q4_0, 33, &n));
    ck_assert(!br_qtype_bytes(BR_Q_F64, 1ull << 61, &n));
    ck_assert(!br_qtype_bytes(4, 32, &n));
}
