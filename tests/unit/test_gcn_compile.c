/* test_gcn_compile.c - kernels as AMD machine code: what is emitted is read by
 * the disassembler, waits for memory before it uses it, and is what the text
 * says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "cg/gcn/gcn_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static const char *const cpus[] = {"gfx1100", "gfx1151", "gfx1200", "gfx1201"};

#define HEAD ".version 7.8\n.target sm_90\n.address_size 64\n"

static const char saxpy[] = HEAD
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a,\n"
    ".param .u32 n) {\n"
    ".reg .u32 %r<9>; .reg .u64 %rd<9>; .reg .f32 %f<5>; .reg .pred %p<3>;\n"
    "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];\n"
    "ld.param.u32 %r5, [n]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "setp.ge.u32 %p1, %r4, %r5; @%p1 bra END;\n"
    "mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd1, %rd3;\n"
    "add.u64 %rd5, %rd2, %rd3; ld.global.f32 %f2, [%rd4];\n"
    "ld.global.f32 %f3, [%rd5]; fma.rn.f32 %f4, %f2, %f1, %f3;\n"
    "st.global.f32 [%rd5], %f4;\nEND: ret; }\n";

/* Lanes leave at different rounds; then a barrier, LDS and an atomic. */
static const char loop[] = HEAD
    ".visible .entry loop(.param .u64 out) {\n"
    ".reg .u32 %r<9>; .reg .u64 %rd<4>; .reg .pred %p<3>;\n"
    ".shared .align 4 .b8 buf[128];\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"
    "mov.u32 %r5, %r1;\n"
    "L: add.u32 %r2, %r2, %r5; shr.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0;\n"
    "@%p1 bra L;\n"
    "shl.b32 %r3, %r1, 2; mov.u32 %r4, buf; add.u32 %r4, %r4, %r3;\n"
    "st.shared.u32 [%r4], %r2; bar.sync 0; ld.shared.u32 %r6, [buf];\n"
    "add.u32 %r6, %r6, %r2; atom.global.add.u32 %r7, [%rd1], %r6;\n"
    "st.global.u32 [%rd1+4], %r7; ret; }\n";

static const char fences[] =
    HEAD ".visible .entry fences(.param .u64 out) {\n"
         ".reg .u32 %r<4>; .reg .u64 %rd<4>;\n"
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
         "st.global.u32 [%rd1], %r1; bar.sync 0; membar.gl;\n"
         "ld.acquire.gpu.global.u32 %r2, [%rd1];\n"
         "st.release.gpu.global.u32 [%rd1+8], %r2; ret; }\n";

static void
compile(br_gcn_compiled *k, br_gcn_isa *isa, const char *cpu, const br_kir *m)
{
    br_status st = {0};

    *isa = (br_gcn_isa){br_gcn_cpu_find(cpu), false};
    t_ok(br_gcn_compile(k, isa, m, 0, &st), &st);
}

/* Lines of machine code, without operands of branches. */
static const char *
listing(const br_gcn_isa *isa, const br_gcn_compiled *k)
{
    br_str s = {0};
    char *text;

    for (size_t at = 0; at < k->words.n;) {
        br_gcn_inst in;
        unsigned n = br_gcn_decode(isa, k->words.at + at, k->words.n - at, &in);

        ck_assert_msg(n > 0, "word %zu: %08x", at, k->words.at[at]);
        br_gcn_print(isa, &in, &s);
        br_str_putc(&s, '\n');
        at += n;
    }
    text = t_keep(strdup(br_str_z(&s)));
    br_str_fini(&s);
    return text;
}

TEST(gcn_kernels_compile_for_each_processor)
{
    static const char *const texts[] = {saxpy, loop, fences};

    for (size_t c = 0; c < BR_COUNT(cpus); c++)
        for (int which = 0; which < 3; which++) {
            br_kir *m = ptx_load(texts[which]);
            br_gcn_compiled k;
            br_gcn_isa isa;
            br_status st = {0};

            compile(&k, &isa, cpus[c], m);
            t_ok(br_gcn_prove(&isa, k.words.at, k.words.n, &st), &st);
            ck_assert(strstr(listing(&isa, &k), "s_endpgm"));
            ck_assert_uint_eq(k.k.lds_bytes, which == 1 ? 128 : 0);
            ck_assert_uint_eq(k.k.kernarg_bytes, which ? 8 : 24 + 24);
            ck_assert_uint_eq(k.k.ids, 1);
            br_gcn_compiled_fini(&k);
            br_kir_free(m);
        }
}

/* Two loads are under way at once, one wait is enough for both. */
TEST(gcn_waits_are_no_stronger_than_needed)
{
    br_kir *m = ptx_load(saxpy);
    br_gcn_compiled k;
    br_gcn_isa isa;
    const char *a, *b;

    compile(&k, &isa, "gfx1201", m);
    a = strstr(listing(&isa, &k), "global_load_b32");
    ck_assert(a != NULL);
    b = strstr(a + 1, "global_load_b32");
    ck_assert(b != NULL);
    a = strstr(a, "s_wait_loadcnt");
    ck_assert(a != NULL && a > b);
    ck_assert(strstr(a + 1, "s_wait_loadcnt") == NULL);
    br_gcn_compiled_fini(&k);
    br_kir_free(m);
}

/* Two sums of products that do not need each other: one instruction, told how
 * long until what it reads is there; a chain stays two. */
