/* amd_nodes.c - an AMD GPU as node_dev.h has it, on queues of our own.
 *
 *   kernels   PTX --cg/ptx--> KIR --cg/gcn--> code object, when it is opened
 *   step      launches are written behind each other into one buffer; the ring
 *             gets one packet that leads there, and one that says when it ends
 *
 *     ring  | INDIRECT_BUFFER | fence |
 *                  '--> | acquire, registers, DISPATCH_DIRECT, flush | ... |
 *                                     '--> arguments: record, grid, block
 *
 * A step that is like the one before (as many rows: every token of an answer)
 * submits that buffer again: what changes from token to token lies in memory
 * that both sides see. Then nothing is built, and no system call is made: the
 * fence is looked at.
 *
 * Where a kernel by hand does a launch (amd_hand.h), that is taken.
 *
 * Mega mode: launches are records of a list, and one kernel walks it with groups
 * that stay (kernels/cuda/mega_nodes.cu). Resident: that kernel stays, too; it
 * looks at a word of the CPU's memory for the next step, and nothing is
 * submitted any more.
 *
 * Memory is the GPU's own. Where the CPU does not reach that (a small BAR, user
 * queues), a kernel copies from and to a piece of the CPU's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/nodes/node_dev.h"

#include "base/thread.h"
#include "cg/gcn/gcn_file.h"
#include "cg/ktarget.h"
#include "cg/ptx/ptx.h"
#include "drv/amd/amd_dev.h"
#include "drv/nodes/amd_hand.h"
#include "drv/sim/sim_gpu.h"

#include <stdio.h>
#include <string.h>

extern const char br_ptx_portable[], br_ptx_portable_end[];
extern const char br_ptx_mega_nodes[], br_ptx_mega_nodes_end[];

enum {
    RING = 1024,        /* dwords */
    LAUNCH_DWORDS = 72, /* of br_amd_pm4_launch, at most */
    ARGS = (sizeof(struct br_nd_args) + 7) / 8 * 8,
    SIZES = 24, /* of grid and block, behind */
    ARGS_BYTES = (ARGS + SIZES + 63) / 64 * 64,
    MEGA_AT = 256, /* arguments, in the page of the bell */
    MAX_LAUNCHES = (1 << 20) / LAUNCH_DWORDS, /* dwords of a buffer */
    STAGE = 1 << 20,                          /* bytes of a copy */
    COPIES = 4,                               /* launches of a copy */
    IB_VALID = 1 << 23,
    TO_MEMORY = 0x100500, /* WRITE_DATA, and wait until it is there */
    POLL_NS = 50 * 1000,
    LOOKS = 2000,
    LOOK_NS = 2000 * 1000 * 1000, /* until the kernel is asked for faults */
};
_Static_assert(sizeof(struct br_nd_phase) <= ARGS_BYTES, "one or the other");
#define PATIENCE_NS (600 * 1000000000ll) /* for a step of the simulator, too */

static const char *const names[BR_ND_FNS] = {
#define K(name) "br_nd_" #name,
#include "drv/cuda/cuda_nodes.def"
};

typedef struct kernel {
    uint64_t at; /* of its descriptor; 0: there is none */
    uint8_t kd[BR_GCN_KD_BYTES];
} kernel;

enum mode { PACKETS, MEGA, RESIDENT };

/* Launches that are submitted together, or the list of a step. */
typedef struct batch {
    br_amd_mem words, args;
    br_pm4 s;
    size_t n, room; /* launches */
} batch;

typedef struct amd_nodes {
    br_nd_dev dev;
    br_simgpu *sim; /* or NULL */
    br_amd_dev d;
    br_amd_queue q;
    br_amd_mem code, stage;
    BR_VEC(br_amd_mem) held;
    kernel fn[BR_ND_FNS], hand[BR_HANDS];
    br_amd_mem hand_code;
    batch step, copy;
    br_nd_key key; /* of what step holds, when it is whole */
    bool whole;
    bool direct; /* the CPU reaches the GPU's memory */
    char name[48];
    enum mode mode;
    br_amd_mem mega_code, state, bell;
    kernel mega;
    uint32_t n_groups, shared; /* shared: most of any launch */
    uint32_t given;            /* of that, what runs was started with */
    uint32_t go;               /* steps asked for */
    bool running;              /* resident */
} amd_nodes;

