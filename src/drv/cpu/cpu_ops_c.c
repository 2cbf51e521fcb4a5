/* cpu_ops_c.c - cpu_ops.h in plain C, for any processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_ops_body.h"

const br_cpu_ops br_cpu_ops_c = CPU_OPS(NULL);
