/* test_gcn_spill.c - kernels with more values than AMD processors have
 * registers: what the interpreter says, on the simulated ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gcn_random.h"
#include "hazard_kit.h"

#include "cg/gcn/gcn_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_THREADS_OF("gcn_random_kernels_run_as_interpreted");

/* ---- too few registers --------------------------------------------------- */

/* A processor of which code names this many; what the simulator finds in it. */
static struct {
    br_gcn_cpu cpu;
    br_ktarget sim;
    bool check;
    char finding[300];
} few;

static br_code
few_compile(br_kcode **out, const br_kir *m, br_status *st)
{
    BR_TRY(few.sim.compile(out, m, st));
    ((br_gcn_module *)(void *)*out)->isa.cpu = &few.cpu;
    return BR_OK;
}

static void
found(void *arg, const char *text)
{
    (void)arg;
    if (!*few.finding)
        strncat(few.finding, text, sizeof few.finding - 1);
}

static br_code
few_launch(br_kcode *c, br_klaunch *l, br_status *st)
{
    br_klaunch x = *l;
    br_code code;

    x.check = few.check;
    x.finding = found;
    code = few.sim.launch(c, &x, st);
    l->findings = x.findings;
    l->fault = x.fault;
    return code;
}

static br_ktarget
few_target(const char *cpu, uint8_t sgprs, uint8_t vgprs, bool check)
{
    br_ktarget t;

    memset(&few, 0, sizeof few);
    ck_assert(br_sim_target(&few.sim, cpu));
    few.cpu = *br_gcn_cpu_find(cpu);
    few.cpu.sgprs = sgprs;
    few.cpu.vgprs = vgprs;
    few.check = check;
    t = few.sim;
    t.compile = few_compile;
    t.launch = few_launch;
    return t;
}

static const char *const cpus[] = {"gfx1100", "gfx1201", "gfx1100-wave64",
                                   "gfx1200-wave64"};

/* BRASS_SPILL_SEEDS=FROM,TO: those instead. */
static void
seeds(uint64_t *from, uint64_t *to)
{
    const char *s = getenv("BRASS_SPILL_SEEDS");
    unsigned long long a, b;

    *from = 1;
    *to = t_sanitized() ? 12 : 168;
    if (s && sscanf(s, "%llu,%llu", &a, &b) == 2) {
        *from = a;
        *to = b;
    }
}

/* One kernel in few registers, which and how few by its number; NULL, or what
 * differs from the interpreter or is found. */
static const char *
random_in_few(uint64_t seed)
{
    static const uint8_t sgprs[] = {26, 32, 0, 40}, vgprs[] = {0, 24, 20, 40};
    br_status st = {0};
    br_str s = {0};
    const char *err;
    br_ktarget t = few_target(cpus[seed % 4], sgprs[seed / 4 % 4],
                              vgprs[seed / 16 % 4], seed % 3 == 0);
    br_kir *m;

    (seed % 8 > 1 ? ptx_random : ptx_straight)(&s, seed);
    for (char *p = s.at; (p = strstr(p, "bar.sync 0;"));)
        memset(p, ' ', strlen("bar.sync 0;"));
    m = ptx_load(s.at);
    if (seed % 5 == 0)
        t_ok(br_kir_optimise(m, NULL, &st), &st);
    err = pr_compare(m, &t);
    br_kir_free(m);
    br_str_fini(&s);
    if (err && strstr(err, "waits for what others write"))
        return NULL;
    return err ? err : *few.finding ? few.finding : NULL;
}

TEST_WITHIN(gcn_random_kernels_run_in_a_few_registers, 120)
{
    uint64_t seed, to;

    for (seeds(&seed, &to); seed <= to; seed++) {
        const char *err = random_in_few(seed);

        ck_assert_msg(!err, "seed %d: %s", (int)seed, err);
    }
}

/* A scalar instruction reads a mask that a vector instruction wrote on one of two
 * ways, and nobody waited for the mask of the other. */
TEST(gcn_who_is_held_up_on_one_way_is_not_on_the_other)
{
    const char *err = random_in_few(5541);

    ck_assert_msg(!err, "%s", err);
}

