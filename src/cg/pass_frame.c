/* pass_frame.c - places of the frame that are only loaded and stored become
 * values: parameters of calls, variables whose address nobody takes.
 *
 *   st.local [frame 16] %1; ...; %2 = ld.local [frame 16]   ->  %2 is %1
 *
 * Why       memory is far from a register, 100 times on a GPU.
 * Requires  edges and arguments of phis as br_kir_verify wants them.
 * Changes   deletes those loads and stores, adds phis; what an object's
 *           address is otherwise used for keeps the whole object in memory,
 *           and so do accesses that overlap in part, or of single bytes.
 * Cost      blocks x places, at most 2^24, else nothing is done.
 *
 * What a load finds is made when it is asked for: the last store of the block,
 * or what comes along the edges; a phi where they are several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 1 << 24 };

typedef struct slot {
    int64_t at;
    uint32_t bytes;
    bool kept; /* stays in memory */
} slot;

typedef struct promo {
    br_kir *m;
    br_kfn *f;
    const br_kobj *objs;
    size_t n_objs;
    uint8_t *escaped; /* of each object */
    int64_t *off;     /* of each value: its place; -1: none */
    BR_VEC(slot) slots;
    uint32_t *out, *in; /* [block][slot] value, or BR_KNONE */
    uint32_t *now;      /* [slot], while a block is walked */
    uint32_t *same;
    uint8_t *gone;
    BR_VEC(uint32_t) phis; /* instruction, block, slot */
    bool oom;
} promo;

/* ---- what is accessed -------------------------------------------------- */

/* The smallest object around a place. */
static size_t
object_of(const promo *p, int64_t at)
{
    size_t best = p->n_objs;

    for (size_t k = 0; k < p->n_objs; k++)
        if ((uint64_t)at >= p->objs[k].at &&
            (uint64_t)at < p->objs[k].at + p->objs[k].bytes &&
            (best == p->n_objs || p->objs[k].bytes < p->objs[best].bytes))
            best = k;
    return best;
}

static void
escape(promo *p, int64_t at)
{
    size_t o = object_of(p, at);

    if (o < p->n_objs)
        p->escaped[o] = 1;
    else
        memset(p->escaped, 1, p->n_objs);
}

static bool
access_of(const promo *p, const br_kins *i, int64_t *at, unsigned *n)
{
    if ((i->op != BR_K_LD && i->op != BR_K_ST) ||
        br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_LOCAL ||
        p->off[br_kargs(p->f, i)[0]] < 0)
        return false;
    *at = p->off[br_kargs(p->f, i)[0]] + i->imm;
    *n = i->op == BR_K_LD ? i->n_res : i->n_arg - 1u;
    return true;
}

static void
note_access(promo *p, const br_kins *i, int64_t at, unsigned n)
{
    uint32_t bytes = br_ktinfo_of[i->type].bytes;
    size_t o = object_of(p, at);

    if (at < 0 || br_kmod(i->mods, BR_KF_SEM) || o == p->n_objs ||
        (uint64_t)at + (uint64_t)bytes * n > p->objs[o].at + p->objs[o].bytes) {
        memset(p->escaped, 1, p->n_objs);
        return;
    }
    for (unsigned k = 0; k < n; k++) {
        slot s = {at + k * bytes, bytes, bytes < 2};

        p->oom |= !br_vec_push(&p->slots, s);
    }
}

/* Places of values, accesses, and addresses that get about. */
static void
look(promo *p, const uint32_t *rpo, uint32_t n)
{
    br_kfn *f = p->f;

    for (uint32_t b = 0; b < n; b++)
        for (size_t k = 0; k < f->blks.at[rpo[b]].ins.n; k++) {
            const br_kins *i = &f->ins.at[f->blks.at[rpo[b]].ins.at[k]];
            const uint32_t *a = br_kargs(f, i);
            int64_t at;
            unsigned acc;

            if (i->op == BR_K_FRAME) {
                p->off[i->res] = i->imm;
            } else if (i->op == BR_K_ADD && i->type != BR_KT_F64 &&
                       p->off[a[0]] >= 0 &&
                       f->vals.at[a[1]].kind == BR_KV_CONST) {
                at = p->off[a[0]] + (int64_t)f->vals.at[a[1]].bits;
                p->off[i->res] = at < 0 ? -1 : at;
                if (at < 0)
                    escape(p, p->off[a[0]]);
            } else if (access_of(p, i, &at, &acc)) {
                note_access(p, i, at, acc);
                for (unsigned x = 1; x < i->n_arg; x++)
                    if (p->off[a[x]] >= 0)
                        escape(p, p->off[a[x]]);
            } else {
                for (unsigned x = 0; x < i->n_arg; x++)
                    if (p->off[a[x]] >= 0)
                        escape(p, p->off[a[x]]);
            }
        }
}

