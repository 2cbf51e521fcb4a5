/* test_cpu_mat.c - packed matrices: every instruction set that is here gives
 * the bits of the ref tier, whatever shares the call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "drv/cpu/cpu_mat.h"
#include "drv/ref/ref_int.h"
#include "model/qint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

enum { MAX_ROWS = 40 };

static float
uniform(uint64_t *rng)
{
    return (float)(int32_t)(t_rand(rng) >> 32) * 0x1p-31f;
}

static void
put_half(uint8_t *p, uint64_t *rng)
{
    uint16_t h = br_f32_to_f16(uniform(rng) * 0.25f);

    memcpy(p, &h, 2);
}

/* Any bytes are a block, but for its floats: no NaN, no infinity. */
static void
random_block(int type, uint8_t *p, uint64_t *rng)
{
    const br_qinfo *q = br_qinfo_of(type);
    float f = uniform(rng);
    uint16_t h = br_f32_to_f16(f), b = br_f32_to_bf16(f);

    for (uint32_t i = 0; i < q->bytes; i++)
        p[i] = (uint8_t)(t_rand(rng) >> 40);
    switch (type) {
    case BR_Q_F32: memcpy(p, &f, 4); break;
    case BR_Q_F16: memcpy(p, &h, 2); break;
    case BR_Q_BF16: memcpy(p, &b, 2); break;
    case BR_Q_F8_E4M3:
    case BR_Q_F8_E5M2:
        memcpy(p, &f, 4);
        for (uint32_t i = 4; i < q->bytes; i++) /* numbers, and no infinity */
            p[i] = (p[i] & 0x7c) == 0x7c ? p[i] & 0xf3 : p[i];
        break;
    case BR_Q_MXFP4: p[0] = (uint8_t)(t_rand(rng) % 16 + 118); break;
    case BR_Q_NVFP4: memset(p, 0x38, 4); break;
    case BR_Q_Q3_K: put_half(p + 108, rng); break;
    case BR_Q_Q6_K: put_half(p + 208, rng); break;
    case BR_Q_TQ1_0: put_half(p + 52, rng); break;
    case BR_Q_TQ2_0: put_half(p + 64, rng); break;
    case BR_Q_IQ1_M: /* its scale is spread over four words */
        for (int i = 0; i < 4; i++)
            p[49 + 2 * i] =
                (uint8_t)((p[49 + 2 * i] & 15) | (i < 3 ? 0x10 : 0x20));
        break;
    case BR_Q_Q2_K:
        put_half(p + 80, rng);
        put_half(p + 82, rng);
        break;
    default:
        put_half(p, rng);
        if (type == BR_Q_Q4_1 || type == BR_Q_Q5_1 || type == BR_Q_Q4_K ||
            type == BR_Q_Q5_K)
            put_half(p + 2, rng);
    }
}

/* A matrix, rows of activations, and what the ref tier makes of them. */
typedef struct problem {
    int type;
    uint32_t n_in, n_out, n_rows;
    uint8_t *raw;
    float *x, *want;
} problem;

static void
ask_ref(problem *p)
{
    uint32_t blocks = p->n_in / br_qinfo_of(p->type)->elems;
    br_gguf_tensor tensor = {.type = p->type, .data = p->raw};
    ref_mat m = {
        .t = &tensor, .n_out = p->n_out, .n_in = p->n_in, .to = p->n_out};
    ref_view x = {.f = p->x, .stride = p->n_in};
    ref_view y = {.f = p->want, .stride = p->n_out};
    ref_scratch s = {
        .blocks = t_keep(calloc(blocks, sizeof(br_qint))),
        .xq = t_keep(malloc((size_t)p->n_rows * p->n_in)),
        .xd = t_keep(malloc((size_t)p->n_rows * blocks * sizeof(float)))};
    ref_call c = {.s = &s};

    if (br_qint_has(p->type)) {
        ref_matmul_quantised(&c, &m, &x, 0, p->n_rows, &y);
        return;
    }
    s.row = t_keep(malloc(p->n_in * sizeof(float)));
    for (uint32_t o = 0; o < p->n_out; o++) {
        ref_matrix_row(&m, o, s.row);
        for (uint32_t r = 0; r < p->n_rows; r++)
            p->want[r * p->n_out + o] =
                br_ref_dot(p->x + r * p->n_in, s.row, p->n_in);
    }
}

