/* sim_check.c - what the hardware would not say.
 *
 *   waits       A load's registers belong to the load until a wait covers it:
 *               each counter numbers what was issued; a wait for n says that all
 *               but the last n are done. Scalar loads come back in any order,
 *               so for them only 0 says something.
 *   registers   Lanes of a VGPR and whole SGPRs are defined or not. Vector
 *               arithmetic passes it on; addresses, stored data, compares and
 *               scalars have to be defined.
 *   LDS         sim_lds.c
 *   hazards     of notes on gfx11 and gfx12: sim_hazard.c
 *   barriers    waves that meet at different ones, or ended before.
 *
 * Most instructions have nothing wrong with them, which sim_quick.c sees from
 * what decoding found that they use; the others come here, to be told why.
 *
 *   memory      what another wave wrote, with no order between: sim_order.c
 *
 * Each instruction reports each fault once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_check.h"

#include "drv/sim/sim_order.h"
#include "drv/sim/sim_wcheck.h"

#include <stddef.h>
#include <string.h>

/* ---- reports ---------------------------------------------------------- */

void
sim_note(sim_wave *w, unsigned kind, const char *fmt, ...)
{
    sim_said *said = w->g->check->said;
    br_sim *s = w->g->sim;
    uint64_t key = w->at << 4 | kind;
    br_str text = {0};
    va_list ap;

    for (unsigned k = 0; k < said->n; k++)
        if (said->key[k] == key)
            return;
    if (said->n == BR_SIM_MAX_FINDINGS)
        return;
    said->key[said->n++] = key;
    s->findings++;
    sim_where(w, w->at, &text);
    va_start(ap, fmt);
    br_str_vprintf(&text, fmt, ap);
    va_end(ap);
    if (s->finding)
        s->finding(s->arg, br_str_z(&text));
    br_str_fini(&text);
}

/* ---- waits ------------------------------------------------------------ */

static const char *const counter_names[2][N_COUNTERS] = {
    {"vmcnt", "vscnt", "lgkmcnt", "lgkmcnt"},
    {"loadcnt", "storecnt", "dscnt", "kmcnt"},
};

static void
wait_for(sim_wcheck *k, unsigned counter, unsigned n)
{
    counts *c = &k->c[counter];

    if (n == 0)
        c->done = c->issued;
    else if (counter != C_KM && c->issued > n && c->issued - n > c->done)
        c->done = c->issued - n;
}

/* One counter for LDS and scalar loads: while any of the latter is out, only
 * 0 says something. */
static void
wait_lgkm(sim_wcheck *k, unsigned n)
{
    if (n && k->c[C_KM].done != k->c[C_KM].issued)
        return;
    wait_for(k, C_DS, n);
    wait_for(k, C_KM, n);
}

void
sim_waited(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    unsigned n = (unsigned)o->imm & 0xffff;

    switch (o->sem->src[0]) {
    case GO_W_ALL:
        for (unsigned c = 0; c < N_COUNTERS; c++)
            wait_for(k, c, 0);
        break;
    case GO_W_CNT:
        if (n >> 10 != 63)
            wait_for(k, C_LOAD, n >> 10);
        if ((n >> 4 & 63) != 63)
            wait_lgkm(k, n >> 4 & 63);
        break;
    case GO_W_STORE: wait_for(k, C_STORE, n & 63); break;
    case GO_W_LOAD: wait_for(k, C_LOAD, n & 63); break;
    case GO_W_LGKM: wait_lgkm(k, n & 63); break;
    case GO_W_DS: wait_for(k, C_DS, n & 63); break;
    case GO_W_KM: wait_for(k, C_KM, n & 31); break;
    case GO_W_LOAD_DS:
        wait_for(k, C_LOAD, n >> 8 & 63);
        wait_for(k, C_DS, n & 63);
        break;
    case GO_W_STORE_DS:
        wait_for(k, C_STORE, n >> 8 & 63);
        wait_for(k, C_DS, n & 63);
        break;
    default: return;
    }
    if (w->g->order)
        sim_order_waited(w);
}

static bool
is_busy(const sim_wcheck *k, bool vector, unsigned reg)
{
    return vector ? sim_row_has(k->v_busy, reg) : sim_bits_has(&k->s_busy, reg);
}

static void
set_busy(sim_wcheck *k, bool vector, unsigned reg, bool on)
{
    if (vector)
        sim_row_put(k->v_busy, reg, on);
    else
        sim_bits_put(&k->s_busy, reg, on);
}

