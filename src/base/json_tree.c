/* json_tree.c - a whole document as nodes in an arena.
 *
 *   OBJ --child--> [key "a"| INT] --next--> [key "b"| ARR] --next--> NULL
 *       --last----------------------------------^
 *
 * A key lies behind its node in the same allocation. Nesting is an array of
 * open containers, not recursion.
 *
 * Duplicate keys are settled when an object closes: first place, last value.
 * A 64-bit set of cheap fingerprints shows nearly every small object to have
 * none; else up to SMALL members are compared pairwise and more are sorted by
 * (hash, length, bytes). Sorting needs no secret: keys made to collide only
 * make comparisons longer, never more than n log n of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { SMALL = 16 };

typedef struct frame {
    br_json *v;
    uint64_t seen; /* fingerprints of the keys */
} frame;

typedef struct builder {
    br_arena *a;
    br_json_reader *r;
    int n; /* open containers */
    frame open[BR_JSON_MAX_DEPTH];
} builder;

/* Why the arena had no `size` bytes. It hands out multiples of 16. */
static br_code
no_room(const br_arena *a, size_t size, br_status *st)
{
    size = (size + 15) & ~(size_t)15;
    if (a->limit && size > a->limit - BR_MIN(a->used, a->limit))
        return br_fail(st, BR_E_LIMIT,
                       "the document needs more than the %zu bytes allowed",
                       a->limit);
    return br_fail(st, BR_E_OOM, "out of memory for a document");
}

/* ---- duplicate keys --------------------------------------------------- */

static void
take_value(br_json *to, const br_json *from)
{
    br_json keep = *to;

    *to = *from;
    to->tag = keep.tag;
    to->key = keep.key;
    to->key_n = keep.key_n;
    to->next = keep.next;
}

static bool
same_key(const br_json *a, const br_json *b)
{
    return a->key_n == b->key_n && memcmp(a->key, b->key, a->key_n) == 0;
}

static void
merge_small(br_json *obj)
{
    br_json *first, *prev, *v;

    for (first = obj->child; first; first = first->next) {
        for (prev = first, v = first->next; v; v = v->next) {
            if (!same_key(first, v)) {
                prev = v;
                continue;
            }
            take_value(first, v);
            prev->next = v->next;
            obj->n--;
        }
        if (!first->next)
            obj->last = first;
    }
}

typedef struct entry {
    uint64_t hash;
    br_json *v;
} entry;

static uint64_t
hash_key(const char *p, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u ^ n;

    for (; n >= 8; p += 8, n -= 8) {
        uint64_t x;

        memcpy(&x, p, 8);
        h = (h ^ x) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    for (; n > 0; p++, n--)
        h = (h ^ (unsigned char)*p) * 0x100000001B3u;
    return h ^ h >> 29;
}

static int
compare(const entry *a, const entry *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->v->key_n != b->v->key_n)
        return a->v->key_n < b->v->key_n ? -1 : 1;
    return memcmp(a->v->key, b->v->key, a->v->key_n);
}

/* Stable, bottom up; the result is in one of the two, which is returned. */
static entry *
merge_sort(entry *a, entry *b, size_t n)
{
    size_t width, lo;

    for (width = 1; width < n; width *= 2) {
        entry *t = a;

        for (lo = 0; lo < n; lo += 2 * width) {
            size_t mid = BR_MIN(lo + width, n), hi = BR_MIN(mid + width, n);
            size_t i = lo, j = mid, k = lo;

            while (i < mid && j < hi)
                b[k++] = compare(&a[i], &a[j]) <= 0 ? a[i++] : a[j++];
            while (i < mid)
                b[k++] = a[i++];
            while (j < hi)
                b[k++] = a[j++];
        }
        a = b;
        b = t;
    }
    return a;
}

/* In a run of equal keys the first takes the last's value; the others are
 * marked by a NULL key and unlinked in one walk. */
static void
settle_runs(br_json *obj, const entry *e, size_t n)
{
    br_json **link = &obj->child;
    size_t i, j;

    for (i = 0; i < n; i = j) {
        for (j = i + 1; j < n && compare(&e[i], &e[j]) == 0; j++)
            ;
        if (j - i > 1)
            take_value(e[i].v, e[j - 1].v);
        for (size_t k = i + 1; k < j; k++)
            e[k].v->key = NULL;
    }
    while (*link) {
        if ((*link)->key) {
            obj->last = *link;
            link = &(*link)->next;
        } else {
            *link = (*link)->next;
            obj->n--;
        }
    }
}

static br_code
merge_large(br_json *obj, br_status *st)
{
    entry *e;
    size_t n = 0, bytes;
    br_json *v;

    if (br_mul_overflows(obj->n, 2 * sizeof *e, &bytes) ||
        !(e = br_try_alloc(bytes)))
        return br_fail(st, BR_E_OOM, "out of memory for an object of %u keys",
                       obj->n);
    for (v = obj->child; v; v = v->next)
        e[n++] = (entry){hash_key(v->key, v->key_n), v};
    settle_runs(obj, merge_sort(e, e + n, n), n);
    br_free(e);
    return BR_OK;
}