static int
by_place(const void *x, const void *y)
{
    const slot *a = x, *b = y;

    return a->at != b->at ? (a->at > b->at) - (a->at < b->at)
                          : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* A function's parameters are its caller's to fill and to read. */
static bool
is_param(const br_kfn *f, const slot *s)
{
    for (size_t k = 0; k < f->params.n && !f->entry; k++) {
        const br_kparam *q = &f->params.at[k];

        if (s->at < (int64_t)q->offset + q->bytes &&
            s->at + s->bytes > (int64_t)q->offset)
            return true;
    }
    return false;
}

/* One of each place; those that overlap in part are kept. */
static void
settle(promo *p)
{
    size_t n = 0;

    if (p->slots.n)
        qsort(p->slots.at, p->slots.n, sizeof *p->slots.at, by_place);
    for (size_t k = 0; k < p->slots.n; k++) {
        slot *s = &p->slots.at[k], *t = n ? &p->slots.at[n - 1] : NULL;
        size_t o = object_of(p, s->at);

        s->kept |= o == p->n_objs || p->escaped[o] || is_param(p->f, s);
        if (t && t->at == s->at && t->bytes == s->bytes)
            continue;
        if (t && s->at < t->at + t->bytes) { /* one place from now on */
            t->bytes = (uint32_t)BR_MAX(t->at + t->bytes, s->at + s->bytes) -
                       (uint32_t)t->at;
            t->kept = true;
            continue;
        }
        p->slots.at[n++] = *s;
    }
    p->slots.n = n;
}

static uint32_t
slot_of(const promo *p, int64_t at)
{
    for (size_t k = 0; k < p->slots.n; k++)
        if (at >= p->slots.at[k].at &&
            at < p->slots.at[k].at + p->slots.at[k].bytes)
            return (uint32_t)k;
    return BR_KNONE;
}

/* An access of several elements stays whole. */
static void
keep_whole(promo *p)
{
    bool grew = true;

    while (grew) {
        grew = false;
        for (size_t x = 0; x < p->f->ins.n; x++) {
            const br_kins *i = &p->f->ins.at[x];
            uint32_t bytes = br_ktinfo_of[i->type].bytes, s;
            bool kept = false;
            unsigned n;
            int64_t at;

            if (!i->n_arg || !access_of(p, i, &at, &n) || n < 2)
                continue;
            for (unsigned k = 0; k < n; k++)
                if ((s = slot_of(p, at + k * bytes)) != BR_KNONE)
                    kept |= p->slots.at[s].kept;
            for (unsigned k = 0; kept && k < n; k++)
                if ((s = slot_of(p, at + k * bytes)) != BR_KNONE) {
                    grew |= !p->slots.at[s].kept;
                    p->slots.at[s].kept = true;
                }
        }
    }
}

/* ---- values ------------------------------------------------------------ */

static br_ktype
type_of(const slot *s)
{
    return s->bytes == 8 ? BR_KT_B64 : s->bytes == 4 ? BR_KT_B32 : BR_KT_B16;
}

static uint32_t coming(promo *p, uint32_t blk, uint32_t s);

static uint32_t
going(promo *p, uint32_t blk, uint32_t s)
{
    uint32_t v = p->out[blk * p->slots.n + s];

    return v != BR_KNONE ? v : coming(p, blk, s);
}

static uint32_t
new_phi(promo *p, uint32_t blk, uint32_t s)
{
    br_kins i = {.op = BR_K_PHI,
                 .type = (uint8_t)type_of(&p->slots.at[s]),
                 .sym = BR_KNONE};
    uint32_t id = br_kfn_ins(p->m, p->f, BR_KNONE, &i, NULL);
    br_kblk *b = &p->f->blks.at[blk];

    if (p->m->oom || !br_vec_push(&b->ins, id) || !br_vec_push(&p->phis, id) ||
        !br_vec_push(&p->phis, blk) || !br_vec_push(&p->phis, s)) {
        p->oom = true;
        return 0;
    }
    memmove(b->ins.at + 1, b->ins.at, (b->ins.n - 1) * sizeof *b->ins.at);
    b->ins.at[0] = id;
    return p->f->ins.at[id].res;
}

/* What a place holds where a block begins. */
static uint32_t
coming(promo *p, uint32_t blk, uint32_t s)
{
    uint32_t *memo = &p->in[blk * p->slots.n + s];
    const br_kblk *b = &p->f->blks.at[blk];

    if (*memo != BR_KNONE)
        return *memo;
    if (b->pred.n == 0)
        *memo = br_kfn_undef(
            p->m, p->f, (br_kclass)br_ktinfo_of[type_of(&p->slots.at[s])].cls);
    else if (b->pred.n == 1)
        *memo = going(p, b->pred.at[0], s);
    else
        *memo = new_phi(p, blk, s);
    return *memo;
}

/* Walks a block: first what it leaves, then what its loads find. */
static void
walk(promo *p, uint32_t blk, bool loads)
{
    uint32_t *now = loads ? p->now : p->out + blk * p->slots.n;
    uint32_t ids = (uint32_t)p->f->blks.at[blk].ins.n;

    if (loads)
        memset(now, 0xff, p->slots.n * sizeof *now);
    for (uint32_t k = 0; k < ids && !p->oom; k++) {
        /* Phis may come to stand before it meanwhile. */
        uint32_t shift = (uint32_t)p->f->blks.at[blk].ins.n - ids;
        uint32_t id = p->f->blks.at[blk].ins.at[k + shift], s;
        br_kins i = p->f->ins.at[id];
        uint32_t bytes = br_ktinfo_of[i.type].bytes;
        unsigned n;
        int64_t at;

        if (!i.n_arg || !access_of(p, &i, &at, &n) ||
            (s = slot_of(p, at)) == BR_KNONE || p->slots.at[s].kept)
            continue;
        p->gone[id] = 1;
        for (unsigned e = 0; e < n; e++) {
            s = slot_of(p, at + e * bytes);
            if (i.op == BR_K_ST)
                now[s] = br_kargs(p->f, &i)[1 + e];
            else if (loads)
                p->same[i.res + e] =
                    now[s] != BR_KNONE ? now[s] : coming(p, blk, s);
        }
    }
}

static void
fill(promo *p)
{
    for (size_t k = 0; k + 2 < p->phis.n && !p->oom; k += 3) {
        uint32_t id = p->phis.at[k], blk = p->phis.at[k + 1];
        uint32_t s = p->phis.at[k + 2];
        uint32_t n = (uint32_t)p->f->blks.at[blk].pred.n;
        BR_VEC(uint32_t) vals = {0};

        for (uint32_t e = 0; e < n; e++) {
            uint32_t v = going(p, p->f->blks.at[blk].pred.at[e], s);

            p->oom |= !br_vec_push(&vals, v);
        }
        p->f->ins.at[id].arg = (uint32_t)p->f->args.n;
        p->f->ins.at[id].n_arg = (uint16_t)n;
        for (uint32_t e = 0; e < n && !p->oom; e++)
            p->oom |= !br_vec_push(&p->f->args, vals.at[e]);
        br_vec_fini(&vals);
    }
}

/* ---- all of it --------------------------------------------------------- */

static void
rewrite(promo *p)
{
    size_t nb = p->f->blks.n, ns = p->slots.n, cells = nb * ns;
    size_t ids = p->f->ins.n + cells, vals = p->f->vals.n + 2 * cells;

    p->out = br_try_alloc((2 * cells + ns + 1) * sizeof *p->out);
    p->gone = br_try_calloc(ids + 1, 1);
    p->same = br_try_alloc((vals + 1) * sizeof *p->same);
    if (!p->out || !p->gone || !p->same) {
        p->oom = true;
        return;
    }
    p->in = p->out + cells;
    p->now = p->in + cells;
    memset(p->out, 0xff, 2 * cells * sizeof *p->out);
    for (uint32_t v = 0; v < vals; v++)
        p->same[v] = v;
    for (uint32_t b = 0; b < nb; b++)
        walk(p, b, false);
    for (uint32_t b = 0; b < nb && !p->oom; b++)
        walk(p, b, true);
    fill(p);
    if (p->oom)
        return;
    br_ksame_apply(p->f, p->same);
    br_kfn_sweep(p->f, p->gone);
}

bool
br_kfn_promote(br_kir *m, br_kfn *f, const br_kobj *objs, size_t n)
{
    promo p = {.m = m, .f = f, .objs = objs, .n_objs = n};
    size_t nb = f->blks.n;
    uint32_t *rpo = br_try_calloc(2 * nb + 1, sizeof *rpo);

    p.off = br_try_alloc((f->vals.n + 1) * sizeof *p.off);
    p.escaped = br_try_calloc(n + 1, 1);
    p.oom = !rpo || !p.off || !p.escaped;
    if (!p.oom) {
        memset(p.off, 0xff, f->vals.n * sizeof *p.off);
        look(&p, rpo, br_kfn_rpo(f, rpo, rpo + nb));
        settle(&p);
        keep_whole(&p);
    }
    if (!p.oom && p.slots.n && p.slots.n * nb < MAX_CELLS)
        rewrite(&p);
    br_free(rpo);
    br_free(p.off);
    br_free(p.escaped);
    br_free(p.out);
    br_free(p.gone);
    br_free(p.same);
    br_vec_fini(&p.slots);
    br_vec_fini(&p.phis);
    return !p.oom;
}
