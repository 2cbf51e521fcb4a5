/* sim_flow.c - branches, barriers, the program counter, mode registers.
 *
 * A wave that comes to a barrier stops until all waves of its work-group that
 * have not ended are there (gfx12: have signalled).
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_crowd.h"
#include "drv/sim/sim_int.h"

enum {
    REG_MODE = 1,
    REG_STATUS = 2,
    REG_CYCLES = 29, /* 20 bits on gfx11, then the low word of two */
    REG_CYCLES_HI = 30,
    MSG_DEALLOC = 3,
    MSG_REALTIME = 131,
    MODE_KEPT = 0xff, /* rounding and denormals; the rest is not modelled */
};

const sim_sem sim_flow_rows[] = {
#define FLOW(name, what) {"s_" #name, sim_flow, NULL, NULL, 0, {GO_##what}, 0},
#include "drv/sim/sim_flow.def"
#undef FLOW
    {NULL, NULL, NULL, NULL, 0, {0}, 0},
};

static void
go(sim_wave *w, const sim_op *o, bool taken)
{
    if (taken)
        w->pc += (uint64_t)((int64_t)o->imm * 4);
}

/* Here or, once everybody is, gone on. */
static bool
await_all(sim_wave *w)
{
    w->signalled = false;
    if (w->phase != w->g->phase)
        return true;
    w->state = SIM_BARRIER;
    return false;
}

static void
arrive(sim_wave *w)
{
    w->signalled = true;
    w->phase = w->g->phase;
    w->g->arrived++;
    sim_release(w->g);
}

/* The clock of all waves, cycles and time: instructions. */
static uint64_t
now(const sim_wave *w)
{
    const sim_share *share = w->g->share;
    uint64_t before =
        share ? atomic_load_explicit(&share->steps, memory_order_relaxed)
              : w->g->sim->steps;

    return before + (w->steps - w->turn_at);
}

/* Bits of a hardware register: id, offset, size - 1. */
static bool
get_reg(sim_wave *w, const sim_op *o)
{
    unsigned id = (unsigned)o->imm & 63, at = (unsigned)o->imm >> 6 & 31;
    unsigned n = ((unsigned)o->imm >> 11 & 31) + 1;
    bool two = w->isa.cpu->gen > 11;
    uint64_t v = id == REG_MODE        ? w->mode
                 : id == REG_CYCLES    ? now(w) & (two ? ~0u : 0xfffffu)
                 : id == REG_CYCLES_HI ? now(w) >> 32
                                       : 0;

    if (id != REG_MODE && id != REG_CYCLES && id != REG_STATUS &&
        !(two && id == REG_CYCLES_HI))
        return sim_fault(w, BR_E_UNSUPPORTED, "hardware register %u", id);
    sim_set_scalar(w, &o->dst, v >> at & ((1ull << n) - 1));
    return true;
}

static bool
set_reg(sim_wave *w, const sim_op *o)
{
    unsigned id = (unsigned)o->imm & 63, at = (unsigned)o->imm >> 6 & 31;
    uint64_t mask = (1ull << (((unsigned)o->imm >> 11 & 31) + 1)) - 1;
    uint64_t v = o->n_src ? sim_scalar(w, &o->src[0]) : sim_scalar(w, &o->dst);

    if (id != REG_MODE)
        return sim_fault(w, BR_E_UNSUPPORTED, "writing hardware register %u",
                         id);
    w->mode = (uint32_t)((w->mode & ~(mask << at)) | (v & mask) << at);
    return true;
}

static bool
jump(sim_wave *w, const sim_op *o, unsigned what)
{
    uint64_t to = w->pc;

    if (what == GO_CALL)
        to += (uint64_t)((int64_t)o->imm * 4);
    else if (what != GO_GETPC)
        to = sim_scalar(w, &o->src[0]);
    if (what != GO_SETPC)
        sim_set_scalar(w, &o->dst, w->pc);
    w->pc = to;
    return true;
}

static bool
indexed(sim_wave *w, const sim_op *o, bool from)
{
    sim_opnd d = o->dst, s = o->src[0];
    sim_opnd *p = from ? &s : &d;

    if (p->reg + w->s[SIM_M0] + p->n > SIM_VCC || w->s[SIM_M0] > SIM_VCC)
        return sim_fault(w, BR_E_FAULT, "M0 names a register behind s105");
    p->reg = (uint16_t)(p->reg + w->s[SIM_M0]);
    sim_set_scalar(w, &d, sim_scalar(w, &s));
    return true;
}

