/* sim_run.c - from a packet to waves, and their turns.
 *
 * A wave starts as the hardware starts it (LLVM's AMDGPU usage, "Initial Kernel
 * Execution State"): user SGPRs in a fixed order, padded to the descriptor's
 * count, then work-group ids (gfx12: in ttmp9 and ttmp7), work-item ids packed
 * in v0. A work-group runs after another, more at a time once the first takes
 * long, for it may wait for others. Waves take turns, of many instructions each;
 * with check of a few, drawn from the seed, of several groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/thread.h"
#include "drv/sim/sim_check.h"
#include "drv/sim/sim_crowd.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_order.h"

#include <stdio.h>
#include <string.h>

enum {
    TURN = 4096,       /* instructions of a wave at a time */
    CHECKED_TURN = 32, /* at most, with check */
    MAX_GROUP = 1024,
    MAX_WAVES = MAX_GROUP / 32,
    PACKET_AT = 0x1000,  /* where a kernel finds its dispatch packet */
    MAX_RESIDENT = 64,   /* work-groups at a time */
    CHECKED_WAVES = 128, /* of those, with check */
    CHECKED_GROUPS = 4,  /* from the start, then */
    PATIENCE = 64,       /* turns of a group until one more runs beside */
    MAX_VGPRS = 256,
    LINE_WORDS = 64 / sizeof(uint32_t),
    WAKE_AFTER = 1 << 15, /* instructions until others help: half a ms */
    MAX_SPAN = 100,       /* words that an instruction is taken together with */
};

const char *const br_sim_classes[BR_SIM_CLASSES] = {
    [SIM_SALU] = "SALU", [SIM_VALU] = "VALU",
    [SIM_SMEM] = "SMEM", [SIM_VMEM] = "VMEM",
    [SIM_LDS] = "LDS",   [SIM_FLOW] = "waits, branches and the like"};

/* ---- faults ----------------------------------------------------------- */

void
sim_where(const sim_wave *w, uint64_t pc, br_str *out)
{
    const sim_code *c = w->code;
    const uint32_t *id = w->g->id;
    br_gcn_inst in;

    br_str_printf(out, "work-group %u,%u,%u wave %u pc 0x%llx: ", id[0], id[1],
                  id[2], w->id, (unsigned long long)(pc - c->at));
    if (pc - c->at < c->bytes &&
        br_gcn_decode(&w->isa, c->words + (pc - c->at) / 4,
                      (c->bytes - (pc - c->at)) / 4, &in)) {
        br_gcn_print(&w->isa, &in, out);
        br_str_puts(out, ": ");
    }
}

bool
sim_fault(sim_wave *w, br_code code, const char *fmt, ...)
{
    br_str s = {0};
    va_list ap;

    w->state = SIM_STOP;
    if (w->g->code != BR_OK)
        return false;
    w->g->code = code;
    sim_where(w, w->at, &s);
    va_start(ap, fmt);
    br_str_vprintf(&s, fmt, ap);
    va_end(ap);
    br_fail(w->g->st, code, "%s", br_str_z(&s));
    br_str_fini(&s);
    return false;
}

/* ---- turns ------------------------------------------------------------ */

void
sim_release(sim_group *g)
{
    if (!g->live || g->arrived < g->live)
        return;
    g->arrived = 0;
    g->phase++;
    for (unsigned k = 0; k < g->n_waves; k++)
        if (g->waves[k].state == SIM_BARRIER)
            g->waves[k].state = SIM_RUN;
    if (g->check)
        sim_check_barrier(g);
}

/* An instruction with its checks; memory's results are noted after. */
static bool
checked(sim_wave *w, const sim_op *o)
{
    bool quick = sim_check_quick(w, o);

    if ((!quick && !sim_check_before(w, o)) || !o->fn(w, o))
        return false;
    if (!quick || o->uses.memory)
        sim_check_after(w, o);
    return true;
}