static void
make(problem *p, uint64_t *rng)
{
    const br_qinfo *q = br_qinfo_of(p->type);
    size_t blocks = (size_t)p->n_out * p->n_in / q->elems;
    size_t n = (size_t)p->n_rows * p->n_in;

    p->raw = t_keep(malloc(blocks * q->bytes));
    p->x = t_keep(malloc(n * sizeof(float)));
    p->want = t_keep(malloc((size_t)p->n_rows * p->n_out * sizeof(float)));
    for (size_t i = 0; i < blocks; i++)
        random_block(p->type, p->raw + i * q->bytes, rng);
    for (size_t i = 0; i < n; i++)
        p->x[i] = uniform(rng) * uniform(rng) * 8;
    /* Whole blocks at the ends of the range: sums at their largest. */
    for (size_t i = 0; i < n && i < 256; i++)
        p->x[i] = i % 64 < 32 ? 1.0f : -1.0f;
    if (n >= 512) /* a block whose scale is no normal number */
        for (size_t i = 256; i < 512; i++)
            p->x[i] = 0x1p-141f * (float)(i % 7);
    ask_ref(p);
}

typedef struct packed {
    br_mat m;
    uint8_t *act;
} packed;

static packed
pack(const problem *p, br_isa isa, bool exact)
{
    br_status st = {0};
    packed k;
    uint8_t *data;
    size_t stride;

    t_ok(br_mat_plan(&k.m,
                     &(br_mat_desc){.type = p->type,
                                    .n_in = p->n_in,
                                    .n_out = p->n_out,
                                    .isa = isa,
                                    .exact = exact,
                                    .pairs = !exact},
                     &st),
         &st);
    data = t_keep(aligned_alloc(64, k.m.bytes));
    memset(data, k.m.tight ? 0 : 0xa5, k.m.bytes);
    if (!br_mat_pack(&k.m, p->raw, data, 0, br_mat_panels(&k.m)))
        ck_abort_msg("%ux%u does not fit", p->n_in, p->n_out);
    k.m.data = data;
    stride = br_act_bytes(k.m.form, p->n_in);
    k.act = t_keep(aligned_alloc(64, stride * p->n_rows));
    memset(k.act, 0xa5, stride * p->n_rows);
    for (uint32_t r = 0; r < p->n_rows; r++)
        br_act_row(isa, k.m.form, p->x + (size_t)r * p->n_in, p->n_in,
                   k.act + r * stride);
    return k;
}

static void
same(const problem *p, const float *got, br_isa isa, const char *how)
{
    for (uint32_t i = 0; i < p->n_rows * p->n_out; i++)
        if (memcmp(&got[i], &p->want[i], 4) != 0)
            ck_abort_msg("%s %s %ux%u, %s: row %u output %u is %a, not %a",
                         br_isa_name(isa), br_qinfo_of(p->type)->name, p->n_in,
                         p->n_out, how, i / p->n_out, i % p->n_out,
                         (double)got[i], (double)p->want[i]);
}

static void
check_problem(const problem *p, br_isa isa)
{
    packed k = pack(p, isa, true);
    size_t n = (size_t)p->n_rows * p->n_out;
    float *got = t_keep(malloc(n * sizeof *got));
    uint32_t *back = t_keep(malloc(p->n_rows * sizeof *back));
    br_mul job = {.m = &k.m,
                  .act = k.act,
                  .n_rows = p->n_rows,
                  .o1 = p->n_out,
                  .out = got,
                  .out_stride = p->n_out};

    br_mat_mul(&job);
    same(p, got, isa, "all at once");
    memset(got, 0xff, n * sizeof *got);
    for (uint32_t r = 0; r < p->n_rows; r++) /* from the last to the first */
        back[r] = p->n_rows - 1 - r;
    back[0] = back[p->n_rows / 2]; /* and not evenly apart */
    back[p->n_rows / 2] = p->n_rows - 1;
    job.row = back;
    for (uint32_t o = 0; o < p->n_out; o = job.o1) { /* split anywhere */
        job.o0 = o;
        job.o1 = BR_MIN(o + 7, p->n_out);
        br_mat_mul(&job);
    }
    same(p, got, isa, "outputs split, rows reversed");
    memset(got, 0xff, n * sizeof *got);
    job.o0 = 0;
    job.n_rows = 1;
    for (uint32_t r = 0; r < p->n_rows; r++) {
        job.row = &back[r];
        br_mat_mul(&job);
    }
    same(p, got, isa, "row by row");
}

