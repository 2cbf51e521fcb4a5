/* ptx_random.h - kernels out of nothing: the same seed, the same PTX.
 *
 * Blocks of random instructions on a few registers, joined by random jumps: any
 * graph, irreducible ones too. Every block takes fuel, so every lane ends.
 * Results of float arithmetic have one NaN. Memory: a thread reads anywhere in
 * `in`, writes its own words of `out` and of shared memory, and adds to words
 * that all share. Votes, shuffles and the like run with the lanes that come, so
 * what they give depends on the exact order of blocks. With PR_MORE, also what is
 * rarer; with PR_APPROX, what targets other than x86-64 do to another last bit,
 * as they may (docs/kernels.md).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PTX_RANDOM_H
#define PTX_RANDOM_H

#include "cg/kinterp.h"
#include "cg/ktarget.h"
#include "cg/ptx/ptx.h"

#include <stdio.h>
#include <string.h>

enum { PR_THREADS = 96, PR_GRID = 2, PR_IN = 4096, PR_OUT = 32 * 1024 };

static inline uint32_t
pr_next(uint64_t *s, uint32_t n)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33) % n;
}

/* Templates: r p d: a register of that kind; i: a number; x: a place in `in`;
 * n after a float result: its NaN made the usual one. */
static const char *const pr_ops[] = {
    "add.u32 r,r,r;",
    "sub.s32 r,r,r;",
    "mul.lo.u32 r,r,r;",
    "mul.hi.s32 r,r,r;",
    "mul.hi.u32 r,r,r;",
    "mad.lo.s32 r,r,r,r;",
    "min.s32 r,r,r;",
    "max.u32 r,r,r;",
    "abs.s32 r,r;",
    "neg.s32 r,r;",
    "and.b32 r,r,r;",
    "or.b32 r,r,r;",
    "xor.b32 r,r,r;",
    "not.b32 r,r;",
    "shl.b32 r,r,i;",
    "shr.u32 r,r,i;",
    "shr.s32 r,r,r;",
    "shl.b32 r,r,r;",
    "shf.l.wrap.b32 r,r,r,r;",
    "shf.r.clamp.b32 r,r,r,r;",
    "lop3.b32 r,r,r,r,0xi;",
    "prmt.b32 r,r,r,r;",
    "bfe.u32 r,r,i,i;",
    "bfi.b32 r,r,r,i,i;",
    "popc.b32 r,r;",
    "clz.b32 r,r;",
    "brev.b32 r,r;",
    "div.u32 r,r,r;",
    "rem.s32 r,r,r;",
    "selp.b32 r,r,r,p;",
    "setp.lt.s32 p,r,r;",
    "setp.ge.u32 p,r,r;",
    "setp.eq.u32 p,r,r;",
    "setp.ne.s32 p,r,i;",
    "setp.gt.u64 p,d,d;",
    "setp.le.s64 p,d,d;",
    "setp.lt.f32 p,r,r;",
    "setp.neu.f32 p,r,r;",
    "and.pred p,p,p;",
    "xor.pred p,p,p;",
    "not.pred p,p;",
    "add.u64 d,d,d;",
    "sub.u64 d,d,d;",
    "mul.lo.u64 d,d,d;",
    "mul.wide.u32 d,r,r;",
    "mul.wide.s32 d,r,r;",
    "shl.b64 d,d,i;",
    "shr.u64 d,d,r;",
    "shr.s64 d,d,i;",
    "xor.b64 d,d,d;",
    "selp.b64 d,d,d,p;",
    "cvt.u64.u32 d,r;",
    "cvt.s64.s32 d,r;",
    "cvt.u32.u64 r,d;",
    "cvt.s32.s8 r,r;",
    "cvt.u32.u16 r,r;",
    "cvt.rn.f32.s32 r,r;",
    "cvt.rn.f32.u32 r,r;",
    "cvt.rzi.s32.f32 r,r;",
    "cvt.rni.s32.f32 r,r;",
#ifdef PR_MORE
    "cvt.rni.s32.f64 r,d;",
    "cvt.rzi.u32.f64 r,d;",
    "cvt.rmi.s64.f64 d,d;",
    "cvt.rpi.u64.f64 d,d;",
    "cvt.rzi.s64.f32 d,r;",
    "cvt.rni.u32.f32 r,r;",
    "cvt.rpi.ftz.u32.f32 r,r;",
    "cvt.rpi.ftz.s32.f32 r,r;",
    "cvt.rzi.u16.f32 r,r;",
    "cvt.rmi.s16.f32 r,r;",
    "cvt.rni.ftz.u8.f32 r,r;",
    "cvt.rpi.s8.f32 r,r;",
    "cvt.sat.f32.f32 r,r;",
    "cvt.sat.ftz.f32.f32 r,r;",
    "cvt.rni.sat.f32.f32 r,r;",
    "cvt.ftz.f32.f16 r,r; n",
    "cvt.rn.ftz.f32.f64 r,d; n",
    "cvt.rn.sat.f32.f64 r,d;",
    "cvt.rn.f64.s64 d,d;",
    "cvt.rn.f64.u64 d,d;",
    "cvt.rn.f64.s32 d,r;",
    "cvt.rn.f32.u64 r,d;",
    "cvt.rn.f32.s64 r,d;",
    "popc.b64 r,d;",
    "clz.b64 r,d;",
    "brev.b64 d,d;",
    "bfind.s32 r,r;",
    "bfind.shiftamt.u64 r,d;",
    "bfind.s64 r,d;",
    "bfe.s32 r,r,r,r;",
    "bfi.b32 r,r,r,r,r;",
    "mul.hi.s64 d,d,d;",
    "mul.hi.u64 d,d,d;",
    "div.s64 d,d,d;",
    "rem.u64 d,d,d;",
    "rem.s64 d,d,d;",
    "div.u64 d,d,d;",
    "min.s64 d,d,d;",
    "max.u64 d,d,d;",
    "min.u64 d,d,d;",
    "max.s64 d,d,d;",
    "abs.s64 d,d;",
    "shr.s64 d,d,r;",
#endif
#ifdef PR_APPROX
    "lg2.approx.f32 r,r; n",
    "sin.approx.ftz.f32 r,r; n",
    "cos.approx.f32 r,r; n",
    "tanh.approx.f32 r,r; n",
#endif
    "mov.b64 {r,r},d;",
    "mov.b64 d,{r,r};",
    "add.f32 r,r,r; n",
    "sub.f32 r,r,r; n",
    "mul.f32 r,r,r; n",
    "fma.rn.f32 r,r,r,r; n",
    "div.rn.f32 r,r,r; n",
    "sqrt.rn.f32 r,r; n",
    "min.f32 r,r,r; n",
    "max.f32 r,r,r; n",
    "add.ftz.f32 r,r,r; n",
    "mul.rz.f32 r,r,r; n",
    "add.sat.f32 r,r,r; n",
    "abs.f32 r,r; n",
    "ld.global.u32 r,[x];",
    "ld.global.u8 r,[x];",
    "ld.global.u64 d,[x];",
    "ld.global.v2.u32 {r,r},[x];",
    "ld.shared.u32 r,[%own];",
    "st.shared.u32 [%own],r;",
    "ld.shared.u64 d,[%own];",
    "st.shared.u64 [%own],d;",
    "ld.shared.u32 r,[%own+4];",
    "st.shared.u32 [%own+4],r;",
    "ld.u32 r,[%gen];",
    "ld.u32 r,[%gen+4];",
    "st.u32 [%gen+4],r;",
    "st.u64 [%gen],d;",
    "st.global.u32 [%me+o],r;",
    "st.global.u64 [%me+o],d;",
    "red.global.add.u32 [%all+o],r;",
    "atom.shared.exch.b32 r,[%own],r;",
    "atom.shared.add.u32 r,[%own],r;",
    "red.shared.xor.b32 [%own+4],i;",
    "shfl.sync.idx.b32 r|p,r,r,31,-1;",
    "shfl.sync.down.b32 r|p,r,i,0x181f,-1;",
    "shfl.sync.bfly.b32 r|p,r,r,r,-1;",
    "vote.sync.all.pred p,p,-1;",
    "vote.sync.uni.pred p,p,r;",
    "shfl.sync.bfly.b32 r,r,i,31,-1;",
    "shfl.sync.up.b32 r|p,r,1,0,-1;",
    "vote.sync.any.pred p,p,-1;",
    "vote.sync.ballot.b32 r,p,-1;",
    "activemask.b32 r;",
    "redux.sync.add.s32 r,r,-1;",
    "match.any.sync.b32 r,r,-1;",
    "bar.warp.sync -1;",
};

