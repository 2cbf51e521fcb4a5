/* test_brasscc.c - CUDA programs, compiled by brasscc and run.
 *
 * The programs of tests/cuda check themselves. Without a clang that can make
 * PTX, and under sanitizers (the programs are not ours to instrument), they are
 * skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
need_clang(void)
{
    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program("clang++-19") && !t_have_program("clang++"))
        t_skip("no clang++, which brasscc needs");
}

/* In waves of 64 lanes: some, all with BRASS_ALL_WAVE64, but those whose warps wait
 * for each other, which are refused (docs/kernels.md). */
static bool
in_wave64(const char *name)
{
    static const char *const some[] = {"linear", "collect", "groups"};
    static const char *const refused[] = {"atomics",   "barriers", "lanes",
                                          "recursion", "several",  "tiles"};
    bool yes = getenv("BRASS_ALL_WAVE64") != NULL;

    for (size_t k = 0; k < BR_COUNT(some); k++)
        yes |= strcmp(name, some[k]) == 0;
    for (size_t k = 0; k < BR_COUNT(refused); k++)
        yes &= strcmp(name, refused[k]) != 0;
    return yes;
}

/* on_gfx: on the simulated AMD processors, too. */
static void
program(const char *name, bool on_gfx)
{
    static const char *const on[] = {"gfx1100", "gfx1201", "gfx1100-wave64",
                                     "gfx1201-wave64"};
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
    for (int k = 0; on_gfx && k < (in_wave64(name) ? 4 : 2); k++) {
        setenv("BRASS_CUDA_ON", on[k], 1);
        t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s on %s ends with %d:\n%s%s", name,
                      getenv("BRASS_CUDA_ON"), r.exit, r.out, r.err);
    }
}

#define PROGRAM(name) TEST_WITHIN(cuda_program_##name, 60)

PROGRAM(vector_add)
{
    t_proc r;

    program("vector_add", true);
    setenv("BRASS_CUDA_ON", "", 1); /* as if it were not set */
    t_exec(&r, (const char *[]){t_printf("%s/vector_add", t_tmpdir()), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0 && r.n_err == 0, "%d: %s", r.exit, r.err);
}

/* brasscc takes clang 19 where it is; Debian 12's own is 14. */
TEST_WITHIN(cuda_program_of_another_clang, 60)
{
    if (!t_have_program("clang++-14"))
        t_skip("no clang++-14 here");
    setenv("BRASS_CLANG", "clang++-14", 1);
    program("language", false);
    program("order", false);
    program("overloads", false);
}

/* Doubles as pairs of floats. */
PROGRAM(pairs)
{
    const char *exe = t_printf("%s/pairs", t_tmpdir());
    t_proc r;

    need_clang();
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-O1", "--fp64=emulate",
                            t_repo("tests/cuda/pairs.cu"), "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0 && r.n_err == 0, "pairs:\n%s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "pairs ends with %d:\n%s%s", r.exit, r.out,
                  r.err);
}

PROGRAM(math)
{
    program("math", true);
}

PROGRAM(overloads)
{
    program("overloads", true);
}

PROGRAM(clocks)
{
    program("clocks", false);
}

PROGRAM(linear)
{
    program("linear", true);
}

PROGRAM(blas)
{
    program("blas", true);
}

PROGRAM(blas_first)
{
    program("blas_first", false);
}

PROGRAM(random)
{
    program("random", true);
}

PROGRAM(narrow)
{
    program("narrow", true);
}

PROGRAM(mlp)
{
    program("mlp", true);
}

PROGRAM(wmma)
{
    program("wmma", true);
}

PROGRAM(wmma_ptx)
{
    program("wmma_ptx", true);
}

PROGRAM(arrivals)
{
    program("arrivals", true);
}

PROGRAM(few_bits)
{
    program("few_bits", true);
}

/* Other blocks' shared memory; on AMD processors interpreted. */
PROGRAM(cluster_memory)
{
    program("cluster_memory", true);
}

