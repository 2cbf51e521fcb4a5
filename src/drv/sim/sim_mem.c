/* sim_mem.c - scalar loads, vector memory, local memory.
 *
 * Every lane's access is checked: to be inside one region, a lane's scratch or
 * the work-group's LDS; atomics on their size. A value arrives at once; what
 * has to be waited for is sim_check.c's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_check.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_order.h"
#include "drv/sim/sim_wide.h"
#include "drv/sim/sim_word.h"

#include <string.h>

const sim_sem sim_mem_rows[] = {
#define MEM(name, act, bytes, n) \
    {#name, NULL, NULL, NULL, 0, {ACT_##act, bytes, n}, 0},
#include "drv/sim/sim_mem.def"
#undef MEM
    {NULL, NULL, NULL, NULL, 0, {0}, 0},
};

/* ---- places ----------------------------------------------------------- */

enum { READ, WRITE, ATOMIC };

typedef struct spot {
    enum { IN_MEMORY, IN_LDS, IN_SCRATCH } space;
    uint64_t at;
} spot;

static bool
outside(sim_wave *w, spot p, unsigned lane, unsigned bytes, bool write)
{
    static const char *const spaces[] = {"memory", "local memory", "scratch"};

    w->g->sim->fault = BR_KFAULT_ADDRESS;
    return sim_fault(w, BR_E_FAULT,
                     "lane %u: %s of %u bytes at 0x%llx of %s, outside of what "
                     "is there",
                     lane, write ? "a write" : "a read", bytes,
                     (unsigned long long)p.at, spaces[p.space]);
}

static uint8_t *
reach(sim_wave *w, const sim_op *o, spot p, unsigned lane, unsigned bytes,
      unsigned how)
{
    bool write = how != READ;
    sim_group *g = w->g;
    uint8_t *host = NULL;

    if (p.space == IN_MEMORY)
        host = sim_at(g->sim, p.at, bytes, write);
    else if (p.space == IN_LDS && p.at < g->lds_bytes &&
             bytes <= g->lds_bytes - p.at)
        host = g->lds + p.at;
    else if (p.space == IN_SCRATCH && p.at < g->scratch_bytes &&
             bytes <= g->scratch_bytes - p.at)
        host = w->scratch + (size_t)lane * g->scratch_bytes + p.at;
    if (!host)
        outside(w, p, lane, bytes, write);
    else if (g->order && p.space == IN_MEMORY)
        sim_order_access(w, o,
                         &(sim_reach){.at = p.at,
                                      .bytes = bytes,
                                      .write = write,
                                      .atomic = how == ATOMIC,
                                      .scalar = o->cls == SIM_SMEM});
    else if (w->check && p.space != IN_MEMORY)
        sim_check_access(w, &(sim_touch){.lds = p.space == IN_LDS,
                                         .write = write,
                                         .atomic = how == ATOMIC,
                                         .lane = lane,
                                         .bytes = bytes,
                                         .at = p.at});
    return host;
}

/* ---- scalar loads ----------------------------------------------------- */

bool
sim_smem(sim_wave *w, const sim_op *o)
{
    unsigned bytes = o->sem->src[1], n = o->sem->src[2];
    uint64_t at, size = UINT64_MAX;
    uint8_t *p;

    if (!sim_moves(o))
        return true;
    at = sim_pair(w, o->src[3].reg);
    if (o->src[3].n == 4) { /* a buffer's descriptor */
        at &= (1ull << 48) - 1;
        size = w->s[o->src[3].reg + 2];
    }
    at += (uint64_t)(int64_t)o->imm;
    if (o->mask.file)
        at += (uint32_t)sim_scalar(w, &o->mask);
    if (bytes == 4)
        at &= ~3ull;
    if (size != UINT64_MAX &&
        at - (sim_pair(w, o->src[3].reg) & ((1ull << 48) - 1)) + 4ull * n >
            size)
        return sim_fault(w, BR_E_FAULT, "a scalar read past a buffer's end");
    p = reach(w, o, (spot){IN_MEMORY, at}, 0, bytes * n, false);
    if (!p)
        return false;
    for (unsigned k = 0; k < n; k++) {
        uint32_t v = (uint32_t)get_part(p + k * bytes, bytes);

        if (o->sem->src[0] == ACT_LOADS)
            v = bytes == 1 ? (uint32_t)(int8_t)v : (uint32_t)(int16_t)v;
        if (o->dst.reg + k < SIM_SGPRS && o->dst.reg != SIM_NULL)
            w->s[o->dst.reg + k] = v;
    }
    return true;
}