/* No way through the code reads a mask too early, whichever lanes take it: 0046. */
TEST_WITHIN(gcn_all_ways_wait_for_masks, 120)
{
    unsigned all = 0, left = 0;
    uint64_t seed, to;

    for (seeds(&seed, &to); seed <= to; seed++) {
        br_gcn_cpu cpu = *br_gcn_cpu_find("gfx1201");
        br_gcn_isa isa = {.cpu = &cpu, .wave64 = seed % 4 == 3};
        br_status st = {0};
        br_str s = {0};
        br_gcn_compiled out;
        const char *err;
        bool more;
        br_kir *m;

        cpu.sgprs = (uint8_t[]){26, 32, 0, 40}[seed / 4 % 4];
        cpu.vgprs = (uint8_t[]){0, 24, 20, 40}[seed / 16 % 4];
        ptx_random(&s, seed);
        m = ptx_load(s.at);
        if (br_gcn_compile(&out, &isa, m, 0, &st) == BR_OK) {
            err = hazard_find(&isa, out.words.at, out.words.n, &more);
            ck_assert_msg(!*err, "seed %d: %s", (int)seed, err);
            all++;
            left += more;
        }
        br_gcn_compiled_fini(&out);
        br_kir_free(m);
        br_str_fini(&s);
    }
    ck_assert_uint_le(10 * left, all);
}

/* ---- kernels that are too large ----------------------------------------- */

#define TOP(regs)                                                            \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                        \
    ".func (.reg .b32 %%y) down(.reg .b32 %%x) {\n"                          \
    ".reg .b32 %%a, %%b; .reg .pred %%p; mov.u32 %%y, %%x;\n"                \
    "setp.lt.u32 %%p, %%x, 3; @%%p bra E; shr.u32 %%a, %%x, 1;\n"            \
    "call (%%b), down, (%%a); mad.lo.u32 %%y, %%b, 5, %%x; E: ret; }\n"      \
    ".entry k(.param .u64 in, .param .u64 out) {\n"                          \
    ".reg .b32 %%r<" regs ">; .reg .b64 %%d<9>; .reg .pred %%p<" regs ">;\n" \
    ".shared .align 4 .b8 sh[1024];\n"                                       \
    "ld.param.u64 %%d1, [out]; ld.param.u64 %%d3, [in];\n"                   \
    "mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%tid.x; mov.u32 %%r2,"          \
    " %%ntid.x; mad.lo.u32 %%r3, %%r0, %%r2, %%r1;\n"                        \
    "mul.wide.u32 %%d2, %%r3, 4; add.u64 %%d1, %%d1, %%d2;\n"                \
    "add.u64 %%d3, %%d3, %%d2; ld.global.u32 %%r9, [%%d3];\n"                \
    "mov.u32 %%r4, 0; mov.u32 %%r5, 0;\n"
#define END "st.global.u32 [%%d1], %%r4; ret; }\n"

/* n values of the wave, or of each lane, in a loop with barriers, lanes that part
 * and, of waves, a call. */
static void
values(br_str *s, unsigned n, bool lanes)
{
    const char *from = lanes ? "%r9" : "%r0";

    br_str_printf(s, TOP("4000"));
    for (unsigned k = 0; k < n; k++)
        br_str_printf(s, "mad.lo.u32 %%r%u, %s, %u, %u;\n", k + 10, from,
                      7 * k + 3, k);
    br_str_puts(s, "L:\n");
    for (unsigned k = 0; k < n; k++)
        br_str_printf(s, "mad.lo.u32 %%r%u, %%r%u, 3, %%r%u;\n", k + 10,
                      (k + 1) % n + 10, (5 * k + 2) % n + 10);
    br_str_puts(s, "shl.b32 %r6, %r1, 2; mov.u32 %r7, sh; add.u32 %r7, %r7,"
                   "%r6; st.shared.u32 [%r7], %r4; bar.sync 0;\n"
                   "ld.shared.u32 %r8, [sh+4]; bar.sync 0;\n"
                   "add.u32 %r4, %r4, %r8; add.u32 %r4, %r4, %r1;\n"
                   "setp.lt.u32 %p1, %r1, 20; @%p1 bra A;\n"
                   "add.u32 %r4, %r4, %r10; add.u32 %r4, %r4, %r17;\n"
                   "shfl.sync.bfly.b32 %r6, %r4, 1, 31, -1; bra B;\n"
                   "A: xor.b32 %r4, %r4, %r12; B:\n");
    if (!lanes)
        br_str_puts(s, "and.b32 %r6, %r4, 1023; call (%r6), down, (%r6);\n"
                       "add.u32 %r4, %r4, %r6;\n");
    br_str_puts(s, "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3;\n"
                   "@%p2 bra L;\n");
    for (unsigned k = 0; k < n; k++)
        br_str_printf(s, "mad.lo.u32 %%r4, %%r4, 31, %%r%u;\n", k + 10);
    br_str_printf(s, END);
}