static amd_nodes *
mine(br_nd_dev *d)
{
    return (amd_nodes *)(void *)d;
}

static br_code resident_end(amd_nodes *x, br_status *st);

/* ---- batches ------------------------------------------------------------- */

static br_code
batch_room(amd_nodes *x, batch *b, size_t n, br_status *st)
{
    br_amd_want w = {.bytes = 4ull * LAUNCH_DWORDS * n, .heap = BR_AMD_HOST};

    if (n <= b->room)
        return BR_OK;
    if (n > MAX_LAUNCHES)
        return br_fail(st, BR_E_LIMIT, "a step of %zu launches; at most %d", n,
                       MAX_LAUNCHES);
    BR_TRY(resident_end(x, st));
    br_amd_free(&x->d, &b->words);
    br_amd_free(&x->d, &b->args);
    b->room = 0;
    BR_TRY(br_amd_alloc(&x->d, &b->words, &w, st));
    w.bytes = (uint64_t)ARGS_BYTES * n;
    BR_TRY(br_amd_alloc(&x->d, &b->args, &w, st));
    x->dev.stats.ioctls = x->d.ioctls;
    b->room = n;
    b->s = (br_pm4){.at = (uint32_t *)(void *)b->words.host,
                    .cap = LAUNCH_DWORDS * n};
    return BR_OK;
}

static void
batch_empty(batch *b)
{
    b->n = b->s.n = 0;
}

typedef struct arguments {
    uint8_t *host; /* where they go, as the CPU and as the GPU see it */
    uint64_t va;
    const void *from;
    size_t n;
} arguments;

/* A kernel over so many blocks; sizes are put behind its arguments. */
static br_code
packets(amd_nodes *x, br_pm4 *s, const kernel *k, const uint32_t blocks[3],
        uint32_t shared, arguments args, br_status *st)
{
    const uint32_t sizes[3] = {blocks[0], blocks[1], blocks[2]};
    const uint16_t block[4] = {BR_ND_WARPS * 32, 1, 1, 0};
    br_aql_launch a = {.groups = {sizes[0], sizes[1], sizes[2]},
                       .group = {block[0], 1, 1},
                       .kernel = k->at,
                       .kernarg = args.va};

    br_check(k->at);
    memcpy(&a.group_bytes, k->kd, 4);
    memcpy(&a.private_bytes, k->kd + 4, 4);
    a.group_bytes += shared;
    memcpy(args.host, args.from, args.n);
    memcpy(args.host + args.n, sizes, sizeof sizes);
    memcpy(args.host + args.n + sizeof sizes, block, sizeof block);
    BR_TRY(br_amd_pm4_launch(&x->q, s, &a, k->kd, st));
    br_check(!s->full);
    return BR_OK;
}

static br_code
batch_add(amd_nodes *x, batch *b, const br_nd_launch *l, br_status *st)
{
    const uint64_t at = (uint64_t)ARGS_BYTES * b->n;
    const uint32_t portable[3] = {l->blocks[0], l->blocks[1], 1};
    uint32_t blocks[3];
    const br_hand hand = br_hand_takes(l, blocks);
    const bool own = hand != BR_HANDS;

    br_check(b->n < b->room);
    BR_TRY(packets(
        x, &b->s, own ? &x->hand[hand] : &x->fn[l->fn], own ? blocks : portable,
        l->shared,
        (arguments){b->args.host + at, b->args.va + at, l->args, ARGS}, st));
    b->n++;
    x->dev.stats.by_hand += own;
    x->dev.stats.recorded++;
    return BR_OK;
}

/* What went wrong, in the words of who knows best. */
static br_code
failed(amd_nodes *x, br_code c, const br_status *why, br_status *st)
{
    br_status sim = {0};

    if (x->sim && br_simgpu_fault(x->sim, &sim) != BR_OK)
        return br_fail(st, c, "%s: %s", x->name, sim.msg);
    return br_fail(st, c, "%s", why->msg);
}

static br_code
batch_submit(amd_nodes *x, batch *b, br_status *st)
{
    uint32_t words[4],
        body[3] = {(uint32_t)b->words.va, (uint32_t)(b->words.va >> 32),
                   (uint32_t)b->s.n | IB_VALID};
    br_pm4 s = {.at = words, .cap = BR_COUNT(words)};

    br_pm4_put(&s, BR_PM4_INDIRECT_BUFFER, body, BR_COUNT(body));
    br_amd_flush(&x->d);
    x->dev.stats.submits++;
    return br_amd_pm4_submit(&x->q, &s, st);
}

