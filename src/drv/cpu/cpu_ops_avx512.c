/* cpu_ops_avx512.c - cpu_ops.h for AVX-512.
 *
 * Of BF16 compilers use nothing that cpu_att_pairs.h does not call by name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __x86_64__
#    include <math.h>
#    include <string.h>
#    if defined __clang__
#        pragma clang attribute push(                                        \
            __attribute__((target(                                           \
                "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,f16c"))), \
            apply_to = function)
#    else
#        pragma GCC target( \
            "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,f16c")
#    endif
#    define VEC_AVX512 1
#    include "drv/cpu/cpu_ops_body.h"

#    include "drv/cpu/cpu_att_pairs.h"
#    include "drv/cpu/cpu_att_row.h"

const br_cpu_ops br_cpu_ops_avx512 = CPU_OPS(attend_pairs);
#    if defined __clang__
#        pragma clang attribute pop
#    endif
#else
typedef int br_cpu_ops_avx512; /* not empty, on other processors */
#endif
