/* drm.h - amdgpu's interface for user queues (Linux 6.16 on): facts, no code.
 *
 * Stated here for the same reason as kfd.h. Fields that answer share their
 * place with fields that ask, so a struct is read only after the call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_DRM_H
#define BR_DRV_AMD_DRM_H

#include <stddef.h>
#include <stdint.h>

enum {
    BR_DRM_W = 1,
    BR_DRM_R = 2,
    BR_DRM_WR = 3,
#define DRM(name, nr, dir, bytes)     \
    BR_DRM_DIR_##name = BR_DRM_##dir, \
    BR_DRM_LOW_##name = bytes << 16 | 'd' << 8 | nr,
#include "drv/amd/drm.def"
#undef DRM
};
#define BR_DRM(name) \
    ((uint32_t)BR_DRM_DIR_##name << 30 | (uint32_t)BR_DRM_LOW_##name)

struct br_drm_gem_close {
    uint32_t handle, pad;
};

/* A fence with numbers that go up: page tables are there up to a number. */
struct br_drm_sync_new {
    uint32_t handle, flags;
};
#define br_drm_sync_end br_drm_sync_new
enum { BR_DRM_SYNC_ALL = 1, BR_DRM_SYNC_FOR_SUBMIT = 2 };
struct br_drm_sync_wait {
    uint64_t handles, points; /* addresses of uint32_t[n], uint64_t[n] */
    int64_t until_ns;         /* of the monotonic clock */
    uint32_t n, flags, first, pad;
    uint64_t deadline_ns;
};

enum { /* where memory is */
       BR_DRM_GTT = 0x2,
       BR_DRM_VRAM = 0x4,
       BR_DRM_DOORBELL = 0x40,
       BR_DRM_CPU_ACCESS = 0x1, /* flags */
       BR_DRM_NO_CPU_ACCESS = 0x2,
       BR_DRM_CLEARED = 0x8,
};
struct br_drm_gem_create {
    union {
        uint64_t bytes;
        uint32_t handle; /* out */
    };
    uint64_t align, domains, flags;
};
struct br_drm_gem_mmap {
    union {
        uint32_t handle;
        uint64_t offset; /* out */
    };
};

enum {
    BR_DRM_VA_MAP = 1,
    BR_DRM_VA_UNMAP = 2,
    BR_DRM_VA_READ = 2, /* flags */
    BR_DRM_VA_WRITE = 4,
    BR_DRM_VA_EXEC = 8,
    BR_DRM_VA_UNCACHED = 4 << 5,
};
struct br_drm_gem_va {
    uint32_t handle, pad, op, flags;
    uint64_t va, offset, bytes;
    uint64_t timeline_point;
    uint32_t timeline_out, n_fences;
    uint64_t fences;
};

enum { BR_DRM_INFO_HW_IP = 2, BR_DRM_IP_COMPUTE = 1 };
struct br_drm_info {
    uint64_t out; /* address */
    uint32_t out_bytes, query, ip, ip_instance, more[2];
};
struct br_drm_hw_ip { /* an answer of info */
    uint32_t major, minor;
    uint64_t capabilities;
    uint32_t ib_start_align, ib_bytes_align, rings, discovery;
    uint32_t userq_slots, pad;
};

enum { BR_DRM_USERQ_CREATE = 1, BR_DRM_USERQ_FREE = 2 };
struct br_drm_userq {
    union {
        struct {
            uint32_t op, queue_id;
        };
        uint32_t created; /* out: queue_id */
    };
    uint32_t ip, doorbell;    /* handle of its memory */
    uint32_t doorbell_offset; /* in units of 8 bytes */
    uint32_t flags;
    uint64_t ring, ring_bytes, read_pointer, write_pointer;
    uint64_t mqd, mqd_bytes; /* address of br_drm_mqd */
};
struct br_drm_mqd {
    uint64_t eop;
};

#define DRM(name, nr, dir, bytes) \
    _Static_assert(sizeof(struct br_drm_##name) == bytes, #name);
#include "drv/amd/drm.def"
#undef DRM
_Static_assert(offsetof(struct br_drm_gem_va, va) == 16, "amdgpu_drm.h");
_Static_assert(offsetof(struct br_drm_gem_va, timeline_out) == 48,
               "amdgpu_drm.h");
_Static_assert(offsetof(struct br_drm_hw_ip, userq_slots) == 32,
               "amdgpu_drm.h");
_Static_assert(offsetof(struct br_drm_userq, ring) == 24, "amdgpu_drm.h");
_Static_assert(offsetof(struct br_drm_userq, mqd) == 56, "amdgpu_drm.h");

#endif