static inline void
pr_op(br_str *s, const char *t, uint64_t *rng)
{
    uint32_t first = BR_KNONE;

    if (pr_next(rng, 8) == 0 && t[0] != 'b' && t[0] != 'n')
        br_str_printf(s, "@%%p%u ", pr_next(rng, 4));
    for (const char *c = t; *c; c++) {
        bool word = c > t && (c[-1] == ' ' || c[-1] == ',' || c[-1] == '{' ||
                              c[-1] == '[' || c[-1] == '|' || c[-1] == '+' ||
                              (c > t + 1 && c[-1] == 'x' && c[-2] == '0'));
        uint32_t k = pr_next(rng, 6);

        if (!word) {
            br_str_putc(s, *c);
        } else if (*c == 'r' || *c == 'p' || *c == 'd') {
            first = first == BR_KNONE ? k : first;
            br_str_printf(s, "%%%c%u", *c, *c == 'p' ? k % 4 : k);
        } else if (*c == 'i') {
            br_str_printf(s, "%u", pr_next(rng, 34));
        } else if (*c == 'o') {
            br_str_printf(s, "%u", 8 * pr_next(rng, 16));
        } else if (*c == 'x') {
            br_str_printf(s, "%%near+%u", 8 * pr_next(rng, 32));
        } else if (*c == 'n') { /* by %f: no jump */
            br_str_printf(s,
                          "setp.nan.f32 %%q,%%r%u,%%r%u; selp.b32 "
                          "%%r%u,0x7fffffff,%%r%u,%%q;",
                          first, first, first, first);
        } else {
            br_str_putc(s, *c);
        }
    }
    br_str_putc(s, '\n');
}

