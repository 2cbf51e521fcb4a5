/* gcn_spill.c - vregs that get no register live elsewhere: vectors in scratch,
 * scalars in lanes of a vector register that is kept for that.
 *
 *     v_add v7, v7, v9    ->    scratch_load t, off, base offset:16
 *                               v_add t, t, v9
 *                               scratch_store off, t, base offset:16
 *     s_add s7, s7, s9    ->    v_readlane t, keep, 4; s_add t, t, s9;
 *                               v_writelane keep, t, 4
 *
 * Each lane has its own place in scratch, so what other lanes do while some
 * wait is as harmless there as in a register. readlane and writelane do not ask
 * which lanes run, as scalars do not. Only words that an instruction names are
 * loaded and stored: the others may never have been written.
 *
 * Vregs of one round that are not live at once have one home: it is a register of
 * the same span. A vreg of several words that is read or written in part begins
 * there: the first of its instructions does not ask that other words stay, or it
 * would be live from the kernel's begin (so were all masks of 64 lanes).
 *
 * Changes   instructions and vregs; gm_fn.spill_bytes grows. Nothing here
 *           touches SCC or VCC. What was made here is never spilled again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a victim lives. */
typedef struct home {
    bool spilled;
    uint32_t keep; /* S: the vreg that keeps it */
    uint32_t at;   /* V: offset in scratch; S: lane */
} home;

/* Homes of one round: words from at on, each with the point behind the last at
 * which it is taken. */
typedef struct row {
    uint32_t at, bound; /* a home does not lie across a multiple of bound */
    BR_VEC(uint32_t) until;
} row;

/* What an instruction does to one: words by bits, and what it has instead. */
typedef struct touch {
    uint32_t v, t;
    uint8_t reads, writes;
} touch;

/* Words [from, to) between the register and scratch; fresh: it has no others. */
static void
memory(gm_fn *g, const home *h, bool load, uint32_t t, unsigned from,
       unsigned to, bool fresh)
{
    static const char *const widths[] = {"b32", "b64", "b96", "b128"};
    uint32_t at = h->at + 4 * from;
    gm_op base = gm_reg(g->windows.at[h->at / GM_WINDOW], 0), r;
    gm_op off = gm_code(GM_V0); /* not read without the sve bit */
    char name[32];
    gm_ins *m;

    r = gm_reg(t, from);
    snprintf(name, sizeof name, "scratch_%s_%s", load ? "load" : "store",
             widths[to - from - 1]);
    m = load ? GM(g, name, r, off, base) : GM(g, name, off, r, base);
    gm_set(m, BR_GF_ioffset, at % GM_WINDOW);
    if (m && load)
        m->keep = !fresh;
}

static void
transfer(gm_fn *g, const home *h, bool load, uint32_t t, unsigned words)
{
    bool fresh = true;

    for (unsigned from = 0, to; words >> from; from = to) {
        to = from + 1;
        if (!(words >> from & 1))
            continue;
        while (words >> to & 1)
            to++;
        if (g->vregs.at[t].file == 'V') {
            memory(g, h, load, t, from, to, fresh);
            fresh = false;
            continue;
        }
        for (unsigned w = from; w < to; w++) {
            gm_op keep = gm_reg(h->keep, 0), r = gm_reg(t, w);
            gm_ins *m =
                load ? GM(g, "v_readlane_b32", r, keep, gm_imm(h->at + w))
                     : GM(g, "v_writelane_b32", keep, r, gm_imm(h->at + w));

            if (m)
                m->keep = !load || !fresh;
            fresh = false;
        }
    }
}

/* The victims that an instruction names. */
static unsigned
look(const gm_fn *g, const home *homes, const gm_ins *i, touch *out)
{
    const br_gcn_opnd *o = i->row->o;
    unsigned n = 0, n_out = 0;

    for (; o->kind != BR_GK_END && n < i->n_op; o++) {
        const gm_op *op = &i->op[n];
        unsigned k = 0, all, words;

        if (!gm_counts(o))
            continue;
        words = gm_width(g, i, n++);
        if (op->kind != GM_VREG || !homes[op->v].spilled)
            continue;
        while (k < n_out && out[k].v != op->v)
            k++;
        if (k == n_out)
            out[n_out++] = (touch){.v = op->v};
        all = (1u << g->vregs.at[op->v].words) - 1;
        words = (((1u << words) - 1) << op->sub) & all;
        if (!gm_defines(i->row, o)) {
            out[k].reads |= (uint8_t)words;
            continue;
        }
        out[k].writes |= (uint8_t)words;
        if (i->keep && words == all) /* of a word a part, or some lanes */
            out[k].reads |= (uint8_t)words;
    }
    return n_out;
}

static void
rewrite(gm_fn *g, const home *homes, gm_ins i)
{
    touch to[GM_MAX_OPS];
    unsigned n = look(g, homes, &i, to);

    g->line = i.line;
    for (unsigned k = 0; k < n; k++) {
        const gm_vreg *v = &g->vregs.at[to[k].v];

        to[k].t = gm_new(g, v->file, v->words);
        if (g->code != BR_OK)
            return;
        g->vregs.at[to[k].t].fixed = true;
        for (unsigned o = 0; o < i.n_op; o++)
            if (i.op[o].kind == GM_VREG && i.op[o].v == to[k].v)
                i.op[o].v = to[k].t;
        transfer(g, &homes[to[k].v], true, to[k].t, to[k].reads);
        if (i.op[0].kind == GM_VREG && i.op[0].v == to[k].t && !to[k].reads)
            i.keep = false;
    }
    if (!br_vec_push(&g->blks.at[g->node].ins, i))
        gm_oom(g);
    for (unsigned k = 0; k < n; k++)
        transfer(g, &homes[to[k].v], false, to[k].t, to[k].writes);
}

