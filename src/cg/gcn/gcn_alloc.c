/* gcn_alloc.c - registers for vregs: liveness, then first fit over lines.
 *
 *   use of the n-th instruction at 2n, definition at 2n + 1; a register is a
 *   line of bits, one a point, set where it holds something
 *
 * Scalars live along the ways of the wave (heads and stubs too, where other
 * lanes have their turn); vectors along the ways of one lane, since what
 * other lanes do writes only their own part of a register. Vregs are placed in
 * order of their first point, where the one they are copied from or to is if it
 * is free, else in the lowest that is.
 *
 * On gfx11 masks of a few instructions prefer VCC, which short encodings and
 * dual instructions name. On gfx12 scalars prefer pairs that no vector
 * instruction read: what is written to such a pair has to be waited for before
 * it is read (gcn_hazard.c), whoever wrote it; there VCC would be the worst.
 *
 * Where one does not fit, those that are live there longest for what they are
 * used are spilled (gcn_spill.c), as many as are too many there and MORE, and
 * all begins again.
 *
 * Requires  all instructions selected
 * Changes   gm_vreg.phys; with spills instructions and vregs, too
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    uint32_t from, to; /* points, both in */
} span;

typedef struct spans {
    BR_VEC(span) s;
} spans;

typedef struct alloc {
    gm_fn *g;
    size_t words; /* of a set of vregs */
    uint64_t *in, *out, *gen, *kill;
    uint32_t *first; /* point at which a node begins */
    spans *of;       /* by vreg */
    uint64_t *line[2];
    size_t points;           /* words of a line */
    uint32_t n;              /* vregs when it began */
    uint8_t *how;            /* by vreg: HOW_ */
    uint32_t *heir;          /* a vreg that becomes a copy of it; BR_KNONE */
    bool read[GM_SGPRS / 2]; /* a pair: vector instructions read it */
    int round;
    uint32_t failed; /* the vreg without a register; BR_KNONE */
    bool oom;
} alloc;

enum {
    SCALARS = GM_SGPRS + 2, /* VCC, too */
    HOW_READ = 1,           /* vector instructions read it */
    HOW_MASK = 2,           /* a vector instruction writes it */
    FEW = 40,               /* points that a mask may hold VCC for */
    ROUNDS = 100,           /* of spilling */
    MORE = 8 /* registers that a round frees beyond what is needed there,
                   * and as many more in each */
};

static bool
get(const uint64_t *s, uint32_t k)
{
    return s[k / 64] >> k % 64 & 1;
}

static void
put(uint64_t *s, uint32_t k)
{
    s[k / 64] |= 1ull << k % 64;
}

/* ---- liveness ---------------------------------------------------------- */

static void
scan(alloc *a, uint32_t node)
{
    const gm_blk *b = &a->g->blks.at[node];
    uint64_t *gen = a->gen + node * a->words, *kill = a->kill + node * a->words;

    for (size_t k = 0; k < b->ins.n; k++) {
        const gm_ins *i = &b->ins.at[k];

        for (int defs = 0; defs < 2; defs++)
            for (unsigned n = 0; n < i->n_op; n++) {
                bool def;
                uint32_t v = gm_named(i, n, &def);

                if (v == BR_KNONE || def != (bool)defs)
                    continue;
                if ((!def || i->keep) && !get(kill, v))
                    put(gen, v);
                if (def)
                    put(kill, v);
            }
    }
}

static bool
flow_in(alloc *a, uint32_t node)
{
    const gm_blk *b = &a->g->blks.at[node];
    uint64_t *out = a->out + node * a->words, *in = a->in + node * a->words;
    const uint64_t *vec = a->kill + a->g->blks.n * a->words;
    bool grew = false;

    for (int file = 0; file < 2; file++) {
        size_t n = file ? b->lanes.n : b->wave.n;

        for (size_t s = 0; s < n; s++) {
            const uint64_t *to =
                a->in + (file ? b->lanes.at[s] : b->wave.at[s]) * a->words;

            for (size_t w = 0; w < a->words; w++)
                out[w] |= to[w] & (file ? vec[w] : ~vec[w]);
        }
    }
    for (size_t w = 0; w < a->words; w++) {
        uint64_t v = a->gen[node * a->words + w] |
                     (out[w] & ~a->kill[node * a->words + w]);

        grew |= (v & ~in[w]) != 0;
        in[w] |= v;
    }
    return grew;
}