static inline void
ptx_random(br_str *s, uint64_t seed)
{
    uint64_t rng = seed;
    uint32_t n = 2 + pr_next(&rng, 9);

    for (int k = 0; k < 4; k++)
        pr_next(&rng, 2);
    br_str_puts(
        s,
        ".version 8.0\n.target sm_80\n.entry k(.param .u64 in, .param .u64 "
        "out)\n{\n.reg .b32 %r<6>, %fuel, %own, %t<4>; .reg .b64 %d<6>, "
        "%me, %all, %near, %a, %gen; .reg .pred %p<4>, %q;\n.shared .align 8 "
        ".b8 sh[1024];\nld.param.u64 %near,[in]; ld.param.u64 %all,[out];\n"
        "mov.u32 %t0,%tid.x; mov.u32 %t1,%tid.y; mov.u32 %t2,%ntid.x; "
        "mad.lo.u32 %t0,%t1,%t2,%t0; mov.u32 %t1,%ctaid.x; mad.lo.u32 "
        "%t2,%t1,96,%t0;\nmul.wide.u32 %a,%t2,128; add.u64 %me,%all,%a; "
        "add.u64 %me,%me,1024;\nshl.b32 %t3,%t0,3; mov.u32 %own,sh; add.u32 "
        "%own,%own,%t3; mov.u64 %d0,0; st.shared.u64 [%own],%d0;\n"
        "mul.wide.u32 %gen,%t0,8; mov.u64 %a,sh; cvta.shared.u64 %a,%a; "
        "add.u64 %gen,%gen,%a;\n");
    if (pr_next(&rng, 4) == 0) /* a place that nobody knows beforehand */
        br_str_puts(s, "st.shared.u64 [%own],%gen; ld.shared.u64 %gen,[%own]; "
                       "st.shared.u64 [%own],%d0;\n");
    /* Near: the same for all, one after another, or wild. */
    br_str_printf(s,
                  "and.b32 %%t3,%s,%u; mul.wide.u32 %%a,%%t3,%u; add.u64 "
                  "%%near,%%near,%%a; mov.u32 %%fuel,%u;\n",
                  pr_next(&rng, 2) ? "%t2" : "%t0", pr_next(&rng, 2) ? 63 : 0,
                  8 * (1 + pr_next(&rng, 4)), 1 + pr_next(&rng, 12));
    if (pr_next(&rng, 2)) /* lanes go evenly */
        br_str_printf(s, "mul.wide.u32 %%a,%%t0,8; ld.param.u64 %%near,[in]; "
                         "add.u64 %%near,%%near,%%a;\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s,
                      "ld.global.u32 %%r%d,[%%near+%d]; ld.global.u64 "
                      "%%d%d,[%%near+%d];\n",
                      k, 8 * k, k, 64 + 8 * k);
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%r%d,%%t0;\n", k, k);
    if (pr_next(&rng, 2)) { /* evenly, perhaps over the end */
        static const uint32_t from[] = {0, 0x7fffffd0, 0xffffffe0};

        br_str_printf(s,
                      "mov.u32 %%r5,%%tid.x; shl.b32 %%r5,%%r5,%u; add.u32 "
                      "%%r5,%%r5,%u; cvt.%s %%d5,%%r5;\n",
                      pr_next(&rng, 4), from[pr_next(&rng, 3)],
                      pr_next(&rng, 2) ? "u64.u32" : "s64.s32");
    }
    for (uint32_t b = 0; b < n; b++) {
        uint32_t ops = pr_next(&rng, pr_next(&rng, 4) ? 8 : 40);

        br_str_printf(s,
                      "L%u:\nsub.u32 %%fuel,%%fuel,1; setp.eq.u32 "
                      "%%q,%%fuel,0; @%%q bra E;\n",
                      b);
        while (ops--) {
            const char *op = pr_ops[pr_next(&rng, (uint32_t)BR_COUNT(pr_ops))];
            bool atomic =
                strncmp(op, "atom", 4) == 0 || strncmp(op, "red.", 4) == 0;

            /* Half without atomics, which have code for whole blocks. */
            pr_op(s, atomic && !(seed & 2) ? pr_ops[0] : op, &rng);
        }
        if (pr_next(&rng, 12) == 0)
            br_str_puts(s, "bar.sync 0;\n");
        br_str_printf(s, "@%s%%p%u bra L%u;\n", pr_next(&rng, 2) ? "!" : "",
                      pr_next(&rng, 4), pr_next(&rng, n));
        if (pr_next(&rng, 3) == 0)
            br_str_printf(s, "bra L%u;\n", pr_next(&rng, n));
    }
    br_str_puts(s, "E:\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s,
                      "st.global.u32 [%%me+%d],%%r%d; st.global.u64 "
                      "[%%me+%d],%%d%d;\n",
                      8 * k, k, 64 + 8 * k, k);
    br_str_puts(s, "ret;\n}\n");
}

