/* amd_trace.c - see amd_trace.h.
 *
 * Of memory a copy is kept; what differs from it is who wrote since: the host
 * before a call or a doorbell, the GPU at the end of a wait. A queue's read
 * pointer is left out, for the GPU moves it when it likes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/amd_trace.h"

#include "base/thread.h"
#include "drv/amd/drm.h"
#include "drv/amd/kfd.h"

#include <inttypes.h>
#include <string.h>

/* What a GPU writes after the fence that a wait sees: an event's slot, a
 * packet's header. */
enum { SETTLE_NS = 2 * 1000 * 1000, WORD = 4, MAX_STRUCT = 128 };

typedef struct piece { /* of memory */
    uint64_t va;       /* 0: the GPU has none yet */
    uint64_t bytes, handle, offset;
    uint8_t *host, *was; /* NULL until it is mapped */
    bool bell;           /* a doorbell, which is not looked at */
} piece;

struct br_amd_trace {
    br_amd_os os;
    const br_amd_os *under;
    br_str out;
    BR_VEC(piece) pieces;
    BR_VEC(uint64_t) pointers; /* addresses of read pointers */
    int drm;
    const uint8_t *doorbells;
    bool lost;
};

/* ---- lines ------------------------------------------------------------ */

static void
put_hex(br_amd_trace *t, const void *p, size_t n)
{
    const uint8_t *b = p;

    br_str_puts(&t->out, n ? " " : " -");
    for (size_t k = 0; k < n; k++)
        br_str_printf(&t->out, "%02x", b[k]);
}

static bool
is_pointer(const br_amd_trace *t, uint64_t va)
{
    for (size_t k = 0; k < t->pointers.n; k++)
        if (va - t->pointers.at[k] < 8)
            return true;
    return false;
}

static bool
differs(const br_amd_trace *t, const piece *p, uint64_t at)
{
    uint32_t now = __atomic_load_n(
        (const uint32_t *)(const void *)(p->host + at), __ATOMIC_ACQUIRE);

    return memcmp(&now, p->was + at, WORD) != 0 && !is_pointer(t, p->va + at);
}

/* Words that changed, the last run of them first: a packet's body before its
 * header. */
static void
changed(br_amd_trace *t, const char *who)
{
    for (size_t k = 0; k < t->pieces.n; k++) {
        piece *p = &t->pieces.at[k];

        for (uint64_t end = p->was && p->va ? p->bytes : 0, at; end; end = at) {
            at = end - WORD;
            if (!differs(t, p, at))
                continue;
            while (at && differs(t, p, at - WORD))
                at -= WORD;
            memcpy(p->was + at, p->host + at, end - at);
            br_str_printf(&t->out, "%s %" PRIx64, who, p->va + at);
            put_hex(t, p->was + at, end - at);
            br_str_putc(&t->out, '\n');
        }
    }
}

/* ---- the table -------------------------------------------------------- */

static int
trace_open(void *ctx, const char *path)
{
    br_amd_trace *t = ctx;
    int fd = t->under->open(t->under->ctx, path);

    br_str_printf(&t->out, "open %s %d\n", path, fd);
    if (fd >= 0 && strstr(path, "renderD"))
        t->drm = fd;
    return fd;
}

static void
trace_close(void *ctx, int fd)
{
    br_amd_trace *t = ctx;

    br_str_printf(&t->out, "close %d\n", fd);
    t->under->close(t->under->ctx, fd);
}

static void
forget(br_amd_trace *t, uint64_t handle)
{
    for (size_t k = 0; k < t->pieces.n; k++)
        if (t->pieces.at[k].handle == handle) {
            br_free(t->pieces.at[k].was);
            t->pieces.at[k] = t->pieces.at[--t->pieces.n];
            return;
        }
}

static piece *
of_handle(br_amd_trace *t, uint64_t handle)
{
    for (size_t k = 0; k < t->pieces.n; k++)
        if (t->pieces.at[k].handle == handle)
            return &t->pieces.at[k];
    return NULL;
}

