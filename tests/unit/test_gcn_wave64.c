/* test_gcn_wave64.c - kernels compiled for waves of 64 lanes, two warps each, on
 * the simulated processors: what the interpreter says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gcn_corpus.h"
#include "gcn_random.h"

#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_THREADS_OF("gcn_random_kernels_run_as_interpreted");

static const char *const cpus[] = {"gfx1100-wave64", "gfx1201-wave64"};

/* BRASS_WAVE64_SEEDS=FROM,TO: those instead. */
static void
seeds(uint64_t *from, uint64_t *to)
{
    const char *s = getenv("BRASS_WAVE64_SEEDS");
    unsigned long long a, b;

    *from = 1;
    *to = t_sanitized() ? 10 : 120;
    if (s && sscanf(s, "%llu,%llu", &a, &b) == 2) {
        *from = a;
        *to = b;
    }
}

TEST_WITHIN(wave64_random_kernels_run_as_interpreted, 120)
{
    uint64_t seed, to, n = 0, refused = 0;

    for (seeds(&seed, &to); seed <= to; seed++) {
        br_str s = {0};
        const char *err = gcn_random(&s, seed, cpus[seed % 3 == 0]);

        if (err && strstr(err, "waits for what others write"))
            refused++;
        else
            ck_assert_msg(!err, "seed %d: %.400s", (int)seed, err);
        n++;
        br_str_fini(&s);
    }
    /* Loops whose end hangs on what an atomic returned. */
    ck_assert_uint_le(10 * refused, n);
}

/* ---- kernels of every kind ---------------------------------------------- */

enum { BLOCKS = 4, THREADS = 128 };

static void
interpreted(const br_kir *m, uint32_t fn, const corpus_run *like, corpus_run *r)
{
    uint64_t params[] = {0x100000000, 0x200000000, 0x300000000};
    br_kregion regions[] = {
        {params[0], sizeof r->in, r->in, true, "in"},
        {params[1], sizeof r->out, r->out, false, "out"},
        {params[2], sizeof r->work, r->work, false, "work"}};
    br_klaunch l = {.grid = {BLOCKS, 1, 1},
                    .block = {THREADS, 1, 1},
                    .params = (const uint8_t *)params,
                    .regions = regions,
                    .n_regions = BR_COUNT(regions),
                    .fn = fn};
    br_status st = {0};
    br_kimage *im;

    memcpy(r->in, like->in, sizeof r->in);
    memset(r->out, 0, sizeof r->out);
    memset(r->work, 0, sizeof r->work);
    t_ok(br_kimage_new(&im, m, &st), &st);
    l.image = im;
    t_ok(br_kinterp_run(&l, &st), &st);
    br_kimage_free(im);
}

/* False: refused. */
static bool
as_code(const br_kir *m, uint32_t fn, br_gcn_isa isa, corpus_run *r)
{
    br_status st = {0};
    br_gcn_compiled c;

    if (br_gcn_compile(&c, &isa, m, fn, &st) == BR_E_UNSUPPORTED) {
        ck_assert_msg(strstr(st.msg, "a loop that waits for what others write"),
                      "%s", st.msg);
        return false;
    }
    t_ok(st.code, &st);
    t_ok(br_gcn_prove(&isa, c.words.at, c.words.n, &st), &st);
    r->check = true;
    t_ok(corpus_run_words(r, &isa, &c, c.words.at, (uint32_t[]){BLOCKS, 1, 1},
                          (uint32_t[]){THREADS, 1, 1}),
         &r->st);
    ck_assert_msg(!r->findings, "%s %s: %s", isa.cpu->name, c.name, r->finding);
    br_gcn_compiled_fini(&c);
    return true;
}

