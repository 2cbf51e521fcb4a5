/* test_cli_kernel.c - brass kernel run, inspect, compile: as a user sees them.
 *
 * The kernels are those of tests/data/ptx/blocks.cu, compiled by two compilers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const compilers[] = {"tests/data/ptx/blocks.clang.ptx",
                                        "tests/data/ptx/blocks.nvcc.ptx"};

static float *
floats(const char *path, size_t n, uint64_t seed)
{
    float *v = t_keep(malloc(n * sizeof *v));

    for (size_t k = 0; k < n; k++)
        v[k] = (float)(t_rand(&seed) % 64) - 31; /* sums are exact */
    t_write(path, v, n * sizeof *v);
    return v;
}

TEST(kernel_run_reduces)
{
    const char *dir = t_tmpdir(), *in = t_printf("%s/in", dir);
    const char *out = t_printf("%s/out", dir);
    float *v = floats(in, 1024, 1);

    for (size_t c = 0; c < BR_COUNT(compilers); c++) {
        const float *got;
        t_proc r;
        size_t n;

        t_run(&r, "kernel", "run", t_repo(compilers[c]), "--entry", "reduce",
              "--grid", "4", "--block", "256", "--check", "--arg",
              t_printf("buf:%s", in), "--arg", t_printf("buf:%s:out=16", out));
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        ck_assert_str_eq(r.err, "");
        got = (const float *)(void *)t_read(out, &n);
        ck_assert_uint_eq(n, 16);
        for (int b = 0; b < 4; b++) {
            float sum = 0;

            for (int k = 0; k < 256; k++)
                sum += v[256 * b + k];
            ck_assert(got[b] == sum);
        }
    }
}

TEST(kernel_run_multiplies_matrices)
{
    enum { N = 20 };
    const char *dir = t_tmpdir(), *out = t_printf("%s/c", dir);
    float *a = floats(t_printf("%s/a", dir), N * N, 2);
    float *b = floats(t_printf("%s/b", dir), N * N, 3);

    for (size_t c = 0; c < BR_COUNT(compilers); c++) {
        const float *got;
        t_proc r;

        t_run(&r, "kernel", "run", t_repo(compilers[c]), "--entry", "matmul",
              "--grid", "2,2", "--block", "16,16", "--check", "--arg",
              t_printf("buf:%s/a", dir), "--arg", t_printf("buf:%s/b", dir),
              "--arg", t_printf("buf:%s:out=%d", out, N * N * 4), "--arg",
              t_printf("u32:%d", N));
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        got = (const float *)(void *)t_read(out, NULL);
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++) {
                float sum = 0;

                for (int k = 0; k < N; k++)
                    sum += a[y * N + k] * b[k * N + x];
                ck_assert(got[y * N + x] == sum);
            }
    }
}

TEST(kernel_run_counts_bytes_in_place)
{
    const char *dir = t_tmpdir(), *bins = t_printf("%s/bins", dir);
    uint32_t want[256] = {0}, zero[256] = {0};
    uint8_t in[3000];
    uint64_t seed = 4;

    for (size_t k = 0; k < sizeof in; k++)
        want[in[k] = (uint8_t)(t_rand(&seed) >> 40)]++;
    t_write(t_printf("%s/in", dir), in, sizeof in);
    t_write(bins, zero, sizeof zero);
    for (size_t c = 0; c < BR_COUNT(compilers); c++) {
        t_proc r;

        t_run(&r, "kernel", "run", t_repo(compilers[c]), "--entry", "histogram",
              "--grid", "3", "--block", "96", "--shared", "1k", "--check",
              "--arg", t_printf("buf:%s/in", dir), "--arg", "u32:3000", "--arg",
              t_printf("buf:%s:inout", bins));
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        ck_assert_mem_eq(t_read(t_printf("%s.out", bins), NULL), want,
                         sizeof want);
        ck_assert_mem_eq(t_read(bins, NULL), zero, sizeof zero);
    }
}

