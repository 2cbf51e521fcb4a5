/* simulate.c - the two dry runs of a program's counters.
 *
 * br_mega_simulate fires tasks in list order, sweep after sweep, until nothing
 * moves. br_mega_simulate_adversarial fires them in orders chosen to hurt and
 * looks for a read that comes before every write.
 *
 * Both are defined by loops over all tasks at every step. Here every task
 * counts the waits it still lacks, and the k-th increment of a counter wakes
 * exactly the waits that need k:
 *
 *   counter c, 3 producers      event = first[c] + k - 1
 *   increment  1    2    3
 *   event      7    8    9      wake[off[e] .. off[e + 1]) = tasks
 *
 * so a run costs O((tasks + waits) log tasks). The ready tasks are a set with
 * rank and select (a Fenwick tree over the words of a bitmap):
 *   - the sweep is "the next member after this one, wrapping around": a task
 *     woken behind the cursor has to wait for the next sweep, one woken ahead
 *     of it goes in this one, as in the loop;
 *   - the adversary's ready[(s * 2654435761) % len] is one select.
 *
 * Requires  nothing: any loaded program. What the definition cannot run (an
 *           id out of range, a threshold that is no number) is BR_E_REJECTED.
 * Memory    ~70 bytes a task, 24 a wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/mega.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Violations repeat names the file chose; one name of a gigabyte read by
     * a million tasks must not choose our memory. */
    MAX_VIOLATION_BYTES = 256 << 20,
};
#define NEVER UINT32_MAX

/* ---- a set of small integers with rank and select ---------------------- */

typedef struct ordset {
    uint64_t *bits;
    uint32_t *fen; /* 1-based Fenwick tree over the popcounts of bits */
    uint32_t n_words, n, top; /* top: largest power of two <= n_words */
} ordset;

static br_code
ordset_init(ordset *s, uint32_t n, br_arena *a, br_status *st)
{
    s->n_words = n / 64 + 1;
    s->bits = br_arena_new(a, uint64_t, s->n_words);
    s->fen = br_arena_new(a, uint32_t, s->n_words + 1);
    s->n = 0;
    s->top = 1;
    while (s->top * 2 <= s->n_words)
        s->top *= 2;
    if (!s->bits || !s->fen)
        return br_fail(st, BR_E_OOM, "simulate: no memory");
    return BR_OK;
}

static void
ordset_clear(ordset *s)
{
    memset(s->bits, 0, s->n_words * sizeof *s->bits);
    memset(s->fen, 0, (s->n_words + 1) * sizeof *s->fen);
    s->n = 0;
}

static void
ordset_flip(ordset *s, uint32_t i)
{
    uint64_t bit = 1ull << i % 64;
    uint32_t add = s->bits[i / 64] & bit ? UINT32_MAX : 1; /* -1 or +1 */

    s->bits[i / 64] ^= bit;
    s->n += add;
    for (uint32_t w = i / 64 + 1; w <= s->n_words; w += w & -w)
        s->fen[w] += add;
}

/* The k-th smallest member, k < n. */
static uint32_t
ordset_select(const ordset *s, uint32_t k)
{
    uint32_t w = 0;
    uint64_t b;

    br_assert(k < s->n);
    for (uint32_t step = s->top; step; step /= 2) {
        if (w + step <= s->n_words && s->fen[w + step] <= k) {
            w += step;
            k -= s->fen[w];
        }
    }
    for (b = s->bits[w]; k; k--)
        b &= b - 1;
    return w * 64 + (uint32_t)__builtin_ctzll(b);
}

/* The smallest member >= from, else the smallest of all; the set is not empty.
 * Neighbouring tasks wake together, so the answer is nearly always in the
 * first word and the tree is not touched. */
static uint32_t
ordset_next(const ordset *s, uint32_t from)
{
    uint32_t w = from / 64, before = 0;
    uint64_t here = w < s->n_words ? s->bits[w] >> from % 64 : 0;

    if (here)
        return from + (uint32_t)__builtin_ctzll(here);
    for (uint32_t i = BR_MIN(w + 1, s->n_words); i; i -= i & -i)
        before += s->fen[i];
    return ordset_select(s, before < s->n ? before : 0);
}