/* What comes next. Where nothing jumps, an instruction knows it: the address
 * need not be looked up in the code, each lookup waiting for the one before.
 * What lies in another code object may go before this one does. */
static sim_op *
next_of(sim_wave *w, sim_op *o)
{
    const sim_code *c = w->code;
    sim_op *n = o->next;

    if (n)
        return n;
    n = sim_fetch(w);
    o->next = o->goes == SIM_ON && w->code == c ? n : NULL;
    return n;
}

/* Takes the waits and the like behind o together with it from now on, and has
 * done so this time. */
static sim_op *
link_then(sim_wave *w, sim_op *o)
{
    const sim_code *c = w->code;
    uint64_t hints = 0;
    sim_op *n = sim_fetch(w);

    while (n && n->idle && w->code == c && o->span + n->words <= MAX_SPAN) {
        unsigned hint = n->hints + (n->sem->src[0] == GO_HINT);

        w->pc += n->words * 4u;
        w->steps += 1u + n->hints;
        hints += hint;
        o->span = (uint8_t)(o->span + n->words);
        o->spends = (uint8_t)(o->spends + 1 + n->hints);
        o->spared = (uint8_t)(o->spared + hint);
        n = sim_fetch(w);
    }
    w->g->sim->hints += hints;
    o->then = w->code == c ? n : NULL;
    return n;
}

/* The same without check. */
static sim_op *
then_of(sim_wave *w, sim_op *o)
{
    const sim_code *c = w->code;
    bool off = w->pc - w->at != o->span * 4u;
    sim_op *n;

    if (o->goes == SIM_ON)
        return link_then(w, o);
    if (o->goes == SIM_BRANCHES && o->to[off])
        return o->to[off];
    n = sim_fetch(w);
    if (o->goes == SIM_BRANCHES && w->code == c)
        o->to[off] = n;
    return n;
}

/* Up to n instructions, without check and mix. */
static void
run_fast(sim_wave *w, uint64_t n)
{
    uint64_t hints = 0;
    sim_op *o = sim_fetch(w);

    while (o) {
        w->at = w->pc;
        w->pc += o->span * 4u;
        w->steps += o->spends;
        hints += o->spared;
        if (!o->fn(w, o) || !--n)
            break;
        o = o->then ? o->then : then_of(w, o);
    }
    w->g->sim->hints += hints;
}

static void
run_slow(sim_wave *w, uint64_t n)
{
    uint64_t *mix = w->g->sim->mix, hints = 0;
    bool check = w->check != NULL;
    sim_op *o = sim_fetch(w);

    while (o) {
        w->at = w->pc;
        w->pc += o->words * 4u;
        w->steps += 1u + o->hints;
        hints += o->hints;
        if (mix)
            mix[o->cls]++;
        if ((check ? !checked(w, o) : !o->fn(w, o)) || !--n)
            break;
        o = next_of(w, o);
    }
    w->g->sim->hints += hints;
}

static void
turn(sim_wave *w, uint64_t n)
{
    uint64_t begin = w->steps;
    sim_share *share = w->g->share;

    w->turn_at = begin;
    if (w->check || w->g->sim->mix)
        run_slow(w, n);
    else
        run_fast(w, n);
    w->g->sim->steps += w->steps - begin;
    if (share) /* relaxed: a count */
        atomic_fetch_add_explicit(&share->steps, w->steps - begin,
                                  memory_order_relaxed);
    if (w->state == SIM_DONE) {
        w->g->live--;
        if (w->check)
            sim_check_end(w);
        sim_release(w->g);
    }
}

static br_code
stuck(const sim_group *g)
{
    return br_fail(g->st, BR_E_FAULT,
                   "work-group %u,%u,%u: %u of %u waves wait at a "
                   "barrier for ever",
                   g->id[0], g->id[1], g->id[2], g->arrived, g->live);
}

/* Turns of a group: of each wave that runs, with check of one, which `draw`
 * says, as it says how long. */