static void
check_type(int type, br_isa isa)
{
    static const uint32_t outs[] = {1, 16, 37}, rows[] = {1, 3, 8, 15};
    const br_qinfo *q = br_qinfo_of(type);
    uint64_t rng = (uint64_t)type * 977 + 1;
    uint32_t most = q->elems == 256 ? 6 : 9;

    for (uint32_t b = 1; b <= most; b++) {
        problem p = {.type = type,
                     .n_in = (b == most ? 2 * b : b) *
                             (q->elems == 1 ? 13 : q->elems),
                     .n_out = outs[b % 3],
                     .n_rows = b == most ? MAX_ROWS : rows[b % 4]};

        make(&p, &rng);
        check_problem(&p, isa);
    }
}

static void
check_isa(br_isa isa)
{
    int types = 0;

    if (!br_isa_here(isa))
        t_skip("this machine has no %s", br_isa_name(isa));
    for (int type = 0; type < BR_Q_LIMIT; type++) {
        const br_qinfo *q = br_qinfo_of(type);

        if (!(q->flags & (BR_QF_FLOAT | BR_QF_QUANT)) || type == BR_Q_F64)
            continue;
        check_type(type, isa);
        types++;
    }
    ck_assert_int_eq(types, 30);
}

TEST(cpu_mat_in_plain_c_has_the_bits_of_ref)
{
    check_isa(BR_ISA_C);
}

TEST(cpu_mat_with_avx2_has_the_bits_of_ref)
{
    check_isa(BR_ISA_AVX2);
}

TEST(cpu_mat_with_avx512_has_the_bits_of_ref)
{
    check_isa(BR_ISA_AVX512);
}

TEST(cpu_mat_with_amx_has_the_bits_of_ref)
{
    check_isa(BR_ISA_AMX);
}

TEST(cpu_mat_with_neon_has_the_bits_of_ref)
{
    check_isa(BR_ISA_NEON);
}

/* Panels that do not fit the first cache go past in spans, and many rows in
 * handfuls of eight, six and four, with all sorts of rests; from 32 rows on
 * blocks of 256 are unpacked first. */
TEST_WITHIN(cpu_mat_of_long_rows_has_the_bits_of_ref, 60)
{
    static const int types[] = {BR_Q_Q8_0, BR_Q_Q4_0, BR_Q_Q5_1, BR_Q_MXFP4,
                                BR_Q_Q4_K, BR_Q_Q5_K, BR_Q_Q6_K, BR_Q_F32};
    static const uint32_t rows[] = {16, 17, 18, 20, 21, 23, 24, 33, 37, 39};
    uint64_t rng = 23;

    for (size_t i = 0; i < BR_COUNT(types); i++)
        for (size_t r = 0; r < BR_COUNT(rows); r++) {
            problem p = {.type = types[i],
                         .n_in = r % 3 == 0 ? 5120 : 256,
                         .n_out = 37,
                         .n_rows = rows[r]};

            make(&p, &rng);
            check_problem(&p, br_isa_best());
        }
}

/* The largest weights, scales and activations of either sign: no sum of a block
 * leaves what the kernels count in, and one float in the middle of a sum that
 * is not exact shows. */
TEST(cpu_mat_at_the_ends_of_the_range_has_the_bits_of_ref)
{
    static const int types[] = {BR_Q_Q8_0, BR_Q_Q4_0, BR_Q_Q4_K, BR_Q_Q5_K,
                                BR_Q_Q6_K};
    uint64_t rng = 29;

    for (size_t i = 0; i < BR_COUNT(types); i++) {
        const br_qinfo *q = br_qinfo_of(types[i]);
        problem p = {
            .type = types[i], .n_in = 1280, .n_out = 21, .n_rows = MAX_ROWS};
        size_t n_blocks = (size_t)p.n_out * p.n_in / q->elems;

        make(&p, &rng);
        for (size_t b = 0; b < n_blocks; b++) {
            uint8_t *at = p.raw + b * q->bytes;

            if (types[i] == BR_Q_Q6_K) { /* scales of -128 and 127, then d */
                memset(at, b % 2 ? 255 : 0, 192);
                memset(at + 192, b % 3 ? 128 : 127, 16);
            } else {
                memset(at + (q->elems == 256 ? 4 : 2), 255,
                       q->bytes - (q->elems == 256 ? 4 : 2));
            }
        }
        for (size_t k = 0; k < (size_t)p.n_in * p.n_rows; k++)
            p.x[k] =
                (k / p.n_in % 4 == 1 ? -1.0f : 1.0f) *
                (k % 64 == 0 ? 1.0f : 1.0f - 0x1p-5f * fabsf(uniform(&rng)));
        ask_ref(&p);
        check_problem(&p, br_isa_best());
    }
}