/* Scalars that say where windows begin, from the nth on, set first of all. */
static void
set_windows(gm_fn *g, size_t nth)
{
    gm_blk *b = &g->blks.at[GM_NODE(0, GM_BODY)];
    gm_ins *was = b->ins.at;
    size_t n_was = b->ins.n;

    g->node = GM_NODE(0, GM_BODY);
    memset(&b->ins, 0, sizeof b->ins);
    for (; nth < g->windows.n; nth++)
        GM(g, "s_mov_b32", gm_reg(g->windows.at[nth], 0),
           gm_imm(g->scratch_bytes + (uint32_t)nth * GM_WINDOW));
    for (size_t k = 0; k < n_was && g->code == BR_OK; k++)
        if (!br_vec_push(&b->ins, was[k]))
            gm_oom(g);
    br_free(was);
}

static void
new_window(gm_fn *g)
{
    uint32_t base = gm_new(g, 'S', 1);

    if (g->code == BR_OK && !br_vec_push(&g->windows, base))
        gm_oom(g);
    if (g->code == BR_OK)
        g->vregs.at[base].fixed = true;
}

/* Where words are free from a point on that nobody had before. */
static uint32_t
find_room(gm_fn *g, row *r, unsigned words, const gm_victim *x)
{
    for (uint32_t at = r->at;; at++) {
        bool free = at % r->bound + words <= r->bound;

        for (uint32_t k = at - r->at; free && k < at - r->at + words; k++)
            free = k >= r->until.n || r->until.at[k] <= x->from;
        if (!free)
            continue;
        while (r->until.n < at - r->at + words)
            if (!br_vec_push(&r->until, 0)) {
                gm_oom(g);
                return at;
            }
        for (uint32_t k = at - r->at; k < at - r->at + words; k++)
            r->until.at[k] = x->to + 1;
        return at;
    }
}

static void
new_keep(gm_fn *g)
{
    uint32_t k = gm_new(g, 'V', 1);

    if (g->code == BR_OK && !br_vec_push(&g->keeps, k))
        gm_oom(g);
    if (g->code == BR_OK)
        g->vregs.at[k].fixed = g->vregs.at[k].whole = true;
}

static void
find_home(gm_fn *g, const gm_victim *x, row *vector, row *scalar, home *h)
{
    gm_vreg *v = &g->vregs.at[x->v];
    unsigned words = v->words;

    v->fixed = true; /* nobody names it from now on */
    h->spilled = true;
    if (v->file == 'V') {
        h->at = 4 * find_room(g, vector, words, x);
        g->spill_bytes = BR_MAX(g->spill_bytes, h->at + 4 * words);
        if (g->scratch_bytes + g->spill_bytes > GM_MAX_SCRATCH)
            gm_fail(g, BR_E_LIMIT,
                    "%u bytes of local memory and %u of values that have no "
                    "register are more than %d: fewer values at once, smaller "
                    "local arrays",
                    g->scratch_bytes, g->spill_bytes, GM_MAX_SCRATCH);
        while (g->code == BR_OK && h->at / GM_WINDOW >= g->windows.n)
            new_window(g);
        return;
    }
    h->at = find_room(g, scalar, words, x);
    g->keep_used = BR_MAX(g->keep_used, h->at + words);
    while (g->code == BR_OK && h->at / scalar->bound >= g->keeps.n)
        new_keep(g);
    if (g->code != BR_OK)
        return;
    h->keep = g->keeps.at[h->at / scalar->bound];
    h->at %= scalar->bound;
}

static int
earlier(const void *p, const void *q)
{
    const gm_victim *a = p, *b = q;

    return a->from != b->from ? (a->from > b->from) - (a->from < b->from)
                              : (a->v > b->v) - (a->v < b->v);
}

bool
gm_spill(gm_fn *g, gm_victim *v, size_t n)
{
    row vector = {.at = g->spill_bytes / 4, .bound = GM_WINDOW / 4};
    row scalar = {.at = g->keep_used, .bound = br_gcn_lanes(g->isa)};
    /* What is made here is named by nothing that is looked at: windows are set
     * at last. */
    home *homes = br_try_calloc(g->vregs.n + 1, sizeof *homes);
    size_t windows = g->windows.n;

    if (!homes) {
        gm_oom(g);
        return false;
    }
    g->mode = 0;
    qsort(v, n, sizeof *v, earlier);
    for (size_t k = 0; k < n && g->code == BR_OK; k++)
        find_home(g, &v[k], &vector, &scalar, &homes[v[k].v]);
    br_vec_fini(&vector.until);
    br_vec_fini(&scalar.until);
    for (uint32_t b = 0; b < g->blks.n && g->code == BR_OK; b++) {
        gm_blk *to = &g->blks.at[b];
        gm_ins *was = to->ins.at;
        size_t n_was = to->ins.n;

        g->node = b;
        memset(&to->ins, 0, sizeof to->ins);
        for (size_t k = 0; k < n_was && g->code == BR_OK; k++)
            rewrite(g, homes, was[k]);
        br_free(was);
    }
    if (g->code == BR_OK && g->windows.n > windows)
        set_windows(g, windows);
    br_free(homes);
    return g->code == BR_OK;
}