static br_code
close_object(const frame *f, br_status *st)
{
    if ((uint32_t)__builtin_popcountll(f->seen) == f->v->n)
        return BR_OK;
    if (f->v->n > SMALL)
        return merge_large(f->v, st);
    merge_small(f->v);
    return BR_OK;
}

/* ---- building --------------------------------------------------------- */

static void
link_child(br_json *parent, br_json *v)
{
    if (parent->last)
        parent->last->next = v;
    else
        parent->child = v;
    parent->last = v;
    parent->n++;
}

/* A node, with its key behind it when there is one. */
static br_json *
new_node(br_arena *a, const br_text *key)
{
    br_json *v = br_arena_get(a, sizeof *v + (key ? key->n + 1 : 0));
    char *k;

    if (!v)
        return NULL;
    *v = (br_json){0};
    if (key) {
        k = (char *)(v + 1);
        memcpy(k, key->p, key->n);
        k[key->n] = 0;
        v->key = k;
        v->key_n = (uint32_t)key->n;
    }
    return v;
}

static br_code
set_text(builder *b, br_json *v, br_json_kind kind)
{
    br_text t = b->r->text;

    if (t.n >= UINT32_MAX)
        return br_fail(b->r->st, BR_E_LIMIT, "a string of %zu bytes", t.n);
    v->s = br_arena_str(b->a, t.p, t.n);
    if (!v->s)
        return no_room(b->a, t.n + 1, b->r->st);
    v->kind = (uint8_t)kind;
    v->n = (uint32_t)t.n;
    return BR_OK;
}

static br_code
reader_failed(const br_json_reader *r)
{
    return r->st && r->st->code != BR_OK ? r->st->code : BR_E_FORMAT;
}

/* Written again it would be Infinity, which is no JSON. */
static br_code
too_large(const br_json_reader *r)
{
    int line, column;

    br_json_where(r, &line, &column);
    return br_fail(r->st, BR_E_FORMAT,
                   "line %d column %d: a number beyond 1.8e308", line, column);
}

/* Fills v from the token just read; a container is put on the stack. */
static br_code
fill(builder *b, br_json *v, br_json_tok tok)
{
    switch (tok) {
    case BR_JSON_OBJ_OPEN:
    case BR_JSON_ARR_OPEN:
        v->kind = tok == BR_JSON_OBJ_OPEN ? BR_J_OBJ : BR_J_ARR;
        br_check(b->n < BR_JSON_MAX_DEPTH && "the reader limits depth");
        b->open[b->n++] = (frame){.v = v};
        return BR_OK;
    case BR_JSON_STRING: return set_text(b, v, BR_J_STR);
    case BR_JSON_INT:
        v->kind = BR_J_INT;
        if (br_json_to_i64(b->r->text, &v->i))
            return BR_OK;
        return set_text(b, v, BR_J_BIGINT);
    case BR_JSON_FLOAT:
        v->kind = BR_J_FLOAT;
        br_check(br_json_to_f64(b->r->text, &v->f) && "the reader's number");
        return isinf(v->f) && !(b->r->flags & BR_JSON_LAX) ? too_large(b->r)
                                                           : BR_OK;
    case BR_JSON_TRUE:
    case BR_JSON_FALSE:
        v->kind = BR_J_BOOL;
        v->b = tok == BR_JSON_TRUE;
        return BR_OK;
    case BR_JSON_NULL: v->kind = BR_J_NULL; return BR_OK;
    case BR_JSON_ERROR: return reader_failed(b->r);
    case BR_JSON_KEY:
    case BR_JSON_OBJ_CLOSE:
    case BR_JSON_ARR_CLOSE:
    case BR_JSON_END: break;
    }
    return br_fail(b->r->st, BR_E_INTERNAL, "no value begins here");
}

/* One step inside the innermost container: its end, or one more child. */
static br_code
step(builder *b)
{
    frame *f = &b->open[b->n - 1];
    br_json_tok tok = br_json_next(b->r);
    br_text t = b->r->text;
    br_json *v;

    if (tok == BR_JSON_ERROR)
        return reader_failed(b->r);
    if (tok == BR_JSON_ARR_CLOSE) {
        b->n--;
        return BR_OK;
    }
    if (tok == BR_JSON_OBJ_CLOSE) {
        b->n--;
        return close_object(f, b->r->st);
    }
    if (f->v->n == UINT32_MAX || (tok == BR_JSON_KEY && t.n >= UINT32_MAX))
        return br_fail(b->r->st, BR_E_LIMIT,
                       "a container of 2^32 children or a key of 4 GiB");
    v = new_node(b->a, tok == BR_JSON_KEY ? &t : NULL);
    if (!v)
        return no_room(b->a, sizeof *v + t.n + 1, b->r->st);
    if (tok == BR_JSON_KEY) {
        unsigned mix = (unsigned)t.n;

        if (t.n)
            mix += (unsigned char)t.p[0] * 5u + (unsigned char)t.p[t.n - 1];
        f->seen |= UINT64_C(1) << (mix & 63);
        tok = br_json_next(b->r);
    }
    link_child(f->v, v);
    return fill(b, v, tok);
}

