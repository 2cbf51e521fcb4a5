/* tok_merge.c - words to ids by merging neighbours, the best pair first.
 *
 *   l o w e r      the pair with the lowest rank (BPE: place in the list of
 *   lo w e r       merges; SPM: highest score), the leftmost of equals, until
 *   lo w er        no pair merges
 *   low er
 *
 * Three sizes of word:
 *
 *   up to 40 symbols    ranks in an array, the least found by looking
 *   up to a window      a heap of candidates over a linked list; a candidate
 *                       that something else has changed is dropped when met
 *   longer              windows of 4,096 bytes, each cut at a token boundary.
 *
 * Windows give the exact result. A list of tokens is the encoding of its text
 * if and only if each two neighbours are the encoding of theirs: the first
 * merge across a boundary would see the same symbols, in the same order of
 * merges, in the text of its two tokens alone. Inside a window that holds; at
 * a seam it is checked, and if it fails the window before is done again with
 * the size doubled. So the heap stays in the cache: a word of 10 MB of random
 * letters takes 1.2 s (make bench-tokenize), and n log n is the worst.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <string.h>

enum {
    SMALL = 40,    /* symbols */
    WINDOW = 4096, /* bytes; the next window does an eighth of it again */
    NO_RANK = -1,  /* as uint32_t: does not merge */
};

bool
br_tok_push(br_tok_work *w, int32_t id)
{
    if (br_vec_push(w->ids, id))
        return true;
    w->code = BR_E_OOM;
    return false;
}

static bool
oom(br_tok_work *w)
{
    w->code = BR_E_OOM;
    return false;
}

/* ---- symbols ----------------------------------------------------------- */

struct word {
    const br_tok *t;
    br_tok_work *w;
    const uint8_t *p;
    br_tok_bench *bench; /* for heap_merge */
    size_t ids0;         /* where the word's ids begin */
};

/* The first symbol at p: its bytes, and its id or NONE. */
static inline size_t
symbol(const br_tok *t, const uint8_t *p, const uint8_t *end, int32_t *id)
{
    size_t n;

    if (t->kind == BR_TOK_BPE) {
        *id = t->byte_id[*p];
        return 1;
    }
    n = br_utf8_claims(*p);
    n = BR_MIN(n, (size_t)(end - p));
    *id = br_index_find(t, p, n);
    if (*id >= 0 && t->prio[*id] == (uint32_t)NO_RANK)
        *id = BR_TOK_NONE; /* text never spells a control token */
    return n;
}

/* What [a, b) and [b, c) make: rank, or NO_RANK. */
static inline uint32_t
pair_rank(const struct word *x, const br_tok_sym *left, const br_tok_sym *right,
          uint32_t c, uint32_t *made)
{
    const br_tok_pair *p;
    int32_t id;

    if (x->t->kind == BR_TOK_SPM) {
        id = br_index_find(x->t, x->p + left->at, c - left->at);
        if (id < 0 || x->t->prio[id] == (uint32_t)NO_RANK)
            return (uint32_t)NO_RANK;
        *made = (uint32_t)id;
        return x->t->prio[id];
    }
    if (left->id < 0 || right->id < 0)
        return (uint32_t)NO_RANK;
    p = br_pairs_find(&x->t->pairs, (uint32_t)left->id, (uint32_t)right->id);
    if (!p)
        return (uint32_t)NO_RANK;
    *made = p->made;
    return p->rank;
}

static bool
put_unknown(const struct word *x)
{
    const br_tok_ids *ids = x->w->ids;
    int32_t unk = x->t->role[BR_TOK_UNK];

    return (x->t->fuse_unk && ids->n > x->ids0 && ids->at[ids->n - 1] == unk) ||
           br_tok_push(x->w, unk);
}

/* A symbol that no merge took and that is no token: its bytes. */
static bool
put_bytes(const struct word *x, uint32_t from, uint32_t to)
{
    const br_tok *t = x->t;
    bool known = true;

    for (uint32_t i = from; i < to; i++)
        known = known && t->byte_id[x->p[i]] >= 0;
    if (!known)
        return put_unknown(x);
    for (uint32_t i = from; i < to; i++)
        if (!br_tok_push(x->w, t->byte_id[x->p[i]]))
            return false;
    return true;
}

static inline bool
put(const struct word *x, int32_t id, uint32_t from, uint32_t to)
{
    return id >= 0 ? br_tok_push(x->w, id) : put_bytes(x, from, to);
}

/* ---- few symbols ------------------------------------------------------- */

/* Symbols into s[0..n], s[n].at the end. False: more than SMALL. */
static bool
small_symbols(const br_tok *t, const uint8_t *p, size_t n, br_tok_sym *s,
              size_t *count)
{
    size_t k = 0;

    for (size_t at = 0; at < n;) {
        if (k == SMALL)
            return false;
        s[k].at = (uint32_t)at;
        at += symbol(t, p + at, p + n, &s[k].id);
        k++;
    }
    s[k].at = (uint32_t)n;
    s[k].id = BR_TOK_NONE;
    *count = k;
    return true;
}