PROGRAM(video)
{
    program("video", true);
}

PROGRAM(workspace)
{
    program("workspace", true);
}

PROGRAM(wide_atomics)
{
    program("wide_atomics", true);
}

PROGRAM(ising)
{
    program("ising", true);
}

PROGRAM(sobel)
{
    program("sobel", true);
}

PROGRAM(tiles)
{
    program("tiles", true);
}
PROGRAM(scattered)
{
    program("scattered", true);
}

/* What it touches behind the end of memory is told once. */
PROGRAM(ends)
{
    const char *exe = t_printf("%s/ends", t_tmpdir()), *first;
    t_proc r;

    program("ends", true);
    for (int k = 0; k < 2; k++) {
        if (k)
            setenv("BRASS_CUDA_ON", "interp", 1);
        else
            unsetenv("BRASS_CUDA_ON");
        t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "ends with %d:\n%s", r.exit, r.err);
        first = strstr(r.err, "block 0,0,0 thread 0,0,0: read of 4 bytes");
        ck_assert_msg(first && strstr(first, "let through"), "%s", r.err);
        ck_assert(!strstr(strstr(first, "let through") + 1, "let through"));
    }
}

PROGRAM(bits)
{
    program("bits", true);
}

PROGRAM(past_caches)
{
    program("past_caches", false);
}

PROGRAM(collect)
{
    program("collect", true);
}

PROGRAM(science)
{
    program("science", true);
}

PROGRAM(nn)
{
    program("nn", true);
}

PROGRAM(language)
{
    program("language", true);
}

PROGRAM(api)
{
    program("api", true);
}

PROGRAM(recursion)
{
    program("recursion", true);
}

PROGRAM(order)
{
    program("order", true);
}

PROGRAM(atomics)
{
    program("atomics", true);
}

PROGRAM(groups)
{
    program("groups", true);
}

PROGRAM(lanes)
{
    program("lanes", true);
}

PROGRAM(barriers)
{
    program("barriers", true);
}

PROGRAM(texture)
{
    program("texture", true);
}

/* Much to compile. */
TEST_WITHIN(cuda_program_cub_block, 240)
{
    program("cub_block", true);
}

TEST_WITHIN(cuda_program_cub_device, 240)
{
    program("cub_device", true);
}

TEST_WITHIN(cuda_program_thrust, 240)
{
    program("thrust", true);
}

TEST_WITHIN(cuda_program_thrust_forms, 240)
{
    program("thrust_forms", true);
}

/* Twenty programs, compiled as one. */
PROGRAM(several)
{
    program("several", true);
}

/* Two files, each compiled by itself; a library's part; and what does not link. */
TEST_WITHIN(brasscc_links_device_code, 60)
{
    const char *dir = t_tmpdir();
    const char *a = t_printf("%s/a.o", dir), *b = t_printf("%s/b.obj", dir);
    const char *l = t_printf("%s/l.o", dir), *exe = t_printf("%s/x", dir);
    t_proc r;

    need_clang();
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-O1", "-dc",
                            t_repo("tests/cuda/apart.cu"), "-o", a, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0 && r.n_err == 0, "%.1000s", r.err);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-O1", "-rdc=true", "-c",
                            t_repo("tests/cuda/apart_2.cu"), "-o", b, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0 && r.n_err == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){t_repo("brasscc"), a, b, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-dlink", a, b, "-o", l, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){t_repo("brasscc"), a, b, l, "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){t_repo("brasscc"), "-dlink", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 2, "%.1000s", r.err);
}

/* What a kernel of one file has made, those of another one read and free: on simulated
 * processors each file had a heap of its own. */
