/* amd_queue.c - a queue of AQL packets: made, written, rung, waited for.
 *
 *     slot: header invalid -> body -> header valid (release)
 *     control.write = n + 1 (a locked store: it drains what was combined)
 *     doorbell = n          the last packet's number
 *     ...
 *     signal.value falls by one, mailbox = event, interrupt
 *
 * Every packet carries the barrier bit, so packets end in order and the one
 * signal of a queue counts them: -value are done. A queue of PM4 has a fence in
 * memory instead, which counts submissions; its processor stops at the write
 * pointer, so packets need no publishing of their own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/amd/amd_dev.h"

#include <string.h>

enum {
    LOOKS = 2000, /* before a wait asks the kernel: some microseconds */
    NAP_MS = 1000,
    POLL_NS = 50 * 1000,
    POLLS = 200 * 1000,      /* before one who polls asks for faults: 10 s */
    MAX_WAVES = 0xfff,       /* of a shader engine, in TMPRING_SIZE */
    WAVESIZE_SHIFT = 12 - 8, /* units of 256 bytes, from bit 12 on */
    AQL_BYTES = sizeof(br_aql_packet),
};

static br_amd_control *
control(const br_amd_queue *q)
{
    return (br_amd_control *)(void *)q->control.host;
}

static br_amd_signal *
signal_of(const br_amd_queue *q)
{
    return (br_amd_signal *)(void *)q->signal.host;
}

static uint64_t
done(const br_amd_queue *q)
{
    if (q->pm4) /* partner: the processor's RELEASE_MEM */
        return atomic_load_explicit(
            (_Atomic uint64_t *)(void *)(q->signal.host + BR_AMD_FENCE_AT),
            memory_order_acquire);
    return 0 - (uint64_t)atomic_load_explicit(&signal_of(q)->value,
                                              memory_order_acquire);
}

static uint64_t
ring_bytes(const br_amd_queue *q)
{
    return q->slots * (q->pm4 ? 4 : AQL_BYTES);
}

/* ---- making ------------------------------------------------------------ */

static br_code
buffers(br_amd_queue *q, br_status *st)
{
    br_amd_dev *d = q->d;
    const struct {
        br_amd_mem *m;
        uint64_t bytes;
        br_amd_heap heap;
    } all[] = {
        {&q->ring, ring_bytes(q), BR_AMD_HOST},
        {&q->control, BR_KFD_PAGE, BR_AMD_HOST},
        {&q->signal, BR_KFD_PAGE, BR_AMD_HOST},
        {&q->eop, BR_KFD_EOP_BYTES, BR_AMD_VRAM},
        {&q->save, d->sizes.area, BR_AMD_VRAM},
    };

    for (size_t k = 0; k < BR_COUNT(all); k++) {
        br_amd_want w = {.bytes = all[k].bytes, .heap = all[k].heap};

        if (d->user && all[k].m == &q->save)
            continue;
        BR_TRY(br_amd_alloc(d, all[k].m, &w, st));
    }
    return BR_OK;
}

static void
fill_control(br_amd_queue *q)
{
    br_aql_packet *ring = (br_aql_packet *)(void *)q->ring.host;
    br_amd_control *c = control(q);
    br_amd_signal *s = signal_of(q);

    for (uint64_t k = 0; k < q->slots && !q->pm4; k++)
        atomic_init(&ring[k].header, BR_AQL_INVALID);
    c->type = c->features = 1;
    c->ring = q->ring.va;
    c->slots = (uint32_t)q->slots;
    c->read_offset = (uint32_t)offsetof(br_amd_control, read);
    s->kind = 1;
    s->event = q->d->event;
    s->mailbox = q->d->events.va + 8ull * q->d->event;
}

static br_code
create(br_amd_queue *q, br_status *st)
{
    br_amd_dev *d = q->d;
    struct br_kfd_create_queue a = {
        .ring = q->ring.va,
        .write_pointer = q->control.va + offsetof(br_amd_control, write),
        .read_pointer = q->control.va + offsetof(br_amd_control, read),
        .ring_bytes = (uint32_t)ring_bytes(q),
        .gpu_id = d->node.gpu_id,
        .type = q->pm4 ? BR_KFD_QUEUE_COMPUTE : BR_KFD_QUEUE_AQL,
        .percentage = BR_KFD_MAX_PERCENTAGE,
        .priority = 7,
        .eop = q->eop.va,
        .eop_bytes = BR_KFD_EOP_BYTES,
        .save = q->save.va,
        .save_bytes = (uint32_t)d->sizes.cwsr,
        .ctl_bytes = (uint32_t)d->sizes.ctl};
    int e = br_amd_ioctl(d, BR_KFD(create_queue), &a);
    uint64_t page = a.doorbell_offset & ~(uint64_t)(BR_KFD_DOORBELL_BYTES - 1);
    void *at = NULL;

    if (e < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: no queue: %s", d->node.name,
                       strerror(-e));
    q->id = a.queue_id;
    q->made = true;
    if (!d->doorbells) {
        e = d->os->map(d->os->ctx, d->kfd, &at, BR_KFD_DOORBELL_BYTES, page);
        if (e < 0)
            return br_fail(st, BR_E_NO_DEVICE, "%s: no doorbell: %s",
                           d->node.name, strerror(-e));
        d->doorbells = at;
    }
    q->doorbell =
        (_Atomic uint64_t *)(void *)(d->doorbells + (a.doorbell_offset - page));
    return BR_OK;
}

