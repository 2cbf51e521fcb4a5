/* kcache.h - compiled modules on disk, found by what they were made of.
 *
 * A file for each module, KEY.zrt: PTX, this build of the compiler and what it
 * asks of the processor make the key, which the file repeats. Files come by
 * rename, so there is never half of one under its name; a damaged one is none
 * (its sum), and is written again. Only files and folders count that are the
 * user's own and nobody else may write. The least recently used go first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KCACHE_H
#define BR_KCACHE_H

#include "cg/ktarget.h"

#define BR_KCACHE_BYTES "256m"
enum { BR_KCACHE_KEY = 65 };

typedef struct br_kcache {
    const char *folder; /* NULL: nothing is kept */
    uint64_t most;      /* bytes in all */
} br_kcache;

/* False, and "": this build does not know itself. */
bool br_kcache_key(char key[BR_KCACHE_KEY], const void *ptx, size_t n);
/* A module that has been through the passes, and its x86-64 code, freed first.
 * False: it is not there. */
bool br_kcache_find(const br_kcache *c, const char *key, br_kir **m,
                    br_kcode **code);
/* Keeps x86-64 code of a whole module, if it can. */
void br_kcache_keep(const br_kcache *c, const char *key, const br_kcode *code);

#endif
