/* bench_cpu_mat.c - matrix kernels of the CPU tier against the machine.
 *
 *   bench_cpu_mat [ISA] [FORMAT ...]     without: the best, and all that have
 *                                        kernels
 *
 * One thread. Per format and shape: one row (decode) in GB/s of packed
 * weights, as a share of what a plain read of the same buffer reaches, taken
 * before and after; 16, 64 and 512 rows in 10^9 operations a second (two per
 * product; the fastest of five), as a share (the median) of what the
 * instruction set's multiplier does just before and after with nothing else.
 * The weights of one row rotate through 384 MiB, so that no cache holds them.
 * Outputs are compared bit for bit with the plain C kernel's before any number
 * is printed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/cpu/cpu_mat.h"
#include "drv/cpu/cpu_probe.h"
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POOL = 384 << 20,
    MAX_ROWS = 512,
    OUTS = 128256,
    REPEATS = 5,
    CHECK_ROWS = 13
};

static uint8_t *pool, *acts;
static float *x, *out, *want;
static br_isa isa;

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

/* GB/s of one row; weights from memory, the whole pool a few times. */
static double
stream(br_mul *j)
{
    const br_mat *whole = j->m;
    uint64_t n = POOL / whole->bytes, rounds = BR_MAX(3 * n, 3);
    br_mat m = *whole;
    double t0 = kit_cpu_ms();

    j->m = &m;
    j->n_rows = 1;
    for (uint64_t i = 0; i < rounds; i++) {
        m.data = pool + i % n * m.bytes / 64 * 64;
        br_mat_mul(j);
    }
    j->m = whole;
    return (double)(rounds * m.bytes) / (kit_cpu_ms() - t0) * 1e-6;
}

static int
by_size(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;

    return (l > r) - (l < r);
}

/* Median share of the peak, which is taken before and after each run: the
 * clock of a machine that others use moves. */
static double
share(br_mul *j, uint32_t n_rows, double *ops)
{
    double share[REPEATS], fastest = 0;
    double n = 2e-6 * n_rows * (double)j->m->n_in * (double)j->m->n_out;

    j->n_rows = n_rows;
    for (int i = 0; i < REPEATS; i++) {
        double before = br_probe_mul(j->m->isa, j->m->form);
        double t0 = kit_cpu_ms(), rate;

        br_mat_mul(j);
        rate = n / (kit_cpu_ms() - t0);
        fastest = BR_MAX(fastest, rate);
        share[i] = 2 * rate / (before + br_probe_mul(j->m->isa, j->m->form));
    }
    qsort(share, REPEATS, sizeof share[0], by_size);
    *ops = fastest;
    return share[REPEATS / 2];
}

/* BF16 in pairs rounds in an order of its own. */
static bool
same(const br_mat *m, const float *a, const float *b, size_t n)
{
    float most = 0, off = 0;

    if (m->form != BR_FORM_BF16)
        return memcmp(a, b, n * sizeof *a) == 0;
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(a[i]));
        off = fmaxf(off, fabsf(a[i] - b[i]));
    }
    return off <= most / 64;
}

/* Rows in plain C, each alone; then together. */
static void
check(br_mul *j)
{
    const br_mat *whole = j->m;
    br_mat m = *whole;
    size_t n = j->m->n_out;

    if (m.form != BR_FORM_BF16)
        m.isa = BR_ISA_C;
    j->n_rows = 1;
    j->o1 = (uint32_t)BR_MIN(n, 100);
    for (int r = 0; r < CHECK_ROWS; r++) {
        br_mul one = *j;

        one.m = &m;
        one.act += (size_t)r * br_act_bytes(m.form, m.n_in);
        one.out = want + (size_t)r * n;
        br_mat_mul(&one);
    }
    j->n_rows = CHECK_ROWS;
    br_mat_mul(j);
    for (size_t r = 0; r < CHECK_ROWS; r++)
        if (!same(j->m, want + r * n, out + r * n, j->o1)) {
            fprintf(stderr, "bench_cpu_mat: %s: bits differ from plain C\n",
                    br_qinfo_of(m.type)->name);
            exit(1);
        }
}