br_code
br_amd_queue_init(br_amd_queue *q, br_amd_dev *d, bool pm4, uint64_t slots,
                  br_status *st)
{
    *q = (br_amd_queue){.d = d, .pm4 = pm4, .slots = slots};
    if (d->user && !pm4)
        return br_fail(st, BR_E_UNSUPPORTED, "%s: user queues take PM4",
                       d->node.name);
    if (ring_bytes(q) < BR_KFD_PAGE || slots > 1 << 20 || (slots & (slots - 1)))
        return br_fail(st, BR_E_LIMIT, "a queue of %llu slots",
                       (unsigned long long)slots);
    BR_TRY(buffers(q, st));
    fill_control(q);
    return d->user ? br_amd_user_queue(q, st) : create(q, st);
}

void
br_amd_queue_fini(br_amd_queue *q)
{
    struct br_kfd_destroy_queue a = {.queue_id = q->id};
    br_amd_mem *all[] = {&q->ring, &q->control, &q->eop,
                         &q->save, &q->signal,  &q->scratch};

    if (!q->d)
        return;
    if (q->d->user)
        br_amd_user_queue_end(q);
    else if (q->made)
        br_amd_ioctl(q->d, BR_KFD(destroy_queue), &a);
    for (size_t k = 0; k < BR_COUNT(all); k++)
        br_amd_free(q->d, all[k]);
    *q = (br_amd_queue){0};
}

/* ---- waiting ----------------------------------------------------------- */

/* Sleeps until an event; FAULT when it is one of a fault. */
static br_code
nap(br_amd_queue *q, uint32_t ms, br_status *st)
{
    br_amd_dev *d = q->d;
    struct br_kfd_event_data e[3] = {{.event_id = d->event},
                                     {.event_id = d->fault_events[0]},
                                     {.event_id = d->fault_events[1]}};
    struct br_kfd_wait_events w = {
        .events = (uint64_t)(uintptr_t)e, .n = BR_COUNT(e), .timeout_ms = ms};
    int r;

    r = br_amd_ioctl(d, BR_KFD(wait_events), &w);
    if (r < 0)
        return br_fail(st, BR_E_NO_DEVICE, "%s: waiting: %s", d->node.name,
                       strerror(-r));
    q->dead |=
        e[1].memory.gpu_id || e[2].hw.gpu_id || w.result == BR_KFD_WAIT_FAIL;
    if (e[1].memory.gpu_id)
        return br_fail(st, BR_E_FAULT, "%s: access to 0x%llx: %s", d->node.name,
                       (unsigned long long)e[1].memory.va,
                       e[1].memory.not_present ? "nothing is there"
                       : e[1].memory.read_only ? "it is read only"
                                               : "no code may be there");
    if (q->dead)
        return br_fail(st, BR_E_FAULT, "%s stopped (cause %u)", d->node.name,
                       e[2].hw.reset_cause);
    return BR_OK;
}

br_code
br_amd_look(br_amd_queue *q, br_status *st)
{
    return q->d->user ? BR_OK : nap(q, 0, st);
}

static br_code
wait_for(br_amd_queue *q, uint64_t n, int64_t timeout_ns, br_status *st)
{
    int64_t end = timeout_ns < 0 ? INT64_MAX : br_now_ns() + timeout_ns;

    for (int k = 0; k < LOOKS; k++) {
        if (done(q) >= n)
            return BR_OK;
        br_cpu_relax();
    }
    for (int64_t k = 0; done(q) < n; k++) {
        int64_t left = end - br_now_ns();

        if (q->dead)
            return br_fail(st, BR_E_FAULT, "%s stopped before",
                           q->d->node.name);
        if (left <= 0)
            return br_fail(st, BR_E_TIMEOUT, "%s: %llu of %llu packets done",
                           q->d->node.name, (unsigned long long)done(q),
                           (unsigned long long)n);
        if (q->d->user || (q->polls && k < POLLS))
            br_sleep_ns(POLL_NS); /* nobody rings back, or nobody is asked */
        else
            BR_TRY(nap(q, (uint32_t)BR_MIN(left / 1000000 + 1, NAP_MS), st));
    }
    return BR_OK;
}

