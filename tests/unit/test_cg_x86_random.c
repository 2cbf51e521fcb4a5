/* test_cg_x86_random.c - random kernels: machine code gives the interpreter's
 * memory. `make fuzz F=x86` makes more of them.
 * SPDX-License-Identifier: Apache-2.0 */
#define PR_MORE
#define PR_APPROX
#include "ptx_kit.h"
#include "ptx_random.h"

/* As what this machine has best, and as what all have. */
static const char *
compare(const br_kir *m)
{
    const char *err = pr_compare(m, br_ktarget_find("x86-64"));

    return err ? err : pr_compare(m, br_ktarget_find("x86-64-avx2"));
}

TEST_WITHIN(x86_random_kernels_are_as_interpreted, 120)
{
    int n = t_tsan() ? 5 : t_sanitized() ? 20 : 200;

    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        br_str s = {0};
        br_status st = {0};
        const char *err;
        br_kir *m;

        ptx_random(&s, seed);
        m = ptx_load(s.at);
        ck_assert_msg(m->notes.n == 0, "seed %d: %.*s", (int)seed,
                      (int)m->notes.at[0].text.n, m->notes.at[0].text.p);
        if (seed % 2)
            t_ok(br_kir_optimise(m, NULL, &st), &st);
        err = compare(m);
        if (err && strstr(err, "needs a processor"))
            t_skip("%s", err);
        ck_assert_msg(!err, "seed %d: %s\n%s", (int)seed, err, s.at);
        br_kir_free(m);
        br_str_fini(&s);
    }
}

/* The interpreter's memory before the passes and after them; a load that nobody
 * uses goes, and its fault with it. */
TEST_WITHIN(passes_leave_what_random_kernels_compute, 120)
{
    static uint8_t want[PR_OUT], got[PR_OUT];
    const br_ktarget *interp = br_ktarget_find("interp");
    int n = t_sanitized() ? 30 : 300, faults = 0;

    t_not_for_tsan(NULL);
    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        br_str s = {0};
        br_status st = {0}, then = {0};
        br_code code;
        br_kir *m;

        (seed % 3 == 0   ? ptx_line
         : seed % 3 == 1 ? ptx_plane
                         : ptx_random)(&s, seed);
        m = ptx_load(s.at);
        pr_shape = seed;
        code = pr_run(interp, m, want, &st);
        faults += code != BR_OK;
        t_ok(br_kir_optimise(m, NULL, &then), &then);
        if (code == BR_OK && !pr_meets(s.at)) {
            code = pr_run(interp, m, got, &then);
            ck_assert_msg(code == BR_OK && memcmp(want, got, PR_OUT) == 0,
                          "seed %d: %s\n%.3000s", (int)seed,
                          code ? then.msg : "memory differs", s.at);
        }
        br_kir_free(m);
        br_str_fini(&s);
    }
    pr_shape = 0;
    ck_assert_int_lt(faults, n / 2);
}

static void
many_agree(void (*make)(br_str *, uint64_t))
{
    int n = t_sanitized() ? 20 : 120, faults = 0;

    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        br_str s = {0};
        br_status st = {0};
        const char *err;
        br_kir *m;

        make(&s, seed);
        m = ptx_load(s.at);
        ck_assert_msg(m->notes.n == 0, "seed %d: %.*s", (int)seed,
                      (int)m->notes.at[0].text.n, m->notes.at[0].text.p);
        if (seed % 4)
            t_ok(br_kir_optimise(m, NULL, &st), &st);
        err = compare(m);
        if (err && strstr(err, "needs a processor"))
            t_skip("%s", err);
        ck_assert_msg(!err, "seed %d: %s\n%s", (int)seed, err, s.at);
        faults += pr_faulted;
        br_kir_free(m);
        br_str_fini(&s);
    }
    if (make == ptx_straight) {
        ck_assert_int_eq(faults, 0);
        return;
    }
    ck_assert_int_gt(faults, n / 20);
    ck_assert_int_lt(faults, 2 * n / 3);
}

TEST_WITHIN(x86_random_straight_code_is_as_interpreted, 120)
{
    many_agree(ptx_straight);
}

TEST_WITHIN(x86_random_lines_are_as_interpreted, 120)
{
    many_agree(ptx_line);
}

TEST_WITHIN(x86_random_planes_are_as_interpreted, 120)
{
    many_agree(ptx_plane);
}