br_code
br_json_value(br_json **out, br_arena *a, br_json_reader *r, br_json_tok tok)
{
    builder b;
    br_json *v = new_node(a, NULL);

    *out = NULL;
    b.a = a;
    b.r = r;
    b.n = 0;
    if (!v)
        return no_room(a, sizeof *v, r->st);
    BR_TRY(fill(&b, v, tok == BR_JSON_ERROR ? br_json_next(r) : tok));
    while (b.n > 0)
        BR_TRY(step(&b));
    *out = v;
    return BR_OK;
}

br_code
br_json_parse(br_json **out, br_arena *a, const char *p, size_t n, int flags,
              br_status *st)
{
    br_json_reader r;
    br_code code;

    br_json_open(&r, p, n, flags, st);
    code = br_json_value(out, a, &r, BR_JSON_ERROR);
    if (code == BR_OK && br_json_next(&r) != BR_JSON_END) {
        *out = NULL;
        code = reader_failed(&r);
    }
    br_json_close(&r);
    return code;
}

/* ---- reading and making trees ----------------------------------------- */

const br_json *
br_json_get(const br_json *obj, const char *key)
{
    size_t n = strlen(key);
    const br_json *v;

    if (!obj || obj->kind != BR_J_OBJ)
        return NULL;
    for (v = obj->child; v; v = v->next)
        if (v->key_n == n && memcmp(v->key, key, n) == 0)
            return v;
    return NULL;
}

br_text
br_json_get_text(const br_json *obj, const char *key)
{
    const br_json *v = br_json_get(obj, key);

    return v && v->kind == BR_J_STR ? (br_text){v->s, v->n} : (br_text){0};
}

br_text
br_json_get_word(const br_json *obj, const char *key)
{
    br_text t = br_json_get_text(obj, key);

    return t.p && memchr(t.p, 0, t.n) ? (br_text){0} : t;
}

bool
br_json_is(const br_json *v, const char *z)
{
    return v && v->kind == BR_J_STR && br_text_is((br_text){v->s, v->n}, z);
}

bool
br_json_key_is(const br_json *member, const char *z)
{
    return br_text_is((br_text){member->key, member->key_n}, z);
}

bool
br_json_is_word(const br_json *v)
{
    return v && v->kind == BR_J_STR && v->n && !memchr(v->s, 0, v->n);
}

const br_json *
br_json_at(const br_json *arr, size_t i)
{
    const br_json *v;

    if (!arr || arr->kind != BR_J_ARR || i >= arr->n)
        return NULL;
    for (v = arr->child; i > 0; i--)
        v = v->next;
    return v;
}

br_json *
br_json_new(br_arena *a, br_json_kind k)
{
    br_json *v = new_node(a, NULL);

    if (v)
        v->kind = (uint8_t)k;
    return v;
}

br_json *
br_json_new_i64(br_arena *a, int64_t i)
{
    br_json *v = br_json_new(a, BR_J_INT);

    if (v)
        v->i = i;
    return v;
}

br_json *
br_json_new_f64(br_arena *a, double f)
{
    br_json *v = br_json_new(a, BR_J_FLOAT);

    if (v)
        v->f = f;
    return v;
}

br_json *
br_json_new_str(br_arena *a, br_text t)
{
    br_json *v = t.n < UINT32_MAX ? br_json_new(a, BR_J_STR) : NULL;

    if (!v || !(v->s = br_arena_str(a, t.p, t.n)))
        return NULL;
    v->n = (uint32_t)t.n;
    return v;
}

bool
br_json_put(br_arena *a, br_json *obj, const char *key, br_json *v)
{
    size_t n = strlen(key);

    br_assert(obj->kind == BR_J_OBJ && "a member needs an object");
    if (!v || n >= UINT32_MAX || !(v->key = br_arena_str(a, key, n)))
        return false;
    v->key_n = (uint32_t)n;
    link_child(obj, v);
    return true;
}

bool
br_json_append(br_json *arr, br_json *v)
{
    if (!v)
        return false;
    /* A copied member brings its key along: an object takes it as it is. */
    br_assert(arr->kind == (v->key ? BR_J_OBJ : BR_J_ARR) &&
              "an element needs an array, a member an object");
    link_child(arr, v);
    return true;
}

const char *
br_json_kind_name(br_json_kind k)
{
    switch (k) {
    case BR_J_NULL: return "null";
    case BR_J_BOOL: return "true or false";
    case BR_J_INT: return "an integer";
    case BR_J_BIGINT: return "an integer beyond 64 bits";
    case BR_J_FLOAT: return "a number with a fraction or exponent";
    case BR_J_STR: return "a string";
    case BR_J_ARR: return "an array";
    case BR_J_OBJ: return "an object";
    }
    br_unreachable("every kind has a name");
}
