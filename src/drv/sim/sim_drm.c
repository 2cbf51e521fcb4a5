/* sim_drm.c - the ioctls of a render node that user queues need, with Linux'
 * errno: memory, page tables, a timeline, queues.
 *
 * A queue that is made before its page tables are waited for is reported: on the
 * hardware that is a race which mostly goes well.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/drm.h"
#include "drv/sim/sim_gpu_int.h"

#include <errno.h>
#include <string.h>

enum { TIMELINE = 1, NOT_SUPPORTED = 524 /* ENOTSUPP, the kernel's own */ };

static sim_bo *
by_handle(br_simgpu *g, uint64_t handle)
{
    return handle - 1 < g->bos.n && g->bos.at[handle - 1] &&
                   g->bos.at[handle - 1]->live
               ? g->bos.at[handle - 1]
               : NULL;
}

/* ---- memory ------------------------------------------------------------- */

static int
gem_create(br_simgpu *g, void *arg)
{
    struct br_drm_gem_create *a = arg;
    bool vram = a->domains == BR_DRM_VRAM;
    uint32_t flags = vram ? BR_KFD_MEM_VRAM : BR_KFD_MEM_GTT;
    sim_bo *b;

    if (!vram && a->domains != BR_DRM_GTT && a->domains != BR_DRM_DOORBELL)
        return -EINVAL;
    if (!a->bytes || a->bytes > UINT64_MAX / 2)
        return -EINVAL;
    if (vram && g->vram_used + a->bytes > (uint64_t)g->chip->gib << 30)
        return -ENOMEM;
    if (vram && !(a->flags & BR_DRM_NO_CPU_ACCESS))
        flags |= BR_KFD_MEM_PUBLIC;
    b = sim_bo_new(g, 0, a->bytes, flags);
    if (!b)
        return -ENOMEM;
    b->doorbell = a->domains == BR_DRM_DOORBELL;
    a->handle = (uint32_t)g->bos.n;
    return 0;
}

static int
gem_mmap(br_simgpu *g, void *arg)
{
    struct br_drm_gem_mmap *a = arg;
    sim_bo *b = by_handle(g, a->handle);

    if (!b)
        return -ENOENT;
    if ((b->flags & BR_KFD_MEM_VRAM) && !(b->flags & BR_KFD_MEM_PUBLIC))
        return -EPERM;
    a->offset = b->mmap_offset;
    return 0;
}

static int
gem_va(br_simgpu *g, void *arg)
{
    struct br_drm_gem_va *a = arg;
    sim_bo *b = by_handle(g, a->handle);
    int e;

    if ((a->va | a->offset | a->bytes) % BR_KFD_PAGE || !a->bytes)
        return -EINVAL;
    if (a->op != BR_DRM_VA_MAP && a->op != BR_DRM_VA_UNMAP)
        return -EINVAL;
    if (!b)
        return -ENOENT;
    if (a->offset || a->bytes != b->bytes) {
        sim_report(g, "a part of a buffer is mapped: not simulated");
        return -EINVAL;
    }
    if (a->op == BR_DRM_VA_UNMAP) {
        if (!b->on_gpu || b->va != a->va)
            return -ENOENT;
        if (b->queues)
            sim_report(g, "memory of a queue is unmapped");
        else
            sim_vm_unmap(&g->waves, b->va);
        b->on_gpu = false;
        return 0;
    }
    if (b->on_gpu || (a->timeline_out && a->timeline_out != TIMELINE) ||
        (a->timeline_out && !g->timeline))
        return b->on_gpu ? -EINVAL : -ENOENT;
    b->va = a->va;
    b->flags |= a->flags & BR_DRM_VA_WRITE ? BR_KFD_MEM_WRITABLE : 0;
    b->flags |= a->flags & BR_DRM_VA_EXEC ? BR_KFD_MEM_EXECUTABLE : 0;
    e = sim_bo_map(g, b);
    g->tables += !e;
    return e;
}

static int
gem_close(br_simgpu *g, void *arg)
{
    const struct br_drm_gem_close *a = arg;
    sim_bo *b = by_handle(g, a->handle);

    if (!b)
        return -EINVAL;
    if (b->queues) {
        sim_report(g, "memory of a queue is closed");
        return -EBUSY;
    }
    if (b->on_gpu)
        sim_vm_unmap(&g->waves, b->va);
    b->on_gpu = b->live = false;
    if (!b->cpu || !b->own)
        sim_bo_drop(g, b);
    return 0;
}

/* ---- the timeline ------------------------------------------------------- */

static int
sync_new(br_simgpu *g, void *arg)
{
    struct br_drm_sync_new *a = arg;

    g->timeline = true;
    a->handle = TIMELINE;
    return 0;
}

static int
sync_end(br_simgpu *g, void *arg)
{
    const struct br_drm_sync_end *a = arg;

    if (a->handle != TIMELINE || !g->timeline)
        return -EINVAL;
    g->timeline = false;
    return 0;
}

