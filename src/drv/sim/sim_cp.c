/* sim_cp.c - packet processors: a thread for each queue, looking at its doorbell.
 *
 *     header valid   --> the packet is looked at, and remembered
 *     doorbell rings --> taken in order: run, slot freed, signal counted down
 *
 * A slot belongs to the driver up to the moment its header is published, and
 * again once `read` has passed it; in between nobody may write there. A processor that
 * met what is reported here would hang or run something else:
 *
 *   half written   the doorbell rang and the header is still invalid, or bytes
 *                  changed after the header was published
 *   ring overrun   more packets than slots, one written over another
 *   doorbell order it names a packet before the last one, or one that the write
 *                  index does not know yet
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"
#include "drv/sim/sim_int.h"

#include <string.h>

enum {
    NAP_NS = 20 * 1000, /* between looks; twice as long each time */
    NAP_MOST_NS = 2 * 1000 * 1000,
    BARRIER_DEPS = 5,
};

typedef struct barrier {
    uint16_t header, reserved0;
    uint32_t reserved1;
    uint64_t dep[BARRIER_DEPS], reserved2, completion;
} barrier;
_Static_assert(sizeof(barrier) == sizeof(br_aql_packet), "HSA 1.2, 2.9.7");

bool
sim_stop(sim_queue *q, br_code code, const char *fmt, ...)
{
    br_simgpu *g = q->g;
    br_str s = {0};
    va_list ap;

    va_start(ap, fmt);
    br_str_vprintf(&s, fmt, ap);
    va_end(ap);
    sim_report(g, "%s", br_str_z(&s));
    if (g->fault.code == BR_OK)
        br_fail(&g->fault, code, "%s", br_str_z(&s));
    br_str_fini(&s);
    q->dead = true;
    sim_hang(g);
    return false;
}

static bool
aql(const sim_queue *q)
{
    return q->a.type == BR_KFD_QUEUE_AQL;
}

static unsigned long long
ull(uint64_t v)
{
    return v;
}

/* ---- packets of AQL ---------------------------------------------------- */

static uint8_t *
slot(const sim_queue *q, uint64_t n)
{
    const sim_bo *b = q->bo[2];

    return b->host + (q->a.ring - b->va) + n % q->slots * sizeof(br_aql_packet);
}

static uint8_t *
shadow(const sim_queue *q, uint64_t n)
{
    return q->shadow + n % q->slots * sizeof(br_aql_packet);
}

/* A header that is valid says that its packet is whole, doorbell or not: the
 * packet is remembered as it is now. Partner: br_aql_publish. */
static void
peek(sim_queue *q)
{
    for (; q->seen - q->at < q->slots; q->seen++) {
        _Atomic uint16_t *h = (_Atomic uint16_t *)(void *)slot(q, q->seen);

        if ((atomic_load_explicit(h, memory_order_acquire) & 255) ==
            BR_AQL_INVALID)
            return;
        memcpy(shadow(q, q->seen), slot(q, q->seen), sizeof(br_aql_packet));
    }
}

/* The doorbell rang: everything up to `rung` is ours, and has to be whole. */
static bool
take_over(sim_queue *q, uint64_t rung)
{
    uint64_t written = atomic_load_explicit(q->write, memory_order_acquire);
    const char *unit = aql(q) ? "packet" : "dword";

    if (rung < q->target || rung > UINT64_MAX / 2)
        return sim_stop(q, BR_E_FAULT, "doorbell order: %s %llu after %s %llu",
                        unit, ull(rung - 1), unit, ull(q->target - 1));
    if (rung > written)
        return sim_stop(
            q, BR_E_FAULT,
            "doorbell order: it names %s %llu, the write index is %llu", unit,
            ull(rung - 1), ull(written));
    if (rung - q->at > q->slots)
        return sim_stop(
            q, BR_E_FAULT,
            "ring overrun: %s %llu is written, %s %llu was not taken, "
            "the ring holds %llu",
            unit, ull(rung - 1), unit, ull(q->at), ull(q->slots));
    if (aql(q) && q->seen < rung)
        return sim_stop(q, BR_E_FAULT,
                        "half written: packet %llu was rung for, its header is "
                        "invalid",
                        ull(q->seen));
    q->target = rung;
    return true;
}

static bool
as_it_was(sim_queue *q)
{
    return memcmp(shadow(q, q->at), slot(q, q->at), sizeof(br_aql_packet)) ==
               0 ||
           sim_stop(q, BR_E_FAULT,
                    "half written: packet %llu changed after its header was "
                    "published",
                    ull(q->at));
}