/* Kernels over arrays: an index that goes evenly, perhaps over the end of its
 * numbers or of memory, held against a limit; loads and stores of all sizes by
 * it, perhaps in a loop. A thread writes its own places, in three planes. */
static inline void
ptx_line(br_str *s, uint64_t seed)
{
    static const char *const loads[][2] = {{"u8 %r", ""},
                                           {"u16 %r", ""},
                                           {"u32 %r", ""},
                                           {"u64 %d", ""},
                                           {"v4.u32 {%r", ",%t3,%t2,%t1}"}};
    static const char *const cmps[] = {"lt", "le", "gt", "ge", "ne"};
    static const char *const types[] = {"u32", "s32", "u64", "s64"};
    static const uint32_t from[] = {0, 0, 0, 0, 3, 0x7fffffd0, 0xffffffe0};
    uint64_t rng = seed * 77;
    uint32_t in = pr_next(&rng, 5), out = 1 + pr_next(&rng, 3);
    uint32_t type = pr_next(&rng, 4), cmp = pr_next(&rng, 5);
    bool loop = pr_next(&rng, 3) == 0;

    br_str_printf(
        s,
        ".version 8.0\n.target sm_80\n.entry line(.param .u64 in, .param .u64 "
        "out)\n{\n.reg .b32 %%r<6>, %%i, %%n, %%fuel, %%own, %%t<4>; .reg .b64 "
        "%%d<6>, %%a, %%b, %%w, %%m; .reg .pred %%p<4>, %%q;\n"
        "mov.u32 %%t0,%%tid.x; mov.u32 %%t1,%%ctaid.x; mov.u32 %%t2,%%ntid.x; "
        "mad.lo.u32 %%i,%%t1,%%t2,%%t0; add.u32 %%i,%%i,%u; mov.u32 %%n,%u; "
        "mov.u32 %%fuel,%u;\n",
        from[pr_next(&rng, 7)], pr_next(&rng, 700), 1 + pr_next(&rng, 3));
    if (pr_next(&rng, 2))
        br_str_puts(s, "mov.u32 %t3,%ctaid.y; mad.lo.u32 %i,%t3,600,%i;\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s, "mov.u32 %%r%d,%s; mov.u64 %%d%d,%u;\n", k,
                      pr_next(&rng, 3)   ? "7"
                      : pr_next(&rng, 2) ? "%i"
                                         : "%t1",
                      k, pr_next(&rng, 99));
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%t%d,%u;\n", k, k,
                      pr_next(&rng, 70));
    br_str_printf(s,
                  "L:\ncvt.%s %%w,%%i; cvt.u64.u32 %%m,%%n; setp.%s.%s "
                  "%%q,%s; @%s%%q bra E;\n",
                  pr_next(&rng, 2) ? "u64.u32" : "s64.s32", cmps[cmp],
                  types[type], type < 2 ? "%i,%n" : "%w,%m",
                  pr_next(&rng, 2) ? "!" : "");
    br_str_printf(s,
                  "ld.param.u64 %%a,[in]; mad.wide.%s %%a,%%i,%u,%%a; "
                  "ld.param.u64 %%b,[out]; shl.b64 %%m,%%w,%u; add.u64 "
                  "%%b,%%b,%%m;\n",
                  types[pr_next(&rng, 2)], 1u << in, out);
    for (uint32_t k = 1 + pr_next(&rng, 4); k--;) {
        const char *const *ld = loads[pr_next(&rng, 3) ? in : pr_next(&rng, 5)];
        int at = (int)pr_next(&rng, 4) * (16 << pr_next(&rng, 8) / 7);

        br_str_printf(s, "ld.global.%s%u%s,[%%a+%d];", ld[0], pr_next(&rng, 6),
                      ld[1], at - (pr_next(&rng, 9) ? 0 : 16));
    }
    if (pr_next(&rng, 2))
        br_str_printf(s, "ld.global.u%u %%%c1,[%%b];", 8u << out,
                      out == 3 ? 'd' : 'r');
    for (uint32_t k = pr_next(&rng, 6); k--;) {
        const char *op = pr_ops[pr_next(&rng, (uint32_t)BR_COUNT(pr_ops))];

        if (!strchr(op, '[') && !strstr(op, "sync"))
            pr_op(s, op, &rng);
    }
    for (uint32_t k = 1 + pr_next(&rng, 3); k--;)
        br_str_printf(s, "st.global.u%u [%%b+%u],%%%c%u;", 8u << out, k * 10240,
                      out == 3 ? 'd' : 'r', pr_next(&rng, 6));
    if (loop)
        br_str_printf(s,
                      "\nadd.u32 %%i,%%i,%u; sub.u32 %%fuel,%%fuel,1; "
                      "setp.ne.u32 %%q,%%fuel,0; @%%q bra L;",
                      pr_next(&rng, 3) ? 64 * 18 : 0);
    br_str_puts(s, "\nE:\nret;\n}\n");
}

