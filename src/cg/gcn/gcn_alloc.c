/* gcn_alloc.c - registers for vregs: first fit over lines.
 *
 *   a register is a line of bits, one a point (gcn_live.c), set where it holds
 *   something
 *
 * Vregs are placed in order of their first point, where the one they are copied
 * from or to is if it is free, else in the lowest that is.
 *
 * On gfx11 masks of a few instructions prefer VCC, which short encodings and
 * dual instructions name. On gfx12 scalars prefer pairs that no vector
 * instruction read: what is written to such a pair has to be waited for before
 * it is read (gcn_hazard.c), whoever wrote it; there VCC would be the worst.
 *
 * Where one does not fit, those that are live there longest for what they are
 * used are evicted, as many as are too many there and MORE, and the rest is
 * placed. Who was evicted is spilled (gcn_spill.c), and all begins again, for
 * what spilling loads and stores needs registers, too. Each round frees more; in
 * the end nothing but operands of one instruction is left.
 *
 * Requires  all instructions selected
 * Changes   gm_vreg.phys; with spills instructions and vregs, too
 * Tried     a round for each vreg without a register: kernels with many places
 *           of need ran out of rounds (decision 0046)
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <stdlib.h>
#include <string.h>

typedef struct alloc {
    gm_fn *g;
    gm_spans *of; /* by vreg */
    uint64_t *line[2];
    size_t words;            /* of a line */
    uint32_t n;              /* vregs when it began */
    uint8_t *how;            /* by vreg: HOW_ */
    uint32_t *heir;          /* a vreg that becomes a copy of it; BR_KNONE */
    uint32_t *uses;          /* by vreg, how often it is named; when needed */
    bool read[GM_SGPRS / 2]; /* a pair: vector instructions read it */
    int round;
    BR_VEC(uint32_t) placed;   /* vregs that may be live at the point reached */
    BR_VEC(gm_victim) evicted; /* in the order of their first points */
    char full; /* file of one without a register where nothing can be evicted */
    bool oom;
} alloc;

enum {
    SCALARS = GM_SGPRS + 2, /* VCC, too */
    HOW_READ = 1,           /* vector instructions read it */
    HOW_MASK = 2,           /* a vector instruction writes it */
    HOW_OUT = 4,            /* evicted */
    FEW = 40,               /* points that a mask may hold VCC for */
    ROUNDS = 100,           /* of spilling; more than 20 have not been seen */
    MORE = 8 /* registers that a round frees beyond what is needed there,
                   * and as many more in each */
};

/* Registers of a file that code may name, VCC aside. */
static unsigned
most_of(const gm_fn *g, char file)
{
    const br_gcn_cpu *cpu = g->isa->cpu;

    if (file == 'V')
        return cpu->vgprs ? cpu->vgprs : GM_VGPRS;
    return cpu->sgprs ? cpu->sgprs : GM_SGPRS;
}

/* ---- lines ------------------------------------------------------------- */

static bool
clear_of(const uint64_t *line, const gm_spans *s)
{
    for (size_t k = 0; k < s->n; k++)
        for (uint32_t p = s->at[k].from; p <= s->at[k].to;) {
            uint64_t w = line[p / 64] >> p % 64;
            uint32_t room = BR_MIN(64 - p % 64, s->at[k].to - p + 1);

            if (room < 64)
                w &= (1ull << room) - 1;
            if (w)
                return false;
            p += room;
        }
    return true;
}

/* Bits of all points of a vreg become 1, or 0. */
static void
mark(uint64_t *line, const gm_spans *s, bool taken)
{
    for (size_t k = 0; k < s->n; k++)
        for (uint32_t p = s->at[k].from; p <= s->at[k].to; p++)
            if (taken)
                line[p / 64] |= 1ull << p % 64;
            else
                line[p / 64] &= ~(1ull << p % 64);
}

static bool
fits(const alloc *a, uint32_t v, unsigned at)
{
    const gm_vreg *r = &a->g->vregs.at[v];
    unsigned most = r->file == 'S' && at == GM_VCC ? (unsigned)SCALARS
                                                   : most_of(a->g, r->file);

    if (at % r->align || at + r->words > most)
        return false;
    for (unsigned w = 0; w < r->words; w++)
        if (!clear_of(a->line[r->file == 'V'] + (at + w) * a->words, &a->of[v]))
            return false;
    return true;
}

static void
settle(alloc *a, uint32_t v, unsigned at)
{
    gm_vreg *r = &a->g->vregs.at[v];
    uint16_t *used = r->file == 'V' ? &a->g->vgprs : &a->g->sgprs;

    r->phys = (int16_t)at;
    for (unsigned w = 0; w < r->words; w++)
        mark(a->line[r->file == 'V'] + (at + w) * a->words, &a->of[v], true);
    if (r->file == 'V' || at != GM_VCC)
        *used = (uint16_t)BR_MAX(*used, at + r->words);
    for (unsigned w = 0; r->file == 'S' && at != GM_VCC && w < r->words; w++)
        a->read[(at + w) / 2] |= (a->how[v] & HOW_READ) != 0;
}

