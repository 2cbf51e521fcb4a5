/* amd_dev.h - an AMD GPU by hand: tier T1, through /dev/kfd, and tier T2, user
 * queues of the render node.
 *
 *     sysfs --> br_amd_node    which GPUs there are, and how large
 *     /dev/kfd --> br_amd_dev  address space, memory, events
 *                  br_amd_queue  ring, doorbell, packets, waiting
 *
 * A device and its queues belong to one thread at a time. Memory that the CPU
 * may touch lies at the same address for CPU and GPU, unless the caller chose
 * the GPU's address.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_DEV_H
#define BR_DRV_AMD_DEV_H

#include "drv/amd/amd_os.h"
#include "drv/amd/aql.h"
#include "drv/amd/kfd.h"
#include "drv/amd/pm4.h"

enum {
    BR_AMD_MAX_NODES = 128,        /* of the topology, processors too */
    BR_AMD_MAX_BANKS = 64,         /* of memory, of a node */
    BR_AMD_MAX_TEXT = 16 << 10,    /* bytes of a file of sysfs */
    BR_AMD_MAX_SCRATCH = 64 << 10, /* bytes of a lane */
};

/* ---- what is there (amd_node.c) ---------------------------------------- */

typedef struct br_amd_node {
    char name[16]; /* gfx1100 */
    uint32_t index, gpu_id;
    bool small_bar; /* the CPU reaches a part of the memory only */
    uint64_t vram_bytes;
#define NODE(field, key, must) uint64_t field;
#include "drv/amd/node.def"
#undef NODE
} br_amd_node;

/* The n-th GPU. NOT_FOUND: there are no more; NO_DEVICE: no driver, or its
 * nodes may not be read. */
br_code br_amd_node_get(br_amd_node *out, const br_amd_os *os, unsigned n,
                        br_status *st) BR_MUST_USE;
/* A file of lines "key number" into a node; what is wrong is FORMAT. */
br_code br_amd_node_read(br_amd_node *out, const char *text,
                         br_status *st) BR_MUST_USE;

/* ---- a device (amd_dev.c) ---------------------------------------------- */

typedef struct br_amd_mem {
    uint64_t va, bytes; /* whole pages */
    uint64_t handle;
    uint8_t *host;  /* NULL: the CPU does not reach it */
    void *reserved; /* addresses of ours that it lies in */
    bool mapped;    /* host is a mapping of its own, elsewhere */
} br_amd_mem;

typedef enum br_amd_heap {
    BR_AMD_VRAM, /* of the GPU alone */
    BR_AMD_BAR,  /* of the GPU; the CPU reaches it, too */
    BR_AMD_HOST, /* of the CPU, coherent */
    BR_AMD_USER, /* the caller's own pages */
} br_amd_heap;

typedef struct br_amd_want {
    uint64_t bytes;
    br_amd_heap heap;
    uint64_t va;   /* 0: any */
    uint8_t *user; /* BR_AMD_USER: where the pages are */
    bool exec, read_only;
} br_amd_want;

typedef struct br_amd_dev {
    const br_amd_os *os;
    br_amd_node node;
    br_kfd_sizes sizes;
    int kfd, drm;
    struct br_kfd_version version;
    br_amd_mem events, hdp;
    uint32_t event, fault_events[2]; /* done; memory, processor */
    uint8_t *doorbells;
    bool user;     /* T2: no events, no save area, PM4 only */
    uint32_t sync; /* T2: page tables are there up to `point` */
    uint64_t point;
    uint64_t ioctls; /* so far */
} br_amd_dev;

/* Whatever fails, br_amd_close afterwards. */
br_code br_amd_open(br_amd_dev *d, const br_amd_os *os, const br_amd_node *n,
                    br_status *st) BR_MUST_USE;
/* T2. NO_DEVICE says whether the kernel is too old or its switch is off. Heaps
 * are BR_AMD_VRAM and BR_AMD_HOST. */
br_code br_amd_open_user(br_amd_dev *d, const br_amd_os *os,
                         const br_amd_node *n, br_status *st) BR_MUST_USE;
void br_amd_close(br_amd_dev *d);
br_code br_amd_alloc(br_amd_dev *d, br_amd_mem *m, const br_amd_want *want,
                     br_status *st) BR_MUST_USE;
void br_amd_free(br_amd_dev *d, br_amd_mem *m); /* zeroed or allocated */
/* Of /dev/kfd, or of the render node on T2; 0 or more, or negative errno. */
int br_amd_ioctl(br_amd_dev *d, unsigned long request, void *arg);
/* What the CPU wrote to BR_AMD_BAR memory is there for the GPU. */
void br_amd_flush(br_amd_dev *d);

/* ---- a queue (amd_queue.c) --------------------------------------------- */

