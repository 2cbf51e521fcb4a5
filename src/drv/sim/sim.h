/* sim.h - a simulated AMD GPU, gfx11 and gfx12: machine code, run and checked.
 *
 *     code object --br_sim_load--> memory of the device
 *     AQL packet --br_sim_dispatch--> work-groups -> waves -> instructions
 *
 * A wave's registers are set up as the hardware does it from descriptor and
 * packet. Every access is checked against the regions; with check on, much
 * more is (sim_check.c). An instruction without meaning here is an error that
 * names it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_SIM_H
#define BR_DRV_SIM_H

#include "cg/gcn/gcn_file.h"
#include "cg/kinterp.h"
#include "cg/ktarget.h"
#include "drv/amd/aql.h"

enum {
    BR_SIM_MAX_LDS = 64 << 10,     /* bytes of a work-group */
    BR_SIM_MAX_SCRATCH = 64 << 10, /* bytes of a lane */
    BR_SIM_MAX_FINDINGS = 100,     /* reported of a dispatch */
    BR_SIM_CLASSES = 7,
};
/* Kinds of instructions, by what runs them; the first is none. */
extern const char *const br_sim_classes[BR_SIM_CLASSES];

typedef struct br_sim {
    const br_gcn_cpu *cpu;
    BR_VEC(br_kregion) regions; /* by address; none overlap */
    bool check;
    uint32_t threads;   /* of the host, without check; 0: one. sim_crowd.h */
    uint64_t seed;      /* of the order that waves take turns in, with check */
    uint64_t max_steps; /* instructions of a dispatch; 0: no end */
    const _Atomic bool *stop; /* NULL, or true: a dispatch ends, CANCELLED */
    void (*finding)(void *arg, const char *text); /* a line */
    void *arg;
    uint64_t steps, findings; /* so far: instructions of waves, findings */
    uint64_t hints;           /* of those instructions: s_delay_alu */
    uint64_t *mix;            /* NULL, or BR_SIM_CLASSES: the others by class */
    br_kfault fault;          /* after BR_E_FAULT */
    struct sim_code *code;    /* what was decoded, by address */
    size_t hit[3];            /* regions that were found last: sim_region */
    struct sim_job *job;      /* of the last dispatch: its memory is kept */
    struct sim_crowd *crowd;  /* its other threads */
} br_sim;

/* Memory that a kernel may touch. */
br_code br_sim_map(br_sim *s, const br_kregion *r, br_status *st) BR_MUST_USE;
/* Puts a code object at an address (4096 bytes aligned); it has to outlive s. */
br_code br_sim_load(br_sim *s, const br_gcn_co *co, uint64_t at,
                    br_status *st) BR_MUST_USE;
/* Runs all work-groups of the packet. BR_E_FAULT: the kernel did what stops a
 * processor; BR_E_UNSUPPORTED: an instruction that has no meaning here. */
br_code br_sim_dispatch(br_sim *s, const br_aql_packet *p,
                        br_status *st) BR_MUST_USE;
void br_sim_fini(br_sim *s);

/* Whether an instruction has a meaning here. */
bool br_sim_knows(const br_gcn_isa *isa, const br_gcn_inst *in);

/* The target of a processor with a launch: on the simulated one. False: there
 * is no such processor. (sim_target.c) */
bool br_sim_target(br_ktarget *out, const char *cpu);

#endif