/* ---- the program as events --------------------------------------------- */

typedef struct sim {
    const br_mega_prog *p;
    br_arena *a;
    br_status *st;
    uint32_t n;
    int64_t *names;        /* of the counters, then of the tasks' counters */
    uint32_t *slot;        /* task -> its id, the index of its `done` flag */
    uint32_t *first;       /* counter -> event of its first increment */
    uint32_t *ctr_of;      /* task -> counter it increments (dense) */
    uint32_t *off;         /* event -> wake range */
    uint32_t *wake;        /* waiting task, once per wait */
    uint32_t *lacking;     /* task -> waits not yet met at the start */
    uint32_t *left, *hits; /* the same during a run; increments of counter */
    bool *done;            /* by slot */
    ordset ready;          /* positions in the task list */
    uint32_t n_ctr, n_event;
    bool shared_slot; /* two tasks have one id: one of them never runs */
} sim;

/* Distinct counter ids, ascending, so that an id becomes an index. A program
 * in order (0..n-1) needs none of it: ids is NULL. */
typedef struct ctr_map {
    int64_t *ids;
    uint32_t n;
} ctr_map;

static const br_json *
misfit(const br_mega_prog *p, br_mega_field f, size_t index, size_t sub)
{
    size_t lo = 0, hi = p->n_misfits;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const br_mega_misfit *m = &p->misfits[mid];
        if (m->field != f       ? m->field < f
            : m->index != index ? m->index < index
                                : m->sub < sub)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < p->n_misfits && p->misfits[lo].field == f &&
        p->misfits[lo].index == index && p->misfits[lo].sub == sub)
        return p->misfits[lo].value;
    return NULL;
}

/* A counter or buffer may be named by anything the reference can look up: 1.0
 * and true name what 1 names; a text, a null or a fraction names something no
 * integer does. False: a list or an object, where the lookup itself fails. */
static bool
name_of(const sim *s, br_mega_misfit at, int64_t typed, int64_t *out)
{
    const br_json *v =
        s->p->n_misfits ? misfit(s->p, at.field, at.index, at.sub) : NULL;
    uint64_t h = 0x9e3779b97f4a7c15u;

    *out = typed;
    if (!v || v->kind == BR_J_INT)
        return true;
    if (v->kind == BR_J_ARR || v->kind == BR_J_OBJ)
        return false;
    if (v->kind == BR_J_BOOL) {
        *out = v->b;
        return true;
    }
    if (v->kind == BR_J_FLOAT) {
        if (fabs(v->f) < 0x1p53 && v->f == floor(v->f)) {
            *out = (int64_t)v->f;
            return true;
        }
        memcpy(&h, &v->f, sizeof h);
    } else if (v->kind != BR_J_NULL) {
        for (uint32_t i = 0; i < v->n; i++)
            h = (h ^ (uint8_t)v->s[i]) * 0x100000001b3u;
    }
    *out = INT64_MIN + (int64_t)(h >> 2); /* far from what a file may say */
    return true;
}

static br_code
bad_name(const sim *s, const char *what, size_t i)
{
    return br_fail(s->st, BR_E_REJECTED,
                   "simulate: %s[%zu]: a list or an "
                   "object where an id belongs",
                   what, i);
}

static int
cmp_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The id of each counter of the list, then of each task's out_counter. */
static br_code
map_counters(sim *s, ctr_map *m)
{
    const br_mega_prog *p = s->p;
    size_t n = p->n_counters + p->n_tasks, k = 0;
    bool dense = true;

    s->names = br_arena_new(s->a, int64_t, n + 1);
    if (!s->names)
        return br_fail(s->st, BR_E_OOM, "simulate: no memory");
    for (size_t i = 0; i < n; i++) {
        size_t t = i - p->n_counters;
        bool ctr = i < p->n_counters;
        br_mega_misfit at = {.field =
                                 ctr ? BR_MF_CTR_ID : BR_MF_TASK_OUT_COUNTER,
                             .index = (uint32_t)(ctr ? i : t)};
        if (!name_of(s, at, ctr ? p->counters[i].id : p->tasks[t].out_counter,
                     &s->names[i]))
            return bad_name(s, ctr ? "counters" : "tasks", at.index);
        dense = dense && (ctr ? s->names[i] == (int64_t)i
                              : (uint64_t)s->names[i] < p->n_counters);
    }
    *m = (ctr_map){NULL, (uint32_t)p->n_counters};
    if (dense)
        return BR_OK;
    m->ids = br_arena_dup(s->a, s->names, n * sizeof *m->ids);
    if (!m->ids)
        return br_fail(s->st, BR_E_OOM, "simulate: no memory");
    qsort(m->ids, n, sizeof *m->ids, cmp_i64);
    for (size_t i = 0; i < n; i++)
        if (!k || m->ids[k - 1] != m->ids[i])
            m->ids[k++] = m->ids[i];
    m->n = (uint32_t)k;
    return BR_OK;
}

