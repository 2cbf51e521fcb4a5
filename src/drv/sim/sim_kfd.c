/* sim_kfd.c - the ioctls of /dev/kfd, as strict as Linux 6.12 and later.
 *
 * Arguments are copied in and out as the kernel does it: as many bytes as both
 * sides know, zeros for the rest. Checks stand in the kernel's order and answer
 * with its errno; where the kernel would let a thing pass that hangs a GPU, a
 * report says so (sim_cp.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define UNSIGNALED UINT64_MAX /* in a slot of the event page */

void
sim_report(br_simgpu *g, const char *fmt, ...)
{
    va_list ap;

    if (g->reports.n > SIM_REPORT_BYTES)
        return;
    va_start(ap, fmt);
    br_str_vprintf(&g->reports, fmt, ap);
    va_end(ap);
    br_str_putc(&g->reports, '\n');
}

/* ---- memory ------------------------------------------------------------ */

sim_bo *
sim_bo_at(br_simgpu *g, uint64_t va)
{
    for (size_t k = 0; k < g->bos.n; k++) {
        sim_bo *b = g->bos.at[k];

        if (b && b->on_gpu && va - b->va < b->bytes)
            return b;
    }
    return NULL;
}

static sim_bo *
by_handle(br_simgpu *g, uint64_t handle)
{
    uint64_t k = (uint32_t)handle - 1ull;

    return k < g->bos.n && g->bos.at[k] && g->bos.at[k]->live ? g->bos.at[k]
                                                              : NULL;
}

void
sim_bo_drop(br_simgpu *g, sim_bo *b)
{
    for (size_t k = 0; k < g->bos.n; k++)
        if (g->bos.at[k] == b)
            g->bos.at[k] = NULL;
    if (b->own)
        munmap(b->host, b->bytes);
    if (b->flags & BR_KFD_MEM_VRAM)
        g->vram_used -= b->bytes;
    br_free(b);
}

static int
alloc_checked(const br_simgpu *g, const struct br_kfd_alloc_memory *a)
{
    uint32_t kind = a->flags & 31;

    if (!a->bytes || a->bytes > UINT64_MAX / 2)
        return -EINVAL;
    if ((a->flags & BR_KFD_MEM_PUBLIC) && kind == BR_KFD_MEM_VRAM &&
        g->o.small_bar)
        return -EINVAL;
    if (a->gpu_id != SIM_GPU_ID)
        return -EINVAL;
    if (!g->has_vm)
        return -ESRCH;
    if (kind == BR_KFD_MEM_MMIO)
        return a->bytes == BR_KFD_PAGE ? 0 : -EINVAL;
    if (kind == BR_KFD_MEM_USERPTR)
        return a->mmap_offset && a->mmap_offset % BR_KFD_PAGE == 0 ? 0
                                                                   : -EINVAL;
    if (kind == BR_KFD_MEM_VRAM)
        return g->vram_used + a->bytes > (uint64_t)g->chip->gib << 30 ? -ENOMEM
                                                                      : 0;
    return kind == BR_KFD_MEM_GTT ? 0 : -EINVAL;
}

sim_bo *
sim_bo_new(br_simgpu *g, uint64_t va, uint64_t bytes, uint32_t flags)
{
    sim_bo *b = br_try_calloc(1, sizeof *b);
    void *p;

    if (!b || g->bos.n == SIM_MAX_BUFFERS || !br_vec_push(&g->bos, b)) {
        br_free(b);
        return NULL;
    }
    *b = (sim_bo){.va = va,
                  .bytes =
                      (bytes + BR_KFD_PAGE - 1) & ~(uint64_t)(BR_KFD_PAGE - 1),
                  .flags = flags,
                  .live = true,
                  .mmap_offset = (uint64_t)g->bos.n << 40};
    g->vram_used += flags & BR_KFD_MEM_VRAM ? b->bytes : 0;
    if (flags & BR_KFD_MEM_USERPTR)
        return b;
    p = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b->own = p != MAP_FAILED;
    b->host = b->own ? p : NULL;
    if (b->own)
        return b;
    sim_bo_drop(g, b);
    return NULL;
}

