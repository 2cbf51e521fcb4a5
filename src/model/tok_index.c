/* tok_index.c - how a vocabulary is found: by spelling, by pair, by prefix.
 *
 *   index   8 bytes a slot, at most half full; the spelling decides
 *   pairs   16 bytes a slot, at most half full; 280,000 merges of a 128k
 *           vocabulary take 16 MB, and a look-up is one line of the cache
 *   sorted  4 bytes a token and 256 KB; a step narrows a range of the sorted
 *           spellings by one byte, with a table for the first two
 *
 * The keys of both hashes are the process's own: nobody can make a file whose
 * entries collide.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"

#include <string.h>

/* Slots for n entries: a power of two, at least twice as many. */
static uint64_t
slots_for(uint64_t n)
{
    uint64_t k = 16;

    while (k < 2 * n)
        k *= 2;
    return k;
}

/* ---- spelling -> id ---------------------------------------------------- */

bool
br_index_room(br_tok_index *x, br_arena *a, uint64_t n)
{
    uint64_t k = slots_for(n);

    x->slots = br_arena_new(a, br_tok_slot, k);
    x->mask = (uint32_t)(k - 1);
    return x->slots != NULL;
}

static br_tok_slot *
slot_of(const br_tok *t, const void *p, size_t n, uint32_t *hash)
{
    uint64_t h = br_siphash13(br_hash_process_key(), p, n);
    uint32_t i = (uint32_t)h & t->index.mask;

    *hash = (uint32_t)(h >> 32);
    for (;; i = (i + 1) & t->index.mask) {
        br_tok_slot *s = &t->index.slots[i];

        if (!s->id1)
            return s;
        if (s->hash == *hash && t->text[s->id1 - 1].n == n &&
            memcmp(t->text[s->id1 - 1].p, p, n) == 0)
            return s;
    }
}

int32_t
br_index_find(const br_tok *t, const void *p, size_t n)
{
    uint32_t hash;

    if (n == 0 || n > t->max_bytes)
        return BR_TOK_NONE;
    return (int32_t)slot_of(t, p, n, &hash)->id1 - 1;
}

bool
br_index_add(br_tok *t, uint32_t id, uint32_t *owner)
{
    uint32_t hash;
    br_tok_slot *s = slot_of(t, t->text[id].p, t->text[id].n, &hash);

    if (s->id1) {
        *owner = s->id1 - 1;
        return false;
    }
    s->hash = hash;
    s->id1 = id + 1;
    return true;
}

/* ---- pairs ------------------------------------------------------------- */

bool
br_pairs_room(br_tok_pairs *x, br_arena *a, uint64_t n)
{
    uint64_t k = slots_for(n), size;
    br_hash_key key = br_hash_process_key();

    size = k * sizeof *x->slots;
    x->slots = br_arena_get(a, size);
    if (!x->slots)
        return false;
    memset(x->slots, 0xFF, size);
    x->mask = (uint32_t)(k - 1);
    x->n = 0;
    x->k0 = key.k0;
    x->k1 = key.k1;
    return true;
}

static inline uint32_t
pair_slot(const br_tok_pairs *x, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) ^ x->k0;

    h *= 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ x->k1) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32) & x->mask;
}

const br_tok_pair *
br_pairs_find(const br_tok_pairs *x, uint32_t left, uint32_t right)
{
    uint32_t i;

    if (!x->slots)
        return NULL;
    for (i = pair_slot(x, left, right);; i = (i + 1) & x->mask) {
        const br_tok_pair *p = &x->slots[i];

        if (p->left == left && p->right == right)
            return p;
        if (p->rank == UINT32_MAX)
            return NULL;
    }
}

bool
br_pairs_add(br_tok_pairs *x, br_tok_pair p)
{
    uint32_t i = pair_slot(x, p.left, p.right);

    br_assert(x->n <= x->mask / 2 && "room for all was asked for");
    for (; x->slots[i].rank != UINT32_MAX; i = (i + 1) & x->mask)
        if (x->slots[i].left == p.left && x->slots[i].right == p.right)
            return false;
    x->slots[i] = p;
    x->n++;
    return true;
}

/* ---- sorted spellings -------------------------------------------------- */