static uint64_t
length(const gm_spans *s)
{
    uint64_t n = 0;

    for (size_t k = 0; k < s->n; k++)
        n += s->at[k].to - s->at[k].from + 1;
    return n;
}

/* Where a scalar would be best, if that is free. */
static bool
place_well(alloc *a, uint32_t v)
{
    const gm_vreg *r = &a->g->vregs.at[v];

    if (r->file == 'V')
        return false;
    if (a->g->isa->cpu->gen == 11) {
        if (a->how[v] & HOW_MASK && r->words == br_gcn_mask_words(a->g->isa) &&
            length(&a->of[v]) <= FEW && fits(a, v, GM_VCC)) {
            settle(a, v, GM_VCC);
            return true;
        }
        return false;
    }
    for (unsigned at = 0; at < most_of(a->g, 'S'); at += r->align)
        if (!a->read[at / 2] && !a->read[(at + r->words - 1u) / 2] &&
            fits(a, v, at)) {
            settle(a, v, at);
            return true;
        }
    return false;
}

/* Where another one is. */
static bool
place_by(alloc *a, uint32_t v, uint32_t other)
{
    const gm_vreg *r = a->g->vregs.at;

    if (other == BR_KNONE || r[other].file != r[v].file || r[other].phys < 0 ||
        !fits(a, v, (unsigned)r[other].phys))
        return false;
    settle(a, v, (unsigned)r[other].phys);
    return true;
}

/* Whether there was a register for it. */
static bool
place(alloc *a, uint32_t v)
{
    const gm_vreg *r = &a->g->vregs.at[v];

    if (place_by(a, v, r->hint) || place_by(a, v, a->heir[v]))
        return true;
    if (place_well(a, v))
        return true;
    for (unsigned at = 0; at < most_of(a->g, r->file); at += r->align)
        if (fits(a, v, at)) {
            settle(a, v, at);
            return true;
        }
    return false;
}

/* ---- too many ---------------------------------------------------------- */

static uint32_t
begins(const alloc *a, uint32_t v)
{
    return a->of[v].at[a->of[v].n - 1].from; /* the last is the first */
}

static uint32_t
ends(const alloc *a, uint32_t v)
{
    return a->of[v].at[0].to;
}

/* Whether two are live at once somewhere. */
static bool
meet(const gm_spans *x, const gm_spans *y)
{
    size_t i = x->n, k = y->n;

    while (i && k) {
        const gm_span *p = &x->at[i - 1], *q = &y->at[k - 1];

        if (p->from <= q->to && q->from <= p->to)
            return true;
        if (p->to < q->to)
            i--;
        else
            k--;
    }
    return false;
}

static bool
live_at(const gm_spans *s, uint32_t point)
{
    for (size_t k = s->n; k-- > 0;)
        if (s->at[k].from <= point && point <= s->at[k].to)
            return true;
    return false;
}

/* Filled by the hardware. */
static bool
held(const gm_fn *g, uint32_t v)
{
    return v == g->kernarg || v == g->tid || v == g->group[0] ||
           v == g->group[1] || v == g->group[2];
}

/* How often each vreg is named. */
static bool
count_uses(alloc *a)
{
    const gm_fn *g = a->g;

    if (a->uses)
        return true;
    a->uses = br_try_calloc(a->n + 1, sizeof *a->uses);
    if (!a->uses)
        return false;
    for (size_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n; k++) {
            const gm_ins *i = &g->blks.at[b].ins.at[k];

            for (unsigned n = 0; n < i->n_op; n++)
                if (i->op[n].kind == GM_VREG)
                    a->uses[i->op[n].v]++;
        }
    return true;
}

typedef struct choice {
    double gain; /* points that it is live, for each use */
    uint32_t v;
} choice;

static int
better(const void *p, const void *q)
{
    const choice *a = p, *b = q;

    return a->gain != b->gain ? (a->gain < b->gain) - (a->gain > b->gain)
                              : (a->v > b->v) - (a->v < b->v);
}

static void
evict(alloc *a, uint32_t v)
{
    gm_vreg *r = &a->g->vregs.at[v];
    gm_victim x = {v, begins(a, v), ends(a, v)};

    for (unsigned w = 0; r->phys >= 0 && w < r->words; w++)
        mark(a->line[r->file == 'V'] + ((unsigned)r->phys + w) * a->words,
             &a->of[v], false);
    r->phys = GM_NO;
    a->how[v] |= HOW_OUT;
    a->oom |= !br_vec_push(&a->evicted, x);
}

