/* test_cg_kir.c - the kernel IR: text, verifier, passes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static const char small[] =
    "kir sm_80\n"
    "note 3 \"foo.bar: 'foo' is not known\"\n"
    "var global tab align 4 bytes 8 init 0100000002000000\n"
    "  at 0 bytes 8 sym sh 4 generic\n"
    "var shared sh align 16 bytes 64\n"
    "func k entry line 1 param_bytes 8\n"
    "  param p 0 8 8\n"
    "b0:\n"
    "  %0 = ld.param.u64 0 !2\n"
    "  %1 = sreg.b32 $tid.x\n"
    "  %2 = setp.lt.u32 %1 0x10\n"
    "  cbr %2 b1 b2\n"
    "b1:\n"
    "  %3 = mulwide.u32 %1 4\n"
    "  %4 = addr @tab #4\n"
    "  %5, %6 = addc.u32 %1 1 0\n"
    "  bar 0 0\n"
    "  br b2\n"
    "b2:\n"
    "  %7 = phi.b32 b0:undef b1:%5\n"
    "  st.global.v.f32 %0 %7\n"
    "  trap #1\n"
    "  ret\n"
    "end\n"
    "func declared entry extern param_bytes 8 max_threads 64 req_threads 32 "
    "block_x 8 block_y 4 block_z 1 max_cluster 4 cluster_x 2 cluster_y 1 "
    "cluster_z 1\n"
    "  param q 0 8 8\n"
    "end\n";

static char *
good_text(void)
{
    char *s = t_printf("%s", small), *at = strstr(s, ".v.f32");

    memmove(at, at + 2, strlen(at + 2) + 1);
    return s;
}

static br_code
parse(const char *text, br_status *st)
{
    br_kir *m;
    br_code code = br_kir_parse(&m, text, strlen(text), st);

    if (code == BR_OK)
        br_kir_free(m);
    return code;
}

TEST(kir_text_comes_back_the_same)
{
    char *text = good_text();
    br_status st = {0};
    br_str out = {0};
    br_kir *m;

    t_ok(br_kir_parse(&m, text, strlen(text), &st), &st);
    br_kir_print(m, &out);
    ck_assert_str_eq(out.at, text);
    br_str_fini(&out);
    br_kir_free(m);
}

/* What is replaced by what, and a word of the message. */
static const struct {
    const char *from, *to, *says;
} wrongs[] = {
    /* text */
    {"kir sm_80\n", "kir sm_80\nfoo\n", "kir, note, var or func"},
    {"mulwide.u32", "mulwyde.u32", "no such operation"},
    {"setp.lt.u32", "setp.lt.u32.q", "not a modifier or type"},
    {"setp.lt.u32", "setp.lt.gt.u32", "two modifiers of one kind"},
    {"%3 = mulwide", "%4 = mulwide", "numbered in their order"},
    {"b2:\n", "b3:\n", "numbered in their order"},
    {"%7 = phi", "%7, %8 = phi", "not so many results"},
    {"b1:%5", "b2:%5", "not its predecessor"},
    {"cbr %2 b1 b2", "cbr %2 b1 b7", "a target that is not there"},
    {"%1 0x10", "%1 0x100000000", "too large for its class"},
    {"%1 0x10", "%1 %99", "nothing defines"},
    {"@tab", "@tub", "no symbol"},
    {"$tid.x", "$tid.w", "no such special register"},
    {"init 01", "init 0102", "two digits for each byte"},
    {"init 01", "init zz", "not hexadecimal"},
    {"end\n", "", "no such operation"},
    {"q 0 8 8\nend\n", "q 0 8 8\n", "without its end"},
    {"func k entry", "func k sentry", "not a property"},
    {"#4\n", "#4x\n", "does not belong"},
    /* types, modifiers */
    {"mulwide.u32 %1 4", "mulwide.u64 %0 4", "twice as wide"},
    {"mulwide.u32", "mulwide.f32", "does not take this type"},
    {"addc.u32", "addc", "does not take this type"},
    {"mulwide.u32", "mulwide.u32.u32", "second type"},
    {"setp.lt.u32", "setp.u32", "needs a comparison"},
    {"  trap #1\n", "  fence.cta\n  %8 = redux.b32 %7 1\n  trap #1\n",
     "needs its modifier"},
    /* arguments */
    {"mulwide.u32 %1 4", "mulwide.u32 %0 4", "wrong class"},
    {"mulwide.u32 %1 4", "mulwide.u32 %1", "number of arguments"},
    {"st.global.f32 %0 %7", "st.global.f32 %0 %7 %7 %7 %7 %7 %7 %7 %7 %7",
     "one to eight"},
    /* uses */
    {"mulwide.u32 %1 4", "mulwide.u32 %5 4", "used before"},
    {"st.global.f32 %0 %7", "st.global.f32 %0 %5", "used before"},
    {"b0:undef b1:%5", "b0:%5 b1:%5", "used before"},
    /* blocks */
    {"  cbr %2 b1 b2\n", "  cbr %2 b2 b2\n", "not its predecessor"},
    {"  cbr %2 b1 b2\n", "  cbr %2 b0 b2\n", "has a predecessor"},
    {"  br b2\n", "  br b2 b2\n", "number of targets"},
    {"  bar 0 0\n  br b2\n", "  br b2\n  bar 0 0\n", "one terminator"},
    {"  bar 0 0\n", "  bar 0 0\n  fence\n", "right before the terminator"},
    {"  ret\n", "", "one terminator"},
    {"  st.global.f32 %0 %7\n",
     "  st.global.f32 %0 %7\n  %8 = phi.b32 b0:1 b1:1\n", "phis come first"},
    {"  ret\nend", "  br b0\nend", "predecessor"},
    {"  ret\nend", "  ret\nb3:\n  ret\nend", "nothing reaches"},
    /* numbers and places */
    {"trap #1", "trap #2", "without its note"},
    {"sreg.b32", "sreg.b64", "another class"},
    {"param p 0 8 8", "param p 4 8 8", "outside of its place"},
    {"align 16", "align 12", "alignment or size"},
    {"at 0 bytes 8", "at 4 bytes 8", "outside of it"},
    {"  trap #1\n", "  %8 = lop3 %7 %7 %7 #256\n  trap #1\n", "eight bits"},
    {"  trap #1\n", "  cpasync %0 %0 4 #5\n  trap #1\n", "4, 8 or 16"},
    {"  trap #1\n", "  %8 = alloca %0 #3\n  trap #1\n", "power of two"},
    {"  trap #1\n", "  call @&k\n  trap #1\n", "call does not fit"},
};