TEST(kernel_run_takes_structures_by_value)
{
    const char *out = t_printf("%s/out", t_tmpdir());

    for (size_t c = 0; c < BR_COUNT(compilers); c++) {
        const int32_t *got;
        t_proc r;

        /* low 100, high -7, sum 5000000000 */
        t_run(&r, "kernel", "run", t_repo(compilers[c]), "--entry", "structs",
              "--block", "8", "--check", "--arg",
              "raw:64000000f9ffffff00f2052a01000000", "--arg",
              t_printf("buf:%s:out=32", out));
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        got = (const int32_t *)(void *)t_read(out, NULL);
        ck_assert_int_eq(got[0], 100);
        ck_assert_int_eq(got[1], -21);
        ck_assert_int_eq(got[2], 102 ^ -7);
        ck_assert_int_eq(got[3], (int32_t)(5000000000 - 3));
        ck_assert_int_eq(got[4], 104 / -7);
        ck_assert_int_eq(got[5], -105);
        ck_assert_int_eq(got[6], 6);
    }
}

TEST(kernel_run_says_what_is_wrong)
{
    static const struct {
        const char *args[8];
        int exit;
        const char *says;
    } rows[] = {
        {{"--entry", "nothing"}, 3, "no kernel 'nothing'"},
        {{NULL}, 2, "holds 4 kernels: --entry has to name one"},
        {{"--entry", "reduce"}, 2, "has 2 parameters, and there are 0"},
        {{"--entry", "reduce", "--arg", "u32:1", "--arg", "u32:2"},
         2,
         "--arg u32:1: the parameter"},
        {{"--entry", "reduce", "--arg", "buf:/none", "--arg", "u64:2"},
         3,
         "/none"},
        {{"--entry", "reduce", "--arg", "foo", "--arg", "u64:2"},
         2,
         "buf: rand: u32: s32:"},
        {{"--entry", "reduce", "--arg", "u64:-1", "--arg", "u64:2"},
         2,
         "not a number of this type"},
        {{"--entry", "reduce", "--arg", "u64:1", "--arg", "u64:2", "--block",
          "0"},
         2,
         "--block: X, X,Y or X,Y,Z"},
        {{"--entry", "reduce", "--arg", "u64:1", "--arg", "u64:2", "--block",
          "2000"},
         2,
         "at most"},
        {{"--entry", "reduce", "--arg", "u64:4", "--arg", "u64:2"},
         1,
         "no memory there"},
        {{"--entry", "reduce", "--on", "vulkan"}, 5, "here are: interp x86-64"},
    };

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        const char *argv[16] = {t_brass(), "kernel", "run",
                                t_repo(compilers[0])};
        t_proc r;

        for (int a = 0; a < 8 && rows[k].args[a]; a++)
            argv[4 + a] = rows[k].args[a];
        t_exec(&r, argv, NULL, 0);
        ck_assert_msg(r.exit == rows[k].exit && strstr(r.err, rows[k].says),
                      "%zu: exit %d, '%s' does not say '%s'", k, r.exit, r.err,
                      rows[k].says);
    }
}

TEST(kernel_run_check_ends_with_a_verdict)
{
    static const char racy[] =
        ".version 7.0\n.target sm_70\n.entry k(.param .u64 p)\n{\n"
        ".shared .b32 x; .reg .b32 %r<2>;\nmov.u32 %r0, %tid.x;\n"
        "st.shared.u32 [x], %r0;\nld.shared.u32 %r1, [x];\nret;\n}\n";
    const char *path = t_printf("%s/racy.ptx", t_tmpdir());
    t_proc r;

    t_write(path, racy, sizeof racy - 1);
    t_run(&r, "kernel", "run", path, "--block", "64", "--arg", "u64:0");
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "kernel", "run", path, "--block", "64", "--arg", "u64:0",
          "--check");
    ck_assert_int_eq(r.exit, 4);
    ck_assert_msg(strstr(r.err, "racy.ptx: line 7: race: ") != NULL, "%s",
                  r.err);
}

