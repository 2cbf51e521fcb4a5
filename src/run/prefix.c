/* prefix.c - see prefix.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/prefix.h"

#include "base/hash.h"

#include <string.h>

#define NONE BR_PREFIX_NONE

typedef struct block {
    int32_t tokens[BR_PAGE_TOKENS];
    uint32_t page[BR_MAX_KV_GROUPS];
    uint64_t used;   /* stamp of the latest use */
    uint32_t parent; /* or NONE - 1 - scope */
    uint32_t scope, depth, state;
    uint32_t n_children, n_standing;
    uint32_t next;         /* in its bucket, or of the free list */
    uint32_t newer, older; /* in the list of those that can go */
    uint32_t hash;
    bool live, listed;
} block;

struct br_prefixes {
    br_arena arena;
    br_kv *kv;
    br_prefix_config c;
    br_hash_key key;
    uint64_t (*hash)(const void *, size_t);
    uint32_t n_groups, mask;
    int64_t window[BR_MAX_KV_GROUPS];
    block *at;
    uint32_t *bucket;
    uint32_t *owner; /* [n_states]: block, or NONE */
    uint32_t free, n_live, n_listed;
    uint32_t oldest, newest;
    uint64_t clock;
};

br_code
br_prefix_new(br_prefixes **out, br_kv *kv, const br_state_plan *plan,
              const br_prefix_config *c, br_status *st)
{
    br_prefixes *p = br_try_calloc(1, sizeof *p);
    uint32_t n_buckets = 16;

    *out = NULL;
    if (!p)
        return br_fail(st, BR_E_OOM, "prefixes: out of memory");
    br_arena_init(&p->arena, 0);
    p->kv = kv;
    p->c = *c;
    p->key = br_hash_process_key();
    p->n_groups = plan->n_groups;
    for (uint32_t g = 0; g < plan->n_groups; g++)
        p->window[g] = plan->group[g].window;
    while (n_buckets < c->n_blocks && n_buckets < 1u << 30)
        n_buckets *= 2;
    p->mask = n_buckets - 1;
    p->at = br_arena_new(&p->arena, block, c->n_blocks + 1);
    p->bucket = br_arena_new(&p->arena, uint32_t, n_buckets);
    p->owner = br_arena_new(&p->arena, uint32_t, c->n_states + 1);
    if (!p->at || !p->bucket || !p->owner) {
        br_prefix_free(p);
        return br_fail(st, BR_E_OOM, "prefixes: out of memory");
    }
    memset(p->bucket, 0xff, n_buckets * sizeof *p->bucket);
    memset(p->owner, 0xff, (c->n_states + 1) * sizeof *p->owner);
    p->free = p->oldest = p->newest = NONE;
    for (uint32_t i = c->n_blocks; i-- > 0;) {
        p->at[i].next = p->free;
        p->free = i;
    }
    *out = p;
    return BR_OK;
}

void
br_prefix_free(br_prefixes *p)
{
    if (!p)
        return;
    br_arena_fini(&p->arena);
    br_free(p);
}

void
br_prefix_hash(br_prefixes *p, uint64_t (*fn)(const void *, size_t))
{
    p->hash = fn;
}

/* ---- those that can go --------------------------------------------------- */

static void
unlist(br_prefixes *p, uint32_t i)
{
    block *b = &p->at[i];

    if (!b->listed)
        return;
    *(b->older == NONE ? &p->oldest : &p->at[b->older].newer) = b->newer;
    *(b->newer == NONE ? &p->newest : &p->at[b->newer].older) = b->older;
    b->listed = false;
    p->n_listed--;
}

/* A block that nobody needs any more joins them, by its latest use: one that
 * is freed by its last child's going is older than most. */
static void
list(br_prefixes *p, uint32_t i)
{
    block *b = &p->at[i];
    uint32_t after = p->newest;

    if (b->listed || !b->live || b->n_children || b->n_standing)
        return;
    if (p->oldest != NONE && p->at[p->oldest].used >= b->used)
        after = NONE;
    else
        while (after != NONE && p->at[after].used > b->used)
            after = p->at[after].older;
    b->older = after;
    b->newer = after == NONE ? p->oldest : p->at[after].newer;
    *(b->older == NONE ? &p->oldest : &p->at[b->older].newer) = i;
    *(b->newer == NONE ? &p->newest : &p->at[b->newer].older) = i;
    b->listed = true;
    p->n_listed++;
}

/* ---- finding ------------------------------------------------------------- */

static uint32_t
root_of(uint32_t scope)
{
    return NONE - 1 - scope;
}

static uint32_t
hash_of(const br_prefixes *p, uint32_t parent, const int32_t *tokens)
{
    uint32_t text[1 + BR_PAGE_TOKENS];

    text[0] = parent;
    memcpy(text + 1, tokens, sizeof text - sizeof *text);
    return (uint32_t)(p->hash ? p->hash(text, sizeof text)
                              : br_siphash(p->key, text, sizeof text));
}

