/* pages_order.c - which activation is over before which begins.
 *
 *      t0 --c0--> t1 --c1--> t2           buffer x: written t0, read t1
 *       x          x y        y z         buffer z: written t2
 *                                         c1 done before t2: x before z
 *
 * All producers of a counter have the same descendants (its waiters and
 * theirs), so "every use of a happens before task w" is "every counter of a's
 * uses is in anc(w)", with
 *
 *      anc(w) = union over w's waits c of {c} and anc(producers of c).
 *
 * One column of bits per (buffer, counter of its uses); a counter that another
 * user of the buffer waits for is implied and gets none, which leaves 1.0 to
 * 1.6 columns a buffer in lowered models. anc is carried through the program
 * once per block of columns, so memory is bounded whatever the program is:
 * BLOCK_BYTES for the counters, n^2 / 2 bits for the result.
 *
 * Why counters and not queues: the order must hold for any placement of tasks
 * on workers, so the order of a worker's queue does not count.
 *
 * Requires  ids are indices, waits name counters and want all increments.
 * Cost      (tasks + waits) * columns / 64 words + the live pairs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/dtype.h"
#include "mega/footprint.h"
#include "mega/pages_int.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 << 20 };

typedef struct use {
    uint32_t task;
    bool write;
} use;

/* A task that could write item b onto its dying input a. */
typedef struct cand {
    uint32_t task, a, b;
    bool ok;
} cand;

typedef struct work {
    const br_mega_prog *p;
    const br_mega_pages_opt *opt;
    br_pg_order *o;
    br_arena *a;      /* results */
    br_arena scratch; /* the rest */
    br_status *st;
    br_mega_graph g;
    uint32_t *item_of; /* buffer -> item or NONE */
    uint32_t *use_off; /* item -> its uses, in topological order */
    use *uses;
    uint32_t *col_off, *col_ctr; /* item -> its columns' counters */
    uint32_t *col_bit;           /* column -> bit: first ones lead */
    uint32_t n_cols;
    uint32_t *extra;              /* bit - n -> item, ascending */
    uint32_t *ctr_off, *ctr_bits; /* counter -> bits of its columns */
    cand *cands;                  /* by topological place of the task */
    uint32_t n_cands;
} work;

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "pages: no memory");
}

/* ---- is the program one we can reason about? --------------------------- */

static br_code
check_task(const br_mega_prog *p, uint32_t i, const uint32_t *producers,
           br_status *st)
{
    const br_mega_task *t = &p->tasks[i];

    for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
        int64_t b = k < t->n_in ? t->in[k] : t->out[k - t->n_in];
        if ((uint64_t)b >= p->n_buffers)
            return br_fail(st, BR_E_REJECTED,
                           "pages: tasks[%u]: no buffer %lld", i, (long long)b);
    }
    for (uint32_t k = 0; k < t->n_waits; k++) {
        int64_t c = t->waits[k].counter, want = t->waits[k].threshold;
        if ((uint64_t)c >= p->n_counters || c == t->out_counter || want < 1 ||
            want != producers[c])
            return br_fail(st, BR_E_REJECTED,
                           "pages: tasks[%u].waits[%u]: not a wait for all "
                           "producers of another counter (see prog check)",
                           i, k);
    }
    return BR_OK;
}

