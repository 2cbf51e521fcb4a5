/* test_gcn_words.c - instructions that compilers seldom write, on the simulated
 * AMD processors as interpreted: conversions of all pairs of types, halves with
 * modifiers, quotients at the edges. The vectors of an H200 have the usual ones
 * (test_cg_vectors.c); these were held against one, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"
#include "ptx_random.h"

#include "drv/sim/sim.h"

#include <stdio.h>
#include <string.h>

/* An instruction without its operands; types of its result and arguments. */
typedef struct word {
    const char *op, *dst, *a, *b;
} word;

static char
kind(const char *type)
{
    return strstr(type, "x2") && type[0] != 'e'       ? 'r'
           : strstr(type, "64")                       ? 'd'
           : strstr(type, "16") || strstr(type, "x2") ? 'h'
                                                      : 'r';
}

/* Argument k in a register of its kind: any bits in half of the lanes; else a
 * float below the normal ones, or what is a tie for shorter ones. */
static void
argument(br_str *s, const char *type, int k)
{
    int r = 2 + k;

    br_str_printf(s, "mov.b32 %%r%d,%%w%d; ", r, k);
    if (strcmp(type, "f32") == 0)
        br_str_printf(
            s,
            "@%%p1 and.b32 %%r%d,%%r%d,0x807fffff; @%%p2 and.b32 "
            "%%r%d,%%r%d,0xfffff000; @%%p2 or.b32 %%r%d,%%r%d,0x1000; ",
            r, r, r, r, r, r);
    if (kind(type) == 'd')
        br_str_printf(s, "mov.b64 %%d%d,{%%w%d,%%w%d}; ", 4 + k, 1 - k, k);
    if (kind(type) == 'h')
        br_str_printf(s, "cvt.u16.u32 %%h%d,%%r%d; ", k, r);
}

/* NaNs of a result are made one. */
static void
result(br_str *s, const char *type)
{
    bool two = kind(type) == 'r' && strstr(type, "x2");
    char c = two ? 'h' : kind(type);
    const char *nan = c == 'h'   ? "%nan"
                      : c == 'd' ? "0x7fffffffffffffff"
                                 : "0x7fffffff";
    int bits = c == 'h' ? 16 : c == 'd' ? 64 : 32;

    if (two)
        br_str_puts(s, "mov.b32 {%h4,%h5},%r4; ");
    for (int k = 4; type[0] != 'e' && strchr(type, 'f') && k < 5 + two; k++)
        br_str_printf(s,
                      "setp.nan.%.*s %%p3,%%%c%d,%%%c%d; selp.b%d "
                      "%%%c%d,%s,%%%c%d,%%p3; ",
                      (int)strcspn(type, "x"), type, c, k, c, k, bits, c, k,
                      nan, c, k);
    if (two)
        br_str_puts(s, "mov.b32 %r4,{%h4,%h5}; ");
    if (c == 'h' && !two)
        br_str_puts(s, "cvt.u32.u16 %r4,%h4; ");
    br_str_printf(s, "st.global.b%d [%%out],%%%c4; ret; }\n",
                  c == 'd' ? 64 : 32, c == 'd' ? 'd' : 'r');
}

static void
kernel(br_str *s, const word *w)
{
    br_str_puts(
        s, ".version 8.6\n.target sm_90\n.address_size 64\n"
           ".entry k(.param .u64 in, .param .u64 outp) {\n"
           ".reg .b16 %h<6>, %nan; .reg .b32 %r<6>, %w<2>; .reg .b64 %d<6>, "
           "%at, %out; .reg .pred %p<4>;\n"
           "mov.u32 %r0,%tid.x; mov.u32 %r1,%tid.y; mov.u32 %r2,%ntid.x; "
           "mad.lo.u32 %r0,%r1,%r2,%r0; mov.u32 %r1,%ctaid.x; mad.lo.u32 "
           "%r0,%r1,96,%r0; mul.wide.u32 %d0,%r0,16; ld.param.u64 %at,[in]; "
           "add.u64 %at,%at,%d0; ld.param.u64 %out,[outp]; add.u64 "
           "%out,%out,%d0; ld.global.u32 %w0,[%at]; ld.global.u32 "
           "%w1,[%at+8]; mov.b16 %nan,0x7fff;\nand.b32 %r1,%r0,3; setp.eq.u32 "
           "%p1,%r1,0; setp.eq.u32 %p2,%r1,1;\n");
    argument(s, w->a, 0);
    if (w->b)
        argument(s, w->b, 1);
    br_str_printf(s, "\n%s %%%c4,%%%c%d", w->op, kind(w->dst), kind(w->a),
                  kind(w->a) == 'h'   ? 0
                  : kind(w->a) == 'd' ? 4
                                      : 2);
    if (w->b)
        br_str_printf(s, ",%%%c%d", kind(w->b),
                      kind(w->b) == 'h'   ? 1
                      : kind(w->b) == 'd' ? 5
                                          : 3);
    br_str_puts(s, ";\n");
    result(s, w->dst);
}