static br_amd_signal *
signal_at(sim_queue *q, uint64_t va)
{
    void *p = va % 64 ? NULL : sim_at(&q->g->waves, va, 64, true);
    br_amd_signal *s = p;

    if (s && s->kind == 1)
        return s;
    sim_stop(q, BR_E_FAULT, "no signal at 0x%llx", ull(va));
    return NULL;
}

static bool
complete(sim_queue *q, uint64_t va)
{
    br_amd_signal *s = va ? signal_at(q, va) : NULL;
    _Atomic uint64_t *mailbox;

    if (!s)
        return !va;
    /* Partner: whoever waits for the signal. */
    atomic_fetch_sub_explicit(&s->value, 1, memory_order_release);
    if (!s->mailbox)
        return true;
    mailbox = s->mailbox % 8
                  ? NULL
                  : (void *)sim_at(&q->g->waves, s->mailbox, 8, true);
    if (!mailbox)
        return sim_stop(q, BR_E_FAULT, "no mailbox at 0x%llx", ull(s->mailbox));
    atomic_store_explicit(mailbox, s->event, memory_order_release);
    sim_interrupt(q->g, s->event);
    return true;
}

/* What HSA says has to be so. */
static bool
well_formed(sim_queue *q, const br_aql_packet *p, unsigned header)
{
    const char *wrong = NULL;
    unsigned dims = p->setup;

    if (header >> 13 || (header >> 9 & 3) == 3 || (header >> 11 & 3) == 3)
        wrong = "reserved bits of the header";
    else if (dims < 1 || dims > 3)
        wrong = "dimensions";
    else if (p->reserved0 || p->reserved2)
        wrong = "reserved fields that are not zero";
    for (unsigned d = dims; !wrong && d < 3; d++)
        if (p->grid[d] != 1 || p->group[d] != 1)
            wrong = "a size in a dimension that is not there";
    return !wrong ||
           sim_stop(q, BR_E_FAULT, "packet %llu: %s", ull(q->at), wrong);
}

/* Descriptor, LDS and scratch: what the packet grants is what the kernel has. */
static bool
resources(sim_queue *q, const br_aql_packet *p)
{
    uint64_t at = q->a.read_pointer - q->bo[1]->va;
    const br_amd_control *c = NULL;
    const uint8_t *kd = sim_at(&q->g->waves, p->kernel, BR_GCN_KD_BYTES, false);
    uint32_t w[2];

    if (!kd)
        return sim_stop(q, BR_E_FAULT, "packet %llu: no descriptor at 0x%llx",
                        ull(q->at), ull(p->kernel));
    memcpy(w, kd, sizeof w);
    if (p->group_bytes < w[0] || p->private_bytes < w[1])
        return sim_stop(
            q, BR_E_FAULT,
            "packet %llu: %u bytes of LDS, %u of scratch; the kernel "
            "has %u and %u",
            ull(q->at), p->group_bytes, p->private_bytes, w[0], w[1]);
    if (!p->private_bytes)
        return true;
    if (at >= offsetof(br_amd_control, read))
        c = (void *)(q->bo[1]->host + at - offsetof(br_amd_control, read));
    if (!c || c->read_offset != offsetof(br_amd_control, read) ||
        c->lane_bytes < p->private_bytes || !(c->tmpring & 0xfff) ||
        !sim_at(&q->g->waves, c->scratch,
                (c->tmpring & 0xfff) * (c->lane_bytes * 64ull), true))
        return sim_stop(
            q, BR_E_FAULT,
            "packet %llu: %u bytes of scratch a lane, and the queue has "
            "no such memory",
            ull(q->at), p->private_bytes);
    return true;
}

bool
sim_dispatch(sim_queue *q, const br_aql_packet *p)
{
    br_simgpu *g = q->g;
    br_status st = {0};

    g->waves.max_steps = g->o.max_steps ? g->waves.steps + g->o.max_steps : 0;
    g->waves.stop = &q->stop;
    if (br_sim_dispatch(&g->waves, p, &st) == BR_OK)
        return true;
    /* The kernel takes waves of a queue that is destroyed off the processor,
     * and says nothing. */
    if (atomic_load_explicit(&q->stop, memory_order_acquire)) {
        q->dead = true;
        return false;
    }
    return sim_stop(q, st.code, "%s", st.msg);
}

