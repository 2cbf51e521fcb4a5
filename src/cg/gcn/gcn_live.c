/* gcn_live.c - where vregs hold something, as spans of points.
 *
 *   use of the n-th instruction at 2n, definition at 2n + 1
 *
 * Scalars live along the ways of the wave (heads and stubs too, where other
 * lanes have their turn); vectors along the ways of one lane, since what
 * other lanes do writes only their own part of a register.
 *
 * Most vregs live within one node. Only those that are read in one before they
 * are written there have a number, and bits in the sets of the nodes (decision
 * 0046: 1.0 s for 11).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <string.h>

typedef struct live {
    const gm_fn *g;
    gm_spans *of;
    uint32_t *id, *vreg; /* number by vreg, or BR_KNONE; vreg by number */
    uint32_t n_id;
    size_t words; /* of a set of numbers */
    uint64_t *in, *out, *gen, *kill, *vec;
    uint32_t *end; /* by vreg: where what is live ends; 0: it is not */
    bool oom;
} live;

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

/* ---- between nodes ----------------------------------------------------- */

/* Numbers for what a node reads that it has not written before. */
static void
number(live *l, uint32_t node, uint32_t *written)
{
    const gm_blk *b = &l->g->blks.at[node];

    for (size_t k = 0; k < b->ins.n; k++)
        for (int defs = 0; defs < 2; defs++)
            for (unsigned n = 0; n < b->ins.at[k].n_op; n++) {
                bool def;
                uint32_t v = gm_named(&b->ins.at[k], n, &def);

                if (v == BR_KNONE || def != (bool)defs)
                    continue;
                if ((!def || gm_keeps(&b->ins.at[k], n)) &&
                    written[v] != node + 1 && l->id[v] == BR_KNONE) {
                    l->vreg[l->n_id] = v;
                    l->id[v] = l->n_id++;
                }
                if (def)
                    written[v] = node + 1;
            }
}

static void
scan(live *l, uint32_t node)
{
    const gm_blk *b = &l->g->blks.at[node];
    uint64_t *gen = l->gen + node * l->words, *kill = l->kill + node * l->words;

    for (size_t k = 0; k < b->ins.n; k++)
        for (int defs = 0; defs < 2; defs++)
            for (unsigned n = 0; n < b->ins.at[k].n_op; n++) {
                bool def;
                uint32_t v = gm_named(&b->ins.at[k], n, &def);

                if (v == BR_KNONE || def != (bool)defs || l->id[v] == BR_KNONE)
                    continue;
                v = l->id[v];
                if ((!def || gm_keeps(&b->ins.at[k], n)) && !get(kill, v))
                    put(gen, v);
                if (def)
                    put(kill, v);
            }
}

static bool
flow_in(live *l, uint32_t node)
{
    const gm_blk *b = &l->g->blks.at[node];
    uint64_t *out = l->out + node * l->words, *in = l->in + node * l->words;
    bool grew = false;

    for (int file = 0; file < 2; file++) {
        size_t n = file ? b->lanes.n : b->wave.n;

        for (size_t s = 0; s < n; s++) {
            const uint64_t *to =
                l->in + (file ? b->lanes.at[s] : b->wave.at[s]) * l->words;

            for (size_t w = 0; w < l->words; w++)
                out[w] |= to[w] & (file ? l->vec[w] : ~l->vec[w]);
        }
    }
    for (size_t w = 0; w < l->words; w++) {
        uint64_t v = l->gen[node * l->words + w] |
                     (out[w] & ~l->kill[node * l->words + w]);

        grew |= (v & ~in[w]) != 0;
        in[w] |= v;
    }
    return grew;
}