static void
agrees(const char *ptx)
{
    br_kir *m = ptx_load(ptx);
    br_status st = {0};
    const char *err;

    t_ok(br_kir_optimise(m, NULL, &st), &st);
    err = compare(m);
    if (err && strstr(err, "needs a processor"))
        t_skip("%s", err);
    ck_assert_msg(!err, "%s", err);
    br_kir_free(m);
}

/* The comparison's constant then gets register 0, from the value that is
 * needed last. */
TEST(x86_unsigned_comparison_among_many_values)
{
    br_str s = {0};

    br_str_puts(&s, ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, "
                    ".param .u64 out) {\n.reg .b32 %r<20>; .reg .b64 %d<3>; "
                    ".reg .pred %p;\nld.param.u64 %d0,[in]; ld.param.u64 "
                    "%d1,[out];\nmov.u32 %r16,%tid.x; mul.wide.u32 "
                    "%d2,%r16,4; add.u64 %d0,%d0,%d2; add.u64 %d1,%d1,%d2;\n");
    for (int k = 0; k < 13; k++)
        br_str_printf(&s, "ld.global.u32 %%r%d,[%%d0+%d];\n", k, 64 * k);
    br_str_puts(&s, "shl.b32 %r17,%r11,25; shl.b32 %r18,%r12,25;\n"
                    "setp.lt.u32 %p,%r17,%r18; selp.b32 %r15,%r1,7,%p;\n");
    for (int k = 12; k >= 0; k--)
        br_str_printf(&s, "xor.b32 %%r15,%%r15,%%r%d;\n", k);
    br_str_puts(&s, "st.global.u32 [%d1],%r15; ret;\n}\n");
    agrees(s.at);
    br_str_fini(&s);
}

/* What lanes of a loop's end read has no row for each of them: found by the
 * fuzzer, as the loop's place was mistaken for its block. */
TEST(x86_uniform_values_of_loops_have_places)
{
    br_str s = {0};

    ptx_random(&s, 8291);
    agrees(s.at);
    br_str_fini(&s);
}

/* What a block does at once is looked at as a whole: its last places may lie
 * outside, or where one may only read. */
TEST(x86_lines_end_where_memory_does)
{
    static const char *const ends[] = {"add.u64 %d,%d,30472;", /* 2 too many */
                                       "add.u64 %d,%d,30464;", /* all inside */
                                       "ld.param.u64 %d,[in];"};
    br_str s = {0};

    for (int k = 0; k < 3; k++) {
        s.n = 0;
        br_str_printf(&s,
                      ".version 8.0\n.target sm_80\n.entry line(.param .u64 "
                      "in, .param .u64 out) {\n.reg .b32 %%r<4>; .reg .b64 "
                      "%%d,%%e;\nld.param.u64 %%d,[out]; %s\n"
                      "mov.u32 %%r0,%%tid.x; mov.u32 %%r1,%%ctaid.x; shl.b32 "
                      "%%r1,%%r1,6; add.u32 %%r0,%%r0,%%r1;\nmul.wide.u32 "
                      "%%e,%%r0,4; add.u64 %%d,%%d,%%e; st.global.u32 [%%d],"
                      "%%r0; ret;\n}\n",
                      ends[k]);
        agrees(s.at);
        ck_assert_int_eq(pr_faulted, k != 1);
    }
    br_str_fini(&s);
}

/* Tables of less than a row of lanes, read by each lane at a place of its own
 * where it was found before: the last of them, and one more, of lane 5 in
 * round 3. */