static br_code
turns(sim_group *g, uint32_t draw)
{
    br_sim *s = g->sim;
    unsigned at = (draw & 1023) * g->n_waves >> 10, k = 0;
    bool ran = false;

    if (s->max_steps &&
        (g->share ? atomic_load_explicit(&g->share->steps, memory_order_relaxed)
                  : s->steps) > s->max_steps)
        return br_fail(g->st, BR_E_TIMEOUT, "more than %llu instructions",
                       (unsigned long long)s->max_steps);
    if (s->check) {
        for (; g->waves[at].state != SIM_RUN; k++) {
            if (k == g->n_waves)
                return stuck(g);
            at = at + 1 < g->n_waves ? at + 1 : 0;
        }
        turn(&g->waves[at], 1 + (draw >> 10) % CHECKED_TURN);
        return g->code;
    }
    for (; k < g->n_waves && g->code == BR_OK; k++)
        if (g->waves[k].state == SIM_RUN) {
            turn(&g->waves[k], TURN);
            ran = true;
        }
    return ran ? g->code : stuck(g);
}

/* ---- the start of a wave ---------------------------------------------- */

typedef struct kd {
    uint32_t lds, scratch, rsrc1, rsrc2, props;
    int64_t entry;
    uint64_t at;
} kd;

static br_code
read_kd(br_sim *s, const br_aql_packet *p, kd *k, br_status *st)
{
    uint8_t *b = sim_at(s, p->kernel, BR_GCN_KD_BYTES, false);

    if (!b || p->kernel % 64)
        return br_fail(st, BR_E_FAULT, "no descriptor at 0x%llx",
                       (unsigned long long)p->kernel);
    memcpy(&k->lds, b, 4);
    memcpy(&k->scratch, b + 4, 4);
    memcpy(&k->entry, b + 16, 8);
    memcpy(&k->rsrc1, b + 48, 4);
    memcpy(&k->rsrc2, b + 52, 4);
    memcpy(&k->props, b + 56, 4);
    k->at = p->kernel;
    k->lds = BR_MAX(k->lds, p->group_bytes);
    k->scratch = BR_MAX(k->scratch, p->private_bytes);
    if (k->lds > BR_SIM_MAX_LDS || k->scratch > BR_SIM_MAX_SCRATCH)
        return br_fail(st, BR_E_LIMIT,
                       "%u bytes of LDS, %u of scratch; %d and %d are there",
                       k->lds, k->scratch, BR_SIM_MAX_LDS, BR_SIM_MAX_SCRATCH);
    return BR_OK;
}

static void
two(sim_wave *w, unsigned *at, uint64_t v)
{
    w->s[*at] = (uint32_t)v;
    w->s[*at + 1] = (uint32_t)(v >> 32);
    *at += 2;
}

/* How many there are, and which of them have a value: user SGPRs that nothing was
 * asked for have none. */
static unsigned
start_scalars(sim_wave *w, const kd *k, uint64_t *set)
{
    const sim_group *g = w->g;
    unsigned n = 0, user = k->rsrc2 >> 1 & 31, given;

    if (k->props & 2)
        two(w, &n, PACKET_AT);
    if (k->props & 4)
        two(w, &n, 0); /* the queue: there is none */
    if (k->props & 8)
        two(w, &n, g->packet->kernarg);
    if (k->props & 16)
        two(w, &n, 0);
    if (k->props & 64)
        w->s[n++] = k->scratch;
    given = n;
    n = user = BR_MAX(n, user);
    w->s[SIM_TTMP + 9] = g->id[0];
    w->s[SIM_TTMP + 7] = g->id[1] | g->id[2] << 16;
    for (unsigned d = 0; d < 3 && w->isa.cpu->gen == 11; d++)
        if (k->rsrc2 >> (7 + d) & 1)
            w->s[n++] = g->id[d];
    if (k->rsrc2 >> 10 & 1)
        w->s[n++] = w->id == 0 ? 1u << 31 : 0;
    *set = (1ull << n) - (1ull << user) + (1ull << given) - 1;
    return n;
}

