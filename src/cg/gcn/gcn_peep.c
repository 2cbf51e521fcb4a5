/* gcn_peep.c - fewer instructions than selection made, before registers.
 *
 *   v_mov b, a         uses of b become uses of a, if both are written once
 *   v_lshlrev t, 2, a  v_add d, t, b     ->  v_lshl_add d, a, 2, b
 *   v_mad_u64_u32 t, a, 4, 0  v_add_co, v_add_co_ci d, t, b
 *                                        ->  v_mad_u64_u32 d, a, 4, b
 *   s_cmp, s_cselect c, -1, 0, s_cmp_lg c, 0   ->  s_cmp
 *   what nobody reads goes
 *
 * A vreg that one instruction writes is a value: what holds for it holds
 * wherever it may be read. An instruction that is taken into a later one has
 * that one use, stands in the same node, and nothing between writes to what it
 * reads or to EXEC.
 *
 * Requires  all instructions selected, no registers yet
 * Changes   instructions; vregs stay, some unused
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"
#include "cg/gcn/isa.h"

#include <string.h>

enum { WORDS = 8 };

/* Of a vreg: how often its words are written and it is read. */
typedef struct about {
    uint8_t defs[WORDS];
    uint32_t uses;
    gm_op from[WORDS]; /* what a word is a copy of; kind 0: none */
    bool other;        /* some word is no copy, or not the only one */
    bool high;         /* more than its first word is read */
    uint32_t blk, at;  /* of its first writer */
} about;

typedef struct peep {
    gm_fn *g;
    about *of;
    bool parts; /* lanes part somewhere */
} peep;

static bool
is(const gm_ins *i, const char *name)
{
    return i->row && strncmp(i->row->name, name, strlen(name)) == 0;
}

static bool
same_op(gm_op a, gm_op b)
{
    return a.kind == b.kind && a.v == b.v && a.sub == b.sub;
}

/* ---- what there is -------------------------------------------------------- */

static bool
is_copy(const peep *p, const gm_ins *i)
{
    const gm_op *d = &i->op[0], *s = &i->op[1];
    const gm_vreg *v = p->g->vregs.at;

    return (is(i, "v_mov_b32") || is(i, "s_mov_b32")) && i->n_op == 2 &&
           d->kind == GM_VREG && !s->neg && !s->abs && !i->n_set && !i->dpp &&
           (s->kind == GM_IMM ||
            (s->kind == GM_VREG && v[d->v].file == v[s->v].file &&
             d->v != s->v));
}

static void
count(peep *p)
{
    gm_fn *g = p->g;

    memset(p->of, 0, g->vregs.n * sizeof *p->of);
    for (size_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n; k++) {
            const gm_ins *i = &g->blks.at[b].ins.at[k];

            for (unsigned n = 0; n < i->n_op; n++) {
                bool def;
                uint32_t v = gm_named(i, n, &def);
                unsigned w = v == BR_KNONE ? 0 : i->op[n].sub;
                about *x = &p->of[v == BR_KNONE ? 0 : v];

                if (v == BR_KNONE)
                    continue;
                x->uses += !def;
                x->high |= !def && w + gm_width(g, i, n) > 1;
                for (unsigned e = w + gm_width(g, i, n); def && w < e; w++)
                    if (w < WORDS && x->defs[w] < 2)
                        x->defs[w]++;
                if (def && x->defs[i->op[n].sub] == 1 && !i->keep) {
                    x->blk = (uint32_t)b;
                    x->at = (uint32_t)k;
                }
                if (def && is_copy(p, i))
                    x->from[i->op[n].sub] = i->op[1];
                else if (def)
                    x->other = true;
            }
        }
}

/* Whether a word is written once, by the program or the hardware. */
static bool
is_value(const peep *p, uint32_t v, unsigned sub)
{
    const gm_vreg *r = &p->g->vregs.at[v];

    return sub < WORDS && p->of[v].defs[sub] == (r->phys == GM_NO ? 1 : 0);
}

/* Whether a scalar that is written once holds that wherever it may be read:
 * where lanes take turns it may be another one's by then, but of the first
 * place. */
