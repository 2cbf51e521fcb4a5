/* cpu_ops_neon.c - cpu_ops.h for NEON, which every 64-bit Arm has.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __aarch64__
#    define VEC_NEON 1
#    include "drv/cpu/cpu_ops_body.h"

const br_cpu_ops br_cpu_ops_neon = CPU_OPS(NULL);
#else
typedef int br_cpu_ops_neon; /* not empty, on other processors */
#endif