static br_code
check_program(const br_mega_prog *p, br_arena *scratch, br_status *st)
{
    uint32_t *producers = br_arena_new(scratch, uint32_t, p->n_counters + 1);

    if (!producers)
        return oom(st);
    for (size_t i = 0; i < p->n_misfits; i++)
        if (p->misfits[i].field != BR_MF_BUF_NAME &&
            p->misfits[i].field != BR_MF_BUF_SOURCE &&
            p->misfits[i].field != BR_MF_CTR_NOTE &&
            p->misfits[i].field != BR_MF_TASK_LABEL)
            return br_fail(st, BR_E_REJECTED,
                           "pages: a value of the wrong type (see prog check)");
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].id != (int64_t)i)
            return br_fail(st, BR_E_REJECTED, "pages: buffers[%zu]: id %lld", i,
                           (long long)p->buffers[i].id);
    for (size_t i = 0; i < p->n_counters; i++)
        if (p->counters[i].id != (int64_t)i || p->counters[i].init)
            return br_fail(st, BR_E_REJECTED,
                           "pages: counters[%zu]: id %lld, init %lld", i,
                           (long long)p->counters[i].id,
                           (long long)p->counters[i].init);
    for (size_t i = 0; i < p->n_tasks; i++) {
        if (p->tasks[i].id != (int64_t)i ||
            (uint64_t)p->tasks[i].out_counter >= p->n_counters)
            return br_fail(st, BR_E_REJECTED,
                           "pages: tasks[%zu]: id %lld, out_counter %lld", i,
                           (long long)p->tasks[i].id,
                           (long long)p->tasks[i].out_counter);
        producers[p->tasks[i].out_counter]++;
    }
    for (uint32_t i = 0; i < p->n_tasks; i++)
        BR_TRY(check_task(p, i, producers, st));
    return BR_OK;
}

/* ---- items ------------------------------------------------------------- */

int64_t
br_pg_bytes(const br_mega_buffer *b)
{
    int64_t n = br_mega_nbytes(b), last;

    if (b->dtype != BR_MDT_I4 || n <= 0 || !b->rank)
        return n;
    last = b->shape[b->rank - 1];
    return br_mega_numel(b) / last * br_dt_row_bytes(BR_MDT_I4, last);
}

static br_code
item_size(work *w, const br_mega_buffer *b, int64_t *out)
{
    int64_t align = w->opt->align ? w->opt->align : BR_MEGA_PAGE_ALIGN;
    int64_t n = br_pg_bytes(b);

    if (n < 0 || n > INT64_MAX / 4 - align)
        return br_fail(w->st, BR_E_REJECTED, "pages: buffer %lld: bad shape",
                       (long long)b->id);
    *out = BR_MAX((n + align - 1) / align, (int64_t)1) * align;
    return BR_OK;
}

static int
by_first(const void *a, const void *b)
{
    const br_pg_item *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* On-chip memory belongs to one worker: pages are not shared across. A buffer
 * is with the worker that any of its users is on: some may be on none. */
static uint32_t
space_of(const br_mega_buffer *b, const br_mega_task *t)
{
    uint32_t chip = b->space == BR_MSP_SMEM       ? 1
                    : b->space == BR_MSP_REGISTER ? 2
                                                  : 0;

    if (!chip)
        return 0;
    if (t->sm < 0 || t->sm > INT32_MAX / 4)
        return chip;
    return (uint32_t)t->sm * 2 + 2 + chip;
}

/* Items with first and last place, sorted; item_of. */
static br_code
find_items(work *w)
{
    const br_mega_prog *p = w->p;
    br_pg_order *o = w->o;
    uint32_t n = 0;

    w->item_of = br_arena_new(&w->scratch, uint32_t, p->n_buffers + 1);
    o->item = br_arena_new(w->a, br_pg_item, p->n_buffers + 1);
    if (!w->item_of || !o->item)
        return oom(w->st);
    memset(w->item_of, 0xff, p->n_buffers * sizeof *w->item_of);
    for (uint32_t r = 0; r < p->n_tasks; r++) {
        const br_mega_task *t = &p->tasks[w->g.topo[r]];
        for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
            int64_t b = k < t->n_in ? t->in[k] : t->out[k - t->n_in];
            uint32_t *i = &w->item_of[b];
            if (p->buffers[b].kind != BR_MBK_ACTIVATION)
                continue;
            if (*i == BR_PG_NONE) {
                *i = n++;
                o->item[*i] =
                    (br_pg_item){.buffer = (uint32_t)b,
                                 .first = BR_PG_NONE,
                                 .space = space_of(&p->buffers[b], t)};
                BR_TRY(item_size(w, &p->buffers[b], &o->item[*i].size));
            }
            if (t->sm >= 0)
                o->item[*i].space = space_of(&p->buffers[b], t);
            if (k >= t->n_in && o->item[*i].first == BR_PG_NONE)
                o->item[*i].first = r;
            o->item[*i].last = r;
        }
    }
    o->n = n;
    for (uint32_t i = 0; i < n; i++) {
        o->item[i].alone = o->item[i].first == BR_PG_NONE;
        if (o->item[i].alone) /* never written: it has no live range */
            o->item[i].first = 0;
    }
    if (n)
        qsort(o->item, n, sizeof *o->item, by_first);
    for (uint32_t i = 0; i < n; i++)
        w->item_of[o->item[i].buffer] = i;
    return BR_OK;
}