TEST(x86_small_tables_end_where_they_do)
{
    static const char *const spaces[] = {"const", "global"};
    static const struct {
        const char *type, *at, *reg;
        unsigned bytes;
    } of[] = {
        {"u32", "b32", "r", 4},
        {"u64", "b64", "d", 8},
        {"u16", "b16", "r", 2},
        {"u8", "b8", "r", 1},
    };
    br_str s = {0};

    for (unsigned k = 0; k < 2 * BR_COUNT(of) * 8; k++) {
        unsigned t = k / 2 % BR_COUNT(of), n = k / 8 % 4, more = k / 32;

        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.%s .align 8 .%s table[%u] = "
            "{11%.*s};\n.entry k(.param .u64 in, .param .u64 out) {\n.reg .b32 "
            "%%r<9>; .reg .b64 %%d<9>; .reg .pred %%p;\nld.param.u64 "
            "%%d1,[out]; mov.u32 %%r0,%%tid.x; mov.u32 %%r1,0; mov.u64 "
            "%%d6,0;\nmul.wide.u32 %%d2,%%r0,8; add.u64 %%d1,%%d1,%%d2; "
            "mov.u64 "
            "%%d3,table;\nL: add.u32 %%r2,%%r0,%%r1; rem.u32 %%r2,%%r2,%u; "
            "mad.lo.u32 %%r3,%%r1,64,%%r0; setp.eq.u32 %%p,%%r3,197; selp.b32 "
            "%%r2,%u,%%r2,%%p;\nmul.wide.u32 %%d4,%%r2,%u; add.u64 "
            "%%d4,%%d3,%%d4; ld.%s.%s "
            "%%%s5,[%%d4]; %s add.u64 %%d6,%%d6,%%d5;\nadd.u32 %%r1,%%r1,1; "
            "setp.lt.u32 %%p,%%r1,4; @%%p bra L;\nst.global.u64 [%%d1],%%d6; "
            "ret;\n}\n",
            spaces[k % 2], of[t].at, n + 1, 3 * (int)n, ",22,33,44", n + 1,
            n + more, of[t].bytes, spaces[k % 2], of[t].type, of[t].reg,
            *of[t].reg == 'r' ? "cvt.u64.u32 %d5,%r5;" : "");
        agrees(s.at);
        ck_assert_int_eq(pr_faulted, more);
    }
    br_str_fini(&s);
}

/* Memory changed in place with little done is a loop of 32 bytes at a time, whatever
 * the processor has; beside one that does more. */
TEST(x86_lines_changed_in_place)
{
    static const struct {
        const char *type, *bytes, *more;
    } of[] = {
        {"u32", "4", ""},
        {"u64", "8", ""},
        {"u16", "2", ""},
        {"u32", "4",
         "xor.b32 %x,%x,%y; add.u32 %x,%x,%y; sub.u32 %y,%y,%x; "
         "add.u32 %x,%y,%x;"},
    };
    br_str s = {0};

    for (size_t k = 0; k < BR_COUNT(of); k++) {
        const char *t = of[k].type, *b = of[k].bytes;

        s.n = 0;
        br_str_printf(&s,
                      ".version 8.0\n.target sm_80\n.entry line(.param .u64 "
                      "in, .param .u64 out) {\n.reg .b32 %%r<4>; .reg .b64 "
                      "%%c,%%d,%%e; .reg .%s %%x,%%y;\nld.param.u64 %%c,[in];"
                      " ld.param.u64 %%d,[out];\n"
                      "mov.u32 %%r0,%%tid.x; mul.wide.u32 %%e,%%r0,%s; add.u64 "
                      "%%c,%%c,%%e; add.u64 "
                      "%%d,%%d,%%e;\nld.global.%s %%x,[%%c]; ld.global.%s "
                      "%%y,[%%d]; add.%s %%x,%%x,%%y; %s st.global.%s "
                      "[%%d],%%x; ret;\n}\n",
                      t, b, t, t, t, of[k].more, t);
        agrees(s.at);
        ck_assert(!pr_faulted);
    }
    br_str_fini(&s);
}

/* Index y << 30: of five warps a row each the first and the last have 0, those
 * between lie outside. Other shapes of blocks by one more instruction each. */
TEST(x86_planes_do_not_trust_the_last_warp)
{
    br_str s = {0};

    for (int k = 0; k < 18; k++) {
        s.n = 0;
        br_str_puts(&s,
                    ".version 8.0\n.target sm_80\n.entry plane(.param .u64 "
                    "in, .param .u64 out) {\n.reg .b32 %x, %y, %i, %r; .reg "
                    ".b64 %a, %b;\nmov.u32 %x,%tid.x; mov.u32 %y,%tid.y;\n");
        for (int n = k % 6; n--;)
            br_str_puts(&s, "add.u32 %r,%x,%y;\n");
        br_str_printf(&s,
                      "shl.b32 %%i,%%y,%d; add.u32 %%i,%%i,%%x; cvt.u64.u32 "
                      "%%a,%%i; ld.param.u64 %%b,[in]; add.u64 %%a,%%a,%%b; "
                      "ld.global.u8 %%r,[%%a]; ld.param.u64 %%b,[out]; "
                      "mad.lo.u32 %%i,%%y,64,%%x; mad.wide.u32 %%b,%%i,4,%%b; "
                      "st.global.u32 [%%b],%%r; ret;\n}\n",
                      28 + k / 6);
        agrees(s.at);
        ck_assert(pr_faulted);
    }
    br_str_fini(&s);
}