/* Those that are live where v begins and may be evicted, the best first; *live:
 * words of all that are, whether they may be or not. next: vregs that are still
 * to be placed; v is the first. */
static size_t
choices(alloc *a, const uint32_t *next, size_t n_next, choice *out,
        unsigned *live)
{
    const gm_fn *g = a->g;
    const uint32_t v = next[0], point = begins(a, v);
    size_t n = 0, stay = 0;

    for (size_t k = 0; k < a->placed.n; k++) {
        uint32_t x = a->placed.at[k];

        if (!(a->how[x] & HOW_OUT) && ends(a, x) >= point)
            a->placed.at[stay++] = x;
    }
    a->placed.n = stay;
    *live = 0;
    for (size_t k = 0; k < stay + n_next; k++) {
        uint32_t x = k < stay ? a->placed.at[k] : next[k - stay];
        const gm_vreg *r = &g->vregs.at[x];

        if (k >= stay && begins(a, x) != point)
            break;
        if (r->file != g->vregs.at[v].file || a->how[x] & HOW_OUT ||
            !live_at(&a->of[x], point))
            continue;
        *live += r->words;
        if (!r->fixed && !held(g, x))
            out[n++] =
                (choice){(double)length(&a->of[x]) / (a->uses[x] + 1), x};
    }
    qsort(out, n, sizeof *out, better);
    return n;
}

/* Registers for the first of those that are still to be placed, or it is evicted
 * itself. */
static void
make_room(alloc *a, const uint32_t *next, size_t n_next)
{
    const uint32_t v = next[0];
    const gm_vreg *r = &a->g->vregs.at[v];
    unsigned most = most_of(a->g, r->file), live, room = 0, need;
    choice *c = br_try_calloc(a->placed.n + n_next + 1, sizeof *c);
    size_t n;

    if (!c || !count_uses(a)) {
        a->oom = true;
        br_free(c);
        return;
    }
    n = choices(a, next, n_next, c, &live);
    need = (live > most ? live - most : 0) + MORE * (1 + (unsigned)a->round);
    for (size_t k = 0; k < n && room < need; k++) {
        evict(a, c[k].v);
        room += a->g->vregs.at[c[k].v].words;
    }
    if (!(a->how[v] & HOW_OUT) && !place(a, v)) {
        if (!r->fixed) { /* those in its way begin to live again later */
            evict(a, v);
        } else {
            for (size_t k = 0; k < a->placed.n; k++) {
                uint32_t x = a->placed.at[k];
                const gm_vreg *y = &a->g->vregs.at[x];

                if (y->file == r->file && !y->fixed && !held(a->g, x) &&
                    y->phys >= 0 && meet(&a->of[x], &a->of[v]))
                    evict(a, x);
            }
            a->full = place(a, v) ? 0 : r->file;
        }
    }
    br_free(c);
}

/* ---- all --------------------------------------------------------------- */

typedef struct begin {
    uint32_t at, vreg;
} begin;

static int
earlier(const void *p, const void *q)
{
    const begin *a = p, *b = q;

    return a->at != b->at ? (a->at > b->at) - (a->at < b->at)
                          : (a->vreg > b->vreg) - (a->vreg < b->vreg);
}

/* Vregs in the order in which they are placed; the others are. */
static size_t
order_of(alloc *a, begin *order, uint32_t *next)
{
    size_t n = 0;

    for (uint32_t v = 0; v < a->n; v++) {
        const gm_vreg *r = &a->g->vregs.at[v];

        if (r->phys >= 0)
            settle(a, v, (unsigned)r->phys);
        if (!a->of[v].n)
            continue;
        if (r->phys >= 0)
            a->oom |= !br_vec_push(&a->placed, v);
        else
            order[n++] = (begin){begins(a, v), v};
    }
    qsort(order, n, sizeof *order, earlier);
    for (size_t k = 0; k < n; k++)
        next[k] = order[k].vreg;
    return n;
}

static void
place_all(alloc *a)
{
    begin *order = br_try_calloc(a->n + 1, sizeof *order);
    uint32_t *next = br_try_calloc(a->n + 1, sizeof *next);
    size_t n = 0;

    if (order && next)
        n = order_of(a, order, next);
    else
        a->oom = true;
    for (size_t k = 0; k < n && !a->full && !a->oom; k++) {
        if (a->how[next[k]] & HOW_OUT)
            continue;
        if (!place(a, next[k]))
            make_room(a, next + k, n - k);
        if (a->g->vregs.at[next[k]].phys >= 0)
            a->oom |= !br_vec_push(&a->placed, next[k]);
    }
    br_free(order);
    br_free(next);
}