/* The counter that a register still waits for; N_COUNTERS: none. */
static unsigned
pending(sim_wcheck *k, bool vector, unsigned reg)
{
    const uint32_t *f = vector ? k->v_flight[reg] : k->s_flight[reg];

    for (unsigned c = 0; c < N_COUNTERS; c++)
        if (f[c] > k->c[c].done)
            return c;
    set_busy(k, vector, reg, false);
    return N_COUNTERS;
}

bool
sim_is_free(sim_wcheck *k, bool vector, unsigned reg)
{
    return pending(k, vector, reg) == N_COUNTERS;
}

static void
in_flight(sim_wave *w, bool vector, unsigned reg, const char *what,
          unsigned own)
{
    sim_wcheck *k = w->check;
    unsigned c;

    if (!is_busy(k, vector, reg))
        return;
    c = pending(k, vector, reg);
    /* Loads of one counter write in order. */
    if (c == N_COUNTERS || (c == own && c != C_KM))
        return;
    sim_note(w, NOTE_WAIT, "%c%u is %s before %s says that its load is done",
             vector ? 'v' : 's', reg, what,
             counter_names[w->isa.cpu->gen == 12][c]);
}

/* ---- reads ------------------------------------------------------------ */

static void
read_scalar(sim_wave *w, const sim_opnd *p)
{
    sim_wcheck *k = w->check;

    for (unsigned i = 0; i < p->n; i++) {
        unsigned r = p->reg + i;

        if (p->file != SIM_S || r >= SIM_SGPRS || r == SIM_NULL)
            continue;
        in_flight(w, false, r, "read", N_COUNTERS);
        if (!sim_bits_has(&k->s_def, r))
            sim_note(w, NOTE_UNDEF, "s%u is read, and nothing wrote it", r);
        sim_bits_put(&k->s_def, r, true); /* once is enough */
    }
}

/* Whether the wave has so many registers. */
static bool
owned(sim_wave *w, unsigned reg)
{
    if (reg >= w->check->n_vgprs)
        sim_note(w, NOTE_UNDEF,
                 "v%u is used, and the descriptor asks for %u registers", reg,
                 w->check->n_vgprs);
    return reg < w->check->n_vgprs;
}

/* Lanes in which all n registers are defined. */
static uint64_t
read_vector(sim_wave *w, const sim_opnd *p)
{
    uint64_t def = UINT64_MAX;

    for (unsigned i = 0; i < p->n && owned(w, p->reg + i); i++) {
        in_flight(w, true, p->reg + i, "read", N_COUNTERS);
        def &= w->check->v_def[p->reg + i];
    }
    return def;
}

static void
need(sim_wave *w, const sim_opnd *p, const char *what)
{
    uint64_t lack;

    if (p->file != SIM_V)
        return;
    lack = sim_exec(w) & ~read_vector(w, p);
    if (lack)
        sim_note(w, NOTE_UNDEF,
                 "%s v%u is read in lane %u, where nothing "
                 "defined it",
                 what, p->reg, (unsigned)__builtin_ctzll(lack));
}

static uint64_t
sources(sim_wave *w, const sim_op *o)
{
    uint64_t def = UINT64_MAX;

    for (unsigned i = 0; i < o->n_src; i++) {
        if (o->src[i].file == SIM_V)
            def &= read_vector(w, &o->src[i]);
        else
            read_scalar(w, &o->src[i]);
    }
    if (o->cls == SIM_VALU)
        read_scalar(w, &o->mask);
    if (o->sem->lane && o->sem->flags & SEM_ACC)
        def &= read_vector(w, &o->dst);
    return def;
}

static void
memory_sources(sim_wave *w, const sim_op *o)
{
    unsigned act = o->sem->src[0];
    bool stores = act == ACT_STORE || act == ACT_STORE_HIGH ||
                  act == ACT_STORE2 || act == ACT_STORE_TID ||
                  act == ACT_BPERMUTE || act == ACT_PERMUTE ||
                  act >= ACT_ATOMIC || act == ACT_SWAP2;

    if (!sim_moves(o))
        return;
    read_scalar(w, &o->src[3]);
    read_scalar(w, &o->mask);
    if (o->cls == SIM_SMEM)
        return;
    if (act != ACT_LOAD_TID && act != ACT_STORE_TID && act != ACT_APPEND &&
        act != ACT_CONSUME)
        need(w, &o->src[0], "the address");
    for (unsigned i = 1; stores && i < 3; i++)
        need(w, &o->src[i], "what is stored,");
}

/* ---- writes ----------------------------------------------------------- */

