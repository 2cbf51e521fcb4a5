/* map.h - hash maps from a text or a u64 to a word.
 *
 *   slots   [ . | 7f3a,0 | . | 91c2,2 | . | 0e11,1 ... ]   hash bits, entry
 *   entries [ "alpha" -> 1 | "beta" -> 2 | "gamma" -> 3 ]  as inserted
 *
 * Iteration is in order of insertion, so that what is printed from a map does
 * not change from run to run though the hash key does. Zero-initialise; a map
 * holds texts or numbers, by the first key put into it. Keys are borrowed:
 * their bytes outlive the map (an arena, the file itself).
 *
 * Costs: 32 bytes an entry and 8 a slot, four to eight slots for three entries.
 * A look-up takes 26 ns among 200 names and 60 to 170 among 100,000, where the
 * cache misses (`make bench-base`, one busy core of an AMD EPYC). Most
 * entries: 1.6e9.
 *
 * Not for several threads, except to read what nobody changes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAP_H
#define BR_MAP_H

#include "base/hash.h"

typedef union br_map_value {
    uint64_t u;
    int64_t i;
    void *p;
} br_map_value;

typedef struct br_map_entry {
    union {
        br_text text;
        uint64_t num;
    } key;
    br_map_value value;
    uint32_t hash;
    bool live; /* false: deleted */
} br_map_entry;

typedef struct br_map {
    BR_VEC(br_map_entry) entries; /* in order of insertion, deleted ones too */
    struct br_map_slot *slots;
    uint32_t n_slots; /* a power of two, or 0 */
    uint32_t n_live;
    br_hash_key hash_key;
    uint8_t kind; /* private to map.c */
    bool keyed;
} br_map;

void br_map_fini(br_map *m);
/* Instead of the process's random key: for tests that want one order of
 * probing. Before the first entry. */
void br_map_seed(br_map *m, br_hash_key key);
/* Room for n entries, so that the next puts up to n cannot fail. */
bool br_map_reserve(br_map *m, size_t n) BR_MUST_USE;

/* The value of a key, or NULL. Holds until the next put or del. */
br_map_value *br_map_get(const br_map *m, br_text key);
/* The value of a key that is put in if it is not there, then zero and *fresh
 * true. NULL: out of memory, the map as it was. fresh may be NULL. */
br_map_value *br_map_put(br_map *m, br_text key, bool *fresh) BR_MUST_USE;
bool br_map_del(br_map *m, br_text key); /* false: not there */

br_map_value *br_map_get_u64(const br_map *m, uint64_t key);
br_map_value *br_map_put_u64(br_map *m, uint64_t key, bool *fresh) BR_MUST_USE;
bool br_map_del_u64(br_map *m, uint64_t key);

/* for (size_t i = 0; (e = br_map_next(&m, &i));) ... Values may be changed
 * and the entry at hand deleted meanwhile, nothing put. */
br_map_entry *br_map_next(const br_map *m, size_t *i);

#endif
