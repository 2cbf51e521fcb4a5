/* test_cg_interp.c - launches: divergence, barriers, calls, memory, --check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* A kernel k(out) or k(out, n): out has 4 KiB at 0x100000000. */
typedef struct result {
    uint32_t out[1024];
    char said[4000];  /* printf */
    char found[4000]; /* findings, a line each */
    uint64_t findings;
    br_status st;
} result;

static void
said(void *arg, const char *text, size_t n)
{
    result *r = arg;

    strncat(r->said, text, n);
}

static void
found(void *arg, const char *text)
{
    result *r = arg;

    strncat(strncat(r->found, text, 300), "\n", 2);
}

/* The same as machine code: the same memory, text and faults. */
static void
launch_native(const char *name, const result *want, br_code code, br_klaunch l,
              const br_kir *m)
{
    const br_ktarget *t = br_ktarget_find(name);
    result *got = t_keep(calloc(1, sizeof *got));
    br_kregion out = {l.regions->addr, sizeof got->out, (uint8_t *)got->out,
                      false, "out"};
    bool endless = strstr(want->st.msg, "instructions") != NULL;
    br_kcode *native;
    br_kimage *im;

    if (t->compile(&native, m, &got->st) == BR_E_NO_DEVICE)
        return;
    t_ok(br_kimage_new(&im, m, &got->st), &got->st);
    l.image = im;
    l.regions = &out;
    l.arg = got;
    ck_assert_int_eq(t->launch(native, &l, &got->st), code);
    if (!endless)
        ck_assert_str_eq(got->st.msg, want->st.msg);
    ck_assert_str_eq(got->said, want->said);
    ck_assert_mem_eq(got->out, want->out, sizeof got->out);
    t->free(native);
    br_kimage_free(im);
}

static br_code
launch(result *r, const char *body, uint32_t grid, uint32_t block, bool check)
{
    uint64_t params[2] = {0x100000000, 7};
    br_kregion out = {params[0], sizeof r->out, (uint8_t *)r->out, false,
                      "out"};
    br_klaunch l = {.grid = {grid, 1, 1},
                    .block = {block, 1, 1},
                    .params = (const uint8_t *)params,
                    .regions = &out,
                    .n_regions = 1,
                    .check = check,
                    .shared_bytes = 64,
                    .print = said,
                    .finding = found,
                    .arg = r,
                    .max_steps = 1 << 22};
    br_kir *m = ptx_load(t_printf(
        ".version 8.0\n.target sm_80\n.extern .shared .align 16 .b8 dyn[];\n"
        ".extern .func (.param .b32 rv) vprintf(.param .b64 a, .param .b64 "
        "b);\n"
        "%s",
        body));
    br_kimage *im;
    br_code code;

    *r = (result){0};
    l.fn = br_kir_find_fn(m, BR_TEXT("k"));
    t_ok(br_kimage_new(&im, m, &r->st), &r->st);
    l.image = im;
    code = br_kinterp_run(&l, &r->st);
    r->findings = l.findings;
    br_kimage_free(im);
    if (!check) {
        launch_native("x86-64", r, code, l, m);
        launch_native("x86-64-avx2", r, code, l, m);
    }
    br_kir_free(m);
    return code;
}

#define K(body)                                                            \
    ".entry k(.param .u64 out, .param .u64 n) {\n.reg .b32 %%r<20>; .reg " \
    ".b64 %%d<9>; .reg .pred %%p<5>;\n.shared .align 8 .b32 sh[64];\n"     \
    "ld.param.u64 %%d0,[out]; mov.u32 %%r0,%%tid.x; mul.wide.u32 "         \
    "%%d1,%%r0,4; add.u64 %%d1,%%d1,%%d0; shl.b32 %%r1,%%r0,2; mov.u32 "   \
    "%%r2,sh; add.u32 %%r2,%%r2,%%r1;\n" body "\n}\n"

/* printf's % twice in K: take them out again. */
static char *
k(const char *text)
{
    char *s = t_printf("%s", text), *to = s;

    for (const char *c = s; *c; c++)
        if (!(c[0] == '%' && c[1] == '%'))
            *to++ = *c;
    *to = 0;
    return s;
}

static void
fails(const char *body, uint32_t block, const char *says)
{
    result *r = t_keep(malloc(sizeof *r));

    ck_assert_int_eq(launch(r, k(body), 1, block, false), BR_E_FAULT);
    ck_assert_msg(strstr(r->st.msg, says) != NULL, "'%s' does not say '%s'",
                  r->st.msg, says);
}

static result *
runs(const char *body, uint32_t grid, uint32_t block, bool check)
{
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r, k(body), grid, block, check), &r->st);
    return r;
}

TEST(kernel_faults_name_line_block_and_thread)
{
    fails(K("st.global.u32 [%%d1+4096],%%r0; ret;"), 8,
          "line 9: block 0,0,0 thread 0,0,0: write of 4 bytes at 0x100001000, "
          "4096 bytes after the start of out (4096 bytes)");
    fails(K("ld.global.u32 %%r3,[%%d1+1]; st.global.u32 [%%d1],%%r3; ret;"), 8,
          "misaligned read of 4 bytes");
    fails(K("mov.u64 %%d2,12; ld.global.u32 %%r3,[%%d2]; ret;"), 1,
          "no memory there");
    fails(K("mov.u64 %%d2,0; ld.global.u32 %%r3,[%%d2]; ret;"), 1,
          "at 0x0: no memory there");
    fails(K("ld.shared.u32 %%r3,[%%r2+512]; ret;"), 1, "of shared memory");
    fails(K("setp.eq.u32 %%p0,%%r0,5; @%%p0 trap; ret;"), 8,
          "thread 5,0,0: trap");
    fails(K("wgmma.fence.sync.aligned; ret;"), 1, "'wgmma' is not known");
    fails(K("L: bra L;"), 1, "instructions");
    fails(K("mov.u64 %%d2,1; call %%d2,(),P; P: .callprototype _ (); ret;"), 1,
          "which is no function");
}