static void
start(sim_wave *w, const kd *k)
{
    const sim_group *g = w->g;
    unsigned items = g->size[0] * g->size[1] * g->size[2];
    unsigned dims = k->rsrc2 >> 11 & 3, t = w->id * w->w;
    unsigned n = t < items ? BR_MIN(items - t, w->w) : 0;
    unsigned x = t % g->size[0], y = t / g->size[0] % g->size[1];
    unsigned z = t / g->size[0] / g->size[1];
    uint64_t exec = n == 64 ? UINT64_MAX : (1ull << n) - 1;

    /* Lanes of one row are vector code. Others are counted on: a division for
     * each took as long as ten instructions. */
    if (x + n <= g->size[0]) {
        uint32_t first = x | (dims ? y << 10 : 0) | (dims > 1 ? z << 20 : 0);

        for (unsigned i = 0; i < n; i++)
            w->v[i] = first + i;
        n = 0;
    }
    for (unsigned i = 0; i < n; i++) {
        w->v[i] = x | (dims ? y << 10 : 0) | (dims > 1 ? z << 20 : 0);
        if (++x == g->size[0]) {
            x = 0;
            if (++y == g->size[1])
                y = 0, z++;
        }
    }
    w->s[SIM_EXEC] = (uint32_t)exec;
    w->s[SIM_EXEC + 1] = (uint32_t)(exec >> 32);
    w->mode = k->rsrc1 >> 12 & 255;
    w->pc = w->at = k->at + (uint64_t)k->entry;
    w->code = g->sim->code;
    w->state = SIM_RUN;
}

/* ---- work-groups ------------------------------------------------------ */

/* What memory of places depends on. */
typedef struct shape {
    uint32_t waves, lanes, rows, lds, scratch, check;
} shape;

typedef struct sim_job {
    br_sim *s;
    const br_aql_packet *packet;
    br_status *st;
    sim_group g[MAX_RESIDENT];
    shape shape;                      /* of those that are there */
    unsigned n_waves, resident, most; /* groups: at a time, at most */
    kd k;
    br_gcn_isa isa;
    sim_order *order;
    bool ordered; /* by order, which may be there from before */
    sim_said said;
    uint64_t groups[3], next, all;
    sim_share *share; /* NULL: nobody else takes groups */
    sim_crowd *crowd; /* who may, once there is much to do; then NULL */
    uint64_t wake_at; /* s->steps */
} job;

static unsigned
lanes_of(const job *j)
{
    return j->isa.wave64 ? 64 : 32;
}

/* Vector registers that the descriptor asks for. */
static unsigned
vgprs_of(const job *j)
{
    return BR_MIN(((j->k.rsrc1 & 63) + 1) * 256 / lanes_of(j), MAX_VGPRS);
}

/* From one wave's registers to the next one's. With check many waves take turns:
 * those that it asks for lie close together, 3 KB of 32, and a wave that uses
 * others is reported before it touches its neighbour's. Behind the last wave are
 * so many that no number is outside. */
static unsigned
rows_of(const job *j)
{
    return j->s->check ? vgprs_of(j) : MAX_VGPRS;
}

/* Registers of a group's waves, none across two lines. */
static bool
place_registers(job *j, sim_group *g)
{
    size_t wave = (size_t)rows_of(j) * lanes_of(j);
    size_t spare = (size_t)(MAX_VGPRS - rows_of(j)) * lanes_of(j);
    uint32_t *v;

    g->registers =
        br_try_calloc(j->n_waves * wave + spare + LINE_WORDS, sizeof *v);
    v = g->registers;
    if (v)
        v += (0u - (uintptr_t)v) / sizeof *v % LINE_WORDS;
    for (unsigned k = 0; v && k < j->n_waves; k++)
        g->waves[k].v = v + k * wave;
    return v != NULL;
}