/* Kernels over blocks in two dimensions: places that go evenly along x and y, or
 * over the end of numbers or of memory; a tile of shared memory read by columns,
 * rounds of a loop, limits. A thread writes its own places, in three planes. */
static inline void
ptx_plane(br_str *s, uint64_t seed)
{
    static const int xs[] = {1, 1, 1, 0, 2, -1, 5},
                     ys[] = {0, 1, 16, 33, -3, 64, 1 << 28, 1 << 29, 1 << 30};
    static const uint32_t from[] = {0, 0, 64, 0x7fffff00, 0xffffff80};
    static const char *const cmps[] = {"lt", "ge", "gt", "ne"};
    uint64_t rng = seed * 771;
    uint32_t pitch = 64 + pr_next(&rng, 3), bytes = 1u << pr_next(&rng, 4);
    bool loop = pr_next(&rng, 2);
    int y = ys[pr_next(&rng, pr_next(&rng, 2) ? 6 : 9)];

    br_str_printf(
        s,
        ".version 8.0\n.target sm_80\n.entry plane(.param .u64 in, .param .u64 "
        "out)\n{\n.reg .b32 %%r<6>, %%x, %%y, %%i, %%n, %%fuel, %%own, %%t<4>; "
        ".reg .b64 %%d<6>, %%a, %%b, %%s; .reg .pred %%p<4>, %%q; .shared "
        ".align 8 .b8 sh[4096];\nmov.u32 %%t0,%%tid.x; mov.u32 %%t1,%%tid.y; "
        "mov.u32 %%t2,%%ctaid.x; mov.u32 %%t3,%%ntid.x; mad.lo.u32 "
        "%%x,%%t2,%%t3,%%t0; mov.u32 %%t2,%%ctaid.y; mov.u32 %%t3,%%ntid.y; "
        "mad.lo.u32 %%y,%%t2,%%t3,%%t1; mov.u32 %%fuel,%u;\n",
        1 + pr_next(&rng, 3));
    br_str_printf(s, "mul.lo.u32 %%i,%%x,%d; add.u32 %%i,%%i,%u;",
                  xs[pr_next(&rng, 7)], from[pr_next(&rng, 5)]);
    if (pr_next(&rng, 2)) /* by what is in memory */
        br_str_printf(s, "ld.param.u64 %%a,[in]; ld.global.u8 %%n,[%%a+%u];",
                      8 * pr_next(&rng, 9) + 4);
    else
        br_str_printf(s, "mov.u32 %%n,%d;", y);
    br_str_puts(s, "mad.lo.u32 %i,%y,%n,%i;\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s, "mov.u32 %%r%d,%s; mov.u64 %%d%d,%u;\n", k,
                      pr_next(&rng, 3)   ? "7"
                      : pr_next(&rng, 2) ? "%i"
                                         : "%y",
                      k, pr_next(&rng, 99));
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%t%d,%u;\n", k, k,
                      pr_next(&rng, 20));
    br_str_puts(s, "L:\n");
    if (pr_next(&rng, 2))
        br_str_printf(s, "setp.%s.s32 %%q,%%%c,%u; @%%q bra E;\n",
                      cmps[pr_next(&rng, 4)], "xyi"[pr_next(&rng, 3)],
                      pr_next(&rng, 60));
    br_str_printf(s,
                  "ld.param.u64 %%a,[in]; mad.wide.%s %%a,%%i,%u,%%a; "
                  "ld.global.u%u %%%c%u,[%%a+%u]; ld.global.u%u %%%c4,[%%a];\n",
                  pr_next(&rng, 2) ? "s32" : "u32", bytes, 8 * bytes,
                  bytes == 8 ? 'd' : 'r', pr_next(&rng, 6),
                  8 * pr_next(&rng, 40), 8 * bytes, bytes == 8 ? 'd' : 'r');
    if (pr_next(&rng, 2)) {
        uint32_t w = 33 + pr_next(&rng, 2);

        br_str_printf(s,
                      "mov.u64 %%s,sh; mul.wide.u32 %%b,%%t1,%u; add.u64 "
                      "%%b,%%b,%%s; mul.wide.u32 %%a,%%t0,4; add.u64 "
                      "%%b,%%b,%%a; bar.sync 0; st.shared.u32 [%%b],%%r4; "
                      "bar.sync 0;\n",
                      4 * w);
        if (pr_next(&rng, 3))
            br_str_printf(s,
                          "mul.wide.u32 %%b,%%t0,%u; add.u64 %%b,%%b,%%s; "
                          "mul.wide.u32 %%a,%%t1,4; add.u64 %%b,%%b,%%a; ",
                          4 * w);
        br_str_puts(s, "ld.shared.u32 %r3,[%b];\n");
    }
    for (uint32_t k = pr_next(&rng, 6); k--;) {
        const char *op = pr_ops[pr_next(&rng, (uint32_t)BR_COUNT(pr_ops))];

        if (!strchr(op, '[') && !strstr(op, "sync"))
            pr_op(s, op, &rng);
    }
    br_str_printf(s,
                  "mad.lo.u32 %%n,%%y,%u,%%x; ld.param.u64 %%b,[out]; "
                  "mad.wide.u32 %%b,%%n,4,%%b;\n",
                  pitch);
    for (uint32_t k = 1 + pr_next(&rng, 3); k--;)
        br_str_printf(s, "st.global.u32 [%%b+%u],%%r%u;", k * 10752,
                      pr_next(&rng, 6));
    if (loop)
        br_str_printf(s,
                      "\nadd.u32 %%i,%%i,%u; sub.u32 %%fuel,%%fuel,1; "
                      "setp.ne.u32 %%q,%%fuel,0; @%%q bra L;",
                      pr_next(&rng, 70));
    br_str_puts(s, "\nE:\nret;\n}\n");
}