static void
liveness(alloc *a)
{
    uint64_t *vec = a->kill + a->g->blks.n * a->words;
    bool grew = true;

    for (uint32_t v = 0; v < a->g->vregs.n; v++)
        if (a->g->vregs.at[v].file == 'V')
            put(vec, v);
    for (uint32_t b = 0; b < a->g->blks.n; b++)
        scan(a, b);
    while (grew) {
        grew = false;
        for (uint32_t b = (uint32_t)a->g->blks.n; b-- > 0;)
            grew |= flow_in(a, b);
    }
}

/* ---- spans ------------------------------------------------------------- */

static void
add(alloc *a, uint32_t v, uint32_t from, uint32_t to)
{
    spans *s = &a->of[v];
    span x = {from, to};

    if (s->s.n && s->s.at[s->s.n - 1].from <= to + 1 &&
        s->s.at[s->s.n - 1].to + 1 >= from) { /* walked from the end */
        s->s.at[s->s.n - 1].from = BR_MIN(s->s.at[s->s.n - 1].from, from);
        s->s.at[s->s.n - 1].to = BR_MAX(s->s.at[s->s.n - 1].to, to);
        return;
    }
    a->oom |= !br_vec_push(&s->s, x);
}

/* Ends of what is live, walked from the end of a node. */
static void
node_spans(alloc *a, uint32_t node, uint32_t *end)
{
    const gm_blk *b = &a->g->blks.at[node];
    const uint64_t *out = a->out + node * a->words;
    uint32_t at = a->first[node];

    for (uint32_t v = 0; v < a->g->vregs.n; v++)
        end[v] = get(out, v) ? at + 2 * (uint32_t)b->ins.n + 1 : 0;
    for (size_t k = b->ins.n; k-- > 0;) {
        const gm_ins *i = &b->ins.at[k];
        uint32_t point = at + 2 * (uint32_t)k;

        for (int defs = 1; defs >= 0; defs--)
            for (unsigned n = 0; n < i->n_op; n++) {
                bool def;
                uint32_t v = gm_named(i, n, &def);

                if (v == BR_KNONE || def != (bool)defs)
                    continue;
                if (def && !i->keep) {
                    uint32_t from = point + !i->early;

                    add(a, v, from, BR_MAX(end[v], point + 1));
                    end[v] = 0;
                } else if (!end[v]) {
                    end[v] = point + def;
                }
            }
    }
    for (uint32_t v = 0; v < a->g->vregs.n; v++)
        if (end[v])
            add(a, v, at, end[v]);
}

/* ---- lines ------------------------------------------------------------- */

static bool
clear_of(const uint64_t *line, const spans *s)
{
    for (size_t k = 0; k < s->s.n; k++)
        for (uint32_t p = s->s.at[k].from; p <= s->s.at[k].to;) {
            uint64_t w = line[p / 64] >> p % 64;
            uint32_t room = BR_MIN(64 - p % 64, s->s.at[k].to - p + 1);

            if (room < 64)
                w &= (1ull << room) - 1;
            if (w)
                return false;
            p += room;
        }
    return true;
}

static void
take(uint64_t *line, const spans *s)
{
    for (size_t k = 0; k < s->s.n; k++)
        for (uint32_t p = s->s.at[k].from; p <= s->s.at[k].to; p++)
            line[p / 64] |= 1ull << p % 64;
}