/* What a group that runs needs, once for all that run in its place: of this
 * dispatch and, where they have the same shape, of those after it. */
static br_code
place(job *j, unsigned slot)
{
    sim_group *g = &j->g[slot];
    unsigned n = j->n_waves, lanes = lanes_of(j);

    *g = (sim_group){.sim = j->s,
                     .slot = slot,
                     .packet = j->packet,
                     .st = j->st,
                     .order = j->ordered ? j->order : NULL,
                     .lds_bytes = j->k.lds,
                     .scratch_bytes = j->k.scratch};
    g->lds = br_try_calloc(j->k.lds + 1u, 1);
    g->waves = br_try_calloc(n, sizeof *g->waves);
    g->scratch = br_try_calloc(1, (size_t)n * lanes * j->k.scratch + lanes);
    if (!g->scratch || !g->lds || !g->waves || !place_registers(j, g))
        return br_fail(j->st, BR_E_OOM, "no memory for a work-group");
    for (unsigned k = 0; k < n; k++)
        g->waves[k].scratch = g->scratch + (size_t)k * lanes * j->k.scratch;
    return j->s->check ? sim_check_new(g, n, lanes, &j->said, j->st) : BR_OK;
}

static void
begin(job *j, sim_group *g, uint64_t number)
{
    const br_aql_packet *p = j->packet;
    unsigned lanes = lanes_of(j);
    uint64_t nth = number;

    for (int d = 0; d < 3; nth /= j->groups[d++]) {
        uint64_t first = nth % j->groups[d] * p->group[d];

        g->id[d] = (uint32_t)(nth % j->groups[d]);
        g->size[d] = (uint32_t)BR_MIN(p->grid[d] - first, p->group[d]);
    }
    g->n_waves = (g->size[0] * g->size[1] * g->size[2] + lanes - 1) / lanes;
    g->live = g->n_waves;
    g->nth = number;
    g->share = j->share;
    g->code = BR_OK;
    g->arrived = g->phase = 0;
    memset(g->lds, 0, g->lds_bytes);
    for (unsigned k = 0; k < g->n_waves; k++) {
        sim_wave *w = &g->waves[k];
        uint64_t set;
        unsigned n;

        *w = (sim_wave){.g = g,
                        .id = k,
                        .w = lanes,
                        .isa = j->isa,
                        .v = w->v,
                        .scratch = w->scratch,
                        .check = w->check};
        n = start_scalars(w, &j->k, &set);
        start(w, &j->k);
        if (w->check)
            sim_check_start(w, n, set, vgprs_of(j));
        if (g->order)
            sim_order_start(w);
    }
    if (g->check)
        sim_check_group(g);
}

static bool
take(job *j, uint64_t *nth)
{
    if (j->share)
        return sim_share_take(j->share, nth);
    *nth = j->next;
    j->next += *nth < j->all;
    return *nth < j->all;
}

/* The next group in a place where none runs. */
static br_code
fill(job *j, unsigned slot, unsigned *live)
{
    sim_group *g = &j->g[slot];
    uint64_t nth;

    if (!take(j, &nth))
        return BR_OK;
    if (!g->waves)
        BR_TRY(place(j, slot));
    begin(j, g, nth);
    ++*live;
    return BR_OK;
}

/* Turns of a group; where other threads run others, it is told to them if it
 * fails. */
static br_code
go_on(job *j, sim_group *g, uint32_t draw)
{
    br_code c;

    if (j->share && sim_share_ends(j->share, g->nth)) {
        g->live = 0;
        return BR_OK;
    }
    c = turns(g, draw);
    if (c == BR_OK || !j->share)
        return c;
    sim_share_fail(j->share, g->nth, j->st, j->s->fault);
    *j->st = (br_status){0};
    j->s->fault = (br_kfault)0;
    g->live = 0;
    return BR_OK;
}

