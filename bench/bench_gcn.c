/* bench_gcn.c - AMD code by instructions, and the simulator by speed.
 *
 *   bench_gcn [CPU [OBJECT]]      CPU: gfx1201; gfx1201-wave64: waves of 64 lanes
 *                                 (-mwavefrontsize64), what is refused left out
 *
 * Every kernel of tests/data/gcn/kernels.ptx (ours), optimised, compiled and run
 * on the simulated processor; OBJECT holds the same kernels as another compiler
 * made them:
 *
 *   clang-19 -x hip -std=c++17 --cuda-device-only --no-gpu-bundle-output
 *       -nogpuinc -nogpulib --offload-arch=gfx1201 -mcumode -O3 -c
 *       -o OBJECT tests/data/gcn/kernels.cu
 *
 * Instructions are those that waves executed, loops with all their turns; hints
 * are those of them that are s_delay_alu, and do nothing; the mix says what the
 * others are. Speed is of one thread, of dispatches alone, without check and with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../tests/gcn_corpus.h"
#include "cg/ptx/ptx.h"
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS = 20, CHECKED_REPEATS = 20, MANY = 32, FEW = 4, THREADS = 128 };
static const char *const path = "tests/data/gcn/kernels.ptx";

/* Kernels whose blocks wait for each other are made for four. */
static bool
together(const char *name)
{
    static const char *const names[] = {
        "k_last_block", "k_chain",   "k_relaxed", "k_lock",
        "k_grid",       "k_tickets", "k_ring",    "k_look_back",
        "k_pairs",      "k_tree",    "k_divide",  "k_stages"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (strcmp(names[k], name) == 0)
            return true;
    return false;
}

typedef struct row {
    uint64_t steps, other;
    uint64_t hints, other_hints; /* of those, s_delay_alu */
    double fast, checked;        /* million instructions a second */
    double mix[BR_SIM_CLASSES];  /* parts of its instructions; 0: hints */
} row;

static double
speed(corpus_run *r, const br_gcn_co *co, const char *name, unsigned blocks)
{
    must(corpus_run_object(r, co, name, (uint32_t[]){blocks, 1, 1},
                           (uint32_t[]){THREADS, 1, 1}),
         &r->st);
    return (double)r->steps / r->seconds / 1e6;
}

/* False: the compiler refuses it. */
static bool
measure(const br_gcn_isa *isa, const br_kir *m, const char *name,
        const br_gcn_co *other, row *to)
{
    static corpus_run r, o;
    unsigned blocks = together(name) ? FEW : MANY;
    br_status st = {0};
    br_gcn_compiled k;
    br_gcn_co co;
    br_str object = {0};
    row out = {0};
    uint64_t mix[BR_SIM_CLASSES] = {0};

    if (br_gcn_compile(&k, isa, m, br_kir_find_fn(m, br_text_z(name)), &st) ==
        BR_E_UNSUPPORTED)
        return false;
    must(st.code, &st);
    must(br_gcn_object(&object, isa, &k.k, 1, &st), &st);
    must(br_gcn_load(&co, object.at, object.n, &st), &st);
    r = (corpus_run){.repeat = REPEATS};
    out.fast = speed(&r, &co, name, blocks);
    out.steps = r.steps / (REPEATS + 1);
    out.hints = r.hints / (REPEATS + 1);
    if (other) {
        (void)speed(&o, other, name, blocks);
        out.other = o.steps;
        out.other_hints = o.hints;
        if (!corpus_same(&r, &o))
            printf("%s: other results\n", name);
    }
    r = (corpus_run){.repeat = CHECKED_REPEATS, .check = true};
    out.checked = speed(&r, &co, name, blocks);
    if (r.findings)
        printf("%s: %s\n", name, r.finding);
    r = (corpus_run){.mix = mix};
    (void)speed(&r, &co, name, blocks);
    for (unsigned c = 0; c < BR_SIM_CLASSES; c++)
        out.mix[c] = (double)(c ? mix[c] : r.hints) / (double)r.steps;
    br_gcn_unload(&co);
    br_gcn_compiled_fini(&k);
    br_str_fini(&object);
    *to = out;
    return true;
}

static void
print_mix(const double sum[BR_SIM_CLASSES], unsigned n)
{
    printf("mix, mean of kernels: hints %.1f %%", sum[0] * 100 / n);
    for (unsigned k = 1; k < BR_SIM_CLASSES; k++)
        printf(", %s %.1f %%", br_sim_classes[k], sum[k] * 100 / n);
    printf("\n");
}

int
main(int argc, char **argv)
{
    const char *cpu = argc > 1 ? argv[1] : "gfx1201";
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), strstr(cpu, "-wave64") != NULL};
    br_gcn_co other;
    br_status st = {0};
    double ratio = 0, bare = 0, fast = 0, checked = 0;
    double mix[BR_SIM_CLASSES] = {0};
    unsigned n = 0, nth = 0;
    char name[64], *text;
    size_t bytes;
    br_kir *m;

    if (!isa.cpu) {
        fprintf(stderr, "no such processor: %s\n", argv[1]);
        return 2;
    }
    must(br_file_read(path, 1 << 24, &text, &bytes, &st), &st);
    must(br_ptx_parse(&m, text, bytes, NULL, &st), &st);
    br_free(text);
    must(br_kir_optimise(m, NULL, &st), &st);
    if (argc > 2) {
        must(br_file_read(argv[2], BR_GCN_MAX_FILE, &text, &bytes, &st), &st);
        must(br_gcn_load(&other, text, bytes, &st), &st);
        br_free(text);
    }
    printf("%-14s %9s %7s %9s %7s %6s %8s %8s\n", "kernel", "ours", "hints",
           "other", "hints", "ratio", "fast M/s", "checked");
    for (; corpus_name(m, nth, name); nth++) {
        double of = 1;
        row r;

        if (!measure(&isa, m, name, argc > 2 ? &other : NULL, &r))
            continue;
        n++;
        of = argc > 2 ? (double)r.steps / (double)r.other : 1;
        printf("%-14s %9llu %7llu %9llu %7llu %6.2f %8.1f %8.1f\n", name,
               (unsigned long long)r.steps, (unsigned long long)r.hints,
               (unsigned long long)r.other, (unsigned long long)r.other_hints,
               of, r.fast, r.checked);
        ratio += log(of);
        bare += argc > 2 ? log((double)(r.steps - r.hints) /
                               (double)(r.other - r.other_hints))
                         : 0;
        fast += log(r.fast);
        checked += log(r.checked);
        for (unsigned k = 0; k < BR_SIM_CLASSES; k++)
            mix[k] += r.mix[k];
    }
    print_mix(mix, n);
    printf("geomean of %u: ratio %.3f, %.3f without hints, fast %.1f M/s, "
           "checked %.1f M/s\n",
           n, exp(ratio / n), exp(bare / n), exp(fast / n), exp(checked / n));
    br_kir_free(m);
    if (argc > 2)
        br_gcn_unload(&other);
    return 0;
}