/* Both factors are rounded to eight bits: 2^-8 of the sum of sizes. */
TEST(cpu_mat_in_pairs_of_bf16_stays_within_its_error_in_any_company)
{
    enum { IN = 555, OUT = 21, ROWS = 11 };
    problem p = {.type = BR_Q_BF16, .n_in = IN, .n_out = OUT, .n_rows = ROWS};
    uint64_t rng = 5;
    float w[IN], got[ROWS * OUT], alone[OUT];
    packed k;
    br_mul job = {
        .act = NULL, .n_rows = ROWS, .o1 = OUT, .out = got, .out_stride = OUT};

    make(&p, &rng);
    k = pack(&p, br_isa_best(), false);
    if (k.m.form != BR_FORM_BF16)
        t_skip("this machine multiplies no BF16");
    job.m = &k.m;
    job.act = k.act;
    br_mat_mul(&job);
    for (uint32_t i = 0; i < ROWS * OUT; i++) {
        double sum = 0, size = 0;

        br_dequant(BR_Q_BF16, p.raw + i % OUT * IN * 2, w, IN);
        for (uint32_t n = 0; n < IN; n++) {
            double v = (double)w[n] * (double)p.x[i / OUT * IN + n];

            sum += v;
            size += fabs(v);
        }
        ck_assert_double_le(fabs(sum - (double)got[i]), size / 256);
    }
    job.n_rows = 1;
    job.out = alone;
    job.out_row = &(uint32_t){0};
    for (uint32_t r = 0; r < ROWS; r++) {
        job.row = &r;
        br_mat_mul(&job);
        ck_assert_mem_eq(alone, got + r * OUT, sizeof alone);
    }
}

/* ---- BF16 in twelve bits ------------------------------------------------- */

typedef enum spread {
    NORMAL, /* as trained weights are: a spare in a group of a hundred */
    PRUNED, /* many zeros, of either sign */
    SPIKED, /* infinity and NaN; a spare here and there, and the last group's */
    TIGHTEST /* as many spares as a panel has room for, one after the other */
} spread;

static uint16_t
a_weight(spread s, uint32_t o, uint32_t k, uint64_t *rng)
{
    float f = 0;
    uint16_t w;

    for (int i = 0; i < 12; i++)
        f += uniform(rng) * 0.01f;
    w = br_f32_to_bf16(f);
    if (s == PRUNED && t_rand(rng) % 3 == 0)
        return w & 0x8000;
    if (s == SPIKED && t_rand(rng) % 4999 == 0)
        return o % 16 == 3 ? (t_rand(rng) % 2 ? 0x7f80 : 0xffc1) : 1;
    if (s == SPIKED && o % 16 == 15 && k % 2048 == 2047)
        return 0x0001;
    /* most groups of the first piece, whose lanes are 0 and 1 */
    if (s == TIGHTEST && o % 16 == 5 && k % 16 == 0 && k / 64 < 28)
        return (uint16_t)(k / 64 % 2 ? 0x0042 : 0x7f12);
    return w;
}

static void
make_spread(problem *p, spread s, uint64_t *rng)
{
    uint8_t *at;

    make(p, rng);
    at = p->raw;
    for (uint32_t o = 0; o < p->n_out; o++)
        for (uint32_t k = 0; k < p->n_in; k++, at += 2)
            memcpy(at, &(uint16_t){a_weight(s, o, k, rng)}, 2);
    ask_ref(p);
}

