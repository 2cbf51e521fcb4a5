/* test_cg_inline.c - functions put into their callers do what calls did.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"
#include "ptx_random.h"
#include "t.h"

/* Operations before the first load: what a lane computes by itself. */
static void
random_ops(br_str *s, uint64_t *rng)
{
    uint32_t pure = 0, n = pr_next(rng, 8);

    while (strncmp(pr_ops[pure], "ld.", 3) != 0)
        pure++;
    while (n--)
        pr_op(s, pr_ops[pr_next(rng, pure)], rng);
}

/* Calls f<fn>: its structure's bytes in pieces of 4 or 8. */
static void
random_call(br_str *s, uint64_t *rng, uint32_t fn)
{
    br_str_puts(s, "{ .param .b32 pa; .param .align 8 .b8 pb[24]; .param "
                   ".align 8 .b8 pr[16];\nst.param.b32 [pa],%r0; st.param.b64 "
                   "[pb],%d1;");
    br_str_puts(s, pr_next(rng, 2) ? "st.param.b64 [pb+8],%d2;"
                                   : "st.param.v2.b32 [pb+8],{%r1,%r2};");
    br_str_printf(s,
                  "st.param.u8 [pb+16],%%r3; st.param.u8 [pb+17],%%r4;\n"
                  "call.uni (pr), f%u, (pa, pb);\n",
                  fn);
    br_str_puts(s, pr_next(rng, 2)
                       ? "ld.param.b64 %d3,[pr]; ld.param.b32 %r5,[pr+8];"
                       : "ld.param.v2.b32 {%r2,%r5},[pr]; ld.param.b32 "
                         "%r3,[pr+8];");
    br_str_puts(s, "}\n");
}

static const char regs[] = ".reg .b32 %r<6>, %fuel, %t<4>; .reg .b64 %d<6>, "
                           "%me, %a; .reg .pred %p<4>, %q;\n";

static void
random_function(br_str *s, uint64_t *rng, uint32_t fn)
{
    br_str_printf(s,
                  ".func (.param .align 8 .b8 r[16]) f%u(.param .b32 a, .param "
                  ".align 8 .b8 b[24])\n{\n%s.local .align 8 .b8 own[32];\n"
                  "mov.u32 %%r1,7; mov.u32 %%r2,%%tid.x; mov.u32 %%r5,1; "
                  "mov.u64 %%d0,3; mov.u64 %%d4,5; mov.u64 %%d5,9; mov.u64 "
                  "%%d3,2;\nld.param.b32 %%r0,[a]; ld.param.b64 %%d1,[b]; "
                  "ld.param.u8 %%r3,[b+16]; ld.param.u8 %%r4,[b+17];\n",
                  fn, regs);
    br_str_puts(s, pr_next(rng, 2)
                       ? "ld.param.b64 %d2,[b+8];\n"
                       : "ld.param.v2.b32 {%r1,%r5},[b+8]; mov.u64 %d2,4;\n");
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%r%d,%u;\n", k, k,
                      pr_next(rng, 70));
    random_ops(s, rng);
    if (pr_next(rng, 2)) /* a place that is known only at run time */
        br_str_puts(s, "mov.u64 %a,own; and.b32 %t0,%r0,7; mul.wide.u32 "
                       "%me,%t0,4; st.local.u32 [own+4],%r1; add.u64 "
                       "%a,%a,%me; st.local.u32 [%a],%r2; ld.local.u32 "
                       "%r1,[own+4];\n");
    if (pr_next(rng, 3) == 0) /* the parameter is the callee's to change */
        br_str_puts(s, "st.param.b32 [a],%r4; ld.param.b32 %r2,[a];\n");
    br_str_puts(s, "@%p1 bra other;\n");
    random_ops(s, rng);
    if (fn && pr_next(rng, 2))
        random_call(s, rng, pr_next(rng, fn));
    br_str_puts(s, "st.param.b64 [r],%d3; st.param.b32 [r+8],%r2;\n");
    if (pr_next(rng, 2))
        br_str_puts(s, "ret;\n");
    br_str_puts(s, "other:\n");
    random_ops(s, rng);
    br_str_puts(s, pr_next(rng, 2) ? "st.param.b64 [r],%d1;"
                                   : "st.param.v2.b32 [r],{%r1,%r0};");
    br_str_printf(s, "st.param.b32 [r+8],%%r4; %s\n}\n",
                  pr_next(rng, 9) ? "ret;" : "exit;");
}

