/* check_region.c - a buffer that is written more than once, or in odd pieces.
 *
 *   columns -->   .--------.----.---------.      A band: rows between two row
 *   band 0        |  t4    | t4 |   -     |      boundaries. A cell: columns
 *                 :--------:----:---------:      between two boundaries of the
 *   band 1        |  t2    | t7 |   t7    |      band. It holds the last task
 *                 '--------'----'---------'      that wrote it, so far.
 *
 * The accesses are taken in topological order. One that is ordered before
 * another comes first there, so it is enough to look back:
 *
 *   a read    must come after the last writer of each cell it covers; a cell
 *             without one is unread memory (but for caches, which hold what
 *             the last pass left)
 *   a write   must come after the last writer of each cell, and after every
 *             read of a cell since
 *
 * Earlier writers and reads need no look: they come before the last writer,
 * which was required when it was entered, and order is transitive. So this is
 * exact: it refuses a program iff two conflicting accesses are not ordered, or
 * a byte is read that none ordered before has written. A read is forgotten
 * once a write has covered all of it; keeping it longer costs time only.
 *
 * Caches are stricter, as the format's rule has it: rows written this pass are
 * read after they are written, so a write after a read is refused, ordered or
 * not, unless one task does both.
 *
 * A buffer with more row boundaries than column boundaries (tiles of rows, a
 * cache that is appended to) is looked at from the side, rows as columns, so
 * that bands stay few; and a band looks only at the accesses that cross it.
 *
 * Cost      for A accesses to a buffer O(A log cells) per band and the pairs
 *           that are asked for (check_front.c), and a look at every read kept
 *           for a write that meets one. Memory O(A). Only buffers that are no
 *           single epoch come here.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_sound.h"

enum { MAX_UNREAD = 1000 };

typedef struct access {
    br_mega_rect rect;
    uint32_t task;
    bool write;
} access;

/* Reads of cells [i, j) by tasks of one counter: the first of them. A task
 * that writes what it reads does so next after, so a read that stands for
 * several is never its own. */
typedef struct seen_read {
    uint32_t i, j, task;
} seen_read;

typedef struct region {
    br_snd *s;
    uint32_t buffer;
    bool is_kv;
    access *acc;
    uint32_t n_acc;
    int64_t rows, cols; /* of the view, as it lies here */
    bool turned;        /* rows are columns: then there are fewer bands */
    uint32_t *by_row;   /* accesses by first row; the next to begin */
    uint32_t n_begun;
    uint32_t *live, *spare; /* accesses in the band, in order */
    uint32_t n_live;
    int64_t *edge;    /* column boundaries of the band */
    uint32_t n_cells; /* edges - 1 */
    br_front front;   /* the last writer of each cell */
    seen_read *read;
    uint32_t n_read;
    uint32_t read_lo, read_hi; /* no read is outside */
    br_deal deal;              /* with the first `mark` reads */
    uint32_t *list;            /* the tasks of these, when it was made */
    int64_t r0, r1;            /* the band */
} region;

/* ---- collecting --------------------------------------------------------- */

static br_mega_rect
turn(br_mega_rect r)
{
    return (br_mega_rect){r.c0, r.c1, r.r0, r.r1};
}

static void
add(region *g, uint32_t task, uint32_t operand, bool write)
{
    access *a = &g->acc[g->n_acc];

    a->task = task;
    a->write = write;
    if (br_op_footprint(g->s->p, &g->s->p->tasks[task], g->s->val, operand,
                        write, &a->rect) &&
        a->rect.r0 < a->rect.r1 && a->rect.c0 < a->rect.c1)
        g->n_acc++;
}

static void
collect(region *g, const uint32_t *tasks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const br_mega_task *t = &g->s->p->tasks[tasks[i]];

        for (uint32_t k = 0; k < t->n_in; k++)
            if (t->in[k] == g->buffer)
                add(g, tasks[i], k, false);
        for (uint32_t k = 0; k < t->n_out; k++)
            if (t->out[k] == g->buffer)
                add(g, tasks[i], k, true);
    }
}

static int
ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return a < b ? -1 : a > b;
}