static bool
dispatch(sim_queue *q, const br_aql_packet *p, unsigned header)
{
    if (!well_formed(q, p, header) || !resources(q, p))
        return false;
    if (header >> 9 & 3)
        sim_vm_refresh(&q->g->waves);
    return sim_dispatch(q, p);
}

/* 1: go on; 0: not yet; -1: the queue stopped. */
static int
deps(sim_queue *q, const barrier *b, bool all)
{
    unsigned n = 0, met = 0;

    for (int k = 0; k < BARRIER_DEPS; k++) {
        br_amd_signal *s = b->dep[k] ? signal_at(q, b->dep[k]) : NULL;

        if (!s && b->dep[k])
            return -1;
        n += s != NULL;
        met += s && atomic_load_explicit(&s->value, memory_order_acquire) == 0;
    }
    return all ? met == n : met || !n;
}

/* The next packet. False: nothing can be done now. */
static bool
one(sim_queue *q)
{
    union {
        br_aql_packet p;
        barrier b;
        uint16_t header;
    } u;
    uint64_t completion;
    int ready = 1;

    if (!as_it_was(q))
        return false;
    memcpy(&u, shadow(q, q->at), sizeof u);
    completion = u.p.completion;
    switch (u.header & 255) {
    case BR_AQL_DISPATCH:
        if (!dispatch(q, &u.p, u.header))
            return false;
        break;
    case BR_AQL_BARRIER_AND:
    case BR_AQL_BARRIER_OR:
        ready = deps(q, &u.b, (u.header & 255) == BR_AQL_BARRIER_AND);
        break;
    default:
        return sim_stop(q, BR_E_FAULT, "packet %llu: type %u", ull(q->at),
                        u.header & 255);
    }
    if (ready < 1 || !as_it_was(q))
        return false;
    atomic_store_explicit((_Atomic uint16_t *)(void *)slot(q, q->at),
                          BR_AQL_INVALID, memory_order_relaxed);
    q->at++;
    /* Partner: the driver, before it writes to the slot again. */
    atomic_store_explicit(q->read, q->at, memory_order_release);
    return complete(q, completion);
}

static bool
look_aql(sim_queue *q)
{
    uint64_t rung = atomic_load_explicit(q->doorbell, memory_order_acquire) + 1;
    bool did = false;

    peek(q);
    if (rung == q->target && q->at == q->target)
        return false;
    br_mutex_lock(&q->g->lock);
    if (rung == q->target || take_over(q, rung))
        did = one(q);
    br_mutex_unlock(&q->g->lock);
    return did;
}

/* ---- packets of PM4 ---------------------------------------------------- */

/* What was rung for, in one piece; the rest is sim_pm4.c's. */
static bool
look_pm4(sim_queue *q)
{
    uint64_t rung = atomic_load_explicit(q->doorbell, memory_order_acquire);
    const sim_bo *b = q->bo[2];
    const uint32_t *ring =
        (const uint32_t *)(const void *)(b->host + (q->a.ring - b->va));
    uint32_t *flat = (uint32_t *)(void *)q->shadow;
    size_t n = 0, took = 0;

    if (rung == q->target && q->at == q->target)
        return false;
    br_mutex_lock(&q->g->lock);
    if (rung == q->target || take_over(q, rung)) {
        for (uint64_t k = q->at; k < q->target; k++)
            flat[n++] = ring[k % q->slots];
        took = sim_pm4_one(q, flat, n);
        q->at += took;
        /* Partner: the driver, before it writes to the ring again. */
        atomic_store_explicit(q->read, q->at, memory_order_release);
    }
    br_mutex_unlock(&q->g->lock);
    return took > 0;
}

bool
sim_cp_look(sim_queue *q)
{
    return !q->dead && (aql(q) ? look_aql(q) : look_pm4(q));
}

/* ---- the thread -------------------------------------------------------- */

void
sim_cp_main(void *arg)
{
    sim_queue *q = arg;
    int64_t nap = NAP_NS;

    for (;;) {
        uint32_t seen = br_event_prepare(&q->g->kick);

        if (atomic_load_explicit(&q->stop, memory_order_acquire)) {
            br_event_cancel(&q->g->kick);
            return;
        }
        if (sim_cp_look(q)) {
            br_event_cancel(&q->g->kick);
            nap = NAP_NS;
            continue;
        }
        br_event_sleep(&q->g->kick, seen, nap);
        nap = BR_MIN(nap * 2, (int64_t)NAP_MOST_NS);
    }
}