/* What the packet processor reads beside the ring (amd_queue_t of ROCr). */
typedef struct br_amd_control {
    uint32_t type, features; /* 1: one thread writes; 1: kernels */
    uint64_t ring, doorbell;
    uint32_t slots, reserved0;
    uint64_t id;
    uint32_t reserved1[4];
    _Atomic uint64_t write; /* packets written */
    uint32_t reserved2[16];
    _Atomic uint64_t read;      /* packets taken */
    uint32_t read_offset;       /* of `read`, in this struct */
    uint32_t tmpring;           /* COMPUTE_TMPRING_SIZE */
    uint32_t scratch_buffer[4]; /* descriptor: our kernels need none */
    uint64_t scratch, scratch_bytes;
    uint32_t lane_bytes; /* scratch of a lane of wave64 */
    uint32_t properties, reserved3[2];
    uint64_t inactive;
    uint32_t reserved4[14];
} br_amd_control;
_Static_assert(sizeof(br_amd_control) == 256, "amd_queue_t");
_Static_assert(offsetof(br_amd_control, write) == 0x38, "amd_queue_t");
_Static_assert(offsetof(br_amd_control, read) == 0x80, "amd_queue_t");
_Static_assert(offsetof(br_amd_control, tmpring) == 140, "amd_queue_t");
_Static_assert(offsetof(br_amd_control, scratch) == 160, "amd_queue_t");
_Static_assert(offsetof(br_amd_control, lane_bytes) == 176, "amd_queue_t");

/* A signal of HSA: each packet takes one off its value when it is done. */
typedef struct br_amd_signal {
    int64_t kind;          /* 1 */
    _Atomic int64_t value; /* partner: the processor's release */
    uint64_t mailbox;      /* where event goes, then an interrupt; 0: none */
    uint32_t event, reserved0;
    uint64_t start, end, queue, reserved1;
} br_amd_signal;
_Static_assert(sizeof(br_amd_signal) == 64, "amd_signal_t");
enum { BR_AMD_FENCE_AT = 64 }; /* of a queue of PM4, behind the signal */

typedef struct br_amd_queue {
    br_amd_dev *d;
    br_amd_mem ring, control, eop, save, signal, scratch;
    br_amd_mem bell;      /* T2 */
    uint64_t slots, next; /* of the ring; how much was submitted */
    uint64_t put;         /* PM4: dwords written */
    uint32_t id;
    bool pm4, made, dead; /* dead: the GPU reported a fault */
    bool polls;           /* waits look at memory; the kernel is asked for
                           * faults when that takes long */
    _Atomic uint64_t *doorbell;
} br_amd_queue;

/* A queue of AQL packets, or of dwords of PM4; slots: a power of 2. Whatever
 * fails, br_amd_queue_fini afterwards. */
br_code br_amd_queue_init(br_amd_queue *q, br_amd_dev *d, bool pm4,
                          uint64_t slots, br_status *st) BR_MUST_USE;
void br_amd_queue_fini(br_amd_queue *q);
/* Writes a packet and rings; l->completion is the queue's. Waits where the ring
 * is full or scratch has to grow. */
br_code br_amd_launch(br_amd_queue *q, const br_aql_launch *l,
                      br_status *st) BR_MUST_USE;
/* So much for a lane; whoever records packets for later asks for all of it
 * before the first of them. */
br_code br_amd_queue_scratch(br_amd_queue *q, uint32_t lane_bytes,
                             br_status *st) BR_MUST_USE;
/* PM4: what launches a kernel; kd: its descriptor, which the CPU reads here. */
br_code br_amd_pm4_launch(br_amd_queue *q, br_pm4 *s, const br_aql_launch *l,
                          const uint8_t *kd, br_status *st) BR_MUST_USE;
/* PM4: a stream, then a fence and an interrupt; s->full is a LIMIT. */
br_code br_amd_pm4_submit(br_amd_queue *q, const br_pm4 *s,
                          br_status *st) BR_MUST_USE;
/* FAULT: the GPU stopped; else OK, done or not (T2: always). */
br_code br_amd_look(br_amd_queue *q, br_status *st) BR_MUST_USE;
/* Until all packets so far are done. TIMEOUT; FAULT: the GPU stopped, and the
 * queue takes no more. */
br_code br_amd_wait(br_amd_queue *q, int64_t timeout_ns,
                    br_status *st) BR_MUST_USE;

/* ---- what T2 does its own way (amd_user.c) ------------------------------ */

int br_amd_user_pages(br_amd_dev *d, br_amd_mem *m, uint32_t domain,
                      bool for_cpu, uint64_t *offset);
int br_amd_user_map(br_amd_dev *d, br_amd_mem *m, const br_amd_want *w);
void br_amd_user_drop(br_amd_dev *d, br_amd_mem *m);
br_code br_amd_user_queue(br_amd_queue *q, br_status *st) BR_MUST_USE;
void br_amd_user_queue_end(br_amd_queue *q);
void br_amd_user_close(br_amd_dev *d);

#endif