/* Pairs of BF16 as they are and in twelve bits, in every company. */
static void
check_pairs_tight(const problem *p)
{
    br_mat_desc d = {.type = BR_Q_BF16,
                     .n_in = p->n_in,
                     .n_out = p->n_out,
                     .isa = br_isa_best(),
                     .pairs = true,
                     .loose = true};
    packed tight = pack(p, d.isa, false), loose = tight;
    size_t n = (size_t)p->n_rows * p->n_out;
    float *want = t_keep(malloc(n * 4)), *got = t_keep(malloc(n * 4));
    br_mul job = {.act = tight.act, .o1 = p->n_out, .out_stride = p->n_out};
    br_status st = {0};
    const size_t room = br_mat_loose_bytes(&tight.m);
    uint8_t *data, *rooms = t_keep(aligned_alloc(64, 3 * room));

    ck_assert(tight.m.tight);
    t_ok(br_mat_plan(&loose.m, &d, &st), &st);
    ck_assert(!loose.m.tight && loose.m.form == tight.m.form);
    data = t_keep(aligned_alloc(64, loose.m.bytes));
    ck_assert(br_mat_pack(&loose.m, p->raw, data, 0, br_mat_panels(&loose.m)));
    loose.m.data = data;
    /* with no room, of two panels, and of all */
    for (uint32_t rows = 1; rows <= p->n_rows; rows += rows < 40 ? 1 : 30) {
        job.n_rows = rows;
        job.loose = rows % 3 == 2 ? NULL : rooms;
        job.loose_bytes = rows % 3 ? room : 3 * room;
        job.m = &loose.m;
        job.out = want;
        br_mat_mul(&job);
        job.m = &tight.m;
        job.out = got;
        br_mat_mul(&job);
        for (size_t i = 0; i < (size_t)rows * p->n_out; i++)
            if (memcmp(&got[i], &want[i], 4) != 0 &&
                !(isnan(got[i]) && isnan(want[i])))
                ck_abort_msg("%ux%u, %u rows: output %zu is %a, not %a",
                             p->n_in, p->n_out, rows, i, (double)got[i],
                             (double)want[i]);
    }
}

TEST(cpu_mat_in_twelve_bits_has_the_bits_of_sixteen)
{
    static const uint32_t ins[] = {512, 1024, 2048, 5120};
    uint64_t rng = 31;

    if (br_isa_best() != BR_ISA_AVX512 && br_isa_best() != BR_ISA_AMX)
        t_skip("only AVX-512 has twelve bits");
    for (spread s = NORMAL; s <= TIGHTEST; s++)
        for (size_t i = 0; i < BR_COUNT(ins); i++) {
            problem p = {.type = BR_Q_BF16,
                         .n_in = s == TIGHTEST ? 2048 : ins[i],
                         .n_out = i % 2 ? 37 : 16,
                         .n_rows = i == 2 ? 131 : 9};

            make_spread(&p, s, &rng);
            if (s != SPIKED) /* of NaN any bits are right */
                check_problem(&p, br_isa_best());
            check_pairs_tight(&p);
        }
}

/* Weights of any size have no common high bytes: said, not done. */
TEST(cpu_mat_that_does_not_fit_twelve_bits_says_so)
{
    enum { IN = 1024, OUT = 48 };
    br_mat_desc d = {
        .type = BR_Q_BF16, .n_in = IN, .n_out = OUT, .isa = BR_ISA_AVX512};
    uint16_t *raw = t_keep(malloc(2 * IN * OUT));
    br_status st = {0};
    uint64_t rng = 37;
    uint8_t *data;
    br_mat m;

    t_ok(br_mat_plan(&m, &d, &st), &st);
    ck_assert(m.tight);
    data = t_keep(aligned_alloc(64, m.bytes + 64));
    memset(data, 0, m.bytes);
    memset(data + m.bytes, 0x5a, 64);
    for (int i = 0; i < IN * OUT; i++)
        raw[i] = br_f32_to_bf16(uniform(&rng));
    ck_assert(br_mat_pack(&m, (const uint8_t *)raw, data, 0, 3));
    for (int i = 32 * IN; i < IN * OUT; i++) /* the last panel alone */
        raw[i] = (uint16_t)t_rand(&rng);
    ck_assert(br_mat_pack(&m, (const uint8_t *)raw, data, 0, 2));
    ck_assert(!br_mat_pack(&m, (const uint8_t *)raw, data, 0, 3));
    for (int i = 0; i < 64; i++)
        ck_assert_uint_eq(data[m.bytes + (size_t)i], 0x5a);
    br_mat_loosen(&m);
    ck_assert_uint_eq(m.bytes, 2 * IN * OUT);
}