static br_code
find_uses(work *w)
{
    const br_mega_prog *p = w->p;
    uint32_t n = w->o->n, sum = 0;

    w->use_off = br_arena_new(&w->scratch, uint32_t, n + 2);
    if (!w->use_off)
        return oom(w->st);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < p->n_tasks; r++) {
            uint32_t id = w->g.topo[r];
            const br_mega_task *t = &p->tasks[id];
            for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
                bool wr = k >= t->n_in;
                uint32_t i = w->item_of[wr ? t->out[k - t->n_in] : t->in[k]];
                if (i == BR_PG_NONE)
                    continue;
                if (pass)
                    w->uses[w->use_off[i + 1]] = (use){id, wr};
                w->use_off[i + 1 + !pass]++;
            }
        }
        if (pass)
            break;
        for (uint32_t i = 0; i <= n; i++) /* starts, one to the right */
            w->use_off[i + 1] = sum += w->use_off[i + 1];
        w->uses = br_arena_new(&w->scratch, use, sum + 1);
        if (!w->uses)
            return oom(w->st);
    }
    return BR_OK;
}

/* Reads what it writes before anybody else has: what it finds there is not
 * ours to change by sharing (the check only warns about it). */
static bool
reads_itself(const work *w, uint32_t i)
{
    const use *u = &w->uses[w->use_off[i]];
    uint32_t n = w->use_off[i + 1] - w->use_off[i], first = BR_PG_NONE;
    bool reads = false;

    for (uint32_t k = 0; k < n; k++) {
        if (u[k].write && first == BR_PG_NONE)
            first = u[k].task;
        if (u[k].write && u[k].task != first)
            return false;
    }
    for (uint32_t k = 0; k < n; k++)
        reads = reads || (!u[k].write && u[k].task == first);
    return reads;
}

/* ---- columns ----------------------------------------------------------- */

/* The counters that say "item i is over": those of its uses, less those that
 * another of its users waits for. mark and out have room for n_counters. */