/* Kernels whose warps wait for each other. */
static bool
is_refused(const char *name)
{
    static const char *const names[] = {"k_lock", "k_ring", "k_look_back",
                                        "k_pairs", "k_stages"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (strcmp(names[k], name) == 0)
            return true;
    return false;
}

/* As waves of 32 lanes have it, and as the interpreter, but for k_saxpy, whose NaNs
 * have the processor's bits; with every check and nothing found. */
static void
corpus(const char *cpu)
{
    corpus_run *got = t_keep(calloc(1, sizeof *got));
    corpus_run *want = t_keep(calloc(1, sizeof *want));
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), true};
    br_status st = {0};
    br_kir *m;
    char name[64];
    size_t n;
    unsigned ran = 0;
    char *text = t_read(t_repo("tests/data/gcn/kernels.ptx"), &n);

    t_ok(br_ptx_parse(&m, text, n, NULL, &st), &st);
    t_ok(br_kir_optimise(m, NULL, &st), &st);
    for (uint32_t k = 0; corpus_name(m, k, name); k++) {
        uint32_t fn = br_kir_find_fn(m, br_text_z(name));

        ck_assert_msg(as_code(m, fn, isa, got) != is_refused(name), "%s", name);
        if (is_refused(name))
            continue;
        ck_assert(as_code(m, fn, (br_gcn_isa){isa.cpu, false}, want));
        ck_assert_msg(corpus_same(got, want), "%s %s: other memory", cpu, name);
        interpreted(m, fn, got, want);
        ck_assert_msg(corpus_same(got, want) != (strcmp(name, "k_saxpy") == 0),
                      "%s %s: not the interpreter's", cpu, name);
        ran++;
    }
    ck_assert_uint_eq(ran, 47);
    br_kir_free(m);
}

TEST_WITHIN(wave64_corpus_runs_as_interpreted_gfx1100, 60)
{
    corpus("gfx1100");
}

TEST_WITHIN(wave64_corpus_runs_as_interpreted_gfx1201, 60)
{
    corpus("gfx1201");
}

/* ---- two warps of a wave ------------------------------------------------ */

#define TOP                                                             \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                   \
    ".entry k(.param .u64 in, .param .u64 out) {\n"                     \
    ".reg .b32 %r<16>; .reg .b64 %d<9>; .reg .pred %p<6>;\n"            \
    ".reg .b16 %h<4>;\n"                                                \
    ".shared .align 8 .b8 s[512];\n"                                    \
    "ld.param.u64 %d1, [out]; ld.param.u64 %d3, [in];\n"                \
    "mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mov.u32 %r1, %tid.x;\n" \
    "mad.lo.u32 %r1, %r2, %r3, %r1; mul.wide.u32 %d2, %r1, 4;\n"        \
    "add.u64 %d1, %d1, %d2; shr.u32 %r2, %r1, 5; mov.u32 %r3, %laneid;\n"

static const char *
ran_on(const char *cpu, const char *text)
{
    br_kir *m = ptx_load(text);
    const char *err;
    br_ktarget t;

    ck_assert(br_sim_target(&t, cpu));
    err = pr_compare(m, &t);
    br_kir_free(m);
    return err;
}

/* What a warp's lanes tell each other is not the other warp's, in step or not: each
 * has its own number of turns, masks and lanes that it reads. */
TEST(wave64_warps_have_their_own_votes_and_shuffles)
{
    static const char text[] = TOP
        "mov.u32 %r4, 0; mov.u32 %r5, 0;\n"
        "L: add.u32 %r6, %r1, %r5; mul.lo.u32 %r6, %r6, 0x9e3779b9;\n"
        "and.b32 %r7, %r6, 0x300; setp.eq.u32 %p1, %r7, 0;\n"
        "activemask.b32 %r7; mad.lo.u32 %r4, %r4, 31, %r7;\n"
        "vote.sync.ballot.b32 %r8, %p1, %r7; mad.lo.u32 %r4, %r4, 31, %r8;\n"
        "vote.sync.any.pred %p2, %p1, %r7; @%p2 add.u32 %r4, %r4, 17;\n"
        "vote.sync.all.pred %p3, %p1, %r7; @%p3 add.u32 %r4, %r4, 19;\n"
        "vote.sync.uni.pred %p3, %p1, %r7; @%p3 add.u32 %r4, %r4, 23;\n"
        "add.u32 %r9, %r2, %r5; shfl.sync.idx.b32 %r10, %r6, %r9, 31, %r7;\n"
        "mad.lo.u32 %r4, %r4, 31, %r10;\n"
        "shfl.sync.bfly.b32 %r10, %r6, 16, 31, %r7; xor.b32 %r4, %r4, %r10;\n"
        "shfl.sync.up.b32 %r10|%p4, %r6, 1, 0, %r7; @%p4 add.u32 %r4, %r4, 3;\n"
        "shr.u32 %r11, %r6, 30; match.any.sync.b32 %r12, %r11, %r7;\n"
        "mad.lo.u32 %r4, %r4, 31, %r12; redux.sync.add.s32 %r13, %r6, %r7;\n"
        "mad.lo.u32 %r4, %r4, 31, %r13; mov.u32 %r14, %lanemask_lt;\n"
        "xor.b32 %r4, %r4, %r14; add.u32 %r5, %r5, 1;\n"
        "setp.le.u32 %p5, %r5, %r2; @%p5 bra L;\n"
        "st.global.u32 [%d1], %r4; ret; }\n";

    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        const char *err = ran_on(cpus[c], text);

        ck_assert_msg(!err, "%s: %s", cpus[c], err);
    }
}

