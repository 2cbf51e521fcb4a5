/* test_cg_ptx.c - PTX: grammar, scopes, what is not understood.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static br_code
refused(const char *text, bool strict, br_status *st)
{
    br_kir *m;
    br_code code = br_ptx_parse(&m, text, strlen(text),
                                &(br_ptx_opts){.strict = strict}, st);

    if (code == BR_OK)
        br_kir_free(m);
    return code;
}

static const struct {
    const char *text, *says;
} wrongs[] = {
    {".entry k() { add.u32 %r1, %r1, 1 }", "line 1: a , or ; has to follow"},
    {".entry k() { ret; ", "end of a function is missing"},
    {".entry k() { .reg .foo %r; }", "no type of a register"},
    {".entry k() { .reg .b32 %r<2000000>; }", "registers in a function"},
    {".entry k() { bra L; }", "there is no label 'L'"},
    {".entry k() { { L: } bra L; }", "there is no label 'L'"},
    {".entry k() { L: L: }", "a second label 'L'"},
    {".entry k() { .reg .b32 a; @a ret; }", "the guard is no predicate"},
    {".entry k() {} .entry k() {}", "a second function 'k'"},
    {".entry k(.reg .u32 x) {}", "a parameter is .param"},
    {".global .u32 a = {1, 2};", "more values than"},
    {".global .u32 a[2] = {1, b};", "names 'b'"},
    {".global .align 3 .u32 a;", "power of two"},
    {".global .u8 a[2000000000];", "a number up to"},
    {".global .u8 a[65536][65536];", "a variable of over"},
    {".const .b8 a[65537];", "bytes of .const"},
    {".shared .u32 a", "has to be a ';'"},
    {".entry k() { .reg .v2 .b128 q; }", ".reg: '.b128' is no type"},
    {".entry k() { .reg .b7 q; }", ".reg: '.b7' is no type of a register"},
    {".local .u32 a;", "'.local' does not belong here"},
    {".entry k() { mov.u32 %r0, 0x; }", "is no number"},
    {".entry k() { st.u32 [a, 1; }", "has to be a ']'"},
    {"/* ", "comment without its end"},
    {".entry k() { .pragma \"x; }", "string without its end"},
    {"\x01", "byte 01"},
    {"hello", "'hello' does not belong here"},
    {".entry k() { .reg .b32 i; brx.idx i, T; }", "there is no label 'T'"},
    {".const .u32 x = 4 / (2 - 2);", "line 1: a division by zero"},
    {".const .u32 x = 4 % 0;", "a division by zero"},
    {".const .u32 x = 1 ? 2 : 3 / 0;", "a division by zero"},
    {".const .u32 x = 4 *;", "a number has to stand here"},
    {".const .u32 x = (4;", "has to be a ')'"},
    {".const .u32 x = 1 ? 2;", "has to be a ':'"},
    {".const .f64 x = 1.5 + 1;", "'+' of numbers that it is not for"},
    {".const .f64 x = 1e;", "'1e' is no number"},
    {".const .f64 x = 1.0e+;", "'1.0e' is no number"},
    {".const .f64 x = 1.0f;", "'1.0f' is no number"},
    {".const .f64 x = 1e400;", "'1e400' is no number"},
    {".const .u32 x = 1e3;", "a decimal for a whole number of '.u32'"},
    {".const .f64 x = .;", "'.', which is not there"},
    {".const .f64 x = 1.5 % 2.0;", "'%' of numbers"},
    {".const .f64 x = ~1.5;", "'~' of numbers"},
    {".const .f64 x = (.s64)1.5;", "'(.s64)' of numbers"},
    {".const .f32 x = 0f3F800000 + 0f3F800000;", "'+' of numbers"},
    {".const .f64 x = 1.5 ? 1 : 2;", "'?:' of numbers"},
    {".const .f64 x = 1 ? 1.5 : 2;", "'?:' of numbers"},
    {".global .u8 a[1 - 2];", "a number up to"},
    {".entry k() { .reg .u64 p; st.u32 [p + 1.5], 1; }", "a whole number"},
    {".entry k() { .reg .u32 r; mov.u32 r, 4*r; }", "a number has to stand"},
};

static const struct {
    const char *text;
    uint64_t is;
} constants[] = {
    {"4*2", 8},
    {"(1<<4)|3", 19},
    {"1<<4|3", 19},
    {"2+3*4-6/2", 11},
    {"2-3-4", (uint64_t)-5},
    {"- -5", 5},
    {"-(2+3)*+2", (uint64_t)-10},
    {"~0xff & 0xffff", 0xff00},
    {"!5 + !0", 1},
    {"7 % 4", 3},
    {"7%4", 3},
    {"(7)%4", 3},
    {"7%(4)", 3},
    {"WARP_SZ%5*WARP_SZ", 64},
    {"-7 / 2", (uint64_t)-3},
    {"-7 / 2U", UINT64_C(0x7ffffffffffffffc)},
    {"-7 % 4", 1}, /* % is unsigned */
    {"-8 >> 1", (uint64_t)-4},
    {"(.u64)-8 >> 1", UINT64_C(0x7ffffffffffffffc)},
    {"~7 >> 1", UINT64_C(0x7ffffffffffffffc)}, /* ~ too */
    {"(.s64)~7 >> 1", (uint64_t)-4},
    {"-1 >> 100", UINT64_MAX},
    {"-1 << 64", 0},
    {"1 << 63 >> 63", UINT64_MAX},
    {"0x8000000000000000 >> 63", 1}, /* does not fit: unsigned */
    {"(.s64)0x8000000000000000 / -1", UINT64_C(1) << 63},
    {"-1 < 0", 1},
    {"-1 < 0U", 0},
    {"2 <= 2 == 1", 1},
    {"2 >= 3 != 1", 1},
    {"3 > 2 > 1", 0},
    {"6 & 3 == 3", 0},
    {"5 ^ 1 | 8 & 12", 12},
    {"2 && 0 || 3", 1},
    {"0 && 1 | 1", 0},
    {"1 ? 2 : 0 ? 3 : 4", 2},
    {"0 ? 2 : 0 ? 3 : 4", 4},
    {"(1 ? -1 : 0U) < 0", 0}, /* one is unsigned, so both */
    {"0xffffffffffffffff + 2", 1},
    {"010 + 0b11", 11},
    {"4/*2*/ *2//3\n", 8},
    {"1.5*2.0 == 3.0", 1},
    {"1.5 < -2.5 + 1.0", 0},
    {"1.5/-0.5", UINT64_C(0xc008000000000000)},
    {"-0d3FF0000000000000", UINT64_C(0xbff0000000000000)},
    {"0 ? 1.5 : 1.0", UINT64_C(0x3ff0000000000000)},
    {"1.0e-5", UINT64_C(0x3ee4f8b588e368f1)},
    {"2e3 == 2000.0", 1},
    {"-1.25E+2 == -125.", 1},
    {".5+.5", UINT64_C(0x3ff0000000000000)},
    {"007.50e00 == 7.5", 1},
    {"1e-3-1.0 < 0.0", 1},
    {"0x1e5-1", 0x1e4},
};