/* A function that does what the kernel does, and one that does not. */
TEST(kernel_bench_holds_a_kernel_against_c)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n"
        ".entry twice(.param .u64 p, .param .f32 f)\n{\n"
        ".reg .u64 %d<3>; .reg .u32 %r0; .reg .f32 %f<2>;\n"
        "ld.param.u64 %d0, [p];\nld.param.f32 %f1, [f];\n"
        "mov.u32 %r0, %tid.x;\nmul.wide.u32 %d1, %r0, 4;\n"
        "add.u64 %d2, %d0, %d1;\nld.global.f32 %f0, [%d2];\n"
        "mul.f32 %f0, %f0, %f1;\nst.global.f32 [%d2], %f0;\nret;\n}\n";
    static const char c[] =
        "void twice(void *const *args) { float *p = *(float **)args[0];\n"
        "for (int k = 0; k < 64; k++) p[k] *= BY * *(float *)args[1]; }\n";
    const char *dir = t_tmpdir(), *file = t_printf("%s/x.ptx", dir);
    const char *argv[] = {t_brass(), "kernel",     "bench", file,
                          "--block", "64",         "--arg", "rand:256",
                          "--arg",   "f32:0.5",    NULL,    NULL,
                          NULL,      "1000000000", NULL};
    const char *on[] = {"interp", "x86-64", "x86-64-avx2", "cuda", "gfx1100"};
    t_proc r;

    if (!t_have_program("cc"))
        t_skip("no cc");
    t_write(file, ptx, sizeof ptx - 1);
    t_write(t_printf("%s/x.c", dir), c, sizeof c - 1);
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "twice") && strstr(r.out, " ms"),
                  "%s%s", r.out, r.err);
    /* what its help names has times, and nothing else is taken */
    t_run(&r, "kernel", "bench", "--help");
    ck_assert_ptr_nonnull(
        strstr(r.out, "what runs it: interp, x86-64, x86-64-avx2 [x86-64]"));
    argv[10] = "--on";
    for (size_t i = 0; i < BR_COUNT(on); i++) {
        argv[11] = on[i];
        t_exec(&r, argv, NULL, 0);
        ck_assert_msg(r.exit == (i < 3 ? 0 : 2), "%s: %s", on[i], r.err);
    }
    argv[10] = "--max-ratio";
    argv[11] = "2";
    t_exec(&r, argv, NULL, 0);
    ck_assert_int_eq(r.exit, 2);
    argv[10] = "--against";
    argv[12] = "--max-ratio";
    for (int by = 1; by <= 2; by++) {
        argv[11] = t_printf("%s/%d.so", dir, by);
        t_exec(&r, argv, NULL, 0);
        ck_assert_int_eq(r.exit, 3); /* not made yet */
        t_exec(&r,
               (const char *[]){"/usr/bin/env", "cc", "-shared", "-fPIC",
                                t_printf("-DBY=%d", by),
                                t_printf("%s/x.c", dir), "-o", argv[11], NULL},
               NULL, 0);
        ck_assert_msg(r.exit == 0, "%s", r.err);
        t_exec(&r, argv, NULL, 0);
        ck_assert_msg(r.exit == by - 1, "%s%s", r.out, r.err);
        ck_assert(strstr(by == 1 ? r.out : r.err,
                         by == 1 ? "ratio" : "differ: float"));
    }
    argv[11] = t_printf("%s/1.so", dir);
    argv[13] = "0.000001";
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 1 && strstr(r.err, "over --max-ratio"), "%s",
                  r.err);
}

