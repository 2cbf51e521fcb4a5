/* kir_pass.c - the passes, in order, and the parts they share.
 *
 *   inline calls of small functions become their blocks
 *   ssa   phis that say one thing go
 *   fold  constants are computed by br_keval, identities taken, branches on
 *         constants become jumps and what they alone led to goes
 *   space generic accesses say which memory they mean
 *   flow  small branches become selects, blocks in a row one
 *   gvn   what was computed above is not computed again
 *   hoist what is the same in every round of a loop is computed before it
 *   join  loads side by side become one, stores too
 *   dce   what nobody uses goes
 *   sched instructions go where fewer values are alive
 *
 * Each changes one function and leaves it as br_kir_verify wants it; the driver
 * verifies after every pass that changed one, always.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

const br_kpass br_kpasses[] = {
    {"inline", br_kpass_inline},
    {"ssa", br_kpass_ssa},
    {"fold", br_kpass_fold},
    {"space", br_kpass_space},
    {"flow", br_kpass_flow},
    {"gvn", br_kpass_gvn},
    {"hoist", br_kpass_hoist},
    {"join", br_kpass_join},
    {"dce", br_kpass_dce},
    {"sched", br_kpass_sched},
    {NULL, NULL},
};

br_code
br_kir_optimise(br_kir *m, const char *last, br_status *st)
{
    for (const br_kpass *p = br_kpasses; p->name; p++) {
        bool any = p == br_kpasses; /* what comes in, too */

        for (size_t k = 0; k < m->fns.n; k++)
            if (m->fns.at[k].blks.n)
                any |= p->run(m, &m->fns.at[k]);
        if (m->oom)
            return br_fail(st, BR_E_OOM, "pass %s: out of memory", p->name);
        if (any && br_kir_verify(m, st) != BR_OK)
            return br_prefix(st, "after pass %s", p->name);
        if (last && strcmp(last, p->name) == 0)
            break;
    }
    return BR_OK;
}

/* ---- one value for another ---------------------------------------------- */

uint32_t
br_ksame_find(uint32_t *same, uint32_t v)
{
    while (same[v] != v) {
        same[v] = same[same[v]];
        v = same[v];
    }
    return v;
}

uint32_t *
br_ksame_new(br_kir *m, const br_kfn *f)
{
    /* Passes may make constants: room for one more per instruction. */
    size_t n = f->vals.n + 2 * f->ins.n + 16;
    uint32_t *same = br_try_alloc(n * sizeof *same);

    if (!same)
        m->oom = true;
    for (uint32_t k = 0; same && k < n; k++)
        same[k] = k;
    return same;
}

void
br_ksame_apply(br_kfn *f, uint32_t *same)
{
    for (size_t b = 0; b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
            const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];

            for (unsigned a = 0; a < i->n_arg; a++)
                br_kargs(f, i)[a] = br_ksame_find(same, br_kargs(f, i)[a]);
        }
}

/* ---- blocks that nothing reaches ---------------------------------------- */

static void
drop_edge(br_kfn *f, uint32_t to, size_t edge)
{
    br_kblk *k = &f->blks.at[to];

    for (size_t at = 0; at < k->ins.n; at++) {
        br_kins *i = &f->ins.at[k->ins.at[at]];

        if (i->op != BR_K_PHI)
            break;
        memmove(&br_kargs(f, i)[edge], &br_kargs(f, i)[edge + 1],
                (i->n_arg - edge - 1) * sizeof(uint32_t));
        i->n_arg--;
    }
    memmove(&k->pred.at[edge], &k->pred.at[edge + 1],
            (k->pred.n - edge - 1) * sizeof *k->pred.at);
    k->pred.n--;
}

/* Takes the s-th edge out of a block away, phis included. */
void
br_kfn_cut(br_kfn *f, uint32_t from, size_t s)
{
    br_kblk *b = &f->blks.at[from];
    uint32_t to = b->succ.at[s];
    size_t nth = 0, edge = 0;

    for (size_t k = 0; k < s; k++)
        nth += b->succ.at[k] == to;
    while (f->blks.at[to].pred.at[edge] != from || nth-- > 0)
        edge++;
    drop_edge(f, to, edge);
    memmove(&b->succ.at[s], &b->succ.at[s + 1],
            (b->succ.n - s - 1) * sizeof *b->succ.at);
    b->succ.n--;
}

void
br_kfn_drop_dead(br_kir *m, br_kfn *f)
{
    size_t n = f->blks.n, kept = 0;
    uint32_t *mem = br_try_calloc(2 * n + 1, sizeof *mem), *place;

    if (!mem) {
        m->oom = true;
        return;
    }
    place = mem + n;
    if (br_kfn_rpo(f, mem, place) == n) {
        br_free(mem);
        return;
    }
    for (uint32_t b = 0; b < n; b++)
        while (place[b] == BR_KNONE && f->blks.at[b].succ.n)
            br_kfn_cut(f, b, f->blks.at[b].succ.n - 1);
    for (uint32_t b = 0; b < n; b++) {
        if (place[b] == BR_KNONE) {
            br_vec_fini(&f->blks.at[b].ins);
            br_vec_fini(&f->blks.at[b].succ);
            br_vec_fini(&f->blks.at[b].pred);
            continue;
        }
        place[b] = (uint32_t)kept;
        f->blks.at[kept++] = f->blks.at[b];
    }
    f->blks.n = kept;
    for (size_t b = 0; b < kept; b++) {
        for (size_t k = 0; k < f->blks.at[b].succ.n; k++)
            f->blks.at[b].succ.at[k] = place[f->blks.at[b].succ.at[k]];
        for (size_t k = 0; k < f->blks.at[b].pred.n; k++)
            f->blks.at[b].pred.at[k] = place[f->blks.at[b].pred.at[k]];
    }
    br_free(mem);
}

/* ---- tidying ------------------------------------------------------------ */

size_t
br_kblk_phis(const br_kfn *f, const br_kblk *b)
{
    size_t n = 0;

    while (n < b->ins.n && f->ins.at[b->ins.at[n]].op == BR_K_PHI)
        n++;
    return n;
}

void
br_kfn_sort_preds(br_kfn *f, br_kblk *b)
{
    size_t phis = br_kblk_phis(f, b);

    for (size_t n = 1; n < b->pred.n; n++)
        for (size_t at = n; at > 0 && b->pred.at[at - 1] > b->pred.at[at];
             at--) {
            uint32_t t = b->pred.at[at];

            b->pred.at[at] = b->pred.at[at - 1];
            b->pred.at[at - 1] = t;
            for (size_t k = 0; k < phis; k++) {
                uint32_t *a = br_kargs(f, &f->ins.at[b->ins.at[k]]) + at;

                t = a[0];
                a[0] = a[-1];
                a[-1] = t;
            }
        }
}

bool
br_kfn_sweep(br_kfn *f, const uint8_t *gone)
{
    bool any = false;

    for (size_t b = 0; b < f->blks.n; b++) {
        br_kblk *k = &f->blks.at[b];
        size_t n = 0;

        for (size_t at = 0; at < k->ins.n; at++)
            if (!gone[k->ins.at[at]])
                k->ins.at[n++] = k->ins.at[at];
        any |= n < k->ins.n;
        k->ins.n = n;
    }
    return any;
}