static int
alloc_memory(br_simgpu *g, void *arg)
{
    struct br_kfd_alloc_memory *a = arg;
    int e = alloc_checked(g, a);
    sim_bo *b;

    if (e)
        return e;
    b = sim_bo_new(g, a->va, a->bytes, a->flags);
    if (!b)
        return -ENOMEM;
    if (a->flags & BR_KFD_MEM_USERPTR)
        b->host = (uint8_t *)(uintptr_t)a->mmap_offset;
    if (a->flags & BR_KFD_MEM_MMIO)
        b->mmap_offset = BR_KFD_MMAP_GPU(SIM_GPU_ID);
    a->handle = (uint64_t)SIM_GPU_ID << 32 | g->bos.n;
    a->mmap_offset = b->mmap_offset;
    return 0;
}

static int
free_memory(br_simgpu *g, void *arg)
{
    const struct br_kfd_free_memory *a = arg;
    sim_bo *b = by_handle(g, a->handle);

    if (a->handle >> 32 != SIM_GPU_ID || !b)
        return -EINVAL;
    if (b->on_gpu)
        return -EBUSY;
    b->live = false;
    if (g->event_page == b)
        g->event_page = NULL;
    if (!b->cpu || !b->own)
        sim_bo_drop(g, b);
    return 0;
}

/* What map and unmap ask first. */
static int
mapping_checked(br_simgpu *g, const struct br_kfd_map_memory *a, sim_bo **out)
{
    const uint32_t *ids = (const uint32_t *)(uintptr_t)a->gpu_ids;

    if (!a->n || a->n_success > a->n)
        return -EINVAL;
    if (!ids)
        return -EFAULT;
    if (a->handle >> 32 != SIM_GPU_ID)
        return -EINVAL;
    *out = by_handle(g, a->handle);
    if (!*out)
        return -ENOMEM;
    for (uint32_t k = a->n_success; k < a->n; k++)
        if (ids[k] != SIM_GPU_ID)
            return -EINVAL;
    return 0;
}

int
sim_bo_map(br_simgpu *g, sim_bo *b)
{
    br_kregion r = {.addr = b->va,
                    .bytes = b->bytes,
                    .host = b->host,
                    .read_only = !(b->flags & BR_KFD_MEM_WRITABLE),
                    .name = "memory of the GPU"};
    br_code c = BR_OK;

    if (!b->va || b->va % BR_KFD_PAGE)
        return -EINVAL;
    if (!b->on_gpu && !(b->flags & BR_KFD_MEM_MMIO))
        c = b->flags & BR_KFD_MEM_EXECUTABLE ? sim_vm_code(&g->waves, &r, NULL)
                                             : br_sim_map(&g->waves, &r, NULL);
    if (c != BR_OK)
        return c == BR_E_OOM ? -ENOMEM : -EINVAL;
    b->on_gpu = true;
    return 0;
}

static int
map_memory(br_simgpu *g, void *arg)
{
    struct br_kfd_map_memory *a = arg;
    sim_bo *b;
    int e = mapping_checked(g, a, &b);

    if (!e)
        e = sim_bo_map(g, b);
    if (!e)
        a->n_success = a->n;
    return e;
}

static int
unmap_memory(br_simgpu *g, void *arg)
{
    struct br_kfd_map_memory *a = arg;
    sim_bo *b;
    int e = mapping_checked(g, a, &b);

    if (e)
        return e;
    if (b->queues)
        return -EBUSY;
    if (b->on_gpu)
        sim_vm_unmap(&g->waves, b->va);
    b->on_gpu = false;
    a->n_success = a->n;
    return 0;
}

/* ---- queues ------------------------------------------------------------ */

/* A queue's buffer: it begins at the mapping's first page and is as long. */
static int
buffer(br_simgpu *g, sim_queue *q, unsigned k, uint64_t va, uint64_t bytes)
{
    sim_bo *b = sim_bo_at(g, va);

    if (!b || (!g->o.lax && (b->va != (va & ~(uint64_t)(BR_KFD_PAGE - 1)) ||
                             b->bytes != bytes)))
        return -EINVAL;
    q->bo[k] = b;
    return 0;
}