/* Sums of addresses and displacements run over: nothing is there. */
TEST(x86_addresses_at_the_end_of_numbers)
{
    static const char *const shapes[] = {"k", "line"};
    br_str s = {0};

    for (int k = 0; k < 2; k++) {
        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry %s(.param .u64 in, .param "
            ".u64 out) {\n.reg .b32 %%r<4>; .reg .b64 %%d,%%e;\n"
            "mov.u32 %%r0,%%tid.x; mul.wide.u32 %%e,%%r0,4; mov.u64 "
            "%%d,0x7fffffffffffff00; add.u64 %%d,%%d,%%e; ld.global.u32 "
            "%%r1,[%%d]; ld.global.u32 %%r2,[%%d+16777200]; ld.param.u64 "
            "%%d,[out]; add.u32 %%r1,%%r1,%%r2; st.global.u32 [%%d],%%r1; "
            "ret;\n}\n",
            shapes[k]);
        agrees(s.at);
        ck_assert(pr_faulted);
    }
    br_str_fini(&s);
}

/* Addresses that are anywhere, of some lanes, and where the last is a byte too
 * far or lanes meet: the last one's number stays. */
TEST(x86_lanes_that_are_anywhere)
{
    static const char *const ends[] = {
        "and.b32 %r2,%r0,7; setp.lt.u32 %p,%r2,5;\n",
        "setp.ne.u32 %p,%r0,3;\n",
        "setp.ne.u32 %p,%r0,99;\n",
        "setp.ne.u32 %p,%r0,99; add.u32 %r1,%r1,1;\n",
    };
    br_str s = {0};

    for (int wide = 0; wide < 2; wide++)
        for (int k = 0; k < 4; k++) {
            s.n = 0;
            br_str_printf(
                &s,
                ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param "
                ".u64 out) {\n.reg .b32 %%r<6>; .reg .b64 %%d<6>; .reg .pred "
                "%%p;\nld.param.u64 %%d0,[in]; ld.param.u64 %%d1,[out];\n"
                "mov.u32 %%r0,%%tid.x; mul.lo.u32 %%r1,%%r0,29; and.b32 "
                "%%r1,%%r1,31; shl.b32 %%r1,%%r1,%d;\n%s"
                "cvt.u64.u32 %%d2,%%r1; add.u64 %%d0,%%d0,%%d2; and.b32 "
                "%%r3,%%r1,0xfffffff0; cvt.u64.u32 %%d3,%%r3; add.u64 "
                "%%d1,%%d1,%%d3;\nmov.b64 %%d4,5; mov.u32 %%r4,5;\n"
                "@%%p ld.global.%s,[%%d0+%d];\n@%%p st.global.%s;\nret;\n}\n",
                2 + wide, ends[k], wide ? "u64 %d4" : "u32 %r4", 8 * wide,
                wide ? "u64 [%d1+8],%d4" : "u32 [%d1],%r4");
            agrees(s.at);
        }
    br_str_fini(&s);
}

/* Lanes some bytes apart, near and far, up and down, in global and shared memory;
 * all is inside, or the last block has a place just before its start or its end. */
