/* test_brasscc_thrust.c - what programs give to Thrust: arrays, by their names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

static const char arrays[] =
    "#include <thrust/copy.h>\n#include <thrust/device_vector.h>\n"
    "#include <thrust/execution_policy.h>\n#include <thrust/fill.h>\n"
    "#include <thrust/merge.h>\n#include <thrust/reduce.h>\n"
    "#include <thrust/sort.h>\n#include <thrust/transform.h>\n"
    "#define IS(x) do { if (!(x)) return __LINE__; } while (0)\n"
    "__global__ void k(int *o) { int b[5] = {3, 1, 2, 5, 4};\n"
    "thrust::sort(b, b + 5); o[0] = b[4]; o[1] = thrust::reduce(b, b + 5); }\n"
    "int main() {\n"
    "int a[6] = {5, 3, 1, 4, 2, 6}, b[6], m[9], *o;\n"
    "const int c[3] = {1, 2, 3};\n"
    "thrust::sort(a, a + 6); for (int i = 0; i < 6; i++) IS(a[i] == i + 1);\n"
    "IS(thrust::reduce(c, c + 3, 10) == 16);\n"
    "thrust::device_vector<int> d(6);\n"
    "thrust::copy(a, a + 6, d.begin()); IS(d[5] == 6);\n"
    "thrust::copy(c, c + 3, d.begin() + 3); IS(d[5] == 3);\n"
    "thrust::copy(d.begin(), d.end(), b); IS(b[3] == 1 && b[0] == 1);\n"
    "thrust::copy(thrust::host, a, a + 6, b); IS(b[5] == 6);\n"
    "thrust::fill(b, b + 6, 9); IS(b[2] == 9);\n"
    "thrust::fill_n(b, 3, 8); IS(b[2] == 8 && b[3] == 9);\n"
    "thrust::transform(a, a + 6, a, b, thrust::plus<int>()); IS(b[5] == 12);\n"
    "IS(thrust::merge(a, a + 6, c, c + 3, m) == m + 9 && m[1] == 1);\n"
    "cudaMallocManaged(&o, 8); k<<<1, 1>>>(o); cudaDeviceSynchronize();\n"
    "IS(o[0] == 5 && o[1] == 15);\n"
    "return 0; }\n";

TEST_WITHIN(cuda_thrust_takes_arrays, 240)
{
    const char *cu = t_printf("%s/p.cu", t_tmpdir());
    const char *exe = t_printf("%s/p", t_tmpdir());
    t_proc r;

    if (t_sanitized())
        t_skip("CUDA programs run without sanitizers");
    if (!t_have_program("clang++-19") && !t_have_program("clang++"))
        t_skip("no clang++, which brasscc needs");
    t_write(cu, arrays, strlen(arrays));
    t_exec(&r, (const char *[]){t_repo("brasscc"), "-O1", cu, "-o", exe, NULL},
           NULL, 0);
    ck_assert_msg(!r.exit, "%.2000s", r.err);
    t_exec(&r, (const char *[]){exe, NULL}, NULL, 0);
    ck_assert_msg(!r.exit, "line %d: %.500s", r.exit, r.err);
}