/* Submits, and waits until it is done. */
static br_code
batch_run(amd_nodes *x, batch *b, br_status *st)
{
    br_status why = {0};
    br_code c = batch_submit(x, b, &why);

    if (c == BR_OK)
        c = br_amd_wait(&x->q, PATIENCE_NS, &why);
    x->dev.stats.ioctls = x->d.ioctls;
    return c == BR_OK ? c : failed(x, c, &why, st);
}

/* ---- one kernel for a step, or for all ----------------------------------- */

static struct br_nd_bell *
bell(const amd_nodes *x)
{
    return (struct br_nd_bell *)(void *)x->bell.host;
}

static _Atomic uint32_t *
word(unsigned int *p)
{
    return (_Atomic uint32_t *)p;
}

static void
list_add(amd_nodes *x, const br_nd_launch *l)
{
    batch *b = &x->step;
    struct br_nd_phase *p = (struct br_nd_phase *)(void *)b->args.host + b->n;

    br_check(b->n < b->room);
    *p = (struct br_nd_phase){
        .fn = l->fn, .blocks = {l->blocks[0], l->blocks[1]}, .a = *l->args};
    x->shared = BR_MAX(x->shared, l->shared);
    b->n++;
    x->dev.stats.recorded++;
}

/* The packets that launch it; the groups' counter begins at 0. */
static br_code
mega_packets(amd_nodes *x, br_status *st)
{
    batch *b = &x->step;
    const struct br_nd_mega m = {
        .phase = (void *)(uintptr_t)b->args.va,
        .bell = x->mode == RESIDENT ? (void *)(uintptr_t)x->bell.va : NULL,
        .state = (void *)(uintptr_t)x->state.va,
        .n_phases = (uint32_t)b->n,
        .n_groups = x->n_groups};
    const uint32_t zero[] = {TO_MEMORY, (uint32_t)x->state.va,
                             (uint32_t)(x->state.va >> 32), 0, (uint32_t)b->n};

    b->s.n = 0;
    br_pm4_put(&b->s, BR_PM4_WRITE_DATA, zero, BR_COUNT(zero));
    return packets(
        x, &b->s, &x->mega, (uint32_t[]){x->n_groups, 1, 1}, x->shared,
        (arguments){x->bell.host + MEGA_AT, x->bell.va + MEGA_AT, &m, sizeof m},
        st);
}

static br_code
resident_end(amd_nodes *x, br_status *st)
{
    br_status why = {0};
    br_code c;

    if (!x->running)
        return BR_OK;
    x->running = false;
    /* Partner: wait_for_host. */
    atomic_store_explicit(word(&bell(x)->quit), 1, memory_order_release);
    c = br_amd_wait(&x->q, PATIENCE_NS, &why);
    x->dev.stats.ioctls = x->d.ioctls;
    return c == BR_OK ? c : failed(x, c, &why, st);
}

static br_code
resident_wait(amd_nodes *x, br_status *st)
{
    int64_t now = br_now_ns(), end = now + PATIENCE_NS, look = now + LOOK_NS;

    for (int64_t k = 1; atomic_load_explicit(word(&bell(x)->done),
                                             memory_order_acquire) != x->go;
         k++) {
        if (k < LOOKS) {
            br_cpu_relax();
            continue;
        }
        br_sleep_ns(POLL_NS);
        now = br_now_ns();
        if (now > look) {
            BR_TRY(br_amd_look(&x->q, st));
            look = now + LOOK_NS;
        }
        if (now > end)
            return br_fail(st, BR_E_TIMEOUT, "%s: %u phases of a step are done",
                           x->name,
                           atomic_load_explicit(word(&bell(x)->alive),
                                                memory_order_relaxed));
    }
    return BR_OK;
}