/* .ftz is of floats: 2^-24, a half's smallest, is none that goes; a float's is 0
 * before it is rounded up. */
TEST(kernel_ftz_leaves_halves)
{
    result *r =
        runs(K(".reg .b16 %%h; .reg .f32 %%f; mov.b16 %%h,0x8001;\n"
               "cvt.ftz.f32.f16 %%f,%%h; st.global.f32 [%%d0],%%f;\n"
               "cvt.rn.ftz.f16.f32 %%h,%%f; st.global.b16 [%%d0+4],%%h;\n"
               "mov.b32 %%f,0x00400000; cvt.rp.ftz.f16.f32 %%h,%%f; "
               "st.global.b16 [%%d0+8],%%h; ret;"),
             1, 1, false);

    ck_assert_uint_eq(r->out[0], 0xb3800000);
    ck_assert_uint_eq(r->out[1], 0x8001);
    ck_assert_uint_eq(r->out[2], 0);
}

TEST(kernel_loads_a_pointer_that_all_lanes_use)
{
    result *r = runs(
        K("st.global.u64 [%%d0+2048],%%d0; ld.global.u64 %%d3,[%%d0+2048];\n"
          "mul.wide.u32 %%d4,%%r0,4; add.u64 %%d3,%%d3,%%d4;\n"
          "st.global.u32 [%%d3],%%r0; ret;"),
        1, 64, false);

    for (uint32_t k = 0; k < 64; k++)
        ck_assert_uint_eq(r->out[k], k);
}

/* As clang 19 writes alloca(): an alignment of 0. */
TEST(kernel_takes_room_on_its_stack)
{
    result *r = runs(
        K("mul.wide.u32 %%d2,%%r0,8; add.u64 %%d2,%%d2,16; alloca.u64 "
          "%%d3,%%d2,0;\n"
          "alloca.u64 %%d4,%%d2,16; st.local.u32 [%%d3+8],%%r0; st.local.u32 "
          "[%%d4+8],99;\n"
          "ld.local.u32 %%r3,[%%d3+8]; st.global.u32 [%%d1],%%r3; ret;"),
        1, 32, false);

    for (uint32_t k = 0; k < 32; k++)
        ck_assert_uint_eq(r->out[k], k);
}

/* All lanes of two warps for one lock; who has it releases it behind the loop
 * in which the others wait. */
TEST(kernel_lanes_spin_for_a_lock)
{
    result *r = runs(
        K("add.u64 %%d3,%%d0,2048;\n"
          "L: atom.global.cas.b32 %%r3,[%%d3],0,1; setp.ne.u32 %%p0,%%r3,0;\n"
          "@%%p0 bra L;\nld.volatile.global.u32 %%r4,[%%d0+2052]; add.u32 "
          "%%r4,%%r4,1;\nst.volatile.global.u32 [%%d0+2052],%%r4; membar.gl;\n"
          "atom.global.exch.b32 %%r5,[%%d3],0;\n"
          "st.global.u32 [%%d1],%%r4; ret;"),
        2, 64, false);
    uint32_t sum = 0;

    ck_assert_uint_eq(r->out[513], 128);
    for (uint32_t k = 0; k < 64; k++)
        sum += r->out[k] > 0;
    ck_assert_uint_eq(sum, 64);
}

TEST(kernel_deadlocks_are_named)
{
    fails(K("setp.lt.u32 %%p0,%%r0,5; @%%p0 bar.sync 1,64;\nbar.sync 0; ret;"),
          64, "deadlock: 64 threads wait at the barriers of lines 9 and 10");
    fails(K("setp.lt.u32 %%p0,%%r0,32; @%%p0 bar.sync 0,128; ret;"), 64,
          "deadlock: 32 of 32 threads wait at the barrier of line 9");
}

TEST(kernel_lanes_part_and_meet_again)
{
    /* Collatz steps of tid + 1: every lane leaves the loop at its own time. */
    result *r = runs(
        K("add.u32 %%r3,%%r0,1; mov.u32 %%r4,0;\n"
          "L: setp.eq.u32 %%p0,%%r3,1; @%%p0 bra E; and.b32 %%r5,%%r3,1;\n"
          "setp.eq.u32 %%p1,%%r5,0; @%%p1 bra H; mad.lo.u32 %%r3,%%r3,3,1; bra "
          "N;\nH: shr.u32 %%r3,%%r3,1;\nN: add.u32 %%r4,%%r4,1; bra L;\n"
          "E: activemask.b32 %%r6; mov.b32 %%r7,-1; setp.ne.u32 "
          "%%p2,%%r6,%%r7; @%%p2 trap; st.global.u32 [%%d1],%%r4; ret;"),
        1, 32, false);

    ck_assert_uint_eq(r->out[0], 0);
    ck_assert_uint_eq(r->out[6], 16);   /* 7 */
    ck_assert_uint_eq(r->out[26], 111); /* 27 */
}

/* Two ways back to the head of a loop, in which all lanes that are in it vote: those
 * that "continue" early wait for the others. */