/* What a call of the render node says of memory and queues; answers lie where
 * questions did, so was is what the struct had before. */
static void
follow_user(br_amd_trace *t, unsigned long request, const void *was,
            const void *arg)
{
    const struct br_drm_gem_create *c = was, *made = arg;
    const struct br_drm_gem_mmap *m = was, *mapped = arg;
    const struct br_drm_gem_va *va = was;
    const struct br_drm_userq *u = was;
    piece *p = NULL;

    if (request == BR_DRM(gem_create)) {
        t->lost |= !br_vec_push(
            &t->pieces, ((piece){.bytes = c->bytes,
                                 .handle = made->handle,
                                 .offset = UINT64_MAX,
                                 .bell = c->domains == BR_DRM_DOORBELL}));
    } else if (request == BR_DRM(gem_mmap)) {
        p = of_handle(t, m->handle);
        if (p)
            p->offset = mapped->offset;
    } else if (request == BR_DRM(gem_va)) {
        p = of_handle(t, va->handle);
        if (p)
            p->va = va->op == BR_DRM_VA_MAP ? va->va : 0;
    } else if (request == BR_DRM(userq) && u->op == BR_DRM_USERQ_CREATE) {
        t->lost |= !br_vec_push(&t->pointers, u->read_pointer);
    }
}

/* What a struct points to that a replay needs, after the call. */
static void
put_more(br_amd_trace *t, unsigned long request, const void *was)
{
    const struct br_drm_info *i = was;
    const struct br_drm_sync_wait *w = was;
    const struct br_drm_userq *u = was;
    uint64_t at = 0;
    size_t n = 0;

    if (request == BR_DRM(info)) {
        at = i->out;
        n = i->out_bytes;
    } else if (request == BR_DRM(sync_wait)) {
        at = w->points;
        n = 8;
    } else if (request == BR_DRM(userq) && u->op == BR_DRM_USERQ_CREATE) {
        at = u->mqd;
        n = u->mqd_bytes;
    }
    if (n)
        put_hex(t, (const void *)(uintptr_t)at, n);
}

/* What a call says of memory and queues. */
static void
follow(br_amd_trace *t, unsigned long request, const void *arg)
{
    const struct br_kfd_alloc_memory *a = arg;
    const struct br_kfd_create_queue *q = arg;

    if (request == BR_KFD(alloc_memory))
        t->lost |=
            !br_vec_push(&t->pieces, ((piece){.va = a->va,
                                              .bytes = a->bytes,
                                              .handle = a->handle,
                                              .offset = a->mmap_offset}));
    if (request == BR_KFD(create_queue))
        t->lost |= !br_vec_push(&t->pointers, q->read_pointer);
}

static int
trace_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
    br_amd_trace *t = ctx;
    const struct br_kfd_free_memory *f = arg;
    const struct br_drm_gem_close *g = arg;
    size_t bytes = request >> 16 & 0x3fff;
    uint64_t was[MAX_STRUCT / 8] = {0};
    int e;

    if (request == BR_KFD(wait_events)) /* asks, and changes nothing */
        return t->under->ioctl(t->under->ctx, fd, request, arg);
    changed(t, "cpu");
    if (request == BR_KFD(free_memory))
        forget(t, f->handle);
    if (request == BR_DRM(gem_close))
        forget(t, g->handle);
    memcpy(was, arg, BR_MIN(bytes, sizeof was));
    br_str_printf(&t->out, "ioctl %d %lx", fd, request);
    put_hex(t, arg, bytes);
    e = t->under->ioctl(t->under->ctx, fd, request, arg);
    put_hex(t, arg, bytes);
    br_str_printf(&t->out, " %d", e);
    put_more(t, request, was);
    br_str_putc(&t->out, '\n');
    if (e < 0)
        return e;
    follow(t, request, arg);
    follow_user(t, request, was, arg);
    return e;
}