br_code
br_amd_wait(br_amd_queue *q, int64_t timeout_ns, br_status *st)
{
    BR_TRY(wait_for(q, q->next, timeout_ns, st));
    if (q->d->os->settled)
        q->d->os->settled(q->d->os->ctx);
    return BR_OK;
}

/* The write index, then the doorbell. */
static void
ring(br_amd_queue *q, uint64_t written, uint64_t value)
{
    atomic_store_explicit(&control(q)->write, written, memory_order_seq_cst);
    if (q->d->os->ring)
        q->d->os->ring(q->d->os->ctx, q->doorbell, value);
    atomic_store_explicit(q->doorbell, value, memory_order_release);
}

/* ---- launching --------------------------------------------------------- */

/* Scratch for as many waves as there are slots, or as an eighth of the memory
 * holds; then fewer waves run at once. */
br_code
br_amd_queue_scratch(br_amd_queue *q, uint32_t lane_bytes, br_status *st)
{
    const br_amd_node *n = &q->d->node;
    uint64_t lane = 256, wave, engines, waves, most;
    br_amd_want w = {.heap = BR_AMD_VRAM};
    br_amd_control *c = control(q);

    if (lane_bytes <= c->lane_bytes)
        return BR_OK;
    if (lane_bytes > BR_AMD_MAX_SCRATCH)
        return br_fail(st, BR_E_LIMIT, "%u bytes of scratch for a lane",
                       lane_bytes);
    while (lane < lane_bytes)
        lane *= 2;
    wave = lane * 64;
    engines = BR_MAX(n->arrays / BR_MAX(n->arrays_per_engine, 1u), 1u);
    waves = n->simds / n->simds_per_cu * n->scratch_slots / engines;
    most = n->vram_bytes / 8 / engines / wave;
    waves = BR_MAX(BR_MIN(BR_MIN(waves, most), (uint64_t)MAX_WAVES), 1u);
    w.bytes = waves * engines * wave;
    BR_TRY(br_amd_wait(q, -1, st));
    br_amd_free(q->d, &q->scratch);
    c->lane_bytes = 0;
    BR_TRY(br_amd_alloc(q->d, &q->scratch, &w, st));
    c->tmpring = (uint32_t)(waves | wave << WAVESIZE_SHIFT);
    c->scratch = q->scratch.va;
    c->scratch_bytes = q->scratch.bytes;
    c->lane_bytes = (uint32_t)lane;
    return BR_OK;
}

br_code
br_amd_launch(br_amd_queue *q, const br_aql_launch *l, br_status *st)
{
    br_aql_packet *p = (br_aql_packet *)(void *)q->ring.host;
    br_amd_control *c = control(q);
    br_aql_launch mine = *l;

    br_check(!q->pm4);
    if (q->dead)
        return br_fail(st, BR_E_FAULT, "%s stopped before", q->d->node.name);
    BR_TRY(br_amd_queue_scratch(q, l->private_bytes, st));
    /* A slot is ours again when `read` has passed it, which may be told a
   * little later than that its packet is done. */
    while (q->next - atomic_load_explicit(&c->read, memory_order_acquire) >=
           q->slots) {
        BR_TRY(wait_for(q, q->next - q->slots / 2, -1, st));
        br_thread_yield();
    }
    p += q->next % q->slots;
    mine.completion = q->signal.va;
    BR_TRY(br_aql_fill(p, &mine, st));
    br_aql_publish(p, br_aql_header(BR_AQL_DISPATCH, true, BR_AQL_SCOPE_SYSTEM,
                                    BR_AQL_SCOPE_SYSTEM));
    q->next++;
    ring(q, q->next, q->next - 1);
    return BR_OK;
}

/* ---- PM4 --------------------------------------------------------------- */

enum {
    START_X = 0x204,
    PGM_LO = 0x20c,
    SCRATCH_LO = 0x210,
    RSRC1 = 0x212,
    LIMITS = 0x215,
    TMPRING = 0x218,
    RESTART_X = 0x21b,
    RSRC3 = 0x228,
    USER_DATA = 0x240,
    LDS_SHIFT = 15, /* in RSRC2, units of 512 bytes; the descriptor has none */
    FLUSH_TS = 0x0070f514,
    STORE_64 = 1 << 30,  /* DATA_SEL 2 */
    INTERRUPT = 2 << 24, /* once the store is there */
    DROP_CODE = 1,       /* GCR: instruction caches, too */
};

