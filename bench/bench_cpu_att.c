/* bench_cpu_att.c - attention of the CPU tier against the machine.
 *
 * One thread, keys and values in F16 (also in pairs of BF16, where they pay) and
 * Q8_0, pages of all layers as a model has them.
 * Per shape and depth: one row through all layers (decode) in GB/s of keys and
 * values, and as a share of what a plain read of the same memory reaches just
 * before and after; rows that follow each other (a prompt, 32 or 64 lines) in GFLOP/s,
 * and as a share of the fma rate. The fastest of three. tests/unit/test_cpu_att.c
 * has compared the bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/cpu/cpu_mat.h"
#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_probe.h"
#include "kit.h"
#include "model/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 256 << 20, MOST = 8192 + BR_CPU_LINES, REPEATS = 3 };

typedef struct shape {
    const char *name;
    uint32_t layers, kv, per, dim;
} shape;

static uint8_t *pool;
static int kv; /* what keys and values are kept as */
static void (*attend)(const br_cpu_att *a);
static uint32_t lines;
static uint32_t pages[MOST / 16];
static float q[BR_CPU_LINES * 128], y[BR_CPU_LINES * 128];
static float *scratch;

/* Rows from position pos on through the heads of all layers; numbers of keys
 * read. */
static double
rows_at(const shape *s, int32_t pos, uint32_t rows)
{
    br_cpu_att a = {.pages = pages,
                    .pool = pool,
                    .kv = kv,
                    .has_v = true,
                    .sheets = true,
                    .once = br_calls_stay(),
                    .head_k = s->dim,
                    .head_v = s->dim,
                    .scale = 0.1f,
                    .s = scratch};
    size_t head = br_kv_bytes(kv, (uint64_t)s->dim * 16);

    a.page_bytes = 2 * s->layers * s->kv * head;
    a.n = rows * s->per;
    for (uint32_t i = 0; i < a.n; i++)
        a.line[i] = (br_cpu_line){.q = q + i * s->dim,
                                  .y = y + i * s->dim,
                                  .pos = pos + (int32_t)(i / s->per)};
    for (uint32_t i = 0; i < s->layers * s->kv; i++) {
        a.k_at = (i / s->kv * 2 * s->kv + i % s->kv) * head;
        a.v_at = a.k_at + s->kv * head;
        attend(&a);
    }
    return (double)(pos + 1) * (double)(s->layers * s->kv * s->dim);
}

static void
measure(const char *how, const shape *s, int32_t depth)
{
    double gb = 0, share = 0, rate = 0, part = 0;
    double bytes = 2 * (double)br_kv_bytes(kv, 32) / 32;
    shape one = {"", 2, s->kv, s->per, s->dim};
    uint32_t rows = lines / s->per;
    br_isa isa = br_isa_best();

    for (int i = 0; i < REPEATS; i++) {
        double before = br_probe_read(pool, POOL), t0 = kit_cpu_ms(), r;

        r = rows_at(s, depth - 1, 1) * bytes;
        r = r / (kit_cpu_ms() - t0) * 1e-6;
        gb = BR_MAX(gb, r);
        share = BR_MAX(share, 2 * r / (before + br_probe_read(pool, POOL)));
        before = br_probe_mul(isa, BR_FORM_F32);
        t0 = kit_cpu_ms();
        r = 4 * rows_at(&one, depth - 1, rows) * rows * s->per;
        r = r / (kit_cpu_ms() - t0) * 1e-6;
        rate = BR_MAX(rate, r);
        part = BR_MAX(part, 2 * r / (before + br_probe_mul(isa, BR_FORM_F32)));
    }
    printf("%-5s %-12s %6d  %6.1f GB/s %4.0f %%  %6.1f GFLOP/s %4.0f %%\n", how,
           s->name, depth, gb, 100 * share, rate, 100 * part);
}

int
main(void)
{
    static const shape shapes[] = {
        {"30x3x3x64", 30, 3, 3, 64},
        {"8x8x4x64", 8, 8, 4, 64},
        {"6x8x2x128", 6, 8, 2, 128},
        {"6x8x1x128", 6, 8, 1, 128},
    };
    static const int32_t depths[] = {256, 2048, 8192};
    const br_cpu_ops *ops = br_cpu_ops_of(br_isa_best());
    const struct {
        const char *name;
        int kv;
        void (*attend)(const br_cpu_att *a);
        uint32_t lines;
    } kinds[] = {
        {"f16", BR_Q_F16, ops->attend, BR_CPU_LINES_F32},
        {"pairs", BR_Q_F16,
         br_isa_pairs_pay(br_isa_best()) ? ops->attend_pairs : NULL,
         BR_CPU_LINES},
        {"q8_0", BR_Q_Q8_0, ops->attend, BR_CPU_LINES_F32},
    };
    char name[128];
    br_rng rng;

    pool = aligned_alloc(1 << 21, POOL);
    scratch = aligned_alloc(64, (br_cpu_att_floats(128, 128) + 15) / 16 * 64);
    if (!pool)
        return 1;
    br_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < POOL / 2; i++) {
        uint16_t h = (uint16_t)(0x3000 | (i * 2654435761u >> 20 & 0x8fff));

        memcpy(pool + 2 * i, &h, 2); /* 1/8 to 2, of either sign */
    }
    for (size_t i = 0; i < BR_COUNT(q); i++)
        q[i] = (float)(int32_t)br_rng_u64(&rng) * 0x1p-31f;
    for (uint32_t i = 0; i < BR_COUNT(pages); i++)
        pages[i] = i;
    kit_cpu(name, sizeof name);
    printf("%s, %s, one thread; layers x heads of keys x queries of each x "
           "width\n%-5s %-12s %6s  %16s  %s\n",
           name, br_isa_name(br_isa_best()), "", "shape", "depth",
           "one row, of read", "prompt, of fma");
    for (size_t i = 0; i < BR_COUNT(shapes); i++)
        for (size_t k = 0; k < BR_COUNT(depths); k++)
            for (size_t j = 0; j < BR_COUNT(kinds); j++) {
                kv = kinds[j].kv;
                attend = kinds[j].attend;
                lines = kinds[j].lines;
                if (attend)
                    measure(kinds[j].name, &shapes[i], depths[k]);
            }
    return 0;
}
