/* sim_replay.c - see sim_replay.h.
 *
 * Handles, numbers of queues and offsets of the trace are another kernel's:
 * those of ours stand beside them in tables. Addresses are the same: memory
 * lies there for the GPU, elsewhere for us. A trace comes from outside, so each
 * number is looked up before it is used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_replay.h"

#include "base/thread.h"
#include "drv/amd/amd_trace.h"
#include "drv/amd/drm.h"
#include "drv/sim/sim_gpu_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE_FIELDS = 8,
    MAX_STRUCT = 96,
    MAX_SAID = 50,
    MAX_NUMBERS = 4096, /* handles and the like */
    WORD = 4,
    MAX_STEPS = 1 << 24, /* of a kernel; those of probes are short */
};
static const int64_t look_ns = 100 * 1000;

typedef enum sort { HANDLE, QUEUE, OFFSET, FD, DOORBELL, TIMELINE } sort;

/* A number of the trace's, and ours. */
typedef struct number {
    uint64_t there, here;
    sort sort;
} number;

typedef struct piece { /* of memory that the host mapped */
    uint64_t va, bytes, offset, handle;
    uint8_t *host; /* NULL until then */
} piece;

typedef struct replay {
    br_simgpu_replayed *r;
    br_simgpu *g;
    const br_amd_os *os;
    sim_chip chip;
    br_text field[MAX_LINE_FIELDS];
    unsigned n_fields, line;
    BR_VEC(number) numbers;
    BR_VEC(piece) pieces;
    const char *text, *end; /* of the whole */
    int64_t patience_ns;    /* after a doorbell */
    int64_t until;          /* no word is waited for any longer */
    br_status *st;
} replay;

/* ---- words of a line -------------------------------------------------- */

static br_code
wrong(replay *x, const char *why)
{
    return br_fail(x->st, BR_E_FORMAT, "line %u of the trace: %s", x->line,
                   why);
}

BR_PRINTF(2, 3)
static void
differ(replay *x, const char *fmt, ...)
{
    va_list ap;

    if (x->r->differences++ >= MAX_SAID)
        return;
    br_str_printf(&x->r->said, "line %u: ", x->line);
    va_start(ap, fmt);
    br_str_vprintf(&x->r->said, fmt, ap);
    va_end(ap);
    br_str_putc(&x->r->said, '\n');
}