TEST(x86_lanes_some_bytes_apart)
{
    static const int steps[] = {8, 12, 16, 20, -4, -8, -12, -16, -36, 40};
    static const char *const shapes[] = {"k", "line"};
    br_str s = {0};
    int faults = 0;

    for (unsigned k = 0; k < BR_COUNT(steps) * 12; k++) {
        int by = steps[k / 12], bytes = k & 1 ? 8 : 4, up = by < 0 ? -by : by;
        int end = k / 4 % 3,
            next = end == 2 ? up : -up; /* from block to block */
        const int first[] = {by > 0 ? 512 : 4096 - 64 - bytes, /* inside */
                             (by > 0 ? 8 : 71) * up - bytes,
                             4096 - (by > 0 ? 71 : 8) * up};
        const char *type = k & 1 ? "u64" : "u32", *r = k & 1 ? "d4" : "r4";

        if (by % bytes)
            continue;
        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry %s(.param .u64 in, .param "
            ".u64 out) {\n.reg .b32 %%r<8>; .reg .b64 %%d<9>; .reg .pred %%p; "
            ".shared .align 8 .b8 sh[40000];\nld.param.u64 %%d0,[in]; "
            "ld.param.u64 %%d1,[out];\nmov.u32 %%r0,%%tid.x; mov.u32 "
            "%%r1,%%tid.y; mov.u32 %%r2,%%ctaid.x; mad.wide.s32 "
            "%%d0,%%r2,%d,%%d0;\n"
            "%s mul.wide.s32 %%d3,%%r0,%d; add.u64 %%d0,%%d0,%%d3;\n"
            "ld.global.%s %%%s,[%%d0+%d];\n",
            shapes[k >> 1 & 1], next, k & 2 ? "" : "min.u32 %r0,%r0,200;", by,
            type, r, first[end]);
        /* through shared memory, a row of 132 bytes a thread */
        br_str_printf(
            &s,
            "mov.u64 %%d5,sh; mad.wide.u32 %%d5,%%r0,%d,%%d5; "
            "mad.wide.u32 %%d5,%%r1,%d,%%d5; st.shared.%s [%%d5],%%%s; "
            "bar.sync 0; ld.shared.%s %%%s,[%%d5];\n",
            k & 1 ? 136 : 132, bytes, type, r, type, r);
        br_str_printf(&s,
                      "mul.wide.s32 %%d6,%%r0,%d; add.u64 %%d1,%%d1,%%d6; "
                      "mad.wide.u32 %%d1,%%r1,%d,%%d1; setp.eq.u32 %%p,%%r2,0; "
                      "@%%p st.global.%s [%%d1+%d],%%%s; ret;\n}\n",
                      by, 4096, type, by > 0 ? 0 : 4096, r);
        agrees(s.at);
        faults += pr_faulted;
    }
    ck_assert_int_gt(faults, 4);
    ck_assert_int_lt(faults, 70);
    br_str_fini(&s);
}

/* Whole numbers that go down, or up by other than powers of two, and run over on
 * their way through a block: what they are as wider ones. */
TEST(x86_steps_that_run_over)
{
    static const struct {
        const char *from;
        int by;
    } of[] = {{"40", -1},         {"40", -5},         {"0x80000010", -1},
              {"0x80000100", -5}, {"0x7ffffff0", 3},  {"0xfffffff0", 3},
              {"0xffffff00", 3},  {"0x7fffff00", 11}, {"100000", -12}};
    static const char *const types[] = {"u64.u32", "s64.s32"};
    static const char *const shapes[] = {"k", "line"};
    br_str s = {0};

    for (unsigned k = 0; k < BR_COUNT(of) * 4; k++) {
        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry %s(.param .u64 in, .param "
            ".u64 out) {\n.reg .b32 %%r<4>; .reg .b64 %%d<4>;\n"
            "ld.param.u64 %%d1,[out]; mov.u32 %%r0,%%tid.x; mov.u32 "
            "%%r1,%%tid.y; mad.lo.s32 %%r2,%%r0,%d,%s; cvt.%s %%d2,%%r2; "
            "mad.wide.u32 %%d1,%%r0,8,%%d1; mad.wide.u32 %%d1,%%r1,1024,%%d1; "
            "st.global.u64 [%%d1],%%d2; ret;\n}\n",
            shapes[k & 1], of[k / 4].by, of[k / 4].from, types[k >> 1 & 1]);
        agrees(s.at);
        ck_assert(!pr_faulted);
    }
    br_str_fini(&s);
}

/* Lanes leave a loop with the number of their round, which is one for the warp, or
 * goes by one from lane to lane, while others take the next one. */
TEST(x86_lanes_that_leave_a_loop_keep_their_round)
{
    static const char *const first[] = {"0", "%r0"};
    static const char *const back[] = {
        "@%p0 bra L;",
        "selp.u32 %r6,0,1,%p0; T: .branchtargets L,E; brx.idx %r6,T;",
        "selp.u32 %r6,1,0,%p0; T: .branchtargets E,L,E; brx.idx %r6,T;"};
    br_str s = {0};

    for (unsigned k = 0; k < BR_COUNT(first) * BR_COUNT(back); k++) {
        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 "
            "out) {\n.reg .b32 %%r<8>; .reg .b64 %%d<4>; .reg .pred %%p<2>;\n"
            "ld.param.u64 %%d1,[out]; mov.u32 %%r0,%%tid.x; mov.u32 "
            "%%r1,%%tid.y; mad.wide.u32 %%d1,%%r0,8,%%d1; mad.wide.u32 "
            "%%d1,%%r1,1024,%%d1;\nand.b32 %%r2,%%r0,5; add.u32 %%r2,%%r2,%s;\n"
            "mov.u32 %%r3,100; and.b32 %%r4,%%r0,8; setp.ne.u32 %%p1,%%r4,0; "
            "@%%p1 bra E;\nmov.u32 %%r5,%s;\nL: mov.u32 %%r3,%%r5; add.u32 "
            "%%r5,%%r5,1; setp.lt.u32 %%p0,%%r3,%%r2;\n%s\n"
            "E: cvt.u64.u32 %%d2,%%r3; st.global.u64 [%%d1],%%d2; ret;\n}\n",
            first[k % 2], first[k % 2], back[k / 2]);
        agrees(s.at);
        ck_assert(!pr_faulted);
    }
    br_str_fini(&s);
}

