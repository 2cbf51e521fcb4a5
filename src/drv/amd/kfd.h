/* kfd.h - the kernel's compute interface for AMD GPUs: facts, no code.
 *
 * Numbers and layouts of Linux' KFD 1.17, stated here because the headers of a
 * distribution may be years older. Both sides of the interface use them: our
 * driver (amd_dev.c) and the simulated kernel (sim_kfd.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_KFD_H
#define BR_DRV_AMD_KFD_H

#include <stddef.h>
#include <stdint.h>

/* ---- requests: direction, bytes, 'K', number -------------------------- */

enum {
    BR_KFD_W = 1,
    BR_KFD_R = 2,
    BR_KFD_WR = 3,
#define KFD(name, nr, dir, bytes)     \
    BR_KFD_DIR_##name = BR_KFD_##dir, \
    BR_KFD_LOW_##name = bytes << 16 | 'K' << 8 | nr,
#include "drv/amd/kfd.def"
#undef KFD
};
enum { BR_KFD_FIRST = 0x01, BR_KFD_END = 0x28 }; /* numbers of KFD 1.17 */
#define BR_KFD(name) \
    ((uint32_t)BR_KFD_DIR_##name << 30 | (uint32_t)BR_KFD_LOW_##name)

/* ---- structs ---------------------------------------------------------- */

struct br_kfd_version {
    uint32_t major, minor;
};

enum { /* queue types: PM4 packets, copies, AQL packets */
       BR_KFD_QUEUE_COMPUTE = 0,
       BR_KFD_QUEUE_SDMA = 1,
       BR_KFD_QUEUE_AQL = 2,
       BR_KFD_MAX_PERCENTAGE = 100,
       BR_KFD_MAX_PRIORITY = 15,
};
struct br_kfd_create_queue {
    uint64_t ring, write_pointer, read_pointer; /* addresses, ours */
    uint64_t doorbell_offset;                   /* out */
    uint32_t ring_bytes, gpu_id, type, percentage, priority;
    uint32_t queue_id; /* out */
    uint64_t eop, eop_bytes;
    uint64_t save; /* where waves go that are taken off the processor */
    uint32_t save_bytes, ctl_bytes, sdma_engine, pad;
};
struct br_kfd_destroy_queue {
    uint32_t queue_id, pad;
};

enum {
    BR_KFD_EVENT_SIGNAL = 0,
    BR_KFD_EVENT_HW_EXCEPTION = 3,
    BR_KFD_EVENT_MEMORY = 8,
    BR_KFD_MAX_SIGNALS = 4096,
    BR_KFD_EVENT_PAGE_BYTES = BR_KFD_MAX_SIGNALS * 8,
};
struct br_kfd_create_event {
    uint64_t page_offset; /* in: handle of the page, with the first event */
    uint32_t trigger, type, auto_reset, node;
    uint32_t event_id, slot; /* out */
};
struct br_kfd_destroy_event {
    uint32_t event_id, pad;
};
struct br_kfd_memory_fault {
    uint32_t not_present, read_only, no_execute, imprecise;
    uint64_t va;
    uint32_t gpu_id, error;
};
struct br_kfd_hw_fault {
    uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};
struct br_kfd_event_data { /* an entry of wait_events */
    union {
        struct br_kfd_memory_fault memory; /* out */
        struct br_kfd_hw_fault hw;         /* out */
        uint64_t last_age;
    };
    uint64_t ext;
    uint32_t event_id, pad;
};
enum {
    BR_KFD_WAIT_COMPLETE = 0,
    BR_KFD_WAIT_TIMEOUT = 1,
    BR_KFD_WAIT_FAIL = 2
};
struct br_kfd_wait_events {
    uint64_t events; /* address of br_kfd_event_data[n] */
    uint32_t n, all, timeout_ms, result;
};

struct br_kfd_acquire_vm {
    uint32_t drm_fd, gpu_id;
};

#define BR_KFD_MEM_VRAM          (1u << 0)
#define BR_KFD_MEM_GTT           (1u << 1)
#define BR_KFD_MEM_USERPTR       (1u << 2)
#define BR_KFD_MEM_DOORBELL      (1u << 3)
#define BR_KFD_MEM_MMIO          (1u << 4)
#define BR_KFD_MEM_UNCACHED      (1u << 25)
#define BR_KFD_MEM_COHERENT      (1u << 26)
#define BR_KFD_MEM_NO_SUBSTITUTE (1u << 28)
#define BR_KFD_MEM_PUBLIC        (1u << 29)
#define BR_KFD_MEM_EXECUTABLE    (1u << 30)
#define BR_KFD_MEM_WRITABLE      (1u << 31)
struct br_kfd_alloc_memory {
    uint64_t va, bytes;
    uint64_t handle;      /* out */
    uint64_t mmap_offset; /* in: address of USERPTR memory; out */
    uint32_t gpu_id, flags;
};
struct br_kfd_free_memory {
    uint64_t handle;
};
struct br_kfd_map_memory {
    uint64_t handle, gpu_ids; /* address of uint32_t[n] */
    uint32_t n, n_success;    /* n_success: in and out */
};
#define br_kfd_unmap_memory br_kfd_map_memory

#define KFD(name, nr, dir, bytes) \
    _Static_assert(sizeof(struct br_kfd_##name) == bytes, #name);
#include "drv/amd/kfd.def"
#undef KFD
_Static_assert(sizeof(struct br_kfd_event_data) == 48, "KFD 1.17");
_Static_assert(offsetof(struct br_kfd_event_data, event_id) == 40, "KFD 1.17");
_Static_assert(offsetof(struct br_kfd_memory_fault, va) == 16, "KFD 1.17");
_Static_assert(offsetof(struct br_kfd_create_queue, eop) == 56, "KFD 1.17");
_Static_assert(offsetof(struct br_kfd_create_queue, save) == 72, "KFD 1.17");
_Static_assert(offsetof(struct br_kfd_alloc_memory, gpu_id) == 32, "KFD 1.17");

/* ---- offsets for mmap of /dev/kfd -------------------------------------- */

#define BR_KFD_MMAP_DOORBELL (3ull << 62)
#define BR_KFD_MMAP_GPU(id)  ((uint64_t)(id) << 46)
enum { BR_KFD_DOORBELL_BYTES = 8192 }; /* of a process on one GPU */

/* ---- sizes that a queue has to have (Linux 6.12 on: exactly) ----------- */

typedef struct br_kfd_sizes {
    uint64_t ctl, cwsr;   /* control stack; with the waves' registers and LDS */
    uint64_t debug, area; /* of the debugger; all of it as a buffer */
} br_kfd_sizes;
enum { BR_KFD_PAGE = 4096, BR_KFD_EOP_BYTES = 4096 };
/* gfx: 110001 and the like; cus of one partition (XCC) of the processor.
 * amd_node.c */
br_kfd_sizes br_kfd_sizes_of(uint32_t gfx, uint64_t cus, uint64_t xccs);

#endif
