/* cpu_ops_avx2.c - cpu_ops.h for AVX2 with FMA and F16C.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __x86_64__
#    include <math.h>
#    include <string.h>
#    if defined __clang__
#        pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), \
                                     apply_to = function)
#    else
#        pragma GCC target("avx2,fma,f16c")
#    endif
#    define VEC_AVX2 1
#    include "drv/cpu/cpu_ops_body.h"

const br_cpu_ops br_cpu_ops_avx2 = CPU_OPS(NULL);
#    if defined __clang__
#        pragma clang attribute pop
#    endif
#else
typedef int br_cpu_ops_avx2; /* not empty, on other processors */
#endif