TEST(kernel_inspect_and_compile_show_a_file)
{
    const char *file = compilers[0];
    t_proc r, again;

    t_run(&r, "kernel", "inspect", file);
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/cli/kernel_inspect.txt", r.out);
    t_run(&r, "kernel", "inspect", file, "--json");
    t_golden("tests/golden/cli/kernel_inspect.json", r.out);
    t_run(&r, "kernel", "compile", file, "--entry", "reduce");
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/cli/kernel_compile.txt", r.out);
    t_run(&r, "kernel", "compile", file);
    t_write(t_printf("%s/x.kir", t_tmpdir()), r.out, r.n_out);
    t_run(&again, "kernel", "compile", t_printf("%s/x.kir", t_tmpdir()),
          "--dump", "input");
    ck_assert_str_eq(again.out, r.out);
    t_run(&r, "kernel", "compile", file, "--dump", "nothing");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "kernel", "compile", file, "--target", "metal");
    ck_assert_int_eq(r.exit, 5);
}

TEST(kernel_files_that_are_machine_code_are_named)
{
    const char *co = t_printf("%s/x.co", t_tmpdir());
    char cubin[64] = "\177ELF";
    t_proc r;

    t_run(&r, "kernel", "compile", compilers[0], "--target", "gfx1201", "-o",
          co);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    t_run(&r, "kernel", "inspect", co);
    ck_assert_int_eq(r.exit, 3);
    ck_assert_msg(strstr(r.err, "x.co: a code object, not PTX; brass gcn"),
                  "%s", r.err);
    cubin[18] = (char)190;
    t_write(co, cubin, sizeof cubin);
    t_run(&r, "kernel", "run", co);
    ck_assert_int_eq(r.exit, 3);
    ck_assert_msg(strstr(r.err, "x.co: machine code (ELF), not PTX; nvcc -ptx"),
                  "%s", r.err);
}

/* A comparison that a later block of a line of threads needs, beside another
 * that the block ends with. */
TEST(kernel_diff_keeps_comparisons_for_later)
{
    static const char ptx[] =
        ".version 8.0\n.target sm_80\n"
        ".entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<4>; .reg .b64 %d<3>, %w; .reg .pred %p, %q;\n"
        "mov.u32 %r0,%tid.x; mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x;\n"
        "mad.lo.u32 %r3,%r1,%r2,%r0; setp.lt.u32 %p,%r0,63;\n"
        "cvt.s64.s32 %w,%r3; setp.ge.u64 %q,%w,19; @!%q bra E;\n"
        "ld.param.u64 %d0,[out]; shl.b64 %w,%w,3; add.u64 %d0,%d0,%w;\n"
        "selp.b64 %d1,7,9,%p; st.global.u64 [%d0],%d1;\nE: ret;\n}\n";
    const char *file = t_printf("%s/x.ptx", t_tmpdir());
    t_proc r;

    t_write(file, ptx, sizeof ptx - 1);
    t_run(&r, "kernel", "diff", file, "--grid", "2", "--block", "64", "--arg",
          "rand:1024");
    if (r.exit == 5)
        t_skip("%s", r.err);
    ck_assert_msg(r.exit == 0, "%s%s", r.out, r.err);
}

