/* test_gcn_run.c - kernels compiled for AMD processors, on the simulated one:
 * what the interpreter says (vectors: test_cg_vectors.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "gcn_random.h"

#include <stdio.h>
#include <string.h>

T_THREADS_OF("gcn_random_kernels_run_as_interpreted");

TEST_WITHIN(gcn_random_kernels_run_as_interpreted, 120)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    uint64_t n = t_sanitized() ? 20 : 300;

    for (uint64_t seed = 1; seed <= n; seed++) {
        br_str s = {0};
        const char *err = gcn_random(&s, seed, cpus[seed % 3 == 0]);

        ck_assert_msg(!err, "seed %d: %s\n%s", (int)seed, err, s.at);
        br_str_fini(&s);
    }
}

#define TOP                                                 \
    ".version 8.0\n.target sm_80\n.address_size 64\n"       \
    ".entry k(.param .u64 in, .param .u64 out) {\n"         \
    ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n" \
    "ld.param.u64 %d1, [out]; ld.param.u64 %d3, [in];\n"    \
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"

/* On the first n of these. */
static void
same_on(size_t n, const char *text)
{
    static const char *const on[] = {"x86-64", "gfx1100", "gfx1201",
                                     "gfx1100-wave64", "gfx1201-wave64"};
    br_kir *m = ptx_load(text);

    for (size_t k = 0; k < n; k++) {
        br_ktarget sim;
        const br_ktarget *t =
            br_sim_target(&sim, on[k]) ? &sim : br_ktarget_find(on[k]);
        const char *err = pr_compare(m, t);

        ck_assert_msg(!err || strstr(err, "needs a processor"), "%s: %s", on[k],
                      err);
    }
    br_kir_free(m);
}

static void
same_everywhere(const char *text)
{
    same_on(5, text);
}

/* A count that lanes take out of a loop they leave one by one, through a phi. */
TEST(gcn_counts_of_a_loop_are_each_lanes_own)
{
    same_everywhere(
        TOP
        "add.u64 %d1, %d1, %d2; mov.u32 %r2, 100;\n"
        "ld.global.u32 %r5, [%d3]; setp.eq.u32 %p2, %r5, 12345; @%p2 bra D;\n"
        "L: sub.u32 %r2, %r2, 1; add.u32 %r3, %r2, %r1;\n"
        "setp.gt.s32 %p1, %r3, 80; @%p1 bra L;\n"
        "D: st.global.u32 [%d1], %r2; ret; }\n");
}

/* An instruction reads two scalars: of a mask and two more, one moves, and not
 * the mask. */
TEST(gcn_lanes_choose_between_two_scalars)
{
    same_everywhere(
        TOP "add.u64 %d4, %d1, 4; add.u64 %d5, %d1, 8;\n"
            "setp.gt.u32 %p1, %r1, 5; selp.b64 %d6, %d4, %d5, %p1;\n"
            "sub.u64 %d6, %d6, %d1; cvt.u32.u64 %r2, %d6;\n"
            "add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r2; ret; }\n");
}

/* A quotient below the normal numbers is rounded once. */
TEST(gcn_small_quotients_are_rounded_once)
{
    same_everywhere(TOP "add.u64 %d1, %d1, %d2; add.u32 %r4, %r1, 0x32de7fa5;\n"
                        "mov.b32 %r5, 0x725e694f; div.rn.f32 %r2, %r4, %r5;\n"
                        "st.global.u32 [%d1], %r2; ret; }\n");
}

/* Lanes that go back to a block run before those that wait further on: here b4's,
 * who by then would find other lanes to read from. */
TEST(gcn_lanes_that_go_back_are_first)
{
    same_everywhere(
        TOP "add.u64 %d1, %d1, %d2; add.u64 %d3, %d3, %d2; mov.u32 %r6, 9;\n"
            "ld.global.u32 %r2, [%d3]; ld.global.u32 %r3, [%d3+8];\n"
            "setp.lt.u32 %p1, %r2, 0x40000000; and.b32 %r4, %r3, 1;\n"
            "setp.eq.u32 %p2, %r4, 0; bra L4;\n"
            "L1: setp.ge.u32 %p1, %r3, %r2; @%p1 bra L5;\n"
            "L4: cvt.u32.u16 %r2, %r3; @!%p1 bra L6;\n"
            "L5: sub.u32 %r6, %r6, 1; setp.eq.u32 %p3, %r6, 0; @%p3 bra E;\n"
            "shfl.sync.down.b32 %r5|%p3, %r2, 3, 0x181f, -1; add.u32 %r2, %r5, "
            "1;\n@!%p3 bra L5;\n"
            "L6: @!%p2 bra L1;\n"
            "E: st.global.u32 [%d1], %r2; ret; }\n");
}

/* A structure among the parameters that a loop goes through: all lanes read the same,
 * but no scalar does, as nobody knows the place before. */