static uint32_t
child(const br_prefixes *p, uint32_t parent, const int32_t *tokens,
      uint32_t hash)
{
    uint32_t i = p->bucket[hash & p->mask];

    while (i != NONE &&
           (p->at[i].hash != hash || p->at[i].parent != parent ||
            memcmp(p->at[i].tokens, tokens, sizeof p->at[i].tokens) != 0))
        i = p->at[i].next;
    return i;
}

/* Whether every group has what a token behind block i would read. */
static bool
can_go_on(const br_prefixes *p, uint32_t i)
{
    if (p->c.recurrent && p->at[i].state == NONE)
        return false;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        int64_t at = (int64_t)p->at[i].depth * BR_PAGE_TOKENS;
        int64_t first = p->window[g] ? at - p->window[g] + 1 : 0;

        for (uint32_t b = i; at > first && b < p->c.n_blocks;
             b = p->at[b].parent, at -= BR_PAGE_TOKENS)
            if (p->at[b].page[g] == NONE)
                return false;
    }
    return true;
}

uint32_t
br_prefix_find(br_prefixes *p, uint32_t scope, const int32_t *tokens,
               uint32_t n)
{
    uint32_t parent = root_of(scope), best = NONE;

    for (uint32_t at = 0; at + BR_PAGE_TOKENS < n; at += BR_PAGE_TOKENS) {
        uint32_t i =
            child(p, parent, tokens + at, hash_of(p, parent, tokens + at));

        if (i == NONE)
            break;
        best = parent = i;
    }
    while (best != NONE && !can_go_on(p, best))
        best = p->at[best].parent < p->c.n_blocks ? p->at[best].parent : NONE;
    p->clock++;
    for (uint32_t i = best; i < p->c.n_blocks; i = p->at[i].parent) {
        bool was = p->at[i].listed;

        unlist(p, i);
        p->at[i].used = p->clock;
        if (was)
            list(p, i);
    }
    return best;
}

uint32_t
br_prefix_depth(const br_prefixes *p, uint32_t i)
{
    return i == NONE ? 0 : p->at[i].depth;
}

uint32_t
br_prefix_state(const br_prefixes *p, uint32_t i)
{
    return i == NONE ? NONE : p->at[i].state;
}

void
br_prefix_stand(br_prefixes *p, uint32_t i)
{
    if (i == NONE)
        return;
    unlist(p, i);
    p->at[i].n_standing++;
}

void
br_prefix_leave(br_prefixes *p, uint32_t i)
{
    if (i == NONE)
        return;
    br_check(p->at[i].n_standing > 0);
    p->at[i].n_standing--;
    list(p, i);
}

void
br_prefix_attach(br_prefixes *p, uint32_t block_, uint32_t slot)
{
    for (uint32_t i = block_; i < p->c.n_blocks; i = p->at[i].parent)
        br_kv_attach(p->kv, slot, p->at[i].depth - 1, p->at[i].page);
    br_prefix_stand(p, block_);
}

/* ---- adding and giving up ------------------------------------------------ */

static void
link_in(br_prefixes *p, uint32_t i, const uint32_t *pages)
{
    block *b = &p->at[i];

    b->next = p->bucket[b->hash & p->mask];
    p->bucket[b->hash & p->mask] = i;
    memcpy(b->page, pages, p->n_groups * sizeof *pages);
    if (b->parent < p->c.n_blocks) {
        unlist(p, b->parent);
        p->at[b->parent].n_children++;
    }
    p->n_live++;
    list(p, i);
}

br_prefix_end
br_prefix_add(br_prefixes *p, uint32_t scope, uint32_t parent,
              const int32_t *tokens, uint32_t slot, uint32_t *out)
{
    uint32_t up = parent == NONE ? root_of(scope) : parent;
    br_prefix_block b = {
        .scope = scope, .parent = parent, .used = p->clock + 1};
    uint32_t depth = br_prefix_depth(p, parent);

    *out = child(p, up, tokens, hash_of(p, up, tokens));
    if (*out != NONE)
        return BR_PREFIX_EXISTS;
    if (p->free == NONE)
        return BR_PREFIX_FULL;
    memcpy(b.tokens, tokens, sizeof b.tokens);
    for (uint32_t g = 0; g < p->n_groups; g++) {
        b.page[g] = br_kv_page(p->kv, slot, g, depth);
        br_kv_hold(p->kv, g, b.page[g]);
    }
    *out = br_prefix_put(p, &b);
    return BR_PREFIX_ADDED;
}