TEST(gcn_independent_sums_issue_at_once)
{
    static const char head[] =
        HEAD ".visible .entry k(.param .u64 o) {\n"
             ".reg .f32 %f<9>; .reg .u64 %rd<4>; .reg .u32 %r<4>;\n"
             "ld.param.u64 %rd1, [o]; mov.u32 %r1, %tid.x;\n"
             "mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;\n"
             "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n";
    static const char *const sums[] = {
        "add.f32 %f5, %f1, %f2; mul.f32 %f6, %f3, %f4;\n",
        "add.f32 %f5, %f1, %f2; mul.f32 %f6, %f5, %f4;\n"};

    for (size_t c = 0; c < BR_COUNT(cpus); c++)
        for (int chain = 0; chain < 2; chain++) {
            br_kir *m =
                ptx_load(t_printf("%s%sst.global.f32 [%%rd1], %%f5;\n"
                                  "st.global.f32 [%%rd1+4], %%f6; ret; }\n",
                                  head, sums[chain]));
            br_gcn_compiled k;
            br_gcn_isa isa;
            const char *text;

            compile(&k, &isa, cpus[c], m);
            text = listing(&isa, &k);
            ck_assert_msg((strstr(text, "v_dual_") != NULL) == !chain, "%s %s",
                          cpus[c], text);
            ck_assert_msg(!chain || strstr(text, "v_add_f32_e32"), "%s", text);
            ck_assert_msg(!chain || strstr(text, "instid0(VALU_DEP_1)"), "%s",
                          text);
            br_gcn_compiled_fini(&k);
            br_kir_free(m);
        }
}

/* Every wait of both kernels is needed: without it the proof fails, and its
 * count plus one, too. */
TEST(gcn_a_wait_taken_away_is_found)
{
    int waits = 0;

    for (size_t c = 0; c < BR_COUNT(cpus); c++)
        for (int which = 0; which < 2; which++) {
            br_kir *m = ptx_load(which ? loop : saxpy);
            br_gcn_compiled k;
            br_gcn_isa isa;

            compile(&k, &isa, cpus[c], m);
            for (size_t at = 0; at < k.words.n;) {
                uint32_t was = k.words.at[at];
                br_status st = {0};
                int wait[GCN_COUNTERS];
                br_gcn_inst in;
                unsigned n =
                    br_gcn_decode(&isa, k.words.at + at, k.words.n - at, &in);

                if (gcn_is_wait(&isa, &in, wait) &&
                    !gcn_is(&in, "s_wait_alu") &&
                    !gcn_is(&in, "s_waitcnt_depctr")) {
                    waits++;
                    k.words.at[at] = 0xbf800000; /* s_nop 0 */
                    ck_assert_msg(br_gcn_prove(&isa, k.words.at, k.words.n,
                                               &st) == BR_E_FAULT,
                                  "%s: word %zu", cpus[c], at);
                    k.words.at[at] = was;
                }
                at += n;
            }
            br_gcn_compiled_fini(&k);
            br_kir_free(m);
        }
    ck_assert_int_gt(waits, 20);
}

TEST(gcn_what_has_no_code_is_named)
{
    br_kir *m = ptx_load(HEAD ".visible .entry k(.param .u64 o) {\n"
                              ".reg .b64 %d<3>; ld.param.u64 %d1, [o];\n"
                              "stacksave.u64 %d2;\n"
                              "st.global.u64 [%d1], %d2; ret; }\n");
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1201"), false};
    br_gcn_compiled k;
    br_status st = {0};

    ck_assert_int_eq(br_gcn_compile(&k, &isa, m, 0, &st), BR_E_UNSUPPORTED);
    ck_assert_msg(strstr(st.msg, "k: line 6: gfx1201 has no code for this yet"),
                  "%s", st.msg);
    ck_assert(strstr(st.msg, "stack"));
    isa = (br_gcn_isa){br_gcn_cpu_find("gfx1201-wmma"), true};
    st = (br_status){0};
    ck_assert_int_eq(br_gcn_compile(&k, &isa, m, 0, &st), BR_E_UNSUPPORTED);
    ck_assert(strstr(st.msg, "32 lanes alone"));
    br_kir_free(m);
}

/* All vectors: the code's waits are proven. */
static int
sweep(const char *set, const char *cpu, br_str *refused)
{
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), false};
    ptx_set s;
    int done = 0;

    ptx_vectors(&s, set);
    for (uint32_t f = 0; f < s.m->fns.n; f++) {
        br_gcn_compiled k;
        br_status st = {0};
        br_code c = br_gcn_compile(&k, &isa, s.m, f, &st);

        if (c == BR_E_UNSUPPORTED) {
            br_str_printf(refused, "%s\n", st.msg);
            continue;
        }
        t_ok(c, &st);
        listing(&isa, &k);
        t_ok(br_gcn_prove(&isa, k.words.at, k.words.n, &st), &st);
        br_gcn_compiled_fini(&k);
        done++;
    }
    ptx_fini(&s);
    return done;
}

TEST(gcn_vectors_compile_and_are_proven)
{
    const char *show = getenv("GCN_SHOW");

    for (size_t c = 0; c < BR_COUNT(cpus); c += t_sanitized() ? 4 : 3) {
        br_str refused = {0};
        int n = sweep("sweep", cpus[c], &refused);
        int w = sweep("warp", cpus[c], &refused);

        if (show)
            printf("%s%s: %d of 895, %d of 127\n", br_str_z(&refused), cpus[c],
                   n, w);
        ck_assert_int_eq(n, 895);
        ck_assert_int_eq(w, 127);
        br_str_fini(&refused);
    }
}