TEST_WITHIN(cuda_files_have_one_heap, 60)
{
    static const char *const on[] = {"", "gfx1100", "gfx1201"};
    static const char *const text[] = {
        "struct node { int v; node *next; };\n"
        "__global__ void make(node **h, int n) { *h = nullptr;\n"
        "for (int k = 0; k < n; k++) *h = new node{k, *h}; }\n"
        "void sum(node **, int *);\n"
        "int main() { node **h; int *o; cudaMalloc(&h, 8);\n"
        "cudaMallocManaged(&o, 4); make<<<1, 1>>>(h, 10); sum(h, o);\n"
        "make<<<1, 1>>>(h, 10); return cudaDeviceSynchronize() || *o != 45; "
        "}\n",
        "struct node { int v; node *next; };\n"
        "__global__ void take(node **h, int *o) { *o = 0;\n"
        "for (node *x = *h, *n; x; x = n) { *o += x->v; n = x->next; delete x; "
        "} }\n"
        "void sum(node **h, int *o) { take<<<1, 1>>>(h, o); }\n"};
    const char *cu[2], *exe = t_printf("%s/heap", t_tmpdir());
    t_proc r;

    need_clang();
    for (int k = 0; k < 2; k++) {
        cu[k] = t_printf("%s/heap%d.cu", t_tmpdir(), k);
        t_write(cu[k], text[k], strlen(text[k]));
    }
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), cu[0], cu[1], "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    for (size_t k = 0; k < BR_COUNT(on); k++) {
        setenv("BRASS_CUDA_ON", on[k], 1);
        t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s: %.1000s", on[k], r.err);
    }
}

/* What kernels print comes out where the host waits, in order, up to the size
 * of the buffer. */