static uint32_t
counter_index(const ctr_map *m, int64_t id)
{
    const int64_t *hit;

    if (!m->ids)
        return (uint64_t)id < m->n ? (uint32_t)id : NEVER;
    hit = bsearch(&id, m->ids, m->n, sizeof *m->ids, cmp_i64);
    return hit ? (uint32_t)(hit - m->ids) : NEVER;
}

/* A number of any kind the file may hold; false when it is none. */
static bool
number(const br_json *misfit_value, int64_t typed, int64_t *i, double *f)
{
    const br_json *v = misfit_value;

    *i = typed;
    *f = (double)NAN; /* NaN: *i is exact */
    if (!v)
        return true;
    switch ((br_json_kind)v->kind) {
    case BR_J_INT: *i = v->i; return true;
    case BR_J_BOOL: *i = v->b; return true;
    case BR_J_FLOAT:
        *f = isnan(v->f) ? (double)INFINITY : v->f; /* x >= nan: never */
        return true;
    case BR_J_BIGINT:
        *f = v->n && v->s[0] == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    case BR_J_NULL:
    case BR_J_STR:
    case BR_J_ARR:
    case BR_J_OBJ: return false;
    }
    br_unreachable("kind of a JSON node");
}

/* Initial values by dense counter; the last of equal ids wins. */
typedef struct inits {
    int64_t *i;
    double *f;
    bool *bad;
} inits;

static br_code
read_inits(sim *s, const ctr_map *m, inits *v)
{
    v->i = br_arena_new(s->a, int64_t, m->n + 1);
    v->f = br_arena_new(s->a, double, m->n + 1);
    v->bad = br_arena_new(s->a, bool, m->n + 1);
    if (!v->i || !v->f || !v->bad)
        return br_fail(s->st, BR_E_OOM, "simulate: no memory");
    for (uint32_t c = 0; c <= m->n; c++)
        v->f[c] = (double)NAN;
    for (size_t k = 0; k < s->p->n_counters; k++) {
        uint32_t c = counter_index(m, s->names[k]);
        br_check(c != NEVER && "the map holds every counter of the list");
        v->bad[c] = !number(misfit(s->p, BR_MF_CTR_INIT, k, 0),
                            s->p->counters[k].init, &v->i[c], &v->f[c]);
    }
    return BR_OK;
}

/* A wait by its place, its counter (dense, or NEVER: not in the program) and
 * how many increments that will get. */
typedef struct wait_at {
    size_t task, k;
    uint32_t c, n;
} wait_at;

/* How many increments make the counter reach what the wait asks; 0: reached
 * at the start, NEVER: not by n. */