TEST(gcn_parameters_are_found_at_run_time)
{
    same_everywhere(
        TOP "mov.u64 %d4, out; mov.u64 %d5, 0; mov.u32 %r2, 0; mov.u32 %r5, "
            "0;\nL: cvt.u64.u32 %d6, %r5; sub.u64 %d6, %d4, %d6;\n"
            "ld.param.u64 %d7, [%d6]; ld.param.u32 %r6, [%d6+4];\n"
            "add.u64 %d5, %d5, %d7; add.u32 %r2, %r2, %r6;\n"
            "add.u32 %r5, %r5, 8; setp.lt.u32 %p1, %r5, 16; @%p1 bra L;\n"
            "sub.u64 %d5, %d5, %d1; sub.u64 %d5, %d5, %d3;\n" /* 0 */
            "shr.u64 %d6, %d1, 32; shr.u64 %d7, %d3, 32;\n"
            "add.u64 %d6, %d6, %d7; cvt.u32.u64 %r3, %d6;\n"
            "sub.u32 %r2, %r2, %r3; cvt.u32.u64 %r3, %d5;\n" /* 0, too */
            "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r1;\n"
            "add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r2; ret; }\n");
}

/* Addresses of shared memory have 32 bits: nvcc makes s[63 - t], of what is in front of
 * s, so that the offset leads back. */
TEST(gcn_shared_addresses_wrap)
{
    static const char *const how[] = {
        "ld.shared.u32 %r2, [%r4+256];\n",
        "atom.shared.add.u32 %r2, [%r4+256], 5;\n",
        "cvt.s64.s32 %d4, %r4; ld.shared.u32 %r2, [%d4+256];\n",
        "@%p1 ld.shared.u32 %r2, [%r4+256];\n"};

    for (size_t k = 0; k < BR_COUNT(how); k++)
        same_everywhere(t_printf(
            "%s%s%s%s", TOP,
            ".shared .align 4 .b8 s[256]; shl.b32 %r2, %r1, 2;\n"
            "mov.u32 %r3, s; add.u32 %r4, %r3, %r2; mul.lo.u32 %r5, %r1, 77;\n"
            "setp.lt.u32 %p2, %r1, 64; and.b32 %r6, %r1, 5;\n"
            "setp.ne.u32 %p1, %r6, 1; @%p2 st.shared.u32 [%r4], %r5;\n"
            "bar.sync 0; sub.u32 %r4, %r3, %r2; sub.u32 %r4, %r4, 4;\n"
            "mov.u32 %r2, 3; @!%p2 bra E;\n",
            how[k],
            "E: add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r2; ret; }\n"));
}

TEST(gcn_a_block_has_a_number_of_warps)
{
    same_everywhere(
        TOP "add.u64 %d1, %d1, %d2; mov.u32 %r2, %nwarpid; mov.u64 %d4, "
            "%gridid;\ncvt.u32.u64 %r3, %d4; mad.lo.u32 %r2, %r2, 100, %r3;\n"
            "mov.u32 %r3, %nclusterid.x; mad.lo.u32 %r2, %r2, 100, %r3;\n"
            "mov.u32 %r3, %clusterid.x; mad.lo.u32 %r2, %r2, 100, %r3;\n"
            "add.u32 %r2, %r2, %r1; st.global.u32 [%d1], %r2; ret; }\n");
}

/* Sums of halves in memory, alone in a word and beside another one. */
TEST(gcn_halves_are_summed_in_memory)
{
    same_everywhere(
        TOP ".reg .b16 %h<4>; .shared .align 8 .b8 s[32];\n"
            "setp.gt.u32 %p1, %r1, 7; @%p1 bra A; mov.u32 %r3, s;\n"
            "shl.b32 %r2, %r1, 2; add.u32 %r3, %r3, %r2; mov.u32 %r2, 0;\n"
            "st.shared.u32 [%r3], %r2; A: bar.sync 0;\n"
            "and.b32 %r4, %r1, 3; shl.b32 %r4, %r4, 1; mov.u32 %r3, s;\n"
            "add.u32 %r4, %r4, %r3; mov.b16 %h1, 0x3c00;\n"
            "atom.shared.add.noftz.f16 %h2, [%r4], %h1; mov.b16 %h1, 0x3f80;\n"
            "atom.shared.add.noftz.bf16 %h3, [%r4+8], %h1;\n"
            "mov.u32 %r5, 0x3c00bc00;\n"
            "atom.shared.add.noftz.f16x2 %r6, [%r3+16], %r5;\n"
            "mov.b16 %h1, 0xbc00; red.shared.add.noftz.f16 [%r4+24], %h1;\n"
            "bar.sync 0; and.b32 %r2, %r1, 7; shl.b32 %r2, %r2, 2;\n"
            "add.u32 %r3, %r3, %r2; ld.shared.u32 %r2, [%r3];\n"
            "add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r2; ret; }\n");
}