static void
look_at(br_amd_trace *t, uint8_t *host, uint64_t bytes, uint64_t offset)
{
    for (size_t k = 0; k < t->pieces.n; k++) {
        piece *p = &t->pieces.at[k];

        if (p->offset != offset || p->host || bytes > p->bytes)
            continue;
        p->was = bytes <= BR_AMD_TRACE_MAX_MAP && !p->bell
                     ? br_try_calloc(bytes, 1)
                     : NULL;
        p->host = p->was || p->bell ? host : NULL;
        p->bytes = bytes;
        t->lost |= !p->host;
        return;
    }
}

static int
trace_map(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    br_amd_trace *t = ctx;
    int e = t->under->map(t->under->ctx, fd, at, bytes, offset);

    br_str_printf(&t->out, "map %d %" PRIu64 " %" PRIx64 " %d\n", fd, bytes,
                  offset, e);
    if (e >= 0 && fd == t->drm)
        look_at(t, *at, bytes, offset);
    else if (e >= 0 && offset >> 62 == BR_KFD_MMAP_DOORBELL >> 62)
        t->doorbells = *at;
    return e;
}

static void
trace_unmap(void *ctx, void *p, uint64_t bytes)
{
    br_amd_trace *t = ctx;

    t->under->unmap(t->under->ctx, p, bytes);
}

static int
trace_read(void *ctx, const char *path, char *out, size_t size)
{
    br_amd_trace *t = ctx;
    int n = t->under->read(t->under->ctx, path, out, size);

    br_str_printf(&t->out, "read %s %d", path, n);
    put_hex(t, out, n > 0 ? (size_t)n : 0);
    br_str_putc(&t->out, '\n');
    return n;
}

static void
trace_ring(void *ctx, const _Atomic uint64_t *doorbell, uint64_t value)
{
    br_amd_trace *t = ctx;
    const uint8_t *at = (const uint8_t *)(uintptr_t)doorbell;

    changed(t, "cpu");
    for (size_t k = 0; k < t->pieces.n; k++) {
        const piece *p = &t->pieces.at[k];

        if (p->bell && p->host && at >= p->host && at < p->host + p->bytes) {
            br_str_printf(&t->out, "bell %" PRIx64 " %tx %" PRIx64 "\n",
                          p->handle, at - p->host, value);
            return;
        }
    }
    br_str_printf(&t->out, "ring %" PRIxPTR " %" PRIx64 "\n",
                  (uintptr_t)doorbell - (uintptr_t)t->doorbells, value);
}

static void
trace_settled(void *ctx)
{
    br_sleep_ns(SETTLE_NS);
    changed(ctx, "gpu");
}

/* ---- from outside ----------------------------------------------------- */

br_amd_trace *
br_amd_trace_new(const br_amd_os *under)
{
    br_amd_trace *t = br_try_calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->under = under;
    t->drm = -1;
    t->os = (br_amd_os){.ctx = t,
                        .open = trace_open,
                        .close = trace_close,
                        .ioctl = trace_ioctl,
                        .map = trace_map,
                        .unmap = trace_unmap,
                        .read = trace_read,
                        .ring = trace_ring,
                        .settled = trace_settled};
    br_str_puts(&t->out, BR_AMD_TRACE_HEAD "\n");
    return t;
}

const br_amd_os *
br_amd_trace_os(br_amd_trace *t)
{
    return &t->os;
}

bool
br_amd_trace_text(const br_amd_trace *t, br_text *out)
{
    *out = (br_text){t->out.at, t->out.n};
    return !t->lost && t->out.at;
}

void
br_amd_trace_free(br_amd_trace *t)
{
    if (!t)
        return;
    while (t->pieces.n)
        forget(t, t->pieces.at[0].handle);
    br_vec_fini(&t->pieces);
    br_vec_fini(&t->pointers);
    br_str_fini(&t->out);
    br_free(t);
}