/* Rings for the step in the list. */
static br_code
resident_run(amd_nodes *x, br_status *st)
{
    br_status why = {0};
    br_code c = BR_OK;

    /* A kernel keeps the local memory that it was started with. */
    if (x->shared > x->given)
        BR_TRY(resident_end(x, st));
    if (!x->running) {
        *bell(x) = (struct br_nd_bell){0};
        x->go = 0;
        BR_TRY(mega_packets(x, st));
        c = batch_submit(x, &x->step, &why);
        x->running = c == BR_OK;
        x->given = x->shared;
        x->dev.stats.launches++;
    }
    bell(x)->n_phases = (uint32_t)x->step.n;
    br_amd_flush(&x->d);
    /* Partner: wait_for_host. */
    atomic_store_explicit(word(&bell(x)->go), ++x->go, memory_order_release);
    if (c == BR_OK)
        c = resident_wait(x, &why);
    x->dev.stats.ioctls = x->d.ioctls;
    return c == BR_OK ? c : failed(x, c, &why, st);
}

/* ---- memory -------------------------------------------------------------- */

static br_code
dev_alloc(br_nd_dev *d, uint64_t *p, uint64_t bytes, bool shared, br_status *st)
{
    amd_nodes *x = mine(d);
    br_amd_want w = {.bytes = BR_MAX(bytes, 1u),
                     .heap = shared      ? BR_AMD_HOST
                             : x->direct ? BR_AMD_BAR
                                         : BR_AMD_VRAM};
    br_amd_mem m;

    BR_TRY(resident_end(x, st));
    BR_TRY(br_amd_alloc(&x->d, &m, &w, st));
    if (!br_vec_push(&x->held, m)) {
        br_amd_free(&x->d, &m);
        return br_fail(st, BR_E_OOM, "tier %s: out of memory", d->tier);
    }
    x->dev.stats.ioctls = x->d.ioctls;
    *p = m.va;
    return BR_OK;
}

/* Where the CPU finds it; NULL: nowhere. */
static uint8_t *
host_at(const amd_nodes *x, uint64_t p, uint64_t bytes)
{
    for (size_t i = x->held.n; i-- > 0;) {
        const br_amd_mem *m = &x->held.at[i];

        if (p >= m->va && p - m->va < m->bytes) {
            br_check(bytes <= m->bytes - (p - m->va));
            return m->host ? m->host + (p - m->va) : NULL;
        }
    }
    br_unreachable("memory of this device");
}

static struct br_nd_rows
words_at(uint64_t p, uint32_t stride, uint32_t cols)
{
    return (struct br_nd_rows){(void *)(uintptr_t)p, stride, cols};
}

/* rows rows of cols numbers by a kernel, from rows `stride` apart. */
static br_code
far_copy(amd_nodes *x, uint64_t to, struct br_nd_rows from, uint32_t rows,
         br_status *st)
{
    struct br_nd_args a = {.n_rows = rows,
                           .op = BR_ND_COPY,
                           .x = from,
                           .y = words_at(to, from.cols, from.cols)};
    br_nd_launch l = {.fn = BR_ND_FN_each, .blocks = {0, 1}, .args = &a};

    l.blocks[0] = (uint32_t)(((uint64_t)from.cols * rows + 255) / 256);
    BR_TRY(resident_end(x, st)); /* it would wait behind that */
    batch_empty(&x->copy);
    BR_TRY(batch_room(x, &x->copy, COPIES, st));
    BR_TRY(batch_add(x, &x->copy, &l, st));
    return batch_run(x, &x->copy, st);
}

/* Memory that is only the GPU's has whole pages: a copy may end behind n. */
static uint32_t
numbers(size_t n)
{
    return (uint32_t)((n + 3) / 4);
}

static br_code
dev_put(br_nd_dev *d, uint64_t to, const void *from, size_t bytes,
        br_status *st)
{
    amd_nodes *x = mine(d);
    uint8_t *host = host_at(x, to, bytes);

    if (host) {
        memcpy(host, from, bytes);
        return BR_OK;
    }
    br_check(to % 4 == 0);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = BR_MIN(bytes - at, (size_t)STAGE);
        memcpy(x->stage.host, (const uint8_t *)from + at, n);
        BR_TRY(
            far_copy(x, to + at, words_at(x->stage.va, 0, numbers(n)), 1, st));
    }
    return BR_OK;
}