/* n masks of lanes at once, in one block. */
static void
masks(br_str *s, unsigned n)
{
    br_str_printf(s, TOP("4000"));
    for (unsigned k = 0; k < n; k++)
        br_str_printf(s,
                      "mul.lo.u32 %%r5, %%r3, %u; xor.b32 %%r5, %%r5, %%r9; "
                      "setp.gt.s32 %%p%u, %%r5, %u;\n",
                      2654435761u * (k + 1), k, k);
    for (int twice = 0; twice < 2; twice++) {
        for (unsigned k = 0; k < n; k++)
            br_str_printf(s,
                          "selp.u32 %%r5, %u, 0, %%p%u; "
                          "mad.lo.u32 %%r4, %%r4, 31, %%r5;\n",
                          k + 1, k);
        for (unsigned k = 0; k < n; k++)
            br_str_printf(s, "xor.pred %%p%u, %%p%u, %%p%u;\n", k, k,
                          (7 * k + 1) % n);
    }
    br_str_printf(s, END);
}

/* Lanes leave at n places, where they wait until the last ones come. */
static void
places(br_str *s, unsigned n)
{
    br_str_printf(s, TOP("20"));
    br_str_puts(s, "add.u32 %r9, %r9, %r3;\n");
    for (unsigned k = 0; k < n; k++)
        br_str_printf(s,
                      "mul.lo.u32 %%r5, %%r9, %u; shr.u32 %%r5, %%r5, 16; "
                      "mad.lo.u32 %%r4, %%r4, 33, %%r5; and.b32 %%r6, %%r5, "
                      "255; setp.lt.u32 %%p1, %%r6, 10; @%%p1 bra E%u;\n",
                      2654435761u * (k + 1), k);
    for (unsigned k = n; k-- > 0;)
        br_str_printf(s,
                      "add.u32 %%r4, %%r4, %u; E%u: mul.lo.u32 %%r4, "
                      "%%r4, %u;\n",
                      k, k, 2 * k + 3);
    br_str_printf(s, END);
}

static void
same_everywhere(br_str *s)
{
    static const char *const on[] = {"gfx1100",        "gfx1151",
                                     "gfx1200",        "gfx1201",
                                     "gfx1100-wave64", "gfx1201-wave64"};
    br_kir *m = ptx_load(br_str_z(s));

    for (size_t k = 0; k < BR_COUNT(on); k++) {
        br_ktarget t = few_target(on[k], 0, 0, k % 3 == 1);
        const char *err = pr_compare(m, &t);

        ck_assert_msg(!err && !*few.finding, "%s: %s %s", on[k], err ? err : "",
                      few.finding);
    }
    br_kir_free(m);
    br_str_fini(s);
}

TEST_WITHIN(gcn_hundreds_of_values_of_a_wave_have_a_place, 60)
{
    br_str s = {0};

    values(&s, 260, false);
    same_everywhere(&s);
}

TEST_WITHIN(gcn_hundreds_of_masks_have_a_place, 60)
{
    br_str s = {0};

    masks(&s, 220);
    same_everywhere(&s);
}

TEST_WITHIN(gcn_lanes_wait_at_hundreds_of_places, 60)
{
    br_str s = {0};

    places(&s, 240);
    same_everywhere(&s);
}

/* More than an instruction's offset reaches in scratch, where a scalar says where
 * the next part begins. */
TEST_WITHIN(gcn_thousands_of_values_of_lanes_have_a_place, 60)
{
    br_str s = {0};

    values(&s, 1400, true);
    same_everywhere(&s);
}

/* ---- other limits --------------------------------------------------------- */

