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
#include "drv/sim/sim_check.h"
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
};

const char *const br_sim_classes[BR_SIM_CLASSES] = {
    [SIM_SALU] = "SALU", [SIM_VALU] = "VALU",
    [SIM_SMEM] = "SMEM", [SIM_VMEM] = "VMEM",
    [SIM_LDS] = "LDS",   [SIM_FLOW] = "waits, branches and the like"};

/* ---- memory and code -------------------------------------------------- */

br_code
br_sim_map(br_sim *s, const br_kregion *r, br_status *st)
{
    size_t at = 0;

    if (!r->bytes || r->addr + r->bytes < r->addr)
        return br_fail(st, BR_E_LIMIT, "%s: no bytes, or past the end",
                       r->name ? r->name : "memory");
    while (at < s->regions.n && s->regions.at[at].addr < r->addr)
        at++;
    if ((at &&
         s->regions.at[at - 1].addr + s->regions.at[at - 1].bytes > r->addr) ||
        (at < s->regions.n && r->addr + r->bytes > s->regions.at[at].addr))
        return br_fail(st, BR_E_LIMIT, "%s: other memory is there already",
                       r->name ? r->name : "memory");
    if (!br_vec_push(&s->regions, *r))
        return br_fail(st, BR_E_OOM, "no memory for regions");
    memmove(s->regions.at + at + 1, s->regions.at + at,
            (s->regions.n - 1 - at) * sizeof *r);
    s->regions.at[at] = *r;
    return BR_OK;
}

br_code
br_sim_load(br_sim *s, const br_gcn_co *co, uint64_t at, br_status *st)
{
    br_kregion r = {.addr = at,
                    .bytes = co->bytes,
                    .host = co->image,
                    .name = "code object"};
    sim_code *c;

    if (at % 4096 || co->isa.cpu->gen != s->cpu->gen)
        return br_fail(st, BR_E_LIMIT, "a code object for %s at 0x%llx",
                       co->isa.cpu->name, (unsigned long long)at);
    BR_TRY(br_sim_map(s, &r, st));
    c = br_try_calloc(1, sizeof *c);
    if (c)
        c->ops = br_try_calloc(co->text_bytes / 4 + 1, sizeof *c->ops);
    if (!c || !c->ops) {
        br_free(c);
        return br_fail(st, BR_E_OOM, "no memory for code");
    }
    c->at = at + co->text_at;
    c->bytes = co->text_bytes & ~3ull;
    c->words = (const uint32_t *)(const void *)(co->image + co->text_at);
    c->isa = co->isa;
    br_arena_init(&c->arena, 0);
    c->next = s->code;
    s->code = c;
    return BR_OK;
}

/* s_delay_alu, one in six instructions, does nothing: what stands before it is
 * run with it, but for branches and the like. */
static bool
is_hint(const sim_wave *w, uint64_t word)
{
    const sim_code *c = w->code;
    br_gcn_inst in;

    return word < c->bytes / 4 &&
           br_gcn_decode(&w->isa, c->words + word, c->bytes / 4 - word, &in) &&
           strcmp(in.row->name, "s_delay_alu") == 0;
}

static sim_op *
decode(sim_wave *w, uint64_t word)
{
    sim_code *c = w->code;
    sim_op *o = sim_op_new(&c->arena);
    br_gcn_inst in;
    br_str text = {0};

    if (!o) {
        sim_fault(w, BR_E_OOM, "no memory for decoded code");
        return NULL;
    }
    if (!br_gcn_decode(&w->isa, c->words + word, c->bytes / 4 - word, &in)) {
        const br_gcn_format *f = &br_gcn_formats[BR_FMT_VOPD];

        sim_fault(w, BR_E_FAULT, "0x%08x is no instruction of %s%s",
                  c->words[word], w->isa.cpu->name,
                  (c->words[word] & f->mask) == f->value
                      ? ": halves of a dual one that do not go together"
                      : "");
        return NULL;
    }
    if (in.row_y && w->isa.wave64) {
        sim_fault(w, BR_E_FAULT, "a dual instruction in a wave of 64");
        return NULL;
    }
    if (!sim_decode(&c->arena, &w->isa, &in, o)) {
        br_gcn_print(&w->isa, &in, &text);
        sim_fault(w, BR_E_UNSUPPORTED, "the simulator does not know: %s",
                  br_str_z(&text));
        br_str_fini(&text);
        return NULL;
    }
    if (o->sem->fn != sim_flow && is_hint(w, word + o->words)) {
        o->words++;
        o->hints = 1;
    }
    return c->ops[word] = o;
}

sim_op *
sim_fetch(sim_wave *w)
{
    uint64_t off = w->pc - w->code->at;

    if (off >= w->code->bytes || off % 4) {
        for (sim_code *c = w->g->sim->code; c; c = c->next)
            if (w->pc - c->at < c->bytes && w->pc % 4 == 0) {
                w->code = c;
                return sim_fetch(w);
            }
        sim_fault(w, BR_E_FAULT, "no code at 0x%llx",
                  (unsigned long long)w->pc);
        return NULL;
    }
    return w->code->ops[off / 4] ? w->code->ops[off / 4] : decode(w, off / 4);
}

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
 * need not be looked up in the code, each lookup waiting for the one before. */