/* Butterflies of all widths, with lanes that do not run, and without LDS. */
TEST(gcn_lanes_read_each_other_without_memory)
{
    br_str text = {0}, code = {0};
    br_status st = {0};
    br_kcode *c;
    br_kir *m;
    const br_ktarget *t = br_ktarget_find("gfx1201");

    br_str_puts(&text, TOP "add.u64 %d3, %d3, %d2; ld.global.u32 %r2, [%d3];\n"
                           "mul.wide.u32 %d4, %r1, 128; add.u64 %d1, %d1, "
                           "%d4;\nand.b32 %r3, %r2, 4; setp.eq.u32 %p1, %r3, "
                           "0; @%p1 bra E;\n");
    for (int bits = 1; bits < 32; bits++)
        br_str_printf(&text,
                      "shfl.sync.bfly.b32 %%r4|%%p2, %%r2, %d, 31, -1;\n"
                      "selp.u32 %%r5, %%r4, 1, %%p2;\n"
                      "st.global.u32 [%%d1+%d], %%r5;\n",
                      bits, 4 * bits);
    br_str_puts(&text, "E: ret; }\n");
    same_everywhere(br_str_z(&text));
    m = ptx_load(text.at);
    t_ok(t->compile(&c, m, &st), &st);
    t_ok(t->text(c, 0, &code, &st), &st);
    ck_assert_msg(!strstr(br_str_z(&code), "ds_") &&
                      strstr(code.at, "row_xmask:15") &&
                      strstr(code.at, "v_permlanex16"),
                  "%s", code.at);
    t->free(c);
    br_kir_free(m);
    br_str_fini(&text);
    br_str_fini(&code);
}

/* A barrier that says how many threads: all, by a number and by a register. */
#define BARRIERS(n, more)                                                   \
    TOP ".shared .align 4 .b8 s[4096]; mov.u32 %r5, s;\n"                   \
        "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y;\n"                      \
        "mad.lo.u32 %r1, %r2, %r3, %r1; mul.wide.u32 %d2, %r1, 4;\n"        \
        "mov.u32 %r3, %ntid.y; mul.lo.u32 %r2, %r2, %r3; mov.u32 %r3, 1;\n" \
        "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r5;\n"                     \
        "st.shared.u32 [%r4], %r1; " more "bar.sync " n ";\n"               \
        "sub.u32 %r6, %r2, %r1; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, "    \
        "%r5;\nld.shared.u32 %r7, [%r6+-4]; add.u64 %d1, %d1, %d2;\n"       \
        "st.global.u32 [%d1], %r7; ret; }\n"

TEST(gcn_barriers_say_how_many_come)
{
    /* Of 64 lanes they are refused. */
    same_on(3, BARRIERS("0, %r2", ""));
    same_on(3, BARRIERS("%r3, %r2", ""));
}

enum { PART_BLOCKS = 3, PART_THREADS = 128 };

static void
heard(void *arg, const char *text)
{
    ck_abort_msg("%s: %s", (const char *)arg, text);
}

#define PARTS(body)                                                           \
    TOP ".reg .pred %q<4>; .reg .b64 %e<4>; .shared .align 16 .b8 s[2048];\n" \
        "mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r5;\n"       \
        "mov.u32 %r8, 0; mov.u32 %r7, 0;\n" body                              \
        "\nmov.u32 %r2, %ctaid.x; mul.wide.u32 %d4, %r2, 512;\n"              \
        "add.u64 %d1, %d1, %d4; add.u64 %d1, %d1, %d2;\n"                     \
        "st.global.u32 [%d1], %r8; ret; }\n"

/* Blocks of four warps, on both processors, with every check; then their memory is
 * the interpreter's. */
static void
in_parts(const char *text)
{
    static const char *const on[] = {"gfx1100", "gfx1201"};
    uint32_t in[PART_THREADS], out[3][PART_BLOCKS * PART_THREADS] = {{0}};
    br_kir *m = ptx_load(text);
    br_status st = {0};
    br_kimage *im;

    for (uint32_t k = 0; k < PART_THREADS; k++)
        in[k] = k * 2654435761u;
    t_ok(br_kimage_new(&im, m, &st), &st);
    for (size_t k = 0; k < 3; k++) {
        uint64_t params[2] = {0x100000000, 0x200000000};
        br_kregion regions[2] = {
            {params[0], sizeof in, (uint8_t *)in, true, "in"},
            {params[1], sizeof out[k], (uint8_t *)out[k], false, "out"}};
        br_klaunch l = {.grid = {PART_BLOCKS, 1, 1},
                        .block = {PART_THREADS, 1, 1},
                        .params = (const uint8_t *)params,
                        .regions = regions,
                        .n_regions = 2,
                        .check = k > 0,
                        .finding = heard,
                        .arg = (void *)(uintptr_t)(k ? on[k - 1] : ""),
                        .fn = 0,
                        .image = im};
        br_kcode *code;
        br_ktarget t;

        if (!k) {
            t_ok(br_kinterp_run(&l, &st), &st);
            continue;
        }
        ck_assert(br_sim_target(&t, on[k - 1]));
        t_ok(t.compile(&code, m, &st), &st);
        t_ok(t.launch(code, &l, &st), &st);
        t.free(code);
        ck_assert_mem_eq(out[k], out[0], sizeof out[0]);
    }
    br_kimage_free(im);
    br_kir_free(m);
}

/* Two warps write, two read, each waits for the other by arrivals; the readers have a
 * barrier of their own. */