static size_t
small_merge(const struct word *x, br_tok_sym *s, size_t n)
{
    uint32_t rank[SMALL + 1], made[SMALL + 1];

    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = pair_rank(x, &s[i], &s[i + 1], s[i + 2].at, &made[i]);
    while (n > 1) {
        size_t b = 0;

        for (size_t i = 1; i + 1 < n; i++)
            b = rank[i] < rank[b] ? i : b;
        if (rank[b] == (uint32_t)NO_RANK)
            break;
        s[b].id = (int32_t)made[b];
        memmove(s + b + 1, s + b + 2, (n - b - 1) * sizeof *s);
        n--;
        if (b + 1 < n) {
            memmove(rank + b + 1, rank + b + 2, (n - b - 1) * sizeof *rank);
            memmove(made + b + 1, made + b + 2, (n - b - 1) * sizeof *made);
            rank[b] = pair_rank(x, &s[b], &s[b + 1], s[b + 2].at, &made[b]);
        }
        if (b > 0)
            rank[b - 1] =
                pair_rank(x, &s[b - 1], &s[b], s[b + 1].at, &made[b - 1]);
    }
    return n;
}

/* ---- a heap ------------------------------------------------------------ */

static inline void
sift_up(br_tok_cand *h, size_t i)
{
    br_tok_cand v = h[i];

    for (; i > 0 && v.key < h[(i - 1) / 4].key; i = (i - 1) / 4)
        h[i] = h[(i - 1) / 4];
    h[i] = v;
}

static inline void
sift_down(br_tok_cand *h, size_t n, size_t i)
{
    br_tok_cand v = h[i];

    for (;;) {
        size_t kid = 4 * i + 1, least = kid;

        if (kid >= n)
            break;
        for (size_t k = kid + 1; k < BR_MIN(kid + 4, n); k++)
            least = h[k].key < h[least].key ? k : least;
        if (h[least].key >= v.key)
            break;
        h[i] = h[least];
        i = least;
    }
    h[i] = v;
}

/* The candidate of symbol i and its next, if they merge. */
static inline bool
candidate(const struct word *x, uint32_t i, br_tok_cand *c)
{
    const br_tok_sym *s = x->bench->syms.at;
    uint32_t j = s[i].next, rank;

    if (s[j].next == j)
        return false; /* j is the end mark */
    c->end = s[s[j].next].at;
    rank = pair_rank(x, &s[i], &s[j], c->end, &c->made);
    c->key = (uint64_t)rank << 32 | i;
    return rank != (uint32_t)NO_RANK;
}

static bool
add_candidate(const struct word *x, uint32_t i)
{
    br_tok_cand c;

    if (!candidate(x, i, &c))
        return true;
    if (!br_vec_push(&x->bench->heap, c))
        return oom(x->w);
    sift_up(x->bench->heap.at, x->bench->heap.n - 1);
    return true;
}

enum { DEAD = -2 };

/* One merge, or nothing when the candidate is stale. */
static bool
merge_one(const struct word *x, br_tok_cand c)
{
    br_tok_sym *s = x->bench->syms.at;
    uint32_t i = (uint32_t)c.key, j = s[i].next;

    if (s[i].id == DEAD || s[j].next == j || s[s[j].next].at != c.end)
        return true;
    s[i].id = (int32_t)c.made;
    s[i].next = s[j].next;
    s[s[j].next].prev = i;
    s[j].id = DEAD;
    if (s[i].prev != UINT32_MAX && !add_candidate(x, s[i].prev))
        return false;
    return add_candidate(x, i);
}

/* Fills w->syms with the tokens of x->p[from, to), linked. */
static bool
heap_merge(const struct word *x, uint32_t from, uint32_t to)
{
    br_tok_bench *w = x->bench;
    br_tok_cand c;
    uint32_t n = 0;

    w->syms.n = w->heap.n = 0;
    if (!br_vec_reserve(&w->syms, (size_t)(to - from) + 1) ||
        !br_vec_reserve(&w->heap, (size_t)(to - from)))
        return oom(x->w);
    for (uint32_t at = from; at < to; n++) {
        br_tok_sym *s = &w->syms.at[n];

        s->at = at;
        s->prev = n - 1;
        s->next = n + 1;
        at += (uint32_t)symbol(x->t, x->p + at, x->p + to, &s->id);
    }
    w->syms.at[n] = (br_tok_sym){to, n - 1, n, BR_TOK_NONE};
    for (uint32_t i = 0; i + 1 < n; i++)
        if (candidate(x, i, &c))
            w->heap.at[w->heap.n++] = c;
    for (size_t i = w->heap.n / 4 + 1; i-- > 0;)
        if (i < w->heap.n)
            sift_down(w->heap.at, w->heap.n, i);
    while (w->heap.n > 0) {
        c = w->heap.at[0];
        w->heap.at[0] = w->heap.at[--w->heap.n];
        if (w->heap.n > 0)
            sift_down(w->heap.at, w->heap.n, 0);
        if (!merge_one(x, c))
            return false;
    }
    return true;
}