/* However long they are. */
TEST(ptx_decimals_have_any_number_of_digits)
{
    char *zeros = t_printf("%0500d", 0), *nines = t_printf("%0500d", 0);
    const struct {
        const char *text;
        double is;
    } rows[] = {{t_printf("0.%s1e501", zeros), 1},
                {t_printf("%s1.5%s", zeros, zeros), 1.5},
                {t_printf("1%s.0e-500", zeros), 1},
                {t_printf("0.%s", (char *)memset(nines, '9', 500)), 1}};

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        br_kir *m =
            ptx_load(t_printf(HEAD ".const .f64 x = %s;", rows[k].text));
        double is;

        memcpy(&is, m->vars.at[0].init, sizeof is);
        ck_assert_msg(is == rows[k].is, "%s: %g", rows[k].text, is);
        br_kir_free(m);
    }
}

/* The same in a variable, an operand and beside an address. */
TEST(ptx_constants_are_expressions)
{
    for (size_t k = 0; k < BR_COUNT(constants); k++) {
        const char *text = constants[k].text;
        br_kir *m = ptx_load(t_printf(HEAD ".const .b64 x = %s;", text));
        uint64_t is;

        memcpy(&is, m->vars.at[0].init, sizeof is);
        ck_assert_msg(is == constants[k].is, "%s: %llx", text,
                      (unsigned long long)is);
        br_kir_free(m);
    }
}

static const char *ptx_printed(const char *body);