static uint32_t
item_counters(const work *w, uint32_t i, uint32_t *mark, uint32_t *out)
{
    uint32_t n = 0, k = 0, seen = i * 2 + 1, implied = i * 2 + 2;

    for (uint32_t u = w->use_off[i]; u < w->use_off[i + 1]; u++) {
        uint32_t c = (uint32_t)w->p->tasks[w->uses[u].task].out_counter;
        if (mark[c] != seen) {
            mark[c] = seen;
            out[n++] = c;
        }
    }
    for (uint32_t u = w->use_off[i]; u < w->use_off[i + 1]; u++) {
        const br_mega_task *t = &w->p->tasks[w->uses[u].task];
        for (uint32_t j = 0; j < t->n_waits; j++)
            if (mark[t->waits[j].counter] == seen)
                mark[t->waits[j].counter] = implied;
    }
    for (uint32_t j = 0; j < n; j++)
        if (mark[out[j]] == seen)
            out[k++] = out[j];
    return k;
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static br_code
find_columns(work *w)
{
    uint32_t n = w->o->n, nc = (uint32_t)w->p->n_counters;
    uint32_t *mark = br_arena_new(&w->scratch, uint32_t, nc + 1);
    uint32_t *list = br_arena_new(&w->scratch, uint32_t, nc + 1);
    BR_VEC(uint32_t) cols = {0};
    br_code rc = BR_OK;

    w->col_off = br_arena_new(&w->scratch, uint32_t, n + 1);
    if (!mark || !list || !w->col_off)
        return oom(w->st);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = item_counters(w, i, mark, list);
        br_assert(k > 0 && "an acyclic program has a last use");
        qsort(list, k, sizeof *list, by_number);
        w->col_off[i] = (uint32_t)cols.n;
        for (uint32_t j = 0; j < k && rc == BR_OK; j++)
            if (!br_vec_push(&cols, list[j]))
                rc = oom(w->st);
    }
    w->n_cols = w->col_off[n] = (uint32_t)cols.n;
    w->col_ctr = br_arena_dup(&w->scratch, cols.at, cols.n * sizeof *cols.at);
    br_vec_fini(&cols);
    return rc == BR_OK && n && !w->col_ctr ? oom(w->st) : rc;
}

/* An item's end, to sort by: items of one space that end with the same
 * counters have the same items after them. */
typedef struct ending {
    const uint32_t *ctr;
    uint32_t n, space, item;
} ending;

static int
by_ending(const void *a, const void *b)
{
    const ending *x = a, *y = b;
    int c;

    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    c = memcmp(x->ctr, y->ctr, x->n * sizeof *x->ctr);
    return c ? c : (x->item > y->item) - (x->item < y->item);
}

static br_code
find_endings(work *w)
{
    br_pg_order *o = w->o;
    ending *e = br_arena_new(&w->scratch, ending, o->n + 1);

    o->ending = br_arena_new(w->a, uint32_t, o->n + 1);
    if (!e || !o->ending)
        return oom(w->st);
    for (uint32_t i = 0; i < o->n; i++)
        e[i] = (ending){w->col_ctr + w->col_off[i],
                        w->col_off[i + 1] - w->col_off[i], o->item[i].space, i};
    if (o->n)
        qsort(e, o->n, sizeof *e, by_ending);
    for (uint32_t i = 0; i < o->n; i++) {
        bool same = i && e[i].space == e[i - 1].space && e[i].n == e[i - 1].n &&
                    !memcmp(e[i].ctr, e[i - 1].ctr, e[i].n * sizeof *e->ctr);
        uint32_t last = i ? o->ending[e[i - 1].item] : 0;
        bool own = o->item[e[i].item].alone;
        o->ending[e[i].item] = same && !own && last < o->n ? last
                               : own                       ? o->n + e[i].item
                                                           : e[i].item;
    }
    return BR_OK;
}

/* Bit of a column: an item's first column has the item's number, the others
 * follow behind in order. Then the columns of each counter. */
static br_code
place_columns(work *w)
{
    uint32_t n = w->o->n, nc = (uint32_t)w->p->n_counters, at = n, sum = 0;

    w->col_bit = br_arena_new(&w->scratch, uint32_t, w->n_cols + 1);
    w->extra = br_arena_new(&w->scratch, uint32_t, w->n_cols - n + 1);
    w->ctr_off = br_arena_new(&w->scratch, uint32_t, nc + 2);
    w->ctr_bits = br_arena_new(&w->scratch, uint32_t, w->n_cols + 1);
    if (!w->col_bit || !w->extra || !w->ctr_off || !w->ctr_bits)
        return oom(w->st);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = w->col_off[i]; c < w->col_off[i + 1]; c++) {
            if (c > w->col_off[i])
                w->extra[at - n] = i;
            w->col_bit[c] = c > w->col_off[i] ? at++ : i;
            w->ctr_off[w->col_ctr[c] + 2]++;
        }
    for (uint32_t c = 0; c <= nc; c++)
        w->ctr_off[c + 1] = sum += w->ctr_off[c + 1];
    for (uint32_t c = 0; c < w->n_cols; c++)
        w->ctr_bits[w->ctr_off[w->col_ctr[c] + 1]++] = w->col_bit[c];
    return BR_OK;
}

