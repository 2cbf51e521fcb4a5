/* check_page.c - buffers that share memory never need it at the same time.
 *
 *     page 0   |-- a --|       |-- c --|        a before b: every use of a
 *              |       |-- b --|       |        happens before every write
 *              '------------------------> time  of b
 *
 * Only activations have pages: each lives from the first write of its pass to
 * the last read. Two of them may share a page iff one is before the other. One
 * exception: a task that reads a and writes b element by element, both of one
 * shape and element size, overwrites an element only after it has read it, so
 * the last use of a may be the first write of b.
 *
 * "Before" is transitive where every buffer has a writer: the writes of b are
 * uses of b. So the occupants of a page, sorted by the topological place of
 * their first write, are proved by looking at neighbours only.
 *
 * Live ranges of the table are claims, and looked at as such: stated, they
 * must span all uses, in topological places or in list places. Nothing else
 * relies on them.
 *
 * Cost      O(uses of paged buffers) + one question for each (counter of a
 *           user, waits of a writer) of neighbours.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_sound.h"
#include "mega/step.h"

/* ---- the table ---------------------------------------------------------- */

static void
say(br_snd *s)
{
    br_chk_take_error(s->k);
    s->broken = true;
}

static void
check_page(br_snd *s, uint32_t i)
{
    const br_mega_page *page = &s->p->pages[i];

    if (page->id != i) {
        br_str_printf(&s->k->text,
                      "pages[%u] has id %lld; ids must be 0..n-1 in list order",
                      i, (long long)page->id);
        say(s);
    }
    if (page->nbytes < 0) {
        br_str_printf(&s->k->text, "page %u has %lld bytes", i,
                      (long long)page->nbytes);
        say(s);
    }
    if (page->live_start < -1 || page->live_end < -1 ||
        (page->live_start >= 0 && page->live_end >= 0 &&
         page->live_start > page->live_end)) {
        br_str_printf(&s->k->text, "page %u is live from %lld to %lld", i,
                      (long long)page->live_start, (long long)page->live_end);
        say(s);
    }
    s->any_onchip |=
        page->space == BR_MSP_SMEM || page->space == BR_MSP_REGISTER;
}

/* Bytes that a buffer takes on a page; rows of I4 begin on a byte. */
static int64_t
bytes_of(const br_snd *s, uint32_t b)
{
    int64_t n = br_mega_nbytes(&s->p->buffers[b]);

    if (s->val[b].dtype == BR_MDT_I4 && s->val[b].ok)
        n = s->val[b].numel / s->val[b].last * ((s->val[b].last + 1) / 2);
    return n;
}

static void
check_bind(br_snd *s, uint32_t e)
{
    const br_mega_bind *bind = &s->p->binds[e];
    br_str *out = &s->k->text;
    uint32_t b = (uint32_t)bind->buffer;

    if ((uint64_t)bind->buffer >= s->nb) {
        br_str_printf(out, "buffer_to_page maps missing buffer %lld",
                      (long long)bind->buffer);
        say(s);
        return;
    }
    if ((uint64_t)bind->page >= s->p->n_pages) {
        br_snd_put_buffer(s, b);
        br_str_printf(out, " is bound to missing page %lld",
                      (long long)bind->page);
        say(s);
        return;
    }
    s->page_of[b] = (uint32_t)bind->page;
    if (s->val[b].kind != BR_MBK_ACTIVATION) {
        br_snd_put_buffer(s, b);
        br_str_printf(out,
                      " is %s and cannot live on a page: only ACTIVATION "
                      "is scratch",
                      br_mega_kind_name(s->val[b].kind));
        say(s);
    }
    if (bytes_of(s, b) > s->p->pages[bind->page].nbytes) {
        br_snd_put_buffer(s, b);
        br_str_printf(out, " of %lld bytes does not fit page %lld of %lld",
                      (long long)bytes_of(s, b), (long long)bind->page,
                      (long long)s->p->pages[bind->page].nbytes);
        say(s);
    }
}

bool
br_snd_page_table(br_snd *s)
{
    if (!s->p->has_pages)
        return true;
    s->page_of = br_chk_get(s->k, s->nb, sizeof *s->page_of);
    if (!s->page_of)
        return br_snd_no_memory(s);
    memset(s->page_of, 0xff, s->nb * sizeof *s->page_of);
    for (uint32_t i = 0; i < s->p->n_pages; i++)
        check_page(s, i);
    for (uint32_t e = 0; e < s->p->n_binds; e++)
        check_bind(s, e);
    return true;
}

/* ---- who uses a paged buffer -------------------------------------------- */

typedef struct life { /* of a paged buffer that is used */
    uint32_t buffer, page;
    uint32_t first_write; /* topological place, or NONE */
    uint32_t use, n_use;  /* its users: use[] in the state, ascending */
} life;

typedef struct pages {
    br_snd *s;
    life *life;
    uint32_t n;
    uint32_t *of; /* buffer -> life, or NONE */
    uint32_t *use;
    uint32_t *one, *other; /* of each run of users; see make_runs */
    uint32_t n_runs;
} pages;