/* A branch on a vote is one that the two may take differently. */
TEST(wave64_warps_part_where_a_vote_says_so)
{
    static const char text[] = TOP
        "mov.u32 %r4, 5; setp.eq.u32 %p1, %r2, 1;\n"
        "vote.sync.any.pred %p2, %p1, -1; @%p2 bra A; add.u32 %r4, %r1, 9;\n"
        "A: vote.sync.ballot.b32 %r5, %p1, -1; setp.ne.u32 %p3, %r5, 0;\n"
        "@%p3 bra B; mul.lo.u32 %r4, %r4, 3;\n"
        "B: st.global.u32 [%d1], %r4; ret; }\n";

    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        const char *err = ran_on(cpus[c], text);

        ck_assert_msg(!err, "%s: %s", cpus[c], err);
    }
}

/* Warps that come to a barrier together again go on, and their memory is in order;
 * those of one wave that come to two barriers end the launch. */
TEST(wave64_warps_come_to_barriers_together)
{
    static const char good[] =
        TOP "mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;\n"
            "mov.u32 %r4, %r1; setp.ne.u32 %p1, %r2, 1; @%p1 bra J;\n"
            "mul.lo.u32 %r4, %r1, 7;\n"
            "J: st.shared.u32 [%r5], %r4; bar.sync 0;\n"
            "xor.b32 %r6, %r6, 32; mov.u32 %r7, s; add.u32 %r6, %r6, %r7;\n"
            "ld.shared.u32 %r4, [%r6]; st.global.u32 [%d1], %r4; ret; }\n";
    static const char two[] =
        TOP "setp.ne.u32 %p1, %r2, 1; @%p1 bra J; bar.sync 0;\n"
            "st.global.u32 [%d1], %r1; ret;\n"
            "J: bar.sync 0; st.global.u32 [%d1], %r2; ret; }\n";

    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        const char *err = ran_on(cpus[c], good);

        ck_assert_msg(!err, "%s: %s", cpus[c], err);
        err = ran_on(cpus[c], two);
        ck_assert_msg(err && strstr(err, "trap"), "%s: %s", cpus[c], err);
    }
}

/* A lock is refused, in each form; tries that fail because others' did not are not,
 * nor is waiting for other blocks before a barrier. */