/* ---- reuse in place ---------------------------------------------------- */

/* The same bytes hold element i of both. */
static bool
same_elements(const br_mega_buffer *a, const br_mega_buffer *b)
{
    int bits = br_mega_dtype_bits(a->dtype);

    return bits >= 8 && bits == br_mega_dtype_bits(b->dtype) &&
           a->rank == b->rank &&
           (!a->rank ||
            memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* What can be said without knowing the order. */
static bool
may_be_in_place(const work *w, uint32_t id, uint32_t a, uint32_t b)
{
    const br_mega_task *t = &w->p->tasks[id];
    const br_pg_item *ia = &w->o->item[a], *ib = &w->o->item[b];

    if (a == b || ia->space != ib->space || ia->alone || ib->alone ||
        !same_elements(&w->p->buffers[ia->buffer], &w->p->buffers[ib->buffer]))
        return false;
    for (uint32_t u = w->use_off[b]; u < w->use_off[b + 1]; u++)
        if (w->uses[u].write ? w->uses[u].task != id : w->uses[u].task == id)
            return false; /* b has another writer, or t reads b */
    for (uint32_t u = w->use_off[a]; u < w->use_off[a + 1]; u++) {
        const use *x = &w->uses[u];
        if (x->task == id ? x->write
                          : w->p->tasks[x->task].out_counter == t->out_counter)
            return false; /* t writes a, or a sibling of t uses it */
    }
    return true;
}

static br_code
find_candidates(work *w)
{
    const br_mega_prog *p = w->p;
    BR_VEC(cand) v = {0};
    br_code rc = BR_OK;

    for (uint32_t r = 0; r < p->n_tasks && !w->opt->strict; r++) {
        uint32_t id = w->g.topo[r];
        const br_mega_task *t = &p->tasks[id];
        uint32_t b = t->n_out == 1 && br_op_elementwise(t->op)
                         ? w->item_of[t->out[0]]
                         : BR_PG_NONE;
        for (uint32_t k = 0; b != BR_PG_NONE && k < t->n_in; k++) {
            uint32_t a = w->item_of[t->in[k]];
            if (a == BR_PG_NONE || !may_be_in_place(w, id, a, b))
                continue;
            if (!br_vec_push(&v, ((cand){id, a, b, true})))
                rc = oom(w->st);
        }
    }
    w->n_cands = (uint32_t)v.n;
    w->cands = br_arena_dup(&w->scratch, v.at, v.n * sizeof *v.at);
    br_vec_fini(&v);
    return rc == BR_OK && w->n_cands && !w->cands ? oom(w->st) : rc;
}

/* ---- the sweep --------------------------------------------------------- */

typedef struct block {
    uint32_t lo, words; /* bits lo .. lo + 64 * words */
    uint64_t *ctr;      /* [n_counters][words]: anc of the producers */
    uint64_t *acc;      /* [words]: anc of the task at hand */
    uint64_t *all;      /* [n][words]: anc common to all writers of an item */
    bool *seen;         /* [n]: all[] holds something */
} block;

static void
or_words(uint64_t *restrict x, const uint64_t *restrict y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] |= y[i];
}

static void
and_words(uint64_t *restrict x, const uint64_t *restrict y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] &= y[i];
}

/* All columns of a but the task's own have to be done before the task. */
static void
try_candidate(const work *w, const block *k, cand *c)
{
    uint32_t own = (uint32_t)w->p->tasks[c->task].out_counter;

    for (uint32_t j = w->col_off[c->a]; j < w->col_off[c->a + 1]; j++) {
        uint32_t bit = w->col_bit[j] - k->lo;
        if (w->col_ctr[j] != own && bit < k->words * 64 &&
            !(k->acc[bit / 64] >> bit % 64 & 1))
            c->ok = false;
    }
}