/* What has vector code for constants alone: bytes picked, lanes changed. */
TEST(kernel_diff_of_bytes_and_shuffles)
{
    br_str s = {0};
    const char *file = t_printf("%s/x.ptx", t_tmpdir());
    static const char *const modes[] = {"bfly", "up", "down", "idx"};
    static const unsigned ends[] = {31, 0, 0x1c1f, 0x1800, 0x1007};
    uint64_t seed = 1;
    t_proc r;

    br_str_puts(&s, ".version 8.0\n.target sm_80\n"
                    ".entry k(.param .u64 a, .param .u64 o)\n{\n"
                    ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;\n"
                    "mov.u32 %r0,%tid.x; mul.wide.u32 %d0,%r0,4;\n"
                    "ld.param.u64 %d1,[a]; ld.param.u64 %d2,[o];\n"
                    "add.u64 %d1,%d1,%d0; add.u64 %d2,%d2,%d0;\n"
                    "ld.global.u32 %r1,[%d1]; ld.global.u32 %r2,[%d1+256];\n"
                    "mov.u32 %r4,%r0;\n");
    for (int k = 0; k < 40; k++)
        br_str_printf(&s,
                      "prmt.b32 %%r3,%%r1,%%r2,%u; xor.b32 %%r4,%%r4,%%r3;\n"
                      "mad.lo.u32 %%r4,%%r4,5,1; "
                      "dp4a.%c32.%c32 %%r4,%%r1,%%r2,%%r4;\n",
                      (unsigned)t_rand(&seed) & 0x7777, "us"[k & 1],
                      "us"[k / 2 & 1]);
    for (size_t m = 0; m < BR_COUNT(modes) * BR_COUNT(ends); m++)
        br_str_printf(&s,
                      "shfl.sync.%s.b32 %%r3|%%p,%%r4,%u,%u,-1; "
                      "xor.b32 %%r4,%%r4,%%r3;\nselp.b32 %%r3,3,7,%%p; "
                      "add.u32 %%r4,%%r4,%%r3;\n",
                      modes[m % 4], (unsigned)t_rand(&seed) & 31, ends[m / 4]);
    br_str_puts(&s, "st.global.u32 [%d2],%r4; ret;\n}\n");
    t_write(file, s.at, s.n);
    br_str_fini(&s);
    t_run(&r, "kernel", "diff", file, "--block", "64", "--arg", "rand:512",
          "--arg", "rand:256");
    if (r.exit == 5)
        t_skip("%s", r.err);
    ck_assert_msg(r.exit == 0, "%s%s", r.out, r.err);
}

/* Kinds of targets differ by the bits of a NaN, the last bit of ex2, and by
 * which of two racing threads comes last. */
TEST(kernel_diff_names_thread_and_value)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n"
        ".entry nans(.param .u64 p)\n{\n"
        ".reg .u64 %d<3>; .reg .u32 %r<3>; .reg .f32 %f<2>; .reg .pred %q;\n"
        "ld.param.u64 %d0, [p];\n"
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
        "mad.lo.u32 %r1, %r1, 64, %r0; mul.wide.u32 %d1, %r1, 4;\n"
        "add.u64 %d2, %d0, %d1; cvt.rn.f32.u32 %f0, %r1;\n"
        "setp.ge.u32 %q, %r1, 70; @%q mov.f32 %f0, 0f7F800000;\n"
        "mul.f32 %f1, %f0, 0f00000000;\n"
        "st.global.f32 [%d2], %f1;\nret;\n}\n"
        ".entry same(.param .u64 p)\n{\nret;\n}\n"
        ".entry bad(.param .u64 p)\n{\n.reg .u64 %d0;\n"
        "ld.param.u64 %d0, [p];\nst.global.u64 [%d0+1024], %d0;\nret;\n}\n";
    const char *dir = t_tmpdir(), *file = t_printf("%s/x.ptx", dir);
    const char *argv[] = {t_brass(), "kernel",   "diff", file,      "--entry",
                          "same",    "--grid",   "2",    "--block", "64",
                          "--arg",   "rand:512", NULL,   NULL,      NULL};
    t_proc r;

    t_write(file, ptx, sizeof ptx - 1);
    t_exec(&r, argv, NULL, 0);
    if (r.exit == 5)
        t_skip("%s", r.err);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_str_eq(r.out, "the same on interp and x86-64\n");
    argv[5] = "nans";
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 4, "%s%s", r.out, r.err);
    ck_assert_msg(strstr(r.out, "rand:512: byte 280 is nan (0x7fffffff) on "
                                "interp, -nan (0xffc00000) on x86-64\n") &&
                      strstr(r.out, "block 1,0,0 thread 6,0,0 at line 12 of "),
                  "%s", r.out);
    argv[12] = "--json";
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(strstr(r.out, "{\"same\":false,\"buffer\":0,\"byte\":280,") &&
                      strstr(r.out, "\"thread\":[6,0,0],\"line\":12}\n"),
                  "%s", r.out);
    argv[12] = "--ulp"; /* NaNs are steps apart, too: more than this */
    argv[13] = "1000";
    t_exec(&r, argv, NULL, 0);
    ck_assert_int_eq(r.exit, 4);
    argv[12] = "--on"; /* beside the interpreter itself */
    argv[13] = "interp";
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 0, "%s%s", r.out, r.err);
    argv[5] = "bad"; /* both stop */
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 1 && strstr(r.err, "line 23: block 0,0,0 thread "),
                  "%s%s", r.out, r.err);
}