static int
compare(br_text a, br_text b)
{
    int c = memcmp(a.p, b.p, BR_MIN(a.n, b.n));

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Heap sort: no recursion, no quadratic case, no memory. */
static void
sort_ids(const br_tok *t, uint32_t *id, size_t n)
{
    for (size_t from = n / 2, end = n; end > 1;) {
        size_t at, kid;
        uint32_t v;

        if (from > 0) {
            v = id[--from];
        } else {
            v = id[--end];
            id[end] = id[0];
        }
        for (at = from; (kid = 2 * at + 1) < end; at = kid) {
            if (kid + 1 < end &&
                compare(t->text[id[kid]], t->text[id[kid + 1]]) < 0)
                kid++;
            if (compare(t->text[v], t->text[id[kid]]) >= 0)
                break;
            id[at] = id[kid];
        }
        id[at] = v;
    }
}

bool
br_sorted_make(br_tok_sorted *s, const br_tok *t, br_arena *a,
               bool (*want)(const br_tok *t, uint32_t id))
{
    uint32_t n = 0;

    for (size_t i = 0; i < 256; i++)
        s->one[i] = BR_TOK_NONE;
    for (uint32_t i = 0; i < t->n; i++)
        n += t->text[i].n && want(t, i);
    s->n = n;
    if (n == 0)
        return true;
    s->id = br_arena_new(a, uint32_t, n);
    s->starts = br_arena_new(a, uint32_t, 65537);
    if (!s->id || !s->starts)
        return false;
    n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->text[i].n && want(t, i))
            s->id[n++] = i;
    sort_ids(t, s->id, n);
    for (uint32_t i = 0; i < n; i++) {
        br_text x = t->text[s->id[i]];
        const uint8_t *b = (const uint8_t *)x.p;

        if (x.n == 1)
            s->one[b[0]] = (int32_t)s->id[i];
        s->starts[(b[0] << 8 | (x.n > 1 ? b[1] : 0)) + 1] = i + 1;
    }
    for (uint32_t i = 1; i <= 65536; i++)
        s->starts[i] = BR_MAX(s->starts[i], s->starts[i - 1]);
    return true;
}

void
br_walk_begin(br_tok_walk *w, const br_tok *t, const br_tok_sorted *s,
              const uint8_t *p, const uint8_t *end)
{
    *w = (br_tok_walk){s, t, p, end, 0, 0, 0};
}

/* First place in [lo, hi) whose byte at `depth` is not below c; spellings
 * that end before it come first. */
static uint32_t
bound(const br_tok_walk *w, uint32_t lo, uint32_t hi, int c)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        br_text x = w->t->text[w->s->id[mid]];
        int b = x.n > w->depth ? (uint8_t)x.p[w->depth] : -1;

        if (b < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int32_t
br_walk_next(br_tok_walk *w, size_t *n)
{
    size_t left = (size_t)(w->end - w->p);
    uint32_t k;

    if (w->depth == 0) {
        if (left == 0 || w->s->n == 0)
            return BR_TOK_NONE;
        w->depth = 1;
        *n = 1;
        if (w->s->one[*w->p] != BR_TOK_NONE)
            return w->s->one[*w->p];
    }
    if (w->depth == 1) {
        if (left < 2)
            return BR_TOK_NONE;
        k = (uint32_t)w->p[0] << 8 | w->p[1];
        w->lo = w->s->starts[k];
        w->hi = w->s->starts[k + 1];
        w->depth = 2;
        if (w->lo < w->hi && w->t->text[w->s->id[w->lo]].n == 1)
            w->lo++; /* one byte, filed under "and then 0" */
        if (w->lo < w->hi && w->t->text[w->s->id[w->lo]].n == 2) {
            *n = 2;
            return (int32_t)w->s->id[w->lo++];
        }
    }
    while (w->lo < w->hi && w->depth < left) {
        int c = w->p[w->depth];
        br_text x;

        w->lo = bound(w, w->lo, w->hi, c);
        w->hi = bound(w, w->lo, w->hi, c + 1);
        w->depth++;
        if (w->lo == w->hi)
            break;
        x = w->t->text[w->s->id[w->lo]];
        if (x.n == w->depth) {
            *n = x.n;
            return (int32_t)w->s->id[w->lo++];
        }
    }
    return BR_TOK_NONE;
}