/* ---- one lane of a load, a store or an atomic ------------------------- */

static uint32_t *
lane_reg(sim_wave *w, unsigned reg, unsigned lane)
{
    return w->v + (size_t)reg * w->w + lane;
}

static uint64_t
get(sim_wave *w, unsigned reg, unsigned lane, unsigned bytes)
{
    uint64_t v = *lane_reg(w, reg, lane);

    return bytes == 8 ? v | (uint64_t)*lane_reg(w, reg + 1, lane) << 32 : v;
}

static void
set(sim_wave *w, unsigned reg, unsigned lane, unsigned bytes, uint64_t v)
{
    *lane_reg(w, reg, lane) = (uint32_t)v;
    if (bytes == 8)
        *lane_reg(w, reg + 1, lane) = (uint32_t)(v >> 32);
}

static void
load_part(sim_wave *w, const sim_op *o, unsigned lane, const uint8_t *p)
{
    unsigned act = o->sem->src[0], bytes = o->sem->src[1];
    uint32_t v = (uint32_t)get_part(p, bytes);
    uint32_t *d = lane_reg(w, o->dst.reg, lane);

    if (act == ACT_LOADS || act == ACT_LOADS_LOW || act == ACT_LOADS_HIGH)
        v = bytes == 1 ? (uint32_t)(int8_t)v : (uint32_t)(int16_t)v;
    if (act == ACT_LOAD || act == ACT_LOADS)
        *d = v;
    else if (act == ACT_LOAD_LOW || act == ACT_LOADS_LOW)
        *d = (*d & 0xffff0000) | (v & 0xffff);
    else
        *d = (*d & 0xffff) | v << 16;
}

typedef struct trade {
    unsigned act, bytes;
    uint64_t data, data1;
} trade;

static inline uint64_t
traded(const trade *t, uint64_t was)
{
    return t->act == ACT_ADD
               ? was + t->data
               : sim_atomic(t->act, t->bytes, was, t->data, t->data1);
}

/* What was there, of memory that this thread alone sees. */
static inline uint64_t
change_part(uint8_t *p, const trade *t)
{
    uint64_t was = get_part(p, t->bytes);

    put_part(p, traded(t, was), t->bytes);
    return was;
}

/* The same of memory that other threads change, too: the host's, and those that
 * run other groups. */
