/* sim_os.c - files, mappings and sysfs of the simulated kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes/"

static const sim_chip chips[] = {
#define CHIP(name, gfx, device, cus, engines, gib) \
    {#name, gfx, device, cus, engines, gib},
#include "drv/sim/chips.def"
#undef CHIP
};

/* ---- files ------------------------------------------------------------- */

static int
sim_open(void *ctx, const char *path)
{
    br_simgpu *g = ctx;
    char render[64];
    bool *open = NULL;

    snprintf(render, sizeof render, "/dev/dri/renderD%d", SIM_RENDER_MINOR);
    if (strcmp(path, "/dev/kfd") == 0)
        open = &g->kfd_open;
    else if (strcmp(path, render) == 0)
        open = &g->drm_open;
    if (!open)
        return -ENOENT;
    if (*open)
        return -EBUSY; /* the kernel would share; nobody here needs it */
    *open = true;
    return open == &g->kfd_open ? SIM_KFD_FD : SIM_DRM_FD;
}

static void
sim_close(void *ctx, int fd)
{
    br_simgpu *g = ctx;
    bool *open = fd == SIM_KFD_FD ? &g->kfd_open : &g->drm_open;

    br_mutex_lock(&g->lock);
    if ((fd != SIM_KFD_FD && fd != SIM_DRM_FD) || !*open)
        sim_report(g, "descriptor %d is closed, and was not open", fd);
    *open = false;
    br_mutex_unlock(&g->lock);
}

int
sim_call_one(br_simgpu *g, const sim_call *c, unsigned long request, void *arg,
             bool locks)
{
    const uint32_t user = request >> 16 & 0x3fff;
    const uint32_t both = BR_MIN(c->request >> 16 & 0x3fff, user);
    uint64_t copy[96 / 8] = {0};
    int e;

    br_check(both <= sizeof copy);
    if (!arg)
        return -EFAULT;
    if (c->request >> 30 & BR_KFD_W)
        memcpy(copy, arg, both);
    if (!locks)
        br_mutex_lock(&g->lock);
    e = c->fn(g, copy);
    if (!locks)
        br_mutex_unlock(&g->lock);
    if (c->request >> 30 & BR_KFD_R)
        memcpy(arg, copy, both);
    return e;
}

static int
sim_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
    br_simgpu *g = ctx;

    atomic_fetch_add_explicit(&g->ioctls, 1, memory_order_relaxed);
    if (fd == SIM_KFD_FD && g->kfd_open)
        return sim_kfd_ioctl(g, request, arg);
    return fd == SIM_DRM_FD && g->drm_open ? sim_drm_ioctl(g, request, arg)
                                           : -EBADF;
}

/* ---- mappings ---------------------------------------------------------- */

