/* test_cuda_bf12.c - BF16 weights of the decode megakernel in 12 bits: nothing is lost,
 * the product is that of 16 bits, and a model that does not fit is loaded so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "../../kernels/cuda/mega_table.h"
#include "base/half.h"
#include "drv/cuda/cuda_load.h"
#include "run/tier_diff.h"

#include <stdlib.h>
#include <string.h>

#include "t.h"

#define SHAPE "shape:llama-512:BF16"

/* ---- every number ------------------------------------------------------- */

static uint32_t
word(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

/* Where word i of a chunk's list is; more: the groups. */
static const uint8_t *
word_of_list(const uint8_t *chunk, const uint8_t *more, uint32_t i)
{
    static const uint8_t end[4];
    const uint8_t *p = chunk + 12288 + BR_MIN(i, 11u) * 4;

    for (i -= BR_MIN(i, 11u);; i -= 31) {
        if (!(word(p) & BR_MK_LINK))
            return i ? end : p;
        p = more + (size_t)(word(p) >> 15) * 128;
        if (i < 31)
            return p + i * 4;
        p += 124;
    }
}

/* Weight (row, col) of a chunk, by what mega_table.h says of it. */
static uint16_t
unpacked(const uint8_t *chunk, const uint8_t *more, uint32_t row, uint32_t col)
{
    const uint32_t step = col / 16, c = col % 16,
                   lane = row % 8 * 4 + c % 8 / 2;
    const uint32_t reg = row / 8 + c / 8 * 2, byte = reg % 2 * 2 + c % 2;
    const uint8_t *half = chunk + step / 16 * 6144;
    const uint8_t *tail = chunk + 12288 + 48;
    const uint8_t *four = half + step % 16 / 4 * 1536;
    const uint32_t pair = c / 2;
    const uint32_t x =
        step * 32 + (pair < 4 ? pair * 2 : pair * 2 - 7) * 4 + col % 2 * 2;
    const uint32_t low = four[step % 4 / 2 * 512 + lane * 16 + step % 2 * 8 +
                              reg / 2 * 4 + byte];
    const uint32_t n = word(four + 1024 + lane * 16 + step % 4 * 4);
    const uint32_t sign = n >> (byte * 8 + (reg < 2 ? 7 : 3)) & 1;
    const uint32_t top = n >> (byte * 8 + (reg < 2 ? 0 : 28)) % 32 & 7;
    const uint32_t e = top * 2 + (low >> 7);

    for (uint32_t i = 0, v; (v = word(word_of_list(chunk, more, i))) != 0; i++)
        if ((v & 0x3fff) == (row << 10 | x)) {
            ck_assert_uint_eq(e << 8 | low << 1 | sign, 0); /* nothing twice */
            return (uint16_t)(v >> 16);
        }
    if (!e) {
        ck_assert_uint_eq(low, 0);
        return (uint16_t)(sign << 15);
    }
    return (uint16_t)(sign << 15 | (e + tail[row % 8 * 2 + row / 8] - 63) << 7 |
                      (low & 127));
}

static bool
is_odd(uint16_t w)
{
    const uint32_t e = w >> 7 & 255;

    return (w & 0x7fff) && (!e || e > 206);
}

/* Row r of a matrix: all signs and mantissas of 15 exponents in eight rows, which are
 * others for each eight; of every sixteen rows 12 numbers that have to be listed: infinities,
 * what is no number, subnormal and huge ones. Of some sixteen rows more of them. Returns
 * how many. */
static uint32_t
all_numbers(uint16_t *to, uint32_t rows, uint32_t cols)
{
    static const uint16_t odd[] = {0x7f80, 0xff80, 0x7fc1, 0xffff,
                                   0x0001, 0x807f, 0x7f7f, 0xff00,
                                   0x0040, 0x7e80, 0x7fa0, 0x8001};
    uint32_t n = 0;

    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++) {
            const uint32_t i = (r % 8 * cols + c) % (15 * 256);
            to[r * cols + c] = (uint16_t)((i & 1) << 15 |
                                          (r / 8 % 13 * 15 + 1 + i / 256) << 7 |
                                          (i >> 1 & 127));
        }
    for (uint32_t t = 0; t < rows / 16; t++)
        for (uint32_t k = 0; k < (t == 5 ? 17u : t == 7 ? 150u : 12u); k++)
            to[(t * 16 + (t + k * 5) % 16) * cols + (t * 37 + k * 101) % cols] =
                (uint16_t)(odd[k % 12] ^ (t & 7) << 1);
    for (uint32_t i = 1; i < cols; i += 3)
        to[i] = (uint16_t)(i % 2 << 15); /* zeros of both signs */
    for (uint32_t i = 0; i < rows * cols; i++)
        n += is_odd(to[i]);
    return n;
}