static sim_op *
next_of(sim_wave *w, sim_op *o)
{
    const sim_code *c = w->code;
    uint64_t off = w->pc - c->at;
    sim_op *n = o->next;

    if (n)
        return n;
    if (o->jumps && off < c->bytes && off % 4 == 0 && c->ops[off / 4])
        return c->ops[off / 4];
    n = sim_fetch(w);
    o->next = o->jumps ? NULL : n;
    return n;
}

static void
turn(sim_wave *w, uint64_t n)
{
    uint64_t begin = w->steps, hints = 0;
    bool check = w->check != NULL;
    uint64_t *mix = w->g->sim->mix;
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
    w->g->sim->steps += w->steps - begin;
    w->g->sim->hints += hints;
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

    if (s->max_steps && s->steps > s->max_steps)
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

static unsigned
start_scalars(sim_wave *w, const kd *k)
{
    const sim_group *g = w->g;
    unsigned n = 0, user = k->rsrc2 >> 1 & 31;

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
    n = BR_MAX(n, user);
    w->s[SIM_TTMP + 9] = g->id[0];
    w->s[SIM_TTMP + 7] = g->id[1] | g->id[2] << 16;
    for (unsigned d = 0; d < 3 && w->isa.cpu->gen == 11; d++)
        if (k->rsrc2 >> (7 + d) & 1)
            w->s[n++] = g->id[d];
    if (k->rsrc2 >> 10 & 1)
        w->s[n++] = w->id == 0 ? 1u << 31 : 0;
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

    /* Counted on: a division for each lane took as long as ten instructions. */
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
begin(job *j, sim_group *g, uint64_t nth)
{
    const br_aql_packet *p = j->packet;
    unsigned lanes = lanes_of(j);

    for (int d = 0; d < 3; nth /= j->groups[d++]) {
        uint64_t first = nth % j->groups[d] * p->group[d];

        g->id[d] = (uint32_t)(nth % j->groups[d]);
        g->size[d] = (uint32_t)BR_MIN(p->grid[d] - first, p->group[d]);
    }
    g->n_waves = (g->size[0] * g->size[1] * g->size[2] + lanes - 1) / lanes;
    g->live = g->n_waves;
    g->arrived = g->phase = 0;
    memset(g->lds, 0, g->lds_bytes);
    for (unsigned k = 0; k < g->n_waves; k++) {
        sim_wave *w = &g->waves[k];
        unsigned n;

        *w = (sim_wave){.g = g,
                        .id = k,
                        .w = lanes,
                        .isa = j->isa,
                        .v = w->v,
                        .scratch = w->scratch,
                        .check = w->check};
        n = start_scalars(w, &j->k);
        start(w, &j->k);
        if (w->check)
            sim_check_start(w, n, vgprs_of(j));
        if (g->order)
            sim_order_start(w);
    }
    if (g->check)
        sim_check_group(g);
}

/* The next group in a place where none runs. */
static br_code
fill(job *j, unsigned slot, unsigned *live)
{
    sim_group *g = &j->g[slot];

    if (j->next == j->all)
        return BR_OK;
    if (!g->waves)
        BR_TRY(place(j, slot));
    begin(j, g, j->next++);
    ++*live;
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
        bool ends = j->s->stop &&
                    atomic_load_explicit(j->s->stop, memory_order_relaxed);
        uint32_t draw = j->s->check ? br_rng_u32(&rng) : 0;

        if (ends)
            return br_fail(j->st, BR_E_CANCELLED, "waves were taken off");
        at = j->s->check ? (draw >> 22) * j->resident >> 10 : at + 1;
        while (at >= j->resident || !j->g[at].live)
            at = at + 1 < j->resident ? at + 1 : 0;
        BR_TRY(turns(&j->g[at], draw & ((1u << 22) - 1)));
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
dispatch(br_sim *s, const br_aql_packet *p, br_status *st)
{
    job *j = s->job;
    br_code code;

    if (!j)
        j = s->job = br_try_calloc(1, sizeof *j);
    if (!j)
        return br_fail(st, BR_E_OOM, "no memory for a dispatch");
    j->s = s;
    j->next = 0;
    j->said.n = 0;
    BR_TRY(prepare(j, p, st));
    reuse(j);
    code = all_groups(j);
    if (code != BR_OK)
        drop(j);
    return code;
}

void
br_sim_fini(br_sim *s)
{
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
    br_code code;

    if (!s->code)
        return br_fail(st, BR_E_FAULT, "no code object is there");
    BR_TRY(br_sim_map(s, &r, st));
    code = dispatch(s, p, st);
    for (size_t k = 0; k < s->regions.n; k++)
        if (s->regions.at[k].addr == PACKET_AT) {
            memmove(s->regions.at + k, s->regions.at + k + 1,
                    (--s->regions.n - k) * sizeof r);
            break;
        }
    s->hit = 0;
    return code;
}