static void
count_use(pages *g, uint32_t b, uint32_t t, bool write)
{
    br_snd *s = g->s;
    uint32_t place = br_hb_rank(&s->hb, t);
    life *l;

    if (s->page_of[b] == BR_NONE)
        return;
    if (g->of[b] == BR_NONE) {
        g->of[b] = g->n;
        g->life[g->n++] = (life){b, s->page_of[b], BR_NONE, 0, 0};
    }
    l = &g->life[g->of[b]];
    l->n_use++;
    if (write && (l->first_write == BR_NONE || place < l->first_write))
        l->first_write = place;
}

static bool
gather(pages *g)
{
    br_snd *s = g->s;
    uint32_t at = 0;

    g->life = br_chk_get(s->k, s->p->n_binds, sizeof *g->life);
    g->of = br_chk_get(s->k, s->nb, 4);
    if (!g->life || !g->of)
        return br_snd_no_memory(s);
    memset(g->of, 0xff, s->nb * sizeof *g->of);
    for (uint32_t t = 0; t < s->n; t++) {
        for (uint32_t i = s->in_off[t]; i < s->in_off[t + 1]; i++)
            count_use(g, s->in[i], t, false);
        for (uint32_t i = s->out_off[t]; i < s->out_off[t + 1]; i++)
            count_use(g, s->out[i], t, true);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        g->life[i].use = at;
        at += g->life[i].n_use;
        g->life[i].n_use = 0;
    }
    g->use = br_chk_get(s->k, at, 4);
    g->one = br_chk_get(s->k, at, 4);
    g->other = br_chk_get(s->k, at, 4);
    if (!g->use || !g->one || !g->other)
        return br_snd_no_memory(s);
    for (uint32_t t = 0; t < s->n; t++) {
        for (uint32_t i = s->in_off[t]; i < s->in_off[t + 1]; i++)
            if (g->of[s->in[i]] != BR_NONE) {
                life *l = &g->life[g->of[s->in[i]]];

                g->use[l->use + l->n_use++] = t;
            }
        for (uint32_t i = s->out_off[t]; i < s->out_off[t + 1]; i++)
            if (g->of[s->out[i]] != BR_NONE) {
                life *l = &g->life[g->of[s->out[i]]];

                g->use[l->use + l->n_use++] = t;
            }
    }
    return true;
}

/* ---- live ranges -------------------------------------------------------- */

/* Least and greatest place of the uses, in the list or by rank. */
static void
span(const pages *g, const life *l, const uint32_t *rank, uint32_t at[2])
{
    at[0] = BR_NONE;
    at[1] = 0;
    for (uint32_t i = 0; i < l->n_use; i++) {
        uint32_t t = g->use[l->use + i], place = rank ? rank[t] : t;

        at[0] = BR_MIN(at[0], place);
        at[1] = BR_MAX(at[1], place);
    }
}

static bool
within(const br_mega_page *p, const uint32_t at[2])
{
    return (p->live_start < 0 || p->live_start <= (int64_t)at[0]) &&
           (p->live_end < 0 || p->live_end >= (int64_t)at[1]);
}

static bool
check_live(pages *g)
{
    br_snd *s = g->s;

    for (uint32_t i = 0; i < g->n; i++) {
        const life *l = &g->life[i];
        const br_mega_page *p = &s->p->pages[l->page];
        uint32_t at[2];

        if (p->live_start < 0 && p->live_end < 0)
            continue;
        span(g, l, NULL, at);
        if (within(p, at))
            continue;
        if (!br_snd_graph(s))
            return false;
        span(g, l, s->g.rank, at);
        if (within(p, at))
            continue;
        br_str_printf(&s->k->text, "page %u is live from %lld to %lld but ",
                      l->page, (long long)p->live_start,
                      (long long)p->live_end);
        br_snd_put_buffer(s, l->buffer);
        br_str_printf(&s->k->text, " on it is used from %u to %u", at[0],
                      at[1]);
        say(s);
    }
    return true;
}

/* ---- order -------------------------------------------------------------- */

