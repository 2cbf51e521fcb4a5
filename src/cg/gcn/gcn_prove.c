/* gcn_prove.c - that machine code waits for memory before it uses it.
 *
 * Told by the words alone, and by another way than gcn_wait.c goes: from each
 * operation of memory the code is walked forward, all ways, with the number of
 * operations of the same counter begun since, until a wait is strong enough.
 * Whoever meets a register of the operation before that, or a barrier that its
 * effect has to precede, is the fault.
 *
 *   in order    a wait for n is enough when n or more were begun since
 *   any order   scalar loads, flat ones, and LDS beside scalar loads on gfx11
 *               (one counter): only a wait for none is
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum { UNSEEN = 255 };

typedef struct line {
    br_gcn_inst in;
    gcn_memory m;
    size_t at;      /* word */
    int64_t target; /* line of a branch, or -1 */
    bool falls;     /* goes on to the next one */
    bool loose;
} line;

typedef struct prove {
    const br_gcn_isa *isa;
    line *l;
    size_t n;
    uint32_t *by_word; /* line that begins there, plus one; 0: none */
    uint8_t *seen;     /* fewest begun since, by line */
    uint32_t *todo;
    br_status *st;
} prove;

/* ---- words to lines ---------------------------------------------------- */

static br_code
read_lines(prove *p, const uint32_t *w, size_t n)
{
    size_t at = 0;

    for (; at < n; at += p->l[p->n++].in.words) {
        line *l = &p->l[p->n];

        l->at = at;
        p->by_word[at] = (uint32_t)p->n + 1;
        l->target = -1;
        if (!br_gcn_decode(p->isa, w + at, n - at, &l->in))
            return br_fail(p->st, BR_E_FORMAT, "word %zu is no instruction",
                           at);
        l->m = gcn_memory_of(p->isa, &l->in);
        l->loose = l->m.smem || l->m.flat;
        l->falls = !gcn_is(&l->in, "s_endpgm") && !gcn_is(&l->in, "s_branch");
    }
    for (size_t k = 0; k < p->n; k++) {
        line *l = &p->l[k];
        int64_t to = (int64_t)l->at + 1;

        if (gcn_is(&l->in, "s_branch") || gcn_is(&l->in, "s_cbranch")) {
            to += (int16_t)br_gcn_get(&l->in, BR_GF_simm16);
            if (to >= 0 && to < (int64_t)n)
                l->target = (int64_t)p->by_word[to] - 1;
            if (l->target < 0)
                return br_fail(p->st, BR_E_FORMAT,
                               "word %zu branches to no instruction", l->at);
        }
        if (l->falls && k + 1 == p->n)
            return br_fail(p->st, BR_E_FORMAT, "the code runs off its end");
    }
    return BR_OK;
}

/* ---- one operation ----------------------------------------------------- */

static bool
touches(const prove *p, const line *from, const line *l)
{
    gcn_use a[GCN_MAX_USES], b[GCN_MAX_USES];
    unsigned n = gcn_uses(p->isa, &from->in, a),
             m = gcn_uses(p->isa, &l->in, b);

    for (unsigned x = 0; x < n; x++)
        for (unsigned y = 0; a[x].write && y < m; y++)
            if (a[x].code < b[y].code + b[y].words &&
                b[y].code < a[x].code + a[x].words)
                return true;
    return false;
}

static br_code
fault(const prove *p, const line *from, const line *l)
{
    br_str a = {0}, b = {0};

    br_gcn_print(p->isa, &from->in, &a);
    br_gcn_print(p->isa, &l->in, &b);
    br_fail(p->st, BR_E_FAULT,
            "word %zu: %.80s: does not wait for word %zu: %.80s", l->at,
            br_str_z(&b), from->at, br_str_z(&a));
    br_str_fini(&a);
    br_str_fini(&b);
    return BR_E_FAULT;
}

static void
visit(prove *p, int64_t to, unsigned since, size_t *top)
{
    if (to < 0 || p->seen[to] <= since)
        return;
    p->todo[(*top)++] = (uint32_t)to; /* at most once a number: 63 times */
    p->seen[to] = (uint8_t)since;
}

/* Walks from an operation of a counter. mark: LDS on the way is loose, too. */
static br_code
follow(prove *p, size_t start, int c, bool mark)
{
    const line *from = &p->l[start];
    bool early = c == GCN_DS || c == GCN_STORE, loose = from->loose;
    size_t top = 0;

    memset(p->seen, UNSEEN, p->n);
    visit(p, (int64_t)start + 1, 0, &top);
    while (top) {
        size_t k = p->todo[--top];
        line *l = &p->l[k];
        unsigned since = p->seen[k];
        int wait[GCN_COUNTERS];

        if (gcn_is_wait(p->isa, &l->in, wait) && wait[c] >= 0 &&
            (loose ? wait[c] == 0 : wait[c] <= (int)since))
            continue;
        loose |= l->m.on[c] && l->m.smem;
        if (mark) {
            l->loose |= l->m.on[c];
        } else if (touches(p, from, l) ||
                   (early && gcn_is(&l->in, "s_barrier") &&
                    !gcn_is(&l->in, "s_barrier_wait"))) {
            return fault(p, from, l);
        }
        if (l->m.on[c])
            since = BR_MIN(since + 1, 62u);
        if (l->falls)
            visit(p, (int64_t)k + 1, since, &top);
        visit(p, l->target, since, &top);
    }
    return BR_OK;
}

/* On gfx11 LDS shares its counter with scalar loads. */
static void
mark_mixed(prove *p)
{
    bool mixed = false;

    for (size_t k = 0; k < p->n; k++)
        mixed |= p->l[k].m.on[GCN_DS] && p->l[k].m.smem;
    for (size_t k = 0; mixed && k < p->n; k++)
        if (p->l[k].m.smem)
            (void)follow(p, k, GCN_DS, true);
}

br_code
br_gcn_prove(const br_gcn_isa *isa, const uint32_t *w, size_t n, br_status *st)
{
    prove p = {.isa = isa, .st = st};
    br_code c = BR_OK;

    p.l = br_try_calloc(n + 1, sizeof *p.l);
    p.by_word = br_try_calloc(n + 1, sizeof *p.by_word);
    p.seen = br_try_calloc(n + 1, 1);
    p.todo = br_try_calloc(64 * (n + 1), sizeof *p.todo);
    if (!p.l || !p.by_word || !p.seen || !p.todo)
        c = br_fail(st, BR_E_OOM, "out of memory");
    if (c == BR_OK)
        c = read_lines(&p, w, n);
    if (c == BR_OK)
        mark_mixed(&p);
    for (size_t k = 0; c == BR_OK && k < p.n; k++)
        for (int x = 0; c == BR_OK && x < GCN_COUNTERS; x++)
            if (p.l[k].m.on[x])
                c = follow(&p, k, x, false);
    br_free(p.l);
    br_free(p.by_word);
    br_free(p.seen);
    br_free(p.todo);
    return c;
}