/* A line of instructions without jumps, memory or other lanes: what each gives, where
 * its operands are known when it is compiled and where they are not. Division by
 * zero is left out, which PTX leaves open. */
static inline void
ptx_straight(br_str *s, uint64_t seed)
{
    static const char *const edges[] = {
        "0",          "1",          "31",         "32",         "33",
        "63",         "64",         "255",        "256",        "0x7fff",
        "0x7fffffff", "0x80000000", "0xffffffff", "0x3f800000", "0x7f800000",
        "0xff800000", "0x4f000000", "0xcf000000", "0x00800000", "0x7f7fffff"};
    static const char *const others[] = {"[",    "sync",  "activemask",
                                         "rem.", "div.u", "div.s"};
    uint64_t rng = seed;

    br_str_puts(s,
                ".version 8.0\n.target sm_80\n.address_size 64\n.entry "
                "k(.param .u64 in, .param .u64 out)\n{\n.reg .b32 %r<6>, "
                "%t<4>; .reg .b64 %d<6>, %a, %b; .reg .pred %p<4>, %q;\n"
                "mov.u32 %t0,%tid.x; mov.u32 %t1,%tid.y; mov.u32 %t2,%ntid.x; "
                "mad.lo.u32 %t0,%t1,%t2,%t0; mov.u32 %t1,%ctaid.x; mad.lo.u32 "
                "%t2,%t1,96,%t0; and.b32 %t0,%t0,31; mul.wide.u32 %a,%t0,128; "
                "ld.param.u64 %b,[in]; add.u64 %b,%b,%a;\n");
    for (int k = 0; k < 6; k++) {
        if (pr_next(&rng, 4))
            br_str_printf(s, "ld.global.u32 %%r%d,[%%b+%d];\n", k, 4 * k);
        else
            br_str_printf(s, "mov.u32 %%r%d,%s;\n", k,
                          edges[pr_next(&rng, (uint32_t)BR_COUNT(edges))]);
        if (pr_next(&rng, 4))
            br_str_printf(s, "ld.global.u64 %%d%d,[%%b+%d];\n", k, 32 + 8 * k);
        else
            br_str_printf(s, "mov.b64 %%d%d,{%%r%d,%%r%u};\n", k, k,
                          pr_next(&rng, (uint32_t)k + 1));
    }
    for (int k = 0; k < 4; k++)
        br_str_printf(s, "setp.lt.u32 %%p%d,%%r%d,%%r%d;\n", k, k, k + 1);
    for (uint32_t n = 1 + pr_next(&rng, 14); n;) {
        const char *op = pr_ops[pr_next(&rng, (uint32_t)BR_COUNT(pr_ops))];
        bool other = false;

        for (size_t k = 0; k < BR_COUNT(others); k++)
            other |= strstr(op, others[k]) != NULL;
        if (other)
            continue;
        pr_op(s, op, &rng);
        n--;
    }
    br_str_puts(s, "ld.param.u64 %b,[out]; mul.wide.u32 %a,%t2,128; add.u64 "
                   "%b,%b,%a;\n");
    for (int k = 0; k < 6; k++)
        br_str_printf(s,
                      "st.global.u32 [%%b+%d],%%r%d; st.global.u64 "
                      "[%%b+%d],%%d%d;\n",
                      1024 + 4 * k, k, 1056 + 8 * k, k);
    for (int k = 0; k < 4; k++)
        br_str_printf(s,
                      "selp.u32 %%t1,1,0,%%p%d; st.global.u32 [%%b+%d],%%t1;\n",
                      k, 1120 + 4 * k);
    br_str_puts(s, "ret;\n}\n");
}