static br_code
all_groups(job *j)
{
    uint64_t patience = PATIENCE;
    unsigned at = 0, live = 0;
    br_rng rng;

    br_rng_init(&rng, j->s->seed, 0);
    for (unsigned k = 0; k < j->resident; k++)
        BR_TRY(fill(j, k, &live));
    while (live) {
        /* Partner: sim_queue_destroy. */
        bool ends = br_is_told(j->s->stop);
        uint32_t draw = j->s->check ? br_rng_u32(&rng) : 0;

        if (ends)
            return br_fail(j->st, BR_E_CANCELLED, "waves were taken off");
        at = j->s->check ? (draw >> 22) * j->resident >> 10 : at + 1;
        while (at >= j->resident || !j->g[at].live)
            at = at + 1 < j->resident ? at + 1 : 0;
        BR_TRY(go_on(j, &j->g[at], draw & ((1u << 22) - 1)));
        if (j->crowd && j->s->steps > j->wake_at) {
            sim_crowd_wake(j->crowd, j->s, j->packet);
            j->crowd = NULL;
        }
        if (!j->g[at].live) {
            live--;
            BR_TRY(fill(j, at, &live));
        }
        if (!--patience && j->resident < j->most) {
            BR_TRY(fill(j, j->resident++, &live));
            patience = PATIENCE;
        }
    }
    return BR_OK;
}

static void
drop(job *j)
{
    for (unsigned k = 0; k < MAX_RESIDENT; k++) {
        sim_group *g = &j->g[k];

        sim_check_free(g);
        br_free(g->registers);
        br_free(g->scratch);
        br_free(g->lds);
        br_free(g->waves);
    }
    memset(j->g, 0, sizeof j->g);
}

/* Places of the dispatch before serve this one, or go. */
static void
reuse(job *j)
{
    shape now = {j->n_waves, lanes_of(j),  rows_of(j),
                 j->k.lds,   j->k.scratch, j->s->check};

    if (memcmp(&now, &j->shape, sizeof now) != 0)
        drop(j);
    j->shape = now;
    for (unsigned k = 0; k < MAX_RESIDENT; k++) {
        sim_group *g = &j->g[k];

        g->sim = j->s;
        g->packet = j->packet;
        g->st = j->st;
        g->order = j->ordered ? j->order : NULL;
        g->code = BR_OK;
        g->live = 0;
    }
}

static br_code
prepare(job *j, const br_aql_packet *p, br_status *st)
{
    uint64_t items = 1;
    unsigned n;

    BR_TRY(read_kd(j->s, p, &j->k, st));
    for (int d = 0; d < 3; d++) {
        items *= p->group[d] <= MAX_GROUP ? p->group[d] : 0;
        if (!items || items > MAX_GROUP || !p->grid[d])
            return br_fail(st, BR_E_LIMIT,
                           "a grid or work-group of no or too "
                           "many work-items");
        j->groups[d] = ((uint64_t)p->grid[d] + p->group[d] - 1) / p->group[d];
    }
    j->isa = (br_gcn_isa){j->s->cpu, !(j->k.props >> 10 & 1)};
    j->packet = p;
    j->st = st;
    j->n_waves = n = ((unsigned)items + lanes_of(j) - 1) / lanes_of(j);
    j->all = j->groups[0] * j->groups[1] * j->groups[2];
    j->most = j->s->check ? BR_MAX(CHECKED_WAVES / n, 2u) : MAX_RESIDENT;
    j->most = (unsigned)BR_MIN(BR_MIN(j->most, MAX_RESIDENT), j->all);
    j->resident = j->s->check ? BR_MIN(j->most, CHECKED_GROUPS) : 1;
    j->ordered = j->s->check && (n > 1 || j->all > 1);
    if (j->ordered)
        BR_TRY(
            sim_order_new(&j->order, j->most, n, !(j->k.rsrc1 >> 29 & 1), st));
    return BR_OK;
}

