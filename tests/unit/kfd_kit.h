/* kfd_kit.h - a simulated GPU, its driver and a queue.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KFD_KIT_H
#define KFD_KIT_H

#include "cg/gcn/gcn_file.h"
#include "drv/amd/amd_dev.h"
#include "drv/sim/sim_gpu.h"

typedef struct rig {
    br_simgpu *g;
    const br_amd_os *os;
    br_amd_node node;
    br_amd_dev d;
    br_amd_queue q;
    br_amd_mem code;
    br_gcn_co co;
} rig;

void kfd_begin(rig *r, const br_simgpu_opts *o, bool pm4);
/* says: what has to stand in the reports; NULL: nothing may. */
void kfd_finish(rig *r, const char *says);

#endif