static br_code
increments(const sim *s, const wait_at *w, const inits *v, uint32_t *out)
{
    const br_mega_wait *wait = &s->p->tasks[w->task].waits[w->k];
    const br_json *odd = misfit(s->p, BR_MF_TASK_WAIT_THR, w->task, w->k);
    int64_t ti, ii = w->c == NEVER ? 0 : v->i[w->c];
    double tf, fi = w->c == NEVER ? (double)NAN : v->f[w->c], need;

    if (!number(odd, wait->threshold, &ti, &tf))
        return br_fail(s->st, BR_E_REJECTED,
                       "simulate: tasks[%zu].waits[%zu].threshold: "
                       "not a number",
                       w->task, w->k);
    if (w->c != NEVER && v->bad[w->c])
        return br_fail(s->st, BR_E_REJECTED,
                       "simulate: tasks[%zu].waits[%zu]: the initial value of "
                       "its counter is not a number",
                       w->task, w->k);
    if (isnan(tf) && isnan(fi)) {
        /* exact: the difference of two int64 may need 65 bits */
        uint64_t diff = (uint64_t)ti - (uint64_t)ii;
        *out = ti <= ii ? 0 : diff <= w->n ? (uint32_t)diff : NEVER;
        return BR_OK;
    }
    need = ceil((isnan(tf) ? (double)ti : tf) - (isnan(fi) ? (double)ii : fi));
    *out = need <= 0 ? 0 : need <= w->n ? (uint32_t)need : NEVER;
    return BR_OK;
}

static br_code
number_slots(sim *s)
{
    const br_mega_prog *p = s->p;

    for (uint32_t t = 0; t < s->n; t++) {
        if (p->n_misfits && misfit(p, BR_MF_TASK_ID, t, 0))
            return br_fail(s->st, BR_E_REJECTED,
                           "simulate: tasks[%u].id: not an integer", t);
        if ((uint64_t)p->tasks[t].id >= s->n)
            return br_fail(s->st, BR_E_REJECTED,
                           "simulate: tasks[%u].id: %lld is not in 0..%u", t,
                           (long long)p->tasks[t].id, s->n - 1);
        s->slot[t] = (uint32_t)p->tasks[t].id;
        s->shared_slot = s->shared_slot || s->done[s->slot[t]];
        s->done[s->slot[t]] = true;
    }
    return BR_OK;
}

/* Counts the events (producers of each counter) and fills first[]. */
static void
number_events(sim *s, const ctr_map *m)
{
    uint32_t at = 0;

    for (uint32_t t = 0; t < s->n; t++) {
        s->ctr_of[t] = counter_index(m, s->names[s->p->n_counters + t]);
        s->first[s->ctr_of[t]]++;
    }
    for (uint32_t c = 0; c <= m->n; c++) {
        uint32_t k = s->first[c];
        s->first[c] = at;
        at += k;
    }
    s->n_event = at;
    br_assert(at == s->n && "every task increments one counter once");
}

/* Two passes over the waits: count per event, then place. */
static br_code
number_wakes(sim *s, const ctr_map *m, const inits *v)
{
    const br_mega_prog *p = s->p;
    uint32_t total = 0;
    size_t n_waits = 0, k = 0;
    uint32_t *event;

    for (uint32_t t = 0; t < s->n; t++)
        n_waits += p->tasks[t].n_waits;
    event = br_arena_new(s->a, uint32_t, n_waits + 1);
    s->wake = br_arena_new(s->a, uint32_t, n_waits + 1);
    if (!event || !s->wake || n_waits >= NEVER)
        return br_fail(s->st, BR_E_OOM, "simulate: no memory");
    for (uint32_t t = 0; t < s->n; t++) {
        for (size_t w = 0; w < p->tasks[t].n_waits; w++, k++) {
            br_mega_misfit at = {
                .field = BR_MF_TASK_WAIT_CTR, .index = t, .sub = (uint32_t)w};
            wait_at x = {.task = t, .k = w};
            uint32_t inc = 0;
            int64_t id;
            if (!name_of(s, at, p->tasks[t].waits[w].counter, &id))
                return bad_name(s, "tasks", t);
            x.c = counter_index(m, id);
            x.n = x.c == NEVER ? 0 : s->first[x.c + 1] - s->first[x.c];
            BR_TRY(increments(s, &x, v, &inc));
            s->lacking[t] += inc != 0;
            event[k] = inc && inc != NEVER ? s->first[x.c] + inc - 1 : NEVER;
            if (event[k] != NEVER)
                s->off[event[k] + 1]++;
        }
    }
    for (uint32_t e = 0; e < s->n_event; e++)
        s->off[e + 1] = total += s->off[e + 1];
    for (size_t t = s->n; t-- > 0;) { /* backwards: off[] ends at its starts */
        for (size_t w = p->tasks[t].n_waits; w-- > 0;) {
            uint32_t e = event[--k];
            if (e != NEVER)
                s->wake[--s->off[e + 1]] = (uint32_t)t;
        }
    }
    for (uint32_t e = 0; e < s->n_event; e++)
        s->off[e] = s->off[e + 1];
    s->off[s->n_event] = total;
    return BR_OK;
}