TEST(gcn_parts_of_a_block_have_barriers)
{
    in_parts(PARTS(
        "setp.ge.u32 %p1, %r1, 64; @%p1 bra READ;\n"
        "WRITE: bar.sync 2, 128; mad.lo.u32 %r3, %r1, 7, %r7;\n"
        "st.shared.u32 [%r6], %r3; bar.arrive 1, 128;\n"
        "add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 9; @%p2 bra WRITE;\n"
        "bra DONE;\n"
        "READ: bar.arrive 2, 128; bar.sync 1, 128;\n"
        "xor.b32 %r3, %r1, 21; and.b32 %r3, %r3, 63; shl.b32 %r3, %r3, 2;\n"
        "add.u32 %r3, %r3, %r5; ld.shared.u32 %r4, [%r3];\n"
        "mad.lo.u32 %r8, %r8, 3, %r4; st.shared.u32 [%r6+1024], %r8;\n"
        "bar.sync 3, 64; ld.shared.u32 %r4, [%r3+1280];\n"
        "add.u32 %r8, %r8, %r4; bar.sync 3, 64;\n"
        "add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 9; @%p2 bra READ;\n"
        "DONE:"));
}

static void
overheard(void *arg, const char *text)
{
    *(bool *)arg |= strstr(text, "no barrier between") != NULL;
}

/* Writers arrive, and a reader that does not wait for them is told of; so is one that
 * waits, where a writer arrives before it writes. */
TEST(gcn_parts_that_do_not_wait_are_reported)
{
    static const char *const order[][3] = {
        {"st.shared.u32 [%r6], %r1;", "bar.arrive 1, 128;", ""},
        {"bar.arrive 1, 128;", "st.shared.u32 [%r6], %r1;",
         "bar.sync 1, 128;"}};

    for (int k = 0; k < 2; k++) {
        const char *text = t_printf(
            "%s.shared .align 16 .b8 s[2048]; mov.u32 %%r5, s;\n"
            "shl.b32 %%r6, %%r1, 2; add.u32 %%r6, %%r6, %%r5;\n"
            "setp.ge.u32 %%p1, %%r1, 64; @%%p1 bra READ;\n%s\n%s\nret;\n"
            "READ: %s\nld.shared.u32 %%r4, [%%r6-256];\n"
            "add.u64 %%d1, %%d1, %%d2; st.global.u32 [%%d1], %%r4; ret; }\n",
            TOP, order[k][0], order[k][1], order[k][2]);
        uint64_t params[2] = {0, 0x200000000};
        uint32_t out[PART_THREADS];
        br_kregion region = {params[1], sizeof out, (uint8_t *)out, false,
                             "out"};
        bool told = false;
        br_klaunch l = {.grid = {1, 1, 1},
                        .block = {PART_THREADS, 1, 1},
                        .params = (const uint8_t *)params,
                        .regions = &region,
                        .n_regions = 1,
                        .check = true,
                        .finding = overheard,
                        .arg = &told};
        br_kir *m = ptx_load(text);
        br_status st = {0};
        br_kcode *code;
        br_ktarget t;

        t_ok(br_kimage_new((br_kimage **)(uintptr_t)&l.image, m, &st), &st);
        ck_assert(br_sim_target(&t, "gfx1201"));
        t_ok(t.compile(&code, m, &st), &st);
        (void)!t.launch(code, &l, &st);
        ck_assert_msg(told, "order %d: nothing is reported", k);
        t.free(code);
        br_kimage_free((br_kimage *)(uintptr_t)l.image);
        br_kir_free(m);
    }
}

/* All threads by phases of an mbarrier, by state and by parity; copies that it hears
 * of. */
TEST(gcn_mbarriers_count_arrivals_and_bytes)
{
    in_parts(PARTS(
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra L0;\n"
        "mbarrier.init.shared.b64 [%r5+1024], 128;\n"
        "mbarrier.init.shared.b64 [%r5+1032], 1;\nL0: bar.sync 0;\n"
        "L1: st.shared.u32 [%r6], %r7;\n"
        "mbarrier.arrive.shared.b64 %e1, [%r5+1024];\n"
        "W1: mbarrier.test_wait.shared.b64 %q1, [%r5+1024], %e1;\n"
        "@!%q1 bra W1; xor.b32 %r3, %r6, 260; ld.shared.u32 %r4, [%r3];\n"
        "add.u32 %r8, %r8, %r4; mbarrier.arrive.shared.b64 %e1, [%r5+1024];\n"
        "W2: mbarrier.test_wait.shared.b64 %q1, [%r5+1024], %e1;\n"
        "@!%q1 bra W2; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 5;\n"
        "@%p2 bra L1;\n@%p1 bra W3;\n"
        "mbarrier.arrive.expect_tx.shared.b64 %e2, [%r5+1032], 512;\n"
        "add.u32 %r2, %r5, 512; add.u32 %r3, %r5, 1032;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r2], [%d3], 512, [%r3];\n"
        "W3: mbarrier.try_wait.parity.shared.b64 %q1, [%r5+1032], 0;\n"
        "@!%q1 bra W3; ld.shared.u32 %r4, [%r6+512];\n"
        "add.u32 %r8, %r8, %r4;"));
}