TEST(ptx_operands_are_expressions)
{
    static const char *const same[][2] = {
        {"mov.u32 r, (1<<4)|3;", "mov.u32 r, 19;"},
        {"mov.u32 r, -(4);", "mov.u32 r, -4;"},
        {"mov.u32 r, !(4);", "mov.u32 r, 0;"},
        {"add.u32 r, r, 8%3;", "add.u32 r, r, 2;"},
        {"st.global.u32 [p + 4*2 - 4], 1+1;", "st.global.u32 [p+4], 2;"},
        {"st.global.u32 [p+-4], 7;", "st.global.u32 [p + (0 - 4)], 7;"},
        {"st.global.v2.u32 [p], {1|2, (3)};", "st.global.v2.u32 [p], {3, 3};"},
    };
    static const char *const calls[] = {"(2*3, (1<<2))", "(6, 4)"};
    char *text[2];

#define REGS "r; ld.param.u64 p, [o]; mov.u32 r, 9; st.global.u32 [p+64], r;"
    for (size_t k = 0; k < BR_COUNT(same); k++)
        ck_assert_str_eq(
            ptx_printed(t_printf(REGS "%s st.global.u32 [p], r;", same[k][0])),
            ptx_printed(t_printf(REGS "%s st.global.u32 [p], r;", same[k][1])));
#undef REGS
    for (size_t k = 0; k < 2; k++) { /* there parentheses are a list */
        br_str out = {0};
        br_kir *m = ptx_load(t_printf(
            HEAD ".func f(.reg .u32 a, .reg .u32 b) { ret; } .entry k() "
                 "{ call f, %s; ret; }",
            calls[k]));

        br_kir_print(m, &out);
        text[k] = t_printf("%s", br_str_z(&out));
        ck_assert_uint_eq(m->notes.n, 0);
        br_str_fini(&out);
        br_kir_free(m);
    }
    ck_assert_str_eq(text[0], text[1]);
}

/* As many as a file has room for. */
TEST(ptx_operands_side_by_side_are_nested)
{
    enum { TERMS = 200000 };
    char *text = t_keep(malloc(2 * TERMS + 200)), *at = text;
    br_status st = {0};

    at += sprintf(at, HEAD ".entry k() { .reg .b32 a; mov.u32 a, a");
    for (int i = 0; i < TERMS; i++)
        at += sprintf(at, "|a");
    (void)sprintf(at, "; ret; }");
    ck_assert_int_eq(refused(text, false, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "nested over"));
}

TEST(ptx_says_what_is_wrong_and_where)
{
    for (size_t k = 0; k < BR_COUNT(wrongs); k++) {
        br_status st = {0};

        ck_assert_msg(refused(wrongs[k].text, false, &st) != BR_OK,
                      "%s is accepted", wrongs[k].text);
        ck_assert_msg(strstr(st.msg, wrongs[k].says) != NULL,
                      "%s: '%s' does not say '%s'", wrongs[k].text, st.msg,
                      wrongs[k].says);
    }
}

/* Each of these costs one instruction and is an error when strict. */
static const struct {
    const char *ins, *says;
} gaps[] = {
    {"foo.bar.u32 %r1, %r2;", "foo.bar.u32: 'foo' is not known"},
    {"add.foo.u32 %r1, %r2, %r1;", "add.foo.u32: 'foo' is not known"},
    {"add.approx.f32 %r1, %r2, %r1;", "'approx' is not known"},
    {"add.u32 %r1, %r2, %zzz;", "'%zzz' is not declared"},
    {"add.u32 %r1, %r2;", "operand"},
    {"add.u64 %d1, %d1, %r1;", "too narrow"},
    {"add.u64 %r1, %d1, %d1;", "result is too narrow"},
    {"mul.wide.u64 %d1, %d1, %d1;", "twice as wide"},
    {"tex.2d.v4.f32.s32 {%r1,%r1,%r1,%r1}, [t, {%r1,%r1}];", "'tex' is not"},
    {"barrier.cluster.sync;", "this barrier is not supported"},
    {"cp.async.bulk.shared.global [%d1], [%d1], 16;", "not supported"},
    {"mov.u32 %r1, 1e3;", "a decimal is none of its types"},
    {"and.b32 %r1, %r1, 1.5;", "a decimal is none of its types"},
    {"st.global.v2.u32 [%d1], {%r1, 1.5};", "a decimal is none of its types"},
    {"mov.u64 %d1, 0d3ff0000000000000;", "a decimal is none of its types"},
    {"cp.async.bulk.tensor.1d.shared.global [%d1], [%d1, {%r1}], 16;",
     "'tensor' is not known"},
    {"lop3.b32 %r1, %r1, %r1, %r1, 256;", "truth table"},
    {"ld.global.v2.u32 %r1, [%d1];", "vector does not fit"},
    {"mov.b128 %d1, 5;", "vector does not fit"},
    {"add.b128 %d1, %d1, %d1;", "'b128' is not known"},
    {"ld.global.v2.b128 {%d1,%d1}, [%d1];", "'b128' is not known"},
    {"mov.u32 %r1, %clusterid.v;", "'%clusterid.v' is not declared"},
    {"mov.u32 %r1, %laneid.x;", "'%laneid.x' is not declared"},
    {"add.b32 %r1, %r1, %r1;", "does not take this type"},
    {"call foo, ();", "not declared"},
    {"setp.u32 %p1, %r1, %r2;", "comparison is missing"},
    {"setp.lt %p1, %r1, %r2;", "type is missing"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
     "{%r1},{%r1},{%r1},{%r1};",
     "registers does not fit"},
};

