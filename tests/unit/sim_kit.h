/* sim_kit.h - kernels of a few lines on the simulated GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_KIT_H
#define SIM_KIT_H

#include "drv/sim/sim.h"

/* GFX11_USERS: with the work-group's number in s15 they are 16, which gfx1100 asks
 * for. */
enum { SIM_KIT_BYTES = 4096, SIM_KIT_IN = 2048, SIM_KIT_GFX11_USERS = 15 };

/* One dispatch: s[0:1] points at 4096 bytes. */
typedef struct sim_kit {
    const char *cpu, *code; /* instructions; s_endpgm is added */
    const char *kd;         /* more directives, or NULL */
    uint32_t groups, items; /* 0: one, and one wave */
    unsigned users;         /* SGPRs; 0: 15 or, of gfx12, 2 */
    bool check;
    uint32_t threads; /* of the host */
    uint64_t seed;
    uint8_t memory[SIM_KIT_BYTES];
    br_status st;
    br_str findings; /* lines */
    uint64_t steps, found;
    uint64_t max_steps; /* 0: a million */
} sim_kit;
br_code sim_kit_run(sim_kit *k);

#endif