/* At the driver's place the memory is the driver's, and ends with it. */
static int
map_bo(br_simgpu *g, sim_bo *b, void **at)
{
    if (*at) {
        if (b->on_gpu || b->cpu) {
            sim_report(g, "memory moves after the GPU or the CPU has it");
            return -EBUSY;
        }
        if (mmap(*at, b->bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            return -ENOMEM;
        munmap(b->host, b->bytes);
        b->host = *at;
        b->own = false;
    }
    b->cpu = true;
    *at = b->host;
    return 0;
}

static int
map_locked(br_simgpu *g, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    if (fd == SIM_KFD_FD && offset >> 62 == 3) {
        if (bytes != BR_KFD_DOORBELL_BYTES || offset % bytes || *at)
            return -EINVAL;
        g->doorbells_mapped = true;
        *at = (void *)g->doorbells;
        return 0;
    }
    for (size_t k = 0; k < g->bos.n; k++) {
        sim_bo *b = g->bos.at[k];

        if (!b || !b->live || b->mmap_offset != offset ||
            (fd == SIM_KFD_FD) != ((b->flags & BR_KFD_MEM_MMIO) != 0))
            continue;
        if (!bytes || bytes > b->bytes)
            return -EINVAL;
        if ((b->flags & BR_KFD_MEM_USERPTR) ||
            ((b->flags & BR_KFD_MEM_VRAM) && !(b->flags & BR_KFD_MEM_PUBLIC)))
            return -EPERM;
        return map_bo(g, b, at);
    }
    return fd == SIM_KFD_FD ? -EFAULT : -EINVAL;
}

static int
sim_map(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    br_simgpu *g = ctx;
    int e;

    br_mutex_lock(&g->lock);
    e = map_locked(g, fd, at, bytes, offset);
    br_mutex_unlock(&g->lock);
    return e;
}

static void
sim_unmap(void *ctx, void *p, uint64_t bytes)
{
    br_simgpu *g = ctx;
    bool found = false;

    br_mutex_lock(&g->lock);
    if (p == (void *)g->doorbells) {
        found = g->doorbells_mapped;
        g->doorbells_mapped = false;
    }
    for (size_t k = 0; k < g->bos.n && !found; k++) {
        sim_bo *b = g->bos.at[k];

        if (!b || !b->cpu || b->host != p)
            continue;
        found = true;
        b->cpu = false;
        if (!b->live)
            sim_bo_drop(g, b);
    }
    if (!found)
        sim_report(g, "%llu bytes are unmapped that were not mapped",
                   (unsigned long long)bytes);
    br_mutex_unlock(&g->lock);
}

/* ---- sysfs ------------------------------------------------------------- */

static int
properties(const br_simgpu *g, char *out, size_t size)
{
    const sim_chip *c = g->chip;
    br_kfd_sizes z = br_kfd_sizes_of(c->gfx, c->cus, 1);
    char sizes[80] = "";

    if (g->o.tells_sizes)
        snprintf(sizes, sizeof sizes, "cwsr_size %llu\nctl_stack_size %llu\n",
                 (unsigned long long)z.cwsr, (unsigned long long)z.ctl);
    return snprintf(
        out, size,
        "cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\n"
        "max_waves_per_simd 16\nlds_size_in_kb 64\nwave_front_size 32\n"
        "array_count %u\nsimd_arrays_per_engine 2\nsimd_per_cu 2\n"
        "max_slots_scratch_cu 32\ngfx_target_version %u\nvendor_id 4098\n"
        "device_id %u\ndrm_render_minor %d\nnum_cp_queues 8\n"
        "local_mem_size 0\nfw_version 2500\nnum_xcc 1\n%s",
        c->cus * 2, c->engines * 2, c->gfx, c->device, SIM_RENDER_MINOR, sizes);
}

/* Node 0 is the processor, node 1 the GPU. */
static int
sim_read(void *ctx, const char *path, char *out, size_t size)
{
    const br_simgpu *g = ctx;
    int n = -ENOENT;

    if (strcmp(path, NODES "0/gpu_id") == 0)
        n = snprintf(out, size, "0\n");
    else if (strcmp(path, NODES "1/gpu_id") == 0)
        n = snprintf(out, size, "%d\n", SIM_GPU_ID);
    else if (strcmp(path, NODES "1/properties") == 0)
        n = properties(g, out, size);
    else if (strcmp(path, NODES "1/mem_banks/0/properties") == 0)
        n = snprintf(out, size,
                     "heap_type %d\nsize_in_bytes %llu\nflags 0\n"
                     "width 256\nmem_clk_max 1258\n",
                     g->o.small_bar ? 2 : 1,
                     (unsigned long long)g->chip->gib << 30);
    return BR_MIN(n, (int)size - 1);
}

/* ---- from outside ------------------------------------------------------ */

br_code
br_simgpu_new(br_simgpu **out, const br_simgpu_opts *o, br_status *st)
{
    const sim_chip *c = NULL;
    br_simgpu *g;

    *out = NULL;
    for (size_t k = 0; k < BR_COUNT(chips); k++)
        if (strcmp(chips[k].name, o->cpu) == 0)
            c = &chips[k];
    if (!c)
        return br_fail(st, BR_E_NOT_FOUND, "no simulated GPU is called '%s'",
                       o->cpu);
    g = br_try_calloc(1, sizeof *g);
    if (!g)
        return br_fail(st, BR_E_OOM, "no memory for a GPU");
    g->o = *o;
    g->chip = c;
    g->os = (br_amd_os){.ctx = g,
                        .open = sim_open,
                        .close = sim_close,
                        .ioctl = sim_ioctl,
                        .map = sim_map,
                        .unmap = sim_unmap,
                        .read = sim_read};
    g->lock = g->events_lock = (br_mutex)BR_MUTEX;
    g->waves.cpu = br_gcn_cpu_find(c->name);
    g->waves.check = o->check;
    g->waves.seed = o->seed;
    g->waves.threads = o->threads;
    *out = g;
    return BR_OK;
}

bool
br_simgpu_free(br_simgpu *g)
{
    bool clean;

    if (!g)
        return true;
    clean =
        !g->kfd_open && !g->drm_open && !g->doorbells_mapped && !g->timeline;
    for (size_t k = 0; k < SIM_MAX_QUEUES; k++)
        if (g->queues[k].used) {
            clean = false;
            sim_queue_end(g, &g->queues[k]);
        }
    for (size_t k = 0; k < g->bos.n; k++)
        if (g->bos.at[k]) {
            clean = false;
            sim_bo_drop(g, g->bos.at[k]);
        }
    for (size_t k = 0; k < SIM_MAX_EVENTS; k++)
        clean &= !g->events[k].used;
    br_sim_fini(&g->waves);
    br_vec_fini(&g->bos);
    br_str_fini(&g->reports);
    br_free(g);
    return clean;
}

const br_amd_os *
br_simgpu_os(br_simgpu *g)
{
    return &g->os;
}

void
br_simgpu_reports(br_simgpu *g, br_str *out)
{
    br_mutex_lock(&g->lock);
    br_str_puts(out, br_str_z(&g->reports));
    br_mutex_unlock(&g->lock);
}

br_code
br_simgpu_fault(br_simgpu *g, br_status *st)
{
    br_code c;

    br_mutex_lock(&g->lock);
    c = g->fault.code;
    if (c != BR_OK && st)
        *st = g->fault;
    br_mutex_unlock(&g->lock);
    return c;
}

br_sim *
br_simgpu_waves(br_simgpu *g)
{
    return &g->waves;
}

uint64_t
br_simgpu_ioctls(const br_simgpu *g)
{
    return atomic_load_explicit(&g->ioctls, memory_order_relaxed);
}