/* What vector instructions do with scalars. Who names VCC has it for itself. */
static void
look_at_scalars(alloc *a)
{
    const gm_fn *g = a->g;
    bool vcc_taken = false;

    for (size_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n; k++) {
            const gm_ins *i = &g->blks.at[b].ins.at[k];
            bool vec = i->row->name[0] == 'v';

            vcc_taken |= strncmp(i->row->name, "v_div_fmas", 10) == 0;
            for (unsigned n = 0; n < i->n_op; n++) {
                bool def;
                uint32_t v = gm_named(i, n, &def);

                vcc_taken |= i->op[n].kind == GM_CODE && i->op[n].v == GM_VCC;
                if (v != BR_KNONE && vec)
                    a->how[v] |= def ? HOW_MASK : HOW_READ;
            }
        }
    for (uint32_t v = 0; vcc_taken && v < a->n; v++)
        a->how[v] &= (uint8_t)~HOW_MASK;
}

/* ---- rounds ------------------------------------------------------------ */

static bool
begin_all(alloc *a)
{
    size_t n = a->g->vregs.n;
    uint32_t points;

    a->n = (uint32_t)n;
    a->of = br_try_calloc(n + 1, sizeof *a->of);
    a->how = br_try_calloc(n + 1, 1);
    a->heir = br_try_calloc(n + 1, sizeof *a->heir);
    if (!a->of || !a->how || !a->heir) {
        a->oom = true;
        return false;
    }
    memset(a->heir, 0xff, n * sizeof *a->heir);
    for (uint32_t v = 0; v < n; v++)
        if (a->g->vregs.at[v].hint != BR_KNONE)
            a->heir[a->g->vregs.at[v].hint] = v;
    if (!gm_live(a->g, a->of, &points))
        return false;
    a->words = points / 64 + 1;
    for (size_t v = 0; v < n; v++)
        if (a->g->vregs.at[v].whole) {
            gm_span all = {0, (uint32_t)a->words * 64 - 1};

            a->of[v].n = 0;
            a->oom |= !br_vec_push(&a->of[v], all);
        }
    a->line[0] =
        br_try_calloc((SCALARS + GM_VGPRS) * a->words, sizeof *a->line[0]);
    a->line[1] = a->line[0] ? a->line[0] + SCALARS * a->words : NULL;
    a->oom |= !a->line[0];
    look_at_scalars(a);
    return !a->oom;
}

static void
fini(alloc *a)
{
    for (size_t v = 0; a->of && v < a->n; v++)
        br_vec_fini(&a->of[v]);
    br_vec_fini(&a->placed);
    br_vec_fini(&a->evicted);
    br_free(a->of);
    br_free(a->how);
    br_free(a->heir);
    br_free(a->uses);
    br_free(a->line[0]);
}

/* Nothing that is left to spill frees a register of this file. */
static void
fail_full(gm_fn *g, char file)
{
    if (file == 'V' && g->keeps.n)
        gm_fail(g, BR_E_LIMIT,
                "scalars: %u words that have no register take %zu of %u vector "
                "registers, %u each, and an instruction needs the others: "
                "fewer values at once that a wave's lanes share",
                g->keep_used, g->keeps.n, most_of(g, 'V'),
                br_gcn_lanes(g->isa));
    else
        gm_fail(g, BR_E_LIMIT,
                "an instruction needs more than %u %s registers at once",
                most_of(g, file), file == 'V' ? "vector" : "scalar");
}

/* One attempt; *again: with some vregs less. */
static void
attempt(gm_fn *g, int round, bool *again)
{
    alloc a = {.g = g, .round = round};

    *again = false;
    if (begin_all(&a)) {
        place_all(&a);
        if (a.full && !a.oom)
            fail_full(g, a.full);
        *again = a.evicted.n && !a.oom && g->code == BR_OK;
    }
    if (a.oom)
        gm_oom(g);
    if (*again) {
        for (uint32_t v = 0; v < a.n; v++)
            if (!held(g, v))
                g->vregs.at[v].phys = GM_NO;
        g->vgprs = g->sgprs = 0;
        (void)gm_spill(g, a.evicted.at, a.evicted.n);
    }
    fini(&a);
}

bool
gm_alloc(gm_fn *g)
{
    bool again = true;

    for (int round = 0; again && g->code == BR_OK; round++) {
        if (round == ROUNDS)
            gm_fail(g, BR_E_LIMIT, "values are too many for the registers");
        else
            attempt(g, round, &again);
    }
    if (g->spill_bytes) {
        g->scratch_bytes = (g->scratch_bytes + g->spill_bytes + 15) & ~15u;
        if (g->scratch_bytes > GM_MAX_SCRATCH)
            gm_fail(g, BR_E_LIMIT, "%u bytes of scratch; %d are there",
                    g->scratch_bytes, GM_MAX_SCRATCH);
    }
    return g->code == BR_OK;
}
