/* sim_gpu_int.h - what the files of the simulated kernel and GPU share.
 *
 * lock guards memory, handles, waves and reports; a dispatch holds it, so that
 * nobody takes memory away under it. Waiting for events must not wait for a
 * dispatch, so these have a lock of their own, always the inner one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_GPU_INT_H
#define BR_SIM_GPU_INT_H

#include "base/thread.h"
#include "drv/amd/amd_dev.h"
#include "drv/amd/pm4.h"
#include "drv/sim/sim_gpu.h"

enum {
    SIM_KFD_FD = 1000, /* descriptors */
    SIM_DRM_FD = 1001,
    SIM_MAX_EVENTS = 64,
    SIM_MAX_QUEUES = 24, /* of compute, on such a GPU */
    SIM_MAX_BUFFERS = 1 << 16,
    SIM_REPORT_BYTES = 64 << 10, /* of reports; more are counted only */
    SIM_GPU_ID = 51966,
    SIM_RENDER_MINOR = 128,
    SIM_NONSIGNAL = 1 << 30, /* ids of events that are no signals */
};

typedef struct sim_bo {
    uint64_t va, bytes, mmap_offset;
    uint32_t flags;
    unsigned queues; /* that live in it */
    uint8_t *host;
    bool own;      /* host is memory of ours, not at the driver's place */
    bool cpu;      /* and the driver maps it */
    bool on_gpu;   /* mapped for the GPU */
    bool live;     /* its handle is not freed */
    bool doorbell; /* of user queues */
} sim_bo;

typedef struct sim_event {
    bool used, auto_reset;
    uint32_t type, id;
    _Atomic uint32_t set; /* partner: wait_events */
} sim_event;

typedef struct sim_chip {
    const char *name;
    uint32_t gfx, device, cus, engines, gib;
} sim_chip;

typedef struct sim_queue {
    br_simgpu *g;
    struct br_kfd_create_queue a;
    bool used, dead;
    _Atomic bool stop; /* partner: the queue's thread */
    _Atomic uint64_t *write, *read, *doorbell;
    sim_bo *bo[5]; /* what it lives in */
    br_thread thread;
    uint64_t seen, target, at;       /* packets: published, rung for, taken */
    uint64_t slots;                  /* packets of AQL, dwords of PM4 */
    uint32_t sh[BR_PM4_SH_LAST + 1]; /* registers of PM4, and which were set */
    bool sh_set[BR_PM4_SH_LAST + 1];
    uint8_t *shadow; /* of the ring: packets as they were rung for */
} sim_queue;

struct br_simgpu {
    br_simgpu_opts o;
    const sim_chip *chip;
    br_amd_os os;
    br_mutex lock;
    br_sim waves;
    bool kfd_open, drm_open, has_vm;
    uint64_t tables, tables_seen; /* page tables made, waited for (T2) */
    bool timeline;
    BR_VEC(sim_bo *) bos; /* handle's low word minus 1 */
    uint64_t vram_used;
    br_mutex events_lock;
    sim_event events[SIM_MAX_EVENTS];
    sim_bo *event_page;
    br_event changed; /* an event was set */
    br_event kick;    /* packet processors should look again */
    sim_queue queues[SIM_MAX_QUEUES];
    uint64_t doorbells[BR_KFD_DOORBELL_BYTES / 8]; /* read as atomics */
    bool doorbells_mapped;
    _Atomic uint64_t ioctls;
    br_str reports;
    br_status fault;
};

/* A call of the kernel, in the numbers of kfd.def and drm.def. */
typedef struct sim_call {
    uint32_t request;
    int (*fn)(br_simgpu *g, void *arg);
} sim_call;

/* ---- sim_os.c ---- */
/* With as much of the argument as both sides know; locks: fn takes the lock. */
int sim_call_one(br_simgpu *g, const sim_call *c, unsigned long request,
                 void *arg, bool locks);
/* ---- sim_kfd.c ---- */
int sim_kfd_ioctl(br_simgpu *g, unsigned long request, void *arg);
/* A buffer's place and memory; flags as of KFD. NULL: none left. */
sim_bo *sim_bo_new(br_simgpu *g, uint64_t va, uint64_t bytes, uint32_t flags);
/* Into the GPU's address space; 0 or negative errno. */
int sim_bo_map(br_simgpu *g, sim_bo *b);
/* A slot of the GPU's, with q->a set; NULL: none is free. */
sim_queue *sim_queue_new(br_simgpu *g, const struct br_kfd_create_queue *a);
/* With q->bo and q->doorbell set: its thread begins. */
int sim_queue_start(sim_queue *q);
/* ---- sim_drm.c ---- */
int sim_drm_ioctl(br_simgpu *g, unsigned long request, void *arg);
/* ---- sim_kfd.c ---- */
/* The mapping of the GPU that holds va; NULL: none. */
sim_bo *sim_bo_at(br_simgpu *g, uint64_t va);
void sim_bo_drop(br_simgpu *g, sim_bo *b); /* when nobody holds it any more */
/* An interrupt with an event's number: an event whose slot was written. */
void sim_interrupt(br_simgpu *g, uint32_t id);
/* The GPU hangs: everybody who waits for faults wakes. */
void sim_hang(br_simgpu *g);
/* Both without the lock, which the queue's thread may need to end. */
void sim_queue_end(br_simgpu *g, sim_queue *q);
int sim_queue_destroy(br_simgpu *g, uint32_t id);
/* With the lock held. */
void sim_report(br_simgpu *g, const char *fmt, ...) BR_PRINTF(2, 3);

/* ---- sim_cp.c ---- */
/* The queue stops, as the hardware's does: who waits is told, and why stands in
 * the reports. False. */
bool sim_stop(sim_queue *q, br_code code, const char *fmt, ...) BR_PRINTF(3, 4);
bool sim_dispatch(sim_queue *q, const br_aql_packet *p);
/* ---- sim_pm4.c ---- */
/* Runs the first packet of n dwords; how many it has. 0: not yet, or the queue
 * stopped. */
size_t sim_pm4_one(sim_queue *q, const uint32_t *w, size_t n);
/* ---- sim_cp.c ---- */
bool sim_cp_look(sim_queue *q); /* does what there is to do next */
void sim_cp_main(void *queue);

/* ---- sim_vm.c ---- */
/* Memory that holds code, too. */
br_code sim_vm_code(br_sim *s, const br_kregion *r, br_status *st) BR_MUST_USE;
/* Instruction caches are dropped: code that changed is read anew. */
void sim_vm_refresh(br_sim *s);
void sim_vm_unmap(br_sim *s, uint64_t addr);

#endif