static void
sweep_block(work *w, block *k)
{
    const br_mega_prog *p = w->p;
    uint32_t next = 0;

    memset(k->ctr, 0, (size_t)p->n_counters * k->words * sizeof *k->ctr);
    memset(k->seen, 0, w->o->n * sizeof *k->seen);
    for (uint32_t c = 0; c < p->n_counters; c++)
        for (uint32_t j = w->ctr_off[c]; j < w->ctr_off[c + 1]; j++) {
            uint32_t bit = w->ctr_bits[j] - k->lo;
            if (bit < k->words * 64)
                k->ctr[(size_t)c * k->words + bit / 64] |= 1ull << bit % 64;
        }
    for (uint32_t r = 0; r < p->n_tasks; r++) {
        uint32_t id = w->g.topo[r];
        const br_mega_task *t = &p->tasks[id];
        memset(k->acc, 0, k->words * sizeof *k->acc);
        for (uint32_t j = 0; j < t->n_waits; j++)
            or_words(k->acc, &k->ctr[(size_t)t->waits[j].counter * k->words],
                     k->words);
        for (uint32_t j = 0; j < t->n_out; j++) {
            uint32_t i = w->item_of[t->out[j]];
            uint64_t *all;
            if (i == BR_PG_NONE)
                continue;
            all = &k->all[(size_t)i * k->words];
            if (k->seen[i])
                and_words(all, k->acc, k->words);
            else
                memcpy(all, k->acc, k->words * sizeof *all);
            k->seen[i] = true;
        }
        while (next < w->n_cands && w->cands[next].task == id)
            try_candidate(w, k, &w->cands[next++]);
        or_words(&k->ctr[(size_t)t->out_counter * k->words], k->acc, k->words);
    }
}

/* Of the word that begins at bit lo, those under b. */
static uint64_t
below(uint32_t b, uint32_t lo)
{
    return b - lo < 64 ? (1ull << (b - lo)) - 1 : UINT64_MAX;
}

/* Bits of the block into the rows: first columns are items as they stand, a
 * later column takes its item out again where it is not done. */
static void
merge_block(work *w, const block *k)
{
    br_pg_order *o = w->o;

    for (uint32_t b = 0; b < o->n; b++) {
        const uint64_t *all = &k->all[(size_t)b * k->words];
        uint32_t n_words = br_pg_words(b);
        if (!k->seen[b])
            continue; /* never written: its row stays empty */
        for (uint32_t i = 0; i < k->words; i++) {
            uint32_t lo = k->lo + i * 64;
            uint64_t off = ~all[i];
            if (lo < o->n) {
                uint32_t rest = o->n - lo;
                uint64_t mine = rest < 64 ? (1ull << rest) - 1 : UINT64_MAX;
                if (lo / 64 < n_words)
                    o->row[b][lo / 64] |= all[i] & below(b, lo);
                off &= ~mine;
            }
            if (lo + 63 < o->n)
                continue;
            for (; off; off &= off - 1) {
                uint32_t bit = lo + (uint32_t)__builtin_ctzll(off), a;
                if (bit >= w->n_cols || (a = w->extra[bit - o->n]) >= b)
                    break; /* owners ascend: the rest is not before b */
                o->row[b][a / 64] &= ~(1ull << a % 64);
            }
        }
    }
}