static uint64_t
exchange_part(uint8_t *p, const trade *t)
{
    uint64_t w8;
    uint32_t w4;

    if (!is_aligned(p, t->bytes))
        return change_part(p, t);
    /* acq_rel: partner is an atomic or a load of another thread */
    if (t->bytes == 8) {
        w8 = __atomic_load_n((uint64_t *)p, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n((uint64_t *)p, &w8, traded(t, w8),
                                            true, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))
            ;
        return w8;
    }
    w4 = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((uint32_t *)p, &w4,
                                        (uint32_t)traded(t, w4), true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return w4;
}

/* Words of LDS without check, lane after lane. False: nothing was done. */
static bool
lds_atomics(sim_wave *w, const sim_op *o)
{
    const uint32_t *low = lane_reg(w, o->src[0].reg, 0),
                   from = (uint32_t)o->imm;
    const uint32_t *data = lane_reg(w, o->src[1].reg, 0);
    uint32_t *was = lane_reg(w, o->dst.reg, 0);
    uint64_t exec = sim_exec(w);

    if (w->check || o->sem->src[1] != 4 || o->src[2].n)
        return false;
    for (uint64_t m = exec; m; m &= m - 1) {
        uint32_t at = low[__builtin_ctzll(m)] + from;

        if (at % 4 || at >= w->g->lds_bytes || w->g->lds_bytes - at < 4)
            return false;
    }
    for (uint64_t m = exec; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(m);
        trade t = {o->sem->src[0], 4, data[lane], 0};
        uint64_t v = change_part(w->g->lds + (uint32_t)(low[lane] + from), &t);

        if (o->rtn)
            was[lane] = (uint32_t)v;
    }
    return true;
}

static bool
atomic(sim_wave *w, const sim_op *o, unsigned lane, spot at)
{
    unsigned act = o->sem->src[0], bytes = o->sem->src[1];
    unsigned reg = o->src[1].reg, next = reg + bytes / 4;
    uint64_t was, data, data1 = 0;
    uint8_t *p;

    if (at.at % bytes) {
        w->g->sim->fault = BR_KFAULT_ALIGN;
        return sim_fault(w, BR_E_FAULT,
                         "lane %u: an atomic of %u bytes at 0x%llx", lane,
                         bytes, (unsigned long long)at.at);
    }
    p = reach(w, o, at, lane, bytes, ATOMIC);
    if (!p)
        return false;
    data = get(w, reg, lane, bytes);
    if (act == ACT_CMPSWAP || act == ACT_FCMPSWAP)
        data1 = get(w, next, lane, bytes);
    else if (o->src[2].n)
        data1 = get(w, o->src[2].reg, lane, bytes);
    was = at.space == IN_MEMORY
              ? exchange_part(p, &(trade){act, bytes, data, data1})
              : change_part(p, &(trade){act, bytes, data, data1});
    if (o->rtn)
        set(w, o->dst.reg, lane, bytes, was);
    return true;
}

static bool
access(sim_wave *w, const sim_op *o, unsigned lane, spot at)
{
    unsigned act = o->sem->src[0], bytes = o->sem->src[1], n = o->sem->src[2];
    bool stores = act == ACT_STORE || act == ACT_STORE_HIGH;
    uint8_t *p;

    if (act >= ACT_ATOMIC)
        return atomic(w, o, lane, at);
    p = reach(w, o, at, lane, bytes * n, stores);
    if (!p)
        return false;
    if (!stores && bytes == 4 && act == ACT_LOAD) {
        get_words(p, lane_reg(w, o->dst.reg, lane), w->w, n);
    } else if (!stores) {
        load_part(w, o, lane, p);
    } else if (bytes == 4 && act == ACT_STORE) {
        put_words(p, lane_reg(w, o->src[1].reg, lane), w->w, n);
    } else {
        for (unsigned k = 0; k < n; k++) {
            uint32_t v = *lane_reg(w, o->src[1].reg + k, lane);

            put_part(p + k * bytes, act == ACT_STORE_HIGH ? v >> 16 : v, bytes);
        }
    }
    return true;
}

/* ---- vector memory ---------------------------------------------------- */

/* 1: there, 0: outside a buffer's range, which reads zero. */
static int
buffer_spot(sim_wave *w, const sim_op *o, unsigned lane, spot *at)
{
    const uint32_t *d = &w->s[o->src[3].reg];
    uint64_t base = ((uint64_t)d[1] << 32 | d[0]) & ((1ull << 48) - 1);
    uint32_t stride = d[1] >> 16 & 0x3fff, records = d[2];
    uint32_t index = 0, offset = (uint32_t)o->imm, s = 0;
    unsigned reg = o->src[0].reg, size = o->sem->src[1] * o->sem->src[2];

    if (o->idxen)
        index = *lane_reg(w, reg, lane);
    if (o->offen)
        offset += *lane_reg(w, reg + o->idxen, lane);
    if (o->mask.file)
        s = (uint32_t)sim_scalar(w, &o->mask);
    at->space = IN_MEMORY;
    at->at = base + (uint64_t)index * stride + offset + s;
    if (stride)
        return index < records;
    return offset <= records && size <= records - offset;
}

static spot
vector_spot(sim_wave *w, const sim_op *o, unsigned lane)
{
    spot p = {IN_MEMORY, (uint64_t)(int64_t)o->imm};
    const sim_opnd *base = &o->src[3];
    bool scratch = o->fmt == BR_FMT_SCRATCH || o->fmt == BR_FMT_VSCRATCH;

    if (scratch) {
        uint32_t at = (uint32_t)o->imm;

        at += o->src[0].file ? *lane_reg(w, o->src[0].reg, lane) : 0;
        at += base->file ? w->s[base->reg] : 0;
        return (spot){IN_SCRATCH, at};
    }
    if (base->file)
        p.at += sim_pair(w, base->reg) + *lane_reg(w, o->src[0].reg, lane);
    else
        p.at += get(w, o->src[0].reg, lane, 8);
    if (o->fmt == BR_FMT_FLAT || o->fmt == BR_FMT_VFLAT) {
        if (p.at >> 32 == SIM_SHARED_BASE >> 32)
            return (spot){IN_LDS, (uint32_t)p.at};
        if (p.at >> 32 == SIM_PRIVATE_BASE >> 32)
            return (spot){IN_SCRATCH, (uint32_t)p.at};
    }
    return p;
}

/* What most memory instructions of kernels do: words or parts of one, in one
 * piece of memory. */
typedef struct words {
    const sim_op *o;
    unsigned n, lanes, part; /* bytes of one */
    bool store, sign;
    bool wide; /* sim_wide.h knows how */
    uint32_t *reg;
    const uint32_t *low, *high; /* of addresses; high may be NULL */
    uint64_t base;              /* is added */
    uint8_t *host;
    uint64_t bytes;
} words;

static bool
is_words(sim_wave *w, const sim_op *o, words *x)
{
    unsigned act = o->sem->src[0];

    *x = (words){.o = o,
                 .n = o->sem->src[2],
                 .lanes = w->w,
                 .part = o->sem->src[1],
                 .sign = act == ACT_LOADS};
    x->store = act == ACT_STORE;
    x->wide = o->gathers;
    x->low = lane_reg(w, o->src[0].reg, 0);
    x->reg = lane_reg(w, x->store ? o->src[1].reg : o->dst.reg, 0);
    return act == ACT_LOAD || act == ACT_LOADS || x->store;
}

/* Whether all lanes run, each right behind the one before. */
static bool
is_row(const sim_wave *w, const words *x)
{
    uint32_t odd = 0, step = 4 * x->n, first = x->low[0];

    if (sim_exec(w) != (x->lanes == 64 ? ~0ull : 0xffffffff) || x->part < 4)
        return false;
    if (x->low[1] != first + step)
        return false;
    for (unsigned i = 0; i < x->lanes; i++)
        odd |= x->low[i] ^ (first + i * step);
    for (unsigned i = 0; x->high && i < x->lanes; i++)
        odd |= x->high[i] ^ x->high[0];
    return !odd && first <= UINT32_MAX - x->lanes * step;
}

static void
move_row(const words *x, uint8_t *host)
{
    uint32_t *reg = x->reg;
    unsigned n = x->n, lanes = x->lanes;

    if (n == 1) {
        memcpy(x->store ? host : (uint8_t *)reg,
               x->store ? (uint8_t *)reg : host, 4 * lanes);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < lanes; i++)
            if (x->store)
                memcpy(host + 4 * (n * i + k), reg + k * lanes + i, 4);
            else
                memcpy(reg + k * lanes + i, host + 4 * (n * i + k), 4);
}

static void
move_part(const words *x, unsigned lane, uint8_t *host)
{
    uint32_t *reg = x->reg + lane, v;

    if (x->store) {
        put_part(host, *reg, x->part);
        return;
    }
    v = (uint32_t)get_part(host, x->part);
    *reg = !x->sign       ? v
           : x->part == 1 ? (uint32_t)(int8_t)v
                          : (uint32_t)(int16_t)v;
}

/* Lanes of `exec`, n words each. Inlined for each n, with and without store:
 * half of the time of kernels that gather went into asking. */
static inline void
move_n(const words *x, uint64_t exec, const uint64_t *at, unsigned n,
       bool store)
{
    unsigned lanes = x->lanes;

    for (uint64_t m = exec; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(m);
        uint8_t *host = x->host + at[lane];
        uint32_t *reg = x->reg + lane;

        if (store)
            put_words(host, reg, lanes, n);
        else
            get_words(host, reg, lanes, n);
    }
}

static void
move_lanes(const words *x, uint64_t exec, const uint64_t *at)
{
    if (x->part < 4)
        for (uint64_t m = exec; m; m &= m - 1) {
            unsigned lane = (unsigned)__builtin_ctzll(m);

            move_part(x, lane, x->host + at[lane]);
        }
    else if (x->wide && !x->store && exec >> 8)
        sim_wide_gather(x->reg, x->n, x->host, at, (uint32_t)exec);
    else if (x->n == 1)
        x->store ? move_n(x, exec, at, 1, true) : move_n(x, exec, at, 1, false);
    else if (x->n == 2)
        x->store ? move_n(x, exec, at, 2, true) : move_n(x, exec, at, 2, false);
    else if (x->n == 4)
        x->store ? move_n(x, exec, at, 4, true) : move_n(x, exec, at, 4, false);
    else
        move_n(x, exec, at, x->n, x->store);
}

/* Offsets of lanes. False: one that runs is outside. */
static bool
offsets(const words *x, uint64_t exec, uint64_t at[64])
{
    uint64_t bytes = x->part * x->n, most = x->bytes - bytes, worst = 0;

    if (x->bytes < bytes)
        return false;
    for (unsigned i = 0; i < x->lanes; i++)
        at[i] =
            x->base + x->low[i] + (x->high ? (uint64_t)x->high[i] << 32 : 0);
    for (uint64_t m = exec; m; m &= m - 1) {
        uint64_t v = at[__builtin_ctzll(m)];

        worst = BR_MAX(worst, v);
    }
    return worst <= most;
}

/* What checks hear of lanes: of memory at `addr`, or of LDS. */
static void
tell(sim_wave *w, const words *x, uint64_t exec, const uint64_t *at,
     uint64_t addr)
{
    sim_reach t = {.at = addr, .bytes = x->part * x->n, .write = x->store};
    sim_touch l = {.lds = true, .write = x->store, .bytes = x->part * x->n};

    if (!w->check)
        return;
    if (!addr)
        sim_check_lanes(w, &l, exec, at);
    else if (w->g->order)
        sim_order_lanes(w, x->o, &t, exec, at);
}

/* What checks hear of all lanes, one behind another. */
static void
tell_row(sim_wave *w, const words *x, uint64_t first, uint64_t addr)
{
    sim_reach t = {.at = addr + first,
                   .bytes = x->part * x->n * x->lanes,
                   .write = x->store};
    uint64_t at[64];

    if (addr && w->g->order)
        sim_order_access(w, x->o, &t);
    if (addr || !w->check || sim_check_row(w, x->store, first, t.bytes))
        return;
    for (unsigned i = 0; i < x->lanes; i++)
        at[i] = first + i * (uint64_t)(x->part * x->n);
    tell(w, x, sim_exec(w), at, 0);
}

/* False: a lane is outside, and nothing was done. addr: of the piece; 0: it is
 * LDS. */
static bool
move_words(sim_wave *w, const words *x, uint64_t addr)
{
    uint64_t exec = sim_exec(w), at[64];
    uint64_t first =
        x->base + x->low[0] + (x->high ? (uint64_t)x->high[0] << 32 : 0);

    if (is_row(w, x) && first < x->bytes &&
        4 * x->n * x->lanes <= x->bytes - first) {
        move_row(x, x->host + first);
        tell_row(w, x, first, addr);
        return true;
    }
    if (!offsets(x, exec, at))
        return false;
    move_lanes(x, exec, at);
    tell(w, x, exec, at, addr);
    return true;
}

/* Global memory in the region where the first lane is. False: nothing was done. */
static bool
usual(sim_wave *w, const sim_op *o)
{
    br_sim *s = w->g->sim;
    uint64_t exec = sim_exec(w), base = (uint64_t)(int64_t)o->imm;
    const br_kregion *r;
    unsigned lane;
    words x;

    if ((o->fmt != BR_FMT_GLOBAL && o->fmt != BR_FMT_VGLOBAL) ||
        !is_words(w, o, &x))
        return false;
    if (!exec)
        return true;
    lane = (unsigned)__builtin_ctzll(exec);
    if (o->src[3].file)
        base += sim_pair(w, o->src[3].reg);
    else
        x.high = x.low + w->w;
    r = sim_region(
        s, base + x.low[lane] + (x.high ? (uint64_t)x.high[lane] << 32 : 0),
        1 + x.store);
    if (!r || (x.store && r->read_only))
        return false;
    x.base = base - r->addr;
    x.host = r->host;
    x.bytes = r->bytes;
    return move_words(w, &x, r->addr);
}

/* The same in LDS. */
static bool
usual_lds(sim_wave *w, const sim_op *o)
{
    words x;

    if (!is_words(w, o, &x))
        return false;
    x.base = (uint32_t)o->imm;
    x.host = w->g->lds;
    x.bytes = w->g->lds_bytes;
    return move_words(w, &x, 0);
}

/* What is left to be done of words: lanes that are to be moved, checks. */
static __attribute__((noinline)) void
finish_words(sim_wave *w, const sim_op *o, const sim_wide *x, sim_wide_end end,
             const uint64_t at[SIM_LANES], uint64_t addr)
{
    const words y = {.o = o,
                     .n = x->n,
                     .lanes = SIM_LANES,
                     .part = x->part,
                     .sign = x->sign,
                     .store = x->store,
                     .reg = x->reg,
                     .host = x->host};

    if (end == SIM_WIDE_AT)
        move_lanes(&y, x->exec, at);
    if (!w->check)
        return;
    if (end == SIM_WIDE_ROW)
        tell_row(w, &y, at[0], addr);
    else /* what one lane reads is what all read */
        tell(w, &y, end == SIM_WIDE_ONE ? 1 : x->exec, at, addr);
}

/* Words of 32 lanes in one piece of memory. */
static inline bool
usual_words(sim_wave *w, const sim_op *o, sim_wide *x, uint64_t addr)
{
    uint64_t at[SIM_LANES];
    sim_wide_end end;

    x->n = o->sem->src[2];
    x->part = o->sem->src[1];
    x->sign = o->sem->src[0] == ACT_LOADS;
    x->low = lane_reg(w, o->src[0].reg, 0);
    x->store = o->sem->src[0] == ACT_STORE;
    x->reg = lane_reg(w, x->store ? o->src[1].reg : o->dst.reg, 0);
    end = sim_wide_words(x, at);
    if (end == SIM_WIDE_FAR)
        return false;
    if (w->check || end == SIM_WIDE_AT)
        finish_words(w, o, x, end, at, addr);
    return true;
}

bool
sim_global_words(sim_wave *w, const sim_op *o)
{
    br_sim *s = w->g->sim;
    const uint32_t *low = lane_reg(w, o->src[0].reg, 0);
    sim_wide x = {.exec = w->s[SIM_EXEC], .base = (uint64_t)(int64_t)o->imm};
    bool store = o->sem->src[0] == ACT_STORE;
    const br_kregion *r;
    uint64_t first;
    unsigned lane;

    if (!x.exec)
        return true;
    lane = (unsigned)__builtin_ctz(x.exec);
    if (o->src[3].file)
        x.base += sim_pair(w, o->src[3].reg);
    else
        x.high = low + SIM_LANES;
    first = x.base + low[lane] + (x.high ? (uint64_t)x.high[lane] << 32 : 0);
    r = sim_region(s, first, 1 + store);
    if (!r || (store && r->read_only))
        return sim_vmem(w, o);
    x.base -= r->addr;
    x.host = r->host;
    x.bytes = r->bytes;
    return usual_words(w, o, &x, r->addr) || sim_vmem(w, o);
}

bool
sim_lds_words(sim_wave *w, const sim_op *o)
{
    sim_wide x = {.exec = w->s[SIM_EXEC],
                  .base = (uint32_t)o->imm,
                  .host = w->g->lds,
                  .bytes = w->g->lds_bytes};

    return !x.exec || usual_words(w, o, &x, 0) || sim_ds(w, o);
}

/* A lane's own memory, without check: words that lie far apart. */
static bool
usual_scratch(sim_wave *w, const sim_op *o)
{
    uint64_t exec = sim_exec(w), size = w->g->scratch_bytes, at[64];
    uint32_t from = (uint32_t)o->imm;
    words x;

    if (w->check || !is_words(w, o, &x))
        return false;
    from += o->src[3].file ? w->s[o->src[3].reg] : 0;
    for (uint64_t m = exec; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(m);
        uint32_t off = from + (o->src[0].file ? x.low[lane] : 0);

        if (off >= size || x.part * x.n > size - off)
            return false;
        at[lane] = lane * size + off;
    }
    x.host = w->scratch;
    move_lanes(&x, exec, at);
    return true;
}

bool
sim_vmem(sim_wave *w, const sim_op *o)
{
    uint64_t exec = sim_exec(w);
    bool scratch = o->fmt == BR_FMT_SCRATCH || o->fmt == BR_FMT_VSCRATCH;
    bool buffer = o->fmt == BR_FMT_MUBUF || o->fmt == BR_FMT_VBUFFER;

    if (!sim_moves(o)) {
        if (w->g->order)
            sim_order_cache(w, o);
        return true;
    }
    if (scratch ? usual_scratch(w, o) : usual(w, o))
        return true;
    for (unsigned lane = 0; exec; lane++, exec >>= 1) {
        spot at;

        if (!(exec & 1))
            continue;
        if (!buffer) {
            at = vector_spot(w, o, lane);
        } else if (!buffer_spot(w, o, lane, &at)) {
            for (unsigned k = 0; o->rtn && k < o->dst.n; k++)
                *lane_reg(w, o->dst.reg + k, lane) = 0;
            continue;
        }
        if (!access(w, o, lane, at))
            return false;
    }
    return true;
}

/* ---- local memory ----------------------------------------------------- */

static bool
two(sim_wave *w, const sim_op *o, unsigned lane)
{
    unsigned act = o->sem->src[0], bytes = o->sem->src[1];
    unsigned shift = o->sem->src[2], half = bytes / 4;
    uint32_t base = *lane_reg(w, o->src[0].reg, lane);

    for (unsigned k = 0; k < 2; k++) {
        uint32_t at =
            base + (((uint32_t)o->imm >> 8 * k & 255) << shift) * bytes;
        uint8_t *p =
            reach(w, o, (spot){IN_LDS, at}, lane, bytes, act != ACT_LOAD2);
        uint64_t v = 0, was = 0;

        if (!p)
            return false;
        memcpy(&was, p, bytes);
        v = get(w, o->src[1 + k].reg, lane, bytes);
        if (act != ACT_LOAD2)
            memcpy(p, &v, bytes);
        if (act != ACT_STORE2)
            set(w, o->dst.reg + k * half, lane, bytes, was);
    }
    return true;
}

static bool
count(sim_wave *w, const sim_op *o)
{
    uint32_t at = (w->s[SIM_M0] & 0xffff) + (uint32_t)o->imm, was, now;
    uint32_t n = (uint32_t)__builtin_popcountll(sim_exec(w));
    uint8_t *p = reach(w, o, (spot){IN_LDS, at}, 0, 4, ATOMIC);

    if (!p)
        return false;
    memcpy(&was, p, 4);
    now = o->sem->src[0] == ACT_APPEND ? was + n : was - n;
    memcpy(p, &now, 4);
    for (unsigned i = 0; i < w->w; i++)
        if (sim_exec(w) >> i & 1)
            *lane_reg(w, o->dst.reg, i) = was;
    return true;
}

bool
sim_ds(sim_wave *w, const sim_op *o)
{
    unsigned act = o->sem->src[0];
    uint64_t exec = sim_exec(w);
    bool ok = true;

    if (act == ACT_NOTHING)
        return true;
    if (act == ACT_BPERMUTE || act == ACT_PERMUTE || act == ACT_SWIZZLE)
        return sim_exchange(w, o);
    if (act == ACT_APPEND || act == ACT_CONSUME)
        return !exec || count(w, o);
    if (act >= ACT_ATOMIC ? lds_atomics(w, o) : usual_lds(w, o))
        return true;
    for (unsigned lane = 0; exec && ok; lane++, exec >>= 1) {
        spot at = {IN_LDS, 0};

        if (!(exec & 1))
            continue;
        if (act == ACT_LOAD2 || act == ACT_STORE2 || act == ACT_SWAP2) {
            ok = two(w, o, lane);
            continue;
        }
        if (act == ACT_LOAD_TID || act == ACT_STORE_TID)
            at.at = (w->s[SIM_M0] & 0xffff) + lane * 4u;
        else
            at.at = *lane_reg(w, o->src[0].reg, lane);
        at.at = (uint32_t)(at.at + (uint32_t)o->imm);
        if (act == ACT_LOAD_TID || act == ACT_STORE_TID) {
            uint8_t *p = reach(w, o, at, lane, 4, act == ACT_STORE_TID);

            ok = p != NULL;
            if (ok && act == ACT_LOAD_TID)
                memcpy(lane_reg(w, o->dst.reg, lane), p, 4);
            else if (ok)
                memcpy(p, lane_reg(w, o->src[1].reg, lane), 4);
        } else {
            ok = access(w, o, lane, at);
        }
    }
    return ok;
}
