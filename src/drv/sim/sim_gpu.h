/* sim_gpu.h - a simulated AMD GPU behind the kernel's interface.
 *
 *     amd_dev.c --br_amd_os--> sim_os.c    files, mmap, sysfs
 *                              sim_kfd.c   ioctls, checked as Linux 6.12 does
 *                              sim_drm.c   those of the render node
 *     ring, doorbell --------> sim_cp.c    a thread for each queue
 *                              sim_run.c   waves
 *
 * The driver above writes its rings in memory that both share, and a packet
 * processor reads them at the same time; only what the interface promises
 * orders the two. What a processor would answer with a hang is reported in a
 * sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_SIM_GPU_H
#define BR_DRV_SIM_GPU_H

#include "drv/amd/amd_os.h"
#include "drv/sim/sim.h"

typedef struct br_simgpu br_simgpu;

typedef struct br_simgpu_opts {
    const char *cpu; /* gfx1100 and the like */
    bool lax;        /* before Linux 6.12: sizes of buffers are not looked at */
    bool small_bar;  /* the CPU reaches no memory of the GPU */
    bool tells_sizes;     /* sysfs has cwsr_size, as from the end of 2025 */
    uint32_t userq_slots; /* user queues for compute; 0: turned off */
    bool no_userq;        /* before Linux 6.16: the kernel knows of none */
    bool check;           /* of waves: sim_check.c */
    uint64_t seed;        /* with check: of the waves' order */
    uint32_t threads;     /* of the host that run waves, without check */
    uint64_t max_steps;   /* of a dispatch; then the GPU hangs. 0: no end */
} br_simgpu_opts;

/* "kernel=6.11,bar=small,userq=0,check=1,seed=7,threads=4", or some of that, or NULL:
 * fields of o but for cpu. USAGE names what it does not know. sim_opts.c */
br_code br_simgpu_read(br_simgpu_opts *o, const char *text,
                       br_status *st) BR_MUST_USE;
/* NOT_FOUND: there is no such chip. */
br_code br_simgpu_new(br_simgpu **out, const br_simgpu_opts *o,
                      br_status *st) BR_MUST_USE;
/* After every descriptor is closed. False: something was left open, mapped or
 * allocated. */
bool br_simgpu_free(br_simgpu *g);
const br_amd_os *br_simgpu_os(br_simgpu *g);

/* Sentences so far, a line each; the first is what stopped the first queue. The
 * text is the caller's to fini. */
void br_simgpu_reports(br_simgpu *g, br_str *out);
/* What a dispatch said that failed first. BR_OK: none did. */
br_code br_simgpu_fault(br_simgpu *g, br_status *st);
/* The wave simulator, for its hooks and counters, while no dispatch runs. */
br_sim *br_simgpu_waves(br_simgpu *g);
/* ioctls so far. */
uint64_t br_simgpu_ioctls(const br_simgpu *g);

#endif