static uint32_t
unique(int64_t *v, uint32_t n)
{
    uint32_t m = 0;
    bool sorted = true;

    for (uint32_t i = 1; i < n; i++)
        sorted &= v[i - 1] <= v[i];
    if (!sorted)
        qsort(v, n, sizeof *v, ascending);
    for (uint32_t i = 0; i < n; i++)
        if (m == 0 || v[m - 1] != v[i])
            v[m++] = v[i];
    return m;
}

/* The accesses of the band from those of the band before: some end, some
 * begin, and both lists are in order. */
static void
enter_band(region *g)
{
    const access *acc = g->acc;
    uint32_t n = 0, k = 0, *next = g->spare;

    for (; g->n_begun < g->n_acc; g->n_begun++) {
        uint32_t a = g->by_row[g->n_begun];

        if (acc[a].rect.r0 != g->r0)
            break;
        for (; k < g->n_live && g->live[k] < a; k++)
            if (acc[g->live[k]].rect.r1 > g->r0)
                next[n++] = g->live[k];
        next[n++] = a;
    }
    for (; k < g->n_live; k++)
        if (acc[g->live[k]].rect.r1 > g->r0)
            next[n++] = g->live[k];
    g->spare = g->live;
    g->live = next;
    g->n_live = n;
}

static void
find_edges(region *g)
{
    int64_t cols = g->cols;
    uint32_t n = 0;

    g->edge[n++] = 0;
    for (uint32_t i = 0; i < g->n_live; i++) {
        const br_mega_rect *r = &g->acc[g->live[i]].rect;

        /* Neighbouring tiles share an edge, whole reads have the outer two. */
        if (r->c0 != 0 && g->edge[n - 1] != r->c0)
            g->edge[n++] = r->c0;
        if (r->c1 != cols && g->edge[n - 1] != r->c1)
            g->edge[n++] = r->c1;
    }
    g->edge[n++] = cols;
    g->n_cells = unique(g->edge, n) - 1;
}