static br_code
dev_get(br_nd_dev *d, void *to, uint64_t from, size_t bytes, br_status *st)
{
    amd_nodes *x = mine(d);
    const uint8_t *host = host_at(x, from, bytes);

    if (host) {
        memcpy(to, host, bytes);
        return BR_OK;
    }
    br_check(from % 4 == 0);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = BR_MIN(bytes - at, (size_t)STAGE);
        BR_TRY(far_copy(x, x->stage.va, words_at(from + at, 0, numbers(n)), 1,
                        st));
        memcpy((uint8_t *)to + at, x->stage.host, n);
    }
    return BR_OK;
}

/* One row of zeros, again and again. */
static br_code
dev_zero(br_nd_dev *d, uint64_t p, uint64_t n, br_status *st)
{
    amd_nodes *x = mine(d);
    uint8_t *host = host_at(x, p, n * 4);
    const uint32_t cols = STAGE / 4;

    if (host) {
        memset(host, 0, n * 4);
        return BR_OK;
    }
    memset(x->stage.host, 0, STAGE);
    if (n >= cols)
        BR_TRY(far_copy(x, p, words_at(x->stage.va, 0, cols),
                        (uint32_t)(n / cols), st));
    if (n % cols == 0)
        return BR_OK;
    return far_copy(x, p + n / cols * STAGE,
                    words_at(x->stage.va, 0, (uint32_t)(n % cols)), 1, st);
}

/* ---- steps --------------------------------------------------------------- */

static br_code
dev_begin(br_nd_dev *d, br_nd_key key, size_t n, bool *known, br_status *st)
{
    amd_nodes *x = mine(d);

    *known = x->whole && x->key.rows == key.rows && x->key.want == key.want;
    if (*known)
        return BR_OK;
    x->whole = false;
    x->key = key;
    batch_empty(&x->step);
    return batch_room(x, &x->step, n, st);
}

static br_code
dev_launch(br_nd_dev *d, const br_nd_launch *l, br_status *st)
{
    amd_nodes *x = mine(d);

    if (x->mode == PACKETS)
        return batch_add(x, &x->step, l, st);
    list_add(x, l);
    return BR_OK;
}

static br_code
dev_wait(br_nd_dev *d, br_status *st)
{
    amd_nodes *x = mine(d);

    if (!x->step.n)
        return BR_OK;
    if (x->mode == RESIDENT) {
        BR_TRY(resident_run(x, st));
    } else {
        if (x->mode == MEGA)
            BR_TRY(mega_packets(x, st));
        x->dev.stats.launches += x->mode == MEGA ? 1 : x->step.n;
        BR_TRY(batch_run(x, &x->step, st));
    }
    x->whole = x->key.rows != 0;
    if (!x->whole)
        batch_empty(&x->step);
    return BR_OK;
}

static double
dev_probe(br_nd_dev *d)
{
    amd_nodes *x = mine(d);
    /* more than caches hold; the simulator has none, and time */
    const uint64_t bytes = x->sim ? 1 << 20 : 512 << 20;
    const uint32_t cols = STAGE / 4;
    br_amd_want w = {.bytes = 2 * bytes,
                     .heap = x->direct ? BR_AMD_BAR : BR_AMD_VRAM};
    int64_t least = INT64_MAX;
    br_amd_mem m;

    if (resident_end(x, NULL) != BR_OK ||
        br_amd_alloc(&x->d, &m, &w, NULL) != BR_OK)
        return 0;
    for (int i = 0; i < 4; i++) {
        const int64_t t0 = br_now_ns();
        const bool bad = far_copy(x, m.va, words_at(m.va + bytes, cols, cols),
                                  (uint32_t)(bytes / STAGE), NULL) != BR_OK;

        least = bad ? INT64_MAX : BR_MIN(least, br_now_ns() - t0);
    }
    br_amd_free(&x->d, &m);
    x->dev.stats.ioctls = x->d.ioctls;
    return least == INT64_MAX ? 0 : 2.0 * (double)bytes / (double)least;
}

/* ---- opening ------------------------------------------------------------- */

static br_code
compile(br_str *file, const char *cpu, const char *ptx, size_t n, br_status *st)
{
    const br_ktarget *t = br_ktarget_find(cpu);
    br_kcode *code;
    br_kir *m;
    br_code c;

    if (!t)
        return br_fail(st, BR_E_UNSUPPORTED, "no code is made for %s", cpu);
    BR_TRY(br_ptx_parse(&m, ptx, n, &(br_ptx_opts){.strict = true}, st));
    c = br_kir_optimise(m, NULL, st);
    if (c == BR_OK)
        c = t->compile(&code, m, st);
    if (c == BR_OK) {
        c = t->file(code, BR_KNONE, file, st);
        t->free(code);
    }
    br_kir_free(m);
    return c;
}

