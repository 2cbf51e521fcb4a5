/* prefix.h - which pages hold which beginnings of texts.
 *
 * A tree of blocks of 16 tokens, one for each scope (a tenant, or an isolation
 * group), so that nobody finds what is not theirs:
 *
 *   scope 3 -- [Once upon a time ...] -- [there was ...]       block: its
 *                                    \-- [lived a ...]          tokens, a page
 *   scope 4 -- [You are a helpful ...]                          of each group
 *
 * A block is found by SipHash-2-4 of (parent, tokens) under the process's key,
 * and its tokens are compared: a collision costs time, never an answer.
 * Blocks hold a reference on their pages. One that a slot stands on, or that
 * has blocks behind it, stays; of the others the least recently used goes.
 *
 * Models with a recurrent state can go on only where a state was kept: some
 * blocks have one, a number that the owner's array of states is indexed with.
 * Windowed groups need the pages of the last window only.
 *
 * Nothing is allocated after br_prefix_new. One thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PREFIX_H
#define BR_PREFIX_H

#include "run/kv.h"

#define BR_PREFIX_NONE UINT32_MAX

typedef struct br_prefixes br_prefixes;

typedef struct br_prefix_config {
    uint32_t n_blocks, n_states, n_scopes;
    bool recurrent;
} br_prefix_config;

br_code br_prefix_new(br_prefixes **out, br_kv *kv, const br_state_plan *plan,
                      const br_prefix_config *c, br_status *st) BR_MUST_USE;
void br_prefix_free(br_prefixes *p);

/* The deepest block from which tokens[n] can go on, with at least one token
 * left to feed, or NONE. It was used just now. */
uint32_t br_prefix_find(br_prefixes *p, uint32_t scope, const int32_t *tokens,
                        uint32_t n);
uint32_t br_prefix_depth(const br_prefixes *p, uint32_t block); /* NONE: 0 */
uint32_t br_prefix_state(const br_prefixes *p, uint32_t block); /* or NONE */
/* The slot, empty before, lists the pages up to and with the block, and stands
 * on it. */
void br_prefix_attach(br_prefixes *p, uint32_t block, uint32_t slot);
/* Somebody stands on it, or no longer (NONE: nothing happens). */
void br_prefix_stand(br_prefixes *p, uint32_t block);
void br_prefix_leave(br_prefixes *p, uint32_t block);

typedef enum br_prefix_end {
    BR_PREFIX_ADDED,  /* the slot's page is the tree's as well */
    BR_PREFIX_EXISTS, /* the tree has other pages with the same contents */
    BR_PREFIX_FULL,
} br_prefix_end;
/* The block of 16 tokens behind `parent` (NONE: the first one), which the slot
 * has as its i-th. *block: it, unless FULL. */
br_prefix_end br_prefix_add(br_prefixes *p, uint32_t scope, uint32_t parent,
                            const int32_t *tokens, uint32_t slot,
                            uint32_t *block);
/* A state for the block to keep: its number; taken from the one longest unused
 * if need be. NONE: all belong to blocks somebody stands on, or it has one. */
uint32_t br_prefix_keep_state(br_prefixes *p, uint32_t block);

/* Blocks as they go to a file and come back (keep.h). */
typedef struct br_prefix_block {
    uint32_t scope, parent, depth, state; /* parent, state: or NONE */
    uint64_t used;
    int32_t tokens[BR_PAGE_TOKENS];
    uint32_t page[BR_MAX_KV_GROUPS]; /* or NONE */
} br_prefix_block;
uint32_t br_prefix_places(const br_prefixes *p); /* numbers are below */
bool br_prefix_get(const br_prefixes *p, uint32_t i, br_prefix_block *out);
/* Takes over the pages of b, but not depth and state, which follow from parent
 * and from keep_state. NONE: there is one like it, or no room; the pages are
 * still the caller's. */
uint32_t br_prefix_put(br_prefixes *p, const br_prefix_block *b);

/* Gives the least recently used block up. False: all are in use. */
bool br_prefix_evict(br_prefixes *p);
/* Gives up the pages of windowed groups that blocks keep: less can go on from
 * them. False: there were none. */
bool br_prefix_strip(br_prefixes *p);
uint32_t br_prefix_count(const br_prefixes *p);     /* blocks */
uint32_t br_prefix_evictable(const br_prefixes *p); /* at once; more follow */
/* Forgets a scope's tree as far as nobody stands in it. */
void br_prefix_drop_scope(br_prefixes *p, uint32_t scope);
/* named[page] becomes true for the group's pages that blocks hold; returns how
 * many were false before. */
uint32_t br_prefix_mark(const br_prefixes *p, uint32_t group, bool *named);
/* Counts everything anew; aborts where books and blocks differ. Debug runs. */
void br_prefix_audit(const br_prefixes *p);
/* Instead of SipHash: for tests that want collisions. */
void br_prefix_hash(br_prefixes *p, uint64_t (*fn)(const void *, size_t));

#endif
