/* sim_pm4.c - packets of PM4, as a compute queue's processor takes them.
 *
 * Strict where the hardware would hang or launch nonsense: a dispatch demands
 * that every register it looks at was set since the queue was made. What a
 * packet may hold and is not modelled stops the queue with its name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"
#include "drv/sim/sim_int.h"

#include <string.h>

enum {
    START_X = 0x204,
    THREADS_X = 0x207,
    PGM_LO = 0x20c,
    SCRATCH = 0x210,
    RSRC1 = 0x212,
    RSRC2 = 0x213,
    LIMITS = 0x215,
    TMPRING = 0x218,
    RESTART_X = 0x21b,
    RSRC3 = 0x228,
    USER_DATA = 0x240,
    FIRST = 0x200, /* compute registers */
    LAST = 0x27f,
    MAX_USER = 16,
    KD_AT = 0x2000, /* where the waves find what the registers say */
    EVENT_INDEX_TS = 5 << 8 | 0x14,
    WRITE_MEMORY = 5 << 8,
    WRITE_L2 = 2 << 8,
    WRITE_CONFIRM = 1 << 20,
    IB_VALID = 1 << 23,
    KD_KERNARG = 8,
    KD_WAVE32 = 1024,
};

static uint64_t
pair(const uint32_t *w)
{
    return (uint64_t)w[1] << 32 | w[0];
}

static void *
memory(sim_queue *q, uint64_t va, uint64_t bytes, bool write)
{
    void *p = va % (bytes == 8 ? 8 : 4)
                  ? NULL
                  : (void *)sim_at(&q->g->waves, va, bytes, write);

    if (!p)
        sim_stop(q, BR_E_FAULT, "a packet %s %llu bytes at 0x%llx: no memory",
                 write ? "writes" : "reads", (unsigned long long)bytes,
                 (unsigned long long)va);
    return p;
}

static bool
set_sh(sim_queue *q, const br_pm4_view *v)
{
    uint32_t reg = v->body[0];

    if (reg < FIRST || reg > LAST || v->n - 1 > LAST + 1u - reg)
        return sim_stop(q, BR_E_FAULT, "SET_SH_REG 0x%x: no compute register",
                        reg);
    memcpy(q->sh + reg, v->body + 1, (v->n - 1) * 4);
    memset(q->sh_set + reg, true, v->n - 1);
    return true;
}

static bool
release(sim_queue *q, const uint32_t *b)
{
    uint32_t data = b[1] >> 29, interrupt = b[1] >> 24 & 7;
    uint64_t va = pair(b + 2);
    void *p;

    if ((b[0] & 0xfff) != EVENT_INDEX_TS || b[0] >> 29 || (b[1] & 0x00ffffff) ||
        (data != 1 && data != 2) || (interrupt && interrupt != 2))
        return sim_stop(q, BR_E_UNSUPPORTED, "RELEASE_MEM 0x%08x 0x%08x", b[0],
                        b[1]);
    p = memory(q, va, data == 1 ? 4 : 8, true);
    if (!p)
        return false;
    /* Partner: whoever waits for the fence. */
    if (data == 1)
        atomic_store_explicit((_Atomic uint32_t *)p, b[4],
                              memory_order_release);
    else
        atomic_store_explicit((_Atomic uint64_t *)p, pair(b + 4),
                              memory_order_release);
    if (interrupt)
        sim_interrupt(q->g, b[6]);
    return true;
}

/* 1: go on, 0: not yet, -1: the queue stopped. */
static int
wait_mem(sim_queue *q, const uint32_t *b)
{
    _Atomic uint32_t *p;
    uint32_t v;

    if ((b[0] & ~7u) != 0x10 || (b[0] & 7) < 3 || (b[0] & 7) > 5) {
        sim_stop(q, BR_E_UNSUPPORTED, "WAIT_REG_MEM 0x%08x", b[0]);
        return -1;
    }
    p = memory(q, pair(b + 1), 4, false);
    if (!p)
        return -1;
    v = atomic_load_explicit(p, memory_order_acquire) & b[4];
    return (b[0] & 7) == 3   ? v == b[3]
           : (b[0] & 7) == 4 ? v != b[3]
                             : v >= b[3];
}

