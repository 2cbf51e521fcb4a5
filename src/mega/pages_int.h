/* pages_int.h - what the parts of the page allocator tell each other.
 *
 * An item is an activation that some task touches. Items are sorted by the
 * topological place of their first write, so "a before b" implies a < b: the
 * order of the items is a linear extension of the partial order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_PAGES_INT_H
#define BR_MEGA_PAGES_INT_H

#include "mega/pages.h"

#define BR_PG_NONE UINT32_MAX

typedef struct br_pg_item {
    int64_t size;         /* bytes, rounded up, > 0 */
    uint32_t buffer;      /* id */
    uint32_t first, last; /* topological places of first write, last use */
    uint32_t space;       /* items of different spaces never share */
    bool alone;           /* shares with nobody */
} br_pg_item;

/* row[b] has bit a set iff a is entirely before b. Row b is b bits long. */
typedef struct br_pg_order {
    uint32_t n;
    br_pg_item *item;
    uint64_t **row;
    uint32_t *ending; /* equal numbers: the same items come after */
} br_pg_order;

static inline uint32_t
br_pg_words(uint32_t n)
{
    return (n + 63) / 64;
}

static inline bool
br_pg_before(const br_pg_order *o, uint32_t a, uint32_t b)
{
    return a < b && o->row[b][a / 64] >> a % 64 & 1;
}

/* pages_order.c. Bytes of a buffer, -1 for a bad shape: rows of I4 begin on a
 * byte each. */
int64_t br_pg_bytes(const br_mega_buffer *b);
/* pages_order.c: the items and, when share, their order. All in arena a. */
br_code br_pg_order_build(br_pg_order *o, const br_mega_prog *p,
                          const br_mega_pages_opt *opt, br_arena *a,
                          br_status *st) BR_MUST_USE;

/* pages_bound.c: both lower bounds. antichain may be NULL, else receives the
 * items of a heaviest antichain (room for n, ended by NONE when shorter). */
br_code br_pg_bound(const br_pg_order *o, br_mega_pages_report *r,
                    uint32_t *antichain, br_arena *a,
                    br_status *st) BR_MUST_USE;

/* pages_pack.c: page_of[item], pages numbered from 0 in order of first use.
 * Stops early when the sum of page sizes meets goal. */
br_code br_pg_pack(const br_pg_order *o, int64_t goal, uint32_t *page_of,
                   uint32_t *n_pages, br_arena *a, br_status *st) BR_MUST_USE;
/* Compares two pointers to items for qsort: the larger first. */
int br_pg_by_size(const void *a, const void *b);

#endif