/* How many blocks a cluster has to have; what no cluster can have is refused. */
TEST(ptx_clusters_have_some_blocks)
{
    static const struct {
        const char *text;
        uint32_t want[3];
    } dims[] = {{"1", {1, 1, 1}}, {"1, 2, 1", {1, 2, 1}},
                {"2", {2, 1, 1}}, {"4,2,2", {4, 2, 2}},
                {"17", {0}},      {"1, 0", {0}}};

    for (size_t k = 0; k < BR_COUNT(dims); k++) {
        const char *text = t_printf(
            HEAD ".entry k()\n.explicitcluster\n.reqnctapercluster %s\n{\n"
                 "ret;\n}\n",
            dims[k].text);
        br_status st = {0};
        br_kir *m;

        if (br_ptx_parse(&m, text, strlen(text), NULL, &st) != BR_OK) {
            ck_assert_msg(strstr(st.msg, "1 to 16 blocks") != NULL, "%s",
                          st.msg);
            ck_assert_uint_eq(dims[k].want[0], 0);
            continue;
        }
        ck_assert_mem_eq(m->fns.at[0].cluster, dims[k].want,
                         sizeof dims[k].want);
        br_kir_free(m);
    }
}

TEST(ptx_what_is_not_known_costs_one_instruction)
{
    for (size_t k = 0; k < BR_COUNT(gaps); k++) {
        const char *text = t_printf(
            HEAD ".entry k() {\n.reg .b32 %%r<3>; .reg .b64 %%d<2>; .reg .pred "
                 "%%p<2>;\nmov.u32 %%r1, 1;\n%s\nret;\n}\n",
            gaps[k].ins);
        br_status st = {0};
        br_kir *m = ptx_load(text);

        ck_assert_msg(m->notes.n == 1, "%s: %zu notes", gaps[k].ins,
                      m->notes.n);
        ck_assert_uint_eq(m->notes.at[0].line, 7);
        ck_assert_msg(strstr(m->notes.at[0].text.p, gaps[k].says) != NULL,
                      "%s: '%s' does not say '%s'", gaps[k].ins,
                      m->notes.at[0].text.p, gaps[k].says);
        br_kir_free(m);
        ck_assert_int_eq(refused(text, true, &st), BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, "line 7: ") != NULL, "%s", st.msg);
    }
}