static br_code
sim_build(sim *s, const br_mega_prog *p, br_arena *a, br_status *st)
{
    ctr_map m = {0};
    inits v;

    *s = (sim){.p = p, .a = a, .st = st, .n = (uint32_t)p->n_tasks};
    if (p->n_tasks >= NEVER - 1)
        return br_fail(st, BR_E_LIMIT, "simulate: %zu tasks", p->n_tasks);
    BR_TRY(map_counters(s, &m));
    BR_TRY(read_inits(s, &m, &v));
    s->n_ctr = m.n;
    s->slot = br_arena_new(a, uint32_t, s->n + 1);
    s->first = br_arena_new(a, uint32_t, m.n + 2);
    s->ctr_of = br_arena_new(a, uint32_t, s->n + 1);
    s->off = br_arena_new(a, uint32_t, s->n + 2);
    s->lacking = br_arena_new(a, uint32_t, s->n + 1);
    s->left = br_arena_new(a, uint32_t, s->n + 1);
    s->hits = br_arena_new(a, uint32_t, m.n + 1);
    s->done = br_arena_new(a, bool, s->n + 1);
    if (!s->slot || !s->first || !s->ctr_of || !s->off || !s->lacking ||
        !s->left || !s->hits || !s->done)
        return br_fail(st, BR_E_OOM, "simulate: no memory");
    BR_TRY(ordset_init(&s->ready, s->n, a, st));
    BR_TRY(number_slots(s));
    number_events(s, &m);
    return number_wakes(s, &m, &v);
}

static void
sim_start(sim *s)
{
    memcpy(s->left, s->lacking, s->n * sizeof *s->left);
    memset(s->hits, 0, s->n_ctr * sizeof *s->hits);
    memset(s->done, 0, s->n * sizeof *s->done);
    ordset_clear(&s->ready);
    for (uint32_t t = 0; t < s->n; t++)
        if (!s->left[t])
            ordset_flip(&s->ready, t);
}

/* Fires ready task t: out of the set, its counter up, those it wakes in. */
static void
sim_fire(sim *s, uint32_t t)
{
    uint32_t c = s->ctr_of[t], e = s->first[c] + s->hits[c]++;

    ordset_flip(&s->ready, t);
    s->done[s->slot[t]] = true;
    for (uint32_t i = s->off[e]; i < s->off[e + 1]; i++) {
        uint32_t w = s->wake[i];
        if (--s->left[w] == 0 && !s->done[s->slot[w]])
            ordset_flip(&s->ready, w);
    }
    if (!s->shared_slot)
        return;
    for (uint32_t i = 0; i < s->n; i++) /* rejected elsewhere; only correct */
        if (i != t && s->slot[i] == s->slot[t] &&
            s->ready.bits[i / 64] >> i % 64 & 1)
            ordset_flip(&s->ready, i);
}

/* ---- the two simulations ----------------------------------------------- */

br_code
br_mega_simulate(const br_mega_prog *p, br_mega_sim *out, br_status *st)
{
    br_arena a;
    sim s;
    uint32_t at = 0;
    br_code rc;

    br_arena_init(&a, 0);
    out->order.n = out->stuck.n = 0;
    rc = sim_build(&s, p, &a, st);
    if (rc == BR_OK && !br_vec_reserve(&out->order, s.n + 1))
        rc = br_fail(st, BR_E_OOM, "simulate: no memory");
    if (rc != BR_OK)
        goto done;
    sim_start(&s);
    while (s.ready.n) {
        at = ordset_next(&s.ready, at);
        out->order.at[out->order.n++] = s.slot[at];
        sim_fire(&s, at);
        at++;
    }
    for (uint32_t t = 0; t < s.n && rc == BR_OK; t++)
        if (!s.done[s.slot[t]] && !br_vec_push(&out->stuck, s.slot[t]))
            rc = br_fail(st, BR_E_OOM, "simulate: no memory");
done:
    br_arena_fini(&a);
    return rc;
}

