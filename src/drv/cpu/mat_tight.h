/* mat_tight.h - BF16 in twelve bits: the same weights, a quarter fewer bytes.
 *
 * A weight is two bytes. The low one, the last bit of the exponent and the
 * mantissa, is as good as random. The high one, sign and exponent, is not: of a
 * normal distribution 16 of its 256 values are all but one in 14,000 weights,
 * for a weight below 2^-15 of the largest is as rare. So the low byte is kept
 * and the high one is a place in a table of 16, which an instruction looks up
 * for 64 weights.
 *
 *   matrix  panel 0 | panel 1 | ... | pool: how many are taken | spares
 *   panel   head | piece 0 | ... | piece 7          (pieces, lines: mat_int.h)
 *   head    table of 16 high bytes; its first spare in the pool; first[9];
 *           at[]
 *   piece   groups of four lines, 128 weights
 *   group   64 low bytes, of lines 0 and 1 | 64, of 2 and 3 |
 *           64 bytes: places of lines 0 and 1 in their low halves, of 2 and 3
 *           in the high ones
 *   spare   a group's 128 high bytes as they are
 *
 * A group of which a weight's high byte is not in the table has a spare: those
 * of piece i are first[i] to first[i + 1] - 1, spare s is of the panel's group
 * at[s].
 * They lie apart, a panel's together, so that panels are one stream. The pool
 * has room for one in 16 groups, of which a normal distribution takes 1 or 2 %
 * and the rest is memory that nobody touches. A matrix that needs more, or a
 * panel one in four, stays as it is.
 *
 * 64 weights are in the order in which low and high bytes meet by one
 * instruction each: in each 16 bytes the first half of line 0's and of line 1's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_TIGHT_H
#define BR_MAT_TIGHT_H

#include "drv/cpu/mat_int.h"

#include <stdatomic.h>

enum {
    TIGHT_LINES = 4,    /* of a group */
    TIGHT_GROUP = 192,  /* its bytes; 256 as they are */
    TIGHT_HIGHS = 128,  /* bytes of a spare */
    TIGHT_MOST = 32768, /* columns: a piece of two panels on a stack, 256 KB */
    TIGHT_COLUMNS = 64, /* whole groups */
    TIGHT_ROWS = 15,    /* up to which weights are not laid out first */
    TIGHT_PANEL_SPARES = 512,
    TIGHT_NOBODY = 65535 /* no group of a panel */
};

typedef struct tight_head {
    uint8_t high[16];
    uint32_t spare;
    uint16_t first[9];
    uint16_t at[]; /* ends with TIGHT_NOBODY */
} tight_head;

#define TIGHT_NO_ROOM UINT32_MAX /* for so many spares */

typedef struct tight_pool {
    _Atomic uint32_t taken; /* 0 before the first panel is packed */
    uint8_t zero[60], spare[][TIGHT_HIGHS];
} tight_pool;

static inline uint32_t
tight_groups(uint32_t n_in) /* of a piece */
{
    return n_in / 16 / TIGHT_LINES;
}

static inline uint32_t
tight_panel_spares(uint32_t n_in) /* at most */
{
    return BR_MIN(8 * tight_groups(n_in) / 4, (uint32_t)TIGHT_PANEL_SPARES);
}

static inline uint32_t
tight_spares(const br_mat *m) /* of all panels */
{
    uint64_t n = (uint64_t)br_mat_panels(m) * 8 * tight_groups(m->n_in) / 16;

    return (uint32_t)BR_MIN(n + 32, (uint64_t)TIGHT_NO_ROOM - 1);
}

static inline uint32_t
tight_head_bytes(uint32_t n_in)
{
    return (uint32_t)(sizeof(tight_head) + 2 * (tight_panel_spares(n_in) + 1) +
                      63) /
           64 * 64;
}

static inline uint64_t
tight_panel_bytes(uint32_t n_in)
{
    return tight_head_bytes(n_in) +
           (uint64_t)8 * tight_groups(n_in) * TIGHT_GROUP;
}

/* And more that nobody has: so far a walk through a piece may come whose head is
 * damaged. */
static inline uint64_t
tight_pool_bytes(const br_mat *m)
{
    return sizeof(tight_pool) +
           ((uint64_t)tight_spares(m) + tight_panel_spares(m->n_in) +
            tight_groups(m->n_in)) *
               TIGHT_HIGHS;
}

/* Of piece 0 to 8, wherever its head says: a kept file's may say anything. */
static MAT_INLINE uint32_t
tight_first(const br_mat *m, const tight_head *h, uint32_t piece)
{
    return BR_MIN((uint32_t)h->first[piece], tight_panel_spares(m->n_in));
}

static MAT_INLINE uint32_t
tight_spare(const br_mat *m, const tight_head *h)
{
    return BR_MIN(h->spare, tight_spares(m));
}

static MAT_INLINE const tight_pool *
tight_pool_of(const br_mat *m)
{
    return (const void *)(m->data + br_mat_panels(m) * m->panel_bytes);
}

#endif