/* ---- windows ----------------------------------------------------------- */

struct token {
    uint32_t from, to;
    int32_t id;
};

/* Are the two tokens what their text encodes to? */
static bool
seam_holds(const struct word *x, struct token a, struct token b)
{
    struct word y = {x->t, x->w, x->p + a.from, &x->w->bench[1], 0};
    br_tok_sym small[SMALL + 1];
    const br_tok_sym *s;
    size_t n = b.to - a.from, count;
    uint32_t cut = b.from - a.from;

    if (small_symbols(x->t, y.p, n, small, &count)) {
        count = small_merge(&y, small, count);
        return count == 2 && small[1].at == cut && small[0].id == a.id &&
               small[1].id == b.id;
    }
    if (!heap_merge(&y, 0, (uint32_t)n))
        return false;
    s = y.bench->syms.at;
    return s[0].id == a.id && s[s[0].next].at == cut &&
           s[s[0].next].id == b.id && s[s[s[0].next].next].at == n;
}

struct seam {
    uint32_t at;  /* where the window begins */
    size_t n_ids; /* ids that were there before it */
    struct token last;
};

/* Puts the tokens of a window that end by `keep`, at least one. */
static bool
put_window(const struct word *x, uint32_t keep, struct token *last)
{
    const br_tok_sym *s = x->bench->syms.at;
    uint32_t i = 0;

    do {
        *last = (struct token){s[i].at, s[s[i].next].at, s[i].id};
        if (!put(x, s[i].id, last->from, last->to))
            return false;
        i = s[i].next;
    } while (s[i].next != i && s[s[i].next].at <= keep);
    return true;
}

/* A character boundary at or before `at`, after `from`. */
static uint32_t
boundary(const struct word *x, uint32_t from, uint32_t at)
{
    if (x->t->kind == BR_TOK_BPE)
        return at;
    for (uint32_t k = at; k > from && at - k < 4; k--)
        if ((x->p[k] & 0xC0) != 0x80)
            return k;
    return at;
}

static bool
push_seam(br_tok_work *w, const struct seam *s)
{
    /* starts holds the seams of all windows, five words each */
    const uint32_t v[5] = {s->at, (uint32_t)s->n_ids, s->last.from, s->last.to,
                           (uint32_t)s->last.id};

    if (!br_vec_reserve(&w->starts, w->starts.n + 5))
        return oom(w);
    memcpy(w->starts.at + w->starts.n, v, sizeof v);
    w->starts.n += 5;
    return true;
}

static struct seam
pop_seam(br_tok_work *w)
{
    const uint32_t *v = w->starts.at + (w->starts.n -= 5);

    return (struct seam){v[0], v[1], {v[2], v[3], (int32_t)v[4]}};
}

static bool
windows(const struct word *x, uint32_t n)
{
    br_tok_work *w = x->w;
    size_t size = WINDOW, ids0 = x->ids0;
    struct seam s = {0, 0, {0, 0, 0}};

    w->starts.n = 0;
    while (s.at < n) {
        uint32_t end =
            n - s.at > size ? boundary(x, s.at, s.at + (uint32_t)size) : n;
        const br_tok_sym *y;
        struct token first;

        if (!heap_merge(x, s.at, end))
            return false;
        y = x->bench->syms.at;
        first = (struct token){y[0].at, y[y[0].next].at, y[0].id};
        if (s.at > 0 && !seam_holds(x, s.last, first)) {
            if (w->code != BR_OK)
                return false;
            s = pop_seam(w);
            w->ids->n = ids0 + s.n_ids;
            size *= 2;
            continue;
        }
        if (!push_seam(w, &s) ||
            !put_window(x, end == n ? n : end - (uint32_t)size / 8, &s.last))
            return false;
        s.at = s.last.to;
        s.n_ids = w->ids->n - ids0;
    }
    return true;
}

/* ---- one word ---------------------------------------------------------- */

bool
br_tok_merge(const br_tok *t, br_tok_work *w, const uint8_t *p, size_t n)
{
    struct word x = {t, w, p, &w->bench[0], w->ids->n};
    br_tok_sym s[SMALL + 2];
    size_t count;

    if (small_symbols(t, p, n, s, &count)) {
        count = small_merge(&x, s, count);
        for (size_t i = 0; i < count; i++)
            if (!put(&x, s[i].id, s[i].at, s[i + 1].at))
                return false;
        return true;
    }
    return windows(&x, (uint32_t)n);
}