TEST(kernel_lanes_meet_in_the_head_of_a_loop)
{
    result *r = runs(
        K("mov.u32 %%r3,0; mov.u32 %%r4,0; mov.u32 %%r5,-1;\n"
          "and.b32 %%r6,%%r0,1; add.u32 %%r7,%%r6,4;\n"
          "L: setp.lt.u32 %%p0,%%r3,%%r7; vote.sync.ballot.b32 "
          "%%r5,%%p0,%%r5;\n"
          "@!%%p0 bra E;\nadd.u32 %%r3,%%r3,1; xor.b32 %%r8,%%r3,%%r0; "
          "and.b32 %%r8,%%r8,1;\n"
          "setp.eq.u32 %%p1,%%r8,0; @%%p1 bra L;\n"
          "add.u32 %%r4,%%r4,%%r5; bra L;\n"
          "E: mad.lo.u32 %%r4,%%r5,16,%%r4; st.global.u32 [%%d1],%%r4; ret;"),
        1, 32, false);

    for (uint32_t k = 0; k < 32; k++)
        ck_assert_uint_eq(r->out[k], k & 1 ? 0xfffffffeu : 0xaaaaaa9eu);
}

TEST(kernel_barriers_order_shared_memory)
{
    static const char body[] =
        K("st.shared.u32 [%%r2],%%r0; %s xor.b32 %%r3,%%r1,252; mov.u32 "
          "%%r4,sh; add.u32 %%r3,%%r3,%%r4; ld.shared.u32 %%r5,[%%r3]; "
          "st.global.u32 [%%d1],%%r5; ret;");
    char *at, *with = k(body), *without = k(body);
    result *r = t_keep(malloc(sizeof *r));

    at = strstr(with, "%s");
    with = t_printf("%.*sbar.sync 0;%s", (int)(at - with), with, at + 2);
    at = strstr(without, "%s");
    memcpy(at, "  ", 2);
    t_ok(launch(r, with, 1, 64, true), &r->st);
    ck_assert_uint_eq(r->findings, 0);
    for (uint32_t t = 0; t < 64; t++)
        ck_assert_uint_eq(r->out[t], 63 - t);
    t_ok(launch(r, without, 1, 64, true), &r->st);
    ck_assert_uint_gt(r->findings, 0);
    ck_assert_msg(strstr(r->found, "line 9: race: block 0,0,0 thread ") != NULL,
                  "%s", r->found);
    ck_assert_msg(strstr(r->found, "uninitialised") != NULL, "%s", r->found);
}

TEST(kernel_check_finds_what_runs_well_all_the_same)
{
    result *r;

    r = runs(K("setp.lt.u32 %%p0,%%r0,16; @!%%p0 bra L; bar.sync 0; bra M;\n"
               "L: bar.sync 0;\nM: ret;"),
             1, 32, true);
    ck_assert_msg(strstr(r->found, "divergent: ") != NULL, "%s", r->found);
    r = runs(K("setp.lt.u32 %%p0,%%r0,16; @!%%p0 bra L; shfl.sync.idx.b32 "
               "%%r3,%%r0,0,31,-1; L: ret;"),
             1, 32, true);
    ck_assert_msg(strstr(r->found, "warp: ") != NULL, "%s", r->found);
    r = runs(K(".local .b32 x[2]; ld.local.u32 %%r3,[x+4]; st.global.u32 "
               "[%%d1],%%r3; ret;"),
             1, 32, true);
    ck_assert_msg(strstr(r->found, "local memory at 0x4") != NULL, "%s",
                  r->found);
    /* Lanes of a warp: bar.warp.sync orders them. */
    r = runs(K("st.shared.u32 [%%r2],%%r0; bar.warp.sync -1; xor.b32 "
               "%%r3,%%r1,4; mov.u32 %%r4,sh; add.u32 %%r3,%%r3,%%r4; "
               "ld.shared.u32 %%r5,[%%r3]; st.global.u32 [%%d1],%%r5; ret;"),
             1, 32, true);
    ck_assert_msg(r->findings == 0, "%s", r->found);
    /* Atomics race with nobody. */
    r = runs(K("setp.eq.u32 %%p0,%%r0,0; @%%p0 st.shared.u32 [sh],0; bar.sync "
               "0; atom.shared.add.u32 %%r3,[sh],1; bar.sync 0; ld.shared.u32 "
               "%%r4,[sh]; st.global.u32 [%%d1],%%r4; ret;"),
             1, 64, true);
    ck_assert_msg(r->findings == 0, "%s", r->found);
    ck_assert_uint_eq(r->out[63], 64);
}

TEST(kernel_named_barriers_and_arrivals)
{
    result *r = runs(
        K("setp.lt.u32 %%p0,%%r0,32; @%%p0 bra A;\n"
          "bar.sync 3,64; ld.shared.u32 %%r3,[sh]; st.global.u32 [%%d1],%%r3; "
          "ret;\nA: mov.u32 %%r4,42; st.shared.u32 [sh],%%r4; bar.arrive 3,64; "
          "ret;"),
        1, 64, false);

    ck_assert_uint_eq(r->out[40], 42);
}

TEST(kernel_calls_recurse_and_go_through_pointers)
{
    static const char fns[] =
        ".func (.param .b32 r) fib(.param .b32 n)\n{\n"
        ".reg .b32 %r<6>; .reg .pred %p;\nld.param.u32 %r0,[n];\n"
        "setp.lt.u32 %p,%r0,2; @%p bra E;\n"
        "{ .param .b32 a; .param .b32 b; sub.u32 %r1,%r0,1; st.param.b32 "
        "[a],%r1; call (b),fib,(a); ld.param.b32 %r2,[b]; }\n"
        "{ .param .b32 a; .param .b32 b; sub.u32 %r1,%r0,2; st.param.b32 "
        "[a],%r1; call (b),fib,(a); ld.param.b32 %r3,[b]; }\n"
        "add.u32 %r0,%r2,%r3;\nE: st.param.b32 [r],%r0; ret;\n}\n";
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r,
                t_printf("%s%s", fns,
                         k(K("{ .param .b32 a; .param .b32 b; st.param.b32 "
                             "[a],%%r0; mov.u64 %%d2,fib; call (b),%%d2,(a),P; "
                             "ld.param.b32 %%r3,[b]; }\nP: .callprototype "
                             "(.param .b32 _) _ (.param .b32 _);\n"
                             "st.global.u32 [%%d1],%%r3; ret;"))),
                1, 12, true),
         &r->st);
    ck_assert_uint_eq(r->out[10], 55);
    ck_assert_uint_eq(r->out[11], 89);
    ck_assert_msg(r->findings == 0, "%s", r->found);
}

