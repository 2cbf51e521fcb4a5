/* keep.h - what an engine's cache knows, in a file: sessions go on after a
 * restart as if there had been none.
 *
 *   "BRKEEP1\n" | identity 32 | n_groups, n_blocks | bytes of a page of each
 *   group, of a state | blocks, parents before children | SHA-256 of all that
 *
 *   block: used u64 | scope, parent (index in the file), bits of its pages, has
 *   a state | 16 tokens | its pages | its state
 *
 * It is a cache: with it, without it, or with an older one every answer is the
 * same, so a process that is killed loses time alone. What does not belong to
 * this very model (identity), or is not whole, is refused. Words are of the
 * machine that wrote them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KEEP_H
#define BR_KEEP_H

#include "run/lm.h"
#include "run/prefix.h"

enum { BR_KEEP_IDENTITY = 32 };

typedef struct br_keeper {
    br_prefixes *prefix;
    br_kv *kv;
    const br_lm *lm;
    float *states;       /* [n][slot_elems] */
    uint32_t max_blocks; /* in the tree */
    uint8_t identity[BR_KEEP_IDENTITY];
} br_keeper;

/* Makes the file if it is not there, for its owner alone: it holds what people
 * wrote. True: made, and to be removed again by who then cannot write it. One
 * that cannot be made is noticed by who writes it. */
bool br_keep_private(const char *path);
/* The old file stays, or none, unless all of the new one is on the disk. */
br_code br_keep_save(const br_keeper *k, const char *path,
                     br_status *st) BR_MUST_USE;
/* Into an empty cache, as much as there is room for. NOT_FOUND: no file. */
br_code br_keep_load(const br_keeper *k, const char *path,
                     br_status *st) BR_MUST_USE;
/* The same from memory, without the sum; of who asks for it. */
br_code br_keep_read(const br_keeper *k, const uint8_t *p, size_t n,
                     br_status *st) BR_MUST_USE;

#endif