static br_code
find_kernel(amd_nodes *x, const br_amd_mem *at, const br_gcn_co *co,
            const char *name, kernel *k, br_status *st)
{
    const br_gcn_symbol *s = br_gcn_kernel_find(co, name);
    uint32_t lane;

    if (!s)
        return BR_OK;
    k->at = at->va + s->at;
    memcpy(k->kd, co->image + s->at, BR_GCN_KD_BYTES);
    memcpy(&lane, k->kd + 4, 4);
    return br_amd_queue_scratch(&x->q, lane, st);
}

/* Code lies where the CPU can put it. */
static br_code
place_code(amd_nodes *x, br_amd_mem *at, const br_gcn_co *co, br_status *st)
{
    br_amd_want w = {.bytes = co->bytes,
                     .heap = x->direct ? BR_AMD_BAR : BR_AMD_HOST,
                     .exec = true};

    BR_TRY(br_amd_alloc(&x->d, at, &w, st));
    memcpy(at->host, co->image, co->bytes);
    return BR_OK;
}

static br_code
find_kernels(amd_nodes *x, const br_amd_mem *at, const br_gcn_co *co,
             br_status *st)
{
    for (int i = 0; i < BR_ND_FNS; i++)
        BR_TRY(find_kernel(x, at, co, names[i], &x->fn[i], st));
    return find_kernel(x, at, co, "br_nd_mega", &x->mega, st);
}

static br_code
open_code(amd_nodes *x, br_amd_mem *at, br_text ptx, br_status *st)
{
    br_gcn_co co = {.image = NULL};
    br_str file = {0};
    br_code c = compile(&file, x->d.node.name, ptx.p, ptx.n, st);

    if (c == BR_OK)
        c = br_gcn_load(&co, file.at, file.n, st);
    if (c == BR_OK)
        c = place_code(x, at, &co, st);
    if (c == BR_OK)
        c = find_kernels(x, at, &co, st);
    br_gcn_unload(&co);
    br_str_fini(&file);
    return c;
}

static br_code
open_hand(amd_nodes *x, br_status *st)
{
    br_gcn_co co = {.image = NULL};
    br_str text = {0}, file = {0};
    br_code c;

    br_hand_text(&text);
    c = text.oom ? br_fail(st, BR_E_OOM, "no memory for kernels by hand")
                 : br_gcn_assemble(&file, br_gcn_cpu_find(x->d.node.name),
                                   text.at, text.n, st);
    if (c == BR_OK)
        c = br_gcn_load(&co, file.at, file.n, st);
    if (c == BR_OK)
        c = place_code(x, &x->hand_code, &co, st);
    for (size_t i = 0; c == BR_OK && i < BR_HANDS; i++) {
        c = find_kernel(x, &x->hand_code, &co, br_hand_name((br_hand)i),
                        &x->hand[i], st);
        br_check(c != BR_OK || x->hand[i].at);
    }
    br_gcn_unload(&co);
    br_str_fini(&text);
    br_str_fini(&file);
    return c;
}

/* A group for each compute unit; the simulator lets groups run one after
 * another, so that they may not wait for each other. */
static br_code
open_mega(amd_nodes *x, br_status *st)
{
    const br_amd_node *n = &x->d.node;
    br_amd_want page = {.bytes = BR_KFD_PAGE, .heap = BR_AMD_HOST};

    x->n_groups = x->sim ? 1 : (uint32_t)(n->simds / n->simds_per_cu);
    BR_TRY(br_amd_alloc(&x->d, &x->bell, &page, st));
    page.heap = BR_AMD_VRAM;
    BR_TRY(br_amd_alloc(&x->d, &x->state, &page, st));
    return open_code(
        x, &x->mega_code,
        (br_text){br_ptx_mega_nodes,
                  (size_t)(br_ptx_mega_nodes_end - br_ptx_mega_nodes)},
        st);
}