TEST(kir_says_what_is_wrong)
{
    for (size_t k = 0; k < BR_COUNT(wrongs); k++) {
        const char *text = good_text(), *at = strstr(text, wrongs[k].from);
        br_status st = {0};

        ck_assert_msg(at != NULL, "%s is not in the text", wrongs[k].from);
        text = t_printf("%.*s%s%s", (int)(at - text), text, wrongs[k].to,
                        at + strlen(wrongs[k].from));
        ck_assert_msg(parse(text, &st) != BR_OK, "%s is accepted",
                      wrongs[k].to);
        ck_assert_msg(strstr(st.msg, wrongs[k].says) != NULL,
                      "%s: '%s' does not say '%s'", wrongs[k].to, st.msg,
                      wrongs[k].says);
    }
}

static br_code
parse_and_pass(void *arg, br_status *st)
{
    br_kir *m;
    br_code code = br_kir_parse(&m, arg, strlen(arg), st);

    if (code != BR_OK)
        return code;
    code = br_kir_optimise(m, NULL, st);
    br_kir_free(m);
    return code;
}

TEST(kir_gives_everything_back_when_memory_runs_out)
{
    t_each_oom(parse_and_pass, good_text());
}

/* tests/golden/cg/NAME.txt: comments, "; RUN: pass", PTX, "; EXPECT", KIR. */
static void
golden(const char *path)
{
    char *text = t_read(path, NULL), *run = strstr(text, "; RUN: ");
    char *expect = strstr(text, "; EXPECT\n"), pass[16] = "";
    br_status st = {0};
    br_str out = {0};
    br_kir *m;
    size_t n;

    ck_assert_msg(run && expect, "%s: RUN or EXPECT is missing", path);
    n = strcspn(run + 7, "\n");
    ck_assert_uint_lt(n, sizeof pass);
    memcpy(pass, run + 7, n);
    run += 7 + n;
    if (strncmp(run, "\nkir", 4) == 0)
        t_ok(br_kir_parse(&m, run + 1, (size_t)(expect - run - 1), &st), &st);
    else
        t_ok(br_ptx_parse(&m, run, (size_t)(expect - run), NULL, &st), &st);
    t_ok(br_kir_optimise(m, pass, &st), &st);
    br_str_put(&out, text, (size_t)(expect + 9 - text));
    br_kir_print(m, &out);
    t_golden(path, out.at);
    br_str_fini(&out);
    br_kir_free(m);
}

TEST(kir_passes_do_what_the_golden_files_say)
{
    char **files = t_ls(t_repo("tests/golden/cg"), ".txt");
    int n = 0;

    for (; *files; files++, n++)
        golden(t_printf("tests/golden/cg/%s", *files));
    ck_assert_int_ge(n, 4);
}