static bool
write_data(sim_queue *q, const br_pm4_view *v)
{
    uint32_t how = v->body[0] & ~(uint32_t)WRITE_CONFIRM;

    if (v->n < 4 || (how != WRITE_MEMORY && how != WRITE_L2))
        return sim_stop(q, BR_E_UNSUPPORTED, "WRITE_DATA 0x%08x", v->body[0]);
    for (size_t k = 3; k < v->n; k++) {
        _Atomic uint32_t *p =
            memory(q, pair(v->body + 1) + 4 * (k - 3), 4, true);

        if (!p)
            return false;
        atomic_store_explicit(p, v->body[k], memory_order_release);
    }
    return true;
}

/* ---- dispatch ---------------------------------------------------------- */

static bool
all_set(sim_queue *q, uint32_t users)
{
    const struct {
        uint32_t reg, n;
    } must[] = {{START_X, 3},   {THREADS_X, 3}, {PGM_LO, 2},
                {RSRC1, 2},     {LIMITS, 1},    {TMPRING, 1},
                {RESTART_X, 3}, {RSRC3, 1},     {USER_DATA, users}};

    for (size_t k = 0; k < BR_COUNT(must); k++)
        for (uint32_t i = 0; i < must[k].n; i++)
            if (!q->sh_set[must[k].reg + i])
                return sim_stop(q, BR_E_FAULT,
                                "DISPATCH_DIRECT: register 0x%x was never set",
                                must[k].reg + i);
    return true;
}

/* The registers as a descriptor, which is what waves start from. */
static void
descriptor(const sim_queue *q, bool wave32, uint8_t kd[BR_GCN_KD_BYTES])
{
    uint32_t users = q->sh[RSRC2] >> 1 & 31;
    uint32_t lds = (q->sh[RSRC2] >> 15 & 511) * 512;
    uint32_t lane = q->sh[RSRC2] & 1 ? (q->sh[TMPRING] >> 12) * 256 / 64 : 0;
    uint32_t props = (users ? KD_KERNARG : 0) | (wave32 ? KD_WAVE32 : 0);
    int64_t entry = (int64_t)(pair(q->sh + PGM_LO) << 8) - KD_AT;

    memset(kd, 0, BR_GCN_KD_BYTES);
    memcpy(kd, &lds, 4);
    memcpy(kd + 4, &lane, 4);
    memcpy(kd + 16, &entry, 8);
    memcpy(kd + 44, &q->sh[RSRC3], 4);
    memcpy(kd + 48, &q->sh[RSRC1], 8);
    memcpy(kd + 56, &props, 4);
}

static bool
dispatch(sim_queue *q, const uint32_t *b)
{
    uint32_t users = q->sh[RSRC2] >> 1 & 31;
    uint8_t kd[BR_GCN_KD_BYTES];
    br_kregion r = {.addr = KD_AT, .bytes = sizeof kd, .host = kd};
    br_aql_launch l = {.kernel = KD_AT};
    br_aql_packet p;
    br_status st = {0};
    bool ok;

    if ((b[3] & ~0x8000u) != 5)
        return sim_stop(q, BR_E_UNSUPPORTED, "DISPATCH_DIRECT initiator 0x%x",
                        b[3]);
    if (users > MAX_USER || !all_set(q, users))
        return q->dead ? false
                       : sim_stop(q, BR_E_FAULT, "%u user SGPRs", users);
    for (uint32_t k = users == 1 ? 0 : 2; k < users; k++)
        if (q->sh[USER_DATA + k])
            return sim_stop(q, BR_E_UNSUPPORTED,
                            "user SGPR %u is not a kernarg pointer's", k);
    for (uint32_t k = 0; k < 3; k++) {
        if (q->sh[START_X + k] || q->sh[RESTART_X + k])
            return sim_stop(q, BR_E_UNSUPPORTED, "a grid that starts at %u",
                            q->sh[START_X + k]);
        l.groups[k] = b[k];
        l.group[k] = q->sh[THREADS_X + k];
    }
    if ((q->sh[RSRC2] & 1) &&
        (!q->sh_set[SCRATCH] || !q->sh_set[SCRATCH + 1] ||
         !sim_at(&q->g->waves, pair(q->sh + SCRATCH) << 8,
                 (q->sh[TMPRING] & 0xfff) * (q->sh[TMPRING] >> 12) * 256ull,
                 true)))
        return sim_stop(q, BR_E_FAULT, "scratch without memory");
    l.kernarg = users ? pair(q->sh + USER_DATA) : 0;
    descriptor(q, b[3] >> 15 & 1, kd);
    memcpy(&l.group_bytes, kd, 4);
    memcpy(&l.private_bytes, kd + 4, 4);
    if (br_aql_fill(&p, &l, &st) != BR_OK ||
        br_sim_map(&q->g->waves, &r, &st) != BR_OK)
        return sim_stop(q, st.code, "DISPATCH_DIRECT: %s", st.msg);
    ok = sim_dispatch(q, &p);
    sim_vm_unmap(&q->g->waves, KD_AT);
    return ok;
}

