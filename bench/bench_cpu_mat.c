/* bench_cpu_mat.c - matrix kernels of the CPU tier against the machine.
 *
 *   bench_cpu_mat [FORMAT ...]     without: all that have kernels
 *
 * One thread. Per format and shape: one row (decode) in GB/s of packed
 * weights, as a share of what a plain read of the same buffer reaches, taken
 * before and after; 16, 64 and 512 rows in 10^9 operations a second (two per
 * product), as a share of what the instruction set's multiplier does when it
 * does nothing else. The weights of one row rotate through 384 MiB, so that no
 * cache holds them. Outputs are compared bit for bit with the plain C kernel's
 * before any number is printed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/cpu/cpu_mat.h"
#include "drv/cpu/cpu_probe.h"
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 384 << 20, MAX_ROWS = 512, OUTS = 128256 };

static uint8_t *pool, *acts;
static float *x, *out, *want;
static double peak[BR_FORM_COUNT];

static void *
get(size_t n)
{
    void *p = aligned_alloc(1 << 21, (n + (1 << 21)) >> 21 << 21);

    if (!p) {
        fprintf(stderr, "bench_cpu_mat: no memory\n");
        exit(1);
    }
    memset(p, 0, n);
    return p;
}

/* Milliseconds of the fastest of a few runs. */
static double
time_rows(br_mul *j, uint32_t n_rows, bool cold)
{
    const br_mat *whole = j->m;
    uint64_t n = cold ? POOL / whole->bytes : 1, at = 0;
    int runs = cold ? (int)BR_MAX(3 * n, 3) : 3;
    double best = 1e30, all = 0;
    br_mat m = *whole;

    j->n_rows = n_rows;
    j->m = &m;
    for (int i = 0; i < runs; i++) {
        double t0 = kit_cpu_ms(), ms;

        m.data = pool + at++ % BR_MAX(n, 1) * m.bytes / 64 * 64;
        br_mat_mul(j);
        ms = kit_cpu_ms() - t0;
        best = BR_MIN(best, ms);
        all += ms;
    }
    j->m = whole;
    return cold ? all / runs : best;
}

static void
check(br_mul *j)
{
    const br_mat *whole = j->m;
    br_mat m = *whole;
    size_t n = j->m->n_out;

    m.isa = BR_ISA_C;
    j->m = &m;
    j->n_rows = 5;
    j->o1 = (uint32_t)BR_MIN(n, 100);
    br_mat_mul(j);
    memcpy(want, out, 5 * n * sizeof *out);
    j->m = whole;
    br_mat_mul(j);
    for (size_t r = 0; r < 5; r++)
        if (memcmp(want + r * n, out + r * n, j->o1 * sizeof *out) != 0) {
            fprintf(stderr, "bench_cpu_mat: bits differ from plain C\n");
            exit(1);
        }
}

static void
shape(int type, uint64_t n_in, uint64_t n_out)
{
    static const uint32_t rows[] = {16, 64, 512};
    br_status st = {0};
    double ms, before = br_probe_read(pool, POOL), after, gb;
    br_isa isa = br_isa_best();
    br_mul j = {.act = acts, .out = out, .out_stride = n_out};
    size_t stride;
    br_mat m;

    must(
        br_mat_plan(&m,
                    &(br_mat_desc){
                        .type = type, .n_in = n_in, .n_out = n_out, .isa = isa},
                    &st),
        &st);
    m.data = pool;
    stride = br_act_bytes(m.form, m.n_in);
    for (uint32_t r = 0; r < MAX_ROWS; r++)
        br_act_row(isa, m.form, x + r % 7, m.n_in, acts + r * stride);
    j.m = &m;
    check(&j);
    j.o1 = m.n_out;
    ms = time_rows(&j, 1, true);
    gb = (double)m.bytes / ms * 1e-6;
    after = br_probe_read(pool, POOL);
    printf("%-7s %5u x %6u  %5.1f GB/s %4.0f %%", br_qinfo_of(type)->name,
           m.n_in, m.n_out, gb, 200 * gb / (before + after));
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        double ops = 2e-6 * rows[i] * (double)n_in * (double)n_out;

        if (rows[i] * n_out > MAX_ROWS * 8192)
            continue;
        ops /= time_rows(&j, rows[i], false);
        printf("  %5.0f %3.0f %%", ops, 100 * ops / peak[m.form]);
    }
    printf("\n");
}

static bool
wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

int
main(int argc, char **argv)
{
    static const int types[] = {BR_Q_Q8_0, BR_Q_Q4_0, BR_Q_Q4_K, BR_Q_Q6_K,
                                BR_Q_BF16, BR_Q_F16,  BR_Q_F32,  BR_Q_Q5_K,
                                BR_Q_Q4_1, BR_Q_Q5_0, BR_Q_Q5_1, BR_Q_IQ4_NL,
                                BR_Q_MXFP4};
    br_isa isa = br_isa_best();
    char name[128];
    br_rng rng;

    pool = get(POOL);
    acts = get((size_t)MAX_ROWS * (8192 * 4 + 64));
    x = get(8192 * 4 + 64);
    out = get((size_t)16 * OUTS * 4 + (size_t)MAX_ROWS * 8192 * 4);
    want = get((size_t)5 * OUTS * 4);
    br_rng_init(&rng, 1, 0);
    /* Bit 14 clear: any two bytes are a finite half, any four a finite f32; bit
     * 13 set: and none is subnormal. */
    for (size_t i = 0; i < POOL; i += 8) {
        uint64_t v =
            (br_rng_u64(&rng) & 0x3f3f3f3f3f3f3f3f) | 0x2020202020202020;

        memcpy(pool + i, &v, 8);
    }
    for (int i = 0; i < 8192 + 8; i++)
        x[i] = (float)(int32_t)br_rng_u64(&rng) * 0x1p-31f;
    for (br_form f = 0; f < BR_FORM_COUNT; f++)
        peak[f] = br_probe_mul(isa, f);
    kit_cpu(name, sizeof name);
    printf("%s, %s, one thread: read %.1f GB/s, integers %.0f GOPS, f32 %.0f, "
           "bf16 "
           "%.0f GFLOP/s\n%-7s %14s  %11s %6s  %9s  %9s  %9s\n",
           name, br_isa_name(isa), br_probe_read(pool, POOL), peak[BR_FORM_Q32],
           peak[BR_FORM_F32], peak[BR_FORM_BF16], "format", "shape", "1 row",
           "of read", "16 rows", "64", "512");
    for (size_t i = 0; i < BR_COUNT(types); i++) {
        if (!wanted(argc, argv, br_qinfo_of(types[i])->name))
            continue;
        shape(types[i], 2048, 2048);
        shape(types[i], 2048, 8192);
        shape(types[i], 8192, 2048);
        if (br_qinfo_of(types[i])->elems > 1)
            shape(types[i], 2048, OUTS);
    }
    return 0;
}