/* brass kernel with the arguments a, up to NULL, where libcuda.so.1 is our own: it
 * runs on this processor. A device that another test has is waited for. */
static void
on_cuda(t_proc *r, const char *const *a)
{
    const char *dir = t_tmpdir(), *argv[24] = {"env"};
    const char *lib = t_repo(t_printf("build/%s/libbrasscuda.so", t_conf()));
    size_t n = 1;

    if (t_sanitized() || access(lib, R_OK) != 0)
        t_skip("our CUDA driver is not in this build");
    (void)!symlink(lib, t_printf("%s/libcuda.so.1", dir));
    argv[n++] = t_printf("LD_LIBRARY_PATH=%s", dir);
    argv[n++] = t_brass();
    argv[n++] = "kernel";
    while (n < BR_COUNT(argv) - 1 && *a)
        argv[n++] = *a++;
    for (int i = 0; i < 60; i++) {
        t_exec(r, argv, NULL, 0);
        if (r->exit == 0 || !strstr(r->err, "in use by process"))
            return;
        sleep(1);
    }
}
#define ON_CUDA(r, ...) on_cuda((r), (const char *[]){__VA_ARGS__, NULL})

TEST_WITHIN(kernel_run_gives_ptx_to_a_cuda_driver, 90)
{
    const char *dir = t_tmpdir(), *in = t_printf("%s/in", dir);
    const char *out = t_printf("buf:%s/out:out=16", dir);
    float *v = floats(in, 1024, 1);

    for (size_t c = 0; c < BR_COUNT(compilers); c++) {
        const char *file = t_repo(compilers[c]);
        const float *got;
        t_proc r;

        ON_CUDA(&r, "run", file, "--entry", "reduce", "--grid", "4", "--block",
                "256", "--arg", t_printf("buf:%s", in), "--arg", out, "--on",
                "cuda");
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        got = (const float *)(void *)t_read(t_printf("%s/out", dir), NULL);
        for (int b = 0; b < 4; b++) {
            float sum = 0;

            for (int k = 0; k < 256; k++)
                sum += v[256 * b + k];
            ck_assert(got[b] == sum);
        }
        ON_CUDA(&r, "diff", file, "--entry", "reduce", "--grid", "4", "--block",
                "256", "--arg", t_printf("buf:%s", in), "--arg", out, "--on",
                "cuda");
        ck_assert_msg(r.exit == 0, "%s: %s", compilers[c], r.err);
        ck_assert_str_eq(r.out, "the same on interp and cuda\n");
    }
}

/* A variable comes back from the card, so diff sees it; a number that is the
 * address of a buffer to us is a number there. */