/* What a buffer id means to a reader: buffers are looked up by id, their
 * names by position. */
enum { BUF_STEADY, BUF_UNWRITTEN, BUF_WRITTEN };

typedef struct hunt {
    sim s;
    uint8_t *start, *now; /* by id: state of the buffer */
    uint32_t *use_off;    /* task -> its inputs, then its outputs, in uses */
    uint32_t *uses;
    size_t bytes; /* of violations so far */
} hunt;

/* A transient buffer of that name makes the reference look at the buffer in
 * that place of the list, whatever its name; so do we. */
static br_code
mark_transients(hunt *h)
{
    const br_mega_prog *p = h->s.p;

    for (size_t i = 0; i < p->n_buffers; i++) {
        br_mega_misfit at = {.field = BR_MF_BUF_ID, .index = (uint32_t)i};
        int64_t id;
        if (!name_of(&h->s, at, p->buffers[i].id, &id))
            return bad_name(&h->s, "buffers", i);
        if (br_mega_kind_readonly(p->buffers[i].kind))
            continue;
        if ((uint64_t)id >= p->n_buffers)
            return br_fail(h->s.st, BR_E_REJECTED,
                           "simulate: buffers[%zu].id: not in 0..%zu", i,
                           p->n_buffers - 1);
        h->start[id] = BUF_UNWRITTEN;
    }
    for (size_t i = 0; i < p->n_buffers; i++)
        if (h->start[i] && p->buffers[i].kind == BR_MBK_KV_CACHE)
            h->start[i] = BUF_WRITTEN; /* holds the steps before */
    return BR_OK;
}

/* The buffers of every task as indices, NEVER for what is not one of them. */
static br_code
resolve_uses(hunt *h)
{
    const br_mega_prog *p = h->s.p;
    size_t n = 0;

    for (uint32_t t = 0; t < h->s.n; t++)
        n += p->tasks[t].n_in + p->tasks[t].n_out;
    h->uses = br_arena_new(h->s.a, uint32_t, n + 1);
    if (!h->uses)
        return br_fail(h->s.st, BR_E_OOM, "simulate: no memory");
    n = 0;
    for (uint32_t t = 0; t < h->s.n; t++) {
        const br_mega_task *x = &p->tasks[t];
        for (uint32_t k = 0; k < x->n_in + x->n_out; k++) {
            bool in = k < x->n_in;
            uint32_t sub = in ? k : k - x->n_in;
            br_mega_misfit at = {.field = in ? BR_MF_TASK_IN : BR_MF_TASK_OUT,
                                 .index = t,
                                 .sub = sub};
            int64_t id;
            if (!name_of(&h->s, at, in ? x->in[sub] : x->out[sub], &id))
                return bad_name(&h->s, "tasks", t);
            /* A state changed in place is an input that names its place. */
            for (uint32_t o = 0; in && x->op >= BR_MOP_STEP && o < x->n_out;
                 o++)
                if (x->out[o] == id)
                    id = -1;
            h->uses[n++] = (uint64_t)id < p->n_buffers ? (uint32_t)id : NEVER;
        }
    }
    return BR_OK;
}

static br_code
hunt_build(hunt *h)
{
    const br_mega_prog *p = h->s.p;
    const uint32_t *u;

    h->start = br_arena_new(h->s.a, uint8_t, p->n_buffers + 1);
    h->now = br_arena_new(h->s.a, uint8_t, p->n_buffers + 1);
    h->use_off = br_arena_new(h->s.a, uint32_t, h->s.n + 1);
    if (!h->start || !h->now || !h->use_off)
        return br_fail(h->s.st, BR_E_OOM, "simulate: no memory");
    BR_TRY(mark_transients(h));
    BR_TRY(resolve_uses(h));
    u = h->uses;
    for (uint32_t t = 0; t < h->s.n; t++) {
        h->use_off[t] = (uint32_t)(u - h->uses);
        u += p->tasks[t].n_in;
        for (uint32_t k = 0; k < p->tasks[t].n_out; k++, u++)
            if (*u != NEVER && h->start[*u] == BUF_WRITTEN)
                h->start[*u] = BUF_UNWRITTEN; /* a cache written this pass */
    }
    return BR_OK;
}