static bool
fits(const alloc *a, uint32_t v, unsigned at)
{
    const gm_vreg *r = &a->g->vregs.at[v];
    unsigned most = r->file == 'V' ? GM_VGPRS
                    : at == GM_VCC ? (unsigned)SCALARS
                                   : GM_SGPRS;

    if (at % r->align || at + r->words > most)
        return false;
    for (unsigned w = 0; w < r->words; w++)
        if (!clear_of(a->line[r->file == 'V'] + (at + w) * a->points,
                      &a->of[v]))
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
        take(a->line[r->file == 'V'] + (at + w) * a->points, &a->of[v]);
    if (r->file == 'V' || at != GM_VCC)
        *used = (uint16_t)BR_MAX(*used, at + r->words);
    for (unsigned w = 0; r->file == 'S' && at != GM_VCC && w < r->words; w++)
        a->read[(at + w) / 2] |= (a->how[v] & HOW_READ) != 0;
}

static uint64_t
length(const spans *s)
{
    uint64_t n = 0;

    for (size_t k = 0; k < s->s.n; k++)
        n += s->s.at[k].to - s->s.at[k].from + 1;
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
    for (unsigned at = 0; at < GM_SGPRS; at += r->align)
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

static void
place(alloc *a, uint32_t v)
{
    const gm_vreg *r = &a->g->vregs.at[v];
    unsigned most = r->file == 'V' ? GM_VGPRS : GM_SGPRS;

    if (place_by(a, v, r->hint) || place_by(a, v, a->heir[v]))
        return;
    if (place_well(a, v))
        return;
    for (unsigned at = 0; at < most; at += r->align)
        if (fits(a, v, at)) {
            settle(a, v, at);
            return;
        }
    a->failed = v;
}

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

static void
place_all(alloc *a)
{
    uint32_t n = (uint32_t)a->g->vregs.n, used = 0;
    begin *order = br_try_calloc(n + 1, sizeof *order);

    if (!order) {
        a->oom = true;
        return;
    }
    for (uint32_t v = 0; v < n; v++) {
        if (a->g->vregs.at[v].whole)
            add(a, v, 0, (uint32_t)a->points * 64 - 1);
        if (a->g->vregs.at[v].phys >= 0)
            settle(a, v, (unsigned)a->g->vregs.at[v].phys);
    }
    for (uint32_t v = 0; v < n; v++) {
        const spans *s = &a->of[v];

        if (a->g->vregs.at[v].phys >= 0 || !s->s.n)
            continue;
        order[used++] = (begin){s->s.at[s->s.n - 1].from, v};
    }
    qsort(order, used, sizeof *order, earlier);
    for (uint32_t k = 0; k < used && a->failed == BR_KNONE; k++)
        place(a, order[k].vreg);
    br_free(order);
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

static bool
begin_all(alloc *a)
{
    size_t nodes = a->g->blks.n, n = a->g->vregs.n;
    uint32_t at = 0;

    a->n = (uint32_t)n;
    a->words = (n + 63) / 64;
    if ((double)nodes * (double)a->words * 64 > GM_MAX_BITS) {
        gm_fail(a->g, BR_E_LIMIT, "%zu values in %zu blocks are too many", n,
                nodes);
        return false;
    }
    a->first = br_try_calloc(nodes + 1, sizeof *a->first);
    a->in = br_try_calloc((4 * nodes + 1) * a->words + 1, sizeof *a->in);
    a->of = br_try_calloc(n + 1, sizeof *a->of);
    a->how = br_try_calloc(n + 1, 1);
    a->heir = br_try_calloc(n + 1, sizeof *a->heir);
    if (!a->first || !a->in || !a->of || !a->how || !a->heir)
        return false;
    for (size_t v = 0; v < n; v++)
        a->heir[v] = BR_KNONE;
    for (uint32_t v = 0; v < n; v++)
        if (a->g->vregs.at[v].hint != BR_KNONE)
            a->heir[a->g->vregs.at[v].hint] = v;
    a->out = a->in + nodes * a->words;
    a->gen = a->out + nodes * a->words;
    a->kill = a->gen + nodes * a->words;
    for (uint32_t b = 0; b < nodes; b++) {
        a->first[b] = at;
        at += 2 * (uint32_t)a->g->blks.at[b].ins.n + 2;
    }
    a->points = at / 64 + 1;
    a->line[0] =
        br_try_calloc((SCALARS + GM_VGPRS) * a->points, sizeof *a->line[0]);
    a->line[1] = a->line[0] ? a->line[0] + SCALARS * a->points : NULL;
    return a->line[0] != NULL;
}

/* ---- rounds ------------------------------------------------------------- */

static bool
live_at(const spans *s, uint32_t point)
{
    for (size_t k = 0; k < s->s.n; k++)
        if (s->s.at[k].from <= point && point <= s->s.at[k].to)
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
static void
count_uses(const gm_fn *g, uint32_t *uses)
{
    for (size_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n; k++) {
            const gm_ins *i = &g->blks.at[b].ins.at[k];

            for (unsigned n = 0; n < i->n_op; n++)
                if (i->op[n].kind == GM_VREG)
                    uses[i->op[n].v]++;
        }
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

/* Those that are live where one failed, the best to spill first; *live: words
 * of all that are, whether they may be spilled or not. */
static size_t
choices(const alloc *a, const uint32_t *uses, choice *out, unsigned *live)
{
    const gm_fn *g = a->g;
    const spans *f = &a->of[a->failed];
    uint32_t point = f->s.at[f->s.n - 1].from;
    size_t n = 0;

    *live = 0;
    for (uint32_t v = 0; v < a->n; v++) {
        const gm_vreg *r = &g->vregs.at[v];

        if (r->file != g->vregs.at[a->failed].file ||
            !live_at(&a->of[v], point))
            continue;
        *live += r->words;
        if (!r->fixed && !held(g, v))
            out[n++] = (choice){(double)length(&a->of[v]) / (uses[v] + 1), v};
    }
    qsort(out, n, sizeof *out, better);
    return n;
}

static bool
spill_some(alloc *a)
{
    gm_fn *g = a->g;
    bool lanes = g->vregs.at[a->failed].file == 'V';
    unsigned most = lanes ? GM_VGPRS : GM_SGPRS, live = 0, room = 0, need;
    uint32_t *uses = br_try_calloc(2 * a->n + 1, sizeof *uses);
    choice *c = br_try_calloc(a->n + 1, sizeof *c);
    size_t n = 0, n_c = 0;

    if (!uses || !c) {
        a->oom = true;
    } else {
        count_uses(g, uses);
        n_c = choices(a, uses, c, &live);
    }
    need = (live > most ? live - most : 0) + MORE * (1 + (unsigned)a->round);
    for (; n < n_c && room < need; n++) {
        uses[a->n + n] = c[n].v;
        room += g->vregs.at[c[n].v].words;
    }
    for (uint32_t k = 0; k < a->n; k++)
        if (!held(g, k))
            g->vregs.at[k].phys = GM_NO;
    g->vgprs = g->sgprs = 0;
    if (n)
        (void)gm_spill(g, uses + a->n, n);
    else if (!a->oom)
        gm_fail(g, BR_E_LIMIT, "needs more than %u %s registers at once", most,
                lanes ? "vector" : "scalar");
    br_free(uses);
    br_free(c);
    return n && g->code == BR_OK;
}

/* One attempt; *again: with some vregs less. */
static void
attempt(gm_fn *g, int round, bool *again)
{
    alloc a = {.g = g, .round = round, .failed = BR_KNONE};
    size_t n = g->vregs.n;
    uint32_t *end = br_try_calloc(n + 1, sizeof *end);

    *again = false;
    if (end && begin_all(&a)) {
        look_at_scalars(&a);
        liveness(&a);
        for (uint32_t b = (uint32_t)g->blks.n; b-- > 0;)
            node_spans(&a, b, end);
        if (!a.oom)
            place_all(&a);
        if (!a.oom && a.failed != BR_KNONE)
            *again = spill_some(&a);
    } else if (g->code == BR_OK) {
        a.oom = true;
    }
    if (a.oom)
        gm_oom(g);
    for (size_t v = 0; a.of && v < n; v++)
        br_vec_fini(&a.of[v].s);
    br_free(a.of);
    br_free(a.first);
    br_free(a.how);
    br_free(a.heir);
    br_free(a.in);
    br_free(a.line[0]);
    br_free(end);
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
