/* gcn_live.c - where vregs hold something, as spans of points.
 *
 *   use of the n-th instruction at 2n, definition at 2n + 1
 *
 * Scalars live along the ways of the wave (heads and stubs too, where other
 * lanes have their turn); vectors along the ways of one lane, since what
 * other lanes do writes only their own part of a register.
 *
 * Most vregs live within one node. Those that are read in one before they are
 * written there are followed one by one, from where they are read back to where
 * they are written, so that what it takes is what is live (decision 0046).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <string.h>

enum { MAX_LIVE = 1 << 26 }; /* vregs at the ends of nodes, all together */

/* Nodes of each vreg, or vregs of each node: those of k stand in at from[k] on. */
typedef struct lists {
    uint32_t *from, *at;
} lists;

typedef BR_VEC(uint32_t) ids;

typedef struct live {
    const gm_fn *g;
    gm_spans *of;
    lists before[2];     /* of a node: those it is reached from; by file */
    lists exposed;       /* of a node: vregs that it reads, not written there */
    lists read, written; /* of a vreg: nodes where it is exposed, or written */
    uint8_t *far;        /* by vreg: exposed somewhere */
    ids *out;            /* of a node: vregs that are live behind it */
    size_t n_out;
    uint32_t *end; /* by vreg: where what is live ends; 0: it is not */
    bool oom;
} live;

/* ---- lists ------------------------------------------------------------- */

/* Called for each member: first to count them, then to put them in. */
static void
member(lists *l, bool count, uint32_t of, uint32_t x)
{
    if (count)
        l->from[of + 2]++;
    else
        l->at[l->from[of + 1]++] = x;
}

static bool
begin_list(lists *l, size_t n)
{
    l->from = br_try_calloc(n + 2, sizeof *l->from);
    return l->from != NULL;
}

/* Counted: places for all. */
static bool
lay_out(lists *l, size_t n)
{
    for (size_t k = 2; k < n + 2; k++)
        l->from[k] += l->from[k - 1];
    l->at = br_try_calloc(l->from[n + 1] + 1, sizeof *l->at);
    return l->at != NULL;
}

static void
free_list(lists *l)
{
    br_free(l->from);
    br_free(l->at);
}

/* Ways into each node. */
static void
ways(live *l, bool count)
{
    for (uint32_t b = 0; b < l->g->blks.n; b++) {
        const gm_blk *x = &l->g->blks.at[b];

        for (size_t s = 0; s < x->wave.n; s++)
            member(&l->before[0], count, x->wave.at[s], b);
        for (size_t s = 0; s < x->lanes.n; s++)
            member(&l->before[1], count, x->lanes.at[s], b);
    }
}

/* What a node reads that it has not written before; seen and done: a node by
 * vreg, plus one, that read so or wrote. */
static void
reads(live *l, bool count, uint32_t node, uint32_t *seen, uint32_t *done)
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
                    done[v] != node + 1 && seen[v] != node + 1) {
                    seen[v] = node + 1;
                    l->far[v] = 1;
                    member(&l->exposed, count, node, v);
                    member(&l->read, count, v, node);
                }
                if (def)
                    done[v] = node + 1;
            }
}

/* Nodes that write vregs of which others read. */
static void
writes(live *l, bool count, uint32_t node, uint32_t *seen)
{
    const gm_blk *b = &l->g->blks.at[node];

    for (size_t k = 0; k < b->ins.n; k++)
        for (unsigned n = 0; n < b->ins.at[k].n_op; n++) {
            bool def;
            uint32_t v = gm_named(&b->ins.at[k], n, &def);

            if (v == BR_KNONE || !def || !l->far[v] || seen[v] == node + 1)
                continue;
            seen[v] = node + 1;
            member(&l->written, count, v, node);
        }
}

static bool
make_lists(live *l)
{
    size_t nodes = l->g->blks.n, n = l->g->vregs.n;
    uint32_t *seen = br_try_calloc(2 * n + 1, sizeof *seen);
    bool ok = seen && begin_list(&l->before[0], nodes) &&
              begin_list(&l->before[1], nodes) &&
              begin_list(&l->exposed, nodes) && begin_list(&l->read, n) &&
              begin_list(&l->written, n);

    for (int count = 1; ok && count >= 0; count--) {
        ways(l, count);
        memset(seen, 0, 2 * n * sizeof *seen);
        for (uint32_t b = 0; b < nodes; b++)
            reads(l, count, b, seen, seen + n);
        memset(seen, 0, n * sizeof *seen);
        for (uint32_t b = 0; b < nodes; b++)
            writes(l, count, b, seen);
        if (count)
            ok = lay_out(&l->before[0], nodes) &&
                 lay_out(&l->before[1], nodes) && lay_out(&l->exposed, nodes) &&
                 lay_out(&l->read, n) && lay_out(&l->written, n);
    }
    br_free(seen);
    return ok;
}