TEST_WITHIN(cuda_bf12_keeps_every_number, 60)
{
    enum { COLS = 512 };
    br_cu_decode d = {0};
    br_status st = {0};
    uint32_t wrong = 0;
    br_cu_odd odd;
    uint64_t at = 0;
    br_cu_shape s;
    br_cuda cu;

    t_emulate_cuda();
    shaped on = open_shape_file(SHAPE);
    t_ok(br_cu_shape_of(&s, on.m, &st), &st);
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cu_decode_new(&d, &cu, &s, 256, NULL, &st), &st);
    const uint32_t rows = br_cu_rows(&s, BR_CU_GLU) / 2;
    const size_t n = (size_t)rows * COLS;
    uint16_t *w = t_keep(malloc(n * 2 * sizeof *w)); /* gate, up */
    uint8_t *stream = t_keep(malloc(d.plan.stream_bytes));
    ck_assert_uint_eq(br_cu_cols(&s, BR_CU_GLU), COLS);
    /* tiles of 8 rows of gate and 8 of up */
    uint16_t *all = t_keep(malloc(n * 2 * sizeof *all));
    const uint32_t n_odd = all_numbers(all, rows * 2, COLS);
    for (uint32_t r = 0; r < rows * 2; r++)
        memcpy(w + (r / 8 % 2 * rows + r / 16 * 8 + r % 8) * (size_t)COLS,
               all + r * (size_t)COLS, COLS * sizeof *w);
    t_ok(br_cuda_alloc(&cu, &at, n * 4, &st), &st);
    t_ok(br_cuda_put(&cu, at, w, n * 4, &st), &st);
    t_ok(br_cu_decode_put(&d, 0, BR_CU_GLU, at, at + n * 2, &st), &st);
    t_ok(br_cu_decode_odd(&d, &odd, &st), &st);
    ck_assert_uint_eq(odd.chunks, 0);
    ck_assert_uint_eq(odd.weights, n_odd);
    ck_assert_uint_eq(odd.groups, 6);
    uint8_t *more = t_keep(malloc(odd.groups * 128));
    t_ok(br_cuda_get(&cu, more, d.more, odd.groups * 128, &st), &st);
    t_ok(br_cuda_get(&cu, stream, d.stream, d.plan.stream_bytes, &st), &st);
    for (uint32_t r = 0; r < rows * 2; r++)
        for (uint32_t c = 0; c < COLS; c++)
            wrong += unpacked(stream + d.plan.tile_at[BR_CU_GLU][r / 16], more,
                              r % 16, c) != all[r * (size_t)COLS + c];
    ck_assert_uint_eq(wrong, 0);
    br_cuda_free(&cu, at);
    br_cu_decode_free(&d);
    br_cuda_close(&cu);
    close_shape(&on);
    t_emulate_end();
}

/* ---- the product -------------------------------------------------------- */

/* The tensor's numbers, to be changed: the file is this test's memory. */
static uint16_t *
numbers(const br_model *m, br_weight w)
{
    const br_gguf_tensor *t = br_model_tensor(m, w, 0);

    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->type, BR_Q_BF16);
    return (uint16_t *)(uintptr_t)t->data;
}