static int
by_page(const void *x, const void *y)
{
    const life *a = x, *b = y;

    if (a->page != b->page)
        return a->page < b->page ? -1 : 1;
    if (a->first_write != b->first_write)
        return a->first_write < b->first_write ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

/* Does task t read buffer a only to overwrite it with b, element by element? */
static bool
in_place(const br_snd *s, uint32_t t, uint32_t a, uint32_t b)
{
    const br_mega_task *task = &s->p->tasks[t];
    br_op_call c = {.op = task->op, .out = &s->val[b]};

    if (!br_snd_writes(s, t, b) || br_mega_is_step(task->op))
        return false;
    for (uint32_t i = 0; i < task->n_in; i++) {
        c.in[0] = &s->val[task->in[i]];
        if (task->in[i] == a && !br_op_in_place(&c, 0))
            return false;
    }
    return true;
}

/* Users next to each other that signal one counter are one question: one of
 * them, and another for when the first is who asks. Returns a counter that is
 * complete only when all users are done, or NONE. */
static uint32_t
make_runs(pages *g, const life *a)
{
    const uint32_t *use = g->use + a->use, *ctr = g->s->ctr;
    uint32_t top = BR_NONE, n = 0;

    for (uint32_t i = 0; i < a->n_use; i++) {
        if (n && ctr[g->one[n - 1]] == ctr[use[i]]) {
            if (use[i] != g->one[n - 1])
                g->other[n - 1] = use[i];
            continue;
        }
        top = n ? br_hb_latest(&g->s->hb, top, ctr[use[i]]) : ctr[use[i]];
        g->one[n] = use[i];
        g->other[n++] = BR_NONE;
    }
    g->n_runs = n;
    return top;
}

/* Is every use of a before write w of b? */
static bool
uses_before(pages *g, const life *a, const life *b, uint32_t w)
{
    br_hb *h = &g->s->hb;

    for (uint32_t i = 0; i < g->n_runs; i++) {
        uint32_t ask = g->one[i] != w ? g->one[i] : g->other[i];

        if (ask == BR_NONE && in_place(g->s, w, a->buffer, b->buffer))
            continue;
        if (!(ask == BR_NONE ? br_hb_refuse(h, w, w, b->buffer, a->buffer)
                             : br_hb_require(h, ask, w, b->buffer, a->buffer)))
            return false;
    }
    return true;
}

/* Writers of b with equal waits are one question. (One that uses a as well is
 * no exception: it would have to come before the other, which it cannot, for
 * then it would be among its own ancestors.) */
static bool
check_neighbours(pages *g, const life *a, const life *b)
{
    br_snd *s = g->s;
    uint32_t prev = BR_NONE, first[2], last[2], top = make_runs(g, a);
    br_deal deal = {0};

    span(g, a, s->hb.rank, first);
    span(g, b, s->hb.rank, last);
    deal.from = BR_MIN(first[0], last[1]);
    deal.to = last[1];
    for (uint32_t i = 0; i < b->n_use && !br_hb_full(&s->hb); i++) {
        uint32_t w = g->use[b->use + i];

        if (!br_snd_writes(s, w, b->buffer) || w == prev)
            continue;
        if (prev != BR_NONE && br_snd_same_waits(s, prev, w))
            continue;
        prev = w;
        if ((top != BR_NONE && br_hb_quick(&s->hb, top, w) == BR_YES) ||
            br_hb_bought(&s->hb, &deal, w))
            continue;
        deal.pairs += g->n_runs;
        if (!uses_before(g, a, b, w) ||
            (br_hb_worth(&deal, g->n_runs) &&
             !br_hb_buy(&s->hb, &deal, &s->region, g->one, g->n_runs)))
            return false;
    }
    return true;
}

/* Here a pair's kind is the other buffer: a was used by pair.a, and pair.b
 * writes pair.buffer on the same page. One message for two buffers. */
static void
say_pairs(pages *g)
{
    br_snd *s = g->s;

    for (size_t i = 0; i < s->hb.bad.n; i++) {
        const br_pair *p = &s->hb.bad.at[i];
        bool told = false;

        for (size_t j = 0; j < i && !told; j++)
            told = s->hb.bad.at[j].buffer == p->buffer &&
                   s->hb.bad.at[j].kind == p->kind;
        if (told)
            continue;
        br_str_printf(&s->k->text, "page %u reused by buffers #%u ('",
                      s->page_of[p->buffer], p->kind);
        br_put_buffer(&s->k->text, s->p, p->kind);
        br_str_printf(&s->k->text, "') and #%u ('", p->buffer);
        br_put_buffer(&s->k->text, s->p, p->buffer);
        br_str_puts(&s->k->text, "') whose live ranges are NOT ordered, "
                                 "clobber RACE (page reuse needs separated "
                                 "ranges)");
        br_chk_take_error(s->k);
    }
    s->k->r->more_errors += s->hb.more_bad;
}

bool
br_snd_pages(br_snd *s)
{
    pages g = {.s = s};

    if (!s->page_of || s->p->n_binds == 0)
        return true;
    br_assert(s->hb.bad.n == 0 || s->k->r->errors.n);
    if (s->hb.bad.n)
        return true; /* a race inside a buffer comes first */
    if (!gather(&g) || !check_live(&g))
        return false;
    if (g.n)
        qsort(g.life, g.n, sizeof *g.life, by_page);
    for (uint32_t i = 1; i < g.n; i++)
        if (g.life[i].page == g.life[i - 1].page &&
            g.life[i].first_write != BR_NONE &&
            g.life[i - 1].first_write != BR_NONE &&
            !check_neighbours(&g, &g.life[i - 1], &g.life[i]))
            return false;
    if (!br_hb_settle(&s->hb))
        return false;
    say_pairs(&g);
    return true;
}