/* Whether lanes hear of each other. Which of them run together where branches
 * part is nothing that a program may know, and passes change it. */
static inline bool
pr_meets(const char *text)
{
    static const char *const ops[] = {"shfl.", "vote.", "match.", "redux.",
                                      "activemask"};
    bool any = false;

    for (size_t k = 0; k < BR_COUNT(ops); k++)
        any |= strstr(text, ops[k]) != NULL;
    return any;
}

/* The text, for a target that takes it. */
static const char *pr_text;

/* What says how blocks are cut; 0: the kernel's size, which passes change. */
static size_t pr_shape;

/* Runs a module's k on a target; returns the code. Blocks: 80 threads, or 96,
 * which are full warps, in one row or in several. Or its line, in more blocks, or
 * its plane. */
static inline br_code
pr_run(const br_ktarget *t, const br_kir *m, uint8_t *out, br_status *st)
{
    static const uint8_t shapes[][2] = {{80, 1}, {20, 4}, {16, 5},
                                        {96, 1}, {32, 3}, {16, 6}};
    size_t n_ins = pr_shape ? pr_shape : m->fns.at[0].ins.n;
    size_t n_blk = pr_shape ? pr_shape : m->fns.at[0].blks.n;
    const uint8_t *shape = shapes[n_blk % 3 + 3 * (n_ins % 2)];
    static uint8_t in[PR_IN];
    /* No index of 32 bits, times 1 to 8, leads from one to the other: lanes of a
     * warp that read what others write would race. */
    uint64_t params[2] = {0x100000000, 0x240000000};
    static const uint32_t places[2] = {0, 8};
    br_kregion regions[2] = {{params[0], PR_IN, in, true, "in"},
                             {params[1], PR_OUT, out, false, "out"}};
    br_klaunch l = {.grid = {PR_GRID, 1, 1},
                    .block = {shape[0], shape[1], 1},
                    .params = (const uint8_t *)params,
                    .regions = regions,
                    .n_regions = 2,
                    .places = places,
                    .ptx = pr_text,
                    .threads = 2};
    uint64_t rng = 5;
    br_kcode *c = NULL;
    br_kimage *im;
    br_code code;

    for (uint32_t k = 0; k < PR_IN; k++) /* small and wild numbers */
        in[k] = (uint8_t)(k % 8 < 4 ? pr_next(&rng, 256)
                                    : (k % 8 == 4 ? pr_next(&rng, 64) : 0));
    memset(out, 0, PR_OUT);
    l.fn = br_kir_find_fn(m, BR_TEXT("k"));
    if (l.fn == BR_KNONE) {
        l.fn = br_kir_find_fn(m, BR_TEXT("line"));
        l.grid[0] = 9;
        l.grid[1] = 2;
        l.block[0] = 64;
        l.block[1] = l.threads = 1;
    }
    if (l.fn == BR_KNONE) {
        static const uint8_t planes[][2] = {{16, 10}, {32, 5},  {8, 20},
                                            {16, 9},  {16, 20}, {32, 8}};
        const uint8_t *p = planes[n_ins % BR_COUNT(planes)];

        l.fn = br_kir_find_fn(m, BR_TEXT("plane"));
        l.block[0] = p[0];
        l.block[1] = p[1];
        l.grid[0] = 64u / p[0] - 1;
        l.grid[1] = 2;
        l.threads = 1;
    }
    br_check(br_kimage_new(&im, m, st) == BR_OK);
    l.image = im;
    code = t->compile(&c, m, st);
    if (code == BR_OK)
        code = t->launch(c, &l, st);
    t->free(c);
    br_kimage_free(im);
    return code;
}

static bool pr_faulted;

/* Interpreter and target on one kernel; NULL, or what differs. */
static inline const char *
pr_compare(const br_kir *m, const br_ktarget *t)
{
    static uint8_t want[PR_OUT], got[PR_OUT];
    static char text[1200];
    br_status a = {0}, b = {0};
    br_code x = pr_run(br_ktarget_find("interp"), m, want, &a);
    br_code y = pr_run(t, m, got, &b);

    pr_faulted = x == BR_E_FAULT;

    /* Warps of a block get to their faults in another order. */
    if (x != y || (x != BR_E_FAULT && strcmp(a.msg, b.msg) != 0)) {
        snprintf(text, sizeof text, "interpreted: %s; as code: %s", a.msg,
                 b.msg);
        return text;
    }
    for (int k = 0; k < PR_OUT && x == BR_OK; k++)
        if (want[k] != got[k]) {
            snprintf(text, sizeof text, "byte %d: thread %d, word %d", k,
                     (k - 1024) / 128, (k - 1024) % 128 / 4);
            return text;
        }
    return NULL;
}

#endif