/* Text of the file in a C string: a NUL is shown, not obeyed. */
static void
put_name(br_str *z, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i])
            br_str_putc(z, p[i]);
        else
            br_str_puts(z, "\\x00");
    }
}

static br_code
note_violation(hunt *h, br_mega_sim *out, int seed, uint32_t t, uint64_t b)
{
    const br_mega_task *task = &h->s.p->tasks[t];
    const br_mega_buffer *buf = &h->s.p->buffers[b];
    br_str z = {0};

    h->bytes += 80 + (size_t)task->label_n + buf->name_n;
    if (h->bytes > MAX_VIOLATION_BYTES)
        return br_fail(h->s.st, BR_E_LIMIT,
                       "simulate: more than %d bytes of violations",
                       MAX_VIOLATION_BYTES);
    br_str_printf(&z, "[seed %d] task %lld (", seed, (long long)task->id);
    if (task->label_n)
        put_name(&z, task->label, task->label_n);
    else
        br_str_puts(&z, br_mega_op_name(task->op));
    br_str_printf(&z, ") reads buffer #%llu ('", (unsigned long long)b);
    put_name(&z, buf->name, buf->name_n);
    br_str_puts(&z, "') before any producer wrote it");
    if (z.oom || !br_vec_push(&out->violations, z.at)) {
        br_str_fini(&z);
        return br_fail(h->s.st, BR_E_OOM, "simulate: no memory");
    }
    return BR_OK;
}

static br_code
hunt_seed(hunt *h, br_mega_sim *out, int seed)
{
    const br_mega_prog *p = h->s.p;
    uint64_t pick = (uint64_t)seed * 2654435761u;

    sim_start(&h->s);
    memcpy(h->now, h->start, p->n_buffers);
    while (h->s.ready.n) {
        uint32_t t =
            ordset_select(&h->s.ready, (uint32_t)(pick % h->s.ready.n));
        const br_mega_task *task = &p->tasks[t];
        const uint32_t *u = &h->uses[h->use_off[t]];
        for (size_t k = 0; k < task->n_in; k++, u++)
            if (*u != NEVER && h->now[*u] == BUF_UNWRITTEN)
                BR_TRY(note_violation(h, out, seed, t, *u));
        for (size_t k = 0; k < task->n_out; k++, u++)
            if (*u != NEVER)
                h->now[*u] = BUF_WRITTEN;
        sim_fire(&h->s, t);
    }
    return BR_OK;
}

static int
cmp_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
sort_unique(br_mega_sim *out)
{
    size_t k = 0;

    if (out->violations.n)
        qsort(out->violations.at, out->violations.n, sizeof(char *), cmp_text);
    for (size_t i = 0; i < out->violations.n; i++) {
        char *z = out->violations.at[i];
        if (k && strcmp(out->violations.at[k - 1], z) == 0)
            br_free(z);
        else
            out->violations.at[k++] = z;
    }
    out->violations.n = k;
}

static void
drop_violations(br_mega_sim *out)
{
    for (size_t i = 0; i < out->violations.n; i++)
        br_free(out->violations.at[i]);
    out->violations.n = 0;
}

br_code
br_mega_simulate_adversarial(const br_mega_prog *p, int seeds, br_mega_sim *out,
                             br_status *st)
{
    br_arena a;
    hunt h = {0};
    br_code rc;

    br_arena_init(&a, 0);
    drop_violations(out);
    rc = sim_build(&h.s, p, &a, st);
    if (rc == BR_OK)
        rc = hunt_build(&h);
    for (int s = 0; s < BR_MAX(1, seeds) && rc == BR_OK; s++) {
        rc = hunt_seed(&h, out, s);
        if (out->violations.n)
            break;
    }
    if (rc == BR_OK)
        sort_unique(out);
    else
        drop_violations(out);
    br_arena_fini(&a);
    return rc;
}

void
br_mega_sim_fini(br_mega_sim *s)
{
    drop_violations(s);
    br_vec_fini(&s->violations);
    br_vec_fini(&s->order);
    br_vec_fini(&s->stuck);
}
