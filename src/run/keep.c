/* keep.c - see keep.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/keep.h"

#include "base/hash.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NONE BR_PREFIX_NONE

static const char magic[8] = "BRKEEP1\n";

typedef struct head {
    char magic[8];
    uint8_t identity[BR_KEEP_IDENTITY];
    uint32_t n_groups, n_blocks;
    uint64_t page_bytes[BR_MAX_KV_GROUPS], state_bytes;
} head;

typedef struct record {
    uint64_t used;
    uint32_t scope, parent, pages, has_state;
    int32_t tokens[BR_PAGE_TOKENS];
} record;

static head
head_of(const br_keeper *k, uint32_t n_blocks)
{
    head h = {.n_groups = k->lm->plan->n_groups, .n_blocks = n_blocks};

    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.identity, k->identity, sizeof h.identity);
    for (uint32_t g = 0; g < h.n_groups; g++)
        h.page_bytes[g] = k->lm->page_bytes[g];
    h.state_bytes = k->lm->plan->slot_elems * sizeof(float);
    return h;
}

/* ---- writing ------------------------------------------------------------- */

typedef struct writer {
    br_out out;
    br_sha256 sum;
    uint8_t *page; /* of any group */
} writer;

static br_code
put(writer *w, const void *p, size_t n, br_status *st)
{
    br_sha256_add(&w->sum, p, n);
    return br_out_put(&w->out, p, n, st);
}

typedef struct entry {
    uint32_t i, depth;
    uint64_t used;
} entry;

static int
by_depth(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return (x->used > y->used) - (x->used < y->used);
}

static br_code
put_block(const br_keeper *k, writer *w, const br_prefix_block *b,
          uint32_t parent, br_status *st)
{
    record r = {.used = b->used,
                .scope = b->scope,
                .parent = parent,
                .has_state = b->state != NONE};

    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++)
        r.pages |= (uint32_t)(b->page[g] != NONE) << g;
    memcpy(r.tokens, b->tokens, sizeof r.tokens);
    BR_TRY(put(w, &r, sizeof r, st));
    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++)
        if (b->page[g] != NONE) {
            k->lm->page(k->lm->ctx, g, b->page[g], w->page, false);
            BR_TRY(put(w, w->page, k->lm->page_bytes[g], st));
        }
    if (!r.has_state)
        return BR_OK;
    return put(w, k->states + b->state * k->lm->plan->slot_elems,
               k->lm->plan->slot_elems * sizeof(float), st);
}

/* index[]: of block i, in the file. */
static br_code
put_all(const br_keeper *k, writer *w, entry *e, uint32_t *index, br_status *st)
{
    uint32_t n = 0;
    uint8_t sum[BR_SHA256_BYTES];
    br_prefix_block b;
    head h;

    for (uint32_t i = 0; i < br_prefix_places(k->prefix); i++)
        if (br_prefix_get(k->prefix, i, &b))
            e[n++] = (entry){i, b.depth, b.used};
    qsort(e, n, sizeof *e, by_depth);
    h = head_of(k, n);
    br_sha256_begin(&w->sum);
    BR_TRY(put(w, &h, sizeof h, st));
    for (uint32_t i = 0; i < n; i++) {
        (void)br_prefix_get(k->prefix, e[i].i, &b);
        index[e[i].i] = i;
        BR_TRY(
            put_block(k, w, &b, b.parent == NONE ? NONE : index[b.parent], st));
    }
    br_sha256_end(&w->sum, sum);
    return br_out_put(&w->out, sum, sizeof sum, st);
}

bool
br_keep_private(const char *path)
{
    const int how = O_WRONLY | O_CREAT | O_CLOEXEC;
    int fd = open(path, how | O_EXCL, 0600);

    if (fd >= 0)
        return close(fd) == 0;
    fd = open(path, how, 0600); /* what a link names need not be there */
    if (fd >= 0)
        close(fd);
    return false;
}

br_code
br_keep_save(const br_keeper *k, const char *path, br_status *st)
{
    uint32_t n = br_prefix_places(k->prefix);
    uint32_t *index = br_try_calloc(n + 1, sizeof *index);
    entry *e = br_try_calloc(n + 1, sizeof *e);
    size_t most = 1;
    bool made = false;
    br_code code;
    writer w;

    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++)
        most = BR_MAX(most, k->lm->page_bytes[g]);
    w.page = br_try_calloc(most, 1); /* a page has bytes that nobody writes */
    if (!index || !e || !w.page)
        code = br_fail(st, BR_E_OOM, "%s: out of memory", path);
    else {
        made = br_keep_private(path);
        code = br_out_begin(&w.out, path, st);
        if (code == BR_OK) {
            code = put_all(k, &w, e, index, st);
            if (code == BR_OK)
                code = br_out_end(&w.out, st);
            else
                br_out_drop(&w.out);
        }
    }
    if (code != BR_OK && made)
        (void)unlink(path);
    br_free(w.page);
    br_free(index);
    br_free(e);
    return code;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *p;
    size_t left;
} reader;

static const void *
take(reader *r, size_t n)
{
    const void *at = r->p;

    if (r->left < n)
        return NULL;
    r->p += n;
    r->left -= n;
    return at;
}

static br_code
cut_off(uint32_t i, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "block %u: is cut off", i);
}

