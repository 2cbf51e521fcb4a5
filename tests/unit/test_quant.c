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
