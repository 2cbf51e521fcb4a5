/* test_ptx_join.c - several files of PTX as one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/kir.h"
#include "cg/ptx/ptx.h"
#include "cuda/ptx_join.h"

#include <string.h>

T_ONE_THREAD();

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static const char one[] =
    HEAD ".file 1 \"a.cu\"\n"
         ".extern .func (.param .b32 r) other (.param .b32 p);\n"
         ".extern .global .align 4 .u32 shared; /* mine } */ // mine {\n"
         ".weak .func both() { ret; }\n"
         ".global .align 1 .b8 mine[3] = {1, 2, 3};\n"
         ".visible .entry k(.param .u64 o) { .reg .b32 %r<2>; .reg .b64 %d;\n"
         "ld.global.u8 %r0, [mine+1]; call both; mov.u64 %d, mine; ret; }\n"
         ".section .debug_str { .b8 1; }\n";
static const char two[] =
    HEAD ".func (.param .b32 r) mine (.param .b32 mine_p) { ret; }\n"
         ".weak .func both() { trap; }\n"
         ".visible .global .align 4 .u32 shared = 7;\n"
         ".global .u64 at = mine; .pragma \"x;y\";\n"
         ".visible .func (.param .b32 r) other (.param .b32 p) {\n"
         "{ .reg .b32 t; call (t), mine, (t); } ret; }";

static br_code
joined(const char *a, const char *b, br_str *out, br_status *st)
{
    br_text files[] = {br_text_z(a), br_text_z(b)};

    return br_ptx_join(files, 2, out, st);
}

static int
count(const br_str *s, const char *what)
{
    int n = 0;

    for (size_t k = 0, m = strlen(what); k + m <= s->n; k++)
        n += memcmp(s->at + k, what, m) == 0;
    return n;
}

TEST(ptx_join_links)
{
    br_str s = {0};
    br_status st = {0};
    br_kir *m = NULL;
    uint32_t v;

    t_ok(joined(one, two, &s, &st), &st);
    ck_assert_int_eq(count(&s, "mine$L0"), 3);
    ck_assert_int_eq(count(&s, "mine$L1"), 3);
    ck_assert_int_eq(count(&s, "mine_p"), 1);
    ck_assert_int_eq(count(&s, ".version"), 1);
    ck_assert_int_eq(count(&s, "trap"), 0);
    t_ok(br_ptx_parse(&m, s.at, s.n, &(br_ptx_opts){.strict = true}, &st), &st);
    v = br_kir_find_var(m, br_text_z("shared"));
    ck_assert_uint_ne(v, BR_KNONE);
    ck_assert_uint_eq(m->vars.at[v].bytes, 4);
    v = br_kir_find_fn(m, br_text_z("other"));
    ck_assert(v != BR_KNONE && !m->fns.at[v].external);
    br_kir_free(m);
    br_str_fini(&s);
}

TEST(ptx_join_tells_what_does_not_fit)
{
    static const struct {
        const char *a, *b, *says;
    } bad[] = {
        {".visible .func f() { }", ".visible .func f() { }",
         "'f' is defined in files 1 and 2"},
        {".extern .global .u32 x;", ".extern .const .u32 x;",
         "no file defines the variable 'x'"},
        {".visible .func f() {", "", "file 1 of a program for the device"},
        {"", ".global .b8 x[2] = { \"};\"", "file 2"}};

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        br_str s = {0};
        br_status st = {0};

        ck_assert_int_eq(joined(bad[k].a, bad[k].b, &s, &st), BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, bad[k].says) != NULL, "%s", st.msg);
        br_str_fini(&s);
    }
}

/* A strong definition wins over a weak one, wherever it stands. */
TEST(ptx_join_prefers_the_strong)
{
    static const char weak[] = ".weak .func f() { weak; }";
    static const char strong[] = ".visible .func f() { strong; }";

    for (int k = 0; k < 2; k++) {
        br_str s = {0};
        br_status st = {0};

        t_ok(joined(k ? weak : strong, k ? strong : weak, &s, &st), &st);
        ck_assert_int_eq(count(&s, "strong"), 1);
        ck_assert_int_eq(count(&s, "weak"), 0);
        br_str_fini(&s);
    }
}

static br_code
once(void *arg, br_status *st)
{
    br_str s = {0};
    br_code code = joined(one, two, &s, st);

    (void)arg;
    br_str_fini(&s);
    return code;
}

TEST(ptx_join_without_memory)
{
    t_each_oom(once, NULL);
}
