/* amd_dev.c - opening an AMD GPU; its memory.
 *
 * Memory has two halves: addresses (reserved in our own address space, so that
 * CPU and GPU may share them; a page is left free behind each) and pages of the
 * kernel, mapped there for the GPU and, where it is wanted, for the CPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/amd_dev.h"
#include "drv/amd/drm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { OLDEST_MINOR = 6 }; /* GFX11 needs newer kernels anyway (5.19: 1.8) */

static br_code
refused(br_amd_dev *d, const char *what, int err, br_status *st)
{
    br_code c = br_fail(st, BR_E_NO_DEVICE, "%s: %s: %s", d->node.name, what,
                        strerror(-err));

    if (st && st->code == c)
        st->sys = -err;
    return c;
}

int
br_amd_ioctl(br_amd_dev *d, unsigned long request, void *arg)
{
    d->ioctls++;
    return d->os->ioctl(d->os->ctx, d->user ? d->drm : d->kfd, request, arg);
}

/* ---- memory ------------------------------------------------------------ */

static uint32_t
flags_of(const br_amd_want *w)
{
    static const uint32_t heaps[] = {
        [BR_AMD_VRAM] = BR_KFD_MEM_VRAM,
        [BR_AMD_BAR] = BR_KFD_MEM_VRAM | BR_KFD_MEM_PUBLIC,
        [BR_AMD_HOST] =
            BR_KFD_MEM_GTT | BR_KFD_MEM_COHERENT | BR_KFD_MEM_UNCACHED,
        [BR_AMD_USER] =
            BR_KFD_MEM_USERPTR | BR_KFD_MEM_COHERENT | BR_KFD_MEM_UNCACHED,
    };

    return heaps[w->heap] | BR_KFD_MEM_NO_SUBSTITUTE |
           (w->exec ? BR_KFD_MEM_EXECUTABLE : 0) |
           (w->read_only ? 0 : BR_KFD_MEM_WRITABLE);
}

/* Addresses, then pages of the kernel. */
static br_code
get(br_amd_dev *d, br_amd_mem *m, const br_amd_want *w, uint32_t flags,
    uint64_t *offset, br_status *st)
{
    struct br_kfd_alloc_memory a;
    int e;

    if (!w->va) {
        m->reserved = br_amd_reserve(m->bytes + BR_KFD_PAGE);
        if (!m->reserved)
            return br_fail(st, BR_E_OOM, "no addresses for %llu bytes",
                           (unsigned long long)m->bytes);
        m->va = (uint64_t)(uintptr_t)m->reserved;
    }
    a = (struct br_kfd_alloc_memory){.va = m->va,
                                     .bytes = m->bytes,
                                     .mmap_offset =
                                         (uint64_t)(uintptr_t)w->user,
                                     .gpu_id = d->node.gpu_id,
                                     .flags = flags};
    if (d->user) {
        e = br_amd_user_pages(d, m,
                              w->heap == BR_AMD_VRAM ? BR_DRM_VRAM : BR_DRM_GTT,
                              w->heap != BR_AMD_VRAM, offset);
        return e < 0 ? refused(d, "memory", e, st) : BR_OK;
    }
    e = br_amd_ioctl(d, BR_KFD(alloc_memory), &a);
    if (e < 0)
        return refused(d, "memory", e, st);
    m->handle = a.handle;
    *offset = a.mmap_offset;
    return BR_OK;
}

static int
map_for_gpu(br_amd_dev *d, br_amd_mem *m, const br_amd_want *w)
{
    struct br_kfd_map_memory g = {.handle = m->handle,
                                  .gpu_ids =
                                      (uint64_t)(uintptr_t)&d->node.gpu_id,
                                  .n = 1};
    int e;

    if (d->user)
        return br_amd_user_map(d, m, w);
    e = br_amd_ioctl(d, BR_KFD(map_memory), &g);
    return e < 0 || g.n_success == 1 ? e : -EIO;
}