static void
same(const word *w, size_t n)
{
    static const char *const on[] = {"x86-64", "gfx1100", "gfx1201",
                                     "gfx1100-wave64"};

    for (size_t k = 0; k < n * BR_COUNT(on); k++) {
        const word *x = &w[k / BR_COUNT(on)];
        br_ktarget sim;
        const br_ktarget *t = br_sim_target(&sim, on[k % BR_COUNT(on)])
                                  ? &sim
                                  : br_ktarget_find(on[k % BR_COUNT(on)]);
        br_str s = {0};
        const char *err;
        br_kir *m;

        kernel(&s, x);
        m = ptx_load(s.at);
        err = pr_compare(m, t);
        ck_assert_msg(!err || strstr(err, "needs a processor"), "%s on %s: %s",
                      x->op, on[k % BR_COUNT(on)], err);
        br_kir_free(m);
        br_str_fini(&s);
    }
}

#define SAME(...)                             \
    do {                                      \
        static const word w_[] = __VA_ARGS__; \
        same(w_, BR_COUNT(w_));               \
    } while (0)

TEST(gcn_halves_have_the_sign_of_both)
{
    SAME({{"min.xorsign.abs.f16", "f16", "f16", "f16"},
          {"max.ftz.xorsign.abs.f16", "f16", "f16", "f16"},
          {"max.NaN.xorsign.abs.f16", "f16", "f16", "f16"},
          {"min.ftz.NaN.xorsign.abs.f16x2", "f16x2", "f16x2", "f16x2"},
          {"max.xorsign.abs.f16x2", "f16x2", "f16x2", "f16x2"},
          {"min.NaN.xorsign.abs.bf16", "bf16", "bf16", "bf16"},
          {"max.xorsign.abs.bf16x2", "bf16x2", "bf16x2", "bf16x2"}});
}

TEST(gcn_signs_of_halves_flush)
{
    SAME({{"neg.ftz.f16", "f16", "f16", NULL},
          {"abs.ftz.f16", "f16", "f16", NULL},
          {"neg.ftz.f16x2", "f16x2", "f16x2", NULL},
          {"abs.ftz.f16x2", "f16x2", "f16x2", NULL}});
}

/* Below normal numbers are zeros where the instruction says so. */
TEST(gcn_bfloat16_is_flushed)
{
    SAME({{"cvt.ftz.f32.bf16", "f32", "bf16", NULL},
          {"cvt.rn.ftz.bf16.f32", "bf16", "f32", NULL},
          {"cvt.rz.ftz.bf16.f32", "bf16", "f32", NULL}});
}

/* 19 bits of a float: cut, to even, away from zero. */
TEST(gcn_tf32_is_rounded_as_asked)
{
    SAME({{"cvt.rz.tf32.f32", "b32", "f32", NULL},
          {"cvt.rn.tf32.f32", "b32", "f32", NULL},
          {"cvt.rna.tf32.f32", "b32", "f32", NULL},
          {"cvt.rz.relu.tf32.f32", "b32", "f32", NULL},
          {"cvt.rna.satfinite.tf32.f32", "b32", "f32", NULL}});
}