static void
random_calls(br_str *s, uint64_t seed)
{
    uint64_t rng = seed * 91;
    uint32_t n = 1 + pr_next(&rng, 4);

    /* First, so that blocks have one shape before the passes and after. */
    br_str_puts(s, ".version 8.0\n.target sm_80\n.extern .func none();\n");
    for (uint32_t k = 0; k < n; k++)
        random_function(s, &rng, k);
    br_str_printf(
        s,
        ".entry k(.param .u64 in, .param .u64 out)\n{\n%sld.param.u64 "
        "%%me,[out]; mov.u32 %%t0,%%tid.x; mov.u32 %%t1,%%ctaid.x; "
        "mad.lo.u32 %%t2,%%t1,96,%%t0; mul.wide.u32 %%a,%%t2,128; add.u64 "
        "%%me,%%me,%%a; add.u64 %%me,%%me,1024; mov.u32 %%fuel,%u;\n",
        regs, 1 + pr_next(&rng, 5));
    for (int k = 0; k < 6; k++)
        br_str_printf(s,
                      "mad.lo.u32 %%r%d,%%t2,%u,%%t0; mul.wide.u32 "
                      "%%d%d,%%r%d,%u;\n",
                      k, pr_next(&rng, 1000), k, k, pr_next(&rng, 1000));
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%t0,%u;\n", k, pr_next(&rng, 80));
    br_str_puts(s, "again:\n");
    random_ops(s, &rng);
    random_call(s, &rng, pr_next(&rng, n));
    br_str_puts(s, "@%p2 bra skip;\n");
    random_call(s, &rng, pr_next(&rng, n));
    br_str_puts(s, "skip: sub.u32 %fuel,%fuel,1; setp.ne.u32 %q,%fuel,0; @%q "
                   "bra again;\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s,
                      "st.global.u32 [%%me+%d],%%r%d; st.global.u64 "
                      "[%%me+%d],%%d%d;\n",
                      8 * k, k, 64 + 8 * k, k);
    br_str_puts(s, "ret;\n}\n");
}

static size_t
calls_left(const br_kir *m)
{
    size_t n = 0;

    for (size_t k = 0; k < m->fns.n; k++)
        for (size_t b = 0; b < m->fns.at[k].blks.n; b++)
            for (size_t i = 0; i < m->fns.at[k].blks.at[b].ins.n; i++)
                n +=
                    m->fns.at[k].ins.at[m->fns.at[k].blks.at[b].ins.at[i]].op ==
                    BR_K_CALL;
    return n;
}

TEST_WITHIN(inlined_functions_do_what_calls_do, 120)
{
    static uint8_t want[PR_OUT], got[PR_OUT];
    int n = t_sanitized() ? 30 : 300;

    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        br_str s = {0};
        br_status st = {0};
        br_kir *m;
        const char *err;

        random_calls(&s, seed);
        m = ptx_load(s.at);
        ck_assert_msg(m->notes.n == 0, "seed %d: %.*s", (int)seed,
                      (int)m->notes.at[0].text.n, m->notes.at[0].text.p);
        t_ok(pr_run(br_ktarget_find("interp"), m, want, &st), &st);
        t_ok(br_kir_optimise(m, NULL, &st), &st);
        ck_assert_uint_eq(calls_left(m), 0);
        t_ok(pr_run(br_ktarget_find("interp"), m, got, &st), &st);
        ck_assert_msg(memcmp(want, got, PR_OUT) == 0, "seed %d:\n%s", (int)seed,
                      s.at);
        err = pr_compare(m, br_ktarget_find("x86-64"));
        ck_assert_msg(!err || strstr(err, "needs a processor"),
                      "seed %d: %s\n%s", (int)seed, err, s.at);
        br_kir_free(m);
        br_str_fini(&s);
    }
}

/* Its frame has as many bytes as one may: nothing is put in. */
static const char far[] = "kir sm_90\n"
                          "func g frame_bytes 16\n  param a 0 4 4\n"
                          "b0:\n  ret\nend\n"
                          "func k entry frame_bytes 1073741824\n"
                          "b0:\n  %0 = frame\n  call %0 @&g\n  br b1\n"
                          "b1:\n  exit\nend\n";

TEST(a_frame_has_an_end)
{
    br_status st = {0};
    br_kir *m;

    t_ok(br_kir_parse(&m, far, sizeof far - 1, &st), &st);
    t_ok(br_kir_optimise(m, NULL, &st), &st);
    ck_assert_uint_eq(calls_left(m), 1);
    br_kir_free(m);
}