static br_code
map_for_cpu(br_amd_dev *d, br_amd_mem *m, int fd, uint64_t offset,
            br_status *st)
{
    void *at = m->reserved;
    int e = d->os->map(d->os->ctx, fd, &at, m->bytes, offset);

    if (e < 0)
        return refused(d, "mapping memory for the processor", e, st);
    m->host = at;
    m->mapped = !m->reserved;
    return BR_OK;
}

br_code
br_amd_alloc(br_amd_dev *d, br_amd_mem *m, const br_amd_want *w, br_status *st)
{
    uint64_t offset;
    br_code c;
    int e;

    *m = (br_amd_mem){.va = w->va};
    if (!w->bytes || w->bytes > UINT64_MAX / 2 || w->va % BR_KFD_PAGE)
        return br_fail(st, BR_E_LIMIT, "%llu bytes at 0x%llx",
                       (unsigned long long)w->bytes, (unsigned long long)w->va);
    if (d->user && w->heap != BR_AMD_VRAM && w->heap != BR_AMD_HOST)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s: user queues have no such memory", d->node.name);
    m->bytes = (w->bytes + BR_KFD_PAGE - 1) & ~(uint64_t)(BR_KFD_PAGE - 1);
    c = get(d, m, w, flags_of(w), &offset, st);
    if (c == BR_OK && (w->heap == BR_AMD_BAR || w->heap == BR_AMD_HOST))
        c = map_for_cpu(d, m, d->drm, offset, st);
    if (c == BR_OK) {
        m->host = w->heap == BR_AMD_USER ? w->user : m->host;
        e = map_for_gpu(d, m, w);
        if (e < 0)
            c = refused(d, "mapping memory for the GPU", e, st);
    }
    if (c != BR_OK)
        br_amd_free(d, m);
    return c;
}

void
br_amd_free(br_amd_dev *d, br_amd_mem *m)
{
    struct br_kfd_map_memory g = {.handle = m->handle,
                                  .gpu_ids =
                                      (uint64_t)(uintptr_t)&d->node.gpu_id,
                                  .n = 1};
    struct br_kfd_free_memory f = {m->handle};

    if (m->handle && d->user) {
        br_amd_user_drop(d, m);
    } else if (m->handle) {
        br_amd_ioctl(d, BR_KFD(unmap_memory), &g);
        br_amd_ioctl(d, BR_KFD(free_memory), &f);
    }
    if (m->mapped)
        d->os->unmap(d->os->ctx, m->host, m->bytes);
    if (m->reserved)
        br_amd_unreserve(m->reserved, m->bytes + BR_KFD_PAGE);
    *m = (br_amd_mem){0};
}

/* The CPU's writes wait in the host data path; this word, mapped from the GPU's
 * registers, sends them on. The read makes the write arrive. */
void
br_amd_flush(br_amd_dev *d)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)(void *)d->hdp.host;

    if (!word) /* T2: the CPU reaches none of the GPU's memory */
        return;
    atomic_store_explicit(word, 1, memory_order_seq_cst);
    (void)atomic_load_explicit(word, memory_order_seq_cst);
}

static br_code
host_path(br_amd_dev *d, br_status *st)
{
    br_amd_want w = {.bytes = BR_KFD_PAGE};
    uint64_t offset;

    d->hdp = (br_amd_mem){.bytes = BR_KFD_PAGE};
    BR_TRY(get(d, &d->hdp, &w, BR_KFD_MEM_MMIO | BR_KFD_MEM_WRITABLE, &offset,
               st));
    return map_for_cpu(d, &d->hdp, d->kfd, offset, st);
}

/* ---- the device -------------------------------------------------------- */

static br_code
event(br_amd_dev *d, uint32_t type, uint64_t page, uint32_t *id, br_status *st)
{
    struct br_kfd_create_event e = {
        .page_offset = page, .type = type, .auto_reset = 1};
    int r = br_amd_ioctl(d, BR_KFD(create_event), &e);

    if (r < 0)
        return refused(d, "an event", r, st);
    *id = e.event_id;
    return BR_OK;
}