/* ---- packets ----------------------------------------------------------- */

static int one(sim_queue *q, const br_pm4_view *v, bool nested);

/* Only from a ring, and without waits in it. */
static bool
indirect(sim_queue *q, const uint32_t *b)
{
    uint32_t n = b[2] & 0xfffff;
    const uint32_t *w;
    br_pm4_view v;

    if (b[2] >> 20 != IB_VALID >> 20)
        return sim_stop(q, BR_E_FAULT, "INDIRECT_BUFFER 0x%08x: not VALID",
                        b[2]);
    w = memory(q, pair(b), n * 4ull, false);
    for (size_t at = 0, k; w && at < n; at += k) {
        k = br_pm4_next(w + at, n - at, &v);
        if (!k)
            return sim_stop(q, BR_E_FAULT,
                            "indirect buffer, dword %zu: 0x%08x is no packet",
                            at, w[at]);
        if (one(q, &v, true) < 1)
            return q->dead ? false
                           : sim_stop(q, BR_E_UNSUPPORTED,
                                      "a wait in an indirect buffer");
    }
    return w != NULL;
}

static int
one(sim_queue *q, const br_pm4_view *v, bool nested)
{
    const uint32_t *b = v->body;
    bool ok = true;

    switch (v->op) {
    case BR_PM4_NOP: break;
    case BR_PM4_SET_SH_REG: ok = set_sh(q, v); break;
    case BR_PM4_WAIT_REG_MEM: return wait_mem(q, b);
    case BR_PM4_WRITE_DATA: ok = write_data(q, v); break;
    case BR_PM4_RELEASE_MEM: ok = release(q, b); break;
    case BR_PM4_DISPATCH_DIRECT: ok = dispatch(q, b); break;
    case BR_PM4_ACQUIRE_MEM:
        if (b[6] & 3) /* GLI_INV */
            sim_vm_refresh(&q->g->waves);
        break;
    case BR_PM4_EVENT_WRITE:
        ok = b[0] == BR_PM4_PARTIAL_FLUSH ||
             sim_stop(q, BR_E_UNSUPPORTED, "EVENT_WRITE 0x%x", b[0]);
        break;
    case BR_PM4_INDIRECT_BUFFER:
        ok = nested ? sim_stop(q, BR_E_UNSUPPORTED, "nested indirect buffers")
                    : indirect(q, b);
        break;
    case BR_PM4_SET_UCONFIG_REG:
        ok = sim_stop(q, BR_E_UNSUPPORTED, "SET_UCONFIG_REG 0x%x", b[0]);
        break;
    }
    return ok ? 1 : -1;
}

size_t
sim_pm4_one(sim_queue *q, const uint32_t *w, size_t n)
{
    br_pm4_view v;
    size_t k = br_pm4_next(w, n, &v);

    if (!k) {
        sim_stop(q, BR_E_FAULT, "dword %llu: 0x%08x begins no whole packet",
                 (unsigned long long)q->at, n ? *w : 0);
        return 0;
    }
    return one(q, &v, false) > 0 ? k : 0;
}