static int
buffers(br_simgpu *g, sim_queue *q)
{
    const struct br_kfd_create_queue *a = &q->a;
    br_kfd_sizes s = br_kfd_sizes_of(g->chip->gfx, g->chip->cus, 1);
    uint64_t area = (a->save_bytes + s.debug + BR_KFD_PAGE - 1) &
                    ~(uint64_t)(BR_KFD_PAGE - 1);
    int e = buffer(g, q, 0, a->write_pointer, BR_KFD_PAGE);

    if (!e)
        e = buffer(g, q, 1, a->read_pointer, BR_KFD_PAGE);
    if (!e)
        e = buffer(g, q, 2, a->ring, a->ring_bytes);
    if (!e && a->eop)
        e = !g->o.lax && a->eop_bytes != BR_KFD_EOP_BYTES
                ? -EINVAL
                : buffer(g, q, 3, a->eop, a->eop_bytes);
    if (!e && !g->o.lax && (a->ctl_bytes != s.ctl || a->save_bytes < s.cwsr))
        e = -EINVAL;
    return e ? e : buffer(g, q, 4, a->save, area);
}

static int
queue_checked(const br_simgpu *g, const struct br_kfd_create_queue *a)
{
    if ((a->percentage & 255) > BR_KFD_MAX_PERCENTAGE ||
        a->priority > BR_KFD_MAX_PRIORITY ||
        (a->ring_bytes & (a->ring_bytes - 1)))
        return -EINVAL;
    if (a->type != BR_KFD_QUEUE_COMPUTE && a->type != BR_KFD_QUEUE_AQL)
        return -EINVAL;
    if (a->gpu_id != SIM_GPU_ID)
        return -EINVAL;
    return g->has_vm ? 0 : -ESRCH;
}

static void *
host_of(const sim_bo *b, uint64_t va)
{
    return b->host + (va - b->va);
}

sim_queue *
sim_queue_new(br_simgpu *g, const struct br_kfd_create_queue *a)
{
    uint32_t id = 0;

    while (id < SIM_MAX_QUEUES && g->queues[id].used)
        id++;
    if (id == SIM_MAX_QUEUES)
        return NULL;
    g->queues[id] = (sim_queue){.g = g, .a = *a};
    g->queues[id].a.queue_id = id;
    return &g->queues[id];
}

int
sim_queue_start(sim_queue *q)
{
    bool aql = q->a.type == BR_KFD_QUEUE_AQL;

    q->write = host_of(q->bo[0], q->a.write_pointer);
    q->read = host_of(q->bo[1], q->a.read_pointer);
    q->slots = q->a.ring_bytes / (aql ? sizeof(br_aql_packet) : 4);
    q->shadow = br_try_alloc(q->a.ring_bytes);
    if (!q->shadow)
        return -ENOMEM;
    /* An AQL doorbell holds a packet's number: "none" comes before 0. */
    atomic_store_explicit(q->doorbell, aql ? UINT64_MAX : 0,
                          memory_order_relaxed);
    if (br_thread_start(&q->thread, "simgpu", sim_cp_main, q, NULL) != BR_OK) {
        br_free(q->shadow);
        return -ENOMEM;
    }
    for (size_t k = 0; k < BR_COUNT(q->bo); k++)
        if (q->bo[k])
            q->bo[k]->queues++;
    q->used = true;
    return 0;
}

static int
create_queue(br_simgpu *g, void *arg)
{
    struct br_kfd_create_queue *a = arg;
    int e = queue_checked(g, a);
    sim_queue *q;

    if (e)
        return e;
    q = sim_queue_new(g, a);
    if (!q)
        return -ENOMEM;
    q->doorbell = (_Atomic uint64_t *)&g->doorbells[q->a.queue_id];
    e = buffers(g, q);
    if (!e)
        e = sim_queue_start(q);
    if (e)
        return e;
    a->queue_id = q->a.queue_id;
    a->doorbell_offset =
        BR_KFD_MMAP_DOORBELL | BR_KFD_MMAP_GPU(SIM_GPU_ID) | a->queue_id * 8ull;
    return 0;
}