/* ---- between nodes ----------------------------------------------------- */

/* Back from where a vreg is read. Marks of nodes are the vreg's number plus
 * one: it is live before, behind, written in it. */
static void
follow(live *l, uint32_t v, uint32_t *in, uint32_t *out, uint32_t *kill,
       uint32_t *todo)
{
    const lists *before = &l->before[l->g->vregs.at[v].file == 'V'];
    size_t n = 0;

    for (uint32_t k = l->written.from[v]; k < l->written.from[v + 1]; k++)
        kill[l->written.at[k]] = v + 1;
    for (uint32_t k = l->read.from[v]; k < l->read.from[v + 1]; k++) {
        in[l->read.at[k]] = v + 1;
        todo[n++] = l->read.at[k];
    }
    while (n) {
        uint32_t x = todo[--n];

        for (uint32_t k = before->from[x]; k < before->from[x + 1]; k++) {
            uint32_t p = before->at[k];

            if (out[p] == v + 1)
                continue;
            out[p] = v + 1;
            l->oom |= !br_vec_push(&l->out[p], v);
            l->n_out++;
            if (kill[p] == v + 1 || in[p] == v + 1)
                continue;
            in[p] = v + 1;
            todo[n++] = p;
        }
    }
}

static bool
flow(live *l)
{
    size_t nodes = l->g->blks.n;
    uint32_t *mem = br_try_calloc(4 * nodes + 1, sizeof *mem);

    l->out = br_try_calloc(nodes + 1, sizeof *l->out);
    for (uint32_t v = 0; mem && l->out && v < l->g->vregs.n; v++)
        if (l->far[v] && !l->oom && l->n_out <= MAX_LIVE)
            follow(l, v, mem, mem + nodes, mem + 2 * nodes, mem + 3 * nodes);
    br_free(mem);
    return mem && l->out && !l->oom;
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

/* From the begin of the node on, if it is live there. */
static void
through(live *l, uint32_t v, uint32_t at)
{
    if (l->end[v])
        add(l, v, at, l->end[v]);
    l->end[v] = 0;
}

/* Ends of what is live, walked from the end of a node. */
static void
node_spans(live *l, uint32_t node, uint32_t at)
{
    const gm_blk *b = &l->g->blks.at[node];
    const ids *out = &l->out[node];
    uint32_t *end = l->end;

    for (size_t k = 0; k < out->n; k++)
        end[out->at[k]] = at + 2 * (uint32_t)b->ins.n + 1;
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
    for (size_t k = 0; k < out->n; k++)
        through(l, out->at[k], at);
    for (uint32_t k = l->exposed.from[node]; k < l->exposed.from[node + 1]; k++)
        through(l, l->exposed.at[k], at);
}

bool
gm_live(gm_fn *g, gm_spans *of, uint32_t *points)
{
    size_t n = g->vregs.n, nodes = g->blks.n;
    live l = {.g = g, .of = of};
    uint32_t at = 0;

    l.end = br_try_calloc(n + 1, sizeof *l.end);
    l.far = br_try_calloc(n + 1, 1);
    l.oom = !l.end || !l.far || !make_lists(&l) || !flow(&l);
    if (!l.oom && l.n_out > MAX_LIVE)
        gm_fail(g, BR_E_LIMIT,
                "too many values are kept over too many blocks (%zu): compile "
                "it with optimisation, or make two kernels of it",
                nodes / GM_NODES);
    for (size_t b = 0; b < nodes; b++)
        at += 2 * (uint32_t)g->blks.at[b].ins.n + 2;
    *points = at;
    for (uint32_t b = (uint32_t)nodes; b-- > 0 && g->code == BR_OK && !l.oom;) {
        at -= 2 * (uint32_t)g->blks.at[b].ins.n + 2;
        node_spans(&l, b, at);
    }
    for (size_t b = 0; l.out && b < nodes; b++)
        br_vec_fini(&l.out[b]);
    free_list(&l.before[0]);
    free_list(&l.before[1]);
    free_list(&l.exposed);
    free_list(&l.read);
    free_list(&l.written);
    br_free(l.out);
    br_free(l.far);
    br_free(l.end);
    if (l.oom)
        gm_oom(g);
    return g->code == BR_OK;
}
