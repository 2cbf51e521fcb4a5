/* fuzz_sim.c - the simulated AMD GPU runs code that nobody wrote.
 *
 * First byte: the processor and lanes; second: waves, groups, check; then words of
 * machine code, of which those that are no instruction are left out, so that what
 * runs is valid and the instructions stay those of the seeds, compiled kernels, but
 * for their operands. What it computes is nobody's business; that it does the same
 * twice is, with its findings, and that it touches nothing but what is there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"
#include "drv/sim/sim.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 16 << 10, STEPS = 6000, MAX_WORDS = 4096, LDS = 2048 };
#define IN_AT   0x100000000ull
#define OUT_AT  0x200000000ull
#define WORK_AT 0x300000000ull
#define ARGS_AT 0x10000ull
#define CODE_AT 0x100000000000ull

typedef struct outcome {
    uint8_t out[BYTES], work[BYTES];
    uint64_t steps, findings, said; /* said: a hash of the texts */
    br_code code;
} outcome;

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
hear(void *arg, const char *text)
{
    outcome *o = arg;

    for (; *text; text++)
        o->said = (o->said ^ (uint8_t)*text) * 0x100000001b3ull;
}

/* The instructions among the words, then an end. */
static size_t
code_of(const br_gcn_isa *isa, const uint8_t *p, size_t n,
        uint32_t out[MAX_WORDS])
{
    static const uint32_t end = 0xbfb00000; /* s_endpgm */
    uint32_t w[BR_GCN_MAX_WORDS];
    size_t words = 0;
    br_gcn_inst in;

    for (size_t at = 0; at + 4 <= n && words + BR_GCN_MAX_WORDS < MAX_WORDS;) {
        size_t take = BR_MIN(n - at, sizeof w);

        memset(w, 0, sizeof w);
        memcpy(w, p + at, take);
        if (!br_gcn_decode(isa, w, take / 4, &in) || !br_sim_knows(isa, &in)) {
            at += 4;
            continue;
        }
        memcpy(out + words, in.w, in.words * sizeof *out);
        words += in.words;
        at += in.words * 4u;
    }
    out[words] = end;
    return words + 1;
}

static void
run(const br_gcn_co *co, uint8_t shape, outcome *o)
{
    static uint8_t in[BYTES];
    uint64_t args[64] = {IN_AT, OUT_AT, WORK_AT};
    br_kregion m[] = {
        {IN_AT, sizeof in, in, true, "in"},
        {OUT_AT, sizeof o->out, o->out, false, "out"},
        {WORK_AT, sizeof o->work, o->work, false, "work"},
        {ARGS_AT, sizeof args, (uint8_t *)args, true, "arguments"}};
    br_sim s = {.cpu = co->isa.cpu,
                .check = shape & 1,
                .seed = 5,
                .max_steps = STEPS,
                .finding = hear,
                .arg = o};
    const br_gcn_symbol *kd = br_gcn_kernel_find(co, "k");
    br_aql_launch l = {.kernarg = ARGS_AT,
                       .groups = {1 + (shape >> 1 & 3), 1, 1},
                       .group = {20u + 24u * (shape >> 3 & 7), 1, 1}};
    br_aql_packet p;

    for (size_t k = 0; k < BYTES; k++)
        in[k] = (uint8_t)(k * 37 >> 3);
    memset(o, 0, sizeof *o);
    memcpy(&l.group_bytes, co->image + kd->at, 4);
    memcpy(&l.private_bytes, co->image + kd->at + 4, 4);
    l.kernel = CODE_AT + kd->at;
    for (size_t k = 0; k < BR_COUNT(m); k++)
        if (br_sim_map(&s, &m[k], NULL) != BR_OK)
            abort();
    if (br_sim_load(&s, co, CODE_AT, NULL) != BR_OK ||
        br_aql_fill(&p, &l, NULL) != BR_OK)
        abort();
    for (unsigned k = 0; k < 2 && o->code == BR_OK; k++)
        o->code = br_sim_dispatch(&s, &p, NULL);
    o->steps = s.steps;
    o->findings = s.findings;
    br_sim_fini(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static uint32_t words[MAX_WORDS];
    static outcome a, b;
    static const br_gcn_arg args[] = {
        {0, 8, NULL}, {8, 8, NULL}, {16, 8, NULL}};
    br_gcn_isa isa;
    br_gcn_kernel k = {.name = "k",
                       .code = words,
                       .lds_bytes = LDS,
                       .scratch_bytes = 64,
                       .kernarg_bytes = 24,
                       .sgprs = 100,
                       .max_threads = 256,
                       .ids = 1,
                       .args = args,
                       .n_args = BR_COUNT(args)};
    br_str object = {0};
    br_gcn_co co;

    if (n < 6)
        return 0;
    isa.cpu = br_gcn_cpu_at(p[0] % 9);
    isa.wave64 = p[0] & 128;
    k.words = code_of(&isa, p + 2, n - 2, words);
    k.vgprs = p[1] & 128 ? 256 : 48;
    if (br_gcn_object(&object, &isa, &k, 1, NULL) != BR_OK ||
        br_gcn_load(&co, object.at, object.n, NULL) != BR_OK)
        abort();
    run(&co, p[1], &a);
    run(&co, p[1], &b);
    if (memcmp(&a, &b, sizeof a) != 0)
        abort();
    br_gcn_unload(&co);
    br_str_fini(&object);
    return 0;
}