static void
fence(br_pm4 *s, uint64_t at, uint64_t value, uint32_t interrupt, uint32_t id)
{
    uint32_t body[7] = {FLUSH_TS,
                        STORE_64 | interrupt,
                        (uint32_t)at,
                        (uint32_t)(at >> 32),
                        (uint32_t)value,
                        (uint32_t)(value >> 32),
                        id};

    br_pm4_put(s, BR_PM4_RELEASE_MEM, body, BR_COUNT(body));
}

br_code
br_amd_pm4_launch(br_amd_queue *q, br_pm4 *s, const br_aql_launch *l,
                  const uint8_t *kd, br_status *st)
{
    const br_amd_control *c = control(q);
    uint32_t rsrc[3], zero[3] = {0}, flush = BR_PM4_PARTIAL_FLUSH;
    /* and no statistics */
    uint32_t start[8] = {0, 0, 0, l->group[0], l->group[1], l->group[2]};
    uint32_t user[16] = {(uint32_t)l->kernarg, (uint32_t)(l->kernarg >> 32)};
    uint64_t entry, scratch;
    br_aql_packet p;
    uint16_t props;

    BR_TRY(br_aql_fill(&p, l, st)); /* the same limits */
    BR_TRY(br_amd_queue_scratch(q, l->private_bytes, st));
    memcpy(&entry, kd + 16, 8);
    memcpy(rsrc, kd + 48, 8);
    memcpy(rsrc + 2, kd + 44, 4);
    memcpy(&props, kd + 56, 2);
    if (props & 0x77 || (rsrc[1] >> 1 & 31) > BR_COUNT(user))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "the kernel wants more in user SGPRs than arguments");
    entry = (entry + l->kernel) >> 8;
    scratch = c->scratch >> 8;
    rsrc[1] |= (l->group_bytes + 511) / 512 << LDS_SHIFT;
    br_pm4_acquire(s, BR_PM4_BEFORE | DROP_CODE);
    br_pm4_set_sh(s, PGM_LO,
                  (uint32_t[]){(uint32_t)entry, (uint32_t)(entry >> 32)}, 2);
    br_pm4_set_sh(s, RSRC1, rsrc, 2);
    br_pm4_set_sh(s, RSRC3, rsrc + 2, 1);
    br_pm4_set_sh(s, TMPRING, &c->tmpring, 1);
    br_pm4_set_sh(s, SCRATCH_LO,
                  (uint32_t[]){(uint32_t)scratch, (uint32_t)(scratch >> 32)},
                  2);
    br_pm4_set_sh(s, RESTART_X, zero, 3);
    br_pm4_set_sh(s, USER_DATA, user, BR_COUNT(user));
    br_pm4_set_sh(s, LIMITS, zero, 1);
    br_pm4_set_sh(s, START_X, start, BR_COUNT(start));
    br_pm4_dispatch(s, l->groups, !(props >> 10 & 1));
    br_pm4_put(s, BR_PM4_EVENT_WRITE, &flush, 1);
    return BR_OK;
}

static void
write_ring(br_amd_queue *q, const br_pm4 *s)
{
    uint32_t *words = (uint32_t *)(void *)q->ring.host;

    for (size_t k = 0; k < s->n; k++)
        words[(q->put + k) % q->slots] = s->at[k];
    q->put += s->n;
}

br_code
br_amd_pm4_submit(br_amd_queue *q, const br_pm4 *s, br_status *st)
{
    br_amd_control *c = control(q);
    uint64_t slot = q->d->events.va + 8ull * q->d->event;
    uint32_t words[16];
    br_pm4 end = {.at = words, .cap = BR_COUNT(words)};

    br_check(q->pm4);
    if (q->dead)
        return br_fail(st, BR_E_FAULT, "%s stopped before", q->d->node.name);
    if (s->full || s->n + BR_COUNT(words) > q->slots)
        return br_fail(st, BR_E_LIMIT, "a stream longer than the ring");
    fence(&end, q->signal.va + BR_AMD_FENCE_AT, q->next + 1, 0, 0);
    if (!q->d->user)
        fence(&end, slot, q->d->event, INTERRUPT, q->d->event);
    while (q->put + s->n + end.n -
               atomic_load_explicit(&c->read, memory_order_acquire) >
           q->slots) {
        BR_TRY(wait_for(q, q->next, -1, st));
        br_thread_yield();
    }
    write_ring(q, s);
    write_ring(q, &end);
    q->next++;
    ring(q, q->put, q->put);
    return BR_OK;
}
