/* test_brasscc.c - CUDA programs, compiled by brasscc and run.
 *
 * The programs of tests/cuda check themselves. Without a clang that can make
 * PTX, and under sanitizers (the programs are not ours to instrument), they are
 * skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

static void
need_clang(void)
{
    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program("clang++-19") && !t_have_program("clang++"))
        t_skip("no clang++, which brasscc needs");
}

static void
program(const char *name)
{
    const char *exe = t_printf("%s/%s", t_tmpdir(), name);
    t_proc r;

    need_clang();
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-O1",
                            t_repo(t_printf("tests/cuda/%s.cu", name)), "-o",
                            exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%s does not compile:\n%s", name, r.err);
    ck_assert_msg(r.n_err == 0, "%s compiles with:\n%s", name, r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%s ends with %d:\n%s%s", name, r.exit, r.out,
                  r.err);
}

#define PROGRAM(name) TEST_WITHIN(cuda_program_##name, 60)

PROGRAM(vector_add)
{
    program("vector_add");
}

PROGRAM(math)
{
    program("math");
}

PROGRAM(linear)
{
    program("linear");
}

PROGRAM(collect)
{
    program("collect");
}

PROGRAM(science)
{
    program("science");
}

PROGRAM(nn)
{
    program("nn");
}

PROGRAM(language)
{
    program("language");
}