static br_code
check(const br_keeper *k, const record *r, uint32_t i, br_status *st)
{
    if (r->parent != NONE && r->parent >= i)
        return br_fail(st, BR_E_FORMAT, "block %u: its parent is not before it",
                       i);
    if (r->scope >= NONE - 1 - br_prefix_places(k->prefix))
        return br_fail(st, BR_E_FORMAT, "block %u: scope %u", i, r->scope);
    if (r->pages >> k->lm->plan->n_groups || r->has_state > 1 ||
        (r->has_state && !k->lm->plan->slot_elems))
        return br_fail(st, BR_E_FORMAT, "block %u: has what models do not", i);
    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++)
        if (!k->lm->plan->group[g].window && !(r->pages >> g & 1))
            return br_fail(st, BR_E_FORMAT, "block %u: lacks a page", i);
    for (int t = 0; t < BR_PAGE_TOKENS; t++)
        if (r->tokens[t] < 0 || r->tokens[t] >= k->lm->n_vocab)
            return br_fail(st, BR_E_FORMAT, "block %u: %d is no token", i,
                           r->tokens[t]);
    return BR_OK;
}

/* Pages for it, filled. False: there are none. */
static bool
fill_pages(const br_keeper *k, const void *const *from, br_prefix_block *b)
{
    bool room = true;

    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++) {
        b->page[g] = from[g] ? br_kv_take(k->kv, g) : NONE;
        if (b->page[g] != NONE) /* only read from */
            k->lm->page(k->lm->ctx, g, b->page[g], (void *)(uintptr_t)from[g],
                        true);
        else
            room = room && !from[g];
    }
    return room;
}

/* *at: where it is in the tree, or NONE: there was no room. */
static br_code
read_block(const br_keeper *k, reader *in, uint32_t i, uint32_t *at,
           br_status *st)
{
    const br_state_plan *plan = k->lm->plan;
    const void *from[BR_MAX_KV_GROUPS] = {0}, *state = NULL;
    const void *bytes = take(in, sizeof(record));
    br_prefix_block b = {0}, up;
    uint32_t keep;
    record r;

    if (!bytes)
        return cut_off(i, st);
    memcpy(&r, bytes, sizeof r);
    BR_TRY(check(k, &r, i, st));
    for (uint32_t g = 0; g < plan->n_groups; g++)
        if (r.pages >> g & 1 && !(from[g] = take(in, k->lm->page_bytes[g])))
            return cut_off(i, st);
    if (r.has_state && !(state = take(in, plan->slot_elems * sizeof(float))))
        return cut_off(i, st);
    b.used = r.used;
    b.scope = r.scope;
    b.parent = r.parent == NONE ? NONE : at[r.parent];
    memcpy(b.tokens, r.tokens, sizeof b.tokens);
    at[i] = NONE;
    if ((r.parent != NONE && b.parent == NONE) ||
        br_prefix_count(k->prefix) >= k->max_blocks)
        return BR_OK;
    if (b.parent != NONE && br_prefix_get(k->prefix, b.parent, &up) &&
        up.scope != b.scope) /* or one would find another's tokens */
        return br_fail(st, BR_E_FORMAT, "block %u: scope %u below %u", i,
                       b.scope, up.scope);
    if (fill_pages(k, from, &b))
        at[i] = br_prefix_put(k->prefix, &b);
    if (at[i] == NONE)
        for (uint32_t g = 0; g < plan->n_groups; g++)
            br_kv_drop(k->kv, g, b.page[g]);
    else if (state && (keep = br_prefix_keep_state(k->prefix, at[i])) != NONE)
        memcpy(k->states + keep * plan->slot_elems, state,
               plan->slot_elems * sizeof(float));
    return BR_OK;
}

br_code
br_keep_read(const br_keeper *k, const uint8_t *p, size_t n, br_status *st)
{
    reader in = {p, n};
    const void *bytes = take(&in, sizeof(head));
    head h, want;
    uint32_t *at;
    br_code code = BR_OK;

    if (!bytes || memcmp(bytes, magic, sizeof magic) != 0)
        return br_fail(st, BR_E_FORMAT, "no file of kept sessions");
    memcpy(&h, bytes, sizeof h);
    want = head_of(k, h.n_blocks);
    if (memcmp(&h, &want, sizeof h) != 0)
        return br_fail(st, BR_E_FORMAT, "the sessions are another model's");
    if (h.n_blocks > in.left / sizeof(record))
        return br_fail(st, BR_E_FORMAT, "%u blocks in %zu bytes", h.n_blocks,
                       n);
    at = br_try_calloc((size_t)h.n_blocks + 1, sizeof *at);
    if (!at)
        return br_fail(st, BR_E_OOM, "sessions: out of memory");
    for (uint32_t i = 0; i < h.n_blocks && code == BR_OK; i++)
        code = read_block(k, &in, i, at, st);
    if (code == BR_OK && in.left)
        code = br_fail(st, BR_E_FORMAT, "%zu bytes too many", in.left);
    br_free(at);
    return code;
}

br_code
br_keep_load(const br_keeper *k, const char *path, br_status *st)
{
    uint8_t sum[BR_SHA256_BYTES];
    br_sha256 s;
    br_file_map m;
    br_code code;

    BR_TRY(br_file_map_open(&m, path, st));
    if (m.n < sizeof sum)
        code = br_fail(st, BR_E_FORMAT, "no file of kept sessions");
    else {
        br_sha256_begin(&s);
        br_sha256_add(&s, m.p, m.n - sizeof sum);
        br_sha256_end(&s, sum);
        code = memcmp(sum, m.p + m.n - sizeof sum, sizeof sum) == 0
                   ? br_keep_read(k, m.p, m.n - sizeof sum, st)
                   : br_fail(st, BR_E_FORMAT, "it is not whole: other sum");
    }
    br_file_map_close(&m);
    while (code != BR_OK && br_prefix_evict(k->prefix))
        ;
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}
