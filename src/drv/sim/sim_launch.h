/* sim_launch.h - the door of sim_launch.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_LAUNCH_H
#define BR_SIM_LAUNCH_H

#include "cg/gcn/gcn_file.h"
#include "cg/gcn/gcn_kernel.h"

typedef struct sim_launch {
    br_klaunch *l;       /* out: steps, fault */
    br_gcn_module *mod;  /* NULL: the kernel asks nothing of the host */
    br_gcn_module *heap; /* who has memory that kernels got, or NULL */
    const br_gcn_co *co;
    uint64_t kd_at; /* of the descriptor, in the code object */
    uint32_t lds_bytes, kernarg_bytes;
    const uint8_t *kernarg;
} sim_launch;
br_code sim_launch_run(const sim_launch *s, br_status *st) BR_MUST_USE;

#endif