static bool
lasts(const peep *p, uint32_t v)
{
    return !p->parts || p->g->vregs.at[v].phys != GM_NO ||
           p->of[v].blk == GM_NODE(0, GM_BODY);
}

/* ---- copies --------------------------------------------------------------- */

/* The original of n words from a copy's on; false: they are no copies, or of
 * words that do not lie together. */
static bool
original(const peep *p, const gm_op *o, unsigned n, gm_op *out)
{
    const about *x = &p->of[o->v];
    const gm_vreg *v = p->g->vregs.at;

    for (unsigned w = 0; w < n; w++) {
        unsigned at = o->sub + w;
        gm_op f;

        if (at >= WORDS || x->defs[at] != 1 || !x->from[at].kind || x->other)
            return false;
        f = x->from[at];
        if (f.kind != GM_VREG || !is_value(p, f.v, f.sub) ||
            (w && f.v != out->v) || (w && f.sub != out->sub + w))
            return false;
        if (!w)
            *out = f;
    }
    if (v[o->v].file == 'S' && !lasts(p, out->v))
        return false;
    if (v[o->v].file == 'S' && n > 1 &&
        (out->sub % (n > 2 ? 4 : 2) || v[out->v].align < n))
        return false;
    out->neg = o->neg;
    out->abs = o->abs;
    return true;
}

/* Whether words of an operand are a small constant that its row takes. */
static bool
is_small_constant(const peep *p, const gm_ins *i, unsigned n, gm_op *out)
{
    const gm_op *o = &i->op[n];
    const about *x = &p->of[o->v];
    const br_gcn_opnd *at = i->row->o;
    unsigned words = gm_width(p->g, i, n), k = n;

    for (; at->kind != BR_GK_END; at++)
        if (gm_counts(at) && k-- == 0)
            break;
    if (x->other || words > 2 || o->neg || o->abs ||
        !(br_gcn_kinds[at->kind].allow & BR_A_CONST) ||
        i->row->fmt == BR_FMT_VOP3P)
        return false;
    for (unsigned w = 0; w < words; w++)
        if (o->sub + w >= WORDS || x->defs[o->sub + w] != 1 ||
            x->from[o->sub + w].kind != GM_IMM ||
            x->from[o->sub + w].v > (w ? 0u : 64u))
            return false;
    *out = x->from[o->sub];
    return true;
}

static bool
propagate(peep *p)
{
    gm_fn *g = p->g;
    bool change = false;

    for (size_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n; k++) {
            gm_ins *i = &g->blks.at[b].ins.at[k];

            for (unsigned n = 0; n < i->n_op && !i->lanes; n++) {
                bool def;
                gm_op o;

                if (gm_named(i, n, &def) == BR_KNONE || def ||
                    (!original(p, &i->op[n], gm_width(g, i, n), &o) &&
                     (i->dpp || !is_small_constant(p, i, n, &o))))
                    continue;
                i->op[n] = o;
                change = true;
            }
        }
    return change;
}

/* ---- what nobody reads ---------------------------------------------------- */

static bool
is_dead(const peep *p, const gm_ins *i)
{
    bool any = false;

    if (!(is(i, "v_") || is(i, "s_mov_b")) || is(i, "v_cmpx") ||
        is(i, "v_nop") || i->target != GM_NO)
        return false;
    for (unsigned n = 0; n < i->n_op; n++) {
        bool def;
        uint32_t v = gm_named(i, n, &def);

        if (!def)
            continue;
        if (v == BR_KNONE ? i->op[n].v != GM_NULL : p->of[v].uses != 0)
            return false;
        any |= v != BR_KNONE;
    }
    return any;
}

static bool
sweep(peep *p)
{
    gm_fn *g = p->g;
    bool change = false;

    for (size_t b = 0; b < g->blks.n; b++) {
        gm_blk *l = &g->blks.at[b];
        size_t to = 0;

        for (size_t k = 0; k < l->ins.n; k++)
            if (!is_dead(p, &l->ins.at[k]) && l->ins.at[k].row)
                l->ins.at[to++] = l->ins.at[k];
        change |= to != l->ins.n;
        l->ins.n = to;
    }
    return change;
}

/* ---- two become one ------------------------------------------------------- */

