/* test_brasscc_bounds.c - what a kernel says of its blocks and clusters, by brasscc.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdlib.h>
#include <string.h>

/* Compiles without a word and runs, by clang 14, too, where that is there. */
static void
compiles_and_runs(const char *source, const char *flag)
{
    static const char *const clangs[] = {"", "clang++-14"};
    const char *cu = t_printf("%s/p.cu", t_tmpdir());
    const char *exe = t_printf("%s/p", t_tmpdir());
    t_proc r;

    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program("clang++-19") && !t_have_program("clang++"))
        t_skip("no clang++, which brasscc needs");
    t_write(cu, source, strlen(source));
    for (size_t k = 0; k < BR_COUNT(clangs); k++) {
        if (*clangs[k] && !t_have_program(clangs[k]))
            continue;
        setenv("BRASS_CLANG", clangs[k], 1);
        t_exec(&r,
               (const char *[]){t_repo("brasscc"), "-O1", flag, cu, "-o", exe,
                                NULL},
               NULL, 0);
        ck_assert_msg(!r.exit && !r.n_err, "%s: %.2000s", clangs[k], r.err);
        t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
        ck_assert_msg(!r.exit, "%s: %d %.500s", clangs[k], r.exit, r.err);
    }
}

/* Each kernel has the clusters that it asks for, templates their own; a grid that they
 * do not fill is refused. One that asks for nothing has none. */
static const char clusters[] =
    "#include <cooperative_groups.h>\n"
    "namespace cg = cooperative_groups;\n"
    "constexpr int N = 4;\n"
    "__device__ int all[16];\n"
    "#define TELL all[blockIdx.y * gridDim.x + blockIdx.x] = "
    "cg::this_cluster().num_blocks() * 10 + cg::this_cluster().block_rank()\n"
    "template <int X> __global__ void __cluster_dims__(X, 2)\n"
    "__launch_bounds__(32) wide() { TELL; }\n"
    "static __global__ __cluster_dims__(N) void four(int) { TELL; }\n"
    "__global__ void __cluster_dims__(1, 1, 1) one() { TELL; }\n"
    "__global__ void none() { TELL; }\n"
    "static int at[16];\n"
    "static int *got() { cudaMemcpyFromSymbol(at, all, sizeof at); return at; "
    "}\n"
    "int main() {\n"
    "wide<2><<<dim3(4, 2), 32>>>(); got();\n"
    "if (at[0] != 40 || at[3] != 41 || at[4] != 42 || at[7] != 43) return 1;\n"
    "wide<1><<<dim3(4, 2), 32>>>(); got();\n"
    "if (at[0] != 20 || at[3] != 20 || at[4] != 21) return 2;\n"
    "four<<<8, 1>>>(1); got(); if (at[5] != 41) return 3;\n"
    "four<<<6, 1>>>(1);\n"
    "if (cudaGetLastError() != cudaErrorInvalidClusterSize) return 4;\n"
    "one<<<3, 1>>>(); none<<<3, 1>>>(); got();\n"
    "if (at[2] != 10 || cudaGetLastError()) return 5;\n"
    "return 0; }\n";

TEST_WITHIN(brasscc_knows_the_clusters_of_kernels, 120)
{
    compiles_and_runs(clusters, "-O1");
    compiles_and_runs(clusters, "-rdc=true");
}

/* The third bound is of clusters; the first two hold. */
TEST_WITHIN(brasscc_takes_three_bounds_of_launches, 60)
{
    compiles_and_runs(
        "template <int A, int B> struct two { static const int n = A * B; };\n"
        "__global__ void __launch_bounds__(64, 1, 2) k() {}\n"
        "__global__ void __launch_bounds__(two<8, 4>::n) l() {}\n"
        "template <unsigned N> __global__ void\n"
        "__launch_bounds__(N, 2u, N / 32) m() {}\n"
        "template <class F> static bool most(F *f, int n) {\n"
        "f<<<1, n>>>(); bool ok = cudaGetLastError() == cudaSuccess;\n"
        "f<<<1, n + 1>>>(); return ok && cudaGetLastError() != cudaSuccess; }\n"
        "int main() { return !(most(k, 64) && most(l, 32) && "
        "most(m<96>, 96)); }\n",
        "-O2");
}