/* Parameters and results in registers, as PTX had them before .param. */
TEST(kernel_calls_pass_registers)
{
    static const char fns[] =
        ".func (.reg .u32 q, .reg .u32 r) divmod(.reg .u32 a, .reg .u32 b)\n{\n"
        "div.u32 q,a,b;\nrem.u32 r,a,b;\nret;\n}\n";
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r,
                t_printf("%s%s", fns,
                         k(K("mov.u32 %%r5,100; setp.ge.u32 %%p0,%%r0,2;\n"
                             "@%%p0 call (%%r5,%%r6),divmod,(%%r0,3);\n"
                             "mad.lo.u32 %%r7,%%r5,10,%%r6; @!%%p0 mov.u32 "
                             "%%r7,%%r5; st.global.u32 [%%d1],%%r7; ret;"))),
                1, 12, true),
         &r->st);
    ck_assert_uint_eq(r->out[1], 100);
    ck_assert_uint_eq(r->out[2], 2);
    ck_assert_uint_eq(r->out[11], 32);
    ck_assert_msg(r->findings == 0, "%s", r->found);
}

/* Braces after one another have variables of one name and different sizes. */
TEST(kernel_variables_keep_their_places_after_their_braces)
{
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r,
                k(K("{ .local .b64 a; .local .b64 b; cvt.u64.u32 %%d4,%%r0;\n"
                    "st.local.u64 [a],7; st.local.u64 [b],%%d4;\n"
                    "ld.local.u64 %%d5,[b]; cvt.u32.u64 %%r7,%%d5; }\n"
                    "{ .local .b32 a; .local .b32 b; st.local.u32 [a],1;\n"
                    "st.local.u32 [b],2; }\n"
                    "st.global.u32 [%%d1],%%r7; ret;")),
                1, 12, true),
         &r->st);
    ck_assert_uint_eq(r->out[11], 11);
    ck_assert_msg(r->findings == 0, "%s", r->found);
}

/* A bulk copy: threads wait for the mbarrier that hears of its bytes. */
/* A block is a cluster of one; the fourth word of a special register is nothing. */
TEST(kernel_blocks_are_clusters_of_one)
{
    static const char *const regs[] = {"clusterid.x",     "nclusterid.x",
                                       "clusterid.w",     "nclusterid.w",
                                       "cluster_ctaid.x", "cluster_nctaid.x",
                                       "cluster_ctaid.w", "cluster_nctaid.w",
                                       "cluster_ctarank", "cluster_nctarank"};
    static const uint32_t want[] = {2, 3, 0, 0, 0, 1, 0, 0, 0, 1};
    enum { N = BR_COUNT(want) };

    for (int said = 0; said < 2; said++) {
        char *body = t_printf(
            ".entry k(.param .u64 out)%s {\n.reg .b32 %%r<9>; .reg .b64 %%d<2>;"
            " .reg .v4 .b32 %%v<3>; .reg .pred %%p; ld.param.u64 %%d0,[out];\n"
            "mov.u32 %%r0,%%ctaid.x; setp.ne.u32 %%p,%%r0,2; @%%p ret;\n",
            said ? " .explicitcluster" : "");
        result *r = t_keep(malloc(sizeof *r));

        for (int k = 0; k < N; k++)
            body = t_printf("%smov.u32 %%r1,%%%s; st.global.u32 [%%d0+%d],%%r1;"
                            "\n",
                            body, regs[k], 4 * k);
        body = t_printf("%smov.pred %%p,%%is_explicit_cluster; selp.u32 %%r1,7,"
                        "5,%%p; st.global.u32 [%%d0+%d],%%r1;\n"
                        "mov.v4.u32 %%v1,%%nctaid; mov.v4.u32 %%v2,%%v1;\n"
                        "st.global.v4.u32 [%%d0+64],%%v1;\n"
                        "st.global.u32 [%%d0+80],%%v2.x; ret;\n}\n",
                        body, 4 * N);
        t_ok(launch(r, body, 3, 1, false), &r->st);
        ck_assert_mem_eq(r->out, want, sizeof want);
        ck_assert_uint_eq(r->out[N], said ? 7 : 5);
        ck_assert_mem_eq(&r->out[16], ((uint32_t[]){3, 1, 1, 0, 3}), 20);
    }
}