/* Whether nothing from one place to another writes what `i` reads, or EXEC. */
static bool
stays(const gm_blk *b, size_t from, size_t to)
{
    const gm_ins *i = &b->ins.at[from];

    for (size_t k = from + 1; k < to; k++) {
        const gm_ins *x = &b->ins.at[k];

        for (unsigned n = 0; x->row && n < x->n_op; n++) {
            bool def;

            (void)gm_named(x, n, &def);
            if (def && x->op[n].kind == GM_CODE && x->op[n].v == GM_EXEC)
                return false;
            for (unsigned a = 0; def && a < i->n_op; a++)
                if (x->op[n].kind == GM_VREG && i->op[a].kind == GM_VREG &&
                    x->op[n].v == i->op[a].v)
                    return false;
        }
    }
    return true;
}

static bool
is_plain(const gm_ins *i)
{
    for (unsigned n = 0; n < i->n_op; n++)
        if (i->op[n].neg || i->op[n].abs)
            return false;
    return !i->n_set && !i->keep && !i->lanes;
}

/* The only writer of a vector that an operand names and that is read once,
 * before `at` in the node; -1: there is none that can be moved. */
static int64_t
writer(const peep *p, const gm_blk *b, size_t at, const gm_op *o)
{
    const about *x = &p->of[o->v];

    if (o->kind != GM_VREG || o->neg || o->abs || x->uses != 1 ||
        p->g->vregs.at[o->v].file != 'V' || p->g->vregs.at[o->v].words != 1 ||
        x->defs[0] != 1)
        return -1;
    for (size_t k = at; k-- > 0;) {
        const gm_ins *i = &b->ins.at[k];

        if (i->row && i->n_op && i->op[0].kind == GM_VREG && i->op[0].v == o->v)
            return is_plain(i) && stays(b, k, at) ? (int64_t)k : -1;
    }
    return -1;
}

/* Whether three sources are what one instruction may read: two scalars and
 * literals at most. */
static bool
bus_allows(const peep *p, const gm_op *s, unsigned n)
{
    gm_op seen[4];
    unsigned m = 0, literals = 0;

    for (unsigned k = 0; k < n; k++) {
        bool lit =
            s[k].kind == GM_IMM && !(s[k].v <= 64 || s[k].v >= (uint32_t)-16);
        bool again = false;

        if (!lit &&
            (s[k].kind == GM_IMM ||
             (s[k].kind == GM_VREG && p->g->vregs.at[s[k].v].file == 'V')))
            continue;
        for (unsigned j = 0; j < m; j++)
            again |= same_op(seen[j], s[k]);
        literals += lit && !again;
        if (!again)
            seen[m++] = s[k];
    }
    return m <= 2 && literals <= 1;
}

/* name, the instruction taken in, and the new one: its sources in terms of x y,
 * the first's, and o, the second's other one. */
static const struct {
    const char *second, *first, *both;
    char order[4];
    bool left; /* only the second's last source is looked at */
} pairs[] = {
    {"v_add_nc_u32", "v_lshlrev_b32", "v_lshl_add_u32", "yxo", false},
    {"v_add_nc_u32", "v_add_nc_u32", "v_add3_u32", "xyo", false},
    {"v_add_nc_u32", "v_xor_b32", "v_xad_u32", "xyo", false},
    {"v_or_b32", "v_lshlrev_b32", "v_lshl_or_b32", "yxo", false},
    {"v_or_b32", "v_and_b32", "v_and_or_b32", "xyo", false},
    {"v_or_b32", "v_or_b32", "v_or3_b32", "xyo", false},
    {"v_xor_b32", "v_xor_b32", "v_xor3_b32", "xyo", false},
    {"v_lshlrev_b32", "v_add_nc_u32", "v_add_lshl_u32", "xyo", true},
};

static bool
named_so(const gm_ins *i, const char *name)
{
    size_t n = strlen(name);

    return is(i, name) &&
           (!i->row->name[n] || strcmp(i->row->name + n, "_e64") == 0);
}

/* i is that row of three sources now, unless there is none, or the scalars of
 * them are too many for one instruction. */
static bool
becomes(peep *p, gm_ins *i, const char *name, const gm_op s[3])
{
    const br_gcn_row *row = bus_allows(p, s, 3) ? gm_row(p->g, name, 4) : NULL;

    if (!row)
        return false;
    i->row = row;
    memcpy(i->op + 1, s, 3 * sizeof *s);
    i->n_op = 4;
    return true;
}