/* A dispatch in the memory of the one before: a thousand pages that the system
 * need not clear once more. */
static br_code
job_of(job **out, br_sim *s, const br_aql_packet *p, br_status *st)
{
    job *j = s->job;

    if (!j)
        j = s->job = br_try_calloc(1, sizeof *j);
    if (!j)
        return br_fail(st, BR_E_OOM, "no memory for a dispatch");
    *out = j;
    j->s = s;
    j->next = 0;
    j->said.n = 0;
    j->share = NULL;
    j->crowd = NULL;
    BR_TRY(prepare(j, p, st));
    reuse(j);
    return BR_OK;
}

void
sim_help(br_sim *s, const br_aql_packet *p, sim_share *h)
{
    br_status st = {0};
    job *j;
    br_code c = job_of(&j, s, p, &st);

    if (c == BR_OK) {
        j->share = h;
        c = all_groups(j);
        if (c != BR_OK)
            drop(j);
    }
    if (c != BR_OK)
        sim_share_fail(h, UINT64_MAX - 1, &st, s->fault);
}

/* Groups of this thread and, if it takes long, of others. */
static br_code
crowded(job *j, sim_crowd *crowd)
{
    br_sim *s = j->s;
    sim_share *h = sim_crowd_share(crowd);
    br_code c;

    sim_share_begin(h, j->all, s->steps);
    j->share = h;
    j->crowd = crowd;
    j->wake_at = s->steps + WAKE_AFTER;
    c = all_groups(j);
    if (c != BR_OK)
        sim_share_fail(h, UINT64_MAX - 1, j->st, s->fault);
    if (!j->crowd)
        sim_crowd_await(crowd, s);
    if (h->st.code == BR_OK)
        return BR_OK;
    s->fault = h->fault;
    *j->st = h->st;
    return h->st.code;
}

/* st is written for groups that do not count, too. */
static br_code
dispatch(br_sim *s, const br_aql_packet *p, br_status *st)
{
    br_code code;
    job *j;

    BR_TRY(job_of(&j, s, p, st));
    if (s->threads > 1 && !s->crowd && !s->check)
        s->crowd = sim_crowd_new(BR_MIN(s->threads, SIM_MAX_THREADS) - 1);
    if (s->crowd && !s->check && !s->mix && j->all > 1)
        code = crowded(j, s->crowd);
    else
        code = all_groups(j);
    if (code != BR_OK)
        drop(j);
    return code;
}

void
br_sim_fini(br_sim *s)
{
    sim_crowd_free(s->crowd);
    s->crowd = NULL;
    while (s->code) {
        sim_code *c = s->code;

        s->code = c->next;
        br_arena_fini(&c->arena);
        br_free(c->ops);
        br_free(c);
    }
    br_vec_fini(&s->regions);
    if (s->job) {
        drop(s->job);
        sim_order_free(s->job->order);
        br_free(s->job);
        s->job = NULL;
    }
}

br_code
br_sim_dispatch(br_sim *s, const br_aql_packet *p, br_status *st)
{
    union { /* read only in the device's memory */
        const br_aql_packet *c;
        uint8_t *p;
    } u = {p};
    br_kregion r = {.addr = PACKET_AT,
                    .bytes = sizeof *p,
                    .host = u.p,
                    .read_only = true,
                    .name = "packet"};
    br_status mine = {0};
    br_code code;

    if (!s->code)
        return br_fail(st, BR_E_FAULT, "no code object is there");
    BR_TRY(br_sim_map(s, &r, st));
    code = dispatch(s, p, &mine);
    if (code != BR_OK && st && st->code == BR_OK)
        *st = mine;
    for (size_t k = 0; k < s->regions.n; k++)
        if (s->regions.at[k].addr == PACKET_AT) {
            memmove(s->regions.at + k, s->regions.at + k + 1,
                    (--s->regions.n - k) * sizeof r);
            break;
        }
    return code;
}