TEST_WITHIN(kernel_run_on_cuda_knows_numbers_from_addresses, 90)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".global .u64 seen = 3;\n"
        ".entry k(.param .u64 p, .param .u64 q)\n{\n"
        ".reg .b64 %d<3>;\nld.param.u64 %d0, [p]; ld.param.u64 %d1, [q];\n"
        "st.global.u64 [%d0], %d1; add.u64 %d1, %d1, 1;\n"
        "st.global.u64 [seen], %d1;\nret;\n}\n";
    const char *dir = t_tmpdir(), *file = t_printf("%s/k.ptx", dir);
    const char *out = t_printf("buf:%s/out:out=8", dir);
    uint64_t got;
    t_proc r;

    t_write(file, text, sizeof text - 1);
    ON_CUDA(&r, "run", file, "--arg", out, "--arg", "u64:0x100000000", "--on",
            "cuda");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    memcpy(&got, t_read(t_printf("%s/out", dir), NULL), 8);
    ck_assert_uint_eq(got, 1ull << 32);
    ON_CUDA(&r, "diff", file, "--arg", out, "--arg", "u64:0x100000000", "--on",
            "cuda");
    ck_assert_msg(r.exit == 0, "%s%s", r.out, r.err);
}

TEST_WITHIN(kernel_run_on_cuda_says_what_went_wrong, 90)
{
    const char *dir = t_tmpdir(), *in = t_printf("%s/in", dir);
    const char *text = t_printf("%s/k.kir", dir);
    const struct {
        const char *args[8];
        int exit;
        const char *says;
    } rows[] = {
        {{"--arg", t_printf("buf:%s", in), "--arg", "u64:4"},
         1,
         "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {{"--arg", t_printf("buf:%s", in), "--arg", t_printf("buf:%s", in)},
         1,
         "in: read only"},
        {{"--arg", t_printf("buf:%s", in), "--arg", "u64:4", "--check"},
         2,
         "--on interp"},
    };
    t_proc r;

    floats(in, 1024, 1);
    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        const char *argv[20] = {"run",     t_repo(compilers[1]),
                                "--entry", "reduce",
                                "--block", "256",
                                "--on",    "cuda"};

        for (int a = 0; a < 8 && rows[k].args[a]; a++)
            argv[8 + a] = rows[k].args[a];
        on_cuda(&r, argv);
        ck_assert_msg(r.exit == rows[k].exit && strstr(r.err, rows[k].says),
                      "%zu: exit %d, '%s' does not say '%s'", k, r.exit, r.err,
                      rows[k].says);
    }
    ON_CUDA(&r, "compile", t_repo(compilers[1]), "-o", text);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ON_CUDA(&r, "run", text, "--entry", "reduce", "--on", "cuda", "--arg",
            "u64:0", "--arg", "u64:0");
    ck_assert_msg(r.exit == 2 && strstr(r.err, "is no PTX"), "%s", r.err);
    /* Without a driver. */
    t_run(&r, "kernel", "run", t_repo(compilers[1]), "--entry", "reduce",
          "--on", "cuda", "--arg", "u64:0", "--arg", "u64:0");
    ck_assert_int_eq(r.exit, access("/dev/nvidiactl", F_OK) == 0 ? 1 : 5);
}

TEST(kernel_run_says_which_size_of_a_block_is_too_large)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n"
                              ".entry nothing()\n{\nret;\n}\n";
    static const struct {
        const char *block, *says;
    } of[] = {
        {"2048", "a block of 2048 x 1 x 1 threads: at most 1024, 1024"},
        {"4,2000000000,9", "4 x 2000000000 x 9 threads: at most 1024"},
        {"1,1,65", "a block of 1 x 1 x 65 threads: at most 1024, 1024, 64"},
        {"32,33", "a block of 1056 threads, over 1024"},
        {"16,1,64", NULL}};
    const char *file = t_printf("%s/x.ptx", t_tmpdir());
    t_proc r;

    t_write(file, ptx, sizeof ptx - 1);
    for (size_t k = 0; k < BR_COUNT(of); k++) {
        t_run(&r, "kernel", "run", file, "--block", of[k].block);
        ck_assert_msg(of[k].says ? r.exit && strstr(r.err, of[k].says) != NULL
                                 : r.exit == 0,
                      "%s: %s", of[k].block, r.err);
    }
}