static br_code
sweep(work *w)
{
    const br_mega_prog *p = w->p;
    uint32_t total = br_pg_words(w->n_cols), words;
    size_t per_word = (p->n_counters + w->o->n + 1) * sizeof(uint64_t);
    block k;

    words = (uint32_t)BR_MIN((size_t)total, BLOCK_BYTES / per_word + 1);
    k.ctr = br_arena_get(&w->scratch, p->n_counters * words * 8 + 8);
    k.all = br_arena_get(&w->scratch, (size_t)w->o->n * words * 8 + 8);
    k.acc = br_arena_get(&w->scratch, words * 8 + 8);
    k.seen = br_arena_get(&w->scratch, w->o->n + 1);
    if (!k.ctr || !k.all || !k.acc || !k.seen)
        return oom(w->st);
    /* Ascending, so that a first column is set before a later one clears. */
    for (uint32_t at = 0; at < total; at += words) {
        k.lo = at * 64;
        k.words = BR_MIN(words, total - at);
        sweep_block(w, &k);
        merge_block(w, &k);
    }
    return BR_OK;
}

/* Items of different spaces, and those that stand alone, compare with none. */
static void
part_spaces(br_pg_order *o)
{
    bool mixed = false;

    for (uint32_t b = 0; b < o->n; b++)
        mixed =
            mixed || o->item[b].alone || o->item[b].space != o->item[0].space;
    for (uint32_t b = 0; mixed && b < o->n; b++)
        for (uint32_t a = 0; a < b; a++)
            if (o->item[a].alone || o->item[b].alone ||
                o->item[a].space != o->item[b].space)
                o->row[b][a / 64] &= ~(1ull << a % 64);
}

static void
add_in_place(work *w)
{
    br_pg_order *o = w->o;

    for (uint32_t i = 0; i < w->n_cands; i++) {
        const cand *c = &w->cands[i];
        if (!c->ok)
            continue;
        br_check(c->a < c->b && "a is read before b is written");
        o->row[c->b][c->a / 64] |= 1ull << c->a % 64;
        o->ending[c->a] = o->n + c->a; /* nobody else precedes b so */
    }
}

static br_code
build_shared(work *w)
{
    br_pg_order *o = w->o;
    size_t sum = 0;
    uint64_t *bits;

    if (o->n > BR_MEGA_MAX_SHARED)
        return br_fail(w->st, BR_E_LIMIT,
                       "pages: %u activations, at most %d can share pages "
                       "(policy linear has no limit)",
                       o->n, BR_MEGA_MAX_SHARED);
    for (uint32_t b = 0; b < o->n; b++)
        sum += br_pg_words(b);
    o->row = br_arena_new(w->a, uint64_t *, o->n + 1);
    bits = br_arena_new(w->a, uint64_t, sum + 1);
    if (!o->row || !bits)
        return oom(w->st);
    for (uint32_t b = 0; b < o->n; b++) {
        o->row[b] = bits;
        bits += br_pg_words(b);
        o->item[b].alone = o->item[b].alone || reads_itself(w, b);
    }
    BR_TRY(find_columns(w));
    BR_TRY(find_endings(w));
    BR_TRY(place_columns(w));
    BR_TRY(find_candidates(w));
    BR_TRY(sweep(w));
    part_spaces(o);
    add_in_place(w);
    return BR_OK;
}

static br_code
build(work *w)
{
    BR_TRY(check_program(w->p, &w->scratch, w->st));
    BR_TRY(br_mega_graph_build(&w->g, w->p, &w->scratch, w->st));
    if (!w->g.topo)
        return br_fail(w->st, BR_E_REJECTED, "pages: the counters are cyclic");
    BR_TRY(find_items(w));
    BR_TRY(find_uses(w));
    return w->opt->policy == BR_MPP_GRAPH_COLOR ? build_shared(w) : BR_OK;
}

br_code
br_pg_order_build(br_pg_order *o, const br_mega_prog *p,
                  const br_mega_pages_opt *opt, br_arena *a, br_status *st)
{
    work w = {.p = p, .opt = opt, .o = o, .a = a, .st = st};
    br_code rc;

    *o = (br_pg_order){0};
    br_arena_init(&w.scratch, 0);
    rc = build(&w);
    br_arena_fini(&w.scratch);
    return rc;
}
