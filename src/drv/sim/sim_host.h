/* sim_host.h - the host's side of what kernels ask of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_HOST_H
#define BR_SIM_HOST_H

#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

/* An empty ring before a launch; the heap stays as it was. */
br_code sim_host_begin(br_gcn_module *m, const br_klaunch *l,
                       br_status *st) BR_MUST_USE;
/* Before that: the block of all modules, where the launch has one. */
void sim_host_share(br_gcn_module *m, const br_klaunch *l);
/* All of it, to be mapped. */
br_kregion sim_host_region(const br_gcn_module *m);
/* Says what was printed and why the kernel stopped; code: of the launch. */
br_code sim_host_end(br_gcn_module *m, br_sim *s, br_klaunch *l, br_code code,
                     br_status *st) BR_MUST_USE;

#endif