TEST(wave64_loops_that_wait_for_a_neighbour_are_refused)
{
    static const struct {
        const char *loop;
        bool refused;
    } rows[] = {
        {"L: atom.global.exch.b32 %r4, [%d3], 1; setp.ne.u32 %p2, %r4, 0;\n"
         "@%p2 bra L; st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        {"L: atom.global.cas.b32 %r4, [%d3], 0, 1; setp.ne.u32 %p2, %r4, 0;\n"
         "@%p2 bra L; st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        {"L: ld.volatile.global.u32 %r4, [%d3]; setp.ne.u32 %p2, %r4, %r2;\n"
         "@%p2 bra L; add.u32 %r4, %r4, 1; st.global.u32 [%d3], %r4;",
         true},
        {"L: atom.global.add.u32 %r4, [%d3], 0; setp.ne.u32 %p2, %r4, %r2;\n"
         "@%p2 bra L; add.u32 %r4, %r4, 1; st.global.u32 [%d3], %r4;",
         true},
        {"L: ld.volatile.global.u32 %r5, [%d3]; setp.ne.u32 %p2, %r5, 0;\n"
         "@%p2 bra L; atom.global.cas.b32 %r4, [%d3], %r5, 1;\n"
         "setp.ne.u32 %p3, %r4, %r5; @%p3 bra L; st.global.u32 [%d3], %r2;",
         true},
        {"mov.u32 %r6, s;\nL: setp.ne.u32 %p1, %r3, 0; @%p1 bra M;\n"
         "ld.volatile.global.u32 %r4, [%d3]; st.shared.u32 [%r6], %r4;\n"
         "M: bar.warp.sync -1; ld.shared.u32 %r5, [%r6];\n"
         "setp.ne.u32 %p2, %r5, %r2; @%p2 bra L; st.global.u32 [%d3], %r5;",
         true},
        {"ld.global.u32 %r4, [%d3];\nL: add.u32 %r5, %r4, %r2;\n"
         "atom.global.cas.b32 %r6, [%d3], %r4, %r5; setp.ne.u32 %p2, %r6, "
         "%r4;\n"
         "mov.u32 %r4, %r6; @%p2 bra L; st.global.u32 [%d1], %r4;",
         false},
        {"L: atom.global.add.u32 %r4, [%d3], 1; setp.lt.u32 %p2, %r4, 900;\n"
         "@%p2 bra L; st.global.u32 [%d1], %r4;",
         false},
        /* What it found has changed since the turn before. */
        {"ld.volatile.global.u16 %r4, [%d3]; cvt.u16.u32 %h1, %r4;\n"
         "L: add.u16 %h2, %h1, 7; atom.global.cas.b16 %h3, [%d3], %h1, %h2;\n"
         "setp.ne.s16 %p2, %h3, %h1; mov.u16 %h1, %h3; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4;",
         false},
        {"mov.u32 %r5, 0;\nL: ld.volatile.global.u32 %r4, [%d3];\n"
         "setp.ne.u32 %p2, %r4, %r5; mov.u32 %r5, %r4; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4;",
         false},
        /* The same, but what has changed is a count of its own, or what it wrote. */
        {"mov.u32 %r5, 0;\nL: ld.volatile.global.u32 %r4, [%d3];\n"
         "setp.eq.u32 %p1, %r4, 0; selp.u32 %r6, 1, 0, %p1;\n"
         "add.u32 %r7, %r5, %r6; setp.ne.u32 %p2, %r7, %r5;\n"
         "mov.u32 %r5, %r7; @%p2 bra L; st.global.u32 [%d1], %r4;",
         true},
        {"mov.u32 %r5, 0; mov.u32 %r7, 0;\nL: ld.volatile.global.u32 %r4, "
         "[%d3];\nsetp.ne.u32 %p2, %r4, %r5; mov.u32 %r5, %r4;\n"
         "add.u32 %r7, %r7, 1; st.volatile.global.u32 [%d3], %r7; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4;",
         true},
        /* A count ends it: up, down, to a number, beside another condition. */
        {"mov.u32 %r5, 0;\nL: atom.global.exch.b32 %r4, [%d3], 1;\n"
         "setp.ne.u32 %p2, %r4, 0; add.u32 %r5, %r5, 1;\n"
         "setp.lt.u32 %p3, %r5, 90; and.pred %p2, %p2, %p3; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         false},
        {"mov.u32 %r5, %r1;\nL: setp.le.s32 %p3, %r5, 0; @%p3 bra B;\n"
         "sub.u32 %r5, %r5, 3; atom.global.exch.b32 %r4, [%d3], 1;\n"
         "setp.ne.u32 %p2, %r4, 0; @%p2 bra L;\n"
         "B: st.global.u32 [%d1], %r5; st.global.u32 [%d3], %r5;",
         false},
        {"mov.u32 %r5, 0;\nL: ld.volatile.global.u32 %r4, [%d3];\n"
         "setp.eq.u32 %p2, %r4, 7; @%p2 bra B; add.u32 %r5, %r5, 1;\n"
         "setp.ne.u32 %p3, %r5, %r1; @%p3 bra L;\n"
         "B: st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         false},
        /* It goes the other way, stands still on one way, is passed by on one, or
         * its end is what others write. */
        {"mov.u32 %r5, 0;\nL: atom.global.exch.b32 %r4, [%d3], 1;\n"
         "setp.ne.u32 %p2, %r4, 0; sub.u32 %r5, %r5, 1;\n"
         "setp.lt.s32 %p3, %r5, 90; and.pred %p2, %p2, %p3; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        {"mov.u32 %r5, 0;\nL: atom.global.exch.b32 %r4, [%d3], 1;\n"
         "and.b32 %r6, %r4, 1; add.u32 %r5, %r5, %r6;\n"
         "setp.ne.u32 %p2, %r4, 0; setp.lt.u32 %p3, %r5, 90;\n"
         "and.pred %p2, %p2, %p3; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        {"mov.u32 %r5, 0;\nL: atom.global.exch.b32 %r4, [%d3], 1;\n"
         "add.u32 %r5, %r5, 1; setp.eq.u32 %p2, %r4, 2; @%p2 bra L;\n"
         "setp.ne.u32 %p2, %r4, 0; setp.lt.u32 %p3, %r5, 90;\n"
         "and.pred %p2, %p2, %p3; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        {"mov.u32 %r5, 0;\nL: ld.volatile.global.u32 %r4, [%d3];\n"
         "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r4; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         true},
        /* A lane's own memory changes by what it does alone, or hands on. */
        {".local .align 4 .b8 lo[4];\nL: ld.volatile.local.u32 %r4, [lo];\n"
         "add.u32 %r4, %r4, 3; st.volatile.local.u32 [lo], %r4;\n"
         "setp.lt.u32 %p2, %r4, %r2; @%p2 bra L;\n"
         "st.global.u32 [%d1], %r4; st.global.u32 [%d3], %r4;",
         false},
        {".local .align 4 .b8 lo[4];\nL: ld.volatile.global.u32 %r4, [%d3];\n"
         "st.volatile.local.u32 [lo], %r4; ld.volatile.local.u32 %r5, [lo];\n"
         "setp.ne.u32 %p2, %r5, %r2; @%p2 bra L; st.global.u32 [%d3], %r5;",
         true},
        {"setp.ne.u32 %p1, %r1, 0; @%p1 bra B;\n"
         "L: ld.acquire.gpu.global.u32 %r4, [%d3]; setp.lt.u32 %p2, %r4, 9;\n"
         "@%p2 bra L;\nB: bar.sync 0; st.global.u32 [%d1], %r2;",
         false},
    };

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        br_kir *m = ptx_load(t_printf("%s%s\nret; }\n", TOP, rows[k].loop));

        for (int optimise = 0; optimise < 2; optimise++)
            for (int wave64 = 0; wave64 < 2; wave64++) {
                br_gcn_isa isa = {br_gcn_cpu_find("gfx1201"), wave64};
                br_status st = {0};
                br_gcn_compiled c;
                br_code code;

                if (optimise)
                    t_ok(br_kir_optimise(m, NULL, &st), &st);
                code = br_gcn_compile(&c, &isa, m, 0, &st);
                ck_assert_msg((code == BR_E_UNSUPPORTED) ==
                                  (wave64 && rows[k].refused),
                              "%d: %s", (int)k, st.msg);
                br_gcn_compiled_fini(&c);
            }
        br_kir_free(m);
    }
}

/* Barriers of a part of a block, and phases that are waited for. */
TEST(wave64_what_warps_wait_at_apart_is_refused)
{
    static const char *const rows[] = {
        "bar.sync 1, 64;", "bar.arrive 1, 64;",
        ("mov.b64 %d4, 0; mov.u32 %r4, s;\n"
         "mbarrier.test_wait.shared.b64 %p1, [%r4], %d4;")};

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        br_kir *m = ptx_load(t_printf("%s%s\nret; }\n", TOP, rows[k]));
        br_gcn_isa isa = {br_gcn_cpu_find("gfx1100"), true};
        br_status st = {0};
        br_gcn_compiled c;

        ck_assert_int_eq(br_gcn_compile(&c, &isa, m, 0, &st), BR_E_UNSUPPORTED);
        ck_assert_msg(strstr(st.msg, "may wait here for the other"), "%s",
                      st.msg);
        br_kir_free(m);
    }
}