static br_code
events(br_amd_dev *d, br_status *st)
{
    br_amd_want page = {.bytes = BR_KFD_EVENT_PAGE_BYTES, .heap = BR_AMD_HOST};

    BR_TRY(br_amd_alloc(d, &d->events, &page, st));
    BR_TRY(event(d, BR_KFD_EVENT_SIGNAL, d->events.handle, &d->event, st));
    BR_TRY(event(d, BR_KFD_EVENT_MEMORY, 0, &d->fault_events[0], st));
    return event(d, BR_KFD_EVENT_HW_EXCEPTION, 0, &d->fault_events[1], st);
}

static br_code
connect(br_amd_dev *d, br_status *st)
{
    struct br_kfd_acquire_vm vm = {.gpu_id = d->node.gpu_id};
    char path[64];
    int e;

    d->kfd = d->os->open(d->os->ctx, "/dev/kfd");
    if (d->kfd < 0)
        return refused(d, "/dev/kfd", d->kfd, st);
    e = br_amd_ioctl(d, BR_KFD(version), &d->version);
    if (e < 0)
        return refused(d, "the driver's version", e, st);
    if (d->version.major != 1 || d->version.minor < OLDEST_MINOR)
        return br_fail(st, BR_E_VERSION, "/dev/kfd speaks %u.%u, not 1.%d",
                       d->version.major, d->version.minor, OLDEST_MINOR);
    snprintf(path, sizeof path, "/dev/dri/renderD%u",
             (unsigned)d->node.render_minor);
    d->drm = d->os->open(d->os->ctx, path);
    if (d->drm < 0)
        return refused(d, path, d->drm, st);
    vm.drm_fd = (uint32_t)d->drm;
    e = br_amd_ioctl(d, BR_KFD(acquire_vm), &vm);
    return e < 0 ? refused(d, "an address space", e, st) : BR_OK;
}

br_code
br_amd_open(br_amd_dev *d, const br_amd_os *os, const br_amd_node *n,
            br_status *st)
{
    *d = (br_amd_dev){.os = os, .node = *n, .kfd = -1, .drm = -1};
    d->sizes = br_kfd_sizes_of((uint32_t)n->gfx,
                               n->simds / n->simds_per_cu / n->xccs, n->xccs);
    if (n->cwsr_bytes && n->ctl_bytes) { /* the kernel knows better */
        d->sizes.ctl = n->ctl_bytes;
        d->sizes.cwsr = n->cwsr_bytes;
        d->sizes.area = (n->cwsr_bytes + d->sizes.debug) * n->xccs;
        d->sizes.area =
            (d->sizes.area + BR_KFD_PAGE - 1) / BR_KFD_PAGE * BR_KFD_PAGE;
    }
    BR_TRY(connect(d, st));
    BR_TRY(events(d, st));
    return host_path(d, st);
}

void
br_amd_close(br_amd_dev *d)
{
    uint32_t ids[] = {d->event, d->fault_events[0], d->fault_events[1]};

    if (!d->os)
        return;
    for (size_t k = 0; k < BR_COUNT(ids); k++) {
        struct br_kfd_destroy_event e = {.event_id = ids[k]};

        if (e.event_id)
            br_amd_ioctl(d, BR_KFD(destroy_event), &e);
    }
    br_amd_free(d, &d->events);
    br_amd_free(d, &d->hdp);
    if (d->doorbells)
        d->os->unmap(d->os->ctx, d->doorbells, BR_KFD_DOORBELL_BYTES);
    if (d->user)
        br_amd_user_close(d);
    if (d->drm >= 0)
        d->os->close(d->os->ctx, d->drm);
    if (d->kfd >= 0)
        d->os->close(d->os->ctx, d->kfd);
    *d = (br_amd_dev){.kfd = -1, .drm = -1};
}