/* Logits after three tokens; is it in 16 bits in the end? */
static bool
logits(br_cuda *cu, const br_model *m, bool plain, float *out, br_cu_odd *odd)
{
    br_cu_decode d = {0};
    br_status st = {0};
    br_cu_shape s;

    t_ok(br_cu_shape_of(&s, m, &st), &st);
    s.plain = plain;
    t_ok(br_cu_decode_new(&d, cu, &s, 256, NULL, &st), &st);
    t_ok(br_cu_load(&d, m, NULL, NULL, &st), &st);
    t_ok(br_cu_decode_odd(&d, odd, &st), &st);
    ck_assert_uint_eq(odd->chunks, 0);
    for (uint32_t i = 0; i < 3; i++) {
        br_cu_decode_seek(&d, 5 + 7 * i, i);
        t_ok(br_cu_decode_run(&d, BR_CU_MEGA, 1, &st), &st);
    }
    t_ok(br_cu_decode_wait(&d, &st), &st);
    t_ok(br_cuda_get(cu, out, d.logits, s.vocab * 4ull, &st), &st);
    plain = d.shape.plain;
    br_cu_decode_free(&d);
    return plain;
}

enum { VOCAB = 256 };

/* Every 1000th weight 64 times as large, and 60 of one chunk of each: left out,
 * in another row or times something else they would be all that is wrong. */
static void
plant_large(const br_model *m)
{
    static const br_weight in[] = {BR_W_Q,  BR_W_K,    BR_W_V,   BR_W_O,
                                   BR_W_UP, BR_W_GATE, BR_W_DOWN};

    for (size_t k = 0; k < BR_COUNT(in); k++) {
        const br_gguf_tensor *t = br_model_tensor(m, in[k], 0);
        uint16_t *w = numbers(m, in[k]);
        for (uint64_t i = 700; i < t->bytes / 2; i += 1001)
            w[i] = br_f32_to_bf16(br_bf16_to_f32(w[i]) * 64.0f);
        for (uint64_t i = 0; i < 60; i++)
            w[i % 16 * t->dim[0] + i * 7] =
                br_f32_to_bf16(i % 3 ? 12.0f : -9.0f);
    }
}

TEST_WITHIN(cuda_bf12_multiplies_what_is_listed, 120)
{
    float got[VOCAB], want[VOCAB];
    br_cu_odd odd, none;
    br_status st = {0};
    br_cuda cu;

    t_emulate_cuda();
    shaped on = open_shape_file(SHAPE);
    plant_large(on.m);
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    ck_assert(!logits(&cu, on.m, false, got, &odd));
    ck_assert(logits(&cu, on.m, true, want, &none));
    ck_assert_uint_gt(odd.weights, 1000);
    ck_assert_uint_gt(odd.groups, 8);
    ck_assert_uint_eq(none.weights, 0);
    const double e = br_nmse(got, want, VOCAB);
    ck_assert_msg(e < 1e-6, "NMSE %g", e);
    br_cuda_close(&cu);
    close_shape(&on);
    t_emulate_end();
}

/* Rows whose weights are all over 100 binades: too many for the lists. */
TEST_WITHIN(cuda_bf12_that_cannot_is_bf16, 120)
{
    float got[VOCAB], want[VOCAB];
    br_cu_odd odd, none;
    br_status st = {0};
    br_cuda cu;

    t_emulate_cuda();
    shaped on = open_shape_file(SHAPE);
    for (uint32_t i = 0; i < 512 * 8; i++)
        numbers(on.m, BR_W_UP)[512 * 16 + i] =
            (uint16_t)((i % 100 + 24) << 7 | 5);
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    ck_assert(logits(&cu, on.m, false, got, &odd));
    ck_assert(logits(&cu, on.m, true, want, &none));
    ck_assert_mem_eq(got, want, sizeof got);
    br_cuda_close(&cu);
    close_shape(&on);
    t_emulate_end();
}