TEST(gcn_bfloat16_becomes_any_number)
{
    SAME({{"cvt.rzi.s32.bf16", "s32", "bf16", NULL},
          {"cvt.rni.u32.bf16", "u32", "bf16", NULL},
          {"cvt.rmi.s64.bf16", "s64", "bf16", NULL},
          {"cvt.rpi.u64.bf16", "u64", "bf16", NULL},
          {"cvt.rni.s16.bf16", "s16", "bf16", NULL},
          {"cvt.rzi.u16.bf16", "u16", "bf16", NULL},
          {"cvt.rmi.bf16.bf16", "bf16", "bf16", NULL},
          {"cvt.f64.bf16", "f64", "bf16", NULL},
          {"cvt.rn.f16.bf16", "f16", "bf16", NULL},
          {"cvt.rp.f16.bf16", "f16", "bf16", NULL}});
}

TEST(gcn_any_number_becomes_bfloat16)
{
    SAME({{"cvt.rn.bf16.s32", "bf16", "s32", NULL},
          {"cvt.rz.bf16.u32", "bf16", "u32", NULL},
          {"cvt.rm.bf16.s64", "bf16", "s64", NULL},
          {"cvt.rp.bf16.u64", "bf16", "u64", NULL},
          {"cvt.rm.bf16.s16", "bf16", "s16", NULL},
          {"cvt.rp.bf16.u16", "bf16", "u16", NULL},
          {"cvt.rn.bf16.f64", "bf16", "f64", NULL},
          {"cvt.rz.bf16.f64", "bf16", "f64", NULL},
          {"cvt.rn.bf16.f16", "bf16", "f16", NULL},
          {"cvt.rm.bf16.f16", "bf16", "f16", NULL},
          {"cvt.rm.bf16.f32", "bf16", "f32", NULL},
          {"cvt.rp.bf16.f32", "bf16", "f32", NULL}});
}

/* To 0 to 1, the largest number, or what is not negative. */
TEST(gcn_conversions_saturate)
{
    SAME({{"cvt.rzi.sat.s32.f32", "s32", "f32", NULL},
          {"cvt.rni.ftz.sat.u16.f32", "u16", "f32", NULL},
          {"cvt.rpi.sat.u32.f64", "u32", "f64", NULL},
          {"cvt.rmi.sat.s32.f16", "s32", "f16", NULL},
          {"cvt.sat.f16.f16", "f16", "f16", NULL},
          {"cvt.sat.f64.f16", "f64", "f16", NULL},
          {"cvt.rn.sat.f16.s16", "f16", "s16", NULL},
          {"cvt.rz.sat.f16.u64", "f16", "u64", NULL},
          {"cvt.rp.sat.f16.f64", "f16", "f64", NULL},
          {"cvt.rm.sat.f32.s64", "f32", "s64", NULL},
          {"cvt.rn.satfinite.f16.f32", "f16", "f32", NULL},
          {"cvt.rz.relu.satfinite.f16.f32", "f16", "f32", NULL},
          {"cvt.rn.satfinite.bf16.f32", "bf16", "f32", NULL},
          {"cvt.rn.satfinite.relu.bf16x2.f32", "bf16x2", "f32", "f32"},
          {"cvt.rn.satfinite.relu.e4m3x2.f32", "e4m3x2", "f32", "f32"},
          {"cvt.rn.satfinite.relu.e5m2x2.f16x2", "e5m2x2", "f16x2", NULL},
          {"cvt.rn.relu.f16x2.e4m3x2", "f16x2", "e4m3x2", NULL},
          {"cvt.rn.relu.f16x2.e5m2x2", "f16x2", "e5m2x2", NULL}});
}

/* By a number whose mantissa is all ones: what is just above a tie is no tie. */
TEST(gcn_quotients_by_ones_are_rounded_up)
{
    SAME({{"or.b64 %d5,%d5,0x000fffffffffffff; and.b64 "
           "%d5,%d5,0xbfffffffffffffff; div.rn.f64",
           "f64", "f64", "f64"},
          {"or.b64 %d4,%d4,0x000fffffffffffff; rcp.rn.f64", "f64", "f64", NULL},
          {"mov.b64 %d4,0x3fefffffffffffff; rcp.rp.f64", "f64", "f64", NULL}});
}