static bool
take_in(peep *p, gm_blk *b, size_t at, size_t first, unsigned nth, size_t pair)
{
    gm_ins *i = &b->ins.at[at], *f = &b->ins.at[first];
    gm_op s[3];

    for (unsigned k = 0; k < 3; k++)
        s[k] = pairs[pair].order[k] == 'x'   ? f->op[1]
               : pairs[pair].order[k] == 'y' ? f->op[2]
                                             : i->op[3 - nth];
    if (!becomes(p, i, pairs[pair].both, s))
        return false;
    f->row = NULL;
    return true;
}

static bool
join_pair(peep *p, gm_blk *b, size_t at)
{
    const gm_ins *i = &b->ins.at[at];

    if (i->n_op != 3 || !is_plain(i))
        return false;
    for (size_t k = 0; k < BR_COUNT(pairs); k++) {
        if (!named_so(i, pairs[k].second))
            continue;
        for (unsigned n = pairs[k].left ? 2 : 1; n < 3; n++) {
            int64_t f = writer(p, b, at, &i->op[n]);

            if (f >= 0 && named_so(&b->ins.at[f], pairs[k].first) &&
                take_in(p, b, at, (size_t)f, n, k))
                return true;
        }
    }
    return false;
}

static bool
is_mad(const gm_ins *i)
{
    return named_so(i, "v_mad_u64_u32") || named_so(i, "v_mad_co_u64_u32");
}

/* Sources of a product of 32 bits by 32, or a shift of 32 bits, to 64 that is
 * all of a vreg and can be done again wherever that is read. */
static bool
product(const peep *p, const gm_op *o, gm_op s[2])
{
    const about *x = &p->of[o->v];
    const gm_ins *i;

    if (o->kind != GM_VREG || o->sub || p->g->vregs.at[o->v].words != 2 ||
        p->g->vregs.at[o->v].file != 'V' || x->defs[0] != 1 || x->defs[1] != 1)
        return false;
    i = &p->g->blks.at[x->blk].ins.at[x->at];
    if (!i->row || i->op[0].kind != GM_VREG || i->op[0].v != o->v ||
        !is_plain(i))
        return false;
    if (is_mad(i) && i->op[4].kind == GM_IMM && !i->op[4].v) {
        s[0] = i->op[2];
        s[1] = i->op[3];
    } else if (named_so(i, "v_lshlrev_b64") && i->op[1].kind == GM_IMM &&
               i->op[1].v < 32 && i->op[2].kind == GM_VREG && !i->op[2].sub &&
               p->of[i->op[2].v].defs[1] == 1 &&
               p->of[i->op[2].v].from[1].kind == GM_IMM &&
               !p->of[i->op[2].v].from[1].v) {
        s[0] = i->op[2];
        s[1] = gm_imm(1u << i->op[1].v);
    } else {
        return false;
    }
    for (int k = 0; k < 2; k++)
        if (s[k].kind != GM_IMM &&
            (s[k].kind != GM_VREG || !is_value(p, s[k].v, s[k].sub) ||
             (p->g->vregs.at[s[k].v].file == 'S' && !lasts(p, s[k].v))))
            return false;
    return true;
}

/* A product of 64 bits and a sum: the addend goes to the product. `at` is
 * v_add_co_u32 d.l, c, x.l, y.l, behind it v_add_co_ci_u32 d.h, null, ... */