static void
shape(int type, uint64_t n_in, uint64_t n_out)
{
    static const uint32_t rows[] = {16, 64, 512};
    br_status st = {0};
    double before = br_probe_read(pool, POOL), after, gb;
    br_mul j = {.act = acts, .out = out, .out_stride = n_out};
    size_t stride;
    br_mat m;

    must(br_mat_plan(&m,
                     &(br_mat_desc){.type = type,
                                    .n_in = n_in,
                                    .n_out = n_out,
                                    .isa = isa,
                                    .loose = true},
                     &st),
         &st);
    m.data = pool;
    stride = br_act_bytes(m.form, m.n_in);
    for (uint32_t r = 0; r < MAX_ROWS; r++)
        br_act_row(isa, m.form, x + r % 7, m.n_in, acts + r * stride);
    j.m = &m;
    check(&j);
    j.o1 = m.n_out;
    gb = stream(&j);
    after = br_probe_read(pool, POOL);
    printf("%-7s %5u x %6u  %5.1f GB/s %4.0f %%", br_qinfo_of(type)->name,
           m.n_in, m.n_out, gb, 200 * gb / (before + after));
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        double ops, part;

        if (rows[i] * n_out > MAX_ROWS * 8192)
            continue;
        part = share(&j, rows[i], &ops);
        printf("  %5.0f %3.0f %%", ops, 100 * part);
    }
    printf("\n");
}

/* The best, or the one that the first argument names and the machine has. */
static void
pick(int *argc, char ***argv)
{
    isa = br_isa_best();
    for (int i = 0; *argc > 1 && i < BR_ISA_COUNT; i++)
        if (strcmp((*argv)[1], br_isa_name((br_isa)i)) == 0 &&
            br_isa_here((br_isa)i)) {
            isa = (br_isa)i;
            --*argc;
            ++*argv;
            return;
        }
}

static bool
wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

static const int types[] = {BR_Q_Q8_0, BR_Q_Q4_0, BR_Q_Q4_K, BR_Q_Q6_K,
                            BR_Q_BF16, BR_Q_F16,  BR_Q_F32,  BR_Q_Q5_K,
                            BR_Q_Q4_1, BR_Q_Q5_0, BR_Q_Q5_1, BR_Q_IQ4_NL,
                            BR_Q_MXFP4};

/* A name that is none would be a table without a row. */
static bool
known(const char *name)
{
    for (size_t i = 0; i < BR_COUNT(types); i++)
        if (strcmp(name, br_qinfo_of(types[i])->name) == 0)
            return true;
    return false;
}

int
main(int argc, char **argv)
{
    char name[128];
    br_rng rng;

    pick(&argc, &argv);
    for (int i = 1; i < argc; i++)
        if (!known(argv[i])) {
            fprintf(stderr,
                    "bench_cpu_mat: no format with kernels, and no ISA of this "
                    "machine: '%s'\n",
                    argv[i]);
            return 2;
        }
    pool = get(POOL);
    acts = get((size_t)MAX_ROWS * (8192 * 4 + 64));
    x = get(8192 * 4 + 64);
    out = get((size_t)16 * OUTS * 4 + (size_t)MAX_ROWS * 8192 * 4);
    want = get((size_t)CHECK_ROWS * OUTS * 4);
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
    kit_cpu(name, sizeof name);
    printf("%s, %s, one thread: read %.1f GB/s, integers %.0f GOPS, f32 %.0f "
           "GFLOP/s\n%-7s %14s  %11s %6s  %9s  %9s  %9s\n",
           name, br_isa_name(isa), br_probe_read(pool, POOL),
           br_probe_mul(isa, BR_FORM_Q32), br_probe_mul(isa, BR_FORM_F32),
           "format", "shape", "1 row", "of read", "16 rows", "64", "512");
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