/* Everything the grammar has, in a file that strict accepts. */
static const char all[] =
    "// a comment\n.version 9.7\n.target sm_90a, texmode_independent\n"
    ".address_size 64\n"
    ".extern .shared .align 16 .b8 dyn[];\n"
    ".visible .global .align 8 .u64 ptrs[2] = {generic(tab)+4, tab};\n"
    ".global .align 4 .u32 tab[2][2] = {{1, 0x2U}, {03, 0b11}};\n"
    ".const .align 4 .f32 pi = 0f40490FDB;\n"
    ".global .f32 half = 0.5;\n"
    ".weak .func (.param .b32 r) f(.param .align 4 .b8 s[8]) .noreturn;\n"
    ".extern .func (.param .b32 rv) vprintf (.param .b64 a, .param .b64 b);\n"
    ".file 1 \"x.cu\"\n"
    ".visible .entry k(.param .u64 .ptr .global .align 16 p,\n"
    " .param .align 4 .b8 s[12])\n"
    ".maxntid 256, 1, 1\n.minnctapersm 2\n.reqntid 256\n"
    "{\n"
    ".pragma \"nounroll\";\n"
    ".reg .pred %p<4>, q; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<9>;\n"
    ".reg .f32 %f<5>; .reg .v2 .f32 v; .reg .f64 g;\n"
    ".local .align 8 .b8 frame[16];\n"
    ".shared .align 4 .u32 sh[4];\n"
    ".loc 1 10 3\n"
    "ld.param.u64 %d0, [p];\n"
    "ld.param.b32 %r0, [s+8];\n"
    "cvta.to.global.u64 %d1, %d0;\n"
    "mov.u64 %d2, frame;\ncvta.local.u64 %d3, %d2;\n"
    "mov.u32 %r1, sh;\nmov.u64 %d4, dyn;\nmov.u64 %d5, tab+4;\n"
    "mov.b64 %d6, {%r0, %r1};\nmov.b64 {%r2, %r3}, %d6;\nmov.b64 {_, %r3}, "
    "%d6;\n"
    "mov.b32 %r4, {%h0, %h1};\nmov.b32 {%h2, %h3}, %r4;\n"
    "mov.f32 v.x, 0f3F800000; mov.f32 v.y, v.x;\n"
    "st.shared.u32 [sh+4], WARP_SZ;\nst.local.u32 [frame], -1;\n"
    "st.volatile.global.v2.f32 [%d1+-8], v;\n"
    "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r5,%r6,%r7,_}, [%d1+16];\n"
    "setp.lt.and.f32 %p0|%p1, %f0, %f1, !q;\n"
    "@!%p0 add.rn.ftz.f32 %f2, %f0, 0f00000000;\n"
    "{ .reg .b32 %r; .reg .b32 t; mov.u32 t, 5; add.u32 %r, t, %r0; L: }\n"
    "$L__BB0_1:\n"
    "add.cc.u32 %r8, %r0, %r1; addc.u32 %r9, %r0, 0;\n"
    "@%p0 bra.uni $L__BB0_1;\n"
    "targets: .branchtargets $L__BB0_1, $L2;\n"
    "@%p1 brx.idx %r0, targets;\n"
    "$L2:\n"
    "@%p0 bar.sync 1, 64;\n"
    "bar.cta.sync 0;\nbarrier.cta.sync.aligned 0, 64;\n"
    "barrier.cta.red.popc.aligned.u32 %r10, 0, %p0;\n"
    "barrier.sync.aligned 0;\nbar.red.popc.u32 %r10, 0, %p0;\n"
    "shfl.sync.idx.b32 %r11|%p2, %r0, 0, 31, -1;\n"
    "vote.sync.ballot.b32 %r12, %p0, 0xffffffff;\n"
    "atom.global.add.f32 %f3, [%d1], 0f3F800000;\n"
    "red.relaxed.gpu.global.add.u32 [%d1], 1;\n"
    "atom.shared.cas.b32 %r13, [sh], 0, 1;\n"
    "membar.gl; fence.acq_rel.gpu; fence.proxy.async;\n"
    "cp.async.cg.shared.global.L2::128B [%r1], [%d1], 16, 8;\n"
    "cp.async.commit_group;\ncp.async.wait_group 0;\n"
    "prefetch.global.L2 [%d1]; nanosleep.u32 100;\n"
    "cvt.rn.f16x2.f32 %r14, %f0, %f1; cvt.rzi.s32.f32 %r15, %f0;\n"
    "isspacep.shared %p3, %d3;\n"
    "mov.u64 %d7, f;\n"
    "mov.u32 %r16, %lanemask_lt; mov.u64 %d8, %clock64;\n"
    "selp.f32 %f4, %f0, %f1, %p0; mov.f64 g, 0d3FF0000000000000;\n"
    "ret;\n}\n"
    ".section .debug_str\n{\n.b8 1, 2\n.b32 .debug_abbrev\n}\n";