TEST_WITHIN(cuda_printf_is_seen_where_the_host_waits, 60)
{
    const char *cu = t_printf("%s/p.cu", t_tmpdir());
    const char *exe = t_printf("%s/p", t_tmpdir());
    static const char text[] =
        "#include <stdio.h>\n#include <assert.h>\n"
        "__global__ void k(int n) { printf(\"%d %s %5.2f|%x %c %lld %u%%\\n\","
        " n, \"word\", 1.5f * n, 255, 'z', 1ll << 40, 7u); }\n"
        "__global__ void many() { printf(\"%06d\\n\", (int)threadIdx.x); }\n"
        "__global__ void check(int n) { assert(n == 2); }\n"
        "int main() { printf(\"a\\n\"); k<<<1, 1>>>(2); printf(\"b\\n\");\n"
        "cudaDeviceSynchronize();\n"
        "cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 70);\n"
        "many<<<1, 1000>>>(); cudaDeviceSynchronize();\n"
        "check<<<1, 1>>>(3);\n"
        "return cudaDeviceSynchronize() != cudaErrorAssert; }\n";
    t_proc r;

    need_clang();
    t_write(cu, text, sizeof text - 1);
    t_exec(&r, (const char *[]){t_repo("brasscc"), cu, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, "a\nb\n2 word  3.00|ff z 1099511627776 7%\n"
                            "000000\n000001\n000002\n000003\n000004\n000005\n"
                            "000006\n000007\n000008\n000009\n");
    ck_assert_msg(strstr(r.err, "assertion `n == 2' failed") != NULL, "%s",
                  r.err);
    setenv("BRASS_CUDA_ON", "gfx1201", 1);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_msg(strstr(r.err, "assertion `n == 2' failed") != NULL, "%s",
                  r.err);
}

/* CMake reads in the words of -v whom to link with, and the architecture. */
TEST_WITHIN(brasscc_is_a_cuda_compiler_for_cmake, 120)
{
    const char *dir = t_tmpdir(), *text;
    t_proc r;

    need_clang();
    if (!t_have_program("cmake") || !t_have_program("make"))
        t_skip("no cmake here");
    text = t_printf("cmake_minimum_required(VERSION 3.18)\n"
                    "project(t LANGUAGES CXX CUDA)\nadd_executable(v %s)\n",
                    t_repo("tests/cuda/vector_add.cu"));
    t_write(t_printf("%s/CMakeLists.txt", dir), text, strlen(text));
    t_exec(&r,
           (const char *[]){
               "cmake", "-S", dir, "-B", t_printf("%s/b", dir),
               t_printf("-DCMAKE_CUDA_COMPILER=%s", t_repo("brasscc")), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r,
           (const char *[]){"cmake", "--build", t_printf("%s/b", dir), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s%.1000s", r.out, r.err);
    t_exec(&r, (const char *[]){t_printf("%s/b/v", dir), NULL}, NULL, 0);
    ck_assert_int_eq(r.exit, 0);
}

/* Flags of nvcc, objects, PTX, and what is refused. */
TEST_WITHIN(brasscc_takes_the_flags_of_nvcc, 60)
{
    static const char nested[] =
        "__global__ void k(int *p) { *p = 1; }\n"
        "__global__ void l(int *p) { k<<<1, 1>>>(p); }\n";
    const char *dir = t_tmpdir(), *cu = t_repo("tests/cuda/vector_add.cu");
    const char *o = t_printf("%s/v.o", dir), *exe = t_printf("%s/v x", dir);
    const char *p = t_printf("%s/v.ptx", dir);
    static const struct {
        const char *flag, *says;
    } bad[] = {{"--nonsense", "unknown option --nonsense"},
               {"-cubin", "-ptx makes PTX"},
               {"--fp64=some", "--fp64=some"},
               {"--target=amd", "target amd is not there"},
               {"no/such.cu", "no/such.cu: no such file"}};
    CUcontext ctx;
    CUmodule mod;
    t_proc r;

    need_clang();
    t_exec(&r,
           (const char *[]){t_repo("brasscc"),
                            "-c",
                            cu,
                            "-o",
                            o,
                            "-O3",
                            "-std=c++14",
                            "-gencode",
                            "arch=compute_80,code=sm_80",
                            "--use_fast_math",
                            "-ftz=true",
                            "-Xcudafe",
                            "--diag_suppress=177",
                            "-diag-error=20012",
                            "-Werror",
                            "cross-execution-space-call",
                            "--allow-unsupported-compiler",
                            "--expt-relaxed-constexpr",
                            "-Xcompiler",
                            "-Wall,-Wextra",
                            "-lineinfo",
                            "-DN=1",
                            "-DT=x",
                            "-DX=7",
                            "-I",
                            dir,
                            "--ptx-strict",
                            NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){t_repo("brasscc"), o, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-ptx", "-arch=sm_90", cu, "-o",
                            p, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    ck_assert(strstr(t_read(p, NULL), ".entry") != NULL);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-fatbin", cu, "-o", o, NULL},
           NULL, 0);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxCreate(&ctx, 0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoad(&mod, o), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleUnload(mod), CUDA_SUCCESS);
    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        t_exec(&r, (const char *[]){t_repo("brasscc"), bad[k].flag, NULL}, NULL,
               0);
        ck_assert_msg(r.exit == 2 && strstr(r.err, bad[k].says),
                      "%s: %d: %.300s", bad[k].flag, r.exit, r.err);
    }
    t_write(t_printf("%s/t.cu", dir), "#include <cub/absent.cuh>\n", 26);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-c", t_printf("%s/t.cu", dir),
                            NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 1 &&
                      strstr(r.err, "cub/absent.cuh is not a part of Brass"),
                  "%d: %.300s", r.exit, r.err);
    t_write(t_printf("%s/d.cu", dir), nested, strlen(nested));
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-c", t_printf("%s/d.cu", dir),
                            NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 1 && strstr(r.err, "d.cu:2:") &&
                      strstr(r.err, "kernels do not launch kernels"),
                  "%d: %.1000s", r.exit, r.err);
}

/* Without -o each kind of file is called as its source, in the folder one is in. */
TEST_WITHIN(brasscc_names_what_it_makes_as_nvcc_does, 60)
{
    static const char *const made[][2] = {
        {"-ptx", "my v.ptx"}, {"-fatbin", "my v.fatbin"}, {"-c", "my v.o"}};
    static const char source[] = "__global__ void k(int *p) { *p = 1; }\n";
    const char *dir = t_tmpdir();

    need_clang();
    t_write(t_printf("%s/my v.cu", dir), source, strlen(source));
    for (size_t k = 0; k < BR_COUNT(made); k++) {
        const char *script = t_printf("cd '%s' && '%s' %s 'my v.cu'", dir,
                                      t_repo("brasscc"), made[k][0]);
        t_proc r;

        t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s: %.1000s", made[k][0], r.err);
        ck_assert_int_eq(access(t_printf("%s/%s", dir, made[k][1]), F_OK), 0);
    }
}

/* What a program may call without a header, as with nvcc; and it is for an
 * architecture that lacked some of what lanes.cu does. */
TEST_WITHIN(brasscc_takes_older_architectures, 60)
{
    static const char bare[] =
        "int main()\n"
        "{\n"
        "    int sum = 0, a[2] = {3, 4};\n"
        "    for (int x : {1, 2, 3}) sum += x;\n"
        "    std::swap(a[0], a[1]);\n"
        "    std::pair<int, int> p(a[0], std::move(a[1]));\n"
        "    return time(0) == 0 || clock() < 0 || sum + p.first != 10;\n"
        "}\n";
    const char *cu = t_printf("%s/bare.cu", t_tmpdir());
    const char *from[] = {t_repo("tests/cuda/lanes.cu"), cu};
    const char *exe = t_printf("%s/x", t_tmpdir());
    t_proc r;

    need_clang();
    t_write(cu, bare, strlen(bare));
    for (int k = 0; k < 2; k++) {
        t_exec(&r,
               (const char *[]){t_repo("brasscc"), "-O1", "-arch=sm_60",
                                from[k], "-o", exe, NULL},
               NULL, 0);
        ck_assert_msg(r.exit == 0, "%.1000s", r.err);
        t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
        ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    }
}

/* Makefiles name the toolkit's headers; here they are a trap. */
TEST_WITHIN(brasscc_reads_no_toolkit, 60)
{
    static const char trap[] = "#error a header of the toolkit\n";
    static const char *const files[] = {"cuda_runtime.h", "cuda_runtime_api.h",
                                        "crt/host_config.h"};
    const char *dir = t_tmpdir(), *cu = t_repo("tests/cuda/vector_add.cu");
    const char *o = t_printf("%s/v.o", dir);
    t_proc r;

    need_clang();
    ck_assert_int_eq(mkdir(t_printf("%s/crt", dir), 0777), 0);
    for (size_t k = 0; k < BR_COUNT(files); k++)
        t_write(t_printf("%s/%s", dir, files[k]), trap, strlen(trap));
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), t_printf("-I%s", dir),
                            "-isystem", dir, "-c", cu, "-o", o, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
}

/* Device code of an archive, linked when the program is. */
TEST_WITHIN(brasscc_makes_archives, 60)
{
    const char *dir = t_tmpdir(), *a = t_printf("%s/libtwo.a", dir);
    const char *exe = t_printf("%s/apart", dir);
    t_proc r;

    need_clang();
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-rdc=true", "-lib",
                            t_repo("tests/cuda/apart_2.cu"), "-o", a, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-rdc=true",
                            t_repo("tests/cuda/apart.cu"), a, "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
}

/* OpenMP on the host, in what clang compiles and in what g++ does; which sees the
 * headers of half precision, too. */
TEST_WITHIN(brasscc_takes_openmp, 60)
{
    const char *dir = t_tmpdir(), *exe = t_printf("%s/x", dir);
    const char *cu = t_printf("%s/a.cu", dir);
    const char *cpp = t_printf("%s/b.cpp", dir);
    static const char b[] =
        "#include <cublas_v2.h>\n#include <cuda_fp8.h>\n"
        "#include <curand_kernel.h>\n"
        "int other(int n) { int s = (int)(float)__half(0.25f);\n"
        "#pragma omp parallel for reduction(+ : s)\n"
        "for (int k = 0; k < n; k++) s += k;\nreturn s; }\n";
    static const char a[] =
        "#include <omp.h>\n"
        "int other(int n);\n"
        "__global__ void k(int *p) { *p += 7; }\n"
        "int main() { int s = 0, *p; omp_lock_t l; omp_init_lock(&l);\n"
        "#pragma omp parallel for schedule(dynamic)\n"
        "for (int k = 0; k < 100; k++)\n"
        "{ omp_set_lock(&l); s += k; omp_unset_lock(&l); }\n"
        "cudaMallocManaged(&p, 4); *p = other(100); k<<<1, 1>>>(p);\n"
        "cudaDeviceSynchronize(); omp_destroy_lock(&l);\n"
        "return s != 4950 || *p != 4957; }\n";
    t_proc r;

    need_clang();
    t_write(cu, a, sizeof a - 1);
    t_write(cpp, b, sizeof b - 1);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), "-Xcompiler", "-fopenmp", cu,
                            cpp, "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%d: %.1000s", r.exit, r.err);
}

