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

#include <stddef.h>
#include <string.h>

enum {
    PAGE = 4096,
    MAX_PAGES = 4096, /* 16 MiB that kernels touch; each takes 32 KiB */
    WORDS = PAGE / 4,
    KEPT_PAGES = 512,  /* for the next dispatch; else all are freed */
    FEW_BUCKETS = 256, /* at first: of most kernels, which end soon */
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

/* Who wrote or read a word: place plus one, 16 bits; scope, 2; whether by a
 * load, 1; and in the low half the number of that store or load. 0: nobody. */
typedef uint64_t who;
enum { WHO_PLACE = 48, WHO_LOAD = 34, WHO_SCOPE = 32 };

/* What a writer left beside its number. */
typedef struct left {
    mark own;      /* of the writer when it wrote */
    uint32_t past; /* the clock it had; 0: it knew of nobody */
} left;

/* The two that most accesses are done with lie together, apart from the third
 * that few look at. */
typedef struct words {
    who write[WORDS], read[WORDS];
    left left[WORDS];
} words;

static unsigned
place_of(who x)
{
    return (unsigned)(x >> WHO_PLACE);
}

static unsigned
scope_of(who x)
{
    return x >> WHO_SCOPE & 3;
}

static bool
by_load(who x)
{
    return x >> WHO_LOAD & 1;
}

typedef struct page {
    uint64_t at; /* address / PAGE */
    words *words;
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
    mark *clocks, *sum;
    /* What writers relied on: of all waves, or of those of their group alone. */
    mark *pool, *near_pool;
    bool pool_wide[POOL];
    uint32_t last; /* of the pool */
    page *pages;   /* a hash */
    size_t n_pages, buckets;
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

/* What the writer of x relied on, and of whom; NULL: nobody, or it is forgotten. */
static const mark *
remembered(const sim_order *r, uint32_t past, who x, part *p)
{
    unsigned at = place_of(x) - 1, slot = past % POOL;

    if (!past || r->last - past >= POOL)
        return NULL;
    if (r->pool_wide[slot]) {
        *p = (part){0, r->n};
        return r->pool + (size_t)slot * r->n;
    }
    *p = (part){at - at % r->per_group, r->per_group};
    return r->near_pool + (size_t)slot * r->per_group;
}

/* Most know of their group alone: 48 bytes instead of 1.5 KB. */
static mark *
remember(sim_order *r, uint32_t *past, bool wide)
{
    unsigned slot;

    *past = ++r->last;
    slot = *past % POOL;
    r->pool_wide[slot] = wide;
    return wide ? r->pool + (size_t)slot * r->n
                : r->near_pool + (size_t)slot * r->per_group;
}

/* Adds what the writer of a word relied on. */
static void
add_past(const sim_order *r, mark *to, who x, const left *l)
{
    part p;
    const mark *past = remembered(r, l->past, x, &p);
    mark *writer = &to[place_of(x) - 1];

    if (past)
        join(to + p.at, past, p.n);
    else if (l->past) /* forgotten: nothing is held against it */
        for (unsigned k = 0; k < r->n; k++)
            to[k] = (mark){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    *writer = later(*writer, l->own);
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

/* Where a page is, or will be. */
static page *
slot_of(const sim_order *r, uint64_t key)
{
    size_t k = (size_t)(key * 0x9e3779b97f4a7c15ull >> 51) & (r->buckets - 1);

    while (r->pages[k].words && r->pages[k].at != key)
        k = (k + 1) & (r->buckets - 1);
    return &r->pages[k];
}

/* Four times as many buckets. False: no memory. */
static bool
widen(sim_order *r)
{
    sim_order more = *r;

    more.buckets = r->buckets * 4 < BUCKETS ? r->buckets * 4 : BUCKETS;
    more.pages = br_try_calloc(more.buckets, sizeof *more.pages);
    if (!more.pages)
        return false;
    for (size_t k = 0; k < r->buckets; k++)
        if (r->pages[k].words)
            *slot_of(&more, r->pages[k].at) = r->pages[k];
    br_free(r->pages);
    *r = more;
    r->hit = NULL;
    return true;
}

/* Of a page that this dispatch has not touched yet. */
static words *
fresh(sim_order *r, page *p, uint64_t key)
{
    if (!p->words) {
        if (r->n_pages == MAX_PAGES + KEPT_PAGES)
            return NULL;
        if (r->n_pages * 2 >= r->buckets && r->buckets < BUCKETS) {
            if (!widen(r))
                return NULL;
            p = slot_of(r, key);
        }
        p->words = br_try_alloc(sizeof *p->words);
        if (!p->words)
            return NULL;
        p->at = key;
        r->n_pages++;
    }
    memset(p->words, 0, offsetof(words, left));
    p->turn = r->turn;
    r->hit = p;
    return p->words;
}

static words *
words_of(sim_order *r, uint64_t key)
{
    page *p;

    if (r->hit && r->hit->at == key)
        return r->hit->words;
    p = slot_of(r, key);
    if (!p->words || p->turn != r->turn)
        return fresh(r, p, key);
    r->hit = p;
    return p->words;
}

/* Whether the writer is a wave of the group that w is in. */
static bool
near(const sim_wave *w, who x)
{
    const sim_order *r = w->g->order;
    const waiter *o = &r->w[place_of(x) - 1];

    return (place_of(x) - 1) / r->per_group == w->g->slot &&
           (uint32_t)x > (by_load(x) ? o->base.loads : o->base.group);
}

static bool
relies(const sim_wave *w, const waiter *me, who x)
{
    mark m = me->known[place_of(x) - 1];

    if (by_load(x))
        return (uint32_t)x <= m.loads;
    return (uint32_t)x <=
           (near(w, x) || scope_of(x) >= DEVICE ? m.group : m.device);
}

/* Whether a write has left the caches below L2, whoever asks. */
static bool
is_out(const sim_wave *w, who x)
{
    const waiter *o = &w->g->order->w[place_of(x) - 1];

    return w->isa.cpu->gen == 11 || scope_of(x) >= DEVICE || near(w, x) ||
           (uint32_t)x <= o->device;
}

static void
say(sim_wave *w, uint64_t at, unsigned wave, const char *what)
{
    const sim_order *r = w->g->order;

    sim_note(w, NOTE_ORDER,
             "0x%llx %s wave %u of %s work-group, and nothing orders that "
             "before this",
             (unsigned long long)at, what, (wave - 1) % r->per_group,
             (wave - 1) / r->per_group == w->g->slot ? "this" : "another");
}

/* How far an access goes: gfx11 tells by glc, but of stores. */
static unsigned
reach_of(const sim_wave *w, const sim_op *o, const sim_reach *t)
{
    if (w->isa.cpu->gen == 12)
        return o->scope;
    return t->atomic || t->write || o->scope ? DEVICE : 0;
}

/* What stays the same over the words of an instruction. */
typedef struct visit {
    sim_wave *w;
    const sim_op *o;
    const sim_reach *t;
    waiter *me;
    who read, write; /* what it leaves */
    left left;
    uint64_t self;    /* place plus one */
    uint32_t base[2]; /* of the wave's own stores, loads */
    uint32_t load;    /* number of this one */
    bool strong, reads, plain;
} visit;

/* Whether nobody wrote it, or this wave itself. */
static bool
is_own(const visit *v, who x)
{
    return !x || (x >> WHO_PLACE == v->self &&
                  (uint32_t)x > v->base[x >> WHO_LOAD & 1]);
}

/* Another wave wrote it. */
static void
reads_other(const visit *v, uint64_t at, who x, const left *l)
{
    sim_wave *w = v->w;
    bool atomic = v->t->atomic, sync = v->strong || (atomic && near(w, x));

    if (!relies(w, v->me, x) && !(sync && is_out(w, x)))
        say(w, at, place_of(x),
            v->strong || atomic ? "was written below device scope by"
                                : "was written by");
    if (!sync || !v->o->rtn)
        return;
    add_past(w->g->order, v->me->coming, x, l);
    v->me->any[2] = v->me->wide = true;
    v->me->load = v->load;
}

/* Of a word that another wave released: an atomic goes on with that. */
static uint32_t
continued(const visit *v, who x, const left *l)
{
    sim_order *r = v->w->g->order;
    uint32_t past;
    mark *m = remember(r, &past, true);

    memcpy(m, v->me->known, r->n * sizeof *m);
    add_past(r, m, x, l);
    return past;
}

static void
overwrites(const visit *v, uint64_t at, who reader)
{
    if (reader >> WHO_PLACE != v->self &&
        (uint32_t)reader > v->me->known[place_of(reader) - 1].loads)
        say(v->w, at, place_of(reader), "was read by");
}

/* What most accesses are, done for all words at once: reads of what nobody
 * wrote; writes, but for atomics. False: they are others. */
static bool
words_alike(const visit *v, uint64_t at, words *p, unsigned k, unsigned end)
{
    uint64_t any = 0;

    if (v->plain) {
        for (unsigned i = k; i < end; i++)
            any |= p->write[i];
        for (unsigned i = k; !any && i < end; i++)
            p->read[i] = v->read;
        return !any;
    }
    if (v->reads)
        return false;
    for (unsigned i = k; i < end; i++)
        any |= p->read[i];
    for (unsigned i = k; any && i < end; i++)
        if (p->read[i])
            overwrites(v, at + (i - k) * 4, p->read[i]);
    for (unsigned i = k; any && i < end; i++)
        p->read[i] = 0;
    for (unsigned i = k; i < end; i++)
        p->write[i] = v->write;
    for (unsigned i = k; i < end; i++)
        p->left[i] = v->left;
    return true;
}

/* Words k to end of a page, the first at `at`. */
static void
words_visited(const visit *v, uint64_t at, words *p, unsigned k, unsigned end)
{
    for (; k < end; k++, at += 4) {
        who was = p->write[k];
        bool other = !is_own(v, was);
        uint32_t past = v->left.past;

        if (v->plain)
            p->read[k] = v->read;
        if (v->reads && other)
            reads_other(v, at, was, &p->left[k]);
        if (!v->t->write)
            continue;
        if (p->read[k])
            overwrites(v, at, p->read[k]);
        if (v->t->atomic && other)
            past = continued(v, was, &p->left[k]);
        p->write[k] = v->write;
        p->read[k] = 0;
        p->left[k].own = v->left.own;
        p->left[k].past = past;
    }
}

static void
leave(visit *v)
{
    const sim_wcheck *k = v->w->check;
    sim_order *r = v->w->g->order;
    waiter *me = v->me;
    bool load = v->t->atomic && v->o->rtn;
    uint32_t no = load ? v->load : me->base.group + k->c[C_STORE].issued + 1;

    if (me->any[0] && !me->past) {
        part p = part_of(r, me);

        memcpy(remember(r, &me->past, me->wide), me->known + p.at,
               p.n * sizeof *me->known);
    }
    v->left = (left){own_now(v->w, me), me->past};
    v->write = v->self << WHO_PLACE | (uint64_t)load << WHO_LOAD |
               (uint64_t)reach_of(v->w, v->o, v->t) << WHO_SCOPE | no;
}

static void
visit_begin(visit *v, sim_wave *w, const sim_op *o, const sim_reach *t)
{
    unsigned self = place(w);
    waiter *me = &w->g->order->w[self];

    *v = (visit){.w = w,
                 .o = o,
                 .t = t,
                 .me = me,
                 .self = self + 1,
                 .base = {me->base.group, me->base.loads},
                 .load = me->base.loads + w->check->c[C_LOAD].issued + 1,
                 .strong = reach_of(w, o, t) >= DEVICE && !t->scalar,
                 .reads = !t->write || t->atomic};
    v->plain = v->reads && !v->strong && !t->atomic;
    v->read = v->self << WHO_PLACE | v->load;
    if (t->write)
        leave(v);
}

/* `bytes` from `at` on. False: no memory is left to remember more. */
static bool
visit_range(const visit *v, uint64_t at, unsigned bytes)
{
    uint64_t end = at + bytes;

    for (at &= ~3ull; at < end;) {
        uint64_t next = BR_MIN(end, (at / PAGE + 1) * PAGE);
        words *p = words_of(v->w->g->order, at / PAGE);
        unsigned k = at % PAGE / 4, n;

        if (!p)
            return false;
        n = k + (unsigned)((next - at + 3) / 4);
        if (!words_alike(v, at, p, k, n))
            words_visited(v, at, p, k, n);
        at = next;
    }
    return true;
}

void
sim_order_access(sim_wave *w, const sim_op *o, const sim_reach *t)
{
    visit v;

    visit_begin(&v, w, o, t);
    visit_range(&v, t->at, t->bytes);
}

void
sim_order_lanes(sim_wave *w, const sim_op *o, const sim_reach *t, uint64_t exec,
                const uint64_t *off)
{
    sim_order *r = w->g->order;
    bool word = t->bytes <= 4;
    visit v;

    visit_begin(&v, w, o, t);
    for (; exec; exec &= exec - 1) {
        uint64_t at = t->at + off[__builtin_ctzll(exec)];
        unsigned k = at % PAGE / 4;
        words *p = r->hit ? r->hit->words : NULL;

        /* What most lanes do. */
        if (word && v.plain && at % 4 + t->bytes <= 4 && p &&
            r->hit->at == at / PAGE && is_own(&v, p->write[k]))
            p->read[k] = v.read;
        else if (!visit_range(&v, at, t->bytes))
            return;
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
    for (size_t k = 0; k < r->buckets; k++)
        br_free(r->pages[k].words);
    memset(r->pages, 0, r->buckets * sizeof *r->pages);
    r->n_pages = 0;
}

/* Of the dispatch before nothing is known. Clocks are cleared as waves start,
 * pages as they are touched. */
static void
forget(sim_order *r, bool other_groups)
{
    for (unsigned k = 0; k < r->n; k++) {
        r->w[k].next = (mark){0};
        r->w[k].wide |= other_groups; /* what is cleared, then, is all */
    }
    if (r->n_pages > KEPT_PAGES)
        free_pages(r);
    r->hit = NULL;
    r->turn++;
}

/* Clocks are cleared as a wave starts, those of the pool written whole: of
 * megabytes that are there in case, a kernel of little touches little. */
static br_code
make(sim_order **out, size_t n, br_status *st)
{
    sim_order *r = br_try_calloc(1, sizeof *r);

    *out = r;
    if (r) {
        r->n = (unsigned)n;
        r->w = br_try_calloc(n, sizeof *r->w);
        r->clocks = br_try_alloc(3 * n * n * sizeof *r->clocks);
        r->sum = br_try_calloc(2 * n, sizeof *r->sum);
        r->pool = br_try_alloc(POOL * n * sizeof *r->pool);
        r->near_pool = br_try_alloc(POOL * n * sizeof *r->near_pool);
        r->buckets = FEW_BUCKETS;
        r->pages = br_try_calloc(r->buckets, sizeof *r->pages);
    }
    if (!r || !r->w || !r->clocks || !r->sum || !r->pool || !r->near_pool ||
        !r->pages) {
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
    bool other_groups;

    if (*out && (*out)->n != n) {
        sim_order_free(*out);
        *out = NULL;
    }
    if (!*out)
        BR_TRY(make(out, n, st));
    other_groups = (*out)->per_group != waves; /* as where it is new */
    (*out)->per_group = waves;
    (*out)->shared_l0 = shared_l0;
    forget(*out, other_groups);
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
    br_free(r->near_pool);
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
