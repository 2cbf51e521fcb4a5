/* sim_order.c - whether a wave may know what another wave wrote to memory.
 *
 *   wave a    store x        wait for it      [write back]   store flag
 *   wave b    load flag      wait for it      invalidate     load x
 *
 * Each step that is left out lets b read an old x on real caches, though rarely
 * on a simulator, where a value arrives at once. So values are not delayed;
 * instead each wave has a clock: for every other wave the numbers of its stores
 * and loads that it may rely on. Each word of memory remembers who wrote it, the
 * number of that store, and what the writer could rely on then.
 *
 *   a load that passes by the caches (glc, scope) of such a word brings the
 *   writer's clock: `coming` until the load is waited for, then `here`, and
 *   after an invalidation of the caches `known`. A barrier hands the clocks of
 *   all waves of a group around.
 *   A plain load of what another wave wrote has to find that store in `known`.
 *   A plain store over what another wave read, that load.
 *
 * gfx11 stores go through to L2: done is done for all. On gfx12 a store below
 * device scope is seen by others after global_wb. Groups of a dispatch are on
 * compute units of their own; waves of a group share an L0, but in WGP mode.
 *
 * Not followed: order made through LDS, values that come back to what they
 * were, more memory than MAX_PAGES.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_order.h"

#include "drv/sim/sim_wcheck.h"

#include <string.h>

enum {
    PAGE = 4096,
    MAX_PAGES = 4096, /* 16 MiB that kernels touch; each is 32 KiB of words */
    KEPT_PAGES = 512, /* for the next dispatch; else all are freed */
    BUCKETS = 2 * MAX_PAGES,
    POOL = 1024, /* clocks that words remember; older ones allow all */
    DEVICE = 2,  /* scopes: 0 CU, 1 SE, 2 device, 3 system */
    GL0 = 1,
    GL1 = 2,
};

/* Numbers of a wave's stores that its group, that all may rely on; of its
 * loads that are done. */
typedef struct mark {
    uint32_t group, device, loads;
} mark;

typedef struct word {
    uint16_t writer, reader; /* their places plus one; 0: nobody */
    uint8_t scope;
    bool by_load; /* its number is one of loads */
    uint32_t w_no, r_no;
    mark own;      /* of the writer when it wrote */
    uint32_t past; /* the clock it had; 0: it knew of nobody */
} word;

typedef struct page {
    uint64_t at; /* address / PAGE */
    word *words;
    uint32_t turn; /* the dispatch that touched it last */
} page;

typedef struct waiter {
    mark base; /* numbers of those that were in its place before */
    mark next; /* of them and this one, once it has ended */
    mark bar;  /* at its last barrier */
    mark *known, *here, *coming;
    bool any[3];
    bool wide;                 /* they say something of other groups, too */
    uint32_t past;             /* in the pool, as known is now; 0: not there */
    uint32_t load;             /* that brings what is coming */
    uint32_t inv, inv_no;      /* gfx11: caches; gfx12: number of its load */
    uint32_t wb_no, wb_stores; /* gfx12: what a write-back covers */
    uint32_t device;           /* gfx12: stores that are written back */
} waiter;

struct sim_order {
    unsigned n, per_group; /* waves */
    bool shared_l0;
    waiter *w;
    mark *clocks, *pool, *sum;
    uint32_t last; /* of the pool */
    page *pages;   /* a hash */
    size_t n_pages;
    page *hit;
    uint32_t turn; /* dispatches so far */
};

/* ---- clocks --------------------------------------------------------------- */

static unsigned
place(const sim_wave *w)
{
    return w->g->slot * w->g->order->per_group + w->id;
}

static mark
later(mark a, mark b)
{
    return (mark){BR_MAX(a.group, b.group), BR_MAX(a.device, b.device),
                  BR_MAX(a.loads, b.loads)};
}

static void
join(mark *to, const mark *from, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        to[k] = later(to[k], from[k]);
}

/* The part of a wave's clocks that may say something: most waves hear of their
 * own group alone. */