static bool
flow(live *l)
{
    size_t nodes = l->g->blks.n;
    bool grew = true;

    l->words = (l->n_id + 63) / 64;
    l->in = br_try_calloc((4 * nodes + 1) * l->words + 1, sizeof *l->in);
    if (!l->in)
        return false;
    l->out = l->in + nodes * l->words;
    l->gen = l->out + nodes * l->words;
    l->kill = l->gen + nodes * l->words;
    l->vec = l->kill + nodes * l->words;
    for (uint32_t k = 0; k < l->n_id; k++)
        if (l->g->vregs.at[l->vreg[k]].file == 'V')
            put(l->vec, k);
    for (uint32_t b = 0; b < nodes; b++)
        scan(l, b);
    while (grew) {
        grew = false;
        for (uint32_t b = (uint32_t)nodes; b-- > 0;)
            grew |= flow_in(l, b);
    }
    return true;
}

/* ---- within one -------------------------------------------------------- */

static void
add(live *l, uint32_t v, uint32_t from, uint32_t to)
{
    gm_spans *s = &l->of[v];
    gm_span x = {from, to};

    if (s->n && s->at[s->n - 1].from <= to + 1 &&
        s->at[s->n - 1].to + 1 >= from) { /* walked from the end */
        s->at[s->n - 1].from = BR_MIN(s->at[s->n - 1].from, from);
        s->at[s->n - 1].to = BR_MAX(s->at[s->n - 1].to, to);
        return;
    }
    l->oom |= !br_vec_push(s, x);
}

/* Ends of what is live, walked from the end of a node. */
static void
node_spans(live *l, uint32_t node, uint32_t at)
{
    const gm_blk *b = &l->g->blks.at[node];
    const uint64_t *out = l->out + node * l->words;
    uint32_t *end = l->end;

    for (uint32_t k = 0; k < l->n_id; k++)
        if (get(out, k))
            end[l->vreg[k]] = at + 2 * (uint32_t)b->ins.n + 1;
    for (size_t k = b->ins.n; k-- > 0;) {
        const gm_ins *i = &b->ins.at[k];
        uint32_t point = at + 2 * (uint32_t)k;

        for (int defs = 1; defs >= 0; defs--)
            for (unsigned n = 0; n < i->n_op; n++) {
                bool def;
                uint32_t v = gm_named(i, n, &def);

                if (v == BR_KNONE || def != (bool)defs)
                    continue;
                if (def && !gm_keeps(i, n)) {
                    uint32_t from = point + !i->early;

                    add(l, v, from, BR_MAX(end[v], point + 1));
                    end[v] = 0;
                } else if (!end[v]) {
                    end[v] = point + def;
                }
            }
    }
    for (uint32_t k = 0; k < l->n_id; k++) {
        uint32_t v = l->vreg[k];

        if (end[v])
            add(l, v, at, end[v]);
        end[v] = 0;
    }
}

bool
gm_live(gm_fn *g, gm_spans *of, uint32_t *points)
{
    size_t n = g->vregs.n, nodes = g->blks.n;
    uint32_t *mem = br_try_calloc(3 * n + 1, sizeof *mem), at = 0;
    live l = {.g = g, .of = of};

    if (mem) {
        l.id = mem;
        l.vreg = mem + n;
        l.end = mem + 2 * n;
        memset(l.id, 0xff, n * sizeof *l.id);
        for (uint32_t b = 0; b < nodes; b++)
            number(&l, b, l.end);
        memset(l.end, 0, n * sizeof *l.end);
    }
    if ((double)nodes * l.n_id > GM_MAX_BITS)
        gm_fail(g, BR_E_LIMIT,
                "%u values that go between %zu blocks are too many: compile it "
                "with optimisation, or make two kernels of it",
                l.n_id, nodes / GM_NODES);
    else if (!mem || !flow(&l))
        l.oom = true;
    for (size_t b = 0; b < nodes; b++)
        at += 2 * (uint32_t)g->blks.at[b].ins.n + 2;
    *points = at;
    for (uint32_t b = (uint32_t)nodes; b-- > 0 && g->code == BR_OK && !l.oom;) {
        at -= 2 * (uint32_t)g->blks.at[b].ins.n + 2;
        node_spans(&l, b, at);
    }
    br_free(l.in);
    br_free(mem);
    if (l.oom)
        gm_oom(g);
    return g->code == BR_OK;
}