/* Masks of lanes, each lane its own. */
TEST(gcn_lanes_vote_with_masks_of_their_own)
{
    same_everywhere(
        TOP
        "add.u64 %d3, %d3, %d2; mul.wide.u32 %d4, %r1, 32;\n"
        "add.u64 %d1, %d1, %d4; ld.global.u32 %r2, [%d3];\n"
        "ld.global.u32 %r3, [%d3+4]; and.b32 %r4, %r1, 7;\n"
        "setp.eq.u32 %p2, %r4, 3; @%p2 bra E;\n"
        "mov.u32 %r4, 1; shl.b32 %r4, %r4, %r1; or.b32 %r3, %r3, %r4;\n"
        "shr.u32 %r4, %r2, 5; and.b32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0;\n"
        "vote.sync.ballot.b32 %r4, %p1, %r3; st.global.u32 [%d1], %r4;\n"
        "vote.sync.any.pred %p2, %p1, %r3; selp.u32 %r4, 1, 2, %p2;\n"
        "st.global.u32 [%d1+4], %r4;\n"
        "vote.sync.all.pred %p2, %p1, %r3; selp.u32 %r4, 1, 2, %p2;\n"
        "st.global.u32 [%d1+8], %r4; and.b32 %r3, %r3, %r2;\n"
        "vote.sync.uni.pred %p2, %p1, %r3; selp.u32 %r4, 1, 2, %p2;\n"
        "st.global.u32 [%d1+12], %r4;\n"
        "vote.sync.all.pred %p2, %p1, %r3; selp.u32 %r4, 1, 2, %p2;\n"
        "st.global.u32 [%d1+16], %r4; E: ret; }\n");
}

/* The same of doubles: 2^-1022 and less, halfway between two but for the last bit
 * of the quotient. */
TEST(gcn_small_quotients_of_doubles_are_rounded_once)
{
    same_everywhere(
        TOP "mul.wide.u32 %d4, %r1, 8; add.u64 %d1, %d1, %d4; cvt.u64.u32 %d5, "
            "%r1;\nmul.lo.u64 %d6, %d5, 0x9e3779b97f4a7c15; and.b64 %d6, %d6, "
            "0x000fffffffffffff; or.b64 %d6, %d6, 0x0140000000000000;\n"
            "mul.lo.u64 %d7, %d5, 0xc2b2ae3d27d4eb4f; and.b64 %d7, %d7, "
            "0x000fffffffffffff; or.b64 %d7, %d7, 0x4140000000000000;\n"
            "div.rn.f64 %d8, %d6, %d7; st.global.u64 [%d1], %d8; ret; }\n");
}

/* Tensor cores' products of halves, summed in halves: small whole numbers, which
 * any order sums alike. */
TEST(gcn_products_of_matrices_sum_in_halves)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    static const char *const shapes[] = {"m16n8k16", "m16n8k8"};

    for (int s = 0; s < 2; s++) {
        int na = s ? 2 : 4, nb = na / 2, words = na + nb + 2;
        br_str text = {0};
        br_kir *m;

        /* Of 80 threads, the two warps that are whole. */
        br_str_puts(&text,
                    TOP ".reg .b16 %h<3>; .reg .b32 %w<12>;\n"
                        "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y;\n"
                        "mad.lo.u32 %r1, %r2, %r3, %r1;\n"
                        "setp.ge.u32 %p1, %r1, 64; @%p1 bra END;\n"
                        "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n");
        for (int w = 0; w < words; w++)
            br_str_printf(&text,
                          "mad.lo.u32 %%r2, %%r1, %d, %d; shr.u32 %%r3, %%r2, "
                          "3; and.b32 %%r2, %%r2, 7; and.b32 %%r3, %%r3, 7;\n"
                          "cvt.rn.f16.u32 %%h1, %%r2; cvt.rn.f16.u32 %%h2, "
                          "%%r3; neg.f16 %%h2, %%h2; "
                          "mov.b32 %%w%d, {%%h1, %%h2};\n",
                          7 * w + 3, 5 * w + 1, w);
        br_str_printf(
            &text,
            "mma.sync.aligned.%s.row.col.f16.f16.f16.f16 {%%w10, %%w11}, {",
            shapes[s]);
        for (int w = 0; w < words; w++)
            br_str_printf(&text, "%%w%d%s", w,
                          w + 1 == na || w + 1 == na + nb ? "}, {"
                          : w + 1 == words                ? "};\n"
                                                          : ", ");
        br_str_puts(&text, "st.global.u32 [%d1], %w10;\n"
                           "st.global.u32 [%d1+1024], %w11; END: ret; }\n");
        m = ptx_load(text.at);
        for (size_t k = 0; k < BR_COUNT(cpus); k++) {
            br_ktarget t;
            const char *err;

            ck_assert(br_sim_target(&t, cpus[k]));
            err = pr_compare(m, &t);
            ck_assert_msg(!err && !pr_faulted, "%s on %s: %s", shapes[s],
                          cpus[k], err ? err : "both fault");
        }
        br_kir_free(m);
        br_str_fini(&text);
    }
}

/* Three products of tensor cores with sums in f32, two of one A. n: bits of numbers;
 * whole ones that any order sums alike, or any. */