static int
digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Digits of a base alone; a sign where it is decimal. */
static bool
value(const replay *x, unsigned k, unsigned base, int64_t *out)
{
    br_text t = x->field[k];
    bool minus = t.n && *t.p == '-' && base == 10;
    uint64_t v = 0;

    if (k >= x->n_fields || t.n == minus || t.n > 19)
        return false;
    for (size_t i = minus; i < t.n; i++) {
        int d = digit(t.p[i]);

        if (d < 0 || d >= (int)base || v >> 60)
            return false;
        v = v * base + (unsigned)d;
    }
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

static bool
hex(const replay *x, unsigned k, uint64_t *out)
{
    br_text t = x->field[k];

    *out = 0;
    if (k >= x->n_fields || !t.n || t.n > 16)
        return false;
    for (size_t i = 0; i < t.n; i++) {
        if (digit(t.p[i]) < 0)
            return false;
        *out = *out << 4 | (unsigned)digit(t.p[i]);
    }
    return true;
}

/* The bytes of a field, at most so many; -1: it has none such. */
static int64_t
bytes_of(const replay *x, unsigned k, uint8_t *out, size_t most)
{
    br_text t = x->field[k];

    if (k >= x->n_fields || t.n % 2 || t.n / 2 > most)
        return br_text_is(t, "-") ? 0 : -1;
    for (size_t i = 0; i < t.n; i += 2) {
        int hi = digit(t.p[i]), lo = digit(t.p[i + 1]);

        if (hi < 0 || lo < 0)
            return -1;
        out[i / 2] = (uint8_t)(hi << 4 | lo);
    }
    return (int64_t)(t.n / 2);
}

/* The next line's words; false: there are no more lines. */
static bool
next(replay *x)
{
    const char *eol;

    if (x->text == x->end)
        return false;
    eol = memchr(x->text, '\n', (size_t)(x->end - x->text));
    eol = eol ? eol : x->end;
    x->line++;
    x->n_fields = 0;
    while (x->text < eol && x->n_fields < MAX_LINE_FIELDS) {
        const char *sp = memchr(x->text, ' ', (size_t)(eol - x->text));

        sp = sp ? sp : eol;
        x->field[x->n_fields++] = (br_text){x->text, (size_t)(sp - x->text)};
        x->text = sp + (sp < eol);
    }
    x->text = eol + (eol < x->end);
    return true;
}

/* ---- numbers ---------------------------------------------------------- */

static bool
keep(replay *x, sort s, uint64_t there, uint64_t here)
{
    number n = {there, here, s};

    return x->numbers.n < MAX_NUMBERS && br_vec_push(&x->numbers, n);
}

/* Ours, the last one of that number. */
static bool
ours(const replay *x, sort s, uint64_t there, uint64_t *here)
{
    for (size_t k = x->numbers.n; k--;)
        if (x->numbers.at[k].sort == s && x->numbers.at[k].there == there) {
            *here = x->numbers.at[k].here;
            return true;
        }
    return false;
}

/* ---- the machine ------------------------------------------------------ */

/* The recorded files of sysfs. */
static int
recorded(void *ctx, const char *path, char *out, size_t size)
{
    replay x = *(const replay *)ctx;
    int64_t rc, n;

    while (next(&x))
        if (x.n_fields == 4 && br_text_is(x.field[0], "read") &&
            br_text_is(x.field[1], path) && value(&x, 2, 10, &rc)) {
            n = bytes_of(&x, 3, (uint8_t *)out, size - 1);
            out[n > 0 ? n : 0] = 0;
            return rc < 0 ? (int)BR_MAX(rc, -4095) : n < 0 ? -5 : (int)n;
        }
    return -2; /* no such file */
}

/* Slots for user queues, as the recorded kernel had them: its answer is what the
 * call for them points to. */
static void
recorded_slots(const replay *from, br_simgpu_opts *o)
{
    struct br_drm_hw_ip ip = {.userq_slots = UINT32_MAX};
    replay x = *from;
    uint64_t request;

    while (next(&x)) {
        if (x.n_fields != 7 || !br_text_is(x.field[0], "ioctl") ||
            !hex(&x, 2, &request) || request != BR_DRM(info))
            continue;
        if (bytes_of(&x, 6, (uint8_t *)&ip, sizeof ip) >= 0)
            o->userq_slots = ip.userq_slots;
        o->no_userq = ip.userq_slots == UINT32_MAX;
        return;
    }
}

/* A chip like the one that was there. */
static br_code
machine(replay *x)
{
    br_amd_os os = {.ctx = x, .read = recorded};
    br_simgpu_opts o = {.check = true, .max_steps = MAX_STEPS};
    br_amd_node n;

    BR_TRY(br_amd_node_get(&n, &os, 0, x->st));
    if (n.simds_per_cu == 0 || n.arrays_per_engine == 0)
        return wrong(x, "a processor without units");
    snprintf(x->r->chip, sizeof x->r->chip, "%s", n.name);
    o.cpu = x->r->chip;
    o.small_bar = n.small_bar;
    o.tells_sizes = n.cwsr_bytes != 0;
    recorded_slots(x, &o);
    BR_TRY(br_simgpu_new(&x->g, &o, x->st));
    x->chip = *x->g->chip;
    x->chip.cus = (uint32_t)(n.simds / n.simds_per_cu / n.xccs);
    x->chip.engines = (uint32_t)(n.arrays / n.arrays_per_engine);
    x->chip.gib = (uint32_t)BR_MAX(n.vram_bytes >> 30, 1u);
    x->g->chip = &x->chip;
    x->os = br_simgpu_os(x->g);
    return keep(x, FD, UINT64_MAX, 0) ? BR_OK
                                      : br_fail(x->st, BR_E_OOM, "no memory");
}

/* ---- calls ------------------------------------------------------------ */

static br_code
do_open(replay *x)
{
    char path[64];
    int64_t rc;
    int fd;

    if (x->n_fields != 3 || x->field[1].n >= sizeof path ||
        !value(x, 2, 10, &rc))
        return wrong(x, "open PATH RESULT");
    snprintf(path, sizeof path, "%.*s", (int)x->field[1].n, x->field[1].p);
    if (strncmp(path, "/dev/dri/renderD", 16) == 0) /* theirs has a number */
        snprintf(path, sizeof path, "/dev/dri/renderD%d", SIM_RENDER_MINOR);
    fd = x->os->open(x->os->ctx, path);
    if ((fd < 0) != (rc < 0))
        differ(x, "%s: %d there, %d here", path, (int)rc, fd);
    return rc < 0 || fd < 0 || keep(x, FD, (uint64_t)rc, (uint64_t)fd)
               ? BR_OK
               : br_fail(x->st, BR_E_LIMIT, "too many files");
}

static br_code
do_close(replay *x)
{
    int64_t at;
    uint64_t fd;

    if (x->n_fields != 2 || !value(x, 1, 10, &at) ||
        !ours(x, FD, (uint64_t)at, &fd) || !fd)
        return wrong(x, "close FD, of a file that is open");
    x->os->close(x->os->ctx, (int)fd);
    return keep(x, FD, (uint64_t)at, 0)
               ? BR_OK
               : br_fail(x->st, BR_E_LIMIT, "too many files");
}

/* What structs point to. */
typedef struct around {
    uint32_t gpu, timeline;
    uint64_t point;
    struct br_drm_mqd mqd;
    struct br_drm_hw_ip ip;
} around;

static bool
our_handle(const replay *x, sort s, uint32_t *handle)
{
    uint64_t v;

    if (!ours(x, s, *handle, &v))
        return false;
    *handle = (uint32_t)v;
    return true;
}

/* before(), of a user queue. */
static bool
before_userq(replay *x, struct br_drm_userq *u, around *a)
{
    uint64_t v;

    if (u->op == BR_DRM_USERQ_CREATE) {
        u->mqd = (uint64_t)(uintptr_t)&a->mqd;
        return u->mqd_bytes == sizeof a->mqd &&
               bytes_of(x, 6, (uint8_t *)&a->mqd, sizeof a->mqd) ==
                   sizeof a->mqd &&
               our_handle(x, HANDLE, &u->doorbell);
    }
    if (!ours(x, QUEUE, u->queue_id, &v))
        return false;
    u->queue_id = (uint32_t)v;
    return !u->mqd;
}

/* before(), of the render node. */
static bool
before_user(replay *x, uint32_t request, uint64_t *s, around *a)
{
    struct br_drm_sync_wait *w = (void *)s;
    struct br_drm_sync_new *e = (void *)s;
    struct br_drm_gem_va *va = (void *)s;
    struct br_drm_info *i = (void *)s;
    uint32_t *handle = (void *)s; /* the first field of both calls of it */

    switch (request) {
    case BR_DRM(gem_create):
    case BR_DRM(sync_new): return true;
    case BR_DRM(gem_mmap):
    case BR_DRM(gem_close): return our_handle(x, HANDLE, handle);
    case BR_DRM(sync_end): return our_handle(x, TIMELINE, &e->handle);
    case BR_DRM(sync_wait):
        if (!our_handle(x, TIMELINE, &a->timeline) ||
            bytes_of(x, 6, (uint8_t *)&a->point, 8) != 8)
            return false;
        w->handles = (uint64_t)(uintptr_t)&a->timeline;
        w->points = (uint64_t)(uintptr_t)&a->point;
        return w->n == 1;
    case BR_DRM(gem_va):
        return our_handle(x, HANDLE, &va->handle) &&
               (!va->timeline_out ||
                our_handle(x, TIMELINE, &va->timeline_out)) &&
               !va->n_fences;
    case BR_DRM(info):
        i->out = (uint64_t)(uintptr_t)&a->ip;
        return i->out_bytes <= sizeof a->ip;
    case BR_DRM(userq): return before_userq(x, (void *)s, a);
    default: return false;
    }
}

/* Numbers of a struct as ours; false: one is not known. */
static bool
before(replay *x, uint32_t request, uint64_t *s, around *at)
{
    struct br_kfd_acquire_vm *vm = (void *)s;
    struct br_kfd_alloc_memory *a = (void *)s;
    struct br_kfd_create_queue *q = (void *)s;
    struct br_kfd_create_event *e = (void *)s;
    struct br_kfd_map_memory *m = (void *)s;
    struct br_kfd_free_memory *f = (void *)s;
    struct br_kfd_destroy_queue *d = (void *)s;
    uint64_t v;

    uint32_t *gpu = &at->gpu;

    *gpu = SIM_GPU_ID;
    if ((request >> 8 & 255) == 'd')
        return before_user(x, request, s, at);
    switch (request) {
    case BR_KFD(acquire_vm):
        if (!ours(x, FD, vm->drm_fd, &v))
            return false;
        *vm = (struct br_kfd_acquire_vm){(uint32_t)v, SIM_GPU_ID};
        return true;
    case BR_KFD(alloc_memory):
        a->gpu_id = SIM_GPU_ID;
        return !(a->flags & BR_KFD_MEM_USERPTR);
    case BR_KFD(create_queue): q->gpu_id = SIM_GPU_ID; return true;
    case BR_KFD(create_event):
        return !e->page_offset ||
               ours(x, HANDLE, e->page_offset, &e->page_offset);
    case BR_KFD(map_memory):
    case BR_KFD(unmap_memory):
        m->gpu_ids = (uint64_t)(uintptr_t)gpu;
        m->n_success = 0;
        return m->n == 1 && ours(x, HANDLE, m->handle, &m->handle);
    case BR_KFD(free_memory): return ours(x, HANDLE, f->handle, &f->handle);
    case BR_KFD(destroy_queue):
        if (!ours(x, QUEUE, d->queue_id, &v))
            return false;
        d->queue_id = (uint32_t)v;
        return true;
    default: return true;
    }
}

static piece *
piece_of(replay *x, uint64_t handle)
{
    for (size_t k = x->pieces.n; k--;)
        if (x->pieces.at[k].handle == handle)
            return &x->pieces.at[k];
    return NULL;
}

/* after(), of the render node: asked is what the call had of ours, for answers
 * lie where questions did. */
static bool
after_user(replay *x, uint32_t request, const uint64_t *there,
           const uint64_t *here, const uint64_t *asked)
{
    const struct br_drm_gem_create *c = (const void *)asked,
                                   *made = (const void *)there,
                                   *ours_made = (const void *)here;
    const struct br_drm_gem_va *va = (const void *)asked;
    const struct br_drm_userq *u = (const void *)asked;
    piece *p;

    switch (request) {
    case BR_DRM(gem_create):
        return keep(x, HANDLE, made->handle, ours_made->handle) &&
               br_vec_push(&x->pieces, ((piece){0, c->bytes, UINT64_MAX,
                                                ours_made->handle, NULL}));
    case BR_DRM(gem_mmap):
        p = piece_of(x, (uint32_t)asked[0]);
        if (p)
            p->offset = there[0];
        return keep(x, OFFSET, there[0], here[0]);
    case BR_DRM(gem_va):
        p = piece_of(x, va->handle);
        if (p)
            p->va = va->op == BR_DRM_VA_MAP ? va->va : 0;
        return true;
    case BR_DRM(sync_new):
        /* 0: the newest, whose number a wait does not say. */
        return keep(x, TIMELINE, (uint32_t)there[0], (uint32_t)here[0]) &&
               keep(x, TIMELINE, 0, (uint32_t)here[0]);
    case BR_DRM(userq):
        return u->op != BR_DRM_USERQ_CREATE ||
               keep(x, QUEUE, (uint32_t)there[0], (uint32_t)here[0]);
    default: return true;
    }
}

/* What their kernel answered beside what ours did. */
static bool
after(replay *x, uint32_t request, const uint64_t *there, const uint64_t *here)
{
    const struct br_kfd_alloc_memory *a = (const void *)there,
                                     *b = (const void *)here;
    const struct br_kfd_create_queue *q = (const void *)there,
                                     *r = (const void *)here;
    const struct br_kfd_create_event *e = (const void *)there,
                                     *f = (const void *)here;
    const uint64_t page = BR_KFD_DOORBELL_BYTES - 1;
    piece p = {a->va, a->bytes, a->mmap_offset, b->handle, NULL};

    switch (request) {
    case BR_KFD(alloc_memory):
        return keep(x, HANDLE, a->handle, b->handle) &&
               keep(x, OFFSET, a->mmap_offset, b->mmap_offset) &&
               br_vec_push(&x->pieces, p);
    case BR_KFD(create_queue):
        return keep(x, QUEUE, q->queue_id, r->queue_id) &&
               keep(x, OFFSET, q->doorbell_offset & ~page,
                    r->doorbell_offset & ~page) &&
               keep(x, DOORBELL, q->doorbell_offset & page,
                    r->doorbell_offset & page);
    case BR_KFD(create_event):
        /* Packets name it. */
        if (e->event_id != f->event_id && e->type == BR_KFD_EVENT_SIGNAL)
            differ(x, "event %u there, %u here", e->event_id, f->event_id);
        return true;
    default: return true;
    }
}

static br_code
do_ioctl(replay *x)
{
    uint64_t in[MAX_STRUCT / 8] = {0}, out[MAX_STRUCT / 8] = {0}, request, fd;
    uint64_t asked[MAX_STRUCT / 8];
    const struct br_kfd_destroy_event *e = (const void *)in;
    around a = {0};
    int64_t rc, at;
    bool user, kept = true;
    int here;

    if (x->n_fields < 6 || x->n_fields > 7 || !value(x, 1, 10, &at) ||
        !hex(x, 2, &request) || !value(x, 5, 10, &rc) || request > UINT32_MAX ||
        bytes_of(x, 3, (uint8_t *)in, sizeof in) !=
            (int64_t)(request >> 16 & 0x3fff) ||
        bytes_of(x, 4, (uint8_t *)out, sizeof out) < 0)
        return wrong(x, "ioctl FD REQUEST BEFORE AFTER RESULT");
    if (!ours(x, FD, (uint64_t)at, &fd) ||
        !before(x, (uint32_t)request, in, &a) || request == BR_KFD(wait_events))
        return wrong(x, "a call with what no earlier line has");
    /* Events that are no signals have numbers of each kernel's own. */
    if (request == BR_KFD(destroy_event) && e->event_id >= SIM_MAX_EVENTS)
        return BR_OK;
    memcpy(asked, in, sizeof asked);
    here = x->os->ioctl(x->os->ctx, (int)fd, (unsigned long)request, in);
    x->r->calls++;
    if (here != rc)
        differ(x, "call 0x%" PRIx64 ": %d there, %d here", request, (int)rc,
               here);
    user = (request >> 8 & 255) == 'd';
    if (rc >= 0 && here >= 0)
        kept = user ? after_user(x, (uint32_t)request, out, in, asked)
                    : after(x, (uint32_t)request, out, in);
    return kept ? BR_OK
                : br_fail(x->st, BR_E_LIMIT, "line %u: too many numbers",
                          x->line);
}

static br_code
do_map(replay *x)
{
    uint64_t offset, mine, fd;
    int64_t at, bytes, rc;
    void *p = NULL;
    int here;

    if (x->n_fields != 5 || !value(x, 1, 10, &at) || !value(x, 2, 10, &bytes) ||
        !hex(x, 3, &offset) || !value(x, 4, 10, &rc) ||
        !ours(x, FD, (uint64_t)at, &fd))
        return wrong(x, "map FD BYTES OFFSET RESULT");
    if (!ours(x, OFFSET, offset, &mine))
        return wrong(x, "nothing was allocated at this offset");
    here = x->os->map(x->os->ctx, (int)fd, &p, (uint64_t)bytes, mine);
    if ((here < 0) != (rc < 0))
        differ(x, "mapping: %d there, %d here", (int)rc, here);
    for (size_t k = 0; k < x->pieces.n && here >= 0; k++) {
        piece *m = &x->pieces.at[k];

        if (m->offset == offset && !m->host && (uint64_t)bytes <= m->bytes) {
            m->bytes = (uint64_t)bytes;
            m->host = p;
            break;
        }
    }
    return BR_OK;
}

/* ---- memory and doorbells --------------------------------------------- */

/* Words at an address of the GPU's; NULL: not all are mapped. */
static _Atomic uint32_t *
words_at(const replay *x, uint64_t va, uint64_t bytes)
{
    for (size_t k = x->pieces.n; k--;) {
        const piece *p = &x->pieces.at[k];
        uint64_t off = va - p->va;

        if (p->host && off < p->bytes && bytes <= p->bytes - off &&
            sim_bo_at(x->g, va))
            return (_Atomic uint32_t *)(void *)(p->host + off);
    }
    return NULL;
}

/* The last word first: a packet's body before its header. */
static br_code
do_memory(replay *x, bool gpu)
{
    br_text t = x->field[2];
    size_t n = x->n_fields == 3 ? t.n / 2 : 0;
    uint8_t *b = n ? br_try_alloc(n) : NULL;
    _Atomic uint32_t *w;
    br_code c = BR_OK;
    uint64_t va;

    if (!b || n % WORD || !hex(x, 1, &va) || va % WORD ||
        bytes_of(x, 2, b, n) != (int64_t)n) {
        br_free(b);
        return wrong(x, "cpu or gpu ADDRESS BYTES");
    }
    w = words_at(x, va, n);
    if (!w)
        c = wrong(x, "memory that no earlier line maps");
    for (size_t k = n / WORD; k-- && w;) {
        uint32_t want, got;

        memcpy(&want, b + k * WORD, WORD);
        if (!gpu) { /* partner: the packet processor's look at it */
            atomic_store_explicit(&w[k], want, memory_order_release);
            continue;
        }
        x->r->words++;
        while ((got = atomic_load_explicit(&w[k], memory_order_acquire)) !=
                   want &&
               br_now_ns() < x->until)
            br_sleep_ns(look_ns);
        if (got != want) {
            differ(x, "0x%" PRIx64 ": %08x there, %08x here", va + k * WORD,
                   want, got);
            x->until = 0; /* what comes after it is late as well */
        }
    }
    br_free(b);
    return c;
}

static br_code
rung(replay *x, _Atomic uint64_t *doorbell, uint64_t v)
{
    /* partner: the packet processor's look at its doorbell */
    atomic_store_explicit(doorbell, v, memory_order_release);
    br_event_signal(&x->g->kick);
    x->until = x->r->differences < MAX_SAID ? br_now_ns() + x->patience_ns : 0;
    x->r->rings++;
    return BR_OK;
}

static br_code
do_ring(replay *x)
{
    uint64_t offset, mine, v;

    if (x->n_fields != 3 || !hex(x, 1, &offset) || !hex(x, 2, &v) ||
        !ours(x, DOORBELL, offset, &mine) || !x->g->doorbells_mapped)
        return wrong(x, "ring OFFSET VALUE, of a queue that is there");
    return rung(x, (_Atomic uint64_t *)&x->g->doorbells[mine / 8], v);
}

/* The doorbell of a user queue, which is memory of its own. */
static br_code
do_bell(replay *x)
{
    uint64_t handle, mine, offset, v;
    piece *p;

    if (x->n_fields != 4 || !hex(x, 1, &handle) || !hex(x, 2, &offset) ||
        !hex(x, 3, &v) || !ours(x, HANDLE, handle, &mine))
        return wrong(x, "bell HANDLE OFFSET VALUE, of memory that is there");
    p = piece_of(x, mine);
    if (!p || !p->host || offset % 8 || offset >= p->bytes)
        return wrong(x, "a doorbell that no earlier line maps");
    return rung(x, (_Atomic uint64_t *)(void *)(p->host + offset), v);
}

static br_code
one(replay *x)
{
    br_text w = x->field[0];

    if (!x->n_fields || br_text_is(w, "read"))
        return BR_OK;
    if (br_text_is(w, "open"))
        return do_open(x);
    if (br_text_is(w, "close"))
        return do_close(x);
    if (br_text_is(w, "bell"))
        return do_bell(x);
    if (br_text_is(w, "ioctl"))
        return do_ioctl(x);
    if (br_text_is(w, "map"))
        return do_map(x);
    if (br_text_is(w, "cpu") || br_text_is(w, "gpu"))
        return do_memory(x, br_text_is(w, "gpu"));
    return br_text_is(w, "ring") ? do_ring(x) : wrong(x, "no such line");
}

static void
end(replay *x)
{
    size_t from = x->r->said.n;

    if (x->g)
        br_simgpu_reports(x->g, &x->r->said);
    for (; from < x->r->said.n; from++)
        x->r->differences += x->r->said.at[from] == '\n';
    br_simgpu_free(x->g);
    br_vec_fini(&x->numbers);
    br_vec_fini(&x->pieces);
}

br_code
br_simgpu_replay(br_simgpu_replayed *r, const char *text, size_t n,
                 int64_t patience_ns, br_status *st)
{
    replay x = {.r = r,
                .text = text,
                .end = text + n,
                .patience_ns = patience_ns,
                .st = st};
    br_code c;

    *r = (br_simgpu_replayed){.chip = ""};
    if (n > BR_AMD_TRACE_MAX_BYTES)
        return br_fail(st, BR_E_LIMIT, "a trace of %zu bytes", n);
    if (!next(&x) || x.n_fields != 2 ||
        !br_text_is(x.field[0], "brass-amd-trace") ||
        !br_text_is(x.field[1], "1"))
        return br_fail(st, BR_E_FORMAT, "no trace: it begins with '%s'",
                       BR_AMD_TRACE_HEAD);
    c = machine(&x);
    while (c == BR_OK && next(&x))
        c = one(&x);
    end(&x);
    return c;
}