/* Of 8 to 128 bits a lane, one value or several, next to each other or apart, by
 * all lanes or by some. */
TEST(x86_lanes_of_several_values)
{
    static const struct {
        const char *type, *reg;
        unsigned n, bytes;
    } of[] = {
        {"u8", "h", 1, 1},     {"s8", "h", 1, 1},      {"u16", "h", 1, 2},
        {"v2.u8", "h", 2, 2},  {"v4.s8", "h", 4, 4},   {"v2.u16", "h", 2, 4},
        {"v4.u16", "h", 4, 8}, {"v2.u32", "r", 2, 8},  {"v4.u32", "r", 4, 16},
        {"u64", "d", 1, 8},    {"v2.u64", "d", 2, 16}, {"v4.u8", "h", 4, 4}};
    static const char *const shapes[] = {"k", "line"};
    br_str s = {0}, list = {0};

    for (unsigned k = 0; k < BR_COUNT(of) * 16; k++) {
        unsigned c = k / 16,
                 by = of[c].bytes * (k & 1 ? 1 + 2 / (c % 3 + 1) : 1);
        unsigned to = of[c].bytes * (k & 2 ? 2 : 1);

        s.n = list.n = 0;
        for (unsigned e = 0; e < of[c].n; e++)
            br_str_printf(&list, "%s%%%s%u%s",
                          e             ? ","
                          : of[c].n > 1 ? "{"
                                        : "",
                          of[c].reg, e, e + 1 == of[c].n && e ? "}" : "");
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry %s(.param .u64 in, .param "
            ".u64 out) {\n.reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 "
            "%%d<9>; .reg .pred %%p;\nld.param.u64 %%d7,[in]; ld.param.u64 "
            "%%d8,[out]; mov.u32 %%r7,%%tid.x; mov.u32 %%r8,%%tid.y;\n"
            "mad.wide.u32 %%d7,%%r7,%u,%%d7; mad.wide.u32 %%d5,%%r8,4096,%%d8; "
            "mad.wide.u32 %%d8,%%r7,%u,%%d5; setp.lt.u32 %%p,%%r7,%u; @!%%p "
            "bra E;\nld.global.%s %s,[%%d7+16];\n",
            shapes[k >> 2 & 1], by, to, k & 8 ? 43 : 1000, of[c].type, list.at);
        br_str_puts(&s, "cvt.u16.u32 %h8,%r7; cvt.u64.u32 %d6,%r7;\n");
        for (unsigned e = 0; e < of[c].n; e++)
            br_str_printf(&s, "add.u%u %%%s%u,%%%s%u,%%%s;\n",
                          *of[c].reg == 'h'   ? 16
                          : *of[c].reg == 'r' ? 32
                                              : 64,
                          of[c].reg, e, of[c].reg, e,
                          *of[c].reg == 'h'   ? "h8"
                          : *of[c].reg == 'r' ? "r7"
                                              : "d6");
        br_str_printf(&s,
                      "st.global.%s [%%d8+32],%s; %s mad.wide.u32 "
                      "%%d5,%%r7,4,%%d5; st.global.u32 [%%d5+3200],%%r6;\nE: "
                      "ret;\n}\n",
                      of[c].type, list.at,
                      *of[c].reg == 'h' ? "cvt.s32.s16 %r6,%h0;"
                                        : "mov.u32 %r6,5;");
        agrees(s.at);
        ck_assert(!pr_faulted);
    }
    br_str_fini(&s);
    br_str_fini(&list);
}