void
sim_queue_end(br_simgpu *g, sim_queue *q)
{
    uint64_t written;

    atomic_store_explicit(&q->stop, true, memory_order_release);
    br_event_signal(&g->kick);
    br_thread_join(&q->thread);
    br_mutex_lock(&g->lock);
    written = atomic_load_explicit(q->write, memory_order_acquire);
    if (!q->dead && written > q->target)
        sim_report(
            g,
            "queue ends with %llu packets written, the doorbell rung for "
            "%llu",
            (unsigned long long)written, (unsigned long long)q->target);
    for (size_t k = 0; k < BR_COUNT(q->bo); k++)
        if (q->bo[k])
            q->bo[k]->queues--;
    br_free(q->shadow);
    q->used = false;
    br_mutex_unlock(&g->lock);
}

int
sim_queue_destroy(br_simgpu *g, uint32_t id)
{
    bool there;

    /* First: a dispatch of its own holds the lock. */
    if (id < SIM_MAX_QUEUES)
        atomic_store_explicit(&g->queues[id].stop, true, memory_order_release);
    br_mutex_lock(&g->lock);
    there = id < SIM_MAX_QUEUES && g->queues[id].used;
    br_mutex_unlock(&g->lock);
    if (!there)
        return -EINVAL;
    sim_queue_end(g, &g->queues[id]);
    return 0;
}

/* ---- events ------------------------------------------------------------ */

/* Slots begin unsignaled; they lie in memory that the GPU reaches, too. */
static int
event_page(br_simgpu *g, uint64_t handle)
{
    sim_bo *b = by_handle(g, handle);

    if (g->event_page || !b || b->bytes < BR_KFD_EVENT_PAGE_BYTES)
        return -EINVAL;
    memset(b->host, 255, BR_KFD_EVENT_PAGE_BYTES);
    g->event_page = b;
    return 0;
}

static int
create_event(br_simgpu *g, void *arg)
{
    struct br_kfd_create_event *a = arg;
    bool signal = a->type == BR_KFD_EVENT_SIGNAL;
    int e = a->page_offset ? event_page(g, a->page_offset) : 0;
    uint32_t k = 1; /* 0 is no event */

    if (e)
        return e;
    if (!signal && a->type != BR_KFD_EVENT_MEMORY &&
        a->type != BR_KFD_EVENT_HW_EXCEPTION)
        return -EINVAL;
    if (signal && !g->event_page) {
        sim_report(g, "a signal event before there is a page for it");
        return -ENOMEM;
    }
    br_mutex_lock(&g->events_lock);
    while (k < SIM_MAX_EVENTS && g->events[k].used)
        k++;
    if (k < SIM_MAX_EVENTS) {
        g->events[k] = (sim_event){.used = true,
                                   .auto_reset = a->auto_reset != 0,
                                   .type = a->type,
                                   .id = k | (signal ? 0 : SIM_NONSIGNAL)};
        a->event_id = a->trigger = g->events[k].id;
        a->slot = k;
    }
    br_mutex_unlock(&g->events_lock);
    return k < SIM_MAX_EVENTS ? 0 : -ENOSPC;
}

/* With events_lock. */
static sim_event *
event_of(br_simgpu *g, uint32_t id)
{
    sim_event *e = &g->events[id & (SIM_MAX_EVENTS - 1)];

    return e->used && e->id == id ? e : NULL;
}

static int
destroy_event(br_simgpu *g, void *arg)
{
    const struct br_kfd_destroy_event *a = arg;
    sim_event *e;

    br_mutex_lock(&g->events_lock);
    e = event_of(g, a->event_id);
    if (e)
        e->used = false;
    br_mutex_unlock(&g->events_lock);
    return e ? 0 : -EINVAL;
}

static void
set_event(br_simgpu *g, sim_event *e)
{
    atomic_store_explicit(&e->set, 1, memory_order_release);
    br_event_signal(&g->changed);
}

void
sim_interrupt(br_simgpu *g, uint32_t id)
{
    _Atomic uint64_t *slots =
        g->event_page ? (void *)g->event_page->host : NULL;
    sim_event *e;

    br_mutex_lock(&g->events_lock);
    e = id < SIM_MAX_EVENTS ? event_of(g, id) : NULL;
    if (!e || !slots ||
        atomic_exchange_explicit(&slots[id], UNSIGNALED,
                                 memory_order_acq_rel) == UNSIGNALED)
        sim_report(g, "an interrupt for event %u, whose slot nobody wrote", id);
    else
        set_event(g, e);
    br_mutex_unlock(&g->events_lock);
}