/* All that is written, also what only another set's kernels read. */
TEST(cpu_mat_rows_in_integers_are_the_same_bytes_on_every_set)
{
    static const br_form forms[] = {BR_FORM_Q32, BR_FORM_Q256};
    uint64_t rng = 29;

    for (size_t f = 0; f < BR_COUNT(forms); f++)
        for (uint32_t n = f ? 256 : 32; n <= 2048; n += f ? 256 : 32) {
            size_t bytes = br_act_bytes(forms[f], n);
            float *x = t_keep(malloc(n * sizeof *x));
            uint8_t *want = t_keep(malloc(bytes));
            uint8_t *got = t_keep(malloc(bytes));

            for (uint32_t i = 0; i < n; i++)
                x[i] = uniform(&rng) * uniform(&rng) * 8;
            x[n / 3] = NAN;
            for (uint32_t i = 0; i < 32; i++) { /* the last block's scale */
                x[n - 32 + i] *= n % 64 ? 0x1p-130f : 1;
                x[n / 64 * 32 + i] *= i == 5 && n % 96 ? INFINITY : 1;
            }
            memset(want, 0xa5, bytes);
            br_act_row(BR_ISA_C, forms[f], x, n, want);
            for (br_isa isa = BR_ISA_C; isa < BR_ISA_COUNT; isa++) {
                if (!br_isa_here(isa))
                    continue;
                memset(got, 0xa5, bytes);
                br_act_row(isa, forms[f], x, n, got);
                for (size_t i = 0; i < bytes; i++)
                    if (got[i] != want[i])
                        ck_abort_msg("%s, %u numbers: byte %zu is %d, not %d",
                                     br_isa_name(isa), n, i, got[i], want[i]);
            }
        }
}

TEST(cpu_mat_refuses_what_is_no_matrix_of_weights)
{
    static const struct {
        int type;
        uint64_t n_in, n_out;
        br_code code;
    } bad[] = {
        {BR_Q_I32, 32, 1, BR_E_FORMAT},
        {BR_Q_F64, 32, 1, BR_E_FORMAT},
        {5, 32, 1, BR_E_FORMAT},
        {-1, 32, 1, BR_E_FORMAT},
        {BR_Q_Q8_0, 33, 1, BR_E_FORMAT},
        {BR_Q_Q4_K, 128, 1, BR_E_FORMAT},
        {BR_Q_F32, 0, 1, BR_E_FORMAT},
        {BR_Q_F32, 1, 0, BR_E_FORMAT},
        {BR_Q_F32, BR_MAT_MAX_IN + 1, 1, BR_E_LIMIT},
        {BR_Q_F32, 1, UINT32_MAX, BR_E_LIMIT},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_mat_desc d = {
            .type = bad[i].type, .n_in = bad[i].n_in, .n_out = bad[i].n_out};
        br_status st = {0};
        br_mat m;

        ck_assert_int_eq(br_mat_plan(&m, &d, &st), bad[i].code);
        ck_assert_ptr_null(m.data);
    }
}

TEST(cpu_mat_packs_without_growing)
{
    static const int types[] = {BR_Q_Q8_0,   BR_Q_Q4_0,  BR_Q_Q4_1, BR_Q_Q5_0,
                                BR_Q_Q5_1,   BR_Q_Q4_K,  BR_Q_Q5_K, BR_Q_Q6_K,
                                BR_Q_IQ4_NL, BR_Q_MXFP4, BR_Q_BF16, BR_Q_F16};

    for (size_t i = 0; i < BR_COUNT(types); i++) {
        br_mat_desc d = {.type = types[i], .n_in = 2048, .n_out = 64};
        br_status st = {0};
        uint64_t raw;
        br_mat m;

        t_ok(br_mat_plan(&m, &d, &st), &st);
        ck_assert(br_qtype_bytes(types[i], 2048 * 64, &raw));
        ck_assert_uint_eq(m.bytes, raw);
    }
}