TEST(ptx_grammar_is_read)
{
    br_status st = {0};
    br_kir *m;

    t_ok(br_ptx_parse(&m, all, sizeof all - 1, &(br_ptx_opts){.strict = true},
                      &st),
         &st);
    ck_assert_uint_eq(m->notes.n, 0);
    ck_assert_uint_eq(m->fns.n, 3);
    ck_assert_uint_eq(m->fns.at[2].param_bytes, 20);
    ck_assert_uint_eq(m->fns.at[2].max_threads, 256);
    ck_assert_uint_eq(m->fns.at[2].frame_bytes, 16);
    br_kir_free(m);
}

static br_code
parse_all(void *arg, br_status *st)
{
    br_kir *m;
    br_code code = br_ptx_parse(&m, arg, strlen(arg), NULL, st);

    if (code == BR_OK)
        br_kir_free(m);
    return code;
}

TEST_WITHIN(ptx_gives_everything_back_when_memory_runs_out, 60)
{
    t_each_oom(parse_all, t_printf("%s", all));
}

TEST(ptx_functions_and_names_keep_their_scopes)
{
    br_kir *m = ptx_load(HEAD ".entry a() { .reg .b32 x; { .reg .b32 x; .reg "
                              ".b64 y; mov.u32 x, 1; } mov.u32 x, 2; ret; }\n"
                              ".entry b() { .reg .b32 y; mov.u32 y, 2; ret; }");

    ck_assert_uint_eq(m->notes.n, 0);
    br_kir_free(m);
}

static const char *
ptx_printed(const char *body)
{
    br_kir *m = ptx_load(t_printf(
        HEAD ".entry k(.param .u64 o) { .reg .b64 p; .reg .b32 %s ret; }",
        body));
    br_str out = {0};
    const char *text;

    ck_assert_uint_eq(m->notes.n, 0);
    br_kir_print(m, &out);
    text = t_printf("%s", br_str_z(&out));
    br_str_fini(&out);
    br_kir_free(m);
    return text;
}

/* One register, or so many: what was declared inside is meant. */
TEST(ptx_registers_by_number_keep_their_scopes)
{
#define END "ld.param.u64 p, [o]; st.global.u32 [p], "
    static const char *const same[][2] = {
        {"r<9>; mov.u32 r1, 5; { .reg .b32 r1; mov.u32 r1, 7; } " END "r1;",
         "r<9>; mov.u32 r1, 5; { .reg .b32 q1; mov.u32 q1, 7; } " END "r1;"},
        {"r1; mov.u32 r1, 5; { .reg .b32 r<3>; mov.u32 r1, 7; } " END "r1;",
         "r1; mov.u32 r1, 5; { .reg .b32 q<3>; mov.u32 q1, 7; } " END "r1;"},
        {"r<9>; { .reg .b32 r<5>; mov.u32 r5, 5; mov.u32 r4, 7; } " END "r5;",
         "r<9>; { .reg .b32 q<5>; mov.u32 r5, 5; mov.u32 q4, 7; } " END "r5;"},
    };
#undef END

    for (size_t k = 0; k < BR_COUNT(same); k++)
        ck_assert_str_eq(ptx_printed(same[k][0]), ptx_printed(same[k][1]));
}

static bool
is_hopper(const char *note)
{
    static const char *const are[] = {"wgmma.", "st.async."};

    for (size_t k = 0; k < BR_COUNT(are); k++)
        if (strncmp(note, are[k], strlen(are[k])) == 0)
            return true;
    return false;
}

/* The kernels of this repository, and what compilers made of others. Nothing
 * of them is unknown but wgmma, which has no meaning on other processors, and
 * stores to other blocks of a cluster. */
TEST(ptx_of_compilers_is_read)
{
    static const char *const dirs[] = {"kernels/cuda/ptx", "tests/data/ptx"};

    for (size_t d = 0; d < BR_COUNT(dirs); d++)
        for (char **f = t_ls(t_repo(dirs[d]), ".ptx"); *f; f++) {
            br_status st = {0};
            size_t n;
            char *text = t_read(t_repo(t_printf("%s/%s", dirs[d], *f)), &n);
            br_kir *m;

            t_ok(br_ptx_parse(&m, text, n, NULL, &st), &st);
            for (size_t k = 0; k < m->notes.n; k++)
                ck_assert_msg(is_hopper(m->notes.at[k].text.p), "%s: %s", *f,
                              m->notes.at[k].text.p);
            t_ok(br_kir_optimise(m, NULL, &st), &st);
            br_kir_free(m);
        }
}