typedef struct part {
    unsigned at, n;
} part;

static part
part_of(const sim_order *r, const waiter *x)
{
    unsigned self = (unsigned)(x - r->w);

    return x->wide ? (part){0, r->n}
                   : (part){self - self % r->per_group, r->per_group};
}

/* What a wave's own operations are worth now. */
static mark
own_now(const sim_wave *w, const waiter *x)
{
    const sim_wcheck *k = w->check;
    uint32_t done = x->base.group + k->c[C_STORE].done;

    return (mark){done, w->isa.cpu->gen == 11 ? done : x->device,
                  x->base.loads + k->c[C_LOAD].done};
}

static const mark *
remembered(const sim_order *r, uint32_t past)
{
    return past && r->last - past < POOL ? r->pool + past % POOL * r->n : NULL;
}

static mark *
remember(sim_order *r, uint32_t *past)
{
    *past = ++r->last;
    return r->pool + *past % POOL * r->n;
}

/* Adds what the writer of a word relied on. */
static void
add_past(const sim_order *r, mark *to, const word *x)
{
    const mark *past = remembered(r, x->past);

    if (past)
        join(to, past, r->n);
    else if (x->past) /* forgotten: nothing is held against it */
        for (unsigned k = 0; k < r->n; k++)
            to[k] = (mark){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    to[x->writer - 1] = later(to[x->writer - 1], x->own);
}

static void
learn(sim_order *r, waiter *x)
{
    part p = part_of(r, x);

    if (!x->any[1])
        return;
    join(x->known + p.at, x->here + p.at, p.n);
    memset(x->here + p.at, 0, p.n * sizeof *x->here);
    x->any[0] = true;
    x->any[1] = false;
    x->past = 0;
}

/* ---- words ---------------------------------------------------------------- */

/* Of a page that this dispatch has not touched yet. */
static word *
fresh(sim_order *r, page *p, uint64_t key)
{
    if (p->words) {
        memset(p->words, 0, PAGE / 4 * sizeof *p->words);
    } else {
        if (r->n_pages == MAX_PAGES + KEPT_PAGES)
            return NULL;
        p->words = br_try_calloc(PAGE / 4, sizeof *p->words);
        if (!p->words)
            return NULL;
        p->at = key;
        r->n_pages++;
    }
    p->turn = r->turn;
    r->hit = p;
    return p->words;
}

static word *
words_of(sim_order *r, uint64_t at)
{
    uint64_t key = at / PAGE;
    size_t k = (size_t)(key * 0x9e3779b97f4a7c15ull >> 51) & (BUCKETS - 1);

    if (r->hit && r->hit->at == key)
        return r->hit->words;
    for (; r->pages[k].words && r->pages[k].at != key;)
        k = (k + 1) & (BUCKETS - 1);
    if (!r->pages[k].words || r->pages[k].turn != r->turn)
        return fresh(r, &r->pages[k], key);
    r->hit = &r->pages[k];
    return r->hit->words;
}

static bool
is_own(const sim_wave *w, const waiter *me, const word *x)
{
    return x->writer == place(w) + 1u &&
           x->w_no > (x->by_load ? me->base.loads : me->base.group);
}

/* Whether the writer is a wave of the group that w is in. */
static bool
near(const sim_wave *w, const word *x)
{
    const sim_order *r = w->g->order;
    const waiter *o = &r->w[x->writer - 1];

    return (x->writer - 1u) / r->per_group == w->g->slot &&
           x->w_no > (x->by_load ? o->base.loads : o->base.group);
}

static bool
relies(const sim_wave *w, const waiter *me, const word *x)
{
    mark m = me->known[x->writer - 1];

    if (x->by_load)
        return x->w_no <= m.loads;
    return x->w_no <= (near(w, x) || x->scope >= DEVICE ? m.group : m.device);
}

/* Whether a write has left the caches below L2, whoever asks. */
static bool
is_out(const sim_wave *w, const word *x)
{
    const waiter *o = &w->g->order->w[x->writer - 1];

    return w->isa.cpu->gen == 11 || x->scope >= DEVICE || near(w, x) ||
           x->w_no <= o->device;
}

static void
say(sim_wave *w, uint64_t at, unsigned who, const char *what)
{
    const sim_order *r = w->g->order;

    sim_note(w, NOTE_ORDER,
             "0x%llx %s wave %u of %s work-group, and nothing orders that "
             "before this",
             (unsigned long long)at, what, (who - 1) % r->per_group,
             (who - 1) / r->per_group == w->g->slot ? "this" : "another");
}

/* How far an access goes: gfx11 tells by glc, but of stores. */
static unsigned
reach_of(const sim_wave *w, const sim_op *o, const sim_reach *t)
{
    if (w->isa.cpu->gen == 12)
        return o->scope;
    return t->atomic || t->write || o->scope ? DEVICE : 0;
}

/* What stays the same over the words of an access. */
typedef struct visit {
    sim_wave *w;
    const sim_op *o;
    const sim_reach *t;
    waiter *me;
    word left;     /* what a write leaves */
    uint16_t self; /* place plus one */
    uint32_t load; /* number of this one */
    bool strong;
} visit;

/* Another wave wrote it. */
static void
reads_other(const visit *v, uint64_t at, const word *x)
{
    sim_wave *w = v->w;
    bool atomic = v->t->atomic, sync = v->strong || (atomic && near(w, x));

    if (!relies(w, v->me, x) && !(sync && is_out(w, x)))
        say(w, at, x->writer,
            v->strong || atomic ? "was written below device scope by"
                                : "was written by");
    if (!sync || !v->o->rtn)
        return;
    add_past(w->g->order, v->me->coming, x);
    v->me->any[2] = v->me->wide = true;
    v->me->load = v->load;
}

/* Of a word that another wave released: an atomic goes on with that. */
static uint32_t
continued(const visit *v, const word *x)
{
    sim_order *r = v->w->g->order;
    uint32_t past;
    mark *m = remember(r, &past);

    memcpy(m, v->me->known, r->n * sizeof *m);
    add_past(r, m, x);
    return past;
}

static void
words_visited(const visit *v, uint64_t at, word *x, unsigned n)
{
    const sim_reach *t = v->t;
    bool reads = !t->write || t->atomic, plain = !v->strong && !t->atomic;

    for (; n--; x++, at += 4) {
        bool other = x->writer && !is_own(v->w, v->me, x);
        uint32_t past = v->left.past;

        if (reads && plain) {
            x->reader = v->self;
            x->r_no = v->load;
        }
        if (reads && other)
            reads_other(v, at, x);
        if (!t->write)
            continue;
        if (x->reader && x->reader != v->self &&
            x->r_no > v->me->known[x->reader - 1].loads)
            say(v->w, at, x->reader, "was read by");
        if (t->atomic && other)
            past = continued(v, x);
        *x = v->left;
        x->past = past;
    }
}

static void
leave(visit *v)
{
    const sim_wcheck *k = v->w->check;
    sim_order *r = v->w->g->order;
    waiter *me = v->me;

    if (me->any[0] && !me->past)
        memcpy(remember(r, &me->past), me->known, r->n * sizeof *me->known);
    v->left = (word){.writer = v->self,
                     .scope = (uint8_t)reach_of(v->w, v->o, v->t),
                     .by_load = v->t->atomic && v->o->rtn,
                     .own = own_now(v->w, me),
                     .past = me->past};
    v->left.w_no =
        v->left.by_load ? v->load : me->base.group + k->c[C_STORE].issued + 1;
}

void
sim_order_access(sim_wave *w, const sim_op *o, const sim_reach *t)
{
    sim_order *r = w->g->order;
    unsigned self = place(w);
    uint64_t at = t->at & ~3ull, end = t->at + t->bytes;
    visit v = {.w = w, .o = o, .t = t, .me = &r->w[self]};

    v.self = (uint16_t)(self + 1);
    v.load = v.me->base.loads + w->check->c[C_LOAD].issued + 1;
    v.strong = reach_of(w, o, t) >= DEVICE && !t->scalar;
    if (t->write)
        leave(&v);
    while (at < end) {
        uint64_t next = BR_MIN(end, (at / PAGE + 1) * PAGE);
        word *x = words_of(r, at);

        if (!x)
            return;
        words_visited(&v, at, x + at % PAGE / 4,
                      (unsigned)((next - at + 3) / 4));
        at = next;
    }
}

/* ---- caches, waits, barriers ---------------------------------------------- */

void
sim_order_cache(sim_wave *w, const sim_op *o)
{
    sim_order *r = w->g->order;
    waiter *me = &r->w[place(w)];
    sim_wcheck *k = w->check;

    switch (o->sem->src[0]) {
    case ACT_GL0_INV: me->inv |= GL0; break;
    case ACT_GL1_INV: me->inv |= GL1; break;
    case ACT_INV:
        if (o->scope >= DEVICE)
            me->inv_no = k->c[C_LOAD].issued + 1;
        break;
    case ACT_WB:
        if (o->scope >= DEVICE) {
            me->wb_no = k->c[C_STORE].issued + 1;
            me->wb_stores = me->base.group + k->c[C_STORE].issued;
        }
        break;
    default: break;
    }
    if (me->inv == (GL0 | GL1)) {
        learn(r, me);
        me->inv = 0;
    }
}

/* All that the group's L0 held is written back. */
static void
written_back(sim_wave *w, waiter *me)
{
    const sim_order *r = w->g->order;
    unsigned first = w->g->slot * r->per_group;

    me->device = me->wb_stores;
    me->wb_no = 0;
    for (unsigned k = first; k < first + r->per_group; k++)
        me->known[k].device = me->known[k].group;
    me->past = 0;
}

void
sim_order_waited(sim_wave *w)
{
    sim_order *r = w->g->order;
    waiter *me = &r->w[place(w)];
    sim_wcheck *k = w->check;
    unsigned first = w->g->slot * r->per_group;

    if (me->inv_no && k->c[C_LOAD].done >= me->inv_no) {
        learn(r, me);
        me->inv_no = 0;
    }
    if (me->wb_no && k->c[C_STORE].done >= me->wb_no)
        written_back(w, me);
    if (me->any[2] && me->base.loads + k->c[C_LOAD].done >= me->load) {
        join(me->here, me->coming, r->n);
        memset(me->coming, 0, r->n * sizeof *me->coming);
        me->any[1] = true;
        me->any[2] = false;
        me->inv = me->inv_no = 0;
        for (unsigned s = first; r->shared_l0 && s < first + r->per_group; s++)
            me->known[s] = later(me->known[s], me->here[s]);
        me->any[0] |= r->shared_l0;
        me->past = 0;
    }
}

void
sim_order_arrive(sim_wave *w)
{
    waiter *me = &w->g->order->w[place(w)];

    me->bar = own_now(w, me);
    /* Loads of waves that share an L0 keep their place before what these send
     * after the barrier: so LLVM's memory model has it in CU mode. */
    if (w->g->order->shared_l0)
        me->bar.loads = me->base.loads + w->check->c[C_LOAD].issued;
}

/* What has come to one wave has come to all; what one may rely on all may that
 * have the same L0, the others after an invalidation of theirs. */
void
sim_order_barrier(sim_group *g)
{
    sim_order *r = g->order;
    mark *known = r->sum, *here = r->sum + r->n;
    unsigned first = g->slot * r->per_group;
    bool wide = false;
    part p;

    for (unsigned k = 0; k < g->n_waves; k++)
        wide |= r->w[first + k].wide;
    p = wide ? (part){0, r->n} : (part){first, r->per_group};
    memset(known + p.at, 0, p.n * sizeof *known);
    memset(here + p.at, 0, p.n * sizeof *here);
    for (unsigned k = 0; k < g->n_waves; k++) {
        waiter *x = &r->w[first + k];

        if (g->waves[k].check->ended)
            continue;
        if (x->any[0])
            join(known + p.at, x->known + p.at, p.n);
        if (x->any[1])
            join(here + p.at, x->here + p.at, p.n);
        known[first + k] = later(known[first + k], x->bar);
    }
    for (unsigned k = 0; k < g->n_waves; k++) {
        waiter *x = &r->w[first + k];

        join(x->here + p.at, here + p.at, p.n);
        join((r->shared_l0 ? x->known : x->here) + p.at, known + p.at, p.n);
        x->wide = wide;
        x->any[0] |= r->shared_l0;
        x->any[1] = true;
        x->past = 0;
        /* Within a group L0 alone stands between. */
        x->inv = r->shared_l0 ? 0 : GL1;
    }
}

/* ---- begin and end -------------------------------------------------------- */

static void
free_pages(sim_order *r)
{
    for (size_t k = 0; k < BUCKETS; k++)
        br_free(r->pages[k].words);
    memset(r->pages, 0, BUCKETS * sizeof *r->pages);
    r->n_pages = 0;
}

/* Of the dispatch before nothing is known. Clocks are cleared as waves start,
 * pages as they are touched. */
static void
forget(sim_order *r)
{
    for (unsigned k = 0; k < r->n; k++) {
        r->w[k].next = (mark){0};
        r->w[k].wide = true; /* groups may have had other sizes */
    }
    if (r->n_pages > KEPT_PAGES)
        free_pages(r);
    r->hit = NULL;
    r->turn++;
}

static br_code
make(sim_order **out, size_t n, br_status *st)
{
    sim_order *r = br_try_calloc(1, sizeof *r);

    *out = r;
    if (r) {
        r->n = (unsigned)n;
        r->w = br_try_calloc(n, sizeof *r->w);
        r->clocks = br_try_calloc(3 * n * n, sizeof *r->clocks);
        r->sum = br_try_calloc(2 * n, sizeof *r->sum);
        r->pool = br_try_calloc(POOL * n, sizeof *r->pool);
        r->pages = br_try_calloc(BUCKETS, sizeof *r->pages);
    }
    if (!r || !r->w || !r->clocks || !r->sum || !r->pool || !r->pages) {
        sim_order_free(r);
        *out = NULL;
        return br_fail(st, BR_E_OOM, "no memory for checks");
    }
    for (size_t k = 0; k < n; k++) {
        r->w[k].known = r->clocks + 3 * n * k;
        r->w[k].here = r->w[k].known + n;
        r->w[k].coming = r->w[k].here + n;
    }
    return BR_OK;
}

br_code
sim_order_new(sim_order **out, unsigned groups, unsigned waves, bool shared_l0,
              br_status *st)
{
    size_t n = (size_t)groups * waves;

    if (*out && (*out)->n != n) {
        sim_order_free(*out);
        *out = NULL;
    }
    if (!*out)
        BR_TRY(make(out, n, st));
    (*out)->per_group = waves;
    (*out)->shared_l0 = shared_l0;
    forget(*out);
    return BR_OK;
}

void
sim_order_free(sim_order *r)
{
    if (!r)
        return;
    if (r->pages)
        free_pages(r);
    br_free(r->w);
    br_free(r->clocks);
    br_free(r->sum);
    br_free(r->pool);
    br_free(r->pages);
    br_free(r);
}

void
sim_order_start(sim_wave *w)
{
    sim_order *r = w->g->order;
    waiter *x = &r->w[place(w)];
    mark *clocks = x->known;
    part p = part_of(r, x);

    for (unsigned k = 0; k < 3; k++)
        memset(clocks + k * r->n + p.at, 0, p.n * sizeof *clocks);
    *x = (waiter){.base = x->next,
                  .next = x->next,
                  .device = x->next.group,
                  .known = clocks,
                  .here = clocks + r->n,
                  .coming = clocks + 2 * r->n};
}

void
sim_order_end(sim_wave *w)
{
    waiter *x = &w->g->order->w[place(w)];

    x->next.group = x->base.group + w->check->c[C_STORE].issued;
    x->next.loads = x->base.loads + w->check->c[C_LOAD].issued;
}
