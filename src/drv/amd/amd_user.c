/* amd_user.c - tier T2: memory and queues by the render node (Linux 6.16 on).
 *
 *     GEM_CREATE --> GEM_VA (page tables, a number on a timeline)
 *                --> wait for the number --> USERQ: ring, pointers, doorbell
 *
 * Packets and doorbell are those of T1. There are no events: whoever waits looks
 * at the fence. The kernel may take such a queue off the processor only between
 * kernels, so what runs here has to end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/amd/amd_dev.h"
#include "drv/amd/drm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS 5000000000ll /* for page tables */

/* ---- memory --------------------------------------------------------------- */

int
br_amd_user_pages(br_amd_dev *d, br_amd_mem *m, uint32_t domain, bool for_cpu,
                  uint64_t *offset)
{
    struct br_drm_gem_create c = {
        .bytes = m->bytes,
        .align = BR_KFD_PAGE,
        .domains = domain,
        .flags =
            domain == BR_DRM_VRAM ? BR_DRM_NO_CPU_ACCESS | BR_DRM_CLEARED : 0};
    struct br_drm_gem_mmap map;
    int e = br_amd_ioctl(d, BR_DRM(gem_create), &c);

    if (e < 0)
        return e;
    m->handle = c.handle;
    if (!for_cpu)
        return 0;
    map = (struct br_drm_gem_mmap){.handle = c.handle};
    e = br_amd_ioctl(d, BR_DRM(gem_mmap), &map);
    *offset = map.offset;
    return e;
}

int
br_amd_user_map(br_amd_dev *d, br_amd_mem *m, const br_amd_want *w)
{
    struct br_drm_gem_va va = {
        .handle = (uint32_t)m->handle,
        .op = BR_DRM_VA_MAP,
        .flags = BR_DRM_VA_READ | (w->read_only ? 0 : BR_DRM_VA_WRITE) |
                 (w->exec ? BR_DRM_VA_EXEC : 0) |
                 (w->heap == BR_AMD_HOST ? BR_DRM_VA_UNCACHED : 0),
        .va = m->va,
        .bytes = m->bytes,
        .timeline_point = d->point + 1,
        .timeline_out = d->sync};
    struct br_drm_sync_wait wait = {.handles = (uint64_t)(uintptr_t)&d->sync,
                                    .points = (uint64_t)(uintptr_t)&d->point,
                                    .until_ns = br_now_ns() + PATIENCE_NS,
                                    .n = 1,
                                    .flags = BR_DRM_SYNC_ALL |
                                             BR_DRM_SYNC_FOR_SUBMIT};
    int e = br_amd_ioctl(d, BR_DRM(gem_va), &va);

    if (e < 0)
        return e;
    d->point++;
    return br_amd_ioctl(d, BR_DRM(sync_wait), &wait);
}

void
br_amd_user_drop(br_amd_dev *d, br_amd_mem *m)
{
    struct br_drm_gem_va va = {.handle = (uint32_t)m->handle,
                               .op = BR_DRM_VA_UNMAP,
                               .va = m->va,
                               .bytes = m->bytes};
    struct br_drm_gem_close c = {.handle = (uint32_t)m->handle};

    if (m->va)
        br_amd_ioctl(d, BR_DRM(gem_va), &va);
    br_amd_ioctl(d, BR_DRM(gem_close), &c);
}

/* ---- queues --------------------------------------------------------------- */

br_code
br_amd_user_queue(br_amd_queue *q, br_status *st)
{
    br_amd_dev *d = q->d;
    struct br_drm_mqd mqd = {q->eop.va};
    struct br_drm_userq u = {
        .op = BR_DRM_USERQ_CREATE,
        .ip = BR_DRM_IP_COMPUTE,
        .ring = q->ring.va,
        .ring_bytes = q->ring.bytes,
        .read_pointer = q->control.va + offsetof(br_amd_control, read),
        .write_pointer = q->control.va + offsetof(br_amd_control, write),
        .mqd = (uint64_t)(uintptr_t)&mqd,
        .mqd_bytes = sizeof mqd};
    uint64_t offset = 0;
    void *at = NULL;
    int e;

    q->bell.bytes = BR_KFD_PAGE;
    e = br_amd_user_pages(d, &q->bell, BR_DRM_DOORBELL, true, &offset);
    if (e == 0)
        e = d->os->map(d->os->ctx, d->drm, &at, BR_KFD_PAGE, offset);
    if (e < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: no doorbell: %s", d->node.name,
                       strerror(-e));
    q->bell.host = at;
    q->bell.mapped = true;
    q->doorbell = at;
    u.doorbell = (uint32_t)q->bell.handle;
    e = br_amd_ioctl(d, BR_DRM(userq), &u);
    if (e < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: no user queue: %s",
                       d->node.name, strerror(-e));
    q->id = u.created;
    q->made = true;
    return BR_OK;
}

void
br_amd_user_queue_end(br_amd_queue *q)
{
    struct br_drm_userq u = {.op = BR_DRM_USERQ_FREE, .queue_id = q->id};

    if (q->made)
        br_amd_ioctl(q->d, BR_DRM(userq), &u);
    br_amd_free(q->d, &q->bell);
}

/* ---- the device ------------------------------------------------------------ */

/* A kernel that does not know of user queues leaves the last number alone. */
static br_code
slots(br_amd_dev *d, br_status *st)
{
    struct br_drm_hw_ip ip = {.userq_slots = UINT32_MAX};
    struct br_drm_info i = {.out = (uint64_t)(uintptr_t)&ip,
                            .out_bytes = sizeof ip,
                            .query = BR_DRM_INFO_HW_IP,
                            .ip = BR_DRM_IP_COMPUTE};
    int e = br_amd_ioctl(d, BR_DRM(info), &i);

    if (e < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: what the processor has: %s",
                       d->node.name, strerror(-e));
    if (ip.userq_slots == UINT32_MAX)
        return br_fail(st, BR_E_NO_DEVICE,
                       "%s: this kernel has no user queues; Linux 6.16 is the "
                       "first that has",
                       d->node.name);
    if (!ip.userq_slots)
        return br_fail(st, BR_E_NO_DEVICE,
                       "%s: no user queues for compute: they are turned off "
                       "(amdgpu.user_queue=1 turns them on)",
                       d->node.name);
    return BR_OK;
}

br_code
br_amd_open_user(br_amd_dev *d, const br_amd_os *os, const br_amd_node *n,
                 br_status *st)
{
    struct br_drm_sync_new s = {0};
    char path[64];
    int e;

    *d = (br_amd_dev){.os = os, .node = *n, .kfd = -1, .drm = -1, .user = true};
    snprintf(path, sizeof path, "/dev/dri/renderD%u",
             (unsigned)n->render_minor);
    d->drm = os->open(os->ctx, path);
    if (d->drm < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: %s: %s", n->name, path,
                       strerror(-d->drm));
    BR_TRY(slots(d, st));
    e = br_amd_ioctl(d, BR_DRM(sync_new), &s);
    if (e < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: a timeline: %s", n->name,
                       strerror(-e));
    d->sync = s.handle;
    return BR_OK;
}

void
br_amd_user_close(br_amd_dev *d)
{
    struct br_drm_sync_end s = {.handle = d->sync};

    if (d->sync)
        br_amd_ioctl(d, BR_DRM(sync_end), &s);
}