uint32_t
br_prefix_put(br_prefixes *p, const br_prefix_block *in)
{
    uint32_t up = in->parent == NONE ? root_of(in->scope) : in->parent;
    uint32_t hash = hash_of(p, up, in->tokens), i = p->free;
    block *b;

    if (i == NONE || child(p, up, in->tokens, hash) != NONE)
        return NONE;
    b = &p->at[i];
    p->free = b->next;
    p->clock = BR_MAX(p->clock, in->used);
    *b = (block){.used = in->used,
                 .parent = up,
                 .scope = in->scope,
                 .depth = br_prefix_depth(p, in->parent) + 1,
                 .state = NONE,
                 .hash = hash,
                 .live = true};
    memcpy(b->tokens, in->tokens, sizeof b->tokens);
    link_in(p, i, in->page);
    return i;
}

uint32_t
br_prefix_places(const br_prefixes *p)
{
    return p->c.n_blocks;
}

bool
br_prefix_get(const br_prefixes *p, uint32_t i, br_prefix_block *out)
{
    const block *b = &p->at[i];

    if (!b->live)
        return false;
    *out = (br_prefix_block){.scope = b->scope,
                             .parent =
                                 b->parent < p->c.n_blocks ? b->parent : NONE,
                             .depth = b->depth,
                             .state = b->state,
                             .used = b->used};
    memcpy(out->tokens, b->tokens, sizeof b->tokens);
    memcpy(out->page, b->page, sizeof b->page);
    return true;
}

static void
remove_block(br_prefixes *p, uint32_t i)
{
    block *b = &p->at[i];
    uint32_t *at = &p->bucket[b->hash & p->mask];

    br_check(b->n_children == 0 && b->n_standing == 0);
    unlist(p, i);
    while (*at != i)
        at = &p->at[*at].next;
    *at = b->next;
    for (uint32_t g = 0; g < p->n_groups; g++)
        br_kv_drop(p->kv, g, b->page[g]);
    if (b->state != NONE)
        p->owner[b->state] = NONE;
    b->live = false;
    b->next = p->free;
    p->free = i;
    p->n_live--;
    if (b->parent < p->c.n_blocks) {
        p->at[b->parent].n_children--;
        list(p, b->parent);
    }
}

bool
br_prefix_evict(br_prefixes *p)
{
    if (p->oldest == NONE)
        return false;
    remove_block(p, p->oldest);
    return true;
}

bool
br_prefix_strip(br_prefixes *p)
{
    bool any = false;

    for (uint32_t i = 0; i < p->c.n_blocks; i++)
        for (uint32_t g = 0; g < p->n_groups && p->at[i].live; g++)
            if (p->window[g] && p->at[i].page[g] != NONE) {
                br_kv_drop(p->kv, g, p->at[i].page[g]);
                p->at[i].page[g] = NONE;
                any = true;
            }
    return any;
}

uint32_t
br_prefix_keep_state(br_prefixes *p, uint32_t i)
{
    uint32_t best = NONE;

    if (p->at[i].state != NONE)
        return NONE;
    for (uint32_t s = 0; s < p->c.n_states; s++) {
        uint32_t o = p->owner[s];

        if (o == NONE) {
            best = s;
            break;
        }
        if (p->at[o].n_standing == 0 &&
            (best == NONE || p->at[o].used < p->at[p->owner[best]].used))
            best = s;
    }
    if (best == NONE)
        return NONE;
    if (p->owner[best] != NONE)
        p->at[p->owner[best]].state = NONE;
    p->owner[best] = i;
    p->at[i].state = best;
    return best;
}

void
br_prefix_drop_scope(br_prefixes *p, uint32_t scope)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < p->c.n_blocks; i++)
            if (p->at[i].listed && p->at[i].scope == scope) {
                remove_block(p, i);
                again = true;
            }
    }
}

uint32_t
br_prefix_count(const br_prefixes *p)
{
    return p->n_live;
}

uint32_t
br_prefix_evictable(const br_prefixes *p)
{
    return p->n_listed;
}

uint32_t
br_prefix_mark(const br_prefixes *p, uint32_t group, bool *named)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->c.n_blocks; i++) {
        uint32_t page = p->at[i].live ? p->at[i].page[group] : NONE;

        if (page != NONE && !named[page]) {
            named[page] = true;
            n++;
        }
    }
    return n;
}

void
br_prefix_audit(const br_prefixes *p)
{
    uint32_t live = 0, listed = 0, children = 0, deep = 0;

    for (uint32_t i = 0; i < p->c.n_blocks; i++) {
        const block *b = &p->at[i];

        if (!b->live)
            continue;
        live++;
        listed += b->listed;
        children += b->n_children;
        deep += b->parent < p->c.n_blocks;
        br_check(b->listed == (b->n_children == 0 && b->n_standing == 0));
        br_check(b->parent >= p->c.n_blocks ||
                 (p->at[b->parent].live &&
                  p->at[b->parent].depth + 1 == b->depth &&
                  p->at[b->parent].scope == b->scope));
        br_check(b->state == NONE || p->owner[b->state] == i);
    }
    br_check(live == p->n_live && listed == p->n_listed && children == deep);
}