static uint32_t
cell_of(const region *g, int64_t column)
{
    uint32_t lo = 0, hi = g->n_cells;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (g->edge[mid] < column)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- reads -------------------------------------------------------------- */

static bool
note_unread(region *g, uint32_t task, uint32_t i, uint32_t j)
{
    br_snd *s = g->s;
    br_mega_rect rect = {g->r0, g->r1, g->edge[i], g->edge[j]};
    br_unread u = {task, g->buffer, g->turned ? turn(rect) : rect, false};
    const br_wsum *w = &s->ws[g->buffer];

    /* On a page it would read what another buffer left there. */
    u.own = task != BR_NONE && w->n == 1 && w->first == task &&
            !(s->page_of && s->page_of[g->buffer] != BR_NONE);
    if (s->unread.n && s->unread.at[s->unread.n - 1].task == task &&
        s->unread.at[s->unread.n - 1].buffer == g->buffer)
        return true; /* once is enough */
    if (!u.own && s->n_unread++ >= MAX_UNREAD) {
        s->more_unread++; /* warnings take none of this room */
        return true;
    }
    return br_vec_push(&s->unread, u) || br_snd_no_memory(s);
}

static bool
uncovered(region *g, uint32_t task, uint32_t i, uint32_t j)
{
    uint32_t at;

    if (g->is_kv)
        return true;
    at = br_front_hole(&g->front, i, j);
    return at == j || note_unread(g, task, at, at + 1);
}

/* A read like the one before that comes after it stands for both. */
static void
keep_read(region *g, uint32_t task, uint32_t i, uint32_t j)
{
    const uint32_t *ctr = g->s->ctr;
    seen_read *r = g->n_read ? &g->read[g->n_read - 1] : NULL;

    if (r && r->i == i && r->j == j) {
        if (ctr[r->task] == ctr[task])
            return;
        if (br_hb_quick(&g->s->hb, ctr[r->task], task) == BR_YES) {
            r->task = task;
            g->deal.mark = BR_MIN(g->deal.mark, g->n_read - 1);
            return;
        }
    }
    g->read_lo = g->n_read ? BR_MIN(g->read_lo, i) : i;
    g->read_hi = g->n_read ? BR_MAX(g->read_hi, j) : j;
    g->read[g->n_read++] = (seen_read){i, j, task};
}

typedef struct before { /* the access before this one, if it was a read */
    uint32_t task, i, j;
} before;

static bool
do_read(region *g, uint32_t task, uint32_t i, uint32_t j, before *prev)
{
    bool again = prev->task != BR_NONE && prev->i == i && prev->j == j &&
                 br_snd_same_waits(g->s, prev->task, task);

    *prev = (before){task, i, j};
    if (!uncovered(g, task, i, j) ||
        (!again && !br_front_after(&g->front, task, i, j, BR_CLASH_WR)))
        return false;
    keep_read(g, task, i, j);
    return true;
}

/* ---- writes ------------------------------------------------------------- */

/* Pays for n pairs; see br_deal.  */
static bool
count_reads(region *g, uint32_t n)
{
    br_arena *a = &g->s->region;

    g->deal.pairs += n;
    if (!br_hb_worth(&g->deal, g->n_read))
        return true;
    if (!g->list)
        g->list = br_arena_get(a, (2 * (size_t)g->n_acc + 2) * sizeof *g->list);
    if (!g->list)
        return br_snd_no_memory(g->s);
    for (uint32_t k = 0; k < g->n_read; k++)
        g->list[k] = g->read[k].task;
    g->deal.mark = g->n_read;
    return br_hb_buy(&g->s->hb, &g->deal, a, g->list, g->n_read);
}

static bool
after_reads(region *g, uint32_t task, uint32_t i, uint32_t j)
{
    br_hb *h = &g->s->hb;
    uint32_t kept = 0, known = 0, marked = 0, pairs = 0;

    if (j <= g->read_lo || g->read_hi <= i)
        return true;
    if (!g->is_kv && br_hb_bought(h, &g->deal, task))
        known = g->deal.mark;
    for (uint32_t k = 0; k < g->n_read; k++) {
        seen_read r = g->read[k];

        if (k >= known && r.i < j && i < r.j && r.task != task) {
            pairs++;
            if (!(g->is_kv
                      ? br_hb_refuse(h, r.task, task, g->buffer, BR_CLASH_RW)
                      : br_hb_require(h, r.task, task, g->buffer, BR_CLASH_RW)))
                return false;
        }
        /* What the write covers is behind it from now on. */
        if (i <= r.i && r.i < j)
            r.i = BR_MIN(j, r.j);
        if (i < r.j && r.j <= j)
            r.j = BR_MAX(i, r.i);
        marked += k < g->deal.mark && r.i < r.j;
        if (r.i < r.j)
            g->read[kept++] = r;
    }
    g->n_read = kept;
    g->deal.mark = marked;
    return count_reads(g, pairs);
}

static bool
do_write(region *g, uint32_t task, uint32_t i, uint32_t j)
{
    if (!after_reads(g, task, i, j) ||
        !br_front_after(&g->front, task, i, j, BR_CLASH_WW))
        return false;
    br_front_write(&g->front, task, i, j);
    return true;
}

/* ---- bands -------------------------------------------------------------- */

static bool
do_band(region *g)
{
    before prev = {BR_NONE, 0, 0};

    enter_band(g);
    find_edges(g);
    if (!br_front_begin(&g->front, g->n_cells))
        return false;
    g->n_read = g->deal.mark = 0;
    for (uint32_t k = 0; k < g->n_live; k++) {
        const access *a = &g->acc[g->live[k]];
        uint32_t i, j;
        bool ok;

        if (br_hb_full(&g->s->hb))
            continue;
        i = cell_of(g, a->rect.c0);
        j = cell_of(g, a->rect.c1);
        if (a->write) {
            ok = do_write(g, a->task, i, j);
            prev.task = BR_NONE;
        } else {
            ok = do_read(g, a->task, i, j, &prev);
        }
        if (!ok)
            return false;
    }
    if (g->s->val[g->buffer].kind == BR_MBK_IO_OUTPUT && !br_hb_full(&g->s->hb))
        return uncovered(g, BR_NONE, 0, g->n_cells);
    return true;
}

/* Memory for one buffer, given back before the next. Returns room for the
 * boundaries of rows, or NULL. */
static int64_t *
make_room(region *g, const uint32_t *tasks, uint32_t n)
{
    br_arena *a = &g->s->region;
    uint64_t max = 0, edges;
    int64_t *rows;

    for (uint32_t i = 0; i < n; i++)
        max += g->s->p->tasks[tasks[i]].n_in + g->s->p->tasks[tasks[i]].n_out;
    br_arena_reset(a);
    g->acc = br_arena_get(a, (max + 1) * sizeof *g->acc);
    if (!g->acc)
        return NULL;
    collect(g, tasks, n);
    edges = 2 * (uint64_t)g->n_acc + 2;
    g->edge = br_arena_get(a, edges * sizeof *g->edge);
    g->read = br_arena_get(a, edges * sizeof *g->read);
    g->by_row = br_arena_get(a, edges * sizeof *g->by_row);
    g->live = br_arena_get(a, edges * sizeof *g->live);
    g->spare = br_arena_get(a, edges * sizeof *g->spare);
    rows = br_arena_get(a, edges * sizeof *rows);
    return g->edge && g->read && g->by_row && g->live && g->spare ? rows : NULL;
}

/* Boundaries of rows, or of columns; how many. */
static uint32_t
bounds(const region *g, bool columns, int64_t *v)
{
    int64_t end = columns ? g->cols : g->rows;
    uint32_t n = 0;

    v[n++] = 0;
    for (uint32_t i = 0; i < g->n_acc; i++) {
        const br_mega_rect *r = &g->acc[i].rect;
        int64_t from = columns ? r->c0 : r->r0, to = columns ? r->c1 : r->r1;

        /* Whole accesses have the outer two, neighbours share one: mostly
         * there is nothing to sort. */
        if (from != 0 && from != v[n - 1])
            v[n++] = from;
        if (to != end && to != v[n - 1])
            v[n++] = to;
    }
    v[n++] = end;
    return unique(v, n);
}

/* A band costs more than a cell: with more of them than columns, the matrix is
 * looked at from the side. */
static void
lay(region *g, int64_t *scratch)
{
    const br_op_val *v = &g->s->val[g->buffer];

    g->rows = v->rows;
    g->cols = v->cols;
    if (bounds(g, false, scratch) <= bounds(g, true, scratch))
        return;
    g->turned = true;
    g->rows = v->cols;
    g->cols = v->rows;
    for (uint32_t i = 0; i < g->n_acc; i++)
        g->acc[i].rect = turn(g->acc[i].rect);
}

typedef struct begin {
    int64_t row;
    uint32_t access;
} begin;

static int
by_begin(const void *x, const void *y)
{
    const begin *a = x, *b = y;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->access < b->access ? -1 : a->access > b->access;
}

static bool
sort_by_row(region *g)
{
    begin *v = br_arena_get(&g->s->region, (g->n_acc + 1) * sizeof *v);
    bool sorted = true;

    if (!v)
        return false;
    for (uint32_t i = 0; i < g->n_acc; i++) {
        v[i] = (begin){g->acc[i].rect.r0, i};
        sorted &= i == 0 || v[i - 1].row <= v[i].row;
    }
    if (!sorted)
        qsort(v, g->n_acc, sizeof *v, by_begin);
    for (uint32_t i = 0; i < g->n_acc; i++)
        g->by_row[i] = v[i].access;
    return true;
}

bool
br_snd_regions(br_snd *s, uint32_t buffer, const uint32_t *tasks, uint32_t n)
{
    region g = {.s = s, .buffer = buffer};
    uint32_t n_rows;
    int64_t *rows;

    g.is_kv = s->val[buffer].kind == BR_MBK_KV_CACHE;
    g.deal.from = br_hb_rank(&s->hb, tasks[0]);
    g.deal.to = br_hb_rank(&s->hb, tasks[n - 1]);
    g.front = (br_front){.hb = &s->hb,
                         .arena = &s->region,
                         .buffer = buffer,
                         .from = g.deal.from,
                         .to = g.deal.to};
    rows = make_room(&g, tasks, n);
    if (!rows)
        return br_snd_no_memory(s);
    lay(&g, rows);
    if (!sort_by_row(&g))
        return br_snd_no_memory(s);
    n_rows = bounds(&g, false, rows);
    for (uint32_t i = 0; i + 1 < n_rows; i++) {
        g.r0 = rows[i];
        g.r1 = rows[i + 1];
        if (!do_band(&g))
            return false;
    }
    return true;
}