static void
mma3(br_str *text, const char *type, bool whole)
{
    br_str_puts(text,
                TOP ".reg .b16 %h<3>; .reg .b32 %w<40>; .reg .f32 %f<3>;\n"
                    "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y;\n"
                    "mad.lo.u32 %r1, %r2, %r3, %r1;\n"
                    "setp.ge.u32 %p1, %r1, 64; @%p1 bra END;\n"
                    "mul.wide.u32 %d2, %r1, 64; add.u64 %d1, %d1, "
                    "%d2;\n");
    for (int w = 0; w < 26; w++) { /* A, three B, three C */
        br_str_printf(text, "mad.lo.u32 %%r2, %%r1, %d, %d; ", 7 * w + 3,
                      40503 * w + 1);
        if (w >= 14)
            br_str_printf(text,
                          "and.b32 %%r2, %%r2, 63; cvt.rn.f32.u32 "
                          "%%w%d, %%r2;\n",
                          w);
        else if (whole)
            br_str_printf(text,
                          "shr.u32 %%r3, %%r2, 3; and.b32 %%r2, %%r2, 7; and."
                          "b32 %%r3, %%r3, 7; cvt.rn.f32.u32 %%f1, %%r2; "
                          "cvt.rn.f32.u32 %%f2, %%r3; cvt.rn.%s.f32 %%h1, "
                          "%%f1; cvt.rn.%s.f32 %%h2, %%f2; mov.b32 %%w%d, "
                          "{%%h1, %%h2};\n",
                          type, type, w);
        else
            br_str_printf(text,
                          "mul.lo.u32 %%r2, %%r2, 0x9e3779b1; and.b32 "
                          "%%r2, %%r2, 0x83ff83ff; or.b32 %%w%d, %%r2, "
                          "0x3c003800;\n",
                          w);
    }
    for (int k = 0; k < 3; k++) {
        int b = k < 2 ? 4 + 2 * k : 4, c = 14 + 4 * k, a = k == 2 ? 8 : 0;

        br_str_printf(
            text,
            "mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 {%%w%d, %%w%d, "
            "%%w%d, %%w%d}, {%%w%d, %%w%d, %%w%d, %%w%d}, {%%w%d, %%w%d}, "
            "{%%w%d, %%w%d, %%w%d, %%w%d};\n",
            type, type, 26 + 4 * k, 27 + 4 * k, 28 + 4 * k, 29 + 4 * k, a,
            a + 1, a + 2, a + 3, b, b + 1, c, c + 1, c + 2, c + 3);
    }
    for (int k = 0; k < 12; k++)
        br_str_printf(text, "st.global.u32 [%%d1+%d], %%w%d;\n", 4 * k, 26 + k);
    br_str_puts(text, "END: ret; }\n");
}

static int
times(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* With v_wmma: whole numbers as interpreted, others as multiplied and added one after
 * another, and two products of one A are one. */
TEST(gcn_products_of_matrices_by_wmma)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    static const char *const types[] = {"f16", "bf16"};
    static uint8_t want[PR_OUT], got[PR_OUT];

    for (int k = 0; k < 8; k++) {
        const char *cpu = cpus[k & 1], *type = types[k >> 1 & 1];
        const char *wmma = t_printf("%s-wmma", cpu), *err;
        br_str text = {0}, code = {0};
        br_status st = {0};
        br_ktarget t, one;
        br_kcode *c;
        br_kir *m;

        mma3(&text, type, k & 4);
        m = ptx_load(br_str_z(&text));
        ck_assert(br_sim_target(&t, wmma) && br_sim_target(&one, cpu));
        if (k & 4) {
            err = pr_compare(m, &t);
            ck_assert_msg(!err && !pr_faulted, "%s %s: %s", wmma, type,
                          err ? err : "both fault");
        }
        t_ok(pr_run(&one, m, want, &st), &st);
        t_ok(pr_run(&t, m, got, &st), &st);
        for (int n = 0; n < PR_OUT; n += 4)
            ck_assert_msg(memcmp(want + n, got + n, 4) == 0,
                          "%s %s: word %d: %a, with v_wmma %a", cpu, type,
                          n / 4, (double)*(float *)(void *)(want + n),
                          (double)*(float *)(void *)(got + n));
        t_ok(t.compile(&c, m, &st), &st);
        t_ok(t.text(c, 0, &code, &st), &st);
        ck_assert_int_eq(times(br_str_z(&code), "v_wmma_f32"), 2);
        t.free(c);
        br_kir_free(m);
        br_str_fini(&text);
        br_str_fini(&code);
    }
}

/* More values at once than there are registers: of lanes, of the wave. All are
 * loaded, then changed in a loop that lanes leave one by one, then summed. */