void
sim_hang(br_simgpu *g)
{
    br_mutex_lock(&g->events_lock);
    for (size_t k = 0; k < SIM_MAX_EVENTS; k++)
        if (g->events[k].used && g->events[k].type == BR_KFD_EVENT_HW_EXCEPTION)
            set_event(g, &g->events[k]);
    br_mutex_unlock(&g->events_lock);
}

typedef struct waiting {
    sim_event *e[SIM_MAX_EVENTS];
    uint32_t n, all;
} waiting;

static bool
happened(void *arg)
{
    const waiting *w = arg;
    uint32_t set = 0;

    for (uint32_t k = 0; k < w->n; k++)
        set += atomic_load_explicit(&w->e[k]->set, memory_order_acquire);
    return w->all ? set == w->n : set > 0;
}

static int
wait_events(br_simgpu *g, void *arg)
{
    struct br_kfd_wait_events *a = arg;
    struct br_kfd_event_data *d = (void *)(uintptr_t)a->events;
    waiting w = {.n = a->n, .all = a->all};
    int64_t ns = a->timeout_ms == UINT32_MAX ? -1 : a->timeout_ms * 1000000ll;

    if (a->n > SIM_MAX_EVENTS)
        return -EINVAL;
    if (!d)
        return -EFAULT;
    br_mutex_lock(&g->events_lock);
    for (uint32_t k = 0; k < a->n; k++)
        w.e[k] = event_of(g, d[k].event_id);
    br_mutex_unlock(&g->events_lock);
    for (uint32_t k = 0; k < a->n; k++)
        if (!w.e[k])
            return -EINVAL;
    br_event_signal(&g->kick);
    a->result = br_event_await(&g->changed, happened, &w, 0, ns)
                    ? BR_KFD_WAIT_COMPLETE
                    : BR_KFD_WAIT_TIMEOUT;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t set =
            w.e[k]->auto_reset
                ? atomic_exchange_explicit(&w.e[k]->set, 0,
                                           memory_order_acq_rel)
                : atomic_load_explicit(&w.e[k]->set, memory_order_acquire);

        if (set && w.e[k]->type == BR_KFD_EVENT_HW_EXCEPTION)
            d[k].hw = (struct br_kfd_hw_fault){.gpu_id = SIM_GPU_ID};
    }
    return 0;
}

/* ---- the rest, and the door -------------------------------------------- */

static int
version(br_simgpu *g, void *arg)
{
    (void)g;
    *(struct br_kfd_version *)arg = (struct br_kfd_version){1, 17};
    return 0;
}

static int
acquire_vm(br_simgpu *g, void *arg)
{
    const struct br_kfd_acquire_vm *a = arg;

    if (a->drm_fd != SIM_DRM_FD || !g->drm_open || a->gpu_id != SIM_GPU_ID)
        return -EINVAL;
    g->has_vm = true;
    return 0;
}

static int
destroy_queue(br_simgpu *g, void *arg)
{
    const struct br_kfd_destroy_queue *a = arg;

    return sim_queue_destroy(g, a->queue_id);
}

static const sim_call rows[] = {
#define KFD(name, nr, dir, bytes) {BR_KFD(name), name},
#include "drv/amd/kfd.def"
#undef KFD
};

int
sim_kfd_ioctl(br_simgpu *g, unsigned long request, void *arg)
{
    uint32_t nr = request & 255;

    if ((request >> 8 & 255) != 'K' || nr < BR_KFD_FIRST || nr >= BR_KFD_END)
        return -ENOTTY;
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if ((rows[k].request & 255) == nr)
            return sim_call_one(g, &rows[k], request, arg,
                                rows[k].fn == wait_events ||
                                    rows[k].fn == destroy_queue);
    br_mutex_lock(&g->lock);
    sim_report(g, "ioctl 0x%02x of /dev/kfd is not simulated", nr);
    br_mutex_unlock(&g->lock);
    return -ENOTTY;
}