static bool
join_wide(peep *p, gm_blk *b, size_t at)
{
    gm_ins *lo = &b->ins.at[at], *hi = lo + 1;

    if (at + 1 >= b->ins.n || !hi->row || !named_so(lo, "v_add_co_u32") ||
        !named_so(hi, "v_add_co_ci_u32") || !is_plain(lo) || hi->n_op != 5 ||
        lo->op[0].kind != GM_VREG || lo->op[0].v != hi->op[0].v ||
        lo->op[0].sub || !same_op(lo->op[1], hi->op[4]) ||
        lo->op[1].kind != GM_VREG || p->of[lo->op[1].v].uses != 1 ||
        hi->op[1].kind != GM_CODE || hi->op[1].v != GM_NULL)
        return false;
    for (unsigned n = 2; n < 4; n++) {
        gm_op other = lo->op[5 - n], s[3];

        if (!product(p, &lo->op[n], s) || hi->op[n].kind != GM_VREG ||
            hi->op[n].v != lo->op[n].v || hi->op[n].sub != 1 ||
            other.kind != GM_VREG || other.sub % 2 ||
            hi->op[5 - n].kind != GM_VREG || hi->op[5 - n].v != other.v ||
            hi->op[5 - n].sub != other.sub + 1)
            continue;
        s[2] = other;
        if (!bus_allows(p, s, 3))
            continue;
        lo->row = gm_row(p->g, "v_mad_u64_u32", 5);
        lo->op[1] = gm_code(GM_NULL);
        memcpy(lo->op + 2, s, sizeof s);
        lo->n_op = 5;
        lo->early = true;
        hi->row = NULL;
        return lo->row != NULL;
    }
    return false;
}

/* Of a product of 64 bits only the low word is read: a shift where the factor
 * is a power of two. */
static bool
narrow(peep *p, gm_ins *i)
{
    const gm_op *c = &i->op[4];
    gm_op s[3];

    if (!is_mad(i) || i->op[0].kind != GM_VREG || i->op[0].sub ||
        p->of[i->op[0].v].high || i->op[1].kind != GM_CODE ||
        i->op[1].v != GM_NULL || i->op[3].kind != GM_IMM || !i->op[3].v ||
        i->op[3].v & (i->op[3].v - 1))
        return false;
    s[0] = i->op[2];
    s[1] = gm_imm((uint32_t)__builtin_ctz(i->op[3].v));
    s[2] = *c;
    if (c->kind == GM_IMM && c->v == 0) {
        i->row = gm_row(p->g, "v_lshlrev_b32", 3);
        i->op[1] = s[1];
        i->op[2] = s[0];
        i->n_op = 3;
    } else if (!becomes(p, i, "v_lshl_add_u32", s)) {
        return false;
    }
    i->early = false;
    return true;
}

/* A condition that was put in a scalar, to be looked at. */
static bool
join_test(peep *p, gm_blk *b, size_t at)
{
    gm_ins *i = &b->ins.at[at];
    const about *x = &p->of[i->op[0].kind == GM_VREG ? i->op[0].v : 0];

    if (!is(i, "s_cmp_lg_u") || i->op[0].kind != GM_VREG ||
        i->op[1].kind != GM_IMM || i->op[1].v || x->uses != 1 ||
        x->defs[i->op[0].sub] != 1)
        return false;
    for (size_t k = at; k-- > 0;) {
        gm_ins *s = &b->ins.at[k];

        if (!s->row || is(s, "v_") || is(s, "s_mov_b"))
            continue;
        if (!is(s, "s_cselect_b") || !same_op(s->op[0], i->op[0]) ||
            s->op[1].kind != GM_IMM || s->op[1].v != ~0u ||
            s->op[2].kind != GM_IMM || s->op[2].v)
            return false;
        s->row = i->row = NULL;
        return true;
    }
    return false;
}

static bool
join(peep *p)
{
    bool change = false;

    for (size_t b = 0; b < p->g->blks.n; b++) {
        gm_blk *l = &p->g->blks.at[b];

        for (size_t k = 0; k < l->ins.n; k++)
            if (l->ins.at[k].row)
                change |= join_pair(p, l, k) || join_wide(p, l, k) ||
                          narrow(p, &l->ins.at[k]) || join_test(p, l, k);
    }
    return change;
}

void
gm_peep(gm_fn *g)
{
    peep p = {.g = g};
    bool change = true;

    p.of = br_try_calloc(g->vregs.n + 1, sizeof *p.of);
    if (!p.of) {
        gm_oom(g);
        return;
    }
    for (size_t k = 0; k < g->places.n; k++)
        p.parts |= g->places.at[k].mask != BR_KNONE;
    while (change && g->code == BR_OK) {
        change = false;
        count(&p);
        change |= propagate(&p);
        count(&p);
        change |= join(&p);
        change |= sweep(&p);
    }
    br_free(p.of);
}