/* Three places an if, and values that go between two of them alone. */
TEST_WITHIN(gcn_thousands_of_blocks_are_none_too_many, 60)
{
    static const char *const on[] = {"gfx1100", "gfx1201-wave64"};
    br_str s = {0};
    br_kir *m;

    br_str_printf(&s, TOP("20"));
    for (unsigned k = 0; k < 2800; k++)
        br_str_printf(&s,
                      "mad.lo.u32 %%r4, %%r4, %u, %%r9; shr.u32 %%r5, %%r4, "
                      "9; and.b32 %%r5, %%r5, 7; setp.eq.u32 %%p1, %%r5, %u; "
                      "@%%p1 bra S%u; xor.b32 %%r4, %%r4, %u; S%u:\n",
                      2 * k + 3, k % 8, k, 7 * k + 1, k);
    br_str_printf(&s, END);
    m = ptx_load(br_str_z(&s));
    for (size_t k = 0; k < BR_COUNT(on); k++) {
        br_ktarget t = few_target(on[k], 0, 0, false);
        const char *err = pr_compare(m, &t);

        ck_assert_msg(!err, "%s: %s", on[k], err);
    }
    br_kir_free(m);
    br_str_fini(&s);
}

/* What is too much is told with how much there is. */
#define USE(space, bytes)                               \
    "." #space " .align 4 .b8 a[" #bytes "];",          \
        "mov.u64 %d2, a; st." #space ".u32 [%d2], %r1;" \
        "ld." #space ".u32 %r1, [%d2+8];"

TEST(gcn_limits_say_what_is_there)
{
    static const struct {
        const char *params, *vars, *use, *says;
    } cases[] = {
        {".param .align 8 .b8 p[32764]", "", "", NULL},
        {".param .align 8 .b8 p[32768]", "", "",
         "32768 bytes of parameters; 32764"},
        {".param .u64 p", USE(shared, 65536), NULL},
        {".param .u64 p", USE(shared, 65540), "65540 bytes of shared memory"},
        {".param .u64 p", USE(local, 65536), NULL},
        {".param .u64 p", USE(local, 65540),
         "bytes of local memory of a thread; 65536 are there"}};

    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        br_kir *m = ptx_load(t_printf(
            ".version 8.3\n.target sm_90\n.address_size 64\n.entry k(%s) {\n"
            "%s .reg .b32 %%r<4>; .reg .b64 %%d<4>; ld.param.u64 %%d1, [p];\n"
            "mov.u32 %%r1, %%tid.x; %s st.global.u32 [%%d1], %%r1; ret; }\n",
            cases[k].params, cases[k].vars, cases[k].use));
        br_gcn_isa isa = {.cpu = br_gcn_cpu_find("gfx1201")};
        br_gcn_compiled out;
        br_status st = {0};
        br_code c = br_gcn_compile(&out, &isa, m, 0, &st);

        if (cases[k].says)
            ck_assert_msg(c == BR_E_LIMIT && strstr(st.msg, cases[k].says),
                          "%s", st.msg);
        else
            t_ok(c, &st);
        br_gcn_compiled_fini(&out);
        br_kir_free(m);
    }
}

/* Scalars without a register live in lanes of vector registers, 32 or 64 each. */
TEST_WITHIN(gcn_scalars_that_no_lane_has_room_for_are_counted, 60)
{
    static const struct {
        const char *cpu;
        bool wave64;
        unsigned values; /* at once, and the loop's few */
    } cases[] = {{"gfx1100", false, 600},
                 {"gfx1100", false, 900},
                 {"gfx1200", true, 1200},
                 {"gfx1200", true, 1800}};

    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        br_gcn_cpu cpu = *br_gcn_cpu_find(cases[k].cpu);
        br_gcn_isa isa = {.cpu = &cpu, .wave64 = cases[k].wave64};
        br_gcn_compiled out;
        br_status st = {0};
        br_str s = {0};
        br_kir *m;
        br_code c;
        unsigned words = 0, take = 0;

        cpu.vgprs = 24;
        values(&s, cases[k].values, false);
        m = ptx_load(br_str_z(&s));
        c = br_gcn_compile(&out, &isa, m, br_kir_find_fn(m, br_text_z("k")),
                           &st);
        if (k % 2) {
            const char *at = strstr(st.msg, "scalars: ");

            ck_assert_msg(c == BR_E_LIMIT && at, "%s", st.msg);
            ck_assert_int_eq(sscanf(at,
                                    "scalars: %u words that have no register "
                                    "take %u of 24 vector registers",
                                    &words, &take),
                             2);
            ck_assert_uint_ge(words, cases[k].values - 120);
            ck_assert_uint_le(words, cases[k].values + 60);
            ck_assert_uint_eq(take, (words + (isa.wave64 ? 63 : 31)) /
                                        (isa.wave64 ? 64 : 32));
        } else {
            t_ok(c, &st);
        }
        br_gcn_compiled_fini(&out);
        br_kir_free(m);
        br_str_fini(&s);
    }
}