static int
sync_wait(br_simgpu *g, void *arg)
{
    const struct br_drm_sync_wait *a = arg;
    const uint32_t *handle = (const uint32_t *)(uintptr_t)a->handles;
    const uint64_t *point = (const uint64_t *)(uintptr_t)a->points;

    if (a->n != 1)
        return -EINVAL;
    if (!handle || !point)
        return -EFAULT;
    if (*handle != TIMELINE || !g->timeline)
        return -ENOENT;
    if (*point > g->tables)
        return -ETIME;
    g->tables_seen = BR_MAX(g->tables_seen, *point);
    return 0;
}

/* ---- what there is ------------------------------------------------------ */

static int
info(br_simgpu *g, void *arg)
{
    const struct br_drm_info *a = arg;
    struct br_drm_hw_ip ip = {.major = 11 + (g->waves.cpu->gen == 12),
                              .rings = 15,
                              .ib_start_align = 32,
                              .ib_bytes_align = 32,
                              .userq_slots = g->o.userq_slots};
    void *out = (void *)(uintptr_t)a->out;

    if (a->query != BR_DRM_INFO_HW_IP || a->ip != BR_DRM_IP_COMPUTE)
        return -EINVAL;
    if (!out || !a->out_bytes)
        return -EINVAL;
    memcpy(out, &ip,
           BR_MIN(a->out_bytes, g->o.no_userq
                                    ? offsetof(struct br_drm_hw_ip, userq_slots)
                                    : sizeof ip));
    return 0;
}

/* ---- queues ------------------------------------------------------------- */

static int
userq_buffers(br_simgpu *g, sim_queue *q, const struct br_drm_userq *a)
{
    struct br_drm_mqd mqd;
    uint64_t va[] = {a->write_pointer, a->read_pointer, a->ring, 0};
    sim_bo *bell = by_handle(g, a->doorbell);

    if (!a->mqd)
        return -EFAULT;
    memcpy(&mqd, (const void *)(uintptr_t)a->mqd, sizeof mqd);
    va[3] = mqd.eop;
    for (size_t k = 0; k < BR_COUNT(va); k++) {
        q->bo[k] = sim_bo_at(g, va[k]);
        if (!q->bo[k])
            return -EINVAL;
    }
    if (q->bo[2]->bytes - (a->ring - q->bo[2]->va) < a->ring_bytes ||
        q->bo[0]->bytes > BR_KFD_PAGE || a->write_pointer % 8 ||
        a->read_pointer % 8)
        return -EINVAL;
    if (!bell || !bell->doorbell || a->doorbell_offset >= bell->bytes / 8)
        return -EINVAL;
    q->bo[4] = bell;
    q->doorbell = (_Atomic uint64_t *)(void *)bell->host + a->doorbell_offset;
    return 0;
}

static int
userq_create(br_simgpu *g, struct br_drm_userq *a)
{
    struct br_kfd_create_queue k = {.type = BR_KFD_QUEUE_COMPUTE,
                                    .ring = a->ring,
                                    .ring_bytes = (uint32_t)a->ring_bytes,
                                    .write_pointer = a->write_pointer,
                                    .read_pointer = a->read_pointer};
    sim_queue *q;
    int e;

    if (!g->o.userq_slots)
        return -NOT_SUPPORTED;
    if (a->ip != BR_DRM_IP_COMPUTE || a->flags & ~7u)
        return -EINVAL;
    if ((a->flags & 3) == 3) /* high priority is the administrator's */
        return -EACCES;
    if (a->ring_bytes < BR_KFD_PAGE || a->ring_bytes > UINT32_MAX / 2 ||
        (a->ring_bytes & (a->ring_bytes - 1)) ||
        a->mqd_bytes != sizeof(struct br_drm_mqd))
        return -EINVAL;
    q = sim_queue_new(g, &k);
    e = q ? userq_buffers(g, q, a) : -ENOMEM;
    if (!e)
        e = sim_queue_start(q);
    if (e)
        return e;
    if (g->tables_seen < g->tables)
        sim_report(g, "a user queue before its page tables are waited for");
    a->created = q->a.queue_id;
    return 0;
}

/* Takes the lock itself: the queue's thread may need it to end. */
static int
userq(br_simgpu *g, void *arg)
{
    struct br_drm_userq *a = arg;
    int e;

    if (a->op == BR_DRM_USERQ_CREATE) {
        br_mutex_lock(&g->lock);
        e = userq_create(g, a);
        br_mutex_unlock(&g->lock);
        return e;
    }
    if (a->op != BR_DRM_USERQ_FREE || a->ip || a->doorbell || a->flags ||
        a->doorbell_offset || a->ring || a->ring_bytes || a->mqd ||
        a->mqd_bytes || a->read_pointer || a->write_pointer)
        return -EINVAL;
    return sim_queue_destroy(g, a->queue_id);
}

static const sim_call rows[] = {
#define DRM(name, nr, dir, bytes) {BR_DRM(name), name},
#include "drv/amd/drm.def"
#undef DRM
};

int
sim_drm_ioctl(br_simgpu *g, unsigned long request, void *arg)
{
    for (size_t k = 0; k < BR_COUNT(rows) && (request >> 8 & 255) == 'd'; k++)
        if ((rows[k].request & 255) == (request & 255))
            return sim_call_one(g, &rows[k], request, arg, rows[k].fn == userq);
    return -ENOTTY;
}
