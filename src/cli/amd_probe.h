/* amd_probe.h - does an AMD GPU take our packets?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_AMD_PROBE_H
#define BR_AMD_PROBE_H

#include "cli/cli.h"
#include "drv/amd/amd_dev.h"
#include "drv/sim/sim_gpu.h"

/* The kernel that is there, or the simulated one that --sim names: *sim then,
 * to be freed by br_simgpu_free. */
br_code br_amd_probe_os(br_cli *cli, const br_amd_os **os, br_simgpu **sim,
                        br_status *st) BR_MUST_USE;
/* Every packet that we use once; say: for each, before the next; may be NULL.
 * user: on a user queue (T2), which takes no packets of AQL. */
typedef struct br_amd_tell {
    void (*say)(void *arg, const char *what);
    void *arg;
} br_amd_tell;
br_code br_amd_probe(const br_amd_os *os, const br_amd_node *n, bool user,
                     br_amd_tell t, br_status *st) BR_MUST_USE;

#endif