/* Each lane's own memory, at one address, at several, and beyond its end. */
TEST(x86_local_memory_of_lanes)
{
    static const char *const at[] = {"mov.u32 %r1,8;", "and.b32 %r1,%r0,7;",
                                     "mul.lo.u32 %r1,%r0,3; and.b32 %r1,%r1,7;",
                                     "and.b32 %r1,%r0,15;"};
    static const char *const shapes[] = {"k", "line"};
    br_str s = {0};
    int faults = 0;

    for (unsigned k = 0; k < BR_COUNT(at) * 8; k++) {
        int bytes = k & 1 ? 8 : 4, bits = 8 * bytes;
        char r = k & 1 ? 'd' : 'r';

        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry %s(.param .u64 in, .param "
            ".u64 out) {\n.local .align 8 .b8 loc[96]; .reg .b32 %%r<9>; .reg "
            ".b64 %%d<9>; .reg .pred %%p;\nld.param.u64 %%d8,[out]; mov.u32 "
            "%%r0,%%tid.x; mov.u32 %%r8,%%tid.y; mad.wide.u32 "
            "%%d8,%%r0,8,%%d8; "
            "mad.wide.u32 %%d8,%%r8,4096,%%d8; mov.u64 %%d1,loc; cvt.u64.u32 "
            "%%d2,%%r0; mov.u32 %%r2,%%r0;\n%s setp.lt.u32 %%p,%%r0,%d; "
            "mad.wide.u32 %%d3,%%r1,%d,%%d1;\n",
            shapes[k >> 1 & 1], at[k / 8], k & 4 ? 41 : 999, bytes);
        br_str_printf(&s,
                      "st.local.u%d [%%d1+8],%%%c2; @%%p st.local.u%d [%%d3],"
                      "%%%c2; ld.local.u%d %%%c5,[%%d3+8]; @%%p ld.local.u%d "
                      "%%%c5,[%%d3]; st.global.u%d [%%d8],%%%c5; ret;\n}\n",
                      bits, r, bits, r, bits, r, bits, r, bits, r);
        agrees(s.at);
        faults += pr_faulted;
    }
    ck_assert_int_gt(faults, 0);
    ck_assert_int_lt(faults, 16);
    br_str_fini(&s);
}

/* Atomics of a block's one place, and of each thread's own: what was there, what is
 * there then, and where memory ends. */
TEST(x86_atomics_of_global_memory)
{
    static const char *const ops[] = {"add", "exch", "and", "or",
                                      "xor", "min",  "max"};
    br_str s = {0};
    int faults = 0;

    for (unsigned k = 0; k < BR_COUNT(ops) * 8; k++) {
        const char *op = ops[k / 8], *r = k & 1 ? "d4" : "r4";
        const char *type = strpbrk(op, "x") == op || op[0] == 'e' ||
                                   op[0] == 'o' ||
                                   (op[0] == 'a' && op[1] == 'n')
                               ? (k & 1 ? "b64" : "b32")
                               : (k & 1 ? "u64" : "u32");

        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param "
            ".u64 out) {\n.reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg .pred "
            "%%p;\nld.param.u64 %%d0,[out]; mov.u32 %%r0,%%tid.x; mov.u32 "
            "%%r1,%%tid.y; mov.u32 %%r2,%%ntid.x; mov.u32 %%r3,%%ctaid.x; "
            "mad.lo.u32 %%r0,%%r1,%%r2,%%r0; mad.wide.u32 %%d1,%%r3,16,%%d0; "
            "mad.lo.u32 %%r5,%%r3,96,%%r0; mad.wide.u32 %%d2,%%r5,16,%%d0; "
            "mad.lo.u32 %%r4,%%r0,7,21; cvt.u64.u32 %%d4,%%r4; shl.b64 "
            "%%d5,%%d4,29; or.b64 %%d4,%%d4,%%d5; setp.lt.u32 %%p,%%r0,%d;\n"
            "@!%%p bra E;\n",
            k & 2 ? 41 : 999);
        /* the block's, a thread's own, and once more */
        br_str_printf(
            &s,
            "atom.global.%s.%s %%%.1s6,[%%d1+8],%%%s; st.global.%s "
            "[%%d2+1024],%%%.1s6;\n"
            "red.global.add.u%d [%%d2+%d],%%%s; atom.global.%s.%s "
            "%%%.1s7,[%%d2+%d],%%%s; st.global.%s [%%d2+8192],%%%.1s7;"
            "\nE: ret;\n}\n",
            op, type, r, r, type, r, k & 1 ? 64 : 32,
            k & 4 ? 32768 - 16 * 150 : 16384, r, op, type, r,
            k & 4 ? 32768 - 16 * 150 : 16384, r, type, r);
        agrees(s.at);
        faults += pr_faulted;
    }
    ck_assert_int_gt(faults, 0);
    ck_assert_int_lt(faults, 40);
    br_str_fini(&s);
}