TEST(kernel_integers_have_relu)
{
    static const uint32_t want[] = {0, 3, 0, 2, 3, 0x20003, 0, 7};
    result *r =
        runs(K("mov.u32 %%r1,-5; mov.u32 %%r2,3;\n"
               "min.relu.s32 %%r3,%%r1,7; st.global.u32 [%%d0],%%r3;\n"
               "min.s32.relu %%r3,%%r2,7; st.global.u32 [%%d0+4],%%r3;\n"
               "max.relu.s32 %%r3,%%r1,-7; st.global.u32 [%%d0+8],%%r3;\n"
               "max.relu.s32 %%r3,%%r1,2; st.global.u32 [%%d0+12],%%r3;\n"
               "mov.u32 %%r1,0xfffb0003; mov.u32 %%r2,0x20007;\n"
               "min.relu.s16x2 %%r3,%%r1,%%r2; st.global.u32 [%%d0+16],%%r3;\n"
               "mov.u32 %%r2,0x20001;\n"
               "max.relu.s16x2 %%r3,%%r1,%%r2; st.global.u32 [%%d0+20],%%r3;\n"
               "mov.u32 %%r1,0xfffbfff0; max.relu.s16x2 %%r3,%%r1,%%r1;\n"
               "st.global.u32 [%%d0+24],%%r3; mov.u32 %%r3,7;\n"
               "st.global.u32 [%%d0+28],%%r3; ret;"),
             1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

/* Bytes and halves as their signs say: 0 and -1 are one apart, not 255. */
TEST(kernel_differences_of_signed_bytes_saturate)
{
    static const uint32_t want[] = {0x7f7f0101, 0x7f050100, 0x7fff0001};
    result *r = runs(K("mov.u32 %%r1,0; mov.u32 %%r2,0x7f7fffff;\n"
                       "vabsdiff4.s32.s32.s32.sat %%r3,%%r1,%%r2,%%r1;\n"
                       "st.global.u32 [%%d0],%%r3;\n"
                       "mov.u32 %%r1,0x80fe017f; mov.u32 %%r2,0x7f03007f;\n"
                       "vabsdiff4.s32.s32.s32.sat %%r3,%%r1,%%r2,%%r1;\n"
                       "st.global.u32 [%%d0+4],%%r3;\n"
                       "mov.u32 %%r1,0x80000000; mov.u32 %%r2,0x7fffffff;\n"
                       "vabsdiff2.s32.s32.s32.sat %%r3,%%r1,%%r2,%%r1;\n"
                       "st.global.u32 [%%d0+8],%%r3; ret;"),
                     1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

/* .shared::cta and .shared::cluster are .shared where a block is a cluster. */
TEST(kernel_shared_memory_is_of_the_cluster)
{
    static const uint32_t want[] = {7, 10, 7, 1, 12, 7, 0};
    result *r =
        runs(K("mov.u32 %%r1,sh; mov.u32 %%r2,7; mov.u32 %%r3,0;\n"
               "st.shared::cta.u32 [%%r1],%%r2; ld.shared.u32 %%r4,[%%r1];\n"
               "st.global.u32 [%%d0],%%r4; st.shared::cta.u32 "
               "[sh+4],%%r4;\n"
               "atom.shared::cta.add.u32 %%r4,[sh+4],3;\n"
               "ld.volatile.shared::cta.u32 %%r4,[%%r1+4];\n"
               "st.global.u32 [%%d0+4],%%r4; cvt.u64.u32 %%d2,%%r1;\n"
               "cvta.shared::cta.u64 %%d2,%%d2; ld.u32 %%r4,[%%d2];\n"
               "st.global.u32 [%%d0+8],%%r4; isspacep.shared::cluster "
               "%%p0,%%d2;\n"
               "selp.u32 %%r4,1,0,%%p0; st.global.u32 [%%d0+12],%%r4;\n"
               "barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;\n"
               "mapa.shared::cluster.u32 %%r4,%%r1,%%r3;\n"
               "red.shared::cluster.add.u32 [%%r4+4],2;\n"
               "ld.shared::cluster.u32 %%r5,[%%r4+4];\n"
               "st.global.u32 [%%d0+16],%%r5; mapa.u64 %%d2,%%d2,%%r3;\n"
               "ld.u32 %%r5,[%%d2]; st.global.u32 [%%d0+20],%%r5;\n"
               "getctarank.u64 %%r5,%%d2; st.global.u32 [%%d0+24],%%r5; ret;"),
             1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

TEST(kernel_lop3_has_a_predicate)
{
    static const uint32_t want[] = {6, 0, 1, 1, 0};
    result *r =
        runs(K("mov.u32 %%r1,5; mov.u32 %%r2,3; setp.eq.u32 %%p0,%%r1,5;\n"
               "lop3.or.b32 %%r3|%%p1,%%r1,%%r2,0,0x96,!%%p0;\n"
               "st.global.u32 [%%d0],%%r3; lop3.and.b32 "
               "%%r3|%%p2,%%r1,%%r2,%%r2,0x96,!%%p0;\n"
               "selp.u32 %%r3,1,0,%%p2; st.global.u32 [%%d0+4],%%r3;\n"
               "selp.u32 %%r3,1,0,%%p1; st.global.u32 [%%d0+8],%%r3;\n"
               "lop3.and.b32 _|%%p2,%%r1,%%r2,0,0x96,%%p0;\n"
               "selp.u32 %%r3,1,0,%%p2; st.global.u32 [%%d0+12],%%r3;\n"
               "lop3.or.b32 _|%%p2,%%r1,%%r1,0,0x3c,!%%p0;\n"
               "selp.u32 %%r3,1,0,%%p2; st.global.u32 [%%d0+16],%%r3; ret;"),
             1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

TEST(kernel_the_smallest_of_three)
{
    static const uint32_t want[] = {0xc0000000, 0x40400000, 0x3f800000,
                                    0x7fffffff};
    result *r =
        runs(K("mov.u32 %%r1,0x3f800000; mov.u32 %%r2,0xc0000000;\n"
               "mov.u32 %%r3,0x40400000; mov.u32 %%r4,0x7fc00000;\n"
               "min.f32 %%r5,%%r1,%%r3,%%r2; st.global.u32 [%%d0],%%r5;\n"
               "max.ftz.f32 %%r5,%%r1,%%r2,%%r3; st.global.u32 "
               "[%%d0+4],%%r5;\n"
               "min.f32 %%r5,%%r4,%%r3,%%r1; st.global.u32 [%%d0+8],%%r5;\n"
               "max.NaN.f32 %%r5,%%r1,%%r2,%%r4; st.global.u32 "
               "[%%d0+12],%%r5; ret;"),
             1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

/* As cuda_bf16.h of CUDA 13 writes bytes for sm_90. */
TEST(kernel_bytes_are_put_together)
{
    static const uint32_t want[] = {0x84828183, 0xffffff84, 0x8284, 0x82};
    result *r =
        runs(K(".reg .b8 %%c<4>; .reg .b16 %%h<2>; mov.u32 %%r1,0x84838281;\n"
               "mov.b32 {%%c0,%%c1,%%c2,%%c3},%%r1;\n"
               "mov.b32 %%r2,{%%c2,%%c0,%%c1,%%c3}; st.global.u32 "
               "[%%d0],%%r2;\n"
               "cvt.s32.s8 %%r2,%%c3; st.global.u32 [%%d0+4],%%r2;\n"
               "mov.b16 %%h0,{%%c3,%%c1}; cvt.u32.u16 %%r2,%%h0;\n"
               "st.global.u32 [%%d0+8],%%r2; mov.b16 {%%c0,%%c1},%%h0;\n"
               "mov.b16 %%h0,{%%c1,0}; cvt.u32.u16 %%r2,%%h0;\n"
               "st.global.u32 [%%d0+12],%%r2; ret;"),
             1, 1, false);

    ck_assert_mem_eq(r->out, want, sizeof want);
}

TEST(kernel_registers_of_128_bits_are_two_of_64)
{
    result *r =
        runs(K(".reg .b128 %%q<12>; .reg .b128 %%z; .reg .b64 %%q9;\n"
               ".global .b128 g = 5;\n"
               "mov.u64 %%d2,0x1122334455667788; mov.u64 %%d3,9;\n"
               "mov.b128 %%q1,{%%d2,%%d3}; mov.b128 %%q2,%%q1;\n"
               "mov.b128 {%%d4,%%d5},%%q2; mov.b128 %%z,{%%d5,%%d4};\n"
               "mov.u64 %%q9,4; mov.b128 %%q11,%%z;\n"
               "st.global.b128 [%%d0],%%q2; st.global.b128 [%%d0+16],%%q11;\n"
               "ld.global.b128 %%q3,[%%d0+16]; st.global.b128 [%%d0+32],%%q3;\n"
               "mov.u64 %%d6,g; ld.global.b128 %%q4,[%%d6];\n"
               "st.global.b128 [%%d0+48],%%q4; st.global.u64 [%%d0+64],%%q9;\n"
               "ret;"),
             1, 1, false);
    const uint64_t a = 0x1122334455667788, want[] = {a, 9, 9, a, 9, a, 5, 0, 4};

    ck_assert_mem_eq(r->out, want, sizeof want);
}

TEST(kernel_bulk_copies_are_heard_of)
{
    result *r = runs(
        K("st.global.u32 [%%d1],%%r0; bar.sync 0; setp.ne.u32 %%p0,%%r0,0;\n"
          "mov.u32 %%r3,sh; @%%p0 bra W; mbarrier.init.shared.b64 [sh+128],1;\n"
          "mbarrier.arrive.expect_tx.shared.b64 %%d2,[sh+128],64;\n"
          "add.u32 %%r4,%%r3,128; cp.async.bulk.shared::cluster.global"
          ".mbarrier::complete_tx::bytes [%%r3],[%%d0+64],64,[%%r4];\n"
          "W: bar.sync 0;\nL: mbarrier.try_wait.parity.shared.b64 "
          "%%p1,[sh+128],0; @!%%p1 bra L; ld.shared.u32 %%r5,[%%r3+4];\n"
          "st.global.u32 [%%d1],%%r5; ret;"),
        1, 64, false);

    ck_assert_uint_eq(r->out[0], 17);
    ck_assert_uint_eq(r->out[63], 17);
}

/* Three warps ask whether the last one has come: not often, before it has a turn. */
TEST(kernel_warps_that_wait_for_an_mbarrier_give_way)
{
    result *r = runs(
        K("setp.ne.u32 %%p0,%%r0,0; mov.u32 %%r5,0;\n"
          "@!%%p0 mbarrier.init.shared.b64 [sh+128],32; bar.sync 0;\n"
          "setp.lt.u32 %%p2,%%r0,96; @%%p2 bra L;\n"
          "mbarrier.arrive.shared.b64 %%d2,[sh+128];\n"
          "L: add.u32 %%r5,%%r5,1;\n"
          "mbarrier.try_wait.parity.shared.b64 %%p1,[sh+128],0; @!%%p1 bra L;\n"
          "setp.lt.u32 %%p3,%%r5,10; selp.u32 %%r5,1,0,%%p3;\n"
          "st.global.u32 [%%d1],%%r5; ret;"),
        1, 128, false);

    for (uint32_t i = 0; i < 128; i++)
        ck_assert_uint_eq(r->out[i], 1);
}

/* Each thread's copy arrives when it is there; its neighbour reads it. */
TEST(kernel_copies_arrive_at_an_mbarrier)
{
    result *r =
        runs(K("st.global.u32 [%%d1],%%r0; setp.ne.u32 %%p0,%%r0,0;\n"
               "@!%%p0 mbarrier.init.shared.b64 [sh+128],32; bar.sync 0;\n"
               "mov.u32 %%r3,sh; shl.b32 %%r4,%%r0,2; add.u32 %%r4,%%r3,%%r4;\n"
               "cp.async.ca.shared.global [%%r4],[%%d1],4;\n"
               "cp.async.mbarrier.arrive.noinc.shared.b64 [sh+128];\n"
               "cp.async.mbarrier.arrive.shared::cta.b64 [sh+128];\n"
               "L: mbarrier.try_wait.parity.shared.b64 %%p1,[sh+128],0;\n"
               "@!%%p1 bra L; xor.b32 %%r4,%%r4,4; ld.shared.u32 %%r5,[%%r4];\n"
               "st.global.u32 [%%d1],%%r5; ret;"),
             1, 32, false);

    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(r->out[i], i ^ 1);
}

TEST(kernel_prints)
{
    static const char fmt[] = ".global .align 1 .b8 fmt[32] = {116,61,37,100,"
                              "32,37,53,46,50,102,32,37,108,108,120,10,0};\n";
    result *r = t_keep(malloc(sizeof *r));

    t_ok(
        launch(r,
               t_printf("%s%s", fmt,
                        k(K(".local .align 8 .b8 va[24]; st.local.u32 "
                            "[va],%%r0; mov.u64 %%d2,0x3ff8000000000000; "
                            "st.local.u64 [va+8],%%d2; st.local.u64 "
                            "[va+16],%%d2; mov.u64 %%d3,va; cvta.local.u64 "
                            "%%d3,%%d3; mov.u64 %%d4,fmt; cvta.global.u64 "
                            "%%d4,%%d4;\n{ .param .b64 a; .param .b64 b; "
                            ".param .b32 c; st.param.b64 [a],%%d4; "
                            "st.param.b64 [b],%%d3; call (c),vprintf,(a,b); }\n"
                            "ret;"))),
               1, 2, false),
        &r->st);
    ck_assert_str_eq(r->said, "t=0  1.50 3ff8000000000000\n"
                              "t=1  1.50 3ff8000000000000\n");
}

TEST(kernel_blocks_may_wait_for_each_other)
{
    /* Every block waits until all have come: as many run at a time. */
    result *r = runs(
        K("setp.eq.u32 %%p0,%%r0,0; @!%%p0 bra W; atom.global.add.u32 "
          "%%r3,[%%d0],1;\nL: ld.volatile.global.u32 %%r4,[%%d0]; setp.lt.u32 "
          "%%p1,%%r4,8; @%%p1 bra L;\nW: bar.sync 0; ret;"),
        8, 32, false);

    ck_assert_uint_eq(r->out[0], 8);
}

static const char everything[] =
    ".version 8.0\n.target sm_80\n.extern .shared .align 16 .b8 dyn[];\n"
    ".global .u32 g = 5; .const .u32 c[2] = {1, 2};\n"
    ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; ld.param.b32 x,[a]; "
    "add.u32 x,x,1; st.param.b32 [r],x; ret; }\n"
    ".entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d<4>; .shared "
    ".b32 "
    "sh[64]; ld.param.u64 %d0,[out]; mov.u32 %r0,%tid.x; shl.b32 %r1,%r0,2; "
    "mov.u32 %r2,sh; add.u32 %r2,%r2,%r1; st.shared.u32 [%r2],%r0; bar.sync 0; "
    "ld.shared.u32 %r3,[%r2]; { .param .b32 a; .param .b32 b; st.param.b32 "
    "[a],%r3; call (b),f,(a); ld.param.b32 %r3,[b]; } cvt.u64.u32 %d1,%r1; "
    "add.u64 %d1,%d1,%d0; st.global.u32 [%d1],%r3; ret; }\n";

static const br_ktarget *everything_on;

static br_code
launch_everything(void *arg, br_status *st)
{
    uint64_t params = 0x100000000;
    uint32_t out[64];
    br_kregion g = {params, sizeof out, (uint8_t *)out, false, "out"};
    br_klaunch l = {.grid = {2, 1, 1},
                    .block = {64, 1, 1},
                    .params = (const uint8_t *)&params,
                    .regions = &g,
                    .n_regions = 1,
                    .check = strcmp(everything_on->name, "interp") == 0,
                    .threads = 1,
                    .shared_bytes = 16};
    br_kimage *im;
    br_kcode *native;
    br_code code;

    l.fn = br_kir_find_fn(arg, BR_TEXT("k"));
    BR_TRY(br_kimage_new(&im, arg, st));
    l.image = im;
    code = everything_on->compile(&native, arg, st);
    if (code == BR_OK)
        code = everything_on->launch(native, &l, st);
    everything_on->free(native);
    br_kimage_free(im);
    ck_assert(code != BR_OK || (out[63] == 64 && l.findings == 0));
    return code;
}

TEST(kernel_launch_gives_everything_back_when_memory_runs_out)
{
    br_kir *m = ptx_load(everything);

    ck_assert_uint_eq(m->notes.n, 0);
    for (everything_on = br_ktargets; everything_on->name; everything_on++)
        if (everything_on->launch)
            t_each_oom(launch_everything, m);
    br_kir_free(m);
}

/* The same launch twice: the same order of everything, the same bits. */
TEST(kernel_launch_is_repeatable)
{
    static const char body[] =
        K("atom.global.add.u32 %%r3,[%%d0+2048],1; atom.global.exch.b32 "
          "%%r4,[%%d0+2052],%%r3; st.global.u32 [%%d1],%%r4; ret;");
    result *a = runs(body, 3, 96, false), *b = runs(body, 3, 96, true);

    ck_assert_mem_eq(a->out, b->out, sizeof a->out);
    ck_assert_uint_eq(a->out[512], 288);
}

/* 16 bytes at once, from several blocks: the low half grows by an odd number, its carries
 * are in the high one. What is not exchanged is told by line. */
TEST(kernel_atomics_of_16_bytes)
{
    static const char text[] =
        ".entry k(.param .u64 out) {\n"
        ".reg .b64 a, lo, hi, x, y; .reg .b128 d, b, c; .reg .b32 t;\n"
        ".reg .pred q; .shared .align 16 .b8 s[16]; ld.param.u64 a, [out];\n"
        "ld.relaxed.gpu.global.b128 d, [a]; mov.b128 {lo, hi}, d;\n"
        "L: add.cc.u64 x, lo, 0x8000000000000001; addc.u64 y, hi, 0;\n"
        "mov.b128 c, {x, y}; mov.b128 b, {lo, hi};\n"
        "atom.global.cas.b128 d, [a], b, c; mov.b128 {x, y}, d;\n"
        "setp.ne.u64 q, x, lo; setp.ne.or.u64 q, y, hi, q;\n"
        "mov.u64 lo, x; mov.u64 hi, y; @q bra L;\n"
        "mov.u32 t, %ctaid.x; mad.lo.u32 t, t, 64, %tid.x;\n"
        "setp.ne.u32 q, t, 0; @q ret; mov.b128 b, {7, 9};\n"
        "st.relaxed.cta.shared.b128 [s], b; mov.b128 c, {5, 6};\n"
        "atom.shared.exch.b128 d, [s], c; st.global.b128 [a+16], d;\n"
        "ld.relaxed.cta.shared.b128 d, [s]; st.global.b128 [a+32], d;\n"
        "ret; }\n";
    static const uint64_t want[] = {2560, 1280, 7, 9, 5, 6};
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r, text, 40, 64, false), &r->st);
    ck_assert_mem_eq(r->out, want, sizeof want);
    t_ok(launch(r, text, 40, 64, true), &r->st);
    ck_assert_msg(r->findings == 0, "%s", r->found);
    launch(r,
           ".entry k(.param .u64 out) {\n.reg .b64 a; .reg .b128 d, b;\n"
           "ld.param.u64 a, [out];\nmov.b128 b, {7, 9};\n"
           "atom.global.and.b128 d, [a], b; ret; }\n",
           1, 1, false);
    ck_assert_msg(strstr(r->st.msg, "128 bits are exchanged") != NULL &&
                      strstr(r->st.msg, "line "),
                  "%s", r->st.msg);
    launch(r,
           ".entry k(.param .u64 out) {\n.reg .b64 a; .reg .b128 d, b;\n"
           "ld.param.u64 a, [out];\nmov.b128 b, {7, 9};\n"
           "atom.global.exch.b128 d, [a+8], b; ret; }\n",
           1, 1, false);
    ck_assert_msg(strstr(r->st.msg, "lign") != NULL, "%s", r->st.msg);
}

/* Clusters of two: an arrival at another block's mbarrier, an atomic in its memory, whose
 * an address is; and who waits for ever is told so. */
TEST(kernel_blocks_of_a_cluster_reach_each_other)
{
    static const char text[] =
        ".entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2,1 {\n"
        ".reg .b64 a, b, m; .reg .b32 r, o, t, u, v; .reg .pred p, q;\n"
        ".shared .align 8 .b64 bar; .shared .align 4 .b32 s;\n"
        "ld.param.u64 a, [out]; mov.u32 t, %tid.x;\n"
        "mov.u32 r, %cluster_ctarank; xor.b32 o, r, 1;\n"
        "setp.ne.u32 p, t, 0; @p bra S; mbarrier.init.shared.b64 [bar], 64;\n"
        "st.shared.u32 [s], 0; S: barrier.cluster.arrive.release;\n"
        "barrier.cluster.wait.acquire; mov.u32 u, s;\n"
        "mapa.shared::cluster.u32 v, u, o;\n"
        "red.relaxed.cluster.shared::cluster.add.u32 [v], 3;\n"
        "mov.u32 u, bar; mapa.shared::cluster.u32 v, u, o;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [v];\n"
        "W: mbarrier.try_wait.parity.shared.b64 q, [bar], 0; @!q bra W;\n"
        "getctarank.shared::cluster.u32 o, v; @p ret;\n"
        "mov.u32 u, %ctaid.x; mul.wide.u32 b, u, 16; add.u64 a, a, b;\n"
        "ld.shared.u32 v, [s]; st.global.v2.u32 [a], {v, o};\n"
        "mov.u32 u, %clusterid.x; st.global.v2.u32 [a+8], {r, u}; ret; }\n";
    static const uint32_t want[] = {192, 1, 0, 0, 192, 0, 1, 0,
                                    192, 1, 0, 1, 192, 0, 1, 1};
    result *r = t_keep(malloc(sizeof *r));

    t_ok(launch(r, text, 4, 64, false), &r->st);
    ck_assert_mem_eq(r->out, want, sizeof want);
    launch(r, text, 3, 64, false);
    ck_assert_msg(strstr(r->st.msg, "they fill the grid") != NULL, "%s",
                  r->st.msg);
    launch(r,
           ".entry k(.param .u64 out) .reqnctapercluster 2, 1, 1 {\n"
           ".reg .b32 r; .reg .pred p; mov.u32 r, %cluster_ctarank;\n"
           "setp.eq.u32 p, r, 0; @p bra A;\nbarrier.cluster.arrive;\n"
           "barrier.cluster.wait;\nret; A: bar.sync 1, 96; ret; }\n",
           2, 64, false);
    ck_assert_msg(strstr(r->st.msg, "deadlock") != NULL, "%s", r->st.msg);
    launch(r,
           ".entry k(.param .u64 out) .reqnctapercluster 2, 1, 1 {\n"
           ".reg .b64 a; .shared .align 16 .b8 s[32]; ld.param.u64 a, [out];\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
           ".multicast::cluster [s], [a], 16, [s+16], 3; ret; }\n",
           2, 1, false);
    ck_assert_msg(strstr(r->st.msg, "copies to several blocks") &&
                      strstr(r->st.msg, "line "),
                  "%s", r->st.msg);
}