static void
crowd(br_str *s, int n, bool uniform)
{
    br_str_printf(s,
                  ".version 8.0\n.target sm_80\n.address_size 64\n"
                  ".entry k(.param .u64 in, .param .u64 out) {\n"
                  ".reg .b32 %%r<%d>; .reg .b64 %%d<9>; .reg .pred %%p<4>;\n"
                  "ld.param.u64 %%d1, [out]; ld.param.u64 %%d3, [in];\n"
                  "mov.u32 %%r1, %%tid.x; mul.wide.u32 %%d2, %%r1, 4;\n"
                  "mov.u32 %%r2, %%ctaid.x; mul.wide.u32 %%d4, %%r2, 512;\n"
                  "add.u64 %%d1, %%d1, %%d2; add.u64 %%d1, %%d1, %%d4;%s\n",
                  n + 20, uniform ? "" : "add.u64 %d3, %d3, %d2;");
    for (int k = 0; k < n; k++)
        if (uniform)
            br_str_printf(s,
                          "mov.u32 %%r3, %%ctaid.x; mad.lo.u32 %%r%d, "
                          "%%r3, %d, %d;\n",
                          k + 10, k + 2, k * k);
        else
            br_str_printf(s, "ld.global.u32 %%r%d, [%%d3+%d];\n", k + 10,
                          4 * (k % 60));
    br_str_puts(s, "mov.u32 %r2, 0;\nL:\n");
    for (int k = 0; k < n; k++)
        br_str_printf(s, "mad.lo.u32 %%r%d, %%r%d, %d, %%r%d;\n", k + 10,
                      k + 10, 2 * k + 3, (k * 7 + 1) % n + 10);
    br_str_puts(s, "add.u32 %r2, %r2, 1; and.b32 %r3, %r1, 3;\n");
    br_str_puts(s, uniform ? "setp.lt.u32 %p1, %r2, 3;"
                           : "setp.le.u32 %p1, %r2, %r3;");
    br_str_puts(s, " @%p1 bra L;\nmov.u32 %r4, 0;\n");
    for (int k = n; k-- > 0;)
        br_str_printf(s, "mad.lo.u32 %%r4, %%r4, 31, %%r%d;\n", k + 10);
    br_str_puts(s, "add.u32 %r4, %r4, %r1; st.global.u32 [%d1], %r4; ret; }\n");
}

TEST(gcn_values_without_a_register_live_elsewhere)
{
    for (int uniform = 0; uniform < 2; uniform++)
        for (int n = 90; n < 300; n += 190) {
            br_str s = {0};

            crowd(&s, n, uniform);
            same_everywhere(br_str_z(&s));
            br_str_fini(&s);
        }
}

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
/* f(n) = n < 2 ? n : g(n - 1) * 3 + g(n - 2), where g is one of two functions
 * that lanes choose and that both call f. */
#define CIRCLE                                                                \
    HEAD ".func (.param .b32 r) f(.param .b32 n);\n"                          \
         ".func (.param .b32 r) up(.param .b32 n) {\n"                        \
         ".reg .b32 %r<9>; ld.param.u32 %r1, [n];\n"                          \
         "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;\n"           \
         "call (b), f, (a); ld.param.b32 %r2, [b]; }\n"                       \
         "add.u32 %r3, %r2, %r1; st.param.b32 [r], %r3; ret; }\n"             \
         ".func (.param .b32 r) down(.param .b32 n) {\n"                      \
         ".reg .b32 %r<9>; ld.param.u32 %r1, [n];\n"                          \
         "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;\n"           \
         "call (b), f, (a); ld.param.b32 %r2, [b]; }\n"                       \
         "sub.u32 %r3, %r2, %r1; st.param.b32 [r], %r3; ret; }\n"             \
         ".func (.param .b32 r) f(.param .b32 n) {\n"                         \
         ".reg .b32 %r<19>; .reg .b64 %d<9>; .reg .pred %p<4>;\n"             \
         "ld.param.u32 %r1, [n]; mov.u32 %r9, %r1;\n"                         \
         "setp.lt.s32 %p1, %r1, 2; @%p1 bra D;\n"                             \
         "mov.u32 %r2, %tid.x; add.u32 %r2, %r2, %r1; and.b32 %r2, %r2, 3;\n" \
         "setp.eq.u32 %p2, %r2, 0; mov.u64 %d1, up; mov.u64 %d2, down;\n"     \
         "selp.b64 %d3, %d1, %d2, %p2; sub.u32 %r3, %r1, 1;\n"                \
         "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b;\n"           \
         "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"             \
         "call (b), %d3, (a), P; ld.param.b32 %r4, [b]; }\n"                  \
         "sub.u32 %r5, %r1, 2;\n"                                             \
         "{ .param .b32 a; st.param.b32 [a], %r5; .param .b32 b;\n"           \
         "call (b), up, (a); ld.param.b32 %r6, [b]; }\n"                      \
         "mad.lo.u32 %r9, %r4, 3, %r6;\n"                                     \
         "D: st.param.b32 [r], %r9; ret; }\n"
#define ASKS(n)                                                          \
    ".entry k(.param .u64 in, .param .u64 out) {\n"                      \
    ".reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.u64 %d1, [out];\n"       \
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, "  \
    "%d2;\n" n " { .param .b32 a; st.param.b32 [a], %r2; .param .b32 b;" \
    "\ncall (b), f, (a); ld.param.b32 %r3, [b]; }\n"                     \
    "st.global.u32 [%d1], %r3; ret; }\n"

TEST(gcn_functions_call_themselves_around)
{
    same_everywhere(CIRCLE ASKS("and.b32 %r2, %r1, 7;"));
    same_everywhere(CIRCLE ASKS("mov.u32 %r2, 9;"));
}

/* Local memory of calls, 120 KB where each has its own: those that are not open at
 * once share it, and one that is keeps what it wrote, whoever calls itself
 * meanwhile. */