static void
write_scalar(sim_wave *w, const sim_opnd *p, unsigned counter)
{
    sim_wcheck *k = w->check;

    for (unsigned i = 0; i < p->n && p->file == SIM_S; i++) {
        unsigned r = p->reg + i;

        if (r >= SIM_SGPRS || p->reg == SIM_NULL)
            continue;
        in_flight(w, false, r, "written", counter);
        if (counter < N_COUNTERS)
            memset(k->s_flight[r], 0, sizeof k->s_flight[r]);
        set_busy(k, false, r, counter < N_COUNTERS);
        sim_bits_put(&k->s_def, r, true);
        if (counter < N_COUNTERS)
            k->s_flight[r][counter] = k->c[counter].issued;
    }
}

static void
write_vector(sim_wave *w, const sim_opnd *p, uint64_t def, unsigned counter)
{
    sim_wcheck *k = w->check;
    uint64_t exec = sim_exec(w);

    for (unsigned i = 0; i < p->n && owned(w, p->reg + i); i++) {
        unsigned r = p->reg + i;

        in_flight(w, true, r, "written", counter);
        if (counter < N_COUNTERS) {
            if (!sim_row_has(k->v_busy, r))
                memset(k->v_flight[r], 0, sizeof k->v_flight[r]);
            k->v_flight[r][counter] = k->c[counter].issued;
        }
        sim_row_put(k->v_busy, r, counter < N_COUNTERS);
        sim_define(k, r, exec, def);
    }
}

static unsigned
counter_of(const sim_op *o)
{
    if (o->cls == SIM_SMEM)
        return C_KM;
    if (o->cls == SIM_LDS)
        return C_DS;
    return o->rtn ? C_LOAD : C_STORE;
}

static void
memory_results(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    unsigned c = counter_of(o);
    bool flat = o->fmt == BR_FMT_FLAT || o->fmt == BR_FMT_VFLAT;

    if (!sim_moves(o)) {
        k->c[C_LOAD].issued += o->sem->src[0] == ACT_INV;
        k->c[C_STORE].issued += o->sem->src[0] == ACT_WB;
        return;
    }
    k->c[c].issued++;
    if (flat)
        k->c[C_DS].issued++;
    if (c == C_KM) {
        write_scalar(w, &o->dst, c);
    } else if (o->rtn) {
        write_vector(w, &o->dst, UINT64_MAX, c);
        for (unsigned i = 0; flat && i < o->dst.n; i++)
            k->v_flight[o->dst.reg + i][C_DS] = k->c[C_DS].issued;
    }
}

/* ---- the doors -------------------------------------------------------- */

bool
sim_check_before(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;

    sim_hazards(w, o);
    if (o->cls == SIM_SMEM || o->cls == SIM_VMEM || o->cls == SIM_LDS) {
        memory_sources(w, o);
        return true;
    }
    if (o->fmt == BR_FMT_SOPP || o->fmt == BR_FMT_SOPK)
        sim_waited(w, o);
    k->def = sources(w, o);
    if (o->y)
        k->def_y = sources(w, o->y);
    if (o->cls == SIM_VALU && (o->sem->dst == T_CMP || o->dst.file == SIM_S) &&
        sim_exec(w) & ~k->def)
        sim_note(w, NOTE_UNDEF, "lane %u of a vector source is not defined",
                 (unsigned)__builtin_ctzll(sim_exec(w) & ~k->def));
    if (o->sem->fn == sim_flow &&
        (o->sem->src[0] == GO_BARRIER || o->sem->src[0] == GO_SIGNAL)) {
        k->barrier_pc = w->at;
        sim_lds_arrive(w);
        if (w->g->order)
            sim_order_arrive(w);
    }
    return true;
}

void
sim_check_after(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;

    if (o->cls == SIM_SMEM || o->cls == SIM_VMEM || o->cls == SIM_LDS) {
        memory_results(w, o);
        return;
    }
    if (o->sem->fn == sim_flow && o->sem->src[0] == GO_REALTIME) {
        k->c[C_KM].issued++;
        write_scalar(w, &o->dst, C_KM);
        return;
    }
    if (o->dst.file == SIM_V)
        write_vector(w, &o->dst, k->def, N_COUNTERS);
    else if (!(o->is & IS_READER))
        write_scalar(w, &o->dst, N_COUNTERS);
    write_scalar(w, &o->sdst, N_COUNTERS);
    if (o->y)
        write_vector(w, &o->y->dst, k->def_y, N_COUNTERS);
}