/* Formatters for C take a launch's brackets apart; nvcc has <omp.h> from g++, and
 * warns of a number that an initializer cuts. */
TEST_WITHIN(brasscc_takes_what_nvcc_lets_through, 60)
{
    const char *dir = t_tmpdir(), *exe = t_printf("%s/x", dir);
    const char *cu = t_printf("%s/a.cu", dir);
    static const char a[] =
        "#include <omp.h>\n#include <vector>\n"
        "__global__ void k(int *p) { atomicAdd(p, 1); }\n"
        "int main(int c, char **) { int *p, n[] = {c * 1.5};\n"
        "std::vector<std::vector<std::vector<int>> >(3);\n"
        "cudaMallocManaged(&p, 4); *p = 0; k << <1, 32 >> > (p);\n"
        "k << < dim3(2),\n 32 >> >(p); k<<<1, 1>>>(p);\n"
        "cudaDeviceSynchronize(); return *p != 97 || *n != 1 || "
        "omp_get_max_threads() < 1;"
        " }\n";
    t_proc r;

    need_clang();
    t_write(cu, a, sizeof a - 1);
    t_exec(&r,
           (const char *[]){t_repo("brasscc"), cu, "-lgomp", "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%d: %.1000s", r.exit, r.err);
}

/* As on the host: words have a width and a precision, too. */
TEST_WITHIN(cuda_printf_pads_words, 60)
{
    const char *cu = t_printf("%s/p.cu", t_tmpdir());
    const char *exe = t_printf("%s/p", t_tmpdir());
    static const char text[] =
        "#include <stdio.h>\n"
        "#define P \"%6s|%-6s|%.2s|%-5.3s|%*s|%.*s|%s|%10p|%-8p|%5c|"
        "%hd %hhd %hu %hhx\\n\", "
        "\"abc\", \"abc\", \"abc\", \"abcdef\", 5, \"ab\", 1, \"ab\", \"\", "
        "(void *)0x1f, (void *)0x2, 'z', 70000, 200, 70000, -1\n"
        "__global__ void k() { printf(P); }\n"
        "int main(int c, char **) { if (c > 1) printf(P);\n"
        "else k<<<1, 1>>>(); return cudaDeviceSynchronize(); }\n";
    t_proc host, dev;

    need_clang();
    t_write(cu, text, sizeof text - 1);
    t_exec(&dev, (const char *[]){t_repo("brasscc"), cu, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(dev.exit == 0, "%.1000s", dev.err);
    t_exec(&host, (const char *[]){exe, "host", NULL}, NULL, 0);
    t_exec(&dev, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_int_eq(dev.exit, 0);
    ck_assert_str_eq(dev.out, host.out);
    ck_assert_str_eq(dev.out, "   abc|abc   |ab|abc  |   ab|a||      0x1f|"
                              "0x2     |    z|4464 -56 4464 ff\n");
}

/* A kernel's words, each 0 where it is as nvcc's header has it. */
static void
words_are_right(const char *header, const char *body)
{
    const char *cu = t_printf("%s/w.cu", t_tmpdir());
    const char *exe = t_printf("%s/w", t_tmpdir());
    const char *text =
        t_printf("#include <%s>\n#include <stdio.h>\n"
                 "__global__ void k(long long *o) { int n = 0;\n"
                 "#define IS(x) if (!(x)) o[n] = 1; n++\n%s }\n"
                 "int main() { long long *o; cudaMallocManaged(&o, 320);\n"
                 "for (int i = 0; i < 40; i++) o[i] = 0; k<<<1, 32>>>(o);\n"
                 "int e = cudaDeviceSynchronize(), bad = 0;\n"
                 "for (int i = 0; i < 40; i++)\n"
                 "if (o[i]) bad = 1, printf(\"%%d\\n\", i);\n"
                 "return e || bad; }\n",
                 header, body);
    t_proc r;

    need_clang();
    t_write(cu, text, strlen(text));
    t_exec(&r, (const char *[]){t_repo("brasscc"), cu, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "word %s%.300s", r.out, r.err);
}

/* A NaN is unequal to nothing, but by __hneu, != and their pairs. */
TEST_WITHIN(cuda_halves_that_are_no_numbers, 60)
{
    words_are_right(
        "cuda_fp16.h",
        "__half q = __ushort_as_half(0x7e00), u(1.f), z(0.f);\n"
        "__half2 a(q, u), b(u, z), c(u, u);\n"
        "IS(!__hne(q, u)); IS(__hneu(q, u)); IS(q != u); IS(__hne(u, z));\n"
        "IS(__hne2_mask(a, b) == 0xffff0000u); IS(!__hbne2(a, b));\n"
        "IS(__half2float(__hne2(a, b).x) == 0); IS(__hbneu2(a, b));\n"
        "IS(__half2float(__hne2(a, b).y) == 1); IS(a != b);\n"
        "IS(!(a == a)); IS(c == c); IS(c >= b); IS(!(b < c));\n"
        "IS(!(c != b)); IS(b <= c); IS(!(c > b));\n"
        "IS(__half2ull_rn(q) == 1ull << 63); IS(__half2int_rz(q) == 0);\n"
        "IS(__half2ll_rd(q) == (long long)(1ull << 63));\n");
    words_are_right("cuda_bf16.h",
                    "__nv_bfloat16 q = __ushort_as_bfloat16(0x7fc0), u(1.f);\n"
                    "IS(!__hne(q, u)); IS(__hneu(q, u)); IS(q != u);\n"
                    "IS(__bfloat162ull_ru(q) == 1ull << 63);\n"
                    "IS(__bfloat162uint_ru(q) == 0);\n");
}

/* Three bits choose a byte, as the manual says; prmt's fourth would spread its
 * sign. */
TEST_WITHIN(cuda_bytes_are_chosen_by_three_bits, 60)
{
    words_are_right(
        "cuda_runtime.h",
        "unsigned s = 0x8765 + (clock() == 0);\n"
        "IS(__byte_perm(0x84838281u, 0x88878685u, s & 0xffff) == "
        "0x81888786u);\n"
        "IS(__byte_perm(0x84838281u, 0, 0xfedc8321u) == 0x81848382u);\n"
        "double z = -0.0 * s; IS(signbit(remainder(z, 3.)));\n"
        "IS(!signbit(remainder(-z, 3.)) && signbit(remainderf((float)z, "
        "2)));\n");
}

/* Far from where they are usual, beside what NVIDIA's libdevice gives. */
TEST_WITHIN(cuda_mathematics_at_the_edges, 60)
{
    words_are_right(
        "cuda_runtime.h",
        "#define NEAR(x, y) IS(fabs((x) - (y)) <= 1e-15 * fabs(y))\n"
        "double one = 1 + (clock() == 0), far = one * 1e17;\n"
        "NEAR(erfcx(far), 5.6418958354775628e-18);\n"
        "NEAR(erfcx(one * 1e8), 5.6418958354775624e-09);\n"
        "NEAR(erfcx(one * 100), 0.0056416137829894329);\n"
        "NEAR(erfcx(one * 1e300), 5.6418958354775629e-301);\n"
        "NEAR(cyl_bessel_i1(-one), -0.56515910399248503);\n"
        "NEAR(cyl_bessel_i1f(-1.f), -0.565159082f);\n"
        "IS(cyl_bessel_i1(-3000 * one) < -1e308);\n"
        "NEAR(lgamma(-5e-324 * one), 744.44007192138122);\n"
        "NEAR(lgamma(2.5e305 * one), 1.7555118602376452e308);\n"
        "NEAR(lgamma(1e290 * one), 6.667496769682733e292);\n"
        "NEAR(erfc(21.632797241210938 * one), 1.4983829601293954e-205);\n"
        "IS(isinf(lgamma(1e308 * one)) && lgamma(1e308 * one) > 0);\n"
        "NEAR(erfcinv(1 - 0x1p-28 * one), 0.88622692545275801 * 0x1p-28);\n"
        "NEAR(erfcinv(1 + 0x1p-28 * one), -0.88622692545275801 * 0x1p-28);\n"
        "IS(!signbit(normcdfinv(.5 * one)) && !signbit(cospi(.5 * one)));\n"
        "NEAR(cbrt(0x1p-1074 * one), 0x1p-358);\n");
}

TEST_WITHIN(cuda_words_that_were_not_there, 60)
{
    words_are_right(
        "cuda_fp16.h",
        "__half2 r = __hcmadd(__half2(1.f, 2.f), __half2(3.f, 4.f), "
        "__half2(5.f, 6.f));\n"
        "IS(__half2float(r.x) == 0 && __half2float(r.y) == 16);\n"
        "int p, l = threadIdx.x;\n"
        "IS(__match_any_sync(~0u, l < 8) == (l < 8 ? 255u : ~255u));\n"
        "IS(__match_any_sync(~0u, (short)(l & 1)) == 0x55555555u << (l & 1));\n"
        "IS(__match_all_sync(~0u, (unsigned char)7, &p) == ~0u && p);\n"
        "IS(__match_all_sync(~0u, l > 3, &p) == 0 && !p);\n");
}

/* Shared memory has no constructors: a thread makes what lies there. */
TEST_WITHIN(cuda_semaphores_lie_in_shared_memory, 60)
{
    words_are_right(
        "cuda/semaphore",
        "typedef cuda::binary_semaphore<cuda::thread_scope_block> sem;\n"
        "__shared__ sem s; if (!threadIdx.x) new (&s) sem(1);\n"
        "__syncthreads();\n"
        "if (threadIdx.x == 1) { s.acquire(); IS(!s.try_acquire());\n"
        "s.release(); IS(s.try_acquire()); }\n");
}

/* An object of NVIDIA's compiler: packed PTX, its own way to launch. */
TEST_WITHIN(cuda_objects_of_nvcc_run, 120)
{
    const char *o = t_printf("%s/l.o", t_tmpdir());
    const char *exe = t_printf("%s/l", t_tmpdir());
    const char *nvcc =
        t_have_program("nvcc") ? "nvcc" : "/usr/local/cuda/bin/nvcc";
    t_proc r;

    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program(nvcc))
        t_skip("no nvcc");
    t_exec(&r,
           (const char *[]){nvcc, "-c", "-gencode",
                            "arch=compute_80,code=compute_80",
                            t_repo("tests/cuda/collect.cu"), "-o", o, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){t_repo("brasscc"), o, "-o", exe, NULL}, NULL,
           0);
    ck_assert_msg(r.exit == 0, "%.1000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%.1000s%.1000s", r.out, r.err);
}