static bool
message(sim_wave *w, const sim_op *o)
{
    if ((o->imm & 255) != MSG_DEALLOC)
        return sim_fault(w, BR_E_UNSUPPORTED, "message %u", o->imm & 255);
    return true;
}

/* With what M0 says, where it is written. */
static bool
trap(sim_wave *w, const sim_op *o)
{
    uint32_t m0 = w->s[SIM_M0];
    const char *why = br_gcn_trap_text(m0);

    if (*why)
        return sim_fault(w, BR_E_FAULT, "trap %d: %s", o->imm, why);
    if (m0)
        return sim_fault(w, BR_E_FAULT, "trap %d: note %u of the module",
                         o->imm, m0);
    return sim_fault(w, BR_E_FAULT, "trap %d", o->imm);
}

static bool
rare(sim_wave *w, const sim_op *o, unsigned what)
{
    switch (what) {
    case GO_MESSAGE: return message(w, o);
    case GO_TRAP: return trap(w, o);
    case GO_GETREG: return get_reg(w, o);
    case GO_SETREG: return set_reg(w, o);
    case GO_ROUND:
        w->mode = (w->mode & ~15u) | ((uint32_t)o->imm & 15);
        return true;
    case GO_DENORM:
        w->mode = (w->mode & ~0xf0u) | ((uint32_t)o->imm & 15) << 4;
        return true;
    case GO_MOVFROM:
    case GO_MOVTO: return indexed(w, o, what == GO_MOVFROM);
    case GO_REALTIME:
        if (o->imm != MSG_REALTIME)
            return sim_fault(w, BR_E_UNSUPPORTED, "message %d", o->imm);
        sim_set_scalar(w, &o->dst, now(w));
        return true;
    default: return jump(w, o, what);
    }
}

/* ---- what is frequent ------------------------------------------------- */

static bool
nothing(sim_wave *w, const sim_op *o)
{
    (void)w;
    (void)o;
    return true;
}

static bool
hint(sim_wave *w, const sim_op *o)
{
    (void)o;
    w->g->sim->hints++;
    return true;
}

static uint64_t
vcc(const sim_wave *w)
{
    return w->w == 64 ? sim_pair(w, SIM_VCC) : w->s[SIM_VCC];
}

#define GO(name, taken)                            \
    static bool name(sim_wave *w, const sim_op *o) \
    {                                              \
        go(w, o, taken);                           \
        return true;                               \
    }
GO(always, true)
GO(scc0, !w->scc)
GO(scc1, w->scc)
GO(vccz, !vcc(w))
GO(vccnz, vcc(w) != 0)
GO(execz, !sim_exec(w))
GO(execnz, sim_exec(w) != 0)
#undef GO

sim_fn
sim_flow_fn(sim_op *o)
{
    unsigned what = o->sem->src[0];
    static const sim_fn fns[] = {
        [GO_NOTHING] = nothing, [GO_HINT] = hint,   [GO_BRANCH] = always,
        [GO_SCC0] = scc0,       [GO_SCC1] = scc1,   [GO_VCCZ] = vccz,
        [GO_VCCNZ] = vccnz,     [GO_EXECZ] = execz, [GO_EXECNZ] = execnz};

    /* What is waited for is there: sim_check.c. */
    o->idle = what >= GO_W_ALL || what == GO_NOTHING || what == GO_HINT;
    o->goes = o->idle                                  ? SIM_ON
              : what >= GO_BRANCH && what <= GO_EXECNZ ? SIM_BRANCHES
                                                       : SIM_JUMPS;
    if (what >= GO_W_ALL)
        return nothing;
    return what < BR_COUNT(fns) ? fns[what] : sim_flow;
}

bool
sim_flow(sim_wave *w, const sim_op *o)
{
    switch (o->sem->src[0]) {
    case GO_END: w->state = SIM_DONE; return false;
    case GO_BARRIER: arrive(w); return await_all(w);
    case GO_SIGNAL:
        if (sim_scalar(w, &o->src[0]) != UINT64_MAX || w->signalled)
            return sim_fault(w, BR_E_UNSUPPORTED,
                             "a named barrier, or a signal twice");
        arrive(w);
        return true;
    case GO_WAIT:
        if (o->imm != -1 || !w->signalled)
            return sim_fault(w, BR_E_FAULT,
                             "waiting at a barrier without signal");
        return await_all(w);
    default: return rare(w, o, o->sem->src[0]);
    }
}