/* After the device is known. */
static br_code
find_mode(amd_nodes *x, const char *name, br_status *st)
{
    static const char *const modes[] = {"packets", "mega", "resident"};
    size_t i = 0;

    while (name && i < BR_COUNT(modes) && strcmp(name, modes[i]) != 0)
        i++;
    if (i == BR_COUNT(modes))
        return br_fail(st, BR_E_USAGE, "no mode %.32s: packets, mega, resident",
                       name);
    x->mode = (enum mode)i;
    x->dev.tile = x->mode == PACKETS ? BR_ND_TILE : BR_ND_MEGA_TILE;
    if (x->mode == RESIDENT && x->d.user)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "tier amd-t2: a kernel that stays has no place on user "
                       "queues, which the driver may take away between "
                       "kernels only");
    return BR_OK;
}

/* The first way in that is asked for and open. */
static br_code
open_device(amd_nodes *x, const char *tier, const br_amd_os *os, br_status *st)
{
    br_amd_node n;
    br_code c = BR_E_NO_DEVICE;

    BR_TRY(br_amd_node_get(&n, os, 0, st));
    if (strcmp(tier, "amd-t2") != 0) {
        x->dev.tier = "amd-t1";
        c = br_amd_open(&x->d, os, &n, st);
        if (c == BR_OK || strcmp(tier, "amd") != 0)
            return c;
        br_amd_close(&x->d);
        *st = (br_status){0};
    }
    x->dev.tier = "amd-t2";
    return br_amd_open_user(&x->d, os, &n, st);
}

static br_code
open_all(amd_nodes *x, const br_nd_where *c, br_status *st)
{
    br_amd_want stage = {.bytes = STAGE, .heap = BR_AMD_HOST};
    const br_amd_os *os = &br_amd_os_real;

    if (c->sim) {
        br_simgpu_opts o = {.cpu = c->sim};

        BR_TRY(br_simgpu_read(&o, c->sim_opts, st));
        BR_TRY(br_simgpu_new(&x->sim, &o, st));
        os = br_simgpu_os(x->sim);
    }
    BR_TRY(open_device(x, c->tier, os, st));
    x->direct = !x->d.node.small_bar && !x->d.user;
    snprintf(x->name, sizeof x->name, "%s%s", x->sim ? "simulated " : "",
             x->d.node.name);
    BR_TRY(br_amd_queue_init(&x->q, &x->d, true, RING, st));
    x->q.polls = true;
    BR_TRY(br_amd_alloc(&x->d, &x->stage, &stage, st));
    BR_TRY(find_mode(x, c->mode, st));
    BR_TRY(open_code(x, &x->code,
                     (br_text){br_ptx_portable,
                               (size_t)(br_ptx_portable_end - br_ptx_portable)},
                     st));
    BR_TRY(open_hand(x, st));
    return x->mode == PACKETS ? BR_OK : open_mega(x, st);
}

static void
dev_close(br_nd_dev *d)
{
    amd_nodes *x = mine(d);
    br_amd_mem *own[] = {&x->step.words, &x->step.args, &x->copy.words,
                         &x->copy.args,  &x->code,      &x->mega_code,
                         &x->hand_code,  &x->state,     &x->bell,
                         &x->stage};

    (void)!resident_end(x, NULL);
    br_amd_queue_fini(&x->q);
    for (size_t i = 0; i < x->held.n; i++)
        br_amd_free(&x->d, &x->held.at[i]);
    for (size_t i = 0; i < BR_COUNT(own); i++)
        br_amd_free(&x->d, own[i]);
    br_amd_close(&x->d);
    br_check(br_simgpu_free(x->sim) && "nothing is left on the device");
    br_vec_fini(&x->held);
    br_free(x);
}

br_code
br_nd_amd_open(br_nd_dev **out, const br_nd_where *c, br_status *st)
{
    static const br_nd_ops ops = {dev_close,  dev_alloc, dev_zero,
                                  dev_put,    dev_get,   dev_begin,
                                  dev_launch, dev_wait,  dev_probe};
    amd_nodes *x = br_try_calloc(1, sizeof *x);
    br_status mine_st = {0};
    br_code code;

    *out = NULL;
    if (!x)
        return br_fail(st, BR_E_OOM, "tier %s: out of memory", c->tier);
    x->dev = (br_nd_dev){.ops = &ops, .name = x->name};
    code = open_all(x, c, &mine_st);
    if (code != BR_OK) {
        dev_close(&x->dev);
        return br_fail(st, code, "%s", mine_st.msg);
    }
    *out = &x->dev;
    return BR_OK;
}