/* More than registers hold, in code for two quarters and for one. */
TEST(x86_values_wait_beside_registers)
{
    br_str s = {0};

    br_str_puts(&s, ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, "
                    ".param .u64 out) {\n.reg .b32 %r<150>; .reg .b64 "
                    "%d<3>;\nld.param.u64 %d0,[in]; ld.param.u64 %d1,[out];\n"
                    "mov.u32 %r149,%tid.x; mul.wide.u32 %d2,%r149,4; add.u64 "
                    "%d0,%d0,%d2; add.u64 %d1,%d1,%d2;\n");
    for (int k = 0; k < 140; k++)
        br_str_printf(&s, "ld.global.u32 %%r%d,[%%d0+%d];\n", k, 16 * k);
    for (int k = 138; k >= 0; k--)
        br_str_printf(&s, "mad.lo.u32 %%r139,%%r139,3,%%r%d;\n", k);
    br_str_puts(&s, "st.global.u32 [%d1],%r139; ret;\n}\n");
    agrees(s.at);
    br_str_fini(&s);
}

/* Some lanes of some warps add what others left in shared memory, between
 * barriers: those that stay away stand at addresses that run over. What t - 20 is
 * made of decides whether it goes evenly, and stops to in the middle. */
TEST(x86_blocks_go_on_where_warps_meet)
{
    static const char *const less[] = {
        "sub.u32 %r1,%r0,20;\n",
        ("mov.u32 %r2,%ntid.x; mul.lo.u32 %r2,%r2,89478485; add.u32 "
         "%r1,%r0,%r2; add.u32 %r1,%r1,12;\n"),
        "add.u32 %r1,%r0,20; rem.u32 %r1,%r1,40;\n",
    };
    static const char *const some[] = {"ge.u32 %p,%r0,20", "lt.u32 %p,%r0,64",
                                       "eq.u32 %p,%r0,33"};
    static const char *const bars[] = {"", "bar.sync 0;",
                                       "bar.sync 0; bar.sync 0;"};
    br_str s = {0};

    for (int n = 0; n < 54; n++) { /* blocks and instructions: shapes */
        s.n = 0;
        br_str_printf(
            &s,
            ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 "
            "out) {\n.reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg .pred "
            "%%p;\n.shared .align 4 .b8 sh[512];\nld.param.u64 %%d0,[in]; "
            "ld.param.u64 %%d1,[out];\nmov.u32 %%r0,%%tid.x; mov.u32 "
            "%%r1,%%tid.y; mov.u32 %%r2,%%ntid.x; mad.lo.u32 "
            "%%r0,%%r1,%%r2,%%r0; mul.wide.u32 %%d2,%%r0,4; add.u64 "
            "%%d0,%%d0,%%d2; mov.u64 %%d4,sh; add.u64 %%d3,%%d4,%%d2;\n"
            "ld.global.u32 %%r3,[%%d0]; st.shared.u32 [%%d3],%%r3;\n"
            "%s%sbar.sync 0;\nmov.u32 %%r4,0; setp.%s; @!%%p bra J;\n"
            "mul.wide.u32 %%d5,%%r1,4; add.u64 %%d5,%%d4,%%d5; setp.lt.u32 "
            "%%p,%%r1,96; @!%%p bra J;\nld.shared.u32 %%r4,[%%d5];\nJ:\n"
            "bar.sync 0;\nadd.u32 %%r3,%%r3,%%r4; st.shared.u32 "
            "[%%d3],%%r3;\nbar.sync 0;\nadd.u32 %%r5,%%r0,1; rem.u32 "
            "%%r5,%%r5,96; mul.wide.u32 %%d6,%%r5,4; add.u64 %%d6,%%d6,%%d4; "
            "ld.shared.u32 %%r6,[%%d6];\nmov.u32 %%r7,%%ctaid.x; mad.lo.u32 "
            "%%r7,%%r7,96,%%r0; mul.wide.u32 %%d7,%%r7,4; add.u64 "
            "%%d1,%%d1,%%d7; st.global.u32 [%%d1],%%r6;\n%sret;\n}\n",
            less[n % 3], bars[n / 18], some[n / 3 % 3],
            n / 9 % 2 ? "st.global.u32 [%d1+8192],%r4;\n" : "");
        agrees(s.at);
    }
    br_str_fini(&s);
}