#define FRAME_CALL(f, arg, to)                                                 \
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], " arg "; call (b), " #f \
    ", (a); ld.param.b32 " to ", [b]; }\n"
#define FRAME_FN(name, bytes, inner)                                     \
    ".func (.param .b32 y) " #name "(.param .b32 x) {\n.local .align 4 " \
    ".b8 m[" #bytes "]; .reg .b32 %r<9>; .reg .pred %p;\n"               \
    "ld.param.b32 %r1, [x]; and.b32 %r2, %r1, 1023; shl.b32 %r2, %r2, "  \
    "2;\nmov.u32 %r3, m; add.u32 %r3, %r3, %r2; mad.lo.u32 %r4, %r1, "   \
    "7, " #bytes "; st.local.u32 [%r3+(" #bytes " - 4096)], %r4;\n"      \
    "add.u32 %r5, %r1, 5;\n" inner "ld.local.u32 %r4, [%r3+(" #bytes     \
    " - 4096)]; add.u32 %r4, %r4, %r5;\n"                                \
    "st.param.b32 [y], %r4; ret; }\n"

TEST(gcn_frames_of_calls_share_local_memory)
{
    same_everywhere(
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".func (.param .b32 y) deep(.param .b32 x) {\n"
        ".reg .b32 %r<9>; .reg .pred %p; ld.param.b32 %r1, [x];\n"
        "mov.u32 %r5, 1; and.b32 %r2, %r1, 15; setp.eq.u32 %p, %r2, 0;\n"
        "@%p bra E; sub.u32 %r3, %r1, 1;\n" FRAME_CALL(
            deep, "%r3",
            "%r4") "mad.lo.u32 %r5, %r4, 3, %r1;\n"
                   "E: st.param.b32 [y], %r5; ret; }\n" FRAME_FN(leaf, 12000,
                                                                 "")
                       FRAME_FN(by, 10000, FRAME_CALL(deep, "%r5", "%r5"))
                           FRAME_FN(mid, 12004,
                                    FRAME_CALL(deep, "%r5", "%r5")
                                        FRAME_CALL(leaf, "%r5", "%r5")
                                            FRAME_CALL(by, "%r5", "%r5")) TOP
        "add.u64 %d1, %d1, %d2; mov.u32 %r2, %r1;\n" FRAME_CALL(
            by, "%r2", "%r2") FRAME_CALL(mid, "%r2", "%r2")
            FRAME_CALL(leaf, "%r2", "%r2") FRAME_CALL(mid, "%r2", "%r2")
                FRAME_CALL(mid, "%r2",
                           "%r2") "st.global.u32 [%d1], %r2; ret; }\n");
}

/* The stack has an end, and what comes behind it is not written to; who traps says
 * why. */
TEST(gcn_traps_say_why)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {CIRCLE ASKS("mov.u32 %r2, 100000;"),
         ": trap 2: a function calls itself deeper than its stack of 16 KB "
         "reaches"},
        {CIRCLE ASKS("mov.u64 %d3, f; add.u64 %d3, %d3, 1; { .param .b32 a; "
                     ".param .b32 b; st.param.b32 [a], %r1;\n"
                     "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                     "call (b), %d3, (a), P; ld.param.b32 %r2, [b]; }"),
         ": trap 2: a call through a pointer that is no function's"},
        {TOP "mov.u32 %r2, %pm0; ret; }", ": trap 2: note 1 of the module"},
        {TOP "setp.eq.u32 %p1, %r1, 7; @%p1 trap; ret; }", ": trap 2"}};
    static const char *const on[] = {"gfx1100", "gfx1201", "gfx1201-wave64"};

    for (size_t k = 0; k < BR_COUNT(cases) * BR_COUNT(on); k++) {
        const char *says = cases[k / BR_COUNT(on)].says;
        br_kir *m = ptx_load(cases[k / BR_COUNT(on)].text);
        static uint8_t out[PR_OUT];
        br_status st = {0};
        const char *at;
        br_ktarget t;

        ck_assert(br_sim_target(&t, on[k % BR_COUNT(on)]));
        ck_assert_msg(pr_run(&t, m, out, &st) == BR_E_FAULT, "%s", st.msg);
        at = strstr(st.msg, says);
        ck_assert_msg(at && !at[strlen(says)], "'%s' does not end in '%s'",
                      st.msg, says);
        br_kir_free(m);
    }
}

/* What the simulator's checks find fails a case, though its numbers be right. */
TEST(ptx_kit_says_what_checks_find)
{
    ptx_set s = {.check = true};
    uint64_t out[PTX_ROWS];

    s.m = ptx_load(".version 8.0\n.target sm_80\n.address_size 64\n"
                   ".entry k_0(.param .u64 in, .param .u64 out) {\n"
                   ".reg .b32 %r<4>; .shared .b32 s;\n"
                   "mov.u32 %r1, %tid.x; st.shared.b32 [s], %r1; ret; }\n");
    ptx_target(&s, "gfx1201");
    ck_assert(strstr(ptx_run_case(&s, s.m, 0, out), "no barrier between"));
    s.check = false;
    ck_assert_str_eq(ptx_run_case(&s, s.m, 0, out), "");
    ptx_fini(&s);
}