void
sim_check_end(sim_wave *w)
{
    w->check->ended = true;
    if (w->g->order)
        sim_order_end(w);
}

void
sim_check_barrier(sim_group *g)
{
    sim_wave *first = NULL;
    unsigned ended = g->n_waves - g->live;

    for (unsigned k = 0; k < g->n_waves; k++) {
        sim_wave *w = &g->waves[k];

        if (w->check->ended)
            continue;
        if (!first)
            first = w;
        if (w->check->barrier_pc != first->check->barrier_pc)
            sim_note(w, NOTE_BARRIER,
                     "wave %u is at another barrier (pc "
                     "0x%llx)",
                     first->id,
                     (unsigned long long)(first->check->barrier_pc -
                                          first->code->at));
    }
    if (ended && first)
        sim_note(first, NOTE_BARRIER, "%u waves have ended before this barrier",
                 ended);
    sim_lds_barrier(g);
    if (g->order)
        sim_order_barrier(g);
}

/* ---- scratch ---------------------------------------------------------- */

void
sim_check_access(sim_wave *w, const sim_touch *t)
{
    uint8_t *def =
        w->check->scratch + (size_t)t->lane * w->g->scratch_bytes + t->at;
    const uint8_t *hole;

    if (t->lds) {
        sim_check_lds(w, t);
        return;
    }
    hole = t->write ? NULL : memchr(def, 0, t->bytes);
    if (hole)
        sim_note(w, NOTE_UNDEF,
                 "lane %u reads scratch 0x%llx, which "
                 "nothing wrote",
                 t->lane, (unsigned long long)(t->at + (uint64_t)(hole - def)));
    memset(def, true, hole ? (size_t)(hole - def) : t->bytes);
}

/* ---- shadows ---------------------------------------------------------- */

br_code
sim_check_new(sim_group *g, unsigned n, unsigned lanes, sim_said *said,
              br_status *st)
{
    size_t scratch = (size_t)lanes * g->scratch_bytes;
    sim_check *c = br_try_calloc(1, sizeof *c);

    g->check = c;
    if (c) {
        c->said = said;
        c->lds = br_try_calloc(g->lds_bytes / 4 + 1, sizeof *c->lds);
        c->waves = br_try_calloc(n, sizeof *c->waves);
        c->scratch = br_try_calloc(n, scratch + 1);
    }
    if (!c || !c->lds || !c->waves || !c->scratch)
        return br_fail(st, BR_E_OOM, "no memory for checks");
    for (unsigned k = 0; k < n; k++) {
        c->waves[k].scratch = c->scratch + k * scratch;
        g->waves[k].check = &c->waves[k];
    }
    return BR_OK;
}

void
sim_check_free(sim_group *g)
{
    if (!g->check)
        return;
    br_free(g->check->lds);
    br_vec_fini(&g->check->meet.seen);
    br_free(g->check->waves);
    br_free(g->check->scratch);
    br_free(g->check);
    g->check = NULL;
}

void
sim_check_group(sim_group *g)
{
    sim_lds_begin(g);
}

void
sim_check_start(sim_wave *w, unsigned n, uint64_t set, unsigned vgprs)
{
    sim_wcheck *k = w->check;
    uint32_t valus = k->n_valu, fwd = k->n_fwd;

    vgprs = BR_MIN(vgprs, 256);
    memset(k, 0, offsetof(sim_wcheck, n_vgprs));
    memset(k->v_def, 0, BR_MAX(vgprs, k->n_vgprs) * sizeof *k->v_def);
    memset(k->scratch, 0, (size_t)w->w * w->g->scratch_bytes);
    k->n_vgprs = vgprs;
    /* What the wave before this one wrote is older than that. */
    k->n_valu = k->trans_from = valus + 1;
    k->n_fwd = k->fwd_from = fwd + 1;
    k->s_def.b[0] = set;
    k->s_def.b[1] = 3ull << (SIM_EXEC - 64) | 1ull << (SIM_TTMP + 9 - 64) |
                    1ull << (SIM_TTMP + 7 - 64);
    k->lanes = w->w == 64 ? UINT64_MAX : UINT32_MAX;
    k->v_def[SIM_NO_READ] = UINT64_MAX;
    sim_define(k, 0, UINT64_MAX, UINT64_MAX);
    if (n < br_gcn_least_sgprs(&w->isa))
        sim_note(
            w, NOTE_START,
            "%u user and system SGPRs are set up: %s sets them wrong where "
            "they are fewer than %u",
            n, w->isa.cpu->name, br_gcn_least_sgprs(&w->isa));
}
